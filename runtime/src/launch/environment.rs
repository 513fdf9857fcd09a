//! What a rank finds in its environment. Never changes it.

use std::ffi::OsString;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::info::Policy;
use crate::job::MemoryModel;
use crate::transport::shm::layout::RANKS_MAX;

pub(crate) const RANK: &str = "RMA_RANK";
pub(crate) const SIZE: &str = "RMA_SIZE";
pub(crate) const RENDEZVOUS: &str = "RMA_RENDEZVOUS";
pub(crate) const TIMEOUT: &str = "RMA_TIMEOUT";
pub(crate) const TRANSPORT: &str = "RMA_TRANSPORT";

/// What the job makes of info values. It says nothing about the job, so the launcher hands it on.
pub(crate) const INFO: &str = "RMA_INFO";

/// How many copies windows have. It says nothing about the job, so the launcher hands it on.
pub(crate) const MEMORY_MODEL: &str = "RMA_MEMORY_MODEL";

/// Every variable, so that the launcher can start ranks without those of an outer job.
pub(crate) const ALL: [&str; 5] = [RANK, SIZE, RENDEZVOUS, TIMEOUT, TRANSPORT];

/// How this process takes part in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A job of one rank.
    Alone,
    /// All ranks, as threads.
    Threads { size: u32 },
    /// One rank; `file` is the descriptor of the job's memory.
    Process { rank: u32, size: u32, file: i32 },
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
        (Some(other), ..) if other != "shm" => {
            return Err(wrong(format!("{TRANSPORT} is '{other}', and the transports are 'local' and 'shm'")));
        }
        (_, None, None, None) => Part::Alone,
        (_, Some(rank), Some(size), _) if size <= rank => {
            return Err(wrong(format!(
                "{RANK} is {rank}, but {SIZE} is {size}, so ranks are 0 to {}",
                size - 1
            )));
        }
        (_, Some(rank), Some(size), Some(rendezvous)) => {
            let file = rendezvous.strip_prefix("memfd:").and_then(|number| number.parse().ok());
            match file {
                Some(file) => Part::Process { rank, size, file },
                None => {
                    return Err(wrong(format!(
                        "{RENDEZVOUS} is '{rendezvous}', which is not of the form memfd:NUMBER"
                    )));
                }
            }
        }
        (_, rank, size, rendezvous) => {
            let missing: Vec<_> =
                [(RANK, rank.is_none()), (SIZE, size.is_none()), (RENDEZVOUS, rendezvous.is_none())]
                    .into_iter()
                    .filter_map(|(name, missing)| missing.then_some(name))
                    .collect();
            return Err(wrong(format!(
                "{} is missing, while others of its kind are set",
                missing.join(" and ")
            )));
        }
    };
    Ok((part, limit))
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
    fn malformed_environments_are_named() {
        let rank = |rank| [(RANK, rank), (SIZE, "4"), (RENDEZVOUS, "memfd:7")];
        check(&rank("4"), Err("RMA_RANK is 4, but RMA_SIZE is 4, so ranks are 0 to 3"));
        check(&rank("-1"), Err("RMA_RANK is '-1', which is no whole number"));
        check(&rank("two"), Err("RMA_RANK is 'two', which is no whole number"));
        check(&[(RANK, "0")], Err("RMA_SIZE and RMA_RENDEZVOUS is missing"));
        check(&[(RANK, "0"), (SIZE, "0"), (RENDEZVOUS, "memfd:3")], Err("a job has 1 to 1024 ranks"));
        check(&[(RANK, "0"), (SIZE, "9999"), (RENDEZVOUS, "memfd:3")], Err("a job has 1 to 1024 ranks"));
        check(&[(RANK, "0"), (SIZE, "1"), (RENDEZVOUS, "memfd:x")], Err("not of the form memfd:NUMBER"));
        check(&[(RANK, "0"), (SIZE, "1"), (RENDEZVOUS, "host:1")], Err("not of the form memfd:NUMBER"));
        check(&[(TRANSPORT, "pigeon")], Err("RMA_TRANSPORT is 'pigeon', and the transports are"));
        check(&[(TRANSPORT, "local"), (RANK, "1")], Err("must not be set"));
        for limit in ["0", "-1", "soon", "inf", "NaN"] {
            check(&[(TIMEOUT, limit)], Err(&format!("RMA_TIMEOUT is '{limit}'")));
        }
    }
}
