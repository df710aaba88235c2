//! `bench sync`.

use playfield_bench::sync::{self, CARDS_MAX, Case, ENTITIES_MAX, Options, PLAYERS_MAX};
use playfield_cli::options::{Failure, Given, Setter, Usage, set};
use playfield_state::{Format, Tracking};

use crate::suite::*;

pub(crate) const SUITE: Suite<Settings> = Suite {
    name: "sync",
    about: "the time of one sync, from comparing the state to writing every player's message.
Without options that select a case, runs all standard cases.",
    defaults: || Settings { options: Options::new(), case: Case::default(), chosen: Vec::new() },
    setters: &[
        Setter::new(
            "workload",
            "NAME",
            "swift (default), colyseus, entities or windows",
            |s, given| set(&mut s.choose(given).which, given.value()),
        ),
        Setter::new("players", "N", "players per room (default 30)", |s, given| {
            set(&mut s.choose(given).players, given.within(1..=PLAYERS_MAX))
        }),
        Setter::new("cards", "N", "cards per hand (default 10)", |s, given| {
            set(&mut s.choose(given).cards, given.within(1..=CARDS_MAX))
        }),
        Setter::new(
            "scenario",
            "A|B",
            "A: the round and some hands change; B: every player's public state too (default)",
            |s, given| set(&mut s.choose(given).scenario, given.value()),
        ),
        Setter::new(
            "hands",
            "FRACTION",
            "share of hands that change per step (default 0.2)",
            |s, given| set(&mut s.choose(given).hands, given.within(0.0..=1.0)),
        ),
        Setter::new(
            "entities",
            "N",
            "number of entities, in entities and windows (default 10000)",
            |s, given| set(&mut s.choose(given).entities, given.within(1..=ENTITIES_MAX)),
        ),
        Setter::new("changed", "N", "entities that move per step (default 100)", |s, given| {
            set(&mut s.choose(given).changed, given.within(0..=ENTITIES_MAX))
        }),
        Setter::new(
            "order",
            "NAME",
            "which entities move in a step: neighbors (default) or scattered ones",
            |s, given| {
                let orders = [("neighbors", false), ("scattered", true)];
                set(&mut s.choose(given).scattered, given.one_of(&orders))
            },
        ),
        Setter::new("moving", "N", "players that move per step (default 1)", |s, given| {
            set(&mut s.choose(given).moving, given.within(0..=PLAYERS_MAX))
        }),
        Setter::new("format", "NAME", "packed (default), msgpack or json", |s, given| {
            let formats = Format::ALL.map(|format| (format.name(), format));
            set(&mut s.choose(given).format, given.one_of(&formats))
        }),
        Setter::new(
            "tracking",
            "on|off",
            "compare only modified values (default on)",
            |s, given| {
                let trackings = [("on", Tracking::On), ("off", Tracking::Off)];
                set(&mut s.choose(given).tracking, given.one_of(&trackings))
            },
        ),
        json(|s, _| on(&mut s.options.json)),
        Setter::internal("sequences", |s, given| {
            set(&mut s.options.sequences, given.within(1..=1_000_000))
        }),
        corrupt_one(|s, _| on(&mut s.options.corrupt_one)),
        Setter::internal("in-process", |s, _| on(&mut s.options.in_process)),
    ],
    run: |settings, out| Ok(sync::run(&settings.finish()?, out)?),
};

pub(crate) struct Settings {
    options: Options,
    case: Case,
    /// The options that select a case.
    chosen: Vec<&'static str>,
}

impl Settings {
    /// The case, which an option is about to change.
    fn choose(&mut self, given: &Given<'_>) -> &mut Case {
        self.chosen.push(given.name);
        &mut self.case
    }

    fn finish(self) -> Result<Options, Failure> {
        let Self { mut options, case, chosen } = self;
        // A measurement's child process receives every option.
        if !options.in_process
            && let Some(idle) = chosen.iter().find(|name| !case.heeds(name))
        {
            let text = format!("--{idle} has no effect on the workload {}", case.which);
            return Err(Usage(text).into());
        }
        if !chosen.is_empty() || options.in_process {
            options.case = Some(case);
        }
        Ok(options)
    }
}
