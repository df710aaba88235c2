//! Properties that hold for any input.

use playfield_client::session::{ClientConfig, Event, Reach, Session};
use playfield_wire::Format;
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber, framing};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Talk, config, joined, patch, polled, snapshot, welcome};

/// Messages with small numbers, so that many of them name real rooms and requests.
fn message() -> impl Strategy<Value = ServerMessage<'static>> {
    let (n, v) = (0..4_u32, 0..4_u64);
    let code = prop::sample::select(vec![ErrorCode::Busy, ErrorCode::Kicked, ErrorCode::TooSlow]);
    prop_oneof![
        (n.clone(), n.clone(), v.clone()).prop_map(|(request, room, epoch)| joined(
            RequestNumber(request),
            RoomNumber(room),
            epoch
        )),
        (n.clone(), v.clone(), v.clone()).prop_map(|(room, epoch, version)| snapshot(
            RoomNumber(room),
            epoch,
            version
        )),
        (n.clone(), v.clone(), v.clone()).prop_map(|(room, base, more)| patch(
            RoomNumber(room),
            base,
            base + more
        )),
        n.clone().prop_map(|request| ServerMessage::Reply(server::Reply {
            request: RequestNumber(request),
            payload: b"1".into()
        })),
        n.clone().prop_map(|request| ServerMessage::Listed(server::Listed {
            request: RequestNumber(request),
            rooms: vec![]
        })),
        n.clone().prop_map(|request| ServerMessage::Redirect(server::Redirect {
            request: RequestNumber(request),
            addresses: vec!["tcp://n".into()],
            reservation: "r.s".into()
        })),
        prop::option::of(n.clone().prop_map(RequestNumber)).prop_map(|request| {
            ServerMessage::Schema(server::Schema {
                request,
                room_type: "table".into(),
                schema: b"{}".into(),
            })
        }),
        (n.clone(), v.clone()).prop_map(|(room, sequence)| {
            let message = MessageRef::Index(0);
            ServerMessage::Event(server::Event {
                room: RoomNumber(room),
                sequence,
                version: 1,
                message,
                payload: b"1".into(),
            })
        }),
        (prop::option::of(n.clone().prop_map(RequestNumber)), n.clone(), code.clone()).prop_map(
            |(request, room, code)| {
                ServerMessage::Left(server::Left {
                    request,
                    room: RoomNumber(room),
                    code,
                    text: "x".into(),
                })
            }
        ),
        (
            prop::option::of(n.clone().prop_map(RequestNumber)),
            prop::option::of(n.prop_map(RoomNumber)),
            code
        )
            .prop_map(|(request, room, code)| ServerMessage::Error(server::Error {
                request,
                room,
                code,
                text: "x".into(),
                retry_after_ms: None
            })),
        v.clone().prop_map(|nonce| ServerMessage::Ping(server::Ping { nonce })),
        v.clone().prop_map(|received| ServerMessage::Ack(server::Ack { received })),
        v.prop_map(|nonce| ServerMessage::Pong(server::Pong { nonce, time_us: 0 })),
    ]
}

proptest! {
    #[test]
    fn no_bytes_make_a_client_panic(
        web_socket: bool,
        answered: bool,
        pieces in vec(vec(any::<u8>(), 0..64), 0..8),
    ) {
        let mut talk = Talk::new(web_socket);
        talk.client.join("r").unwrap();
        talk.heard();
        if answered {
            let bytes = talk.node.take_answer();
            talk.receives(&bytes);
        }
        for piece in pieces {
            talk.receives(&piece);
        }
        talk.ends();
        let events = talk.all_events();
        let ends = events.iter().filter(|event| matches!(event, Event::Closed { .. })).count();
        prop_assert_eq!(ends, 1);
        let is_last = matches!(events.last(), Some(Event::Closed { .. }));
        prop_assert!(is_last);
    }

    #[test]
    fn no_frames_make_a_client_panic(bodies in vec(vec(0x40..0x50_u8, 1..20), 0..20)) {
        let mut talk = Talk::welcomed();
        for body in bodies {
            let bytes = talk.node.frame(&body);
            talk.receives(&bytes);
        }
    }

    #[test]
    fn each_request_ends_once_wherever_the_bytes_are_split(
        messages in vec(message(), 0..40),
        size in 1..40_usize,
    ) {
        let told = |size: usize| {
            let redirects = Some(Reach::by(&"tcp://n".parse().unwrap(), false));
            let config = ClientConfig { redirects, ..config(false) };
            let mut client = Session::new(config).unwrap();
            let requests =
                [client.join("r"), client.join("s"), client.list(None, &[], 0)].map(Result::unwrap);
            let mut bytes = Vec::new();
            for message in std::iter::once(&welcome(0, 1000)).chain(&messages) {
                framing::write_frame_with(&mut bytes, |out| message.encode(Format::Packed, out));
            }
            let mut events = Vec::new();
            for piece in bytes.chunks(size) {
                client.received(piece);
                events.extend(polled(&mut client));
            }
            client.ended();
            events.extend(polled(&mut client));
            (requests, events)
        };
        let (requests, events) = told(usize::MAX);
        for request in requests {
            let ends = events.iter().filter(|event| match event {
                Event::Joined(server::Joined { request: ended, .. })
                | Event::Redirected(server::Redirect { request: ended, .. })
                | Event::Listed(server::Listed { request: ended, .. })
                | Event::Failed { request: ended, .. } => *ended == request,
                _ => false,
            });
            prop_assert_eq!(ends.count(), 1);
        }
        prop_assert_eq!(told(size).1, events);
    }
}
