//! A private epoch: the window is a slice.
fn update(u: &mut Window<f64>, n: usize) -> rma::Result<f64> {
    ::rma::private::local_mut(
        u,
        |u| -> rma::Result<f64> {
            let mut change: f64 = 0.0;
            for i in 1..n {
                let new = (u[i - 1] + u[i + 1]) * 0.5;
                change = change.max((new - u[i]).abs());
                u[i] = new;
            }
            Ok(change)
        },
    )
}
fn total(u: &Window<f64>) -> rma::Result<f64> {
    ::rma::private::local(u, |u| -> rma::Result<f64> { Ok(u.iter().sum()) })
}
