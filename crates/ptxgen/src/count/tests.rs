use super::*;
use crate::ir::{Arith, Axis, Builder, Compare, Form, Module, Reg, Space, Special, Type};
use tilewright_core::space::Config;

fn module(threads: u32, build: impl FnOnce(&mut Builder)) -> Module {
    let mut b = Builder::new();
    build(&mut b);
    Module { target: "sm_80".parse().unwrap(), entry: b.finish("k", threads) }
}

/// The index of a thread among all, and `size - index`.
fn global(b: &mut Builder, threads: u32, size: Reg) -> (Reg, Reg) {
    let (tid, block) = (b.special(Special::Tid), b.special(Special::Ctaid(Axis::X)));
    let i = b.scale_add(Some(block), threads, tid);
    (i, b.sub(Type::U32, size, i))
}

fn tiles(size: &str, by: i64) -> Index {
    Index::param(size).plus(&(by - 1).into()).floor(by)
}

fn text(counts: &Counts, property: &str) -> String {
    counts.expression(property.parse().unwrap()).unwrap_or_else(|| "0".into())
}

fn value(counts: &Counts, property: &str, sizes: &str) -> i64 {
    let words = Config::parse(sizes).unwrap();
    let mut evaluator = counts.evaluator();
    let at = evaluator.properties().iter().position(|p| p.to_string() == property);
    let values = evaluator.eval_by(|name| words.get(name)?.as_int()).unwrap();
    at.map_or(0, |at| values[at])
}

/// One element a thread, below `n`.
fn scaled(width: u32) -> Module {
    module(128, |b| {
        let (x, n) = (b.buffer("x", 16), b.param("n", Type::U32, 1));
        let (i, left) = global(b, 128, n);
        let inside = b.exceeds(left, 0, None);
        b.when(inside, Form::Branch, |b| {
            let at = b.mad_wide(i, 4 * width, x);
            let value = b.load(Space::Global, Type::F32, 1, at, 0);
            b.store(Space::Global, Type::F32, &value, at, 0);
        });
    })
}

#[test]
fn expressions_are_short() {
    let counts = count(&scaled(1), &Launch::new([tiles("n", 128), 1.into(), 1.into()])).unwrap();
    assert_eq!(text(&counts, "load.global.32"), "n");
    assert_eq!(text(&counts, "load.global.32/warps"), "ceil(n/32)");
    assert_eq!(text(&counts, "groups"), "ceil(n/128)");
    assert_eq!(text(&counts, "branch"), "128*ceil(n/128) - n");
    // One thread alone has no neighbour.
    assert_eq!(value(&counts, "load.global.32@1", "n=65"), 2);
    assert_eq!(value(&counts, "load.global.32@0", "n=65"), 1);
    assert_eq!(value(&counts, "overlap.global.32@1", "n=300"), 10);
    assert_eq!(value(&counts, "constant", "n=300"), 1);
    assert_eq!(counts.sizes(), ["n"]);
}

#[test]
fn strides_come_with_the_share_of_memory_that_is_used() {
    let launch = Launch::new([tiles("n", 128), 1.into(), 1.into()]);
    let of = |width| count(&scaled(width), &launch).unwrap();
    assert_eq!(value(&of(2), "load.global.32@1/2", "n=256"), 8);
    assert_eq!(value(&of(3), "store.global.32@1/3", "n=256"), 8);
    assert_eq!(value(&of(9), "store.global.32@1/>4", "n=256"), 8);
    // Both halves of pairs.
    let pairs = module(128, |b| {
        let (x, n) = (b.buffer("x", 16), b.param("n", Type::U32, 1));
        let (i, _) = global(b, 128, n);
        let at = b.mad_wide(i, 8u32, x);
        b.load(Space::Global, Type::F32, 1, at, 0);
        b.load(Space::Global, Type::F32, 1, at, 4);
    });
    let counts = count(&pairs, &launch).unwrap();
    assert_eq!(text(&counts, "load.global.32@2/2"), "8*ceil(n/128)");
}

#[test]
fn strides_that_depend_on_sizes_are_conditions() {
    let rows = module(32, |b| {
        let (x, ld) = (b.buffer("x", 16), b.param("ld", Type::U32, 1));
        let tid = b.special(Special::Tid);
        let row = b.arith(Arith::Mul, Type::U32, tid, ld);
        let at = b.mad_wide(row, 4u32, x);
        b.load(Space::Global, Type::F32, 1, at, 0);
    });
    let mut launch = Launch::new([1.into(), 1.into(), 1.into()]);
    let dense = count(&rows, &launch).unwrap();
    assert_eq!(text(&dense, "load.global.32@1"), "[ld - 1 = 0]");
    launch.arrays.insert("x".into(), Array { used: Index::param("k"), pitch: Index::param("ld") });
    let counts = count(&rows, &launch).unwrap();
    for (sizes, property) in [
        ("ld=1,k=1", "load.global.32@1"),
        ("ld=2,k=1", "load.global.32@1/2"),
        ("ld=3,k=2", "load.global.32@2/3"),
        ("ld=4,k=4", "load.global.32@4/4"),
        ("ld=100,k=51", "load.global.32@3/>4"),
    ] {
        assert_eq!(value(&counts, property, sizes), 1, "{sizes} {property}");
    }
    let mut evaluator = counts.evaluator();
    assert_eq!(evaluator.sizes(), ["ld", "k"]);
    // One access, whatever its stride.
    let is_access = |p: &Property| matches!(p, Property::Accesses(..));
    let properties = evaluator.properties().to_vec();
    let values = evaluator.eval(&[7, 3]).unwrap();
    assert_eq!(properties.iter().zip(values).filter(|(p, _)| is_access(p)).map(|(_, v)| v).sum::<i64>(), 1);
}

#[test]
fn two_conditions_on_one_block_make_an_interval() {
    // 0 < i < n - 1, as a stencil has it.
    let stencil = module(64, |b| {
        let (x, n) = (b.buffer("x", 16), b.param("n", Type::U32, 1));
        let (i, left) = global(b, 64, n);
        let first = b.exceeds(i, 0, None);
        let inside = b.exceeds(left, 1, Some(first));
        b.when(inside, Form::Predicate, |b| {
            let at = b.mad_wide(i, 4u32, x);
            b.load(Space::Global, Type::F32, 1, at, 0);
        });
    });
    let counts = count(&stencil, &Launch::new([tiles("n", 64), 1.into(), 1.into()])).unwrap();
    for n in [1, 2, 3, 63, 64, 65, 66, 128, 1000] {
        let sizes = format!("n={n}");
        assert_eq!(value(&counts, "load.global.32", &sizes), (n - 2).max(0), "{n}");
        assert_eq!(value(&counts, "load.global.32/off", &sizes), (n + 63) / 64 * 64 - (n - 2).max(0), "{n}");
    }
}

#[test]
fn what_depends_on_data_is_asked_for_by_name() {
    let sparse = module(32, |b| {
        let x = b.buffer("x", 16);
        let flags = b.load(Space::Global, Type::U32, 1, x, 0);
        let set = b.compare(Compare::Gt, flags[0], 0u32, None);
        b.when(set, Form::Branch, |b| b.barrier());
    });
    let one = Launch::new([1.into(), 1.into(), 1.into()]);
    let error = count(&sparse, &one).unwrap_err();
    let CountError::DataDependent { place, statistics, .. } = &error else { panic!("{error}") };
    assert_eq!(place, "k/when[4]");
    assert_eq!(statistics, &["k/when[4].threads"]);
    let given = Launch { statistics: statistics.iter().cloned().collect(), ..one.clone() };
    let counts = count(&sparse, &given).unwrap();
    assert_eq!(counts.sizes(), ["k/when[4].threads"]);
    for (threads, warps) in [(0, 0), (1, 1), (32, 1), (40, 1)] {
        let sizes = format!("k/when[4].threads={threads}");
        assert_eq!(value(&counts, "barrier", &sizes), threads.min(32), "{threads}");
        assert_eq!(value(&counts, "barrier/warps", &sizes), warps, "{threads}");
        assert_eq!(value(&counts, "branch", &sizes), 32 - threads.min(32), "{threads}");
    }
    let looped = module(32, |b| {
        let x = b.buffer("x", 16);
        let trips = b.load(Space::Global, Type::U32, 1, x, 0);
        b.repeat("rows", trips[0], |b, _| b.barrier());
    });
    let error = count(&looped, &one).unwrap_err();
    assert!(
        matches!(&error, CountError::DataDependent { statistics, .. } if *statistics == ["k/rows[3].trips"]),
        "{error}"
    );
    let given = Launch { statistics: ["k/rows[3].trips".to_owned()].into(), ..one.clone() };
    let counts = count(&looped, &given).unwrap();
    assert_eq!(text(&counts, "barrier"), "32*k/rows[3].trips");
    assert_eq!(value(&counts, "barrier/warps", "k/rows[3].trips=7"), 7);
    let uneven = module(32, |b| {
        let tid = b.special(Special::Tid);
        let trips = b.scale_add(Some(tid), 1, 1u32);
        b.repeat("triangle", trips, |b, _| {
            b.mov(Type::U32, 0u32);
        });
    });
    assert!(matches!(count(&uneven, &one), Err(CountError::NotCountable { .. })));
}

/// Looks up in a table of pairs where to load, if the second number and one of the block's lie below 5.
fn looked_up() -> Module {
    module(64, |b| {
        let (x, table, trips) = (b.buffer("x", 16), b.buffer("table", 8), b.param("trips", Type::U32, 1));
        let (tid, block) = (b.special(Special::Tid), b.special(Special::Ctaid(Axis::X)));
        let columns = b.param("columns", Type::U32, 1);
        let row = b.arith(Arith::Div, Type::U32, block, columns);
        let part = b.div(tid, 16);
        let exists = b.compare(Compare::Lt, row, 3u32, None);
        let row = b.select(Type::U32, exists, row, 1u32 << 30);
        let at = b.mad_wide(part, 8u32, table);
        let at = b.walking(Type::U64, at, 32u32);
        b.repeat("steps", trips, |b, _| {
            let pair = b.load(Space::Global, Type::U32, 2, at, 0);
            let sum = b.add(Type::U32, row, pair[1]);
            let inside = b.compare(Compare::Lt, sum, 5u32, None);
            let place = b.add(Type::U32, tid, pair[0]);
            let from = b.mad_wide(place, 4u32, x);
            b.when(inside, Form::Predicate, |b| {
                b.load(Space::Global, Type::F32, 1, from, 0);
            });
            b.advance(Type::U64, at, 32u32);
        });
    })
}

#[test]
fn known_data_are_gone_through() {
    // The last 4 rows are no rows: there are 7 steps of 4 pairs, and 7 rows of 2 columns.
    let pairs: Vec<[u32; 2]> =
        (0..28).map(|i| [i * i % 11 * 32, [0, 1, 4, u32::MAX, 1 << 31][i as usize % 5]]).collect();
    let mut launch = Launch::new([14.into(), 2.into(), 1.into()]);
    launch.params.extend([("trips".to_owned(), 7.into()), ("columns".to_owned(), 2.into())]);
    launch.digits[0] = vec![2, 7];
    launch.tables.insert("table".to_owned(), pairs.as_flattened().into());
    let counts = count(&looked_up(), &launch).unwrap();
    let (mut threads, mut uneven) = (0, 0);
    for (row, step) in (0..7u32).flat_map(|row| (0..7).map(move |step| (row, step))) {
        let inside = |pair: &[u32; 2]| row < 3 && row.wrapping_add(pair[1]) < 5;
        let of_step = &pairs[step * 4..][..4];
        threads += 4 * 16 * of_step.iter().filter(|pair| inside(pair)).count() as i64;
        uneven += 4 * of_step.chunks(2).filter(|halves| halves.iter().any(inside)).count() as i64;
    }
    assert_eq!(value(&counts, "load.global.32", ""), threads);
    assert_eq!(value(&counts, "load.global.32/off", ""), 14 * 2 * 7 * 64 - threads);
    // Within halves of warps neighbours lie side by side.
    assert_eq!(value(&counts, "load.global.32@1", ""), uneven);
    assert_eq!(value(&counts, "load.global.64", ""), 14 * 2 * 7 * 64);
    // Without the data, or with fewer of them than are looked up, there are no counts.
    let mut short = launch.clone();
    short.tables.insert("table".to_owned(), pairs.as_flattened()[..50].into());
    assert!(matches!(count(&looked_up(), &short), Err(CountError::NotCountable { .. })));
    launch.tables.clear();
    assert!(matches!(count(&looked_up(), &launch), Err(CountError::DataDependent { .. })));
}

#[test]
fn quotients_may_mix_threads_and_blocks() {
    // Planes of 20 elements, 3 of them in turn.
    let planes = module(64, |b| {
        let (x, n) = (b.buffer("x", 16), b.param("n", Type::U32, 1));
        let (i, left) = global(b, 64, n);
        let plane = b.div(i, 20);
        let turn = b.rem(plane, 3).unwrap();
        let at = b.mad_wide(turn, 4u32, x);
        let inside = b.exceeds(left, 0, None);
        b.when(inside, Form::Predicate, |b| {
            b.load(Space::Global, Type::F32, 1, at, 0);
        });
    });
    let mut launch = Launch::new([5.into(), 1.into(), 1.into()]);
    launch.params.insert("n".to_owned(), 290.into());
    let counts = count(&planes, &launch).unwrap();
    assert_eq!(value(&counts, "load.global.32", ""), 290);
    assert_eq!(value(&counts, "load.global.32@0", ""), 10);
    // With sizes there is no number of blocks to go through.
    launch.grid[0] = tiles("n", 64);
    assert!(matches!(count(&planes, &launch), Err(CountError::NotCountable { .. })));
}
