//! Reading messages: splitting an object into the raw values of known members.

use std::borrow::Cow;

use crate::TreeFormat;
use crate::client::{ClientMessage, Position, Resume, ResumeRoom, SchemaRef};
use crate::error::{DecodeError, Kind};
use crate::server::{Lost, MemberInfo, PastPublication, Resumed, RoomInfo, ServerMessage};

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

/// A member of a message, or of an object within one, by its place in [`NAMES`].
///
/// A message's `type` may come after its other members, so all that could belong to it are kept
/// until the type is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member(usize);

/// The names in the tables of messages, by record. A name that is in none of them does not compile.
const TABLES: [&[&[&str]]; 3] = [
    ClientMessage::MEMBERS,
    ServerMessage::MEMBERS,
    &[
        &["type"],
        Resume::MEMBERS,
        ResumeRoom::MEMBERS,
        SchemaRef::MEMBERS,
        Position::MEMBERS,
        Resumed::MEMBERS,
        Lost::MEMBERS,
        RoomInfo::MEMBERS,
        MemberInfo::MEMBERS,
        PastPublication::MEMBERS,
    ],
];

const SORTED: ([&str; 256], usize) = sorted();

/// All names, each once; shorter ones come first.
const NAMES: &[&str] = SORTED.0.split_at(SORTED.1).0;

const fn sorted() -> ([&'static str; 256], usize) {
    let (mut names, mut count) = ([""; 256], 0);
    let mut table = 0;
    while table < TABLES.len() {
        let mut record = 0;
        while record < TABLES[table].len() {
            let mut at = 0;
            while at < TABLES[table][record].len() {
                count = insert(&mut names, count, TABLES[table][record][at]);
                at += 1;
            }
            record += 1;
        }
        table += 1;
    }
    (names, count)
}

/// Inserts a name, unless it is there; returns how many there are then.
const fn insert(names: &mut [&str; 256], count: usize, name: &'static str) -> usize {
    let mut place = 0;
    while place < count && is_before(names[place], name) {
        place += 1;
    }
    if place < count && !is_before(name, names[place]) {
        return count;
    }
    let mut at = count;
    while at > place {
        names[at] = names[at - 1];
        at -= 1;
    }
    names[place] = name;
    count + 1
}

const fn is_before(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return one.len() < other.len();
    }
    let mut at = 0;
    while at < one.len() && one[at] == other[at] {
        at += 1;
    }
    at < one.len() && one[at] < other[at]
}

impl Member {
    const TYPE: Self = Self::of("type");

    /// The member of a name in the tables.
    pub(crate) const fn of(name: &str) -> Self {
        let mut at = 0;
        while at < NAMES.len() {
            if !is_before(name, NAMES[at]) && !is_before(NAMES[at], name) {
                return Self(at);
            }
            at += 1;
        }
        panic!("this name is in no record of TABLES")
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let by_length =
            |known: &&str| known.len().cmp(&name.len()).then_with(|| (*known).cmp(name));
        NAMES.binary_search_by(by_length).ok().map(Self)
    }

    pub(crate) fn name(self) -> &'static str {
        NAMES[self.0]
    }
}

/// The values of the members that the protocol knows.
pub(crate) struct Values<R>([Option<R>; NAMES.len()]);

impl<R: Copy> Values<R> {
    pub(crate) fn none() -> Self {
        Self([None; NAMES.len()])
    }

    pub(crate) fn set(&mut self, member: Member, value: R) {
        self.0[member.0] = Some(value);
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
        self.text(Member::TYPE)?.ok_or_else(|| self.missing(Member::TYPE))
    }

    /// The error for a `type` that isn't in the protocol's tables.
    pub(crate) fn unknown_type(&self, name: &str) -> DecodeError {
        let offset = self.offset(Member::TYPE);
        DecodeError::of(offset, Kind::UnknownType { name: name.chars().take(40).collect() })
    }

    /// The error for a member with an invalid value.
    pub(crate) fn refuse(&self, member: Member, expected: &str) -> DecodeError {
        let offset = self.offset(member);
        DecodeError::new(offset, format!("the member {:?} should be {expected}", member.name()))
    }

    pub(crate) fn offset(&self, member: Member) -> usize {
        let part = self.values.0[member.0].map_or(self.object, R::bytes);
        self.message.offset_of(part)
    }

    /// The raw value of a member that is present and not `null`.
    fn value(&self, member: Member) -> Option<R> {
        self.values.0[member.0].filter(|raw| !raw.is_null())
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
