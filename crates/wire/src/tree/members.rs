//! Reading messages: splitting an object into the raw values of known members.

use std::borrow::Cow;

use crate::TreeFormat;
use crate::error::{DecodeError, Kind};

/// A value inside a message. It is borrowed, and only its start and end are known to be valid.
pub(crate) trait Raw<'a>: Copy {
    /// The format that it is in.
    const FORMAT: TreeFormat;

    /// Its bytes.
    fn bytes(self) -> &'a [u8];

    /// Whether it is null.
    fn is_null(self) -> bool;

    /// Splits an object into its members. If members have the same name, the last one counts.
    /// Offsets of errors are relative to this value.
    fn members(self, what: &'static str) -> Result<Values<Self>, DecodeError>;

    /// An integer, also from a decimal text.
    fn as_u64(self) -> Option<u64>;

    /// A bool.
    fn as_bool(self) -> Option<bool>;

    /// A text.
    fn as_text(self) -> Option<Cow<'a, str>>;

    /// Bytes, also from a text in base64.
    fn as_bytes(self) -> Option<Cow<'a, [u8]>>;

    /// An object whose members are all texts. A repeated key makes two pairs, as in `packed`.
    fn as_pairs(self) -> Option<Vec<Pair<'a>>>;

    /// The elements of an array.
    fn as_elements(self) -> Option<Vec<Self>>;
}

/// A key and its value.
pub(crate) type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

macro_rules! members {
    ($($member:ident)*) => {
        /// A member of a message, or of an object within one, named as in the tables of messages.
        ///
        /// A message's `type` may come after its other members, so all that could belong to it are
        /// kept until the type is known.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(non_camel_case_types, reason = "they are named like fields")]
        pub(crate) enum Member { message_type, $($member),* }

        impl Member {
            const NAMES: &[&str] = &["type", $(stringify!($member)),*];

            pub(crate) fn from_name(name: &str) -> Option<Self> {
                match name {
                    "type" => Some(Self::message_type),
                    $(stringify!($member) => Some(Self::$member),)*
                    _ => None,
                }
            }
        }
    };
}

members! {
    base bytes capacity channel code command count device digest epoch error filter fingerprint
    format grace_ms heartbeat_ms id is_new joined key limit locked lost max_message_bytes members
    message messages metadata name nonce offset ops options payload player players presence private
    protocol publications received recovered request resumable resume resumed retry_after_ms room
    room_type rooms schema schemas sequence session silence_ms since sync_hz tags text tick_hz
    time_us token user version
}

impl Member {
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// The values of the members that the protocol knows.
pub(crate) struct Values<R>([Option<R>; Member::NAMES.len()]);

impl<R: Copy> Values<R> {
    pub(crate) fn none() -> Self {
        Self([None; Member::NAMES.len()])
    }

    pub(crate) fn set(&mut self, member: Member, value: R) {
        self.0[member as usize] = Some(value);
    }
}

/// The known members of one object.
pub(crate) struct Members<'a, R> {
    object: &'a [u8],
    values: Values<R>,
    message: Place,
}

/// The message, so that errors within it can name their offset.
#[derive(Clone, Copy)]
struct Place {
    address: usize,
}

impl Place {
    /// The offset of `part`, which borrows from the message.
    fn offset_of(self, part: &[u8]) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.address)
    }
}

impl<'a, R: Raw<'a>> Members<'a, R> {
    /// Splits a whole message into its members.
    pub(crate) fn of_message(body: R) -> Result<Self, DecodeError> {
        let place = Place { address: body.bytes().as_ptr() as usize };
        Self::of_object(body, place, "a message")
    }

    fn of_object(object: R, message: Place, what: &'static str) -> Result<Self, DecodeError> {
        let object_at = message.offset_of(object.bytes());
        let values = object.members(what).map_err(|error| error.at(object_at))?;
        Ok(Self { object: object.bytes(), values, message })
    }

    /// The message's `type`.
    pub(crate) fn message_type(&self) -> Result<Cow<'a, str>, DecodeError> {
        self.text(Member::message_type)?.ok_or_else(|| self.missing(Member::message_type))
    }

    /// The error for a `type` that isn't in the protocol's tables.
    pub(crate) fn unknown_type(&self, name: &str) -> DecodeError {
        let offset = self.offset(Member::message_type);
        DecodeError::of(offset, Kind::UnknownType { name: name.chars().take(40).collect() })
    }

    /// The error for a member with an invalid value.
    pub(crate) fn refuse(&self, member: Member, expected: &str) -> DecodeError {
        let offset = self.offset(member);
        DecodeError::new(offset, format!("the member {:?} should be {expected}", member.name()))
    }

    pub(crate) fn offset(&self, member: Member) -> usize {
        let part = self.values.0[member as usize].map_or(self.object, R::bytes);
        self.message.offset_of(part)
    }

    /// The raw value of a member that is present and not `null`.
    fn value(&self, member: Member) -> Option<R> {
        self.values.0[member as usize].filter(|raw| !raw.is_null())
    }

    /// The error for a member that is absent or `null` and may not be.
    pub(crate) fn missing(&self, member: Member) -> DecodeError {
        let offset = self.message.offset_of(self.object);
        DecodeError::new(offset, format!("the member {:?} is missing", member.name()))
    }

    /// Any value, as its bytes; empty if it is absent or null.
    pub(crate) fn raw(&self, member: Member) -> &'a [u8] {
        self.value(member).map_or(&[], R::bytes)
    }

    pub(crate) fn u64(&self, member: Member) -> Result<Option<u64>, DecodeError> {
        const EXPECTED: &str = "an integer from 0 to 2^64 - 1, or one as a decimal string";
        self.value_as(member, R::as_u64, EXPECTED)
    }

    pub(crate) fn u32(&self, member: Member) -> Result<Option<u32>, DecodeError> {
        let value = self.u64(member)?.map(u32::try_from).transpose();
        value.map_err(|_| self.refuse(member, "an integer from 0 to 2^32 - 1"))
    }

    pub(crate) fn bool(&self, member: Member) -> Result<Option<bool>, DecodeError> {
        self.value_as(member, R::as_bool, "true or false")
    }

    pub(crate) fn text(&self, member: Member) -> Result<Option<Cow<'a, str>>, DecodeError> {
        self.value_as(member, R::as_text, "a string")
    }

    pub(crate) fn bytes(&self, member: Member) -> Result<Option<Cow<'a, [u8]>>, DecodeError> {
        let expected = match R::FORMAT {
            TreeFormat::Json => "a string in base64 with padding",
            TreeFormat::Msgpack => "bytes, or a string in base64 with padding",
        };
        self.value_as(member, R::as_bytes, expected)
    }

    /// A list of strings.
    pub(crate) fn texts(&self, member: Member) -> Result<Option<Vec<Cow<'a, str>>>, DecodeError> {
        let texts = |raw: R| raw.as_elements()?.into_iter().map(R::as_text).collect();
        self.value_as(member, texts, "a list of strings")
    }

    /// An object whose members are all strings. A repeated key makes two pairs, as in `packed`.
    pub(crate) fn pairs(&self, member: Member) -> Result<Option<Vec<Pair<'a>>>, DecodeError> {
        self.value_as(member, R::as_pairs, "an object of strings")
    }

    pub(crate) fn object(&self, member: Member) -> Result<Option<Self>, DecodeError> {
        let Some(raw) = self.value(member) else { return Ok(None) };
        Self::of_object(raw, self.message, "an object").map(Some)
    }

    /// A list of objects.
    pub(crate) fn list<T>(
        &self,
        member: Member,
        read: impl Fn(&Self) -> Result<T, DecodeError>,
    ) -> Result<Option<Vec<T>>, DecodeError> {
        let Some(elements) = self.value_as(member, R::as_elements, "a list")? else {
            return Ok(None);
        };
        let element = |raw| read(&Self::of_object(raw, self.message, "an object")?);
        elements.into_iter().map(element).collect::<Result<_, _>>().map(Some)
    }

    fn value_as<T>(
        &self,
        member: Member,
        read: fn(R) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, DecodeError> {
        let Some(raw) = self.value(member) else { return Ok(None) };
        read(raw).map(Some).ok_or_else(|| self.refuse(member, expected))
    }
}
