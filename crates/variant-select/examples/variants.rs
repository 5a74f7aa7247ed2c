//! Three ways of finding numbers in a list, chosen by the size of the list and the number of questions.

use tilewright_variant_select::forest::CostForest;
use tilewright_variant_select::variants::{CodeVariants, VariantError};

struct Questions {
    list: Vec<u64>,
    asked: Vec<u64>,
}

fn questions(length: u64, count: u64) -> Questions {
    let mix = |x: u64| x.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    Questions { list: (0..length).map(mix).collect(), asked: (0..count).map(|i| mix(3 * i)).collect() }
}

fn scan(q: &Questions) -> usize {
    q.asked.iter().filter(|a| q.list.contains(a)).count()
}

fn sorted(q: &Questions) -> usize {
    let mut list = q.list.clone();
    list.sort_unstable();
    q.asked.iter().filter(|a| list.binary_search(a).is_ok()).count()
}

fn hashed(q: &Questions) -> usize {
    let set: std::collections::HashSet<&u64> = q.list.iter().collect();
    q.asked.iter().filter(|a| set.contains(a)).count()
}

fn main() -> Result<(), VariantError> {
    let mut find = CodeVariants::new("find")
        .variant("scan", scan)
        .variant("sorted", sorted)
        .variant("hashed", hashed)
        .feature("length", |q: &Questions| q.list.len() as f64)
        .feature("asked", |q| q.asked.len() as f64)
        .constraint("hashed", "at most 2^20 numbers", |q| q.list.len() <= 1 << 20)
        .default_variant("sorted")
        .build()?;
    for length in [1, 4, 16, 64, 256, 1024, 4096, 16384] {
        for count in [1, 2, 8, 32, 128, 512] {
            find.record(&questions(length, count), 3)?;
        }
    }
    find.tune(&CostForest::default(), 0)?;
    for (length, count) in [(10, 3), (3000, 1), (3000, 300), (10_000, 400)] {
        let asked = questions(length, count);
        let why = find.explain(&asked)?;
        let found = find.call(&asked)?;
        println!("{length:6} numbers, {count:3} questions: {:7} finds {found:3} ({})", why.chosen, why.reason);
    }
    for cost in find.feature_costs() {
        println!("{} was computed {} times in {:.1} us", cost.feature, cost.calls, 1e6 * cost.seconds);
    }
    Ok(())
}
