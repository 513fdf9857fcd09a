//! The general active target styles.
fn push(u: &Window<f64>, left: Rank, right: Rank, x: f64) -> rma::Result<()> {
    ::rma::private::access(
        u,
        &[left, right],
        ::rma::private::Info::Weak,
        |u| -> rma::Result<()> {
            u.put(left, 0, [x])?;
            u.put(right, 1, [-x])?;
            Ok(())
        },
    )
}
fn serve(u: &mut Window<f64>, n: usize) -> rma::Result<()> {
    ::rma::private::exposure(
        u,
        ::rma::private::Awaited::Any(n),
        |#[allow(unused_variables)] u| -> rma::Result<()> { Ok(()) },
    )
}
fn both(u: &mut Window<f64>, neighbours: &[Rank]) -> rma::Result<()> {
    ::rma::private::exchange(
        u,
        ::rma::private::ranks(&neighbours),
        ::rma::private::Awaited::Group(&[Rank(0), ::rma::private::Rank(1)]),
        ::rma::private::Info::Strong,
        |u| -> rma::Result<()> {
            for &rank in neighbours {
                u.put(rank, 0, ::rma::private::own_element(1))?;
            }
            Ok(())
        },
    )
}
