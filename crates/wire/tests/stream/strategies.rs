//! Every request and every message of the service, drawn at random.
//!
//! Sizes stay small: what happens at the limits is tried on its own. Numbers are drawn from the whole range, with the edges often.
//! Strategies are boxed: as one type each they nest so deeply that they take minutes to compile and more stack than a test has.

pub(crate) mod changes;
pub(crate) mod client;
pub(crate) mod cluster;
pub(crate) mod items;
pub(crate) mod peer;
pub(crate) mod server;

use leasehold_core::protocol::RequestId;
use leasehold_core::{
    AttachNumber, CallNumber, CommandNumber, ItemNumber, Label, Millis, Mode, Nonce, Reason, RegisterKey,
    RenewalNumber, ResourceName, Revision, SessionId, Successor, Token, Value,
};
use proptest::prelude::*;

pub(crate) fn number() -> BoxedStrategy<u64> {
    prop_oneof![Just(0), Just(1), Just(127), Just(128), Just(u64::MAX), any::<u64>()].boxed()
}

pub(crate) fn small() -> BoxedStrategy<u32> {
    prop_oneof![Just(0), Just(1), Just(u32::MAX), any::<u32>()].boxed()
}

pub(crate) fn size() -> BoxedStrategy<usize> {
    number().prop_map(|n| usize::try_from(n).unwrap_or(usize::MAX)).boxed()
}

pub(crate) fn request_id() -> BoxedStrategy<RequestId> {
    number().prop_map(RequestId).boxed()
}

pub(crate) fn token() -> BoxedStrategy<Token> {
    number().prop_map(|number| Token::from_u64(number & Token::MAX.get())).boxed()
}

pub(crate) fn session() -> BoxedStrategy<SessionId> {
    number().prop_map(SessionId::from_u64).boxed()
}

pub(crate) fn revision() -> BoxedStrategy<Revision> {
    number().prop_map(Revision::new).boxed()
}

pub(crate) fn millis() -> BoxedStrategy<Millis> {
    number().prop_map(Millis::new).boxed()
}

pub(crate) fn call_number() -> BoxedStrategy<CallNumber> {
    number().prop_map(CallNumber::new).boxed()
}

pub(crate) fn command_number() -> BoxedStrategy<CommandNumber> {
    number().prop_map(CommandNumber::new).boxed()
}

pub(crate) fn item_number() -> BoxedStrategy<ItemNumber> {
    number().prop_map(ItemNumber::new).boxed()
}

pub(crate) fn renewal_number() -> BoxedStrategy<RenewalNumber> {
    number().prop_map(RenewalNumber::new).boxed()
}

pub(crate) fn attach_number() -> BoxedStrategy<AttachNumber> {
    number().prop_map(AttachNumber::new).boxed()
}

pub(crate) fn nonce() -> BoxedStrategy<Nonce> {
    any::<[u8; 16]>().prop_map(Nonce).boxed()
}

pub(crate) fn name() -> BoxedStrategy<ResourceName> {
    "[a-z/äß漢🦀 .-]{1,12}"
        .prop_map(|text| ResourceName::new(&text).expect("these characters are allowed in a name"))
        .boxed()
}

pub(crate) fn label() -> BoxedStrategy<Label> {
    "[a-z#漢 .-]{0,12}"
        .prop_map(|text| Label::new(&text).expect("these characters are allowed in a label"))
        .boxed()
}

pub(crate) fn reason() -> BoxedStrategy<Reason> {
    "[a-z#漢 .-]{0,12}"
        .prop_map(|text| Reason::new(&text).expect("these characters are allowed in a reason"))
        .boxed()
}

pub(crate) fn register_key() -> BoxedStrategy<RegisterKey> {
    "[a-z#漢 .-]{1,12}"
        .prop_map(|text| RegisterKey::new(&text).expect("these characters are allowed in a key"))
        .boxed()
}

pub(crate) fn value() -> BoxedStrategy<Value> {
    prop::collection::vec(any::<u8>(), 0..16)
        .prop_map(|bytes| Value::new(bytes).expect("a few bytes are a value"))
        .boxed()
}

pub(crate) fn mode() -> BoxedStrategy<Mode> {
    prop_oneof![Just(Mode::Exclusive), Just(Mode::Shared), small().prop_map(|of| Mode::Slot { of })].boxed()
}

pub(crate) fn successor() -> BoxedStrategy<Successor> {
    prop_oneof![
        Just(Successor::FirstWaiter),
        label().prop_map(Successor::Labelled),
        session().prop_map(Successor::Session),
    ]
    .boxed()
}

pub(crate) fn few<S: Strategy + 'static>(one: S) -> BoxedStrategy<Vec<S::Value>> {
    prop::collection::vec(one, 0..4).boxed()
}
