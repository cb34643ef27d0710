//! What the leasehold command is made of, as modules that tests and examples can use without going through
//! the command line. Promises no stable interface to anyone outside this package.

#[macro_use]
mod object;

mod acquire;
mod args;
mod codes;
mod commands;
mod console;
pub mod exit;
pub mod guardian;
mod holding;
mod loss;
mod place;
mod receivers;
mod record;
mod sealing;
mod serve;
mod signals;
mod successor;
pub mod supervise;
mod trouble;
mod words;

use std::process::ExitCode;

/// Runs the command line of this process to its end.
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    // Before anything else: the guardian must be small, quick and free of threads.
    if arguments.next_if(|word| word == guardian::COMMAND_WORD).is_some() {
        return guardian::main(arguments);
    }
    let cli = match args::parse() {
        Ok(cli) => cli,
        Err(code) => return code.into(),
    };
    let console = console::Console::new(cli.global.json);
    let ending = cli.command.ending();
    match commands::run(cli, &console) {
        Ok(code) => code.into(),
        Err(trouble) => console.trouble(&trouble, ending(&trouble)).into(),
    }
}
