//! Running other programs, with words about what went wrong.

use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a program to its end and gives what it printed.
///
/// # Errors
/// When it does not start, or ends with anything but 0.
pub fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments);
    let output = output(&mut command)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {}: {}", arguments.join(" "), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program to its end, whatever its code.
///
/// # Errors
/// When it does not start.
pub fn output(command: &mut Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).output().with_context(|| format!("{name} does not start"))
}

/// Programs without which nothing here works, and the Debian packages that have them.
pub const NEEDED: [(&str, &str); 7] = [
    ("cc", "gcc"),
    ("fsfreeze", "util-linux"),
    ("ip", "iproute2"),
    ("mkfs.ext4", "e2fsprogs"),
    ("nsenter", "util-linux"),
    ("setpriv", "util-linux"),
    ("unshare", "util-linux"),
];

/// Says what is missing on this machine, with what to do about it.
///
/// # Errors
/// When a program is missing, or this process is not root.
pub fn check_machine() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("network namespaces and mounts need root; run it as root");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let exists = |program: &str| std::env::split_paths(&path).any(|place| place.join(program).is_file());
    let missing: Vec<&str> =
        NEEDED.iter().filter(|(program, _)| !exists(program)).map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        bail!("programs are missing; install: {}", missing.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_said_is_in_the_error() {
        assert_eq!(run("echo", &["one", "two"]).unwrap(), "one two\n");
        let error = run("sh", &["-c", "echo broken >&2; exit 3"]).unwrap_err().to_string();
        assert!(error.contains("broken") && error.contains('3'), "{error}");
    }
}
