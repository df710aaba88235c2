//! Measures the round-trip time to a client, for the rooms that ask for it.

use std::time::Duration;

use playfield_room::Settings;
use playfield_wire::RoomNumber;
use playfield_wire::server::{self, ServerMessage};

use crate::shard::connection::transport::Framing;
use crate::shard::keys::{ConnectionKey, Seat};
use crate::shard::mail::member::ToMember;
use crate::shard::session::Session;
use crate::shard::session::outlet::Outlet;

/// The shortest time between two pings. A room type of the program's own making may have asked for
/// less.
const PERIOD_MIN: Duration = Duration::from_millis(100);

/// The longest wait for an answer before another ping is sent. An answer that comes later measures
/// nothing.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(10);

/// The pings of a session that is measured.
pub(crate) struct RoundTrips {
    /// The rooms that want to know, and how often.
    rooms: Vec<(RoomNumber, Duration)>,
    /// When the next ping is due.
    due: Duration,
    /// The one that is under way.
    ping: Option<Ping>,
}

/// A ping that is not answered.
struct Ping {
    /// Random: only who received the ping knows it.
    nonce: u64,
    at: Duration,
}

/// Returns the period at which rooms with these settings have their players measured; `None` if
/// never.
pub(crate) fn period(settings: Settings) -> Option<Duration> {
    let period = Duration::from_millis(settings.round_trip_ms);
    (!period.is_zero()).then(|| period.max(PERIOD_MIN))
}

impl RoundTrips {
    /// Adds a room to those that want to know; the first ping is due at once.
    pub(super) fn add(
        round_trips: &mut Option<Box<Self>>,
        room: RoomNumber,
        period: Duration,
        now: Duration,
    ) {
        let new = || Box::new(Self { rooms: Vec::new(), due: now, ping: None });
        let round_trips = round_trips.get_or_insert_with(new);
        round_trips.rooms.push((room, period));
        round_trips.due = round_trips.due.min(now + period);
    }

    /// Takes a room out; the last takes everything along.
    pub(super) fn remove(round_trips: &mut Option<Box<Self>>, room: RoomNumber) {
        if let Some(known) = round_trips {
            known.rooms.retain(|(number, _)| *number != room);
            if known.rooms.is_empty() {
                *round_trips = None;
            }
        }
    }

    /// The ping that is under way measures nothing any more.
    pub(crate) fn give_up(&mut self) {
        self.ping = None;
    }

    /// The client has another connection: the first ping is due at once.
    pub(super) fn restart(&mut self, now: Duration) {
        (self.ping, self.due) = (None, now);
    }

    /// The time between two pings: the shortest that a room asks for.
    pub(in crate::shard) fn period(&self) -> Duration {
        let periods = self.rooms.iter().map(|(_, period)| *period);
        periods.min().unwrap_or(Duration::MAX)
    }

    /// Returns the round-trip time of the ping with this nonce, if it is the one that is under way.
    fn answered(&mut self, nonce: u64, now: Duration) -> Option<Duration> {
        let ping = self.ping.take_if(|ping| ping.nonce == nonce)?;
        let round_trip = now.saturating_sub(ping.at);
        (round_trip <= ROUND_TRIP_MAX).then_some(round_trip)
    }
}

impl Outlet<'_> {
    /// A session sits in a room with these settings.
    pub(in crate::shard) fn measure_for(
        &mut self,
        key: ConnectionKey,
        room: RoomNumber,
        settings: Settings,
    ) {
        let (Some(period), now) = (period(settings), self.env.now) else { return };
        let Some(session) = self.sessions.get_mut(key) else { return };
        RoundTrips::add(&mut session.extras_mut().round_trips, room, period, now);
        self.links.look_by(key, now);
    }

    /// Sends a client the ping that is due, if one is. When to look again; never, if no room wants
    /// its client measured.
    pub(in crate::shard) fn ping_if_due(&mut self, key: ConnectionKey) -> Duration {
        let now = self.env.now;
        let Some(connection) = self.links.get_mut(key) else {
            return Duration::MAX;
        };
        // A ping would wait behind what is queued, and measure that.
        let is_stuck = connection.blocked || connection.held;
        let framing = connection.dialect.framing;
        let session = self.sessions.get_mut(key);
        let Some(round_trips) = session.and_then(Session::round_trips) else {
            return Duration::MAX;
        };
        if now < round_trips.due {
            return round_trips.due;
        }
        let due = now.saturating_add(round_trips.period());
        round_trips.due = due;
        let is_under_way =
            round_trips.ping.as_ref().is_some_and(|ping| now < ping.at + ROUND_TRIP_MAX);
        if is_stuck || is_under_way {
            return due;
        }
        let nonce = self.env.entropy.nonce();
        round_trips.ping = Some(Ping { nonce, at: now });
        match framing {
            Framing::Native => {
                self.send(key, &ServerMessage::Ping(server::Ping { nonce }));
            }
            Framing::WebSocket(_) => {
                let payload = nonce.to_le_bytes();
                self.links.ping_transport(key, &payload);
            }
        }
        due
    }

    /// A client has answered a ping of its transport, with this payload.
    pub(in crate::shard) fn ponged_by_transport(&mut self, key: ConnectionKey, payload: &[u8]) {
        if self.admits_control(key, payload.len())
            && let Ok(nonce) = payload.try_into()
        {
            self.ponged(key, u64::from_le_bytes(nonce));
        }
    }

    /// A client has answered a ping with this nonce. If it was sent that, rooms learn how long it
    /// took.
    pub(in crate::shard) fn ponged(&mut self, key: ConnectionKey, nonce: u64) {
        let now = self.env.now;
        let Some(session) = self.sessions.get_mut(key) else { return };
        let Some(extras) = session.extras.as_deref_mut() else { return };
        let Some(round_trips) = extras.round_trips.as_deref_mut() else { return };
        let Some(round_trip) = round_trips.answered(nonce, now) else { return };
        let wants = |number| round_trips.rooms.iter().any(|(room, _)| *room == number);
        let seats = session.rooms.iter().filter(|room| wants(room.number));
        let seats: Vec<Seat> = seats.filter_map(|room| room.seat).collect();
        for seat in seats {
            // Another measurement follows, so this one need not wait for space.
            if !self.outbound.congested[usize::from(seat.shard)] {
                self.tell(seat, ToMember::Measured(round_trip));
            }
        }
    }
}
