//! What ranks do together: halos travel through a window, reductions are combined, fields are gathered and written.
//!
//! All strips of all fields for one neighbour are packed into one contiguous put. The window holds nothing but
//! strips: they are written by peers between two fences and read by their owner in a private epoch after the second,
//! so no load of a sweep can meet a store of a peer. Never touches the points that a rank owns.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rma::{Max, Rank, Sum, Team, Window};

use super::files::{Events, Frame, write_npy};
use super::numbers::Value;
use super::space::{Level, Placed, Point, Region, Routes, assemble};
use super::sums::{ExactSum, SUM_WORDS, from_order_key};

/// Why a run ended; a sentence.
#[derive(Debug)]
pub struct Failure(String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure(text)
    }
}

impl From<rma::Error> for Failure {
    fn from(error: rma::Error) -> Failure {
        Failure(error.to_string())
    }
}

/// A level of any element type, as far as its halo goes.
pub trait Travels {
    /// Whether the halo agrees with the owners' points.
    fn is_fresh(&self) -> bool;
    /// Says that it does.
    fn set_fresh(&mut self);
    /// Appends a box to a message.
    fn pack(&self, region: Region, message: &mut Vec<u64>);
    /// Takes a box from a message; gives back what is left of it.
    fn unpack<'a>(&mut self, region: Region, message: &'a [u64]) -> &'a [u64];
    /// Copies within the level.
    fn copy_within(&mut self, from: Region, to: Region);
}

impl<T: Value> Travels for Level<T> {
    fn is_fresh(&self) -> bool {
        self.fresh
    }

    fn set_fresh(&mut self) {
        self.fresh = true;
    }

    fn pack(&self, region: Region, message: &mut Vec<u64>) {
        Level::pack(self, region, message);
    }

    fn unpack<'a>(&mut self, region: Region, message: &'a [u64]) -> &'a [u64] {
        Level::unpack(self, region, message)
    }

    fn copy_within(&mut self, from: Region, to: Region) {
        Level::copy_within(self, from, to);
    }
}

/// A rank that strips go to or come from.
struct Peer {
    rank: usize,
    /// Where its strips arrive in this rank's window.
    here: usize,
    /// Where this rank's strips arrive in its window.
    there: usize,
    message: Vec<u64>,
}

/// The exchange of halos.
pub struct Halo {
    window: Option<Window<u64>>,
    routes: Vec<Routes>,
    peers: Vec<Peer>,
}

impl Halo {
    /// Plans the exchange of fields, each with the number of its levels. Collective.
    pub fn new(team: &Team, fields: &[(&Placed, usize)]) -> Result<Halo, Failure> {
        let me = team.rank().index();
        let routes: Vec<Routes> =
            fields.iter().map(|(placed, _)| placed.shape.routes(&placed.place)).collect();
        let mut ranks: Vec<usize> = Vec::new();
        for routes in &routes {
            let both = routes.send.iter().chain(&routes.receive);
            ranks.extend(both.map(|(rank, _)| *rank));
        }
        ranks.sort_unstable();
        ranks.dedup();
        let (places, len) = arrivals(fields, me);
        let mut peers = Vec::new();
        for rank in ranks {
            let find = |places: &[(usize, usize)], wanted| {
                places.iter().find(|(from, _)| *from == wanted).map_or(0, |(_, at)| *at)
            };
            peers.push(Peer {
                rank,
                here: find(&places, rank),
                there: find(&arrivals(fields, rank).0, me),
                message: Vec::new(),
            });
        }
        let window = match team.size() {
            1 => None,
            _ => Some(Window::allocate(team, len)?),
        };
        Ok(Halo { window, routes, peers })
    }

    /// Brings the halos of some levels up to date, each named with its field. Gives back a bit for each that was
    /// stale. Collective.
    pub fn exchange(&mut self, levels: &mut [(usize, &mut dyn Travels)]) -> Result<u64, Failure> {
        let mut stale = 0;
        for (bit, (_, level)) in levels.iter().enumerate() {
            stale |= u64::from(!level.is_fresh()) << bit;
        }
        if stale == 0 {
            return Ok(0);
        }
        let is_stale = |bit: usize| stale >> bit & 1 == 1;
        for (bit, (field, level)) in levels.iter_mut().enumerate() {
            if is_stale(bit) {
                for (from, to) in &self.routes[*field].own {
                    level.copy_within(*from, *to);
                }
                level.set_fresh();
            }
        }
        let Some(window) = &mut self.window else { return Ok(stale) };
        for peer in &mut self.peers {
            peer.message.clear();
            for (bit, (field, level)) in levels.iter().enumerate() {
                if is_stale(bit) {
                    for (_, region) in self.routes[*field].send.iter().filter(|(rank, _)| *rank == peer.rank)
                    {
                        level.pack(*region, &mut peer.message);
                    }
                }
            }
        }
        window.fence(|epoch| {
            for peer in self.peers.iter().filter(|peer| !peer.message.is_empty()) {
                epoch.put(Rank(peer.rank as u32), peer.there, &peer.message[..])?;
            }
            Ok(())
        })?;
        let strips = window.local()?;
        for peer in &self.peers {
            let mut rest = &strips[peer.here..];
            for (bit, (field, level)) in levels.iter_mut().enumerate() {
                if is_stale(bit) {
                    for (_, region) in
                        self.routes[*field].receive.iter().filter(|(rank, _)| *rank == peer.rank)
                    {
                        rest = level.unpack(*region, rest);
                    }
                }
            }
        }
        Ok(stale)
    }
}

/// Where the strips of each peer arrive in the window of `rank`, and the window's length; every rank computes the
/// same for all.
fn arrivals(fields: &[(&Placed, usize)], rank: usize) -> (Vec<(usize, usize)>, usize) {
    let mut sizes: Vec<(usize, usize)> = Vec::new();
    for (placed, n_levels) in fields {
        let place = super::space::Place::of(rank, placed.place.parts);
        for (from, region) in placed.shape.routes(&place).receive {
            let words = region.len() * n_levels;
            match sizes.iter_mut().find(|(rank, _)| *rank == from) {
                Some((_, size)) => *size += words,
                None => sizes.push((from, words)),
            }
        }
    }
    sizes.sort_unstable();
    let mut len = 0;
    for (_, size) in &mut sizes {
        let at = len;
        len += *size;
        *size = at;
    }
    (sizes, len)
}

/// One rank's part of a reduction, or the whole.
pub enum Share {
    /// The largest key.
    Max(i64),
    /// The smallest key.
    Min(i64),
    /// An exact sum.
    Sum(ExactSum),
    /// A sum that wraps.
    Wrapping(i64),
}

impl Share {
    /// The result, where it is real.
    pub fn real(self) -> f64 {
        match self {
            Share::Max(key) | Share::Min(key) | Share::Wrapping(key) => from_order_key(key),
            Share::Sum(sum) => sum.round(),
        }
    }

    /// The result, where it is an integer.
    pub fn integer(self) -> i64 {
        match self {
            Share::Max(value) | Share::Min(value) | Share::Wrapping(value) => value,
            Share::Sum(sum) => sum.round() as i64,
        }
    }
}

/// Combines the shares of all ranks: one collective call for all extremes, one for all sums.
pub fn combine(team: &Team, shares: Vec<Share>) -> Result<Vec<Share>, Failure> {
    if team.size() == 1 || shares.is_empty() {
        return Ok(shares);
    }
    let (mut extremes, mut sums) = (Vec::new(), Vec::new());
    for share in &shares {
        match share {
            Share::Max(key) => extremes.push(*key),
            Share::Min(key) => extremes.push(!*key), // Complement turns the order round.
            Share::Sum(sum) => sums.extend(sum.clone().to_words()),
            Share::Wrapping(sum) => sums.push(*sum),
        }
    }
    if !extremes.is_empty() {
        team.allreduce(&mut extremes, Max)?;
    }
    if !sums.is_empty() {
        team.allreduce(&mut sums, Sum)?;
    }
    let (mut extremes, mut rest) = (extremes.into_iter(), &sums[..]);
    let mut take = |n: usize| {
        let (words, after) = rest.split_at(n);
        rest = after;
        words
    };
    let totals = shares.into_iter().map(|share| match share {
        Share::Max(_) => Share::Max(extremes.next().unwrap_or(0)),
        Share::Min(_) => Share::Min(!extremes.next().unwrap_or(0)),
        Share::Sum(_) => Share::Sum(ExactSum::from_words(take(SUM_WORDS))),
        Share::Wrapping(_) => Share::Wrapping(take(1)[0]),
    });
    Ok(totals.collect())
}

/// The whole field at rank 0. Collective.
pub fn gather<T: Value + rma::Basic>(
    team: &Team,
    placed: &Placed,
    level: &Level<T>,
) -> Result<Option<Vec<T>>, Failure> {
    let mine = level.values(level.own);
    if team.size() == 1 {
        return Ok(Some(mine));
    }
    let all = team.gather(Rank(0), &mine)?;
    Ok(all.map(|values| assemble(&placed.shape, placed.place.parts, &values)))
}

/// Ends the run if a value is not finite.
#[cold]
pub fn check_finite<T: Value>(
    name: &str,
    level: &Level<T>,
    placed: &Placed,
    step: i64,
    rank: usize,
) -> Result<(), Failure> {
    match level.first_not_finite() {
        None => Ok(()),
        Some((point, value)) => Err(Failure(format!(
            "{name} is not finite ({}) at cell {}, step {step}, rank {rank}",
            value.show(),
            placed.show(point)
        ))),
    }
}

/// The name of an output file.
pub fn file_name(program: &str, field: &str, step: Option<i64>, extension: &str) -> PathBuf {
    PathBuf::from(match step {
        Some(step) => format!("{program}_{field}_{step:06}.{extension}"),
        None => format!("{program}_{field}.{extension}"),
    })
}

/// Time between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(80);

/// What rank 0 says: lines on standard output, and events to the driver. Other ranks say nothing.
pub struct Reporter {
    rank: usize,
    events: Events,
    reported: Instant,
    line: String,
    dump: Option<PathBuf>,
}

/// Names a folder for the last level of every field, as `.npy` files; used by `--verify`.
const DUMP_VARIABLE: &str = "RMA_DSL_DUMP";

impl Reporter {
    /// Connects to the driver, if there is one.
    pub fn new(rank: usize) -> Result<Reporter, Failure> {
        let (events, dump) = match rank {
            0 => (Events::connect()?, std::env::var_os(DUMP_VARIABLE).map(PathBuf::from)),
            _ => (Events::default(), None),
        };
        Ok(Reporter { rank, events, reported: Instant::now(), line: String::new(), dump })
    }

    /// Says how far the run is, now and then.
    #[inline]
    pub fn progress(&mut self, step: i64) -> Result<(), Failure> {
        if self.events.is_connected() && PROGRESS_INTERVAL <= self.reported.elapsed() {
            self.reported = Instant::now();
            self.events.progress(step, &self.line)?;
        }
        Ok(())
    }

    /// Prints one line.
    pub fn say(&mut self, line: &str) -> Result<(), Failure> {
        if self.rank != 0 {
            return Ok(());
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}")
            .and_then(|()| out.flush())
            .map_err(|error| Failure(format!("cannot write to standard output: {error}")))
    }

    /// Prints names and values.
    pub fn print(&mut self, items: &[(&str, String)]) -> Result<(), Failure> {
        let words: Vec<String> = items.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.line = words.join(" ");
        let line = self.line.clone();
        self.say(&line)
    }

    /// Prints a field's digest.
    pub fn digest(&mut self, field: &str, digest: u64) -> Result<(), Failure> {
        self.say(&format!("digest {field} {digest:016x}"))
    }

    /// Has the driver draw a picture.
    pub fn picture<T: Value>(&mut self, frame: &Frame<'_>, values: &[T]) -> Result<(), Failure> {
        if !self.events.is_connected() {
            eprintln!("note: {} is drawn only under `rma-dsl run`", frame.path.display());
        }
        Ok(self.events.frame(frame, values)?)
    }

    /// Writes a field as a `.npy` file.
    pub fn npy<T: Value>(&mut self, path: &Path, points: &[i64], values: &[T]) -> Result<(), Failure> {
        write_npy(path, points, values)?;
        Ok(self.events.wrote(path)?)
    }

    /// Leaves a field for comparison, if asked to.
    pub fn dump<T: Value>(&mut self, field: &str, points: &[i64], values: &[T]) -> Result<(), Failure> {
        match &self.dump {
            None => Ok(()),
            Some(folder) => Ok(write_npy(&folder.join(format!("{field}.npy")), points, values)?),
        }
    }
}

/// Appends a point's value to a table, whose head is written first.
pub fn probe<T: Value>(path: &str, field: &str, step: i64, t: f64, value: T) -> Result<(), Failure> {
    let is_first = step <= 1 || !Path::new(path).exists();
    let mut options = std::fs::File::options();
    options.create(true).write(true);
    let file = if is_first { options.truncate(true).open(path) } else { options.append(true).open(path) };
    let written = file.and_then(|mut file| {
        let head = if is_first { format!("step,t,{field}\n") } else { String::new() };
        file.write_all(format!("{head}{step},{},{}\n", t.show(), value.show()).as_bytes())
    });
    written.map_err(|error| Failure(format!("cannot write {path}: {error}")))
}

/// The index whose coordinate is nearest; the smaller of two.
pub fn nearest(wanted: f64, points: i64, coordinate: impl Fn(i64) -> f64) -> i64 {
    let distance = |index: i64| (coordinate(index) - wanted).abs();
    (0..points).fold(0, |best, index| if distance(index) < distance(best) { index } else { best })
}

/// Damps a level near the lower end of an axis.
pub fn sponge_below<T: Damped>(level: &mut Level<T>, axis: usize, _points: i64, width: i64, strength: f64) {
    for distance in 0..width {
        damp(level, axis, distance, width - distance, strength);
    }
}

/// Damps a level near the upper end of an axis.
pub fn sponge_above<T: Damped>(level: &mut Level<T>, axis: usize, points: i64, width: i64, strength: f64) {
    for distance in 0..width {
        damp(level, axis, points - 1 - distance, width - distance, strength);
    }
}

fn damp<T: Damped>(level: &mut Level<T>, axis: usize, index: i64, depth: i64, strength: f64) {
    let exponent = strength * depth as f64;
    let factor = super::numbers::exp(-(exponent * exponent));
    let region = level.own.intersect(level.own.with_axis(axis, index, index + 1));
    if region.is_empty() {
        return;
    }
    let points: Vec<Point> = region.points().collect();
    for point in points {
        level.set(point, level.get(point).damped(factor));
    }
}

/// Values that a sponge multiplies.
pub trait Damped: Value {
    /// The value times a factor.
    fn damped(self, factor: f64) -> Self;
}

impl Damped for f64 {
    fn damped(self, factor: f64) -> f64 {
        self * factor
    }
}

impl Damped for f32 {
    fn damped(self, factor: f64) -> f32 {
        self * factor as f32
    }
}
