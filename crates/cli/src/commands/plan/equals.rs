//! What an answer says of those that count as equal to the best.

use crate::output::{aligned, seconds};
use serde::Serialize;
use tilewright_core::decision::{Decision, Tie, Tied};
use tilewright_core::space::Config;

/// The tie bands of a decision: of the configurations of the chosen kernel, and of the kernels.
#[derive(Serialize)]
pub(super) struct Equals {
    /// The configurations that count as equal to the best, the chosen one first; empty where none were compared.
    tie_band: Vec<Tied>,
    /// How far behind the best measured one a member may be, as a share: what the choice loses at most, as measured.
    tie_within: Option<f64>,
    /// The order that chooses among them.
    tie_order: Option<String>,
    /// What put the choice ahead of the next one.
    tie_why: Option<String>,
    /// The same of the kernels that were timed against each other.
    kernel_tie_band: Vec<Tied>,
    kernel_tie_within: Option<f64>,
    kernel_tie_order: Option<String>,
    kernel_tie_why: Option<String>,
}

impl Equals {
    pub(super) fn of(decision: &Decision) -> Self {
        let parts = |tie: &Option<Tie>| match tie.clone() {
            Some(Tie { members, within, order, why }) => (members, Some(within), Some(order), Some(why)),
            None => Default::default(),
        };
        let (tie_band, tie_within, tie_order, tie_why) = parts(&decision.tie);
        let (kernel_tie_band, kernel_tie_within, kernel_tie_order, kernel_tie_why) = parts(&decision.kernel_tie);
        Self {
            tie_band,
            tie_within,
            tie_order,
            tie_why,
            kernel_tie_band,
            kernel_tie_within,
            kernel_tie_order,
            kernel_tie_why,
        }
    }

    /// The bands for people, behind what was said before; configurations by how they differ from the default.
    pub(super) fn tell(&self, out: &mut String, default: &Config) {
        let config = |tied: &Tied| tied.config.differing(default).to_string();
        let texts = [&self.tie_order, &self.tie_why].map(|text| text.as_deref().unwrap_or_default());
        tell(out, (&self.tie_band, self.tie_within, texts), ("configuration", "where not untuned"), config);
        let kernel = |tied: &Tied| tied.kernel.to_string();
        let texts = [&self.kernel_tie_order, &self.kernel_tie_why].map(|text| text.as_deref().unwrap_or_default());
        tell(out, (&self.kernel_tie_band, self.kernel_tie_within, texts), ("kernel", "kernel"), kernel);
    }
}

/// One band: whether there are equals, who they are, and why the first of them was taken.
fn tell(
    out: &mut String,
    (members, within, [order, why]): (&[Tied], Option<f64>, [&str; 2]),
    (what, column): (&str, &str),
    name: impl Fn(&Tied) -> String,
) {
    let Some(percent) = within.map(|within| 100.0 * within) else { return };
    let more = |relative: f64| format!("+{:.1}%", 100.0 * (relative - 1.0));
    if members.len() < 2 {
        out.push_str(&format!("\nno other {what} counts as equal to the best: none is within {percent:.1}% of it\n"));
        return;
    }
    let mut table = vec![["", "measured", "behind the best", column].map(String::from).to_vec()];
    for (i, tied) in members.iter().enumerate() {
        let measured = tied.measured_s.map_or("-".to_owned(), seconds);
        table.push(vec![(i + 1).to_string(), measured, more(tied.relative), name(tied)]);
    }
    out.push_str(&format!("\n{} {what}s within {percent:.1}% of the best count as equal:\n", members.len()));
    out.push_str(&aligned(&table));
    out.push_str(&format!("the first is taken, since {why}; the order is {order}\n"));
}
