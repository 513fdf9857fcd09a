//! A bar on the terminal for runs that take a while. Never written anywhere but to a terminal.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A run that ends sooner has no bar.
const QUIET: Duration = Duration::from_millis(700);

/// The bar is drawn anew no more often than this.
const INTERVAL: Duration = Duration::from_millis(100);

/// Cells of the bar.
const WIDTH: usize = 30;

/// The bar of one run.
pub(super) struct Progress {
    n_steps: usize,
    is_terminal: bool,
    /// When it is drawn next, and whether it stands on the screen.
    state: Mutex<(Instant, bool)>,
}

impl Progress {
    /// A bar for a number of steps.
    pub(super) fn new(n_steps: usize) -> Progress {
        let is_terminal = std::io::stderr().is_terminal();
        Progress { n_steps, is_terminal, state: Mutex::new((Instant::now() + QUIET, false)) }
    }

    /// Says that so many steps are done.
    pub(super) fn show(&self, n_done: usize) {
        if !self.is_terminal {
            return;
        }
        // Who meets another thread here has nothing newer to say.
        let Ok(mut state) = self.state.try_lock() else { return };
        let now = Instant::now();
        if now < state.0 {
            return;
        }
        *state = (now + INTERVAL, true);
        let _ = write!(std::io::stderr(), "\r{}", bar(n_done, self.n_steps));
    }

    /// Takes it off the screen.
    pub(super) fn clear(&self) {
        let is_shown = self.state.lock().is_ok_and(|state| state.1);
        if is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn bar(n_done: usize, n_steps: usize) -> String {
    let n_full = WIDTH * n_done.min(n_steps) / n_steps.max(1);
    let percent = 100 * n_done.min(n_steps) / n_steps.max(1);
    format!("[{}{}] {percent:3} %", "=".repeat(n_full), " ".repeat(WIDTH - n_full))
}

#[cfg(test)]
mod test {
    use super::bar;

    #[test]
    fn the_bar_fills_from_the_left() {
        assert_eq!(bar(0, 10), format!("[{}]   0 %", " ".repeat(30)));
        assert_eq!(bar(5, 10), format!("[{}{}]  50 %", "=".repeat(15), " ".repeat(15)));
        assert_eq!(bar(10, 10), format!("[{}] 100 %", "=".repeat(30)));
        assert_eq!(bar(0, 0), format!("[{}]   0 %", " ".repeat(30)));
    }
}
