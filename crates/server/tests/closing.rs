//! The end of WebSockets, over real sockets: with a code that says why, and with both ends' Close
//! frames.

use crate::common;

use std::io::Write;

use common::speech::{encoded, hello};
use common::{Client, config, room};
use playfield_room::Error;
use playfield_server::{Authenticator, Decision, Identity, Running, Server};
use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::{ErrorCode, Format};

/// Fails for some names.
struct Moody;

impl Authenticator for Moody {
    fn authenticate(&self, hello: &Hello<'_>) -> Decision {
        let decided = match &*hello.name {
            "nobody" => Err(Error::new(ErrorCode::Unauthorized, "not you")),
            "anybody" => Err(Error::new(ErrorCode::Internal, "the list of users can't be read")),
            name => Ok(Identity::guest(name)),
        };
        decided.into()
    }
}

fn start() -> Running {
    // Whoever does not answer a Close would be noticed by this.
    let config = config(&[("limits.message_bytes", "1000"), ("timeouts.close", "60000ms")]);
    Server::new(config)
        .room_type(room::room_type("test"))
        .authenticator(Box::new(Moody))
        .start()
        .unwrap()
}

/// The code of the Close frame that comes before the connection ends.
fn code(mut client: Client) -> Option<u16> {
    client.rest();
    client.close_code
}

#[test]
fn a_code_says_why() {
    let running = start();
    let guest = || Client::websocket(running.local_addr(), Format::Packed);
    let says = |body: &[u8]| {
        let mut client = guest();
        client.say(body);
        code(client)
    };
    assert_eq!(
        says(&encoded(Format::Packed, &ClientMessage::Goodbye(client::Goodbye {}))),
        Some(1000)
    );
    assert_eq!(says(&[0xEE]), Some(1002), "no message");
    assert_eq!(says(&hello(Format::Packed)), Some(1002), "a second hello");
    assert_eq!(says(&[0; 1001]), Some(1009), "too long");

    let mut text = guest();
    text.socket.write_all(b"\x81\x81\0\0\0\0{").unwrap();
    assert_eq!(code(text), Some(1003), "the other kind of message");
    let mut no_text = guest();
    no_text.socket.write_all(b"\x81\x81\0\0\0\0\xFF").unwrap();
    assert_eq!(code(no_text), Some(1007), "text that is none");
    let mut bare = guest();
    bare.socket.write_all(b"\x82\x01x").unwrap();
    assert_eq!(code(bare), Some(1002), "a frame without a mask");

    for (name, expected) in [("nobody", 1008), ("anybody", 1011)] {
        let mut client = Client::upgrade(running.local_addr(), Format::Packed, false);
        let hello = ClientMessage::Hello(Hello { name: name.into(), ..Hello::new(Format::Packed) });
        client.say(&encoded(Format::Packed, &hello));
        assert_eq!(code(client), Some(expected), "{name}");
    }
}

#[test]
fn a_shutdown_says_that_the_node_goes_away() {
    let running = start();
    let greeted = Client::websocket(running.local_addr(), Format::Packed);
    let silent = Client::upgrade(running.local_addr(), Format::Packed, false);
    running.stopper().stop();
    assert_eq!(code(greeted), Some(1001));
    assert_eq!(code(silent), Some(1001));
    running.wait().unwrap();
}

#[test]
fn a_clients_close_is_answered_in_kind() {
    let running = start();
    for (frame, expected) in [
        (&b"\x88\x82\0\0\0\0\x03\xE8"[..], Some(1000)),
        (b"\x88\x82\0\0\0\0\x0F\xA0", Some(4000)),
        (b"\x88\x80\0\0\0\0", None),
    ] {
        let mut client = Client::websocket(running.local_addr(), Format::Packed);
        client.socket.write_all(frame).unwrap();
        assert_eq!(code(client), expected);
    }
}
