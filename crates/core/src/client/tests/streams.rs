//! Facts about opening, attaching and the two streams.

use alloc::vec;
use core::time::Duration;

use crate::answer::{Answer, ItemKind, Opened, Refusal, Renewed};
use crate::client::{Event, Frame, Incoming, Input, LeaseState, Outcome, Output, SessionEnd};
use crate::command::Sequence;
use crate::id::{AttachNumber, CommandNumber, ItemNumber, Nonce, RenewalNumber, SessionId};
use crate::time::{Drift, Millis};

use super::play::*;

#[test]
fn an_open_is_repeated_and_counts_from_its_first_sending() {
    let mut play = Play::new();
    assert_eq!(play.opens(), 1);
    play.poll(399);
    assert_eq!(play.opens(), 1);
    play.poll(400);
    assert_eq!(play.opens(), 2);
    play.receive(opened(NONCE), 500);
    play.receive(attached(1, 0, 0), 500);
    play.submit(acquire(None), 500);
    play.answer(1, Answer::Granted(granted()), 500);
    assert_eq!(play.machine.state(TOKEN, at(500)), Some(LeaseState::Held { until: at(9_000) }));
}

#[test]
fn a_nonce_is_given_up_when_its_session_would_have_lapsed() {
    let mut play = Play::new();
    play.poll(8_999);
    assert!(play.others.iter().all(|output| *output == Output::Reconnect));
    play.others.clear();
    play.poll(9_000);
    assert_eq!(play.others, [Output::NeedNonce]);
    play.frames.clear();
    play.input(Input::Nonce(Nonce([2; 16])), 9_001);
    assert_eq!(play.opens(), 1);
    // The answer to the old nonce is late: that session is older than the new nonce.
    play.receive(opened(NONCE), 9_002);
    assert_eq!(play.machine.session(), None);
    play.receive(opened(Nonce([2; 16])), 9_003);
    assert_eq!(play.machine.session(), Some(SESSION));
}

#[test]
fn a_service_that_trusts_clocks_too_far_is_refused() {
    let mut play = Play::new();
    let drift = Drift::from_ppm(999).unwrap();
    let opened = Opened { session: SESSION, ttl: Millis::new(10_000), drift, repeated: false };
    play.receive(Incoming::Opened { nonce: NONCE, opened }, 10);
    let why = SessionEnd::DriftTooSmall { service: drift, own: Drift::DEFAULT };
    assert_eq!(play.events, [Event::SessionEnded { why }]);
}

#[test]
fn commands_wait_until_the_connection_is_attached() {
    let mut play = Play::new();
    play.submit(acquire(None), 0);
    play.receive(opened(NONCE), 10);
    assert_eq!(play.attaches(), [(1, 0)]);
    assert!(play.commands().is_empty());
    play.receive(attached(1, 0, 0), 20);
    assert_eq!(play.commands(), [(1, acquire(None))]);
}

#[test]
fn after_a_new_attachment_only_what_was_not_applied_is_sent_again_under_its_number() {
    let mut play = Play::attached();
    for _ in 0..3 {
        play.submit(acquire(None), 10);
    }
    play.input(Input::Disconnected, 20);
    play.input(Input::Connected, 30);
    assert_eq!(play.attaches(), [(2, 0)]);
    play.frames.clear();
    play.receive(attached(2, 2, 0), 40);
    assert_eq!(play.commands(), [(3, acquire(None))]);
}

#[test]
fn the_answer_to_an_older_attach_is_dropped() {
    let mut play = Play::attached();
    play.submit(acquire(None), 10);
    play.input(Input::Connected, 20);
    play.frames.clear();
    play.receive(attached(1, 0, 0), 30);
    assert!(play.commands().is_empty());
}

#[test]
fn an_item_that_comes_twice_is_processed_once() {
    let mut play = Play::attached();
    play.submit(acquire(None), 0);
    play.answer(1, Answer::Granted(granted()), 10);
    play.receive(item(1, ItemKind::Answer { command: CommandNumber::new(1), answer: Answer::Cancelled }), 11);
    assert_eq!(play.resolved(), [(1, Outcome::Answered(Answer::Granted(granted())))]);
}

#[test]
fn a_gap_is_not_processed_and_attaches_again() {
    let mut play = Play::waiting();
    play.receive(item(3, wait_granted()), 50);
    assert!(play.events.is_empty());
    assert_eq!(play.attaches(), [(2, 1)]);
}

#[test]
fn a_gap_in_the_commands_attaches_again() {
    let mut play = Play::attached();
    let (number, expected) = (CommandNumber::new(1), CommandNumber::new(2));
    play.submit(acquire(None), 10);
    play.refuse(Refusal::CommandGap { number, expected }, 20);
    assert_eq!(play.attaches(), [(2, 0)]);
}

#[test]
fn an_attachment_that_was_overtaken_takes_a_higher_number() {
    let mut play = Play::attached();
    let (attach, current) = (AttachNumber::new(1), AttachNumber::new(7));
    play.refuse(Refusal::OlderAttach { attach, current }, 20);
    assert_eq!(play.attaches(), [(8, 0)]);
}

#[test]
fn refused_frames_of_an_own_older_attachment_change_nothing() {
    let mut play = Play::attached();
    play.input(Input::Connected, 10);
    play.receive(attached(2, 0, 0), 20);
    play.frames.clear();
    let (attach, current) = (AttachNumber::new(1), AttachNumber::new(2));
    play.refuse(Refusal::OlderAttach { attach, current }, 30);
    assert!(play.frames.is_empty());
}

#[test]
fn an_unanswered_command_attaches_again_with_growing_pauses() {
    let mut play = Play::attached();
    play.submit(acquire(None), 1_000);
    let mut times = vec![];
    for now in 1_000..3_300 {
        play.frames.clear();
        play.poll(now);
        if !play.attaches().is_empty() {
            times.push(now);
        }
    }
    assert_eq!(times, [1_400, 2_200]);
}

#[test]
fn every_frame_says_what_was_seen() {
    let mut play = Play::holding();
    play.submit(release(), 10);
    play.poll(3_333);
    play.input(Input::Connected, 3_400);
    let seen = |frame: &Frame| match frame {
        Frame::Attach { attach, .. } => attach.seen.get(),
        Frame::Renew { seen, .. } => seen.get(),
        Frame::Command(command) => match command.sequence {
            Sequence::Streamed { seen, .. } => seen.get(),
            Sequence::Plain | Sequence::Numbered(_) => 0,
        },
        Frame::Open(_) => 0,
    };
    assert!(play.frames.len() >= 3);
    assert!(play.frames.iter().all(|frame| seen(frame) == 1), "{:?}", play.frames);
}

#[test]
fn messages_of_another_session_are_dropped() {
    let mut play = Play::holding();
    play.poll(3_333);
    let other = SessionId::from_u64(6);
    let renewed = Renewed { number: RenewalNumber::new(1), after: ItemNumber::NONE, holdings: None };
    play.receive(Incoming::Renewed { session: other, renewed }, 3_400);
    assert_eq!(play.machine.lease(TOKEN).unwrap().until(), at(9_000));
    play.receive(
        Incoming::Refused { session: other, refusal: Refusal::SessionEnded { session: other } },
        3_410,
    );
    assert_eq!(play.machine.session(), Some(SESSION));
}

#[test]
fn a_service_that_was_set_back_ends_the_session() {
    for (last_command, last_item) in [(1, 0), (0, 1), (2, 1)] {
        let mut play = Play::holding();
        play.input(Input::Connected, 10);
        play.receive(attached(2, last_command, last_item), 20);
        assert_eq!(play.events.last(), Some(&Event::SessionEnded { why: SessionEnd::SetBack }));
    }
}

#[test]
fn a_silent_connection_is_given_up_once() {
    let mut play = Play::attached();
    for now in 0..6_000 {
        play.poll(now);
    }
    assert_eq!(play.others, [Output::Reconnect]);
    play.others.clear();
    play.input(Input::Connected, 6_000);
    play.receive(attached(2, 0, 0), 6_001);
    for now in 6_001..7_000 {
        play.poll(now);
        play.receive(attached(1, 0, 0), now);
    }
    assert!(play.others.is_empty(), "whatever is heard breaks the silence");
}

/// There to find: one session that hears nothing for a while and takes the connection from all others that do.
#[test]
fn a_connection_on_which_others_are_heard_is_not_given_up() {
    let mut play = Play::attached();
    for now in 0..6_000 {
        play.input(Input::HeardOnConnection(at(now.min(3_500))), now);
        let is_silent = now >= 3_500 + 1_200;
        assert_eq!(play.others, vec![Output::Reconnect; usize::from(is_silent)], "{now}");
    }
}

#[test]
fn the_machine_sleeps_until_it_has_something_to_do() {
    let mut play = Play::holding();
    assert_eq!(play.machine.next_wake(at(1_000)), Some(Duration::from_millis(2_333)));
    play.machine.submit(release()).unwrap();
    assert_eq!(play.machine.next_wake(at(1_000)), Some(Duration::ZERO));
    play.poll(1_000);
    assert_eq!(play.machine.next_wake(at(1_000)), Some(Duration::from_millis(400)));
}
