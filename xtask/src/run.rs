//! Starting other programs, always from the root of the workspace.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::steps::timed;

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package lies in a directory of the workspace")
}

/// Where cargo builds, as this process was told.
pub(crate) fn target_directory() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    let mut command = apart(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// A program that is not told what cargo tells this one of itself: some dependencies are built anew whenever that differs.
pub(crate) fn apart(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let own = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if name.to_str().is_some_and(|name| own.iter().any(|prefix| name.starts_with(prefix))) {
            command.env_remove(name);
        }
    }
    // What a clone is built for once never pays for being built piece by piece: a third less to write, and to have room for.
    if std::env::var_os("CI").is_some() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// Builds the service and these programs of a package as they are shipped. Gives back where they are.
pub(crate) fn release(what: &str, package: &str, programs: &[&str]) -> Result<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--release", "-p", "leasehold-cli", "--bin", "leasehold", "-p", package]);
    step(what, build.args(programs.iter().flat_map(|program| ["--bin", program])))?;
    Ok(target_directory().join("release"))
}

/// A command as another program starts it, which these words begin.
pub(crate) fn wrapped(words: &[&str], command: &Command) -> Command {
    let mut outer = Command::new(words[0]);
    outer.args(&words[1..]).arg(command.get_program()).args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        outer.current_dir(directory);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

/// Says what is run, runs it with its output shown, says what it took, and fails if it does. That goes to standard error: a program
/// that is run may write for other programs.
pub(crate) fn step(what: &str, command: &mut Command) -> Result<()> {
    eprintln!("==> {what}: {}", in_words(command));
    let status =
        timed(what, || command.status()).with_context(|| format!("{} does not start", in_words(command)))?;
    if !status.success() {
        bail!("{what} failed: {}: {status}", in_words(command));
    }
    Ok(())
}

/// The compiler that cargo uses, with its version.
pub(crate) fn rustc() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output =
        Command::new(rustc).current_dir(root()).arg("--version").output().context("rustc does not start")?;
    ensure!(output.status.success(), "rustc does not tell its version");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Which compilers are known to be wrong: the file says it for the build script of the core too.
mod compiler {
    include!("../../crates/core/compiler.rs");
}

/// Says what was built with, and warns if that is known to be wrong: before something is measured, or simulated for long.
pub(crate) fn say_compiler() -> Result<()> {
    let rustc = rustc()?;
    eprintln!("==> built with {rustc}");
    if let Some(warning) = compiler::warning(&rustc) {
        eprintln!("==> warning: {warning}");
    }
    Ok(())
}

/// Refuses the words of a task as the command line itself does, and ends.
pub(crate) fn refuse(task: &str, why: &str) -> ! {
    eprintln!("error: {why}\n\nFor more information, try 'cargo xtask {task} --help'.");
    std::process::exit(2)
}

/// More than a week is a slip of the hand.
const MAX_MINUTES: f64 = 10_080.0;

/// A number of minutes on a command line.
pub(crate) fn minutes(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|minutes| *minutes > 0.0 && *minutes <= MAX_MINUTES);
    number.ok_or_else(|| format!("give a number of minutes above 0 and up to {MAX_MINUTES}"))
}

/// Whether a program exists on the path.
pub(crate) fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// A command as a person would type it.
pub(crate) fn in_words(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_command_is_shown_without_the_path_of_its_program() {
        assert_eq!(in_words(Command::new("/usr/bin/cargo").args(["fmt", "--check"])), "cargo fmt --check");
    }

    #[test]
    fn only_compilers_that_are_known_to_be_wrong_are_warned_of() {
        let is_wrong =
            |version| compiler::warning(&format!("rustc {version} (0123abcd 2026-01-01)")).is_some();
        assert!(["1.94.0", "1.95.0", "1.97.0", "1.98.3", "1.98.0-beta.1"].into_iter().all(is_wrong));
        assert!(!["1.93.1", "1.97.1", "1.99.0", "nothing"].into_iter().any(is_wrong));
    }

    #[test]
    fn minutes_are_above_zero_and_up_to_a_week() {
        assert_eq!(minutes("0.5"), Ok(0.5));
        for text in ["0", "-1", "10081", "NaN", "inf", "x"] {
            assert!(minutes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_programs_on_the_path_exist() {
        assert!(exists("sh"));
        assert!(!exists("no-program-has-this-name"));
    }
}
