//! What passes through: exit codes, signals, streams, environment; and what must not.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use leasehold_cli::guardian::tree::Stat;
use rustix::process::{Signal, getpgid, getsid};

use crate::stage::{Stage, UNTIL_TOLD, is_gone, undisturbed, when_gone};

fn output(stage: &Stage, script: &str, input: &str) -> Output {
    let mut command = stage.command(&[], &["sh", "-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut wrapper = command.spawn().unwrap();
    wrapper.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    wrapper.wait_with_output().unwrap()
}

#[test]
fn the_exit_code_passes_through() {
    let mut stage = Stage::run(&[], "exit 7");
    assert_eq!(stage.wait().code(), Some(7));
    assert!(stage.log().contains("event Exited(Code(7))"));
}

#[test]
fn the_end_by_a_signal_passes_through_as_a_shell_shows_it() {
    let mut stage = Stage::run(&[], "kill -USR1 $$");
    assert_eq!(stage.wait().code(), Some(128 + Signal::USR1.as_raw()));
    assert!(stage.log().contains("event Exited(Signal(10))"));
}

#[test]
fn the_streams_and_the_environment_are_the_commands_own() {
    let output = output(&Stage::empty(), "cat; echo token $LEASEHOLD_TOKEN; echo trouble >&2", "hello\n");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "hello\ntoken 7\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "trouble\n");
}

#[test]
fn no_descriptor_of_ours_leaks_into_the_command() {
    let script = "for f in /proc/$$/fd/*; do readlink $f; done";
    let with = output(&Stage::empty(), script, "").stdout;
    let without = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).output().unwrap().stdout;
    // Numbers of pipes differ; how many descriptors of which kind does not.
    let kinds = |open: &[u8]| -> Vec<String> {
        let open = String::from_utf8_lossy(open);
        open.lines().map(|line| line.split('[').next().unwrap_or(line).to_owned()).collect()
    };
    assert_eq!(kinds(&with), kinds(&without));
    assert!(kinds(&with).len() >= 3);
}

#[test]
fn an_ignored_signal_stays_ignored_as_under_nohup() {
    let stage = Stage::empty();
    let script = "trap '' HUP; \"$@\"";
    let mut nohup = Command::new("sh");
    nohup.args(["-c", script, "sh"]).arg(crate::stage::example()).arg("--log").arg(stage.file("log"));
    let output = nohup.args(["--", "sh", "-c", "kill -HUP $$; echo alive"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "alive\n");
}

#[test]
fn the_command_leads_a_group_of_its_own_and_the_guardian_is_in_neither() {
    let stage = Stage::run(&[], "sleep 300");
    let [wrapper, guardian, command] = stage.pids();
    assert_eq!(getpgid(Some(command)), Ok(command));
    assert_eq!(getpgid(Some(guardian)), Ok(guardian));
    assert_eq!(Stat::read(command).unwrap().parent, Some(guardian));
    assert_eq!(getsid(Some(command)), getsid(Some(guardian)));
    assert_ne!(getpgid(Some(wrapper)), Ok(guardian));
}

#[test]
fn a_command_that_does_not_exist_has_its_own_error() {
    let mut stage = Stage::empty();
    stage.wrapper = Some(stage.command(&[], &["/no/such/program"]).spawn().unwrap());
    assert_eq!(stage.wait().code(), Some(127));
    stage.wait_log(r#"failed command "/no/such/program" was not found"#);
}

#[test]
fn a_command_that_cannot_be_executed_has_its_own_error() {
    let mut stage = Stage::empty();
    let file = stage.file("data");
    fs::write(&file, "no program").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    stage.wrapper = Some(stage.command(&[], &[file.to_str().unwrap()]).spawn().unwrap());
    assert_eq!(stage.wait().code(), Some(126));
    stage.wait_log("cannot be executed");
}

#[test]
fn a_lease_that_is_nearly_over_starts_nothing() {
    let mut stage = Stage::run(&["--ttl", "1000", "--age", "750"], "touch $STAGE/ran");
    assert_eq!(stage.wait().code(), Some(121));
    assert!(!stage.file("ran").exists());
}

#[test]
fn a_daemon_delays_the_news_that_all_is_gone() {
    let daemon = format!("echo $$ > $STAGE/daemon; {UNTIL_TOLD}");
    let script = format!("( setsid sh -c '{daemon}' & ); exit 5");
    undisturbed(|| {
        let mut stage = Stage::run(&["--ttl", "2000"], &script);
        let (exited, _) = stage.wait_log("event Exited(Code(5))");
        let daemon = stage.written("daemon");
        assert!(!is_gone(daemon), "it outlives the command");
        // Longer than the ttl: the lease is kept, and renewed every third of it, for the daemon's sake.
        stage.renewed(5)?;
        stage.go();
        assert_eq!(stage.wait().code(), Some(5));
        let (all_gone, _) = stage.wait_log("event AllGone");
        assert!(is_gone(daemon));
        let kept = all_gone.remaining(exited).as_millis();
        assert!(kept > 3000, "only {kept} ms between the end of the command and the end of the daemon");
        Ok(())
    });
}

#[test]
fn renewals_keep_the_command_alive_beyond_many_ttls() {
    undisturbed(|| {
        let mut stage = Stage::run(&["--ttl", "2000"], &format!("{UNTIL_TOLD}; exit 0"));
        let [_, guardian, command] = stage.pids();
        // A renewal comes every third of the ttl.
        stage.renewed(12)?;
        stage.go();
        assert_eq!(stage.wait().code(), Some(0));
        when_gone(&[guardian, command]);
        Ok(())
    });
}
