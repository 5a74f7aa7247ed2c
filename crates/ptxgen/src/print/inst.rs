//! The text of one instruction.

use super::SHARED;
use crate::ir::{Address, Arith, Caching, CopyThrough, Entry, Inst, Operand, Reg, Type};
use std::fmt::Write;

/// Writing to a string cannot fail, so results of `write!` are dropped.
pub(super) fn write(out: &mut String, inst: &Inst, entry: &Entry) {
    let _ = match inst {
        Inst::Mov { ty, dst, src } => write!(out, "mov{} {dst}, {}", ty.suffix(), show(*src, *ty)),
        Inst::LdParam { ty, dst, param } => {
            let name = entry.params.get(*param).map_or("?", |p| p.name.as_str());
            write!(out, "ld.param{} {dst}, [{name}]", ty.suffix())
        }
        Inst::ToGlobal { dst, src } => write!(out, "cvta.to.global.u64 {dst}, {src}"),
        Inst::Arith { op, ty, dst, a, b } => {
            let b_type = if matches!(op, Arith::Shl | Arith::Shr) { Type::U32 } else { *ty };
            let (name, suffix) = arith(*op, *ty);
            write!(out, "{name}{suffix} {dst}, {}, {}", show(*a, *ty), show(*b, b_type))
        }
        Inst::Function { function, ty, dst, src } => {
            write!(out, "{}{} {dst}, {}", function.name(), ty.suffix(), show(*src, *ty))
        }
        Inst::Mad { wide, ty, dst, a, b, c } => {
            let name = if *wide { "mad.wide" } else { "mad.lo" };
            write!(out, "{name}{} {dst}, {}, {}, {}", ty.suffix(), show(*a, *ty), show(*b, *ty), show(*c, *ty))
        }
        Inst::Fma { ty, dst, a, b, c } => {
            write!(out, "fma.rn{} {dst}, {}, {}, {}", ty.suffix(), show(*a, *ty), show(*b, *ty), show(*c, *ty))
        }
        Inst::Cvt { to, from, dst, src } => {
            let narrows = from.is_float() && to.is_float() && to.bytes() < from.bytes();
            let rounding = if narrows || from.is_float() != to.is_float() && to.is_float() { ".rn" } else { "" };
            write!(out, "cvt{rounding}{}{} {dst}, {src}", to.suffix(), from.suffix())
        }
        Inst::Setp { cmp, ty, dst, a, b, and } => {
            let (combine, last) = and.map_or((String::new(), String::new()), |p| (".and".into(), format!(", {p}")));
            let operands = format!("{}, {}", show(*a, *ty), show(*b, *ty));
            write!(out, "setp.{}{combine}{} {dst}, {operands}{last}", cmp.name(), ty.suffix())
        }
        Inst::Selp { ty, dst, a, b, pred } => {
            write!(out, "selp{} {dst}, {}, {}, {pred}", ty.suffix(), show(*a, *ty), show(*b, *ty))
        }
        Inst::Mma { kind, d, a, b, c } => {
            write!(out, "mma.sync.aligned{} {}, {}, {}, {}", kind.suffix(), list(d), list(a), list(b), list(c))
        }
        _ => memory(out, inst),
    };
}

fn memory(out: &mut String, inst: &Inst) -> std::fmt::Result {
    match inst {
        Inst::Ld { space, caching, ty, dst, addr } => {
            let nc = if *caching == Caching::ReadOnly { ".nc" } else { "" };
            let (vector, dst) = (vector(dst.len()), if dst.len() == 1 { dst[0].to_string() } else { list(dst) });
            write!(out, "ld{}{nc}{vector}{} {dst}, {}", space.suffix(), ty.suffix(), at(*addr))
        }
        Inst::St { space, ty, addr, src } => {
            let shown = src.iter().map(|x| show(*x, *ty)).collect::<Vec<_>>().join(", ");
            let shown = if src.len() == 1 { shown } else { format!("{{{shown}}}") };
            write!(out, "st{}{}{} {}, {shown}", space.suffix(), vector(src.len()), ty.suffix(), at(*addr))
        }
        Inst::Red { ty, addr, src } => {
            write!(out, "red.global.add{} {}, {}", ty.suffix(), at(*addr), show(*src, *ty))
        }
        Inst::Atom { ty, dst, addr, src } => {
            write!(out, "atom.global.add{} {dst}, {}, {}", ty.suffix(), at(*addr), show(*src, *ty))
        }
        Inst::CpAsync { bytes, through, to, from, read } => {
            let through = if *through == CopyThrough::Second { "cg" } else { "ca" };
            let read = read.map_or(String::new(), |r| format!(", {}", show(r, Type::U32)));
            write!(out, "cp.async.{through}.shared.global {}, {}, {bytes}{read}", at(*to), at(*from))
        }
        Inst::CpAsyncCommit => out.write_str("cp.async.commit_group"),
        Inst::CpAsyncWait { pending } => write!(out, "cp.async.wait_group {pending}"),
        Inst::Barrier => out.write_str("bar.sync 0"),
        Inst::Ldmatrix { transposed, dst, addr } => {
            let trans = if *transposed { ".trans" } else { "" };
            let count = dst.len();
            write!(out, "ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {}, {}", list(dst), at(*addr))
        }
        _ => Ok(()),
    }
}

fn arith(op: Arith, ty: Type) -> (&'static str, &'static str) {
    let bits = |ty: Type| if ty.bytes() == 8 { ".b64" } else { ".b32" };
    match op {
        Arith::Add if ty.is_float() => ("add.rn", ty.suffix()),
        Arith::Sub if ty.is_float() => ("sub.rn", ty.suffix()),
        Arith::Mul if ty.is_float() => ("mul.rn", ty.suffix()),
        Arith::Div if ty.is_float() => ("div.rn", ty.suffix()),
        Arith::Add => ("add", ty.suffix()),
        Arith::Sub => ("sub", ty.suffix()),
        Arith::Mul => ("mul.lo", ty.suffix()),
        Arith::MulWide => ("mul.wide", ty.suffix()),
        Arith::Div => ("div", ty.suffix()),
        Arith::Rem => ("rem", ty.suffix()),
        Arith::Min => ("min", ty.suffix()),
        Arith::Max => ("max", ty.suffix()),
        Arith::And => ("and", bits(ty)),
        Arith::Or => ("or", bits(ty)),
        Arith::Xor => ("xor", bits(ty)),
        Arith::Shl => ("shl", bits(ty)),
        Arith::Shr => ("shr", ty.suffix()),
    }
}

fn show(operand: Operand, ty: Type) -> String {
    match operand {
        Operand::Reg(reg) => reg.to_string(),
        Operand::Int(i) => i.to_string(),
        Operand::Special(special) => special.to_string(),
        Operand::Shared => SHARED.to_owned(),
        Operand::Float(x) if ty == Type::F64 => format!("0d{:016X}", x.to_bits()),
        Operand::Float(x) => format!("0f{:08X}", (x as f32).to_bits()),
    }
}

fn at(addr: Address) -> String {
    match addr.offset {
        0 => format!("[{}]", addr.base),
        offset => format!("[{}{offset:+}]", addr.base),
    }
}

fn list(regs: &[Reg]) -> String {
    format!("{{{}}}", regs.iter().map(Reg::to_string).collect::<Vec<_>>().join(", "))
}

fn vector(count: usize) -> &'static str {
    match count {
        2 => ".v2",
        4 => ".v4",
        _ => "",
    }
}
