//! What the fence costs for a file: the same durable replacement with and without it, in turns.
//!
//! `cargo run --release -p leasehold-fence --example cost_files [DIRECTORY]`

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold_fence::Stamp;
use leasehold_fence::files::Fence;

/// Each way is measured so many times, in turns; the median counts.
const REPEATS: usize = 9;
const WRITES: usize = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = tempfile::tempdir_in(place)?;
    let file = directory.path().join("data");
    let fence = Fence::new(&file)?;
    let stamp = Stamp::new("cost", 34)?.held_by("worker-3")?;
    let contents = vec![b'x'; 1_000];
    fence.write_blocking(&stamp, &contents)?;
    let [mut without, mut with] = [Vec::new(), Vec::new()];
    for _ in 0..REPEATS {
        let began = now();
        (0..WRITES).try_for_each(|_| replace(&file, &contents))?;
        without.push(now() - began);
        let began = now();
        (0..WRITES).try_for_each(|_| fence.write_blocking(&stamp, &contents))?;
        with.push(now() - began);
    }
    let [without, with] = [without, with].map(median_us);
    println!(
        "file: {WRITES} writes of 1,000 bytes: {with:.1} us with the fence, {without:.1} us without, ratio {:.2}",
        with / without,
    );
    Ok(())
}

/// What a careful program does without a fence.
fn replace(file: &Path, contents: &[u8]) -> io::Result<()> {
    let new = file.with_extension("new");
    let mut made = File::create(&new)?;
    made.write_all(contents)?;
    made.sync_all()?;
    std::fs::rename(&new, file)?;
    File::open(file.parent().unwrap_or(Path::new(".")))?.sync_all()
}

fn median_us(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6 / WRITES as f64
}

fn now() -> Duration {
    Duration::from_nanos(leasehold_clock::read().boot)
}
