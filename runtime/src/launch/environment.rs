//! What a rank finds in its environment. Never changes it.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::info::Policy;
use crate::job::MemoryModel;
use crate::transport::shm::copier::CopyEngine;
use crate::transport::shm::layout::RANKS_MAX;
use crate::transport::tcp::agent::Mode;
use crate::transport::tcp::handshake::Secret;

pub(crate) const RANK: &str = "RMA_RANK";
pub(crate) const SIZE: &str = "RMA_SIZE";
pub(crate) const RENDEZVOUS: &str = "RMA_RENDEZVOUS";
pub(crate) const TIMEOUT: &str = "RMA_TIMEOUT";
pub(crate) const TRANSPORT: &str = "RMA_TRANSPORT";
pub(crate) const SECRET: &str = "RMA_SECRET";
pub(crate) const NODE: &str = "RMA_NODE";
pub(crate) const BIND: &str = "RMA_BIND";

/// What the job makes of info values. It says nothing about the job, so the launcher hands it on.
pub(crate) const INFO: &str = "RMA_INFO";

/// How many copies windows have. It says nothing about the job, so the launcher hands it on.
pub(crate) const MEMORY_MODEL: &str = "RMA_MEMORY_MODEL";

/// Who makes longer copies in mapped memory. It says nothing about the job, so the launcher hands it on.
pub(crate) const COPY_ENGINE: &str = "RMA_COPY_ENGINE";

/// Whether ranks say at their end what they have sent and received. It says nothing about the job, so the launcher hands it on.
pub(crate) const STATS: &str = "RMA_STATS";

/// How others are served while the rank computes. It says nothing about the job, so the launcher hands it on.
pub(crate) const AGENT: &str = "RMA_AGENT";

/// Every variable, so that the launcher can start ranks without those of an outer job.
pub(crate) const ALL: [&str; 8] = [RANK, SIZE, RENDEZVOUS, TIMEOUT, TRANSPORT, SECRET, NODE, BIND];

/// Where ranks listen unless they are told otherwise: nobody on another machine reaches them there.
pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// How this process takes part in a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A job of one rank.
    Alone,
    /// All ranks, as threads.
    Threads { size: u32 },
    /// One rank; `file` is the descriptor of the job's memory.
    Process { rank: u32, size: u32, file: i32 },
    /// One rank that reaches some others, or all, by connections.
    Wired { rank: u32, size: u32, network: Network },
}

/// What a rank needs to reach ranks that share no memory with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    /// Where ranks learn where the others are.
    pub(crate) rendezvous: SocketAddr,
    pub(crate) secret: Secret,
    /// The address that the rank listens at.
    pub(crate) bind: IpAddr,
    /// The number of the ranks that share memory with this one, and the descriptor of that memory.
    pub(crate) node: Option<(u32, i32)>,
}

/// Reads the part of this process and the time limit of blocking calls.
///
/// # Errors
/// `Launch` for variables that are malformed, contradict each other or are only half there.
pub(crate) fn read(get: impl Fn(&str) -> Option<OsString>) -> Result<(Part, Option<Duration>)> {
    let text = |name: &str| match get(name) {
        None => Ok(None),
        Some(value) => match value.into_string() {
            Ok(text) => Ok(Some(text)),
            Err(value) => Err(wrong(format!("{name} is {value:?}, which is no text"))),
        },
    };
    let number = |name: &str| match text(name)? {
        None => Ok(None),
        Some(value) => match value.parse::<u32>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(wrong(format!("{name} is '{value}', which is no whole number"))),
        },
    };
    let limit = match text(TIMEOUT)? {
        None => None,
        Some(value) => {
            Some(parse_seconds(&value).map_err(|why| wrong(format!("{TIMEOUT} is '{value}': {why}")))?)
        }
    };
    let size = number(SIZE)?;
    match size {
        Some(size) if size == 0 || RANKS_MAX < size => {
            return Err(wrong(format!("{SIZE} is {size}, and a job has 1 to {RANKS_MAX} ranks")));
        }
        _ => {}
    }
    let transport = text(TRANSPORT)?;
    let part = match (transport.as_deref(), number(RANK)?, size, text(RENDEZVOUS)?) {
        (Some("local"), None, size, None) => Part::Threads { size: size.unwrap_or(1) },
        (Some("local"), ..) => {
            return Err(wrong(format!("{TRANSPORT} is 'local', so {RANK} and {RENDEZVOUS} must not be set")));
        }
        (Some(other), ..) if other != "shm" && other != "tcp" => {
            return Err(wrong(format!(
                "{TRANSPORT} is '{other}', and the transports are 'local', 'shm' and 'tcp'"
            )));
        }
        (_, None, None, None) => Part::Alone,
        (_, Some(rank), Some(size), _) if size <= rank => {
            return Err(wrong(format!(
                "{RANK} is {rank}, but {SIZE} is {size}, so ranks are 0 to {}",
                size - 1
            )));
        }
        (_, Some(rank), Some(size), Some(rendezvous)) => {
            let place = |form: &str| {
                wrong(format!("{RENDEZVOUS} is '{rendezvous}', which is not of the form {form}"))
            };
            let (memory, network) = match rendezvous.split_once('+') {
                Some((memory, network)) => (Some(memory), Some(network)),
                None if rendezvous.starts_with("memfd:") => (Some(rendezvous.as_str()), None),
                None => (None, Some(rendezvous.as_str())),
            };
            let file = match memory {
                None => None,
                Some(memory) => Some(
                    memory
                        .strip_prefix("memfd:")
                        .and_then(|number| number.parse().ok())
                        .ok_or_else(|| place("memfd:NUMBER or memfd:NUMBER+tcp:ADDRESS:PORT"))?,
                ),
            };
            match (network, file) {
                (None, Some(file)) => Part::Process { rank, size, file },
                (None, None) => return Err(place("memfd:NUMBER or tcp:ADDRESS:PORT")),
                (Some(network), file) => {
                    let rendezvous = network
                        .strip_prefix("tcp:")
                        .and_then(|address| address.parse().ok())
                        .ok_or_else(|| place("memfd:NUMBER or tcp:ADDRESS:PORT"))?;
                    let node = match (file, number(NODE)?) {
                        (None, _) => None,
                        (Some(file), Some(node)) => Some((node, file)),
                        (Some(_), None) => {
                            let missing = "is missing: ranks that share memory have a number in common";
                            return Err(wrong(format!("{NODE} {missing}")));
                        }
                    };
                    let bind = match text(BIND)? {
                        None => LOOPBACK,
                        Some(address) => parse_bind(&address)
                            .map_err(|why| wrong(format!("{BIND} is '{address}': {why}")))?,
                    };
                    let secret = read_secret(text(SECRET)?)?;
                    Part::Wired { rank, size, network: Network { rendezvous, secret, bind, node } }
                }
            }
        }
        (_, rank, size, rendezvous) => {
            let missing: Vec<_> =
                [(RANK, rank.is_none()), (SIZE, size.is_none()), (RENDEZVOUS, rendezvous.is_none())]
                    .into_iter()
                    .filter_map(|(name, missing)| missing.then_some(name))
                    .collect();
            let verb = if missing.len() == 1 { "is" } else { "are" };
            return Err(wrong(format!(
                "{} {verb} missing, while others of the kind are set",
                missing.join(" and ")
            )));
        }
    };
    Ok((part, limit))
}

/// The secret of the job: 32 hexadecimal digits, or `fd:NUMBER`, the descriptor to read them from.
fn read_secret(text: Option<String>) -> Result<Secret> {
    let Some(text) = text else {
        return Err(wrong(format!("{SECRET} is missing, and {RENDEZVOUS} leads over a network")));
    };
    let digits = match text.strip_prefix("fd:").map(str::parse::<u32>) {
        None => text,
        Some(Ok(number)) => std::fs::read_to_string(format!("/proc/self/fd/{number}")).map_err(|error| {
            wrong(format!("{SECRET} names descriptor {number}, which can't be read: {error}"))
        })?,
        Some(Err(_)) => {
            return Err(wrong(format!("{SECRET} begins with 'fd:' and goes on without a number")));
        }
    };
    // The text is not shown, as it may be most of a secret.
    Secret::from_hex(digits.trim())
        .ok_or_else(|| wrong(format!("{SECRET} is neither 32 hexadecimal digits nor fd:NUMBER")))
}

/// The address of this machine that a rank or the launcher listens at.
///
/// # Errors
/// A sentence that says what is wrong with the text.
pub fn parse_bind(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr = text.parse().map_err(|_| "not an IP address".to_owned())?;
    match address.is_unspecified() {
        false => Ok(address),
        true => Err("name the address by which the others reach this machine".to_owned()),
    }
}

/// Reads what the job makes of info values.
///
/// # Errors
/// `Launch` for a text that says nothing that is known.
pub(crate) fn info_policy(get: impl Fn(&str) -> Option<OsString>) -> Result<Policy> {
    let text = get(INFO).unwrap_or_default();
    match text.to_str() {
        None => Err(wrong(format!("{INFO} is {text:?}, which is no text"))),
        Some(text) => Policy::parse(text).map_err(|why| wrong(format!("{INFO} is '{text}': {why}"))),
    }
}

/// Reads how others are served while the rank computes.
///
/// # Errors
/// `Launch` for a text that names no such way.
pub(crate) fn agent(get: impl Fn(&str) -> Option<OsString>) -> Result<Mode> {
    match get(AGENT) {
        None => Ok(Mode::default()),
        Some(text) => match text.to_str() {
            None => Err(wrong(format!("{AGENT} is {text:?}, which is no text"))),
            Some(text) => Mode::parse(text).map_err(|why| wrong(format!("{AGENT} is '{text}': {why}"))),
        },
    }
}

/// Reads the memory model of the windows that the runtime allocates.
///
/// # Errors
/// `Launch` for a name that is none.
pub(crate) fn memory_model(get: impl Fn(&str) -> Option<OsString>) -> Result<MemoryModel> {
    match get(MEMORY_MODEL) {
        None => Ok(MemoryModel::default()),
        Some(name) => name.to_str().and_then(MemoryModel::named).ok_or_else(|| {
            wrong(format!("{MEMORY_MODEL} is {name:?}, and the memory models are 'unified' and 'separate'"))
        }),
    }
}

/// Reads who makes longer copies in mapped memory.
///
/// # Errors
/// `Launch` for a name that is none.
pub(crate) fn copy_engine(get: impl Fn(&str) -> Option<OsString>) -> Result<CopyEngine> {
    match get(COPY_ENGINE) {
        None => Ok(CopyEngine::default()),
        Some(name) => name.to_str().and_then(CopyEngine::named).ok_or_else(|| {
            wrong(format!("{COPY_ENGINE} is {name:?}, and the engines are 'mapped', 'calls' and 'thread'"))
        }),
    }
}

/// A positive number of seconds, whole or not, as `RMA_TIMEOUT` and `--timeout` give it.
///
/// # Errors
/// A sentence that says what is wrong with the text.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(limit) if !limit.is_zero() => Ok(limit),
        _ => Err("a time limit is a positive number of seconds".to_owned()),
    }
}

fn wrong(what: String) -> Error {
    let note = format!("{what}; start ranks by rma-run, or unset the variables that begin with RMA_");
    Error::new(ErrorKind::Launch, "reading the environment of a rank").note(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], expected: Result<(Part, Option<u64>), &str>) {
        let got = read(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()));
        match (got, expected) {
            (Ok((part, limit)), Ok(expected)) => {
                assert_eq!((part, limit.map(|limit| limit.as_millis() as u64)), expected);
            }
            (Err(error), Err(expected)) => {
                assert_eq!(error.kind(), ErrorKind::Launch);
                assert!(error.to_string().contains(expected), "{error}\nlacks: {expected}");
            }
            (got, expected) => panic!("{variables:?}: got {got:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn parts_are_told_apart() {
        check(&[], Ok((Part::Alone, None)));
        check(&[(TIMEOUT, "1.5")], Ok((Part::Alone, Some(1500))));
        check(&[(TRANSPORT, "local"), (SIZE, "4")], Ok((Part::Threads { size: 4 }, None)));
        let process = [(RANK, "3"), (SIZE, "4"), (RENDEZVOUS, "memfd:7")];
        check(&process, Ok((Part::Process { rank: 3, size: 4, file: 7 }, None)));
        let digits = "00112233445566778899aabbccddeeff";
        let network = Network {
            rendezvous: "10.0.0.1:77".parse().unwrap(),
            secret: Secret::from_hex(digits).unwrap(),
            bind: LOOPBACK,
            node: None,
        };
        let wired = [(RANK, "3"), (SIZE, "4"), (RENDEZVOUS, "tcp:10.0.0.1:77"), (SECRET, digits)];
        check(&wired, Ok((Part::Wired { rank: 3, size: 4, network: network.clone() }, None)));
        let mixed = [
            (RANK, "3"),
            (SIZE, "4"),
            (RENDEZVOUS, "memfd:7+tcp:10.0.0.1:77"),
            (SECRET, digits),
            (NODE, "1"),
            (BIND, "10.0.0.2"),
        ];
        let network = Network { bind: "10.0.0.2".parse().unwrap(), node: Some((1, 7)), ..network };
        check(&mixed, Ok((Part::Wired { rank: 3, size: 4, network }, None)));
    }

    #[test]
    fn the_policy_of_info_values_is_read() {
        let policy = |text: &'static str| info_policy(move |_| Some(text.into()));
        assert_eq!(info_policy(|_| None).unwrap(), Policy::default());
        assert_eq!(policy("force_info=strong").unwrap(), Policy::parse("force_info=strong").unwrap());
        let error = policy("weak=sometimes").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Launch);
        assert!(error.to_string().contains("RMA_INFO is 'weak=sometimes'"), "{error}");
    }

    #[test]
    fn the_memory_model_has_two_names() {
        let model = |name: &'static str| memory_model(move |_| Some(name.into()));
        assert_eq!(memory_model(|_| None).unwrap(), MemoryModel::Unified);
        assert_eq!(model("unified").unwrap(), MemoryModel::Unified);
        assert_eq!(model("separate").unwrap(), MemoryModel::Separate);
        let error = model("eager").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Launch);
        assert!(error.to_string().contains("RMA_MEMORY_MODEL is \"eager\""), "{error}");
    }

    #[test]
    fn the_copy_engine_has_three_names() {
        let engine = |name: &'static str| copy_engine(move |_| Some(name.into()));
        assert_eq!(copy_engine(|_| None).unwrap(), CopyEngine::Mapped);
        assert_eq!(engine("mapped").unwrap(), CopyEngine::Mapped);
        assert_eq!(engine("calls").unwrap(), CopyEngine::Calls);
        assert_eq!(engine("thread").unwrap(), CopyEngine::Thread);
        let error = engine("dma").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Launch);
        assert!(error.to_string().contains("RMA_COPY_ENGINE is \"dma\""), "{error}");
    }

    #[test]
    fn malformed_environments_are_named() {
        let rank = |rank| [(RANK, rank), (SIZE, "4"), (RENDEZVOUS, "memfd:7")];
        check(&rank("4"), Err("RMA_RANK is 4, but RMA_SIZE is 4, so ranks are 0 to 3"));
        check(&rank("-1"), Err("RMA_RANK is '-1', which is no whole number"));
        check(&rank("two"), Err("RMA_RANK is 'two', which is no whole number"));
        check(&[(RANK, "0")], Err("RMA_SIZE and RMA_RENDEZVOUS are missing"));
        check(&[(RANK, "0"), (SIZE, "0"), (RENDEZVOUS, "memfd:3")], Err("a job has 1 to 1024 ranks"));
        check(&[(RANK, "0"), (SIZE, "9999"), (RENDEZVOUS, "memfd:3")], Err("a job has 1 to 1024 ranks"));
        check(&[(RANK, "0"), (SIZE, "1"), (RENDEZVOUS, "memfd:x")], Err("not of the form memfd:NUMBER"));
        check(&[(RANK, "0"), (SIZE, "1"), (RENDEZVOUS, "host:1")], Err("not of the form memfd:NUMBER"));
        check(&[(TRANSPORT, "pigeon")], Err("RMA_TRANSPORT is 'pigeon', and the transports are"));
        check(&[(TRANSPORT, "local"), (RANK, "1")], Err("must not be set"));
        let wired = |more: &[(&'static str, &'static str)], expected: &str| {
            let mut variables = vec![(RANK, "0"), (SIZE, "2")];
            variables.extend(more);
            check(&variables, Err(expected));
        };
        let secret = (SECRET, "00112233445566778899aabbccddeeff");
        wired(&[(RENDEZVOUS, "tcp:here:1"), secret], "not of the form memfd:NUMBER or tcp:ADDRESS:PORT");
        wired(&[(RENDEZVOUS, "tcp:127.0.0.1:1")], "RMA_SECRET is missing");
        wired(
            &[(RENDEZVOUS, "tcp:127.0.0.1:1"), (SECRET, "123")],
            "neither 32 hexadecimal digits nor fd:NUMBER",
        );
        wired(&[(RENDEZVOUS, "tcp:127.0.0.1:1"), (SECRET, "fd:x")], "goes on without a number");
        wired(&[(RENDEZVOUS, "tcp:127.0.0.1:1"), (SECRET, "fd:99999")], "which can't be read");
        wired(&[(RENDEZVOUS, "memfd:7+tcp:127.0.0.1:1"), secret], "RMA_NODE is missing");
        wired(&[(RENDEZVOUS, "tcp:127.0.0.1:1"), secret, (BIND, "0.0.0.0")], "name the address");
        wired(&[(RENDEZVOUS, "tcp:127.0.0.1:1"), secret, (BIND, "here")], "not an IP address");
        for limit in ["0", "-1", "soon", "inf", "NaN"] {
            check(&[(TIMEOUT, limit)], Err(&format!("RMA_TIMEOUT is '{limit}'")));
        }
    }
}
