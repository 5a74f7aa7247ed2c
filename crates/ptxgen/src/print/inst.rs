//! The text of one instruction.

use super::{SHARED, TICKETS};
use crate::ir::{Address, Arith, Entry, Inst, Operand, Part, Reg, Ties, Type};

pub(super) fn write(out: &mut String, inst: &Inst, entry: &Entry) {
    out.push_str(&opcode(inst));
    let of_matrices = matches!(inst, Inst::Mma { .. } | Inst::Ldmatrix { .. });
    let mut separator = " ";
    inst.parts(|part| {
        out.push_str(std::mem::replace(&mut separator, ", "));
        out.push_str(&match part {
            Part::Write(regs, _) | Part::Regs(regs, _) => list(regs.iter().map(Reg::to_string), of_matrices),
            Part::Read(operands, ty) => list(operands.iter().map(|x| show(*x, ty)), false),
            Part::At(access) => at(access.addr),
            Part::Param(i) => format!("[{}]", entry.params.get(i).map_or("?", |p| p.name.as_str())),
            Part::Number(n) => n.to_string(),
        });
    });
}

fn opcode(inst: &Inst) -> String {
    let typed = |name: &str, ty: &Type| [name, ty.suffix()].concat();
    match inst {
        Inst::Mov { ty, .. } => typed("mov", ty),
        Inst::LdParam { ty, .. } => typed("ld.param", ty),
        Inst::ToGlobal { .. } => "cvta.to.global.u64".into(),
        Inst::Arith { op, ty, .. } => {
            let (name, suffix) = arith(*op, *ty);
            [name, suffix].concat()
        }
        Inst::Function { function, ty, .. } => typed(function.name(), ty),
        Inst::Mad { wide, ty, .. } => typed(if *wide { "mad.wide" } else { "mad.lo" }, ty),
        Inst::Fma { ty, .. } => typed("fma.rn", ty),
        Inst::Cvt { to, from, .. } => {
            let narrows = from.is_float() && to.is_float() && to.bytes() < from.bytes();
            let rounds = narrows || from.is_float() != to.is_float() && to.is_float();
            typed(&typed(if rounds { "cvt.rn" } else { "cvt" }, to), from)
        }
        Inst::RoundTf32 { ties: Ties::Away, .. } => "cvt.rna.tf32.f32".into(),
        Inst::RoundTf32 { ties: Ties::Even, .. } => "cvt.rn.tf32.f32".into(),
        Inst::Prmt { .. } => "prmt.b32".into(),
        Inst::Split { .. } | Inst::Join { .. } | Inst::Bits { .. } => "mov.b32".into(),
        Inst::Setp { cmp, ty, and, .. } => {
            typed(&format!("setp.{}{}", cmp.name(), if and.is_some() { ".and" } else { "" }), ty)
        }
        Inst::Selp { ty, .. } => typed("selp", ty),
        Inst::Mma { kind, .. } => format!("mma.sync.aligned{}", kind.suffix()),
        Inst::Ld { space, caching, ty, dst, .. } => {
            ["ld", space.suffix(), caching.suffix(), vector(dst.len()), ty.suffix()].concat()
        }
        Inst::St { space, ty, src, .. } => ["st", space.suffix(), vector(src.len()), ty.suffix()].concat(),
        Inst::Red { ty, .. } => typed("red.global.add", ty),
        Inst::Atom { ty, .. } => typed("atom.global.add", ty),
        Inst::CpAsync { through, .. } => through.name().into(),
        Inst::CpAsyncCommit => "cp.async.commit_group".into(),
        Inst::CpAsyncWait { .. } => "cp.async.wait_group".into(),
        Inst::Barrier => "bar.sync".into(),
        Inst::Fence { lighter: true } => "fence.acq_rel.gpu".into(),
        Inst::Fence { lighter: false } => "membar.gl".into(),
        Inst::GridRelease => "griddepcontrol.launch_dependents".into(),
        Inst::GridWait => "griddepcontrol.wait".into(),
        Inst::Ldmatrix { transposed, dst, .. } => {
            let trans = if *transposed { ".trans" } else { "" };
            format!("ldmatrix.sync.aligned.m8n8.x{}{trans}.shared.b16", dst.len())
        }
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
        Operand::Tickets => TICKETS.to_owned(),
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

/// Several, or one `always`, in braces.
fn list(of: impl Iterator<Item = String>, always: bool) -> String {
    let all: Vec<String> = of.collect();
    let joined = all.join(", ");
    if all.len() == 1 && !always { joined } else { format!("{{{joined}}}") }
}

fn vector(count: usize) -> &'static str {
    match count {
        2 => ".v2",
        4 => ".v4",
        _ => "",
    }
}
