//! From shared memory to fragments, and the products.

use super::blueprint::Blueprint;
use super::emit::Position;
use super::reader::Reader;
use super::tile::Places;
use super::transpose::Transposition;
use super::variants::{Fetch, Multiplied};
use crate::ir::{Address, Arith, Builder, Caching, Inst, MmaKind, Reg, Space, Type};
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
}

/// What a warp reads, and how it multiplies. The first factor of the instruction comes from B.
pub(super) struct Fragments {
    kind: MmaKind,
    multiplied: Multiplied,
    first: Operand,
    second: Operand,
}

impl Fragments {
    pub(super) fn new(b: &mut Builder, bp: &Blueprint, at: &Position, shared: Reg) -> Self {
        let second = Operand::new(b, bp, at, true, shared);
        let first = Operand::new(b, bp, at, false, shared);
        Self { kind: bp.kind, multiplied: bp.multiplied, first, second }
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
        let (fetch, multiplied) = (reader.fetch, bp.multiplied);
        Self { fetch, ty, each, addresses: all.concat(), steps, transposition, multiplied }
    }

    /// The fragments of a step, as they lie in memory.
    fn fetch(&self, b: &mut Builder, addresses: &[Reg], step: usize) -> Vec<Reg> {
        let mut all = Vec::new();
        for load in &self.steps[step] {
            let addr = Address { base: addresses[load.address], offset: load.offset.into() };
            let dst = b.regs(self.ty, load.registers);
            all.extend(&dst);
            b.push(match self.fetch {
                Fetch::Plain | Fetch::Bytes => {
                    Inst::Ld { space: Space::Shared, caching: Caching::Default, ty: self.ty, dst, addr }
                }
                fetch => Inst::Ldmatrix { transposed: fetch == Fetch::Transposed, dst, addr },
            });
        }
        all
    }

    /// The parts of a step's fragments that are multiplied, the larger first.
    fn parts(&self, b: &mut Builder, fetched: Vec<Reg>) -> Vec<Vec<Reg>> {
        let fragments = match &self.transposition {
            Some(transposition) => transposition.fragments(b, &fetched, self.each),
            None => fetched,
        };
        match self.multiplied {
            Multiplied::Whole => vec![fragments],
            Multiplied::Rounded => vec![fragments.iter().map(|&x| rounded(b, x).0).collect()],
            Multiplied::Split => {
                let (large, small) = fragments.iter().map(|&x| split(b, x)).unzip();
                vec![large, small]
            }
        }
    }
}

/// A binary32 rounded to tf32, and as a number.
fn rounded(b: &mut Builder, x: Reg) -> (Reg, Reg) {
    let src = bits(b, x);
    let dst = b.reg(Type::B32);
    b.push(Inst::RoundTf32 { dst, src });
    (dst, src)
}

/// Two numbers of tf32 that are nearly a binary32: itself rounded, and what that left, rounded.
fn split(b: &mut Builder, x: Reg) -> (Reg, Reg) {
    let (large, x) = rounded(b, x);
    let of_large = bits(b, large);
    let rest = b.arith(Arith::Sub, Type::F32, x, of_large);
    let small = b.reg(Type::B32);
    b.push(Inst::RoundTf32 { dst: small, src: rest });
    (large, small)
}

/// 32 bits of a fragment as a binary32.
fn bits(b: &mut Builder, src: Reg) -> Reg {
    let dst = b.reg(Type::F32);
    b.push(Inst::Bits { to: Type::F32, from: Type::B32, dst, src });
    dst
}

impl Multiply for Fragments {
    /// The fragments of a step are loaded one step ahead.
    fn compute(&self, b: &mut Builder, turn: Option<Reg>, _left: Reg, acc: &[Reg]) {
        let mut shifted = |of: &Operand| -> Vec<Reg> {
            of.addresses.iter().map(|&at| turn.map_or(at, |turn| b.add(Type::U32, at, turn))).collect()
        };
        let (first, second) = (shifted(&self.first), shifted(&self.second));
        let fetch = |b: &mut Builder, step: usize| {
            let second = self.second.fetch(b, &second, step);
            (self.first.fetch(b, &first, step), second)
        };
        let steps = self.first.steps.len();
        let mut next = fetch(b, 0);
        for step in 0..steps {
            // What is made of fragments takes their registers, before more are loaded.
            let (first, second) = (self.first.parts(b, next.0), self.second.parts(b, next.1));
            next = if step + 1 < steps { fetch(b, step + 1) } else { Default::default() };
            for &(of_first, of_second) in self.multiplied.products() {
                self.multiply(b, &first[of_first], &second[of_second], acc);
            }
        }
    }
}

impl Fragments {
    /// Adds the products of all fragments of a step.
    fn multiply(&self, b: &mut Builder, first: &[Reg], second: &[Reg], acc: &[Reg]) {
        let [(_, sums), ..] = self.kind.registers();
        let mut acc = acc.chunks(sums);
        for x in first.chunks(self.first.each) {
            for y in second.chunks(self.second.each) {
                let Some(acc) = acc.next() else { return };
                let (d, a, bb, c) = (acc.to_vec(), x.to_vec(), y.to_vec(), acc.to_vec());
                b.push(Inst::Mma { kind: self.kind, d, a, b: bb, c });
            }
        }
    }
}
