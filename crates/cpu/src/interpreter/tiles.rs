//! Tile registers.

use iced_x86::{Instruction, Mnemonic, Register};

use super::{Fault, Machine, plain};

/// Rows of a tile, and bytes of each.
const ROWS: usize = 16;
const ROW: usize = 64;

/// Eight tiles, once they are configured.
pub(crate) type Tiles = Option<[[[u8; ROW]; ROWS]; 8]>;

impl Machine<'_> {
    /// Tiles are whole, or the configuration is a fault.
    pub(super) fn step_tile(&mut self, i: &Instruction) -> Result<(), Fault> {
        let number = |register: Register| register.number();
        match i.mnemonic() {
            Mnemonic::Ldtilecfg => {
                let mut config = [0; 64];
                self.load(i, self.address(i), &mut config)?;
                let mut whole = [0; 64];
                whole[0] = 1;
                (16..32).step_by(2).for_each(|at| whole[at] = ROW as u8);
                whole[48..56].fill(ROWS as u8);
                if config != whole {
                    return Err(Fault::Unknown(format!("{}: {config:?}", plain(i))));
                }
                self.tiles = Some([[[0; ROW]; ROWS]; 8]);
                return Ok(());
            }
            Mnemonic::Tilerelease => {
                self.tiles = None;
                return Ok(());
            }
            _ => {}
        }
        let Some(mut tiles) = self.tiles else { return Err(Fault::Unknown(format!("{}: no tiles", plain(i)))) };
        let places = |machine: &Self| {
            let (index, first) = (machine.get(i.memory_index()), machine.address(i));
            // The address has one distance of rows too many.
            (0..ROWS as u64).map(move |row| first.wrapping_sub(index).wrapping_add(row.wrapping_mul(index)))
        };
        match i.mnemonic() {
            Mnemonic::Tilezero => tiles[number(i.op0_register())] = [[0; ROW]; ROWS],
            Mnemonic::Tileloadd => {
                for (row, at) in places(self).enumerate() {
                    self.load(i, at, &mut tiles[number(i.op0_register())][row])?;
                }
            }
            Mnemonic::Tilestored => {
                for (row, at) in places(self).enumerate() {
                    self.store(i, at, &tiles[number(i.op1_register())][row])?;
                }
            }
            Mnemonic::Tdpbf16ps | Mnemonic::Tdpbssd => {
                let [to, a, b] = [i.op0_register(), i.op1_register(), i.op2_register()].map(number);
                let (a, b) = (tiles[a], tiles[b]);
                let plus = if i.mnemonic() == Mnemonic::Tdpbssd { add_bytes } else { add_pairs };
                multiply(&mut tiles[to], &a, &b, plus);
            }
            _ => return Err(Fault::Unknown(plain(i))),
        }
        self.tiles = Some(tiles);
        Ok(())
    }
}

type Tile = [[u8; ROW]; ROWS];
type Number = [u8; 4];

fn multiply(sums: &mut Tile, a: &Tile, b: &Tile, plus: fn(Number, Number, Number) -> Number) {
    let number = |row: &[u8; ROW], at: usize| -> Number { std::array::from_fn(|byte| row[4 * at + byte]) };
    for (m, n, k) in (0..16).flat_map(|m| (0..16).flat_map(move |n| (0..16).map(move |k| (m, n, k)))) {
        let sum = plus(number(&sums[m], n), number(&a[m], k), number(&b[k], n));
        sums[m][4 * n..4 * n + 4].copy_from_slice(&sum);
    }
}

fn add_bytes(sum: Number, a: Number, b: Number) -> Number {
    let products = (0..4).map(|at| i32::from(a[at] as i8) * i32::from(b[at] as i8));
    products.fold(i32::from_le_bytes(sum), i32::wrapping_add).to_le_bytes()
}

fn add_pairs(sum: Number, a: Number, b: Number) -> Number {
    let wide = |x: Number, at: usize| f32::from_le_bytes([0, 0, x[2 * at], x[2 * at + 1]]);
    (0..2).fold(f32::from_le_bytes(sum), |sum, at| wide(a, at).mul_add(wide(b, at), sum)).to_le_bytes()
}
