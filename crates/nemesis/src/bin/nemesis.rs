//! Runs scenarios and says what came of them.

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser as _;
use leasehold_args::nemesis::Args;
use leasehold_nemesis::check::{self, Rules};
use leasehold_nemesis::history::{self, At, Now};
use leasehold_nemesis::scenario::{self, Scenario};
use leasehold_nemesis::stage::Options;
use leasehold_nemesis::summary::{Outcome, Summary};

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("nemesis: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Args) -> Result<bool> {
    if cli.scenario == "check" {
        return again(cli);
    }
    let beside = std::env::current_exe().context("this program does not know where it is")?;
    let program = cli.program.clone().unwrap_or_else(|| beside.with_file_name("leasehold"));
    let drawn = || u64::from(std::process::id()) ^ (leasehold_clock::read().boot >> 10);
    let seed = cli.seed.unwrap_or_else(drawn) & 0xffff_ffff;
    let quick = cli.quick || cli.scenario == "quick";
    let out = cli.out.clone().unwrap_or_else(|| "target/nemesis".into());
    let (nodes, rounds) = (cli.nodes, cli.rounds);
    let options = Options { program, out, seed, quick, nodes, rounds };
    let mut lines = Lines::to(cli)?;
    let scenarios = scenario::named(&cli.scenario)?;
    let began = At::now();
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (number, scenario) in scenarios.iter().enumerate() {
        let failed = outcomes.iter().filter(|outcome| !outcome.is_good()).count();
        let passed = At::now().since(began).as_secs();
        let (place, of) = (number + 1, scenarios.len());
        eprintln!("[{place}/{of}] {}: {failed} failed so far, {passed} s passed", scenario.name);
        let outcome = play(*scenario, &options);
        lines.add(&outcome)?;
        outcomes.push(outcome);
    }
    if outcomes.len() > 1 {
        lines.say(&Summary(&outcomes).to_string());
    }
    let failed: Vec<&str> =
        outcomes.iter().filter(|outcome| !outcome.is_good()).map(|outcome| outcome.scenario).collect();
    if !failed.is_empty() {
        lines.say(&format!("failed: {}; again with --seed {seed}", failed.join(", ")));
    }
    Ok(failed.is_empty())
}

fn play(scenario: Scenario, options: &Options) -> Outcome {
    let began = At::now();
    let report = scenario.run(options).map_err(|error| format!("{error:#}"));
    Outcome { scenario: scenario.name, seed: options.seed, length: At::now().since(began), report }
}

/// Where outcomes are told.
struct Lines {
    json: bool,
    file: Option<File>,
}

impl Lines {
    fn to(cli: &Args) -> Result<Self> {
        let file = cli
            .json_file
            .as_ref()
            .map(|path| File::create(path).with_context(|| format!("{} cannot be made", path.display())));
        Ok(Self { json: cli.json, file: file.transpose()? })
    }

    /// Each at once: a run that is ended in the middle has told what it knows.
    fn add(&mut self, outcome: &Outcome) -> Result<()> {
        self.say(&outcome.to_string());
        let line = outcome.json();
        if self.json {
            println!("{line}");
        }
        match &mut self.file {
            Some(file) => writeln!(file, "{line}").context("the file of outcomes cannot be written"),
            None => Ok(()),
        }
    }

    fn say(&self, text: &str) {
        if self.json {
            eprintln!("{text}");
        } else {
            println!("{text}");
        }
    }
}

/// Checks a history that was made before.
fn again(cli: &Args) -> Result<bool> {
    let path = cli.history.as_deref().context("check needs --history FILE")?;
    let story = history::read(path)?;
    // A history does not say what its clocks did, nor what its ttl was: only what holds for all is checked.
    let rules = Rules { honoured: true, exclusion: true, healing: None };
    let verdicts = check::of_story(&story, rules);
    for verdict in &verdicts {
        println!("{} ({} compared): {} violations", verdict.name, verdict.compared, verdict.violations.len());
        for violation in &verdict.violations {
            println!("  {violation}");
        }
    }
    Ok(verdicts.iter().all(check::Verdict::is_good))
}

#[cfg(test)]
mod tests {
    use leasehold_nemesis::scenario::ALL;

    #[test]
    fn the_command_line_lists_the_scenarios() {
        assert_eq!(
            ALL.map(|scenario| scenario.name),
            leasehold_args::nemesis::SCENARIOS.map(|(name, _)| name)
        );
    }
}
