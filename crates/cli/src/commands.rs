//! The commands, one file each.

mod alarms;
mod asking;
mod backup;
mod bench;
mod check;
mod check_history;
mod cluster;
mod fence_check;
mod fence_proxy;
mod gaps;
mod get;
mod handover;
mod history;
mod hold;
mod list;
mod man;
mod nodes;
mod plan;
mod probe;
mod recover;
mod release;
mod restore;
mod revoke;
mod run;
mod serve;
mod sessions;
mod verify;
mod watch;

use clap::CommandFactory;

use crate::args::{Cli, Command, FenceCheckArgs};
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;

/// Does what the command line asks for.
pub(crate) fn run(cli: Cli, console: &Console) -> Result<Exit, Trouble> {
    // These have no store, and the service brings its own threads.
    match cli.command {
        Command::Serve(args) => return serve::run(console, &args, cli.global.json),
        Command::FenceProxy(args) => return fence_proxy::run(console, &args),
        Command::Completions { shell } => return completions(shell),
        Command::Man(args) => return man::run(&args),
        Command::Restore(args) => return restore::run(console, &args),
        Command::Recover(args) => return recover::run(console, &args),
        Command::FenceCheck(FenceCheckArgs { print_migration: Some(database), .. }) => {
            return fence_check::print_migration(database);
        }
        Command::Plan(args) => return plan::run(console, &args),
        Command::Verify(args) => return verify::run(console, &args),
        Command::CheckHistory(args) => return check_history::run(console, &args),
        _ => {}
    }
    let place = Place::find(&cli.global)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Trouble::System { what: "cannot start", source })?;
    let done = runtime.block_on(async {
        match cli.command {
            Command::Run(args) => run::run(console, &place, &args).await,
            Command::Hold(args) => hold::run(console, &place, &args).await,
            Command::Release(args) => release::run(console, &place, &args).await,
            Command::Handover(args) => handover::run(console, &place, &args).await,
            Command::Get(args) => get::run(console, &place, &args).await,
            Command::List(args) => list::run(console, &place, &args).await,
            Command::Sessions => sessions::run(console, &place).await,
            Command::History(args) => history::run(console, &place, &args).await,
            Command::Gaps(args) => gaps::run(console, &place, &args).await,
            Command::Check(args) => check::run(console, &place, &args).await,
            Command::FenceCheck(args) => fence_check::run(console, &place, &args, cli.global.timeout).await,
            Command::Alarms(args) => alarms::run(console, &place, &args).await,
            Command::Watch(args) => watch::run(console, &place, &args).await,
            Command::Revoke(args) => revoke::run(console, &place, &args).await,
            Command::Probe(args) => probe::run(console, &place, &args).await,
            Command::Bench(args) => bench::run(console, &place, &args).await,
            Command::Cluster(command) => cluster::run(console, &place, &command, cli.global.timeout).await,
            Command::Backup(args) => backup::run(console, &place, &args, cli.global.timeout).await,
            Command::Serve(_)
            | Command::FenceProxy(_)
            | Command::Restore(_)
            | Command::Recover(_)
            | Command::Plan(_)
            | Command::Verify(_)
            | Command::CheckHistory(_)
            | Command::Completions { .. }
            | Command::Man(_) => Ok(Exit::OK),
        }
    });
    // A thread that still reads standard input is not waited for.
    runtime.shutdown_background();
    done
}

fn completions(shell: clap_complete::Shell) -> Result<Exit, Trouble> {
    // Into memory first: the generator panics when its output is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "leasehold", &mut script);
    std::io::Write::write_all(&mut std::io::stdout(), &script).map_err(Trouble::Output)?;
    Ok(Exit::OK)
}
