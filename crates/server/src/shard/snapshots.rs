//! The queue for snapshots. All snapshots that peers cause, by joining, by asking and by coming
//! back, draw on one budget of the shard's time. Those that wait have [turns](crate::shard::turns):
//! first their addresses, and of one address its sessions. So each address that waits gets the same
//! share, whatever its snapshots cost and however many sessions it has.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use crate::memory::shrink_map;
use crate::shard::keys::{ConnectionKey, MemberKey, RoomKey};
use crate::shard::lines::Host;
use crate::shard::turns::Turns;

/// How long snapshots are written at a time. One of a large state may take a millisecond, and a
/// thousand may be asked for at once. Rooms and input have at least as long before the next ones.
const SNAPSHOTS: Duration = Duration::from_millis(2);

/// A session or a member that waits for snapshots.
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
    /// Waiting ones whose limits say when: by the time, and the order in which they came.
    later: BTreeMap<(Duration, u64), Waiting>,
    /// How many were given a time.
    given: u64,
    /// The others.
    turns: Turns<Host>,
    lines: HashMap<Host, Line>,
}

#[derive(Clone, PartialEq, Eq)]
enum Place {
    Later(Duration, u64),
    Line(Payer),
}

/// The address and the session that are charged for a snapshot.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::shard) struct Payer {
    pub(in crate::shard) host: Host,
    pub(in crate::shard) session: SessionKey,
}

/// The shard of a session, and its connection there.
type SessionKey = (u16, ConnectionKey);

/// The waiting sessions of one address.
#[derive(Default)]
struct Line {
    turns: Turns<SessionKey>,
    waiting: HashMap<SessionKey, VecDeque<Waiting>>,
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
        self.budget.is_open(now) && self.turns.is_empty()
    }

    /// Gives a session a place, or someone who waits for it, but not before `at`.
    pub(crate) fn queue(
        &mut self,
        waiting: Waiting,
        (host, session): (Host, SessionKey),
        at: Duration,
        now: Duration,
    ) {
        if at > now {
            self.wait(waiting, at);
        } else {
            self.line_up(waiting, Payer { host, session });
        }
    }

    /// Puts someone into the line of the address. Who waits in another one, or for another session,
    /// leaves that place.
    pub(in crate::shard) fn line_up(&mut self, waiting: Waiting, payer: Payer) {
        match self.places.get(&waiting) {
            Some(Place::Line(before)) if *before == payer => return,
            Some(Place::Line(before)) => {
                let before = before.clone();
                self.leave(waiting, &before);
            }
            Some(Place::Later(at, number)) => {
                self.later.remove(&(*at, *number));
            }
            None => {}
        }
        let line = self.lines.entry(payer.host.clone()).or_default();
        line.waiting.entry(payer.session).or_default().push_back(waiting);
        line.turns.wait(&payer.session);
        self.turns.wait(&payer.host);
        self.places.insert(waiting, Place::Line(payer));
    }

    fn leave(&mut self, waiting: Waiting, payer: &Payer) {
        let Some(line) = self.lines.get_mut(&payer.host) else { return };
        let Some(of_session) = line.waiting.get_mut(&payer.session) else { return };
        of_session.retain(|other| *other != waiting);
        if of_session.is_empty() {
            line.waiting.remove(&payer.session);
            line.turns.leave(&payer.session);
        }
        if line.waiting.is_empty() && self.turns.serving() != Some(&payer.host) {
            self.lines.remove(&payer.host);
            self.turns.leave(&payer.host);
        }
    }

    /// Whether someone waits in a line.
    pub(in crate::shard) fn is_in_line(&self, waiting: Waiting) -> bool {
        matches!(self.places.get(&waiting), Some(Place::Line(_)))
    }

    /// Lets someone wait until `at`.
    pub(in crate::shard) fn wait(&mut self, waiting: Waiting, at: Duration) {
        match self.places.get(&waiting) {
            Some(Place::Line(_)) => return,
            Some(&Place::Later(earlier, number)) => {
                self.later.remove(&(earlier, number));
            }
            None => {}
        }
        self.given += 1;
        self.places.insert(waiting, Place::Later(at, self.given));
        self.later.insert((at, self.given), waiting);
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

    /// Takes out the next one, if there is time for it. What follows [took](Self::took) some.
    pub(in crate::shard) fn next(&mut self, now: Duration) -> Option<Waiting> {
        if !self.budget.is_open(now) {
            return None;
        }
        let host = self.turns.next()?;
        let line = self.lines.get_mut(&host)?;
        let session = line.turns.next()?;
        let of_session = line.waiting.get_mut(&session)?;
        let waiting = of_session.pop_front()?;
        if of_session.is_empty() {
            line.waiting.remove(&session);
        }
        self.places.remove(&waiting);
        shrink_map(&mut self.places);
        Some(waiting)
    }

    /// The one that was taken out took time.
    pub(in crate::shard) fn took(&mut self, now: Duration, time: Duration) {
        self.spent(now, time);
        let Some(host) = self.turns.serving().cloned() else { return };
        let Some(line) = self.lines.get_mut(&host) else { return };
        let session = line.turns.serving().copied();
        let waits = session.is_some_and(|session| line.waiting.contains_key(&session));
        line.turns.took(time, waits);
        let waits = !line.waiting.is_empty();
        if !waits {
            self.lines.remove(&host);
            shrink_map(&mut self.lines);
        }
        self.turns.took(time, waits);
    }

    /// A snapshot was written for someone without a place, since nobody waited.
    pub(crate) fn spent(&mut self, now: Duration, time: Duration) {
        self.budget.spend(now, time);
    }

    /// When there is something to do.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let next = (!self.turns.is_empty()).then_some(self.budget.closed_until);
        let later = self.later.first_key_value().map(|(&(at, _), _)| at);
        next.into_iter().chain(later).min()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{Budget, Payer, SNAPSHOTS, Snapshots, Waiting};
    use crate::addresses::{Address, Addresses};
    use crate::config::Config;
    use crate::shard::lines::Host;
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

    /// Waits at an address for its own session.
    pub(in crate::shard) fn line_up(queue: &mut Snapshots, number: u64, address: &Arc<Address>) {
        line_up_for(queue, session(number), address, number);
    }

    fn line_up_for(queue: &mut Snapshots, waiting: Waiting, address: &Arc<Address>, number: u64) {
        let session = (0, Key::from_bits(number));
        queue.line_up(waiting, Payer { host: Host(Arc::clone(address)), session });
    }

    /// The next ones, each of which takes 300 µs, with time for all.
    fn serve(queue: &mut Snapshots, count: usize) -> Vec<Waiting> {
        let mut next = || {
            let now = queue.budget.closed_until;
            let waiting = queue.next(now)?;
            queue.took(now, us(300));
            Some(waiting)
        };
        (0..count).map_while(|_| next()).collect()
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
    fn addresses_take_turns_and_of_one_address_its_sessions() {
        let mut queue = Snapshots::default();
        let [full, thin] = addresses();
        let member = |number| Waiting::Member(Key::from_bits(number), Key::from_bits(1));
        for number in 1..=3 {
            line_up_for(&mut queue, member(number), &full, 1);
        }
        for number in [2, 3, 2] {
            line_up(&mut queue, number, &full);
        }
        for number in [4, 5] {
            line_up(&mut queue, number, &thin);
        }
        let [two, three, four, five] = [2, 3, 4, 5].map(session);
        let order = [member(1), four, two, five, three, member(2), member(3)];
        assert_eq!(serve(&mut queue, 9), order, "each waits once");
        assert!(queue.places.is_empty() && queue.lines.is_empty() && queue.turns.is_empty());
    }

    #[test]
    fn who_comes_to_another_address_waits_there() {
        let mut queue = Snapshots::default();
        let [full, thin, last] = addresses();
        for number in 1..=3 {
            line_up(&mut queue, number, &full);
        }
        line_up(&mut queue, 4, &last);
        line_up(&mut queue, 3, &thin);
        assert_eq!(serve(&mut queue, 4), [1, 4, 3, 2].map(session));
        // The last one of a line.
        line_up(&mut queue, 1, &full);
        line_up(&mut queue, 1, &thin);
        assert_eq!(queue.lines.len(), 1);
        assert_eq!(serve(&mut queue, 2), [session(1)]);
        // While another of the line has its turn.
        line_up(&mut queue, 1, &full);
        line_up(&mut queue, 2, &full);
        let now = queue.budget.closed_until;
        assert_eq!(queue.next(now), Some(session(1)));
        line_up(&mut queue, 2, &thin);
        queue.took(now, us(300));
        assert_eq!(serve(&mut queue, 2), [session(2)]);
        assert!(queue.places.is_empty() && queue.lines.is_empty() && queue.turns.is_empty());
    }

    /// A session that waits again in its own turn, as one does between two rooms.
    #[test]
    fn who_needs_many_is_not_held_up_by_others_that_need_one_however_many_come() {
        let known = Addresses::new(&Config::default());
        let at = |number: u32| known.at((0x0A00_0000 + number).to_be_bytes().into(), us(0));
        let (patient, mut others) = (at(0), (1..).map(at));
        let mut queue = Snapshots::default();
        let mut number = 1;
        let mut come = |queue: &mut Snapshots| {
            line_up(queue, number, &others.next().unwrap());
            number += 1;
        };
        (0..100).for_each(|_| come(&mut queue));
        line_up(&mut queue, 0, &patient);
        for rooms in 0..12 {
            let mut before = 0;
            loop {
                let now = queue.budget.closed_until;
                let waiting = queue.next(now).unwrap();
                come(&mut queue);
                if waiting == session(0) {
                    line_up(&mut queue, 0, &patient);
                }
                queue.took(now, us(500));
                if waiting == session(0) {
                    break;
                }
                before += 1;
                assert!(before <= 300, "for room {rooms}, with 100 others at a time");
            }
        }
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
        line_up(&mut queue, 1, &address);
        queue.wait(session(1), us(900));
        assert_eq!((queue.deadline(), queue.is_free(us(0))), (Some(us(0)), false));
        assert_eq!(queue.next(us(0)), Some(session(1)));
        queue.took(us(0), us(300));
        assert_eq!((queue.next_due(us(1000)), queue.deadline()), (None, None));
    }
}
