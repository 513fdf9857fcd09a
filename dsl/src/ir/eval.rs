//! Values, the arithmetic of the language, and the scalars that are known at start.
//!
//! The reference for every back end: what an operator does is what it does here. Never reassociates and never fuses.

use rma_source::Diagnostic;

use super::{
    AXES_MAX, Access, BinaryOp, Call, CompareOp, End, ExprId, ExprKind, Exprs, Field, LetId, LetKind,
    ParamId, Program, ReductionId, Side, SideRule, Statement, Type, UnaryOp, When,
};
use crate::messages::{Code, did_you_mean};

/// A number or a condition.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// A condition.
    Bool(bool),
    /// An integer.
    I64(i64),
    /// A word.
    U64(u64),
    /// A short real.
    F32(f32),
    /// A real.
    F64(f64),
}

impl Value {
    /// Its type.
    pub fn ty(self) -> Type {
        match self {
            Value::Bool(_) => Type::Bool,
            Value::I64(_) => Type::I64,
            Value::U64(_) => Type::U64,
            Value::F32(_) => Type::F32,
            Value::F64(_) => Type::F64,
        }
    }

    /// Zero of a type (false for conditions).
    pub fn zero(ty: Type) -> Value {
        match ty {
            Type::Bool => Value::Bool(false),
            Type::I64 => Value::I64(0),
            Type::U64 => Value::U64(0),
            Type::F32 => Value::F32(0.0),
            Type::F64 => Value::F64(0.0),
        }
    }

    /// The condition.
    ///
    /// # Panics
    /// If it is a number; the verifier rules that out where this is called.
    pub fn bool(self) -> bool {
        match self {
            Value::Bool(value) => value,
            other => panic!("a condition is expected, not {other:?}"),
        }
    }

    /// The integer.
    ///
    /// # Panics
    /// If it is not an [`Type::I64`].
    pub fn i64(self) -> i64 {
        match self {
            Value::I64(value) => value,
            other => panic!("an integer is expected, not {other:?}"),
        }
    }

    /// The real.
    ///
    /// # Panics
    /// If it is not an [`Type::F64`].
    pub fn f64(self) -> f64 {
        match self {
            Value::F64(value) => value,
            other => panic!("a real is expected, not {other:?}"),
        }
    }

    /// Whether it is neither NaN nor infinite.
    pub fn is_finite(self) -> bool {
        match self {
            Value::F32(value) => value.is_finite(),
            Value::F64(value) => value.is_finite(),
            Value::Bool(_) | Value::I64(_) | Value::U64(_) => true,
        }
    }

    /// Calls `take` with the value's little-endian bytes.
    pub fn bytes(self, mut take: impl FnMut(u8)) {
        match self {
            Value::Bool(value) => take(u8::from(value)),
            Value::I64(value) => value.to_le_bytes().into_iter().for_each(take),
            Value::U64(value) => value.to_le_bytes().into_iter().for_each(take),
            Value::F32(value) => value.to_le_bytes().into_iter().for_each(take),
            Value::F64(value) => value.to_le_bytes().into_iter().for_each(take),
        }
    }
}

/// Shortest decimal that reads back to itself; reals look as in Python (`1.0`, `1e-05`, `inf`, `nan`).
impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::I64(value) => write!(f, "{value}"),
            Value::U64(value) => write!(f, "{value}"),
            Value::F32(value) => real(f, format!("{value:e}"), value.is_nan()),
            Value::F64(value) => real(f, format!("{value:e}"), value.is_nan()),
        }
    }
}

/// Lays out the digits of `scientific` (such as `-9.99e-5`) with an exponent only below 1e-4 and from 1e16 on.
fn real(f: &mut std::fmt::Formatter<'_>, scientific: String, is_nan: bool) -> std::fmt::Result {
    if is_nan {
        return f.write_str("nan");
    }
    let (sign, rest) = match scientific.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", scientific.as_str()),
    };
    let Some((mantissa, exponent)) = rest.split_once('e') else { return write!(f, "{sign}{rest}") };
    let exponent: i32 = exponent.parse().expect("the standard library writes a decimal exponent");
    let digits = mantissa.replace('.', "");
    match exponent {
        -4..0 => write!(f, "{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize)),
        0..16 => {
            let whole = exponent as usize + 1;
            match digits.len() <= whole {
                true => write!(f, "{sign}{digits}{}.0", "0".repeat(whole - digits.len())),
                false => write!(f, "{sign}{}.{}", &digits[..whole], &digits[whole..]),
            }
        }
        _ => {
            let mark = if exponent < 0 { '-' } else { '+' };
            write!(f, "{sign}{mantissa}e{mark}{:02}", exponent.unsigned_abs())
        }
    }
}

/// What ends a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arithmetic {
    /// `div` or `mod` by the integer 0.
    DivisionByZero,
    /// A shift by 64 or more, or by a negative number.
    ShiftTooFar,
}

impl std::fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Arithmetic::DivisionByZero => "integer division by 0",
            Arithmetic::ShiftTooFar => "a shift must be by 0 to 63",
        })
    }
}

/// An arithmetic error and the node where it arose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EvalError {
    /// What went wrong.
    pub what: Arithmetic,
    /// Where.
    pub at: ExprId,
}

/// What an expression may look at.
pub trait Environment {
    /// A parameter's value.
    fn param(&self, id: ParamId) -> Value;
    /// A named scalar's value.
    fn named(&self, id: LetId) -> Value;
    /// A reduction's last value; `None` before it has run.
    fn reduction(&self, id: ReductionId) -> Option<Value>;
    /// Type of a reduction.
    fn reduction_type(&self, id: ReductionId) -> Type;
    /// Global stored index along an axis.
    fn index(&self, axis: usize) -> i64;
    /// Completed steps.
    fn step(&self) -> i64;
    /// Time.
    fn time(&self) -> f64;
    /// A field's value.
    fn access(&self, access: &Access) -> Result<Value, EvalError>;
}

/// The value of an expression.
pub fn evaluate(exprs: &Exprs, id: ExprId, env: &impl Environment) -> Result<Value, EvalError> {
    let expr = &exprs[id];
    let value = |operand| evaluate(exprs, operand, env);
    let fail = |what| EvalError { what, at: id };
    Ok(match expr.kind {
        ExprKind::Real(number) => match expr.ty {
            Type::F32 => Value::F32(number as f32),
            _ => Value::F64(number),
        },
        ExprKind::Int(number) => Value::I64(number),
        ExprKind::Word(number) => Value::U64(number),
        ExprKind::Bool(number) => Value::Bool(number),
        ExprKind::Param(param) => env.param(param),
        ExprKind::Let(named) => env.named(named),
        ExprKind::Reduction(id) => env.reduction(id).unwrap_or(Value::zero(env.reduction_type(id))),
        ExprKind::Known(id) => Value::Bool(env.reduction(id).is_some()),
        ExprKind::Index(axis) => Value::I64(env.index(axis)),
        ExprKind::Step => Value::I64(env.step()),
        ExprKind::Time => Value::F64(env.time()),
        ExprKind::Access(ref access) => env.access(access)?,
        ExprKind::Cast(a) => cast(value(a)?, expr.ty),
        ExprKind::Unary(op, a) => apply_unary(op, value(a)?),
        ExprKind::Binary(op, a, b) => apply_binary(op, value(a)?, value(b)?).map_err(fail)?,
        ExprKind::Power(a, exponent) => powi(value(a)?, exponent),
        ExprKind::Call(call, a) => apply_call(call, value(a)?),
        ExprKind::Compare(op, a, b) => Value::Bool(compare(op, value(a)?, value(b)?)),
        ExprKind::And(a, b) => Value::Bool(value(a)?.bool() && value(b)?.bool()),
        ExprKind::Or(a, b) => Value::Bool(value(a)?.bool() || value(b)?.bool()),
        ExprKind::Select(a, b, c) => match value(a)?.bool() {
            true => value(b)?,
            false => value(c)?,
        },
    })
}

/// Converts between numeric types.
pub fn cast(value: Value, ty: Type) -> Value {
    match (value, ty) {
        (Value::I64(v), Type::I64) => Value::I64(v),
        (Value::I64(v), Type::U64) => Value::U64(v as u64),
        (Value::I64(v), Type::F32) => Value::F32(v as f32),
        (Value::I64(v), Type::F64) => Value::F64(v as f64),
        (Value::U64(v), Type::I64) => Value::I64(v as i64),
        (Value::U64(v), Type::U64) => Value::U64(v),
        (Value::U64(v), Type::F32) => Value::F32(v as f32),
        (Value::U64(v), Type::F64) => Value::F64(v as f64),
        (Value::F32(v), Type::I64) => Value::I64(v as i64),
        (Value::F32(v), Type::U64) => Value::U64(v as u64),
        (Value::F32(v), Type::F32) => Value::F32(v),
        (Value::F32(v), Type::F64) => Value::F64(f64::from(v)),
        (Value::F64(v), Type::I64) => Value::I64(v as i64),
        (Value::F64(v), Type::U64) => Value::U64(v as u64),
        (Value::F64(v), Type::F32) => Value::F32(v as f32),
        (Value::F64(v), Type::F64) => Value::F64(v),
        (value, ty) => panic!("the verifier rules out converting {value:?} to {ty:?}"),
    }
}

/// Applies an operator with one operand.
pub fn apply_unary(op: UnaryOp, a: Value) -> Value {
    match (op, a) {
        (UnaryOp::Neg, Value::I64(a)) => Value::I64(a.wrapping_neg()),
        (UnaryOp::Neg, Value::U64(a)) => Value::U64(a.wrapping_neg()),
        (UnaryOp::Neg, Value::F32(a)) => Value::F32(-a),
        (UnaryOp::Neg, Value::F64(a)) => Value::F64(-a),
        (UnaryOp::Not, Value::Bool(a)) => Value::Bool(!a),
        (UnaryOp::BitNot, Value::I64(a)) => Value::I64(!a),
        (UnaryOp::BitNot, Value::U64(a)) => Value::U64(!a),
        (op, a) => panic!("the verifier rules out {op:?} of {a:?}"),
    }
}

/// Applies an operator with two operands of one type.
pub fn apply_binary(op: BinaryOp, a: Value, b: Value) -> Result<Value, Arithmetic> {
    Ok(match (a, b) {
        (Value::I64(a), Value::I64(b)) => Value::I64(match op {
            BinaryOp::Add => a.wrapping_add(b),
            BinaryOp::Sub => a.wrapping_sub(b),
            BinaryOp::Mul => a.wrapping_mul(b),
            BinaryOp::FloorDiv | BinaryOp::Mod if b == 0 => return Err(Arithmetic::DivisionByZero),
            BinaryOp::FloorDiv => {
                let rounds_up = a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
                a.wrapping_div(b) - i64::from(rounds_up)
            }
            BinaryOp::Mod => {
                let rest = a.wrapping_rem(b);
                if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
            }
            BinaryOp::Min => a.min(b),
            BinaryOp::Max => a.max(b),
            BinaryOp::BitAnd => a & b,
            BinaryOp::BitOr => a | b,
            BinaryOp::BitXor => a ^ b,
            BinaryOp::Shl | BinaryOp::Shr if !(0..64).contains(&b) => return Err(Arithmetic::ShiftTooFar),
            BinaryOp::Shl => a << b,
            BinaryOp::Shr => a >> b,
            BinaryOp::Div | BinaryOp::Pow => panic!("the verifier rules out {op:?} of integers"),
        }),
        (Value::U64(a), Value::U64(b)) => Value::U64(match op {
            BinaryOp::Add => a.wrapping_add(b),
            BinaryOp::Sub => a.wrapping_sub(b),
            BinaryOp::Mul => a.wrapping_mul(b),
            BinaryOp::FloorDiv => a.checked_div(b).ok_or(Arithmetic::DivisionByZero)?,
            BinaryOp::Mod => a.checked_rem(b).ok_or(Arithmetic::DivisionByZero)?,
            BinaryOp::Min => a.min(b),
            BinaryOp::Max => a.max(b),
            BinaryOp::BitAnd => a & b,
            BinaryOp::BitOr => a | b,
            BinaryOp::BitXor => a ^ b,
            BinaryOp::Shl | BinaryOp::Shr if 64 <= b => return Err(Arithmetic::ShiftTooFar),
            BinaryOp::Shl => a << b,
            BinaryOp::Shr => a >> b,
            BinaryOp::Div | BinaryOp::Pow => panic!("the verifier rules out {op:?} of words"),
        }),
        (Value::F32(a), Value::F32(b)) => Value::F32(match op {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
            BinaryOp::Div => a / b,
            BinaryOp::FloorDiv => (a / b).floor(),
            BinaryOp::Mod => {
                let rest = a % b;
                if rest < 0.0 { rest + b } else { rest }
            }
            // Both orders are exact, so going through f64 changes nothing.
            BinaryOp::Min => minimum(a.into(), b.into()) as f32,
            BinaryOp::Max => maximum(a.into(), b.into()) as f32,
            _ => panic!("the verifier rules out {op:?} of short reals"),
        }),
        (Value::F64(a), Value::F64(b)) => Value::F64(match op {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
            BinaryOp::Div => a / b,
            BinaryOp::FloorDiv => (a / b).floor(),
            BinaryOp::Mod => {
                let rest = a % b;
                if rest < 0.0 { rest + b } else { rest }
            }
            BinaryOp::Min => minimum(a, b),
            BinaryOp::Max => maximum(a, b),
            BinaryOp::Pow => a.powf(b),
            _ => panic!("the verifier rules out {op:?} of reals"),
        }),
        (a, b) => panic!("the verifier rules out {op:?} of {a:?} and {b:?}"),
    })
}

/// The smaller; −0 is below +0; NaN if either is.
pub fn minimum(a: f64, b: f64) -> f64 {
    match () {
        () if a.is_nan() => a,
        () if b.is_nan() => b,
        () if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        () => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

/// The larger; −0 is below +0; NaN if either is.
pub fn maximum(a: f64, b: f64) -> f64 {
    match () {
        () if a.is_nan() => a,
        () if b.is_nan() => b,
        () if a == b => {
            if a.is_sign_negative() {
                b
            } else {
                a
            }
        }
        () => {
            if a < b {
                b
            } else {
                a
            }
        }
    }
}

/// `((a*a)*a)*…`, `exponent` at least 1.
pub fn powi(a: Value, exponent: u32) -> Value {
    let mut product = a;
    for _ in 1..exponent {
        product = apply_binary(BinaryOp::Mul, product, a).expect("a product has no arithmetic error");
    }
    product
}

/// Applies a function.
pub fn apply_call(call: Call, a: Value) -> Value {
    match (call, a) {
        (Call::Abs, Value::I64(a)) => Value::I64(a.wrapping_abs()),
        (Call::Abs, Value::U64(a)) => Value::U64(a),
        (Call::Abs, Value::F32(a)) => Value::F32(a.abs()),
        (Call::Abs, Value::F64(a)) => Value::F64(a.abs()),
        (Call::Sign, Value::I64(a)) => Value::I64(a.signum()),
        (Call::Sign, Value::U64(a)) => Value::U64(a.min(1)),
        (Call::Sign, Value::F32(a)) => Value::F32(sign(a.into()) as f32),
        (Call::Sign, Value::F64(a)) => Value::F64(sign(a)),
        (call, Value::F64(a)) => Value::F64(match call {
            Call::Exp => a.exp(),
            Call::Log => a.ln(),
            Call::Sqrt => a.sqrt(),
            Call::Sin => a.sin(),
            Call::Cos => a.cos(),
            Call::Tan => a.tan(),
            Call::Floor => a.floor(),
            Call::Abs | Call::Sign => unreachable!("handled above"),
        }),
        (call, a) => panic!("the verifier rules out {call:?} of {a:?}"),
    }
}

fn sign(a: f64) -> f64 {
    match () {
        () if a.is_nan() => a,
        () if 0.0 < a => 1.0,
        () if a < 0.0 => -1.0,
        () => 0.0,
    }
}

/// Compares two values of one type.
pub fn compare(op: CompareOp, a: Value, b: Value) -> bool {
    fn by<T: PartialOrd>(op: CompareOp, a: T, b: T) -> bool {
        match op {
            CompareOp::Eq => a == b,
            CompareOp::Ne => a != b,
            CompareOp::Lt => a < b,
            CompareOp::Le => a <= b,
            CompareOp::Gt => a > b,
            CompareOp::Ge => a >= b,
        }
    }
    match (a, b) {
        (Value::I64(a), Value::I64(b)) => by(op, a, b),
        (Value::U64(a), Value::U64(b)) => by(op, a, b),
        (Value::F32(a), Value::F32(b)) => by(op, a, b),
        (Value::F64(a), Value::F64(b)) => by(op, a, b),
        (a, b) => panic!("the verifier rules out comparing {a:?} with {b:?}"),
    }
}

/// One `--set NAME=VALUE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The parameter.
    pub name: String,
    /// A decimal number.
    pub value: String,
}

/// Parameters, static lets and grid sizes of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Scalars {
    /// By [`ParamId`].
    pub params: Vec<Value>,
    /// By [`LetId`]; `None` for per-step ones.
    pub lets: Vec<Option<Value>>,
    /// Stored points per axis, by field.
    pub lens: Vec<Vec<usize>>,
}

/// Points of one field that a run may ask for.
pub const POINTS_MAX: u64 = 1 << 40;

impl Scalars {
    /// Evaluates everything that is known at start and checks ranges, sizes and intervals; all problems are reported.
    pub fn evaluate(program: &Program, settings: &[Setting]) -> Result<Scalars, Vec<Diagnostic>> {
        let mut problems = Vec::new();
        for setting in settings {
            if !program.params.iter().any(|param| param.name == setting.name) {
                let names = program.params.iter().map(|param| param.name.as_str());
                let mut problem =
                    Code::UnknownSetting.error(format!("there is no parameter `{}` to set", setting.name));
                if let Some(named) = program.lets.iter().find(|named| named.name == setting.name) {
                    problem = problem.label(named.span, "declared here").help(format!(
                        "`{}` is computed by a `let`; change the parameters it depends on",
                        setting.name
                    ));
                } else if let Some(name) = did_you_mean(&setting.name, names.clone()) {
                    problem = problem.help(format!("did you mean `--set {name}={}`?", setting.value));
                }
                let list: Vec<String> = names.map(|name| format!("`{name}`")).collect();
                problems.push(problem.note(match list.is_empty() {
                    true => String::from("the program declares no parameters"),
                    false => format!("the program declares {}", list.join(", ")),
                }));
            }
        }
        let mut scalars = Scalars { params: Vec::new(), lets: Vec::new(), lens: Vec::new() };
        // Parameters and lets may use each other's earlier ones, and ids grow with the text; a default that uses a
        // let is evaluated with the lets before it.
        scalars.lets = vec![None; program.lets.len()];
        for param in &program.params {
            scalars.fill_lets(program, scalars.params.len(), &mut problems);
            let written = settings.iter().rev().find(|setting| setting.name == param.name);
            let value = match written {
                Some(setting) => match parse_setting(&setting.value, param.ty) {
                    Ok(value) => value,
                    Err(why) => {
                        let default = scalars.value(program, param.default, &mut problems);
                        problems.push(
                            Code::SettingNotANumber
                                .error(format!(
                                    "`--set {}={}` is not possible: {why}",
                                    setting.name, setting.value
                                ))
                                .label(param.span, format!("`{}` is declared here", param.name))
                                .note("values are decimal numbers, such as 64, 0.5 or 1e-6")
                                .help(format!("write for example `--set {}={default}`", param.name)),
                        );
                        default
                    }
                },
                None => scalars.value(program, param.default, &mut problems),
            };
            scalars.params.push(value);
            let check = |bound: Option<ExprId>, op: CompareOp, word: &str, problems: &mut Vec<Diagnostic>| {
                let Some(bound) = bound else { return };
                let limit = scalars.value(program, bound, problems);
                if !compare(op, value, limit) {
                    let source = match written {
                        Some(_) => "given by --set",
                        None => "the default",
                    };
                    problems.push(
                        Code::ParamOutOfRange
                            .error(format!("`{}` is {value}, which is {word} {limit}", param.name))
                            .label(program.exprs[bound].span, "the range is declared here")
                            .note(format!("the value is {source}"))
                            .help(format!(
                                "choose a value within the range, for example `--set {}={limit}`",
                                param.name
                            )),
                    );
                }
            };
            check(param.min, CompareOp::Ge, "below the smallest allowed value", &mut problems);
            check(param.max, CompareOp::Le, "above the largest allowed value", &mut problems);
        }
        scalars.fill_lets(program, program.params.len(), &mut problems);
        if problems.is_empty() {
            scalars.check_sizes(program, &mut problems);
        }
        if problems.is_empty() {
            scalars.check_intervals(program, &mut problems);
            scalars.check_positions(program, &mut problems);
        }
        match problems.is_empty() {
            true => Ok(scalars),
            false => Err(problems),
        }
    }

    /// The value of a static scalar.
    ///
    /// # Errors
    /// Integer division by zero and shifts that go too far.
    pub fn scalar(&self, program: &Program, id: ExprId) -> Result<Value, EvalError> {
        evaluate(&program.exprs, id, &Static { scalars: self, program, point: [0; AXES_MAX] })
    }

    /// The value of a static scalar that [`Scalars::evaluate`] has already checked.
    ///
    /// # Panics
    /// On an arithmetic error.
    pub fn checked(&self, program: &Program, id: ExprId) -> Value {
        self.scalar(program, id).expect("checked at start")
    }

    fn value(&self, program: &Program, id: ExprId, problems: &mut Vec<Diagnostic>) -> Value {
        match self.scalar(program, id) {
            Ok(value) => value,
            Err(EvalError { what, at }) => {
                let found = Code::ArithmeticAtStart
                    .error(format!("{what}, before the first step"))
                    .label(program.exprs[at].span, "here")
                    .note("parameters, lets and sizes are computed at start")
                    .help("change the expression, or the value of a parameter in it");
                if !problems.contains(&found) {
                    problems.push(found);
                }
                Value::zero(program.exprs[id].ty)
            }
        }
    }

    /// Evaluates the static lets that use the first `n_params` parameters only.
    fn fill_lets(&mut self, program: &Program, n_params: usize, problems: &mut Vec<Diagnostic>) {
        for (i, named) in program.lets.iter().enumerate() {
            if named.kind != LetKind::Static || self.lets[i].is_some() {
                continue;
            }
            let mut is_ready = true;
            program.exprs.visit(named.value, |_, expr| match expr.kind {
                ExprKind::Param(id) => is_ready &= id.index() < n_params,
                ExprKind::Let(id) => is_ready &= self.lets[id.index()].is_some(),
                _ => {}
            });
            if is_ready {
                self.lets[i] = Some(self.value(program, named.value, problems));
            }
        }
    }

    fn check_sizes(&mut self, program: &Program, problems: &mut Vec<Diagnostic>) {
        for field in &program.fields {
            let mut lens = Vec::new();
            let mut n_points = 1u64;
            for (axis, &len) in field.lens.iter().enumerate() {
                let n = self.value(program, len, problems).i64();
                // Rules that fold back inside need the points that they fold onto.
                let folds = [End::Low, End::High]
                    .iter()
                    .any(|&end| matches!(field.rule(Side { axis, end }), SideRule::Mirror));
                let reach = match folds {
                    true => field.halo.get(axis).map_or(0, |extent| extent.lo.max(extent.hi)),
                    false => 0,
                };
                let least = 1 + i64::from(reach);
                let grid = &program.grids[field.grid.index()];
                let written = program.exprs[grid.axes[axis].len].span;
                if n < least {
                    problems.push(
                        Code::GridTooSmall
                            .error(format!(
                                "`{}` has {n} points along axis `{}`",
                                field.name, grid.axes[axis].index
                            ))
                            .label(written, format!("this gives {n} points"))
                            .note(match reach {
                                0 => String::from("every axis needs at least one point"),
                                _ => format!(
                                    "an access reaches {reach} points beyond a mirror, which needs at least {least}"
                                ),
                            })
                            .help("choose more points"),
                    );
                }
                n_points = n_points.saturating_mul(n.max(1) as u64);
                lens.push(n.max(0) as usize);
            }
            self.check_colours(program, field, &lens, problems);
            if POINTS_MAX < n_points {
                problems.push(
                    Code::GridTooLarge
                        .error(format!("`{}` would have {n_points} points", field.name))
                        .label(field.span, "declared here")
                        .note(format!("the limit is {POINTS_MAX}"))
                        .help("choose fewer points"),
                );
            }
            self.lens.push(lens);
        }
    }

    /// Around a periodic axis colours alternate only if its length is even.
    fn check_colours(
        &self,
        program: &Program,
        field: &Field,
        lens: &[usize],
        problems: &mut Vec<Diagnostic>,
    ) {
        let updates = program.statements.iter().flat_map(Statement::updates);
        for update in updates.filter(|update| update.colour.is_some()) {
            let same = std::ptr::eq(&program.fields[update.field.index()], field);
            if !same || field.levels != 1 {
                continue;
            }
            let reads = update.reads.iter().filter(|access| access.field == update.field);
            let odd = reads.flat_map(|access| {
                (0..lens.len()).filter(|&axis| {
                    access.offset[axis] != 0 && field.is_periodic(axis) && lens[axis] % 2 == 1
                })
            });
            if let Some(axis) = odd.min() {
                let index = &program.grids[field.grid.index()].axes[axis].index;
                problems.push(
                    Code::OwnColour
                        .error(format!(
                            "`{}` has an odd number of points around the axis `{index}`",
                            field.name
                        ))
                        .label(update.target, "a coloured update in place")
                        .label(field.span, format!("{} points, periodic", lens[axis]))
                        .note("the first and the last point are neighbours and have the same colour")
                        .help("choose an even number of points, or declare two levels"),
                );
            }
        }
    }

    /// Probes and sources lie between the first and the last point of each axis.
    fn check_positions(&self, program: &Program, problems: &mut Vec<Diagnostic>) {
        let probes = program.probes.iter().map(|probe| ("probe", probe.field, &probe.position));
        let sources = program.sources.iter().map(|source| ("source", source.field, &source.position));
        for (what, id, position) in probes.chain(sources) {
            let field = &program.fields[id.index()];
            for (axis, &wanted) in position.iter().enumerate() {
                let coordinate = |index: i64| {
                    let mut at = Static { scalars: self, program, point: [0; AXES_MAX] };
                    at.point[axis] = index;
                    evaluate(&program.exprs, field.positions[axis], &at)
                };
                let ends = (coordinate(0), coordinate(self.lens[id.index()][axis] as i64 - 1));
                let (Ok(first), Ok(last)) = ends else { continue };
                let (first, last) = (first.f64(), last.f64());
                let at = self.value(program, wanted, problems).f64();
                if first.min(last) <= at && at <= first.max(last) {
                    continue;
                }
                // Beyond a side with a rule the nearest point stands for what lies there.
                let end = match (at < first) == (first <= last) {
                    true => End::Low,
                    false => End::High,
                };
                if !at.is_nan() && !matches!(field.rule(Side { axis, end }), SideRule::None) {
                    continue;
                }
                let grid = &program.grids[field.grid.index()].axes[axis];
                let axis_name = grid.coordinate.as_ref().unwrap_or(&grid.index);
                problems.push(
                    Code::OutsideGrid
                        .error(format!("this {what} lies outside the grid: {axis_name} = {}", Value::F64(at)))
                        .label(program.exprs[wanted].span, "outside")
                        .note(format!(
                            "the points of `{}` lie from {axis_name} = {} to {}",
                            field.name,
                            Value::F64(first),
                            Value::F64(last)
                        ))
                        .help("choose a place within the grid, or give that side a boundary rule"),
                );
            }
        }
    }

    fn check_intervals(&self, program: &Program, problems: &mut Vec<Diagnostic>) {
        let mut intervals: Vec<ExprId> = program.reductions.iter().map(|reduction| reduction.every).collect();
        let timed = program.outputs.iter().map(|output| output.when);
        let timed = timed.chain(program.prints.iter().map(|print| print.when));
        let timed = timed.chain(program.probes.iter().map(|probe| probe.when));
        intervals.extend(timed.filter_map(|when| match when {
            When::Every(every) => Some(every),
            When::AtEnd => None,
        }));
        intervals.extend(program.checkpoint.iter().map(|checkpoint| checkpoint.every));
        for every in intervals {
            let n = self.value(program, every, problems).i64();
            if n < 1 {
                problems.push(
                    Code::IntervalNotPositive
                        .error(format!("`every` needs a positive number of steps, not {n}"))
                        .label(program.exprs[every].span, format!("this is {n}"))
                        .note("it first acts at that step and then at its multiples")
                        .help("write `every 1` for each step"),
                );
            }
        }
    }
}

fn parse_setting(text: &str, ty: Type) -> Result<Value, String> {
    match ty {
        Type::I64 => text.trim().parse().map(Value::I64).map_err(|_| String::from("the parameter is an int")),
        _ => match text.trim().parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Value::F64(value)),
            _ => Err(String::from("the parameter is a real number")),
        },
    }
}

/// Parameters and static lets.
struct Static<'a> {
    scalars: &'a Scalars,
    program: &'a Program,
    /// Only coordinates look at it.
    point: [i64; AXES_MAX],
}

impl Environment for Static<'_> {
    fn param(&self, id: ParamId) -> Value {
        match self.scalars.params.get(id.index()) {
            Some(&value) => value,
            None => Value::zero(self.program.params[id.index()].ty),
        }
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
        panic!("the verifier keeps the step out of static scalars")
    }

    fn time(&self) -> f64 {
        panic!("the verifier keeps the time out of static scalars")
    }

    fn access(&self, _: &Access) -> Result<Value, EvalError> {
        panic!("the verifier keeps fields out of static scalars")
    }
}
