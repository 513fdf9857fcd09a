//! rma-bench prints what the peers' program prints, so that a table can put them side by side. Never looks at how fast
//! anything is.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

const UNITS: [&str; 6] = ["us", "GB/s", "Mmsg/s", "kop/s", "us/op/rank", "ratio"];

/// Metrics that the peers' program has no counterpart of.
const OURS_ONLY: [&str; 7] = [
    "acc_sum_f64_array_exclusive",
    "win_setup_again_median",
    "pgo_put_offer_exchange",
    "pgo_put_started_offer_exchange",
    "pgo_putc_offerc_exchange",
    "pgo_put_offer_over_pscw",
    "pgo_put_started_offer_over_pscw",
];

fn bench(ranks: u32, transport: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rma-run"))
        .args(["-n", &ranks.to_string(), "--timeout", "60", "--transport", transport])
        .arg(env!("CARGO_BIN_EXE_rma-bench"))
        .args(arguments)
        .output()
        .expect("rma-run starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The metrics that a run over memory of the runtime printed, without their prefix, after a look at every column.
fn metrics(output: &Output) -> BTreeSet<String> {
    metrics_of("alloc.", output)
}

/// As above, for the kind of memory that has this prefix.
fn metrics_of(kind: &str, output: &Output) -> BTreeSet<String> {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    let mut names = BTreeSet::new();
    for line in out.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let &[metric, bytes, value, unit] = columns.as_slice() else {
            panic!("a line of {} columns: {line}", columns.len())
        };
        let name = metric.strip_prefix(kind).unwrap_or_else(|| panic!("no kind before the name: {line}"));
        bytes.parse::<u64>().unwrap_or_else(|error| panic!("{error}: {line}"));
        let value: f64 = value.parse().unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(0.0 < value && value.is_finite(), "no measurement: {line}");
        assert!(UNITS.contains(&unit), "an unknown unit: {line}");
        names.insert(name.to_owned());
    }
    names
}

/// The names that stand in calls of `emit` between two places of the peers' program.
fn peer_metrics(from: &str, to: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/peers/mpi_rma_bench.c");
    let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let begin = source.find(from).unwrap_or_else(|| panic!("the peers' program has no {from}"));
    let end = source[begin..].find(to).map_or(source.len(), |at| begin + at);
    let names = source[begin..end].split("emit(\"").skip(1);
    names.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

#[test]
fn latency_has_the_names_of_the_peers() {
    let printed = metrics(&bench(2, "auto", &["--only", "lat", "--scale", "small"]));
    assert_eq!(printed, peer_metrics("static void latency(", "static void bandwidth("));
}

#[test]
fn every_metric_has_the_name_of_the_peers() {
    let expected = peer_metrics("static void latency(", "return 0;\n}");
    for transport in ["shm", "local"] {
        let mut printed = metrics(&bench(2, transport, &["--scale", "small"]));
        printed.retain(|name| !OURS_ONLY.contains(&name.as_str()));
        assert_eq!(printed, expected, "over {transport}");
    }
}

#[test]
fn connected_ranks_have_names_of_their_own() {
    let mut expected = peer_metrics("static void latency(", "return 0;\n}");
    expected.remove("barrier");
    let groups = "setup,lat,bw,rate,acc,atomic,cas,fence,pscw,lock,progress";
    let mut printed = metrics_of("tcp.alloc.", &bench(2, "tcp", &["--only", groups, "--scale", "small"]));
    printed.retain(|name| !OURS_ONLY.contains(&name.as_str()));
    assert_eq!(printed, expected);
}

#[test]
fn more_ranks_measure_what_all_do() {
    let printed = metrics(&bench(4, "auto", &["--only", "barrier,fence,lat", "--scale", "small"]));
    assert_eq!(printed, ["barrier", "fence_empty", "fence_put_neighbour"].map(str::to_owned).into());
}

#[test]
fn groups_that_take_two_ranks_say_so() {
    let output = bench(3, "auto", &["--only", "lat,pscw", "--scale", "small"]);
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("measured between 2 ranks"), "{said}");
}

/// The doc comment of a function in a source file, in one line.
fn page(source: &str, function: &str) -> String {
    let at = source.find(function).unwrap_or_else(|| panic!("there is no {function}"));
    let above = source[..at].lines().rev().skip(1).map(str::trim);
    let mut lines: Vec<&str> = above
        .take_while(|line| line.starts_with("///") || line.starts_with("#["))
        .filter_map(|line| line.strip_prefix("///"))
        .map(str::trim)
        .collect();
    lines.reverse();
    lines.join(" ")
}

// covers: PGO-COLL-16 -- and the benchmark below
#[test]
fn pages_say_when_counting_pays() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/pgo/scope.rs");
    let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let page = page(&source, "pub fn offerc<");
    for said in ["targets can't easily know how many events", "barriers", "knows the counts", "cheaper"] {
        assert!(page.contains(said), "the page of offerc does not say '{said}': {page}");
    }
}

// covers: PGO-COLL-16
#[test]
fn the_exchange_of_halos_is_measured_in_both_forms() {
    for ranks in [2, 3] {
        let printed = metrics(&bench(ranks, "auto", &["--only", "pgo", "--scale", "small"]));
        // With two ranks there is something to compare with.
        let names = if ranks == 2 { &OURS_ONLY[2..] } else { &OURS_ONLY[2..5] };
        assert_eq!(printed, names.iter().map(|name| (*name).to_owned()).collect());
    }
}

#[test]
fn memory_of_the_caller_is_measured_like_the_runtimes() {
    let mut expected = peer_metrics("static void latency(", "return 0;\n}");
    // It has nothing to do with windows.
    expected.remove("barrier");
    let mut printed = metrics_of("create.", &bench(2, "auto", &["--kinds", "create", "--scale", "small"]));
    printed.retain(|name| !OURS_ONLY.contains(&name.as_str()));
    assert_eq!(printed, expected);
}
