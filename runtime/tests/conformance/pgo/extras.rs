//! Ready forms, persistent offers, memory that ranks share, flow, and what is left of a failure.

use rma::pgo::{self, COUNT_ANY, GETS_OK, PUTS_OK, malloc, nothing, over};
use rma::private::testing::pgo_counters;
use rma::{ErrorKind, Origins, Rank, Returned, Team, Window};

use super::pends;
use crate::{Case, Outcome, case, kind_of};

pub(crate) const CASES: &[Case] = &[
    case!(a_promised_offer_is_there_or_not, [2]).one_copy().under(&[""]),
    case!(persistent_offers_take_memory_once, [3]).one_copy().under(&[""]),
    case!(shared_memory_saves_copies, [2]).one_copy().under(&[""]).mapped(),
    case!(shared_memory_comes_and_goes, [2]).one_copy().under(&[""]),
    case!(shared_memory_does_for_everything, [2]).one_copy().under(&[""]),
    case!(puts_return_whatever_the_target_does, [2]).one_copy().under(&[""]),
    case!(an_error_takes_events_back, [2]).one_copy().under(&[""]),
    case!(a_panic_takes_events_back, [2]).one_copy().under(&[""]),
    case!(a_leaked_request_keeps_its_memory, [2]).one_copy().under(&[""]),
    case!(a_killed_target_ends_an_offer, [3]).one_copy().under(&[""]).surviving(2),
];

// covers: PGO-EXT-01
fn a_promised_offer_is_there_or_not(team: &Team) -> Outcome {
    let numbers = [1_u32, 2];
    if team.rank() == Rank(0) {
        let mut back = [0_u32; 2];
        let outcome = pgo::scope(team, 1, |scope| {
            scope.rput(&numbers, Rank(1), 0)?;
            scope.offer(nothing(), 0)
        });
        assert_eq!(kind_of(outcome), ErrorKind::NotOffered);
        team.barrier()?;
        team.barrier()?;
        pgo::scope(team, 1, |scope| {
            scope.rput(&numbers, Rank(1), 1)?;
            scope.rget(&mut back, Rank(1), 1)
        })?;
        assert_eq!(back, numbers);
    } else {
        team.barrier()?;
        let mut request = pgo::ioffer(team, 1, over(vec![0_u32; 3], PUTS_OK + GETS_OK), 2)?;
        team.barrier()?;
        request.wait()?;
        assert_eq!(request.into_inner(), [0, 1, 2]);
    }
    Ok(())
}

// covers: PGO-EXT-02
fn persistent_offers_take_memory_once(team: &Team) -> Outcome {
    let rounds = if crate::is_full() { 1000_u32 } else { 100 };
    let (me, size) = (team.rank(), team.size());
    let (left, right) = (Rank((me.0 + size - 1) % size), Rank((me.0 + 1) % size));
    let mut collective = pgo::offerc_init(team, 1, over(vec![0_u32; 2], PUTS_OK))?;
    let mut plain = pgo::offer_init(team, 2, over(vec![0_u32; 2], PUTS_OK), 1)?;
    let mut taken = 0;
    for round in 0..rounds {
        let numbers = [me.0, round];
        pgo::scope(team, 1, |scope| {
            scope.putc(&numbers, right, 0)?;
            collective.start()?;
            assert_eq!(kind_of(collective.start()), ErrorKind::EpochStillOpen);
            assert_eq!(kind_of(collective.buffer()), ErrorKind::LocalAccessDuringOffer);
            scope.wait_started(&mut collective)
        })?;
        assert_eq!(*collective.buffer()?, [left.0, round]);
        plain.start()?;
        pgo::scope(team, 2, |scope| {
            scope.put(&numbers, right, 0)?;
            scope.wait_started(&mut plain)
        })?;
        assert_eq!(*plain.buffer()?, [left.0, round]);
        // The first rounds take what messages and waiting events need, which is kept. How many of these are on their way at
        // one time differs.
        if round == rounds / 2 {
            taken = pgo_counters(team)[6];
        }
    }
    let more = pgo_counters(team)[6] - taken;
    assert!(more < u64::from(rounds) / 4, "{more} blocks of memory in the second half of {rounds} rounds");
    #[cfg(feature = "progressive")]
    {
        let mut progressive = pgo::offerp_init(team, 3, over(vec![0_u32; 2], PUTS_OK), 1)?;
        for round in 0..10 {
            let numbers = [me.0, round];
            progressive.start()?;
            pgo::scope(team, 3, |scope| {
                scope.putp(&numbers, right, 0)?;
                scope.wait_started(&mut progressive)
            })?;
            assert_eq!(*progressive.buffer()?, [left.0, round]);
        }
        assert_eq!(progressive.into_inner(), [left.0, 9]);
    }
    Ok(())
}

// covers: PGO-MEM-01
fn shared_memory_saves_copies(team: &Team) -> Outcome {
    let len = 10_000;
    let staged = |tag: u64, is_shared: bool| -> rma::Result<u64> {
        let numbers = vec![7_u64; len];
        let before = pgo_counters(team)[3];
        if team.rank() == Rank(0) {
            team.barrier()?;
            pgo::scope(team, tag, |scope| scope.put(&numbers, Rank(1), 0))?;
        } else if is_shared {
            let mut request = pgo::ioffer(team, tag, over(malloc::<u64>(team, len)?, PUTS_OK), 1)?;
            team.barrier()?;
            request.wait()?;
            assert_eq!(request.into_inner()[..], numbers);
        } else {
            let mut request = pgo::ioffer(team, tag, over(vec![0_u64; len], PUTS_OK), 1)?;
            team.barrier()?;
            request.wait()?;
            assert_eq!(request.into_inner(), numbers);
        }
        team.barrier()?;
        Ok(pgo_counters(team)[3] - before)
    };
    let (plain, shared) = (staged(1, false)?, staged(2, true)?);
    // The put itself is one copy, and the only one if the offered memory is shared; else what was put comes back from the mirror.
    assert_eq!((plain, shared), (if team.rank() == Rank(1) { 1 } else { 0 }, 0));
    Ok(())
}

// covers: PGO-MEM-02
fn shared_memory_comes_and_goes(team: &Team) -> Outcome {
    if team.rank() == Rank(0) {
        // A local call, so the other rank takes no part. What is freed is used again.
        for round in 0..1000_usize {
            let mut memory = malloc::<u64>(team, 1 + round * 50)?;
            assert!(memory.iter().all(|&word| word == 0), "zeroed");
            memory.fill(!0);
        }
        assert_eq!(kind_of(malloc::<u64>(team, usize::MAX / 8)), ErrorKind::System);
        assert_eq!(kind_of(malloc::<u64>(team, usize::MAX)), ErrorKind::System);
        assert!(malloc::<u64>(team, 0)?.is_empty());
    }
    let entries = std::fs::read_dir("/dev/shm").map_or(0, |entries| {
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().contains("rma")).count()
    });
    assert_eq!(entries, 0, "nothing has a name there");
    team.barrier()?;
    Ok(())
}

// covers: PGO-MEM-03
fn shared_memory_does_for_everything(team: &Team) -> Outcome {
    let other = Rank(1 - team.rank().0);
    // Plain memory, and the origin of a put of an offer's scope that puts into such memory.
    let mut memory = malloc::<u64>(team, 4)?;
    let mut origin = malloc::<u64>(team, 2)?;
    origin.copy_from_slice(&[10 + u64::from(other.0), 20]);
    let start = memory.as_ptr();
    pgo::scope(team, 1, |scope| {
        scope.put(&origin[..], other, 1)?;
        scope.offer(over(&mut memory, PUTS_OK), 1)
    })?;
    assert_eq!(memory[..], [0, 10 + u64::from(team.rank().0), 20, 0]);
    // A window, into which it is the origin, too.
    let mut window = Window::create(team, memory)?;
    window.fence(|epoch| epoch.put(other, 2, &origin[..]))?;
    assert_eq!(window.load(1)?, 10 + u64::from(team.rank().0));
    let memory: pgo::Malloc<u64> = window.into_inner()?;
    let own = 10 + u64::from(team.rank().0);
    assert_eq!(memory[..], [0, own, own, 20]);
    assert_eq!(memory.as_ptr(), start, "it is the same memory");
    // While it is windowed, it is the window's; a window that is in use does not end well.
    let window = Window::create(team, memory)?;
    let vector: Vec<u64> = window.into_inner()?;
    assert_eq!(vector, [0, own, own, 20], "memory of another kind is a copy");
    let mut window = Window::create(team, origin)?;
    std::mem::forget(window.post(Origins::Any)?);
    let Returned { error, memory } =
        window.into_inner::<pgo::Malloc<u64>>().expect_err("an exposure is open");
    assert_eq!((error.kind(), memory.len()), (ErrorKind::EpochStillOpen, 2));
    // While it is offered, it is the offer's.
    let mut persistent = pgo::offer_init(team, 2, over(memory, PUTS_OK), 1)?;
    persistent.start()?;
    assert_eq!(kind_of(persistent.buffer()), ErrorKind::LocalAccessDuringOffer);
    pgo::scope(team, 2, |scope| {
        scope.put(&[9_u64], team.rank(), 0)?;
        scope.wait_started(&mut persistent)
    })?;
    assert_eq!(persistent.into_inner()[0], 9);
    Ok(())
}

// covers: PGO-PUT-02
fn puts_return_whatever_the_target_does(team: &Team) -> Outcome {
    let events = if crate::is_full() { 100_000 } else { 10_000 };
    const LEN: usize = 1024;
    if team.rank() == Rank(0) {
        let data = vec![1_u8; events * LEN];
        pgo::scope(team, 1, |scope| {
            // The target makes no call until all of them have returned.
            for (i, piece) in data.chunks(LEN).enumerate() {
                scope.put(piece, Rank(1), i * LEN)?;
            }
            team.barrier()?;
            scope.offer(nothing(), 0).map(drop)
        })?;
    } else {
        team.barrier()?;
        let mut memory = malloc::<u8>(team, events * LEN)?;
        pgo::offer(team, 1, over(&mut memory, PUTS_OK), events as u64)?;
        assert!(memory.iter().all(|&byte| byte == 1));
    }
    Ok(())
}

fn an_error_takes_events_back(team: &Team) -> Outcome {
    let number = [1_u8];
    if team.rank() == Rank(0) {
        let outcome = pgo::scope(team, 1, |scope| {
            scope.put(&number, Rank(1), 0)?;
            Err::<(), Box<dyn std::error::Error + Send + Sync>>("changed its mind".into())
        });
        assert!(outcome.is_err());
        team.barrier()?;
    } else {
        team.barrier()?;
        pends(team, || pgo::offer(team, 1, over(&mut [0_u8], PUTS_OK), 1));
    }
    team.barrier()?;
    Ok(())
}

fn a_panic_takes_events_back(team: &Team) -> Outcome {
    let number = vec![1_u8; 100_000];
    if team.rank() == Rank(0) {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pgo::scope(team, 1, |scope| {
                scope.put(&number, Rank(1), 0)?;
                if team.rank() == Rank(0) {
                    std::panic::resume_unwind(Box::new("a panic of the body"));
                }
                Ok::<(), rma::Error>(())
            })
        }));
        assert!(outcome.is_err());
        drop(number);
        team.barrier()?;
        // The scope is closed.
        pgo::scope(team, 1, |_| Ok::<(), rma::Error>(()))?;
    } else {
        team.barrier()?;
        pends(team, || pgo::offer(team, 1, over(&mut vec![0_u8; 100_000], PUTS_OK), 1));
    }
    team.barrier()?;
    Ok(())
}

fn a_leaked_request_keeps_its_memory(team: &Team) -> Outcome {
    let numbers = [1_u64; 1000];
    if team.rank() == Rank(0) {
        let memory = malloc::<u64>(team, 1000)?;
        std::mem::forget(pgo::ioffer(team, 1, over(memory, PUTS_OK), COUNT_ANY)?);
        std::mem::forget(pgo::ioffer(team, 2, over(vec![0_u64; 1000], PUTS_OK), COUNT_ANY)?);
        team.barrier()?;
        // Whatever is allocated now is other memory.
        let others: Vec<_> = (0..20).map(|_| malloc::<u64>(team, 1000)).collect::<rma::Result<_>>()?;
        team.barrier()?;
        assert!(others.iter().all(|other| other.iter().all(|&word| word == 0)));
    } else {
        team.barrier()?;
        for tag in [1, 2] {
            pgo::scope(team, tag, |scope| (0..50).try_for_each(|_| scope.put(&numbers, Rank(0), 0)))?;
        }
        team.barrier()?;
    }
    Ok(())
}

fn a_killed_target_ends_an_offer(team: &Team) -> Outcome {
    let mut got = [0_u8];
    if team.rank() == Rank(1) {
        team.barrier()?;
        let _ = std::process::Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status();
        unreachable!("killed");
    }
    let outcome = match team.rank() {
        // An own event waits for it; events may come from it.
        Rank(0) => pgo::scope(team, 1, |scope| {
            scope.get(&mut got, Rank(1), 0)?;
            team.barrier()?;
            scope.offer(nothing(), 0)
        }),
        _ => {
            team.barrier()?;
            pgo::offer(team, 1, over(&mut got, GETS_OK), 1)
        }
    };
    let error = outcome.expect_err("rank 1 is gone");
    assert_eq!((error.kind(), error.context().lost), (ErrorKind::PeerLost, Some(Rank(1))), "{error}");
    println!("{}", crate::SURVIVED);
    Ok(())
}
