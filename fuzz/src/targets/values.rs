//! A short story of a table, told by the table itself: what is asked, and every kind of answer that comes of it. Seeds are made of it.

use leasehold_core::protocol::{
    Change, Changes, ClusterCommand, ClusterView, Failure, GapsOf, Incarnation, Member, MemberId, MemberRole,
    MemberView, Plain, Query, ReadAnswer, Request, RequestId, Response, Status, ToClient, TokenCheck, Watch,
};
use leasehold_core::{
    Acquire, Attach, AttachNumber, Command, CommandNumber, Config, Due, Entry, Epoch, ItemNumber, Label,
    LeaseTable, LogTime, Millis, Mode, Nonce, Offer, Op, Open, Operator, Policies, Reason, RegisterKey,
    RenewalNumber, Request as Wanted, ResourceName, Revision, Sequence, SessionCommand, SessionId,
    SessionKind, Successor, System, Token, Value,
};

/// Entries, and what came of them.
pub(super) struct Story {
    pub(super) entries: Vec<Entry>,
    /// The table behind each entry.
    pub(super) tables: Vec<LeaseTable>,
    pub(super) changes: Vec<Changes>,
    pub(super) messages: Vec<ToClient>,
}

const NONCE: Nonce = Nonce([0xee; 16]);

pub(super) fn name(text: &str) -> ResourceName {
    ResourceName::new(text).expect("a short word is a name")
}

fn label(text: &str) -> Label {
    Label::new(text).expect("a short word is a label")
}

fn reason() -> Reason {
    Reason::new("it hangs").expect("a short text is a reason")
}

fn value(text: &str) -> Value {
    Value::new(text.as_bytes().to_vec()).expect("a short text is a value")
}

fn open(nonce: u8, kind: SessionKind) -> Open {
    let policies = Policies { grace: Millis::new(1_000), hard: Millis::new(2_000), delay: Millis::new(500) };
    Open { nonce: Nonce([nonce; 16]), label: label("worker"), ttl: Millis::new(10_000), policies, kind }
}

fn acquire(resource: &str, mode: Mode, wait: Option<u64>) -> Op {
    let requests = vec![Wanted { resource: name(resource), mode }];
    Op::Acquire(Acquire { requests, value: value("at 10.0.0.1"), wait: wait.map(Millis::new) })
}

fn plain(session: u64, op: Op) -> Command {
    let (session, sequence) = (SessionId::from_u64(session), Sequence::Plain);
    Command::Session(SessionCommand { session, sequence, op })
}

fn streamed(number: u64, op: Op) -> Command {
    let (attach, number) = (AttachNumber::new(1), CommandNumber::new(number));
    let sequence = Sequence::Streamed { attach, number, seen: ItemNumber::new(0) };
    Command::Session(SessionCommand { session: SessionId::from_u64(1), sequence, op })
}

/// Every command once, at least.
fn entries() -> Vec<Entry> {
    let (lock, token) = (name("jobs/night"), Token::from_u64(3));
    let write = Op::WriteRegister {
        resource: lock.clone(),
        token,
        key: RegisterKey::new("cursor").expect("a short word is a key"),
        value: Some(value("17")),
        with_lease: true,
    };
    let offer = Offer { resource: lock.clone(), token, to: Successor::FirstWaiter, length: Millis::new(900) };
    let steps: Vec<(u64, Vec<Command>)> = vec![
        (0, vec![Command::System(System::Found(Config::default()))]),
        (1, vec![Command::Open(open(1, SessionKind::Streamed)), Command::Open(open(2, SessionKind::Plain))]),
        (
            2,
            vec![Command::Attach(Attach {
                session: SessionId::from_u64(1),
                attach: AttachNumber::new(1),
                seen: ItemNumber::new(0),
            })],
        ),
        (3, vec![streamed(1, acquire("jobs/night", Mode::Exclusive, None)), streamed(2, write)]),
        (4, vec![plain(2, acquire("jobs/night", Mode::Exclusive, Some(5_000)))]),
        (
            5,
            vec![
                plain(2, acquire("pool", Mode::Slot { of: 3 }, None)),
                plain(2, acquire("s", Mode::Shared, None)),
            ],
        ),
        (
            6,
            vec![
                streamed(3, Op::SetValue { resource: lock.clone(), token, value: value("busy") }),
                Command::System(System::ClusterVersion { version: 3 }),
                Command::System(System::Unserved { length: Some(Millis::new(900)) }),
                Command::Detached { session: SessionId::from_u64(1), attach: AttachNumber::new(1) },
                plain(2, Op::SetReady { resource: lock.clone(), token, ready: false }),
                plain(
                    2,
                    Op::SetDraining { resource: lock.clone(), token, in_flight: 3, within: Millis::new(20) },
                ),
            ],
        ),
        (
            7,
            vec![
                Command::Renew {
                    session: SessionId::from_u64(1),
                    number: RenewalNumber::new(1),
                    seen: ItemNumber::new(1),
                },
                Command::RenewPlain { session: SessionId::from_u64(2) },
            ],
        ),
        (
            8,
            vec![Command::Operator(Operator::AskRelease {
                resource: lock.clone(),
                token: Some(token),
                successor: Some(Successor::Labelled(label("worker"))),
                by: label("ops"),
            })],
        ),
        (9, vec![streamed(4, Op::Offer(offer))]),
        (10, vec![streamed(5, Op::Release { resource: lock.clone(), token, drained: true })]),
        (11, vec![plain(2, Op::Cancel { acquire: CommandNumber::new(1) }), plain(9, Op::Close)]),
        (
            12,
            vec![Command::Operator(Operator::Revoke {
                resource: name("s"),
                token: Token::from_u64(5),
                by: label("ops"),
                reason: reason(),
                now: false,
            })],
        ),
        (
            13,
            vec![plain(
                2,
                Op::Release { resource: name("s"), token: Token::from_u64(4_000), drained: false },
            )],
        ),
        (
            14,
            vec![Command::Operator(Operator::ClearAlarm {
                resource: name("s"),
                token: Token::from_u64(4_000),
                by: label("ops"),
                reason: reason(),
            })],
        ),
        (20_000, vec![Command::Tidy(vec![Due::Session(SessionId::from_u64(1)), Due::Resource(lock)])]),
        (
            20_001,
            vec![
                Command::NoRoom { session: SessionId::from_u64(1), sequence: Sequence::Plain },
                Command::System(System::Rebooted),
                Command::System(System::ClusterVersion { version: 1 }),
            ],
        ),
        (
            20_002,
            vec![Command::System(System::Restored {
                epoch: Epoch::new(1).expect("a small epoch"),
                wait: Millis::new(10),
            })],
        ),
    ];
    steps.into_iter().map(|(at, commands)| Entry { at: LogTime::new(at), commands }).collect()
}

/// The story from its beginning to its end.
pub(super) fn story() -> Story {
    let mut table = LeaseTable::new(Config::default());
    let mut story =
        Story { entries: entries(), tables: Vec::new(), changes: Vec::new(), messages: Vec::new() };
    for (entry, number) in story.entries.iter().zip(1_u64..) {
        let applied = table.apply(entry);
        story.tables.push(table.clone());
        for (reply, id) in applied.replies.iter().zip(1_u64..) {
            let response = Response::Reply(reply.clone());
            story.messages.push(ToClient::Response { id: RequestId(id), response });
        }
        for (session, item) in applied.items {
            story.messages.push(ToClient::Items { session, items: vec![item] });
        }
        let changes: Vec<Change> = applied.events.iter().filter_map(Change::of).collect();
        if !changes.is_empty() {
            let changes = Changes { revision: Revision::new(number), changes };
            story.changes.push(changes.clone());
            story.messages.push(ToClient::Watched { watch: RequestId(7), changes, more: false });
        }
    }
    let seen = answers(&story.tables[12]).into_iter().chain(failures());
    story.messages.extend(seen.map(|response| ToClient::Response { id: RequestId(300), response }));
    story
}

/// Every answer to a question.
fn answers(table: &LeaseTable) -> Vec<Response> {
    let views = table.leases("", None, 9).collect();
    let status = Status {
        version: "0.1.0".to_owned(),
        pid: 7,
        sessions: 1,
        resources: 2,
        applied: 13,
        log_time: Millis::new(12),
        cut: Millis::ZERO,
    };
    let answers = vec![
        ReadAnswer::Lease(table.lease(&name("jobs/night")).map(Box::new)),
        ReadAnswer::Leases { leases: views, more: true },
        ReadAnswer::Sessions { sessions: table.sessions(None, 9).collect(), more: false },
        ReadAnswer::History(table.history(&name("jobs/night"))),
        ReadAnswer::Check(TokenCheck::Current),
        ReadAnswer::Check(TokenCheck::Ahead { newest: 4 }),
        ReadAnswer::Register(Some((value("17"), Token::from_u64(3)))),
        ReadAnswer::Status(status),
        ReadAnswer::Cluster(cluster_view()),
        ReadAnswer::Alarms(table.alarms().collect()),
    ];
    let read = |answer| Response::Read { revision: Revision::new(13), answer };
    answers.into_iter().map(read).collect()
}

fn cluster_view() -> ClusterView {
    let voter = MemberView {
        member: member(7),
        role: MemberRole::Voter,
        matched: 12,
        reachable: true,
        receiving_snapshot: false,
    };
    ClusterView {
        incarnation: Incarnation(9),
        epoch: 1,
        version: 1,
        leader: MemberId(7),
        term: 3,
        committed: 12,
        members: vec![voter],
    }
}

fn failures() -> Vec<Response> {
    let (after, oldest) = (Revision::new(1), Revision::new(2));
    let failures = vec![
        Failure::OutcomeUnknown,
        Failure::Unavailable { why: "no leader".to_owned() },
        Failure::NotYourSession { session: SessionId::from_u64(1) },
        Failure::RevisionTooOld { after, oldest },
        Failure::RevisionAhead { after: oldest, newest: after },
        Failure::TooManyWatches { limit: 9 },
        Failure::BadRequest { why: "not known".to_owned() },
    ];
    failures.into_iter().map(Response::Failed).collect()
}

/// A member of a cluster.
pub(super) fn member(id: u64) -> Member {
    Member::new(MemberId(id), "n1", "127.0.0.1:7420").expect("a short name and an address")
}

/// Every request of a client.
pub(super) fn requests() -> Vec<Request> {
    let mut requests = Vec::new();
    for entry in entries() {
        for command in entry.commands {
            requests.extend(match command {
                Command::Open(open) => Some(Request::Open(open)),
                Command::Attach(attach) => Some(Request::Attach { attach, nonce: NONCE }),
                Command::Renew { session, number, seen } => Some(Request::Renew { session, number, seen }),
                Command::Session(SessionCommand { session, sequence: Sequence::Plain, op }) => {
                    let plain = Plain::Command { op, hold: true };
                    Some(Request::Plain { session, nonce: NONCE, plain })
                }
                Command::Session(command) => Some(Request::Command(command)),
                Command::Operator(operator) => Some(Request::Operator(operator)),
                Command::RenewPlain { session } => {
                    Some(Request::Plain { session, nonce: NONCE, plain: Plain::Renew })
                }
                Command::Tidy(_) | Command::System(_) | Command::NoRoom { .. } | Command::Detached { .. } => {
                    None
                }
            });
        }
    }
    let cluster = [
        ClusterCommand::Add(member(7)),
        ClusterCommand::Promote { name: "n1".to_owned() },
        ClusterCommand::Remove { name: "n1".to_owned() },
        ClusterCommand::Transfer { to: Some("n1".to_owned()) },
    ];
    requests.extend(cluster.map(Request::Cluster));
    let lock = name("jobs/night");
    let queries = [
        Query::Lease(lock.clone()),
        Query::Gaps { of: GapsOf::Name(lock.clone()), last: Some(Millis::new(5)) },
        Query::Gaps {
            of: GapsOf::Page { prefix: "j".to_owned(), after: Some(lock.clone()), limit: 3 },
            last: None,
        },
        Query::Leases { prefix: "jobs/".to_owned(), after: Some(lock.clone()), limit: 10 },
        Query::Sessions { after: Some(SessionId::from_u64(1)), limit: 10 },
        Query::History(lock.clone()),
        Query::Check { resource: lock.clone(), token: Token::from_u64(3) },
        Query::Register { resource: lock, key: RegisterKey::new("cursor").expect("a short word is a key") },
        Query::Status,
        Query::Cluster,
        Query::Alarms,
    ];
    requests.extend(queries.map(Request::Read));
    requests.push(Request::Watch(Watch { prefix: "jobs/".to_owned(), after: Some(Revision::new(3)) }));
    requests.push(Request::StopWatch { watch: RequestId(7) });
    requests
}
