//! Between the core's types and the messages, field by field.
//!
//! Both directions match every variant by name, so that a variant added on either side does not compile until it has its place
//! here. Going out cannot fail. Coming in checks everything that a type promises, and names the field that broke the promise.

mod change;
mod cluster;
mod command;
mod ending;
mod gap;
mod item;
mod operator;
mod query;
mod read;
mod refusal;
mod reply;
mod request;
mod view;

use leasehold_core::protocol::{Incarnation, MemberError, MemberId, check_address, check_member_name};
use leasehold_core::{Label, Millis, Nonce, Reason, RegisterKey, ResourceName, TextError, Token, Value};

use crate::error::FieldError;
use crate::proto as pb;

/// A type of the core that has a message.
pub trait Wire: Sized {
    /// The message.
    type Message;

    /// The message that says this.
    fn to_wire(&self) -> Self::Message;

    /// What a message says.
    ///
    /// # Errors
    /// When a field cannot be what it says; the error names it.
    fn from_wire(message: Self::Message) -> Result<Self, FieldError>;
}

/// Shorthand for what every check gives.
pub(crate) type Checked<T> = Result<T, FieldError>;

/// The content of a field that must be there.
pub(crate) fn present<M>(field: &'static str, message: Option<M>) -> Checked<M> {
    message.ok_or(FieldError::Absent { field })
}

fn needed<T: Wire>(field: &'static str, message: Option<T::Message>) -> Checked<T> {
    T::from_wire(present(field, message)?)
}

fn optional<T: Wire>(message: Option<T::Message>) -> Checked<Option<T>> {
    message.map(T::from_wire).transpose()
}

fn list<T: Wire>(messages: Vec<T::Message>) -> Checked<Vec<T>> {
    messages.into_iter().map(T::from_wire).collect()
}

fn to_list<T: Wire>(values: &[T]) -> Vec<T::Message> {
    values.iter().map(T::to_wire).collect()
}

fn name(field: &'static str, text: &str) -> Checked<ResourceName> {
    ResourceName::new(text).map_err(|why| FieldError::text(field, text, why))
}

fn label(field: &'static str, text: &str) -> Checked<Label> {
    Label::new(text).map_err(|why| FieldError::text(field, text, why))
}

fn reason(field: &'static str, text: &str) -> Checked<Reason> {
    Reason::new(text).map_err(|why| FieldError::text(field, text, why))
}

fn register_key(field: &'static str, text: &str) -> Checked<RegisterKey> {
    RegisterKey::new(text).map_err(|why| FieldError::text(field, text, why))
}

fn value(field: &'static str, bytes: Vec<u8>) -> Checked<Value> {
    Value::new(bytes).map_err(|why| FieldError::Value { field, why })
}

/// A text that is not one of the core's types, up to `limit` bytes.
fn bounded(field: &'static str, what: &'static str, text: String, limit: usize) -> Checked<String> {
    if text.len() > limit {
        let why = TextError::TooLong { what, bytes: text.len(), limit };
        return Err(FieldError::text(field, &text, why));
    }
    Ok(text)
}

fn nonce(field: &'static str, bytes: &[u8]) -> Checked<Nonce> {
    let expected = size_of::<Nonce>();
    bytes.try_into().map(Nonce).map_err(|_| FieldError::WrongLength { field, bytes: bytes.len(), expected })
}

/// The id of a member, which is never zero.
pub(crate) fn member_id(field: &'static str, id: u64) -> Checked<MemberId> {
    if id == 0 {
        return Err(FieldError::Member { field, why: MemberError::NoId });
    }
    Ok(MemberId(id))
}

pub(crate) fn member_name(field: &'static str, name: String) -> Checked<String> {
    check_member_name(&name).map_err(|why| FieldError::member(field, why))?;
    Ok(name)
}

pub(crate) fn address(field: &'static str, address: String) -> Checked<String> {
    check_address(&address).map_err(|why| FieldError::member(field, why))?;
    Ok(address)
}

pub(crate) fn incarnation(field: &'static str, bytes: &[u8]) -> Checked<Incarnation> {
    let expected = size_of::<Incarnation>();
    let wrong = |_| FieldError::WrongLength { field, bytes: bytes.len(), expected };
    bytes.try_into().map(|bytes| Incarnation(u128::from_be_bytes(bytes))).map_err(wrong)
}

/// The way out for an incarnation: in the order in which it is shown.
pub(crate) fn from_incarnation(incarnation: Incarnation) -> Vec<u8> {
    incarnation.0.to_be_bytes().to_vec()
}

/// A number that the program keeps in 16 bits.
pub(crate) fn to_u16(field: &'static str, value: u64) -> Checked<u16> {
    u16::try_from(value).map_err(|_| FieldError::TooGreat { field, value, limit: u16::MAX.into() })
}

/// A number that the program keeps in 32 bits.
pub(crate) fn to_u32(field: &'static str, value: u64) -> Checked<u32> {
    u32::try_from(value).map_err(|_| FieldError::TooGreat { field, value, limit: u32::MAX.into() })
}

/// A number that the program keeps in a machine word.
fn to_usize(field: &'static str, value: u64) -> Checked<usize> {
    usize::try_from(value).map_err(|_| FieldError::TooGreat { field, value, limit: from_usize(usize::MAX) })
}

/// The way out for numbers kept in a machine word.
fn from_usize(value: usize) -> u64 {
    u64::try_from(value).expect("no machine word is longer than 64 bits")
}

fn optional_token(token: Option<u64>) -> Option<Token> {
    token.map(Token::from_u64)
}

fn optional_millis(millis: Option<u64>) -> Option<Millis> {
    millis.map(Millis::new)
}

const fn nothing() -> pb::Nothing {
    pb::Nothing {}
}

/// An enum without contents, whose zero on the wire is refused.
macro_rules! named_values {
    ($core:ty => $wire:ident, $field:literal, $($variant:ident),+) => {
        impl $crate::convert::Wire for $core {
            type Message = i32;

            fn to_wire(&self) -> i32 {
                (match self {
                    $(Self::$variant => $crate::proto::$wire::$variant,)+
                })
                .into()
            }

            fn from_wire(value: i32) -> $crate::convert::Checked<Self> {
                match $crate::proto::$wire::try_from(value) {
                    $(Ok($crate::proto::$wire::$variant) => Ok(Self::$variant),)+
                    Ok($crate::proto::$wire::Unspecified) => Err($crate::FieldError::Unspecified { field: $field }),
                    Err(_) => Err($crate::FieldError::UnknownValue { field: $field, value }),
                }
            }
        }
    };
}
use named_values;
