//! Words for what a node hands out.

use leasehold_core::protocol::{ReadAnswer, Response, ToClient};
use leasehold_core::{Answer, Command, Grant, Item, ItemKind, Op, Refusal, Reply, SessionId, System};
use leasehold_node::payload::Payload;
use leasehold_node::{LogEntry, LogWrite};

pub(crate) fn write(write: &LogWrite) -> String {
    let vote = write.vote.map(|vote| format!("vote in term {}", vote.term));
    let parts: Vec<String> = vote.into_iter().chain(write.entries.iter().map(entry)).collect();
    format!("disk < {}", parts.join("; "))
}

fn entry(entry: &LogEntry) -> String {
    if entry.payload.is_empty() {
        return format!("entry {} of raft's own", entry.index);
    }
    let payload = Payload::decode(&entry.payload).expect("the node wrote it");
    let commands: Vec<String> = payload.entry.commands.iter().map(command).collect();
    let commands = if commands.is_empty() { "time".to_owned() } else { commands.join(", ") };
    format!("entry {} at {}: {commands}", entry.index, payload.entry.at)
}

fn command(command: &Command) -> String {
    match command {
        Command::Open(open) => format!("open {}", open.label),
        Command::Attach(attach) => format!("attach {} to {}", attach.attach, attach.session),
        Command::Renew { session, number, .. } => format!("renew {session} no {number}"),
        Command::RenewPlain { session } => format!("renew {session}"),
        Command::Session(command) => format!("{} of {}", op(&command.op), command.session),
        Command::Operator(_) => "operator".to_owned(),
        Command::NoRoom { session, .. } => format!("no room for a command of session {session}"),
        Command::Tidy(due) => format!("tidy {}", due.len()),
        Command::System(System::Found(_)) => "found".to_owned(),
        Command::System(System::ClusterVersion { version }) => format!("version {version}"),
        Command::System(System::Rebooted) => "rebooted".to_owned(),
        Command::System(System::Unserved { length: Some(length) }) => format!("unserved for {length}"),
        Command::System(System::Unstamped { length }) => format!("unstamped for {length}"),
        Command::System(System::Unserved { length: None }) => "unserved".to_owned(),
        Command::Detached { session, .. } => format!("detached {session}"),
        Command::System(System::Restored { wait, .. }) => format!("end all, wait {wait}"),
    }
}

fn op(op: &Op) -> String {
    match op {
        Op::Acquire(acquire) => format!("acquire {}", acquire.requests[0].resource),
        Op::Release { resource, token, .. } => format!("release {resource} t{token}"),
        Op::Close => "close".to_owned(),
        other => format!("{other:?}"),
    }
}

pub(crate) fn message(message: &ToClient) -> String {
    match message {
        ToClient::Items { items, .. } => items.iter().map(item).collect::<Vec<_>>().join("; "),
        ToClient::Response { response, .. } => match response {
            Response::Cluster(reply) => format!("{reply:?}"),
            Response::Reply(reply) => self::reply(reply),
            Response::Failed(failure) => format!("failed: {failure}"),
            Response::Read { answer, .. } => read(answer),
        },
        ToClient::Hint { length, .. } => format!("please renew in {length}"),
        ToClient::Watched { .. } => "watched".to_owned(),
    }
}

fn reply(reply: &Reply) -> String {
    match reply {
        Reply::Opened(opened) if opened.repeated => format!("found again, session {}", opened.session),
        Reply::Opened(opened) => format!("opened, session {}", opened.session),
        Reply::Attached { last_command, last_item } => {
            format!("attached, last command {last_command}, last item {last_item}")
        }
        Reply::Renewed(renewed) => format!("renewed no {}, after item {}", renewed.number, renewed.after),
        Reply::Refused(refusal) => format!("refused: {refusal}"),
        other => format!("{other:?}"),
    }
}

fn item(item: &Item) -> String {
    let what = match &item.kind {
        ItemKind::Answer { command, answer } => format!("answer to {command}: {}", self::answer(answer)),
        ItemKind::WaitGranted { command, grants } => format!("wait {command} granted {}", tokens(grants)),
        ItemKind::LeaseEnded { resource, token, how } => format!("{resource} t{token} ended: {how:?}"),
        other => format!("{other:?}"),
    };
    format!("item {} {what}", item.number)
}

fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Granted(grants) => format!("granted {}", tokens(grants)),
        Answer::Queued { ahead } => format!("queued behind {ahead}"),
        Answer::Released => "released".to_owned(),
        Answer::Refused(Refusal::NotFree { resource, why }) => format!("{resource} is not free: {why:?}"),
        other => format!("{other:?}"),
    }
}

fn tokens(grants: &[Grant]) -> String {
    let grants: Vec<String> =
        grants.iter().map(|grant| format!("{} t{}", grant.resource, grant.token)).collect();
    grants.join(" ")
}

fn read(answer: &ReadAnswer) -> String {
    match answer {
        ReadAnswer::Lease(None) => "nothing known".to_owned(),
        ReadAnswer::Lease(Some(lease)) => {
            let holders: Vec<String> = lease
                .holders
                .iter()
                .map(|holder| format!("{} t{} for another {}", holder.label, holder.token, holder.remaining))
                .collect();
            let holders = if holders.is_empty() { "nobody".to_owned() } else { holders.join(", ") };
            format!("{} held by {holders}, {} waiting", lease.resource, lease.waiting)
        }
        ReadAnswer::Status(status) => format!(
            "{} sessions, {} resources, applied {}, log time {}, cut {}",
            status.sessions, status.resources, status.applied, status.log_time, status.cut
        ),
        other => format!("{other:?}"),
    }
}

/// The session that a client learns of.
pub(crate) fn opened(message: &ToClient) -> Option<SessionId> {
    match message {
        ToClient::Response { response: Response::Reply(Reply::Opened(opened)), .. } => Some(opened.session),
        _ => None,
    }
}

/// What an item grants.
pub(crate) fn grants(item: &Item) -> Vec<Grant> {
    match &item.kind {
        ItemKind::Answer { answer: Answer::Granted(grants), .. } | ItemKind::WaitGranted { grants, .. } => {
            grants.clone()
        }
        _ => Vec::new(),
    }
}
