//! `bench echo`.

use playfield_bench::echo::{
    self, Class, Client, Driver, Mode, Options, PAYLOAD_MAX, PREFIX_BYTES, Rooms, Transport,
    WINDOW_MAX,
};
use playfield_cli::options::{Failure, Setter, Usage, set};

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "echo",
    about: "as many messages as possible that a server sends back, or as many as arrive at a rate:
through a service with framing of its own (class A), through a session, a room and its typed messages
(B), or from room to room across two shards (room), without clients. For A and B, the same run
measures the baseline: a bare server that sends frames of the same size back. The server runs on one
core, the clients, which compare every byte, on another.",
    defaults: Options::default,
    setters: &[
        Setter::new(
            "class",
            "A|B|room",
            "a service (default), rooms, or rooms that send to rooms of another shard",
            |o, given| set(&mut o.class, given.one_of(Class::NAMES)),
        ),
        Setter::new(
            "frame-bytes",
            "N",
            "class A: size of a frame with its length of 4 bytes, the payload by ws (default 8)",
            |o, given| set(&mut o.frame_bytes, given.within(PREFIX_BYTES + 1..=PAYLOAD_MAX)),
        ),
        Setter::new(
            "payload",
            "N",
            "class B, room: size of a message's data (default 8)",
            |o, given| set(&mut o.payload, given.within(1..=PAYLOAD_MAX)),
        ),
        Setter::new(
            "connections",
            "N",
            "number of clients, or of pairs of rooms (default 1000)",
            |o, given| set(&mut o.connections, given.within(1..=19_000)),
        ),
        Setter::new(
            "window",
            "N",
            "messages of a client that are under way (default 200)",
            |o, given| set(&mut o.window, given.within(1..=WINDOW_MAX)),
        ),
        Setter::new(
            "mode",
            "send|request|callback",
            "class B: events (default), or replies to requests",
            |o, given| set(&mut o.mode, given.one_of(Mode::NAMES)),
        ),
        Setter::new(
            "rooms",
            "own|shared",
            "a client (default) or 100 in each room",
            |o, given| set(&mut o.rooms, given.one_of(Rooms::NAMES)),
        ),
        transport(|o, given| set(&mut o.transport, given.one_of(Transport::NAMES))),
        Setter::new(
            "driver",
            "comparing|counting",
            "class A: compare every byte (default), or count bytes, which takes less time",
            |o, given| set(&mut o.driver, given.one_of(Driver::NAMES)),
        ),
        Setter::new(
            "client",
            "lean|rust|cpp",
            "class B: sockets with little around them (default), or clients of an SDK",
            |o, given| set(&mut o.client, given.one_of(Client::NAMES)),
        ),
        Setter::new(
            "client-program",
            "PATH",
            "the C++ client's echo driver (default target/cpp/release/examples/echo_driver)",
            |o, given| set(&mut o.client_program, given.value()),
        ),
        Setter::new(
            "rate",
            "N",
            "messages that arrive per second, whatever is answered; without a window",
            |o, given| set(&mut o.rate, given.within(1..=100_000_000).map(Some)),
        ),
        Setter::new(
            "rounds",
            "N",
            "measurements, in turns; the median counts (default 3)",
            |o, given| set(&mut o.rounds, given.within(1..=1_000)),
        ),
        Setter::new("seconds", "S", "duration of one measurement (default 3)", |o, given| {
            set(&mut o.time, given.seconds(1..=86_400))
        }),
        json(|o, _| on(&mut o.json)),
        corrupt_one(|o, _| on(&mut o.corrupt_one)),
        role(|o, given| set(&mut o.role, side(given))),
    ],
    run: |options, out| {
        check(&options)?;
        verified(echo::run(&options, out))
    },
};

/// Refuses options that exclude each other.
fn check(options: &Options) -> Result<(), Failure> {
    let counts = options.driver == Driver::Counting;
    let is_sdk = options.client != Client::Lean;
    let text = if counts && options.class != Class::A {
        "--driver counting: only replies of class A can be counted without decoding them"
    } else if counts && options.corrupt_one {
        "--corrupt-one: --driver counting would not notice it"
    } else if is_sdk && (options.class != Class::B || options.rate.is_some()) {
        "--client rust and cpp: only in class B, and without --rate"
    } else {
        return Ok(());
    };
    Err(Usage(text.into()).into())
}
