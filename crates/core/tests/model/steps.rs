//! Random histories as abstract steps: who does what, with references such as "the token it holds" instead of numbers. A step
//! becomes a command only when its turn comes, so most of them make sense, and shrinking keeps them sensible.

use proptest::collection::vec;
use proptest::prelude::*;

/// One random history.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) limits: LimitsPick,
    pub(crate) drift_ppm: u32,
    /// Whether the log shows drains from its beginning.
    pub(crate) version_raised: bool,
    pub(crate) openings: Vec<OpenPick>,
    pub(crate) entries: Vec<EntryStep>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum LimitsPick {
    Default,
    /// So small that they are met.
    Small,
}

#[derive(Debug, Clone)]
pub(crate) struct EntryStep {
    pub(crate) time: TimePick,
    /// Who renews in this entry and in time on the way to it, as bits: without, most histories are about the dead.
    pub(crate) renewing: u8,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum TimePick {
    Forward(u16),
    /// To the n-th point ahead at which something changes, one before it, or one after it.
    Point {
        nth: u8,
        offset: i8,
    },
    /// One holder stops renewing: to the end of its ttl, its grace, its cool-down or its hard limit, or next to it.
    Decay {
        nth: u8,
        stage: u8,
        offset: i8,
    },
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenPick {
    pub(crate) who: u8,
    pub(crate) ttl: u16,
    pub(crate) grace: u16,
    pub(crate) hard_above_grace: i16,
    pub(crate) delay: u16,
    pub(crate) plain: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Open(OpenPick),
    Attach {
        who: u8,
        delta: i8,
        seen: SeenPick,
    },
    Renew {
        who: u8,
        delta: i8,
        seen: SeenPick,
    },
    RenewAll,
    Session {
        who: u8,
        number: i8,
        attach: i8,
        seen: SeenPick,
        op: OpStep,
    },
    Ask {
        resource: u8,
        token: Option<TokenPick>,
        successor: Option<SuccessorPick>,
    },
    Revoke {
        resource: u8,
        token: TokenPick,
        now: bool,
    },
    ChangeKind {
        resource: u8,
        mode: ModePick,
    },
    ClearAlarm {
        resource: u8,
        right: bool,
    },
    /// What a leader would propose.
    TidyDue,
    TidyResource {
        resource: u8,
    },
    TidySession {
        who: u8,
    },
    Rebooted,
    Restored {
        epoch_up: u8,
        wait: u16,
    },
    Found,
    Version,
    /// The connection of a session has ended.
    Detached {
        who: u8,
    },
    /// Nobody led for so long; zero means that nobody knows.
    Unserved {
        length: u16,
    },
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum SeenPick {
    Nothing,
    /// So many before the newest.
    Behind(u8),
    Ahead,
}

#[derive(Debug, Clone)]
pub(crate) enum OpStep {
    Acquire {
        requests: Vec<(u8, ModePick)>,
        wait: Option<u16>,
    },
    Cancel {
        nth: u8,
    },
    SetValue {
        resource: u8,
        token: TokenPick,
    },
    WriteRegister {
        resource: u8,
        token: TokenPick,
        key: u8,
        value: bool,
        with_lease: bool,
    },
    Offer {
        resource: u8,
        token: TokenPick,
        to: SuccessorPick,
        length: u16,
    },
    Accept {
        resource: u8,
        token: TokenPick,
    },
    Release {
        resource: u8,
        token: TokenPick,
        drained: bool,
    },
    SetReady {
        resource: u8,
        token: TokenPick,
        ready: bool,
    },
    SetDraining {
        resource: u8,
        token: TokenPick,
        in_flight: u8,
        within: u32,
    },
    Close,
    /// One that there was no room for.
    NoRoom,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum ModePick {
    Exclusive,
    Shared,
    /// Whatever fits the name, exclusive if both exclusive and shared do.
    Fitting,
    Slots(u8),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum TokenPick {
    /// One that the acting session holds, on whatever resource, offered ones first; else one of the resource.
    Own,
    Holder(u8),
    /// One that is offered to the acting session, on whatever resource; else one of the resource.
    OfferedToMe,
    Past(u8),
    Any(u8),
    /// One that was never granted.
    Ahead(u8),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum SuccessorPick {
    FirstWaiter,
    Labelled(u8),
    Session(u8),
}

/// Histories of 2 to 4 sessions, 3 resources and up to `longest` entries.
pub(crate) fn script(longest: usize) -> impl Strategy<Value = Script> {
    let limits = prop_oneof![4 => Just(LimitsPick::Default), 1 => Just(LimitsPick::Small)];
    let drift = prop_oneof![4 => Just(1_000_u32), 1 => Just(0), 1 => Just(77_777)];
    let openings = (2_u8..=4).prop_flat_map(|count| (0..count).map(good_open).collect::<Vec<_>>());
    (limits, drift, prop::bool::weighted(0.8), openings, vec(entry(), 1..longest)).prop_map(
        |(limits, drift_ppm, version_raised, openings, entries)| Script {
            limits,
            drift_ppm,
            version_raised,
            openings,
            entries,
        },
    )
}

fn good_open(who: u8) -> impl Strategy<Value = OpenPick> {
    let length = || prop_oneof![3 => Just(0_u16), 1 => Just(1), 3 => 1_u16..1_500];
    let ttl = prop_oneof![Just(500_u16), Just(1_000), 500_u16..3_000];
    let hard = prop_oneof![1 => Just(0_i16), 3 => 1_i16..4_000];
    (ttl, length(), hard, length(), prop::bool::weighted(0.3)).prop_map(
        move |(ttl, grace, hard_above_grace, delay, plain)| OpenPick {
            who,
            ttl,
            grace,
            hard_above_grace,
            delay,
            plain,
        },
    )
}

fn any_open() -> impl Strategy<Value = OpenPick> {
    let bad = (0_u8..4).prop_flat_map(good_open).prop_flat_map(|open| {
        prop_oneof![
            Just(OpenPick { ttl: 499, ..open }),
            Just(OpenPick { ttl: 60_001, ..open }),
            Just(OpenPick { grace: 10, hard_above_grace: -1, ..open }),
        ]
    });
    prop_oneof![9 => (0_u8..4).prop_flat_map(good_open), 1 => bad]
}

fn entry() -> impl Strategy<Value = EntryStep> {
    let offset = || prop_oneof![Just(-1_i8), Just(0), Just(1), Just(1)];
    let time = prop_oneof![
        3 => Just(TimePick::Forward(0)),
        4 => (1_u16..300).prop_map(TimePick::Forward),
        1 => (300_u16..4_000).prop_map(TimePick::Forward),
        4 => (0_u8..5, offset()).prop_map(|(nth, offset)| TimePick::Point { nth, offset }),
        3 => (0_u8..4, 0_u8..4, offset()).prop_map(|(nth, stage, offset)| TimePick::Decay { nth, stage, offset }),
    ];
    let bit = || prop::bool::weighted(0.7);
    let renewing = (bit(), bit(), bit(), bit())
        .prop_map(|(a, b, c, d)| u8::from(a) | u8::from(b) << 1 | u8::from(c) << 2 | u8::from(d) << 3);
    (time, renewing, vec(step(), 1..=6)).prop_map(|(time, renewing, steps)| EntryStep {
        time,
        renewing,
        steps,
    })
}

fn seen() -> impl Strategy<Value = SeenPick> {
    prop_oneof![
        9 => Just(SeenPick::Nothing),
        20 => (0_u8..4).prop_map(SeenPick::Behind),
        1 => Just(SeenPick::Ahead),
    ]
}

fn token() -> impl Strategy<Value = TokenPick> {
    prop_oneof![
        6 => Just(TokenPick::Own),
        4 => (0_u8..3).prop_map(TokenPick::Holder),
        2 => (0_u8..3).prop_map(TokenPick::Past),
        1 => (0_u8..20).prop_map(TokenPick::Any),
        1 => prop_oneof![1 => (0_u8..20).prop_map(TokenPick::Any), 1 => (0_u8..3).prop_map(TokenPick::Ahead)],
    ]
}

fn mode() -> impl Strategy<Value = ModePick> {
    prop_oneof![
        6 => Just(ModePick::Fitting),
        3 => Just(ModePick::Shared),
        1 => Just(ModePick::Exclusive),
        1 => (0_u8..4).prop_map(ModePick::Slots),
    ]
}

fn successor() -> impl Strategy<Value = SuccessorPick> {
    prop_oneof![
        2 => Just(SuccessorPick::FirstWaiter),
        1 => (0_u8..2).prop_map(SuccessorPick::Labelled),
        3 => (0_u8..4).prop_map(SuccessorPick::Session),
    ]
}

fn op() -> impl Strategy<Value = OpStep> {
    let r = 0_u8..3;
    let wait = prop_oneof![
        2 => Just(None),
        1 => Just(Some(0_u16)),
        2 => (1_u16..1_000).prop_map(Some),
        6 => (1_000_u16..12_000).prop_map(Some),
    ];
    let requests = prop_oneof![
        6 => vec((r.clone(), mode()), 1),
        3 => (r.clone(), 1_u8..3, mode(), mode())
            .prop_map(|(one, further, mode, other)| vec![(one, mode), ((one + further) % 3, other)]),
        1 => vec((r.clone(), mode()), 0..=3),
    ];
    let length = prop_oneof![1 => Just(0_u16), 1 => 1_u16..500, 4 => 500_u16..8_000];
    let offered = prop_oneof![6 => Just(TokenPick::OfferedToMe), 1 => token()];
    prop_oneof![
        15 => (requests, wait).prop_map(|(requests, wait)| OpStep::Acquire { requests, wait }),
        2 => (0_u8..4).prop_map(|nth| OpStep::Cancel { nth }),
        1 => (r.clone(), token()).prop_map(|(resource, token)| OpStep::SetValue { resource, token }),
        1 => (r.clone(), token(), 0_u8..3, prop::bool::weighted(0.8), any::<bool>()).prop_map(
            |(resource, token, key, value, with_lease)| OpStep::WriteRegister { resource, token, key, value, with_lease }
        ),
        5 => (r.clone(), token(), successor(), length)
            .prop_map(|(resource, token, to, length)| OpStep::Offer { resource, token, to, length }),
        6 => (r.clone(), offered).prop_map(|(resource, token)| OpStep::Accept { resource, token }),
        6 => (r.clone(), token(), any::<bool>())
            .prop_map(|(resource, token, drained)| OpStep::Release { resource, token, drained }),
        3 => (r.clone(), token(), any::<bool>())
            .prop_map(|(resource, token, ready)| OpStep::SetReady { resource, token, ready }),
        2 => (r, token(), 0_u8..9, prop_oneof![9 => 0_u32..5_000, 1 => Just(86_400_001)])
            .prop_map(|(resource, token, in_flight, within)| OpStep::SetDraining { resource, token, in_flight, within }),
        1 => Just(OpStep::Close),
        1 => Just(OpStep::NoRoom),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let (w, r) = (0_u8..4, 0_u8..3);
    let delta = prop_oneof![8 => Just(1_i8), 1 => Just(0), 1 => Just(-1), 1 => Just(3)];
    let attach_delta = prop_oneof![6 => Just(1_i8), 1 => Just(0), 1 => Just(-1), 1 => Just(2)];
    let number = prop_oneof![36 => Just(0_i8), 2 => Just(-1), 1 => Just(-2), 1 => Just(1)];
    let attach = prop_oneof![36 => Just(0_i8), 1 => Just(-1), 1 => Just(1)];
    prop_oneof![
        2 => any_open().prop_map(Step::Open),
        2 => (w.clone(), attach_delta, seen()).prop_map(|(who, delta, seen)| Step::Attach { who, delta, seen }),
        6 => (w.clone(), delta, seen()).prop_map(|(who, delta, seen)| Step::Renew { who, delta, seen }),
        1 => Just(Step::RenewAll),
        40 => (w.clone(), number, attach, seen(), op())
            .prop_map(|(who, number, attach, seen, op)| Step::Session { who, number, attach, seen, op }),
        1 => (r.clone(), prop::option::of(token()), prop::option::of(successor()))
            .prop_map(|(resource, token, successor)| Step::Ask { resource, token, successor }),
        4 => (r.clone(), token(), prop::bool::weighted(0.25))
            .prop_map(|(resource, token, now)| Step::Revoke { resource, token, now }),
        1 => (r.clone(), mode()).prop_map(|(resource, mode)| Step::ChangeKind { resource, mode }),
        2 => (r.clone(), prop::bool::weighted(0.9)).prop_map(|(resource, right)| Step::ClearAlarm { resource, right }),
        4 => Just(Step::TidyDue),
        2 => r.prop_map(|resource| Step::TidyResource { resource }),
        1 => w.prop_map(|who| Step::TidySession { who }),
        1 => prop_oneof![1 => rare(), 2 => Just(Step::TidyDue)],
    ]
}

fn rare() -> impl Strategy<Value = Step> {
    let wait = prop_oneof![Just(0_u16), 1_u16..3_000];
    prop_oneof![
        1 => Just(Step::Rebooted),
        2 => (0_u8..3, wait).prop_map(|(epoch_up, wait)| Step::Restored { epoch_up, wait }),
        3 => Just(Step::Found),
        1 => Just(Step::Version),
        4 => (0_u8..4).prop_map(|who| Step::Detached { who }),
        2 => (0_u16..9_000).prop_map(|length| Step::Unserved { length }),
    ]
}
