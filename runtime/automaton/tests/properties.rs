//! What holds for the table as a whole, tried on every state, call and input rather than on samples.

use rma_automaton::{
    AccessState, Call, Dialect, Elsewhere, ErrorKind, ErrorSet, ExposureState, Input, Inputs, LocalAccess,
    LocalOp, Outcome, Outcomes, State, StateSet, Tri,
};

/// Every dialect with every call.
fn calls() -> impl Iterator<Item = (Dialect, Call)> {
    Dialect::ALL.into_iter().flat_map(|dialect| Call::ALL.map(|call| (dialect, call)))
}

/// Every combination of these values of the inputs that the call reads; the others are in order.
fn inputs(call: Call, values: &[Tri]) -> Vec<Inputs> {
    call.reads().iter().fold(vec![Inputs::FINE], |all, &input| {
        all.iter().flat_map(|inputs| values.iter().map(|&tri| inputs.with(input, tri))).collect()
    })
}

#[test]
fn known_inputs_have_exactly_one_outcome() {
    for (dialect, call) in calls() {
        for state in State::all() {
            for inputs in inputs(call, &[Tri::No, Tri::Yes]) {
                let only = state.step(dialect, call, inputs).only();
                assert_eq!(only.is_some(), dialect.has(call), "{dialect:?} {state:?} {call:?} {inputs:?}");
            }
        }
    }
}

#[test]
fn unknown_input_is_the_union_of_yes_and_no() {
    for (dialect, call) in calls() {
        for state in State::all() {
            for inputs in inputs(call, &Tri::ALL) {
                for &input in call.reads().iter().filter(|&&input| inputs.get(input) == Tri::Unknown) {
                    let step = |tri| state.step(dialect, call, inputs.with(input, tri));
                    let union = step(Tri::Yes).union(step(Tri::No));
                    assert_eq!(step(Tri::Unknown), union, "{dialect:?} {state:?} {call:?} {input:?}");
                }
            }
        }
    }
}

#[test]
fn inputs_that_a_call_does_not_read_have_no_influence() {
    for (dialect, call) in calls() {
        for state in State::all() {
            for inputs in inputs(call, &[Tri::No, Tri::Yes]) {
                let expected = state.step(dialect, call, inputs);
                for input in Input::ALL.into_iter().filter(|input| !call.reads().contains(input)) {
                    for tri in Tri::ALL {
                        let other = state.step(dialect, call, inputs.with(input, tri));
                        assert_eq!(other, expected, "{dialect:?} {state:?} {call:?} {input:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn inputs_that_a_call_reads_have_influence_in_some_state() {
    for call in Call::ALL.into_iter().filter(|&call| Dialect::ALL.iter().any(|dialect| dialect.has(call))) {
        for &input in call.reads() {
            let matters = State::all().any(|state| {
                Dialect::ALL.into_iter().any(|dialect| {
                    let step = |tri| state.step(dialect, call, Inputs::FINE.with(input, tri));
                    step(Tri::Yes) != step(Tri::No)
                })
            });
            assert!(matters, "{call:?} {input:?}");
        }
    }
}

#[test]
fn step_of_a_set_is_the_union_of_its_members_steps() {
    let states: Vec<State> = State::all().collect();
    for (dialect, call) in calls() {
        for size in [0, 1, 2, 7, states.len()] {
            for members in states.chunks(size.max(1)).map(|chunk| &chunk[..size.min(chunk.len())]) {
                let set: StateSet = members.iter().copied().collect();
                let expected: Outcomes = members
                    .iter()
                    .flat_map(|state| state.step(dialect, call, Inputs::UNKNOWN).iter().collect::<Vec<_>>())
                    .collect();
                assert_eq!(set.step(dialect, call, Inputs::UNKNOWN), expected, "{dialect:?} {call:?}");
            }
        }
    }
}

#[test]
fn every_outcome_is_a_state_that_exists_and_keeps_walking() {
    for (dialect, call) in calls() {
        for state in State::all() {
            let next = state.step(dialect, call, Inputs::UNKNOWN).next();
            assert!(next.is_subset_of(StateSet::ALL), "{dialect:?} {state:?} {call:?} leads to {next:?}");
        }
    }
}

/// The states that a program of the dialect can come to.
fn reachable(dialect: Dialect) -> StateSet {
    let mut seen = StateSet::of(State::CREATED).with(State::CREATED_POSTED);
    loop {
        let more = Call::ALL
            .into_iter()
            .fold(seen, |all, call| all.union(seen.step(dialect, call, Inputs::UNKNOWN).next()));
        if more == seen {
            return seen;
        }
        seen = more;
    }
}

#[test]
fn every_state_is_reachable_in_some_dialect() {
    let [seed, mpi] = Dialect::ALL.map(reachable);
    println!("{} states, {} of them in the seeds' dialect, {} in MPI's", State::COUNT, seed.len(), mpi.len());
    // Only MPI has locks while the caller is posted, and only the seeds' dialect has guards.
    let of_two_dialects = |state: State| {
        let locked =
            matches!(state.access(), AccessState::Locked(_)) || state.elsewhere() == Elsewhere::Locked;
        locked && state.exposure() == ExposureState::ViewPosted
    };
    for state in State::all() {
        let reachable = seed.union(mpi).contains(state);
        assert_eq!(reachable, !of_two_dialects(state), "{state:?}");
    }
}

#[test]
fn every_program_can_still_free_its_window() {
    for dialect in Dialect::ALL {
        let mut leads_there = State::CREATED.step(dialect, Call::Free, Inputs::FINE).next();
        loop {
            let before = leads_there;
            for state in State::all() {
                for call in Call::ALL.into_iter().filter(|&call| call != Call::Poison) {
                    let next = state.step(dialect, call, Inputs::UNKNOWN).next();
                    if next.iter().any(|next| leads_there.contains(next)) {
                        leads_there = leads_there.with(state);
                    }
                }
            }
            if leads_there == before {
                break;
            }
        }
        assert!(reachable(dialect).is_subset_of(leads_there), "{dialect:?}");
    }
}

#[test]
fn local_access_agrees_with_the_steps() {
    for (op, call) in [(LocalOp::Load, Call::Load), (LocalOp::Store, Call::Store)] {
        for dialect in Dialect::ALL {
            for state in State::all() {
                let step = |unordered| state.step(dialect, call, Inputs { unordered, ..Inputs::FINE });
                let (apart, concerned) = (step(Tri::No).only().unwrap(), step(Tri::Yes).only().unwrap());
                let legal = Outcome::Next(state);
                match state.local_access(op) {
                    LocalAccess::Plain => assert_eq!((apart, concerned), (legal, legal), "{state:?}"),
                    LocalAccess::Volatile => assert_eq!(apart, legal, "{state:?}"),
                    LocalAccess::VolatileUnless(kind) => {
                        assert_eq!((apart, concerned), (legal, Outcome::Error(kind)), "{state:?}");
                    }
                    LocalAccess::Forbidden(kind) => {
                        assert_eq!(
                            (apart, concerned),
                            (Outcome::Error(kind), Outcome::Error(kind)),
                            "{state:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn local_access_of_a_set_is_the_strictest_of_its_members() {
    for op in [LocalOp::Load, LocalOp::Store] {
        assert_eq!(StateSet::EMPTY.local_access(op), None);
        for first in State::all() {
            for second in State::all() {
                let both = StateSet::of(first).with(second).local_access(op);
                assert_eq!(both, Some(first.local_access(op).max(second.local_access(op))));
            }
        }
    }
}

#[test]
fn state_parts_and_sets_round_trip() {
    let all: StateSet = State::all().collect();
    assert_eq!((all, all.len()), (StateSet::ALL, State::all().count()));
    for state in State::all() {
        assert_eq!(State::new(state.access(), state.elsewhere(), state.exposure()), Some(state));
        assert_eq!(StateSet::of(state).iter().collect::<Vec<_>>(), [state]);
        assert!(StateSet::of(state).is_subset_of(all) && !StateSet::EMPTY.contains(state));
    }
    for kind in ErrorKind::ALL {
        assert_eq!(ErrorSet::of(kind).iter().collect::<Vec<_>>(), [kind]);
    }
}

#[test]
fn every_row_names_requirements_that_exist() {
    let catalogue = concat!(
        include_str!("../../../docs/spec/rma.md"),
        include_str!("../../../docs/spec/pgo.md"),
        include_str!("../../../docs/spec/visibility.md"),
        include_str!("../../../docs/spec/examples.md"),
        include_str!("../../../docs/spec/register-hazard.md"),
    );
    for (dialect, call) in calls() {
        let rows = dialect.requirements(call);
        assert_eq!(rows.iter().all(|row| !row.is_empty()), dialect.has(call), "{dialect:?} {call:?}");
        for id in
            rows.iter().flat_map(|row| row.split_whitespace()).filter(|id| !["MPI", "silent"].contains(id))
        {
            let heading = format!("#### {id}");
            let found =
                catalogue.lines().any(|line| line == heading || line.starts_with(&format!("{heading} ")));
            assert!(found, "{id} is not in the catalogue");
        }
    }
}
