//! A wrapper without a lease: runs a command under a guardian and sends it deadlines as if renewals succeeded.
//!
//! ```text
//! supervise --log FILE [--ttl MS] [--age MS] [--renewals N] [--freeze-while FILE] -- CMD ...
//! ```
//!
//! Every deadline is `t_send + ttl - margin` with a margin of a tenth, where `t_send` lies `age` back: that long
//! the imagined answer took. A renewal comes every third of the ttl, N of them or without end. With --freeze-while
//! the command is frozen and not asked to end, and there are no renewals while that file exists. What happens is
//! written to FILE, one line each, with both clocks in nanoseconds. Ends as the command does.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use leasehold_cli::exit::Exit;
use leasehold_cli::guardian::{self, clock::Point};
use leasehold_cli::supervise::{Event, Launch, Leads, OnLoss, Rules, Supervised};

/// The ttl without --ttl, in milliseconds: no deadline comes near on a busy machine either.
const LONG: u64 = 20_000;
/// How often is looked whether renewals are possible again.
const LOOK_EVERY: Duration = Duration::from_millis(10);

struct Options {
    log: File,
    ttl: Duration,
    age: Duration,
    renewals: u32,
    cut: Option<PathBuf>,
    command: Vec<OsString>,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.next_if(|word| word == guardian::COMMAND_WORD).is_some() {
        return guardian::main(arguments);
    }
    let Some(options) = parse(arguments) else {
        eprintln!(
            "usage: supervise --log FILE [--ttl MS] [--age MS] [--renewals N] [--freeze-while FILE] -- CMD"
        );
        return ExitCode::from(2);
    };
    run(options)
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Option<Options> {
    let (mut log, mut ttl, mut age, mut renewals, mut cut) = (None, LONG, 0, u32::MAX, None);
    loop {
        let word = arguments.next()?;
        match word.to_str()? {
            "--log" => log = Some(File::options().create(true).append(true).open(arguments.next()?).ok()?),
            "--ttl" => ttl = arguments.next()?.to_str()?.parse().ok()?,
            "--age" => age = arguments.next()?.to_str()?.parse().ok()?,
            "--renewals" => renewals = arguments.next()?.to_str()?.parse().ok()?,
            "--freeze-while" => cut = Some(PathBuf::from(arguments.next()?)),
            "--" => break,
            _ => return None,
        }
    }
    let (ttl, age) = (Duration::from_millis(ttl), Duration::from_millis(age));
    Some(Options { log: log?, ttl, age, renewals, cut, command: arguments.collect() })
}

fn run(mut options: Options) -> ExitCode {
    let mut deadline = options.deadline();
    options.note_deadline(deadline);
    let launch = Launch {
        command: options.command.clone(),
        environment: vec![("LEASEHOLD_TOKEN".into(), "7".into())],
        rules: Rules {
            on_loss: if options.cut.is_some() { OnLoss::Freeze } else { OnLoss::Stop },
            ..Leads::for_ttl(options.ttl).into()
        },
        deadline,
    };
    let supervised = match Supervised::start(&launch) {
        Ok(supervised) => supervised,
        Err(error) => {
            options.note(&format!("failed {error}"));
            return Exit::of_start(&error).of_run().into();
        }
    };
    let pids = [supervised.guardian(), supervised.command()].map(|pid| pid.as_raw_nonzero().get());
    options.note(&format!("pids {} {} {}", std::process::id(), pids[0], pids[1]));
    let mut code = 0;
    loop {
        match supervised.events().recv_timeout(options.interval()) {
            Ok(Event::AllGone) => break,
            Ok(event) => {
                options.note(&format!("event {event:?}"));
                if let Event::Exited(ending) = event {
                    code = ending.exit_code();
                }
            }
            Err(RecvTimeoutError::Timeout) if options.renewals > 0 && !options.is_cut() => {
                options.renewals -= 1;
                deadline = options.deadline();
                // Noted before it is sent: what the guardian knows is never later than the last note.
                options.note_deadline(deadline);
                let taken = supervised.deadline(deadline);
                options.note(&format!("taken {taken}"));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                options.note("broken: the events ended before all was gone");
                return ExitCode::from(3);
            }
        }
    }
    options.note("event AllGone");
    Exit::of_command(code).into()
}

impl Options {
    fn is_cut(&self) -> bool {
        self.cut.as_ref().is_some_and(|file| file.exists())
    }

    /// How long to the next renewal, or to the next look whether there can be one.
    fn interval(&self) -> Duration {
        if self.is_cut() { LOOK_EVERY } else { self.ttl / 3 }
    }

    fn deadline(&self) -> Point {
        Point::now().minus(self.age).plus(self.ttl - self.ttl / 10)
    }

    fn note_deadline(&mut self, deadline: Point) {
        self.note(&format!("deadline {} {}", deadline.boot().as_nanos(), deadline.raw().as_nanos()));
    }

    fn note(&mut self, what: &str) {
        let now = Point::now();
        let line = format!("{} {} {what}\n", now.boot().as_nanos(), now.raw().as_nanos());
        self.log.write_all(line.as_bytes()).expect("the log can be written");
    }
}
