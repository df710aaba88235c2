//! The closing handshake of WebSockets (RFC 6455, 7): who says Close, who waits for whom, and for
//! how long.

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{Format, RequestNumber};

use super::speech::{encoded, request};
use super::world::{CLOSE, Client, World};

const PACKED: Format = Format::Packed;

fn goodbye(world: &mut World, client: Client) {
    world.say(client, &encoded(PACKED, &ClientMessage::Goodbye(client::Goodbye {})));
}

/// A Close frame of the node, with a code and no reason.
fn close(code: u16) -> Vec<u8> {
    [&[0x88, 2][..], &code.to_be_bytes()].concat()
}

#[test]
fn the_node_that_closes_waits_for_the_clients_close() {
    let mut world = World::new(1, &[]);
    let client = world.websocket_client(0, PACKED);
    goodbye(&mut world, client);
    assert_eq!(world.raw(client), close(1000));
    assert!(!world.is_over(client), "it has not answered");
    world.bytes(client, CLOSE);
    assert!(world.is_over(client));
    assert_eq!(world.raw(client), b"", "one Close is enough");
    world.hang_up(client);
    assert_eq!(world.counters(0).connections, 0);
}

#[test]
fn but_not_for_ever() {
    let mut world = World::new(1, &[("timeouts.close", "1000ms")]);
    let client = world.websocket_client(0, PACKED);
    goodbye(&mut world, client);
    world.wait(900);
    assert_eq!((world.is_over(client), world.counters(0).connections), (false, 1));
    world.wait(500);
    assert_eq!((world.is_over(client), world.counters(0).connections), (true, 0));
}

#[test]
fn what_was_on_its_way_is_passed_over() {
    let mut world = World::new(1, &[]);
    for cut in 1..40 {
        let client = world.websocket_client(0, PACKED);
        let (room, _) = world.room(client, "");
        goodbye(&mut world, client);
        world.raw(client);
        let late = request(PACKED, room, RequestNumber(7), "big", "900");
        let bytes =
            [&world.framed(client, &late)[..], &world.framed(client, &late), CLOSE].concat();
        let (front, back) = bytes.split_at(cut.min(bytes.len() - 1));
        world.bytes(client, front);
        assert!(!world.is_over(client));
        world.bytes(client, back);
        assert!(world.is_over(client));
        assert_eq!(world.raw(client), b"", "nothing is answered");
        world.hang_up(client);
    }
    assert_eq!(world.counters(0).connections, 0);
}

/// The start of a client's binary frame.
fn head(payload_bytes: u64) -> Vec<u8> {
    [&[0x82, 0xFF][..], &payload_bytes.to_be_bytes(), &[0; 4]].concat()
}

#[test]
fn nothing_is_kept_of_what_is_passed_over() {
    let bytes = 1 << 20;
    for before in [0, bytes / 2] {
        let mut world = World::new(1, &[("tuning.hello_bytes", "1048576")]);
        let client = world.connect(0);
        world.upgrade(client, PACKED);
        world.bytes(client, &[head(bytes), vec![0; before as usize]].concat());
        assert!(
            world.buffered(client) as u64 >= before,
            "an open connection waits for the whole frame"
        );
        // In the midst of a frame the node is the one to close.
        world.shut_down();
        world.raw(client);
        let mut left = bytes - before;
        while left > 0 {
            let bytes = left.min(1 << 16);
            world.bytes(client, &vec![0; bytes as usize]);
            assert_eq!(world.buffered(client), 0);
            left -= bytes;
        }
        assert!(!world.is_over(client));
        world.bytes(client, CLOSE);
        assert!(world.is_over(client));
    }
}

#[test]
fn a_goodbye_and_a_close_may_come_at_once() {
    let mut world = World::new(1, &[]);
    let client = world.websocket_client(0, PACKED);
    let goodbye =
        world.framed(client, &encoded(PACKED, &ClientMessage::Goodbye(client::Goodbye {})));
    world.bytes(client, &[&goodbye[..], CLOSE].concat());
    assert_eq!(world.raw(client), close(1000));
    assert!(world.is_over(client));
}

#[test]
fn a_close_may_have_come_while_nothing_was_read() {
    let mut world = World::new(
        1,
        &[("limits.session.outbox_bytes.high", "100"), ("limits.session.outbox_bytes.max", "1024")],
    );
    let client = world.websocket_client(0, PACKED);
    let other = world.client(0);
    let (room, id) = world.room(client, "");
    world.join(other, RequestNumber(1), &id);
    let (seat, _) = world.joined(other);
    world.takes(client, 0);
    let ask = world.framed(client, &request(PACKED, room, RequestNumber(7), "big", "500"));
    world.bytes(client, &[&ask[..], CLOSE].concat());
    // It has not read the reply, so its Close was not looked at; and events are too much for it.
    world.request(other, seat, RequestNumber(2), "shout", &"x".repeat(600));
    world.takes(client, usize::MAX);
    assert!(world.is_over(client));
    assert!(
        world.raw(client).windows(4).any(|bytes| bytes == [3, 0xF0, b'l', b'i']),
        "1008, limits.session.outbox_bytes.max"
    );
}

#[test]
fn a_clients_close_is_answered_in_kind_and_nothing_after_it_is_read() {
    for (said, answer) in [
        (&b"\x88\x82\0\0\0\0\x03\xE8"[..], close(1000)),
        (b"\x88\x84\0\0\0\0\x0F\xA0hi", close(4000)),
        (b"\x88\x80\0\0\0\0", vec![0x88, 0]),
    ] {
        let mut world = World::new(1, &[]);
        let client = world.websocket_client(0, PACKED);
        let ping =
            world.framed(client, &encoded(PACKED, &ClientMessage::Ping(client::Ping { nonce: 1 })));
        world.bytes(client, &[said, &ping].concat());
        assert_eq!(world.raw(client), answer);
        assert!(world.is_over(client), "the node closes the transport, and at once");
    }
}

#[test]
fn no_close_is_waited_for_in_what_can_not_be_read() {
    for (frame, code) in [
        (&b"\x82\x01x"[..], 1002_u16),           // no mask
        (b"\x88\x82\0\0\0\0\x03\xED", 1002),     // 1005 may not be sent
        (b"\x88\x83\0\0\0\0\x03\xE8\xFF", 1007), // a reason that is not text
        (b"\x81\x81\0\0\0\0\xFF", 1007),         // text that is none
        (b"\x82\xFF\0\0\0\0\xFF\0\0\0", 1009),   // 4 GiB
    ] {
        let mut world = World::new(1, &[]);
        let client = world.websocket_client(0, PACKED);
        world.bytes(client, frame);
        assert!(world.is_over(client), "{frame:x?}");
        let bytes = world.raw(client);
        let [high, low] = code.to_be_bytes();
        let is_close =
            |at: &[u8]| matches!(at, [0x88, _, first, second] if (*first, *second) == (high, low));
        assert!(bytes.windows(4).any(is_close), "{frame:x?} and {code}: {bytes:x?}");
    }
}

#[test]
fn those_without_a_session_are_told_that_the_node_goes() {
    let mut world = World::new(1, &[]);
    let client = world.connect(0);
    world.upgrade(client, PACKED);
    world.shut_down();
    let text = "the node is shutting down";
    assert_eq!(world.raw(client), [&[0x88, 27, 3, 0xE9][..], text.as_bytes()].concat());
    world.bytes(client, CLOSE);
    assert!(world.is_over(client));
}

#[test]
fn a_client_that_hangs_up_is_not_waited_for() {
    let mut world = World::new(1, &[]);
    let (before, after) = (world.websocket_client(0, PACKED), world.websocket_client(0, PACKED));
    world.hang_up(before);
    assert_eq!(world.raw(before), close(1000));
    goodbye(&mut world, after);
    world.hang_up(after);
    assert_eq!(world.counters(0).connections, 0);
}

#[test]
fn who_goes_on_sending_after_the_end_is_cut_off() {
    let mut world = World::new(1, &[("limits.message_bytes", "65536")]);
    let client = world.websocket_client(0, PACKED);
    goodbye(&mut world, client);
    world.raw(client);
    let limit = 65536 + (256 << 10);
    for _ in 0..limit / 1024 {
        // Masked binary frames of 1 KiB in all.
        world.bytes(client, &[&[0x82, 0xFE, 0x03, 0xF8, 0, 0, 0, 0][..], &[0; 1016]].concat());
    }
    assert_eq!(world.counters(0).connections, 1, "this much is read");
    world.bytes(client, &[0]);
    assert_eq!(world.counters(0).connections, 0);
}
