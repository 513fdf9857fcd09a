//! The second transcription answers every call in every state. Never compares it with the table.

mod naive;

use naive::naive;
use rma_automaton::{
    AccessState, Call, Check, Dialect, Elsewhere, ErrorKind, ExposureState, Input, Inputs, Outcome, Permit,
    State, Toward, Transfer, Tri, WaitFor,
};

#[test]
fn every_call_of_a_dialect_has_an_outcome_in_every_state() {
    for dialect in Dialect::ALL {
        for state in State::all() {
            for call in Call::ALL {
                let outcomes = naive(dialect, state, call, Inputs::UNKNOWN);
                assert_eq!(
                    !outcomes.is_empty(),
                    dialect.has(call),
                    "{dialect:?}, {state:?}, {call:?}: {outcomes:?}"
                );
            }
        }
    }
}

#[test]
fn known_inputs_leave_one_outcome_that_the_unknown_ones_have_too() {
    for dialect in Dialect::ALL {
        for state in State::all() {
            for call in Call::ALL.into_iter().filter(|&call| dialect.has(call)) {
                let all = naive(dialect, state, call, Inputs::UNKNOWN);
                for inputs in [Inputs::FINE, Inputs::all(Tri::No), Inputs::all(Tri::Yes)] {
                    let outcomes = naive(dialect, state, call, inputs);
                    assert_eq!(
                        outcomes.len(),
                        1,
                        "{dialect:?}, {state:?}, {call:?}, {inputs:?}: {outcomes:?}"
                    );
                    assert!(all.contains(&outcomes[0]), "{dialect:?}, {state:?}, {call:?}, {inputs:?}");
                }
            }
        }
    }
}

#[test]
fn every_input_that_a_call_reads_makes_a_difference_in_some_state() {
    for call in Call::ALL {
        for &input in call.reads() {
            let matters = Dialect::ALL.into_iter().any(|dialect| {
                State::all().any(|state| {
                    let yes = naive(dialect, state, call, Inputs::FINE.with(input, Tri::Yes));
                    yes != naive(dialect, state, call, Inputs::FINE.with(input, Tri::No))
                })
            });
            // The inputs are named for the call's family; these members have no use for theirs.
            let idle = match call {
                Call::Complete(Toward::This | Toward::Both) => input == Input::Ends,
                Call::Complete(Toward::Another)
                | Call::Flush(Toward::Another)
                | Call::Unlock(Toward::Another) => {
                    matches!(input, Input::Vouched | Input::InGroup)
                }
                Call::Transfer(Toward::Another, _) => {
                    matches!(input, Input::Vouched | Input::InGroup | Input::Permitted)
                }
                _ => false,
            };
            assert_eq!(matters, !idle, "{call:?}, {input:?}");
        }
    }
}

/// The states that a window can come to, in either dialect.
fn reached(dialect: Dialect) -> Vec<State> {
    let mut seen = vec![State::CREATED, State::CREATED_POSTED];
    let mut next = 0;
    while next < seen.len() {
        for call in Call::ALL {
            for outcome in naive(dialect, seen[next], call, Inputs::UNKNOWN) {
                match outcome {
                    Outcome::Next(state) if !seen.contains(&state) => seen.push(state),
                    Outcome::Next(_) | Outcome::Error(_) => {}
                }
            }
        }
        next += 1;
    }
    seen
}

#[test]
fn every_state_is_reached_but_a_posted_guard_beside_a_lock() {
    let (seed, mpi) = (reached(Dialect::Seed), reached(Dialect::Mpi));
    for state in State::all() {
        // Guards are the seeds', and a lock beside a posted window is MPI's.
        let locks =
            matches!(state.access(), AccessState::Locked(_)) || state.elsewhere() == Elsewhere::Locked;
        let in_neither = state.exposure() == ExposureState::ViewPosted && locks;
        assert_eq!(!seed.contains(&state) && !mpi.contains(&state), in_neither, "{state:?}");
    }
}

/// Goes through calls of one rank, each with its inputs, and gives the last outcome.
fn walk(dialect: Dialect, calls: &[(Call, Inputs)]) -> Outcome {
    let mut state = State::CREATED;
    let mut last = Outcome::Next(state);
    for (index, &(call, inputs)) in calls.iter().enumerate() {
        last = naive(dialect, state, call, inputs)[0];
        match last {
            Outcome::Next(next) => state = next,
            Outcome::Error(_) => assert_eq!(index + 1, calls.len(), "{call:?} in {state:?} gave {last:?}"),
        }
    }
    last
}

#[test]
fn the_owner_of_the_visibility_examples_is_right_in_the_first_and_wrong_in_the_second() {
    let fine = Inputs::FINE;
    let concerned = Inputs { unordered: Tri::Yes, ..fine };
    for dialect in Dialect::ALL {
        let first = [
            (Call::Post(Permit::All), fine),
            (Call::Start(Toward::This, Check::Checked), fine),
            (Call::Transfer(Toward::This, Transfer::Put), fine),
            (Call::Complete(Toward::Both), fine),
            (Call::Wait(WaitFor::Group), fine),
            (Call::Load, fine),
            (Call::Barrier, fine),
            (Call::PeerUpdate, fine),
            (Call::Barrier, fine),
            (Call::Post(Permit::All), fine),
            (Call::Load, fine),
            (Call::Wait(WaitFor::Group), fine),
        ];
        assert_eq!(walk(dialect, &first), Outcome::Next(State::CREATED));
        let second =
            [(Call::Barrier, fine), (Call::PeerUpdate, fine), (Call::Barrier, fine), (Call::Load, concerned)];
        assert_eq!(walk(dialect, &second), Outcome::Error(ErrorKind::UnsafeLocalRead));
    }
}
