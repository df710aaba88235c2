use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::{FairQueue, Payer, nanoseconds};

/// A party by its number. Those from 1,000,000 on have four shares.
impl Payer for u32 {
    fn weight(&self) -> u64 {
        if *self < HEAVY { 1 } else { 4 }
    }
}

const HEAVY: u32 = 1_000_000;

const fn us(count: u64) -> Duration {
    Duration::from_micros(count)
}

/// A queue whose pieces of work are the numbers of their parties.
type Queue = FairQueue<u32, u32>;

fn with_head_start(time: Duration) -> Queue {
    let head_start = nanoseconds(time);
    FairQueue { now: head_start, head_start, ..FairQueue::default() }
}

fn without_head_start() -> Queue {
    with_head_start(Duration::ZERO)
}

impl Queue {
    /// A party has one piece of work that waits.
    fn wait(&mut self, party: u32) {
        if self.parties.get(&party).is_none_or(|known| known.is_empty()) {
            self.push(&party, 0, party);
        }
    }

    /// Serves the next party for so long; its next piece waits already, if it `stays`.
    fn serve(&mut self, time: Duration, stays: bool) -> Option<u32> {
        let party = self.next()?;
        if stays {
            self.wait(party);
        }
        self.took(time);
        Some(party)
    }
}

#[test]
fn those_that_are_even_are_served_in_the_order_in_which_they_came() {
    let mut queue = Queue::default();
    for party in [3, 1, 3, 2, 1] {
        queue.wait(party);
    }
    let served: Vec<_> = std::iter::from_fn(|| queue.serve(us(10), false)).collect();
    assert_eq!(served, [3, 1, 2]);
    assert!(queue.is_empty() && queue.parties.is_empty() && queue.is_idle());
}

#[test]
fn the_lines_of_a_party_share_its_time() {
    let mut queue = FairQueue::<u32, u32, 2>::default();
    for number in 0..4 {
        queue.push(&1, 1, number);
    }
    for number in [10, 11] {
        queue.push(&1, 0, number);
    }
    queue.push(&2, 1, 100);
    assert_eq!(queue.len(), 7);
    assert_eq!(queue.next_if(false, |next| *next != 10), None, "the next one is not wanted");
    let mut served = Vec::new();
    while let Some(next) = queue.next() {
        queue.took(us(if next == 0 { 300 } else { 100 }));
        served.push(next);
    }
    assert_eq!(served, [10, 100, 0, 11, 1, 2, 3]);
    // Each gets half of the time, not half of the pieces.
    let mut got = [0, 0];
    for _ in 0..1000 {
        for line in [0, 1] {
            queue.push(&1, line, line as u32);
        }
    }
    while let Some(line) = queue.next().filter(|_| got[0] < 100_000) {
        let time = if line == 0 { 100 } else { 1000 };
        got[line as usize] += time;
        queue.took(us(time));
    }
    assert!((99_000..=101_000).contains(&got[1]), "{got:?}");
}

/// A thousand parties come at once, each with a long piece, and one with a few short ones.
#[test]
fn one_with_short_pieces_does_not_wait_for_a_long_one_of_each_other() {
    let mut queue = FairQueue::<u32, u32, 2>::with([Duration::ZERO, us(1000)], [false; 2]);
    for party in 1..=1000 {
        queue.push(&party, 1, party);
    }
    for _ in 0..100 {
        assert_ne!(queue.next(), None);
        queue.took(us(500));
    }
    for piece in 0..10 {
        queue.push(&0, 0, 0);
        assert_eq!(queue.next(), Some(0), "piece {piece}");
        queue.took(us(50));
    }
    // The time that it took counts as ever.
    let mut others = 0;
    for _ in 0..600 {
        queue.push(&0, 0, 0);
        others += usize::from(queue.next() != Some(0));
        queue.took(us(50));
    }
    assert!(others > 500, "{others}");
    // One that has both is at the place of the short one.
    queue.push(&2000, 1, 1);
    queue.push(&2000, 0, 2);
    assert_eq!(queue.next(), Some(2));
}

#[test]
fn what_is_held_keeps_its_place_and_nobody_from_going_on() {
    let mut queue = FairQueue::<u32, u32, 2>::with([Duration::ZERO; 2], [false, true]);
    for party in 1..=3 {
        queue.push(&party, 1, 10 * party);
    }
    for party in [3, 2, 4] {
        queue.push(&party, 0, party);
    }
    let mut take = |holds| {
        let next = queue.next_if(holds, |_| true);
        queue.took(us(100));
        next
    };
    // Parties that have taken nothing come in their order.
    let free = [Some(3), Some(2), Some(4), None, None];
    assert_eq!([true; 5].map(&mut take), free);
    // One took nothing yet, and the others as much as each other.
    assert_eq!([false; 4].map(&mut take), [Some(10), Some(30), Some(20), None]);
    assert!(queue.is_empty() && queue.is_idle() && queue.orders[super::BEHIND_HELD].is_empty());
    // New pieces while one is held, and charges, move all places.
    queue.push(&1, 1, 10);
    queue.push(&2, 1, 20);
    for piece in [1, 2] {
        queue.push(&1, 0, piece);
    }
    assert_eq!(queue.next_if(true, |_| true), Some(1));
    queue.took(us(100));
    queue.charge(&1, us(5000));
    assert_eq!(queue.next_if(true, |_| true), Some(2));
    queue.took(us(100));
    assert_eq!([queue.next(), queue.next()], [Some(20), Some(10)]);
}

#[test]
fn a_party_that_comes_goes_before_all_that_are_ahead() {
    for mut queue in [without_head_start(), Queue::default()] {
        for party in 0..10 {
            queue.wait(party);
        }
        for party in 0..10 {
            assert_eq!(queue.serve(us(1000 + u64::from(party)), true), Some(party));
        }
        queue.wait(10);
        assert_eq!(queue.next(), Some(10));
    }
}

#[test]
fn a_piece_that_turns_out_to_be_nothing_costs_nothing() {
    let mut queue = without_head_start();
    queue.wait(1);
    queue.wait(2);
    assert_eq!((queue.next(), queue.next(), queue.next()), (Some(1), Some(2), None));
    assert!(queue.parties.is_empty());
}

#[test]
fn what_is_done_beside_the_work_that_waits_is_charged() {
    let mut queue = without_head_start();
    queue.charge(&1, us(1000));
    assert!(queue.parties.is_empty(), "as long as nobody waits, it delays nobody");
    for party in [1, 2, 3] {
        queue.wait(party);
    }
    queue.charge(&1, us(1000));
    queue.charge(&4, us(500));
    queue.wait(4);
    let mut served = Vec::new();
    for _ in 0..10 {
        served.extend(queue.serve(us(200), true));
    }
    assert_eq!(served, [2, 3, 2, 3, 2, 3, 4, 2, 3, 4]);
    // Work that is under way is not charged twice.
    let mut queue = without_head_start();
    queue.wait(1);
    queue.wait(2);
    assert_eq!(queue.next(), Some(1));
    queue.charge(&1, us(1000));
    queue.wait(1);
    queue.took(us(100));
    assert_eq!((queue.serve(us(200), true), queue.next()), (Some(2), Some(1)));
}

#[test]
fn a_party_with_more_shares_gets_more() {
    let mut queue = without_head_start();
    let mut got = HashMap::new();
    for party in [1, 2, HEAVY] {
        queue.wait(party);
    }
    for _ in 0..600 {
        *got.entry(queue.serve(us(300), true).unwrap()).or_insert(0) += 1;
    }
    assert_eq!((got[&1], got[&2], got[&HEAVY]), (100, 100, 400));
}

#[test]
fn one_that_seldom_waits_is_not_behind_many_that_always_do() {
    let mut queue = with_head_start(us(1000));
    for party in 1..=1000 {
        queue.wait(party);
    }
    let serve = |queue: &mut Queue| {
        let party = queue.next().unwrap();
        if party > 0 {
            queue.wait(party);
        }
        queue.took(us(if party == 0 { 20 } else { 500 }));
        party
    };
    // All came at once, and have used their head starts.
    for _ in 0..2000 {
        serve(&mut queue);
    }
    for count in [700, 1000, 1001, 1700, 4000] {
        for _ in 0..count {
            serve(&mut queue);
        }
        queue.wait(0);
        assert_eq!(serve(&mut queue), 0, "after {count}");
    }
    // What it saves up is bounded: as often as it likes, it is one of many.
    let mut got = 0;
    for _ in 0..3000 {
        queue.wait(0);
        let party = queue.serve(us(500), false).unwrap();
        queue.wait(party);
        got += usize::from(party == 0);
    }
    assert!((3..=8).contains(&got), "{got}");
}

/// A player whose return took long comes back again, while a thousand always wait.
#[test]
fn what_one_is_ahead_by_is_forgotten_while_it_takes_nothing() {
    for (rest, turns_max) in [(0, u64::MAX), (1000, 10), (60_000, 0)] {
        let mut queue = Queue::default();
        for party in 1..=1000 {
            queue.wait(party);
        }
        // Until none has a head start left.
        for _ in 0..30_000 {
            queue.serve(us(100), true);
        }
        // The share of each of the others in 20 s.
        queue.wait(0);
        assert_eq!(queue.serve(us(20_000), false), Some(0));
        queue.at(Duration::from_millis(rest));
        queue.wait(0);
        let mut others = 0;
        while queue.serve(us(100), true) != Some(0) {
            others += 1;
        }
        assert!(others <= turns_max, "{others} before it, after {rest} ms");
        assert!(rest > 0 || others > 10_000, "{others} before it at once");
    }
}

/// One whose next piece comes a little after the one before was served is not as one that rests.
#[test]
fn short_rests_win_little() {
    let mut queue = Queue::default();
    for party in 1..=9 {
        queue.wait(party);
    }
    let (mut time, mut got) = (0, 0);
    let mut waits_from = 0;
    while time < 10_000_000 {
        if time >= waits_from {
            queue.wait(0);
        }
        queue.at(us(time));
        let party = queue.next().unwrap();
        if party > 0 {
            queue.wait(party);
        } else {
            (got, waits_from) = (got + 300, time + 1_300);
        }
        queue.took(us(300));
        time += 300;
    }
    // A tenth would be its share.
    assert!(got < 1_500_000, "it got {got} of {time} us");
}

#[test]
fn one_that_is_ahead_is_served_however_many_come_that_are_not() {
    for (at_once, turns_max) in [(1, 4), (2, 8), (10, 40), (100, 400)] {
        let mut queue = without_head_start();
        let mut fresh = 1..;
        for party in fresh.by_ref().take(at_once) {
            queue.wait(party);
        }
        queue.wait(0);
        let mut serve = |queue: &mut Queue| {
            let party = queue.next().unwrap();
            if party == 0 {
                queue.wait(0);
            }
            queue.took(us(500));
            // As one goes, another one comes.
            if party != 0 {
                queue.wait(fresh.next().unwrap());
            }
            party
        };
        while serve(&mut queue) != 0 {}
        let mut count = 0;
        while serve(&mut queue) != 0 {
            count += 1;
            assert!(count <= turns_max, "{at_once} at once");
        }
    }
}

#[test]
fn what_one_is_ahead_by_is_forgotten_when_the_others_have_had_as_much() {
    let mut queue = Queue::default();
    queue.wait(u32::MAX);
    for party in 0..100_000 {
        queue.wait(party);
        queue.serve(us(100), false);
    }
    assert!(queue.parties.len() < 50_000, "{}", queue.parties.len());
}

proptest! {
    /// Against the plain sum of what each got while its work waited.
    #[test]
    fn parties_whose_work_always_waits_get_the_same(
        patient in 2..8_u32,
        times in prop::collection::vec(0..1000_u64, 1..400),
        comes in prop::collection::vec(prop::option::of(8..20_u32), 400),
        stays in prop::collection::vec(any::<bool>(), 400),
        head_start in prop::sample::select(vec![0, 1000]),
    ) {
        let mut queue = with_head_start(us(head_start));
        let mut got: HashMap<u32, u64> = (0..patient).map(|party| (party, 0)).collect();
        for party in 0..patient {
            queue.wait(party);
        }
        let mut longest = 0;
        for ((time, comes), stays) in times.into_iter().zip(comes).zip(stays) {
            let party = queue.next().unwrap();
            if let Some(comes) = comes {
                queue.wait(comes);
            }
            longest = longest.max(time);
            if let Some(got) = got.get_mut(&party) {
                *got += time;
            }
            if stays || party < patient {
                queue.wait(party);
            }
            queue.took(us(time));
            let (least, most) = (got.values().min().unwrap(), got.values().max().unwrap());
            prop_assert!(most - least <= longest, "{got:?}, at most {longest} at once");
        }
    }

    /// A party that waited for nothing has no more saved up than its head start: while all wait,
    /// it gets at most that and one piece more than each other.
    #[test]
    fn an_idle_party_saves_up_no_more_than_its_head_start(
        others in 1..8_u32,
        idle in 0..300_usize,
        times in prop::collection::vec(1..1000_u64, 1..300),
        head_start in prop::sample::select(vec![0, 1000]),
    ) {
        let mut queue = with_head_start(us(head_start));
        for party in 1..=others {
            queue.wait(party);
        }
        for _ in 0..idle {
            queue.serve(us(500), true);
        }
        queue.wait(0);
        let mut got = vec![0; others as usize + 1];
        for time in times {
            let party = queue.serve(us(time), true).unwrap();
            got[party as usize] += time;
            let least = got.iter().min().unwrap();
            prop_assert!(got[0] - least <= head_start + 2 * 1000, "{got:?}");
        }
    }

    /// Each party whose work waits is served after at most two pieces of each other: what it is
    /// ahead by is no more than a piece.
    #[test]
    fn nobody_waits_for_more_than_two_pieces_of_each_other(
        others in 1..50_u32,
        ahead in 0..100_usize,
    ) {
        let mut queue = without_head_start();
        for party in 0..=others {
            queue.wait(party);
        }
        for _ in 0..ahead {
            queue.serve(us(700), true).unwrap();
        }
        let mut count = 0;
        while queue.serve(us(700), true) != Some(0) {
            count += 1;
            prop_assert!(count <= others);
        }
    }
}
