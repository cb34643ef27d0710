//! Receivers that are sealed before a lease is used: what is said when one cannot be, and what is said against those that were.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leasehold::Error;
use leasehold::core::limits::DEFAULT_MAX_TTL;
use leasehold::fence::{Error as FenceError, Receiver};
use tokio::time::timeout;

use crate::args::AcquireArgs;
use crate::console::Console;
use crate::place::Place;
use crate::receivers;
use crate::trouble::Trouble;
use crate::words;

/// How long a receiver has to tell its settings: the lease is held meanwhile, and whoever looks for hazards has `fence check`.
const PATIENCE: Duration = Duration::from_secs(1);

/// Says once what is set at these receivers such that they may forget a seal.
pub(crate) async fn warn(console: &Console, receivers: Vec<Arc<dyn Receiver>>) {
    let ask = |receiver: Arc<dyn Receiver>| {
        tokio::spawn(async move {
            let hazards = timeout(PATIENCE, receiver.hazards()).await;
            (receiver.place().to_owned(), hazards.unwrap_or(Ok(Vec::new())).unwrap_or_default())
        })
    };
    let asking: Vec<_> = receivers.into_iter().map(ask).collect();
    for asked in asking {
        let Ok((receiver, hazards)) = asked.await else { continue };
        for hazard in hazards {
            let message = format!("warning about {receiver}: {hazard}");
            let event = object! { event: "receiver-hazard", receiver: &receiver, message: &message };
            console.note(&message, &event);
        }
    }
}

/// The same trouble; if a receiver could not be sealed, with what is known here about it.
pub(crate) fn told(trouble: Trouble, args: &AcquireArgs, place: &Place) -> Trouble {
    let Trouble::Store(error) = trouble else { return trouble };
    let Error::NotSealed { receiver, stamp, source } = &error else { return Trouble::Store(error) };
    let said = match &**source {
        FenceError::Stale(stale) => {
            let raise = raise(place.directory(), stale.highest);
            format!(
                "{receiver} could not be sealed with {stamp}, so the lease was given back: {stale}; tokens fell: greater ones came from another \
                 store, or from this one before it was set back. Use that store, or raise the tokens of this one: {raise}"
            )
        }
        _ => error.to_string(),
    };
    let message = receivers::from(args.variable, &said);
    Trouble::NotSealed { error, message }
}

/// The command that raises the tokens of a store above this one, and what it costs.
pub(crate) fn raise(directory: Option<&Path>, above: Option<u64>) -> String {
    let above = above.map_or_else(|| "TOKEN".to_owned(), |above| above.to_string());
    let (directory, wait) = match directory {
        Some(directory) => {
            (quoted(&directory.display().to_string()), words::length(DEFAULT_MAX_TTL.duration()))
        }
        // Only the machines that serve it know both.
        None => ("DIR".to_owned(), "its longest ttl".to_owned()),
    };
    format!(
        "leasehold data recover --data {directory} --above {above} (add --holders-are-stopped if no holder runs, else nothing is granted for {wait})"
    )
}

/// A path as shells take it.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_to_a_shell() {
        assert_eq!(quoted("/srv/leases"), "/srv/leases");
        assert_eq!(quoted("/srv/o'clock x"), r"'/srv/o'\''clock x'");
    }
}
