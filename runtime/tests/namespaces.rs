//! Jobs whose ranks are on several hosts, as far as the network is concerned: each rank has a network namespace of its own, and
//! all are joined by a bridge. Never runs where namespaces are not permitted; it says so then.
#![forbid(unsafe_code)]

mod common;

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::{Ended, Job, RANKS, assert_gone, assert_nothing_left};

/// What the runtime calls evidence of a cut link is that nothing was acknowledged for four seconds; the others are told within one
/// more. The rest is for a machine that is busy with other things.
const EVIDENCE: Duration = Duration::from_secs(4);
const TOLD: Duration = Duration::from_secs(20);

/// Namespaces that are joined by a bridge of this one, which the launcher listens at. They go with the value.
struct Hosts {
    name: String,
    network: u32,
    count: u32,
}

fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip").args(words.split_whitespace()).output();
    let output = output.map_err(|error| format!("there is no command ip: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {words}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

impl Hosts {
    fn new(count: u32) -> Result<Hosts, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Names of interfaces have fifteen letters at most.
        let name = format!("rma{}{number}", std::process::id() % 1_000_000);
        let hosts = Hosts { network: std::process::id() % 250 * 4 + number % 4, name, count };
        hosts.make().map(|()| hosts)
    }

    fn make(&self) -> Result<(), String> {
        let Hosts { name, count, .. } = self;
        ip(&format!("link add {name}b type bridge"))?;
        ip(&format!("addr add {}/24 dev {name}b", self.address(254)))?;
        ip(&format!("link set {name}b up"))?;
        for host in 0..*count {
            let space = format!("{name}h{host}");
            ip(&format!("netns add {space}"))?;
            ip(&format!("link add {name}v{host} type veth peer name eth0 netns {space}"))?;
            ip(&format!("link set {name}v{host} master {name}b up"))?;
            ip(&format!("-n {space} addr add {}/24 dev eth0", self.address(host + 1)))?;
            ip(&format!("-n {space} link set eth0 up"))?;
            ip(&format!("-n {space} link set lo up"))?;
        }
        Ok(())
    }

    fn address(&self, host: u32) -> String {
        // Of the block that is for benchmarks of devices, so that nobody's own network is met.
        format!("198.{}.{}.{host}", 18 + self.network / 256 % 2, self.network % 256)
    }

    /// Starts a job with one rank in each namespace.
    fn start(&self, options: &str, program: &str) -> Job {
        let (name, base) = (&self.name, self.address(0));
        let base = base.strip_suffix('0').expect("the address of the network");
        let script = format!(
            "exec ip netns exec {name}h$RMA_RANK env RMA_BIND={base}$((RMA_RANK + 1)) {RANKS} {program}"
        );
        let (count, bind) = (self.count.to_string(), self.address(254));
        let fixed = ["-n", &count, "--transport", "tcp", "--bind", &bind];
        let words = fixed.into_iter().chain(options.split_whitespace()).chain(["sh", "-c", &script]);
        Job::start_words(words, b"")
    }

    /// Takes the cable of a host away.
    fn cut(&self, host: u32) {
        ip(&format!("link set {}v{host} down", self.name)).expect("the cable is there");
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in 0..self.count {
            // What was not made is not there.
            let _ = ip(&format!("link del {}v{host}", self.name));
            let _ = ip(&format!("netns del {}h{host}", self.name));
        }
        let _ = ip(&format!("link del {}b", self.name));
    }
}

/// The hosts, or the reason why there are none.
fn hosts(count: u32) -> Option<Hosts> {
    match Hosts::new(count) {
        Ok(hosts) => Some(hosts),
        Err(why) => {
            println!("skipped: network namespaces are not permitted here: {why}");
            None
        }
    }
}

/// What those that are together say about the rank that is alone.
fn lost_line(evidence: &str) -> String {
    format!("got PeerLost lost Some(Rank(1)) evidence Some({evidence})")
}

fn assert_ok(ended: &Ended, ranks: u32) {
    assert_eq!(ended.code(), Some(0), "{ended:#?}");
    assert_eq!(ended.lines("is ok").len(), ranks as usize, "{ended:#?}");
}

#[test]
fn ranks_on_several_hosts_meet() {
    for count in [2, 4] {
        let Some(hosts) = hosts(count) else { return };
        assert_ok(&hosts.start("--timeout 60", "collectives").end(), count);
        let ended = hosts.start("--timeout 60", "serve 200").end();
        assert_eq!(ended.code(), Some(0), "{ended:#?}");
        assert_eq!(ended.lines("was served").len(), count as usize - 1, "{ended:#?}");
    }
}

#[test]
fn a_cut_link_is_noticed_by_both_sides() {
    let Some(hosts) = hosts(3) else { return };
    for program in ["forever", "epochs none 0 0"] {
        let mut job = hosts.start("", program);
        let launcher = job.id();
        let processes = job.processes(3);
        hosts.cut(1);
        let cut = Instant::now();
        // Those that are together, and the one that is alone.
        let said = [job.wait_line("got"), job.wait_line("got"), job.wait_line("got")];
        let took = cut.elapsed();
        println!("a cut link was noticed by all after {took:?}");
        assert!(took < EVIDENCE + TOLD, "{took:?}");
        // Who is alone has lost the launcher with all others; its process ends then, which may be what those hear first.
        assert!(said.iter().any(|line| line.starts_with("rank 1 got PeerLost")), "{said:#?}");
        let known = ["PeerLost", "Poisoned", "WindowFreed"];
        assert!(
            said.iter().all(|line| known.iter().any(|kind| line.contains(&format!(" got {kind} ")))),
            "{said:#?}"
        );
        let named = |evidence| said.iter().any(|line| line.contains(&lost_line(evidence)));
        assert!(named("Disconnected") || named("ProcessExited(1)"), "{said:#?}");
        let ended = job.end();
        assert_ne!(ended.code(), Some(0), "{ended:#?}");
        assert_gone(&processes, Duration::from_secs(20));
        assert_nothing_left(launcher);
        ip(&format!("link set {}v1 up", hosts.name)).expect("the cable is put back");
    }
}
