//! Commands of sessions.

use leasehold_core::{Acquire, Mode, Numbered, Offer, Op, Request, Sequence, SessionCommand, Successor};

use super::{needed, record, variants};
use crate::proto as pb;

record!(SessionCommand => SessionCommand at "command"; session, sequence, op);

variants! {
    Sequence => session_command::Sequence;
    Streamed { attach, number, seen } => Streamed(Streamed) at "command.streamed",
    Plain => Plain,
    Numbered(numbered) => Numbered at "command.numbered",
}

variants! {
    Op => session_command::Op;
    Acquire(acquire) => Acquire,
    Cancel { acquire } => Cancel,
    SetValue { resource, token, value } => SetValue(SetValue) at "set_value",
    WriteRegister { resource, token, key, value, with_lease } => WriteRegister(WriteRegister) at "write_register",
    Offer(offer) => Offer,
    Accept { resource, token, value } => Accept(Accept) at "accept",
    Release { resource, token, drained } => Release(Release) at "release",
    Close => Close,
    CancelCall { call } => CancelCall at "cancel_call",
    SetReady { resource, token, ready } => SetReady(SetReady) at "set_ready",
    SetDraining { resource, token, in_flight, within_ms as within } => SetDraining(SetDraining) at "set_draining",
}

record!(Numbered => Numbered at "numbered"; number, settled);

record!(Acquire => Acquire at "acquire"; requests, value, wait_ms as wait);

record!(Request => ResourceRequest at "acquire.requests"; resource, mode);

variants! {
    Mode => Mode { mode: mode::Mode } at "mode";
    Exclusive => Exclusive,
    Shared => Shared,
    Slot { of } => SlotOf at "mode.slot_of",
}

record!(Offer => Offer at "offer"; resource, token, to, length_ms as length);

variants! {
    Successor => Successor { successor: successor::Successor } at "successor";
    FirstWaiter => FirstWaiter,
    Labelled(label) => Label at "successor.label",
    Session(session) => Session,
}

needed!(Sequence, Op, Mode, Successor);
