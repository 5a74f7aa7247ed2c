//! Where paths that parted meet again: the nearest instruction that every way to the end goes through.

use crate::kernel::{ALWAYS, Inst, Run};

/// No such instruction.
const NEVER: u32 = u32::MAX;

/// Sets the join of every branch.
pub(super) fn set_joins(code: &mut [Inst]) {
    let starts = block_starts(code);
    let block_of = |pc: usize| starts.partition_point(|s| *s <= pc) - 1;
    let count = starts.len();
    // One more block stands for the end.
    let mut successors: Vec<Vec<usize>> = Vec::with_capacity(count);
    for b in 0..count {
        let last = starts.get(b + 1).map_or(code.len(), |s| *s) - 1;
        successors.push(targets(code, last).into_iter().map(|t| t.map_or(count, block_of)).collect());
    }
    let next = post_dominators(&successors);
    for pc in 0..code.len() {
        let meets = next[block_of(pc)];
        let at = if meets < count { starts[meets] as u32 } else { NEVER };
        match &mut code[pc].run {
            Run::Branch { join, .. } | Run::Table { join, .. } => *join = at,
            _ => {}
        }
    }
}

/// Instructions that something jumps to, or that follow a jump.
pub(super) fn block_starts(code: &[Inst]) -> Vec<usize> {
    let mut starts = vec![0];
    for (pc, inst) in code.iter().enumerate() {
        match &inst.run {
            Run::Branch { target, .. } => starts.extend([*target as usize, pc + 1]),
            Run::Table { targets, .. } => {
                starts.extend(targets.iter().map(|t| *t as usize));
                starts.push(pc + 1);
            }
            Run::Exit | Run::Trap | Run::Assert => starts.push(pc + 1),
            _ => {}
        }
    }
    starts.retain(|s| *s < code.len());
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Where control may go after an instruction; `None` is the end.
pub(super) fn targets(code: &[Inst], pc: usize) -> Vec<Option<usize>> {
    let inst = &code[pc];
    let guarded = inst.guard != ALWAYS;
    let next = (pc + 1 < code.len()).then_some(pc + 1);
    let mut out: Vec<Option<usize>> = match &inst.run {
        Run::Branch { target, .. } => vec![Some(*target as usize)],
        Run::Table { targets, .. } => targets.iter().map(|t| Some(*t as usize)).collect(),
        Run::Exit | Run::Trap | Run::Assert => vec![None],
        _ => return vec![next],
    };
    if guarded {
        // Lanes that exit leave for good; the others alone decide where paths meet.
        if matches!(inst.run, Run::Exit | Run::Trap | Run::Assert) {
            out.clear();
        }
        out.push(next);
    }
    out
}

/// The immediate post-dominator of every block, by iteration over a reverse post-order of the reversed graph (Cooper,
/// Harvey and Kennedy). Blocks that never reach the end get it.
fn post_dominators(successors: &[Vec<usize>]) -> Vec<usize> {
    let end = successors.len();
    let mut predecessors = vec![Vec::new(); end + 1];
    for (b, next) in successors.iter().enumerate() {
        for n in next {
            predecessors[*n].push(b);
        }
    }
    let order = post_order(&predecessors, end);
    let mut rank = vec![usize::MAX; end + 1];
    for (i, b) in order.iter().enumerate() {
        rank[*b] = i;
    }
    let mut dominator = vec![usize::MAX; end + 1];
    dominator[end] = end;
    let mut changed = true;
    while changed {
        changed = false;
        for &b in order.iter().rev().filter(|b| **b != end) {
            let known = successors[b].iter().copied().filter(|s| dominator[*s] != usize::MAX);
            let meet = known.reduce(|x, y| intersect(&dominator, &rank, x, y));
            if let Some(meet) = meet.filter(|m| dominator[b] != *m) {
                dominator[b] = meet;
                changed = true;
            }
        }
    }
    dominator.into_iter().map(|d| d.min(end)).collect()
}

fn intersect(dominator: &[usize], rank: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while rank[a] < rank[b] {
            a = dominator[a];
        }
        while rank[b] < rank[a] {
            b = dominator[b];
        }
    }
    a
}

/// Blocks that reach the end, in post-order of a walk against the edges.
fn post_order(predecessors: &[Vec<usize>], end: usize) -> Vec<usize> {
    let mut seen = vec![false; predecessors.len()];
    let mut order = Vec::new();
    let mut stack = vec![(end, 0)];
    seen[end] = true;
    while let Some((b, i)) = stack.pop() {
        match predecessors[b].get(i) {
            Some(&p) => {
                stack.push((b, i + 1));
                if !seen[p] {
                    seen[p] = true;
                    stack.push((p, 0));
                }
            }
            None => order.push(b),
        }
    }
    order
}
