//! Files of a later version: they are named as such, nothing is called damage, and nothing is given up.

use super::stage::Stage;
use std::fs;
use std::path::{Path, PathBuf};

/// The last block that is written of the newest segment.
fn last_block(data: &Path) -> (PathBuf, Vec<u8>, usize) {
    let files = fs::read_dir(data.join("log")).unwrap().map(|entry| entry.unwrap().path());
    let segment = files.filter(|path| path.extension().is_some_and(|end| end == "log")).max().unwrap();
    let bytes = fs::read(&segment).unwrap();
    let is_used = |at: &usize| bytes[*at..at + 512].iter().any(|byte| *byte != 0);
    let at = (0..bytes.len()).step_by(512).filter(is_used).last().unwrap();
    (segment, bytes, at)
}

/// The checksum of blocks, bit by bit.
fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
    !bytes.iter().fold(!seed, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

#[test]
fn a_log_of_a_later_version_is_no_damage_and_nothing_of_it_is_cut() {
    let stage = Stage::new();
    let serving = stage.serve("data");
    let before = stage.token(&serving, "job");
    drop(serving);
    let (segment, good, at) = last_block(&stage.path("data"));
    let mut newer = good.clone();
    newer[at + 8..at + 10].copy_from_slice(&2_u16.to_le_bytes());
    let crc = crc32c(0x4c48_0b10, &newer[at + 4..at + 512]);
    newer[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    fs::write(&segment, &newer).unwrap();
    for words in [
        &["data", "verify", "data"][..],
        &["data", "verify", "data", "--cut"],
        &["data", "verify", "data", "--cut", "--yes", "--only-survivor"],
        &["data", "recover", "--data", "data", "--only-survivor"],
    ] {
        let (code, said) = stage.run(words);
        assert_eq!(code, Some(1), "{words:?}: {said}");
        for part in ["written by a later release", "has version 2", "reads up to 1", "nothing was changed"] {
            assert!(said.contains(part), "{words:?} does not say {part:?}: {said}");
        }
        for part in ["damage in", "--cut", "lost", "cluster remove"] {
            assert!(!said.contains(part), "{words:?} says {part:?}: {said}");
        }
        assert_eq!(fs::read(&segment).unwrap(), newer, "{words:?} has written");
    }
    let (code, said) = stage.run(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
    assert_ne!(code, Some(0));
    assert!(said.contains("version 2") && said.contains("up to 1") && !said.contains("--cut"), "{said}");
    // What the later release reads is all there.
    fs::write(&segment, good).unwrap();
    assert!(stage.token(&stage.serve("data"), "job") > before);
}
