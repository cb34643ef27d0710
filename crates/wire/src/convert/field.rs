//! Between one field of a message and what the core keeps of it: numbers, texts, bytes, and messages inside of messages.

use leasehold_core::limits::MAX_NAME_BYTES;
use leasehold_core::protocol::{
    Incarnation, MemberError, MemberId, RequestId, check_address, check_member_name,
};
use leasehold_core::{
    AttachNumber, CallNumber, CommandNumber, Drift, ItemNumber, Label, Millis, Nonce, Reason, RegisterKey,
    RenewalNumber, ResourceName, Revision, SessionId, TextError, Token, Value,
};
use prost::bytes::Bytes;

use super::{Checked, Wire, present};
use crate::error::FieldError;

/// What one field of a message, with a content of this type, says.
pub(crate) trait Field<M>: Sized {
    /// What goes into the field.
    fn to_field(&self) -> M;

    /// What the field called `at` says.
    fn from_field(at: &'static str, content: M) -> Checked<Self>;
}

/// A message names its own fields.
impl<T: Wire> Field<T::Message> for T {
    fn to_field(&self) -> T::Message {
        self.to_wire()
    }

    fn from_field(_: &'static str, content: T::Message) -> Checked<Self> {
        T::from_wire(content)
    }
}

impl<M, T: Field<M>> Field<Option<M>> for Option<T> {
    fn to_field(&self) -> Option<M> {
        self.as_ref().map(T::to_field)
    }

    fn from_field(at: &'static str, content: Option<M>) -> Checked<Self> {
        content.map(|content| T::from_field(at, content)).transpose()
    }
}

impl<M, T: Field<M>> Field<Vec<M>> for Vec<T> {
    fn to_field(&self) -> Vec<M> {
        self.iter().map(T::to_field).collect()
    }

    fn from_field(at: &'static str, content: Vec<M>) -> Checked<Self> {
        content.into_iter().map(|content| T::from_field(at, content)).collect()
    }
}

/// Messages that the messages around them cannot do without, although every message can be absent.
macro_rules! needed {
    ($($core:ty),+ $(,)?) => {$(
        impl $crate::convert::Field<Option<<$core as $crate::convert::Wire>::Message>> for $core {
            fn to_field(&self) -> Option<<Self as $crate::convert::Wire>::Message> {
                Some($crate::convert::Wire::to_wire(self))
            }

            fn from_field(
                at: &'static str,
                content: Option<<Self as $crate::convert::Wire>::Message>,
            ) -> $crate::convert::Checked<Self> {
                $crate::convert::Wire::from_wire($crate::convert::present(at, content)?)
            }
        }
    )+};
}
pub(crate) use needed;

/// What the core keeps in a box.
macro_rules! boxed {
    ($core:ty) => {
        impl $crate::convert::Field<<$core as $crate::convert::Wire>::Message> for Box<$core> {
            fn to_field(&self) -> <$core as $crate::convert::Wire>::Message {
                $crate::convert::Wire::to_wire(&**self)
            }

            fn from_field(
                _: &'static str,
                content: <$core as $crate::convert::Wire>::Message,
            ) -> $crate::convert::Checked<Self> {
                <$core as $crate::convert::Wire>::from_wire(content).map(Box::new)
            }
        }
    };
}
pub(crate) use boxed;

/// What the core keeps as it travels.
macro_rules! same {
    ($($type:ty),+) => {$(
        impl Field<$type> for $type {
            #[inline]
            fn to_field(&self) -> $type {
                <$type>::clone(self)
            }

            #[inline]
            fn from_field(_: &'static str, content: $type) -> Checked<Self> {
                Ok(content)
            }
        }
    )+};
}

same!(bool, i64, u32, u64, String, Bytes);

/// Numbers that are kept in fewer bits than they travel in.
macro_rules! narrow {
    ($($number:ty),+) => {$(
        impl Field<u64> for $number {
            #[inline]
            fn to_field(&self) -> u64 {
                *self as u64
            }

            #[inline]
            fn from_field(at: &'static str, content: u64) -> Checked<Self> {
                let limit = <$number>::MAX as u64;
                Self::try_from(content).map_err(|_| FieldError::TooGreat { field: at, value: content, limit })
            }
        }
    )+};
}

narrow!(u16, u32, usize);

/// Numbers of the core, each with how it is made.
macro_rules! numbers {
    ($($number:ident::$new:ident),+ $(,)?) => {$(
        impl Field<u64> for $number {
            #[inline]
            fn to_field(&self) -> u64 {
                self.get()
            }

            #[inline]
            fn from_field(_: &'static str, content: u64) -> Checked<Self> {
                Ok(Self::$new(content))
            }
        }
    )+};
}

numbers!(
    AttachNumber::new,
    CallNumber::new,
    CommandNumber::new,
    ItemNumber::new,
    Millis::new,
    RenewalNumber::new,
    Revision::new,
    SessionId::from_u64,
);

impl Field<u64> for Token {
    #[inline]
    fn to_field(&self) -> u64 {
        self.get()
    }

    #[inline]
    fn from_field(at: &'static str, content: u64) -> Checked<Self> {
        let (token, limit) = (Self::from_u64(content), Self::MAX.get());
        if token > Self::MAX {
            return Err(FieldError::TooGreat { field: at, value: content, limit });
        }
        Ok(token)
    }
}

impl Field<u64> for RequestId {
    #[inline]
    fn to_field(&self) -> u64 {
        self.0
    }

    #[inline]
    fn from_field(_: &'static str, content: u64) -> Checked<Self> {
        Ok(Self(content))
    }
}

impl Field<u64> for Drift {
    fn to_field(&self) -> u64 {
        self.ppm().into()
    }

    fn from_field(at: &'static str, content: u64) -> Checked<Self> {
        let drift = u32::try_from(content).ok().and_then(Self::from_ppm);
        let limit = Self::MAX.ppm().into();
        drift.ok_or(FieldError::TooGreat { field: at, value: content, limit })
    }
}

/// The id of a member is never zero.
impl Field<u64> for MemberId {
    fn to_field(&self) -> u64 {
        self.0
    }

    fn from_field(at: &'static str, content: u64) -> Checked<Self> {
        if content == 0 {
            return Err(FieldError::Member { field: at, why: MemberError::NoId });
        }
        Ok(Self(content))
    }
}

macro_rules! texts {
    ($($text:ty),+) => {$(
        impl Field<String> for $text {
            fn to_field(&self) -> String {
                self.as_str().to_owned()
            }

            fn from_field(at: &'static str, content: String) -> Checked<Self> {
                Self::new(&content).map_err(|why| FieldError::text(at, &content, why))
            }
        }
    )+};
}

texts!(Label, Reason, RegisterKey, ResourceName);

impl Field<Vec<u8>> for Value {
    fn to_field(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn from_field(at: &'static str, content: Vec<u8>) -> Checked<Self> {
        Self::new(content).map_err(|why| FieldError::Value { field: at, why })
    }
}

impl Field<Vec<u8>> for Nonce {
    fn to_field(&self) -> Vec<u8> {
        self.0.to_vec()
    }

    fn from_field(at: &'static str, content: Vec<u8>) -> Checked<Self> {
        array(at, &content).map(Self)
    }
}

/// In the order in which it is shown.
impl Field<Vec<u8>> for Incarnation {
    fn to_field(&self) -> Vec<u8> {
        self.0.to_be_bytes().to_vec()
    }

    fn from_field(at: &'static str, content: Vec<u8>) -> Checked<Self> {
        array(at, &content).map(u128::from_be_bytes).map(Self)
    }
}

impl Field<Bytes> for Incarnation {
    fn to_field(&self) -> Bytes {
        Bytes::copy_from_slice(&self.0.to_be_bytes())
    }

    fn from_field(at: &'static str, content: Bytes) -> Checked<Self> {
        array(at, &content).map(u128::from_be_bytes).map(Self)
    }
}

fn array<const N: usize>(at: &'static str, bytes: &[u8]) -> Checked<[u8; N]> {
    bytes.try_into().map_err(|_| FieldError::WrongLength { field: at, bytes: bytes.len(), expected: N })
}

/// A version of a protocol, which is never zero.
pub(crate) fn protocol_version(at: &'static str, number: u64) -> Checked<u32> {
    present(at, Some(u32::from_field(at, number)?).filter(|version| *version > 0))
}

pub(crate) fn member_name(at: &'static str, name: String) -> Checked<String> {
    check_member_name(&name).map_err(|why| FieldError::member(at, why))?;
    Ok(name)
}

pub(super) fn some_member_name(at: &'static str, name: Option<String>) -> Checked<Option<String>> {
    name.map(|name| member_name(at, name)).transpose()
}

pub(crate) fn node_address(at: &'static str, address: String) -> Checked<String> {
    check_address(&address).map_err(|why| FieldError::member(at, why))?;
    Ok(address)
}

/// The beginning of a name: every text as long as a name may be.
pub(super) fn name_prefix(at: &'static str, text: String) -> Checked<String> {
    bounded(at, "prefix", text, MAX_NAME_BYTES)
}

/// A text that is not one of the core's types, up to `limit` bytes.
pub(crate) fn bounded(at: &'static str, what: &'static str, text: String, limit: usize) -> Checked<String> {
    if text.len() > limit {
        let why = TextError::TooLong { what, bytes: text.len(), limit };
        return Err(FieldError::text(at, &text, why));
    }
    Ok(text)
}
