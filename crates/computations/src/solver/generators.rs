//! Names of systems: generators of symmetric matrices and their numbers.

use crate::generate::matrices;
use crate::matrix::Csr;
use crate::source::{Field, Generator, at_least};
use crate::spmv::generators::stencil_of;

const SIDE: Field = Field::whole("side", 1, 1 << 13);
const MIXING: Field = Field::whole("mixing", 1, 1 << 26);
const MASS: Field = Field::real("mass", 0.0, 1e6);

pub(super) const ALL: &[Generator<Csr>] = &[
    Generator {
        name: "stencil",
        fields: &[Field::one_of("points", &[5.0, 7.0, 27.0]), SIDE, Field::real("shift", -1e6, 1e6)],
        rows: |n| n.real("side").powi(if n.whole("points") == 5 { 2 } else { 3 }),
        elements: |n| n.real("points") * n.real("side").powi(if n.whole("points") == 5 { 2 } else { 3 }),
        make: |n| matrices::stencil(n.whole("points"), n.whole("side"), n.real("shift")),
        draw: |dice, entries| {
            let (points, side) = stencil_of(dice, entries);
            let size = dice.decimal(0.01, 3.0);
            // A quarter is indefinite, or nearly singular.
            let shift = if dice.chance(0.25) { -size / 3.0 } else { size };
            vec![points, side, (shift * 1000.0).round() / 1000.0]
        },
    },
    Generator {
        name: "mesh",
        fields: &[SIDE, MIXING, MASS, Field::seed()],
        rows: |n| n.real("side").powi(2),
        elements: |n| 7.0 * n.real("side").powi(2),
        make: |n| matrices::mesh(n.whole("side"), n.whole("mixing"), n.real("mass"), n.seed()),
        draw: |dice, entries| {
            let side = at_least((entries / 7.0).sqrt(), 4.0);
            vec![side, dice.pick([1.0, side, 30.0, side * side]), dice.decimal(0.005, 5.0), dice.seed()]
        },
    },
    Generator {
        name: "scaled-mesh",
        fields: &[SIDE, MIXING, MASS, Field::real("powers", 0.0, 12.0), Field::seed()],
        rows: |n| n.real("side").powi(2),
        elements: |n| 7.0 * n.real("side").powi(2),
        make: |n| {
            let mesh = matrices::mesh(n.whole("side"), n.whole("mixing"), n.real("mass"), n.seed());
            matrices::scaled(&mesh, n.real("powers"), n.seed())
        },
        draw: |dice, entries| {
            let side = at_least((entries / 7.0).sqrt(), 4.0);
            let (mass, powers) = (dice.decimal(0.02, 2.0), dice.decimal(1.0, 6.0));
            vec![side, dice.pick([1.0, side * side]), mass, powers, dice.seed()]
        },
    },
    Generator {
        name: "coupled-blocks",
        fields: &[
            Field::whole("blocks", 1, 1 << 26),
            Field::whole("size", 1, 1 << 10),
            Field::real("coupling", 0.0, 1e3),
            Field::seed(),
        ],
        rows: |n| n.real("blocks") * n.real("size"),
        elements: |n| n.real("blocks") * n.real("size") * (n.real("size") + 2.0),
        make: |n| matrices::coupled_blocks(n.whole("blocks"), n.whole("size"), n.real("coupling"), n.seed()),
        draw: |dice, entries| {
            let (coupling, size) = (dice.decimal(0.01, 0.6), dice.pick([2.0, 4.0, 4.0, 8.0, 16.0]));
            vec![at_least(entries / (size * size + 2.0 * size), 2.0), size, coupling, dice.seed()]
        },
    },
    Generator {
        name: "dominant",
        fields: &[
            Field::whole("rows", 0, 1 << 26),
            Field::whole("per_row", 0, 1 << 16),
            Field::real("excess", -1.0, 1e3),
            Field::seed(),
        ],
        rows: |n| n.real("rows"),
        elements: |n| n.real("rows") * (n.real("per_row") + 1.0),
        make: |n| matrices::dominant(n.whole("rows"), n.whole("per_row"), n.real("excess"), n.seed()),
        draw: |dice, entries| {
            let excess = dice.decimal(0.005, 1.5);
            let per_row = at_least(dice.log(3.0, 40.0), 3.0);
            let excess = if dice.chance(0.15) { (-excess * 250.0).round() / 1000.0 } else { excess };
            vec![at_least(entries / per_row, 20.0), per_row, excess, dice.seed()]
        },
    },
];
