//! The verifier sees every kind of fault, all of them, and where.

use tilewright_ptxgen::ir::{
    Address, Arith, Builder, Caching, Class, Compare, CopyThrough, Entry, Form, Index, Inst, Module, Operand, Reg,
    Space, Special, Stmt, Sym, Type,
};
use tilewright_ptxgen::verify::{Fault, FaultKind, verify};

const THREADS: u32 = 64;

fn module(target: &str, shared: u32, build: impl FnOnce(&mut Builder)) -> Module {
    let mut b = Builder::new();
    build(&mut b);
    let entry = Entry { shared_bytes: shared, ..b.finish("test", THREADS) };
    Module { target: target.parse().unwrap(), entry }
}

fn faults(target: &str, shared: u32, build: impl FnOnce(&mut Builder)) -> Vec<Fault> {
    verify(&module(target, shared, build))
}

/// The only fault.
#[track_caller]
fn fault(target: &str, shared: u32, build: impl FnOnce(&mut Builder)) -> FaultKind {
    let found = faults(target, shared, build);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].kind.clone()
}

fn base(b: &mut Builder, stride: u32) -> Reg {
    let tid = b.special(Special::Tid);
    let shared = b.mov(Type::U32, Operand::Shared);
    b.scale_add(Some(tid), stride, shared)
}

fn zero(b: &mut Builder) -> Reg {
    b.mov(Type::F32, Operand::Float(0.0))
}

#[test]
fn sound_code_has_no_faults() {
    let found = faults("sm_50", 256, |b| {
        let n = b.param("n", Type::U32, 1);
        let (at, x) = (base(b, 4), zero(b));
        b.store(Space::Shared, Type::F32, &[x], at, 0);
        b.barrier();
        let first = b.compare(Compare::Lt, n, 10u32, None);
        b.when(first, Form::Branch, Builder::barrier);
    });
    assert_eq!(found, []);
}

#[test]
fn types_are_compared() {
    let kind = fault("sm_50", 0, |b| {
        let x = zero(b);
        b.arith(Arith::Add, Type::U32, x, 1u32);
    });
    assert!(matches!(kind, FaultKind::Type { expected: Type::U32, .. }), "{kind}");
    let kind = fault("sm_50", 0, |b| {
        b.mov(Type::U32, Operand::Float(1.0));
    });
    assert!(matches!(kind, FaultKind::Type { .. }), "{kind}");
    let kind = fault("sm_50", 0, |b| {
        let (src, dst) = (zero(b), [b.reg(Type::B16), b.reg(Type::F32)]);
        b.push(Inst::Split { ty: Type::F32, dst, src });
    });
    assert!(matches!(kind, FaultKind::Type { expected: Type::B16, .. }), "{kind}");
    let kind = fault("sm_50", 0, |b| {
        let (half, dst) = (b.mov(Type::B16, Operand::Int(0)), b.reg(Type::F32));
        b.push(Inst::Join { ty: Type::B32, dst, src: [half; 2] });
    });
    assert!(matches!(kind, FaultKind::Type { expected: Type::B32, .. }), "{kind}");
}

#[test]
fn registers_are_written_first_on_every_way() {
    let unwritten = fault("sm_50", 0, |b| {
        let x = b.reg(Type::U32);
        b.add(Type::U32, x, 1u32);
    });
    assert!(matches!(unwritten, FaultKind::Undefined(_)), "{unwritten}");
    let sometimes = fault("sm_50", 0, |b| {
        let tid = b.special(Special::Tid);
        let x = b.reg(Type::F32);
        let some = b.compare(Compare::Lt, tid, 3u32, None);
        b.when(some, Form::Predicate, |b| b.push(Inst::Mov { ty: Type::F32, dst: x, src: Operand::Float(1.0) }));
        b.arith(Arith::Add, Type::F32, x, Operand::Float(1.0));
    });
    assert!(matches!(sometimes, FaultKind::Undefined(_)), "{sometimes}");
    let beyond = fault("sm_50", 0, |b| {
        b.push(Inst::Mov { ty: Type::F32, dst: Reg { class: Class::F32, id: 9 }, src: Operand::Float(1.0) });
    });
    assert!(matches!(beyond, FaultKind::Undeclared(_)), "{beyond}");
}

#[test]
fn barriers_are_reached_by_all_or_none() {
    let kind = fault("sm_50", 0, |b| {
        let tid = b.special(Special::Tid);
        let some = b.compare(Compare::Lt, tid, 32u32, None);
        b.when(some, Form::Branch, Builder::barrier);
    });
    assert!(matches!(kind, FaultKind::DivergentBarrier(_)), "{kind}");
    let kind = fault("sm_50", 0, |b| {
        let tid = b.special(Special::Tid);
        let trips = b.add(Type::U32, tid, 1u32);
        b.repeat("uneven", trips, |b, _| b.barrier());
    });
    assert!(matches!(kind, FaultKind::DivergentBarrier(_)), "{kind}");
    let found = faults("sm_50", 0, |b| {
        let n = b.param("n", Type::U32, 1);
        let some = b.compare(Compare::Lt, n, 32u32, None);
        b.when(some, Form::Predicate, Builder::barrier);
    });
    assert!(matches!(found[0].kind, FaultKind::NotPredicable), "{found:?}");
}

#[test]
fn shared_memory_ends_where_it_was_declared() {
    let store = |bytes: u32| {
        move |b: &mut Builder| {
            let (at, x) = (base(b, 4), zero(b));
            b.store(Space::Shared, Type::F32, &[x], at, i64::from(bytes));
        }
    };
    assert_eq!(faults("sm_50", 260, store(4)), []);
    let kind = fault("sm_50", 256, store(4));
    assert!(matches!(kind, FaultKind::SharedBounds { from: 4, to: 260, declared: 256 }), "{kind}");
    // A guard narrows what is accessed.
    let guarded = |limit: u32| {
        faults("sm_50", 128, move |b| {
            let tid = b.special(Special::Tid);
            let shared = b.mov(Type::U32, Operand::Shared);
            let at = b.scale_add(Some(tid), 4, shared);
            let x = zero(b);
            let some = b.compare(Compare::Lt, tid, limit, None);
            b.when(some, Form::Predicate, |b| b.store(Space::Shared, Type::F32, &[x], at, 0));
        })
    };
    assert_eq!(guarded(32), []);
    assert_eq!(guarded(33).len(), 1);
    let unknown = fault("sm_50", 256, |b| {
        let n = b.param("n", Type::U32, 4);
        let x = zero(b);
        b.store(Space::Shared, Type::F32, &[x], n, 0);
    });
    assert!(matches!(unknown, FaultKind::SharedUnbounded(_)), "{unknown}");
}

#[test]
fn vectors_are_aligned_as_far_as_promises_tell() {
    let load = |promise: u32, count: usize| {
        move |b: &mut Builder| {
            let a = b.buffer("a", 16);
            let ld = b.param("ld", Type::U32, promise);
            let tid = b.special(Special::Tid);
            let offset = b.arith(Arith::Mul, Type::U32, tid, ld);
            let at = b.mad_wide(offset, 4u32, a);
            b.load(Space::Global, Type::F32, count, at, 16);
        }
    };
    assert_eq!(faults("sm_50", 0, load(4, 4)), []);
    assert_eq!(faults("sm_50", 0, load(1, 1)), []);
    let kind = fault("sm_50", 0, load(2, 4));
    assert!(matches!(kind, FaultKind::Misaligned { bytes: 16, known: 8, .. }), "{kind}");
    let kind = fault("sm_50", 0, load(4, 3));
    assert!(matches!(kind, FaultKind::Width { count: 3, .. }), "{kind}");
}

#[test]
fn targets_have_what_is_used() {
    let copy = |b: &mut Builder| {
        let a = b.buffer("a", 16);
        let to = base(b, 16);
        let (to, from) = (Address { base: to, offset: 0 }, Address { base: a, offset: 0 });
        b.push(Inst::CpAsync { bytes: 16, through: CopyThrough::Second, to, from, read: None });
    };
    assert_eq!(faults("sm_80", 1024, copy), []);
    let kind = fault("sm_75", 1024, copy);
    assert!(matches!(kind, FaultKind::TooNew { needs: 80, target: 75, .. }), "{kind}");
    let kind = fault("sm_50", 50_000, |_| {});
    assert!(matches!(kind, FaultKind::Limit { need: 50_000, .. }), "{kind}");
}

#[test]
fn parameters_are_there() {
    let kind = fault("sm_50", 0, |b| {
        let dst = b.reg(Type::U32);
        b.push(Inst::LdParam { ty: Type::U32, dst, param: 2 });
    });
    assert!(matches!(kind, FaultKind::Param(2)), "{kind}");
}

#[test]
fn claims_are_held_to() {
    let advance = |claimed: u32, by: u32| {
        faults("sm_50", 0, move |b| {
            let a = b.buffer("a", 16);
            let n = b.param("n", Type::U32, 1);
            let step = Index::from(i64::from(claimed)).times(&Index::from(b.next_loop()));
            let meaning = b.meaning(a).plus(&step);
            let p = b.carried(Type::U64, a, meaning);
            b.repeat("walk", n, |b, _| {
                b.load(Space::Global, Type::F32, 4, p, 0);
                let (a, b_) = (p.into(), by.into());
                b.push(Inst::Arith { op: Arith::Add, ty: Type::U64, dst: p, a, b: b_ });
            });
        })
    };
    assert_eq!(advance(16, 16), []);
    let found = advance(16, 8);
    assert!(matches!(found[..], [Fault { kind: FaultKind::Claim { .. }, .. }]), "{found:?}");
    let kind = fault("sm_50", 0, |b| {
        let x = b.special(Special::Tid);
        b.push(Inst::Mov { ty: Type::U32, dst: x, src: Operand::Int(1) });
    });
    assert!(matches!(kind, FaultKind::Rewritten(_)), "{kind}");
}

#[test]
fn what_is_written_in_the_tree_is_what_registers_mean() {
    let mut m = module("sm_50", 0, |b| {
        let n = b.param("n", Type::U32, 1);
        b.repeat("k", n, |_, _| {});
    });
    let Some(Stmt::Loop(l)) = m.entry.body.last_mut() else { panic!("{:?}", m.entry.body) };
    assert_eq!(l.trips, Index::param("n"));
    l.trips = Sym::Tid.into();
    let found = verify(&m);
    assert!(matches!(found[0].kind, FaultKind::Meaning { .. }), "{found:?}");
}

#[test]
fn all_faults_are_found_with_their_places() {
    let found = faults("sm_50", 0, |b| {
        let n = b.param("n", Type::U32, 1);
        b.block("outer", |b| {
            b.repeat("k", n, |b, _| {
                let x = b.reg(Type::F32);
                b.arith(Arith::Add, Type::F32, x, x);
                let tid = b.special(Special::Tid);
                let some = b.compare(Compare::Eq, tid, 0u32, None);
                b.when(some, Form::Branch, Builder::barrier);
            });
        });
        let a = b.buffer("a", 4);
        let dst = b.regs(Type::F32, 2);
        let (caching, addr) = (Caching::ReadOnly, Address { base: a, offset: 0 });
        b.push(Inst::Ld { space: Space::Global, caching, ty: Type::F32, dst, addr });
    });
    let places: Vec<&str> = found.iter().map(|f| f.place.as_str()).collect();
    assert_eq!(
        places,
        ["test/outer[1]/k[0]/0", "test/outer[1]/k[0]/0", "test/outer[1]/k[0]/when[3]/0", "test/4"],
        "{found:?}"
    );
}
