//! SIGKILL in the middle: nothing half-made can be used, and nothing is lost.

use std::time::Duration;

use super::stage::Stage;

/// Starts a command and kills it after a while; whether it had ended by itself.
fn kill_after(stage: &Stage, words: &[&str], micros: u64) -> bool {
    let mut child = stage.command(words).stdout(std::process::Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_micros(micros));
    child.kill().unwrap();
    child.wait().unwrap().success()
}

#[test]
fn a_restore_that_is_killed_leaves_a_whole_directory_or_none() {
    let stage = Stage::new();
    let file = stage.backup("leases");
    let file = file.to_str().unwrap();
    let (mut killed, mut last) = (0, 0);
    for round in 0..60_u64 {
        let data = format!("data-{round}");
        let words = ["data", "restore", file, "--data", &data, "--first-restore"];
        killed += u32::from(!kill_after(&stage, &words, round * 400));
        if stage.path(&data).exists() {
            let found = stage.json(&["data", "verify", &data]);
            let epoch = found["epoch"].as_u64().unwrap();
            assert!(epoch > last, "epoch {epoch} after {last}");
            last = epoch;
        } else {
            let begun = stage.json(&words);
            assert!(begun["epoch"].as_u64().unwrap() > last);
            last = begun["epoch"].as_u64().unwrap();
        }
    }
    assert!(killed > 5, "{killed} were killed");
}

#[test]
fn a_recovery_that_is_killed_leaves_the_old_log_or_the_new_one() {
    let stage = Stage::new();
    drop(stage.serve("data"));
    let mut before = stage.json(&["data", "verify", "data"]);
    let mut killed = 0;
    for round in 0..60_u64 {
        let words = ["data", "recover", "--data", "data", "--only-survivor", "--holders-are-stopped"];
        killed += u32::from(!kill_after(&stage, &words, round * 400));
        let after = stage.json(&["data", "verify", "data"]);
        let is_new = after["member"] != before["member"];
        let (old, new) = (before["epoch"].as_u64().unwrap(), after["epoch"].as_u64().unwrap());
        assert_eq!(new > old, is_new, "{before} {after}");
        assert_eq!(after["members"][0]["id"], after["member"], "round {round}");
        before = after;
    }
    assert!(killed > 5, "{killed} were killed");
    let serving = stage.serve("data");
    assert!(stage.token(&serving, "job") > 0);
}
