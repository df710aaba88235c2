//! The tables of messages: `messages!` and `record!` declare each message and field once, for all
//! formats.
//!
//! ```text
//! messages! {
//!     /// Docs of the enum.
//!     pub enum ServerMessage<'a owned>, kinds Kind {
//!         /// Docs of a message: its kind in `packed`, its `type` in trees, its struct and variant,
//!         /// with a lifetime if a field borrows. The struct may derive a trait.
//!         #[derive(Default)]
//!         0x48 patch Patch<'a> {
//!             /// Docs of a field: its name, its type, and, where it is not the type's own
//!             /// `Field`, the `Coding` that writes and reads it. A coding may name fields above it.
//!             version: u64 as Since(base),
//!             /// A name in trees that is not the field's stands in parentheses.
//!             body (ops): Cow<'a, [u8]> as Rest,
//!         },
//!         /// A message whose struct is declared as a record, and read by a function of its own.
//!         0x01 hello Hello<'a> by Hello::decode,
//!         /// A message without fields.
//!         0x0d goodbye Goodbye {},
//!     }
//! }
//! ```
//!
//! Fields are written in the order of the table, and all are public. `record!` declares a struct
//! within a message with the same grammar; the lifetime in front of it is that of the bytes it is
//! read from. `owned` gives structs that borrow the methods `into_owned` and `to_static`;
//! `borrowed` does not.

/// The coding of a field: the one given, or that of its type.
macro_rules! coding {
    () => {
        $crate::message::field::Plain
    };
    ($coding:expr) => {
        $coding
    };
}

/// The name that a field has in trees: the one given, or the one of its own name.
macro_rules! member {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $member:ident) => {
        stringify!($member)
    };
}

/// The function that reads a message: the one given, or that of its struct.
macro_rules! decoder {
    () => {
        $crate::message::field::Record::read
    };
    ($decode:path) => {
        $decode
    };
}

macro_rules! messages {
    (
        $(#[$about:meta])*
        pub enum $Message:ident<$life:lifetime $kept:ident>, kinds $Kind:ident {
            $(
                $(#[doc = $docs:literal])*
                $(#[derive($derive:ident)])?
                $number:literal $name:ident $Variant:ident $(<$own:lifetime>)?
                $({$($fields:tt)*})?
                $(by $decode:path)?
            ),* $(,)?
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Eq)]
        pub enum $Message<$life> {
            $(
                $(#[doc = $docs])*
                $Variant($Variant $(<$own>)?)
            ),*
        }

        $(message! {
            <$life $kept> $(#[doc = $docs])* $(#[derive($derive)])?
            $Kind::$Variant, $Variant $(<$own>)? $({$($fields)*})?
        })*

        /// The kinds of messages, by their numbers in `packed`.
        #[derive(Clone, Copy)]
        #[repr(u8)]
        enum $Kind {
            $($Variant = $number),*
        }

        impl $Kind {
            #[inline]
            fn from_number(number: u8) -> Result<Self, DecodeError> {
                match number {
                    $($number => Ok(Self::$Variant),)*
                    kind => Err(DecodeError::of(0, $crate::error::Kind::Unknown { kind })),
                }
            }

            fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => stringify!($name)),*
                }
            }

            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $(stringify!($name) => Some(Self::$Variant),)*
                    _ => None,
                }
            }
        }

        impl<$life> $Message<$life> {
            /// The names of the members of each message.
            pub(crate) const MEMBERS: &'static [&'static [&'static str]] = &[$($Variant::MEMBERS),*];

            /// All messages, in the order of the table, as data.
            #[must_use]
            pub fn forms() -> Vec<$crate::message::MessageForm> {
                vec![$($crate::message::MessageForm {
                    kind: $number,
                    name: stringify!($name),
                    fields: $crate::message::form::fields_of::<$Variant $(<$own>)?>(),
                }),*]
            }

            /// Reads a message.
            ///
            /// # Errors
            /// If `body` is not exactly one message.
            pub fn decode(format: Format, body: &$life [u8]) -> Result<Self, DecodeError> {
                use $crate::{json::raw::RawJson, msgpack::raw::RawMsgpack};
                match format {
                    Format::Packed => {
                        let mut reader = $crate::reader::Reader::new(body);
                        let kind = $Kind::from_number(reader.u8()?)?;
                        Self::decode_packed(kind, reader)
                    }
                    Format::Msgpack => Self::decode_tree(RawMsgpack::of_message(body)),
                    Format::Json => Self::decode_tree(RawJson::of_message(body)?),
                }
            }

            #[inline]
            fn decode_packed(
                kind: $Kind,
                mut reader: $crate::reader::Reader<$life>,
            ) -> Result<Self, DecodeError> {
                // One value, made where it is returned: any other would be copied.
                let mut message = Self::fields(kind, &mut reader);
                if message.is_ok()
                    && let Err(error) = reader.finish()
                {
                    message = Err(error);
                }
                message
            }

            fn decode_tree<R: $crate::tree::members::Raw<$life>>(
                body: R,
            ) -> Result<Self, DecodeError> {
                let members = $crate::tree::members::Members::of_message(body)?;
                let name = members.message_type()?;
                let kind = $Kind::from_name(&name).ok_or_else(|| members.unknown_type(&name))?;
                Self::fields(kind, &mut &members)
            }

            #[inline]
            fn fields<I: $crate::message::field::Input<$life>>(
                kind: $Kind,
                input: &mut I,
            ) -> Result<Self, DecodeError> {
                match kind {
                    $($Kind::$Variant => decoder!($($decode)?)(input).map(Self::$Variant)),*
                }
            }

            /// Appends the message.
            ///
            /// # Panics
            /// If a [`MessageRef`](crate::message::MessageRef) does not have the form that `format`
            /// carries: an index in `packed`, a name in `msgpack` and `json`. The writers in this
            /// module take both. If a patch's version is before its base.
            pub fn encode(&self, format: Format, out: &mut Vec<u8>) {
                match self {
                    $(Self::$Variant(message) => message.encode(format, out)),*
                }
            }
        }

        impl std::fmt::Debug for $Message<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$Variant(message) => message.fmt(f)),*
                }
            }
        }
    };
}

/// The struct of a message, unless it is a record declared elsewhere, and how it is written.
macro_rules! message {
    (
        <$input:lifetime $kept:ident> $(#[$docs:meta])*
        $Kind:ident::$Variant:ident, $Message:ident $(<$life:lifetime>)? {$($fields:tt)*}
    ) => {
        record! { <$input $kept> $(#[$docs])* $Message $(<$life>)? {$($fields)*} }
        message! { <$input $kept> $Kind::$Variant, $Message $(<$life>)? }
    };
    (
        <$input:lifetime $kept:ident> $(#[$docs:meta])*
        $Kind:ident::$Variant:ident, $Message:ident $(<$life:lifetime>)?
    ) => {
        impl $(<$life>)? $Message $(<$life>)? {
            /// Appends the message, as the enum's `encode` does, and panics as that does.
            pub fn encode(&self, format: Format, out: &mut Vec<u8>) {
                use $crate::message::field::{Packed, Record};
                match format.tree() {
                    None => {
                        out.push($Kind::$Variant as u8);
                        Record::write(self, &mut Packed(out));
                    }
                    Some(format) => {
                        let mut object = Object::message(format, out, $Kind::$Variant.name());
                        Record::write(self, &mut object);
                        object.end();
                    }
                }
            }
        }
    };
}

macro_rules! record {
    (
        <$input:lifetime $kept:ident>
        $(#[$docs:meta])*
        $Record:ident $(<$life:lifetime>)? {$(
            $(#[doc = $field_docs:literal])*
            $field:ident $(($member:ident))?: $type:ty $(as $coding:expr)?
        ),* $(,)?}
    ) => {
        $(#[$docs])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Record $(<$life>)? {$( $(#[doc = $field_docs])* pub $field: $type ),*}

        impl $(<$life>)? $Record $(<$life>)? {
            pub(crate) const MEMBERS: &'static [&'static str] =
                &[$(member!($field $($member)?)),*];
        }

        impl<$input> $crate::message::field::Record<$input> for $Record $(<$life>)? {
            const NAME: &'static str = stringify!($Record);
            const FIELDS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), concat!($($field_docs, "\n"),*))),*];

            #[inline]
            #[allow(unused_variables, reason = "a message may have no fields")]
            fn read<I: $crate::message::field::Input<$input>>(
                input: &mut I,
            ) -> Result<Self, DecodeError> {
                $(let $field: $type = input.field(
                    coding!($($coding)?),
                    const { $crate::tree::members::Member::of(member!($field $($member)?)) },
                )?;)*
                Ok(Self { $($field),* })
            }

            #[inline]
            #[allow(unused_variables, reason = "a message may have no fields")]
            fn write<O: $crate::message::field::Output>(&self, output: &mut O) {
                let Self { $($field),* } = self;
                $(output.field(
                    coding!($($coding)?),
                    const { $crate::tree::members::Member::of(member!($field $($member)?)) },
                    $field,
                );)*
            }
        }

        owned! { $kept $Record $(<$life>)? {$($field),*} }
    };
}

macro_rules! owned {
    (borrowed $($record:tt)*) => {};
    (owned $Record:ident {$($field:ident),*}) => {
        impl $crate::message::owned::IntoOwned for $Record {
            type Static = Self;

            fn into_owned(self) -> Self {
                self
            }
        }
    };
    (owned $Record:ident <$life:lifetime> {$($field:ident),*}) => {
        impl $crate::message::owned::IntoOwned for $Record<'_> {
            type Static = $Record<'static>;

            fn into_owned(self) -> Self::Static {
                self.into_owned()
            }
        }

        impl $Record<'_> {
            /// Copies what is borrowed.
            #[must_use]
            pub fn into_owned(self) -> $Record<'static> {
                use $crate::message::owned::IntoOwned;
                let Self { $($field),* } = self;
                $Record { $($field: IntoOwned::into_owned($field)),* }
            }

            /// A copy that borrows nothing.
            #[must_use]
            pub fn to_static(&self) -> $Record<'static> {
                self.clone().into_owned()
            }
        }
    };
}
