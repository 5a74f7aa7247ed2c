//! What a main loop costs: its machine code, and the passes over shared memory that its tree asks for.

use super::Assembler;
use std::collections::BTreeSet;
use tilewright_ptxgen::ir::{Inst, Loop, Meanings, Module, Space, Stmt, Sym, Type, for_each_inst};
use tilewright_ptxgen::print::print;

/// Labels and instructions, as [`Assembler::disassemble`] gives them.
type Code = [(Option<String>, String)];

/// The loop of a module that has most multiply-adds of binary32, or of pairs of f16.
pub(crate) struct MainLoop {
    /// Which: `FFMA`, or `HFMA2`.
    pub(crate) op: &'static str,
    /// Registers of a thread, and bytes of spill stores and loads, of the whole module.
    pub(crate) registers: u32,
    pub(crate) spilled: u32,
    /// Instructions, and how many of them multiply and add.
    pub(crate) instructions: usize,
    pub(crate) multiplies: usize,
    /// Multiply-adds whose three operands lie in one bank of registers; see [`conflicts`].
    pub(crate) conflicts: usize,
    /// Loads of shared memory of a warp and the passes that they take, see [`passes`]; and the same of stores.
    pub(crate) loads: usize,
    pub(crate) passes: usize,
    pub(crate) stores: usize,
    pub(crate) store_passes: usize,
}

impl MainLoop {
    /// Assembles a module and reads its main loop.
    pub(crate) fn of(assembler: &Assembler, module: &Module) -> Result<Self, String> {
        let done = assembler.assemble(module.target, &print(module))?;
        let code = assembler.disassemble(&done.cubin)?;
        let mut op = "FFMA";
        for_each_inst(&module.entry.body, &mut |inst| {
            if let Inst::Fma { ty: Type::F16x2, .. } = inst {
                op = "HFMA2";
            }
        });
        let body = loop_of(&code, op);
        let multiplies = body.iter().filter(|found| name(found).starts_with(op)).count();
        let [(loads, passes), (stores, store_passes)] = shared_accesses(module);
        let (registers, spilled) = (done.registers, done.spilled);
        Ok(Self {
            op,
            registers,
            spilled,
            instructions: body.len(),
            multiplies,
            conflicts: conflicts(&body, op),
            loads,
            passes,
            stores,
            store_passes,
        })
    }

    /// How much of the loop multiplies and adds.
    pub(crate) fn share(&self) -> f64 {
        self.multiplies as f64 / self.instructions.max(1) as f64
    }

    /// Multiply-adds of an issue slot: a conflict holds its instruction up by one.
    pub(crate) fn per_slot(&self) -> f64 {
        self.multiplies as f64 / (self.instructions + self.conflicts).max(1) as f64
    }
}

/// An instruction without its predicate.
fn unguarded(op: &str) -> &str {
    if op.starts_with('@') { op.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start()) } else { op }
}

/// The name of an instruction with its suffixes, without its predicate.
pub(crate) fn name(op: &str) -> &str {
    unguarded(op).split_whitespace().next().unwrap_or_default().trim_end_matches(';')
}

/// The instructions of the loop that has most of a kind.
pub(crate) fn loop_of<'a>(code: &'a Code, most: &str) -> Vec<&'a str> {
    let (mut best, mut most_yet) = (Vec::new(), 0);
    for (end, (_, op)) in code.iter().enumerate().filter(|(_, (_, op))| name(op).starts_with("BRA")) {
        let Some(target) = op.split('`').nth(1).map(|t| t.trim_matches(|c| "(); ".contains(c))) else { continue };
        let start = code.iter().position(|(label, _)| label.as_deref() == Some(target));
        let Some(start) = start.filter(|s| *s <= end) else { continue };
        let body: Vec<&str> = code[start..=end].iter().map(|(_, op)| op.as_str()).collect();
        let count = body.iter().filter(|op| name(op).starts_with(most)).count();
        if count > most_yet {
            (best, most_yet) = (body, count);
        }
    }
    best
}

/// Multiply-adds of a name that read three different registers of one bank. From sm_70 on there are two banks, of even and of odd
/// registers, of 64 bits each: two operands of a bank are read at once, three are not. An operand that the instruction before read in
/// the same place and kept (`.reuse`) is not read again.
fn conflicts(body: &[&str], name: &str) -> usize {
    let mut kept = [None; 3];
    let mut count = 0;
    for op in body {
        let Some(operands) = unguarded(op).strip_prefix(name).and_then(|rest| rest.split_once(' ')) else {
            kept = [None; 3];
            continue;
        };
        let (mut read, mut keeps) = (BTreeSet::new(), [None; 3]);
        for (place, text) in operands.1.split(',').skip(1).take(3).enumerate() {
            let text = text.trim().trim_end_matches(';').trim();
            let Some(digits) = text.trim_start_matches(['-', '|']).strip_prefix('R') else { continue };
            let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
            let Ok(register) = digits.parse::<u32>() else { continue };
            if kept[place] != Some(register) {
                read.insert(register);
            }
            keeps[place] = text.contains(".reuse").then_some(register);
        }
        kept = keeps;
        count += usize::from(read.len() == 3 && read.iter().map(|r| r % 2).collect::<BTreeSet<_>>().len() == 1);
    }
    count
}

/// Loads of shared memory in the loop of most multiply-adds with the passes over the banks that they take in the first warp, and stores.
fn shared_accesses(module: &Module) -> [(usize, usize); 2] {
    let mut meanings = Meanings::with_claims(module.entry.carried.clone());
    let main = loops(&module.entry.body).into_iter().max_by_key(|l| {
        let mut multiplies = 0;
        for_each_inst(&l.body, &mut |inst| multiplies += usize::from(matches!(inst, Inst::Fma { .. })));
        multiplies
    });
    let mut found = [(0, 0); 2];
    let Some(main) = main else { return found };
    for_each_inst(&module.entry.body, &mut |inst| meanings.step(inst, &module.entry.params));
    for_each_inst(&main.body, &mut |inst| {
        let to = match inst {
            Inst::Ld { space: Space::Shared, .. } => &mut found[0],
            Inst::St { space: Space::Shared, .. } => &mut found[1],
            _ => return,
        };
        for access in inst.accesses() {
            let address = meanings.of(access.addr.base.into());
            let lane = |lane: i64| address.eval(&|sym| Some(if *sym == Sym::Tid { lane } else { 0 }));
            let at: Vec<i64> = (0..32).map(|l| lane(l).expect("an address of the thread's index")).collect();
            to.0 += 1;
            to.1 += passes(&at, access.bytes);
        }
    });
    found
}

/// Every loop of a body, those within others included.
fn loops(body: &[Stmt]) -> Vec<&Loop> {
    let mut all = Vec::new();
    for stmt in body {
        match stmt {
            Stmt::Inst(_) => {}
            Stmt::Block { body, .. } => all.extend(loops(body)),
            Stmt::Guard(guard) => all.extend(loops(&guard.body)),
            Stmt::Loop(l) => {
                all.push(l);
                all.extend(loops(&l.body));
            }
        }
    }
    all
}

/// Passes over the banks of a load by a full warp. Of 4 bytes a warp is one request, of 8 bytes each half, of 16 bytes each quarter;
/// two of these are one where all threads have the address of their neighbour at a distance of 1, or all at one of 2 (in the index's
/// exclusive or), which NVIDIA says of sm_70 on. A request takes as many passes as words are wanted of one bank. `load.shared/passes` of the
/// symbolic counts knows nothing of pairs.
fn passes(at: &[i64], bytes: u32) -> usize {
    let parts = (bytes as usize / 4).clamp(1, 4);
    let paired = [1, 2].iter().any(|by| (0..at.len()).all(|lane| at[lane] == at[lane ^ by]));
    let requests = if paired && parts > 1 { parts / 2 } else { parts };
    let request = |lanes: &[i64]| {
        let words: BTreeSet<i64> = lanes.iter().flat_map(|at| at / 4..(at + i64::from(bytes)) / 4).collect();
        let of_bank = |bank: i64| words.iter().filter(|word| *word % 32 == bank).count();
        (0..32).map(of_bank).max().unwrap_or(0)
    };
    at.chunks(at.len() / requests).map(request).sum()
}

#[test]
fn conflicts_are_three_operands_of_a_bank_that_are_not_kept() {
    let of = |code: &[&str]| conflicts(code, "FFMA");
    assert_eq!(of(&["FFMA R2, R4, R6, R2 ;"]), 1);
    assert_eq!(of(&["FFMA R2, R5, R6, R2 ;"]), 0);
    // Two operands are one register.
    assert_eq!(of(&["FFMA R2, R4, R4, R2 ;"]), 0);
    assert_eq!(of(&["FFMA R1, R4, R7.reuse, R1 ;", "@P0 FFMA R3, R5, R7, R3 ;"]), 0);
    // Kept in another place, for another instruction, or not at all.
    assert_eq!(of(&["FFMA R1, R4, R7.reuse, R1 ;", "FFMA R3, R7, R5, R3 ;"]), 1);
    assert_eq!(of(&["FFMA R1, R4, R7.reuse, R1 ;", "LDS R8, [R9] ;", "FFMA R3, R5, R7, R3 ;"]), 1);
    assert_eq!(of(&["FFMA R1, R4, R7, R1 ;", "FFMA R3, R5, R7, R3 ;"]), 1);
}

#[test]
fn pairs_of_threads_at_one_address_halve_the_passes() {
    let map = |at: &dyn Fn(i64) -> i64| (0..32).map(|lane| 16 * at(lane)).collect::<Vec<_>>();
    assert_eq!(passes(&map(&|lane| lane % 8), 16), 4);
    assert_eq!(passes(&map(&|lane| lane / 2 % 8), 16), 2);
    assert_eq!(passes(&map(&|lane| lane / 8), 16), 2);
    // Every second piece: two words of a bank.
    assert_eq!(passes(&map(&|lane| 2 * (lane % 8)), 16), 8);
    assert_eq!(passes(&(0..32).map(|lane| 4 * lane).collect::<Vec<_>>(), 4), 1);
    assert_eq!(passes(&(0..32).map(|lane| 8 * lane).collect::<Vec<_>>(), 4), 2);
}
