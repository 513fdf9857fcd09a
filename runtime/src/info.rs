//! What a caller says it knows when it opens an access or takes a lock, and the hints that go with it. Never decides who is let
//! in.
#![forbid(unsafe_code)]

/// What the caller knows about the other side, given to start and lock.
///
/// Every value is right as [`Strong`](Info::Strong), and a job can be told to take it so: `rma-run --info force_info=strong`.
/// [`with`](Info::with) adds hints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Info {
    /// Nothing: the call returns when access is granted.
    #[default]
    Strong,
    /// Nothing, but the call may return before access is granted; nothing reaches the target before. When the epoch waits
    /// is its [`Schedule`].
    Weak,
    /// That access is granted at once. This saves waiting, never admission: a promise that does not hold is an error
    /// ([`ErrorKind::NotPosted`](crate::ErrorKind::NotPosted),
    /// [`ErrorKind::NoCheckConflict`](crate::ErrorKind::NoCheckConflict)) and nothing moves.
    ///
    /// Where the target's memory is mapped, the opening call tests the promise, and a lock is held. Elsewhere it saves messages,
    /// too (RMA-INFO-05, RMA-LOCK-07): the opening call sends nothing, the target tests the promise when a transfer arrives, and
    /// the error comes from the transfer, if that brings something back, or from the closing call. No lock is held there between
    /// the transfers of an epoch. Memory that is attached later (`Window::dynamic`) is asked for in every case.
    NoCheck,
}

/// When an epoch under [`Info::Weak`] waits until its target is posted, or its lock is held.
///
/// All three give the same data. On mapped memory there is nothing to save by a late wait, so the default is the first;
/// a late one is for programs that have something else to do until then. A lock of the own window is taken at once under
/// each, as it protects loads and stores, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// In the opening call: `weak=start`, `weak=lock`.
    #[default]
    Opening,
    /// In the first transfer, or in the closing call if there is none: `weak=transfer`.
    Transfer,
    /// In the closing call: `weak=complete`, `weak=unlock`. Puts and accumulates are kept until then, as copies, as long as
    /// they fit into `combine_bytes`; calls that bring something back still wait for it, and send what was kept before.
    Closing,
}

/// How many bytes of puts and accumulates one epoch keeps, where no hint says it. What exceeds them waits for the target.
const COMBINE_BYTES: usize = 1 << 20;

/// An [`Info`] with hints: made by [`Info::with`] and taken wherever an `Info` is.
///
/// | key | value | meaning |
/// |---|---|---|
/// | `weak` | `start` or `lock`, `transfer`, `complete` or `unlock` | the [`Schedule`] under [`Info::Weak`] |
/// | `combine_bytes` | a whole number | how many bytes of transfers an epoch may keep, 2^20 if nothing is said |
///
/// Keys that this runtime does not know change nothing; [`ignored_keys`](Hints::ignored_keys) names them. A value that
/// does not fit its key is an error of the call that gets it ([`ErrorKind::BadInfo`](crate::ErrorKind::BadInfo)).
///
/// ```
/// let info = rma::Info::Weak.with("combine_bytes", "4096").with("moon", "full");
/// assert_eq!(info.ignored_keys(), ["moon"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    info: Info,
    weak: Option<Schedule>,
    combine_bytes: Option<usize>,
    /// Behind a pointer, so that a plain value of info costs nothing.
    odd: Option<Box<Odd>>,
}

/// Hints that this runtime does not use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Odd {
    ignored: Vec<String>,
    malformed: Option<String>,
}

impl Info {
    /// Adds a hint. See [`Hints`] for the keys.
    pub fn with(self, key: &str, value: &str) -> Hints {
        Hints::from(self).with(key, value)
    }
}

impl From<Info> for Hints {
    #[inline]
    fn from(info: Info) -> Hints {
        Hints { info, ..Hints::default() }
    }
}

impl Hints {
    /// Adds a hint; of two with one key the later one counts.
    pub fn with(mut self, key: &str, value: &str) -> Hints {
        let outcome = match key {
            "weak" => Schedule::named(value).map(|schedule| self.weak = Some(schedule)),
            "combine_bytes" => match value.parse() {
                Ok(bytes) => {
                    self.combine_bytes = Some(bytes);
                    Ok(())
                }
                Err(_) => Err("a whole number of bytes"),
            },
            _ => {
                self.odd.get_or_insert_default().ignored.push(key.to_owned());
                Ok(())
            }
        };
        if let Err(wanted) = outcome {
            let malformed = &mut self.odd.get_or_insert_default().malformed;
            malformed.get_or_insert(format!("the value of {key} is '{value}', and has to be {wanted}"));
        }
        self
    }

    /// The keys that changed nothing, in the order in which they were given.
    pub fn ignored_keys(&self) -> Vec<&str> {
        self.odd.iter().flat_map(|odd| &odd.ignored).map(String::as_str).collect()
    }
}

impl Schedule {
    fn named(name: &str) -> Result<Schedule, &'static str> {
        match name {
            "start" | "lock" => Ok(Schedule::Opening),
            "transfer" => Ok(Schedule::Transfer),
            "complete" | "unlock" => Ok(Schedule::Closing),
            _ => Err("start, lock, transfer, complete or unlock"),
        }
    }
}

/// What a job makes of the info values of its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    /// The schedule of epochs without a hint.
    weak: Schedule,
    force: Force,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Force {
    #[default]
    Nothing,
    /// Every value is taken as strong.
    Strong,
}

/// What is left of a value and its hints for the call that got them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// What the call may take for granted.
    pub(crate) info: Info,
    /// What its caller said: a lock under NOCHECK nests, even if it is not taken for granted.
    pub(crate) said: Info,
    pub(crate) schedule: Schedule,
    pub(crate) combine_bytes: usize,
}

impl Terms {
    /// Whether the epoch is opened without asking its target.
    pub(crate) fn is_late(self) -> bool {
        self.info == Info::Weak && self.schedule != Schedule::Opening
    }
}

impl Policy {
    /// Changes the policy by `key=value`.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the text.
    pub(crate) fn set(&mut self, text: &str) -> Result<(), String> {
        match text.split_once('=') {
            Some(("force_info", "strong")) => self.force = Force::Strong,
            Some(("force_info", other)) => {
                return Err(format!("the value of force_info is '{other}', and has to be strong"));
            }
            Some(("weak", name)) => match Schedule::named(name) {
                Ok(schedule) => self.weak = schedule,
                Err(wanted) => return Err(format!("the value of weak is '{name}', and has to be {wanted}")),
            },
            _ => return Err(format!("'{text}' is neither force_info=strong nor weak=WHEN")),
        }
        Ok(())
    }

    /// The policy of a list such as `force_info=strong` or `weak=transfer,force_info=strong`.
    ///
    /// # Errors
    /// As [`set`](Policy::set).
    pub(crate) fn parse(text: &str) -> Result<Policy, String> {
        let mut policy = Policy::default();
        text.split(',').filter(|part| !part.is_empty()).try_for_each(|part| policy.set(part))?;
        Ok(policy)
    }

    /// What an opening call under this policy does.
    ///
    /// # Errors
    /// A sentence about a malformed hint.
    #[inline]
    pub(crate) fn terms(self, hints: &Hints) -> Result<Terms, String> {
        match hints.odd.as_ref().and_then(|odd| odd.malformed.clone()) {
            Some(malformed) => Err(malformed),
            None => Ok(Terms {
                info: match self.force {
                    Force::Nothing => hints.info,
                    Force::Strong => Info::Strong,
                },
                said: hints.info,
                schedule: hints.weak.unwrap_or(self.weak),
                combine_bytes: hints.combine_bytes.unwrap_or(COMBINE_BYTES),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_say_more_than_the_policy() {
        let policy = Policy::parse("weak=transfer").unwrap();
        let schedule = |hints: Hints| policy.terms(&hints).unwrap().schedule;
        assert_eq!(schedule(Info::Weak.into()), Schedule::Transfer);
        assert_eq!(schedule(Info::Weak.with("weak", "unlock")), Schedule::Closing);
        assert_eq!(schedule(Info::Weak.with("weak", "complete").with("weak", "lock")), Schedule::Opening);
        let forced = Policy::parse("weak=complete,force_info=strong").unwrap();
        for info in [Info::Strong, Info::Weak, Info::NoCheck] {
            assert_eq!(forced.terms(&info.into()).unwrap().info, Info::Strong);
        }
    }

    // covers: RMA-INFO-08
    #[test]
    fn unknown_keys_are_listed_and_malformed_values_refused() {
        let info = Info::Weak.with("combine_bytes", "4096");
        assert_eq!(info.ignored_keys(), [""; 0]);
        let terms = Policy::default().terms(&info).unwrap();
        assert_eq!((terms.info, terms.combine_bytes), (Info::Weak, 4096));
        let info = info.with("colour", "red").with("weak", "transfer").with("shape", "");
        assert_eq!(info.ignored_keys(), ["colour", "shape"]);
        assert_eq!(Policy::default().terms(&info).unwrap().schedule, Schedule::Transfer);
        for (key, value) in
            [("combine_bytes", "many"), ("combine_bytes", "-1"), ("weak", "never"), ("weak", "")]
        {
            let text = Policy::default().terms(&Info::Strong.with(key, value)).unwrap_err();
            assert!(text.contains(key) && text.contains(value), "{text}");
        }
    }

    #[test]
    fn policies_are_checked() {
        assert_eq!(Policy::parse(""), Ok(Policy::default()));
        for text in ["force_info=weak", "weak=sometimes", "weak", "force_info", "combine=1"] {
            assert!(Policy::parse(text).is_err(), "{text}");
        }
    }
}
