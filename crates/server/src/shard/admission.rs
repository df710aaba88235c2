//! The way into a room: which room, on which shard, and whether it agrees.
//!
//! The session's shard picks the room from the directory, which reserves the seat. The room's shard
//! makes the room, if need be, and asks it. Between the two the wish travels as a [`Ticket`]: with
//! the connection, if the session is in no room yet and may move, or else alone, by mail.

use playfield_room::{Creator, Entrant, Error};
use playfield_wire::server::ServerMessage;
use playfield_wire::{ErrorCode, Format, excerpt};

use crate::directory::{Choice, Plan};
use crate::room_id::RoomId;
use crate::shard::Shard;
use crate::shard::allowance::{Allowance, Rate};
use crate::shard::connection::{Connection, ConnectionKey};
use crate::shard::mail::ShardMail;
use crate::shard::member::{Member, MemberOutput, RemoteSession, Standing, link};
use crate::shard::session::{Seat, SessionRoom};
use crate::shard::transport::Dialect;

/// How often a `join_or_create` tries another room when the one it was given fell through.
const RETRIES: u8 = 3;

/// A wish to enter a room that was picked; a seat is reserved there.
pub(crate) struct Ticket {
    pub(crate) request: u32,
    /// The number that the room will have in the session.
    pub(crate) number: u32,
    pub(crate) id: RoomId,
    /// What is wanted, if it is no certain room.
    pub(crate) wanted: Option<Wanted>,
    /// The room is still to be made.
    pub(crate) create: bool,
    /// How often another room may be picked.
    pub(crate) retries: u8,
}

/// Any room of a type, or a new one.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) room_type: u16,
    pub(crate) private: bool,
    pub(crate) options: Vec<u8>,
    pub(crate) format: Format,
}

/// What a client asks for.
pub(super) enum Wish {
    /// A certain room, by its id.
    Join(String),
    /// A new room.
    Create(Wanted),
    /// Any room of the type, or a new one.
    JoinOrCreate(Wanted, u8),
}

impl Wish {
    pub(super) fn join_or_create(wanted: Wanted) -> Self {
        Self::JoinOrCreate(wanted, RETRIES)
    }
}

/// A session of another shard that wants in.
pub(crate) struct RemoteEntrant {
    pub(crate) shard: u16,
    pub(crate) connection: ConnectionKey,
    pub(crate) dialect: Dialect,
    pub(crate) name: String,
    pub(crate) user: Option<String>,
    pub(crate) snapshots: Allowance,
}

/// Who wants in.
pub(crate) enum Applicant {
    Here(ConnectionKey),
    Elsewhere(Box<RemoteEntrant>),
}

/// What the room's shard has to know of them.
struct Introduction {
    output: MemberOutput,
    dialect: Dialect,
    name: String,
    user: Option<String>,
    snapshots: Allowance,
}

/// A connection's way to another shard.
pub(crate) struct Departure {
    pub(crate) target: u16,
    pub(crate) ticket: Ticket,
}

/// A connection between two shards.
pub(crate) struct Moving {
    pub(crate) connection: Box<Connection>,
    pub(crate) ticket: Ticket,
}

impl Shard {
    /// Picks a room for a session's wish, and sends it on its way there.
    pub(super) fn enter(&mut self, key: ConnectionKey, request: u32, wish: Wish) {
        match self.pick(key, request, wish) {
            Ok((shard, ticket)) => self.send_off(key, shard, ticket),
            Err(error) => self.send_error(key, Some(request), None, &error),
        }
    }

    fn pick(
        &mut self,
        key: ConnectionKey,
        request: u32,
        wish: Wish,
    ) -> Result<(u16, Ticket), Error> {
        let node = &self.delivery.node;
        let gone = || Error::new(ErrorCode::Internal, "the session ended");
        let session = self.delivery.connections.session_mut(key).ok_or_else(gone)?;
        let rooms_max = node.config.rooms_per_session_max;
        if session.rooms.len() >= rooms_max {
            let text = format!("rooms_per_session_max: this session is in {rooms_max} rooms");
            return Err(Error::new(ErrorCode::Limit, text));
        }
        if self.is_shutting_down {
            return Err(Error::new(ErrorCode::ShuttingDown, "the node is shutting down"));
        }
        let rate = Rate::per_minute(
            "rooms_created_per_minute_max",
            node.config.rooms_created_per_minute_max,
        );
        let may_create = session.creations.check(self.now, rate);
        let (choice, wanted, retries) = match wish {
            Wish::Join(id) => {
                let not_found = || {
                    Error::new(
                        ErrorCode::RoomNotFound,
                        format!("no room has the id {:?}", excerpt(&id, 64)),
                    )
                };
                let id = RoomId::parse(&id).ok_or_else(not_found)?;
                if session.rooms.iter().any(|room| room.id == id) {
                    return Err(Error::new(
                        ErrorCode::AlreadyJoined,
                        "this session is in that room",
                    ));
                }
                let place = node.directory.find(id).ok_or_else(not_found)?;
                node.directory.reserve(id)?;
                (Choice { id, shard: place.shard, new: false }, None, 0)
            }
            Wish::Create(wanted) | Wish::JoinOrCreate(wanted, 0) => {
                may_create?;
                let id = RoomId::from_random(self.entropy.bytes());
                (
                    node.directory.plan(&plan(self.delivery.shard, node, id, &wanted))?,
                    Some(wanted),
                    0,
                )
            }
            Wish::JoinOrCreate(wanted, retries) => {
                let id = RoomId::from_random(self.entropy.bytes());
                let except: Vec<RoomId> = session.rooms.iter().map(|room| room.id).collect();
                let plan = plan(self.delivery.shard, node, id, &wanted);
                (node.directory.choose(&plan, &except, may_create)?, Some(wanted), retries)
            }
        };
        if choice.new {
            session.creations.take(self.now, rate);
        }
        session.rooms_numbered += 1;
        let (number, id) = (session.rooms_numbered, choice.id);
        session.rooms.push(SessionRoom {
            number,
            id,
            request: Some(request),
            seat: None,
            undelivered: 0,
            acts: 0,
            leaving: None,
        });
        Ok((choice.shard, Ticket { request, number, id, wanted, create: choice.new, retries }))
    }

    fn send_off(&mut self, key: ConnectionKey, shard: u16, ticket: Ticket) {
        if shard == self.delivery.shard {
            return self.admit(Applicant::Here(key), ticket);
        }
        if self.delivery.congested[usize::from(shard)] {
            return self.refuse_busy(key, ticket);
        }
        let Some(connection) = self.delivery.connections.get_mut(key) else { return };
        let Some(session) = connection.session.as_deref() else { return };
        if !session.moved && session.rooms.len() == 1 {
            connection.departure = Some(Box::new(Departure { target: shard, ticket }));
            self.departing.push(key);
            return;
        }
        let entrant = RemoteEntrant {
            shard: self.delivery.shard,
            connection: key,
            dialect: connection.dialect,
            name: session.name.clone(),
            user: session.user.clone(),
            snapshots: session.snapshots,
        };
        let (entrant, ticket) = (Box::new(entrant), Box::new(ticket));
        self.delivery.post(shard, ShardMail::Enter { entrant, ticket });
    }

    /// The room's shard can't take the ticket now.
    pub(super) fn refuse_busy(&mut self, key: ConnectionKey, mut ticket: Ticket) {
        self.cancel(&ticket);
        ticket.retries = 0;
        let error = Error::new(
            ErrorCode::Busy,
            "mailbox_max: the mailbox of the room's shard is full; try again",
        );
        self.refused(Applicant::Here(key), ticket, error);
    }

    /// Nobody comes with this ticket: its seat is free again, and the room that was to be made for
    /// it is not.
    pub(super) fn cancel(&mut self, ticket: &Ticket) {
        let directory = &self.delivery.node.directory;
        if ticket.create && directory.is_awaited(ticket.id) {
            directory.remove(ticket.id);
        } else {
            directory.release(ticket.id);
        }
    }

    /// On the room's shard: makes the room if it is new, and asks it to let someone in.
    pub(super) fn admit(&mut self, applicant: Applicant, mut ticket: Ticket) {
        if self.is_gone(&applicant) {
            return self.cancel(&ticket);
        }
        if std::mem::take(&mut ticket.create)
            && let Some(wanted) = &ticket.wanted
        {
            let creator = self.introduce(&applicant).map(|who| Creator::new(who.name, who.user));
            if let Err(error) = self.create_room(ticket.id, wanted, creator) {
                self.delivery.node.directory.remove(ticket.id);
                ticket.retries = 0;
                return self.refused(applicant, ticket, error);
            }
            let id = ticket.id;
            self.seat(applicant, ticket);
            // A room whose founder it did not let in has nobody to end it.
            if let Some(&room) = self.by_id.get(&id)
                && self.rooms.get(room).is_some_and(|hosted| hosted.members.len() == 0)
            {
                let text = "the one it was made for was not let in";
                self.call(room, |any, at, out| any.close(at, ErrorCode::RoomClosed, text, out));
            }
            return;
        }
        self.seat(applicant, ticket);
    }

    /// Seats someone in a room that is there, or is about to be.
    fn seat(&mut self, applicant: Applicant, ticket: Ticket) {
        let Some(&room) = self.by_id.get(&ticket.id) else {
            if self.delivery.node.directory.is_awaited(ticket.id) {
                // Whoever the room is made for is on the way.
                self.parked.push((applicant, ticket));
                return;
            }
            let text = format!("no room has the id {:?}", ticket.id);
            return self.refused(applicant, ticket, Error::new(ErrorCode::RoomNotFound, text));
        };
        let Some(Introduction { output, dialect, name, user, snapshots }) =
            self.introduce(&applicant)
        else {
            return self.cancel(&ticket);
        };
        let Some(hosted) = self.rooms.get_mut(room) else { return };
        let number = ticket.number;
        let member = Member::entering(output, dialect, snapshots, number, ticket.request);
        let member = hosted.members.insert(member);
        let entrant = Entrant { link: link(member), format: dialect.format, name, user };
        let outcome = self.call(room, |any, at, out| {
            if any.is_closed() {
                return Err(Error::new(ErrorCode::RoomNotFound, "the room has just ended"));
            }
            any.join(at, entrant, out)
        });

        let Some(hosted) = self.rooms.get_mut(room) else { return };
        self.delivery.node.directory.seated(ticket.id, hosted.room.summary());
        // `None` if it was taken out again before the room had said yes.
        let seated = hosted.members.get_mut(member);
        let error = match (outcome, seated) {
            (Some(Ok(player)), Some(seated)) => {
                seated.player = player;
                if let Standing::Entering(entering) = &mut seated.standing {
                    entering.seated = true;
                }
                hosted.sync_awaited |= hosted.room.sync_hz() == 0;
                return self.tell_entered(
                    &applicant,
                    number,
                    Seat { shard: self.delivery.shard, room, member },
                );
            }
            (Some(Err(error)), _) => error,
            (Some(Ok(_)) | None, _) => Error::new(ErrorCode::RoomClosed, "the room ended"),
        };
        hosted.members.remove(member);
        self.refused(applicant, ticket, error);
    }

    fn is_gone(&self, applicant: &Applicant) -> bool {
        match applicant {
            Applicant::Here(key) => self
                .delivery
                .connections
                .get(*key)
                .is_none_or(|connection| connection.session.is_none()),
            Applicant::Elsewhere(_) => false,
        }
    }

    fn introduce(&self, applicant: &Applicant) -> Option<Introduction> {
        Some(match applicant {
            Applicant::Here(key) => {
                let connection = self.delivery.connections.get(*key)?;
                let session = connection.session.as_deref()?;
                Introduction {
                    output: MemberOutput::Here(*key),
                    dialect: connection.dialect,
                    name: session.name.clone(),
                    user: session.user.clone(),
                    snapshots: session.snapshots,
                }
            }
            Applicant::Elsewhere(entrant) => {
                let session = RemoteSession::new(entrant.shard, entrant.connection);
                Introduction {
                    output: MemberOutput::Elsewhere(Box::new(session)),
                    dialect: entrant.dialect,
                    name: entrant.name.clone(),
                    user: entrant.user.clone(),
                    snapshots: entrant.snapshots,
                }
            }
        })
    }

    fn tell_entered(&mut self, applicant: &Applicant, number: u32, seat: Seat) {
        match applicant {
            Applicant::Here(key) => {
                let session = self.delivery.connections.session_mut(*key);
                if let Some(room) = session.and_then(|session| session.room_mut(number)) {
                    room.seat = Some(seat);
                }
            }
            Applicant::Elsewhere(entrant) => {
                let Seat { shard: from, room, member } = seat;
                let connection = entrant.connection;
                self.delivery.post(
                    entrant.shard,
                    ShardMail::Entered { from, connection, number, room, member },
                );
            }
        }
    }

    /// Someone was not let in: they are told, or, if any room would do, sent to another.
    pub(super) fn refused(&mut self, applicant: Applicant, ticket: Ticket, error: Error) {
        let key = match applicant {
            Applicant::Here(key) => key,
            Applicant::Elsewhere(entrant) => {
                let (connection, ticket) = (entrant.connection, Box::new(ticket));
                return self
                    .delivery
                    .post(entrant.shard, ShardMail::Refused { connection, ticket, error });
            }
        };
        if let Some(session) = self.delivery.connections.session_mut(key) {
            session.remove(ticket.number);
        }
        let fell_through = matches!(
            error.code(),
            ErrorCode::RoomFull
                | ErrorCode::RoomLocked
                | ErrorCode::RoomNotFound
                | ErrorCode::RoomClosed
        );
        match ticket.wanted {
            Some(wanted) if fell_through && ticket.retries > 0 => {
                self.enter(key, ticket.request, Wish::JoinOrCreate(wanted, ticket.retries - 1));
            }
            _ => self.send_error(key, Some(ticket.request), None, &error),
        }
    }

    /// Looks again at those who wait for a room to be made.
    pub(super) fn retry_parked(&mut self) {
        for (applicant, ticket) in std::mem::take(&mut self.parked) {
            self.admit(applicant, ticket);
        }
    }

    /// Answers with an error, or tells of one.
    pub(super) fn send_error(
        &mut self,
        key: ConnectionKey,
        request: Option<u32>,
        room: Option<u32>,
        error: &Error,
    ) {
        let (code, text) = (error.code(), error.text().into());
        let retry_after_ms = error.retry_after_ms();
        let message = ServerMessage::Error { request, room, code, text, retry_after_ms };
        self.delivery.connections.send(key, &message);
    }
}

fn plan(shard: u16, node: &crate::node::Node, id: RoomId, wanted: &Wanted) -> Plan {
    let capacity = node.room_types[usize::from(wanted.room_type)].settings.capacity;
    Plan { id, room_type: wanted.room_type, capacity, private: wanted.private, shard }
}
