//! The sentence of every kind of error that Put/Get/Offer gives, and what its documentation has to say. Never compares what differs
//! from run to run: times, and who waits for whom.

use rma::pgo::{self, COUNT_ANY, GETS_OK, NONE_OK, PUTS_OK, nothing, over};
use rma::{Datatype, Error, ErrorKind, Rank, Strided, Team};

use super::pends;
use crate::{Case, Outcome, case};

pub(crate) const CASES: &[Case] = &[
    case!(mistakes_with_offers_have_their_sentences, [2]).one_copy().under(&[""]).mapped(),
    case!(faults_of_events_have_their_sentences, [2]).one_copy().under(&[""]),
    case!(the_documentation_says_which_family, [1]).one_copy().under(&[""]).mapped(),
];

/// Compares an error with its kind and sentence; `…` at the end stands for the rest.
#[track_caller]
fn says(error: &Error, kind: ErrorKind, sentence: &str) {
    let text = error.to_string();
    let fits = match sentence.strip_suffix('…') {
        Some(begin) => text.starts_with(begin),
        None => text == sentence,
    };
    assert!(error.kind() == kind && fits, "{:?}: {text}\nexpected: {kind:?}: {sentence}", error.kind());
    assert!(error.context().location.file().ends_with("messages.rs"), "{error:?}");
}

#[track_caller]
fn failed<T>(result: rma::Result<T>, kind: ErrorKind, sentence: &str) {
    match result {
        Ok(_) => panic!("the call should fail: {sentence}"),
        Err(error) => says(&error, kind, sentence),
    }
}

fn mistakes_with_offers_have_their_sentences(team: &Team) -> Outcome {
    let (me, other) = (team.rank(), Rank(1 - team.rank().0));
    let mut buffer = [0_u32; 4];
    let by = format!("by rank {me}");
    failed(
        pgo::offer(team, 5, over(&mut buffer, NONE_OK), 1),
        ErrorKind::BadEvents,
        &format!(
            "offer {by} has an events mask that does not fit its count: it serves neither puts nor gets, but counts events: \
             say PUTS_OK, GETS_OK or both; tag 5"
        ),
    );
    failed(
        pgo::offer(team, 5, over(&mut buffer, PUTS_OK), COUNT_ANY),
        ErrorKind::CountAnyNotAllowed,
        &format!(
            "offer {by} uses COUNT_ANY where it is not legal: a blocking offer would not know when to end; tag 5"
        ),
    );
    failed(
        pgo::offer(team, 5, over(&mut buffer, PUTS_OK).unit(0), 1),
        ErrorKind::BadDispUnit,
        &format!("offer {by} has a displacement unit of zero: an offer's unit is at least 1; tag 5"),
    );
    failed(
        pgo::offer(team, 5, over(&mut buffer, PUTS_OK).from(Rank(7)), 1),
        ErrorKind::RankOutOfRange,
        &format!(
            "offer {by} names a rank that is not in the team: its events are to come from rank 7, and the team has 2 ranks; tag 5"
        ),
    );
    failed(
        pgo::malloc::<u64>(team, usize::MAX),
        ErrorKind::System,
        &format!("rma_malloc {by} was refused by the operating system: …"),
    );
    let (numbers, mut got) = ([1_u32, 2], [0_u32; 2]);
    let outcome = pgo::scope(team, 6, |scope| {
        failed(
            scope.put(&numbers, Rank(9), 0),
            ErrorKind::RankOutOfRange,
            &format!("put at rank 9 {by} names a rank that is not in the team: the team has 2 ranks; tag 6"),
        );
        failed(
            scope.put(&numbers, other, 0..3),
            ErrorKind::LengthMismatch,
            &format!(
                "put at rank {other} {by} differs in length between origin and target: the target section has 3 elements, \
                 the origin 2; tag 6"
            ),
        );
        failed(
            scope.put(&numbers, other, Strided { start: 0, count: 2, block: 1, stride: 0 }),
            ErrorKind::OverlappingLayout,
            &format!(
                "put at rank {other} {by} has a target layout that names a byte twice: its target blocks overlap; tag 6"
            ),
        );
        failed(
            scope.rput(&numbers, other, 0),
            ErrorKind::NotOffered,
            &format!(
                "rput at rank {other} {by} promised a waiting offer, but there is none: no offer was open that serves it, so \
                 nothing was written; tag 6"
            ),
        );
        scope.combine().put(&numbers, other, 0)?;
        failed(
            scope.get(&mut got, other, 0),
            ErrorKind::CombineMismatch,
            &format!(
                "get at rank {other} {by} mixes puts and gets in a chain: its chain was not opened by combine_mixed; tag 6"
            ),
        );
        failed(
            scope.offer(nothing(), 0),
            ErrorKind::DanglingCombine,
            &format!(
                "offer at rank {other} {by} leaves a chain of combined events open: its last part was said to be combined, so \
                 the event was never issued; tag 6"
            ),
        );
        failed(
            pgo::scope(team, 6, |_| Ok::<(), Error>(())),
            ErrorKind::EpochStillOpen,
            &format!(
                "scope {by} finds an epoch still open: a scope of the same team and tag is open, whose calls are to be used; \
                 tag 6"
            ),
        );
        Ok::<(), Error>(())
    });
    failed(
        outcome,
        ErrorKind::DanglingCombine,
        &format!(
            "end of scope at rank {other} {by} leaves a chain of combined events open: its last part was said to be combined, \
             so the event was never issued; tag 6"
        ),
    );
    let mut started = pgo::offer_init(team, 7, over(vec![0_u32], PUTS_OK), 0)?;
    started.start()?;
    failed(
        started.start(),
        ErrorKind::EpochStillOpen,
        &format!("persistent offer {by} finds an epoch still open: the offer is started already; tag 7"),
    );
    failed(
        started.buffer().map(|buffer| buffer.len()),
        ErrorKind::LocalAccessDuringOffer,
        &format!("persistent offer {by} touches an offered range locally: wait for the offer first; tag 7"),
    );
    pgo::scope(team, 8, |scope| {
        failed(
            scope.wait_started(&mut started),
            ErrorKind::MixedSync,
            &format!(
                "persistent offer {by} overlaps with another synchronization style on the window: the request has another team \
                 or tag than the scope, whose tag is 8; tag 7"
            ),
        );
        Ok::<(), Error>(())
    })?;
    started.wait()?;
    failed(
        started.wait(),
        ErrorKind::NotOffered,
        &format!(
            "persistent offer {by} promised a waiting offer, but there is none: it is complete already, or was never started; \
             tag 7"
        ),
    );
    team.barrier()?;
    // An offer that stalls says how far it came, and what may be the cause.
    if me == Rank(0) {
        pgo::scope(team, 9, |scope| {
            scope.put(&numbers, Rank(1), 0)?;
            team.barrier()?;
            team.barrier()
        })?;
    } else {
        team.barrier()?;
        says(
            &pends(team, || pgo::offer(team, 9, over(&mut buffer, GETS_OK), 2)),
            ErrorKind::Stalled,
            "offer by rank 1 passed its time limit: 0 of 2 events served; EventNotOffered: an event of rank 0 waits that \
             needs an offer of puts, and this one allows gets; 40ms have passed; tag 9; …",
        );
        pgo::offer(team, 9, over(&mut buffer, PUTS_OK), 1)?;
        team.barrier()?;
    }
    Ok(())
}

fn faults_of_events_have_their_sentences(team: &Team) -> Outcome {
    let numbers = [1_u32, 2];
    let floats = Datatype::of::<f32>().contiguous(2)?;
    let twice = Datatype::of::<u32>().indexed(&[0..1, 0..1])?;
    if team.rank() == Rank(0) {
        let outcome = pgo::scope(team, 1, |scope| {
            scope.put(&numbers, Rank(1), 3)?;
            scope.offer(nothing(), 0)
        });
        failed(
            outcome,
            ErrorKind::OutsideOffer,
            "offer at rank 1 by rank 0 reaches outside the offered range, against an own event: bytes 12..20 of an offer of \
             16 bytes were named; tag 1",
        );
        let outcome = pgo::scope(team, 2, |scope| {
            failed(
                scope.put(&numbers, Rank(1), (0, &floats)),
                ErrorKind::DatatypeMismatch,
                "put at rank 1 by rank 0 differs in basic types between origin and target: nothing is moved; tag 2",
            );
            scope.offer(nothing(), 0)
        });
        failed(
            outcome,
            ErrorKind::DatatypeMismatch,
            "offer at rank 1 by rank 0 differs in basic types between origin and target, against an own event: nothing was \
             moved; tag 2",
        );
        let outcome = pgo::scope(team, 3, |scope| {
            scope.put(&numbers, Rank(1), (0, &twice))?;
            scope.offer(nothing(), 0)
        });
        failed(
            outcome,
            ErrorKind::OverlappingLayout,
            "offer at rank 1 by rank 0 has a target layout that names a byte twice, against an own event: its target layout \
             was not used; tag 3",
        );
        let outcome = pgo::scope(team, 4, |scope| {
            scope.putc(&numbers, Rank(1), 0)?;
            scope.offerc(nothing())
        });
        failed(
            outcome,
            ErrorKind::EventNotOffered,
            "offerc at rank 1 by rank 0 is an event of a kind that no offer allows, against an own event: the round offers \
             the other kind only; tag 4",
        );
        let outcome = pgo::scope(team, 5, |scope| scope.putc(&numbers, Rank(1), 0));
        failed(
            outcome,
            ErrorKind::EpochStillOpen,
            "end of scope at rank 1 by rank 0 finds an epoch still open: 1 events of the collective family were issued that \
             no offerc completes; tag 5",
        );
    } else {
        let mut buffer = [0_u32; 4];
        failed(
            pgo::offer(team, 1, over(&mut buffer, PUTS_OK), 1),
            ErrorKind::OutsideOffer,
            "offer by rank 1 reaches outside the offered range, against an event of rank 0: bytes 12..20 of an offer of 16 \
             bytes were named; tag 1",
        );
        failed(
            pgo::offer(team, 2, over(&mut buffer, PUTS_OK), 1),
            ErrorKind::DatatypeMismatch,
            "offer by rank 1 differs in basic types between origin and target, against an event of rank 0: nothing was moved; \
             tag 2",
        );
        failed(
            pgo::offer(team, 3, over(&mut buffer, PUTS_OK), 1),
            ErrorKind::OverlappingLayout,
            "offer by rank 1 has a target layout that names a byte twice, against an event of rank 0: its target layout was \
             not used; tag 3",
        );
        failed(
            pgo::offerc(team, 4, over(&mut buffer, GETS_OK)),
            ErrorKind::EventNotOffered,
            "offerc by rank 1 is an event of a kind that no offer allows, against an event of rank 0: the round offers the \
             other kind only; tag 4",
        );
        assert_eq!(buffer, [0; 4]);
    }
    Ok(())
}

// covers: PGO-GEN-09, PGO-COLL-16 -- the benchmark is `examples/pgo_halo.rs`, which prints the time of a step for each family
fn the_documentation_says_which_family(_: &Team) -> Outcome {
    let sources = [include_str!("../../../src/pgo/mod.rs"), include_str!("../../../src/pgo/scope.rs")];
    let page = |call: &str| -> String {
        // The comment above a call, in either file; those of the events are in the table of a macro.
        let find = |source: &str| {
            let lines: Vec<&str> = source.lines().collect();
            let at = lines.iter().position(|line| {
                line.contains(&format!("pub fn {call}<")) || line.trim_start().starts_with(call)
            })?;
            let above: String = lines[..at]
                .iter()
                .rev()
                .take_while(|line| !line.trim().is_empty())
                .map(|line| line.trim_start_matches([' ', '/']).to_owned() + " ")
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect();
            let behind: String =
                lines[at..].iter().take(4).map(|line| line.trim().to_owned() + " ").collect();
            Some(above + &behind)
        };
        sources.iter().filter_map(|source| find(source)).collect()
    };
    for call in ["putp getp", "offerp", "iofferp", "offerp_init"] {
        let text = page(call);
        assert!(
            text.contains("refer the non-progressive") || text.contains("prefer [`ioffer`]"),
            "{call}: {text}"
        );
        assert!(
            text.contains("one after the other") || text.contains("cost"),
            "{call} names no reason: {text}"
        );
    }
    Ok(())
}
