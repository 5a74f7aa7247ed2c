//! A model of the time of each variant (Vuduc, section 4.2): the fastest by its word is chosen.

use crate::classes::{ClassSelector, Classes};
use crate::encode::{Encoding, FeatureMap};
use crate::linear::{Normal, products};
use tilewright_core::choice::{ChoiceSet, FitSelector, SelectError};
use tilewright_core::expr::{Compiled, Expr, Val};
use tilewright_core::selector::Selector;
use tilewright_core::setting::SettingError;

/// The terms of the model.
#[derive(Clone, Debug, PartialEq)]
pub enum Terms {
    /// The log of the time, linear in a map of the encoded features.
    Map(FeatureMap),
    /// The time itself as a sum of these expressions over the features of the input, such as `n*n*n`, `n*n`, `n`, `1` for
    /// equation 6. Errors count relative to the time.
    Expressions(Vec<String>),
}

/// Fits one regression for each variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression {
    /// The terms.
    pub terms: Terms,
    /// Penalty on the squared coefficients, for each case.
    pub ridge: f64,
    /// Most variants, those that win most often.
    pub classes: usize,
}

impl Default for Regression {
    fn default() -> Self {
        Self { terms: Terms::Map(FeatureMap::Quadratic), ridge: 1e-3, classes: 32 }
    }
}

#[derive(Clone, Debug)]
enum Basis {
    Map(Encoding),
    Terms(Vec<Compiled>),
}

impl Basis {
    fn write(&self, features: &[f32], out: &mut Vec<f32>) {
        match self {
            Self::Map(encoding) => encoding.encode(features, out),
            Self::Terms(terms) => {
                let slots: Vec<Val<'_>> = features.iter().map(|&f| number(f)).collect();
                let value = |t: &Compiled| t.eval(&slots).ok().and_then(|v| v.as_f64()).unwrap_or(0.0) as f32;
                out.clear();
                out.extend(terms.iter().map(|t| if value(t).is_finite() { value(t) } else { 0.0 }));
            }
        }
    }
}

/// Whole numbers as integers, so that `//` and `%` mean what they say.
fn number(f: f32) -> Val<'static> {
    if f.fract() == 0.0 && f.abs() < 1e9 { Val::Int(f as i64) } else { Val::Float(f64::from(f)) }
}

impl Regression {
    fn basis(&self, data: &ChoiceSet) -> Result<Basis, SelectError> {
        let texts = match &self.terms {
            Terms::Map(map) => return Ok(Basis::Map(Encoding::fit(data, *map)?)),
            Terms::Expressions(texts) => texts,
        };
        let names: Vec<&str> = data.schema().input.iter().map(|f| f.name.as_str()).collect();
        let compile = |text: &String| {
            let limit = "an expression over the features of the input";
            let expr: Expr = text.parse().map_err(|_| SettingError::new("terms", text, limit))?;
            expr.compile(&names).map_err(|e| SelectError::UnknownFeature {
                field: "terms",
                name: e.0,
                known: names.join(" "),
            })
        };
        Ok(Basis::Terms(texts.iter().map(compile).collect::<Result<_, _>>()?))
    }
}

impl FitSelector for Regression {
    fn fit(&self, data: &ChoiceSet, _seed: u64) -> Result<Box<dyn Selector>, SelectError> {
        SettingError::check("ridge", self.ridge, self.ridge.is_finite() && self.ridge > 0.0, "positive")?;
        let classes = Classes::winners(data, self.classes)?;
        let basis = self.basis(data)?;
        let log = matches!(basis, Basis::Map(_));
        let mut row = Vec::new();
        let mut sums: Vec<Normal> = Vec::new();
        for case in data.cases() {
            basis.write(&case.features, &mut row);
            if sums.is_empty() {
                sums = vec![Normal::new(row.len()); classes.len()];
            }
            classes.costs(case, |class, cost| {
                let (target, weight) = if log { (cost.ln(), 1.0) } else { (cost, cost.powi(-2)) };
                sums[class].add(&row, target, weight);
            });
        }
        let solve = |n: &Normal| {
            n.solve(self.ridge, log).ok_or_else(|| SelectError::Numeric {
                method: "regression",
                message: "the normal equations have no finite solution".into(),
            })
        };
        // One row a class.
        let coefficients = sums.iter().map(solve).collect::<Result<Vec<_>, _>>()?.concat();
        Ok(Box::new(ClassSelector::new(classes, move |input, row, scores| {
            basis.write(input, row);
            products(&coefficients, row, scores);
        })))
    }
}
