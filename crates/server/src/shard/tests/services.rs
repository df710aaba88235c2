//! Services: protocols of one's own beside the rooms.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playfield_wire::framing::{Frame, FrameCodec, FrameError, LengthPrefixed};
use playfield_wire::packet::Big;

use super::world::{Client, World};
use crate::service::{Closed, ConnectionId, Context, Hosted, Peer, Result, Service};

type Codec = LengthPrefixed<u16, Big>;

const CODEC: Codec = LengthPrefixed::new();

/// A service that does what its clients tell it to: the first word of a frame says what, the rest
/// with what.
#[derive(Default)]
struct Puppet {
    ids: Vec<ConnectionId>,
    /// An id from elsewhere.
    foreign: Option<ConnectionId>,
    panics_at_connect: bool,
    log: Log,
}

pub(super) type Log = Arc<Mutex<Vec<String>>>;

impl Service for Puppet {
    type Connection = usize;
    type Codec = Codec;

    fn codec(&self) -> Codec {
        CODEC
    }

    fn connected(&mut self, address: SocketAddr, peer: &mut Peer<Self>) -> usize {
        assert_eq!(address.port(), 1234);
        assert!(!self.panics_at_connect, "not now");
        self.ids.push(peer.id());
        0
    }

    fn received(&mut self, frames: &mut usize, frame: Frame<'_>, peer: &mut Peer<Self>) -> Result {
        *frames += 1;
        let text = std::str::from_utf8(frame.body)?;
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let own = peer.id();
        let others = self.ids.iter().copied().filter(|id| *id != own);
        match word {
            "echo" => peer.reply(rest.as_bytes())?,
            "big" => peer.reply(&vec![b'x'; rest.parse()?])?,
            "with" => peer.reply_with(|out| out.extend_from_slice(rest.as_bytes()))?,
            "raw" => peer.write(rest.as_bytes()),
            "count" => peer.reply(frames.to_string().as_bytes())?,
            "bye" => {
                peer.hang_up();
                peer.reply(rest.as_bytes())?;
            }
            "close" => others.for_each(|id| peer.close(id)),
            "close-me" => peer.close(own),
            "me" => {
                peer.reply(b"before")?;
                assert!(peer.send(own, rest.as_bytes())?);
                peer.reply(b"after")?;
            }
            "all" => {
                for id in others {
                    let sent = peer.send(id, rest.as_bytes())?;
                    self.log.lock().unwrap().push(format!("sent {sent}"));
                }
            }
            "foreign" => {
                let sent = self.foreign.map(|id| peer.send(id, rest.as_bytes()).unwrap());
                peer.reply(format!("{sent:?}").as_bytes())?;
            }
            "wake" => peer.wake_in(Duration::from_millis(rest.parse()?)),
            "panic" => {
                peer.reply(b"half")?;
                panic!("on purpose");
            }
            _ => return Err(format!("no word is {word:?}").into()),
        }
        Ok(())
    }

    fn closed(&mut self, _: usize, id: ConnectionId, why: &Closed, cx: &mut Context<Self>) {
        self.ids.retain(|known| *known != id);
        assert_eq!(cx.send(id, b"too late"), Ok(false));
        self.log.lock().unwrap().push(format!("closed: {why}"));
        if matches!(why, Closed::Failed(_)) {
            for id in &self.ids {
                cx.send(*id, b"gone").unwrap();
            }
        }
    }

    fn silent(&mut self, _: &mut usize, peer: &mut Peer<Self>) {
        peer.reply(b"alive?").unwrap();
    }

    fn woken(&mut self, cx: &mut Context<Self>) {
        for id in &self.ids {
            cx.send(*id, cx.now().as_millis().to_string().as_bytes()).unwrap();
        }
        if self.ids.len() == 3 {
            cx.close(self.ids[0]);
            panic!("awake");
        }
    }
}

pub(super) fn world(settings: &[(&str, &str)]) -> (World, Log) {
    let mut world = World::new(1, settings);
    let log = Log::default();
    world.shards[0]
        .services
        .host(Box::new(Hosted::new(Puppet { log: Arc::clone(&log), ..Puppet::default() })));
    (world, log)
}

pub(super) fn frame(body: &str) -> Vec<u8> {
    let mut out = Vec::new();
    CODEC.encode(&mut out, body.as_bytes()).unwrap();
    out
}

pub(super) fn frames(bodies: &[&str]) -> Vec<u8> {
    bodies.iter().flat_map(|body| frame(body)).collect()
}

/// The frames that a client got since it was last asked.
pub(super) fn heard(world: &mut World, client: Client) -> Vec<String> {
    let bytes = world.raw(client);
    let (mut at, mut bodies) = (0, Vec::new());
    while let Some(frame) = CODEC.decode(&bytes[at..], usize::MAX).unwrap() {
        bodies.push(String::from_utf8(frame.body.to_vec()).unwrap());
        at += frame.consumed;
    }
    assert_eq!(at, bytes.len(), "whole frames came");
    bodies
}

pub(super) fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

fn waiting(world: &World, client: Client) -> usize {
    let (shard, key) = world.place_of(client);
    world.shards[shard].links.unsent(key).len()
}

#[test]
fn wherever_the_stream_is_cut_the_same_is_said() {
    let said = frames(&["echo one", "echo ", "count", "with two", "big 3", "count"]);
    let expected = ["one", "", "3", "two", "xxx", "6"];
    for cut in 0..=said.len() {
        let (mut world, _) = world(&[]);
        let client = world.connect_to(0, 0);
        world.bytes(client, &said[..cut]);
        world.bytes(client, &said[cut..]);
        assert_eq!(heard(&mut world, client), expected, "cut at {cut}");
        assert_eq!(world.buffered(client), 0, "an idle connection owns no buffer");
    }
    // Kept bytes are fewer or more than those that follow, and than the space before them.
    for size in 1..said.len() {
        let (mut world, _) = world(&[]);
        let client = world.connect_to(0, 0);
        for piece in said.chunks(size) {
            world.bytes(client, piece);
        }
        assert_eq!(heard(&mut world, client), expected, "pieces of {size}");
        assert_eq!(world.buffered(client), 0, "pieces of {size}");
    }
}

#[test]
fn the_replies_to_all_frames_of_a_turn_leave_in_one_write() {
    let (mut world, _) = world(&[]);
    let client = world.connect_to(0, 0);
    let (_, key) = world.place_of(client);
    let shard = &mut world.shards[0];
    shard.received_behind(key, &mut frames(&["echo a", "echo b", "me c", "raw \0\x01d"]), 0);
    shard.received_behind(key, &mut frames(&["echo e"]), 0);
    shard.advance();
    assert_eq!(shard.next_dirty(), Some(key));
    assert_eq!(shard.links.unsent(key), frames(&["a", "b", "before", "c", "after", "d", "e"]));
    assert_eq!(shard.next_dirty(), None);
    let counters = shard.counters();
    assert_eq!(
        (counters.messages_in, counters.messages_out),
        (5, 6),
        "what has no frame is not a message"
    );
}

#[test]
fn max_message_bytes_holds_for_frames() {
    let (mut world, log) = world(&[("limits.message_bytes", "64")]);
    let client = world.connect_to(0, 0);
    let fits = format!("echo {}", "x".repeat(59));
    world.bytes(client, &frame(&fits));
    assert_eq!(heard(&mut world, client), ["x".repeat(59)]);
    // It is refused before its body comes, and what was said before it is answered.
    world.bytes(client, &[&frame("echo last")[..], &[0, 65]].concat());
    assert_eq!(heard(&mut world, client), ["last"]);
    assert!(world.is_over(client));
    assert_eq!(taken(&log), ["closed: a frame announced 65 bytes, the limit is 64"]);
}

/// Frames that end with a full stop, however long they are. At a semicolon or an exclamation mark,
/// what is said to be whole is none.
struct Sentences;

impl FrameCodec for Sentences {
    fn decode<'a>(
        &self,
        input: &'a [u8],
        body_bytes_max: usize,
    ) -> Result<Option<Frame<'a>>, FrameError> {
        self.decode_on(input, 0, body_bytes_max)
    }

    fn decode_on<'a>(
        &self,
        input: &'a [u8],
        known: usize,
        _: usize,
    ) -> Result<Option<Frame<'a>>, FrameError> {
        assert!(!input[..known].contains(&b'.'), "a frame ended in what is said to be known");
        LOOKED_AT.set(LOOKED_AT.get() + input.len() - known);
        let end =
            input[known..].iter().position(|byte| b".;!".contains(byte)).map(|place| known + place);
        Ok(end.map(|end| match input[end] {
            b';' => Frame { body: &[], consumed: 0 },
            b'!' => Frame { body: &[], consumed: input.len() + 1 },
            _ => Frame { body: &input[..end], consumed: end + 1 },
        }))
    }

    fn encode_with(
        &self,
        out: &mut Vec<u8>,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), FrameError> {
        body(out);
        out.push(b'.');
        Ok(())
    }
}

struct Reader(Log);

impl Service for Reader {
    type Connection = ();
    type Codec = Sentences;

    fn codec(&self) -> Sentences {
        Sentences
    }

    fn connected(&mut self, _: SocketAddr, peer: &mut Peer<Self>) {
        peer.reply(b"welcome").unwrap();
    }

    fn received(&mut self, _: &mut (), frame: Frame<'_>, peer: &mut Peer<Self>) -> Result {
        Ok(peer.reply(&frame.body.to_ascii_uppercase())?)
    }

    fn closed(&mut self, _: (), _: ConnectionId, why: &Closed, _: &mut Context<Self>) {
        self.0.lock().unwrap().push(why.to_string());
    }
}

/// The answers of a reader to such pieces of input, and why it closes.
fn read(pieces: &[&[u8]]) -> (String, Vec<String>) {
    let mut world = World::new(1, &[("limits.message_bytes", "64")]);
    let log = Log::default();
    world.shards[0].services.host(Box::new(Hosted::new(Reader(Arc::clone(&log)))));
    let client = world.connect_to(0, 0);
    for piece in pieces {
        world.bytes(client, piece);
    }
    assert_eq!(world.is_over(client), !log.lock().unwrap().is_empty());
    (String::from_utf8(world.raw(client)).unwrap(), taken(&log))
}

thread_local! {
    /// The bytes given to the codec that it did not know.
    static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
}

#[test]
fn bytes_that_come_one_by_one_are_looked_at_once() {
    let text = b"one.two..a longer one.the last";
    let pieces: Vec<&[u8]> = text.chunks(1).collect();
    LOOKED_AT.set(0);
    assert_eq!(read(&pieces), ("welcome.ONE.TWO..A LONGER ONE.".into(), Vec::new()));
    // Each byte when it comes, and nothing more: no frame ends before its last one.
    assert_eq!(LOOKED_AT.get(), text.len());
    for cut in 2..text.len() {
        let pieces: Vec<&[u8]> = text.chunks(cut).collect();
        assert_eq!(read(&pieces).0, "welcome.ONE.TWO..A LONGER ONE.", "cut every {cut} bytes");
    }
}

#[test]
fn a_service_may_speak_first_and_cut_frames_as_it_likes() {
    assert_eq!(read(&[b"a.b", b"c.d.e"]), ("welcome.A.BC.D.".into(), Vec::new()));
}

#[test]
fn a_frame_without_end_is_not_waited_for() {
    let (came, log) = read(&[b"a.", &[b'x'; 64 + 64]]);
    assert_eq!((came.as_str(), log.len()), ("welcome.A.", 0));
    let (came, log) = read(&[b"a.", &[b'x'; 64 + 64], b"x"]);
    assert_eq!(came, "welcome.A.");
    assert_eq!(log, ["129 bytes came, and no frame ends in them"]);
}

#[test]
fn a_codec_that_knows_no_limit_is_held_to_it() {
    assert_eq!(read(&[&[b'x'; 64], b"."]).1, [""; 0]);
    assert_eq!(read(&[&[b'x'; 65], b"."]).1, ["a frame announced 65 bytes, the limit is 64"]);
}

#[test]
fn a_codec_that_errs_costs_the_connection_and_nothing_else() {
    for input in [&b"a.b;c."[..], b"a.b!c."] {
        let (came, log) = read(&[input]);
        assert_eq!(came, "welcome.A.");
        assert_eq!(log, ["the codec returned a frame of no bytes, or of more than were received"]);
    }
}

#[test]
fn what_was_written_leaves_before_the_end_and_nothing_more_is_handled() {
    for last in ["bye last", "close-me"] {
        let (mut world, log) = world(&[]);
        let client = world.connect_to(0, 0);
        world.takes(client, 3);
        world.bytes(client, &frames(&["echo a", "echo b", last, "echo never"]));
        assert!(!world.is_over(client), "it has not read all yet");
        assert_eq!(taken(&log), ["closed: the service closed the connection"], "once, and at once");
        world.takes(client, usize::MAX);
        let expected: &[&str] = if last == "close-me" { &["a", "b"] } else { &["a", "b", "last"] };
        assert_eq!(heard(&mut world, client), expected);
        assert!(world.is_over(client));
        world.hang_up(client);
        assert_eq!(taken(&log), [""; 0]);
    }
}

#[test]
fn an_error_closes_the_connection_and_others_may_hear_of_it() {
    let (mut world, log) = world(&[]);
    let (client, other) = (world.connect_to(0, 0), world.connect_to(0, 0));
    world.bytes(client, &frames(&["echo a", "what", "echo b"]));
    assert_eq!(heard(&mut world, client), ["a"]);
    assert!(world.is_over(client));
    assert_eq!(taken(&log), [r#"closed: no word is "what""#]);
    assert_eq!(heard(&mut world, other), ["gone"]);
    // A reply that no frame can hold is an error as well.
    world.bytes(other, &frame("big 65536"));
    assert_eq!(
        taken(&log),
        ["closed: a body of 65536 bytes does not go into one frame, which takes 0 to 65535"]
    );
}

#[test]
fn outbox_high_bytes_stops_reading_from_who_does_not_read() {
    let (mut world, _) = world(&[("limits.session.outbox_bytes.high", "5000")]);
    let client = world.connect_to(0, 0);
    world.takes(client, 0);
    let said: Vec<u8> = (0..1000).flat_map(|_| frame("big 998")).collect();
    for _ in 0..3 {
        world.bytes(client, &said);
        assert_eq!(waiting(&world, client), 6000, "at 5,000 one more frame is handled");
    }
    world.takes(client, usize::MAX);
    assert_eq!(heard(&mut world, client).len(), 3000, "nothing of it is lost");
}

#[test]
fn outbox_bytes_max_closes_who_does_not_read_what_others_send() {
    let (mut world, log) = world(&[
        ("limits.session.outbox_bytes.max", "10000"),
        ("limits.session.outbox_bytes.high", "10000"),
    ]);
    let (speaker, deaf) = (world.connect_to(0, 0), world.connect_to(0, 0));
    world.takes(deaf, 0);
    let shout = frame(&format!("all {}", "x".repeat(998)));
    world.bytes(speaker, &shout.repeat(10));
    assert_eq!(taken(&log), ["sent true"; 10], "10,000 bytes may wait");
    world.bytes(speaker, &[shout.repeat(2), frame("echo on")].concat());
    let expected = [
        "sent false",
        "sent false",
        "closed: limits.session.outbox_bytes.max: too many bytes are queued",
    ];
    assert_eq!(taken(&log), expected);
    assert_eq!(heard(&mut world, speaker), ["on"]);
    world.takes(deaf, usize::MAX);
    assert_eq!(heard(&mut world, deaf).len(), 10);
    assert!(world.is_over(deaf));
}

#[test]
fn a_panic_closes_its_connection_and_no_other() {
    let (mut world, log) = world(&[]);
    let (client, other) = (world.connect_to(0, 0), world.connect_to(0, 0));
    world.bytes(client, &frames(&["echo a", "panic", "echo b"]));
    assert_eq!(heard(&mut world, client), ["a"], "what was half written is taken back");
    assert!(world.is_over(client));
    assert_eq!(taken(&log), ["closed: the service panicked"]);
    world.bytes(other, &frame("count"));
    assert_eq!(heard(&mut world, other), ["1"], "the service goes on");
}

#[test]
fn a_panic_while_connecting_or_waking_is_caught_too() {
    let mut world = World::new(1, &[]);
    let puppet = Puppet { panics_at_connect: true, ..Puppet::default() };
    world.shards[0].services.host(Box::new(Hosted::new(puppet)));
    let client = world.connect_to(0, 0);
    assert!(world.is_over(client));
    world.hang_up(client);
    assert!(world.shards[0].links.is_empty());

    let (mut world, log) = self::world(&[]);
    let clients = [world.connect_to(0, 0), world.connect_to(0, 0), world.connect_to(0, 0)];
    world.bytes(clients[1], &frame("wake 5"));
    world.wait(20);
    assert_eq!(taken(&log), ["closed: the service closed the connection"]);
    assert!(world.is_over(clients[0]));
    for client in clients {
        assert_eq!(heard(&mut world, client).len(), 1);
    }
}

#[test]
fn a_service_is_woken_once_when_it_asked_to_be() {
    let (mut world, _) = world(&[]);
    let client = world.connect_to(0, 0);
    world.bytes(client, &frames(&["wake 10", "wake 50"]));
    world.wait(49);
    assert_eq!(heard(&mut world, client), [""; 0], "the later call took the place of the earlier");
    world.wait(1000);
    assert_eq!(heard(&mut world, client), ["50"]);
}

#[test]
fn who_is_silent_is_asked_and_then_closed() {
    let (mut world, log) = world(&[("timeouts.heartbeat", "1000ms"), ("timeouts.hello", "100ms")]);
    let (silent, talks) = (world.connect_to(0, 0), world.connect_to(0, 0));
    for _ in 0..4 {
        world.wait(450);
        world.bytes(talks, &frame("echo x"));
    }
    assert_eq!(heard(&mut world, silent), ["alive?"], "once, and no hello is waited for");
    world.wait(300);
    assert!(world.is_over(silent) && !world.is_over(talks));
    assert_eq!(
        taken(&log),
        ["closed: timeouts.heartbeat: nothing was received for twice that time"]
    );
    assert_eq!(heard(&mut world, talks), ["x"; 4]);
}

#[test]
fn a_connection_that_is_closed_by_another_is_heard_no_more() {
    let (mut world, log) = world(&[]);
    let (host, guest) = (world.connect_to(0, 0), world.connect_to(0, 0));
    // Both are read in one turn, the host first.
    world.each(&[(host, frames(&["all hi", "close", "all lost"])), (guest, frame("echo lost"))]);
    assert_eq!(heard(&mut world, guest), ["hi"]);
    assert!(world.is_over(guest));
    let expected = ["sent true", "sent false", "closed: the service closed the connection"];
    assert_eq!(taken(&log), expected);
    world.bytes(host, &frame("all nobody"));
    assert_eq!(taken(&log), [""; 0]);
}

#[test]
fn an_id_names_a_connection_of_its_own_shard_and_service_only() {
    // Whose key it is: a client of service 0 on shard 0. Who sends to it: the service of this
    // number on this shard.
    for (sender, shard) in [(0, 1), (1, 0)] {
        let mut world = World::new(2, &[]);
        world.shards[0].services.host(Box::new(Hosted::new(Puppet::default())));
        let named = world.connect_to(0, 0);
        let foreign = Some(ConnectionId { shard: 0, key: world.place_of(named).1 });
        world.shards[shard]
            .services
            .host(Box::new(Hosted::new(Puppet { foreign, ..Puppet::default() })));
        let client = world.connect_to(sender, shard);
        world.bytes(client, &frame("foreign x"));
        assert_eq!(heard(&mut world, client), ["Some(false)"]);
        assert_eq!(heard(&mut world, named), [""; 0]);
    }
}

#[test]
fn an_id_does_not_name_the_next_connection_in_its_place() {
    let mut world = World::new(1, &[]);
    world.shards[0].services.host(Box::new(Hosted::new(Puppet::default())));
    let first = world.connect_to(0, 0);
    let (_, key) = world.place_of(first);
    let foreign = Some(ConnectionId { shard: 0, key });
    world.shards[0].services.host(Box::new(Hosted::new(Puppet { foreign, ..Puppet::default() })));
    world.hang_up(first);
    let client = world.connect_to(1, 0);
    assert_eq!(world.place_of(client).1.index(), key.index());
    world.bytes(client, &frame("foreign x"));
    assert_eq!(heard(&mut world, client), ["Some(false)"]);
}

#[test]
fn every_end_is_reported_once_and_why() {
    let (mut world, log) = world(&[]);
    let (polite, lost, last) =
        (world.connect_to(0, 0), world.connect_to(0, 0), world.connect_to(0, 0));
    let player = world.client(0);
    world.bytes(polite, &frame("echo a"));
    world.hang_up(polite);
    assert_eq!(heard(&mut world, polite), ["a"]);
    world.vanish(lost);
    assert_eq!(taken(&log), ["closed: the client closed the connection, or it broke"; 2]);
    world.bytes(last, &frame("echo b"));
    world.shut_down();
    assert_eq!(taken(&log), ["closed: the node is shutting down"]);
    assert_eq!(heard(&mut world, last), ["b"]);
    assert!(world.is_over(last) && world.is_over(player));
}

#[test]
fn a_frame_has_to_come_to_its_end_and_its_bytes_alone_hide_no_silence() {
    let long = frame(&"x".repeat(10_000));
    // One byte every 100 ms is silence; 300 bytes are not, but the frame then takes too long.
    for (heartbeat, bytes, why) in [
        ("1s", 1, "timeouts.heartbeat: nothing was received for twice that time"),
        ("1s", 300, "timeouts.message: a frame was not complete in time"),
        ("60s", 1, "timeouts.message: a frame was not complete in time"),
    ] {
        let settings = [("timeouts.heartbeat", heartbeat), ("timeouts.message", "3000ms")];
        let (mut world, log) = world(&settings);
        let (slow, fast) = (world.connect_to(0, 0), world.connect_to(0, 0));
        world.bytes(fast, &frame("echo x")[..4]);
        for piece in long.chunks(bytes).take(33) {
            world.bytes(slow, piece);
            // Each of its frames ends, though the next has begun.
            world.bytes(fast, &frames(&["echo x", "echo x"])[4..][..frame("echo x").len()]);
            world.wait(100);
        }
        assert_eq!(taken(&log)[..1], [format!("closed: {why}")]);
        assert!(world.is_over(slow));
    }
}
