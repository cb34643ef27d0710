//! Rules of the source tree as ordinary tests, and the documentation run as it stands.
//!
//! Every rule is a function from a [`Tree`] of files to complaints, so that its own tests can show it a made-up tree that breaks
//! it. The real tree is checked by `tests/tidy.rs`; the transcripts in the documentation are run by `tests/transcripts.rs`; the
//! Rust examples in it are tests of this library.
//!
//! What it deliberately does not do: it does not parse Rust. Rules look at lines, which is enough for code that was formatted, and
//! whatever the compiler or clippy can check is theirs.

pub mod calls;
pub mod errors;
pub mod excerpts;
pub mod guarantees;
pub mod guides;
pub mod licences;
pub mod limits;
pub mod links;
pub mod manifests;
pub mod modules;
pub mod programs;
pub mod sizes;
pub mod transcript;
pub mod tree;
pub mod words;

pub use tree::{File, Tree};

/// What a rule has found: where, and what is wrong with it.
pub type Complaint = String;

/// A rule, and its name for people.
pub type Rule = (&'static str, fn(&Tree) -> Vec<Complaint>);

/// Every rule of the tree.
pub const RULES: [Rule; 14] = [
    ("files have one idea each", sizes::check),
    ("banned calls are not made", calls::check),
    ("nothing of one machine or person is in the tree", words::check),
    ("links in the documentation lead somewhere", links::check),
    ("dependencies point inwards", manifests::check_dependencies),
    ("every package has the lints of the workspace", manifests::check_lints),
    ("every file of tests belongs to a program", programs::check),
    ("every file belongs to one package", modules::check),
    ("every error is documented", errors::check),
    ("every limit is documented", limits::check),
    ("every transcript is run or says why not", transcript::check),
    ("every excerpt stands where it is from", excerpts::check),
    ("every guide to a fence says what to depend on and what to import", guides::check),
    ("every test that a promise rests on is there", guarantees::check),
];

/// The Rust examples of the documentation.
#[cfg(doctest)]
mod examples {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/start.md")]
    mod start {}
    #[doc = include_str!("../../../docs/concepts/leases.md")]
    mod leases {}
    #[doc = include_str!("../../../docs/concepts/time.md")]
    mod time {}
    #[doc = include_str!("../../../docs/concepts/fencing.md")]
    mod fencing {}
    #[doc = include_str!("../../../docs/guides/monitor.md")]
    mod monitor {}
}
