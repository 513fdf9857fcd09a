//! Atomic operations and local accesses under a lock.
#[allow(clippy::needless_question_mark)]
fn take_ticket(counter: &Window<u64>, owner: Rank) -> rma::Result<u64> {
    ::rma::private::lock(
        counter,
        owner,
        ::rma::private::LockKind::Exclusive,
        ::rma::private::Info::Strong,
        |counter| -> ::rma::private::Answer<_, rma::Result<u64>> {
            Ok(counter.fetch_op(owner, 0, ::rma::private::Sum, 1)?)
        },
    )
}
fn count(bins: &Window<u64>, samples: &[usize]) -> rma::Result<()> {
    ::rma::private::lock(
        bins,
        ::rma::private::Rank(0),
        ::rma::private::LockKind::Shared,
        ::rma::private::Info::NoCheck("the caller holds the master lock"),
        |bins| -> rma::Result<()> {
            for &sample in samples {
                bins.accumulate(
                    ::rma::private::Rank(0),
                    sample,
                    ::rma::private::Sum,
                    [1],
                )?;
            }
            bins.accumulate(::rma::private::Rank(0), 0, ::rma::private::Max, [7])?;
            bins.accumulate(::rma::private::Rank(0), 1..3, ::rma::private::Or, &[1, 2])?;
            Ok(())
        },
    )
}
fn bump(w: &Window<u64>, me: Rank, into: &mut [u64]) -> rma::Result<u64> {
    ::rma::private::lock(
        w,
        me,
        ::rma::private::LockKind::Exclusive,
        ::rma::private::Info::Strong,
        |w| -> rma::Result<u64> {
            ::rma::private::store(w, 0, ::rma::private::load(w, 1) + 2);
            {
                let change = ::rma::private::load(w, 3);
                ::rma::private::update(w, 2, |old| old * change)
            };
            ::rma::private::read(w, 4..6, &mut into[1..3][..]);
            ::rma::private::write(w, 4..6, &[1, 2]);
            println!("{}", ::rma::private::load(w, 0));
            Ok(::rma::private::load(w, 0))
        },
    )
}
