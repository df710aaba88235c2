//! Rooms that continue in another build of the node, which has a message, an event and fields in
//! front.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use playfield_client::session::{
    Build, ClientError, CommandError, Creation, Event, Failure, RoomCopy, Target, Unusable, Update,
};
use playfield_wire::message::MessageRef;
use playfield_wire::schema::{
    EventSchema, Field, MessageSchema, Policy, RoomSchema, Struct, Type, fingerprint,
};
use playfield_wire::server::{self, Resumed, ServerMessage};
use playfield_wire::{DecodeError, RequestNumber, RoomNumber};

use crate::support::{Said, Talk, joined_as, kept, other};

const ROOM: RoomNumber = RoomNumber(1);

/// A struct of these numbers. Those that are new are optional.
fn numbers(new: &[&'static str], names: &[&'static str]) -> Type {
    let field = |name: &&'static str, of| Field {
        name: Cow::Borrowed(*name),
        policy: Policy::Everyone,
        default_digest: None,
        of,
    };
    let new = new.iter().map(|name| field(name, Type::Option(Box::new(Type::U8))));
    let fields = new.chain(names.iter().map(|name| field(name, Type::U8)));
    Type::Struct(Struct { name: "Numbers".into(), fields: fields.collect() })
}

/// A build with these additions in front: without any, it is the build of the program.
fn build(new: &[&'static str]) -> RoomSchema {
    let message = |name: &'static str, of, reply| MessageSchema { name: name.into(), of, reply };
    let event = |name: &'static str, of| EventSchema { name: name.into(), of };
    let add = message("Add", numbers(new, &["count"]), numbers(new, &["total"]));
    let others = new.iter().map(|name| message(name, Type::Unit, Type::Unit));
    let events = new.iter().map(|name| event(name, Type::Unit));
    RoomSchema {
        state: numbers(new, &["total"]),
        options: numbers(new, &["bots"]),
        messages: others.chain([add]).collect(),
        events: events.chain([event("Added", numbers(new, &["count"]))]).collect(),
    }
}

/// The bodies that reached a copy.
#[derive(Clone, Default)]
struct Bodies(Arc<Mutex<Vec<Vec<u8>>>>);

impl RoomCopy for Bodies {
    fn apply(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        self.0.lock().unwrap().push(update.body.to_vec());
        Ok(())
    }

    fn digest_is(&mut self, _: u64) -> bool {
        true
    }
}

impl Bodies {
    fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Talk {
    /// The client enters room 1 of the first build, at version 5.
    fn enters(&mut self) -> Bodies {
        let (of, copy) = (build(&[]), Bodies::default());
        let target = Target::Join { id: "r".to_owned() };
        let request = self.client.enter(target, Build::new(of.clone()), Box::new(copy.clone()));
        self.says(&joined_as(request.unwrap(), fingerprint(&of)));
        self.snapshot(5, &[3]);
        assert!(matches!(self.all_events()[..], [.., Event::Update { .. }]));
        assert_eq!(copy.take(), [[3]]);
        self.heard();
        copy
    }

    fn snapshot(&mut self, version: u64, body: &[u8]) {
        let (room, epoch, body) = (ROOM, 3, body.into());
        self.says(&ServerMessage::Snapshot(server::Snapshot { room, epoch, version, body }));
    }

    /// The client asks for a room of a build without additions, with this option.
    fn creates(&mut self, bots: u8) -> RequestNumber {
        let (room_type, creation) = ("table".to_owned(), Creation::default());
        let target = Target::Create { room_type, creation, options: vec![bots] };
        let copy = Box::new(Bodies::default());
        self.client.enter(target, Build::new(build(&[])), copy).unwrap()
    }

    /// The node sends a schema.
    fn has_schema(&mut self, request: Option<RequestNumber>, schema: String) {
        self.says(&ServerMessage::Schema(server::Schema {
            request,
            room_type: "table".into(),
            schema: schema.into_bytes().into(),
        }));
    }

    /// The node continues the room with this schema.
    fn switches(&mut self, to: &RoomSchema) {
        self.has_schema(None, to.to_json());
        let told = self.all_events().pop();
        assert!(matches!(told, Some(Event::Schema(_))), "{told:?}");
    }
}

fn request(number: u32, message: u32, payload: &[u8]) -> Said {
    other(&format!(
        "Request {{ room: 1, request: {number}, message: Index({message}), payload: \
         {payload:?} }}"
    ))
}

fn created(number: RequestNumber, room_type: &str, options: &[u8]) -> Said {
    other(&format!(
        "Create {{ request: {number}, room_type: {room_type:?}, private: false, code: false, \
         key: None, options: {options:?} }}"
    ))
}

fn event(sequence: u64, index: u32, payload: &'static [u8]) -> server::Event<'static> {
    let message = MessageRef::Index(index);
    server::Event { room: ROOM, sequence, version: 5, message, payload: payload.into() }
}

#[test]
fn the_program_goes_on_by_the_schema_by_which_it_has_entered() {
    let mut talk = Talk::kept(false);
    let copy = talk.enters();
    let before = talk.client.request(ROOM, 0, &[1]).unwrap();
    let other_before = talk.client.request(ROOM, 0, &[2]).unwrap();
    assert_eq!(talk.heard(), [request(before.0, 0, &[1]), request(other_before.0, 0, &[2])]);
    talk.says(&ServerMessage::Reply(server::Reply { request: before, payload: b"\x09".into() }));
    talk.all_events();

    for (new, sent, ack) in [
        (&["Reset"][..], &[0, 4][..], "Ack { received: 3 }"),
        (&["Audit", "Reset"], &[0, 0, 4], "Ack { received: 7 }"),
    ] {
        let number = new.len() as u32;
        talk.switches(&build(new));
        let acknowledged = talk.heard();
        assert_eq!(acknowledged, [other(ack)], "at once");
        // Until the snapshot comes, patches can't be read.
        let (room, base, version) = (ROOM, 5, 6);
        let body = b"\x01\x01".into();
        talk.says(&ServerMessage::Patch(server::Patch { room, base, version, body }));
        assert_eq!((talk.all_events(), copy.take()), (vec![], vec![]));
        let body = [&vec![0; new.len()][..], &[7]].concat();
        talk.snapshot(7, &body);
        assert_eq!(copy.take(), [[7]]);
        talk.all_events();

        let after = talk.client.request(ROOM, 0, &[4]).unwrap();
        assert_eq!(talk.heard(), [request(after.0, number, sent)]);
        let payload: Vec<u8> = [&vec![0; new.len()][..], &[8]].concat();
        talk.says(&ServerMessage::Reply(server::Reply {
            request: after,
            payload: payload.clone().into(),
        }));
        let reply = Event::Reply(server::Reply { request: after, payload: b"\x08".into() });
        assert_eq!(talk.all_events(), [reply]);
        // Of two events, the program knows the second.
        let sequence = u64::from(2 * number);
        let mut known = event(sequence, number, b"");
        known.payload = payload.into();
        talk.says(&ServerMessage::Event(event(sequence - 1, 0, b"\0")));
        talk.says(&ServerMessage::Event(known));
        assert_eq!(talk.all_events(), [Event::Event(event(sequence, 0, b"\x08"))]);
        // A payload that does not belong to this message is not sent.
        let (room, message) = (ROOM, 0);
        let refused = Err(CommandError::BadMessage { room, message });
        assert_eq!(talk.client.send(ROOM, 0, &[4, 4]), refused);
    }
    // The first has answered none, and the third does.
    let payload = b"\0\0\x0b".into();
    talk.says(&ServerMessage::Reply(server::Reply { request: other_before, payload }));
    let reply = Event::Reply(server::Reply { request: other_before, payload: b"\x0b".into() });
    assert_eq!(talk.all_events(), [reply]);
    // The same schema again changes nothing.
    talk.switches(&build(&["Audit", "Reset"]));
    let (room, base, version, body) = (ROOM, 7, 8, b"\x04\x0c".into());
    talk.says(&ServerMessage::Patch(server::Patch { room, base, version, body }));
    assert_eq!(copy.take().len(), 1);
}

#[test]
fn what_is_sent_again_is_by_the_schema_that_the_client_has_confirmed() {
    let mut talk = Talk::kept(false);
    talk.enters();
    let first = talk.client.request(ROOM, 0, &[1]).unwrap();
    talk.client.send(ROOM, 0, &[2]).unwrap();
    // A program may do that.
    let bad = talk.client.request(ROOM, 5, &[1]).unwrap();
    talk.heard();
    let resumed = |received| Some(Resumed { received, lost: vec![] });
    // The client has not handled the schema yet, then it has.
    let mut expected = vec![
        request(first.0, 0, &[1]),
        other("Send { room: 1, message: Index(0), payload: [2] }"),
        request(bad.0, 5, &[1]),
    ];
    for round in 0..2 {
        talk.reconnects(false);
        talk.says(&kept(b"t2", resumed(1)));
        let heard = talk.heard();
        assert_eq!(heard[..expected.len()], expected, "{round}");
        talk.switches(&build(&["Reset"]));
        assert_eq!(talk.heard().len(), 1);
        expected = vec![
            request(first.0, 1, &[0, 1]),
            other("Send { room: 1, message: Index(1), payload: [0, 2] }"),
            request(bad.0, u32::MAX, &[]),
        ];
    }
}

#[test]
fn options_are_by_the_schema_that_came_last_whatever_room_the_client_is_in() {
    for knows_schema in [true, false] {
        let mut talk = Talk::kept(false);
        let mut received = 1;
        if knows_schema {
            talk.creates(9);
            let asked = RequestNumber(2);
            assert_eq!(talk.heard(), [other("Schema { request: 2, room_type: \"table\" }")]);
            talk.has_schema(Some(asked), build(&[]).to_json());
        } else {
            talk.enters();
        }
        let first = talk.creates(1);
        assert_eq!(talk.heard().pop(), Some(created(first, "table", &[1])));
        talk.switches(&build(&["Reset"]));
        received += 1;
        assert_eq!(talk.heard(), [other(&format!("Ack {{ received: {received} }}"))], "at once");
        let second = talk.creates(2);
        assert_eq!(talk.heard(), [created(second, "table", &[0, 2])], "it is not asked for");

        talk.reconnects(false);
        talk.says(&kept(b"t2", Some(Resumed { received: 1, lost: vec![] })));
        let heard = talk.heard();
        let rooms = [created(first, "table", &[0, 1]), created(second, "table", &[0, 2])];
        assert_eq!(heard[heard.len() - 3..][..2], rooms);

        // No room is created by options that mean something else.
        talk.has_schema(None, "{}".to_owned());
        talk.reconnects(false);
        talk.says(&kept(b"t3", Some(Resumed { received: 1, lost: vec![] })));
        let heard = talk.heard();
        assert!(heard.contains(&created(first, "", &[])), "{heard:?}");
        assert!(heard.contains(&created(second, "", &[])), "{heard:?}");
    }
}

#[test]
fn a_client_that_nobody_keeps_confirms_schemas_by_their_number() {
    let mut talk = Talk::welcomed();
    // A type that the client does not know.
    talk.switches(&build(&[]));
    assert_eq!(talk.heard(), [other("Ack { received: 1 }")]);
    talk.enters();
    talk.switches(&build(&["Reset"]));
    assert_eq!(talk.heard(), [other("Ack { received: 2 }")]);
    let after = talk.client.request(ROOM, 0, &[4]).unwrap();
    assert_eq!(talk.heard(), [request(after.0, 1, &[0, 4])]);
}

#[test]
fn a_room_whose_new_schema_is_of_no_use_is_left() {
    let other_type = RoomSchema { state: numbers(&[], &["sum"]), ..build(&[]) };
    let schemas = [other_type.to_json(), "{}".to_owned()];
    for schema in schemas {
        let mut talk = Talk::kept(false);
        talk.enters();
        let request = talk.client.request(ROOM, 0, &[1]).unwrap();
        talk.has_schema(None, schema);
        let told = talk.all_events();
        let why = match &told[..] {
            [Event::Unusable { room: ROOM, why }, Event::Schema(_)] => why,
            other => panic!("{other:?}"),
        };
        assert!(matches!(why, Unusable::Incompatible(_) | Unusable::Schema(_)));
        let heard = talk.heard();
        assert!(heard.contains(&other("Leave { request: 3, room: 1 }")), "{heard:?}");
        // Messages of the room use a schema that is useless here.
        talk.says(&ServerMessage::Event(event(1, 0, b"\x01")));
        assert_eq!(talk.all_events(), []);
        assert_eq!(talk.client.send(ROOM, 0, &[1]), Err(CommandError::NotJoined { room: ROOM }));
        talk.says(&ServerMessage::Reply(server::Reply { request, payload: b"\x01".into() }));
        assert!(matches!(talk.event(), Event::Failed { failure: Failure::Unusable(_), .. }));
        talk.reconnects(false);
        talk.says(&kept(b"t2", Some(Resumed { received: 1, lost: vec![] })));
        assert_eq!(talk.heard()[0], self::request(request.0, u32::MAX, &[]));
    }
}

#[test]
fn a_reply_that_is_none_of_the_schema_ends_the_connection() {
    let mut talk = Talk::welcomed();
    talk.enters();
    talk.switches(&build(&["Reset"]));
    let request = talk.client.request(ROOM, 0, &[4]).unwrap();
    talk.says(&ServerMessage::Reply(server::Reply { request, payload: b"\x02\x02".into() }));
    let closed = talk.all_events().pop();
    let error = match closed {
        Some(Event::Closed { error: Some(error) }) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(error, ClientError::Message(_)), "{error:?}");
}
