//! Snapshots of releases: what an earlier one wrote is read, and while an earlier one may be a member it can read what is written here.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

use leasehold_core::{
    Acquire, Attach, AttachNumber, Command, CommandNumber, Config, Entry, ItemNumber, Label, LeaseTable,
    LogTime, Millis, Mode, Nonce, Offer, Op, Open, Operator, Policies, Reason, RegisterKey, Request,
    ResourceName, Sequence, SessionCommand, SessionId, SessionKind, Successor, System, Token, Value,
};

/// The table after [`life`], as the release before drains were shown wrote it.
const WRITTEN_BEFORE_DRAINS: &str = concat!(
    "02e0a712e807808002802080897a8080018092f401808004201080208008000428000202010101010101010101010101",
    "01010101010161904ef403d00f640000000002046c6f636b030104706f6f6c0402000401050100010001046c6f636b03",
    "0300020002000104706f6f6c04040100030003050400040602050304706f6f6c0405036f707305737475636b05020202",
    "02020202020202020202020202020162904ef403d00f64000000000001010101046c6f636b000176fed4031e03010401",
    "000101000205046c6f636b030161e0d40303000207010400030914036f646463040402046c6f636b0001010303000001",
    "760a01000102fed403010001000001010201010001016b02313703010004706f6f6c0103010104040100000176140201",
    "a54e640000000000010104010161142805036f707305737475636b00000200000101036f646463016228",
);

fn name(text: &str) -> ResourceName {
    ResourceName::new(text).unwrap()
}

fn open(nonce: u8, label: &str) -> Command {
    Command::Open(Open {
        nonce: Nonce([nonce; 16]),
        label: Label::new(label).unwrap(),
        ttl: Millis::new(10_000),
        policies: Policies { grace: Millis::new(500), hard: Millis::new(2_000), delay: Millis::new(100) },
        kind: SessionKind::Streamed,
    })
}

fn attach(session: u64) -> Command {
    let (session, attach) = (SessionId::from_u64(session), AttachNumber::new(1));
    Command::Attach(Attach { session, attach, seen: ItemNumber::NONE })
}

fn command(session: u64, number: u64, op: Op) -> Command {
    let (attach, number) = (AttachNumber::new(1), CommandNumber::new(number));
    let sequence = Sequence::Streamed { attach, number, seen: ItemNumber::NONE };
    Command::Session(SessionCommand { session: SessionId::from_u64(session), sequence, op })
}

fn acquire(resource: &str, mode: Mode, wait: Option<u64>) -> Op {
    let requests = vec![Request { resource: name(resource), mode }];
    Op::Acquire(Acquire { requests, value: Value::new(b"v".to_vec()).unwrap(), wait: wait.map(Millis::new) })
}

/// Something of everything that a table of the first version can hold.
fn life() -> Vec<Entry> {
    let (lock, token) = (name("lock"), Token::from_u64(3));
    let to = Successor::FirstWaiter;
    let offer = Op::Offer(Offer { resource: lock.clone(), token, to, length: Millis::new(60_000) });
    let write = Op::WriteRegister {
        resource: lock.clone(),
        token,
        key: RegisterKey::new("k").unwrap(),
        value: Some(Value::new(b"17".to_vec()).unwrap()),
        with_lease: true,
    };
    let accept = Op::Accept { resource: lock, token, value: Value::default() };
    let never_granted = Op::Release { resource: name("odd"), token: Token::from_u64(99), drained: false };
    let revoke = Operator::Revoke {
        resource: name("pool"),
        token: Token::from_u64(4),
        by: Label::new("ops").unwrap(),
        reason: Reason::new("stuck").unwrap(),
        now: false,
    };
    let steps = vec![
        vec![Command::System(System::Found(Config::default())), open(1, "a"), open(2, "b")],
        vec![attach(1), attach(2), command(1, 1, acquire("lock", Mode::Exclusive, None))],
        vec![command(1, 2, acquire("pool", Mode::Slot { of: 3 }, None)), command(1, 3, write)],
        vec![command(2, 1, acquire("lock", Mode::Exclusive, Some(60_000))), command(1, 4, offer)],
        vec![command(2, 2, accept), command(2, 3, never_granted), Command::Operator(revoke)],
    ];
    let at = |place: usize| LogTime::new(10 * place as u64);
    steps.into_iter().enumerate().map(|(place, commands)| Entry { at: at(place), commands }).collect()
}

fn lived() -> LeaseTable {
    let mut table = LeaseTable::new(Config::default());
    for entry in life() {
        table.apply(&entry);
    }
    table
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// What a log says once every member shows drains.
fn raised() -> Command {
    Command::System(System::ClusterVersion { version: 2 })
}

#[test]
fn what_the_release_before_wrote_is_read_and_written_to_the_letter() {
    let written = bytes(WRITTEN_BEFORE_DRAINS);
    let mut table = LeaseTable::decode(&written).unwrap();
    assert_eq!(table.version(), 1);
    assert_eq!(hex(&table.encode()), WRITTEN_BEFORE_DRAINS, "that release may have to read it");
    assert_eq!(hex(&lived().encode()), WRITTEN_BEFORE_DRAINS, "and it would have come to the same");
    let view = table.lease(&name("lock")).unwrap();
    let offer = view.holders[0].offer.clone().unwrap();
    assert_eq!((offer.to, offer.ready, view.holders[0].draining), (SessionId::from_u64(2), true, None));
    // The two go on alike.
    let entry = Entry { at: LogTime::new(100), commands: vec![raised(), command(1, 5, shows(3))] };
    assert_eq!(table.apply(&entry), lived_on().1);
}

fn shows(in_flight: u32) -> Op {
    Op::SetDraining { resource: name("lock"), token: Token::from_u64(3), in_flight, within: Millis::new(50) }
}

/// The same life, behind the entry that lets drains be shown.
fn lived_on() -> (LeaseTable, leasehold_core::Applied) {
    let mut table = lived();
    let entry = Entry { at: LogTime::new(100), commands: vec![raised(), command(1, 5, shows(3))] };
    let applied = table.apply(&entry);
    (table, applied)
}

#[test]
fn drains_versions_and_what_was_told_live_through_a_snapshot() {
    let (table, _) = lived_on();
    let written = table.encode();
    assert_eq!(written[0], 3);
    let mut read = LeaseTable::decode(&written).unwrap();
    assert_eq!((read.version(), read.encode()), (2, written.clone()));
    let draining = read.lease(&name("lock")).unwrap().holders[0].draining.unwrap();
    assert_eq!((draining.in_flight, draining.remaining), (3, Millis::new(50)));
    for cut in 0..written.len() {
        assert!(LeaseTable::decode(&written[..cut]).is_err(), "{cut} bytes of {} were read", written.len());
    }
    let longer = [&written[..], &[0]].concat();
    assert!(LeaseTable::decode(&longer).is_err());
    // An offer whose holder has been told is not told of again by whoever read it.
    let to = Successor::Session(SessionId::from_u64(2));
    let offer = Offer { resource: name("lock"), token: Token::from_u64(3), to, length: Millis::new(60_000) };
    let accept = Op::Accept { resource: name("lock"), token: Token::from_u64(3), value: Value::default() };
    let told = |applied: &leasehold_core::Applied| {
        let accepted =
            |item: &leasehold_core::Item| matches!(item.kind, leasehold_core::ItemKind::OfferAccepted { .. });
        applied.items.iter().filter(|(_, item)| accepted(item)).count()
    };
    let first = vec![command(1, 6, Op::Offer(offer)), command(2, 4, accept.clone())];
    assert_eq!(told(&read.apply(&Entry { at: LogTime::new(110), commands: first })), 1);
    let mut again = LeaseTable::decode(&read.encode()).unwrap();
    let cancel = Op::Cancel { acquire: CommandNumber::new(1) };
    let second = vec![command(2, 5, cancel), command(2, 6, accept)];
    assert_eq!(told(&again.apply(&Entry { at: LogTime::new(120), commands: second })), 0);
}
