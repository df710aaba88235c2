//! Bounded queues between threads, one for each shard.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mio::net::TcpStream;

use crate::addresses::Tally;
use crate::event_loop::Layer;
use crate::memory::release;
use crate::shard::connection::http::HandedOver;
use crate::shard::mail::ShardMail;
use crate::shard::session::moving::Moving;
use crate::waker::ShardWaker;

/// An item that another thread sends to a shard.
pub(crate) enum Parcel {
    Mail(ShardMail),
    /// A connection that moves here.
    Moved {
        /// `None` if it comes through the passage between descriptor tables.
        socket: Option<TcpStream>,
        /// The layer between the socket and the connection.
        layer: Layer,
        moving: Moving,
    },
    /// A connection that the control thread gives back, with a request for a WebSocket.
    Returned {
        /// `None` if it comes through the passage between descriptor tables.
        socket: Option<TcpStream>,
        layer: Layer,
        http: HandedOver,
    },
    /// A connection that another shard accepted for this one.
    Accepted(Newcomer),
}

/// A connection that was just accepted.
pub(crate) struct Newcomer {
    pub(crate) socket: TcpStream,
    pub(crate) address: SocketAddr,
    pub(crate) tally: Tally,
    /// The number of the service that it is for; `None` is for rooms and pages.
    pub(crate) service: Option<u16>,
}

/// Parcels that were put in together, oldest first. No batch grows while the mailbox is locked.
type Batch = VecDeque<Parcel>;

/// The number of parcels that fit into a batch at least: few come at once, and take no memory of
/// their own.
const BATCH_MIN: usize = 32;

/// A shard's queue of parcels. Nobody ever waits for space in it, and it is locked only to put in
/// or take out batches: a thread that copied many parcels meanwhile would hold up all others.
pub(crate) struct Mailbox {
    batches: Mutex<VecDeque<Batch>>,
    /// The number of parcels that are there, or are about to be.
    parcels: AtomicUsize,
    parcels_max: usize,
    waker: ShardWaker,
}

impl Mailbox {
    pub(crate) fn new(parcels_max: usize, waker: ShardWaker) -> Self {
        let (batches, parcels) = (Mutex::default(), AtomicUsize::new(0));
        Self { batches, parcels, parcels_max, waker }
    }

    /// Returns the number of parcels.
    pub(crate) fn len(&self) -> usize {
        self.parcels.load(Ordering::Relaxed)
    }

    /// Puts one in, or gives it back if the mailbox is full.
    pub(crate) fn push(&self, parcel: Parcel) -> Result<(), Parcel> {
        self.push_with(parcel, || true)
    }

    /// Like [`push`](Self::push), if `send` succeeds as well. What `send` sends arrives in the
    /// order of the parcels.
    pub(crate) fn push_with(
        &self,
        parcel: Parcel,
        send: impl FnOnce() -> bool,
    ) -> Result<(), Parcel> {
        if self.reserve(1) == 0 {
            return Err(parcel);
        }
        let mut batches = self.lock();
        if !send() {
            drop(batches);
            self.parcels.fetch_sub(1, Ordering::Relaxed);
            return Err(parcel);
        }
        let was_empty = batches.is_empty();
        put(&mut batches, parcel);
        drop(batches);
        self.wake_if(was_empty);
        Ok(())
    }

    /// Puts in as many as there is space for, from the front.
    pub(crate) fn push_all(&self, mail: &mut VecDeque<ShardMail>) {
        let count = if mail.is_empty() { 0 } else { self.reserve(mail.len()) };
        if count == 0 {
            return;
        }
        let mut batch = Batch::with_capacity(count.max(BATCH_MIN));
        batch.extend(mail.drain(..count).map(Parcel::Mail));
        let mut batches = self.lock();
        let was_empty = batches.is_empty();
        batches.push_back(batch);
        drop(batches);
        self.wake_if(was_empty);
    }

    /// Puts in the result of background work, however full the mailbox is: the number of tasks is
    /// bounded where they start.
    pub(crate) fn push_promised(&self, mail: ShardMail) {
        self.parcels.fetch_add(1, Ordering::Relaxed);
        let mut batches = self.lock();
        let was_empty = batches.is_empty();
        put(&mut batches, Parcel::Mail(mail));
        drop(batches);
        self.wake_if(was_empty);
    }

    /// Takes out everything, oldest first, in exchange for an empty queue, whose memory is used
    /// again.
    fn exchange(&self, taken: &mut VecDeque<Batch>) {
        debug_assert!(taken.is_empty(), "what was taken before is handled");
        std::mem::swap(&mut *self.lock(), taken);
        let count = taken.iter().map(VecDeque::len).sum();
        self.parcels.fetch_sub(count, Ordering::Relaxed);
    }

    /// Makes space for as many of these as there may be.
    fn reserve(&self, wanted: usize) -> usize {
        let mut count = 0;
        let reserved = self.parcels.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |parcels| {
            count = wanted.min(self.parcels_max.saturating_sub(parcels));
            (count > 0).then_some(parcels + count)
        });
        if reserved.is_ok() { count } else { 0 }
    }

    /// Begins a turn of the shard, even if nothing was put in.
    pub(crate) fn wake(&self) -> io::Result<()> {
        self.waker.wake()
    }

    fn wake_if(&self, was_empty: bool) {
        if was_empty && let Err(error) = self.wake() {
            // It comes with the shard's next turn then.
            log::warn!("a shard could not be woken: {error}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Batch>> {
        // Nothing in here can panic half-way through a change.
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts one into the last batch if it has space, or into one of its own.
fn put(batches: &mut VecDeque<Batch>, parcel: Parcel) {
    match batches.back_mut() {
        Some(last) if last.len() < last.capacity() => last.push_back(parcel),
        _ => {
            let mut batch = Batch::with_capacity(BATCH_MIN);
            batch.push_back(parcel);
            batches.push_back(batch);
        }
    }
}

/// The number of parcels that are handled before the time is looked at again.
const PARCELS_AT_ONCE: usize = 8;

/// Parcels that were taken out of a mailbox and are not handled yet.
#[derive(Default)]
pub(crate) struct Backlog(VecDeque<Batch>);

impl Backlog {
    /// Handles what is in the backlog and then what is in the mailbox, oldest first, until
    /// `is_over`. Returns whether some may be left: the mailbox does not wake the shard for it.
    pub(crate) fn work_off<C>(
        &mut self,
        mailbox: &Mailbox,
        context: &mut C,
        is_over: impl Fn(&mut C) -> bool,
        handle: impl Fn(&mut C, Parcel),
    ) -> bool {
        let mut is_refilled = false;
        loop {
            if self.0.is_empty() {
                // Only once: what is put in later wakes the shard.
                if std::mem::replace(&mut is_refilled, true) {
                    return false;
                }
                release(&mut self.0);
                mailbox.exchange(&mut self.0);
            }
            let mut count = 0;
            while count < PARCELS_AT_ONCE
                && let Some(batch) = self.0.front_mut()
            {
                match batch.pop_front() {
                    Some(parcel) => {
                        handle(context, parcel);
                        count += 1;
                    }
                    None => drop(self.0.pop_front()),
                }
            }
            if self.0.front().is_some_and(VecDeque::is_empty) {
                self.0.pop_front();
            }
            if count > 0 && is_over(context) {
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use mio::{Poll, Token, Waker};

    use super::{Backlog, Mailbox, PARCELS_AT_ONCE, Parcel};
    use crate::shard::mail::ShardMail;

    fn mail(number: u64) -> ShardMail {
        let (shard, session, live, leaves) = (0, 0, false, true);
        ShardMail::Unsubscribe { channel: number, shard, session, live, leaves }
    }

    #[test]
    fn what_there_is_no_time_for_stays_in_the_backlog_in_order() {
        let poll = Poll::new().unwrap();
        let mailbox = Mailbox::new(100, Waker::new(poll.registry(), Token(0)).unwrap().into());
        let most = PARCELS_AT_ONCE as u64;
        let put = |from: u64, to: u64| {
            for number in from..to {
                assert!(mailbox.push(Parcel::Mail(mail(number))).is_ok());
            }
        };
        let mut backlog = Backlog::default();
        let mut handled = Vec::new();
        let mut work = |is_over: bool| {
            let before = handled.len();
            let handle = |handled: &mut Vec<_>, parcel| handled.push(number(parcel));
            let is_left = backlog.work_off(&mailbox, &mut handled, |_| is_over, handle);
            (handled.len() - before, is_left)
        };
        assert_eq!(work(true), (0, false), "nothing takes no time");
        put(0, most);
        assert_eq!(work(true), (PARCELS_AT_ONCE, true), "some may have come meanwhile");
        assert_eq!(work(true), (0, false));
        put(most, 2 * most + 1);
        assert_eq!(work(true), (PARCELS_AT_ONCE, true));
        put(2 * most + 1, 2 * most + 3);
        // What is left of before, and what came meanwhile, which nothing announces any more.
        assert_eq!(work(false), (3, false));
        assert_eq!(handled, (0..2 * most + 3).collect::<Vec<_>>());
    }

    fn number(parcel: Parcel) -> u64 {
        match parcel {
            Parcel::Mail(ShardMail::Unsubscribe { channel, .. }) => channel,
            _ => panic!("only such mail was put in"),
        }
    }

    fn numbers(mailbox: &Mailbox) -> Vec<u64> {
        let mut taken = VecDeque::new();
        mailbox.exchange(&mut taken);
        taken.into_iter().flatten().map(number).collect()
    }

    #[test]
    fn mailbox_max_is_all_that_fits_and_the_rest_stays_where_it_was() {
        let poll = Poll::new().unwrap();
        let mailbox = Mailbox::new(3, Waker::new(poll.registry(), Token(0)).unwrap().into());
        assert!(mailbox.push(Parcel::Mail(mail(1))).is_ok());
        let mut waiting: VecDeque<_> = (2..=5).map(mail).collect();
        mailbox.push_all(&mut waiting);
        assert_eq!(waiting.len(), 2);
        assert!(mailbox.push(Parcel::Mail(mail(9))).is_err());
        mailbox.push_promised(mail(10));
        assert_eq!(numbers(&mailbox), [1, 2, 3, 10]);
        mailbox.push_all(&mut waiting);
        assert_eq!((numbers(&mailbox), waiting.len()), (vec![4, 5], 0));
        assert!(mailbox.push_with(Parcel::Mail(mail(6)), || false).is_err());
        let mut waiting: VecDeque<_> = (7..=10).map(mail).collect();
        mailbox.push_all(&mut waiting);
        assert_eq!(numbers(&mailbox), [7, 8, 9], "what was not sent takes no space");
    }

    /// Putting parcels in while the mailbox is locked must not move those that are there already.
    #[test]
    fn batches_stay_where_they_are_and_the_queue_of_them_is_used_again() {
        let poll = Poll::new().unwrap();
        let mailbox = Mailbox::new(1 << 20, Waker::new(poll.registry(), Token(0)).unwrap().into());
        let mut waiting: VecDeque<_> = (0..1000).map(mail).collect();
        mailbox.push_all(&mut waiting);
        let first = |mailbox: &Mailbox| std::ptr::from_ref(&mailbox.lock()[0][0]);
        let place = first(&mailbox);
        for number in 1000..5000 {
            assert!(mailbox.push(Parcel::Mail(mail(number))).is_ok());
        }
        assert_eq!(first(&mailbox), place);
        let mut taken = VecDeque::new();
        mailbox.exchange(&mut taken);
        assert!(taken.iter().flatten().count() == 5000 && taken.capacity() > 0);
        taken.clear();
        mailbox.exchange(&mut taken);
        assert!(mailbox.lock().capacity() > 0, "its memory is used again");
    }
}
