//! Names of matrices: generators and their numbers.

use crate::generate::matrices;
use crate::matrix::Csr;
use crate::source::{Dice, Field, Generator, at_least};

const ROWS: u64 = 1 << 26;

pub(super) const ALL: &[Generator<Csr>] = &[
    Generator {
        name: "stencil",
        fields: &[
            Field::one_of("points", &[5.0, 7.0, 27.0]),
            Field::whole("side", 1, 1 << 13),
            Field::real("shift", -1e6, 1e6).or(0.1),
        ],
        rows: |n| n.real("side").powi(if n.whole("points") == 5 { 2 } else { 3 }),
        elements: |n| n.real("points") * n.real("side").powi(if n.whole("points") == 5 { 2 } else { 3 }),
        make: |n| matrices::stencil(n.whole("points"), n.whole("side"), n.real("shift")),
        draw: |dice, entries| {
            let (points, side) = stencil_of(dice, entries);
            vec![points, side, 0.1]
        },
    },
    Generator {
        name: "banded",
        fields: &[
            Field::whole("rows", 1, ROWS),
            Field::whole("half", 0, 1 << 16),
            Field::real("density", 0.0, 1.0).or(1.0),
            Field::seed(),
        ],
        rows: |n| n.real("rows"),
        elements: |n| n.real("rows") * (2.0 * n.real("half") + 1.0),
        make: |n| matrices::banded(n.whole("rows"), n.whole("half"), n.real("density"), n.seed()),
        draw: |dice, entries| {
            let half = at_least(dice.log(1.0, 60.0), 1.0);
            let density = if dice.chance(0.5) { 1.0 } else { (10 + dice.below(90)) as f64 / 100.0 };
            vec![at_least(entries / (1.0 + 2.0 * half * density), 40.0), half, density, dice.seed()]
        },
    },
    Generator {
        name: "diagonals",
        fields: &[Field::whole("rows", 1, ROWS), Field::whole("count", 0, 1 << 16), Field::seed()],
        rows: |n| n.real("rows"),
        elements: |n| n.real("rows") * (n.real("count") + 1.0),
        make: |n| matrices::diagonals(n.whole("rows"), n.whole("count"), n.seed()),
        draw: |dice, entries| {
            let count = at_least(dice.log(3.0, 40.0), 3.0);
            vec![at_least(entries / count, 60.0), count, dice.seed()]
        },
    },
    Generator {
        name: "uniform",
        fields: &[Field::whole("rows", 1, ROWS), Field::whole("per_row", 0, 1 << 20), Field::seed()],
        rows: |n| n.real("rows"),
        elements: |n| n.real("rows") * n.real("per_row"),
        make: |n| matrices::uniform(n.whole("rows"), n.whole("per_row"), n.seed()),
        draw: |dice, entries| {
            let per_row = at_least(dice.log(2.0, 120.0), 2.0);
            vec![at_least(entries / per_row, 20.0), per_row, dice.seed()]
        },
    },
    Generator {
        name: "power-law",
        fields: &[
            Field::whole("rows", 1, ROWS),
            Field::real("mean", 0.001, 1e4),
            Field::real("exponent", 1.5, 10.0),
            Field::whole("longest", 1, 1 << 24),
            Field::seed(),
        ],
        rows: |n| n.real("rows"),
        elements: |n| {
            let longest = n.real("longest").min(n.real("rows"));
            let length = matrices::power_law_length(n.real("mean"), n.real("exponent"), longest);
            // A row more for rounding; sums of heavy tails stray above their mean.
            n.real("rows") * (1.0 + 1.5 * length)
        },
        make: |n| {
            matrices::power_law(n.whole("rows"), n.real("mean"), n.real("exponent"), n.whole("longest"), n.seed())
        },
        draw: |dice, entries| {
            let mean = (20 + dice.below(230)) as f64 / 10.0;
            let exponent = (21 + dice.below(15)) as f64 / 10.0;
            let longest = at_least(dice.log(60.0, 4000.0), 1.0);
            vec![at_least(entries / mean, 50.0), mean, exponent, longest, dice.seed()]
        },
    },
    Generator {
        name: "rmat",
        fields: &[Field::whole("scale", 1, 26), Field::whole("per_row", 0, 1 << 16), Field::seed()],
        rows: |n| n.real("scale").exp2(),
        elements: |n| n.real("scale").exp2() * n.real("per_row"),
        make: |n| matrices::rmat(n.whole("scale") as u32, n.whole("per_row"), n.seed()),
        draw: |dice, entries| {
            let per_row = at_least(dice.log(3.0, 24.0), 3.0);
            vec![at_least((entries / per_row).log2(), 4.0), per_row, dice.seed()]
        },
    },
    Generator {
        name: "blocks",
        fields: &[
            Field::whole("blocks", 1, ROWS),
            Field::whole("size", 1, 1 << 10),
            Field::whole("per_row", 1, 1 << 16),
            Field::seed(),
        ],
        rows: |n| n.real("blocks") * n.real("size"),
        elements: |n| n.real("blocks") * n.real("size").powi(2) * n.real("per_row"),
        make: |n| matrices::blocks(n.whole("blocks"), n.whole("size"), n.whole("per_row"), n.seed()),
        draw: |dice, entries| {
            let (size, per_row) = (dice.pick([2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0]), 2.0 + dice.below(4) as f64);
            vec![at_least(entries / (size * size * per_row), 2.0), size, per_row, dice.seed()]
        },
    },
    Generator {
        name: "mesh",
        fields: &[
            Field::whole("side", 1, 1 << 13),
            Field::whole("mixing", 1, 1 << 26),
            Field::real("mass", 0.0, 1e6).or(0.1),
            Field::seed(),
        ],
        rows: |n| n.real("side").powi(2),
        elements: |n| 7.0 * n.real("side").powi(2),
        make: |n| matrices::mesh(n.whole("side"), n.whole("mixing"), n.real("mass"), n.seed()),
        draw: |dice, entries| {
            let side = at_least((entries / 7.0).sqrt(), 8.0);
            vec![side, dice.pick([1.0, side, 30.0, side * side]), 0.1, dice.seed()]
        },
    },
    Generator {
        name: "full-rows",
        fields: &[
            Field::whole("rows", 1, ROWS),
            Field::whole("per_row", 0, 1 << 20),
            Field::whole("full", 0, 1 << 20),
            Field::seed(),
        ],
        rows: |n| n.real("rows"),
        elements: |n| n.real("rows") * (n.real("per_row") + n.real("full")),
        make: |n| matrices::with_full_rows(n.whole("rows"), n.whole("per_row"), n.whole("full"), n.seed()),
        draw: |dice, entries| {
            let (per_row, full) = (2.0 + dice.below(7) as f64, at_least(dice.log(1.0, 20.0), 1.0));
            vec![at_least(entries / (per_row + full), 100.0), per_row, full, dice.seed()]
        },
    },
    Generator {
        name: "sparse",
        fields: &[
            Field::whole("rows", 0, ROWS),
            Field::whole("cols", 0, ROWS),
            Field::whole("entries", 0, 1 << 28),
            Field::seed(),
        ],
        rows: |n| n.real("rows").max(n.real("cols")),
        elements: |n| n.real("entries"),
        make: |n| matrices::sparse(n.whole("rows"), n.whole("cols"), n.whole("entries"), n.seed()),
        draw: |dice, entries| {
            let rows = at_least(entries / dice.log(0.5, 30.0), 4.0);
            vec![rows, at_least(rows * dice.log(0.2, 5.0), 4.0), at_least(entries, 0.0), dice.seed()]
        },
    },
];

/// Points of a stencil and the side of its grid.
pub(crate) fn stencil_of(dice: &mut Dice<'_>, entries: f64) -> (f64, f64) {
    let points = dice.pick([5.0, 7.0, 27.0]);
    (points, at_least((entries / points).powf(if points == 5.0 { 0.5 } else { 1.0 / 3.0 }), 2.0))
}
