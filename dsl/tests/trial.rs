use rma_dsl::ir::*;
use rma_source::Span;

#[test]
fn trial() {
    let mut e = Exprs::default();
    let sp = Span::default();
    let f = Type::F64;
    let i = Type::I64;
    macro_rules! x { ($k:expr, $t:expr) => { { let k = $k; e.add(k, $t, sp) } } }
    use ExprKind as K;
    use BinaryOp as B;
    let c512 = x!(K::Int(512), i);
    let c8 = x!(K::Int(8), i);
    let c01 = x!(K::Real(0.1), f);
    let tol = x!(K::Real(1e-6), f);
    let n = x!(K::Param(ParamId(0)), i);
    let kappa = x!(K::Param(ParamId(1)), f);
    let one = x!(K::Int(1), i);
    let nm1 = x!(K::Binary(B::Sub, n, one), i);
    let nm1f = x!(K::Cast(nm1), f);
    let onef = x!(K::Real(1.0), f);
    let h = x!(K::Binary(B::Div, onef, nm1f), f);
    let lh = x!(K::Let(LetId(0)), f);
    let h2 = x!(K::Power(lh, 2), f);
    let c02 = x!(K::Real(0.2), f);
    let a = x!(K::Binary(B::Mul, c02, h2), f);
    let two = x!(K::Real(2.0), f);
    let b = x!(K::Binary(B::Mul, two, kappa), f);
    let dt = x!(K::Binary(B::Div, a, b), f);
    let ldt = x!(K::Let(LetId(1)), f);
    let ix = x!(K::Index(0), i);
    let ixf = x!(K::Cast(ix), f);
    let xx = x!(K::Binary(B::Mul, ixf, lh), f);
    let jx = x!(K::Index(1), i);
    let jxf = x!(K::Cast(jx), f);
    let yy = x!(K::Binary(B::Mul, jxf, lh), f);
    let half = x!(K::Real(0.5), f);
    let m100 = x!(K::Real(100.0), f);
    let neg100 = x!(K::Unary(UnaryOp::Neg, m100), f);
    let xh = x!(K::Binary(B::Sub, xx, half), f);
    let xh2 = x!(K::Power(xh, 2), f);
    let yh = x!(K::Binary(B::Sub, yy, half), f);
    let yh2 = x!(K::Power(yh, 2), f);
    let ss = x!(K::Binary(B::Add, xh2, yh2), f);
    let arg = x!(K::Binary(B::Mul, neg100, ss), f);
    let init = x!(K::Call(Call::Exp, arg), f);
    let cmp = x!(K::Compare(CompareOp::Lt, xx, half), Type::Bool);
    let sel = x!(K::Select(cmp, onef, two), f);
    let kinit = x!(K::Binary(B::Mul, kappa, sel), f);
    let zero = x!(K::Real(0.0), f);
    let pi = x!(K::Real(std::f64::consts::PI), f);
    let pix = x!(K::Binary(B::Mul, pi, xx), f);
    let north = x!(K::Call(Call::Sin, pix), f);
    let acc = |field, level, o: [i32; 3]| K::Access(Access { field: FieldId(field), level, offset: o, span: sp });
    let uw = x!(acc(0, Level::Now, [-1, 0, 0]), f);
    let ue = x!(acc(0, Level::Now, [1, 0, 0]), f);
    let us = x!(acc(0, Level::Now, [0, -1, 0]), f);
    let un = x!(acc(0, Level::Now, [0, 1, 0]), f);
    let u = x!(acc(0, Level::Now, [0, 0, 0]), f);
    let kk = x!(acc(1, Level::Now, [0, 0, 0]), f);
    let s1 = x!(K::Binary(B::Add, uw, ue), f);
    let s2 = x!(K::Binary(B::Add, s1, us), f);
    let s3 = x!(K::Binary(B::Add, s2, un), f);
    let four = x!(K::Real(4.0), f);
    let u4 = x!(K::Binary(B::Mul, four, u), f);
    let s4 = x!(K::Binary(B::Sub, s3, u4), f);
    let lap = x!(K::Binary(B::Div, s4, h2), f);
    let dk = x!(K::Binary(B::Mul, ldt, kk), f);
    let dkl = x!(K::Binary(B::Mul, dk, lap), f);
    let upd = x!(K::Binary(B::Add, u, dkl), f);
    let unext = x!(acc(0, Level::Next, [0, 0, 0]), f);
    let d = x!(K::Binary(B::Sub, unext, u), f);
    let ad = x!(K::Call(Call::Abs, d), f);
    let c50 = x!(K::Int(50), i);
    let c500 = x!(K::Int(500), i);
    let c100 = x!(K::Int(100), i);
    let r = x!(K::Reduction(ReductionId(0)), f);
    let kn = x!(K::Known(ReductionId(0)), Type::Bool);
    let ptol = x!(K::Param(ParamId(2)), f);
    let lt = x!(K::Compare(CompareOp::Lt, r, ptol), Type::Bool);
    let conv = x!(K::And(kn, lt), Type::Bool);
    let step = x!(K::Step, i);
    let c20000 = x!(K::Param(ParamId(3)), i);
    let ge = x!(K::Compare(CompareOp::Ge, step, c20000), Type::Bool);
    let until = x!(K::Or(conv, ge), Type::Bool);
    let n20000 = x!(K::Int(20000), i);
    let par = |name: &str, ty, default, min| Param { name: name.into(), ty, default, min, max: None, doc: String::new(), span: sp };
    let planned = |x| Planned { asked: None, span: None, done: x, why: String::new() };
    let ax = |ix: &str, c: &str, pos| Axis { index: ix.into(), len: n, coordinate: Some(c.into()), position: pos };
    let none = || vec![SideRule::None, SideRule::None, SideRule::None, SideRule::None, SideRule::None, SideRule::None];
    let w = |k: usize| Side::ALL[k];
    let p = Program {
        name: "heat2d".into(), stage: Stage::Planned,
        params: vec![par("n", i, c512, Some(c8)), par("kappa", f, c01, None), par("tol", f, tol, None), par("steps", i, n20000, None)],
        lets: vec![Let { name: "h".into(), ty: f, value: h, kind: LetKind::Static, span: sp }, Let { name: "dt".into(), ty: f, value: dt, kind: LetKind::Static, span: sp }],
        grids: vec![Grid { name: "G".into(), axes: vec![ax("i", "x", xx), ax("j", "y", yy)], span: sp }],
        fields: vec![
            Field { name: "u".into(), ty: f, grid: GridId(0), places: vec![Place::Whole; 2], kind: FieldKind::Evolving, levels: 2, lens: vec![n, n], init: vec![(Level::Now, Init::Value(init))],
              sides: vec![SideRule::Fixed(zero), SideRule::Fixed(zero), SideRule::Neumann { spacing: lh, slope: zero }, SideRule::Fixed(north), SideRule::None, SideRule::None], written: vec![w(0), w(1), w(2), w(3)], halo: vec![], span: sp },
            Field { name: "k".into(), ty: f, grid: GridId(0), places: vec![Place::Whole; 2], kind: FieldKind::Constant, levels: 1, lens: vec![n, n], init: vec![(Level::Now, Init::Value(kinit))],
              sides: none(), written: vec![], halo: vec![], span: sp },
        ],
        statements: vec![Statement::Update(Update { field: FieldId(0), colour: None, value: upd, condition: None, reads: vec![], span: sp })],
        sources: vec![],
        reductions: vec![Reduction { name: "r".into(), op: ReduceOp::Max, value: ad, ty: f, over: FieldId(0), every: c50, initially: Initially::Wait, reads: vec![], span: sp }],
        until,
        outputs: vec![Output { fields: vec![FieldId(0)], when: When::Every(c500), formats: vec![Format::Png { colormap: "viridis".into() }, Format::Npy], span: sp }],
        prints: vec![Print { items: vec![PrintItem { label: "step".into(), value: step, needs: vec![] }, PrintItem { label: "r".into(), value: r, needs: vec![ReductionId(0)] }], when: When::Every(c100), span: sp }],
        probes: vec![], checkpoint: None,
        time: Time { dt: Some(ldt), rule: TimeRule::Unused },
        plan: Plan { decompose: planned(Decompose::Blocks), epoch: Planned { asked: None, span: None, done: Epoch::Fence, why: String::new() }, overlap: Planned { asked: None, span: None, done: Overlap::None, why: String::new() }, block: Planned { asked: None, span: None, done: TimeBlock(1), why: String::new() }, prologue: Exchange::default(), parts: vec![], reductions: vec![] },
        exprs: e,
    };
    let text = rma_dsl::back::rust::emit(&p, "").unwrap();
    std::fs::write(std::env::var("TRIAL_OUT").unwrap(), text).unwrap();
}

#[test]
fn picture() {
    use rma_dsl::picture::*;
    let n = 200;
    let values = (0..n * n).map(|p| { let (x, y) = ((p / n) as f32 / 199., (p % n) as f32 / 199.); (-20. * ((x - 0.3).powi(2) + (y - 0.6).powi(2))).exp() }).collect();
    let p = Picture { title: "heat2d  u  step 500".into(), colormap: "viridis".into(), points: vec![n, n], axes: vec![("x".into(), 0., 1.), ("y".into(), 0., 1.)], values };
    std::fs::write("/tmp/p.png", draw(&p).unwrap()).unwrap();
    let values = (0..300).map(|p| (p as f32 * 0.05).sin() * 2e-3).collect();
    let p = Picture { title: "wave  u  step 500".into(), colormap: "viridis".into(), points: vec![300], axes: vec![("x".into(), 0., 3.)], values };
    std::fs::write("/tmp/q.png", draw(&p).unwrap()).unwrap();
}
