//! Says on standard error what is being broken and how far it is: a line for each fault, and on a terminal a bar below them.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::history::{At, Now};

const WIDTH: usize = 30;

/// The progress of one scenario.
#[derive(Debug)]
pub struct Progress {
    name: String,
    began: At,
    steps: AtomicUsize,
    taken: AtomicUsize,
    bar: bool,
}

impl Progress {
    /// Of a scenario.
    pub fn new(name: &str) -> Self {
        let (steps, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { name: name.to_owned(), began: At::now(), steps, taken, bar: std::io::stderr().is_terminal() }
    }

    /// There are so many steps.
    pub fn steps(&self, steps: usize) {
        self.steps.store(steps, Ordering::Relaxed);
    }

    /// One of them is done.
    pub fn step(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.draw();
    }

    /// Says something.
    pub fn say(&self, text: &str) {
        let passed = At::now().since(self.began).as_secs_f64();
        let erase = if self.bar { "\r\x1b[K" } else { "" };
        eprintln!("{erase}{passed:8.3} s  {}: {text}", self.name);
        self.draw();
    }

    fn draw(&self) {
        let (steps, taken) = (self.steps.load(Ordering::Relaxed), self.taken.load(Ordering::Relaxed));
        if !self.bar || steps == 0 {
            return;
        }
        let full = WIDTH * taken.min(steps) / steps;
        let mut to = std::io::stderr().lock();
        // Nobody is told if the terminal is gone: the result is elsewhere.
        let _ = write!(to, "\r\x1b[K[{}{}] {taken}/{steps}", "#".repeat(full), "-".repeat(WIDTH - full));
        let _ = to.flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.bar {
            eprint!("\r\x1b[K");
        }
    }
}
