//! Choices among variants and configurations, from the rows of a dataset.

use crate::dataset::Dataset;
use crate::error::DatasetError;
use crate::features::FeatureTable;
use std::collections::HashMap;
use tilewright_core::choice::{Case, ChoiceSet, Trial};
use tilewright_core::selector::Candidate;

impl Dataset {
    /// All rows as choices: one case for each device and input, one candidate for each variant with its configuration,
    /// named `variant[parameter=value,...]`.
    ///
    /// # Errors
    /// As [`Dataset::features`].
    pub fn choices(&self) -> Result<ChoiceSet, DatasetError> {
        let rows: Vec<usize> = (0..self.len()).collect();
        self.choices_of(&rows)
    }

    /// [`Dataset::choices`] of some rows (those of one side of a split), under the schema of the whole dataset.
    ///
    /// A candidate that was measured several times on inputs that look alike belongs to as many cases. The groups are
    /// those of the schema's column, and single inputs where there is none: one group for an input on all devices, so that a split
    /// by groups holds it out everywhere.
    ///
    /// # Errors
    /// As [`Dataset::features`].
    ///
    /// # Panics
    /// On a number beyond the last row.
    pub fn choices_of(&self, rows: &[usize]) -> Result<ChoiceSet, DatasetError> {
        self.choices_from(&self.features()?, rows)
    }

    /// [`Dataset::choices_of`] with the features of this dataset at hand, for many splits of it.
    ///
    /// # Errors
    /// Features of another dataset that do not fit.
    ///
    /// # Panics
    /// On a number beyond the last row.
    pub fn choices_from(&self, table: &FeatureTable, rows: &[usize]) -> Result<ChoiceSet, DatasetError> {
        let (problems, _) = self.problems();
        let grouping = self.roles.group.map_or_else(|| self.roles.input.clone(), |group| vec![group]);
        let (groups, _) = self.tuples(&grouping);
        let of_candidate: Vec<usize> = self.roles.variant.iter().chain(&self.roles.config).copied().collect();
        let (codes, count) = self.tuples(&of_candidate);
        let mut names: Vec<Option<String>> = vec![None; count];
        let mut times_seen: HashMap<(u32, u32, u32), u32> = HashMap::new();
        let mut case_of: HashMap<(u32, u32, u32), usize> = HashMap::new();
        let mut cases: Vec<Case> = Vec::new();
        for &row in rows {
            let (problem, group, code) = (problems[row], groups[row], codes[row]);
            let seen = times_seen.entry((problem, group, code)).or_insert(0);
            let case = *case_of.entry((problem, group, *seen)).or_insert_with(|| {
                let mut features = Vec::new();
                table.input(row, &mut features);
                cases.push(Case { features, trials: Vec::new(), group });
                cases.len() - 1
            });
            *seen += 1;
            let variant = names[code as usize].get_or_insert_with(|| self.candidate_name(row)).clone();
            let mut features = Vec::new();
            table.config(row, &mut features);
            cases[case].trials.push(Trial { candidate: Candidate { variant, features }, cost: self.time_s(row) });
        }
        let mut set = ChoiceSet::new(table.schema().clone());
        cases.into_iter().try_for_each(|case| set.push(case))?;
        Ok(set)
    }

    fn candidate_name(&self, row: usize) -> String {
        let (variant, config) = (self.variant(row).unwrap_or_default(), self.config(row));
        if config.0.is_empty() { variant } else { format!("{variant}[{config}]") }
    }
}
