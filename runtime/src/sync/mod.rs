//! Synchronization words that live in shared memory. Never reaches beyond `primitive`, so that the files can be
//! checked by loom: `tests/loom.rs` includes them beside its own `primitive`.

pub(crate) mod barrier;
pub(crate) mod desk;
pub(crate) mod event;
pub(crate) mod exposure;
pub(crate) mod guard;
pub(crate) mod handover;
pub(crate) mod marks;
pub(crate) mod notices;
pub(crate) mod phases;
pub(crate) mod primitive;
pub(crate) mod registers;
pub(crate) mod state_word;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::marks::{Marks, words_for};
    use super::state_word::{Request, Sharing, Slot, StateWord, Ticket, Turn};

    const SLOTS: usize = 4;
    /// After so many tickets their numbers come round.
    const TICKETS: u32 = 1 << 16;

    fn queued(word: &StateWord, rank: u32) -> Ticket {
        match word.request(rank, Sharing::Exclusive, SLOTS) {
            Ok(Request::Queued(ticket)) => ticket,
            other => panic!("the lock is held: {other:?}"),
        }
    }

    #[test]
    fn an_abandoned_ticket_is_not_mistaken_for_its_successor() {
        let (word, slots) = (StateWord::new(), std::array::from_fn::<_, SLOTS, _>(|_| Slot::new()));
        let settle = || word.settle(|ticket| &slots[ticket.slot(SLOTS)]);
        assert_eq!(word.request(0, Sharing::Exclusive, SLOTS), Ok(Request::Granted));
        let given_up = queued(&word, 1);
        slots[given_up.slot(SLOTS)].enter(given_up, 1);
        slots[given_up.slot(SLOTS)].abandon(given_up);
        assert!(word.unlock(0, Sharing::Exclusive));
        assert_eq!(settle(), None);
        // All tickets but the holder's and the one that was given up, none of which enters a slot.
        for _ in 0..TICKETS - 2 {
            assert_eq!(word.request(0, Sharing::Exclusive, SLOTS), Ok(Request::Granted));
            word.unlock(0, Sharing::Exclusive);
        }
        assert_eq!(word.request(0, Sharing::Exclusive, SLOTS), Ok(Request::Granted));
        let waiting = queued(&word, 2);
        assert_eq!(waiting, given_up, "tickets come round");
        // The lock is free before the waiter has entered its slot.
        assert!(word.unlock(0, Sharing::Exclusive));
        assert_eq!(settle(), Some(waiting));
        assert_eq!(word.poll(waiting, 2, Sharing::Exclusive), Turn::Mine);
    }

    #[test]
    fn a_holder_with_the_same_ticket_excludes() {
        let word = StateWord::new();
        assert_eq!(word.request(0, Sharing::Exclusive, SLOTS), Ok(Request::Granted));
        let first = queued(&word, 1);
        word.unlock(0, Sharing::Exclusive);
        assert_eq!(word.poll(first, 1, Sharing::Exclusive), Turn::Mine);
        for sharing in [Sharing::Exclusive, Sharing::Shared] {
            assert_eq!(word.poll(first, 2, sharing), Turn::Waiting);
        }
    }

    #[test]
    fn marks_are_the_bytes_that_were_written() {
        // A generator of numbers that need not be good, only many.
        let mut state = 1_u64;
        let mut below = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        for bytes in [1, 63, 64, 65, 4096, 4097, 300_000] {
            let words: Vec<AtomicU64> = (0..words_for(bytes)).map(|_| AtomicU64::new(0)).collect();
            let marks = Marks::new(&words, bytes);
            for round in 0..50 {
                let mut written = vec![false; bytes];
                for _ in 0..below(6) {
                    let start = below(bytes);
                    let most = (bytes - start).min(1 << below(16));
                    let len = below(most + 1);
                    written[start..start + len].fill(true);
                    marks.add(start, len);
                }
                let mut taken = vec![false; bytes];
                let mut end = None;
                marks.take(|start, len| {
                    assert!(0 < len && end.is_none_or(|end| end < start), "runs ascend and are apart");
                    taken[start..start + len].fill(true);
                    end = Some(start + len);
                });
                assert!(taken == written, "{bytes} bytes, round {round}");
                marks.take(|start, len| panic!("{len} marks at {start} are left"));
            }
        }
        Marks::new(&[], 0).take(|_, _| panic!("nothing can be marked"));
    }
}
