//! Operation of a shard's rooms: inspecting them, and acting on them.

use std::time::Duration;

use playfield_room::{Error, Player, Result};
use playfield_state::Format;
use playfield_wire::ErrorCode;

use crate::handle::operated::{
    FoundPlayer, Inspect, Inspection, Match, Operate, RoomCost, RoomLoad, Search, Survey,
};
use crate::handle::profile::Capturing;
use crate::handle::recordings::Forked;
use crate::room_id::RoomId;
use crate::shard::keys::RoomKey;
use crate::shard::rooms::Hosted;
use crate::shard::rooms::capture::{Capture, Captured};
use crate::shard::rooms::founding::shutting_down;
use crate::shard::rooms::host::{Below, RoomHost};
use crate::shard::rooms::lateness::Cost;
use crate::shard::rooms::traffic::{Bytes, Sample};
use crate::shard::work::Founder;

impl RoomHost {
    pub(in crate::shard) fn inspect(&mut self, below: &mut Below<'_>, inspect: Inspect) {
        let Inspect { room, viewer, records, answer } = inspect;
        let now = below.env.now;
        let inspection = self.room_to_operate(room).map(|key| {
            let hosted = self.rooms.get_mut(key).expect("the room was just found");
            below.env.watch.enters(hosted.room_type);
            let any = &mut hosted.room;
            let mut whole = Vec::new();
            let has_state = any.whole(&mut whole);
            let players = any.players(&mut |_| true);
            let seen = viewer.filter(|viewer| players.iter().any(|seat| seat.id() == *viewer));
            let view = seen.map(|viewer| {
                let mut view = Vec::new();
                any.snapshot(viewer, Format::Json, &mut view);
                view
            });
            let load = load(hosted, self.queues.traffic.of(key), now);
            let any = &mut hosted.room;
            // One that was begun long ago has a gap.
            hosted.record.take_if(|record| record.is_over(now));
            let messages = match records {
                true => hosted.record.get_or_insert_default().look(now),
                false => Vec::new(),
            };
            Inspection {
                room_type: below.env.node.room_types[usize::from(hosted.room_type)].name.clone(),
                players,
                summary: any.summary().clone(),
                version: any.version(),
                age: now.saturating_sub(hosted.created),
                rates: (any.tick_hz(), any.sync_hz()),
                load,
                recording: any.recorder().map(|recorder| recorder.has_file()),
                is_journaled: any.journaled().is_some(),
                whole: has_state.then_some(whole),
                view,
                messages,
            }
        });
        answer.answer(inspection);
    }

    pub(in crate::shard) fn survey(&mut self, below: &mut Below<'_>, survey: Survey) {
        let Survey { rooms, answer } = survey;
        let mut load_of = |id: &RoomId| {
            let key = *self.by_id.get(id)?;
            Some(load(self.rooms.get_mut(key)?, self.queues.traffic.of(key), below.env.now))
        };
        answer.answer(Ok(rooms.iter().map(&mut load_of).collect()));
    }

    pub(in crate::shard) fn search(&mut self, below: &mut Below<'_>, search: Search) {
        let Search { rooms, text, limit, answer } = search;
        // A name that many others contain is found all the same.
        let (mut exact, mut others) = (limit, limit);
        let mut found = Vec::new();
        for id in rooms {
            let Some(hosted) = self.by_id.get(&id).and_then(|key| self.rooms.get_mut(*key)) else {
                continue;
            };
            let mut wanted = |player: &Player| {
                let left = match Match::of(&text, player) {
                    Some(Match::Exact) => &mut exact,
                    Some(Match::Part) => &mut others,
                    None => return false,
                };
                let has_space = *left > 0;
                *left = left.saturating_sub(1);
                has_space
            };
            let players = hosted.room.players(&mut wanted);
            let room_type = &below.env.node.room_types[usize::from(hosted.room_type)].name;
            found.extend(players.into_iter().map(|player| FoundPlayer {
                room_id: id.to_string(),
                room_type: room_type.clone(),
                player,
            }));
        }
        answer.answer(Ok(found));
    }

    pub(in crate::shard) fn capture(&mut self, below: &mut Below<'_>, capturing: Capturing) {
        let Capturing { room, number, begins, answer } = capturing;
        let now = below.env.now;
        let done = self.room_to_operate(room).and_then(|key| {
            let hosted = self.rooms.get_mut(key).expect("the room was just found");
            if let Some((lasts, exchange)) = begins {
                hosted.capture.take_if(|capture| capture.is_over(now));
                if let Some(running) = &hosted.capture {
                    let text = format!(
                        "another operator profiles this room: try again in {} s",
                        running.left(now).as_secs() + 1
                    );
                    return Err(Error::new(ErrorCode::Refused, text));
                }
                let room = &mut *hosted.room;
                let watch = &below.env.stopwatch;
                let capture = Capture::begin(number, now, lasts, exchange, room, watch);
                hosted.capture = Some(Box::new(capture));
                return Ok(Captured::default());
            }
            let mine = hosted.capture.take_if(|capture| capture.number == number);
            let captured = mine.map(|capture| capture.end(now));
            captured.ok_or_else(|| {
                Error::new(ErrorCode::Refused, "the profile has waited too long to be collected")
            })
        });
        answer.answer(done);
    }

    pub(in crate::shard) fn operate(&mut self, below: &mut Below<'_>, operate: Operate) {
        let Operate { room, operation, answer } = operate;
        let done = self.room_to_operate(room).and_then(|key| {
            let done =
                self.call(below, key, |room, at: Duration, out| room.operate(at, operation, out));
            done.unwrap_or_else(|| Err(not_found(room)))
        });
        answer.answer(done);
    }

    /// Lets a fork of a recorded room go on here.
    pub(in crate::shard) fn fork(&mut self, below: &mut Below<'_>, forked: Forked) {
        let Forked { id, room_type, room, position, answer } = forked;
        if below.env.is_shutting_down {
            below.env.node.remove_room(id);
            return answer.answer(Err(shutting_down()));
        }
        let (of, before) = ((id, room_type), (position.at, position.tick));
        let key = self.take_in(below, of, room, Founder::Program, before);
        self.call(below, key, |room, at, out| room.moved(at, out));
        answer.answer(Ok(()));
    }

    fn room_to_operate(&self, id: RoomId) -> Result<RoomKey> {
        self.by_id.get(&id).copied().ok_or_else(|| not_found(id))
    }
}

fn load(hosted: &mut Hosted, bytes: Bytes, now: Duration) -> RoomLoad {
    let longest = hosted.longest.most(now).map(|Cost { ticks, sync, patches, .. }| RoomCost {
        ticks: ticks.into(),
        sync: sync.into(),
        patches: patches.into(),
    });
    let began = hosted.created;
    let sample = hosted.sample.get_or_insert_with(|| Box::new(Sample::first(began)));
    let per_s = sample.look(now, bytes);
    RoomLoad {
        longest,
        late_max: hosted.late.most(now).into(),
        syncs_missed: hosted.syncs_missed,
        bytes_in: bytes.received,
        bytes_out: bytes.sent,
        bytes_in_per_s: per_s.received,
        bytes_out_per_s: per_s.sent,
    }
}

fn not_found(id: RoomId) -> Error {
    Error::new(ErrorCode::RoomNotFound, format!("no room has the id {id:?}"))
}
