//! `bench connections`, `heartbeat` and `soak`.

use playfield_bench::connections::{self, Options, Suite as Which, Transport};
use playfield_cli::options::{Setter, Usage, set};

use crate::suite::*;

pub(crate) const CONNECTIONS: Suite<Options> = Suite {
    name: "connections",
    about: "many clients that connect, say hello and then only heartbeat: how fast they connect and
what each costs. The server runs on one core, the clients on another. The same run measures the
baseline: the same bytes over bare sockets.",
    defaults: || Options::new(Which::Connections),
    setters: &[
        Setter::new("count", "N", "number of clients (default 10000)", |o, given| {
            set(&mut o.count, given.within(1..=2_000_000))
        }),
        transport(|o, given| set(&mut o.transport, given.one_of(Transport::NAMES))),
        Setter::new(
            "heartbeat",
            "S",
            "seconds between a client's heartbeats; 0 for none (default 60, heartbeat: 10)",
            |o, given| set(&mut o.heartbeat, given.seconds(0..=21_600)),
        ),
        Setter::new(
            "seconds",
            "S",
            "how long they are held (default 10, heartbeat: 30, soak: 3600 at most)",
            |o, given| set(&mut o.time, given.seconds(0..=864_000)),
        ),
        Setter::new("beats", "N", "heartbeats of a soak (default 86400000)", |o, given| {
            set(&mut o.beats, given.within(1..=1_000_000_000_000))
        }),
        Setter::new(
            "resumable",
            "on|off",
            "whether sessions can be resumed (default on)",
            |o, given| set(&mut o.is_resumable, given.on_or_off()),
        ),
        Setter::new(
            "baseline",
            "on|off",
            "whether the baseline is measured (soak: off)",
            |o, given| set(&mut o.has_baseline, given.on_or_off()),
        ),
        Setter::new(
            "rounds",
            "N",
            "how often baseline and node are measured, in turns (default 3, soak: 1)",
            |o, given| {
                if o.suite == Which::Soak {
                    return Err(Usage("--rounds: a soak is one round".into()).into());
                }
                set(&mut o.rounds, given.within(1..=1000))
            },
        ),
        json(|o, _| on(&mut o.json)),
        corrupt_one(|o, _| on(&mut o.corrupt_one)),
        role(|o, given| set(&mut o.role, side(given))),
    ],
    run: |options, out| verified(connections::run(&options, out)),
};

pub(crate) const HEARTBEAT: Suite<Options> = Suite {
    name: "heartbeat",
    about: "the clients of connections: how long a heartbeat takes.",
    defaults: || Options::new(Which::Heartbeat),
    ..CONNECTIONS
};

pub(crate) const SOAK: Suite<Options> = Suite {
    name: "soak",
    about: "the clients of connections: as many heartbeats as possible.",
    defaults: || Options::new(Which::Soak),
    ..CONNECTIONS
};
