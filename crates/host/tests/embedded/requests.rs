//! Requests that nobody honest would send: each gets a typed answer, and nothing is changed.

use std::io::Write;

use leasehold_core::protocol::{Failure, Request, RequestId, Response, ToClient};
use leasehold_core::{
    Answer, Attach, AttachNumber, ItemNumber, Millis, Nonce, Refusal, RenewalNumber, Reply, SessionId, Token,
};
use leasehold_wire::encode_client;

use crate::caller::{Caller, Member, resource, token_of};
use crate::place::serve;

const TTL: Millis = Millis::new(60_000);

fn renew(session: SessionId) -> Request {
    Request::Renew { session, number: RenewalNumber::new(1), seen: ItemNumber::NONE }
}

fn is_not_yours(response: &Response) -> bool {
    matches!(response, Response::Failed(Failure::NotYourSession { .. }))
}

#[test]
fn a_session_that_never_was_belongs_to_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let _server = serve(directory.path());
    let mut caller = Caller::new(directory.path());
    let before = caller.applied();
    let session = SessionId::from_u64(1_000_000);
    let mut member = Member { session, nonce: Nonce([7; 16]), attach: 1, command: 0, seen: ItemNumber::NONE };
    let attach = Attach { session, attach: AttachNumber::new(1), seen: ItemNumber::NONE };
    let requests =
        [renew(session), member.acquire("job", None), Request::Attach { attach, nonce: Nonce([7; 16]) }];
    for request in requests {
        let response = caller.ask(request);
        assert!(is_not_yours(&response), "{response:?}");
    }
    assert_eq!(caller.applied(), before, "the log has heard nothing of it");
    assert!(caller.lease("job").is_none());
}

#[test]
fn a_session_that_is_over_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let _server = serve(directory.path());
    let mut caller = Caller::new(directory.path());
    let mut member = caller.member(1, TTL);
    let close = member.command(leasehold_core::Op::Close);
    assert_eq!(caller.ask(close), Response::Reply(Reply::Closed));
    for request in [renew(member.session), member.acquire("job", None)] {
        let response = caller.ask(request);
        let ended = Refusal::SessionEnded { session: member.session };
        assert_eq!(response, Response::Reply(Reply::Refused(ended)));
    }
}

#[test]
fn a_session_of_somebody_else_is_not_to_be_had() {
    let directory = tempfile::tempdir().unwrap();
    let _server = serve(directory.path());
    let (mut owner, mut thief) = (Caller::new(directory.path()), Caller::new(directory.path()));
    let mut member = owner.member(1, TTL);
    let token = owner.take(&mut member, "job").token;
    let before = owner.applied();

    // All that can be learned or guessed, but not the nonce.
    let mut guessed =
        Member { session: member.session, nonce: Nonce([2; 16]), attach: 9, command: 1, seen: member.seen };
    let attach = Attach { session: member.session, attach: AttachNumber::new(9), seen: member.seen };
    let requests = [
        renew(member.session),
        guessed.release("job", token),
        Request::Attach { attach, nonce: guessed.nonce },
        guessed.command(leasehold_core::Op::Close),
    ];
    for request in requests {
        let response = thief.ask(request);
        assert!(is_not_yours(&response), "{response:?}");
    }
    assert_eq!(owner.applied(), before, "the log has heard nothing of it");
    assert_eq!(token_of(&thief.lease("job").unwrap()), token);
    // The owner's own streams go on as if nothing had been said.
    owner.take(&mut member, "another");
}

#[test]
fn a_lease_is_released_only_by_its_session_and_token() {
    let directory = tempfile::tempdir().unwrap();
    let _server = serve(directory.path());
    let (mut owner, mut other) = (Caller::new(directory.path()), Caller::new(directory.path()));
    let (mut member, mut stranger) = (owner.member(1, TTL), other.member(2, TTL));
    let token = owner.take(&mut member, "job").token;
    let wrong = Token::from_u64(token.get() - 1);
    let release = stranger.release("job", token);
    other.send(vec![release]);
    let answer = other.answer(&mut stranger);
    assert!(matches!(answer, Answer::Refused(Refusal::NotHolder { .. })), "{answer:?}");
    let release = member.release("job", wrong);
    owner.send(vec![release]);
    let answer = owner.answer(&mut member);
    assert!(matches!(answer, Answer::Refused(Refusal::NotHolder { .. })), "{answer:?}");
    assert_eq!(token_of(&owner.lease("job").unwrap()), token);
}

/// Names that the library would not let pass, written into the bytes of a good request.
#[test]
fn a_bad_name_is_answered_by_its_id_and_reaches_no_table() {
    let directory = tempfile::tempdir().unwrap();
    let _server = serve(directory.path());
    let mut caller = Caller::new(directory.path());
    let mut member = caller.member(1, TTL);
    let before = caller.applied();
    let bad: [&[u8]; 4] = [b"bad#name", b"bad\0name", b"bad\nname", b"bad\xffname"];
    for (id, name) in (500..).zip(bad) {
        let request = member.acquire("goodname", None);
        member.command -= 1;
        let mut bytes = Vec::new();
        encode_client(&[(RequestId(id), request)], &mut bytes).unwrap();
        let place = bytes.windows(8).position(|window| window == b"goodname").unwrap();
        bytes[place..place + 8].copy_from_slice(name);
        caller.stream.write_all(&bytes).unwrap();
        match caller.receive() {
            Some(ToClient::Response {
                id: answered,
                response: Response::Failed(Failure::BadRequest { why }),
            }) => {
                assert_eq!(answered, RequestId(id));
                println!("{why}");
            }
            other => panic!("{name:?}: {other:?}"),
        }
    }
    assert_eq!(caller.applied(), before, "the log has heard nothing of it");
    caller.take(&mut member, "goodname");
}

#[test]
fn frames_of_an_older_attachment_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let _server = serve(directory.path());
    let (mut first, mut second) = (Caller::new(directory.path()), Caller::new(directory.path()));
    let mut member = first.member(1, TTL);
    let old = member.acquire("job", None);
    member.command -= 1;
    member.attach(&mut second);
    let response = first.ask(old);
    assert!(matches!(response, Response::Reply(Reply::Refused(Refusal::OlderAttach { .. }))), "{response:?}");
    assert!(second.lease("job").is_none());
    let token = second.take(&mut member, "job").token;
    assert_eq!(second.lease("job").unwrap().resource, resource("job"));
    assert!(token > Token::from_u64(0));
}
