//! Warns of compilers that are known to change the meaning of correct programs when they optimise.
//!
//! It stands here because everything is built on this crate. A pinned toolchain would do instead, if every machine could install one by itself.

use std::process::Command;

mod compiler;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=compiler.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(rustc).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    if let Some(warning) = compiler::warning(&String::from_utf8_lossy(&said)) {
        println!("cargo::warning={warning}");
    }
}
