//! Bounded queues between threads, one for each shard.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mio::net::TcpStream;

use crate::addresses::Tally;
use crate::event_loop::Layer;
use crate::shard::connection::Moving;
use crate::shard::mail::ShardMail;
use crate::waker::ShardWaker;

/// What other threads send to a shard.
pub(crate) enum Parcel {
    Mail(ShardMail),
    /// A connection that moves here.
    Moved {
        /// `None` if it comes through the passage between descriptor tables.
        socket: Option<TcpStream>,
        /// What lies between the socket and the connection.
        layer: Layer,
        moving: Moving,
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

/// Where a shard takes its parcels from. Nobody ever waits for space in it.
pub(crate) struct Mailbox {
    parcels: Mutex<VecDeque<Parcel>>,
    parcels_max: usize,
    waker: ShardWaker,
}

impl Mailbox {
    pub(crate) fn new(parcels_max: usize, waker: ShardWaker) -> Self {
        Self { parcels: Mutex::new(VecDeque::new()), parcels_max, waker }
    }

    /// Puts one in, or gives it back if the mailbox is full.
    pub(crate) fn push(&self, parcel: Parcel) -> Result<(), Parcel> {
        self.push_with(parcel, || true)
    }

    /// As [`push`](Self::push), if `send` succeeds as well. What it sends arrives in the order of
    /// the parcels.
    pub(crate) fn push_with(
        &self,
        parcel: Parcel,
        send: impl FnOnce() -> bool,
    ) -> Result<(), Parcel> {
        let mut parcels = self.lock();
        if parcels.len() >= self.parcels_max || !send() {
            return Err(parcel);
        }
        let was_empty = parcels.is_empty();
        parcels.push_back(parcel);
        drop(parcels);
        self.wake_if(was_empty);
        Ok(())
    }

    /// Puts in as many as there is space for, from the front.
    pub(crate) fn push_all(&self, mail: &mut VecDeque<ShardMail>) {
        if mail.is_empty() {
            return;
        }
        let mut parcels = self.lock();
        let was_empty = parcels.is_empty();
        let space = self.parcels_max.saturating_sub(parcels.len());
        parcels.extend(mail.drain(..space.min(mail.len())).map(Parcel::Mail));
        drop(parcels);
        self.wake_if(was_empty);
    }

    /// Puts in the result of background work, however full the mailbox is: the number of tasks is
    /// bounded where they start.
    pub(crate) fn push_promised(&self, mail: ShardMail) {
        let mut parcels = self.lock();
        let was_empty = parcels.is_empty();
        parcels.push_back(Parcel::Mail(mail));
        drop(parcels);
        self.wake_if(was_empty);
    }

    /// Takes out everything, oldest first.
    pub(crate) fn take(&self) -> VecDeque<Parcel> {
        std::mem::take(&mut *self.lock())
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

    fn lock(&self) -> MutexGuard<'_, VecDeque<Parcel>> {
        // Nothing in here can panic half-way through a change.
        self.parcels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many parcels are handled before the time is looked at again.
const PARCELS_AT_ONCE: usize = 8;

/// Parcels that were taken out of a mailbox and are not handled yet.
#[derive(Default)]
pub(crate) struct Backlog(VecDeque<Parcel>);

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
                self.0 = mailbox.take();
            }
            let count = self.0.len().min(PARCELS_AT_ONCE);
            self.0.drain(..count).for_each(|parcel| handle(context, parcel));
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
    use playfield_wire::ErrorCode;

    use super::{Backlog, Mailbox, PARCELS_AT_ONCE, Parcel};
    use crate::shard::keys::ConnectionKey;
    use crate::shard::mail::ShardMail;

    fn mail(number: u64) -> ShardMail {
        let connection = ConnectionKey::from_bits(number);
        let (code, text) = (ErrorCode::TooSlow, String::new());
        ShardMail::Doom { connection, code, text, unless_away: false }
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
            Parcel::Mail(ShardMail::Doom { connection, .. }) => connection.bits(),
            _ => panic!("only such mail was put in"),
        }
    }

    fn numbers(mailbox: &Mailbox) -> Vec<u64> {
        mailbox.take().into_iter().map(number).collect()
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
    }
}
