//! The work of a connection, which is done in groups.

use std::collections::{HashMap, HashSet};

use playfield_room::{Completion, Fence, Loaded, Opened, StoreError};
use tokio::sync::oneshot::Sender;

use super::session::Session;
use super::trouble::Trouble;
use crate::queue::{Item, Name, Queue};
use crate::reader::Query;

/// The most saves in a statement, and their bytes. A larger one is a statement of its own.
const WRITES_MAX: usize = 512;
const WRITE_BYTES_MAX: usize = 8 << 20;

/// The most saves that a statement reads. Their bytes are in memory together.
const READS_MAX: usize = 64;

/// The number of times that a statement is tried again which others were in the way of.
const TRIES_MAX: u32 = 3;

/// The bytes for which a call counts that brings none.
const CALL_BYTES: usize = 1 << 10;

type Answer<T> = Sender<Result<T, StoreError>>;

/// A call of the store.
pub(super) enum Op {
    Write(Write),
    Open(Name, Answer<Opened>),
    Close(Name, Fence),
    Load(Name, Answer<Option<Loaded>>),
    Keys(Query, Answer<Vec<String>>),
}

/// A save to write, or to remove.
pub(super) struct Write {
    pub(super) name: Name,
    pub(super) fence: Fence,
    /// `None` to remove it.
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) done: Completion,
}

impl Item for Write {
    fn size(&self) -> usize {
        CALL_BYTES + self.bytes.as_ref().map_or(0, Vec::len)
    }
}

impl Item for Op {
    fn size(&self) -> usize {
        match self {
            Self::Write(write) => write.size(),
            Self::Open(..) | Self::Close(..) | Self::Load(..) | Self::Keys(..) => CALL_BYTES,
        }
    }
}

impl Op {
    /// Answers a call that is not carried out.
    pub(super) fn fail(self, error: &StoreError) {
        match self {
            Self::Write(write) => write.done.complete(Err(error.clone())),
            Self::Open(_, done) => drop(done.send(Err(error.clone()))),
            Self::Load(_, done) => drop(done.send(Err(error.clone()))),
            Self::Keys(_, done) => drop(done.send(Err(error.clone()))),
            // Only the row of the save remains.
            Self::Close(..) => {}
        }
    }
}

/// Calls that were taken from the queue and are not done. A save is written before the calls that
/// came with it and read.
#[derive(Default)]
pub(super) struct Batch {
    writes: Calls<Write>,
    opens: Calls<(Name, Answer<Opened>)>,
    loads: Calls<(Name, Answer<Option<Loaded>>)>,
    keys: Calls<(Query, Answer<Vec<String>>)>,
    closes: Calls<(Name, Fence)>,
}

/// Calls of one kind, in their order.
struct Calls<T> {
    waiting: Vec<T>,
    /// The next ones that are done one by one, since one of them fails.
    alone: usize,
    tries: u32,
}

impl<T> Default for Calls<T> {
    fn default() -> Self {
        Self { waiting: Vec::new(), alone: 0, tries: 0 }
    }
}

impl<T> Calls<T> {
    /// Returns the number of calls to do next, of those that would fit.
    fn next(&self, fitting: usize) -> usize {
        if self.alone > 0 { 1 } else { fitting }
    }

    /// Removes the first calls, which are done.
    fn done(&mut self, count: usize) -> impl Iterator<Item = T> {
        self.tries = 0;
        self.alone = self.alone.saturating_sub(count);
        self.waiting.drain(..count)
    }

    /// Returns the error of the first call, if it failed alone. Otherwise they are tried again, or
    /// one by one.
    fn failed(&mut self, count: usize, trouble: Trouble) -> Result<Option<StoreError>, StoreError> {
        let error = match trouble {
            Trouble::Away(error) => return Err(error),
            Trouble::Again(_) if self.tries < TRIES_MAX => {
                self.tries += 1;
                return Ok(None);
            }
            Trouble::Again(error) | Trouble::Failed(error) => error,
        };
        if count == 1 {
            return Ok(Some(error));
        }
        self.alone = count;
        Ok(None)
    }
}

impl Batch {
    pub(super) fn add(&mut self, ops: Vec<Op>) {
        for op in ops {
            match op {
                Op::Write(write) => self.writes.waiting.push(write),
                Op::Open(name, done) => self.opens.waiting.push((name, done)),
                Op::Load(name, done) => self.loads.waiting.push((name, done)),
                Op::Keys(query, done) => self.keys.waiting.push((query, done)),
                Op::Close(name, fence) => self.closes.waiting.push((name, fence)),
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writes.waiting.is_empty()
            && self.opens.waiting.is_empty()
            && self.loads.waiting.is_empty()
            && self.keys.waiting.is_empty()
            && self.closes.waiting.is_empty()
    }

    /// Does all that waits. What is not done when the database is away stays.
    pub(super) async fn run(
        &mut self,
        session: &Session,
        queue: &Queue<Op>,
    ) -> Result<(), StoreError> {
        while !self.writes.waiting.is_empty() {
            self.write(session, queue).await?;
        }
        while !self.opens.waiting.is_empty() {
            self.open(session, queue).await?;
        }
        while !self.loads.waiting.is_empty() {
            self.load(session, queue).await?;
        }
        while !self.keys.waiting.is_empty() {
            self.list(session, queue).await?;
        }
        while !self.closes.waiting.is_empty() {
            self.close(session, queue).await?;
        }
        Ok(())
    }

    async fn write(&mut self, session: &Session, queue: &Queue<Op>) -> Result<(), StoreError> {
        let calls = &mut self.writes;
        let count = calls.next(group(&calls.waiting));
        // Of a save that waits twice, the newer one counts for both.
        let mut places = HashMap::new();
        let mut newest: Vec<&Write> = Vec::with_capacity(count);
        let writes = calls.waiting[..count].iter();
        let places: Vec<usize> = writes
            .map(|write| {
                let place = *places.entry((&write.name, write.fence)).or_insert(newest.len());
                match newest.get_mut(place) {
                    Some(older) => *older = write,
                    None => newest.push(write),
                }
                place
            })
            .collect();
        let outcomes: Vec<Result<(), StoreError>> = match session.write(&newest).await {
            Ok(written) => {
                let outcome = |(write, place): (&Write, &usize)| match written[*place] {
                    true => Ok(()),
                    false => Err(StoreError::fenced(&write.name.0, &write.name.1, write.fence)),
                };
                calls.waiting[..count].iter().zip(&places).map(outcome).collect()
            }
            Err(trouble) => match calls.failed(count, trouble)? {
                Some(error) => vec![Err(error)],
                None => return Ok(()),
            },
        };
        for (write, outcome) in calls.done(count).zip(outcomes) {
            queue.done(write.size());
            write.done.complete(outcome);
        }
        Ok(())
    }

    async fn open(&mut self, session: &Session, queue: &Queue<Op>) -> Result<(), StoreError> {
        let calls = &mut self.opens;
        // A statement opens each save once.
        let mut names = HashSet::new();
        let waiting = calls.waiting.iter().take(READS_MAX);
        let count = calls.next(waiting.take_while(|(name, _)| names.insert(name)).count());
        calls.waiting[..count].sort_by(|(one, _), (other, _)| one.cmp(other));
        let names: Vec<&Name> = calls.waiting[..count].iter().map(|(name, _)| name).collect();
        let outcomes: Vec<Result<Opened, StoreError>> = match session.open(&names).await {
            Ok(opened) => opened.into_iter().map(Ok).collect(),
            Err(trouble) => match calls.failed(count, trouble)? {
                Some(error) => vec![Err(error)],
                None => return Ok(()),
            },
        };
        for ((name, done), outcome) in calls.done(count).zip(outcomes) {
            match done.send(outcome) {
                // Its owner is gone meanwhile; the call counts for its end now.
                Err(Ok(Opened { fence, .. })) => self.closes.waiting.push((name, fence)),
                Ok(()) | Err(Err(_)) => queue.done(CALL_BYTES),
            }
        }
        Ok(())
    }

    async fn load(&mut self, session: &Session, queue: &Queue<Op>) -> Result<(), StoreError> {
        let calls = &mut self.loads;
        let count = calls.next(calls.waiting.len().min(READS_MAX));
        let names: Vec<&Name> = calls.waiting[..count].iter().map(|(name, _)| name).collect();
        let outcomes: Vec<Result<Option<Loaded>, StoreError>> = match session.load(&names).await {
            Ok(loaded) => loaded.into_iter().map(Ok).collect(),
            Err(trouble) => match calls.failed(count, trouble)? {
                Some(error) => vec![Err(error)],
                None => return Ok(()),
            },
        };
        for ((_, done), outcome) in calls.done(count).zip(outcomes) {
            queue.done(CALL_BYTES);
            // Nobody may wait for the answer any more.
            let _ = done.send(outcome);
        }
        Ok(())
    }

    async fn list(&mut self, session: &Session, queue: &Queue<Op>) -> Result<(), StoreError> {
        let calls = &mut self.keys;
        let outcome = match session.keys(&calls.waiting[0].0).await {
            Ok(keys) => Ok(keys),
            Err(trouble) => match calls.failed(1, trouble)? {
                Some(error) => Err(error),
                None => return Ok(()),
            },
        };
        for ((_, done), outcome) in calls.done(1).zip([outcome]) {
            queue.done(CALL_BYTES);
            let _ = done.send(outcome);
        }
        Ok(())
    }

    async fn close(&mut self, session: &Session, queue: &Queue<Op>) -> Result<(), StoreError> {
        let calls = &mut self.closes;
        let count = calls.next(calls.waiting.len().min(WRITES_MAX));
        if let Err(trouble) = session.close(&calls.waiting[..count]).await {
            match calls.failed(count, trouble)? {
                Some(error) => log::warn!("a save without bytes was not removed: {error}"),
                None => return Ok(()),
            }
        }
        let count = calls.done(count).count();
        queue.done(count * CALL_BYTES);
        Ok(())
    }

    /// Answers the calls that read, and keeps the saves.
    pub(super) fn fail_reads(&mut self, error: &StoreError, queue: &Queue<Op>) {
        let opens = std::mem::take(&mut self.opens).waiting;
        let loads = std::mem::take(&mut self.loads).waiting;
        let keys = std::mem::take(&mut self.keys).waiting;
        queue.done((opens.len() + loads.len() + keys.len()) * CALL_BYTES);
        opens.into_iter().for_each(|(name, done)| Op::Open(name, done).fail(error));
        loads.into_iter().for_each(|(name, done)| Op::Load(name, done).fail(error));
        keys.into_iter().for_each(|(query, done)| Op::Keys(query, done).fail(error));
    }

    /// Gives up all calls. Returns the number of saves that are not written.
    pub(super) fn fail_all(&mut self, error: &StoreError, queue: &Queue<Op>) -> usize {
        self.fail_reads(error, queue);
        let closes = std::mem::take(&mut self.closes).waiting;
        let writes = std::mem::take(&mut self.writes).waiting;
        let bytes: usize = writes.iter().map(Item::size).sum();
        queue.done(closes.len() * CALL_BYTES + bytes);
        let count = writes.len();
        writes.into_iter().for_each(|write| Op::Write(write).fail(error));
        count
    }
}

/// Returns the number of saves that are written together, of those that wait.
fn group(writes: &[Write]) -> usize {
    let mut bytes = 0;
    let fitting = writes.iter().take(WRITES_MAX).take_while(|write| {
        bytes += write.size();
        bytes <= WRITE_BYTES_MAX
    });
    fitting.count().max(1)
}
