//! `bench`: the command line of the suites.

use std::io::Write;
use std::time::Duration;

use lexopt::Arg::{Long, Short, Value};
use playfield_bench::connections::{self, Suite};
use playfield_bench::rooms::{self, Role, Transport};
use playfield_bench::side::Side;
use playfield_bench::sync::{self, CARDS_MAX, Case, ENTITIES_MAX, PLAYERS_MAX};
use playfield_bench::{
    attacks, channel, constructs, echo, http, jwt, messages, packet, registry, resume, rounds,
    store, tls, websocket, worlds,
};
use playfield_cli::options::{Failure, Opt, Usage, describe, one_of, unknown, value, within};
use playfield_state::{Format, Tracking};

const HELP: &str = "\
Usage: playfield-bench bench [SUITE] [OPTIONS]

Without a suite, runs all of them with default options (`--json` is allowed).
Each case runs in its own process. Every counted message is decoded and compared with a model. The
exit status is 1 if any differs.

";

/// In execution order.
const SUITES: &str = "sync, constructs, worlds, packet, websocket, store, http, tls, jwt, attacks, \
     resume, connections, heartbeat, soak, channel, messages, requests, echo, registry, rooms";

const SYNC_HELP: &str = "
sync: the time of one sync, from comparing the state to writing every player's message.
Without options that select a case, runs all standard cases.
";

const CONSTRUCTS_HELP: &str = "
constructs: the cost of one change, in time and bytes, for every construct that a state can consist
of. All in one process.
";

const WORLDS_HELP: &str = "
worlds: one sync of a world with many entities and players who see what is near: by a view function,
and by place, in turn. All in one process.
";

const ROOMS_HELP: &str = "
rooms: how many rooms of 30 or more players one core can serve, at 20 patches per second. The
server runs on one core and all clients on another. The same run measures the baseline: the same
writes and nothing else. With TLS, it measures the same without TLS, too.
";

const PACKET_HELP: &str = "
packet: writing and reading custom packets. Each row is measured as is common (same), and with
every field compared and every byte read (verified).
";

const HTTP_HELP: &str = "
http: requests per second over kept connections, to a room that a handler asks, to a page, and to
the baseline, which only reads and writes. The server runs on one core, the clients on another. The
room ticks at 60 Hz meanwhile, and says how late.
";

const TLS_HELP: &str = "
tls: full handshakes, compared with bare rustls; the memory of idle connections; and rooms of 30
players with and without TLS. The server runs on one core, the clients on another.
";

const JWT_HELP: &str = "
jwt: sessions that JSON Web Tokens open, from connection to welcome, compared with the verification
of the tokens alone. The server runs on one core, the clients on another.
";

const ATTACKS_HELP: &str = "
attacks: how evenly a player is served at 20 Hz while strangers attack the same shard. The node runs
on one core with its default limits, everyone else on another. A row is verified if the player's copy
was right throughout and missed few patches, and the attack had its effect.
";

const RESUME_HELP: &str = "
resume: many sessions lose their connections at once and come back while their rooms tick; and the
cost of a resumable session while it is connected. A row is verified if every session has everything
that its room did, also while it was away.
";

const CONNECTIONS_HELP: &str = "
connections, heartbeat, soak: many clients that connect, say hello and then only heartbeat: how fast
they connect and what each costs; how long a heartbeat takes; and as many heartbeats as possible.
The server runs on one core, the clients on another. The same run measures the baseline: the same
bytes over bare sockets.
";

const CHANNEL_HELP: &str = "
channel: one channel with many subscribers over WebSocket: how fast publications reach all of them,
compared with bare sends of the same frames on as many sockets; and what they get after all their
connections were cut. The server runs on one core, the subscribers on another.
";

const MESSAGES_HELP: &str = "
messages: many clients send requests to rooms, compared with a bare server that reads and answers as
many bytes. The server runs on one core, the clients on another.
";

const REQUESTS_HELP: &str = "
requests: how long a node with 1, 2, 4 and 8 shards takes to answer 10,000 requests that are sent at
once, each by a client of its own. The node and the clients share all cores.
";

const ECHO_HELP: &str = "
echo: as many messages as possible that a server sends back, or as many as arrive at a rate: through
a service with framing of its own (class A), through a session, a room and its typed messages (B),
or from room to room across two shards (room), without clients. For A and B, the same run measures
the baseline: a bare server that sends frames of the same size back. The server runs on one core, the
clients, which compare every byte, on another.
";

const REGISTRY_HELP: &str = "
registry: what devices, channels and heartbeats cost a shard without its sockets. All in one
process.
";

const WEBSOCKET_HELP: &str = "
websocket: parsing masked frames and unmasking them in place, compared with copying the same bytes;
and compressing and decompressing 512-byte chat messages, with and without context takeover, with
their compressed size and the memory that a connection keeps.
";

const STORE_HELP: &str = "
store: saving and loading a state of 1 MB, compared with copying the same bytes; keyed rooms that are
opened, changed, closed and opened again on the embedded store; and how late another room of the
shard ticks while a room of 1 MB is saved and loaded.
";

// Options shared by several suites.
const JSON: Opt =
    Opt { name: "json", value: "", help: "print one JSON object per line instead of tables" };
const PLAYERS: Opt = Opt { name: "players", value: "N", help: "players per room (default 30)" };
const ROW: Opt =
    Opt { name: "row", value: "NAME", help: "run only this row; an unknown name lists all rows" };
const FORM: Opt = Opt { name: "form", value: "same|verified", help: "run only this form" };
const ROUNDS: Opt = Opt {
    name: "rounds",
    value: "N",
    help: "measurements per row; the fastest counts (default 9)",
};
const ROUND_MS: Opt =
    Opt { name: "round-ms", value: "N", help: "duration of one measurement (default 10)" };
const CORRUPT_ONE: Opt = Opt { name: "corrupt-one", value: "", help: "" };

const ALL: &[Opt] = &[JSON];

const SYNC: &[Opt] = &[
    Opt { name: "workload", value: "NAME", help: "swift (default), colyseus, entities or windows" },
    PLAYERS,
    Opt { name: "cards", value: "N", help: "cards per hand (default 10)" },
    Opt {
        name: "scenario",
        value: "A|B",
        help: "A: the round and some hands change; B: every player's public state too (default)",
    },
    Opt {
        name: "hands",
        value: "FRACTION",
        help: "share of hands that change per step (default 0.2)",
    },
    Opt {
        name: "entities",
        value: "N",
        help: "number of entities, in entities and windows (default 10000)",
    },
    Opt { name: "changed", value: "N", help: "entities that move per step (default 100)" },
    Opt {
        name: "order",
        value: "NAME",
        help: "which entities move in a step: neighbors (default) or scattered ones",
    },
    Opt { name: "moving", value: "N", help: "players that move per step (default 1)" },
    Opt { name: "format", value: "NAME", help: "packed (default), msgpack or json" },
    Opt { name: "tracking", value: "on|off", help: "compare only modified values (default on)" },
    JSON,
    Opt { name: "sequences", value: "", help: "" },
    CORRUPT_ONE,
    Opt { name: "in-process", value: "", help: "" },
];

const CONSTRUCTS: &[Opt] =
    &[JSON, Opt { name: "syncs", value: "N", help: "syncs per construct (default 2000)" }];

const WORLDS: &[Opt] = &[
    ROW,
    JSON,
    Opt { name: "rounds", value: "N", help: "measurements per row; the median counts (default 5)" },
    Opt { name: "syncs", value: "N", help: "syncs per measurement (default 40)" },
    CORRUPT_ONE,
];

const PACKET: &[Opt] = &[ROW, FORM, JSON, ROUNDS, ROUND_MS];

const STORE: &[Opt] = &[
    ROW,
    JSON,
    ROUNDS,
    ROUND_MS,
    Opt { name: "rooms", value: "N", help: "number of keyed rooms (default 10000)" },
    Opt { name: "window-ms", value: "N", help: "how long ticks are measured (default 5000)" },
    CORRUPT_ONE,
];

const WEBSOCKET: &[Opt] = &[ROW, FORM, JSON, ROUNDS, ROUND_MS, CORRUPT_ONE];

const HTTP: &[Opt] = &[
    Opt { name: "connections", value: "N", help: "number of connections (default 32)" },
    Opt { name: "rounds", value: "N", help: "measurements of each, in turns (default 5)" },
    Opt { name: "round-ms", value: "N", help: "duration of one measurement (default 1000)" },
    JSON,
    CORRUPT_ONE,
    Opt { name: "role", value: "", help: "" },
];

const TLS: &[Opt] = &[
    ROW,
    Opt { name: "connections", value: "N", help: "connections that are held (default 10000)" },
    Opt { name: "handshakes", value: "N", help: "handshakes of one measurement (default 2000)" },
    Opt { name: "rounds", value: "N", help: "measurements of handshakes, in turns (default 5)" },
    Opt { name: "rooms", value: "N", help: "number of rooms (default 60)" },
    Opt { name: "seconds", value: "N", help: "how long rooms are measured (default 10)" },
    JSON,
    CORRUPT_ONE,
    Opt { name: "role", value: "", help: "" },
];

const JWT: &[Opt] = &[
    ROW,
    Opt { name: "sessions", value: "N", help: "sessions of one measurement (default 2000)" },
    Opt { name: "rounds", value: "N", help: "measurements, in turns (default 9)" },
    JSON,
    CORRUPT_ONE,
    Opt { name: "role", value: "", help: "" },
];

const ATTACKS: &[Opt] = &[
    ROW,
    Opt { name: "connections", value: "N", help: "number of attackers (default 1000)" },
    Opt { name: "round-ms", value: "N", help: "duration of each attack (default 10000)" },
    Opt {
        name: "missed-percent-max",
        value: "N",
        help: "share of due patches that may be missing (default 10)",
    },
    JSON,
    CORRUPT_ONE,
    Opt { name: "role", value: "", help: "" },
    Opt { name: "shards", value: "", help: "" },
];

const RESUME: &[Opt] = &[
    Opt { name: "sessions", value: "N", help: "number of sessions (default 19000)" },
    Opt { name: "rounds", value: "N", help: "how often all come back (default 3)" },
    Opt { name: "calm-ms", value: "N", help: "time between cuts (default 4000)" },
    Opt { name: "pace", value: "NAME", help: "only with rooms that are idle, ticks or events" },
    JSON,
    CORRUPT_ONE,
    Opt { name: "role", value: "", help: "" },
];

const CONNECTIONS: &[Opt] = &[
    Opt { name: "count", value: "N", help: "number of clients (default 10000)" },
    Opt { name: "transport", value: "tcp|ws", help: "native framing (default) or WebSocket" },
    Opt {
        name: "heartbeat",
        value: "S",
        help: "seconds between a client's heartbeats; 0 for none (default 60, heartbeat: 10)",
    },
    Opt {
        name: "seconds",
        value: "S",
        help: "how long they are held (default 10, heartbeat: 30, soak: 3600 at most)",
    },
    Opt { name: "beats", value: "N", help: "heartbeats of a soak (default 86400000)" },
    Opt {
        name: "resumable",
        value: "on|off",
        help: "whether sessions can be resumed (default on)",
    },
    Opt { name: "baseline", value: "on|off", help: "whether the baseline is measured (soak: off)" },
    Opt {
        name: "rounds",
        value: "N",
        help: "how often baseline and node are measured, in turns (default 3, soak: 1)",
    },
    JSON,
    CORRUPT_ONE,
    Opt { name: "role", value: "", help: "" },
];

const CHANNEL: &[Opt] = &[
    Opt { name: "subscribers", value: "N", help: "number of subscribers (default 10000)" },
    Opt { name: "bytes", value: "N", help: "size of a payload (default 100)" },
    Opt {
        name: "seconds",
        value: "S",
        help: "how long publications of each server are measured (default 10)",
    },
    Opt { name: "rounds", value: "N", help: "in how many turns (default 20)" },
    JSON,
    CORRUPT_ONE,
    Opt { name: "role", value: "", help: "" },
];

const REQUESTS: &[Opt] = &[
    Opt { name: "requests", value: "N", help: "number of requests (default 10000)" },
    Opt { name: "rounds", value: "N", help: "how often they are sent (default 20)" },
    Opt { name: "shards", value: "N", help: "only with this many shards" },
    JSON,
    CORRUPT_ONE,
];

const ECHO: &[Opt] = &[
    Opt {
        name: "class",
        value: "A|B|room",
        help: "a service (default), rooms, or rooms that send to rooms of another shard",
    },
    Opt {
        name: "frame-bytes",
        value: "N",
        help: "class A: size of a frame with its length of 4 bytes, the payload by ws (default 8)",
    },
    Opt {
        name: "payload",
        value: "N",
        help: "class B, room: size of a message's data (default 8)",
    },
    Opt {
        name: "connections",
        value: "N",
        help: "number of clients, or of pairs of rooms (default 1000)",
    },
    Opt {
        name: "window",
        value: "N",
        help: "messages of a client that are under way (default 200)",
    },
    Opt {
        name: "mode",
        value: "send|request|callback",
        help: "class B: events (default), or replies to requests",
    },
    Opt { name: "rooms", value: "own|shared", help: "a client (default) or 100 in each room" },
    Opt { name: "transport", value: "tcp|ws", help: "native framing (default) or WebSocket" },
    Opt {
        name: "driver",
        value: "comparing|counting",
        help: "class A: compare every byte (default), or count bytes, which takes less time",
    },
    Opt {
        name: "client",
        value: "lean|rust|cpp",
        help: "class B: sockets with little around them (default), or clients of an SDK",
    },
    Opt {
        name: "client-program",
        value: "PATH",
        help: "the C++ client's echo driver (default target/cpp/release/examples/echo_driver)",
    },
    Opt {
        name: "rate",
        value: "N",
        help: "messages that arrive per second, whatever is answered; without a window",
    },
    Opt {
        name: "rounds",
        value: "N",
        help: "measurements, in turns; the median counts (default 3)",
    },
    Opt { name: "seconds", value: "S", help: "duration of one measurement (default 3)" },
    JSON,
    CORRUPT_ONE,
    Opt { name: "role", value: "", help: "" },
];

const MESSAGES: &[Opt] = &[
    Opt { name: "count", value: "N", help: "number of clients (default 10000)" },
    Opt { name: "transport", value: "tcp|ws", help: "native framing (default) or WebSocket" },
    Opt { name: "bytes", value: "N", help: "only messages of this size" },
    Opt {
        name: "window",
        value: "N",
        help: "only with this many messages of a client under way (default 10, then 1)",
    },
    Opt { name: "seconds", value: "S", help: "how long each case is measured (default 10)" },
    JSON,
    CORRUPT_ONE,
    Opt { name: "role", value: "", help: "" },
    Opt { name: "shards", value: "", help: "" },
];

const REGISTRY: &[Opt] = &[ROW, FORM, JSON, ROUNDS, ROUND_MS];

const ROOMS: &[Opt] = &[
    Opt {
        name: "rooms",
        value: "N",
        help: "number of rooms; the starting point of --find-max (default 100)",
    },
    PLAYERS,
    Opt { name: "hz", value: "N", help: "ticks and patches per second (default 20)" },
    Opt { name: "seconds", value: "N", help: "duration, after 3 s of warm-up (default 10)" },
    Opt { name: "inputs-hz", value: "N", help: "inputs per second and client (default 0)" },
    Opt {
        name: "transport",
        value: "ws|wss|tcp|tls",
        help: "WebSocket (default) or native framing; over TLS",
    },
    Opt { name: "workload", value: "colyseus", help: "the only workload" },
    Opt {
        name: "find-max",
        value: "",
        help: "find the most rooms that pass 3 of 3 runs, with intervals up to 60 ms at p99",
    },
    JSON,
    Opt { name: "warm-up-ms", value: "", help: "" },
    CORRUPT_ONE,
    Opt { name: "role", value: "", help: "" },
    Opt { name: "bytes", value: "", help: "" },
];

fn help() -> String {
    let suites = [
        (SYNC_HELP, SYNC),
        (CONSTRUCTS_HELP, CONSTRUCTS),
        (WORLDS_HELP, WORLDS),
        (PACKET_HELP, PACKET),
        (WEBSOCKET_HELP, WEBSOCKET),
        (HTTP_HELP, HTTP),
        (TLS_HELP, TLS),
        (JWT_HELP, JWT),
        (STORE_HELP, STORE),
        (ATTACKS_HELP, ATTACKS),
        (RESUME_HELP, RESUME),
        (CONNECTIONS_HELP, CONNECTIONS),
        (CHANNEL_HELP, CHANNEL),
        (MESSAGES_HELP, MESSAGES),
        (REQUESTS_HELP, REQUESTS),
        (ECHO_HELP, ECHO),
        (REGISTRY_HELP, REGISTRY),
        (ROOMS_HELP, ROOMS),
    ];
    let each = suites.map(|(about, options)| format!("{about}{}", describe(options)));
    format!("{HELP}{}", each.concat())
}

pub(crate) fn run(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    match parser.next()? {
        Some(Value(suite)) => match &*suite.to_string_lossy() {
            "sync" => run_sync(parser, out),
            "constructs" => run_constructs(parser, out),
            "worlds" => run_worlds(parser, out),
            "packet" => run_packet(parser, out),
            "websocket" => run_websocket(parser, out),
            "http" => run_http(parser, out),
            "tls" => run_tls(parser, out),
            "jwt" => run_jwt(parser, out),
            "attacks" => run_attacks(parser, out),
            "connections" => run_connections(Suite::Connections, parser, out),
            "heartbeat" => run_connections(Suite::Heartbeat, parser, out),
            "soak" => run_connections(Suite::Soak, parser, out),
            "channel" => run_channel(parser, out),
            "messages" => run_messages(parser, out),
            "requests" => run_requests(parser, out),
            "echo" => run_echo(parser, out),
            "registry" => run_registry(parser, out),
            "resume" => run_resume(parser, out),
            "store" => run_store(parser, out),
            "rooms" => run_rooms(parser, out),
            other => Err(Usage(format!("unknown suite {other:?}; use one of {SUITES}")).into()),
        },
        Some(Short('h') | Long("help")) => Ok(out.write_all(help().as_bytes())?),
        Some(Long("json")) => run_all(parser, true, out),
        Some(other) => Err(unknown(&other, ALL)),
        None => run_all(parser, false, out),
    }
}

/// Every suite, with its defaults.
fn run_all(parser: &mut lexopt::Parser, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(other) = parser.next()? {
        return Err(unknown(&other, ALL));
    }
    let mut sync = sync::Options::new();
    sync.json = json;
    let mut constructs = constructs::Options::new();
    constructs.json = json;
    let mut worlds = worlds::Options::new();
    worlds.json = json;
    let mut packet = rounds::Options::new();
    packet.json = json;
    let registry = packet.clone();
    let websocket = websocket::Options { rows: packet.clone(), ..websocket::Options::default() };
    let http = http::Options { json, ..http::Options::new() };
    let mut rooms = rooms::Options::new();
    rooms.json = json;
    // All suites run, even if an earlier one fails.
    let verified = [
        sync::run(&sync, out)?,
        constructs::run(&constructs, out)?,
        worlds::run(&worlds, out)?,
        packet::run(&packet, out)?,
        store::run(&store::Options { rows: packet, ..store::Options::new() }, out)?,
        websocket::run(&websocket, out)?,
        http::run(&http, out)?,
        tls::run(&tls::Options { json, ..tls::Options::new() }, out)?,
        jwt::run(&jwt::Options { json, ..jwt::Options::default() }, out)?,
        attacks::run(&attacks::Options { json, ..attacks::Options::default() }, out)?,
        resume::run(&resume::Options { json, ..resume::Options::default() }, out)?,
        connections::run(&many(Suite::Connections, json), out)?,
        connections::run(&many(Suite::Heartbeat, json), out)?,
        connections::run(&many(Suite::Soak, json), out)?,
        channel::run(&channel::Options { json, ..channel::Options::default() }, out)?,
        messages::run(&messages::Options { json, ..messages::Options::default() }, out)?,
        echo::run(&echo::Options { json, ..echo::Options::default() }, out)?,
        registry::run(&registry, out)?,
        rooms::run(&rooms, out)?,
    ];
    done(verified.iter().all(|verified| *verified))
}

fn many(suite: Suite, json: bool) -> connections::Options {
    connections::Options { json, ..connections::Options::new(suite) }
}

fn done(verified: bool) -> Result<(), Failure> {
    if verified { Ok(()) } else { Err(Failure::Unverified) }
}

fn run_sync(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = sync::Options::new();
    let mut case = Case::default();
    let mut chosen = Vec::new();
    while let Some(argument) = parser.next()? {
        if let Long(name) = argument
            && !matches!(name, "json" | "sequences" | "corrupt-one" | "in-process")
        {
            chosen.push(name.to_owned());
        }
        match argument {
            Long("workload") => case.which = value(parser, "workload")?,
            Long("players") => case.players = within(parser, "players", 1..=PLAYERS_MAX)?,
            Long("cards") => case.cards = within(parser, "cards", 1..=CARDS_MAX)?,
            Long("scenario") => case.scenario = value(parser, "scenario")?,
            Long("hands") => case.hands = within(parser, "hands", 0.0..=1.0)?,
            Long("entities") => case.entities = within(parser, "entities", 1..=ENTITIES_MAX)?,
            Long("changed") => case.changed = within(parser, "changed", 0..=ENTITIES_MAX)?,
            Long("order") => {
                case.scattered =
                    one_of(parser, "order", &[("neighbors", false), ("scattered", true)])?;
            }
            Long("moving") => case.moving = within(parser, "moving", 0..=PLAYERS_MAX)?,
            Long("format") => {
                case.format =
                    one_of(parser, "format", &Format::ALL.map(|format| (format.name(), format)))?;
            }
            Long("tracking") => {
                case.tracking =
                    one_of(parser, "tracking", &[("on", Tracking::On), ("off", Tracking::Off)])?;
            }
            Long("json") => options.json = true,
            Long("sequences") => options.sequences = within(parser, "sequences", 1..=1_000_000)?,
            Long("corrupt-one") => options.corrupt_one = true,
            Long("in-process") => options.in_process = true,
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            other => return Err(unknown(&other, SYNC)),
        }
    }
    // A measurement's child process receives every option.
    if !options.in_process
        && let Some(idle) = chosen.iter().find(|name| !case.heeds(name))
    {
        return Err(Usage(format!("--{idle} has no effect on the workload {}", case.which)).into());
    }
    if !chosen.is_empty() || options.in_process {
        options.case = Some(case);
    }
    done(sync::run(&options, out)?)
}

fn run_constructs(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = constructs::Options::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("json") => options.json = true,
            Long("syncs") => options.syncs = within(parser, "syncs", 1..=1_000_000)?,
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            other => return Err(unknown(&other, CONSTRUCTS)),
        }
    }
    done(constructs::run(&options, out)?)
}

fn run_worlds(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = worlds::Options::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("row") => options.row = Some(row(parser, &worlds::names())?),
            Long("json") => options.json = true,
            Long("rounds") => options.rounds = within(parser, "rounds", 1..=1_000)?,
            Long("syncs") => options.syncs = within(parser, "syncs", 1..=10_000)?,
            Long("corrupt-one") => options.corrupt_one = true,
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            other => return Err(unknown(&other, WORLDS)),
        }
    }
    done(worlds::run(&options, out)?)
}

fn run_packet(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    match rows(parser, PACKET, &packet::names())? {
        Some((options, _)) => done(packet::run(&options, out)?),
        None => Ok(out.write_all(help().as_bytes())?),
    }
}

fn run_websocket(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    match rows(parser, WEBSOCKET, &websocket::names())? {
        Some((rows, corrupt_one)) => {
            done(websocket::run(&websocket::Options { rows, corrupt_one }, out)?)
        }
        None => Ok(out.write_all(help().as_bytes())?),
    }
}

fn run_store(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = store::Options::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("row") => options.rows.row = Some(row(parser, &store::names())?),
            Long("json") => options.rows.json = true,
            Long("rounds") => options.rows.rounds = within(parser, "rounds", 1..=10_000)?,
            Long("round-ms") => options.rows.round_ms = within(parser, "round-ms", 1..=10_000)?,
            Long("rooms") => options.rooms = within(parser, "rooms", 1..=1_000_000)?,
            Long("window-ms") => {
                options.window = Duration::from_millis(within(parser, "window-ms", 1..=3_600_000)?);
            }
            Long("corrupt-one") => options.corrupt_one = true,
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            other => return Err(unknown(&other, STORE)),
        }
    }
    done(store::run(&options, out)?)
}

/// The name of a row.
fn row<N: AsRef<str>>(parser: &mut lexopt::Parser, names: &[N]) -> Result<String, Failure> {
    let row: String = value(parser, "row")?;
    if names.iter().any(|name| name.as_ref() == row) {
        return Ok(row);
    }
    let names = names.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join("; ");
    Err(Usage(format!("unknown row {row:?}; use one of {names}")).into())
}

/// The options of a suite of rows, and whether one byte is to be corrupted; `None` if help was
/// requested.
fn rows(
    parser: &mut lexopt::Parser,
    known: &[Opt],
    names: &[&str],
) -> Result<Option<(rounds::Options, bool)>, Failure> {
    let mut options = rounds::Options::new();
    let mut corrupt_one = false;
    let may_corrupt = known.iter().any(|option| option.name == CORRUPT_ONE.name);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("row") => options.row = Some(row(parser, names)?),
            Long("form") => options.form = Some(value(parser, "form")?),
            Long("json") => options.json = true,
            Long("rounds") => options.rounds = within(parser, "rounds", 1..=10_000)?,
            Long("round-ms") => options.round_ms = within(parser, "round-ms", 1..=10_000)?,
            Long("corrupt-one") if may_corrupt => corrupt_one = true,
            Short('h') | Long("help") => return Ok(None),
            other => return Err(unknown(&other, known)),
        }
    }
    Ok(Some((options, corrupt_one)))
}

fn run_http(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = http::Options::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("connections") => {
                options.connections = within(parser, "connections", 1..=10_000)?;
            }
            Long("rounds") => options.rounds = within(parser, "rounds", 1..=1_000)?,
            Long("round-ms") => {
                options.round = Duration::from_millis(within(parser, "round-ms", 10..=3_600_000)?);
            }
            Long("json") => options.json = true,
            Long("corrupt-one") => options.corrupt_one = true,
            Long("role") => options.is_server = one_of(parser, "role", &[("server", true)])?,
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            other => return Err(unknown(&other, HTTP)),
        }
    }
    done(http::run(&options, out)?)
}

fn run_tls(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = tls::Options::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("row") => options.row = Some(row(parser, &tls::names())?),
            Long("connections") => {
                options.connections = within(parser, "connections", 1..=100_000)?;
            }
            Long("handshakes") => options.handshakes = within(parser, "handshakes", 1..=1_000_000)?,
            Long("rounds") => options.rounds = within(parser, "rounds", 1..=1_000)?,
            Long("rooms") => options.rooms = within(parser, "rooms", 1..=10_000)?,
            Long("seconds") => options.seconds = within(parser, "seconds", 1..=86_400)?,
            Long("json") => options.json = true,
            Long("corrupt-one") => options.corrupt_one = true,
            Long("role") => options.is_server = one_of(parser, "role", &[("server", true)])?,
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            other => return Err(unknown(&other, TLS)),
        }
    }
    done(tls::run(&options, out)?)
}

fn run_jwt(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = jwt::Options::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("row") => options.row = Some(row(parser, &jwt::names())?),
            Long("sessions") => options.sessions = within(parser, "sessions", 1..=1_000_000)?,
            Long("rounds") => options.rounds = within(parser, "rounds", 1..=1_000)?,
            Long("json") => options.json = true,
            Long("corrupt-one") => options.corrupt_one = true,
            Long("role") => options.is_server = one_of(parser, "role", &[("server", true)])?,
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            other => return Err(unknown(&other, JWT)),
        }
    }
    done(jwt::run(&options, out)?)
}

fn run_attacks(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = attacks::Options::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("row") => options.row = Some(value(parser, "row")?),
            Long("connections") => {
                options.connections = within(parser, "connections", 0..=10_000)?;
            }
            Long("round-ms") => {
                options.round = Duration::from_millis(within(parser, "round-ms", 10..=3_600_000)?);
            }
            Long("missed-percent-max") => {
                options.missed_percent_max = within(parser, "missed-percent-max", 0..=100)?;
            }
            Long("json") => options.json = true,
            Long("corrupt-one") => options.corrupt_one = true,
            Long("role") => options.is_server = one_of(parser, "role", &[("server", true)])?,
            Long("shards") => options.shards = within(parser, "shards", 1..=2)?,
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            other => return Err(unknown(&other, ATTACKS)),
        }
    }
    done(attacks::run(&options, out)?)
}

fn run_resume(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = resume::Options::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("sessions") => options.sessions = within(parser, "sessions", 1..=19_500)?,
            Long("rounds") => options.rounds = within(parser, "rounds", 1..=1_000)?,
            Long("calm-ms") => {
                options.calm = Duration::from_millis(within(parser, "calm-ms", 10..=3_600_000)?);
            }
            Long("pace") => options.pace = Some(one_of(parser, "pace", &resume::Pace::ALL)?),
            Long("json") => options.json = true,
            Long("corrupt-one") => options.corrupt_one = true,
            Long("role") => options.is_server = one_of(parser, "role", &[("server", true)])?,
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            other => return Err(unknown(&other, RESUME)),
        }
    }
    done(resume::run(&options, out)?)
}

/// The options of suites that measure two servers, each in its own process.
struct Sides<'a> {
    time: &'a mut Duration,
    json: &'a mut bool,
    corrupt_one: &'a mut bool,
    role: &'a mut Option<Side>,
}

impl Sides<'_> {
    /// Takes an option of these; `options` are all of the suite.
    fn take(self, name: &str, parser: &mut lexopt::Parser, options: &[Opt]) -> Result<(), Failure> {
        match name {
            "seconds" => *self.time = Duration::from_secs(within(parser, name, 1..=86_400)?),
            "json" => *self.json = true,
            "corrupt-one" => *self.corrupt_one = true,
            "role" => *self.role = Some(one_of(parser, name, Side::NAMES)?),
            _ => return Err(unknown(&Long(name), options)),
        }
        Ok(())
    }
}

/// The [`Sides`] of a suite's options.
macro_rules! sides {
    ($options:ident) => {
        Sides {
            time: &mut $options.time,
            json: &mut $options.json,
            corrupt_one: &mut $options.corrupt_one,
            role: &mut $options.role,
        }
    };
}

fn run_connections(
    suite: Suite,
    parser: &mut lexopt::Parser,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut options = connections::Options::new(suite);
    let switch = &[("on", true), ("off", false)];
    while let Some(argument) = parser.next()? {
        match argument {
            Long("count") => options.count = within(parser, "count", 1..=2_000_000)?,
            Long("transport") => {
                options.transport = one_of(parser, "transport", connections::Transport::NAMES)?;
            }
            Long("heartbeat") => {
                options.heartbeat = Duration::from_secs(within(parser, "heartbeat", 0..=21_600)?);
            }
            Long("seconds") => {
                options.time = Duration::from_secs(within(parser, "seconds", 0..=864_000)?);
            }
            Long("beats") => options.beats = within(parser, "beats", 1..=1_000_000_000_000)?,
            Long("resumable") => options.is_resumable = one_of(parser, "resumable", switch)?,
            Long("baseline") => options.has_baseline = one_of(parser, "baseline", switch)?,
            Long("rounds") if suite != Suite::Soak => {
                options.rounds = within(parser, "rounds", 1..=1000)?;
            }
            Long("json") => options.json = true,
            Long("corrupt-one") => options.corrupt_one = true,
            Long("role") => options.role = Some(one_of(parser, "role", Side::NAMES)?),
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            other => return Err(unknown(&other, CONNECTIONS)),
        }
    }
    done(connections::run(&options, out)?)
}

fn run_channel(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = channel::Options::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("subscribers") => {
                options.subscribers = within(parser, "subscribers", 1..=19_000)?;
            }
            Long("bytes") => options.bytes = within(parser, "bytes", 1..=60_000)?,
            Long("rounds") => options.rounds = within(parser, "rounds", 1..=10_000)?,
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            Long(name) => {
                let name = name.to_owned();
                sides!(options).take(&name, parser, CHANNEL)?;
            }
            other => return Err(unknown(&other, CHANNEL)),
        }
    }
    done(channel::run(&options, out)?)
}

fn run_messages(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = messages::Options::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("count") => options.count = within(parser, "count", 1..=19_000)?,
            Long("transport") => {
                options.transport = one_of(parser, "transport", messages::Transport::NAMES)?;
            }
            Long("bytes") => {
                options.bytes = Some(within(parser, "bytes", messages::BYTES_MIN..=60_000)?);
            }
            Long("window") => {
                options.window = Some(within(parser, "window", 1..=messages::WINDOW_MAX)?);
            }
            Long("shards") => options.shards = Some(within(parser, "shards", 1..=256)?),
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            Long(name) => {
                let name = name.to_owned();
                sides!(options).take(&name, parser, MESSAGES)?;
            }
            other => return Err(unknown(&other, MESSAGES)),
        }
    }
    done(messages::run(&options, out)?)
}

fn run_requests(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = messages::ShardsOptions::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("requests") => options.requests = within(parser, "requests", 1..=19_000)?,
            Long("rounds") => options.rounds = within(parser, "rounds", 1..=10_000)?,
            Long("shards") => options.shards = Some(within(parser, "shards", 1..=256)?),
            Long("json") => options.json = true,
            Long("corrupt-one") => options.corrupt_one = true,
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            other => return Err(unknown(&other, REQUESTS)),
        }
    }
    done(messages::run_by_shards(&options, out)?)
}

fn run_echo(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = echo::Options::default();
    let frame_bytes = echo::PREFIX_BYTES + 1..=echo::PAYLOAD_MAX;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("class") => options.class = one_of(parser, "class", echo::Class::NAMES)?,
            Long("frame-bytes") => {
                options.frame_bytes = within(parser, "frame-bytes", frame_bytes.clone())?;
            }
            Long("payload") => options.payload = within(parser, "payload", 1..=echo::PAYLOAD_MAX)?,
            Long("connections") => options.connections = within(parser, "connections", 1..=19_000)?,
            Long("window") => options.window = within(parser, "window", 1..=echo::WINDOW_MAX)?,
            Long("mode") => options.mode = one_of(parser, "mode", echo::Mode::NAMES)?,
            Long("rooms") => options.rooms = one_of(parser, "rooms", echo::Rooms::NAMES)?,
            Long("transport") => {
                options.transport = one_of(parser, "transport", echo::Transport::NAMES)?;
            }
            Long("driver") => options.driver = one_of(parser, "driver", echo::Driver::NAMES)?,
            Long("client") => options.client = one_of(parser, "client", echo::Client::NAMES)?,
            Long("client-program") => options.client_program = parser.value()?.into(),
            Long("rate") => options.rate = Some(within(parser, "rate", 1..=100_000_000)?),
            Long("rounds") => options.rounds = within(parser, "rounds", 1..=1_000)?,
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            Long(name) => {
                let name = name.to_owned();
                sides!(options).take(&name, parser, ECHO)?;
            }
            other => return Err(unknown(&other, ECHO)),
        }
    }
    if options.driver == echo::Driver::Counting && options.class != echo::Class::A {
        let text =
            "--driver counting: only replies of class A can be counted without decoding them";
        return Err(Usage(text.into()).into());
    }
    if options.driver == echo::Driver::Counting && options.corrupt_one {
        let text = "--corrupt-one: --driver counting would not notice it";
        return Err(Usage(text.into()).into());
    }
    if options.client != echo::Client::Lean
        && (options.class != echo::Class::B || options.rate.is_some())
    {
        let text = "--client rust and cpp: only in class B, and without --rate";
        return Err(Usage(text.into()).into());
    }
    done(echo::run(&options, out)?)
}

fn run_registry(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    match rows(parser, REGISTRY, &registry::names())? {
        Some((options, _)) => done(registry::run(&options, out)?),
        None => Ok(out.write_all(help().as_bytes())?),
    }
}

fn run_rooms(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let mut options = rooms::Options::new();
    let case = &mut options.case;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("rooms") => case.rooms = within(parser, "rooms", 1..=10_000)?,
            Long("players") => case.players = within(parser, "players", 1..=rooms::PLAYERS_MAX)?,
            Long("hz") => case.hz = within(parser, "hz", 1..=1_000)?,
            Long("seconds") => case.seconds = within(parser, "seconds", 1..=86_400)?,
            Long("inputs-hz") => case.inputs_hz = within(parser, "inputs-hz", 0..=1_000)?,
            Long("transport") => case.transport = one_of(parser, "transport", Transport::NAMES)?,
            Long("workload") => one_of(parser, "workload", &[("colyseus", ())])?,
            Long("find-max") => options.find_max = true,
            Long("json") => options.json = true,
            Long("warm-up-ms") => {
                case.warm_up = Duration::from_millis(within(parser, "warm-up-ms", 0..=3_600_000)?);
            }
            Long("corrupt-one") => options.corrupt_one = true,
            Long("role") => options.role = one_of(parser, "role", Role::NAMES)?,
            Long("bytes") => options.bytes = within(parser, "bytes", 1..=1_000_000)?,
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            other => return Err(unknown(&other, ROOMS)),
        }
    }
    done(rooms::run(&options, out)?)
}
