//! Fewer parameters: which values occur, how often, and in which combinations.

use super::diagram::{Below, Level};
use super::layers::Layer;
use super::{LegalError, LegalSet};
use std::collections::{BTreeMap, HashMap};
use tilewright_core::space::Param;

/// By parameter, the indices of the values that occur.
pub(super) type Occurring = Vec<Vec<u16>>;

impl LegalSet {
    /// By parameter, the indices of the values that occur in legal points, each with the number of these points.
    pub fn marginals(&self) -> Vec<Vec<(u16, u64)>> {
        let mut out: Vec<BTreeMap<u16, u64>> = vec![BTreeMap::new(); self.params().len()];
        if self.is_empty() {
            return vec![Vec::new(); self.params().len()];
        }
        for &(param, value) in &self.fixed {
            out[param].insert(value, self.count());
        }
        let below = self.points_below();
        // Ways to reach each node of the level.
        let mut ways = vec![1u64];
        for (depth, level) in self.levels.iter().enumerate() {
            let mut next = vec![0; below[depth + 1].len()];
            for (node, &ways) in ways.iter().enumerate() {
                for (value, child) in level.choices(node as u32) {
                    next[child as usize] += ways;
                    *out[level.param].entry(value).or_default() += ways * below[depth + 1][child as usize];
                }
            }
            ways = next;
        }
        out.into_iter().map(|m| m.into_iter().collect()).collect()
    }

    /// By level and node, the points below; one for what lies behind the last level.
    fn points_below(&self) -> Vec<Vec<u64>> {
        let mut out = vec![vec![1u64]];
        for level in self.levels.iter().rev() {
            let next = &out[out.len() - 1];
            let points = |node: usize| level.choices(node as u32).map(|(_, child)| next[child as usize]).sum();
            let here: Vec<u64> = (0..level.len()).map(points).collect();
            out.push(here);
        }
        out.reverse();
        out
    }

    /// The combinations of some parameters' values that occur in legal points, as a set over these parameters in the
    /// order given. Positions beyond the parameters and repeated ones are left out.
    ///
    /// # Errors
    /// More combinations of nodes than are followed.
    pub fn project(&self, params: &[usize]) -> Result<Self, LegalError> {
        let mut wanted: Vec<usize> = Vec::with_capacity(params.len());
        for &p in params.iter().filter(|&&p| p < self.params().len()) {
            if !wanted.contains(&p) {
                wanted.push(p);
            }
        }
        let chosen: Vec<Param> = wanted.iter().map(|&p| self.params()[p].clone()).collect();
        if self.is_empty() {
            return Ok(Self::empty(&chosen));
        }
        let place = |param: usize| wanted.iter().position(|&p| p == param);
        let layers = self.project_layers(&|param| place(param).is_some())?;
        let mut below = Below::terminal(1);
        let mut levels = Vec::with_capacity(layers.len());
        for layer in layers.iter().rev() {
            let all: Vec<u16> = (0..self.params()[layer.var].values.len() as u16).collect();
            let Some(param) = place(layer.var) else { continue };
            let (level, next) = Level::reduce(layer, param, &all, &below)?;
            levels.push(level);
            below = next;
        }
        levels.reverse();
        let fixed = self.fixed.iter().filter_map(|&(p, v)| Some((place(p)?, v))).collect();
        Ok(Self::of_levels(&chosen, levels, fixed, below.points()))
    }

    /// The layers over the wanted levels, whose states are the nodes that the same choices may lead to.
    fn project_layers(&self, wanted: &dyn Fn(usize) -> bool) -> Result<Vec<Layer>, LegalError> {
        let mut out = Vec::new();
        let mut states: Vec<Vec<u32>> = vec![vec![0]];
        for level in self.levels.iter() {
            let step = |nodes: &[u32], only: Option<u16>| {
                let mut next: Vec<u32> = Vec::new();
                for &node in nodes {
                    let chosen = level.choices(node).filter(|(v, _)| only.is_none_or(|o| o == *v));
                    next.extend(chosen.map(|(_, child)| child));
                }
                next.sort_unstable();
                next.dedup();
                next
            };
            if !wanted(level.param) {
                states = states.iter().map(|nodes| step(nodes, None)).collect();
                continue;
            }
            let mut layer = Layer { var: level.param, starts: vec![0], arcs: Vec::new() };
            let mut numbers: HashMap<Vec<u32>, u32> = HashMap::new();
            for nodes in &states {
                let mut values: Vec<u16> = nodes.iter().flat_map(|&n| level.choices(n).map(|(v, _)| v)).collect();
                values.sort_unstable();
                values.dedup();
                for value in values {
                    let number = numbers.len() as u32;
                    let number = *numbers.entry(step(nodes, Some(value))).or_insert(number);
                    layer.arcs.push((value, number));
                }
                layer.starts.push(layer.arcs.len() as u32);
            }
            if numbers.len() > MAX_PROJECTED {
                return Err(LegalError::TooWide { limit: MAX_PROJECTED });
            }
            states = vec![Vec::new(); numbers.len()];
            for (nodes, number) in numbers {
                states[number as usize] = nodes;
            }
            out.push(layer);
        }
        // What is left of the last states is one end.
        if let Some(last) = out.last_mut() {
            last.arcs.iter_mut().for_each(|arc| arc.1 = 0);
        }
        Ok(out)
    }
}

/// Sets of nodes that a projection follows.
const MAX_PROJECTED: usize = 1 << 20;
