//! Replies that a room gives later.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use playfield_state::__rt::{Atomic, Value};
use playfield_state::{Data, Format, PlayerId};
use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::tree::TreeWriter;
use playfield_wire::{DecodeError, ErrorCode, RequestNumber};

use crate::frozen::parts::{self, Time};
use crate::random::Random;
use crate::seats::Seats;
use crate::{Error, Link, Message, Result, Sender};

/// The most deferred replies of one room. A request past it is answered with `limit`.
pub const DEFERRED_MAX: usize = 65_536;

/// The reply to a request of type `M` that a room owes, from [`Context::defer`]. The room answers
/// with [`Context::answer`].
///
/// It is plain data: keep it in the state, in a field that is `#[sync(hidden)]`, or move it into
/// background work, whose message brings it back. Nobody waits for the default value. One of
/// another room, or from before the state was saved and loaded, answers nothing.
///
/// [`Context::defer`]: crate::Context::defer
/// [`Context::answer`]: crate::Context::answer
pub struct Deferred<M> {
    /// Identifies the room and its creation.
    pub(crate) room: u64,
    pub(crate) number: u64,
    message: PhantomData<fn() -> M>,
}

impl<M> Deferred<M> {
    pub(crate) fn new(room: u64, number: u64) -> Self {
        Self { room, number, message: PhantomData }
    }
}

impl<M> Clone for Deferred<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Deferred<M> {}

impl<M> Default for Deferred<M> {
    fn default() -> Self {
        Self::new(0, 0)
    }
}

impl<M> PartialEq for Deferred<M> {
    fn eq(&self, other: &Self) -> bool {
        (self.room, self.number) == (other.room, other.number)
    }
}

impl<M> Eq for Deferred<M> {}

impl<M> fmt::Debug for Deferred<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Deferred({})", self.number)
    }
}

impl<M: 'static> Data for Deferred<M> {
    fn schema() -> Type {
        <[u64; 2]>::schema()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        [self.room, self.number].encode(out);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [room, number] = Data::decode(reader)?;
        Ok(Self::new(room, number))
    }

    fn to_tree(&self, out: TreeWriter<'_>) {
        [self.room, self.number].to_tree(out);
    }

    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        let [room, number] = Data::from_json(value)?;
        Ok(Self::new(room, number))
    }
}

impl<M: 'static> Atomic for Deferred<M> {}

/// The party that waits for a reply.
#[derive(Clone, Debug)]
pub(crate) enum Asker {
    Player {
        id: PlayerId,
        link: Link,
        request: RequestNumber,
        format: Format,
    },
    /// Another room, or code outside of rooms.
    Room {
        from: Option<Arc<Sender>>,
        ask: u64,
    },
}

impl Asker {
    pub(crate) fn format(&self) -> Format {
        match self {
            Self::Player { format, .. } => *format,
            Self::Room { .. } => Format::Packed,
        }
    }
}

/// A reply that was deferred.
pub(crate) struct Owed {
    pub(crate) to: Asker,
    message: &'static str,
    /// All wait for the same time, so the first one is due first.
    by: Duration,
}

/// The state of a request whose handler has returned.
#[derive(Debug, PartialEq)]
pub(crate) enum Fate {
    /// The request is answered by what the handler returned.
    Returned,
    /// The request was answered, or will be.
    Deferred,
    /// There were too many deferred replies.
    Refused,
}

/// The deferred replies of a room.
pub(crate) struct Replies {
    room: u64,
    last: u64,
    owed: BTreeMap<u64, Owed>,
    of_players: BTreeSet<(PlayerId, u64)>,
    /// The request that is being handled, if it can be deferred.
    asker: Option<Asker>,
    /// Its number, if it was deferred.
    deferred: Option<u64>,
    /// The request could not be deferred.
    refused: bool,
}

impl Replies {
    /// The seed and the id decide the number by which the room knows its own handles.
    pub(crate) fn new(seed: u64, id: &str) -> Self {
        // FNV-1a.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325, step);
        Self {
            room: Random::new(seed ^ hash).below(u64::MAX),
            last: 0,
            owed: BTreeMap::new(),
            of_players: BTreeSet::new(),
            asker: None,
            deferred: None,
            refused: false,
        }
    }

    pub(crate) fn freeze(&self) -> parts::Replies {
        let owed = |(&number, owed): (&u64, &Owed)| parts::Owed {
            number,
            message: owed.message.to_owned(),
            by: Time(owed.by),
            to: match &owed.to {
                Asker::Player { id, request, .. } => {
                    parts::Asker::Player { id: *id, request: request.0 }
                }
                Asker::Room { from, ask } => {
                    let from = from.as_deref().map(parts::Sender::from);
                    parts::Asker::Room { from, ask: *ask }
                }
            },
        };
        let owed = self.owed.iter().map(owed).collect();
        parts::Replies { room: self.room, last: self.last, owed }
    }

    /// Makes replies of what [`freeze`](Self::freeze) returned. `name` finds the name of a request
    /// in this build; one that this build lacks is never answered, and fails in time.
    ///
    /// # Errors
    /// If a deferred reply is wrong.
    pub(crate) fn thaw(
        parts::Replies { room, last, owed }: parts::Replies,
        seats: &Seats,
        name: impl Fn(&str) -> Option<&'static str>,
    ) -> Result<Self, String> {
        if owed.len() > DEFERRED_MAX {
            return Err(format!("a room has at most {DEFERRED_MAX} deferred replies"));
        }
        parts::check_number(last)?;
        let mut this = Self { room, last, ..Self::new(0, "") };
        for parts::Owed { number, message, by: Time(by), to } in owed {
            let to = match to {
                parts::Asker::Player { id, request } => {
                    let Some(player) = seats.get(id) else {
                        return Err(format!("a reply is owed to player {id}, who is not here"));
                    };
                    this.of_players.insert((id, number));
                    let (link, format) = (player.link, player.format);
                    Asker::Player { id, link, request: RequestNumber(request), format }
                }
                parts::Asker::Room { from, ask } => {
                    Asker::Room { from: from.map(|from| Arc::new(from.into())), ask }
                }
            };
            let owed = Owed { to, message: name(&message).unwrap_or_default(), by };
            if number > last || this.owed.insert(number, owed).is_some() {
                return Err(format!("a reply can't have the number {number}"));
            }
        }
        Ok(this)
    }

    /// This request is about to be handled.
    #[inline]
    pub(crate) fn begin(&mut self, asker: Asker) {
        self.asker = Some(asker);
    }

    /// Its handler has returned; `is_deferred` if it says that the reply comes later.
    #[inline]
    pub(crate) fn end(&mut self, is_deferred: bool) -> Fate {
        self.asker = None;
        if self.deferred.is_none() && !self.refused {
            return Fate::Returned;
        }
        self.end_deferred(is_deferred)
    }

    fn end_deferred(&mut self, is_deferred: bool) -> Fate {
        let refused = std::mem::take(&mut self.refused);
        match self.deferred.take() {
            Some(number) if is_deferred || !self.owed.contains_key(&number) => Fate::Deferred,
            Some(number) => {
                self.remove(number);
                Fate::Returned
            }
            None if refused && is_deferred => Fate::Refused,
            None => Fate::Returned,
        }
    }

    /// The format of the reply to the request that is being handled.
    pub(crate) fn format(&self) -> Format {
        self.asker.as_ref().map_or(Format::Packed, Asker::format)
    }

    /// Defers the reply to the request that is being handled.
    pub(crate) fn defer<M: Message>(&mut self, by: Duration) -> Deferred<M> {
        if let Some(number) = self.deferred {
            return Deferred::new(self.room, number);
        }
        let Some(to) = self.asker.clone() else { return Deferred::default() };
        if self.owed.len() >= DEFERRED_MAX {
            self.refused = true;
            return Deferred::default();
        }
        self.last += 1;
        if let Asker::Player { id, .. } = to {
            self.of_players.insert((id, self.last));
        }
        self.owed.insert(self.last, Owed { to, message: M::NAME, by });
        self.deferred = Some(self.last);
        Deferred::new(self.room, self.last)
    }

    /// The handler of a message of this name returned: another one must not be owed.
    pub(crate) fn check(&mut self, name: &'static str) -> Result<()> {
        let owed = self.deferred.and_then(|number| Some((number, self.owed.get(&number)?.message)));
        match owed {
            Some((number, other)) if other != name => {
                self.remove(number);
                self.deferred = None;
                let text = format!("the handler of {name} deferred a reply to {other}");
                Err(Error::new(ErrorCode::Internal, text))
            }
            _ => Ok(()),
        }
    }

    /// Takes out the reply behind a handle; `None` if nobody waits for it.
    pub(crate) fn take<M: Message>(&mut self, later: Deferred<M>) -> Option<Asker> {
        if later.room != self.room || self.owed.get(&later.number)?.message != M::NAME {
            return None;
        }
        self.remove(later.number)
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Asker> {
        let owed = self.owed.remove(&number)?;
        if let Asker::Player { id, .. } = owed.to {
            self.of_players.remove(&(id, number));
        }
        Some(owed.to)
    }

    /// Takes out a reply that a player waits for.
    pub(crate) fn take_of(&mut self, player: PlayerId) -> Option<Asker> {
        let of_player = (player, 0)..=(player, u64::MAX);
        let (_, number) = self.of_players.range(of_player).next().copied()?;
        self.remove(number)
    }

    /// Takes out the oldest reply, if it is due by `now`.
    pub(crate) fn take_due(&mut self, now: Duration) -> Option<Asker> {
        let (&number, owed) = self.owed.first_key_value()?;
        if owed.by <= now { self.remove(number) } else { None }
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.owed.first_key_value().map(|(_, owed)| owed.by)
    }
}

/// A reply, or why there is none, from background work to its room.
pub(crate) fn pack(format: Format, result: Result<impl Data>) -> Vec<u8> {
    let mut out = Vec::new();
    match result {
        Ok(reply) => {
            out.push(1);
            reply.write(format, &mut out);
        }
        Err(error) => {
            out.push(0);
            (u32::from(error.code().number())).encode(&mut out);
            error.retry_after_ms().encode(&mut out);
            error.text().to_owned().encode(&mut out);
        }
    }
    out
}

/// Reads what [`pack`] wrote: the encoded reply, or the error.
pub(crate) fn unpack(packed: &[u8]) -> Result<&[u8]> {
    let internal = |_| Error::new(ErrorCode::Internal, "the reply of background work");
    match packed.split_first() {
        Some((1, reply)) => Ok(reply),
        _ => {
            let mut reader = Reader::new(packed.get(1..).unwrap_or_default());
            let code = u32::decode(&mut reader).map_err(internal)?;
            let wait_ms = Option::<u32>::decode(&mut reader).map_err(internal)?;
            let text = String::decode(&mut reader).map_err(internal)?;
            let code = u16::try_from(code).ok().and_then(ErrorCode::from_number);
            let error = Error::new(code.unwrap_or(ErrorCode::Internal), text);
            Err(match wait_ms {
                Some(ms) => error.with_retry_after(Duration::from_millis(ms.into())),
                None => error,
            })
        }
    }
}
