//! Everything that a get can fill.
#[allow(clippy::needless_question_mark)]
fn gets(
    u: &mut Window<f64>,
    right: Rank,
    buffer: &mut [f64],
) -> rma::Result<(f64, Vec<f64>)> {
    ::rma::private::fence(
        u,
        |u| -> ::rma::private::Answer<_, rma::Result<(f64, Vec<f64>)>> {
            u.get(right, 0..4, &mut buffer[..])?;
            u.get(right, 9, ::rma::private::own_element(5))?;
            u.get(right, 0..2, ::rma::private::own(6..8))?;
            let x = u.get_value(right, 3)?;
            let row = u.get_vec(right, 8..16)?;
            Ok((x, row))
        },
    )
}
