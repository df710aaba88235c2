//! Sessions of clients that came without a token, to show a ticket.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use playfield_room::Error;
use playfield_wire::client::{self, ClientMessage, Hello, SchemaRef};
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use super::speech::{Heard, encoded};
use super::wanderer::{Return, Wanderer};
use super::world::{Client, TICKET_TOKEN, World};
use crate::tickets::{TicketChecker, TicketPass, TicketRoom};

/// A ticket is a user, who may be missing, a room's id, and `ticket` or, if it is valid once,
/// `once`, with periods between.
#[derive(Default)]
pub(super) struct Checker(Arc<Mutex<HashSet<String>>>);

impl TicketChecker for Checker {
    fn redeem(&self, ticket: &str, _: Option<&str>) -> Result<TicketPass, Error> {
        let mut parts = ticket.split('.');
        let (Some(user), Some(id), Some(kind @ ("ticket" | "once"))) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(Error::new(ErrorCode::BadTicket, "not a ticket"));
        };
        if kind == "once" && !self.0.lock().unwrap().insert(ticket.to_owned()) {
            return Err(Error::new(ErrorCode::BadTicket, "used"));
        }
        let (used, text) = (Arc::clone(&self.0), ticket.to_owned());
        let give_back = move || {
            used.lock().unwrap().remove(&text);
        };
        Ok(TicketPass {
            room: TicketRoom::Id(id.into()),
            user: Some(user.to_owned()).filter(|user| !user.is_empty()),
            name: None,
            seat: None,
            give_back: Box::new(give_back),
        })
    }
}

const REQUEST: RequestNumber = RequestNumber(7);
const FIRST: RoomNumber = RoomNumber(1);

fn ticket_holder(world: &mut World, shard: usize, format: Format) -> Client {
    let client = world.connect(shard);
    world.bytes(client, b"PF1\n");
    world.speaks(client, format);
    let hello = Hello {
        token: TICKET_TOKEN.into(),
        schemas: vec![SchemaRef { room_type: "test".into(), fingerprint: 0 }],
        ..Hello::new(format)
    };
    world.say(client, &encoded(format, &ClientMessage::Hello(hello)));
    let heard = world.heard(client);
    assert!(matches!(heard[..], [Heard::Welcome { .. }]), "no schema comes with it: {heard:?}");
    client
}

/// The node's reaction to a message.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    /// The message is not for such sessions.
    Forbidden,
    /// The session is not in that room.
    NotJoined,
    Pong,
    Nothing,
}

/// The outcome of each kind of message that is not a hello and not a ticket. A new kind does not
/// compile before it is listed here and in [`messages`].
fn outcome(message: &ClientMessage<'_>) -> Outcome {
    match message {
        ClientMessage::Join(_)
        | ClientMessage::JoinByKey(_)
        | ClientMessage::Create(_)
        | ClientMessage::JoinOrCreate(_)
        | ClientMessage::List(_)
        | ClientMessage::Schema(_)
        | ClientMessage::Subscribe(_)
        | ClientMessage::Unsubscribe(_)
        | ClientMessage::Publish(_)
        | ClientMessage::Members(_)
        | ClientMessage::History(_)
        | ClientMessage::Register(_)
        | ClientMessage::Report(_)
        | ClientMessage::Answer(_) => Outcome::Forbidden,
        ClientMessage::Request(_)
        | ClientMessage::Send(_)
        | ClientMessage::Resync(_)
        | ClientMessage::Leave(_) => Outcome::NotJoined,
        ClientMessage::Ping(_) => Outcome::Pong,
        ClientMessage::Hello(_)
        | ClientMessage::Ack(_)
        | ClientMessage::Pong(_)
        | ClientMessage::Goodbye(client::Goodbye {}) => Outcome::Nothing,
    }
}

/// One message of each kind that does not end the connection.
fn messages(id: &str) -> Vec<ClientMessage<'_>> {
    let (request, room) = (REQUEST, FIRST);
    let message = MessageRef::Index(0);
    let (room_type, options, payload) = ("test".into(), &b""[..], &b""[..]);
    let (presence, since) = (false, None);
    let channel = || "plain:a".into();
    let join = ClientMessage::Join(client::Join { request, room: id.into() });
    let by_key = ClientMessage::JoinByKey(client::JoinByKey {
        request,
        room_type: "test".into(),
        key: "open".into(),
    });
    let create = ClientMessage::Create(client::Create {
        request,
        room_type: "test".into(),
        private: false,
        code: false,
        key: None,
        options,
    });
    let any = ClientMessage::JoinOrCreate(client::JoinOrCreate {
        request,
        room_type: "test".into(),
        key: None,
        options,
    });
    vec![
        join,
        by_key,
        create,
        any,
        ClientMessage::List(client::List {
            request,
            room_type: None,
            filter: Vec::new(),
            limit: 0,
        }),
        ClientMessage::Schema(client::Schema { request, room_type }),
        ClientMessage::Subscribe(client::Subscribe {
            request,
            channel: channel(),
            since,
            presence,
        }),
        ClientMessage::Unsubscribe(client::Unsubscribe { channel: 1 }),
        ClientMessage::Publish(client::Publish {
            request: Some(request),
            channel: channel(),
            payload,
        }),
        ClientMessage::Publish(client::Publish { request: None, channel: channel(), payload }),
        ClientMessage::Members(client::Members { request, channel: channel() }),
        ClientMessage::History(client::History { request, channel: channel(), since, limit: 0 }),
        ClientMessage::Register(client::Register {
            request,
            device: "pump".into(),
            metadata: Vec::new(),
            tags: Vec::new(),
        }),
        ClientMessage::Report(client::Report { request: Some(request), payload }),
        ClientMessage::Report(client::Report { request: None, payload }),
        ClientMessage::Answer(client::Answer { command: 1, error: None, payload }),
        ClientMessage::Request(client::Request {
            room,
            request,
            message: message.clone(),
            payload,
        }),
        ClientMessage::Send(client::Send { room, message, payload }),
        ClientMessage::Resync(client::Resync { room }),
        ClientMessage::Leave(client::Leave { request, room }),
        ClientMessage::Ping(client::Ping { nonce: 5 }),
        ClientMessage::Ack(client::Ack { received: 0 }),
        ClientMessage::Pong(client::Pong { nonce: 5 }),
    ]
}

/// The id of a host's room.
fn open_room(world: &mut World) -> String {
    let host = world.client(0);
    world.room(host, "").1
}

#[test]
fn a_client_without_a_token_may_only_join_by_a_ticket() {
    let mut world = World::new(2, &[]);
    let ids: Vec<String> = messages("").iter().map(|_| open_room(&mut world)).collect();
    for (at, id) in ids.iter().enumerate() {
        let message = messages(id).swap_remove(at);
        let client = ticket_holder(&mut world, 1, Format::Packed);
        world.say(client, &encoded(Format::Packed, &message));
        world.wait(200);
        let heard = world.heard(client);
        let expected = outcome(&message);
        let code = match heard[..] {
            [] => Outcome::Nothing,
            [Heard::Pong { nonce: 5 }] => Outcome::Pong,
            [Heard::Error { code: ErrorCode::Forbidden, .. }] => Outcome::Forbidden,
            [Heard::Error { code: ErrorCode::NotJoined, .. }] => Outcome::NotJoined,
            _ => panic!("{message:?}: {heard:?}"),
        };
        assert_eq!(code, expected, "{message:?}");
        let [Heard::Error { request, .. }] = heard[..] else { continue };
        let has_request = !matches!(
            message,
            ClientMessage::Unsubscribe(_)
                | ClientMessage::Publish(client::Publish { request: None, .. })
                | ClientMessage::Report(client::Report { request: None, .. })
                | ClientMessage::Answer(_)
                | ClientMessage::Send(_)
                | ClientMessage::Resync(_)
        );
        assert_eq!(request.is_some(), has_request, "{message:?}");
        // The connection goes on.
        world.join(client, RequestNumber(8), &format!("ann.{id}.ticket"));
        assert_eq!(&world.joined(client).1, id);
    }
}

#[test]
fn in_its_room_the_holder_of_a_ticket_is_a_player_like_any_other() {
    for format in [Format::Packed, Format::Json] {
        let mut world = World::new(2, &[]);
        let id = open_room(&mut world);
        let client = ticket_holder(&mut world, 1, format);
        world.join(client, REQUEST, &format!("ann.{id}.ticket"));
        let (room, _) = world.joined(client);
        let schema = |room_type: &'static str| {
            encoded(
                format,
                &ClientMessage::Schema(client::Schema {
                    request: REQUEST,
                    room_type: room_type.into(),
                }),
            )
        };
        // Of its room's type it may ask for the schema, and of no other.
        world.say(client, &schema("test"));
        let heard = world.heard(client);
        assert!(matches!(&heard[..], [Heard::Schema { room_type, .. }] if room_type == "test"));
        world.say(client, &schema("brisk"));
        let code = ErrorCode::Forbidden;
        let refused = Heard::Error { request: Some(REQUEST), room: None, code };
        assert_eq!(world.heard(client), [refused]);
        world.request(client, room, REQUEST, "add", "");
        world.wait(100);
        let heard = world.heard(client);
        assert!(heard.iter().any(|said| matches!(said, Heard::Reply { .. })), "{heard:?}");
        let list = ClientMessage::List(client::List {
            request: REQUEST,
            room_type: None,
            filter: vec![],
            limit: 0,
        });
        world.say(client, &encoded(format, &list));
        let heard = world.heard(client);
        assert!(matches!(heard[..], [Heard::Error { code: ErrorCode::Forbidden, .. }]));
        world.say(
            client,
            &encoded(format, &ClientMessage::Leave(client::Leave { request: REQUEST, room })),
        );
        world.wait(100);
        let heard = world.heard(client);
        assert!(matches!(heard[..], [Heard::Left { code: ErrorCode::Left, .. }]), "{heard:?}");
        world.say(client, &schema("test"));
        let heard = world.heard(client);
        assert!(matches!(heard[..], [Heard::Error { code: ErrorCode::Forbidden, .. }]));
    }
}

#[test]
fn the_ticket_has_to_name_a_user() {
    let mut world = World::new(1, &[]);
    let id = open_room(&mut world);
    let client = ticket_holder(&mut world, 0, Format::Packed);
    let (request, room) = (Some(REQUEST), None);
    for ticket in [format!(".{id}.ticket"), format!("ann.{id}.forged")] {
        world.join(client, REQUEST, &ticket);
        let code = ErrorCode::BadTicket;
        assert_eq!(world.heard(client), [Heard::Error { request, room, code }], "{ticket}");
    }
    // A guest of a node that lets in guests may use it.
    let guest = world.client(0);
    world.join(guest, REQUEST, &format!(".{id}.ticket"));
    world.joined(guest);
}

fn refused(code: ErrorCode) -> [Heard; 1] {
    [Heard::Error { request: Some(REQUEST), room: None, code }]
}

#[test]
fn a_user_who_is_banned_joins_by_no_ticket_and_the_ticket_stays_valid() {
    for user in ["ann", "later ann"] {
        let mut world = World::new(2, &[]);
        let id = open_room(&mut world);
        let client = ticket_holder(&mut world, 1, Format::Packed);
        let ticket = format!("{user}.{id}.once");
        world.banned.lock().unwrap().insert(user.to_owned());
        world.join(client, REQUEST, &ticket);
        world.run_background();
        assert_eq!(world.heard(client), refused(ErrorCode::Unauthorized), "{user}");
        assert_eq!((world.members(), world.sessions_of(user)), (1, 0));
        world.banned.lock().unwrap().clear();
        world.join(client, REQUEST, &ticket);
        // What comes after a join is handled after it.
        world
            .say(client, &encoded(Format::Packed, &ClientMessage::Ping(client::Ping { nonce: 4 })));
        world.run_background();
        world.wait(100);
        let heard = world.heard(client);
        assert!(heard.iter().any(|said| matches!(said, Heard::Joined { .. })), "{heard:?}");
        assert!(heard.contains(&Heard::Pong { nonce: 4 }), "{heard:?}");
        world.join(client, REQUEST, &ticket);
        world.run_background();
        let heard = world.heard(client);
        assert!(heard.ends_with(&refused(ErrorCode::BadTicket)), "{heard:?}");
    }
}

#[test]
fn sessions_of_a_user_that_end_while_a_ticket_is_decided_about_refuse_it() {
    let mut world = World::new(1, &[]);
    let id = open_room(&mut world);
    let client = ticket_holder(&mut world, 0, Format::Packed);
    world.join(client, REQUEST, &format!("later ann.{id}.once"));
    world.end_sessions("later ann", "out");
    world.run_background();
    assert_eq!(world.heard(client), refused(ErrorCode::Kicked));
    assert_eq!(world.members(), 1);
}

#[test]
fn a_ticket_that_nobody_decides_about_is_refused_in_time_and_valid_after_the_session() {
    let mut world = World::new(1, &[("timeouts.hello", "1000ms")]);
    let id = open_room(&mut world);
    let ticket = format!("later ann.{id}.once");
    let client = ticket_holder(&mut world, 0, Format::Packed);
    world.join(client, REQUEST, &ticket);
    world.wait(1100);
    assert_eq!(world.heard(client), refused(ErrorCode::Timeout));
    // The decision that comes late is dropped.
    world.run_background();
    assert_eq!(world.heard(client), []);
    world.join(client, REQUEST, &ticket);
    world.hang_up(client);
    world.wait(20_000);
    let other = ticket_holder(&mut world, 0, Format::Packed);
    world.join(other, REQUEST, &ticket);
    world.run_background();
    world.joined(other);
}

#[test]
fn a_decision_that_comes_late_is_not_about_the_next_ticket() {
    let mut world = World::new(1, &[("timeouts.hello", "1000ms")]);
    let id = open_room(&mut world);
    world.banned.lock().unwrap().insert("later bob".to_owned());
    let client = ticket_holder(&mut world, 0, Format::Packed);
    world.join(client, REQUEST, &format!("later ann.{id}.ticket"));
    world.wait(1100);
    assert_eq!(world.heard(client), refused(ErrorCode::Timeout));
    // It was on its way to the shard, in which another ticket waits by now.
    world.join(client, REQUEST, &format!("later bob.{id}.ticket"));
    world.run_background();
    assert_eq!(world.heard(client), refused(ErrorCode::Unauthorized));
    assert_eq!(world.members(), 1);
}

#[test]
fn a_second_hello_makes_no_other_session() {
    let mut world = World::new(1, &[]);
    let client = ticket_holder(&mut world, 0, Format::Packed);
    let hello = Hello { token: b"user:ann".into(), ..Hello::new(Format::Packed) };
    world.say(client, &encoded(Format::Packed, &ClientMessage::Hello(hello)));
    let code = ErrorCode::HelloExpected;
    let expected = [Heard::Error { request: None, room: None, code }, Heard::Goodbye { code }];
    assert_eq!(world.heard(client), expected);
}

#[test]
fn a_session_that_is_resumed_may_do_no_more_and_is_its_clients_alone() {
    let mut world = World::new(2, &[]);
    let id = open_room(&mut world);
    let mut ann = Wanderer::new(&mut world, 1, false, Format::Packed);
    ann.user = String::from_utf8_lossy(TICKET_TOKEN).into_owned();
    ann.token.clear();
    assert_eq!(ann.come_back(&mut world, 1), Return::NewSession);
    ann.join(&mut world, &format!("ann.{id}.ticket"));
    ann.cut(&mut world, usize::MAX);
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    let list = ClientMessage::List(client::List {
        request: REQUEST,
        room_type: None,
        filter: vec![],
        limit: 0,
    });
    world.say(ann.client, &encoded(Format::Packed, &list));
    let heard = world.heard(ann.client);
    let is_refused = |said: &Heard| matches!(said, Heard::Error { code: ErrorCode::Forbidden, .. });
    assert!(heard.iter().any(is_refused), "{heard:?}");

    // Guests with more rights than that don't get it, nor does it get theirs.
    for (before, after) in [("ticket", ""), ("", "ticket")] {
        let mut client = Wanderer::new(&mut world, 1, false, Format::Packed);
        client.user = before.into();
        client.token.clear();
        assert_eq!(client.come_back(&mut world, 1), Return::NewSession);
        client.cut(&mut world, usize::MAX);
        client.user = after.into();
        let returned = client.come_back(&mut world, 1);
        assert_eq!(returned, Return::Refused(ErrorCode::Unauthorized));
    }
}
