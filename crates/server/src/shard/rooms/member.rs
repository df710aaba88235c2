//! A session's seat in a room, as the room's shard keeps it.

use std::borrow::Cow;

use playfield_room::{EventHeader, PlayerId};
use playfield_session::{SentHistory, SyncHistory};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use crate::shard::allowance::Allowance;
use crate::shard::keys::OfMember;
use crate::shard::mail::join::JoinRequest;
use crate::shard::mail::member::Farewell;
use crate::shard::rooms::link::MemberLink;
use crate::shard::slab::Slab;

pub(crate) type Members = Slab<OfMember, Member>;

/// One seat: the link to its session, and what its client has.
pub(crate) struct Member {
    pub(crate) link: MemberLink,
    pub(crate) format: Format,
    pub(crate) standing: Standing,
    /// The room's number in the session.
    pub(crate) number: RoomNumber,
    pub(crate) player: PlayerId,
    /// The version, as the client counts, of the last patch or snapshot: the base of the next.
    pub(crate) sent: u64,
    /// The version, as the room counts, that the client's copy equals.
    pub(crate) clean: u64,
    /// Its session outlives the connection.
    pub(crate) is_resumable: bool,
    /// The room's version for each version that the client may come back with.
    pub(crate) history: SentHistory,
    /// A patch that would have held something was skipped, because earlier output is on its way.
    pub(crate) lagging: bool,
    /// A snapshot was asked for while earlier output was still on its way, or sooner after others
    /// than may be.
    pub(crate) wants_snapshot: bool,
    /// The allowance of snapshots that it is sent because it came in or asked.
    pub(crate) snapshots: Allowance,
    /// The number of events sent.
    pub(crate) events: u64,
    /// The client's requests that the room has not answered.
    pub(crate) unanswered: Vec<RequestNumber>,
}

/// Whether a member's client knows of it.
pub(crate) enum Standing {
    /// The room is being asked, or has agreed, and the next sync makes it known; one after, if the
    /// snapshot may not be sent by then.
    Entering(Box<Entering>),
    /// The client has a copy, and gets patches.
    Live,
}

/// A member that its client doesn't know of yet.
pub(crate) struct Entering {
    /// The request to be answered.
    pub(crate) request: RequestNumber,
    /// The room has agreed.
    pub(crate) seated: bool,
    /// A sync has shown the player to the room, and the snapshot waits for its turn.
    pub(crate) synced: bool,
    /// The room holds the player: the join that is still to be decided, with the seat that is
    /// reserved for it.
    pub(crate) held: Option<Box<JoinRequest>>,
    /// Events that follow the snapshot.
    pub(crate) events: Vec<HeldEvent>,
    /// The bytes that these take.
    pub(crate) events_bytes: usize,
    /// Whether the events were too many: then the player is about to be taken out.
    pub(crate) given_up: bool,
}

pub(crate) struct HeldEvent {
    pub(crate) header: EventHeader,
    pub(crate) payload: Vec<u8>,
}

impl Member {
    /// The room has agreed.
    pub(crate) fn admit(&mut self) {
        if let Standing::Entering(entering) = &mut self.standing {
            entering.seated = true;
            entering.held = None;
        }
    }

    /// The version of the client's copy, or the one after it if a patch is due.
    pub(crate) fn latest(&self) -> u64 {
        self.sent + u64::from(self.lagging)
    }

    /// The client is sent what brings its copy to the version `sent`, which is the room's `clean`.
    pub(crate) fn is_now_at(&mut self, sent: u64, clean: u64, syncs: &SyncHistory) {
        (self.sent, self.clean, self.lagging) = (sent, clean, false);
        self.remember(syncs);
    }

    /// Remembers what the client was sent last, in case it comes back without it or the next.
    #[inline]
    pub(crate) fn remember(&mut self, syncs: &SyncHistory) {
        if self.is_resumable {
            self.history.sent(self.sent, self.clean, syncs);
        }
    }

    /// The version of the room that the client's copy equals if it has this version.
    pub(crate) fn room_version(&self, version: u64, syncs: &SyncHistory) -> Option<u64> {
        match version {
            0 => None,
            _ if version == self.sent => Some(self.clean),
            _ if version > self.sent => None,
            _ => self.history.room_version(version, syncs),
        }
    }

    /// The client has come back with a copy of this version: it will never have those that it was
    /// sent after that.
    pub(crate) fn has_again(&mut self, version: u64) {
        self.history.forget_after(version);
    }

    /// The room will decide this join later.
    pub(crate) fn hold(&mut self, join: JoinRequest) {
        if let Standing::Entering(entering) = &mut self.standing {
            entering.held = Some(Box::new(join));
        }
    }

    /// The join that the room has not decided yet.
    pub(crate) fn take_held(&mut self) -> Option<Box<JoinRequest>> {
        match &mut self.standing {
            Standing::Entering(entering) => entering.held.take(),
            Standing::Live => None,
        }
    }

    pub(crate) fn entering(
        link: MemberLink,
        format: Format,
        snapshots: Allowance,
        number: RoomNumber,
        request: RequestNumber,
        is_resumable: bool,
    ) -> Self {
        let entering = Entering {
            request,
            seated: false,
            synced: false,
            held: None,
            events: Vec::new(),
            events_bytes: 0,
            given_up: false,
        };
        Self {
            link,
            format,
            standing: Standing::Entering(Box::new(entering)),
            number,
            player: PlayerId(0),
            sent: 0,
            clean: 0,
            is_resumable,
            history: SentHistory::default(),
            lagging: false,
            wants_snapshot: false,
            snapshots,
            events: 0,
            unanswered: Vec::new(),
        }
    }
}

/// The message that a member is sent when it leaves.
pub(crate) fn farewell_to(farewell: Farewell, member: &Member) -> Option<ServerMessage<'static>> {
    let room = member.number;
    let (request, code, text) = match farewell {
        Farewell::None => return None,
        Farewell::Asked(request) => (Some(request), ErrorCode::Left, "as asked"),
        Farewell::GraceOver => {
            (None, ErrorCode::ConnectionLost, "the connection was lost for too long")
        }
        Farewell::TooMuch => {
            let text =
                "limits.session.resume_bytes: the room sent too much while the connection was lost";
            (None, ErrorCode::TooSlow, text)
        }
    };
    let text = Cow::Borrowed(text);
    Some(match (&member.standing, farewell) {
        (Standing::Entering(entering), Farewell::GraceOver | Farewell::TooMuch) => {
            ServerMessage::Error(server::Error {
                request: Some(entering.request),
                room: None,
                code,
                text,
                retry_after_ms: None,
            })
        }
        _ => ServerMessage::Left(server::Left { request, room, code, text }),
    })
}
