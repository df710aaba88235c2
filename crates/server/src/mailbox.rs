//! How shards write to each other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use mio::Waker;

use crate::shard::ShardMail;

/// One mailbox for each shard. What may be refused is refused once `max` letters wait; what ends something that was
/// accepted (answers, departures, what a player is owed) is always taken.
pub(crate) struct Mailboxes {
    boxes: Vec<Mailbox>,
    max: usize,
}

#[derive(Default)]
struct Mailbox {
    letters: Mutex<VecDeque<ShardMail>>,
    waiting: AtomicUsize,
    waker: OnceLock<Waker>,
}

impl Mailboxes {
    pub(crate) fn new(shards: usize, max: usize) -> Self {
        Self { boxes: (0..shards).map(|_| Mailbox::default()).collect(), max }
    }

    /// Names who is to be woken when something comes.
    pub(crate) fn set_waker(&self, shard: usize, waker: Waker) {
        let _ = self.boxes[shard].waker.set(waker);
    }

    /// Whether a letter that may be refused would be.
    pub(crate) fn is_full(&self, shard: usize, about_to_come: usize) -> bool {
        self.boxes[shard].waiting.load(Relaxed) + about_to_come >= self.max
    }

    /// Delivers letters in order, and wakes the shard.
    pub(crate) fn post(&self, shard: usize, letters: impl IntoIterator<Item = ShardMail>) {
        let mailbox = &self.boxes[shard];
        let before = {
            let mut waiting = mailbox.letters.lock().unwrap_or_else(PoisonError::into_inner);
            let before = waiting.len();
            waiting.extend(letters);
            mailbox.waiting.store(waiting.len(), Relaxed);
            before
        };
        if before == 0
            && let Some(waker) = mailbox.waker.get()
            && let Err(error) = waker.wake()
        {
            log::error!("shard {shard} could not be woken: {error}");
        }
    }

    /// Takes all that waits.
    pub(crate) fn take(&self, shard: usize) -> VecDeque<ShardMail> {
        let mailbox = &self.boxes[shard];
        let mut waiting = mailbox.letters.lock().unwrap_or_else(PoisonError::into_inner);
        mailbox.waiting.store(0, Relaxed);
        std::mem::take(&mut *waiting)
    }

    pub(crate) fn shards(&self) -> usize {
        self.boxes.len()
    }
}
