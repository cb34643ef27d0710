//! The command line of `cargo xtask simulate`.

use clap::Parser;
use clap::builder::PossibleValuesParser;

/// Simulated worlds of Leasehold: nodes, clients and receivers under faults, decided by a seed and checked.
#[derive(Debug, Clone, Parser)]
#[command(name = "simulate", bin_name = "cargo xtask simulate", after_help = ENDS, max_term_width = 120)]
pub struct Args {
    /// Run this seed alone
    #[arg(long, value_name = "N", value_parser = seed, conflicts_with_all = ["minutes", "seeds", "threads", "first_seed"])]
    pub seed: Option<u64>,
    /// Print what happens in it
    #[arg(long, requires = "seed", conflicts_with_all = ["minutes", "seeds", "threads", "first_seed", "speed", "json"])]
    pub trace: bool,
    /// Print only from this second of true time on: 40, or 40.25
    #[arg(long, value_name = "SECONDS", value_parser = nanos, requires = "trace", allow_hyphen_values = true)]
    pub from: Option<u64>,
    /// Print only up to this second of true time
    #[arg(long, value_name = "SECONDS", value_parser = nanos, requires = "trace", allow_hyphen_values = true)]
    pub to: Option<u64>,
    /// Switch a fault off that seeds have; may be given several times
    #[arg(long, value_name = "FAULT", value_parser = PossibleValuesParser::new(FAULTS))]
    pub without: Vec<String>,
    /// So many clients in place of the number that seeds decide
    #[arg(long, value_name = "N", value_parser = clients, allow_hyphen_values = true)]
    pub clients: Option<usize>,
    /// Faults happen for so many milliseconds in place of the time that seeds decide
    #[arg(long, value_name = "N", value_parser = fault_ms, allow_hyphen_values = true)]
    pub fault_ms: Option<u64>,
    /// Do not look for a smaller failure
    #[arg(long)]
    pub no_shrink: bool,
    /// Run fresh seeds for so many minutes; 1 if nothing is said
    #[arg(long, value_name = "N", value_parser = minutes, allow_hyphen_values = true)]
    pub minutes: Option<f64>,
    /// Run so many fresh seeds, however long it takes
    #[arg(long, value_name = "N", value_parser = seeds, conflicts_with = "minutes", allow_hyphen_values = true)]
    pub seeds: Option<u64>,
    /// On so many threads
    #[arg(long, value_name = "N", default_value = "1", value_parser = threads, allow_hyphen_values = true)]
    pub threads: usize,
    /// The first of the fresh seeds; drawn if it is not given
    #[arg(long, value_name = "N", value_parser = seed)]
    pub first_seed: Option<u64>,
    /// Leave out the two slow checkers: the naive table (a part of Model), and the search for an order (Linear)
    #[arg(long)]
    pub quick: bool,
    /// List how often each situation was reached, also after a short campaign
    #[arg(long)]
    pub situations: bool,
    /// Measure the speed with three nodes, twenty clients and no faults
    #[arg(long, conflicts_with_all = [
        "seed", "without", "clients", "fault_ms", "no_shrink", "minutes", "seeds", "threads", "first_seed", "quick",
        "situations",
    ])]
    pub speed: bool,
    /// Results as one line of JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// In lines that a terminal of eighty columns does not break.
const ENDS: &str = "Without arguments fresh seeds are run for one minute on one thread.

The last line is the verdict, and the exit code agrees with it:
  0  every promise was kept
  1  a seed violates a promise; or no seed was run; or, from ten minutes on,
     every promise was kept but some situation was never reached
  2  the command line was not understood

Whoever changes the plans (--without, --clients, --fault-ms) need not reach
every situation.";

/// From here on a campaign has to reach every situation.
pub const LONG_MINUTES: f64 = 10.0;

/// More than a week is a slip of the hand.
const MAX_MINUTES: f64 = 10_080.0;
/// Some weeks on one core.
const MAX_SEEDS: u64 = 1_000_000;
/// More threads than any machine here has cores; each has a world in memory.
const MAX_THREADS: u64 = 256;
/// Ten times what seeds decide. Each client costs time in every step.
const MAX_CLIENTS: u64 = 240;
/// An hour: fifteen times what seeds decide. What happened is kept in memory until it is judged.
const MAX_FAULT_MS: u64 = 3_600_000;
/// Far behind the end of every run.
const MAX_SECONDS: f64 = 1_000_000.0;

impl Args {
    /// What no single value shows to be wrong.
    pub fn check(&self) -> Result<(), String> {
        match (self.from, self.to) {
            (Some(from), Some(to)) if from > to => Err(format!(
                "--from {} is behind --to {}: nothing would be printed; give the earlier second to --from",
                in_seconds(from),
                in_seconds(to)
            )),
            _ => Ok(()),
        }
    }
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

fn minutes(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|minutes| *minutes > 0.0 && *minutes <= MAX_MINUTES);
    number.ok_or_else(|| format!("give a number of minutes above 0 and up to {MAX_MINUTES}"))
}

fn seeds(text: &str) -> Result<u64, String> {
    whole(text, "seeds", MAX_SEEDS)
}

fn threads(text: &str) -> Result<usize, String> {
    whole(text, "threads", MAX_THREADS).and_then(small)
}

fn clients(text: &str) -> Result<usize, String> {
    whole(text, "clients", MAX_CLIENTS).and_then(small)
}

fn fault_ms(text: &str) -> Result<u64, String> {
    whole(text, "milliseconds", MAX_FAULT_MS)
}

fn whole(text: &str, what: &str, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("give a whole number of {what} from 1 to {most}"))
}

fn small(number: u64) -> Result<usize, String> {
    usize::try_from(number).map_err(|error| error.to_string())
}

/// Seconds, with a fraction or without, as nanoseconds.
fn nanos(text: &str) -> Result<u64, String> {
    let number: Option<f64> = text.parse().ok().filter(|seconds| (0.0..=MAX_SECONDS).contains(seconds));
    let seconds = number.ok_or_else(|| format!("give a number of seconds from 0 to {MAX_SECONDS}"))?;
    u64::try_from(std::time::Duration::from_secs_f64(seconds).as_nanos()).map_err(|error| error.to_string())
}

fn in_seconds(nanos: u64) -> String {
    std::time::Duration::from_nanos(nanos).as_secs_f64().to_string()
}

/// The words of the faults, in the order of the simulator.
pub const FAULTS: [&str; 42] = [
    "peer-loss",
    "peer-delay",
    "peer-duplicate",
    "peer-reorder",
    "peer-replay",
    "cut",
    "isolate-leader",
    "client-loss",
    "duplicate-requests",
    "client-delay",
    "client-cut",
    "disk-slow",
    "disk-stuck",
    "disk-error",
    "disk-full",
    "kill",
    "power-loss",
    "power-loss-of-all",
    "bit-flip",
    "pause-node",
    "drain",
    "pause-client",
    "crash-client",
    "suspend",
    "rates",
    "rates-beyond",
    "freeze",
    "transfer",
    "members",
    "restore",
    "storm",
    "revoke",
    "abandon",
    "upgrade",
    "restore-wrong",
    "late-writes",
    "plain",
    "wire",
    "crash-at-disk",
    "rolled-back",
    "strange-tokens",
    "crash-clients",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(words: &[&str]) -> String {
        let words = std::iter::once("simulate").chain(words.iter().copied());
        match Args::try_parse_from(words) {
            Ok(args) => args.check().expect_err("it makes no sense"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_value_and_limit() {
        for (words, expected) in [
            (
                &["--minutes", "0"][..],
                "'0' for '--minutes <N>': give a number of minutes above 0 and up to 10080",
            ),
            (&["--minutes", "NaN"], "above 0"),
            (&["--threads", "0"], "'0' for '--threads <N>': give a whole number of threads from 1 to 256"),
            (&["--threads", "257"], "from 1 to 256"),
            (&["--seeds", "0"], "'0' for '--seeds <N>': give a whole number of seeds from 1 to 1000000"),
            (&["--clients", "0"], "from 1 to 240"),
            (&["--clients", "241"], "from 1 to 240"),
            (
                &["--fault-ms", "3600001"],
                "'3600001' for '--fault-ms <N>': give a whole number of milliseconds from 1 to 3600000",
            ),
            (&["--seed", "abc"], "a whole number from 0 to 18446744073709551615"),
            (&["--seed", "1", "--trace", "--from", "42", "--to", "40"], "--from 42 is behind --to 40"),
            (&["--seed", "1", "--trace", "--to", "-1"], "from 0 to 1000000"),
            (&["--without", "kil"], "a similar value exists: 'kill'"),
        ] {
            let said = refused(words);
            assert!(said.contains(expected), "{words:?}: {said}");
        }
    }

    #[test]
    fn what_would_have_no_effect_is_refused() {
        for words in [
            &["--trace"][..],
            &["--seeds", "1", "--trace"],
            &["--minutes", "1", "--trace"],
            &["--speed", "--trace"],
            &["--seed", "1", "--trace", "--json"],
            &["--from", "1"],
            &["--seed", "1", "--to", "1"],
            &["--seed", "1", "--minutes", "1"],
            &["--seed", "1", "--threads", "2"],
            &["--seed", "1", "--seeds", "2"],
            &["--seeds", "2", "--minutes", "1"],
            &["--seed", "1", "--first-seed", "2"],
            &["--speed", "--clients", "2"],
        ] {
            refused(words);
        }
    }

    #[test]
    fn seconds_may_have_a_fraction() {
        let args =
            Args::try_parse_from(["simulate", "--seed", "7", "--trace", "--from", "40", "--to", "40.2"])
                .unwrap();
        assert_eq!((args.from, args.to), (Some(40_000_000_000), Some(40_200_000_000)));
        assert_eq!(args.check(), Ok(()));
    }
}
