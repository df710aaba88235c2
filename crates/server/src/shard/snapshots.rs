//! Who waits for a snapshot. All snapshots that peers cause, by joining, by asking and by coming
//! back, draw on one budget of the shard's time. Of those that wait, the one whose address took the
//! least lately comes first, and of one address the session that took the least.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::addresses::Address;
use crate::memory::{PLACES_KEPT, shrink_map};
use crate::shard::Shard;
use crate::shard::connection::share::Taken;
use crate::shard::keys::{ConnectionKey, MemberKey, RoomKey};
use crate::shard::rooms::member::MemberOutput;

/// How long snapshots are written at a time. One of a large state may take a millisecond, and a
/// thousand may be asked for at once. Rooms and input have at least as long before the next ones.
const SNAPSHOTS: Duration = Duration::from_millis(2);

/// Who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Waiting {
    /// A session whose client has come back: its rooms bring the copies up to date.
    Session(ConnectionKey),
    /// A member who joins or has asked for a snapshot, or whose session on another shard has asked
    /// on its return.
    Member(RoomKey, MemberKey),
}

/// The queue, with one place for each who waits, and the budget.
#[derive(Default)]
pub(crate) struct Snapshots {
    budget: Budget,
    places: HashMap<Waiting, Place>,
    /// Those whose limits say when: by the time, and the order in which they came.
    later: BTreeMap<(Duration, u64), Waiting>,
    /// The others, by the place of their address in memory.
    lines: HashMap<usize, Line>,
    /// The lines in which someone waits.
    order: BTreeSet<(Rank, usize)>,
    /// How many places were given.
    given: u64,
}

/// What was taken lately, in microseconds; then the order.
type Rank = (u32, u64);

enum Place {
    Later(Duration, u64),
    Line,
}

/// Those of one address.
struct Line {
    /// While it is here, no other address has its place in memory.
    #[expect(dead_code, reason = "it is held, not read")]
    address: Arc<Address>,
    taken: Taken,
    waiting: BTreeMap<Rank, Waiting>,
    /// Its rank among the lines.
    rank: Option<Rank>,
}

/// Time for snapshots, as a bucket that leaks half of the time that passes.
#[derive(Default)]
struct Budget {
    spent: Duration,
    as_of: Duration,
    closed_until: Duration,
}

impl Budget {
    fn is_open(&self, now: Duration) -> bool {
        now >= self.closed_until
    }

    /// Once enough was spent, it is closed until all of that has leaked.
    fn spend(&mut self, now: Duration, time: Duration) {
        let leaked = now.saturating_sub(self.as_of) / 2;
        self.spent = self.spent.saturating_sub(leaked) + time;
        self.as_of = now;
        if self.spent >= SNAPSHOTS {
            self.closed_until = now + 2 * self.spent;
        }
    }
}

impl Snapshots {
    /// Whether a snapshot may be written at once: there is time for it, and nobody waits.
    pub(crate) fn is_free(&self, now: Duration) -> bool {
        self.budget.is_open(now) && self.order.is_empty()
    }

    /// Puts someone whose session took this much into the line of the address.
    fn line_up(&mut self, waiting: Waiting, address: &Arc<Address>, taken: Taken, now: Duration) {
        match self.places.get(&waiting) {
            Some(Place::Line) => return,
            Some(&Place::Later(at, number)) => {
                self.later.remove(&(at, number));
            }
            None => {}
        }
        let rank = (taken.us(now), self.next_number());
        let line = self.line(address, now);
        self.places.insert(waiting, Place::Line);
        if let Some(line) = self.lines.get_mut(&line) {
            line.waiting.insert(rank, waiting);
        }
        if self.lines.get(&line).is_some_and(|line| line.rank.is_none()) {
            self.rank(line, now);
        }
    }

    /// Lets someone wait until `at`.
    fn wait(&mut self, waiting: Waiting, at: Duration) {
        match self.places.get(&waiting) {
            Some(Place::Line) => return,
            Some(&Place::Later(earlier, number)) => {
                self.later.remove(&(earlier, number));
            }
            None => {}
        }
        let number = self.next_number();
        self.places.insert(waiting, Place::Later(at, number));
        self.later.insert((at, number), waiting);
    }

    /// Takes out someone who has waited until now.
    fn next_due(&mut self, now: Duration) -> Option<Waiting> {
        let (&(at, number), _) = self.later.first_key_value()?;
        if at > now {
            return None;
        }
        let waiting = self.later.remove(&(at, number))?;
        self.places.remove(&waiting);
        Some(waiting)
    }

    /// Takes out the next one, if there is time for it, and its line.
    fn next(&mut self, now: Duration) -> Option<(Waiting, usize)> {
        if !self.budget.is_open(now) {
            return None;
        }
        let (_, at) = self.order.pop_first()?;
        let line = self.lines.get_mut(&at)?;
        line.rank = None;
        let (_, waiting) = line.waiting.pop_first()?;
        self.places.remove(&waiting);
        shrink_map(&mut self.places);
        self.rank(at, now);
        Some((waiting, at))
    }

    /// A snapshot for someone of this address was written, without a place in the queue.
    pub(crate) fn wrote(&mut self, address: &Arc<Address>, now: Duration, time: Duration) {
        let line = self.line(address, now);
        self.took(line, now, time);
    }

    /// Someone of this line took time.
    fn took(&mut self, at: usize, now: Duration, time: Duration) {
        self.budget.spend(now, time);
        if let Some(line) = self.lines.get_mut(&at) {
            line.taken.add(now, time);
        }
        self.rank(at, now);
    }

    /// Gives a line in which someone waits its rank, by what it has taken.
    fn rank(&mut self, at: usize, now: Duration) {
        let number = self.next_number();
        let Some(line) = self.lines.get_mut(&at) else { return };
        if let Some(rank) = line.rank.take() {
            self.order.remove(&(rank, at));
        }
        if !line.waiting.is_empty() {
            let rank = (line.taken.us(now), number);
            line.rank = Some(rank);
            self.order.insert((rank, at));
        }
    }

    fn line(&mut self, address: &Arc<Address>, now: Duration) -> usize {
        let at = Arc::as_ptr(address) as usize;
        if self.lines.len() >= PLACES_KEPT && self.lines.len() == self.lines.capacity() {
            // Of those that took nothing lately nothing has to be known.
            self.lines.retain(|_, line| !line.waiting.is_empty() || line.taken.us(now) > 0);
            shrink_map(&mut self.lines);
        }
        self.lines.entry(at).or_insert_with(|| Line {
            address: Arc::clone(address),
            taken: Taken::default(),
            waiting: BTreeMap::new(),
            rank: None,
        });
        at
    }

    fn next_number(&mut self) -> u64 {
        self.given += 1;
        self.given
    }

    /// When there is something to do.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let next = (!self.order.is_empty()).then_some(self.budget.closed_until);
        let later = self.later.first_key_value().map(|(&(at, _), _)| at);
        next.into_iter().chain(later).min()
    }
}

impl Shard {
    /// Puts someone into the queue for a snapshot, not before `at`.
    pub(in crate::shard) fn queue_snapshot(&mut self, waiting: Waiting, at: Duration) {
        if at > self.now {
            self.snapshots.wait(waiting, at);
        } else if let Some((address, taken)) = self.waits_by(waiting) {
            self.snapshots.line_up(waiting, &address, taken, self.now);
        }
    }

    /// Writes snapshots for those whose turn it is, while there is time for them.
    pub(in crate::shard) fn write_snapshots(&mut self) {
        while let Some(waiting) = self.snapshots.next_due(self.now) {
            self.queue_snapshot(waiting, self.now);
        }
        while let Some((waiting, line)) = self.snapshots.next(self.now) {
            let began = self.stopwatch.read();
            match waiting {
                Waiting::Session(key) => self.catch_up_session(key),
                Waiting::Member(room, member) => self.serve_member(room, member),
            }
            let took = self.stopwatch.read().saturating_sub(began);
            self.snapshots.took(line, self.now, took);
            self.charge_waiting(waiting, took);
        }
    }

    /// By what someone who waits is ranked: the address, and what the session took lately.
    fn waits_by(&mut self, waiting: Waiting) -> Option<(Arc<Address>, Taken)> {
        let connection = match waiting {
            Waiting::Session(key) => key,
            Waiting::Member(room, member) => {
                match &self.rooms.get(room)?.members.get(member)?.output {
                    MemberOutput::Here(connection) => *connection,
                    MemberOutput::Elsewhere(session) => {
                        return Some((Arc::clone(&session.address), session.taken));
                    }
                }
            }
        };
        let connection = self.delivery.connections.get(connection)?;
        Some((Arc::clone(connection.tally.address()), connection.taken))
    }

    fn charge_waiting(&mut self, waiting: Waiting, took: Duration) {
        match waiting {
            Waiting::Session(key) => self.delivery.charge_connection(key, self.now, took),
            Waiting::Member(room, key) => {
                let hosted = self.rooms.get_mut(room);
                if let Some(member) = hosted.and_then(|hosted| hosted.members.get_mut(key)) {
                    self.delivery.charge((room, key), &mut member.output, self.now, took);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{Budget, SNAPSHOTS, Snapshots, Waiting};
    use crate::addresses::{Address, Addresses};
    use crate::config::Config;
    use crate::shard::connection::share::Taken;
    use crate::shard::slab::Key;

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

    #[test]
    fn half_of_the_time_is_for_snapshots_and_2_ms_at_once() {
        let mut budget = Budget::default();
        budget.spend(us(0), SNAPSHOTS - us(1));
        assert!(budget.is_open(us(0)));
        budget.spend(us(0), us(1));
        assert!(!budget.is_open(us(3999)) && budget.is_open(us(4000)));
        // One of any size is paid for by a pause that fits.
        budget.spend(us(4000), us(50_000));
        assert!(!budget.is_open(us(103_999)) && budget.is_open(us(104_000)));
        // Little at a time is never too much.
        for turn in 0..1000 {
            budget.spend(us(200_000 + 200 * turn), us(100));
            assert!(budget.is_open(us(200_000 + 200 * turn)));
        }
    }

    #[test]
    fn the_address_that_took_least_comes_first_and_of_one_address_the_session() {
        let mut queue = Snapshots::default();
        let [fat, thin] = addresses();
        let took = |time| {
            let mut taken = Taken::default();
            taken.add(us(0), us(time));
            taken
        };
        queue.wrote(&fat, us(0), us(500));
        queue.line_up(session(1), &fat, took(300), us(0));
        queue.line_up(session(2), &fat, took(100), us(0));
        queue.line_up(session(2), &fat, took(0), us(0));
        queue.line_up(session(3), &thin, took(900), us(0));
        queue.line_up(session(4), &thin, took(900), us(0));
        let mut order = Vec::new();
        while let Some((waiting, line)) = queue.next(us(0)) {
            queue.took(line, us(0), us(300));
            order.push(waiting);
        }
        assert_eq!(order, [3, 4, 2, 1].map(session), "each waits once");
        assert!(queue.places.is_empty() && queue.order.is_empty());
    }

    #[test]
    fn who_may_have_none_yet_does_not_stand_in_the_way() {
        let mut queue = Snapshots::default();
        let [address] = addresses();
        queue.wait(session(1), us(500));
        queue.wait(session(1), us(700));
        assert_eq!((queue.next_due(us(699)), queue.deadline()), (None, Some(us(700))));
        assert!(queue.is_free(us(0)));
        // Another return does not wait for what the one before it waited for.
        queue.line_up(session(1), &address, Taken::default(), us(0));
        queue.wait(session(1), us(900));
        assert_eq!((queue.deadline(), queue.is_free(us(0))), (Some(us(0)), false));
        assert_eq!(queue.next(us(0)).map(|(waiting, _)| waiting), Some(session(1)));
        assert_eq!((queue.next_due(us(1000)), queue.deadline()), (None, None));
    }

    #[test]
    fn addresses_that_took_nothing_lately_are_forgotten() {
        let mut queue = Snapshots::default();
        let known = Addresses::new(&Config::default());
        for at in 0..100_000_u32 {
            let now = Duration::from_millis(u64::from(at));
            let address = known.at(at.to_be_bytes().into(), now);
            queue.wrote(&address, now, us(1));
        }
        assert!(queue.lines.len() < 10_000, "{}", queue.lines.len());
    }
}
