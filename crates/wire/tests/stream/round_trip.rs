//! What goes in comes out, every variant of it.

use std::collections::BTreeSet;
use std::fmt::Debug;

use leasehold_core::answer::Reply;
use leasehold_core::protocol::{ReadAnswer, Request, RequestId, Response, ToClient};
use leasehold_core::{Item, ItemNumber, Nonce, Revision, Sequence, SessionCommand, SessionId};
use leasehold_wire::{FrameReader, decode_client_frame, decode_server_frame, encode_client, encode_server};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::strategies::{changes, client, cluster, items, peer, server};

/// The one frame in `bytes`, which must hold nothing else.
pub(crate) fn only_frame(bytes: &[u8]) -> Vec<u8> {
    let mut reader = FrameReader::new();
    reader.push(bytes);
    let frame =
        reader.next_frame().expect("the frame is within the limit").expect("the frame is whole").to_vec();
    reader.finish().expect("nothing stands behind the frame");
    frame
}

fn to_service(requests: &[(RequestId, Request)]) -> Vec<(RequestId, Result<Request, String>)> {
    let mut bytes = Vec::new();
    encode_client(requests, &mut bytes).expect("a few small requests fit a frame");
    decode_client_frame(&only_frame(&bytes)).expect("what was encoded can be decoded")
}

fn to_service_alone(request: Request) -> Result<Request, String> {
    to_service(&[(RequestId(1), request)]).remove(0).1
}

fn to_client(messages: &[ToClient]) -> Vec<ToClient> {
    let mut bytes = Vec::new();
    encode_server(messages, &mut bytes).expect("a few small messages fit a frame");
    decode_server_frame(&only_frame(&bytes)).expect("what was encoded can be decoded")
}

fn response(response: Response) -> ToClient {
    ToClient::Response { id: RequestId(1), response }
}

proptest! {
    #[test]
    fn requests(requests in client::requests()) {
        let expected: Vec<_> = requests.iter().cloned().map(|(id, request)| (id, Ok(request))).collect();
        prop_assert_eq!(to_service(&requests), expected);
    }

    #[test]
    fn commands(op in client::op()) {
        let command = SessionCommand { session: SessionId::from_u64(3), sequence: Sequence::Plain, op };
        prop_assert_eq!(to_service_alone(Request::Command(command.clone())), Ok(Request::Command(command)));
    }

    #[test]
    fn plain_requests(plain in client::plain()) {
        let request = Request::Plain { session: SessionId::from_u64(3), nonce: Nonce([9; 16]), plain };
        prop_assert_eq!(to_service_alone(request.clone()), Ok(request));
    }

    #[test]
    fn watches(watch in client::watch()) {
        let request = Request::Watch(watch);
        prop_assert_eq!(to_service_alone(request.clone()), Ok(request));
    }

    #[test]
    fn operators(operator in client::operator()) {
        let request = Request::Operator(operator);
        prop_assert_eq!(to_service_alone(request.clone()), Ok(request));
    }

    #[test]
    fn commands_to_the_nodes(command in cluster::command()) {
        let request = Request::Cluster(command);
        prop_assert_eq!(to_service_alone(request.clone()), Ok(request));
    }

    #[test]
    fn answers_of_the_nodes(reply in cluster::reply(), view in cluster::view()) {
        let revision = Revision::new(5);
        let read = Response::Read { revision, answer: ReadAnswer::Cluster(view) };
        let messages = [response(Response::Cluster(reply)), response(read)];
        prop_assert_eq!(to_client(&messages), messages);
    }

    #[test]
    fn queries(query in client::query()) {
        let request = Request::Read(query);
        prop_assert_eq!(to_service_alone(request.clone()), Ok(request));
    }

    #[test]
    fn messages_of_the_service(messages in server::messages()) {
        prop_assert_eq!(to_client(&messages), messages);
    }

    #[test]
    fn refusals(refusal in items::refusal()) {
        let message = response(Response::Reply(Reply::Refused(refusal)));
        prop_assert_eq!(to_client(std::slice::from_ref(&message)), [message]);
    }

    #[test]
    fn replies(reply in server::reply()) {
        let message = response(Response::Reply(reply));
        prop_assert_eq!(to_client(std::slice::from_ref(&message)), [message]);
    }

    #[test]
    fn answers_to_reads(answer in server::read_answer()) {
        let message = response(Response::Read { revision: Revision::new(5), answer });
        prop_assert_eq!(to_client(std::slice::from_ref(&message)), [message]);
    }

    #[test]
    fn items(kind in items::item_kind()) {
        let item = Item { number: ItemNumber::new(7), kind };
        let message = ToClient::Items { session: SessionId::from_u64(3), items: vec![item] };
        prop_assert_eq!(to_client(std::slice::from_ref(&message)), [message]);
    }

    #[test]
    fn changes(changes in changes::changes(), more: bool) {
        let message = ToClient::Watched { watch: RequestId(1), changes, more };
        prop_assert_eq!(to_client(std::slice::from_ref(&message)), [message]);
    }

    #[test]
    fn several_frames_in_one_buffer_stay_apart(first in client::requests(), second in client::requests()) {
        let mut bytes = Vec::new();
        encode_client(&first, &mut bytes).unwrap();
        encode_client(&second, &mut bytes).unwrap();
        let mut reader = FrameReader::new();
        reader.push(&bytes);
        let mut taken = Vec::new();
        while let Some(frame) = reader.next_frame().unwrap() {
            taken.push(decode_client_frame(frame).unwrap());
        }
        prop_assert_eq!(taken, [to_service(&first), to_service(&second)]);
    }
}

/// The round trips are worth what their strategies draw, so each must draw every variant there is. A variant's name is the
/// beginning of its debug text.
#[test]
fn every_variant_is_drawn() {
    assert_variants(client::request(), 10);
    assert_variants(client::op(), 11);
    assert_variants(client::plain(), 2);
    assert_variants(client::operator(), 4);
    assert_variants(client::query(), 10);
    assert_variants(server::message(), 4);
    assert_variants(server::reply(), 17);
    assert_variants(server::response(), 4);
    assert_variants(server::read_answer(), 10);
    assert_variants(server::failure(), 8);
    assert_variants(changes::change(), 8);
    assert_variants(items::item_kind(), 8);
    assert_variants(items::wait_ending(), 4);
    assert_variants(items::answer(), 12);
    assert_variants(items::ending(), 9);
    assert_variants(items::unavailable(), 6);
    assert_variants(items::refusal(), 25);
    assert_variants(items::bad_request(), 6);
    assert_variants(items::limited_thing(), 7);
    assert_variants(cluster::command(), 4);
    assert_variants(cluster::reply(), 3);
    assert_variants(cluster::refusal(), 12);
    assert_variants(cluster::role(), 2);
    assert_variants(peer::message(), 10);
    assert_variants(peer::refusal(), 5);
}

fn assert_variants<S: Strategy<Value: Debug>>(strategy: S, expected: usize) {
    let mut runner = TestRunner::deterministic();
    let drawn: BTreeSet<String> = (0..400)
        .map(|_| strategy.new_tree(&mut runner).expect("these strategies refuse nothing").current())
        .map(|value| {
            format!("{value:?}").split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
        })
        .collect();
    assert_eq!(drawn.len(), expected, "{drawn:?}");
}
