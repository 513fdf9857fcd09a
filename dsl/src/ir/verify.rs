//! Checks what each pass promises. Never changes the program and never reports to users: what it finds is a mistake of
//! the compiler.

use super::{
    Access, BinaryOp, Call, Exchange, ExprId, ExprKind, FieldId, FieldKind, HaloCopy, Init, LetKind, Level,
    Place, Program, ReduceOp, Shape, Side, SideRule, Stage, Statement, Type, UnaryOp, When,
};

/// Checks a program as far as the passes have run.
///
/// # Errors
/// The first broken promise, as a sentence.
pub fn verify(program: &Program) -> Result<(), String> {
    typed(program)?;
    if Stage::Shaped <= program.stage {
        shaped(program)?;
    }
    if Stage::Planned <= program.stage {
        planned(program)?;
    }
    Ok(())
}

fn ensure(holds: bool, promise: impl FnOnce() -> String) -> Result<(), String> {
    match holds {
        true => Ok(()),
        false => Err(promise()),
    }
}

/// From here on every expression is typed, and sees only what exists where it stands.
fn typed(program: &Program) -> Result<(), String> {
    for (id, expr) in program.exprs.iter() {
        for operand in expr.kind.operands().into_iter().flatten() {
            ensure(operand < id, || format!("operand {operand:?} of {id:?} comes after it"))?;
        }
        node(program, id).map_err(|why| format!("{id:?} {:?}: {why}", expr.kind))?;
    }
    for param in &program.params {
        ensure(matches!(param.ty, Type::I64 | Type::F64), || {
            format!("param {} is {:?}", param.name, param.ty)
        })?;
        for value in [Some(param.default), param.min, param.max].into_iter().flatten() {
            scalar(program, value, Some(param.ty), Sees::Parameters)?;
        }
    }
    for (i, named) in program.lets.iter().enumerate() {
        let sees = match named.kind {
            LetKind::Static => Sees::Static,
            LetKind::PerStep => Sees::Reductions,
        };
        scalar(program, named.value, Some(named.ty), sees)?;
        let mut later = None;
        program.exprs.visit(named.value, |_, expr| {
            if let ExprKind::Let(id) = expr.kind
                && i <= id.index()
            {
                later = Some(id);
            }
        });
        ensure(later.is_none(), || format!("let {} uses a later one", named.name))?;
    }
    for grid in &program.grids {
        ensure(!grid.axes.is_empty() && grid.axes.len() <= super::AXES_MAX, || {
            format!("axes of {}", grid.name)
        })?;
        for axis in &grid.axes {
            scalar(program, axis.len, Some(Type::I64), Sees::Static)?;
            point(program, axis.position, Type::F64, Reads::Nothing)?;
        }
    }
    for (f, field) in program.fields.iter().enumerate() {
        let n_axes = program.grids[field.grid.index()].axes.len();
        let counts = [field.places.len(), field.lens.len(), field.halo.len(), field.positions.len()];
        ensure(counts == [n_axes; 4] && field.sides.len() == 2 * n_axes, || {
            format!("axes of {}", field.name)
        })?;
        ensure((1..=3).contains(&field.levels), || format!("levels of {}", field.name))?;
        ensure(field.ty != Type::Bool, || format!("type of {}", field.name))?;
        for &len in &field.lens {
            scalar(program, len, Some(Type::I64), Sees::Static)?;
        }
        for &position in &field.positions {
            point(program, position, Type::F64, Reads::Nothing)?;
        }
        for (level, init) in &field.init {
            let is_kept = *level == Level::Now || *level == Level::Prev && field.levels == 3;
            ensure(is_kept, || format!("{} is initialised at {level:?}", field.name))?;
            if let Init::Value(value) = init {
                point(program, *value, field.ty, Reads::Nothing)?;
            }
        }
        ensure(field.init.iter().any(|(level, _)| *level == Level::Now), || {
            format!("{} has no start", field.name)
        })?;
        for &side in Side::of(n_axes) {
            let is_written = field.written.contains(&side);
            let has_rule = !matches!(field.rule(side), SideRule::None);
            ensure(is_written == has_rule, || format!("order of rules of {}", field.name))?;
            match field.rule(side) {
                SideRule::Fixed(value) => point(program, *value, field.ty, Reads::Nothing)?,
                SideRule::Neumann { spacing, slope } => {
                    point(program, *spacing, field.ty, Reads::Nothing)?;
                    point(program, *slope, field.ty, Reads::Nothing)?;
                }
                SideRule::Sponge { width, strength } => {
                    scalar(program, *width, Some(Type::I64), Sees::Static)?;
                    scalar(program, *strength, Some(Type::F64), Sees::Static)?;
                }
                SideRule::Periodic => {
                    let other = Side::ALL[side.position() ^ 1];
                    let is_pair = matches!(field.rule(other), SideRule::Periodic);
                    ensure(is_pair, || format!("half periodic axis {} of {}", side.axis, field.name))?;
                }
                SideRule::None | SideRule::Mirror => {}
            }
        }
        for statement in &program.statements {
            for update in statement.updates().iter().filter(|update| update.field.index() == f) {
                ensure(field.kind == FieldKind::Evolving, || format!("constant {} is updated", field.name))?;
                point(program, update.value, field.ty, Reads::Fields)?;
                if let Some(condition) = update.condition {
                    point(program, condition, Type::Bool, Reads::Fields)?;
                }
            }
        }
    }
    for source in &program.sources {
        point(program, source.value, program.fields[source.field.index()].ty, Reads::Fields)?;
        for &x in &source.position {
            scalar(program, x, Some(Type::F64), Sees::Static)?;
        }
    }
    for reduction in &program.reductions {
        let ty = program.exprs[reduction.value].ty;
        point(program, reduction.value, ty, Reads::Fields)?;
        let is_right = match ty {
            Type::I64 | Type::U64 => reduction.ty == ty && reduction.op != ReduceOp::Norm2,
            Type::F32 | Type::F64 => reduction.ty == Type::F64,
            Type::Bool => false,
        };
        ensure(is_right, || format!("type of the reduction {}", reduction.name))?;
        scalar(program, reduction.every, Some(Type::I64), Sees::Static)?;
    }
    scalar(program, program.until, Some(Type::Bool), Sees::Steps)?;
    for item in program.prints.iter().flat_map(|print| &print.items) {
        scalar(program, item.value, None, Sees::Steps)?;
    }
    let timed = program.outputs.iter().map(|output| output.when);
    let timed = timed.chain(program.prints.iter().map(|print| print.when));
    for when in timed.chain(program.probes.iter().map(|probe| probe.when)) {
        if let When::Every(every) = when {
            scalar(program, every, Some(Type::I64), Sees::Static)?;
        }
    }
    if let Some(dt) = program.time.dt {
        scalar(program, dt, Some(Type::F64), Sees::Reductions)?;
    }
    Ok(())
}

/// What a scalar may mention, each including those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sees {
    Parameters,
    Static,
    Reductions,
    Steps,
}

fn scalar(program: &Program, id: ExprId, ty: Option<Type>, sees: Sees) -> Result<(), String> {
    let found = program.exprs[id].ty;
    ensure(ty.is_none_or(|ty| ty == found), || format!("{id:?} is {found:?}, not {ty:?}"))?;
    let mut result = Ok(());
    program.exprs.visit(id, |at, expr| {
        let needed = match expr.kind {
            ExprKind::Let(id) if program.lets[id.index()].kind == LetKind::PerStep => Sees::Reductions,
            ExprKind::Let(_) => Sees::Static,
            ExprKind::Reduction(_) | ExprKind::Known(_) => Sees::Reductions,
            ExprKind::Step | ExprKind::Time => Sees::Steps,
            ExprKind::Index(_) | ExprKind::Access(_) => {
                result = Err(format!("the scalar {id:?} needs a point at {at:?}"));
                return;
            }
            _ => Sees::Parameters,
        };
        if sees < needed {
            result = Err(format!("the scalar {id:?} needs {at:?} too early"));
        }
    });
    result
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    Nothing,
    Fields,
}

fn point(program: &Program, id: ExprId, ty: Type, reads: Reads) -> Result<(), String> {
    let found = program.exprs[id].ty;
    ensure(found == ty, || format!("{id:?} is {found:?}, not {ty:?}"))?;
    let is_right = reads == Reads::Fields || program.exprs.accesses(id).is_empty();
    ensure(is_right, || format!("{id:?} reads a field where none may be read"))
}

fn node(program: &Program, id: ExprId) -> Result<(), String> {
    let expr = &program.exprs[id];
    let ty = |operand: ExprId| program.exprs[operand].ty;
    let has = |wanted: bool| ensure(wanted, || String::from("types do not fit"));
    match expr.kind {
        ExprKind::Real(_) => has(expr.ty.is_real()),
        ExprKind::Int(_) | ExprKind::Index(_) | ExprKind::Step => has(expr.ty == Type::I64),
        ExprKind::Word(_) => has(expr.ty == Type::U64),
        ExprKind::Bool(_) | ExprKind::Known(_) => has(expr.ty == Type::Bool),
        ExprKind::Time => has(expr.ty == Type::F64),
        ExprKind::Param(id) => has(expr.ty == program.params[id.index()].ty),
        ExprKind::Let(id) => has(expr.ty == program.lets[id.index()].ty),
        ExprKind::Reduction(id) => has(expr.ty == program.reductions[id.index()].ty),
        ExprKind::Access(access) => {
            let field = &program.fields[access.field.index()];
            has(expr.ty == field.ty)?;
            let is_kept = match access.level {
                Level::Now => true,
                Level::Next => 2 <= field.levels,
                Level::Prev => field.levels == 3,
            };
            ensure(is_kept, || format!("{} does not keep {:?}", field.name, access.level))?;
            let is_flat = access.offset[field.places.len()..].iter().all(|&offset| offset == 0);
            ensure(is_flat, || String::from("an offset beyond the grid's axes"))
        }
        ExprKind::Cast(a) => has(ty(a) != Type::Bool && expr.ty != Type::Bool && ty(a) != expr.ty),
        ExprKind::Unary(op, a) => has(ty(a) == expr.ty
            && match op {
                UnaryOp::Neg => expr.ty != Type::Bool,
                UnaryOp::Not => expr.ty == Type::Bool,
                UnaryOp::BitNot => expr.ty.is_integer(),
            }),
        ExprKind::Binary(op, a, b) => has(ty(a) == expr.ty
            && ty(b) == expr.ty
            && match op {
                BinaryOp::Div => expr.ty.is_real(),
                BinaryOp::Pow => expr.ty == Type::F64,
                BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor | BinaryOp::Shl | BinaryOp::Shr => {
                    expr.ty.is_integer()
                }
                _ => expr.ty != Type::Bool,
            }),
        ExprKind::Power(a, exponent) => has(ty(a) == expr.ty && expr.ty != Type::Bool && 1 <= exponent),
        ExprKind::Call(call, a) => has(ty(a) == expr.ty
            && match call {
                Call::Abs | Call::Sign => expr.ty != Type::Bool,
                _ => expr.ty == Type::F64,
            }),
        ExprKind::Compare(_, a, b) => has(ty(a) == ty(b) && ty(a) != Type::Bool && expr.ty == Type::Bool),
        ExprKind::And(a, b) | ExprKind::Or(a, b) => {
            has([ty(a), ty(b), expr.ty].iter().all(|&ty| ty == Type::Bool))
        }
        ExprKind::Select(a, b, c) => has(ty(a) == Type::Bool && ty(b) == expr.ty && ty(c) == expr.ty),
    }
}

/// From here on reads and halos are known, every crossing has a rule, and updates in place are free of order.
fn shaped(program: &Program) -> Result<(), String> {
    for statement in &program.statements {
        for update in statement.updates() {
            let wanted =
                update.condition.iter().fold(program.exprs.accesses(update.value), |mut all, &condition| {
                    all.extend(program.exprs.accesses(condition));
                    all
                });
            let is_listed = |access: &Access| update.reads.iter().any(|other| other.same_place(access));
            ensure(wanted.iter().all(is_listed), || String::from("an update reads what its list lacks"))?;
            let field = &program.fields[update.field.index()];
            for access in &update.reads {
                reach(program, access, update.field, |side| field.is_fixed(side))?;
                let is_away = access.offset.iter().any(|&offset| offset != 0);
                let conflicts = field.levels == 1 && access.field == update.field && is_away;
                let is_ordered = match (statement, update.colour) {
                    (Statement::Together(_), _) => true,
                    (_, Some(_)) => access.offset.iter().sum::<i32>() % 2 != 0,
                    (_, None) => false,
                };
                ensure(!conflicts || is_ordered, || format!("{} is read and written in place", field.name))?;
            }
        }
    }
    for reduction in &program.reductions {
        for access in &reduction.reads {
            reach(program, access, reduction.over, |_| false)?;
        }
    }
    Ok(())
}

fn reach(
    program: &Program,
    access: &Access,
    over: FieldId,
    is_fixed: impl Fn(Side) -> bool,
) -> Result<(), String> {
    let field = &program.fields[access.field.index()];
    let computed = &program.fields[over.index()];
    ensure(field.grid == computed.grid, || format!("{} is read from another grid", field.name))?;
    let shortage = |field: &super::Field, axis: usize| {
        i32::from(field.places[axis] == Place::Half && !field.is_periodic(axis))
    };
    for axis in 0..field.places.len() {
        let offset = access.offset[axis];
        let halo = field.halo[axis];
        ensure(halo.with(offset) == halo, || format!("the halo of {} is too narrow", field.name))?;
        let (low, high) = (Side::ALL[2 * axis], Side::ALL[2 * axis + 1]);
        let longer = shortage(field, axis) - shortage(computed, axis);
        let crosses_low = offset + i32::from(is_fixed(low)) < 0;
        let crosses_high = 0 < offset + longer - i32::from(is_fixed(high));
        for (side, crosses) in [(low, crosses_low), (high, crosses_high)] {
            let has_rule = !matches!(field.rule(side), SideRule::None);
            ensure(!crosses || has_rule, || {
                format!("{} is read beyond its {} side", field.name, side.name())
            })?;
        }
    }
    Ok(())
}

/// From here on each halo is filled before it is read and not written in between.
fn planned(program: &Program) -> Result<(), String> {
    let plan = &program.plan;
    let is_in_order = plan.parts.iter().enumerate().all(|(k, part)| part.statement == k);
    ensure(is_in_order && plan.parts.len() == program.statements.len(), || {
        String::from("parts of the plan")
    })?;
    ensure(plan.reductions.len() == program.reductions.len(), || String::from("reductions of the plan"))?;
    let mut filled: Vec<HaloCopy> = plan.prologue.copies.clone();
    let is_constant = |copy: &HaloCopy| program.fields[copy.field.index()].kind == FieldKind::Constant;
    ensure(filled.iter().all(is_constant), || String::from("only constant halos last longer than a step"))?;
    for (part, statement) in plan.parts.iter().zip(&program.statements) {
        fill(&mut filled, &part.exchange);
        for update in statement.updates() {
            update.reads.iter().try_for_each(|access| covered(program, &filled, access))?;
        }
        for update in statement.updates() {
            let field = &program.fields[update.field.index()];
            let level = if field.levels == 1 { Level::Now } else { Level::Next };
            filled.retain(|copy| copy.field != update.field || copy.level != level);
            let reads_it = |access: &Access| access.field == update.field && access.level == Level::Now;
            let is_read = statement.updates().iter().flat_map(|update| &update.reads).any(reads_it);
            let needs_copy = matches!(statement, Statement::Together(_)) && field.levels == 1 && is_read;
            let has_copy = part.snapshot.contains(&update.field);
            ensure(needs_copy == has_copy, || format!("the copy of {} for a group", field.name))?;
        }
    }
    // Sources and boundaries write what the step produces.
    filled.retain(|copy| is_constant(copy) || copy.level == Level::Prev);
    for (exchange, reduction) in plan.reductions.iter().zip(&program.reductions) {
        fill(&mut filled, exchange);
        reduction.reads.iter().try_for_each(|access| covered(program, &filled, access))?;
    }
    Ok(())
}

fn fill(filled: &mut Vec<HaloCopy>, exchange: &Exchange) {
    filled.extend(exchange.copies.iter().cloned());
}

fn covered(program: &Program, filled: &[HaloCopy], access: &Access) -> Result<(), String> {
    let n_away = access.offset.iter().filter(|&&offset| offset != 0).count();
    let is_covered = filled.iter().any(|copy| {
        let is_wide =
            copy.halo.iter().zip(access.offset).all(|(extent, offset)| extent.with(offset) == *extent);
        let has_corners = n_away <= 1 || copy.shape == Shape::Box;
        copy.field == access.field && copy.level == access.level && is_wide && has_corners
    });
    let field = &program.fields[access.field.index()];
    ensure(n_away == 0 || is_covered, || {
        format!("{} is read at {:?} before its halo is filled", field.name, access.offset)
    })
}
