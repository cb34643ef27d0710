//! The commands, one file each.

mod alarms;
mod asking;
mod backup;
mod bench;
mod check_history;
mod cluster;
mod fence_check;
mod fence_proxy;
mod gaps;
mod get;
mod history;
mod hold;
mod list;
mod lookup;
mod nodes;
mod plan;
mod probe;
mod recover;
mod release;
mod restore;
mod revoke;
mod run;
mod serve;
mod status;
mod verify;
mod watch;

use tokio::runtime::Builder;

use crate::args::{self, Cli, Command, DataCommand, FenceCommand, Global};
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;

/// Does what the command line asks for.
pub(crate) fn run(cli: Cli, console: &Console) -> Result<Exit, Trouble> {
    let Cli { global, command } = cli;
    match command {
        // These have no store, and the service brings its own threads.
        Command::Serve(args) => serve::run(console, &args, global.json),
        Command::Fence(FenceCommand::Proxy(args)) => fence_proxy::run(console, &args),
        Command::Fence(FenceCommand::Migration { database }) => fence_check::print_migration(database),
        Command::Data(DataCommand::Verify(args)) => verify::run(console, &args),
        Command::Data(DataCommand::Restore(args)) => restore::run(console, &args),
        Command::Data(DataCommand::Recover(args)) => recover::run(console, &args),
        Command::Plan(args) => plan::run(console, &args),
        Command::CheckHistory(args) => check_history::run(console, &args),
        Command::Completions { shell } => completions(shell),
        Command::Run(args) => {
            // Before any lease is asked for: a mistyped command is told at once, and not after a day of waiting.
            args.check().map_err(Trouble::Misuse)?;
            lookup::find(args.command.first().expect("the parser asks for a command"))?;
            at_store(&global, async |place| run::run(console, place, &args).await)
        }
        Command::Hold(args) => at_store(&global, async |place| hold::run(console, place, &args).await),
        Command::Get(args) => at_store(&global, async |place| get::run(console, place, &args).await),
        Command::List(args) => at_store(&global, async |place| list::run(console, place, &args).await),
        Command::Watch(args) => at_store(&global, async |place| watch::run(console, place, &args).await),
        Command::Release(args) => at_store(&global, async |place| release::run(console, place, &args).await),
        Command::Revoke(args) => at_store(&global, async |place| revoke::run(console, place, &args).await),
        Command::History(args) => at_store(&global, async |place| history::run(console, place, &args).await),
        Command::Gaps(args) => at_store(&global, async |place| gaps::run(console, place, &args).await),
        Command::Probe(args) => at_store(&global, async |place| probe::run(console, place, &args).await),
        Command::Bench(args) => at_store(&global, async |place| bench::run(console, place, &args).await),
        Command::Fence(FenceCommand::Check(args)) => {
            at_store(&global, async |place| fence_check::run(console, place, &args).await)
        }
        Command::Status => at_store(&global, async |place| status::run(console, place).await),
        Command::Cluster(args) => at_store(&global, async |place| cluster::run(console, place, &args).await),
        Command::Alarms(args) => at_store(&global, async |place| alarms::run(console, place, &args).await),
        Command::Backup(args) => at_store(&global, async |place| backup::run(console, place, &args).await),
    }
}

/// Finds the store and does this with it, on one thread.
fn at_store(
    global: &Global,
    work: impl AsyncFnOnce(&Place) -> Result<Exit, Trouble>,
) -> Result<Exit, Trouble> {
    let place = Place::find(global)?;
    on_threads(Builder::new_current_thread(), work(&place))
}

fn on_threads(
    mut threads: Builder,
    work: impl Future<Output = Result<Exit, Trouble>>,
) -> Result<Exit, Trouble> {
    let runtime = threads.enable_all().build().map_err(Trouble::system("cannot start"))?;
    let done = runtime.block_on(work);
    // A thread that still reads standard input is not waited for.
    runtime.shutdown_background();
    done
}

impl Command {
    /// The exit code for a trouble: those of some commands differ from those of the others.
    pub(crate) fn ending(&self) -> impl Fn(&Trouble) -> Exit + use<> {
        let held = match self {
            Self::Run(args) => args.acquire.held_exit,
            Self::Hold(args) => args.acquire.held_exit,
            _ => None,
        };
        let is_run = matches!(self, Self::Run(_));
        move |trouble| match (trouble.exit(), held) {
            (Exit::HELD, Some(code)) => Exit::of_command(code.into()),
            (exit, _) if is_run => exit.of_run(),
            (exit, _) => exit,
        }
    }
}

fn completions(shell: clap_complete::Shell) -> Result<Exit, Trouble> {
    // Into memory first: the generator panics when its output is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "leasehold", &mut script);
    std::io::Write::write_all(&mut std::io::stdout(), &script).map_err(Trouble::Output)?;
    Ok(Exit::OK)
}
