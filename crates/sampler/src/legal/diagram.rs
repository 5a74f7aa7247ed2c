//! The reduced diagram: nodes that have the same choices below them are one node, and every arc knows how many points
//! come before it.

use super::LegalError;
use super::intern::{Numbers, hash};
use super::layers::Layer;

/// Sixty-four values of a node's parameter: which it may take, and where their arcs begin.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    mask: u64,
    first: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arc {
    /// Points below the arcs of the same node that come before.
    before: u64,
    child: u32,
    value: u16,
}

/// One parameter's nodes.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// The parameter, by its position in the space.
    pub(super) param: usize,
    /// Words of a node.
    words: usize,
    /// Node by node, and one more word that ends the last.
    nodes: Vec<Word>,
    arcs: Vec<Arc>,
    /// By node and value, the points before and the next node: one look where the words take two. Empty where values are
    /// so many, or so rarely there, that it would be much larger than the arcs.
    dense: Vec<(u64, u32)>,
    /// Values of a node in it.
    width: usize,
}

/// What lies below a layer: by state, the node and the number of points.
pub(super) struct Below {
    /// By state of the layer above; `DEAD` where no point is below.
    pub(super) nodes: Vec<u32>,
    counts: Vec<u64>,
}

/// A state without points.
const DEAD: u32 = u32::MAX;

impl Below {
    /// A single node with a number of points below.
    pub(super) fn terminal(points: u64) -> Self {
        Self { nodes: vec![0], counts: vec![points] }
    }

    /// Points below the first state.
    pub(super) fn points(&self) -> u64 {
        self.nodes.first().and_then(|&n| self.counts.get(n as usize)).copied().unwrap_or(0)
    }
}

impl Level {
    /// Reduces a layer over what lies below it. `kept` gives the values by their position in the layer.
    pub(super) fn reduce(
        layer: &Layer,
        param: usize,
        kept: &[u16],
        below: &Below,
    ) -> Result<(Self, Below), LegalError> {
        let words = kept.last().map_or(1, |&v| usize::from(v) / 64 + 1);
        let (arcs, width) = (Vec::with_capacity(layer.arcs.len()), kept.last().map_or(0, |&v| usize::from(v) + 1));
        let mut level = Self { param, words, nodes: Vec::new(), arcs, dense: Vec::new(), width };
        let mut seen = Seen { numbers: Numbers::new(), starts: vec![0] };
        let mut out = Below { nodes: Vec::with_capacity(layer.starts.len()), counts: Vec::new() };
        for state in layer.starts.windows(2) {
            let start = level.arcs.len();
            let mut points = 0u64;
            for &(position, next) in &layer.arcs[state[0] as usize..state[1] as usize] {
                let child = below.nodes[next as usize];
                if child != DEAD {
                    level.arcs.push(Arc { before: points, child, value: kept[usize::from(position)] });
                    let added = points.checked_add(below.counts[child as usize]);
                    points = added.ok_or(LegalError::TooMany)?;
                }
            }
            if start == level.arcs.len() {
                out.nodes.push(DEAD);
                continue;
            }
            let node = seen.find(&level.arcs);
            if (node as usize) < out.counts.len() {
                level.arcs.truncate(start);
            } else {
                out.counts.push(points);
            }
            out.nodes.push(node);
        }
        level.index(&seen.starts);
        Ok((level, out))
    }

    /// Fills in the words of all nodes, whose arcs begin at `starts`.
    fn index(&mut self, starts: &[usize]) {
        self.nodes.reserve_exact((starts.len() - 1) * self.words + 1);
        for node in starts.windows(2) {
            let mut at = node[0];
            for word in 0..self.words {
                let mut here = Word { mask: 0, first: at as u32 };
                while at < node[1] && usize::from(self.arcs[at].value) / 64 == word {
                    here.mask |= 1 << (self.arcs[at].value % 64);
                    at += 1;
                }
                self.nodes.push(here);
            }
        }
        self.nodes.push(Word { mask: 0, first: self.arcs.len() as u32 });
        let entries = (starts.len() - 1) * self.width;
        if entries <= 4 * self.arcs.len() + 64 {
            self.dense = vec![(0, DEAD); entries];
            for (node, range) in starts.windows(2).enumerate() {
                for arc in &self.arcs[range[0]..range[1]] {
                    self.dense[node * self.width + usize::from(arc.value)] = (arc.before, arc.child);
                }
            }
        }
    }

    fn arcs_of(&self, node: u32) -> std::ops::Range<usize> {
        let word = node as usize * self.words;
        self.nodes[word].first as usize..self.nodes[word + self.words].first as usize
    }

    /// The arc of a value, as points before it and the next node.
    #[inline]
    pub(super) fn follow(&self, node: u32, value: u16) -> Option<(u64, u32)> {
        if usize::from(value) >= self.width {
            return None;
        }
        if let Some(&(before, child)) = self.dense.get(node as usize * self.width + usize::from(value)) {
            return (child != DEAD).then_some((before, child));
        }
        let (word, bit) = (usize::from(value) / 64, value % 64);
        let Word { mask, first } = self.nodes[node as usize * self.words + word];
        if mask >> bit & 1 == 0 {
            return None;
        }
        let arc = &self.arcs[first as usize + (mask & ((1 << bit) - 1)).count_ones() as usize];
        Some((arc.before, arc.child))
    }

    /// Number of arcs of a node.
    pub(super) fn degree(&self, node: u32) -> usize {
        self.arcs_of(node).len()
    }

    /// Value and next node of an arc of a node.
    #[inline]
    pub(super) fn arc(&self, node: u32, at: usize) -> (u16, u32) {
        let arc = &self.arcs[self.nodes[node as usize * self.words].first as usize + at];
        (arc.value, arc.child)
    }

    /// Value, next node and points before, of the arcs of a node.
    pub(super) fn numbered(&self, node: u32) -> impl Iterator<Item = (u16, u32, u64)> + '_ {
        self.arcs[self.arcs_of(node)].iter().map(|arc| (arc.value, arc.child, arc.before))
    }

    /// Values and next nodes of a node.
    pub(super) fn choices(&self, node: u32) -> impl Iterator<Item = (u16, u32)> + '_ {
        self.arcs[self.arcs_of(node)].iter().map(|arc| (arc.value, arc.child))
    }

    /// Nodes of this level.
    pub(super) fn len(&self) -> usize {
        (self.nodes.len() - 1) / self.words
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.arcs) + size_of_val(&*self.dense)
    }
}

/// Nodes by their arcs.
struct Seen {
    numbers: Numbers,
    /// Where the arcs of each node begin, and where those of the last end.
    starts: Vec<usize>,
}

impl Seen {
    /// The node whose arcs these last ones are; a new one if there was none.
    fn find(&mut self, arcs: &[Arc]) -> u32 {
        let starts = &self.starts;
        let new = &arcs[starts[starts.len() - 1]..];
        let hash = hash(new.iter().map(|arc| u64::from(arc.child) << 16 | u64::from(arc.value))) as u32;
        match self.numbers.find(hash, |node| arcs[starts[node]..starts[node + 1]] == *new) {
            Ok(node) => node,
            Err(place) => {
                self.starts.push(arcs.len());
                self.numbers.insert(place, hash)
            }
        }
    }
}
