//! Warns of explicit linear steps that grow: von Neumann's test with the run's numbers.
//!
//! An update whose value is a sum of its own field's points times known numbers multiplies a wave of each length by a
//! factor; if a factor exceeds 1 in size, rounding errors grow until nothing else is left. Updates that are not of this
//! form are passed over. Never changes the program and never refuses it.

#[cfg(test)]
mod test;

use rma_source::Diagnostic;

use crate::ir::{
    AXES_MAX, Access, Arithmetic, BinaryOp, Environment, EvalError, ExprId, ExprKind, FieldId, FieldKind,
    Init, LetId, LetKind, Level, ParamId, Program, ReductionId, Scalars, Statement, Type, UnaryOp, Update,
    Value, evaluate,
};
use crate::messages::Code;

/// Points of a constant field that are looked at for its largest value; larger fields are sampled evenly.
const SAMPLES_MAX: usize = 1 << 18;

/// Waves per axis that are tried, from the longest to the shortest, by number of axes.
const WAVES: [usize; AXES_MAX] = [256, 64, 16];

/// Factors this much above 1 are rounding, for two and for three levels (whose factors are roots).
const SLACK: [f64; 2] = [1e-12, 1e-7];

/// A stable `dt` smaller than this share of the program's is none.
const SHARE_MIN: f64 = 1e-4;

/// Warnings for the updates of a run.
pub fn stability(program: &Program, scalars: &Scalars) -> Vec<Diagnostic> {
    let Some(dt) = Step::find(program) else { return Vec::new() };
    let largest: Vec<Option<f64>> =
        (0..program.fields.len()).map(|f| largest(program, scalars, FieldId::new(f))).collect();
    let mut warnings = Vec::new();
    for statement in &program.statements {
        let Statement::Update(update) = statement else { continue };
        warnings.extend(check(program, scalars, &dt, &largest, update));
    }
    warnings
}

/// Where the program's `dt` is.
enum Step {
    Param(ParamId),
    Let(LetId),
}

impl Step {
    fn find(program: &Program) -> Option<Step> {
        let named = program.lets.iter().position(|named| named.name == "dt" && named.kind == LetKind::Static);
        let param = program.params.iter().position(|param| param.name == "dt" && param.ty == Type::F64);
        match (named, param) {
            (Some(named), _) => Some(Step::Let(LetId::new(named))),
            (None, Some(param)) => Some(Step::Param(ParamId::new(param))),
            (None, None) => None,
        }
    }

    fn value(&self, scalars: &Scalars) -> Option<f64> {
        let value = match self {
            Step::Param(id) => Some(scalars.params[id.index()]),
            Step::Let(id) => scalars.lets[id.index()],
        };
        match value {
            Some(Value::F64(value)) => Some(value),
            _ => None,
        }
    }

    /// The scalars with another `dt`, and with the lets that follow from it.
    fn with(&self, program: &Program, scalars: &Scalars, dt: f64) -> Option<Scalars> {
        let mut changed = scalars.clone();
        match self {
            Step::Param(id) => changed.params[id.index()] = Value::F64(dt),
            Step::Let(id) => changed.lets[id.index()] = Some(Value::F64(dt)),
        }
        for (l, named) in program.lets.iter().enumerate() {
            let is_dt = matches!(self, Step::Let(id) if id.index() == l);
            if named.kind == LetKind::Static && !is_dt {
                changed.lets[l] = Some(changed.scalar(program, named.value).ok()?);
            }
        }
        Some(changed)
    }
}

fn check(
    program: &Program,
    scalars: &Scalars,
    step: &Step,
    largest: &[Option<f64>],
    update: &Update,
) -> Option<Diagnostic> {
    let field = &program.fields[update.field.index()];
    if field.levels < 2 || !field.ty.is_real() || update.condition.is_some() || update.colour.is_some() {
        return None;
    }
    let growth = |dt: f64| {
        let changed = step.with(program, scalars, dt)?;
        let form = Linear { program, scalars: &changed, largest, own: update.field }.form(update.value)?;
        Some((form.growth(field.places.len()), form))
    };
    let dt = step.value(scalars)?;
    let slack = SLACK[usize::from(field.levels == 3)];
    let (factor, form) = growth(dt)?;
    // Where `dt` has no part in the factors, there is nothing to choose.
    let (_, other) = growth(dt / 2.0)?;
    if factor <= 1.0 + slack || dt <= 0.0 || !(dt + factor).is_finite() || form.terms == other.terms {
        return None;
    }
    let (mut low, mut high) = (0.0, dt);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        match growth(middle) {
            Some((factor, _)) if factor <= 1.0 + slack => low = middle,
            _ => high = middle,
        }
    }
    let named = match step {
        Step::Param(id) => program.params[id.index()].span,
        Step::Let(id) => program.lets[id.index()].span,
    };
    let found = Code::Unstable
        .error(format!(
            "this step of `{}` is unstable: errors grow by up to {} per step",
            field.name,
            digits(factor)
        ))
        .label(update.span, "explicit and linear")
        .label(named, format!("`dt` is {}", Value::F64(dt)))
        .note(
            "waves of some length are multiplied by more than 1 in each step, so rounding errors take over",
        );
    Some(match low < SHARE_MIN * dt {
        true => {
            found.help("no `dt` makes it stable: change the formula, for example to one-sided differences")
        }
        false => found.help(format!("the largest stable `dt` is about {}", digits(low))),
    })
}

/// Four leading digits, rounded down.
fn digits(value: f64) -> Value {
    let text = format!("{value:.12e}");
    let rounded = text.split_once('e').and_then(|(mantissa, exponent)| {
        let kept: String = mantissa.chars().take("1.234".len()).collect();
        format!("{kept}e{exponent}").parse::<f64>().ok()
    });
    Value::F64(rounded.unwrap_or(value))
}

/// The largest value of a constant field, by absolute value; none if it is read from a file.
fn largest(program: &Program, scalars: &Scalars, id: FieldId) -> Option<f64> {
    let field = &program.fields[id.index()];
    let (FieldKind::Constant, Some((_, Init::Value(value)))) = (field.kind, field.init.first()) else {
        return None;
    };
    let lens = &scalars.lens[id.index()];
    let n_points: usize = lens.iter().product();
    // An odd stride meets every column.
    let stride = (n_points / SAMPLES_MAX) | 1;
    let mut largest: Option<f64> = None;
    for position in (0..n_points).step_by(stride).chain([n_points.checked_sub(1)?]) {
        let mut point = [0; AXES_MAX];
        let mut rest = position;
        for axis in (0..lens.len()).rev() {
            point[axis] = (rest % lens[axis]) as i64;
            rest /= lens[axis];
        }
        let value = match evaluate(&program.exprs, *value, &At { program, scalars, point }).ok()? {
            Value::F64(value) => value,
            Value::F32(value) => f64::from(value),
            Value::I64(value) => value as f64,
            Value::U64(value) => value as f64,
            Value::Bool(_) => return None,
        };
        if largest.is_none_or(|largest| largest.abs() < value.abs()) {
            largest = Some(value);
        }
    }
    largest
}

/// A sum of points times numbers, and whatever does not depend on the field.
#[derive(Clone, Default)]
struct Form {
    terms: Vec<(Level, [i32; AXES_MAX], f64)>,
    /// None if it varies or is not known, which matters only where it is a factor.
    constant: Option<f64>,
}

impl Form {
    fn constant(value: f64) -> Form {
        Form { terms: Vec::new(), constant: Some(value) }
    }

    fn unknown() -> Form {
        Form::default()
    }

    fn scaled(mut self, by: f64) -> Form {
        self.terms.iter_mut().for_each(|(_, _, factor)| *factor *= by);
        self.constant = self.constant.map(|constant| constant * by);
        self
    }

    fn plus(mut self, other: Form) -> Form {
        for (level, offset, factor) in other.terms {
            match self.terms.iter_mut().find(|(l, o, _)| *l == level && *o == offset) {
                Some((_, _, sum)) => *sum += factor,
                None => self.terms.push((level, offset, factor)),
            }
        }
        self.constant = self.constant.zip(other.constant).map(|(a, b)| a + b);
        self
    }

    /// The largest factor over all waves.
    fn growth(&self, n_axes: usize) -> f64 {
        let n = WAVES[n_axes - 1];
        let angle = |k: usize| std::f64::consts::PI * (k as f64 / n as f64);
        let counts: Vec<usize> = (0..AXES_MAX).map(|axis| if axis < n_axes { 2 * n } else { 1 }).collect();
        let mut largest = 0.0f64;
        // Opposite waves have the same factor, so half of the first axis is enough; `n` is the shortest wave.
        for i in 0..=n {
            for j in 0..counts[1] {
                for k in 0..counts[2] {
                    let angles = [angle(i), angle(j), angle(k)];
                    let sum = |level: Level| {
                        let mut sum = (0.0, 0.0);
                        for (_, offset, factor) in self.terms.iter().filter(|(l, _, _)| *l == level) {
                            let phase: f64 =
                                (0..n_axes).map(|axis| angles[axis] * f64::from(offset[axis])).sum();
                            sum = (sum.0 + factor * phase.cos(), sum.1 + factor * phase.sin());
                        }
                        sum
                    };
                    largest = largest.max(root(sum(Level::Now), sum(Level::Prev)));
                }
            }
        }
        largest
    }
}

type Complex = (f64, f64);

/// The larger absolute value of the roots of `x² = a*x + b`.
fn root(a: Complex, b: Complex) -> f64 {
    if b == (0.0, 0.0) {
        return a.0.hypot(a.1);
    }
    let square = (a.0 * a.0 - a.1 * a.1 + 4.0 * b.0, 2.0 * a.0 * a.1 + 4.0 * b.1);
    let size = square.0.hypot(square.1);
    let re = ((size + square.0) / 2.0).max(0.0).sqrt();
    let im = ((size - square.0) / 2.0).max(0.0).sqrt().copysign(square.1);
    let one = ((a.0 + re) / 2.0).hypot((a.1 + im) / 2.0);
    let other = ((a.0 - re) / 2.0).hypot((a.1 - im) / 2.0);
    one.max(other)
}

struct Linear<'a> {
    program: &'a Program,
    scalars: &'a Scalars,
    largest: &'a [Option<f64>],
    own: FieldId,
}

impl Linear<'_> {
    /// None if the expression is not linear in the field, or reads fields that change with it.
    fn form(&self, id: ExprId) -> Option<Form> {
        let expr = &self.program.exprs[id];
        let number = |value: Value| match value {
            Value::F64(value) => Form::constant(value),
            Value::F32(value) => Form::constant(f64::from(value)),
            Value::I64(value) => Form::constant(value as f64),
            _ => Form::unknown(),
        };
        Some(match expr.kind {
            ExprKind::Real(value) => Form::constant(value),
            ExprKind::Int(value) => Form::constant(value as f64),
            ExprKind::Param(id) => number(self.scalars.params[id.index()]),
            ExprKind::Let(id) => self.scalars.lets[id.index()].map_or(Form::unknown(), number),
            ExprKind::Access(access) if access.field == self.own => {
                Form { terms: vec![(access.level, access.offset, 1.0)], constant: Some(0.0) }
            }
            ExprKind::Access(access) => match self.program.fields[access.field.index()].kind {
                FieldKind::Constant => {
                    Form { terms: Vec::new(), constant: self.largest[access.field.index()] }
                }
                FieldKind::Evolving => return None,
            },
            ExprKind::Cast(a) => self.form(a)?,
            ExprKind::Unary(UnaryOp::Neg, a) => self.form(a)?.scaled(-1.0),
            ExprKind::Binary(BinaryOp::Add, a, b) => self.form(a)?.plus(self.form(b)?),
            ExprKind::Binary(BinaryOp::Sub, a, b) => self.form(a)?.plus(self.form(b)?.scaled(-1.0)),
            ExprKind::Binary(BinaryOp::Mul, a, b) => {
                let (a, b) = (self.form(a)?, self.form(b)?);
                match (a.terms.is_empty(), b.terms.is_empty()) {
                    (true, true) => {
                        Form { terms: Vec::new(), constant: a.constant.zip(b.constant).map(|(a, b)| a * b) }
                    }
                    (true, false) => b.scaled(a.constant?),
                    (false, true) => a.scaled(b.constant?),
                    (false, false) => return None,
                }
            }
            ExprKind::Binary(BinaryOp::Div, a, b) => {
                let (a, b) = (self.form(a)?, self.form(b)?);
                match (a.terms.is_empty(), b.terms.is_empty()) {
                    (true, true) => {
                        Form { terms: Vec::new(), constant: a.constant.zip(b.constant).map(|(a, b)| a / b) }
                    }
                    (false, true) => a.scaled(1.0 / b.constant?),
                    (_, false) => return None,
                }
            }
            ExprKind::Power(a, exponent) => {
                let a = self.form(a)?;
                match a.terms.is_empty() {
                    true => Form { terms: Vec::new(), constant: a.constant.map(|a| a.powi(exponent as i32)) },
                    false => return None,
                }
            }
            // Anything else is known or unknown as a whole, as long as the field has no part in it.
            _ => {
                for access in self.program.exprs.accesses(id) {
                    if self.program.fields[access.field.index()].kind == FieldKind::Evolving {
                        return None;
                    }
                }
                let mut is_static = true;
                self.program.exprs.visit(id, |_, expr| {
                    is_static &= match expr.kind {
                        ExprKind::Let(id) => self.scalars.lets[id.index()].is_some(),
                        ExprKind::Index(_)
                        | ExprKind::Step
                        | ExprKind::Time
                        | ExprKind::Access(_)
                        | ExprKind::Reduction(_)
                        | ExprKind::Known(_) => false,
                        _ => true,
                    };
                });
                match is_static {
                    true => self.scalars.scalar(self.program, id).map_or(Form::unknown(), number),
                    false => Form::unknown(),
                }
            }
        })
    }
}

/// A point at the start.
struct At<'a> {
    program: &'a Program,
    scalars: &'a Scalars,
    point: [i64; AXES_MAX],
}

impl Environment for At<'_> {
    fn param(&self, id: ParamId) -> Value {
        self.scalars.params[id.index()]
    }

    fn named(&self, id: LetId) -> Value {
        self.scalars.lets[id.index()].unwrap_or(Value::zero(self.program.lets[id.index()].ty))
    }

    fn reduction(&self, _: ReductionId) -> Option<Value> {
        None
    }

    fn reduction_type(&self, id: ReductionId) -> Type {
        self.program.reductions[id.index()].ty
    }

    fn index(&self, axis: usize) -> i64 {
        self.point[axis]
    }

    fn step(&self) -> i64 {
        0
    }

    fn time(&self) -> f64 {
        0.0
    }

    fn access(&self, _: &Access) -> Result<Value, EvalError> {
        // Initial values read no fields; the verifier sees to that.
        Err(EvalError { what: Arithmetic::DivisionByZero, at: ExprId(0) })
    }
}
