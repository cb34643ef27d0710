//! The stable fuzzer: changes known inputs at random, keeps those that come to something new, and stops at the first failure.
//!
//! It needs no nightly toolchain and sees no coverage: the [`Shape`] of an outcome stands in for it. One seed decides every input; only
//! how many are tried depends on the time that it gets. A failure is made smaller and written down.
//!
//! What it does not do: it cannot stop a decoder that never comes back, and does not survive one that takes the process down. The input
//! that is being tried is therefore kept in a file, which is found after such an end.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use crate::memory;
use crate::mutate::mutate;
use crate::random::Random;
use crate::{Shape, Target};

/// Most memory that one input may make a decoder take. Inputs have 64 KiB at most, so this is linear with much room to spare: an empty
/// message of two bytes becomes a value of some hundred.
pub const MAX_MEMORY_BYTES: usize = 32 * 1024 * 1024;
/// Longest time that one input may take. Most take microseconds; a machine that is busy may need a thousand times that.
const MAX_TIME: Duration = Duration::from_secs(20);
/// A run in which fewer inputs were tried has shown next to nothing. On an idle machine every target tries more than that in a few
/// seconds.
pub const FEW_INPUTS: u64 = 200;
/// A run that tried few goes on for so many times as long, because the machine had other things to do.
const MAX_TIMES: u32 = 10;
/// Known inputs that are changed further. More would be chosen too seldom.
const MAX_KNOWN: usize = 1_024;
/// Attempts to make a failing input smaller.
const MAX_ATTEMPTS: usize = 4_000;
/// The first line of what a failing input is called.
const SHOWN_BYTES: usize = 4_096;

/// A run that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Inputs tried.
    pub inputs: u64,
    /// Different outcomes seen.
    pub shapes: usize,
    /// How long it took.
    pub took: Duration,
}

impl Found {
    /// Whether so few inputs were tried that nothing is shown by it.
    pub const fn is_few(&self) -> bool {
        self.inputs < FEW_INPUTS
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { inputs, shapes, took } = self;
        write!(f, "{inputs} inputs in {:.1} s, {shapes} different outcomes", took.as_secs_f64())?;
        if self.is_few() {
            write!(
                f,
                "; fewer than {FEW_INPUTS} inputs show nothing: try again with more seconds, or when the machine has less to do"
            )?;
        }
        Ok(())
    }
}

/// An input that must not be.
#[derive(Debug)]
pub struct Failure {
    /// The target.
    pub target: &'static str,
    /// The seed of the run, if it was one.
    pub seed: Option<u64>,
    /// What happened.
    pub why: String,
    /// The input, as small as it could be made.
    pub input: Vec<u8>,
    /// Where it was written to.
    pub file: Option<PathBuf>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { target, seed, why, input, file } = self;
        write!(f, "{target}: {why}\ninput of {} bytes: ", input.len())?;
        for byte in input.iter().take(SHOWN_BYTES) {
            write!(f, "{byte:02x}")?;
        }
        if let Some(seed) = seed {
            write!(f, "\nseed: {seed}")?;
        }
        match file {
            Some(file) => {
                write!(f, "\nagain: cargo xtask fuzz {target} --input {}", file.display())
            }
            None => Ok(()),
        }
    }
}

/// Tries inputs for so long, and for longer if it comes to [few](FEW_INPUTS) only. Files are kept in `directory`.
///
/// # Errors
/// The first input that fails.
///
/// # Panics
/// When nothing can be written to the directory.
pub fn run(
    target: &'static Target,
    seed: u64,
    time: Duration,
    directory: &Path,
) -> Result<Found, Box<Failure>> {
    let _alone = alone();
    let _hooked = Hooked::new();
    let begun = leasehold_clock::read();
    let passed = || leasehold_clock::read().since(begun).greater();
    let in_time = |inputs| passed() < if inputs < FEW_INPUTS { time * MAX_TIMES } else { time };
    let mut current = Current::new(target, directory).expect("a file in the directory of this run");
    let mut random = Random::new(seed);
    let mut shapes = BTreeSet::new();
    let mut known = (target.seeds)();
    let inputs = Cell::new(0);
    let mut attempt = |input: &[u8]| {
        current.keep(input).expect("an input is written down before it is tried");
        inputs.set(inputs.get() + 1);
        attempt(target, input).map_err(|why| (input.to_vec(), why))
    };
    let mut tried = Ok(());
    for seed in &known {
        tried = tried.and_then(|()| attempt(seed)).map(|shape| {
            shapes.insert(shape);
        });
    }
    while tried.is_ok() && in_time(inputs.get()) {
        let base = random.one_of(&known).clone();
        let input = mutate(&mut random, &base, &known);
        tried = attempt(&input).map(|shape| {
            if shapes.insert(shape) {
                if known.len() == MAX_KNOWN {
                    let given_up = random.below(MAX_KNOWN);
                    known.swap_remove(given_up);
                }
                known.push(input);
            }
        });
    }
    match tried {
        Ok(()) => {
            current.forget();
            Ok(Found { inputs: inputs.get(), shapes: shapes.len(), took: passed() })
        }
        Err((input, why)) => Err(Box::new(written_down(target, seed, &input, why, directory))),
    }
}

/// A seed that nobody had before.
///
/// # Panics
/// When the system has no randomness.
pub fn fresh_seed() -> u64 {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    u32::from_le_bytes(bytes).into()
}

/// Tries one input.
///
/// # Errors
/// When it fails.
pub fn run_one(target: &'static Target, input: &[u8]) -> Result<(), Box<Failure>> {
    let failed = |why| {
        let (target, input) = (target.name, input.to_vec());
        Box::new(Failure { target, seed: None, why, input, file: None })
    };
    let _alone = alone();
    let _hooked = Hooked::new();
    attempt(target, input).map(drop).map_err(failed)
}

fn written_down(target: &'static Target, seed: u64, input: &[u8], why: String, directory: &Path) -> Failure {
    let (input, why) = made_smaller(target, input, why);
    let file = directory.join(format!("{}-{seed}.failed", target.name));
    let file = std::fs::write(&file, &input).is_ok().then_some(file);
    Failure { target: target.name, seed: Some(seed), why, input, file }
}

/// Leaves out pieces for as long as it still fails, whatever the failure.
fn made_smaller(target: &Target, input: &[u8], why: String) -> (Vec<u8>, String) {
    let (mut smallest, mut why) = (input.to_vec(), why);
    let mut attempts = 0;
    let mut piece = smallest.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        while at < smallest.len() && attempts < MAX_ATTEMPTS {
            let mut shorter = smallest.clone();
            shorter.drain(at..(at + piece).min(smallest.len()));
            attempts += 1;
            match attempt(target, &shorter) {
                Ok(_) => at += piece,
                Err(still) => (smallest, why) = (shorter, still),
            }
        }
        piece /= 2;
    }
    (smallest, why)
}

/// One input: it must come back in time, without a panic of any thread, and without much memory.
fn attempt(target: &Target, input: &[u8]) -> Result<Shape, String> {
    let begun = leasehold_clock::read();
    let before = memory::begin();
    let caught = catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
    let taken = memory::most_since(before);
    let time = leasehold_clock::read().since(begun).greater();
    let panicked = panic_seen().take();
    match (caught, panicked) {
        (_, Some(panic)) => Err(panic),
        (Err(_), None) => Err("a panic without words".to_owned()),
        (Ok(_), None) if taken > MAX_MEMORY_BYTES => {
            Err(format!("{taken} bytes of memory are above the maximum of {MAX_MEMORY_BYTES}"))
        }
        (Ok(_), None) if time > MAX_TIME => {
            Err(format!("{time:?} are above the maximum of {MAX_TIME:?} for one input"))
        }
        (Ok(shape), None) => Ok(shape),
    }
}

/// Panics and memory are those of the whole process, so there is one run at a time.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What the last panic of any thread said, since somebody looked.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

fn panic_seen() -> std::sync::MutexGuard<'static, Option<String>> {
    PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

type Hook = Box<dyn Fn(&std::panic::PanicHookInfo<'_>) + Sync + Send + 'static>;

/// Panics are noted and not printed as long as this lives.
struct Hooked(Option<Hook>);

impl Hooked {
    fn new() -> Self {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(|panic| {
            panic_seen().get_or_insert_with(|| panic.to_string());
        }));
        Self(Some(before))
    }
}

impl Drop for Hooked {
    fn drop(&mut self) {
        if let Some(before) = self.0.take() {
            std::panic::set_hook(before);
        }
    }
}

/// The input that is being tried, in a file.
struct Current {
    path: PathBuf,
    file: File,
}

impl Current {
    fn new(target: &Target, directory: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let path = directory.join(format!("{}.current", target.name));
        Ok(Self { file: File::create(&path)?, path })
    }

    fn keep(&mut self, input: &[u8]) -> io::Result<()> {
        io::Seek::rewind(&mut self.file)?;
        self.file.write_all(input)?;
        self.file.set_len(input.len() as u64)
    }

    fn forget(self) {
        let _ = std::fs::remove_file(self.path);
    }
}
