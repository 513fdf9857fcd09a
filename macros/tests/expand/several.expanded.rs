//! Several windows in one epoch, and epochs of several kinds around one body.
#[allow(clippy::needless_question_mark)]
fn both(u: &mut Window<f64>, v: &mut Window<f64>, right: Rank) -> rma::Result<f64> {
    ::rma::private::fence(
        u,
        |u| -> ::rma::private::Answer<_, rma::Result<f64>> {
            ::rma::private::inner::fence(
                v,
                |v| -> ::rma::private::Answer<_, rma::Result<f64>> {
                    u.put(right, 0, [::rma::private::load(v, 1)])?;
                    v.put(right, 2..4, u.own(2..4))?;
                    Ok(u.get_value(right, 7)?)
                },
            )
        },
    )
}
fn overlap(
    old: &mut Window<f64>,
    new: &mut Window<f64>,
    right: Rank,
) -> rma::Result<()> {
    ::rma::private::local_mut(
        old,
        |old| -> rma::Result<()> {
            ::rma::private::inner::fence(
                new,
                |new| -> rma::Result<()> {
                    new.put(right, 0, [old[1]])?;
                    old[0] = 1.0;
                    Ok(())
                },
            )
        },
    )
}
