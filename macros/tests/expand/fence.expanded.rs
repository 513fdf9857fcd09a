//! Both halves of a halo exchange, with origins in the window itself.
fn exchange(u: &mut Window<f64>, left: Rank, right: Rank, n: usize) -> rma::Result<()> {
    ::rma::private::fence(
        u,
        |u| -> rma::Result<()> {
            u.put(left, n + 1, ::rma::private::own_element(1))?;
            u.put(right, 0, ::rma::private::own_element(n))?;
            Ok(())
        },
    )
}
#[allow(clippy::needless_question_mark)]
fn two_phases(u: &mut Window<f64>, right: Rank, halo: &[f64]) -> rma::Result<f64> {
    ::rma::private::fence(
        u,
        |u| -> ::rma::private::Answer<_, rma::Result<f64>> {
            u.put(right, 0..4, halo)?;
            ::rma::private::next_phase(u)?;
            let seen = u.get_value(right, 3)?;
            Ok(seen)
        },
    )
}
