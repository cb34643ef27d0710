//! Dependencies: texts of licences, sources, bans and known vulnerabilities, as `deny.toml` says. A part of it is also a test of the tree, which
//! needs no other program.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::run::{cargo, exists, root, step, target_directory};

/// Checks everything that needs no network, then vulnerabilities if their database can be reached. Gives back what was not checked.
pub(crate) fn run() -> Result<Option<&'static str>> {
    let program = program()?;
    let deny = || {
        let mut command = Command::new(&program);
        command.current_dir(root()).args(["--workspace", "--all-features"]);
        command
    };
    step("dependencies", deny().args(["check", "--hide-inclusion-graph", "bans", "licenses", "sources"]))?;
    let mut fuzz = Command::new(&program);
    fuzz.current_dir(root()).args(["--manifest-path", "fuzz/Cargo.toml", "--all-features"]);
    fuzz.args(["--config", "deny.toml", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]);
    step("dependencies of fuzz", &mut fuzz)?;
    if step("database of vulnerabilities", deny().args(["fetch", "db"])).is_ok() {
        step("vulnerabilities", deny().args(["check", "advisories"]))?;
        Ok(None)
    } else {
        Ok(Some("known vulnerabilities: their database cannot be reached from here"))
    }
}

/// Where cargo-deny is, installed first if it is nowhere.
fn program() -> Result<PathBuf> {
    if exists("cargo-deny") {
        return Ok("cargo-deny".into());
    }
    let tools = target_directory().join("tools");
    let program = tools.join("bin/cargo-deny");
    if !program.is_file() {
        let mut install = cargo();
        install.args(["install", "--locked", "--quiet", "--debug", "cargo-deny", "--root"]).arg(&tools);
        step("cargo-deny is missing and is built once, which takes minutes", &mut install)?;
    }
    Ok(program)
}
