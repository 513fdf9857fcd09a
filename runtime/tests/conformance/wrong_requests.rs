//! Requests of a rank that keeps to no protocol, though it knows the secret of the job: they are refused or done, and harm nobody but
//! whom they are asked of. Never sends them, as each that is refused ends its connection: what receives them is called.
//!
//! A run has another seed each time, and a failure names it; `RMA_SEED=… cargo test -p rma-runtime --test conformance --
//! senseless` repeats it. `RMA_FULL=1` goes on for a minute.

use std::time::{Duration, Instant};

use rma::pgo::{self, COUNT_ANY, GETS_OK, PUTS_OK, over};
use rma::private::testing;
use rma::{LockKind, MemoryModel, Origins, Rank, Team, Window, WindowOptions};

use crate::traces::Numbers;
use crate::{Case, Outcome, case, is_full};

pub(crate) const CASES: &[Case] = &[case!(senseless_requests_harm_nobody, [3]).connected()];

const LEN: usize = 64;
/// The number by which offers are asked.
const OFFERS: u64 = u64::MAX;
/// How long a rank tries.
const TIME: Duration = Duration::from_millis(1000);
const FULL_TIME: Duration = Duration::from_secs(60);
/// What the tables of the runtime may take for requests that were kept.
const MEMORY_MAX_BYTES: usize = 256 << 20;

/// Bodies that make more sense than random ones, but for a bit here or there.
struct Writer {
    numbers: Numbers,
}

impl Writer {
    fn below(&mut self, end: u64) -> u64 {
        self.numbers.next() % end
    }

    /// A number of the kind that goes wrong.
    fn number(&mut self) -> u64 {
        let len = LEN as u64;
        let few = [0, 1, 2, 3, 7, 8, 9, len - 1, len, 8 * len - 8, 8 * len - 7, 8 * len, 1 << 20];
        let many = [1 << 31, u32::MAX.into(), 1 << 40, i64::MAX as u64, u64::MAX - 7, u64::MAX];
        match self.below(8) {
            0..5 => few[self.below(few.len() as u64) as usize],
            5..7 => many[self.below(many.len() as u64) as usize],
            _ => self.numbers.next(),
        }
    }

    fn words(&mut self, body: &mut Vec<u8>) {
        for _ in 0..self.below(12) {
            let number = self.number();
            match self.below(2) {
                0 => body.extend_from_slice(&number.to_le_bytes()),
                _ => body.extend_from_slice(&(number as u32).to_le_bytes()),
            }
        }
    }

    /// Pieces with a place, a number of elements or bytes, and data of the length that this needs, more or less.
    fn pieces(&mut self, body: &mut Vec<u8>, unit: u64) {
        for _ in 0..=self.below(3) {
            let (at, count) = (self.below(8 * LEN as u64), self.below(20));
            body.extend_from_slice(&at.to_le_bytes());
            body.extend_from_slice(&(count as u32).to_le_bytes());
            let slip = u64::from(self.below(8) == 0);
            body.resize(body.len() + (count * unit + slip) as usize, 0xee);
        }
    }

    /// What is asked of a window.
    fn of_window(&mut self, window: u64) -> Vec<u8> {
        let mut body = window.to_le_bytes().to_vec();
        let ask = self.below(24) as u32;
        let vouched = if self.below(2) == 0 { self.below(5) as u32 } else { 0 };
        body.extend_from_slice(&(ask | vouched << 8).to_le_bytes());
        match (ask, self.below(4)) {
            // Put.
            (1, 0..3) => self.pieces(&mut body, 1),
            // Get.
            (2, 0..3) => self.pieces(&mut body, 0),
            // Fetch and accumulate, with their operation.
            (3 | 4, 0..3) => {
                let operation = self.below(16) as u32;
                body.extend_from_slice(&operation.to_le_bytes());
                self.pieces(&mut body, 8);
            }
            // An epoch with some of these in it.
            (20, 0..3) => {
                let style = self.below(4) as u32;
                body.extend_from_slice(&style.to_le_bytes());
                for _ in 0..self.below(4) {
                    let entry = self.of_window(window).split_off(8);
                    let slip = u32::from(self.below(8) == 0);
                    body.extend_from_slice(&(entry.len() as u32 + slip).to_le_bytes());
                    body.extend_from_slice(&entry);
                }
            }
            _ => self.words(&mut body),
        }
        body
    }

    /// What is asked of the offers.
    fn of_offers(&mut self) -> Vec<u8> {
        let mut body = OFFERS.to_le_bytes().to_vec();
        let ask = self.below(7) as u32;
        body.extend_from_slice(&ask.to_le_bytes());
        match (ask, self.below(4)) {
            // An event: flags, family, team, tag, round, thread, member, and its parts.
            (1, 0..3) => {
                body.extend_from_slice(&(self.below(4) as u32).to_le_bytes());
                for number in [self.below(4), self.below(3), self.below(3), self.below(2)] {
                    body.extend_from_slice(&number.to_le_bytes());
                }
                for number in [self.below(2), self.below(4)] {
                    body.extend_from_slice(&(number as u32).to_le_bytes());
                }
                let mut heads = Vec::new();
                let parts = self.below(4) as u32;
                heads.extend_from_slice(&parts.to_le_bytes());
                heads.extend_from_slice(&(self.below(2) as u32).to_le_bytes());
                let mut data = 0;
                for _ in 0..parts {
                    let (way, len) = (1 + self.below(2) as u32, self.number());
                    heads.extend_from_slice(&way.to_le_bytes());
                    heads.extend_from_slice(&self.number().to_le_bytes());
                    heads.extend_from_slice(&len.to_le_bytes());
                    data += if way == 1 && len < 4096 { len } else { 0 };
                }
                body.extend_from_slice(&(heads.len() as u64).to_le_bytes());
                body.extend_from_slice(&heads);
                body.resize(body.len() + data as usize, 0xee);
            }
            _ => self.words(&mut body),
        }
        body
    }

    fn body(&mut self, windows: &[u64]) -> Vec<u8> {
        let mut body = match self.below(windows.len() as u64 + 1) as usize {
            which if which < windows.len() => self.of_window(windows[which]),
            _ => self.of_offers(),
        };
        // Neither the number of what is asked, so that somebody hears it, nor always anything.
        if self.below(3) == 0 && 8 < body.len() {
            let at = 8 + self.below(body.len() as u64 - 8) as usize;
            body[at] ^= 1 << self.below(8);
        }
        if self.below(8) == 0 {
            let len = 8 + self.below(body.len() as u64 - 7) as usize;
            body.truncate(len);
        }
        body
    }
}

/// Says which requests they were, on the way out of a panic.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("these were the requests of RMA_SEED={}", self.0);
        }
    }
}

fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

fn senseless_requests_harm_nobody(team: &Team) -> Outcome {
    let fixed: Option<u64> = std::env::var("RMA_SEED").ok().and_then(|text| text.parse().ok());
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let mut seed = [fixed.unwrap_or(clock.as_nanos() as u64)];
    team.broadcast(Rank(0), &mut seed)?;
    let seed = Seed(seed[0]);
    println!("RMA_SEED={}", seed.0);
    let mut writer = Writer { numbers: Numbers::new(seed.0.wrapping_add(team.rank().0.into())) };
    // What lies before, between and behind what is asked for.
    let guarded = |fill: u64| -> rma::Result<Window<u64>> {
        let mut window = Window::allocate(team, LEN)?;
        window.local_mut()?.fill(fill);
        Ok(window)
    };
    let before = guarded(11)?;
    let private = Window::<u64>::allocate(team, LEN)?;
    let between = guarded(12)?;
    let mut posted = Window::<u64>::allocate(team, LEN)?;
    let copied = WindowOptions::new().memory_model(MemoryModel::Separate).allocate::<u64>(team, LEN)?;
    let attached = Window::<u64>::dynamic(team, LEN)?;
    let behind = guarded(13)?;
    let offer = pgo::ioffer(team, 1, over(vec![0_u64; LEN], PUTS_OK | GETS_OK), COUNT_ANY)?;
    let windows = [private.id(), posted.id(), copied.id(), attached.id()];
    team.barrier()?;
    let memory = resident_bytes();
    let exposure = posted.post(Origins::Any)?;
    let time = if is_full() { FULL_TIME } else { TIME };
    let begun = Instant::now();
    let (mut done, mut refused) = (0_u64, 0_u64);
    copied.lock(team.rank(), LockKind::Exclusive, |_| {
        for request in 0.. {
            if request % 64 == 0 && time < begun.elapsed() {
                break;
            }
            let from = Rank(writer.below(3) as u32);
            let body = writer.body(&windows);
            // Numbers of requests that nobody waits for.
            let request = if writer.below(4) == 0 { 0 } else { (1 << 60) + request };
            match testing::receive(team, from, request, &body) {
                Ok(_) => done += 1,
                Err(_) => refused += 1,
            }
        }
    })?;
    println!("{done} requests were understood, {refused} were refused");
    assert!(100 < done && 100 < refused, "{done} and {refused}");
    let grown = resident_bytes().saturating_sub(memory);
    assert!(grown < MEMORY_MAX_BYTES, "{grown} bytes more are resident");
    for (window, fill) in [(&before, 11), (&between, 12), (&behind, 13)] {
        assert!((0..LEN).all(|at| window.load(at).is_ok_and(|value| value == fill)));
    }
    // The agent, and what is not broken, do their work as before.
    drop(exposure);
    team.barrier()?;
    let next = Rank((team.rank().0 + 1) % team.size());
    before.lock(next, LockKind::Exclusive, |epoch| epoch.put(next, 1, 5))?;
    team.barrier()?;
    assert_eq!(before.load(1)?, 5);
    std::mem::forget([private, posted, copied, attached]);
    std::mem::forget(offer);
    Ok(())
}
