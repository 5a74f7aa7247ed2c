//! Parameters and constraints as data.

use super::LegalError;
use std::fmt;
use std::sync::Arc;
use tilewright_core::expr::{Compiled, EvalError, Expr, Val};
use tilewright_core::space::{BoundSpace, Param, ParamSpace, Point, RuleGroup, Symbols};

/// What a constraint asks.
pub(super) type Closure = Arc<dyn Fn(&[Val<'_>]) -> bool + Send + Sync>;

/// A test as an expression (`E`), or as a closure over parameters (`A`), in the order of its arguments.
#[derive(Clone)]
pub(super) enum Test<E, A> {
    Expr(E),
    Closure(Closure, Vec<A>),
}

impl Test<Compiled, usize> {
    /// The truth at the values of so many parameters, which an expression takes in their order.
    pub(super) fn holds<'v>(&'v self, params: usize, value: impl Fn(usize) -> Val<'v>) -> Result<bool, EvalError> {
        match self {
            Self::Expr(compiled) => compiled.holds(&(0..params).map(value).collect::<Vec<_>>()),
            Self::Closure(holds, places) => Ok(holds(&places.iter().map(|&p| value(p)).collect::<Vec<_>>())),
        }
    }
}

/// Something that a legal point obeys.
#[derive(Clone)]
pub struct Constraint {
    /// Short name, or the text.
    pub name: String,
    /// Where it comes from, as BACUGen groups constraints.
    pub group: RuleGroup,
    pub(super) test: Test<Expr, String>,
}

impl Constraint {
    /// The expression, where it is not a closure.
    pub fn expr(&self) -> Option<&Expr> {
        if let Test::Expr(e) = &self.test { Some(e) } else { None }
    }
}

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.test {
            Test::Expr(e) => write!(f, "{}: {e}", self.name),
            Test::Closure(_, names) => write!(f, "{}: a closure over {}", self.name, names.join(", ")),
        }
    }
}

/// A type that closures take parameters as.
pub trait FromVal: Sized {
    /// The value, if it is of this type.
    fn from_val(value: Val<'_>) -> Option<Self>;
}

impl FromVal for i64 {
    fn from_val(value: Val<'_>) -> Option<Self> {
        value.as_integer()
    }
}

impl FromVal for f64 {
    fn from_val(value: Val<'_>) -> Option<Self> {
        value.as_f64()
    }
}

impl FromVal for bool {
    fn from_val(value: Val<'_>) -> Option<Self> {
        if let Val::Bool(b) = value { Some(b) } else { None }
    }
}

impl FromVal for String {
    fn from_val(value: Val<'_>) -> Option<Self> {
        if let Val::Str(s) = value { Some(s.to_owned()) } else { None }
    }
}

/// Parameters and the constraints on them: what [`super::LegalSet::new`] builds from.
#[derive(Clone, Debug, Default)]
pub struct Description {
    pub(super) params: Vec<Param>,
    pub(super) constraints: Vec<Constraint>,
    pub(super) listed: Option<Arc<[Point]>>,
    /// A constraint without a value does not hold; otherwise it is a fault.
    pub(super) lenient: bool,
}

impl Description {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The parameters, in index order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The constraints.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// Lets a constraint without a value (a division by zero) be one that does not hold, as core's rules do. Otherwise it
    /// is an error wherever no other constraint is false, as [`LegalSet`](super::LegalSet) says.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Adds a parameter. Of equal values the first stays.
    #[must_use]
    pub fn param(mut self, mut param: Param) -> Self {
        let mut seen = std::collections::BTreeSet::new();
        param.values.retain(|v| seen.insert(v.as_val().to_string()));
        self.params.push(param);
        self
    }

    /// Adds a constraint as text, named by it.
    ///
    /// # Errors
    /// A text that does not parse.
    pub fn constraint(self, text: &str) -> Result<Self, LegalError> {
        let expr: Expr = text.parse().map_err(|error| LegalError::Parse { constraint: text.to_owned(), error })?;
        Ok(self.rule(text, RuleGroup::User, expr))
    }

    /// The same space in core's terms, for samplers that draw candidates. Closures have no such form.
    ///
    /// # Errors
    /// As [`super::LegalSet::new`], or a closure.
    pub fn to_core(&self) -> Result<(ParamSpace, BoundSpace), LegalError> {
        let mut builder = ParamSpace::builder().params(self.params.iter().cloned());
        for c in &self.constraints {
            let Test::Expr(e) = &c.test else { return Err(LegalError::Closure(c.name.clone())) };
            builder = builder.rule(&c.name, c.group, &e.to_string(), "");
        }
        let space = builder.build()?;
        let bound = space.bind(&Symbols::new())?;
        Ok((space, bound))
    }

    /// Adds a constraint as an expression.
    #[must_use]
    pub fn rule(mut self, name: &str, group: RuleGroup, expr: Expr) -> Self {
        self.constraints.push(Constraint { name: name.to_owned(), group, test: Test::Expr(expr) });
        self
    }

    /// Adds a constraint as a closure over named parameters, whose values must be of its type; others do not hold.
    ///
    /// A closure is evaluated for every combination of its parameters that other constraints leave. An expression is
    /// taken apart and shared, so that it costs less.
    #[must_use]
    pub fn closure<T: FromVal + 'static, const N: usize>(
        mut self,
        name: &str,
        params: [&str; N],
        holds: impl Fn([T; N]) -> bool + Send + Sync + 'static,
    ) -> Self {
        let typed = move |values: &[Val<'_>]| {
            let typed: Option<Vec<T>> = values.iter().map(|&v| T::from_val(v)).collect();
            typed.and_then(|v| <[T; N]>::try_from(v).ok()).is_some_and(&holds)
        };
        let names = params.iter().map(|p| (*p).to_owned()).collect();
        let test = Test::Closure(Arc::new(typed), names);
        self.constraints.push(Constraint { name: name.to_owned(), group: RuleGroup::User, test });
        self
    }
}

impl From<&BoundSpace> for Description {
    /// The parameters and rules of a kernel's space for one device and input.
    fn from(space: &BoundSpace) -> Self {
        let params = space.params().to_vec();
        if let Some(points) = space.listed_points() {
            return Self { params, constraints: Vec::new(), listed: Some(points.into()), lenient: true };
        }
        let symbol = |name: &str| {
            let hidden = params.iter().any(|p| p.name == name);
            if hidden { None } else { space.symbols().get(name).cloned() }
        };
        let constraint = |rule: &tilewright_core::space::Rule| Constraint {
            name: rule.name.clone(),
            group: rule.group,
            test: Test::Expr(rule.expr.fold(&symbol)),
        };
        let constraints = space.rules().iter().map(constraint).collect();
        Self { params, constraints, listed: None, lenient: true }
    }
}
