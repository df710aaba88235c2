//! Every message of the node, truncated anywhere and damaged at every byte, while a room is joined:
//! the client never panics, a message that can't be read ends the connection and nothing else, and
//! every request ends once.

use playfield_client::session::{ClientError, Event, UNUSABLE_IN_A_ROW_MAX};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, RoomInfo, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use crate::play::Play;
use crate::support::{Said, joined, welcome};

/// A client in a room that waits for answers of all kinds.
struct Scene {
    play: Play,
    requests: [RequestNumber; 4],
}

/// The bytes of one of the node's messages, undamaged.
fn message(play: &mut Play, place: usize) -> Option<Vec<u8>> {
    let (base, patch) = play.node.patch();
    let (version, snapshot) = (play.node.version(), play.node.snapshot());
    let (room, text) = (Some(RoomNumber(1)), "so it is".into());
    let info = RoomInfo {
        id: "r".into(),
        room_type: "table".into(),
        players: 1,
        capacity: 300,
        metadata: vec![("mode".into(), "ranked".into())],
        ..RoomInfo::default()
    };
    let payload: &[u8] = b"\x93\x01\x02\xa1x";
    let code = ErrorCode::Refused;
    let message = match place {
        0 => ServerMessage::Patch(server::Patch {
            room: RoomNumber(1),
            base,
            version,
            body: (&patch).into(),
        }),
        1 => ServerMessage::Snapshot(server::Snapshot {
            room: RoomNumber(1),
            epoch: 3,
            version,
            body: (&snapshot).into(),
        }),
        2 => ServerMessage::Event(server::Event {
            room: RoomNumber(1),
            sequence: 1,
            version,
            message: MessageRef::Index(1),
            payload: payload.into(),
        }),
        3 => ServerMessage::Reply(server::Reply {
            request: RequestNumber(2),
            payload: payload.into(),
        }),
        4 => ServerMessage::Listed(server::Listed {
            request: RequestNumber(3),
            rooms: vec![info.clone(), info],
        }),
        5 => ServerMessage::Schema(server::Schema {
            request: Some(RequestNumber(4)),
            room_type: "table".into(),
            schema: b"{}".into(),
        }),
        6 => joined(RequestNumber(5), RoomNumber(2), 8),
        7 => ServerMessage::Error(server::Error {
            request: Some(RequestNumber(2)),
            room: None,
            code,
            text,
            retry_after_ms: None,
        }),
        8 => ServerMessage::Error(server::Error {
            request: None,
            room,
            code,
            text,
            retry_after_ms: None,
        }),
        9 => ServerMessage::Left(server::Left {
            request: None,
            room: RoomNumber(1),
            code: ErrorCode::Kicked,
            text,
        }),
        10 => ServerMessage::Check(server::Check {
            room: RoomNumber(1),
            version,
            digest: play.node.tracker.digest(crate::play::ME, Format::Packed),
        }),
        11 => ServerMessage::Ping(server::Ping { nonce: 300 }),
        12 => ServerMessage::Pong(server::Pong { nonce: 1, time_us: 0 }),
        13 => ServerMessage::Goodbye(server::Goodbye { code: ErrorCode::ShuttingDown, text }),
        14 => welcome(1000, 1000),
        15 => ServerMessage::Ack(server::Ack { received: 4 }),
        _ => return None,
    };
    let mut bytes = Vec::new();
    message.encode(Format::Packed, &mut bytes);
    Some(bytes)
}

impl Scene {
    fn new() -> Self {
        let mut play = Play::new();
        let client = &mut play.talk.client;
        let requests = [
            client.request(RoomNumber(1), 0, b"1").unwrap(),
            client.list(None, &[], 0).unwrap(),
            client.schema("table").unwrap(),
            client.join("s").unwrap(),
        ];
        assert_eq!(requests, [2, 3, 4, 5].map(RequestNumber));
        client.ping().unwrap();
        play.talk.heard();
        Self { play, requests }
    }

    /// The node sends these bytes. It then answers each resync until there is none, or the
    /// connection has ended.
    fn follows(mut self, what: &str, bytes: &[u8]) {
        let play = &mut self.play;
        let is_readable = ServerMessage::decode(Format::Packed, bytes).is_ok();
        let frame = play.talk.node.frame(bytes);
        play.receives(&frame);
        if !is_readable {
            assert!(play.talk.client.is_away() && play.copy.why.is_empty(), "{what}");
        }
        if play.talk.client.is_away() {
            // The join, the four requests.
            play.resume(what, 5);
        }
        let mut answers = 0;
        while play.talk.heard().contains(&Said::Other("Resync { room: 1 }".to_owned())) {
            answers += 1;
            assert!(answers <= 2 + UNUSABLE_IN_A_ROW_MAX, "{what}");
            let (version, snapshot) = (play.node.version(), play.node.snapshot());
            play.says_snapshot(3, version, &snapshot);
        }
        if answers > 0 && !play.talk.client.is_finished() {
            assert_eq!(play.copy.shown(), play.node.expected(), "{what}");
        }
        if !is_readable {
            assert_eq!(answers, 0, "{what}");
            let (base, patch) = play.node.patch();
            play.says_patch(base, base + 1, &patch);
            assert_eq!(play.copy.shown(), play.node.expected(), "{what}");
        } else if play.talk.client.resync(RoomNumber(1)).is_ok() {
            // A readable damaged message may be accepted. A snapshot repairs the copy, unless the
            // damage gave it a later version.
            let (version, snapshot) = (play.node.version(), play.node.snapshot());
            let before = play.copy.why.len();
            play.says_snapshot(3, version, &snapshot);
            if play.copy.why.len() == before && !play.talk.client.is_finished() {
                assert_eq!(play.copy.shown(), play.node.expected(), "{what}");
            }
        }
        self.ends(what, is_readable);
    }

    /// Each request ends once, at the latest with the session, but not with an unreadable message.
    fn ends(mut self, what: &str, is_readable: bool) {
        let Play { talk, copy, .. } = &mut self.play;
        let mut ends = [0; 4];
        let mut count = |copy: &mut crate::play::Copy, closed: &mut Vec<Option<ClientError>>| {
            while let Some(event) = copy.told.pop_front() {
                let ended = match event {
                    Event::Joined(server::Joined { request, .. })
                    | Event::Listed(server::Listed { request, .. })
                    | Event::Schema(server::Schema { request: Some(request), .. })
                    | Event::Reply(server::Reply { request, .. })
                    | Event::Failed { request, .. } => request,
                    Event::Closed { error } => {
                        closed.push(error);
                        continue;
                    }
                    _ => continue,
                };
                if let Some(place) = self.requests.iter().position(|request| *request == ended) {
                    ends[place] += 1;
                }
            }
            ends
        };
        let mut closed = Vec::new();
        let ended = count(copy, &mut closed);
        if !is_readable {
            assert_eq!(ended, [0; 4], "{what}");
        }
        talk.client.give_up();
        copy.polls(&mut talk.client);
        assert_eq!(count(copy, &mut closed), [1; 4], "{what}");
        assert_eq!(closed.len(), 1, "{what}");
    }
}

fn every_message(mut damage: impl FnMut(&[u8], &mut dyn FnMut(&str, &[u8]))) {
    for place in 0.. {
        let Some(whole) = message(&mut Scene::new().play, place) else { break };
        damage(&whole, &mut |what, bytes| {
            let mut scene = Scene::new();
            // Advances the room as when the message was written.
            let same = message(&mut scene.play, place);
            assert_eq!(same.as_deref(), Some(&whole[..]), "what is said depends on nothing else");
            scene.follows(&format!("message {place}, {what}"), bytes);
        });
    }
}

#[test]
fn truncated_messages() {
    every_message(|whole, follows| {
        for cut in 1..whole.len() {
            follows(&format!("cut at {cut}"), &whole[..cut]);
        }
    });
}

#[test]
fn messages_with_a_changed_byte() {
    every_message(|whole, follows| {
        for at in 0..whole.len() {
            for byte in [0, 0xff, b'"', whole[at] ^ 1, whole[at] ^ 0x80] {
                let mut damaged = whole.to_vec();
                damaged[at] = byte;
                follows(&format!("byte {at} is {byte:#x}"), &damaged);
            }
        }
    });
}

#[test]
fn messages_with_a_byte_more_or_less() {
    every_message(|whole, follows| {
        for at in 0..whole.len() {
            let mut damaged = whole.to_vec();
            damaged.remove(at);
            if !damaged.is_empty() {
                follows(&format!("without byte {at}"), &damaged);
            }
            for byte in [0, 0xff, b','] {
                let mut damaged = whole.to_vec();
                damaged.insert(at, byte);
                follows(&format!("{byte:#x} before byte {at}"), &damaged);
            }
        }
    });
}
