//! Sessions and members that wait for snapshots, which peers cause by joining, by asking and by
//! coming back: each has one place, in the [line](crate::shard::work) of its address or until it
//! may have one.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::memory::shrink_map;
use crate::shard::work::{Host, Line, Waiting, Work, WorkQueue};

/// The time for which snapshots are written in one turn by syncs, for players who join, and as long
/// again for those that wait in a line. A snapshot of a large state may take a millisecond, and a
/// thousand may be asked for at once; rooms, and what was written, come in between.
const PER_TURN: Duration = Duration::from_millis(1);

/// The places of those who wait.
#[derive(Default)]
pub(crate) struct Snapshots {
    places: HashMap<Waiting, Place>,
    /// Waiting ones whose limits say when: by the time, and the number of the place.
    later: BTreeMap<(Duration, u64), Waiting>,
    /// The number of places given.
    given: u64,
    /// The time that snapshots took in this turn, at syncs and in lines.
    at_syncs: Duration,
    in_lines: Duration,
}

struct Place {
    number: u64,
    waits: Waits,
}

enum Waits {
    Until(Duration),
    InLine(Host),
}

impl Snapshots {
    /// A turn begins.
    pub(in crate::shard) fn begin(&mut self) {
        (self.at_syncs, self.in_lines) = (Duration::ZERO, Duration::ZERO);
    }

    /// Returns whether a sync may write a snapshot in this turn.
    pub(crate) fn is_free(&self) -> bool {
        self.at_syncs < PER_TURN
    }

    /// A sync has written a snapshot.
    pub(crate) fn spent(&mut self, time: Duration) {
        self.at_syncs += time;
    }

    /// Returns whether a snapshot that waits in a line may be written in this turn.
    pub(in crate::shard) fn has_time(&self) -> bool {
        self.in_lines < PER_TURN
    }

    /// A snapshot that waited in a line was written.
    pub(in crate::shard) fn wrote(&mut self, time: Duration) {
        self.in_lines += time;
    }

    /// Puts someone into the line of an address. What waits in the line of another one leaves that.
    pub(in crate::shard) fn line_up(
        &mut self,
        queue: &mut WorkQueue,
        waiting: Waiting,
        host: Host,
    ) {
        match self.places.get(&waiting) {
            Some(Place { waits: Waits::InLine(before), .. }) if *before == host => return,
            // What is in that line is passed over.
            Some(Place { waits: Waits::InLine(_), .. }) | None => {}
            Some(Place { waits: Waits::Until(at), number }) => {
                self.later.remove(&(*at, *number));
            }
        }
        self.given += 1;
        let number = self.given;
        let line = match waiting {
            Waiting::Session(_) => Line::Returns,
            Waiting::Member(..) => Line::Snapshots,
        };
        queue.push(&host, line as usize, Work::Snapshot(waiting, number));
        self.places.insert(waiting, Place { number, waits: Waits::InLine(host) });
    }

    /// Returns whether someone waits in a line.
    pub(in crate::shard) fn is_in_line(&self, waiting: Waiting) -> bool {
        matches!(self.places.get(&waiting), Some(Place { waits: Waits::InLine(_), .. }))
    }

    /// Lets someone wait until `at`, unless it waits in a line.
    pub(in crate::shard) fn wait(&mut self, waiting: Waiting, at: Duration) {
        match self.places.get(&waiting) {
            Some(Place { waits: Waits::InLine(_), .. }) => return,
            Some(Place { waits: Waits::Until(earlier), number }) => {
                self.later.remove(&(*earlier, *number));
            }
            None => {}
        }
        self.given += 1;
        let number = self.given;
        self.places.insert(waiting, Place { number, waits: Waits::Until(at) });
        self.later.insert((at, number), waiting);
    }

    /// Takes out someone who has waited until now.
    pub(in crate::shard) fn next_due(&mut self, now: Duration) -> Option<Waiting> {
        let (&(at, number), _) = self.later.first_key_value()?;
        if at > now {
            return None;
        }
        let waiting = self.later.remove(&(at, number))?;
        self.places.remove(&waiting);
        Some(waiting)
    }

    /// The place with this number is next in its line. Returns whether it is still taken: it no
    /// longer is.
    pub(in crate::shard) fn leave(&mut self, waiting: Waiting, number: u64) -> bool {
        let is_taken = self.places.get(&waiting).is_some_and(|place| place.number == number);
        if is_taken {
            self.places.remove(&waiting);
            shrink_map(&mut self.places);
        }
        is_taken
    }

    /// When someone has waited long enough.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.later.first_key_value().map(|(&(at, _), _)| at)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{PER_TURN, Snapshots};
    use crate::addresses::{Address, Addresses};
    use crate::config::Config;
    use crate::shard::slab::Key;
    use crate::shard::work::{Host, Waiting, Work, WorkQueue, work_queue};

    const fn us(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    fn addresses<const N: usize>() -> [Arc<Address>; N] {
        let addresses = Addresses::new(&Config::default());
        std::array::from_fn(|at| addresses.at([10, 0, 0, at as u8].into(), Duration::ZERO))
    }

    fn session(number: u64) -> Waiting {
        Waiting::Session(Key::from_bits(number))
    }

    /// The waiting sessions, in the fair queue.
    struct Queue {
        snapshots: Snapshots,
        work: WorkQueue,
    }

    impl Default for Queue {
        fn default() -> Self {
            Self { snapshots: Snapshots::default(), work: work_queue() }
        }
    }

    impl Queue {
        fn line_up(&mut self, number: u64, address: &Arc<Address>) {
            let host = Host(Arc::clone(address));
            self.snapshots.line_up(&mut self.work, session(number), host);
        }

        /// The next one, for whom the snapshot takes this long.
        fn serve(&mut self, time: Duration) -> Option<Waiting> {
            while let Some(work) = self.work.next() {
                if let Work::Snapshot(waiting, number) = work
                    && self.snapshots.leave(waiting, number)
                {
                    self.work.took(time);
                    return Some(waiting);
                }
            }
            None
        }

        fn serve_all(&mut self) -> Vec<Waiting> {
            std::iter::from_fn(|| self.serve(us(300))).collect()
        }
    }

    #[test]
    fn snapshots_are_written_for_1_ms_in_a_turn() {
        let mut snapshots = Snapshots::default();
        snapshots.spent(PER_TURN - us(1));
        snapshots.wrote(PER_TURN);
        assert!(snapshots.is_free() && !snapshots.has_time());
        snapshots.spent(us(1));
        assert!(!snapshots.is_free());
        snapshots.begin();
        assert!(snapshots.is_free() && snapshots.has_time());
    }

    #[test]
    fn addresses_take_turns_and_each_waits_once() {
        let mut queue = Queue::default();
        let [full, thin] = addresses();
        for number in [1, 2, 3, 2, 1] {
            queue.line_up(number, &full);
        }
        for number in [4, 5] {
            queue.line_up(number, &thin);
        }
        assert_eq!(queue.serve_all(), [1, 4, 2, 5, 3].map(session));
        assert!(queue.snapshots.places.is_empty() && queue.work.is_empty());
    }

    #[test]
    fn one_that_comes_to_another_address_waits_there() {
        let mut queue = Queue::default();
        let [full, thin, last] = addresses();
        for number in 1..=3 {
            queue.line_up(number, &full);
        }
        queue.line_up(4, &last);
        queue.line_up(3, &thin);
        assert_eq!(queue.serve_all(), [1, 4, 3, 2].map(session));
        // There and back.
        for address in [&full, &thin, &full] {
            queue.line_up(1, address);
        }
        assert_eq!(queue.serve_all(), [session(1)]);
        assert!(queue.snapshots.places.is_empty() && queue.work.is_empty());
    }

    /// A session that waits again in its own turn, as one does between two rooms.
    #[test]
    fn one_that_needs_many_is_not_held_up_by_others_that_need_one_however_many_come() {
        let known = Addresses::new(&Config::default());
        let at = |number: u32| known.at((0x0A00_0000 + number).to_be_bytes().into(), us(0));
        let (patient, mut others) = (at(0), (1..).map(at));
        let mut queue = Queue::default();
        let mut number = 1;
        let mut come = |queue: &mut Queue| {
            queue.line_up(number, &others.next().unwrap());
            number += 1;
        };
        (0..100).for_each(|_| come(&mut queue));
        queue.line_up(0, &patient);
        for rooms in 0..12 {
            let mut before = 0;
            loop {
                let Some(Work::Snapshot(waiting, place)) = queue.work.next() else { panic!() };
                assert!(queue.snapshots.leave(waiting, place));
                come(&mut queue);
                if waiting == session(0) {
                    queue.line_up(0, &patient);
                }
                queue.work.took(us(500));
                if waiting == session(0) {
                    break;
                }
                before += 1;
                // It is ahead by one piece. Others that come use their head starts, so with each of
                // their pieces the virtual time goes on by a quarter of the share of one among all:
                // 100 others, one more since each room, this one, and two.
                assert!(before <= 4 * (103 + rooms), "for room {rooms}: {before}");
            }
        }
    }

    #[test]
    fn one_that_may_have_none_yet_does_not_stand_in_the_way() {
        let mut queue = Queue::default();
        let [address] = addresses();
        queue.snapshots.wait(session(1), us(500));
        queue.snapshots.wait(session(1), us(700));
        let Queue { snapshots, .. } = &mut queue;
        assert_eq!((snapshots.next_due(us(699)), snapshots.deadline()), (None, Some(us(700))));
        // Another return does not wait for what the one before it waited for.
        queue.line_up(1, &address);
        queue.snapshots.wait(session(1), us(900));
        assert_eq!((queue.snapshots.deadline(), queue.work.len()), (None, 1));
        assert_eq!(queue.serve_all(), [session(1)]);
        assert_eq!(queue.snapshots.next_due(us(1000)), None);
    }
}
