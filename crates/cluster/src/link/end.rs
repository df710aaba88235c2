//! This node's end of a link.
//!
//! ```text
//!  opening ──the other end has heard this epoch──▶ open ──a gap, too much waits, a new epoch──▶ opening
//! ```
//!
//! Each end has an epoch of its own, a new one with each reset. Records go only between two ends
//! that know each other's epochs, and count from 0. So a frame that was sent before a reset of
//! either end is never taken after it, however late it comes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use playfield_wire::reader::Reader;

use crate::effect::{AskError, Effect, NodeId, Notice};
use crate::engine::Revision;
use crate::link::frame::{BODY_MAX, FRAME_MAX, Head, Item, want};
use crate::output::Output;
use crate::record::Slot;

/// The time after which an end asks again for a frame that it waits for.
const PROBE: Duration = Duration::from_secs(1);
/// The time after which an end asks for a frame that it does not wait for: the other end may be
/// closed.
const IDLE_PROBE: Duration = Duration::from_secs(10);

/// The parts that all ends of a node share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The deadlines of requests, with the slots and the numbers of these.
    pub(crate) deadlines: BTreeSet<(Duration, Slot, u64)>,
    last_epoch: u32,
    last_number: u64,
}

#[derive(Debug)]
pub(crate) struct End {
    with: NodeId,
    stage: Stage,
    epoch: u32,
    /// The newest epoch of the other end that was heard of.
    peer_epoch: u32,
    queue: VecDeque<Queued>,
    queued_bytes: usize,
    /// The number of records that were sent.
    sent: u64,
    /// For each frame that was sent and not confirmed, the number of records by then, and its
    /// bytes.
    unconfirmed: VecDeque<(u64, usize)>,
    unconfirmed_bytes: usize,
    received: u64,
    /// A frame is due, with records or without.
    is_due: bool,
    /// The time at which this end asked for a frame, and the bytes that were sent since then.
    wanted_at: Option<Duration>,
    sent_since: usize,
    /// Requests to the other node that wait for an answer.
    asks: BTreeMap<u64, Ask>,
    /// Requests of the other node that wait for an answer.
    asked: BTreeMap<u64, Asked>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Opening,
    /// Opening, and nothing waits meanwhile: the other end has not read what there was.
    Blocked,
    Open,
}

#[derive(Debug)]
struct Queued {
    /// The request, which is not sent after its deadline.
    ask: Option<u64>,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Ask {
    /// The number by which the host names it.
    ask: u64,
    deadline: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    /// The number by which the other node names it.
    ask: u64,
    /// The time at which that node has long stopped waiting.
    until: Duration,
}

impl Shared {
    fn epoch(&mut self) -> u32 {
        self.last_epoch += 1;
        self.last_epoch
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

impl End {
    pub(crate) fn new(with: NodeId, shared: &mut Shared) -> Self {
        Self {
            with,
            stage: Stage::Opening,
            epoch: shared.epoch(),
            peer_epoch: 0,
            queue: VecDeque::new(),
            queued_bytes: 0,
            sent: 0,
            unconfirmed: VecDeque::new(),
            unconfirmed_bytes: 0,
            received: 0,
            is_due: true,
            wanted_at: None,
            sent_since: 0,
            asks: BTreeMap::new(),
            asked: BTreeMap::new(),
        }
    }

    pub(crate) fn with(&self) -> NodeId {
        self.with
    }

    pub(crate) fn ask(
        &mut self,
        deadline: Duration,
        ask: u64,
        item: impl FnOnce(u64) -> Vec<u8>,
        shared: &mut Shared,
        output: &mut Output,
    ) {
        if self.stage == Stage::Blocked {
            output.effect(Effect::Answered { ask, result: Err(AskError::LinkReset) });
            return;
        }
        let number = shared.number();
        self.asks.insert(number, Ask { ask, deadline });
        shared.deadlines.insert((deadline, self.with.slot, number));
        self.push(Some(number), item(number));
    }

    pub(crate) fn tell(&mut self, body: &[u8], output: &mut Output) {
        if body.len() > BODY_MAX {
            output.effect(Effect::Noted(Notice::MessageTooLarge { bytes: body.len() }));
        } else if self.stage != Stage::Blocked {
            self.push(None, Item::Tell { body }.encode());
        }
    }

    pub(crate) fn answer(&mut self, number: u64, body: &[u8]) {
        let Some(Asked { ask, .. }) = self.asked.remove(&number) else { return };
        let item = match body.len() > BODY_MAX {
            true => Item::TooLarge { ask },
            false => Item::Answer { ask, body },
        };
        self.push(None, item.encode());
    }

    fn push(&mut self, ask: Option<u64>, bytes: Vec<u8>) {
        self.queued_bytes += bytes.len();
        self.queue.push_back(Queued { ask, bytes });
    }

    /// Resets the link if more bytes wait than allowed, and lets none wait from then on until the
    /// other end is heard.
    pub(crate) fn bound(&mut self, bytes_max: usize, shared: &mut Shared, output: &mut Output) {
        if self.queued_bytes + self.unconfirmed_bytes > bytes_max {
            self.reset(AskError::LinkReset, shared, output);
            self.stage = Stage::Blocked;
        }
    }

    /// Takes a frame.
    pub(crate) fn take(
        &mut self,
        now: Duration,
        head: &Head,
        mut records: Reader<'_>,
        shared: &mut Shared,
        output: &mut Output,
    ) {
        if head.epoch < self.peer_epoch {
            return;
        }
        if head.epoch > self.peer_epoch {
            if self.stage == Stage::Open {
                self.reset(AskError::LinkReset, shared, output);
            }
            self.peer_epoch = head.epoch;
        }
        if head.heard != self.epoch {
            self.is_due = true;
            return;
        }
        self.stage = Stage::Open;
        self.is_due |= head.wants;
        self.confirm(head.received);
        if head.first != self.received {
            return self.reset(AskError::LinkReset, shared, output);
        }
        while !records.is_empty() {
            let Ok(item) = Item::decode(&mut records) else {
                return self.reset(AskError::LinkReset, shared, output);
            };
            self.received += 1;
            self.item(now, item, shared, output);
        }
    }

    fn item(&mut self, now: Duration, item: Item<'_>, shared: &mut Shared, output: &mut Output) {
        let from = self.with;
        match item {
            Item::Tell { body } => output.effect(Effect::Told { from, body: body.to_vec() }),
            Item::Ask { ask, within, body } => {
                let number = shared.number();
                self.asked.insert(number, Asked { ask, until: now + within * 2 });
                output.effect(Effect::Asked { from, number, within, body: body.to_vec() });
            }
            Item::Answer { ask, body } => self.finish(ask, Ok(body.to_vec()), shared, output),
            Item::TooLarge { ask } => self.finish(ask, Err(AskError::TooLarge), shared, output),
            Item::Unknown => {}
        }
    }

    /// Answers a request to the other node, unless it was answered.
    pub(crate) fn finish(
        &mut self,
        number: u64,
        result: Result<Vec<u8>, AskError>,
        shared: &mut Shared,
        output: &mut Output,
    ) {
        if let Some(Ask { ask, deadline }) = self.asks.remove(&number) {
            shared.deadlines.remove(&(deadline, self.with.slot, number));
            output.effect(Effect::Answered { ask, result });
        }
    }

    fn confirm(&mut self, received: u64) {
        while let Some(&(sent, bytes)) = self.unconfirmed.front() {
            if sent > received {
                break;
            }
            self.unconfirmed.pop_front();
            self.unconfirmed_bytes -= bytes;
        }
    }

    /// Begins a new epoch. All that was on the way is lost, and requests fail.
    pub(crate) fn reset(&mut self, error: AskError, shared: &mut Shared, output: &mut Output) {
        if self.stage == Stage::Open {
            output.effect(Effect::LinkReset { with: self.with });
        }
        for number in self.asks.keys().copied().collect::<Vec<_>>() {
            self.finish(number, Err(error), shared, output);
        }
        let peer_epoch = self.peer_epoch;
        *self = Self { peer_epoch, ..Self::new(self.with, shared) };
    }

    /// Forgets requests that nobody waits for any more. Returns when to flush again.
    pub(crate) fn turn(&mut self, now: Duration) -> Option<Duration> {
        self.asked.retain(|_, asked| now < asked.until);
        self.wanted_at.map(|at| at + self.pace())
    }

    /// The time between two probes.
    fn pace(&self) -> Duration {
        match self.stage {
            Stage::Open if self.unconfirmed.is_empty() => IDLE_PROBE,
            _ => PROBE,
        }
    }

    fn is_overdue(&self, now: Duration) -> bool {
        self.wanted_at.is_none_or(|at| now >= at + self.pace())
    }

    /// Sends what there is: each frame has as many records as fit.
    pub(crate) fn flush(
        &mut self,
        now: Duration,
        from: NodeId,
        revision: Revision,
        bytes_max: usize,
        output: &mut Output,
    ) {
        let is_open = self.stage == Stage::Open;
        loop {
            let has_records = is_open && !self.queue.is_empty();
            if !(self.is_due || has_records || self.is_overdue(now)) {
                return;
            }
            self.is_due = false;
            let first = self.sent;
            let head = Head {
                wants: false,
                from,
                to: self.with.incarnation,
                revision,
                epoch: self.epoch,
                heard: self.peer_epoch,
                first,
                received: self.received,
            };
            let mut frame = head.encode();
            if is_open {
                self.fill(&mut frame);
            }
            if self.sent > first {
                self.unconfirmed.push_back((self.sent, frame.len()));
                self.unconfirmed_bytes += frame.len();
                self.sent_since += frame.len();
            }
            if !is_open || self.is_overdue(now) || self.sent_since >= bytes_max / 16 {
                want(&mut frame);
                (self.wanted_at, self.sent_since) = (Some(now), 0);
            }
            output.send(self.with, frame);
        }
    }

    /// Moves records from the queue into a frame.
    fn fill(&mut self, frame: &mut Vec<u8>) {
        let first = self.sent;
        while let Some(next) = self.queue.front() {
            let is_over = next.ask.is_some_and(|ask| !self.asks.contains_key(&ask));
            if !is_over && self.sent > first && frame.len() + next.bytes.len() > FRAME_MAX {
                return;
            }
            self.queued_bytes -= next.bytes.len();
            if !is_over {
                frame.extend_from_slice(&next.bytes);
                self.sent += 1;
            }
            self.queue.pop_front();
        }
    }
}
