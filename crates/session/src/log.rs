//! The messages that the other end has not acknowledged.

use std::collections::VecDeque;

use playfield_wire::reader::Reader;
use playfield_wire::server::Lost;
use playfield_wire::{DecodeError, RoomNumber, writer};

use crate::losses::Losses;

/// Before each message: its length and its room, each a `u32`.
const HEADER_BYTES: usize = 8;
/// Stands for no room. No room has this number.
pub(crate) const NO_ROOM: u32 = 0;
/// A buffer is shrunk if its capacity exceeds its contents this many times.
const SLACK: usize = 4;
/// Messages are kept in chunks: what is acknowledged or lost frees whole ones. This many go into
/// the bytes that may be kept, so that a chunk that is used in part is a small share of them.
const CHUNKS: usize = 64;
/// A chunk is full with this many bytes, at least and at most.
const CHUNK_BYTES_MIN: usize = 1 << 10;
const CHUNK_BYTES_MAX: usize = 64 << 10;

/// Counted messages that were sent and are not acknowledged, oldest first. Once all are
/// acknowledged, it takes 16 bytes.
#[derive(Debug, Default)]
pub struct Log {
    /// The number of counted messages that are not kept: acknowledged or lost.
    gone: u64,
    kept: Option<Box<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    messages: u32,
    /// The offset of the oldest message in the oldest chunk.
    start: usize,
    /// The newest chunk.
    bytes: Vec<u8>,
    /// The others. Where clients acknowledge what they receive, there are none.
    full: Option<Box<FullChunks>>,
    /// The number of the newest messages that were never on their way: the other end can't have
    /// received them.
    held: u32,
    /// The last of the messages that are gone, if they were lost: seldom any.
    lost: Option<Box<Losses>>,
}

/// Chunks of whole messages, oldest first: at least one. Their buffers have no space left.
#[derive(Debug, Default)]
struct FullChunks {
    chunks: VecDeque<Box<[u8]>>,
    /// The bytes of all.
    bytes: usize,
}

/// Says whether a message goes on its way when it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The message is written to a connection: the other end may receive it.
    Sent,
    /// The message is only kept, until it is [sent again](Log::sent_again).
    Held,
}

/// Why a session can't be resumed by an end that has received this many messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotResumed {
    /// The end can't have received as many.
    NeverSent(NeverSent),
    /// The losses since are not remembered by room, or the end has confirmed more before.
    Forgotten,
}

/// The other end acknowledged messages that were not sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeverSent {
    /// The number of messages it has received, as it says.
    pub received: u64,
    /// The number of messages sent.
    pub sent: u64,
}

impl std::fmt::Display for NeverSent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { received, sent } = self;
        write!(f, "{received} messages are acknowledged, of {sent} that were sent")
    }
}

impl std::error::Error for NeverSent {}

impl Log {
    /// Returns the number of messages counted so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.gone + self.kept.as_ref().map_or(0, |kept| u64::from(kept.messages))
    }

    /// Returns the number of those that are not kept: they are acknowledged, or lost.
    #[must_use]
    pub fn gone(&self) -> u64 {
        self.gone
    }

    /// Returns the length of the kept messages, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.len())
    }

    /// Returns the memory they take, with what is remembered of lost ones, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| {
            let full = kept.full.as_ref().map_or(0, |full| full.memory());
            let lost = kept.lost.as_ref().map_or(0, |lost| lost.memory());
            size_of::<Kept>() + kept.bytes.capacity() + full + lost
        })
    }

    /// Returns whether all is acknowledged, or lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept.messages == 0)
    }

    /// Counts and keeps a message, which is what `write` appends, and returns it. If more than
    /// `bytes_max` bytes are kept then, the oldest messages are lost.
    pub fn push(
        &mut self,
        room: Option<RoomNumber>,
        bytes_max: usize,
        passage: Passage,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> &[u8] {
        let kept = &mut **self.kept.get_or_insert_default();
        let mut body = kept.push(room, bytes_max, write);
        kept.held = if passage == Passage::Held { kept.held + 1 } else { 0 };
        // The newest stays: the caller borrows it.
        while kept.len() > bytes_max && kept.messages > 1 {
            let before = kept.bytes.len();
            kept.lose();
            self.gone += 1;
            body -= before - kept.bytes.len();
        }
        &kept.bytes[body..]
    }

    /// Counts messages about a room that were not kept on their way here: they are lost, and so are
    /// all before them.
    pub fn lose(&mut self, room: Option<RoomNumber>, messages: u32) {
        if messages == 0 {
            return;
        }
        let kept = &mut **self.kept.get_or_insert_default();
        while kept.messages > 0 {
            kept.lose();
            self.gone += 1;
        }
        kept.lost.get_or_insert_default().of_held(room, messages);
        self.gone += u64::from(messages);
    }

    /// Returns whether this message, counted from 1, is kept and was never on its way.
    #[must_use]
    pub fn is_held(&self, number: u64) -> bool {
        self.kept.as_ref().is_some_and(|kept| {
            number > self.sent() - u64::from(kept.held) && number <= self.sent()
        })
    }

    /// Takes out a message, counted from 1, as if it had never been pushed: those after it have
    /// lower numbers by one. The other end must not have received it: it is
    /// [held](Self::is_held), or the session was [resumed](Self::resume) and it was not sent again
    /// since. Whether it was kept.
    pub fn withdraw(&mut self, number: u64) -> bool {
        let Some(index) = number.checked_sub(self.gone + 1) else { return false };
        self.kept.as_mut().is_some_and(|kept| kept.withdraw(index))
    }

    /// Messages that were held are on their way: the other end may receive any of them.
    pub fn sent_again(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.held = 0;
        }
    }

    /// The other end has received this many.
    ///
    /// # Errors
    /// If that is more than were sent.
    pub fn acknowledge(&mut self, received: u64) -> Result<(), NeverSent> {
        if received > self.sent() {
            return Err(NeverSent { received, sent: self.sent() });
        }
        while self.gone < received
            && let Some(kept) = &mut self.kept
        {
            kept.forget();
            self.gone += 1;
        }
        if let Some(kept) = &mut self.kept {
            if let Some(lost) = &mut kept.lost {
                lost.keep_last(self.gone - received.min(self.gone));
            }
            if self.gone == received && kept.messages == 0 {
                self.kept = None;
            }
        }
        Ok(())
    }

    /// The session is resumed by an end that has received this many: forgets them, and returns what
    /// it will never receive, by room. The rest is [unacknowledged](Self::unacknowledged), and is
    /// sent again.
    ///
    /// # Errors
    /// If that is more than were sent, or if it is not remembered what was lost.
    pub fn resume(&mut self, received: u64) -> Result<Vec<Lost>, NotResumed> {
        self.acknowledge(received).map_err(NotResumed::NeverSent)?;
        let missing = self.gone.saturating_sub(received);
        self.sent_again();
        // They stay until the other end has confirmed more: this answer may not reach it.
        let lost = match self.kept.as_deref_mut() {
            Some(Kept { lost: Some(lost), .. }) => lost.tell(missing),
            _ => (missing == 0).then(Vec::new),
        };
        lost.ok_or(NotResumed::Forgotten)
    }

    /// Replaces messages of this room: `rewrite` returns the replacement, or `None` to keep the
    /// message.
    pub fn rewrite(
        &mut self,
        mut rewrite: impl FnMut(Option<RoomNumber>, &[u8]) -> Option<Vec<u8>>,
    ) {
        let mut bodies = Vec::new();
        let mut is_changed = false;
        for (room, body) in self.unacknowledged() {
            let rewritten = rewrite(room, body);
            is_changed |= rewritten.is_some();
            bodies.push((room, rewritten.unwrap_or_else(|| body.to_vec())));
        }
        let Some(kept) = self.kept.as_mut().filter(|_| is_changed) else { return };
        let Kept { held, lost, .. } = std::mem::take(&mut **kept);
        (kept.held, kept.lost) = (held, lost);
        for (room, body) in bodies {
            kept.push(room, usize::MAX, |out| out.extend_from_slice(&body));
        }
    }

    /// Appends all of it, from which it goes on in another process.
    pub fn freeze(&self, out: &mut Vec<u8>) {
        writer::put_varint(out, self.gone);
        writer::put_bool(out, self.kept.is_some());
        let Some(kept) = &self.kept else { return };
        writer::put_varint(out, kept.messages.into());
        for (room, body) in self.unacknowledged() {
            writer::put_varint(out, room.map_or(NO_ROOM, |room| room.0).into());
            writer::put_bytes(out, body);
        }
        writer::put_varint(out, kept.held.into());
        writer::put_bool(out, kept.lost.is_some());
        if let Some(lost) = &kept.lost {
            lost.freeze(out);
        }
    }

    /// Reads what [`freeze`](Self::freeze) appended. `bytes_max` is that of [`push`](Self::push);
    /// what exceeds it stays until the next message.
    ///
    /// # Errors
    /// If it is not such a log.
    pub fn thaw(reader: &mut Reader<'_>, bytes_max: usize) -> Result<Self, DecodeError> {
        let gone = reader.varint()?;
        if !reader.bool()? {
            return Ok(Self { gone, kept: None });
        }
        let at = reader.offset();
        let mut kept = Kept::default();
        for _ in 0..reader.count()? {
            let room = reader.varint_u32()?;
            let body = reader.bytes()?;
            let room = (room != NO_ROOM).then_some(RoomNumber(room));
            kept.push(room, bytes_max, |out| out.extend_from_slice(body));
        }
        kept.held = reader.varint_u32()?;
        kept.lost = reader.bool()?.then(|| Losses::thaw(reader)).transpose()?.map(Box::new);
        let lost = kept.lost.as_ref().map_or(0, |lost| lost.messages());
        if kept.held > kept.messages
            || lost > gone
            || gone.checked_add(kept.messages.into()).is_none()
        {
            return Err(DecodeError::new(at, "the numbers of unconfirmed messages do not fit"));
        }
        Ok(Self { gone, kept: Some(Box::new(kept)) })
    }

    /// The messages that are kept, oldest first, each with the room that it is about.
    pub fn unacknowledged(&self) -> impl Iterator<Item = (Option<RoomNumber>, &[u8])> {
        let mut chunks = self.kept.iter().flat_map(|kept| kept.chunks());
        let mut rest = &[][..];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                rest = chunks.next()?;
            }
            let (room, length) = header(rest)?;
            let (body, after) = rest[HEADER_BYTES..].split_at(length);
            rest = after;
            Some((room, body))
        })
    }
}

impl Kept {
    fn len(&self) -> usize {
        self.full.as_ref().map_or(0, |full| full.bytes) + self.bytes.len() - self.start
    }

    /// All chunks, oldest first, each from its first message on.
    fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        let full = self.full.iter().flat_map(|full| full.chunks.iter().map(|chunk| &**chunk));
        let mut start = self.start;
        full.chain([&*self.bytes]).map(move |chunk| &chunk[std::mem::take(&mut start)..])
    }

    /// The oldest chunk.
    fn oldest(&self) -> &[u8] {
        let full = self.full.as_ref().and_then(|full| full.chunks.front());
        full.map_or(&self.bytes, |chunk| chunk)
    }

    /// Appends a message; returns where it begins in the newest chunk.
    fn push(
        &mut self,
        room: Option<RoomNumber>,
        bytes_max: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> usize {
        let chunk_bytes = (bytes_max / CHUNKS).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        if self.bytes.len() >= chunk_bytes {
            self.begin_chunk(chunk_bytes);
        }
        let header = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&room.map_or(NO_ROOM, |room| room.0).to_le_bytes());
        let body = self.bytes.len();
        write(&mut self.bytes);
        let length = u32::try_from(self.bytes.len() - body).unwrap_or(u32::MAX);
        self.bytes[header..header + 4].copy_from_slice(&length.to_le_bytes());
        self.messages += 1;
        // A long message may have doubled the buffer.
        if self.bytes.capacity() - self.bytes.len() > chunk_bytes {
            self.bytes.shrink_to_fit();
        }
        body
    }

    /// The newest chunk is full: begins another.
    #[cold]
    fn begin_chunk(&mut self, chunk_bytes: usize) {
        if self.full.is_none() {
            // Only the oldest chunk has messages in it that are gone.
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        // With space for a last message that is not long.
        let next = Vec::with_capacity(chunk_bytes + chunk_bytes / 4);
        let chunk = std::mem::replace(&mut self.bytes, next);
        self.full.get_or_insert_default().push(chunk);
    }

    /// Takes out the message at this place. Whether there is one.
    fn withdraw(&mut self, index: u64) -> bool {
        if index >= u64::from(self.messages) {
            return false;
        }
        let mut left = index;
        let mut found = None;
        'chunks: for (number, chunk) in self.chunks().enumerate() {
            let mut rest = chunk;
            while let Some((_, length)) = header(rest) {
                let at = chunk.len() - rest.len();
                if left == 0 {
                    found = Some((number, at..at + HEADER_BYTES + length));
                    break 'chunks;
                }
                left -= 1;
                rest = &rest[HEADER_BYTES + length..];
            }
        }
        let Some((number, message)) = found else { return false };
        let start = if number == 0 { self.start } else { 0 };
        let range = start + message.start..start + message.end;
        if self.full.as_ref().is_some_and(|full| number < full.chunks.len()) {
            self.withdraw_from_full(number, start, range);
        } else {
            self.bytes.drain(range);
        }
        self.held -= u32::from(index >= u64::from(self.messages - self.held));
        self.messages -= 1;
        if self.messages == 0 {
            self.release();
        }
        true
    }

    /// Takes out a message of a full chunk, whose first message begins at `start`.
    fn withdraw_from_full(&mut self, number: usize, start: usize, range: std::ops::Range<usize>) {
        let Some(full) = &mut self.full else { return };
        let Some(chunk) = full.chunks.get_mut(number) else { return };
        let mut bytes = std::mem::take(chunk).into_vec();
        full.bytes -= range.len();
        bytes.drain(range);
        if bytes.len() > start {
            *chunk = bytes.into();
            return;
        }
        full.bytes -= bytes.len();
        full.chunks.remove(number);
        if number == 0 {
            self.start = 0;
        }
        if full.chunks.is_empty() {
            self.full = None;
        }
    }

    /// The oldest message is lost.
    fn lose(&mut self) {
        let Some((room, _)) = header(&self.oldest()[self.start..]) else { return };
        let lost = self.lost.get_or_insert_default();
        if self.held == self.messages {
            lost.of_held(room, 1);
        } else {
            lost.of_sent(room);
        }
        self.forget();
    }

    /// Takes out the oldest message.
    fn forget(&mut self) {
        let Some((_, length)) = header(&self.oldest()[self.start..]) else { return };
        self.start += HEADER_BYTES + length;
        self.messages -= 1;
        self.held = self.held.min(self.messages);
        if self.messages == 0 {
            self.release();
        } else if let Some(full) = &mut self.full {
            if full.chunks.front().is_none_or(|chunk| self.start == chunk.len()) {
                self.start = 0;
                if !full.pop() {
                    self.full = None;
                }
            }
        } else if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
            // Memory of a burst is released before all of it is acknowledged.
            if self.bytes.capacity() > SLACK * self.bytes.len() {
                self.bytes.shrink_to(2 * self.bytes.len());
            }
        }
    }

    fn release(&mut self) {
        (self.bytes, self.start, self.full) = (Vec::new(), 0, None);
    }
}

impl FullChunks {
    fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes + self.chunks.capacity() * size_of::<Box<[u8]>>()
    }

    fn push(&mut self, chunk: Vec<u8>) {
        self.bytes += chunk.len();
        self.chunks.push_back(chunk.into());
    }

    /// Frees the oldest. Whether there are more.
    fn pop(&mut self) -> bool {
        self.bytes -= self.chunks.pop_front().map_or(0, |chunk| chunk.len());
        !self.chunks.is_empty()
    }
}

/// The room and the length of the message at the front.
fn header(bytes: &[u8]) -> Option<(Option<RoomNumber>, usize)> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (room, _) = rest.split_first_chunk()?;
    let room = u32::from_le_bytes(*room);
    let room = (room != NO_ROOM).then_some(RoomNumber(room));
    Some((room, u32::from_le_bytes(*length) as usize))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use playfield_wire::RoomNumber;
    use playfield_wire::reader::Reader;
    use playfield_wire::server::Lost;
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    use super::{Log, NeverSent, Passage};
    use crate::losses::RUNS_MAX;

    fn push(log: &mut Log, room: u32, body: &[u8], bytes_max: usize) {
        push_by(log, room, body, bytes_max, Passage::Sent);
    }

    fn push_by(log: &mut Log, room: u32, body: &[u8], bytes_max: usize, passage: Passage) {
        let room = Some(RoomNumber(room)).filter(|room| room.0 > 0);
        let kept = log.push(room, bytes_max, passage, |out| out.extend_from_slice(body));
        assert_eq!(kept, body);
    }

    fn frozen(log: &Log) -> Vec<u8> {
        let mut out = Vec::new();
        log.freeze(&mut out);
        out
    }

    fn thawed(log: &Log, bytes_max: usize) -> Log {
        let bytes = frozen(log);
        let mut reader = Reader::new(&bytes);
        let log = Log::thaw(&mut reader, bytes_max).unwrap();
        assert!(reader.is_empty() && frozen(&log) == bytes);
        log
    }

    fn lost(room: u32, messages: u64) -> Lost {
        Lost { room: Some(RoomNumber(room)), messages }
    }

    fn bodies(log: &Log) -> Vec<(u32, Vec<u8>)> {
        let room = |room: Option<RoomNumber>| room.map_or(0, |room| room.0);
        log.unacknowledged().map(|(of, body)| (room(of), body.to_vec())).collect()
    }

    #[test]
    fn messages_that_were_not_kept_on_their_way_are_lost_with_all_before_them() {
        let mut log = Log::default();
        push(&mut log, 1, b"one", 1000);
        push(&mut log, 2, b"two", 1000);
        log.lose(Some(RoomNumber(1)), 5);
        push(&mut log, 1, b"eight", 1000);
        assert_eq!((log.sent(), log.gone()), (8, 7));
        assert_eq!(log.resume(1), Ok(vec![lost(1, 5), lost(2, 1)]));
        assert_eq!(bodies(&log), [(1, b"eight".to_vec())]);
        assert_eq!(log.resume(7), Ok(vec![]));

        let mut empty = Log::default();
        empty.lose(Some(RoomNumber(3)), 2);
        assert_eq!((empty.sent(), empty.resume(0)), (2, Ok(vec![lost(3, 2)])));
        assert_eq!((empty.acknowledge(2), empty.memory()), (Ok(()), 0));
    }

    #[test]
    fn a_message_that_is_withdrawn_was_never_counted() {
        let mut log = Log::default();
        push(&mut log, 1, b"one", 1000);
        push_by(&mut log, 1, b"two", 1000, Passage::Held);
        push_by(&mut log, 2, b"three", 1000, Passage::Held);
        let held = |log: &Log| [0, 1, 2, 3, 4].map(|number| log.is_held(number));
        assert_eq!(held(&log), [false, false, true, true, false]);
        assert!(log.withdraw(2) && !log.withdraw(3) && !log.withdraw(0));
        assert_eq!(held(&log), [false, false, true, false, false]);
        assert_eq!((log.sent(), bodies(&log).len()), (2, 2));
        // The other end has not received the first either.
        assert_eq!(log.resume(0), Ok(vec![]));
        assert!(log.withdraw(1));
        assert_eq!((log.sent(), bodies(&log)), (1, vec![(2, b"three".to_vec())]));
        assert!(log.withdraw(1));
        assert_eq!((log.sent(), log.acknowledge(0), log.memory()), (0, Ok(()), 0));
    }

    #[test]
    fn messages_that_are_rewritten_keep_their_places() {
        let mut log = Log::default();
        for number in 0..100 {
            push(&mut log, number % 3, &[number as u8; 200], 1 << 14);
        }
        log.acknowledge(5).unwrap();
        push_by(&mut log, 2, b"held", 1 << 14, Passage::Held);
        let (before, gone) = (bodies(&log), log.gone());
        log.rewrite(|_, _| None);
        assert_eq!(bodies(&log), before);
        log.rewrite(|room, body| (room == Some(RoomNumber(2))).then(|| [body, b"!"].concat()));
        let rewritten = before.into_iter().map(|(room, mut body)| {
            body.extend((room == 2).then_some(b'!'));
            (room, body)
        });
        assert_eq!(bodies(&log), rewritten.collect::<Vec<_>>());
        assert_eq!((log.gone(), log.sent(), log.is_held(101)), (gone, 101, true));
        assert!(gone > 5 && !log.is_held(100));
        let told = log.resume(5).unwrap().iter().map(|lost| lost.messages).sum::<u64>();
        assert_eq!(told, gone - 5, "what is lost is known still");
        Log::default().rewrite(|_, _| Some(Vec::new()));
    }

    #[test]
    fn what_is_acknowledged_is_forgotten_and_an_empty_log_owns_nothing() {
        let mut log = Log::default();
        for body in [&b"one"[..], b"", b"three"] {
            push(&mut log, 1, body, 1000);
        }
        assert_eq!((log.sent(), log.acknowledge(2)), (3, Ok(())));
        assert_eq!(bodies(&log), [(1, b"three".to_vec())]);
        assert_eq!(log.acknowledge(1), Ok(()), "an older acknowledgement changes nothing");
        assert_eq!(log.acknowledge(4), Err(NeverSent { received: 4, sent: 3 }));
        assert_eq!(log.acknowledge(3), Ok(()));
        assert_eq!((log.is_empty(), log.kept.is_none(), log.sent()), (true, true, 3));
    }

    #[test]
    fn what_a_burst_took_is_given_back_before_all_is_acknowledged() {
        let mut log = Log::default();
        for _ in 0..10_000 {
            push(&mut log, 1, &[7; 100], 1 << 20);
        }
        assert!(log.memory() >= 1_000_000);
        log.acknowledge(9_999).unwrap();
        assert!(log.memory() < 1000, "{} bytes for one message", log.memory());
    }

    #[test]
    fn past_the_limit_the_oldest_are_lost_and_the_newest_never() {
        let mut log = Log::default();
        push(&mut log, 1, &[1; 10], 40);
        push(&mut log, 2, &[2; 10], 40);
        push(&mut log, 0, &[3; 10], 40);
        assert_eq!(bodies(&log), [(2, vec![2; 10]), (0, vec![3; 10])]);
        push(&mut log, 2, &[4; 100], 40);
        assert_eq!(bodies(&log), [(2, vec![4; 100])]);
        // The client had received the first before it was lost here.
        let lost = log.resume(1).unwrap();
        let of = |room, messages| Lost { room, messages };
        assert_eq!(lost, [of(None, 1), of(Some(RoomNumber(2)), 1)]);
        assert_eq!(log.resume(1), Ok(lost), "the answer may have been lost");
        assert_eq!(log.resume(4), Ok(vec![]));
    }

    #[test]
    fn losses_that_alternate_between_rooms_are_told_by_room_however_many() {
        let mut log = Log::default();
        push(&mut log, 1, b"received, but not acknowledged", 1000);
        push(&mut log, 2, b"on its way when the connection was lost", 1000);
        for count in 0..100_000 {
            push_by(&mut log, 1 + count % 3, b"while away", 1000, Passage::Held);
        }
        let kept: Vec<u32> = bodies(&log).into_iter().map(|(room, _)| room).collect();
        let count = |of| kept.iter().filter(|&&room| room == of).count() as u64;
        let told = log.resume(1).unwrap();
        let all =
            [lost(1, 33_334 - count(1)), lost(2, 33_334 - count(2)), lost(3, 33_333 - count(3))];
        assert_eq!(told, all);
        assert!(log.memory() < 4_000, "{} bytes", log.memory());
    }

    #[test]
    fn of_an_order_that_is_too_long_the_most_that_may_be_lost_is_told() {
        let mut log = Log::default();
        // The client receives all of it, or some, and acknowledges nothing.
        let count = 10 * RUNS_MAX as u64;
        for number in 0..=count as u32 {
            push(&mut log, 1 + number % 2, &[0; 100], 1);
        }
        let (sent, half) = (log.sent(), count / 2);
        assert_eq!(log.resume(0), Ok(vec![lost(1, half), lost(2, half)]));
        // The other end may have received any of the oldest.
        let told = log.resume(half).unwrap();
        let is_bound = |of: &Lost| (half / 2..=half).contains(&of.messages);
        assert!(told.len() == 2 && told.iter().all(is_bound), "{told:?}");
        assert_eq!(log.resume(count - 10), Ok(vec![lost(1, 5), lost(2, 5)]));
        assert_eq!(log.resume(sent), Ok(vec![]));
        assert_eq!(log.memory(), 0);
    }

    proptest! {
        #[test]
        fn a_log_is_a_queue_that_forgets_from_the_front(
            steps in proptest::collection::vec((0_u32..3, 0_usize..40, 0_u64..9), 1..600),
            bytes_max in prop_oneof![0_usize..200, 2_000_usize..6_000],
        ) {
            // Some in one chunk, some in several.
            let length_of = if bytes_max < 200 { 1 } else { 20 };
            let mut log = Log::default();
            let mut model = VecDeque::new();
            let (mut gone, mut received) = (0_u64, 0_u64);
            // How many the client can have received, whether the node knows of no connection, and
            // whether the client has none.
            let (mut arrived, mut is_away, mut is_deaf) = (0_u64, false, false);
            // How many of the last were never on their way.
            let mut held = 0_usize;
            // The rooms of all messages so far, to know what was lost.
            let mut rooms = Vec::new();
            for (room, length, acknowledge) in steps {
                let body = vec![rooms.len() as u8; length * length_of];
                let passage = if is_away { Passage::Held } else { Passage::Sent };
                push_by(&mut log, room, &body, bytes_max, passage);
                rooms.push(room);
                held = if is_away { held + 1 } else { 0 };
                if !is_away && !is_deaf {
                    arrived = rooms.len() as u64;
                }
                model.push_back((room, body));
                while model.iter().map(|(_, body)| body.len() + 8).sum::<usize>() > bytes_max
                    && model.len() > 1
                {
                    model.pop_front();
                    gone += 1;
                }
                if !is_away && !is_deaf && acknowledge < 4 {
                    received = (received + acknowledge).min(arrived);
                    log.acknowledge(received).unwrap();
                    while gone < received {
                        model.pop_front();
                        gone += 1;
                    }
                } else if acknowledge == 5 {
                    // One that was held, and is still kept, is withdrawn.
                    let back = length % 8 % rooms.len();
                    let number = rooms.len() as u64 - back as u64;
                    let is_kept = back < held && number > gone;
                    prop_assert_eq!(log.is_held(number), is_kept);
                    if is_kept {
                        prop_assert!(log.withdraw(number));
                        model.remove(model.len() - 1 - back);
                        rooms.remove(rooms.len() - 1 - back);
                        held -= 1;
                    }
                } else if acknowledge == 8 {
                    log = thawed(&log, bytes_max);
                } else if acknowledge == 6 {
                    is_away = true;
                } else if acknowledge == 7 {
                    // The other end has received some of what was on its way.
                    received += (length as u64).min(arrived - received);
                    let told = log.resume(received).unwrap();
                    check(&told, &rooms[received as usize..gone.max(received) as usize])?;
                    while gone < received {
                        model.pop_front();
                        gone += 1;
                    }
                    (is_away, held) = (false, 0);
                    // The answer may be lost, and all that follows it.
                    is_deaf = room == 0;
                    if is_deaf {
                        arrived = received;
                    } else {
                        (received, arrived) = (gone, rooms.len() as u64);
                    }
                }
                prop_assert_eq!(&bodies(&log), &Vec::from(model.clone()));
                prop_assert_eq!(log.sent(), rooms.len() as u64);
            }
            let told = log.resume(received).unwrap();
            check(&told, &rooms[received as usize..gone.max(received) as usize])?;
        }
    }

    #[test]
    fn a_log_of_wrong_bytes_is_refused_or_works() {
        let mut log = Log::default();
        for number in 0..40 {
            push_by(&mut log, 1 + number % 3, &[number as u8; 9], 300, Passage::Held);
        }
        log.acknowledge(3).unwrap();
        let bytes = frozen(&log);
        for length in 0..bytes.len() {
            assert!(Log::thaw(&mut Reader::new(&bytes[..length]), 300).is_err());
        }
        for bit in 0..8 * bytes.len() {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            let Ok(mut log) = Log::thaw(&mut Reader::new(&wrong), 300) else { continue };
            push(&mut log, 2, b"more", 300);
            let _ = log.withdraw(log.sent());
            let _ = log.resume(log.gone() / 2);
            let _ = log.resume(log.sent());
        }
    }

    /// Checks that the reported losses are the missing messages, by room.
    fn check(told: &[Lost], missing: &[u32]) -> Result<(), TestCaseError> {
        let sums = (0..3).filter_map(|room| {
            let messages = missing.iter().filter(|&&of| of == room).count() as u64;
            let room = Some(RoomNumber(room)).filter(|room| room.0 > 0);
            (messages > 0).then_some(Lost { room, messages })
        });
        prop_assert_eq!(told, sums.collect::<Vec<_>>());
        Ok(())
    }
}
