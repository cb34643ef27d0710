//! Every transcript in the documentation, run as it stands.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use leasehold_tidy::transcript::{Exchange, documents, exchanges, matches};
use leasehold_tidy::{File, Tree};

/// Longer than any document takes on a busy machine, in seconds.
const PATIENCE: &str = "180";

/// What every shell begins with. `cargo run` in a transcript means the program that was just built.
const PREAMBLE: &str = r#"
cargo() {
    [ "$1" = run ] || { echo "transcripts run nothing of cargo but: cargo run"; return 2; }
    while [ "$1" != -- ]; do shift; done
    shift
    leasehold "$@"
}
finish() { kill -9 $(jobs -p) 2>/dev/null; }
trap finish EXIT
"#;

/// Printed behind every command: no program prints this character.
const MARK: char = '\u{1e}';

#[test]
fn every_transcript_prints_what_stands_below_it() {
    let tree = Tree::read(&root()).expect("the tree can be read");
    let (mut run, mut wrong) = (0, 0);
    for document in documents(&tree) {
        let exchanges = exchanges(document).expect("the transcripts can be read");
        if exchanges.is_empty() {
            continue;
        }
        run += exchanges.len();
        wrong += wrong_in(document, &exchanges, &play(&exchanges, &PROGRAMS));
    }
    assert!(run > 5, "only {run} commands were found");
    assert_eq!(wrong, 0, "the differences are above");
}

#[test]
fn a_transcript_that_is_not_true_is_found() {
    let text = "```console\n$ echo one; cd /; x=3\none\n$ echo two $x\ntwo 4\n$ false\n$ echo $?\n1\n```\n";
    let document = File { path: "planted.md".into(), text: text.into() };
    let exchanges = exchanges(&document).unwrap();
    let printed = play(&exchanges, Path::new("/nowhere"));
    assert_eq!(printed, ["one", "two 3", "", "1"]);
    assert_eq!(wrong_in(&document, &exchanges, &printed), 1);
}

#[test]
fn the_default_program_says_how_to_get_the_clients_that_it_does_not_have() {
    let place = tempfile::tempdir().expect("a place for the store");
    let urls = [("postgres", "postgres://app:secret@db/x"), ("sqlite", "sqlite:/x"), ("s3", "s3://b/x")];
    for (scheme, url) in urls {
        let mut run = Command::new(PROGRAMS.join("leasehold"));
        run.arg("--store").arg(place.path().join("store"));
        let said = run.args(["run", "x", "--seal-at", url, "--", "true"]).output().expect("it starts");
        let words = String::from_utf8_lossy(&said.stderr);
        assert!(!said.status.success() && !words.contains("secret"), "{words}");
        let how = "cargo install --path crates/cli --features fences";
        assert!(words.contains(&format!("so {scheme} is not understood")) && words.contains(how), "{words}");
    }
}

/// The directory with the program as it is without any feature: built already by `cargo xtask test`, or here. It is one of its own, because
/// tests of the command that run meanwhile use the one with all features. What is compiled is shared.
static PROGRAMS: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = std::env::var_os("LEASEHOLD_DEFAULT_PROGRAM").map_or_else(build, PathBuf::from);
    program.parent().expect("a program lies in a directory").to_owned()
});

fn build() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let compiled = place.parent().expect("it lies where cargo builds");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(["build", "--package", "leasehold-cli", "--bin", "leasehold"]);
    command.arg("--target-dir").arg(place.join("without-features"));
    command.arg("--config").arg(format!("build.build-dir={compiled:?}"));
    let status = command.status().expect("cargo starts");
    assert!(status.success(), "the program is not built: {status}");
    place.join("without-features/debug/leasehold")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the commands in one shell and gives back what each printed.
fn play(exchanges: &[Exchange], programs: &Path) -> Vec<String> {
    let stage = tempfile::tempdir().expect("a directory to play in");
    let (home, work) = (stage.path().join("home"), stage.path().join("work"));
    fs::create_dir(&home).expect("a home");
    fs::create_dir(&work).expect("a place to work");
    let mut script = PREAMBLE.to_owned();
    for exchange in exchanges {
        let command = &exchange.command;
        write!(script, "{{\n{command}\n}}\nshown=$?; printf '\\n{MARK}\\n'; (exit $shown)\n")
            .expect("a string takes all");
    }
    let (script_file, printed_file) = (stage.path().join("script"), stage.path().join("printed"));
    fs::write(&script_file, script).expect("the script is written");
    // A file and no pipe: what is left in the background does not keep it open for us.
    let printed = fs::File::create(&printed_file).expect("a file for the output");
    let mut path = std::ffi::OsString::from(programs);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let status = Command::new("timeout")
        .args(["--kill-after=5", PATIENCE, "bash", "--norc"])
        .arg(&script_file)
        .current_dir(&work)
        .env("HOME", &home)
        .env("PATH", path)
        .env("LC_ALL", "C")
        .env("TERM", "dumb")
        .env_remove("LEASEHOLD_STORE")
        .env_remove("XDG_STATE_HOME")
        .stdin(std::process::Stdio::null())
        .stdout(printed.try_clone().expect("a second handle"))
        .stderr(printed)
        .status()
        .expect("a shell starts");
    let printed = String::from_utf8_lossy(&fs::read(&printed_file).expect("the output is read")).into_owned();
    let printed = without_notices(&printed, &script_file);
    let parts: Vec<String> = printed.split(&format!("\n{MARK}\n")).map(str::to_owned).collect();
    assert_eq!(parts.len(), exchanges.len() + 1, "the shell ended early with {status}:\n{printed}");
    parts.into_iter().take(exchanges.len()).map(|part| part.trim_end_matches('\n').to_owned()).collect()
}

/// What was printed without what the shell says of its own jobs, which comes whenever it finds out.
fn without_notices(printed: &str, script: &Path) -> String {
    let notice = format!("{}: line ", script.display());
    let ends = ["Killed", "Terminated"];
    let is_notice = |line: &str| {
        line.strip_prefix(&notice)
            .is_some_and(|rest| rest.split_whitespace().nth(2).is_some_and(|how| ends.contains(&how)))
    };
    printed.lines().filter(|line| !is_notice(line)).flat_map(|line| [line, "\n"]).collect()
}

/// Shows what differs, and says how much of it there is.
fn wrong_in(document: &File, exchanges: &[Exchange], printed: &[String]) -> usize {
    let mut wrong = 0;
    for (exchange, printed) in exchanges.iter().zip(printed) {
        if matches(&exchange.expected, &printed.lines().collect::<Vec<_>>()) {
            continue;
        }
        wrong += 1;
        println!("{}:{}: $ {}", document.path, exchange.line, exchange.command);
        println!("--- stands there\n{}\n--- was printed\n{printed}\n---", exchange.expected.join("\n"));
    }
    wrong
}
