//! What goes where: results, errors, terminals, closed pipes; and stores that cannot be used.

use std::io::Read;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use super::stage::{Stage, said};

#[test]
fn errors_are_one_json_object_on_standard_error() {
    let stage = Stage::new();
    let (_holder, token) = stage.hold("job", &[]);
    let said = stage.say(&["--json", "run", "job", "--no-wait", "--", "true"]);
    assert_eq!((said.code, said.out.as_str()), (Some(120), ""));
    let error: Value = serde_json::from_str(&said.err).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    let expected = format!("job was not acquired: held by holder with token {token} for ");
    assert!(message.starts_with(&expected), "{message}");
    assert_eq!(
        error,
        json!({"error": {"code": "not-free", "kind": "refused", "message": message, "exit_code": 120}})
    );
    let said = stage.say(&["--json", "watch", "--after", "9999999"]);
    assert!(said.err.contains("\"code\":\"revision-ahead\",\"kind\":\"refused\""), "{said:?}");
}

#[test]
fn a_closed_pipe_ends_in_silence() {
    let stage = Stage::new();
    let (_holder, _) = stage.hold("job", &[]);
    let commands: [&[&str]; 8] = [
        &["get", "job"],
        &["list"],
        &["list", "--sessions"],
        &["--json", "list"],
        &["history", "job"],
        &["get", "job", "--token", "2"],
        &["completions", "bash"],
        &["--help"],
    ];
    for arguments in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = stage.command(arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), err.as_ref()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn escape_codes_go_to_terminals_alone() {
    let stage = Stage::new();
    let (_holder, _) = stage.hold("job", &[]);
    let commands: [&[&str]; 5] =
        [&["get", "job"], &["list"], &["list", "--sessions"], &["history", "job"], &["--help"]];
    for arguments in commands {
        let said = stage.say(arguments);
        assert!(!said.out.contains(['\x1b', '\t']), "{said:?}");
        assert!(!stage.say(&["get", ""]).err.contains('\x1b'));
    }
    assert!(on_terminal(&mut stage.command(&["list"])).starts_with("\x1b[1mNAME  STATE"));
    let plain = on_terminal(stage.command(&["list"]).env("NO_COLOR", "1"));
    assert!(plain.starts_with("NAME  STATE") && !plain.contains('\x1b'), "{plain:?}");
}

/// What a command writes to a terminal.
fn on_terminal(command: &mut Command) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = std::fs::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut child = command.env("TERM", "xterm").stdout(slave).spawn().unwrap();
    child.wait().unwrap();
    // Our own copy of the other end is in `command`; what was written waits in the terminal.
    let mut text = vec![0; 65_536];
    let count = std::fs::File::from(master).read(&mut text).unwrap();
    text.truncate(count);
    String::from_utf8(text).unwrap()
}

#[test]
fn there_are_completions_for_the_usual_shells() {
    let stage = Stage::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = stage.good(&["completions", shell]);
        assert!(script.contains("leasehold") && script.contains("revoke"), "{shell}");
        assert!(!script.contains("__guardian"), "{shell}");
        assert!(script.contains("human"), "{shell} does not know what --log-format takes");
    }
    assert!(!stage.store().exists());
}

#[test]
fn a_store_that_cannot_be_made_gives_122() {
    let stage = Stage::new();
    let file = stage.dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let store = file.join("store");
    let said = stage.say(&["--store", store.to_str().unwrap(), "run", "a", "--", "true"]);
    assert_eq!((said.code, said.out.as_str()), (Some(122), ""));
    let expected = format!("leasehold: cannot make {}: Not a directory", store.display());
    assert!(
        said.err.starts_with(&expected) && said.err.ends_with("name another store with --store\n"),
        "{said:?}"
    );
}

#[test]
fn a_store_without_rights_gives_122() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    stage.good(&["run", "job", "--", "true"]);
    std::fs::set_permissions(stage.store(), std::fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = if rustix::process::getuid().is_root() {
        // Rights mean nothing to root: another user looks.
        std::fs::set_permissions(stage.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let copy = stage.dir.path().join("leasehold");
        // By a process of its own: what other tests start meanwhile would inherit a file that is being written, and such a file cannot be run.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_leasehold")).arg(&copy).status().unwrap();
        assert!(copied.success());
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--clear-groups"])
            .arg(copy)
            .args(["get", "job"])
            .env("LEASEHOLD_STORE", stage.store());
        command
    } else {
        stage.command(&["get", "job"])
    };
    let said = said(&mut command);
    std::fs::set_permissions(stage.store(), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!((said.code, said.out.as_str()), (Some(122), ""), "{said:?}");
    assert!(said.err.contains("Permission denied"), "{said:?}");
}

#[test]
fn a_stopped_server_is_named_with_its_pid() {
    let stage = Stage::new();
    let (server, _) = stage.hold("job", &[]);
    server.signal(Signal::STOP);
    let said = stage.say(&["get", "job", "--timeout", "500ms"]);
    assert_eq!((said.code, said.out.as_str()), (Some(122), ""));
    assert!(
        said.err.contains(&format!("is served by process {}, which is stopped", server.pid())),
        "{said:?}"
    );
    assert!(said.err.ends_with(&format!("kill -CONT {}\n", server.pid())), "{said:?}");
    server.signal(Signal::CONT);
    stage.good(&["get", "job"]);
}

#[test]
fn the_default_store_lies_in_the_home_of_the_user() {
    let stage = Stage::new();
    let home = stage.dir.path().join("home");
    let script = ["run", "a", "--", "sh", "-c", "echo $LEASEHOLD_STORE"];
    let default = |set: &[(&str, &str)]| {
        let mut command = stage.command(&script);
        command.env_remove("LEASEHOLD_STORE").env_remove("XDG_STATE_HOME").env_remove("HOME");
        said(command.envs(set.iter().copied())).out
    };
    let home = home.to_str().unwrap();
    assert_eq!(default(&[("HOME", home)]), format!("dir:{home}/.local/state/leasehold\n"));
    assert_eq!(
        default(&[("HOME", home), ("XDG_STATE_HOME", &format!("{home}/state"))]),
        format!("dir:{home}/state/leasehold\n")
    );
}
