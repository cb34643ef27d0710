//! Warns of compilers that are known to change the meaning of correct programs when they optimise.
//!
//! It stands here because everything is built on this crate. A pinned toolchain would do instead, if every machine could install one by itself.

use std::process::Command;

/// The first and the last version of each kind that is known to be wrong. The first kind forgets a boolean that is still used
/// (rust-lang/rust#158206), the second is reported (rust-lang/rust#161441).
const WRONG: [((u32, u32), (u32, u32)); 2] = [((94, 0), (97, 0)), ((98, 0), (98, u32::MAX))];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(rustc).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let Some(version) = said.split_whitespace().nth(1) else { return };
    if numbers(version).is_some_and(|own| WRONG.iter().any(|(first, last)| (*first..=*last).contains(&own))) {
        println!(
            "cargo::warning=rustc {version} is known to miscompile safe code when it optimises; use another: `rustup toolchain install 1.99.1`, then `cargo +1.99.1 ...`"
        );
    }
}

/// The two numbers behind the first: `1.95.0` is 95 and 0.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix("1.")?.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
