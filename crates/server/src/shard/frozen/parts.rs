//! The content of the host's parts: what a shard keeps beside a room, and of a session.

use std::net::IpAddr;
use std::time::Duration;

use playfield_room::frozen::FreezeError;
use playfield_room::{Claims, PlayerId, Settings};
use playfield_state::{Bytes, Data};
use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

use super::connection::ConnectionPart;
use super::schemas::SwitchPart;
use crate::addresses::AddressName;
use crate::auth::Identity;
use crate::device::Registration;
use crate::journal::Recovering;
use crate::shard::allowance::Allowance;
use crate::shard::keys::ConnectionKey;
use crate::shard::rooms::schedule::Beat;
use crate::shard::slab::Key;

/// The way of times from one clock to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shift {
    from: Duration,
    to: Duration,
}

impl Shift {
    /// From a clock that was at `from` to one that is at `to`.
    pub(super) fn new(from: Duration, to: Duration) -> Self {
        Self { from, to }
    }

    /// A time of the first clock, by the second one. Those before it began are its beginning.
    pub(super) fn time(self, time: Duration) -> Duration {
        match time {
            Duration::MAX => time,
            _ => time.saturating_add(self.to).saturating_sub(self.from),
        }
    }

    fn nanos(self, time_of: u64) -> u64 {
        nanos(self.time(time(time_of)))
    }

    fn allowance(self, [full, left]: [u64; 2]) -> [u64; 2] {
        let now = Allowance::with_remaining([full, left], Duration::ZERO).remaining(self.from);
        Allowance::with_remaining(now, self.to).remaining(Duration::ZERO)
    }
}

/// The numbers of the host's parts in a frozen room.
pub(super) const HOSTED: u8 = 64;
pub(super) const MEMBERS: u8 = 65;

/// The place of a session before it moved: its shard, and the key of its connection.
#[derive(Clone, Copy, Data, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) shard: u32,
    pub(crate) connection: u64,
}

impl Place {
    pub(super) fn new(shard: u16, connection: ConnectionKey) -> Self {
        Self { shard: shard.into(), connection: connection.bits() }
    }

    /// The key, of a place in this process.
    pub(super) fn key(self) -> ConnectionKey {
        Key::from_bits(self.connection)
    }
}

/// The facts that are kept beside a room.
#[derive(Data, Debug)]
pub(super) struct HostedPart {
    pub(super) shard: u32,
    /// The number of rooms created before it.
    pub(super) age: u64,
    pub(super) criteria: Bytes,
    pub(super) created: u64,
    pub(super) epoch: u64,
    pub(super) ticks: Option<BeatPart>,
    pub(super) syncs: Option<BeatPart>,
    pub(super) regular_syncs: u64,
    /// The client's address that it was created from; `None` for the program.
    pub(super) founder: Option<AddressPart>,
    pub(super) sync_awaited: bool,
}

impl HostedPart {
    pub(super) fn shift(&mut self, by: Shift) {
        self.created = by.nanos(self.created);
        for beat in self.ticks.iter_mut().chain(&mut self.syncs) {
            beat.first = by.nanos(beat.first);
        }
    }
}

#[derive(Clone, Copy, Data, Debug)]
pub(super) struct BeatPart {
    hz: u32,
    first: u64,
    next: u64,
}

impl From<Beat> for BeatPart {
    fn from(beat: Beat) -> Self {
        let (hz, first, next) = beat.parts();
        Self { hz, first: nanos(first), next }
    }
}

impl BeatPart {
    /// The rate; `None` if it can't be one.
    pub(super) fn beat(self) -> Option<Beat> {
        Beat::from_parts(self.hz, time(self.first), self.next)
    }
}

#[derive(Data, Debug)]
pub(super) struct AddressPart {
    ip: String,
    is_trusted: bool,
}

impl From<AddressName> for AddressPart {
    fn from(AddressName { ip, is_trusted }: AddressName) -> Self {
        Self { ip: ip.to_string(), is_trusted }
    }
}

impl AddressPart {
    pub(super) fn name(&self) -> Option<AddressName> {
        let ip: IpAddr = self.ip.parse().ok()?;
        Some(AddressName { ip, is_trusted: self.is_trusted })
    }
}

/// A member of a room.
#[derive(Data, Debug)]
pub(super) struct MemberPart {
    pub(super) session: Place,
    /// The room's number in the session.
    pub(super) number: u32,
    pub(super) player: PlayerId,
    pub(super) format: u8,
    pub(super) is_resumable: bool,
    pub(super) sent: u64,
    pub(super) clean: u64,
    pub(super) lagging: bool,
    pub(super) wants_snapshot: bool,
    pub(super) snapshots: [u64; 2],
    pub(super) events: u64,
    pub(super) unanswered: Vec<u32>,
}

impl MemberPart {
    pub(super) fn shift(&mut self, by: Shift) {
        self.snapshots = by.allowance(self.snapshots);
    }
}

/// A session. Times are those since the node started, which go on.
#[derive(Data, Debug)]
pub(super) struct SessionPart {
    pub(super) place: Place,
    pub(super) number: u64,
    pub(super) format: u8,
    pub(super) address: AddressPart,
    pub(super) identity: Option<IdentityPart>,
    pub(super) ticket_users: Vec<String>,
    pub(super) rooms_numbered: u32,
    /// Creations, misses, lists, schemas, resumes and snapshots.
    pub(super) allowances: Vec<[u64; 2]>,
    pub(super) rooms: Vec<SessionRoomPart>,
    /// The requests that were on their way when the node was frozen: they are refused.
    pub(super) refused: Vec<u32>,
    pub(super) heard: u64,
    /// `None` if it ends with its connection.
    pub(super) resumption: Option<ResumptionPart>,
    /// Its open connection, if that is passed on.
    pub(super) connection: Option<ConnectionPart>,
    pub(super) device: Option<DevicePart>,
    pub(super) switches: Vec<SwitchPart>,
    pub(super) unasked_schemas: u64,
}

impl SessionPart {
    pub(super) fn shift(&mut self, by: Shift) {
        self.heard = by.nanos(self.heard);
        for allowance in &mut self.allowances {
            *allowance = by.allowance(*allowance);
        }
        if let Some(away_since) = self.resumption.as_mut().and_then(|of| of.away_since.as_mut()) {
            *away_since = by.nanos(*away_since);
        }
    }
}

/// The registration of a device, without its user.
#[derive(Data, Debug)]
pub(super) struct DevicePart {
    id: String,
    metadata: Vec<[String; 2]>,
    tags: Vec<String>,
}

impl From<Registration> for DevicePart {
    fn from(registration: Registration) -> Self {
        let Registration { id, metadata, tags, user: _ } = registration;
        let metadata = metadata.into_iter().map(|(name, value)| [name, value]).collect();
        Self { id, metadata, tags }
    }
}

impl DevicePart {
    pub(super) fn registration(self, user: Option<String>) -> Registration {
        let Self { id, metadata, tags } = self;
        let metadata = metadata.into_iter().map(|[name, value]| (name, value)).collect();
        Registration { id, user, metadata, tags }
    }
}

/// A room that a session has joined.
#[derive(Clone, Data, Debug)]
pub(super) struct SessionRoomPart {
    pub(super) number: u32,
    pub(super) id: String,
    pub(super) joined_at: u64,
}

#[derive(Data, Debug)]
pub(super) struct IdentityPart {
    name: String,
    user: Option<String>,
    /// A JSON object.
    claims: String,
    tickets_only: bool,
}

impl From<&Identity> for IdentityPart {
    fn from(identity: &Identity) -> Self {
        let Identity { name, user, claims, tickets_only } = identity;
        let (name, user, claims) = (name.clone(), user.clone(), claims.to_json());
        Self { name, user, claims, tickets_only: *tickets_only }
    }
}

impl IdentityPart {
    pub(super) fn identity(self) -> Option<Identity> {
        let Self { name, user, claims, tickets_only } = self;
        let claims = Claims::from_json(&claims).ok()?;
        Some(Identity { name, user, claims, tickets_only })
    }
}

#[derive(Data, Debug)]
pub(super) struct ResumptionPart {
    pub(super) home: u32,
    pub(super) generation: u32,
    pub(super) resumes: u32,
    pub(super) confirmed: bool,
    pub(super) received: Bytes,
    pub(super) log: Bytes,
    /// Since when the rooms know that its connection is lost, if they do.
    pub(super) away_since: Option<u64>,
}

/// The bytes that `write` appends.
pub(super) fn bytes(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut out = Vec::new();
    write(&mut out);
    Bytes(out)
}

/// Reads all of these bytes.
pub(super) fn read<T>(
    bytes: &Bytes,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let mut reader = Reader::new(&bytes.0);
    let value = read(&mut reader)?;
    if reader.is_empty() { Ok(value) } else { Err(DecodeError::other("there is more")) }
}

/// A time in nanoseconds: enough for 584 years.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn time(nanos: u64) -> Duration {
    if nanos == u64::MAX { Duration::MAX } else { Duration::from_nanos(nanos) }
}

/// Adds the host's parts to a room that goes on from the journal, in a node whose clock is at
/// `now`, which is past the room's time.
///
/// # Errors
/// If the room is too large.
pub(crate) fn recovered(
    room: Recovering,
    settings: &Settings,
    now: Duration,
    epoch: u64,
) -> Result<Vec<u8>, FreezeError> {
    let Recovering { mut form, position, criteria, shard, about: _ } = room;
    // The next tick has its number, and comes within its period.
    let beat = |hz: u32, next: u64| {
        Beat::new(hz, 0, now).map(|beat| {
            let (_, first, _) = beat.parts();
            let passed =
                Duration::from_nanos((next - 1).saturating_mul(1_000_000_000) / u64::from(hz));
            BeatPart { hz, first: nanos(first.saturating_sub(passed)), next }
        })
    };
    let part = HostedPart {
        shard,
        age: 0,
        criteria: Bytes(criteria),
        created: nanos(now.saturating_sub(position.at)),
        epoch,
        ticks: beat(settings.tick_hz, position.tick + 1),
        syncs: beat(settings.sync_hz, 1),
        regular_syncs: 0,
        founder: None,
        sync_awaited: false,
    };
    form.host_part(HOSTED, |out| part.encode(out));
    form.host_part(MEMBERS, |out| Vec::<MemberPart>::new().encode(out));
    form.finish()
}
