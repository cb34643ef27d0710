//! `data restore` and what it shares with `recover`: another life of a state.

use std::net::SocketAddr;
use std::path::Path;

use leasehold::core::Millis;
use leasehold::core::protocol::{Member, MemberError};
use leasehold_host::{Begun, Choices, Contradiction, FilesError};

use crate::args::{LifeArgs, RestoreArgs};
use crate::console::Console;
use crate::exit::Exit;
use crate::trouble::Trouble;
use crate::words;

pub(super) fn run(console: &Console, args: &RestoreArgs) -> Result<Exit, Trouble> {
    let choices = choices(&args.life, args.first_restore);
    let begun = leasehold_host::restore(&args.file, &args.data, &choices).map_err(|error| match &error {
        FilesError::Damaged { path, .. } | FilesError::Io { path, .. } | FilesError::State { path, .. }
            if *path == args.file =>
        {
            Trouble::Files(format!("{error}; nothing was made: name another backup"))
        }
        _ => trouble(error),
    })?;
    say(console, &format!("restored {} into {}", args.file.display(), args.data.display()), &begun)
}

pub(super) fn choices(args: &LifeArgs, is_only_one: bool) -> Choices {
    Choices {
        above: args.above,
        is_only_one,
        max_ttl: args.max_ttl.map(Millis::from_duration),
        holders_are_stopped: args.holders_are_stopped,
        name: args.name.clone(),
        address: args.listen_address.clone(),
    }
}

/// Says what has begun and what comes next.
pub(super) fn say(console: &Console, what: &str, begun: &Begun) -> Result<Exit, Trouble> {
    warn(console, begun);
    let Begun { directory, member, incarnation, epoch, index, wait, kept, given_up, .. } = begun;
    let mut text =
        format!("{what}: epoch {epoch}, revision {index}; every session and lease of before has ended");
    if let Some(given_up) = given_up {
        text.push_str(&format!(
            "\nepoch {given_up} had begun here before and has no entries behind its snapshot; it is given up"
        ));
    }
    if *wait > Millis::ZERO {
        let wait = words::length(wait.duration());
        text.push_str(&format!(
            "\nnothing is granted in the first {wait} in which it is served: holders of before may still act. If none of them runs any more, \
             --holders-are-stopped would have skipped that"
        ));
    } else {
        text.push_str("\nit grants at once: from now on only tokens protect against holders of before");
    }
    if let Some(kept) = kept {
        text.push_str(&format!(
            "\nthe log of before is kept in {}; remove it when nobody needs it",
            kept.display()
        ));
    }
    if let Some(member) = member {
        text.push_str(&format!(
            "\nnode {} at {} is its only member; serve it, now and every time, with:\n{}",
            member.name,
            member.address,
            serve_command(directory, member)
        ));
    }
    let json = object! {
        data: directory.display().to_string(),
        member: member.as_ref().map(|member| member.id.to_string()),
        name: member.as_ref().map(|member| &member.name),
        address: member.as_ref().map(|member| &member.address),
        incarnation: incarnation.to_string(),
        epoch,
        revision: index,
        wait_ms: wait.get(),
        kept: kept.as_ref().map(|kept| kept.display().to_string()),
    };
    console.result(text, &json)
}

/// What should be looked at before it is served.
fn warn(console: &Console, begun: &Begun) {
    if let Some(Contradiction { note, epoch }) = &begun.contradiction {
        let message = format!(
            "WARNING: a note says otherwise: {} names epoch {epoch}, which a restore or recovery handed out since. Unless that was of another store, \
             stop what goes on from it; if anything else may have gone on, begin again with --above and the greatest token that any receiver has seen",
            note.display()
        );
        console.note(&message, &object! { event: "note-says-otherwise", epoch, message: &message });
    }
    if let (Some(Member { name, address, .. }), true) = (&begun.member, begun.address_is_guessed) {
        let message = format!(
            "WARNING: it was not told which node it is, and is {name} at {address}, where other machines will not reach it; if they must, \
             remove {} and begin again with --name NAME and --listen-address HOST:PORT",
            begun.directory.display()
        );
        console.remark("address-guessed", &message);
    }
}

/// How the node of a new life is started. A word for others stands there from the start: without its directory it must not found another store.
fn serve_command(directory: &Path, member: &Member) -> String {
    let Member { name, address, .. } = member;
    let port = address.rsplit_once(':').map_or("", |(_, port)| port);
    let place = match address.parse::<SocketAddr>() {
        Ok(own) if own.ip().to_canonical().is_loopback() => format!("--listen {address}"),
        Ok(_) => format!("--listen {address} --insecure"),
        Err(_) => format!("--listen 0.0.0.0:{port} --advertise {address} --insecure"),
    };
    format!("leasehold serve --name {name} --data {} {place} --join", directory.display())
}

/// What the command line left out is a mistake in it; everything else is about files.
pub(super) fn trouble(error: FilesError) -> Trouble {
    match error {
        FilesError::EpochUnknown { .. }
        | FilesError::NotAlone { .. }
        | FilesError::MaxTtl { .. }
        | FilesError::Member(MemberError::Name { .. } | MemberError::NoId) => {
            Trouble::Misuse(error.to_string())
        }
        FilesError::Member(error @ MemberError::Address { .. }) => {
            Trouble::Misuse(format!("--listen-address: {error}; write it like 10.0.0.1:7420"))
        }
        error => Trouble::Files(error.to_string()),
    }
}
