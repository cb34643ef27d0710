//! A real shell with job control on a real terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use leasehold_cli::guardian::tree::Stat;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

use crate::stage::{Stage, assert_before, deaf_tree, eventually, example, is_gone, wait_state, when_gone};

/// Both are asked the same: they handle the terminal differently.
const SHELLS: [&[&str]; 2] = [&["bash", "--norc", "--noprofile", "-i"], &["dash", "-i"]];

/// Says that it is ready and waits to be told to go on, without touching the terminal.
const WAIT: &str = "mkfifo $STAGE/go; echo r''eady; read x < $STAGE/go;";

const CTRL_C: &str = "\x03";
const CTRL_Z: &str = "\x1a";

/// A program that has a terminal of its own.
struct OnTerminal {
    program: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
}

impl OnTerminal {
    fn start(words: &[&str], stage: &Stage) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let theirs =
            ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        let stream = || Stdio::from(theirs.try_clone().unwrap());
        // Whoever runs the tests in the background made them ignore Ctrl-C; on its terminal the shell must not.
        // setsid --ctty makes standard input the controlling terminal of a new session.
        let program = Command::new("env")
            .args(["--default-signal", "setsid", "--ctty"])
            .args(words)
            .env("STAGE", stage.dir.path())
            .env("PS1", "prompt> ")
            .env("TERM", "dumb")
            .stdin(stream())
            .stdout(stream())
            .stderr(stream())
            .spawn()
            .unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        read_all(ours.try_clone().unwrap(), Arc::clone(&screen));
        Self { program, keyboard: File::from(ours), screen }
    }

    fn shell(shell: &[&str], stage: &Stage) -> Self {
        let shell = Self::start(shell, stage);
        shell.see("prompt> ");
        shell
    }

    /// Starts the wrapper from the shell with this script.
    fn run(&mut self, stage: &Stage, options: &str, script: &str, behind: &str) {
        std::fs::write(stage.file("script"), script).unwrap();
        let (example, log) = (example(), stage.file("log"));
        let (example, log, script) = (example.display(), log.display(), stage.file("script"));
        self.press(&format!("{example} --log {log} {options} -- sh {} {behind}\n", script.display()));
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen shows `text`, and forgets everything up to it.
    fn see(&self, text: &str) {
        let what = format!("the screen shows {text:?}");
        eventually(&what, || {
            let mut screen = self.screen.lock().unwrap();
            let at = screen.find(text)?;
            *screen = screen.split_off(at + text.len());
            Some(())
        });
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("screen: {:?}", self.screen.lock());
        }
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn read_all(terminal: OwnedFd, screen: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        let mut terminal = File::from(terminal);
        let mut bytes = [0_u8; 4096];
        while let Ok(count @ 1..) = terminal.read(&mut bytes) {
            screen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    });
}

#[test]
fn after_ctrl_z_the_shell_says_stopped_and_all_is_gone_before_the_deadline() {
    for shell in SHELLS {
        let stage = Stage::empty();
        let mut terminal = OnTerminal::shell(shell, &stage);
        terminal.run(&stage, "--ttl 2000", &deaf_tree(), "");
        let tree = stage.tree();
        let wrapper = stage.pids()[0];
        terminal.press(CTRL_Z);
        terminal.see("Stopped");
        wait_state(wrapper, true);
        assert_before(when_gone(&tree), stage.last_deadline());
        assert!(!is_gone(wrapper), "the wrapper is stopped, not gone");
        // Continued too late, it has nothing left to continue and says how it ended.
        terminal.press("fg\n");
        when_gone(&[wrapper]);
        terminal.press("echo code $?\n");
        terminal.see("code 137");
    }
}

#[test]
fn after_ctrl_z_and_fg_in_time_the_command_goes_on_and_has_the_keyboard() {
    for shell in SHELLS {
        let stage = Stage::empty();
        let mut terminal = OnTerminal::shell(shell, &stage);
        terminal.run(
            &stage,
            "--ttl 10000",
            "echo r''eady; read x; echo got-$x; read x; echo got-$x; exit 5",
            "",
        );
        let [wrapper, _, command] = stage.pids();
        terminal.see("ready");
        terminal.press("before\n");
        terminal.see("got-before");
        for _ in 0..3 {
            terminal.press(CTRL_Z);
            terminal.see("Stopped");
            wait_state(wrapper, true);
            wait_state(command, true);
            terminal.press("fg\n");
            wait_state(command, false);
        }
        terminal.press("after\n");
        terminal.see("got-after");
        when_gone(&[wrapper]);
        // The shell has its terminal back and can read from it.
        terminal.press("echo code $?\n");
        terminal.see("code 5");
    }
}

#[test]
fn ctrl_c_reaches_the_command_and_its_end_passes_through() {
    for shell in SHELLS {
        let stage = Stage::empty();
        let mut terminal = OnTerminal::shell(shell, &stage);
        terminal.run(&stage, "--ttl 10000", &format!("{WAIT} exit 0"), "");
        let [wrapper, guardian, command] = stage.pids();
        terminal.see("ready");
        terminal.press(CTRL_C);
        when_gone(&[wrapper, guardian, command]);
        stage.wait_log("event Exited(Signal(2))");
        terminal.press("echo code $?\n");
        terminal.see("code 130");
    }
}

#[test]
fn started_in_the_background_it_stops_when_it_reads_and_fg_lets_it() {
    for shell in SHELLS {
        let stage = Stage::empty();
        let mut terminal = OnTerminal::shell(shell, &stage);
        terminal.run(&stage, "--ttl 10000", &format!("{WAIT} read x; echo got-$x; exit 5"), "&");
        let [wrapper, _, command] = stage.pids();
        stage.go();
        wait_state(command, true);
        wait_state(wrapper, true);
        terminal.press("fg\n");
        wait_state(command, false);
        terminal.press("hello\n");
        terminal.see("got-hello");
        when_gone(&[wrapper]);
        terminal.press("echo code $?\n");
        terminal.see("code 5");
    }
}

#[test]
fn after_bg_the_command_goes_on_without_the_keyboard() {
    for shell in SHELLS {
        let stage = Stage::empty();
        let mut terminal = OnTerminal::shell(shell, &stage);
        terminal.run(&stage, "--ttl 10000", &format!("{WAIT} exit 6"), "");
        let [wrapper, _, command] = stage.pids();
        terminal.see("ready");
        terminal.press(CTRL_Z);
        terminal.see("Stopped");
        wait_state(command, true);
        terminal.press("bg\n");
        wait_state(command, false);
        wait_state(wrapper, false);
        terminal.press("echo still-$((40 + 2))\n");
        terminal.see("still-42");
        stage.go();
        when_gone(&[wrapper]);
        stage.wait_log("event Exited(Code(6))");
    }
}

#[test]
fn a_frozen_command_is_not_taken_for_a_stopped_job_and_keeps_the_keyboard() {
    let stage = Stage::empty();
    let mut terminal = OnTerminal::shell(SHELLS[0], &stage);
    let options = format!("--ttl 20000 --freeze-while {}", stage.file("cut").display());
    terminal.run(&stage, &options, "echo r''eady; read x; echo got-$x; exit 5", "");
    let [wrapper, _, command] = stage.pids();
    terminal.see("ready");
    std::fs::write(stage.file("cut"), "").unwrap();
    stage.wait_log("event Frozen");
    wait_state(command, true);
    assert!(!Stat::read(wrapper).unwrap().is_stopped(), "somebody has to renew");
    std::fs::remove_file(stage.file("cut")).unwrap();
    stage.wait_log("event Thawed");
    wait_state(command, false);
    terminal.press("after\n");
    terminal.see("got-after");
    when_gone(&[wrapper]);
    // Before, it may have asked for the keyboard a moment too early, which the kernel answers with a stop.
    let log = stage.log();
    let (_, since_frozen) = log.split_once("event Frozen").expect("it was waited for");
    assert!(!since_frozen.contains("event Stopped"), "{log}");
    terminal.press("echo code $?\n");
    terminal.see("code 5");
}

#[test]
fn without_a_shell_to_continue_it_ctrl_z_stops_nothing() {
    // As in a container: the wrapper leads the session, so the kernel would not stop it, nor shall we.
    let stage = Stage::empty();
    let log = stage.file("log");
    let words = [log.to_str().unwrap(), "--ttl", "5000", "--", "sh", "-c"];
    let script = format!("{WAIT} read x; echo got-$x");
    let example = example();
    let line: Vec<&str> =
        [example.to_str().unwrap(), "--log"].into_iter().chain(words).chain([script.as_str()]).collect();
    let mut terminal = OnTerminal::start(&line, &stage);
    let all = stage.pids();
    terminal.see("ready");
    terminal.press(CTRL_Z);
    stage.wait_log("event Stopped(20)");
    stage.wait_log("event Continued");
    stage.go();
    terminal.press("hello\n");
    terminal.see("got-hello");
    when_gone(&all);
}

#[test]
fn a_terminal_that_goes_away_ends_the_command_in_time() {
    let stage = Stage::empty();
    let mut terminal = OnTerminal::shell(SHELLS[0], &stage);
    terminal.run(&stage, "--ttl 2000", &format!("trap '' HUP\n{}", deaf_tree()), "");
    let tree = stage.tree();
    let [wrapper, guardian, _] = stage.pids();
    // Kills the shell, the session's leader; the screen's reader keeps the terminal itself open.
    drop(terminal);
    rustix::process::kill_process(wrapper, rustix::process::Signal::HUP).unwrap();
    assert_before(when_gone(&tree), stage.last_deadline());
    when_gone(&[guardian]);
}
