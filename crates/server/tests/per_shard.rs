//! Shards with descriptor tables of their own: connections move between them, and all else is as
//! with one table.

use crate::common;
use crate::{http, services, shutdown, sockets};

use std::io::{Read, Write};
use std::net::TcpStream;

use common::{PATIENCE, until};
use playfield_server::Running;
use playfield_wire::client::{ClientMessage, Hello, Resume};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format};

/// Runs tests again, on nodes whose shards have tables of their own.
macro_rules! again {
    ($($module:ident::$test:ident),+ $(,)?) => {$(
        #[test]
        fn $test() {
            common::with_own_tables($module::$test);
        }
    )+};
}

again![
    sockets::every_transport_and_format_plays,
    sockets::a_page_is_served_on_the_same_port,
    sockets::joins_on_two_shards_never_fill_a_room_beyond_its_capacity,
    sockets::a_connection_moves_with_what_it_has_sent_already,
    sockets::rooms_on_other_shards_are_played_over_one_connection,
    sockets::background_work_runs_and_its_panics_are_told,
    sockets::connections_max,
    sockets::a_client_that_hangs_up_in_the_middle_of_anything_is_forgotten,
    sockets::a_shutdown_tells_everyone_and_waits_for_nobody_for_long,
    sockets::the_address_is_free_again_after_a_shutdown,
    sockets::two_servers_do_not_share_an_address,
    services::services_and_rooms_serve_beside_each_other,
    services::a_node_may_have_services_only_and_every_shard_has_its_own_value,
    services::many_who_say_much_at_the_same_time_each_get_their_own_back,
    http::a_handler_answers_and_the_connection_is_kept,
    http::a_handler_that_hangs_is_cut_off_and_dropped,
    http::large_files_come_in_pieces_and_parts_of_them_too,
    shutdown::the_goodbye_comes_when_the_rooms_have_saved,
];

/// A client that can resume its session.
struct Client {
    socket: TcpStream,
    input: Vec<u8>,
    session: u64,
    token: Vec<u8>,
    is_resumed: bool,
}

impl Client {
    fn new(running: &Running, token: Option<&[u8]>) -> Self {
        let resume = token.map(|token| Resume { token: token.into(), received: 0, rooms: vec![] });
        let hello = Hello { resumable: true, resume, ..Hello::new(Format::Packed) };
        let mut body = Vec::new();
        ClientMessage::Hello(hello).encode(Format::Packed, &mut body);
        let mut bytes = PREAMBLE.to_vec();
        write_frame(&mut bytes, &body);
        let mut socket = TcpStream::connect(running.local_addr()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(&bytes).unwrap();
        let (input, token) = (Vec::new(), Vec::new());
        let mut client = Self { socket, input, session: 0, token, is_resumed: false };
        client.welcomed();
        client
    }

    fn next_body(&mut self) -> Vec<u8> {
        loop {
            let framing = Framing { message_bytes_max: 1 << 20 };
            if let Some(frame) = framing.decode(&self.input).unwrap() {
                let (body, consumed) = (frame.body.to_vec(), frame.consumed);
                self.input.drain(..consumed);
                return body;
            }
            let mut chunk = [0; 4096];
            let count = self.socket.read(&mut chunk).unwrap();
            assert!(count > 0, "the connection ended");
            self.input.extend_from_slice(&chunk[..count]);
        }
    }

    fn welcomed(&mut self) {
        let body = self.next_body();
        match ServerMessage::decode(Format::Packed, &body).unwrap() {
            ServerMessage::Welcome(server::Welcome { session, resume, resumed, .. }) => {
                (self.session, self.token) = (session, resume.into_owned());
                self.is_resumed = resumed.is_some();
            }
            other => panic!("not a welcome: {other:?}"),
        }
    }
}

#[test]
fn a_session_is_resumed_on_whatever_shard_its_client_comes_back() {
    let running = common::start(&[("shards", "4"), ("threads.descriptors", "per_shard")]);
    let mut client = Client::new(&running, None);
    let session = client.session;
    // Which shard accepts a client is the system's choice; among so many, all do.
    for _ in 0..40 {
        let token = client.token.clone();
        drop(client);
        client = Client::new(&running, Some(&token));
        assert_eq!((client.session, client.is_resumed), (session, true));
    }
    drop(client);
    until(&running, |running| running.stats().total().connections == 0);
}

#[test]
fn a_session_is_taken_over_from_a_connection_on_another_shard() {
    let running = common::start(&[("shards", "4"), ("threads.descriptors", "per_shard")]);
    let mut client = Client::new(&running, None);
    for _ in 0..20 {
        let mut taker = Client::new(&running, Some(&client.token));
        assert_eq!((taker.session, taker.is_resumed), (client.session, true));
        let body = client.next_body();
        let goodbye = ServerMessage::decode(Format::Packed, &body).unwrap();
        assert!(
            matches!(
                goodbye,
                ServerMessage::Goodbye(server::Goodbye { code: ErrorCode::TakenOver, .. })
            ),
            "{goodbye:?}"
        );
        assert_eq!(client.socket.read(&mut [0; 64]).unwrap(), 0, "no table keeps it open");
        taker.input.clear();
        client = taker;
    }
}
