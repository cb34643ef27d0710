//! Room on the disk for everything that is built. Without it the linker dies half way, with words that do not say why.

use anyhow::{Context, Result, bail};

use crate::run::target_directory;

/// What building and running every test takes in a directory that has nothing yet, as measured, and some more.
const NEEDED: u64 = 24 << 30;
/// What it takes where everything is built already: test programs are written anew.
const NEEDED_AGAIN: u64 = 8 << 30;

/// Refuses to begin what cannot end.
pub(crate) fn check() -> Result<()> {
    let target = target_directory();
    let built = target.join("debug/deps").is_dir();
    std::fs::create_dir_all(&target).with_context(|| format!("{} cannot be made", target.display()))?;
    let there = rustix::fs::statvfs(&target)
        .with_context(|| format!("the disk of {} cannot be asked for its room", target.display()))?;
    judge(there.f_bavail.saturating_mul(there.f_frsize), if built { NEEDED_AGAIN } else { NEEDED })
}

fn judge(free: u64, needed: u64) -> Result<()> {
    let gigabytes = |bytes: u64| bytes >> 30;
    if free < needed {
        bail!(
            "{} GiB are free where cargo builds, and the tests need {}; make room, or build elsewhere with CARGO_TARGET_DIR",
            gigabytes(free),
            gigabytes(needed)
        );
    }
    Ok(())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn too_little_room_is_refused_with_both_numbers_and_what_to_do() {
        assert!(judge(NEEDED, NEEDED).is_ok());
        let said = judge((3 << 30) + 7, NEEDED).unwrap_err().to_string();
        assert!(
            said.starts_with("3 GiB are free")
                && said.contains("need 24")
                && said.contains("CARGO_TARGET_DIR"),
            "{said}"
        );
    }
}
