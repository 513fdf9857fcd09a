//! The reference: runs a program on one rank, point by point, as [`crate::ir`] says. Slow and plain on purpose.
//! Never writes files: outputs are named with the step at which they act, and pictures are the caller's.

use std::collections::{BTreeMap, HashMap};

use rma_source::Span;

use crate::exact::ExactSum;
use crate::ir::{
    AXES_MAX, Access, Arithmetic, BinaryOp, Colour, End, Environment, EvalError, ExprId, Field, FieldId,
    FieldKind, Init, Initially, LetId, LetKind, Level, ParamId, Program, ReduceOp, ReductionId, Scalars,
    Side, SideRule, Statement, TimeRule, Type, Update, Value, When, apply_binary, cast, evaluate, maximum,
    minimum,
};

/// What a run needs beside its program.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Values of the files that `init … = file` names, first index slowest.
    pub files: HashMap<String, Vec<Value>>,
    /// The run ends with [`RunError::StepLimit`] after this many steps; none if absent.
    pub steps_max: Option<u64>,
}

/// A field after a run.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldValues {
    /// Its name.
    pub name: String,
    /// Stored points per axis.
    pub lens: Vec<usize>,
    /// Its last level, first index slowest.
    pub values: Vec<Value>,
    /// Digest of the points that no boundary fixes.
    pub digest: u64,
}

/// What a run gives.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Completed steps.
    pub steps: u64,
    /// All fields in order of declaration.
    pub fields: Vec<FieldValues>,
    /// Last values of reductions; none if it never ran.
    pub reductions: Vec<Option<Value>>,
    /// Printed lines in order, without the closing ones.
    pub lines: Vec<String>,
    /// Step and position in `Program::outputs` of each output that acts.
    pub outputs: Vec<(u64, usize)>,
    /// Per probe: step, time and value.
    pub probes: Vec<Vec<(u64, f64, Value)>>,
}

impl Outcome {
    /// The closing lines: `steps N`, then a digest per field.
    pub fn closing(&self) -> Vec<String> {
        let digests = self.fields.iter().map(|field| format!("digest {} {:016x}", field.name, field.digest));
        std::iter::once(format!("steps {}", self.steps)).chain(digests).collect()
    }
}

/// Why a run ended early.
#[derive(Clone, PartialEq, Debug)]
pub enum RunError {
    /// A value that is NaN or infinite.
    NotFinite {
        /// The field.
        field: String,
        /// The value.
        value: Value,
        /// Global index.
        cell: Vec<usize>,
        /// From 1; 0 for initial data.
        step: u64,
    },
    /// Integer division by zero or a shift too far.
    Arithmetic {
        /// Which.
        what: Arithmetic,
        /// Where in the source.
        span: Span,
        /// Global index of the point; empty for scalars.
        cell: Vec<i64>,
        /// From 1; 0 for initial data.
        step: u64,
    },
    /// A file that was not given or has the wrong number of values.
    File {
        /// Its name.
        name: String,
        /// Values needed.
        needed: usize,
        /// Values given.
        given: Option<usize>,
    },
    /// [`Inputs::steps_max`] was reached.
    StepLimit(u64),
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        fn list<T: std::fmt::Display>(cell: &[T]) -> String {
            cell.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
        }
        match self {
            RunError::NotFinite { field, value, cell, step } => {
                write!(f, "{field} is not finite ({value}) at cell ({}), step {step}", list(cell))
            }
            RunError::Arithmetic { what, cell, step, .. } if cell.is_empty() => {
                write!(f, "{what} at step {step}")
            }
            RunError::Arithmetic { what, cell, step, .. } => {
                write!(f, "{what} at cell ({}), step {step}", list(cell))
            }
            RunError::File { name, needed, given: Some(given) } => {
                write!(f, "the file \"{name}\" has {given} values, and {needed} are needed")
            }
            RunError::File { name, .. } => write!(f, "the file \"{name}\" was not given"),
            RunError::StepLimit(steps) => write!(f, "the run was stopped after {steps} steps"),
        }
    }
}

impl std::error::Error for RunError {}

/// Runs a planned program to its end.
pub fn run(program: &Program, scalars: &Scalars, inputs: &Inputs) -> Result<Outcome, RunError> {
    let mut run = Run::new(program, scalars);
    run.start(inputs)?;
    loop {
        if inputs.steps_max.is_some_and(|limit| limit <= run.step as u64) {
            return Err(RunError::StepLimit(run.step as u64));
        }
        run.step()?;
        run.look()?;
        if run.scalar(program.until)?.bool() {
            break;
        }
    }
    run.finish()
}

/// The 64-bit FNV-1a of values' little-endian bytes.
pub fn fnv1a(values: impl Iterator<Item = Value>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for value in values {
        value.bytes(|byte| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    }
    hash
}

type Point = [i64; AXES_MAX];

/// Values of one field.
struct Store {
    lens: [i64; AXES_MAX],
    n_axes: usize,
    levels: Levels,
}

/// The kept levels; those that a field does not keep are empty.
#[derive(Default)]
struct Levels([Vec<Value>; 3]);

impl std::ops::Index<Level> for Levels {
    type Output = Vec<Value>;

    fn index(&self, level: Level) -> &Vec<Value> {
        &self.0[level as usize]
    }
}

impl std::ops::IndexMut<Level> for Levels {
    fn index_mut(&mut self, level: Level) -> &mut Vec<Value> {
        &mut self.0[level as usize]
    }
}

impl Store {
    fn position(&self, point: Point) -> usize {
        (0..self.n_axes).fold(0, |position, axis| position * self.lens[axis] as usize + point[axis] as usize)
    }

    fn points(&self) -> impl Iterator<Item = Point> + use<> {
        let lens: Point = std::array::from_fn(|axis| if axis < self.n_axes { self.lens[axis] } else { 1 });
        (0..lens[0]).flat_map(move |i| (0..lens[1]).flat_map(move |j| (0..lens[2]).map(move |k| [i, j, k])))
    }

    fn is_at(&self, point: Point, side: Side) -> bool {
        match side.end {
            End::Low => point[side.axis] == 0,
            End::High => point[side.axis] == self.lens[side.axis] - 1,
        }
    }
}

struct Run<'a> {
    program: &'a Program,
    scalars: &'a Scalars,
    stores: Vec<Store>,
    lets: Vec<Option<Value>>,
    reductions: Vec<Option<Value>>,
    /// Completed steps.
    step: i64,
    dt: f64,
    /// Times of the levels where they are running sums.
    times: BTreeMap<Level, f64>,
    /// What the number of completed steps is for fields with one level: `step`, or one more once their boundaries are
    /// applied.
    one_level_step: i64,
    /// What `together` reads instead.
    before: HashMap<FieldId, Vec<Value>>,
    next_reads: NextReads,
    lines: Vec<String>,
    outputs: Vec<(u64, usize)>,
    probes: Vec<Vec<(u64, f64, Value)>>,
}

/// What `Next` means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextReads {
    /// The level that the step produces.
    Next,
    /// `Now`: before step 1 nothing has been produced.
    Now,
}

/// Where an expression is evaluated.
struct At<'r, 'a> {
    run: &'r Run<'a>,
    point: Point,
    step: i64,
    time: f64,
}

impl Environment for At<'_, '_> {
    fn param(&self, id: ParamId) -> Value {
        self.run.scalars.params[id.index()]
    }

    fn named(&self, id: LetId) -> Value {
        self.run.lets[id.index()].expect("lets are evaluated before they are used")
    }

    fn reduction(&self, id: ReductionId) -> Option<Value> {
        self.run.reductions[id.index()]
    }

    fn reduction_type(&self, id: ReductionId) -> Type {
        self.run.program.reductions[id.index()].ty
    }

    fn index(&self, axis: usize) -> i64 {
        self.point[axis]
    }

    fn step(&self) -> i64 {
        self.step
    }

    fn time(&self) -> f64 {
        self.time
    }

    fn access(&self, access: &Access) -> Result<Value, EvalError> {
        let point = std::array::from_fn(|axis| self.point[axis] + i64::from(access.offset[axis]));
        self.run.read(access.field, access.level, point)
    }
}

impl<'a> Run<'a> {
    fn new(program: &'a Program, scalars: &'a Scalars) -> Run<'a> {
        let stores = program
            .fields
            .iter()
            .zip(&scalars.lens)
            .map(|(field, lens)| Store {
                lens: std::array::from_fn(|axis| lens.get(axis).map_or(1, |&len| len as i64)),
                n_axes: field.places.len(),
                levels: Levels::default(),
            })
            .collect();
        Run {
            program,
            scalars,
            stores,
            lets: scalars.lets.clone(),
            reductions: vec![None; program.reductions.len()],
            step: 0,
            dt: 0.0,
            times: BTreeMap::from([(Level::Prev, 0.0), (Level::Now, 0.0), (Level::Next, 0.0)]),
            one_level_step: 0,
            before: HashMap::new(),
            next_reads: NextReads::Next,
            lines: Vec::new(),
            outputs: Vec::new(),
            probes: vec![Vec::new(); program.probes.len()],
        }
    }

    /// Sets all levels, then runs the reductions that steps need.
    fn start(&mut self, inputs: &Inputs) -> Result<(), RunError> {
        if let (TimeRule::Product, Some(dt)) = (self.program.time.rule, self.program.time.dt) {
            self.dt = self.scalar(dt)?.f64();
        }
        for (f, field) in self.program.fields.iter().enumerate() {
            let id = FieldId::new(f);
            for (level, init) in &field.init {
                let n_points = self.stores[f].points().count();
                let values = match init {
                    Init::Zero => vec![Value::zero(field.ty); n_points],
                    Init::Value(value) => {
                        let points = self.stores[f].points();
                        points.map(|point| self.at_level(*value, point, *level)).collect::<Result<_, _>>()?
                    }
                    Init::File(name) => match inputs.files.get(name) {
                        Some(values) if values.len() == n_points => {
                            values.iter().map(|value| cast(*value, field.ty)).collect()
                        }
                        other => {
                            let given = other.map(Vec::len);
                            return Err(RunError::File { name: name.clone(), needed: n_points, given });
                        }
                    },
                };
                self.stores[f].levels[*level] = values;
                self.fix(id, *level, level.shift())?;
            }
        }
        self.check_finite(0)?;
        self.next_reads = NextReads::Now;
        for r in 0..self.program.reductions.len() {
            // A later one may use a let of an earlier one.
            self.per_step_lets()?;
            if self.program.reductions[r].initially == Initially::Run {
                self.reduce(r)?;
            }
        }
        self.next_reads = NextReads::Next;
        Ok(())
    }

    fn step(&mut self) -> Result<(), RunError> {
        let program = self.program;
        self.per_step_lets()?;
        if let (TimeRule::RunningSum, Some(dt)) = (program.time.rule, program.time.dt) {
            self.dt = self.scalar(dt)?.f64();
            let now = self.times[&Level::Now];
            self.times.insert(Level::Next, now + self.dt);
            if self.step == 0 {
                self.times.insert(Level::Prev, now - self.dt);
            }
        }
        for (f, field) in program.fields.iter().enumerate() {
            if 2 <= field.levels {
                let now = self.stores[f].levels[Level::Now].clone();
                self.stores[f].levels[Level::Next] = now;
                self.fix(FieldId::new(f), Level::Next, self.step + 1)?;
            }
        }
        for statement in &program.statements {
            self.before.clear();
            if let Statement::Together(updates) = statement {
                for update in updates {
                    let values = self.stores[update.field.index()].levels[Level::Now].clone();
                    self.before.insert(update.field, values);
                }
            }
            for update in statement.updates() {
                self.update(update)?;
            }
        }
        self.before.clear();
        for source in &program.sources {
            let point = self.nearest(source.field, &source.position)?;
            let added = self.at(source.value, point, self.step, self.time(Level::Now))?;
            let level = produced(&program.fields[source.field.index()]);
            let store = &mut self.stores[source.field.index()];
            let position = store.position(point);
            let slot = &mut store.levels[level][position];
            *slot = apply_binary(BinaryOp::Add, *slot, added).expect("a sum has no arithmetic error");
        }
        for (f, field) in program.fields.iter().enumerate() {
            self.sponge(f)?;
            self.fix(FieldId::new(f), produced(field), self.step + 1)?;
        }
        self.one_level_step = self.step + 1;
        for r in 0..program.reductions.len() {
            if self.is_due(When::Every(program.reductions[r].every), self.step + 1)? {
                self.reduce(r)?;
            }
        }
        for (f, field) in program.fields.iter().enumerate() {
            let levels = &mut self.stores[f].levels;
            if field.levels == 3 {
                let now = levels[Level::Now].clone();
                levels[Level::Prev] = now;
            }
            if 2 <= field.levels {
                levels[Level::Now] = std::mem::take(&mut levels[Level::Next]);
            }
        }
        if program.time.rule == TimeRule::RunningSum {
            self.times.insert(Level::Prev, self.times[&Level::Now]);
            self.times.insert(Level::Now, self.times[&Level::Next]);
        }
        self.step += 1;
        self.check_finite(self.step as u64)
    }

    /// Prints, probes and outputs that are due after a step.
    fn look(&mut self) -> Result<(), RunError> {
        for p in 0..self.program.prints.len() {
            if self.is_due(self.program.prints[p].when, self.step)? {
                self.print(p)?;
            }
        }
        for p in 0..self.program.probes.len() {
            if self.is_due(self.program.probes[p].when, self.step)? {
                self.probe(p)?;
            }
        }
        for o in 0..self.program.outputs.len() {
            if self.is_due(self.program.outputs[o].when, self.step)? {
                self.outputs.push((self.step as u64, o));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Outcome, RunError> {
        for p in 0..self.program.prints.len() {
            if self.program.prints[p].when == When::AtEnd {
                self.print(p)?;
            }
        }
        for p in 0..self.program.probes.len() {
            if self.program.probes[p].when == When::AtEnd {
                self.probe(p)?;
            }
        }
        for o in 0..self.program.outputs.len() {
            let last = (self.step as u64, o);
            if !self.outputs.contains(&last) {
                self.outputs.push(last);
            }
        }
        let fields = self.program.fields.iter().enumerate().map(|(f, field)| {
            let store = &self.stores[f];
            let values = &store.levels[Level::Now];
            let is_free = |point: &Point| !field.fixed_sides().any(|(side, _)| store.is_at(*point, side));
            let free = store.points().filter(is_free).map(|point| values[store.position(point)]);
            FieldValues {
                name: field.name.clone(),
                lens: self.scalars.lens[f].clone(),
                values: values.clone(),
                digest: fnv1a(free),
            }
        });
        Ok(Outcome {
            steps: self.step as u64,
            fields: fields.collect(),
            reductions: self.reductions.clone(),
            lines: self.lines.clone(),
            outputs: self.outputs.clone(),
            probes: self.probes.clone(),
        })
    }

    /// Lets that use reductions; one whose reduction has not run yet stays unknown.
    fn per_step_lets(&mut self) -> Result<(), RunError> {
        for l in 0..self.program.lets.len() {
            let named = &self.program.lets[l];
            let is_ready = || {
                let mut is_ready = true;
                self.program.exprs.visit(named.value, |_, expr| match expr.kind {
                    crate::ir::ExprKind::Reduction(id) => is_ready &= self.reductions[id.index()].is_some(),
                    crate::ir::ExprKind::Let(id) => is_ready &= self.lets[id.index()].is_some(),
                    _ => {}
                });
                is_ready
            };
            if named.kind == LetKind::PerStep && is_ready() {
                self.lets[l] = Some(self.scalar(named.value)?);
            }
        }
        Ok(())
    }

    fn update(&mut self, update: &Update) -> Result<(), RunError> {
        let program = self.program;
        let f = update.field.index();
        let field = &program.fields[f];
        let level = produced(field);
        let fixed: Vec<Side> = field.fixed_sides().map(|(side, _)| side).collect();
        let (step, time) = (self.step, self.time(Level::Now));
        for point in self.stores[f].points() {
            let is_fixed = fixed.iter().any(|&side| self.stores[f].is_at(point, side));
            let parity = point.iter().sum::<i64>() % 2;
            let is_coloured = match update.colour {
                None => true,
                Some(Colour::Red) => parity == 0,
                Some(Colour::Black) => parity == 1,
            };
            if is_fixed || !is_coloured {
                continue;
            }
            if let Some(condition) = update.condition
                && !self.at(condition, point, step, time)?.bool()
            {
                continue;
            }
            let value = self.at(update.value, point, step, time)?;
            let store = &mut self.stores[f];
            let position = store.position(point);
            store.levels[level][position] = value;
        }
        Ok(())
    }

    /// Sets the points that boundaries fix, as at a number of completed steps.
    fn fix(&mut self, id: FieldId, level: Level, step: i64) -> Result<(), RunError> {
        let field = &self.program.fields[id.index()];
        let time = self.time_at(step);
        for (side, value) in field.fixed_sides() {
            for point in self.stores[id.index()].points() {
                if self.stores[id.index()].is_at(point, side) {
                    let value = self.at(value, point, step, time)?;
                    let store = &mut self.stores[id.index()];
                    let position = store.position(point);
                    store.levels[level][position] = value;
                }
            }
        }
        Ok(())
    }

    fn sponge(&mut self, f: usize) -> Result<(), RunError> {
        let program = self.program;
        let field = &program.fields[f];
        for &side in Side::of(field.places.len()) {
            let SideRule::Sponge { width, strength } = field.rule(side) else { continue };
            let (width, strength) = (self.scalar(*width)?.i64(), self.scalar(*strength)?.f64());
            let mut levels = vec![produced(field)];
            if field.levels == 3 {
                levels.push(Level::Now);
            }
            for point in self.stores[f].points() {
                let distance = match side.end {
                    End::Low => point[side.axis],
                    End::High => self.stores[f].lens[side.axis] - 1 - point[side.axis],
                };
                if width <= distance {
                    continue;
                }
                let root = strength * ((width - distance) as f64);
                let factor = cast(Value::F64((-(root * root)).exp()), field.ty);
                let store = &mut self.stores[f];
                let position = store.position(point);
                for level in &levels {
                    let slot = &mut store.levels[*level][position];
                    *slot = apply_binary(BinaryOp::Mul, *slot, factor)
                        .expect("a product has no arithmetic error");
                }
            }
        }
        Ok(())
    }

    fn reduce(&mut self, r: usize) -> Result<(), RunError> {
        let reduction = &self.program.reductions[r];
        let mut sum = ExactSum::default();
        let mut folded: Option<Value> = None;
        for point in self.stores[reduction.over.index()].points() {
            let value = self.at(reduction.value, point, self.step, self.time(Level::Now))?;
            let value = match (reduction.op, value) {
                (ReduceOp::Norm2, value) => {
                    apply_binary(BinaryOp::Mul, value, value).expect("a product has no arithmetic error")
                }
                (_, value) => value,
            };
            let fold =
                |op, a, b| apply_binary(op, a, b).expect("sums, minima and maxima have no arithmetic error");
            match (reduction.op, cast_real(value)) {
                (ReduceOp::Sum | ReduceOp::Norm2, Value::F64(real)) => sum.add(real),
                (op, value) => {
                    folded = Some(match (folded, op) {
                        (None, _) => value,
                        (Some(Value::F64(a)), ReduceOp::Max) => Value::F64(maximum(a, value.f64())),
                        (Some(Value::F64(a)), _) => Value::F64(minimum(a, value.f64())),
                        (Some(a), ReduceOp::Max) => fold(BinaryOp::Max, a, value),
                        (Some(a), ReduceOp::Min) => fold(BinaryOp::Min, a, value),
                        (Some(a), _) => fold(BinaryOp::Add, a, value),
                    });
                }
            }
        }
        self.reductions[r] = Some(match (folded, reduction.op) {
            (Some(value), _) => value,
            (None, ReduceOp::Norm2) => Value::F64(sum.value().sqrt()),
            (None, _) => Value::F64(sum.value()),
        });
        Ok(())
    }

    fn print(&mut self, p: usize) -> Result<(), RunError> {
        let mut parts = Vec::new();
        for item in &self.program.prints[p].items {
            let is_known = item.needs.iter().all(|id| self.reductions[id.index()].is_some());
            parts.push(match is_known {
                true => format!("{}={}", item.label, self.scalar(item.value)?),
                false => format!("{}=-", item.label),
            });
        }
        self.lines.push(parts.join(" "));
        Ok(())
    }

    fn probe(&mut self, p: usize) -> Result<(), RunError> {
        let probe = &self.program.probes[p];
        let point = self.nearest(probe.field, &probe.position)?;
        let store = &self.stores[probe.field.index()];
        let value = store.levels[Level::Now][store.position(point)];
        let row = (self.step as u64, self.time(Level::Now), value);
        self.probes[p].push(row);
        Ok(())
    }

    /// The point whose coordinates are nearest, axis by axis; ties go to the smaller index.
    fn nearest(&self, id: FieldId, position: &[ExprId]) -> Result<Point, RunError> {
        let field = &self.program.fields[id.index()];
        let mut point = [0; AXES_MAX];
        for (axis, &position) in position.iter().enumerate() {
            let wanted = self.scalar(position)?.f64();
            let mut best = f64::INFINITY;
            for index in 0..self.stores[id.index()].lens[axis] {
                let mut candidate = [0; AXES_MAX];
                candidate[axis] = index;
                let distance = (self.at(field.positions[axis], candidate, 0, 0.0)?.f64() - wanted).abs();
                if distance < best {
                    best = distance;
                    point[axis] = index;
                }
            }
        }
        Ok(point)
    }

    fn is_due(&self, when: When, step: i64) -> Result<bool, RunError> {
        match when {
            When::Every(every) => Ok(step % self.scalar(every)?.i64() == 0),
            When::AtEnd => Ok(false),
        }
    }

    /// A value at a point, wherever the point lies: inside it is stored, outside it comes from the sides' rules, axis
    /// by axis.
    fn read(&self, id: FieldId, level: Level, point: Point) -> Result<Value, EvalError> {
        let field = &self.program.fields[id.index()];
        let store = &self.stores[id.index()];
        for axis in 0..store.n_axes {
            let (at, len) = (point[axis], store.lens[axis]);
            let (end, beyond, edge, inward) = match () {
                () if at < 0 => (End::Low, -at, 0, 1),
                () if len <= at => (End::High, at - (len - 1), len - 1, -1),
                () => continue,
            };
            let place = |at: i64| {
                let mut place = point;
                place[axis] = at;
                place
            };
            let step = match (field.levels, self.next_reads) {
                (1, _) => self.one_level_step,
                (_, NextReads::Now) => self.step,
                _ => self.step + level.shift(),
            };
            let eval = |value, point| {
                let time = self.time_at(step);
                evaluate(&self.program.exprs, value, &At { run: self, point, step, time })
            };
            return match field.rule(Side { axis, end }) {
                SideRule::None => {
                    panic!("the shape pass gives every crossing a rule: {} {point:?}", field.name)
                }
                SideRule::Fixed(value) => eval(*value, point),
                SideRule::Mirror => self.read(id, level, place(edge + inward * beyond)),
                SideRule::Periodic => self.read(id, level, place(at + inward * len)),
                SideRule::Sponge { .. } => Ok(Value::zero(field.ty)),
                SideRule::Neumann { spacing, slope } => {
                    let inside = self.read(id, level, place(edge))?;
                    let (spacing, slope) = (eval(*spacing, place(edge))?, eval(*slope, place(edge))?);
                    let distance = cast(Value::I64(beyond), field.ty);
                    let apply = |op, a, b| apply_binary(op, a, b).expect("reals have no arithmetic error");
                    let rise = apply(BinaryOp::Mul, apply(BinaryOp::Mul, distance, spacing), slope);
                    Ok(apply(BinaryOp::Add, inside, rise))
                }
            };
        }
        let level = match (level, self.next_reads) {
            (Level::Next, NextReads::Now) => Level::Now,
            (level, _) => level,
        };
        if let (Level::Now, 1, Some(values)) = (level, field.levels, self.before.get(&id)) {
            return Ok(values[store.position(point)]);
        }
        Ok(store.levels[level][store.position(point)])
    }

    fn time(&self, level: Level) -> f64 {
        self.time_at(self.step + level.shift())
    }

    /// The time at a number of completed steps, which is that of a level.
    fn time_at(&self, step: i64) -> f64 {
        match self.program.time.rule {
            TimeRule::Unused => 0.0,
            TimeRule::Product => step as f64 * self.dt,
            TimeRule::RunningSum => match step - self.step {
                1 => self.times[&Level::Next],
                0 => self.times[&Level::Now],
                _ => self.times[&Level::Prev],
            },
        }
    }

    fn at(&self, value: ExprId, point: Point, step: i64, time: f64) -> Result<Value, RunError> {
        evaluate(&self.program.exprs, value, &At { run: self, point, step, time }).map_err(
            |EvalError { what, at }| {
                let cell = point[..self.program.grids.iter().map(|grid| grid.axes.len()).max().unwrap_or(0)]
                    .to_vec();
                RunError::Arithmetic {
                    what,
                    span: self.program.exprs[at].span,
                    cell,
                    step: self.step as u64 + 1,
                }
            },
        )
    }

    fn at_level(&self, value: ExprId, point: Point, level: Level) -> Result<Value, RunError> {
        let step = self.step + level.shift();
        self.at(value, point, step, self.time_at(step))
    }

    fn scalar(&self, value: ExprId) -> Result<Value, RunError> {
        let env = At { run: self, point: [0; AXES_MAX], step: self.step, time: self.time(Level::Now) };
        evaluate(&self.program.exprs, value, &env).map_err(|EvalError { what, at }| RunError::Arithmetic {
            what,
            span: self.program.exprs[at].span,
            cell: Vec::new(),
            step: self.step as u64,
        })
    }

    fn check_finite(&self, step: u64) -> Result<(), RunError> {
        for (f, field) in self.program.fields.iter().enumerate() {
            if field.kind == FieldKind::Constant && step != 0 {
                continue;
            }
            let store = &self.stores[f];
            for point in store.points() {
                let value = store.levels[Level::Now][store.position(point)];
                if !value.is_finite() {
                    let cell = point[..store.n_axes].iter().map(|&at| at as usize).collect();
                    return Err(RunError::NotFinite { field: field.name.clone(), value, cell, step });
                }
            }
        }
        Ok(())
    }
}

/// The level that a step produces.
fn produced(field: &Field) -> Level {
    match field.levels {
        1 => Level::Now,
        _ => Level::Next,
    }
}

fn cast_real(value: Value) -> Value {
    match value {
        Value::F32(_) => cast(value, Type::F64),
        other => other,
    }
}
