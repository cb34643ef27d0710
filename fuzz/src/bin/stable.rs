//! The stable fuzzer as a program: `stable [TARGET] [--seconds N] [--seed N]`, `stable TARGET --input FILE`, `stable --write-seeds DIRECTORY`
//! or `stable --list`. Files are kept in the directory that `LEASEHOLD_FUZZ_DIRECTORY` names.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use leasehold_fuzz::{TARGETS, Target, driver, target};

const USAGE: &str = "usage: stable [TARGET] [--seconds N] [--seed N] | TARGET --input FILE | --write-seeds DIRECTORY | --list";
/// How long each target is tried unless it is said.
const SECONDS: u64 = 10;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["--list"] => {
            for target in &TARGETS {
                println!("{:14} {}", target.name, target.what);
            }
            Ok(())
        }
        ["--write-seeds", directory] => write_seeds(Path::new(directory)),
        [name, "--input", file] => one(name, Path::new(file)),
        _ => many(&words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn known(name: &str) -> Result<&'static Target, String> {
    target(name).ok_or_else(|| format!("there is no target {name:?}; --list shows them"))
}

fn one(name: &str, file: &Path) -> Result<(), String> {
    let input = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    driver::run_one(known(name)?, &input).map_err(|failure| failure.to_string())?;
    println!("{name}: fine");
    Ok(())
}

fn many(words: &[&str]) -> Result<(), String> {
    let (mut only, mut seconds, mut seed, mut few) = (None, SECONDS, None, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64, String> {
            let number = words.next().ok_or_else(|| format!("{word} needs a number"))?;
            number.parse().map_err(|_| format!("{word} {number:?} is no whole number from 0 to {}", u64::MAX))
        };
        match *word {
            "--seconds" => seconds = number()?,
            "--seed" => seed = Some(number()?),
            name if !name.starts_with('-') && only.is_none() => only = Some(known(name)?),
            other => return Err(format!("{other:?} is not understood\n{USAGE}")),
        }
    }
    let seed = seed.unwrap_or_else(driver::fresh_seed);
    println!("seed {seed}");
    let directory =
        std::env::var_os("LEASEHOLD_FUZZ_DIRECTORY").map_or_else(std::env::temp_dir, PathBuf::from);
    for target in const { &TARGETS }.iter().filter(|target| only.is_none_or(|only| only.name == target.name))
    {
        let found = driver::run(target, seed, Duration::from_secs(seconds), &directory);
        let found = found.map_err(|failure| failure.to_string())?;
        println!("{}: {found}", target.name);
        few |= found.is_few();
    }
    if few { Err("too little was tried to show anything".to_owned()) } else { Ok(()) }
}

/// The seeds of every target, a directory each and a file each.
fn write_seeds(directory: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    for target in &TARGETS {
        let place = directory.join(target.name);
        std::fs::create_dir_all(&place).map_err(failed)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(place.join(format!("seed-{number}")), seed).map_err(failed)?;
        }
    }
    Ok(())
}
