//! The IR as text, for people and for golden files. Never read back.

use std::fmt::{Display, Formatter, Result};

use super::{
    BinaryOp, Call, Colour, CompareOp, Exchange, ExprId, ExprKind, FieldKind, Init, LetKind, Level, Place,
    Program, ReduceOp, Shape, Side, SideRule, Statement, Type, UnaryOp, Update, Value, When,
};

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "program {}", self.name)?;
        for param in &self.params {
            write!(f, "param {} : {} = {}", param.name, param.ty.name(), self.show(param.default))?;
            let bound = |bound: Option<ExprId>| bound.map_or(String::new(), |bound| self.show(bound));
            match (param.min, param.max) {
                (None, None) => writeln!(f)?,
                (min, max) => writeln!(f, " in {}..{}", bound(min), bound(max))?,
            }
        }
        for named in &self.lets {
            let kind = match named.kind {
                LetKind::Static => "static",
                LetKind::PerStep => "per step",
            };
            writeln!(f, "let {} : {} = {}   # {kind}", named.name, named.ty.name(), self.show(named.value))?;
        }
        for grid in &self.grids {
            let axes = grid.axes.iter().map(|axis| format!("{}: {}", axis.index, self.show(axis.len)));
            writeln!(f, "grid {}({})", grid.name, axes.collect::<Vec<_>>().join(", "))?;
        }
        for field in &self.fields {
            let axes = &self.grids[field.grid.index()].axes;
            let at = axes.iter().zip(&field.places).map(|(axis, place)| match place {
                Place::Whole => axis.index.clone(),
                Place::Half => format!("{}+1/2", axis.index),
            });
            let kind = match field.kind {
                FieldKind::Constant => String::from("constant"),
                FieldKind::Evolving => format!("levels {}", field.levels),
            };
            let at = at.collect::<Vec<_>>().join(", ");
            writeln!(
                f,
                "field {} : {} on {} at ({at}) {kind}",
                field.name,
                field.ty.name(),
                self.grids[field.grid.index()].name
            )?;
            for (axis, extent) in field.halo.iter().enumerate() {
                writeln!(f, "  halo {} lo {} hi {}", axes[axis].index, extent.lo, extent.hi)?;
            }
            for (level, init) in &field.init {
                let value = match init {
                    Init::Zero => String::from("0"),
                    Init::Value(value) => self.show(*value),
                    Init::File(name) => format!("file \"{name}\""),
                };
                writeln!(f, "  init{} = {value}", level_suffix(*level))?;
            }
            for &side in &field.written {
                writeln!(f, "  {} = {}", side.name(), self.show_rule(field.rule(side)))?;
            }
        }
        for (k, statement) in self.statements.iter().enumerate() {
            if let Some(part) = self.plan.parts.get(k) {
                self.show_exchange(f, &part.exchange)?;
            }
            match statement {
                Statement::Update(update) => writeln!(f, "{}", self.show_update(update))?,
                Statement::Together(updates) => {
                    writeln!(f, "together {{")?;
                    for update in updates {
                        writeln!(f, "  {}", self.show_update(update))?;
                    }
                    writeln!(f, "}}")?;
                }
            }
        }
        for source in &self.sources {
            let at = source.position.iter().map(|x| self.show(*x)).collect::<Vec<_>>().join(", ");
            let name = &self.fields[source.field.index()].name;
            writeln!(f, "source at ({at}): {name} += {}", self.show(source.value))?;
        }
        for (r, reduction) in self.reductions.iter().enumerate() {
            if let Some(exchange) = self.plan.reductions.get(r) {
                self.show_exchange(f, exchange)?;
            }
            let op = match reduction.op {
                ReduceOp::Max => "max",
                ReduceOp::Min => "min",
                ReduceOp::Sum => "sum",
                ReduceOp::Norm2 => "norm2",
            };
            let (value, every) = (self.show(reduction.value), self.show(reduction.every));
            writeln!(f, "reduce {} : {} = {op} {value} every {every}", reduction.name, reduction.ty.name())?;
        }
        writeln!(f, "until {}", self.show(self.until))?;
        for output in &self.outputs {
            let names =
                output.fields.iter().map(|id| self.fields[id.index()].name.as_str()).collect::<Vec<_>>();
            writeln!(
                f,
                "output {}{} as {:?}",
                names.join(", "),
                self.show_when(output.when),
                output.formats
            )?;
        }
        for print in &self.prints {
            let items = print.items.iter().map(|item| item.label.as_str()).collect::<Vec<_>>();
            writeln!(f, "print {}{}", items.join(", "), self.show_when(print.when))?;
        }
        for probe in &self.probes {
            let at = probe.position.iter().map(|x| self.show(*x)).collect::<Vec<_>>().join(", ");
            let name = &self.fields[probe.field.index()].name;
            writeln!(f, "probe at ({at}) of {name}{} as \"{}\"", self.show_when(probe.when), probe.name)?;
        }
        if let Some(checkpoint) = &self.checkpoint {
            writeln!(f, "checkpoint every {}", self.show(checkpoint.every))?;
        }
        let plan = &self.plan;
        writeln!(f, "plan decompose {:?}: {}", plan.decompose.done, plan.decompose.why)?;
        writeln!(f, "plan epoch {}: {}", plan.epoch.done.text(), plan.epoch.why)?;
        writeln!(f, "plan overlap {:?}: {}", plan.overlap.done, plan.overlap.why)?;
        writeln!(f, "plan block time {}: {}", plan.block.done.0, plan.block.why)
    }
}

fn level_suffix(level: Level) -> &'static str {
    match level {
        Level::Prev => ".prev",
        Level::Now => "",
        Level::Next => ".next",
    }
}

impl Program {
    /// An expression with all parentheses, conversions written as functions.
    pub fn show(&self, id: ExprId) -> String {
        let expr = &self.exprs[id];
        let at = |operand: ExprId| self.show(operand);
        match expr.kind {
            ExprKind::Real(x) if expr.ty == Type::F32 => format!("{}f", Value::F64(x)),
            ExprKind::Real(x) => Value::F64(x).to_string(),
            ExprKind::Int(n) => n.to_string(),
            ExprKind::Word(n) => format!("{n}u"),
            ExprKind::Bool(value) => value.to_string(),
            ExprKind::Param(id) => self.params[id.index()].name.clone(),
            ExprKind::Let(id) => self.lets[id.index()].name.clone(),
            ExprKind::Reduction(id) => self.reductions[id.index()].name.clone(),
            ExprKind::Known(id) => format!("known({})", self.reductions[id.index()].name),
            ExprKind::Index(axis) => format!("index{axis}"),
            ExprKind::Step => String::from("step"),
            ExprKind::Time => String::from("t"),
            ExprKind::Access(access) => {
                let field = &self.fields[access.field.index()];
                let offsets = access.offset[..field.places.len()].iter().map(|offset| format!("{offset:+}"));
                format!(
                    "{}{}[{}]",
                    field.name,
                    level_suffix(access.level),
                    offsets.collect::<Vec<_>>().join(",")
                )
            }
            ExprKind::Cast(a) => format!("{}({})", expr.ty.name(), at(a)),
            ExprKind::Unary(op, a) => {
                let sign = match op {
                    UnaryOp::Neg => "-",
                    UnaryOp::Not => "not ",
                    UnaryOp::BitNot => "bnot ",
                };
                format!("({sign}{})", at(a))
            }
            ExprKind::Binary(op, a, b) => {
                let sign = match op {
                    BinaryOp::Add => "+",
                    BinaryOp::Sub => "-",
                    BinaryOp::Mul => "*",
                    BinaryOp::Div => "/",
                    BinaryOp::FloorDiv => "div",
                    BinaryOp::Mod => "mod",
                    BinaryOp::Min => return format!("min({}, {})", at(a), at(b)),
                    BinaryOp::Max => return format!("max({}, {})", at(a), at(b)),
                    BinaryOp::Pow => return format!("pow({}, {})", at(a), at(b)),
                    BinaryOp::BitAnd => "band",
                    BinaryOp::BitOr => "bor",
                    BinaryOp::BitXor => "xor",
                    BinaryOp::Shl => "<<",
                    BinaryOp::Shr => ">>",
                };
                format!("({} {sign} {})", at(a), at(b))
            }
            ExprKind::Power(a, exponent) => format!("{}^{exponent}", at(a)),
            ExprKind::Call(call, a) => {
                let name = match call {
                    Call::Exp => "exp",
                    Call::Log => "log",
                    Call::Sqrt => "sqrt",
                    Call::Sin => "sin",
                    Call::Cos => "cos",
                    Call::Tan => "tan",
                    Call::Floor => "floor",
                    Call::Abs => "abs",
                    Call::Sign => "sign",
                };
                format!("{name}({})", at(a))
            }
            ExprKind::Compare(op, a, b) => {
                let sign = match op {
                    CompareOp::Eq => "==",
                    CompareOp::Ne => "!=",
                    CompareOp::Lt => "<",
                    CompareOp::Le => "<=",
                    CompareOp::Gt => ">",
                    CompareOp::Ge => ">=",
                };
                format!("({} {sign} {})", at(a), at(b))
            }
            ExprKind::And(a, b) => format!("({} and {})", at(a), at(b)),
            ExprKind::Or(a, b) => format!("({} or {})", at(a), at(b)),
            ExprKind::Select(a, b, c) => format!("(if {} then {} else {})", at(a), at(b), at(c)),
        }
    }

    fn show_rule(&self, rule: &SideRule) -> String {
        match rule {
            SideRule::None => String::from("none"),
            SideRule::Fixed(value) => self.show(*value),
            SideRule::Mirror => String::from("mirror"),
            SideRule::Neumann { spacing, slope } => {
                format!("neumann {} (spacing {})", self.show(*slope), self.show(*spacing))
            }
            SideRule::Periodic => String::from("periodic"),
            SideRule::Sponge { width, strength } => {
                format!("sponge({}, {})", self.show(*width), self.show(*strength))
            }
        }
    }

    fn show_update(&self, update: &Update) -> String {
        let colour = match update.colour {
            None => "",
            Some(Colour::Red) => "red ",
            Some(Colour::Black) => "black ",
        };
        let condition = match update.condition {
            None => String::new(),
            Some(condition) => format!(" where {}", self.show(condition)),
        };
        let fixed: Vec<&str> = Side::of(self.fields[update.field.index()].places.len())
            .iter()
            .filter(|&&side| self.fields[update.field.index()].is_fixed(side))
            .map(|side| side.name())
            .collect();
        let except = match fixed.is_empty() {
            true => String::new(),
            false => format!("   # except {}", fixed.join(", ")),
        };
        let name = &self.fields[update.field.index()].name;
        format!("update {colour}{name} = {}{condition}{except}", self.show(update.value))
    }

    fn show_when(&self, when: When) -> String {
        match when {
            When::Every(every) => format!(" every {}", self.show(every)),
            When::AtEnd => String::new(),
        }
    }

    fn show_exchange(&self, f: &mut Formatter<'_>, exchange: &Exchange) -> Result {
        for copy in &exchange.copies {
            let field = &self.fields[copy.field.index()];
            let axes = &self.grids[field.grid.index()].axes;
            let halo = copy
                .halo
                .iter()
                .zip(axes)
                .map(|(halo, axis)| format!("{} {}..{}", axis.index, halo.lo, halo.hi));
            let shape = match copy.shape {
                Shape::Star => "star",
                Shape::Box => "box",
            };
            let halo = halo.collect::<Vec<_>>().join(", ");
            writeln!(f, "exchange {}{} {shape}: {halo}", field.name, level_suffix(copy.level))?;
        }
        Ok(())
    }
}
