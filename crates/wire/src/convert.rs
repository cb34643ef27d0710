//! Between the core's types and the messages, field by field.
//!
//! Each type says once how its fields are called in its message, and both directions follow from that. They name every field and
//! every variant of both sides, so that one added on either does not compile until it has its place here. Going out cannot fail.
//! Coming in checks everything that a type promises, and names the field that broke the promise.

mod change;
mod cluster;
mod command;
mod ending;
mod field;
mod gap;
mod item;
mod operator;
mod query;
mod read;
mod refusal;
mod reply;
mod request;
mod view;

use crate::error::FieldError;

pub(crate) use field::{Field, bounded, boxed, member_name, needed, node_address, protocol_version};

/// A type that has a message.
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

/// The second, if it is given.
macro_rules! or {
    ($default:expr) => {
        $default
    };
    ($default:expr, $given:expr) => {
        $given
    };
}
pub(crate) use or;

/// A struct and its message, one of the caller's `pb`.
///
/// A field is named as in the message: `ttl_ms as ttl` is called `ttl` in the struct. `checked` names what checks a text or number
/// that has no type of its own. Errors call a field `at`, a dot and its name; or as its own `at` says.
macro_rules! record {
    (
        $core:ty => $message:ident at $at:literal;
        $($name:ident $(as $field:ident)? $(at $own:literal)? $(checked $check:ident)?),+ $(,)?
    ) => {
        impl $crate::convert::Wire for $core {
            type Message = pb::$message;

            fn to_wire(&self) -> pb::$message {
                let Self { $($($field:)? $name),+ } = self;
                pb::$message { $($name: $crate::convert::Field::to_field($name)),+ }
            }

            fn from_wire(message: pb::$message) -> $crate::convert::Checked<Self> {
                let pb::$message { $($name),+ } = message;
                $(
                    let $name = $crate::convert::or!($crate::convert::Field::from_field $(, $check)?)(
                        $crate::convert::or!(concat!($at, ".", stringify!($name)) $(, $own)?),
                        $name,
                    )?;
                )+
                Ok(Self { $($($field:)? $name),+ })
            }
        }
    };
}
pub(crate) use record;

/// An enum and its oneof, which is a message itself or stands alone in one. Both are of the caller's `pb`.
///
/// A variant that carries nothing goes as a message without fields, and one that carries a single thing as that:
/// `Taken { by } => TakenBy`. Where a message is named behind the variant, what is carried are its fields, as in `record!`. Variants that
/// are not so simple follow behind the others, both ways.
macro_rules! variants {
    (@to $value:expr, $module:ident::$oneof:ident; $(
        $variant:ident $(($one:ident))?
        $({ $($name:ident $(as $field:ident)? $(at $own:literal)? $(checked $check:ident)?),+ })?
        => $sent:ident $(($body:ident))? $(at $at:literal)?
    ),+ $(,)? $(; to { $($to:tt)+ } from { $($from:tt)+ })?) => {
        match $value {
            $(
                Self::$variant $(($one))? $({ $($($field:)? $name),+ })? => {
                    pb::$module::$oneof::$sent($crate::convert::variants!(
                        @content $($one)? $($($name)+)? $(; $body)?
                    ))
                }
            )+
            $($($to)+)?
        }
    };
    (@content) => {
        $crate::proto::Nothing {}
    };
    (@content $one:ident) => {
        $crate::convert::Field::to_field($one)
    };
    (@content $($name:ident)+; $body:ident) => {
        pb::$body { $($name: $crate::convert::Field::to_field($name)),+ }
    };

    (@from $message:expr, $module:ident::$oneof:ident; $(
        $variant:ident $(($one:ident))?
        $({ $($name:ident $(as $field:ident)? $(at $own:literal)? $(checked $check:ident)?),+ })?
        => $sent:ident $(($body:ident))? $(at $at:literal)?
    ),+ $(,)? $(; to { $($to:tt)+ } from { $($from:tt)+ })?) => {
        match $message {
            $(
                pb::$module::$oneof::$sent(content) => $crate::convert::variants!(
                    @variant content;
                    $variant $(($one))? $({ $($name $(as $field)? $(at $own)? $(checked $check)?),+ })?
                    => $sent $(($body))? $(at $at)?
                ),
            )+
            $($($from)+)?
        }
    };
    (@variant $content:ident; $variant:ident => $sent:ident) => {{
        let $crate::proto::Nothing {} = $content;
        Self::$variant
    }};
    (@variant $content:ident; $variant:ident($one:ident) => $sent:ident $(at $at:literal)?) => {
        Self::$variant($crate::convert::Field::from_field(
            $crate::convert::or!(stringify!($sent) $(, $at)?),
            $content,
        )?)
    };
    (@variant $content:ident; $variant:ident($one:ident) => $sent:ident($body:ident) $(at $at:literal)?) => {{
        let pb::$body { $one } = $content;
        Self::$variant($crate::convert::Field::from_field(
            $crate::convert::or!(stringify!($sent) $(, $at)?),
            $one,
        )?)
    }};
    (
        @variant $content:ident;
        $variant:ident { $name:ident $(as $field:ident)? $(checked $check:ident)? } => $sent:ident $(at $at:literal)?
    ) => {{
        let $name = $crate::convert::or!($crate::convert::Field::from_field $(, $check)?)(
            $crate::convert::or!(stringify!($sent) $(, $at)?),
            $content,
        )?;
        Self::$variant { $($field:)? $name }
    }};
    (
        @variant $content:ident;
        $variant:ident { $($name:ident $(as $field:ident)? $(at $own:literal)? $(checked $check:ident)?),+ }
        => $sent:ident($body:ident) at $at:literal
    ) => {{
        let pb::$body { $($name),+ } = $content;
        $(
            let $name = $crate::convert::or!($crate::convert::Field::from_field $(, $check)?)(
                $crate::convert::or!(concat!($at, ".", stringify!($name)) $(, $own)?),
                $name,
            )?;
        )+
        Self::$variant { $($($field:)? $name),+ }
    }};

    ($core:ty => $message:ident { $oneof_field:ident: $module:ident::$oneof:ident } at $at:literal; $($variants:tt)+) => {
        impl $crate::convert::Wire for $core {
            type Message = pb::$message;

            fn to_wire(&self) -> pb::$message {
                let content = $crate::convert::variants!(@to self, $module::$oneof; $($variants)+);
                pb::$message { $oneof_field: Some(content) }
            }

            fn from_wire(message: pb::$message) -> $crate::convert::Checked<Self> {
                let pb::$message { $oneof_field } = message;
                let content = $crate::convert::present($at, $oneof_field)?;
                Ok($crate::convert::variants!(@from content, $module::$oneof; $($variants)+))
            }
        }
    };
    ($core:ty => $module:ident::$oneof:ident; $($variants:tt)+) => {
        impl $crate::convert::Wire for $core {
            type Message = pb::$module::$oneof;

            fn to_wire(&self) -> pb::$module::$oneof {
                $crate::convert::variants!(@to self, $module::$oneof; $($variants)+)
            }

            fn from_wire(message: pb::$module::$oneof) -> $crate::convert::Checked<Self> {
                Ok($crate::convert::variants!(@from message, $module::$oneof; $($variants)+))
            }
        }
    };
}
pub(crate) use variants;

/// An enum without contents, whose zero on the wire is refused.
macro_rules! named_values {
    ($core:ty => $wire:ident, $field:literal, $($variant:ident),+) => {
        impl $crate::convert::Wire for $core {
            type Message = i32;

            fn to_wire(&self) -> i32 {
                (match self {
                    $(Self::$variant => pb::$wire::$variant,)+
                })
                .into()
            }

            fn from_wire(value: i32) -> $crate::convert::Checked<Self> {
                match pb::$wire::try_from(value) {
                    $(Ok(pb::$wire::$variant) => Ok(Self::$variant),)+
                    Ok(pb::$wire::Unspecified) => Err($crate::FieldError::Unspecified { field: $field }),
                    Err(_) => Err($crate::FieldError::UnknownValue { field: $field, value }),
                }
            }
        }
    };
}
pub(crate) use named_values;
