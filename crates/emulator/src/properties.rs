//! Reports by the names of the properties that a linear model has weights for.

use crate::counts::Footprint;
use crate::launch::Report;
use std::collections::BTreeMap;
use tilewright_core::counts::{Op, Property, Space, Step, Stride};

/// What launches that follow one another have done, as the symbolic counts of a kernel name it ([`Property`]).
///
/// Where blocks were left out, those that ran stand for all. Steps tell what their arrays use if the launches kept
/// [`footprints`](crate::Limits::footprints). The paper's sums of access strides take the share that a whole array uses: of an array
/// that a sample touched a part of, it is the share in that part.
pub fn properties(reports: &[Report]) -> BTreeMap<Property, u64> {
    let mut out = BTreeMap::from([(Property::Constant, 1), (Property::Launches, reports.len() as u64)]);
    for report in reports {
        let ran = report.blocks - report.left_out;
        let mut add = |property: Property, n: u64| {
            let all = u128::from(n) * u128::from(report.blocks) / u128::from(ran.max(1));
            *out.entry(property).or_insert(0) += u64::try_from(all).unwrap_or(u64::MAX);
        };
        add(Property::Groups, ran);
        for (op, tally) in report.counts.by_class() {
            add(Property::Threads(op), tally.threads);
            add(Property::Warps(op), tally.issued);
            add(Property::Off(op), tally.predicated_off);
        }
        accesses(report, &mut add);
    }
    out.retain(|_, n| *n != 0);
    overlaps(&mut out);
    out
}

/// Warp accesses by their steps, and passes over the banks.
fn accesses(report: &Report, add: &mut impl FnMut(Property, u64)) {
    for (i, site) in report.counts.sites.iter().enumerate() {
        let Some(traffic) = site.traffic.filter(|_| !matches!(site.class, Op::Load(Space::Param, _))) else { continue };
        for stride in Stride::ALL {
            add(Property::Accesses(site.class, Step { stride, used: used(report, i, stride) }), traffic.stride(stride));
        }
        if matches!(site.class, Op::Load(Space::Shared, _) | Op::Store(Space::Shared, _) | Op::MatrixLoad(_)) {
            add(Property::Passes(site.class), traffic.transactions);
        }
    }
}

/// In how many steps of the stride the array of an instruction is used; 0 for strides that leave no gaps, or shared memory.
fn used(report: &Report, site: usize, stride: Stride) -> u8 {
    let Some(own) = report.footprints.iter().find(|f| f.site == Some(site)) else { return 0 };
    let is_array = |f: &&Footprint| (f.site, &f.buffer, f.is_store) == (None, &own.buffer, own.is_store);
    match report.footprints.iter().find(is_array).map(|array| array.amortised(stride)) {
        None | Some((_, 0 | 1)) => 0,
        Some((above, _)) => above as u8,
    }
}

/// The lesser of the loads and the stores of a width and a step.
pub fn overlaps(numbers: &mut BTreeMap<Property, u64>) {
    numbers.retain(|p, _| !matches!(p, Property::Overlap(..)));
    let lesser = |(property, loads): (&Property, &u64)| match property {
        Property::Accesses(Op::Load(Space::Global, bits), step) => {
            let stores = numbers.get(&Property::Accesses(Op::Store(Space::Global, *bits), *step))?;
            Some((Property::Overlap(*bits, *step), *stores.min(loads)))
        }
        _ => None,
    };
    let found: Vec<_> = numbers.iter().filter_map(lesser).collect();
    numbers.extend(found);
}
