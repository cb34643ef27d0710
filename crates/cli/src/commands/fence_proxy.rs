//! `fence proxy`: a fence in front of a service that cannot be changed, until a signal ends it.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use leasehold_fence::proxy::{FenceProxy, MAX_IN_FLIGHT, OpenError, Settings};
use rustix::process::Signal;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use super::on_threads;
use crate::args::FenceProxyArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::serve::{descriptors, notify, port_file};
use crate::signals::Signals;
use crate::trouble::Trouble;
use crate::words;

/// Of a URL that names none.
const HTTP_PORT: u16 = 80;

pub(super) fn run(console: &Console, args: &FenceProxyArgs) -> Result<Exit, Trouble> {
    if !args.insecure && !args.listen.ip().to_canonical().is_loopback() {
        return Err(Trouble::Misuse(format!(
            "{} can be reached from other machines, and without TLS and authentication whoever reaches it can write, and shut \
             every holder out; listen on 127.0.0.1:{}, or accept that with --insecure",
            args.listen,
            args.listen.port()
        )));
    }
    must_be_elsewhere(&args.upstream, args.listen)?;
    on_threads(Builder::new_multi_thread(), serve(console, args))
}

async fn serve(console: &Console, args: &FenceProxyArgs) -> Result<Exit, Trouble> {
    // Listened to before anything is taken, so that a signal that comes meanwhile is not lost.
    let signals = Signals::listen()?;
    let settings = Settings {
        name: args.name.clone(),
        all: args.all,
        timeout: args.timeout,
        settle: args.settle,
        max_in_flight: descriptors::room_for_pairs(MAX_IN_FLIGHT),
        at: Some(|| words::moment_ago(Duration::ZERO)),
        ..Settings::new(&args.upstream, &args.fence)
    };
    let proxy = FenceProxy::open(settings).map_err(|error| trouble_of(&error))?;
    let cannot = |error: std::io::Error| {
        let next = match error.kind() {
            ErrorKind::AddrInUse => "; end what listens there, or give this proxy another port with --listen",
            ErrorKind::AddrNotAvailable => "; give one of this machine's own addresses with --listen",
            _ => "",
        };
        Trouble::Service(format!("cannot listen on {}: {error}{next}", args.listen))
    };
    let listener = TcpListener::bind(args.listen).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    port_file::write(args.port_file.as_deref(), address)?;
    let (upstream, names) = (proxy.upstream().to_owned(), proxy.known_names());
    let fence = args.fence.display().to_string();
    let text = format!("listening on {address} for {upstream}; {fence} knows {names} fence names");
    let event = object! { event: "listening", address: address.to_string(), upstream, fence, names };
    console.result(text, &event)?;
    notify::ready(address);
    let stop = stopped(console, signals, args.timeout);
    let served = proxy.serve(listener, stop).await;
    served.map_err(|error| Trouble::Service(format!("the listener on {address} has failed: {error}")))?;
    Ok(Exit::OK)
}

/// Comes back when a signal asks to stop; the next one ends this process at once, which is as safe as a crash.
async fn stopped(console: &Console, mut signals: Signals, timeout: Duration) {
    while signals.next().await == Signal::HUP {
        console.remark("ignored", "SIGHUP is ignored: there is nothing to read again");
    }
    let message = format!("finishing what is under way; each request has at most {} ms", timeout.as_millis());
    console.remark("stopping", &message);
    notify::stopping();
    tokio::spawn(async move {
        loop {
            let signal = signals.next().await;
            if signal != Signal::HUP {
                std::process::exit(Exit::of_signal(signal.as_raw()).get().into());
            }
        }
    });
}

/// A proxy that is its own service forwards what it has forwarded. Only an address that is written out can be told before it listens.
fn must_be_elsewhere(upstream: &str, listen: SocketAddr) -> Result<(), Trouble> {
    let authority = upstream.strip_prefix("http://").unwrap_or(upstream);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    let authority = authority.replacen("localhost", "127.0.0.1", 1);
    let address = authority.parse().or_else(|_| format!("{authority}:{HTTP_PORT}").parse::<SocketAddr>());
    let Ok(address) = address else { return Ok(()) };
    // Nowhere in particular is this machine. What else is this machine's, of all that such a listener takes, is not known here.
    let is_here = address.ip().is_loopback() || address.ip().is_unspecified();
    let takes_here = listen.ip().is_loopback() || listen.ip().is_unspecified();
    let listens_there = listen.ip() == address.ip() || (is_here && takes_here);
    if address.port() != listen.port() || !listens_there || address.port() == 0 {
        return Ok(());
    }
    Err(Trouble::Misuse(format!(
        "the upstream {upstream:?} is where this proxy listens ({listen}), so it would forward to itself; name the service with --upstream, or \
         another port with --listen"
    )))
}

fn trouble_of(error: &OpenError) -> Trouble {
    match error {
        OpenError::Upstream(_) | OpenError::Name(_) | OpenError::NoDirectory(_) => {
            Trouble::Misuse(error.to_string())
        }
        _ => Trouble::Service(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_may_have_the_same_port() {
        let there =
            |upstream: &str, listen: &str| must_be_elsewhere(upstream, listen.parse().unwrap()).is_ok();
        assert!(there("http://10.0.0.9:8080", "0.0.0.0:8080"));
        assert!(there("http://10.0.0.9:8080", "[::]:8080"));
        assert!(there("http://127.0.0.1:8081", "0.0.0.0:8080"));
        assert!(there("http://reports:8080", "0.0.0.0:8080"), "names are not looked up");
        assert!(!there("http://127.0.0.1:8080", "0.0.0.0:8080"));
        assert!(!there("http://10.0.0.9:8080", "10.0.0.9:8080"));
    }
}
