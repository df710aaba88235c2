//! A room, and the seats of its members.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use playfield_room::frozen::Frozen;
use playfield_room::{AnyRoom, Link, PlayerId, Thaw, panic_text};
use playfield_session::SentHistory;
use playfield_state::Format;
use playfield_wire::{RequestNumber, RoomNumber};

use super::{Places, Seated, Sits};
use crate::directory::Kept;
use crate::directory::keys::Key as RoomKeyText;
use crate::room_id::RoomId;
use crate::shard::Shard;
use crate::shard::allowance::Allowance;
use crate::shard::frames::Stay;
use crate::shard::frozen::parts::{BeatPart, HostedPart, MemberPart, Place, time};
use crate::shard::frozen::schemas::Schemas;
use crate::shard::keys::{MemberKey, RoomKey, Seat, link};
use crate::shard::rooms::link::{MemberLink, RemoteLink};
use crate::shard::rooms::member::{Member, Members, Standing};
use crate::shard::rooms::{Hosted, Made};
use crate::shard::work::{Founder, Host};

/// A room that goes on here, before it knows.
pub(crate) struct ThawedRoom {
    pub(in crate::shard::frozen) key: RoomKey,
    /// The players whose sessions don't go on.
    pub(super) gone: Vec<PlayerId>,
    /// The members with open connections whose copies are behind.
    pub(super) behind: Vec<MemberKey>,
}

/// A room that was made of its bytes, and that nobody knows of yet.
pub(super) struct MadeRoom {
    /// The shard that it was made for.
    pub(super) shard: u16,
    /// The number of rooms created before it.
    pub(super) age: u64,
    hosted: Hosted,
    kept: Kept,
    is_journaled: bool,
    gone: Vec<PlayerId>,
    behind: Vec<MemberKey>,
    /// The sessions of its members, with their numbers of the room.
    members: Vec<(Place, RoomNumber, MemberKey)>,
}

impl Shard {
    /// Makes a room.
    pub(super) fn make_room(
        &mut self,
        frozen: &Frozen<'_>,
        part: HostedPart,
        members: Vec<MemberPart>,
        places: &Places,
        schemas: &Schemas,
    ) -> Result<MadeRoom, String> {
        let id = RoomId::parse(frozen.room_id()).ok_or("the id is not valid")?;
        let node = Arc::clone(&self.env.node);
        let room_type = node
            .room_type(frozen.room_type())
            .ok_or("this program has no such room type: is it another program?")?;
        let of = &node.room_types[usize::from(room_type)];
        let journaled = self.outbound.journaled.as_ref();
        let is_journaled = journaled.is_some_and(|journaled| journaled.takes(of, frozen.key()));
        let has_changed = schemas.has_changed(room_type);
        let (mut table, mut by_player) = (Members::new(), BTreeMap::new());
        let (mut places_of, mut behind) = (Vec::new(), Vec::new());
        for of in members {
            let Some(sits) = places.get(&of.session) else { continue };
            let (place, number, player) = (sits.place, RoomNumber(of.number), of.player);
            let link_to = self.link_to(sits, number, is_journaled);
            let member = member(&of, link_to).ok_or("a member is not valid")?;
            let is_other = has_changed && member.format == Format::Packed;
            let is_behind = sits.is_open && (member.lagging || member.wants_snapshot || is_other);
            let key = table.insert(member);
            behind.extend(is_behind.then_some(key));
            by_player.insert(player, key);
            places_of.push((place, number, key));
        }
        let nobody = Link(u64::MAX);
        let mut find = |player: PlayerId| by_player.get(&player).map_or(nobody, |key| link(*key));
        let store = node.store.lend();
        let thaw = node.room_types[usize::from(room_type)].thaw;
        let thawed =
            catch_unwind(AssertUnwindSafe(|| thaw(Thaw { frozen, store, link: &mut find })));
        let room: Box<dyn AnyRoom> = match thawed {
            Ok(thawed) => thawed.map_err(|error| error.to_string())?,
            Err(panic) => return Err(format!("it panicked: {}", panic_text(&*panic))),
        };
        let room = node.record(room, id, room_type);
        let of = &node.room_types[usize::from(room_type)];
        let room = self.outbound.journal(room, id, of, || part.criteria.0.clone());
        let gone = room.players(&mut |_| true).into_iter().map(|player| player.id());
        let gone: Vec<PlayerId> = gone.filter(|player| !by_player.contains_key(player)).collect();

        let summary = room.summary().clone();
        let key = summary.key.clone();
        let kept = Kept {
            room_type,
            shard: self.env.shard,
            key: key.map(|text| RoomKeyText { text, is_code: summary.is_code }),
            criteria: part.criteria.0.into(),
            waiting_max: node.room_types[usize::from(room_type)].settings.joins_waiting_max,
            summary,
        };
        let founder = part.founder.and_then(|address| address.name());
        let founder = founder.map(|name| node.addresses.named(name, self.env.now));
        let beat = |beat: Option<BeatPart>| match beat {
            Some(beat) => beat.beat().map(Some).ok_or("a rate is not valid"),
            None => Ok(None),
        };
        let made = Made {
            id,
            room_type,
            room,
            created: time(part.created),
            epoch: part.epoch,
            ticks: beat(part.ticks)?,
            syncs: beat(part.syncs)?,
            founder: founder.map_or(Founder::Program, |of| Founder::Client(Host(of))),
        };
        let mut hosted = Hosted::new(made);
        hosted.members = table;
        hosted.regular_syncs = part.regular_syncs;
        // No patch reaches back beyond what the members have now.
        hosted.history.synced(hosted.clock(self.env.now), hosted.room.version());
        for (_, member) in hosted.members.iter_mut() {
            member.history = SentHistory::beginning(member.sent, member.clean, &hosted.history);
        }
        hosted.sync_awaited = part.sync_awaited;
        let (shard, age) = (self.env.shard, part.age);
        Ok(MadeRoom { shard, age, hosted, kept, is_journaled, gone, behind, members: places_of })
    }

    /// Takes in a room. Returns the seats of its members.
    pub(super) fn take_in(&mut self, made: MadeRoom) -> Result<Vec<Seated>, String> {
        let MadeRoom { hosted, kept, is_journaled, gone, behind, members, .. } = made;
        let id = hosted.id;
        let directory = &self.env.node.directory;
        if directory.is_suspended(id) {
            // It is back.
            directory.publish(id, &kept.summary);
        } else if !directory.keep(id, kept) {
            return Err(format!("room {id}: a room has its id, or its key, already"));
        }
        let room = self.host.host(hosted);
        self.thawed.push(ThawedRoom { key: room, gone, behind });
        let (own, inputs) = (self.env.shard, self.outbound.lanes.inputs());
        let seated = |(place, number, member): (Place, RoomNumber, _)| {
            let is_here = place.shard == u32::from(own);
            let shard = if is_here && is_journaled { inputs } else { own };
            let seat = Seat { shard, room, member };
            Seated { shard: place.shard as u16, connection: place.key(), number, seat }
        };
        Ok(members.into_iter().map(seated).collect())
    }

    fn link_to(&self, sits: &Sits, number: RoomNumber, is_journaled: bool) -> MemberLink {
        let Sits { place, is_open, address } = sits;
        let shard = place.shard as u16;
        if shard == self.env.shard && !is_journaled {
            return MemberLink::Local(place.key());
        }
        let stay = Stay { connection: place.key(), room: number };
        let lane = if is_journaled { self.outbound.lanes.held(shard) } else { shard };
        let mut link = RemoteLink::new(lane, stay, Arc::clone(address));
        link.held = !is_open;
        MemberLink::Remote(Box::new(link))
    }
}

fn member(part: &MemberPart, link: MemberLink) -> Option<Member> {
    let format = Format::from_number(part.format)?;
    let snapshots = Allowance::with_remaining(part.snapshots, Duration::ZERO);
    let (number, none) = (RoomNumber(part.number), RequestNumber(0));
    let mut member = Member::entering(link, format, snapshots, number, none, part.is_resumable);
    member.standing = Standing::Live;
    member.player = part.player;
    member.sent = part.sent;
    member.clean = part.clean;
    member.lagging = part.lagging;
    member.wants_snapshot = part.wants_snapshot;
    member.events = part.events;
    member.unanswered = part.unanswered.iter().copied().map(RequestNumber).collect();
    Some(member)
}
