//! Hidden layers of a network, as numbers and as text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tilewright_core::setting::SettingError;

/// Widest hidden layer that is accepted.
pub const MAX_WIDTH: usize = 4096;
/// Most hidden layers that are accepted.
pub const MAX_DEPTH: usize = 16;

/// Widths of the hidden layers, from the input to the output; written `64-128-64`.
///
/// ```
/// use tilewright_perfmodel_mlp::Layout;
///
/// let layout: Layout = "64-128-64".parse().unwrap();
/// assert_eq!(layout.widths(), [64, 128, 64]);
/// assert_eq!(layout.weights(20), 20 * 64 + 64 * 128 + 128 * 64 + 64);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<usize>", into = "Vec<usize>")]
pub struct Layout(Vec<usize>);

impl Layout {
    /// A layout of these widths.
    ///
    /// # Errors
    /// No layer, more than [`MAX_DEPTH`], or a width of 0 or above [`MAX_WIDTH`].
    pub fn new(widths: impl Into<Vec<usize>>) -> Result<Self, SettingError> {
        let widths = widths.into();
        let layers = format!("{} hidden layers", widths.len());
        SettingError::check("layout", layers, (1..=MAX_DEPTH).contains(&widths.len()), "1 to 16 hidden layers")?;
        for &width in &widths {
            let good = (1..=MAX_WIDTH).contains(&width);
            SettingError::check("layout", format_args!("{width} wide"), good, "1 to 4096 wide")?;
        }
        Ok(Self(widths))
    }

    /// The seven architectures of ISAAC's Table 2, in its order.
    pub fn table_2() -> [Self; 7] {
        [
            &[64][..],
            &[512],
            &[32, 64, 32],
            &[64, 128, 64],
            &[32, 64, 128, 64, 32],
            &[64, 128, 256, 128, 64],
            &[64, 128, 192, 256, 192, 128, 64],
        ]
        .map(|widths| Self(widths.to_vec()))
    }

    /// Widths of the hidden layers.
    pub fn widths(&self) -> &[usize] {
        &self.0
    }

    /// Weights of a network of this layout over `features` inputs, biases not counted (as in Table 2).
    pub fn weights(&self, features: usize) -> usize {
        self.sizes(features).windows(2).map(|pair| pair[0] * pair[1]).sum()
    }

    /// Widths of every layer: the features, the hidden layers, the one output.
    pub(crate) fn sizes(&self, features: usize) -> Vec<usize> {
        let mut sizes = vec![features];
        sizes.extend(&self.0);
        sizes.push(1);
        sizes
    }
}

impl Default for Layout {
    /// 64-128-64: of Table 2, the smallest network within a third of the best one's error.
    fn default() -> Self {
        Self(vec![64, 128, 64])
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&widths.join("-"))
    }
}

impl FromStr for Layout {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let widths = text.split(['-', ',']).map(|width| width.trim().parse()).collect::<Result<Vec<usize>, _>>();
        let limit = "widths joined by '-', as in 64-128-64";
        Self::new(widths.map_err(|_| SettingError::new("layout", text, limit))?)
    }
}

impl TryFrom<Vec<usize>> for Layout {
    type Error = SettingError;

    fn try_from(widths: Vec<usize>) -> Result<Self, SettingError> {
        Self::new(widths)
    }
}

impl From<Layout> for Vec<usize> {
    fn from(layout: Layout) -> Self {
        layout.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_2_has_the_paper_s_weight_counts() {
        // With GEMM's 16 or so features; the paper rounds to thousands.
        let weights = Layout::table_2().map(|layout| layout.weights(16) as f64 / 1000.0);
        let paper = [1.0, 10.0, 5.0, 17.0, 21.0, 83.0, 163.0];
        for (ours, paper) in weights.iter().zip(paper) {
            assert!((ours - paper).abs() <= 0.03 * paper + 1.3, "{ours}k against the paper's {paper}k");
        }
    }

    #[test]
    fn text_round_trips() {
        for layout in Layout::table_2() {
            assert_eq!(layout.to_string().parse(), Ok(layout));
        }
        assert_eq!("64, 32".parse::<Layout>().map(|layout| layout.to_string()), Ok("64-32".to_owned()));
    }

    #[test]
    fn bad_layouts_name_the_field_and_the_limit() {
        for text in ["", "64-", "64-x", "0", "64-5000", "-3"] {
            let error = text.parse::<Layout>().expect_err(text);
            assert!(matches!(error, SettingError { field: "layout", .. }), "{text}: {error}");
        }
        assert!(Layout::new(vec![8; MAX_DEPTH + 1]).is_err());
    }
}
