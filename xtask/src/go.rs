//! Programs in Go, each built in a directory of its own below the target directory, from modules, by the go program of the machine.
//!
//! Promises: versions are pinned, and what the modules are checked with is what the machine's go is set to. No go is installed for it: what
//! Debian has may be older than a program needs.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::run::{exists, step};

/// What is built.
#[derive(Debug)]
pub(crate) struct Program {
    /// Its file.
    pub(crate) name: &'static str,
    /// The package that is the program.
    package: &'static str,
    /// The oldest go that its modules ask for.
    go: &'static str,
    /// Modules with their versions.
    modules: &'static [(&'static str, &'static str)],
}

pub(crate) const ETCD: Program = Program {
    name: "etcd",
    package: "go.etcd.io/etcd/server/v3",
    go: "1.26.0",
    modules: &[("go.etcd.io/etcd/server/v3", "v3.6.16")],
};

/// Its own module replaces others by directories beside it, which only counts where it is the main module. So the first published version of its API
/// that has all it needs is named too.
pub(crate) const CONSUL: Program = Program {
    name: "consul",
    package: "github.com/hashicorp/consul",
    go: "1.25.9",
    modules: &[("github.com/hashicorp/consul", "v1.22.7"), ("github.com/hashicorp/consul/api", "v1.34.1")],
};

/// Builds a program into `place`, unless just that was built before.
pub(crate) fn install(program: &Program, place: &Path) -> Result<()> {
    let Program { name, package, .. } = program;
    let (stamp, wanted) = (place.join("installed.mod"), module(program));
    let is_here = std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted);
    if is_here && place.join(name).is_file() {
        println!("==> {name} is here");
        return Ok(());
    }
    ensure!(exists("go"), "there is no go to build it with");
    let write = |file: &Path| {
        std::fs::write(file, &wanted).with_context(|| format!("{} cannot be written", file.display()))
    };
    std::fs::create_dir_all(place).with_context(|| format!("{} cannot be made", place.display()))?;
    write(&place.join("go.mod"))?;
    // Into the directory that it is in, so that no word of the command names a place of this machine: a report may repeat it.
    let mut build = Command::new("go");
    build.current_dir(place).env("CGO_ENABLED", "0").env("GOWORK", "off");
    step(name, build.args(["build", "-mod=mod", "-o", name, package]))?;
    write(&stamp)
}

/// A module that asks for nothing but the program: `go install` refuses what has replacements.
fn module(program: &Program) -> String {
    let mut text = format!("module peer\n\ngo {}\n", program.go);
    for (module, version) in program.modules {
        // Writing into a string does not fail.
        let _ = write!(text, "\nrequire {module} {version}\n");
    }
    text
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_module_asks_for_the_pinned_versions() {
        let text = "module peer\n\ngo 1.26.0\n\nrequire go.etcd.io/etcd/server/v3 v3.6.16\n";
        assert_eq!(module(&ETCD), text);
        assert!(module(&CONSUL).contains("\nrequire github.com/hashicorp/consul v1.22.7\n"));
    }

    #[test]
    fn what_was_built_before_is_not_built_again() {
        let place = std::env::temp_dir().join(format!("leasehold-xtask-go-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("installed.mod"), module(&ETCD)).unwrap();
        std::fs::write(place.join("etcd"), "as it was").unwrap();
        install(&ETCD, &place).unwrap();
        assert_eq!(std::fs::read_to_string(place.join("etcd")).unwrap(), "as it was");
        std::fs::remove_dir_all(&place).unwrap();
    }
}
