//! The busy share of a shard, and the share that a room of each type takes.

use std::time::Duration;

use crate::shard::rooms::thread_time::ThreadTime;

/// The unit of shares: a share of the time is given as a time per second.
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The least time that is measured.
const TIME: Duration = Duration::from_millis(500);
/// A shard that was this busy measures again, even if no room is run. Per second.
const WATCHED: Duration = Duration::from_millis(100);

/// The share of the time for which a shard is busy: the lesser of those of two periods, since a
/// single long turn says nothing. Zero if it has more to do with input than with rooms.
pub(crate) struct Busy {
    began: ThreadTime,
    types: Vec<OfType>,
    /// The share that the last measurement found.
    found: Duration,
    /// The lesser of the last two.
    busy: Duration,
}

/// The rooms of one type.
#[derive(Clone, Default)]
struct OfType {
    rooms: u32,
    /// The time that they have run.
    ran: Duration,
    /// The average cost of one of them, with all that is done for it. Per second.
    cost: Option<Duration>,
}

impl Busy {
    pub(crate) fn new(types: usize) -> Self {
        let (began, none) = (ThreadTime::default(), Duration::ZERO);
        Self { began, types: vec![OfType::default(); types], found: none, busy: none }
    }

    pub(crate) fn created(&mut self, room_type: u16) {
        self.types[usize::from(room_type)].rooms += 1;
    }

    pub(crate) fn dropped(&mut self, room_type: u16) {
        self.types[usize::from(room_type)].rooms -= 1;
    }

    /// A room of this type ran this long.
    #[inline]
    pub(crate) fn ran(&mut self, room_type: u16, time: Duration) {
        self.types[usize::from(room_type)].ran += time;
    }

    /// The share, if a measurement has ended by now.
    #[inline]
    pub(crate) fn measured(&mut self, now: ThreadTime) -> Option<Duration> {
        let time = now.since(self.began);
        (time.all >= TIME).then(|| self.measure(now, time))
    }

    fn measure(&mut self, now: ThreadTime, time: ThreadTime) -> Duration {
        let is_of_rooms = time.is_of_rooms();
        let found = if is_of_rooms { share(time.busy(), time.all) } else { Duration::ZERO };
        if is_of_rooms {
            self.share_out(found);
        }
        self.busy = found.min(self.found);
        (self.began, self.found) = (now, found);
        self.types.iter_mut().for_each(|of| of.ran = Duration::ZERO);
        self.busy
    }

    /// Finds what a room of each type takes: all that the shard does is for rooms, and each causes
    /// as much of it as it runs.
    fn share_out(&mut self, busy: Duration) {
        let ran: Duration = self.types.iter().map(|of| of.ran).sum();
        for of in self.types.iter_mut().filter(|of| of.rooms > 0) {
            of.cost = Some(busy.mul_f64(ratio(of.ran, ran)) / of.rooms);
        }
    }

    /// The average cost of a room of each type. One whose type had none yet takes as much as
    /// all on average. Per second.
    pub(crate) fn costs(&self) -> Vec<Duration> {
        let rooms: u32 = self.types.iter().map(|of| of.rooms).sum();
        let mean = self.found / rooms.max(1);
        self.types.iter().map(|of| of.cost.unwrap_or(mean)).collect()
    }

    /// When to look again, even if no room is run: as long as the shard was busy.
    pub(crate) fn next(&self) -> Option<Duration> {
        (self.busy > WATCHED).then(|| self.began.all + TIME)
    }
}

/// A part of the time, per second.
fn share(part: Duration, time: Duration) -> Duration {
    SECOND.mul_f64(ratio(part, time))
}

fn ratio(part: Duration, all: Duration) -> f64 {
    if all.is_zero() { 0.0 } else { part.as_secs_f64() / all.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Busy;
    use crate::shard::rooms::thread_time::ThreadTime;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// The thread's time at `all` ms after the last measurement, with `waited` and `worked` ms of it.
    fn after(busy: &Busy, [all, waited, worked]: [u64; 3]) -> ThreadTime {
        let ThreadTime { all: began, waits, rooms } = busy.began;
        ThreadTime { all: began + MS(all), waits: waits + MS(waited), rooms: rooms + MS(worked) }
    }

    /// Two periods of 500 ms, in which a shard waits and its rooms of two types run this long.
    fn two_periods(busy: &mut Busy, waited: u64, worked: u64, ran: [u64; 2]) -> Vec<Duration> {
        let periods = (1..=2).map(|_| {
            busy.ran(0, MS(ran[0]));
            busy.ran(1, MS(ran[1]));
            let ends = after(busy, [500, waited, worked]);
            let too_soon = ThreadTime { all: ends.all - MS(1), ..ends };
            assert_eq!(busy.measured(too_soon), None);
            busy.measured(ends).expect("it has ended")
        });
        periods.collect()
    }

    #[test]
    fn a_shard_is_as_busy_as_in_the_calmer_of_two_periods() {
        let mut busy = Busy::new(2);
        assert_eq!(two_periods(&mut busy, 100, 400, [0, 0]), [MS(0), MS(800)]);
        // One turn takes two seconds.
        assert_eq!(busy.measured(after(&busy, [2000, 0, 2000])), Some(MS(800)));
        assert_eq!(busy.next(), Some(MS(3500)), "it measures again");
        assert_eq!(two_periods(&mut busy, 450, 50, [0, 0]), [MS(100), MS(100)]);
        assert_eq!(busy.next(), None);
    }

    #[test]
    fn what_is_no_work_for_rooms_does_not_count() {
        let mut busy = Busy::new(2);
        busy.created(0);
        assert_eq!(two_periods(&mut busy, 20, 239, [9, 0]), [MS(0); 2]);
        assert_eq!(busy.costs(), [MS(0); 2]);
        assert_eq!(two_periods(&mut busy, 20, 240, [9, 0]), [MS(0), MS(960)]);
    }

    #[test]
    fn what_a_room_takes_is_a_part_of_all_that_the_shard_does() {
        let mut busy = Busy::new(3);
        for room_type in [0, 0, 0, 1] {
            busy.created(room_type);
        }
        two_periods(&mut busy, 300, 150, [90, 10]);
        let costs = [MS(120), MS(40), MS(100)];
        assert_eq!(busy.costs(), costs, "and one of a new type as much as one on average");
        busy.dropped(1);
        two_periods(&mut busy, 400, 100, [90, 0]);
        assert_eq!(busy.costs()[..2], [MS(200) / 3, MS(40)], "it is known from the last ones");
    }
}
