//! Fitting weights.

use crate::error::LinearError;
use crate::model::{LinearModel, Report, Sharpness, Weight};
use crate::nonnegative::{least_squares, nonnegative, with_ridge};
use crate::overlap;
use crate::singular::{ZERO, decompose, indistinct, normalised};
use crate::table::Table;
use ndarray::{Array1, Array2};
use tilewright_core::setting::SettingError;

/// What weights may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// Of either sign, as in the paper.
    Signed,
    /// None below zero: what an operation costs.
    NonNegative,
}

/// Ways of fitting. The default is the paper's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearFit {
    /// What weights may be.
    pub form: Form,
    /// Pull of weights to zero, relative to what a column weighs. Zero refuses a singular matrix.
    pub ridge: f64,
    /// Whether arithmetic and data motion overlap; implies weights above zero.
    pub overlap: bool,
    /// Whether the last wave of groups counts in full.
    pub quantised: bool,
}

impl Default for LinearFit {
    fn default() -> Self {
        Self { form: Form::Signed, ridge: 0.0, overlap: false, quantised: false }
    }
}

impl LinearFit {
    /// Fits the weights of a device, named by its fingerprint. Rows are divided by their times, so that relative errors count.
    ///
    /// # Errors
    /// Fewer rows than properties; a singular matrix where there is no ridge, with the properties that cannot be told apart.
    pub fn fit(&self, table: &Table, device: &str) -> Result<LinearModel, LinearError> {
        let good = self.ridge.is_finite() && self.ridge >= 0.0;
        SettingError::check("ridge", self.ridge, good, "finite and not negative")?;
        let rows = table.rows();
        let seen = |column: &usize| rows.iter().any(|r| r.counts[*column] > 0.0);
        let columns: Vec<usize> = (0..table.properties.len()).filter(seen).collect();
        if rows.len() < columns.len() || columns.is_empty() {
            return Err(LinearError::TooFewRows { rows: rows.len(), properties: columns.len() });
        }
        let relative = Array2::from_shape_fn((rows.len(), columns.len()), |(i, j)| {
            // Overhead does not wait for the last wave.
            let body = table.properties[columns[j]].part != crate::table::Part::Overhead;
            let factor = if self.quantised && body { rows[i].quantised } else { 1.0 };
            rows[i].counts[columns[j]] * factor / rows[i].time_s
        });
        let (a, lengths) = normalised(&relative);
        let (values, vectors) = decompose(&a);
        let groups = indistinct(&values, &vectors);
        if self.ridge == 0.0 && !groups.is_empty() {
            let name = |i: &usize| table.properties[columns[*i]].name.clone();
            return Err(LinearError::Singular(groups.iter().map(|g| g.iter().map(name).collect()).collect()));
        }
        let ones = Array1::ones(rows.len());
        let (taller, longer) = with_ridge(&a, &ones, self.ridge * rows.len() as f64);
        let solved = match self.form {
            Form::NonNegative => nonnegative(&taller, &longer),
            Form::Signed if self.overlap => nonnegative(&taller, &longer),
            Form::Signed => least_squares(&taller, &longer),
        };
        let error = &ones - &a.dot(&solved);
        let mut weights = &solved / &lengths;
        let mut sharpness = Sharpness::SUM;
        if self.overlap {
            (weights, sharpness) = overlap::fit(table, &columns, &weights, self.quantised)?;
        }
        let freedom = (rows.len() - columns.len()).max(1) as f64;
        let variance = error.dot(&error) / freedom;
        let uncertainty = uncertainties(&values, &vectors, variance, self.ridge * rows.len() as f64) / &lengths;
        let mut model = assemble(table, &columns, &weights, &uncertainty, device);
        (model.sharpness, model.quantised) = (sharpness, self.quantised);
        let (most, least) = extremes(&values);
        model.report =
            Report { rows: rows.len(), condition: most / least, geomean_error: geomean_error(&model, table) };
        Ok(model)
    }
}

/// The largest and the smallest value that is not zero.
fn extremes(values: &Array1<f64>) -> (f64, f64) {
    let most = values.iter().copied().fold(0.0, f64::max);
    let least = values.iter().copied().filter(|v| *v > ZERO * most).fold(f64::INFINITY, f64::min);
    (most, least)
}

/// Standard errors: the square roots of the diagonal of `variance (A'A + ridge)^-1`.
fn uncertainties(values: &Array1<f64>, vectors: &Array2<f64>, variance: f64, ridge: f64) -> Array1<f64> {
    let inverse = values.mapv(|s| 1.0 / (s * s + ridge).max(f64::MIN_POSITIVE));
    vectors.rows().into_iter().map(|v| (variance * (&(&v * &v) * &inverse).sum()).sqrt()).collect()
}

fn assemble(
    table: &Table,
    columns: &[usize],
    weights: &Array1<f64>,
    uncertainty: &Array1<f64>,
    device: &str,
) -> LinearModel {
    let weight = |(i, property): (usize, &crate::table::Property)| {
        let at = columns.iter().position(|c| *c == i);
        Weight {
            property: property.clone(),
            seconds: at.map_or(0.0, |at| weights[at]),
            uncertainty: at.map_or(0.0, |at| uncertainty[at]),
            measured: at.is_some(),
        }
    };
    LinearModel {
        device: device.to_owned(),
        weights: table.properties.iter().enumerate().map(weight).collect(),
        sharpness: Sharpness::SUM,
        quantised: false,
        report: Report::default(),
    }
}

/// Geometric mean of relative errors; errors below a millionth count as that.
fn geomean_error(model: &LinearModel, table: &Table) -> f64 {
    let error = |r: &crate::table::Row| {
        let predicted = model.predict(&r.counts, r.quantised).seconds;
        ((predicted - r.time_s).abs() / r.time_s).max(1e-6).ln()
    };
    (table.rows().iter().map(error).sum::<f64>() / table.rows().len() as f64).exp()
}
