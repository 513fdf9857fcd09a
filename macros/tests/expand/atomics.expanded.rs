//! Operations that fetch.
#[allow(clippy::needless_question_mark)]
fn all(w: &Window<u64>, owner: Rank) -> rma::Result<(u64, u64, u64)> {
    ::rma::private::lock(
        w,
        owner,
        ::rma::private::LockKind::Shared,
        ::rma::private::Info::Strong,
        |w| -> ::rma::private::Answer<_, rma::Result<(u64, u64, u64)>> {
            let a = w.fetch_op(owner, 0, ::rma::private::Max, 3)?;
            let b = w.fetch_op(owner, 1, ::rma::private::Replace, a_value())?;
            let c = w.compare_swap(owner, 2, 0, 1)?;
            w.accumulate(owner, 3, ::rma::private::Sum, [1])?;
            w.accumulate(owner, 3, ::rma::private::Prod, [2])?;
            w.accumulate(owner, 3, ::rma::private::And, [3])?;
            w.accumulate(owner, 3, ::rma::private::Or, [4])?;
            w.accumulate(owner, 3, ::rma::private::Xor, [5])?;
            w.accumulate(owner, 3, ::rma::private::Min, [6])?;
            w.accumulate(owner, 4..6, ::rma::private::Sum, vec![1, 2])?;
            Ok((a, b, c))
        },
    )
}
