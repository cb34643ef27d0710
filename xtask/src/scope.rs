//! What the short run leaves to `cargo xtask test --everything`, and what both leave to people, in one place. It is named at the end of every run.

/// How much is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What must pass before a change is taken.
    Short,
    /// That, and what takes long or needs much more to be installed.
    Everything,
}

/// Packages whose tests need a server on a Java virtual machine. Their clients are slow to build, so that the short run leaves them out altogether.
pub(crate) const ON_JAVA: [&str; 3] =
    ["leasehold-fence-cassandra", "leasehold-fence-dynamodb", "leasehold-fence-kafka"];
/// The package that goes through every order of events at small scope. The short run only checks that it compiles.
const MODEL: &str = "leasehold-model";

const LEFT: [&str; 9] = [
    "fences in Cassandra, DynamoDB and Kafka, which need Java",
    "the model (crates/model)",
    "all tests in release",
    "`gaps` beside a stopwatch: all but six of the cases (crates/cli/tests/stopwatch)",
    "hashes of worlds: dev against the profile simulator",
    "ten minutes of simulated worlds",
    "every nemesis scenario",
    "tests of the fuzz workspace: every decoder for three seconds by the stable fuzzer (the short run checks that it compiles)",
    "cargo-deny: texts of licences; known vulnerabilities, if their database can be reached",
];

/// What no run of tests has, because it takes hours.
const BY_HAND: [&str; 2] = [
    "the hunt of the simulator's campaign for every planted bug: `cargo xtask planted-bugs`",
    "fuzzing for as long as it is said, with fresh seeds: `cargo xtask fuzz`",
];

/// Tells tests which of their cases are run; without it those of the short run.
const CASES: &str = "LEASEHOLD_CASES";

impl Scope {
    /// What tests are told of it.
    pub(crate) fn told(self) -> Option<(&'static str, &'static str)> {
        (self == Self::Everything).then_some((CASES, "all"))
    }

    /// Words for cargo that select the packages whose tests are run.
    pub(crate) fn tested(self) -> Vec<String> {
        self.packages(&[ON_JAVA.as_slice(), &[MODEL]].concat())
    }

    /// Words for cargo that select the packages that are checked and documented.
    pub(crate) fn checked(self) -> Vec<String> {
        self.packages(&ON_JAVA)
    }

    fn packages(self, left: &[&str]) -> Vec<String> {
        let left = if self == Self::Short { left } else { &[] };
        let words = left.iter().flat_map(|package| ["--exclude", package]);
        std::iter::once("--workspace").chain(words).map(str::to_owned).collect()
    }

    /// Names what was not run.
    pub(crate) fn print(self) {
        if self == Self::Short {
            println!("not run here, run by `cargo xtask test --everything`:\n  {}", LEFT.join("\n  "));
        }
        println!("run by hand only:\n  {}", BY_HAND.join("\n  "));
    }
}
