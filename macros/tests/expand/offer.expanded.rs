//! Events on a team and the offer that ends them.
fn exchange(
    team: &Team,
    halo: &mut [f64],
    rim: &[f64],
    more: &[f64],
    far: &mut [f64],
    left: Rank,
) -> rma::Result<()> {
    ::rma::private::offer(
        team,
        3,
        2,
        ::rma::private::over(
            &mut halo[..],
            ::rma::private::PUTS_OK | ::rma::private::GETS_OK,
        ),
        |team| -> rma::Result<()> {
            team.combine().put(rim, left, 0..4)?;
            team.put(&more[4..], left, 8..12)?;
            team.get(&mut far[..], ::rma::private::Rank(2), 1..3)?;
            Ok(())
        },
    )
}
