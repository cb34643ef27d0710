// Compilers that are known to change the meaning of correct programs when they optimise, in one place: the build script of this crate warns of
// them, and xtask includes this file to warn of them where it says what it built with.

/// The first and the last version of each kind that is known to be wrong. The first kind forgets a boolean that is still used
/// (rust-lang/rust#158206), the second is reported (rust-lang/rust#161441).
const WRONG: [((u32, u32), (u32, u32)); 2] = [((94, 0), (97, 0)), ((98, 0), (98, u32::MAX))];

/// What is to be said of the compiler that `rustc --version` has named, if it is known to be wrong.
pub(crate) fn warning(said: &str) -> Option<String> {
    let version = said.split_whitespace().nth(1)?;
    let own = numbers(version)?;
    let is_wrong = WRONG.iter().any(|(first, last)| (*first..=*last).contains(&own));
    is_wrong.then(|| {
        format!("rustc {version} is known to miscompile safe code when it optimises; use another: `rustup toolchain install 1.99.1`, then `cargo +1.99.1 ...`")
    })
}

/// The two numbers behind the first: `1.95.0` is 95 and 0.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix("1.")?.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
