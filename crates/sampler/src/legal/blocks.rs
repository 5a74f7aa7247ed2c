//! From numbers to points: several levels are taken in one search.
//!
//! A search among few arcs costs a wrong guess of a branch at every level. Paths through some levels, listed with the points
//! before them, need one search for all of them.

use super::diagram::Level;

/// Some levels in one.
#[derive(Clone, Debug)]
pub(super) struct Block {
    params: Vec<usize>,
    /// Paths of a node begin at its number here; one more ends the last.
    starts: Vec<u32>,
    /// By path: points of the node that come before it.
    before: Vec<u64>,
    /// By path: the node behind the block.
    child: Vec<u32>,
    /// By path: a value for each parameter.
    values: Vec<u16>,
}

/// Paths of one node: a search of seven steps.
const MAX_PATHS: usize = 128;
/// Paths of a block with more than one level.
const MAX_TOTAL: usize = 1 << 14;

/// All levels in blocks.
pub(super) fn blocks(levels: &[Level]) -> Vec<Block> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < levels.len() {
        let mut block = Block::of(&levels[at]);
        at += 1;
        while let Some(longer) = levels.get(at).and_then(|level| block.extended(level)) {
            block = longer;
            at += 1;
        }
        out.push(block);
    }
    out
}

impl Block {
    fn of(level: &Level) -> Self {
        let mut block = Self::empty(vec![level.param]);
        for node in 0..level.len() {
            for (value, child, before) in level.numbered(node as u32) {
                block.values.push(value);
                block.child.push(child);
                block.before.push(before);
            }
            block.starts.push(block.before.len() as u32);
        }
        block
    }

    fn empty(params: Vec<usize>) -> Self {
        Self { params, starts: vec![0], before: Vec::new(), child: Vec::new(), values: Vec::new() }
    }

    /// The block with one more level; none where that makes too many paths.
    fn extended(&self, level: &Level) -> Option<Self> {
        let mut longer = 0;
        for node in self.starts.windows(2) {
            let paths = &self.child[node[0] as usize..node[1] as usize];
            let paths: usize = paths.iter().map(|&child| level.degree(child)).sum();
            longer += paths;
            if paths > MAX_PATHS || longer > MAX_TOTAL {
                return None;
            }
        }
        let mut block = Self::empty([self.params.as_slice(), &[level.param]].concat());
        for node in self.starts.windows(2) {
            for path in node[0] as usize..node[1] as usize {
                for (value, child, before) in level.numbered(self.child[path]) {
                    block.values.extend_from_slice(self.values_of(path));
                    block.values.push(value);
                    block.child.push(child);
                    block.before.push(self.before[path] + before);
                }
            }
            block.starts.push(block.before.len() as u32);
        }
        Some(block)
    }

    fn values_of(&self, path: usize) -> &[u16] {
        &self.values[path * self.params.len()..(path + 1) * self.params.len()]
    }

    /// Writes the values of the point of a number below a node; gives the node behind and the number below that.
    #[inline]
    pub(super) fn locate(&self, node: u32, number: u64, out: &mut [u16]) -> (u32, u64) {
        let start = self.starts[node as usize] as usize;
        let before = &self.before[start..self.starts[node as usize + 1] as usize];
        let path = start + before.partition_point(|&b| b <= number).saturating_sub(1);
        for (&param, &value) in self.params.iter().zip(self.values_of(path)) {
            out[param] = value;
        }
        (self.child[path], number - self.before[path])
    }

    pub(super) fn bytes(&self) -> usize {
        let words = size_of_val(&*self.before) + size_of_val(&*self.child) + size_of_val(&*self.starts);
        words + size_of_val(&*self.values) + size_of_val(&*self.params)
    }
}
