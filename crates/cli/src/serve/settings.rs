//! From the command line and the environment to a configuration.

use std::path::Path;

use leasehold_server::config::{Effective, Layers, PREFIX};

use crate::args::ServeArgs;
use crate::place;
use crate::trouble::Trouble;

/// The configuration that all places together come to.
pub(crate) fn resolve(args: &ServeArgs, json: bool) -> Result<Effective, Trouble> {
    let file = args.config.as_ref().map(|path| Ok::<_, Trouble>((path.clone(), read(path)?))).transpose()?;
    let layers = Layers { file, variables: variables()?, flags: flags(args, json) };
    let data = place::service_data();
    layers.resolve(data.as_deref()).map_err(|error| Trouble::Misuse(error.to_string()))
}

fn read(path: &Path) -> Result<String, Trouble> {
    std::fs::read_to_string(path).map_err(|error| {
        Trouble::Misuse(format!("cannot read the configuration {}: {error}", path.display()))
    })
}

fn variables() -> Result<Vec<(String, String)>, Trouble> {
    let ours = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with(PREFIX));
    ours.map(|(name, value)| match (name.into_string(), value.into_string()) {
        (Ok(name), Ok(value)) => Ok((name, value)),
        (Ok(name), Err(_)) => Err(Trouble::Misuse(format!("{name}: the value is not valid UTF-8"))),
        (Err(name), _) => Err(Trouble::Misuse(format!("there is no variable {}", name.to_string_lossy()))),
    })
    .collect()
}

/// Each flag as it was written, the key that it sets, and its value. The last one wins, and `--set` stands last.
fn flags(args: &ServeArgs, json: bool) -> Vec<(String, String, String)> {
    let max_ttl = args.max_ttl.map(|length| length.as_millis().to_string());
    let insecure = args.insecure.then(|| "true".to_owned());
    let join = args.join.then(|| "true".to_owned());
    let json = json.then(|| "json".to_owned());
    let own = [
        ("--name", "name", &args.name),
        ("--data", "data", &args.data),
        ("--listen", "listen", &args.listen),
        ("--insecure", "insecure", &insecure),
        ("--initial-cluster", "cluster.initial", &args.initial_cluster),
        ("--join", "cluster.join", &join),
        ("--advertise", "cluster.advertise", &args.advertise),
        ("--max-ttl", "max_ttl_ms", &max_ttl),
        ("--json", "log.format", &json),
        ("--log-format", "log.format", &args.log_format),
        ("--log-level", "log.level", &args.log_level),
    ];
    let own = own.into_iter().filter_map(|(flag, key, value)| {
        value.as_ref().map(|value| (flag.to_owned(), key.to_owned(), value.clone()))
    });
    let set = args.set.iter().map(|(key, value)| (format!("--set {key}"), key.clone(), value.clone()));
    own.chain(set).collect()
}
