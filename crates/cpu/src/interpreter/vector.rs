//! Vector instructions.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::{Fault, Machine, plain};

/// A register's bytes.
pub(super) type Bytes = [u8; 64];

pub(super) fn width(register: Register) -> usize {
    if register.is_zmm() {
        64
    } else if register.is_ymm() {
        32
    } else {
        16
    }
}

pub(super) fn lane<const N: usize>(bytes: &Bytes, i: usize) -> [u8; N] {
    std::array::from_fn(|b| bytes[N * i + b])
}

impl Machine<'_> {
    pub(super) fn vector(&self, register: Register) -> Bytes {
        self.vectors[register.number()]
    }

    /// Writes a register; what is above its width becomes zero.
    pub(super) fn set_vector(&mut self, register: Register, mut value: Bytes) {
        value[width(register)..].fill(0);
        self.vectors[register.number()] = value;
    }

    /// Loads `bytes` bytes to the low end.
    fn load_low(&self, i: &Instruction, bytes: usize) -> Result<Bytes, Fault> {
        let mut out = [0; 64];
        self.load(i, self.address(i), &mut out[..bytes])?;
        Ok(out)
    }

    /// A vector source operand, an embedded broadcast among them.
    fn vector_source(&self, i: &Instruction, operand: u32, bytes: usize, element: usize) -> Result<Bytes, Fault> {
        if i.op_kind(operand) == OpKind::Register {
            return Ok(self.vector(i.op_register(operand)));
        }
        if !i.is_broadcast() {
            return self.load_low(i, bytes);
        }
        let one = self.load_low(i, element)?;
        Ok(std::array::from_fn(|b| one[b % element]))
    }

    pub(super) fn step_vector(&mut self, i: &Instruction) -> Result<(), Fault> {
        use Mnemonic as M;
        let to = i.op0_register();
        match i.mnemonic() {
            M::Vmovups => self.move_lanes(i, 4),
            M::Vmovupd => self.move_lanes(i, 8),
            M::Vmovntps | M::Vmovntpd => {
                let (at, bytes) = (self.address(i), width(i.op1_register()));
                if !at.is_multiple_of(bytes as u64) {
                    return Err(Fault::Alignment { address: at, bytes });
                }
                let value = self.vector(i.op1_register());
                self.store(i, at, &value[..bytes])
            }
            M::Vmaskmovps => self.mask_move(i, 4),
            M::Vmaskmovpd => self.mask_move(i, 8),
            M::Vbroadcastss => self.broadcast(i, 4),
            M::Vbroadcastsd | M::Vmovddup => self.broadcast(i, 8),
            M::Vbroadcastf128 | M::Vbroadcastf32x4 => self.broadcast(i, 16),
            M::Vmovss => self.move_scalar(i, 4),
            M::Vmovd if i.op1_kind() == OpKind::Memory => self.move_scalar(i, 4),
            M::Vmovsd => self.move_scalar(i, 8),
            M::Vmovq if i.op1_kind() == OpKind::Memory => self.move_scalar(i, 8),
            M::Vxorps | M::Vpxord => {
                let (a, b) = (self.vector(i.op1_register()), self.vector_source(i, 2, width(to), 4)?);
                self.set_vector(to, std::array::from_fn(|n| a[n] ^ b[n]));
                Ok(())
            }
            M::Vextractf128 | M::Vextractf32x4 => {
                let from = self.vector(i.op1_register());
                let at = 16 * i.immediate8() as usize;
                if i.op0_kind() == OpKind::Memory {
                    return self.store(i, self.address(i), &from[at..at + 16]);
                }
                let mut out = [0; 64];
                out[..16].copy_from_slice(&from[at..at + 16]);
                self.set_vector(to, out);
                Ok(())
            }
            M::Vextractf64x4 => {
                let (from, at) = (self.vector(i.op1_register()), 32 * i.immediate8() as usize);
                let mut out = [0; 64];
                out[..32].copy_from_slice(&from[at..at + 32]);
                self.set_vector(to, out);
                Ok(())
            }
            M::Vhaddps => self.add_pairs::<4>(i),
            M::Vhaddpd => self.add_pairs::<8>(i),
            M::Vinsertf128 | M::Vinsertf32x4 => {
                let (lane, mut out) = (self.vector_source(i, 2, 16, 4)?, self.vector(i.op1_register()));
                let at = 16 * i.immediate8() as usize;
                out[at..at + 16].copy_from_slice(&lane[..16]);
                self.set_vector(to, out);
                Ok(())
            }
            M::Vpermilps => {
                let (from, order) = (self.vector(i.op1_register()), i.immediate8());
                let pick = |n: usize| 16 * (n / 16) + 4 * ((order >> (2 * (n / 4 % 4))) & 3) as usize + n % 4;
                self.set_vector(to, std::array::from_fn(|n| from[pick(n)]));
                Ok(())
            }
            M::Vpermilpd => {
                let (from, order) = (self.vector(i.op1_register()), i.immediate8());
                let pick = |n: usize| 16 * (n / 16) + 8 * (order >> (n / 8) & 1) as usize + n % 8;
                self.set_vector(to, std::array::from_fn(|n| from[pick(n)]));
                Ok(())
            }
            M::Vshufps => {
                let (a, b, order) = (self.vector(i.op1_register()), self.vector(i.op2_register()), i.immediate8());
                let pick = |n: usize| {
                    let from = if n % 16 < 8 { &a } else { &b };
                    from[16 * (n / 16) + 4 * ((order >> (2 * (n / 4 % 4))) & 3) as usize + n % 4]
                };
                self.set_vector(to, std::array::from_fn(pick));
                Ok(())
            }
            M::Vpmaddwd | M::Vpdpbusd | M::Vpaddd => self.integers(i),
            M::Vmovdqu16 => self.move_lanes(i, 2),
            M::Vpermt2w | M::Vpinsrw | M::Vpmovzxwd | M::Vpslld | M::Vcvtneps2bf16 | M::Vcvtph2ps => self.words(i),
            M::Vdpbf16ps => self.halves(i),
            M::Vunpcklps => self.unpack(i, 4, 0),
            M::Vunpckhps => self.unpack(i, 4, 1),
            M::Vunpcklpd => self.unpack(i, 8, 0),
            M::Vunpckhpd => self.unpack(i, 8, 1),
            M::Vfmadd231ps | M::Vmulps | M::Vaddps | M::Vsubps => self.arithmetic(i, 4),
            M::Vfmadd231pd | M::Vmulpd | M::Vaddpd | M::Vsubpd => self.arithmetic(i, 8),
            _ => Err(Fault::Unknown(plain(i))),
        }
    }

    /// Full or k-masked moves between a register and memory.
    fn move_lanes(&mut self, i: &Instruction, element: usize) -> Result<(), Fault> {
        let storing = i.op0_kind() == OpKind::Memory;
        if !storing && i.op1_kind() == OpKind::Register {
            self.set_vector(i.op0_register(), self.vector(i.op1_register()));
            return Ok(());
        }
        let register = if storing { i.op1_register() } else { i.op0_register() };
        let (at, bytes) = (self.address(i), width(register));
        if i.op_mask() == Register::None {
            if storing {
                let value = self.vector(register);
                return self.store(i, at, &value[..bytes]);
            }
            let value = self.load_low(i, bytes)?;
            self.set_vector(register, value);
            return Ok(());
        }
        let mask = self.masks[i.op_mask().number()];
        self.move_masked(i, register, element, storing, |lane| mask >> lane & 1 == 1)
    }

    /// AVX's masked moves; the sign bits of the mask register's lanes count.
    fn mask_move(&mut self, i: &Instruction, element: usize) -> Result<(), Fault> {
        let storing = i.op0_kind() == OpKind::Memory;
        let register = if storing { i.op2_register() } else { i.op0_register() };
        let mask = self.vector(i.op1_register());
        self.move_masked(i, register, element, storing, |lane| mask[element * (lane + 1) - 1] & 0x80 != 0)
    }

    /// Lanes outside of the mask are not touched in memory, and become zero in a register.
    fn move_masked(
        &mut self,
        i: &Instruction,
        register: Register,
        element: usize,
        storing: bool,
        set: impl Fn(usize) -> bool,
    ) -> Result<(), Fault> {
        let (base, mut value) = (self.address(i), [0; 64]);
        let old = self.vector(register);
        for lane in (0..width(register) / element).filter(|&l| set(l)) {
            let (range, at) = (lane * element..(lane + 1) * element, base + (lane * element) as u64);
            if storing {
                self.store(i, at, &old[range])?;
            } else {
                self.load(i, at, &mut value[range])?;
            }
        }
        if !storing {
            self.set_vector(register, value);
        }
        Ok(())
    }

    fn broadcast(&mut self, i: &Instruction, element: usize) -> Result<(), Fault> {
        let one = self.load_low(i, element)?;
        self.set_vector(i.op0_register(), std::array::from_fn(|b| one[b % element]));
        Ok(())
    }

    /// Moves of one element: loads clear the rest of the register.
    fn move_scalar(&mut self, i: &Instruction, element: usize) -> Result<(), Fault> {
        if i.op0_kind() == OpKind::Memory {
            let value = self.vector(i.op1_register());
            return self.store(i, self.address(i), &value[..element]);
        }
        let value = self.load_low(i, element)?;
        self.set_vector(i.op0_register(), value);
        Ok(())
    }

    /// Interleaves the low or high halves of each 128-bit lane.
    fn unpack(&mut self, i: &Instruction, element: usize, half: usize) -> Result<(), Fault> {
        let (a, b) = (self.vector(i.op1_register()), self.vector(i.op2_register()));
        let pick = |n: usize| {
            let (base, within) = (n / 16 * 16, n % 16);
            let pair = within / (2 * element);
            let at = base + 8 * half + pair * element + n % element;
            if (within / element).is_multiple_of(2) { a[at] } else { b[at] }
        };
        self.set_vector(i.op0_register(), std::array::from_fn(pick));
        Ok(())
    }

    /// Sums of neighbours: of each 128-bit lane of the first operand, then of the second's.
    fn add_pairs<const N: usize>(&mut self, i: &Instruction) -> Result<(), Fault> {
        let (a, b) = (self.vector(i.op1_register()), self.vector(i.op2_register()));
        let (in_lane, mut out) = (16 / N, [0; 64]);
        for n in 0..width(i.op0_register()) / N {
            let (base, within) = (n / in_lane * in_lane, n % in_lane);
            let from = if within < in_lane / 2 { &a } else { &b };
            let pair = base + 2 * (within % (in_lane / 2));
            let [x, y] = [lane::<N>(from, pair), lane::<N>(from, pair + 1)];
            let sum: [u8; N] = match N {
                4 => {
                    let value = |v: [u8; N]| f32::from_le_bytes(std::array::from_fn(|b| v[b]));
                    let sum = (value(x) + value(y)).to_le_bytes();
                    std::array::from_fn(|b| sum[b])
                }
                _ => {
                    let value = |v: [u8; N]| f64::from_le_bytes(std::array::from_fn(|b| v[b]));
                    let sum = (value(x) + value(y)).to_le_bytes();
                    std::array::from_fn(|b| sum[b])
                }
            };
            out[n * N..(n + 1) * N].copy_from_slice(&sum);
        }
        self.set_vector(i.op0_register(), out);
        Ok(())
    }

    /// Sums of 32-bit integers, and of products of pairs of 16-bit ones and of four 8-bit ones, the first of which have no sign.
    fn integers(&mut self, i: &Instruction) -> Result<(), Fault> {
        let to = i.op0_register();
        let (old, a) = (self.vector(to), self.vector(i.op1_register()));
        let b = self.vector_source(i, 2, width(to), 4)?;
        let mut out = [0; 64];
        for n in 0..width(to) / 4 {
            let [x, y, sum] = [&a, &b, &old].map(|v| i32::from_le_bytes(lane(v, n)));
            let result = match i.mnemonic() {
                Mnemonic::Vpaddd => x.wrapping_add(y),
                Mnemonic::Vpmaddwd => i32::from(x as i16) * i32::from(y as i16) + (x >> 16) * (y >> 16),
                _ => {
                    let bytes = x.to_le_bytes().into_iter().zip(y.to_le_bytes());
                    bytes.fold(sum, |sum, (x, y)| sum.wrapping_add(i32::from(x) * i32::from(y as i8)))
                }
            };
            out[4 * n..4 * n + 4].copy_from_slice(&result.to_le_bytes());
        }
        self.set_vector(to, out);
        Ok(())
    }

    /// Sums of binary32 and products of pairs of bfloat16 numbers, the higher first; denormal numbers are zero before and after.
    fn halves(&mut self, i: &Instruction) -> Result<(), Fault> {
        let to = i.op0_register();
        let (old, a) = (self.vector(to), self.vector(i.op1_register()));
        let b = self.vector_source(i, 2, width(to), 4)?;
        let flushed = |x: f32| if x.is_subnormal() { 0.0_f32.copysign(x) } else { x };
        let mut out = [0; 64];
        for n in 0..width(to) / 4 {
            let [x, y, sum] = [&a, &b, &old].map(|v| u32::from_le_bytes(lane(v, n)));
            let mut sum = flushed(f32::from_bits(sum));
            for (x, y) in [(x & 0xffff_0000, y & 0xffff_0000), (x << 16, y << 16)] {
                sum = flushed(flushed(f32::from_bits(x)).mul_add(flushed(f32::from_bits(y)), sum));
            }
            out[4 * n..4 * n + 4].copy_from_slice(&sum.to_le_bytes());
        }
        self.set_vector(to, out);
        Ok(())
    }

    fn arithmetic(&mut self, i: &Instruction, element: usize) -> Result<(), Fault> {
        let to = i.op0_register();
        let bytes = width(to);
        let (old, a) = (self.vector(to), self.vector(i.op1_register()));
        let b = self.vector_source(i, 2, bytes, element)?;
        let mut out = [0; 64];
        for n in 0..bytes / element {
            let range = n * element..(n + 1) * element;
            macro_rules! compute {
                ($float:ty) => {{
                    let value = |v: &Bytes| <$float>::from_le_bytes(lane(v, n));
                    let result = match i.mnemonic() {
                        Mnemonic::Vmulps | Mnemonic::Vmulpd => value(&a) * value(&b),
                        Mnemonic::Vaddps | Mnemonic::Vaddpd => value(&a) + value(&b),
                        Mnemonic::Vsubps | Mnemonic::Vsubpd => value(&a) - value(&b),
                        _ => value(&a).mul_add(value(&b), value(&old)),
                    };
                    out[range].copy_from_slice(&result.to_le_bytes());
                }};
            }
            if element == 4 { compute!(f32) } else { compute!(f64) }
        }
        self.set_vector(to, out);
        Ok(())
    }
}
