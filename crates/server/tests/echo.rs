//! A node that sends messages back, as the Autobahn suite tests it (`conformance/autobahn`).

use std::io::{Read, Write};

use playfield_server::Server;
use playfield_server::testing::echo_messages;
use playfield_websocket::{Opcode, encode};
use playfield_wire::Format;

use crate::common::{Client, config};

const MASK: Option<[u8; 4]> = Some([1, 2, 3, 4]);
const INVALID_PAYLOAD: u16 = 1007;

#[test]
fn a_node_that_echoes_sends_text_and_bytes_back_and_nothing_else() {
    let running = echo_messages(Server::new(config(&[]))).start().unwrap();
    let mut socket = Client::upgrade(running.local_addr(), Format::Packed, false).socket;
    let messages = [(Opcode::Text, "déjà vu".as_bytes()), (Opcode::Binary, &[0, 255])];
    let (mut sent, mut expected) = (Vec::new(), Vec::new());
    for (opcode, payload) in messages {
        encode(&mut sent, opcode, payload, MASK);
        encode(&mut expected, opcode, payload, None);
    }
    // It is no text: the connection ends with a Close frame, without messages of the protocol.
    encode(&mut sent, Opcode::Text, &[0xFF], MASK);
    socket.write_all(&sent).unwrap();
    let mut came = vec![0; expected.len() + 4];
    socket.read_exact(&mut came).unwrap();
    let (echoes, close) = came.split_at(expected.len());
    assert_eq!(echoes, expected);
    assert_eq!((close[0], &close[2..]), (0x88, &INVALID_PAYLOAD.to_be_bytes()[..]));
    running.shutdown();
}
