//! Compares the table with a second transcription of the requirements, over every dialect, state and call and every
//! value of every input that the call reads.

mod naive;

use std::io::Write as _;

use rma_automaton::{Call, Dialect, Inputs, Outcomes, State, Tri};

/// How many disagreements are printed before the rest is only counted.
const SHOWN_MAX: usize = 60;

#[test]
fn table_and_naive_transcription_agree_everywhere() {
    let (mut triples, mut combinations, mut disagreements) = (0_usize, 0_usize, Vec::new());
    for dialect in Dialect::ALL {
        for state in State::all() {
            for call in Call::ALL {
                triples += 1;
                let mut first = None;
                for inputs in every_input(call) {
                    combinations += 1;
                    let table = state.step(dialect, call, inputs);
                    let naive: Outcomes = naive::naive(dialect, state, call, inputs).into_iter().collect();
                    if table != naive && first.is_none() {
                        first = Some((inputs, table, naive));
                    }
                }
                if let Some((inputs, table, naive)) = first {
                    let inputs: Vec<_> =
                        call.reads().iter().map(|&input| (input, inputs.get(input))).collect();
                    disagreements.push(format!(
                        "{dialect:?} {state:?} {call:?} {inputs:?}\n    table {table:?}\n    naive {naive:?}"
                    ));
                }
            }
        }
    }
    // Past the harness, which would keep the line of a passing test to itself.
    writeln!(
        std::io::stderr(),
        "compared {triples} triples of dialect, state and call, {combinations} with their inputs"
    )
    .expect("stderr is open");
    for disagreement in disagreements.iter().take(SHOWN_MAX) {
        println!("{disagreement}");
    }
    assert!(disagreements.is_empty(), "{} triples of {triples} disagree", disagreements.len());
}

/// Every combination of values of the inputs that the call reads; the others are in order.
fn every_input(call: Call) -> Vec<Inputs> {
    call.reads().iter().fold(vec![Inputs::FINE], |all, &input| {
        all.into_iter().flat_map(|inputs| Tri::ALL.map(|tri| inputs.with(input, tri))).collect()
    })
}
