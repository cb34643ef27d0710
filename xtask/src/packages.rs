//! Programs that the tests start and that a small machine may lack.

use std::process::Command;

use anyhow::{Result, bail};

use crate::run::{exists, step};

/// A program, and the Debian package that has it.
const NEEDED: [(&str, &str); 23] = [
    ("bash", "bash"),
    ("cat", "coreutils"),
    ("cc", "gcc"),
    ("curl", "curl"),
    ("dash", "dash"),
    ("flock", "util-linux"),
    ("fsfreeze", "util-linux"),
    // With make, for the client library of Kafka, which is built from source.
    ("g++", "g++"),
    ("go", "golang-go"),
    ("ip", "iproute2"),
    ("make", "make"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mount", "mount"),
    ("nsenter", "util-linux"),
    // Certificates for servers that are spoken to over TLS.
    ("openssl", "openssl"),
    ("pgrep", "procps"),
    ("python3", "python3"),
    ("script", "bsdutils"),
    ("setpriv", "util-linux"),
    ("setsid", "util-linux"),
    ("strace", "strace"),
    ("timeout", "coreutils"),
    ("valgrind", "valgrind"),
];

/// Installs the packages of missing programs, or says what to install.
pub(crate) fn install_missing() -> Result<()> {
    let missing = packages_of_missing(&NEEDED, exists);
    if missing.is_empty() {
        let programs: Vec<&str> = NEEDED.iter().map(|(program, _)| *program).collect();
        println!("==> programs used by the tests are here: {}", programs.join(", "));
        return Ok(());
    }
    install(&missing)
}

/// Installs the packages of those programs that are missing, if any are.
pub(crate) fn install_for(needed: &[(&str, &str)]) -> Result<()> {
    let missing = packages_of_missing(needed, exists);
    if missing.is_empty() { Ok(()) } else { install(&missing) }
}

/// Installs packages, or says that it cannot.
pub(crate) fn install(missing: &[&str]) -> Result<()> {
    let list = missing.join(" ");
    if !(exists("apt-get") && is_root()) {
        bail!("the tests need packages that are missing and cannot be installed from here; install: {list}");
    }
    let mut update = Command::new("apt-get");
    step("list of packages", update.args(["update", "--quiet"]))?;
    let mut install = Command::new("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive");
    install.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(missing);
    step("packages used by the tests", &mut install)
}

fn packages_of_missing<'a>(needed: &[(&str, &'a str)], exists: impl Fn(&str) -> bool) -> Vec<&'a str> {
    let mut missing: Vec<&str> =
        needed.iter().filter(|(program, _)| !exists(program)).map(|(_, package)| *package).collect();
    missing.sort_unstable();
    missing.dedup();
    missing
}

/// Whether packages can be installed.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_package_is_named_once_and_only_if_a_program_of_it_is_missing() {
        let all = [
            "bash",
            "bsdutils",
            "coreutils",
            "curl",
            "dash",
            "e2fsprogs",
            "g++",
            "gcc",
            "golang-go",
            "iproute2",
            "make",
            "mount",
            "openssl",
            "procps",
            "python3",
            "strace",
            "util-linux",
            "valgrind",
        ];
        assert_eq!(packages_of_missing(&NEEDED, |_| false), all);
        assert_eq!(packages_of_missing(&NEEDED, |program| program != "pgrep"), ["procps"]);
        assert!(packages_of_missing(&NEEDED, |_| true).is_empty());
    }
}
