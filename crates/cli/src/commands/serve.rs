//! `serve`: one node for many machines, until a signal ends it.

use leasehold_server::Found;
use leasehold_server::config::{Effective, Source, Value};
use serde::Serialize;
use tracing::{Level, enabled, error, info, warn};

use crate::args::ServeArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::serve::stopping::Stopping;
use crate::serve::{descriptors, log, notify, port_file, settings};
use crate::trouble::Trouble;

pub(super) fn run(console: &Console, args: &ServeArgs, json: bool) -> Result<Exit, Trouble> {
    let mut effective = settings::resolve(args, json)?;
    // Before anything is made or bound: what would not be understood then is refused now.
    let filter = log::filter(&effective)?;
    if args.print_config {
        return console.result(effective.to_toml(), &printed(&effective));
    }
    let lowered = descriptors::fit(&mut effective)?;
    let style = log::start(&effective.config.log, filter);
    if let Some(lowered) = lowered {
        warn!("{lowered}");
    }
    match serve(args, &mut effective, style) {
        // Whoever reads the log line by line must be able to read the last one too.
        Err(trouble) if style == log::Style::Json && enabled!(Level::ERROR) => {
            let (code, _) = trouble.code();
            error!(code, "{trouble}");
            Ok(trouble.exit())
        }
        done => done,
    }
}

fn serve(args: &ServeArgs, effective: &mut Effective, style: log::Style) -> Result<Exit, Trouble> {
    // Listened to before the service begins, so that a signal that comes meanwhile is not lost.
    let stopping = Stopping::listen()?;
    let service =
        leasehold_server::start(&effective.config).map_err(|error| Trouble::Service(error.to_string()))?;
    let address = service.address();
    let warnings = match service.found() {
        Some(Found { rules: Some((max_ttl, drift)), .. }) => effective.keep(*max_ttl, *drift),
        _ => Vec::new(),
    };
    let config = &effective.config;
    info!("serving {} as {} on {address}", config.data.display(), config.name);
    log::found(service.found());
    log::settings(effective, style);
    for warning in warnings {
        warn!("{warning}");
    }
    if config.insecure && config.is_exposed() {
        warn!(
            "{address} can be reached from other machines, without TLS and authentication: whoever reaches it can take and \
             end every lease"
        );
    }
    port_file::write(args.port_file.as_deref(), address)?;
    info!("listening on {address}");
    info!("for clients: export LEASEHOLD_STORE={}", config.store_url(address));
    notify::ready(address);
    stopping.run(service, config.shutdown_grace)?;
    info!("stopped");
    Ok(Exit::OK)
}

/// Every key of the configuration.
fn printed(effective: &Effective) -> Vec<impl Serialize> {
    let setting = effective.settings().map(|(key, value, source): (_, _, &Source)| {
        object! { key: key.name, value: typed(value), source: source.to_string() }
    });
    setting.collect()
}

/// Numbers as numbers: none of the keys is large enough to lose digits.
fn typed(value: Value) -> serde_json::Value {
    match value {
        Value::Text(text) => text.into(),
        Value::Number(number) => number.into(),
        Value::Flag(flag) => flag.into(),
        Value::List(list) => list.into(),
    }
}
