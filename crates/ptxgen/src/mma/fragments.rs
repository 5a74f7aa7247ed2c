//! From shared memory to fragments, and the products.

use super::blueprint::Blueprint;
use super::emit::Position;
use super::reader::Reader;
use super::tile::Places;
use super::transpose::Transposition;
use super::variants::{self, Fetch, Multiplied};
use crate::ir::{Address, Arith, Builder, Caching, Inst, MmaKind, Reg, Space, Ties, Type};
use crate::simt::Multiply;

/// One load of fragments: which address, bytes beyond it, and how many registers it fills.
#[derive(Clone, Copy)]
struct Load {
    address: usize,
    offset: u32,
    registers: usize,
}

/// One operand's tile as a warp reads it.
struct Operand {
    fetch: Fetch,
    /// The type of a register.
    ty: Type,
    /// Registers of a fragment.
    each: usize,
    /// Addresses in the first stage.
    addresses: Vec<Reg>,
    /// The loads of each step, fragment after fragment.
    steps: Vec<Vec<Load>>,
    /// How bytes become fragments.
    transposition: Option<Transposition>,
    /// What is multiplied of an element.
    multiplied: Multiplied,
    ties: Ties,
}

/// What a warp reads, and how it multiplies. The first factor of the instruction comes from B.
pub(super) struct Fragments {
    kind: MmaKind,
    multiplied: Multiplied,
    first: Operand,
    second: Operand,
    is_ahead: bool,
    /// The fragments of the first step of a stage, where they are there before it begins.
    ahead: Step,
}

/// The fragments of a step, of the first factor and of the second, as they lie in memory.
#[derive(Clone, Default)]
struct Step {
    first: Vec<Reg>,
    second: Vec<Reg>,
}

impl Fragments {
    pub(super) fn new(b: &mut Builder, bp: &Blueprint, at: &Position, shared: Reg) -> Self {
        let second = Operand::new(b, bp, at, true, shared);
        let first = Operand::new(b, bp, at, false, shared);
        // Through registers a stage is filled beneath the products of the one before. With one step a stage, fragments would be copied.
        let is_ahead = bp.is_async() && first.steps.len() > 1;
        Self { kind: bp.kind, multiplied: bp.multiplied, first, second, is_ahead, ahead: Step::default() }
    }
}

impl Operand {
    fn new(b: &mut Builder, bp: &Blueprint, at: &Position, is_a: bool, shared: Reg) -> Self {
        let [_, first, second] = bp.kind.registers();
        let (ty, each) = if is_a { second } else { first };
        let reader = Reader::new(bp, is_a, each as u32);
        let base = b.add(Type::U32, shared, if is_a { 0 } else { bp.tile_a_bytes });
        let begins = reader.begins(b, at.lane, at.warp[usize::from(!is_a)]);
        let place = |begin| Places::new(b, bp.tile(is_a), base, begin, reader.apart());
        let mut places: Vec<Places> = begins.into_iter().map(place).collect();
        let steps: Vec<Vec<_>> = (0..bp.config.u / reader.depth)
            .map(|step| {
                let of_step = reader.places(step).into_iter();
                of_step.map(|(of, rows, pieces)| (of, places[of].at(b, rows, pieces))).collect()
            })
            .collect();
        let all: Vec<Vec<Reg>> = places.into_iter().map(Places::registers).collect();
        let before = |of: usize| all[..of].iter().map(Vec::len).sum::<usize>();
        let load = |&(of, (address, offset)): &(usize, (usize, u32))| Load {
            address: before(of) + address,
            offset,
            registers: reader.at_once(),
        };
        let steps = steps.iter().map(|step| step.iter().map(load).collect()).collect();
        let transposition = (reader.fetch == Fetch::Bytes).then(|| Transposition::new(b, at.lane));
        let (fetch, multiplied, ties) = (reader.fetch, bp.multiplied, variants::ties(bp.frame.target));
        Self { fetch, ty, each, addresses: all.concat(), steps, transposition, multiplied, ties }
    }

    /// Where the loads of a stage go from.
    fn of_stage(&self, b: &mut Builder, turn: Option<Reg>) -> Vec<Reg> {
        self.addresses.iter().map(|&at| turn.map_or(at, |turn| b.add(Type::U32, at, turn))).collect()
    }

    /// The loads of a step's fragments, to these registers or to new ones; and the registers.
    fn fetch(&self, b: &mut Builder, addresses: &[Reg], step: usize, to: &[Reg]) -> (Vec<Inst>, Vec<Reg>) {
        let (mut loads, mut all) = (Vec::new(), Vec::new());
        for load in &self.steps[step] {
            let addr = Address { base: addresses[load.address], offset: load.offset.into() };
            let known = to.get(all.len()..all.len() + load.registers);
            let dst = known.map_or_else(|| b.regs(self.ty, load.registers), <[Reg]>::to_vec);
            all.extend(&dst);
            loads.push(match self.fetch {
                Fetch::Plain | Fetch::Bytes => {
                    Inst::Ld { space: Space::Shared, caching: Caching::Default, ty: self.ty, dst, addr }
                }
                fetch => Inst::Ldmatrix { transposed: fetch == Fetch::Transposed, dst, addr },
            });
        }
        (loads, all)
    }

    /// What makes multiplied parts of a fragment's registers in place, where that is all that it takes.
    fn rounding(&self, b: &mut Builder, fetched: &[Reg]) -> Vec<[Inst; 2]> {
        if self.multiplied != Multiplied::Rounded {
            return Vec::new();
        }
        let in_place = |&dst: &Reg| {
            let src = b.reg(Type::F32);
            let number = Inst::Bits { to: Type::F32, from: Type::B32, dst: src, src: dst };
            [number, Inst::RoundTf32 { ties: self.ties, dst, src }]
        };
        fetched.iter().map(in_place).collect()
    }

    /// The parts of a step's fragments that are multiplied, the larger first.
    fn parts(&self, b: &mut Builder, fetched: Vec<Reg>) -> Vec<Vec<Reg>> {
        let fragments = match &self.transposition {
            Some(transposition) => transposition.fragments(b, &fetched, self.each),
            None => fetched,
        };
        match self.multiplied {
            // Rounded ones have been, in place.
            Multiplied::Whole | Multiplied::Rounded => vec![fragments],
            Multiplied::Split => {
                let (large, small) = fragments.iter().map(|&x| split(b, self.ties, x)).unzip();
                vec![large, small]
            }
        }
    }
}

/// A binary32 rounded to tf32, and as a number.
fn rounded(b: &mut Builder, ties: Ties, x: Reg) -> (Reg, Reg) {
    let src = bits(b, x);
    let dst = b.reg(Type::B32);
    b.push(Inst::RoundTf32 { ties, dst, src });
    (dst, src)
}

/// Two numbers of tf32 that are nearly a binary32: itself rounded, and what that left, rounded.
fn split(b: &mut Builder, ties: Ties, x: Reg) -> (Reg, Reg) {
    let (large, x) = rounded(b, ties, x);
    let of_large = bits(b, large);
    let rest = b.arith(Arith::Sub, Type::F32, x, of_large);
    let small = b.reg(Type::B32);
    b.push(Inst::RoundTf32 { ties, dst: small, src: rest });
    (large, small)
}

/// 32 bits of a fragment as a binary32.
fn bits(b: &mut Builder, src: Reg) -> Reg {
    let dst = b.reg(Type::F32);
    b.push(Inst::Bits { to: Type::F32, from: Type::B32, dst, src });
    dst
}

impl Multiply for Fragments {
    fn is_ahead(&self) -> bool {
        self.is_ahead
    }

    fn begin(&mut self, b: &mut Builder, turn: Reg) {
        self.ahead = self.first_step(b, Some(turn));
    }

    fn go_on(&self, b: &mut Builder, turn: Reg, acc: &[Reg], next: impl FnOnce(&mut Builder) -> Reg) {
        let last = self.multiplied_but_last(b, Some(turn), self.ahead.clone(), acc);
        let turn = next(b);
        let addresses = [&self.first, &self.second].map(|of| of.of_stage(b, Some(turn)));
        // The last step is not the first, and has registers of its own.
        let (loads, next) = self.fetch(b, &addresses, 0, &self.ahead);
        self.step(b, last, (loads, &next), acc);
    }

    /// The fragments of a step are loaded one step ahead.
    fn compute(&self, b: &mut Builder, turn: Option<Reg>, _left: Reg, acc: &[Reg]) {
        let first = self.first_step(b, turn);
        let last = self.multiplied_but_last(b, turn, first, acc);
        self.step(b, last, (Vec::new(), &Step::default()), acc);
    }
}

impl Fragments {
    /// The loads of both factors' fragments of a step, to these registers or to new ones; and the registers.
    fn fetch(&self, b: &mut Builder, [first, second]: &[Vec<Reg>; 2], step: usize, to: &Step) -> (Vec<Inst>, Step) {
        let (of_second, second) = self.second.fetch(b, second, step, &to.second);
        let (of_first, first) = self.first.fetch(b, first, step, &to.first);
        ([of_second, of_first].concat(), Step { first, second })
    }

    /// Loads the fragments of a stage's first step.
    fn first_step(&self, b: &mut Builder, turn: Option<Reg>) -> Step {
        let addresses = [&self.first, &self.second].map(|of| of.of_stage(b, turn));
        let (loads, step) = self.fetch(b, &addresses, 0, &Step::default());
        loads.into_iter().for_each(|load| b.push(load));
        self.rounding(b, &step).into_iter().flatten().for_each(|inst| b.push(inst));
        step
    }

    /// Multiplies all steps of a stage but the last, whose fragments are loaded.
    fn multiplied_but_last(&self, b: &mut Builder, turn: Option<Reg>, first: Step, acc: &[Reg]) -> Step {
        let addresses = [&self.first, &self.second].map(|of| of.of_stage(b, turn));
        (1..self.first.steps.len()).fold(first, |held, step| {
            let (loads, next) = self.fetch(b, &addresses, step, &Step::default());
            self.step(b, held, (loads, &next), acc);
            next
        })
    }

    /// What rounds a step's fragments, where they are rounded.
    fn rounding(&self, b: &mut Builder, step: &Step) -> Vec<[Inst; 2]> {
        let second = self.second.rounding(b, &step.second);
        second.into_iter().chain(self.first.rounding(b, &step.first)).collect()
    }

    /// Adds the products of a step; among them the next is loaded, in the first half, and rounded, in the second: so the pipe of loads is
    /// never full, and no product waits for it.
    fn step(&self, b: &mut Builder, held: Step, (loads, next): (Vec<Inst>, &Step), acc: &[Reg]) {
        // What is made of fragments takes their registers, before more are loaded.
        let (first, second) = (self.first.parts(b, held.first), self.second.parts(b, held.second));
        let pairs = self.multiplied.products().iter();
        let products: Vec<Inst> = pairs.flat_map(|&(x, y)| self.products(&first[x], &second[y], acc)).collect();
        let half = products.len() / 2;
        let among = |of: usize| half.max(1) as f64 / of.max(1) as f64;
        let mut rounding = self.rounding(b, next).into_iter();
        let (by_load, by_rounding) = (among(loads.len()), among(rounding.len()));
        let mut loads = loads.into_iter();
        let (mut loaded, mut rounded) = (0.0, half as f64);
        for (at, product) in products.into_iter().enumerate() {
            while loaded <= at as f64
                && let Some(load) = loads.next()
            {
                b.push(load);
                loaded += by_load;
            }
            b.push(product);
            while rounded <= at as f64
                && let Some(pair) = rounding.next()
            {
                pair.into_iter().for_each(|inst| b.push(inst));
                rounded += by_rounding;
            }
        }
        loads.chain(rounding.flatten()).for_each(|inst| b.push(inst));
    }

    /// The products of all fragments of a step.
    fn products(&self, first: &[Reg], second: &[Reg], acc: &[Reg]) -> Vec<Inst> {
        let [(_, sums), ..] = self.kind.registers();
        let second = || second.chunks(self.second.each);
        let pairs = first.chunks(self.first.each).flat_map(|x| second().map(move |y| (x, y)));
        let product = |((x, y), acc): ((&[Reg], &[Reg]), &[Reg])| {
            let (d, a, b, c) = (acc.to_vec(), x.to_vec(), y.to_vec(), acc.to_vec());
            Inst::Mma { kind: self.kind, d, a, b, c }
        };
        pairs.zip(acc.chunks(sums)).map(product).collect()
    }
}
