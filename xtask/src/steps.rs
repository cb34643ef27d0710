//! What each step took: told when it ends, and once more in a table at the end.

use std::sync::Mutex;
use std::time::Duration;

use crate::clock;

/// Steps that have ended, in their order.
static ENDED: Mutex<Vec<(String, Duration)>> = Mutex::new(Vec::new());

/// Does a step and says how long it took. To standard error: what is done may write for other programs.
pub(crate) fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = clock::now();
    let done = work();
    let took = clock::now().saturating_sub(began);
    eprintln!("==> {what}: {}", clock::seconds(took));
    ENDED.lock().expect("no step panics while it is noted").push((what.to_owned(), took));
    done
}

/// Prints every step that has ended.
pub(crate) fn print() {
    let ended = ENDED.lock().expect("no step panics while it is noted");
    let total = ended.iter().map(|(_, took)| *took).sum();
    for (what, took) in ended.iter().map(|(what, took)| (what.as_str(), *took)).chain([("all steps", total)])
    {
        println!("{:>10}  {what}", clock::seconds(took));
    }
}
