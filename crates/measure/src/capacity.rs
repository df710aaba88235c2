//! The cost of a room on this machine: measured at several sizes and rates, one room at a time.

use std::io;
use std::time::Duration;

use playfield_server::Pace;
use serde_json::{Value, json};

use crate::calibration::Calibration;
use crate::compare::VERSION;
use crate::drive::Drive;
use crate::fit::{Fit, Observation};
use crate::machine::Machine;
use crate::measurer::{Measurer, ROUNDS};
use crate::node::Traits;
use crate::run::{Case, Certificate, Run};
use crate::samples::Samples;
use crate::target::Need;

/// Turns of a shard a second that is full of rooms, whatever their number: 800 to 1,300 in arenas
/// of 30 players at the most that hold. Each handles all that came since the last.
const FULL_TURNS_PER_S: f64 = 1_000.0;
/// The most of a core that turns by themselves take.
const TURNS_SHARE_MAX: f64 = 0.1;
/// A room costs more where a core serves thousands of sockets than where it is measured, most of it
/// for sending: arenas of 15 and 60 players, tables of 3 and 4 and worlds of 200 and 400 took 1.07
/// to 1.13 times as much.
const AMONG_MANY: f64 = 1.1;
/// The bytes that IP and TCP with time stamps add to a segment.
const SEGMENT_BYTES: f64 = 52.0;
/// The bytes that TLS 1.3 adds to a record: its header, its type and its tag (RFC 8446, 5.2).
const RECORD_BYTES: f64 = 5.0 + 1.0 + 16.0;
/// A cost that deviates more from the fit is worth a warning.
const RESIDUAL_MAX: f64 = 0.15;
/// A machine that makes runs wait for more than this part of their time is too noisy to say.
const DELAYED_MAX: f64 = 0.25;
/// Measurements of the same room that differ by more are worth a warning.
const SPREAD_MAX: f64 = 0.1;

/// The rooms to be measured, and their players.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The type of the rooms.
    pub room_type: String,
    /// Players in each.
    pub players: usize,
    /// Says whether nobody asked for this number of players: a type that takes fewer is measured
    /// with as many as it takes.
    pub is_default_size: bool,
    /// Syncs a second, or ticks of a type without syncs, if not the type's own.
    pub hz: Option<u32>,
    /// The behavior of the players.
    pub drive: Drive,
    /// The name of the file that their scripts are from, if it is known.
    pub script: Option<String>,
    /// Over TLS, with this certificate.
    pub tls: Option<Certificate>,
    /// The duration of each measurement.
    pub time: Duration,
    /// Measures the room at other sizes and rates, too.
    pub is_whole: bool,
}

impl Plan {
    /// The plan that the room type allows, and what it allows.
    ///
    /// # Errors
    /// If the type takes fewer players, or has no rate to replace.
    pub(crate) fn settled(&self) -> io::Result<(Self, Traits)> {
        let traits = Traits::of_type(&self.room_type)?;
        let (Self { room_type, players, hz, .. }, most) = (self, traits.players_max());
        if *players > most && !self.is_default_size {
            let text = format!(
                "{players} players are more than rooms of the type {room_type:?} take: ask for \
                 {most} at most, or raise the type's `capacity`"
            );
            return Err(io::Error::other(text));
        }
        if let Some(hz) = hz.filter(|_| traits.hz() == 0) {
            let text = format!(
                "{hz} Hz can't be measured: rooms of the type {room_type:?} have neither ticks nor \
                 syncs at a rate; leave out the rate"
            );
            return Err(io::Error::other(text));
        }
        Ok((Self { players: (*players).min(most), ..self.clone() }, traits))
    }

    /// A run of some of its rooms, at the pace of time.
    pub(crate) fn case(&self, rooms: usize, seed: u64) -> Case {
        Case {
            room_type: self.room_type.clone(),
            rooms,
            players: self.players,
            hz: self.hz,
            drive: self.drive.clone(),
            pace: Pace::default(),
            tls: self.tls.clone(),
            time: self.time,
            profiler: None,
            seed,
        }
    }
}

/// The cost of rooms with so many players, at such rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Players in each.
    pub players: usize,
    /// Ticks and syncs a second; `None` for the type's own.
    pub hz: Option<u32>,
    /// The rate of messages, in relation to the one that was asked for.
    pub message_rate: f64,
    /// The share of a core that a room takes, where the core serves many.
    pub core: f64,
    /// Its parts, by name.
    pub parts: Vec<(&'static str, f64)>,
    /// Bytes to a player a second, in frames.
    pub bytes_out: f64,
    /// Bytes from a player a second, in frames.
    pub bytes_in: f64,
    /// Patches to a player a second.
    pub patches: f64,
    /// Messages to a player a second: patches, events, replies and all others.
    pub messages_out: f64,
    /// Syncs of a room a second.
    pub syncs: f64,
    /// Messages of a room a second.
    pub messages: f64,
}

/// The cost of rooms of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// The rooms that were measured.
    pub plan: Plan,
    /// The room that was asked for.
    pub cell: Cell,
    /// Other sizes and rates.
    pub others: Vec<Cell>,
    /// The difference of the rounds of the room that was asked for, in relation to their median.
    pub spread: f64,
    /// The same difference of the bytes to a player.
    pub bytes_spread: f64,
    /// The part of the CPU time that is in the system; `None` if it was too little to tell.
    pub system_share: Option<f64>,
    /// The cost over players, rates and messages; `None` if only one room was measured.
    pub fit: Option<Fit>,
    /// Memory of a room without its players, in bytes.
    pub room_bytes: f64,
    /// Memory of a connection with its player, in bytes.
    pub player_bytes: f64,
    /// The machine.
    pub machine: Machine,
    /// Its speed and its noise, with the time that its host took over all measurements.
    pub calibration: Calibration,
    /// Warnings, to be read before the figures are relied on.
    pub warnings: Vec<String>,
}

/// Measures a plan. Calls `progress` before each measurement, with its description.
///
/// # Errors
/// If a room can't be measured: see [`run`](crate::run()).
pub fn measure(plan: &Plan, progress: &mut dyn FnMut(&str)) -> io::Result<Capacity> {
    let machine = Machine::describe();
    let (plan, traits) = &plan.settled()?;
    progress("the machine");
    let calibration = Calibration::measure(&machine);
    let mut warnings = Vec::new();
    let mut measured = Measurer::new(plan, *traits);
    progress(&format!("{} with {} players", plan.room_type, plan.players));
    let rounds = measured.rounds()?;
    let counted = rounds.counted();
    let rounds = rounds.by_cost();
    let spread = spread_of(rounds, |cell| cell.core);
    let bytes_spread = spread_of(rounds, |cell| cell.bytes_out);
    let mean = |of: fn(&Cell) -> f64| rounds.iter().map(of).sum::<f64>() / rounds.len() as f64;
    // Players are elsewhere in each round, so what they are sent differs.
    let cell = Cell {
        bytes_out: mean(|cell| cell.bytes_out),
        bytes_in: mean(|cell| cell.bytes_in),
        patches: mean(|cell| cell.patches),
        messages_out: mean(|cell| cell.messages_out),
        messages: mean(|cell| cell.messages),
        ..counted.clone()
    };
    let others = if plan.is_whole { measured.others(progress)? } else { Vec::new() };
    progress("the system's share");
    let system_share = measured.system_share(cell.core)?;
    progress("memory");
    let (room_bytes, player_bytes) = measured.memory(cell.core)?;

    let fit = fit(&cell, &others);
    if let Some(fit) = fit.as_ref().filter(|fit| fit.residual > RESIDUAL_MAX) {
        warnings.push(format!(
            "costs deviate from the fit by up to {:.0} %: they grow otherwise than with players, \
             rates and messages (crowds, views); trust the measured sizes, not those between",
            fit.residual * 100.0
        ));
    }
    let calibration = calibration.now();
    warnings.extend(calibration.trouble());
    if spread > SPREAD_MAX {
        warnings.push(format!(
            "{ROUNDS} measurements of the same room differ by {:.0} %: the machine is not quiet",
            spread * 100.0
        ));
    }
    warnings.extend(measured.unmade);
    let plan = plan.clone();
    Ok(Capacity {
        plan,
        cell,
        others,
        spread,
        bytes_spread,
        system_share,
        fit,
        room_bytes,
        player_bytes,
        machine,
        calibration,
        warnings,
    })
}

/// Refuses runs whose node waited for its core for these parts of their time.
pub(crate) fn check_delayed(parts: Vec<f64>) -> io::Result<()> {
    let delayed = Samples::new(parts).percentile(50.0);
    match delayed > DELAYED_MAX {
        true => Err(io::Error::other(format!(
            "the machine is too noisy to say: the node waited for its core for {:.0} % of the \
             time; stop what else runs, and measure again",
            delayed * 100.0
        ))),
        false => Ok(()),
    }
}

impl Cell {
    /// The cost where a core serves many such rooms. The time that is in no part is the overhead of
    /// turns, which rooms of a full shard share.
    pub(crate) fn of(run: &Run, hz: Option<u32>, message_rate: f64) -> Self {
        let per_room = 1.0 / (run.room_s * run.rooms as f64);
        let sum: f64 = run.parts.iter().map(|(_, seconds)| seconds).sum();
        // Parts are taken by the clock, which runs on while something else has the core.
        let ran = if sum > run.cpu_s { run.cpu_s / sum } else { 1.0 };
        let rest = (run.cpu_s - sum * ran).max(0.0);
        let part = ran * per_room * AMONG_MANY;
        let parts = run.parts.map(|(name, seconds)| (name, seconds * part));
        let syncs = run.syncs as f64 * per_room;
        let per_turn = rest / (run.turns as f64).max(1.0);
        let share = (per_turn * FULL_TURNS_PER_S).min(TURNS_SHARE_MAX);
        let turning = sum * part * share / (1.0 - share);
        Self {
            players: run.players,
            hz,
            message_rate,
            core: sum * part + turning,
            parts: parts.into_iter().chain([("turns", turning)]).collect(),
            bytes_out: run.per_player(run.bytes_out),
            bytes_in: run.per_player(run.bytes_in),
            patches: run.per_player(run.patches),
            messages_out: run.per_player(run.messages_out),
            syncs,
            messages: run.messages_in as f64 * per_room,
        }
    }

    /// The values that its cost depends on.
    fn terms(&self) -> Vec<f64> {
        let players = self.players as f64;
        let syncs = self.syncs;
        vec![1.0, syncs, syncs * players, syncs * players * players, self.messages]
    }

    /// Bytes to and from a player a second, with those of TCP and IP, and of TLS if it is used.
    /// Each message is a segment and a record; every second one is confirmed by a segment of its
    /// own.
    #[must_use]
    pub fn wire_bytes(&self, is_tls: bool) -> [f64; 2] {
        let message = SEGMENT_BYTES + if is_tls { RECORD_BYTES } else { 0.0 };
        let [sent, received] = [self.messages_out, self.messages / self.players as f64];
        [
            self.bytes_out + message * sent + SEGMENT_BYTES * received / 2.0,
            self.bytes_in + message * received + SEGMENT_BYTES * sent / 2.0,
        ]
    }
}

impl Capacity {
    /// The resources that a room takes of a machine.
    #[must_use]
    pub fn need(&self, cell: &Cell) -> Need {
        Need {
            core: cell.core,
            bytes_per_s: self.wire_bytes(cell)[0] * cell.players as f64,
            memory: self.room_bytes + self.player_bytes * cell.players as f64,
            players: cell.players,
        }
    }

    /// Bytes to and from a player a second, as [`Cell::wire_bytes`].
    #[must_use]
    pub fn wire_bytes(&self, cell: &Cell) -> [f64; 2] {
        cell.wire_bytes(self.plan.tls.is_some())
    }

    /// The parts that the wire adds to the bytes of messages.
    #[must_use]
    pub fn wire(&self) -> &'static str {
        if self.plan.tls.is_some() { "with TLS, TCP and IP" } else { "with TCP and IP" }
    }

    /// The share of a core that the fit has for rooms like these; `None` without a fit.
    #[must_use]
    pub fn fitted(&self, cell: &Cell) -> Option<f64> {
        self.fit.as_ref().map(|fit| fit.cost(&cell.terms()))
    }

    /// All that was measured, for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let cell = |cell: &Cell| {
            json!({
                "players": cell.players,
                "hz": cell.hz,
                "message_rate": cell.message_rate,
                "core": cell.core,
                "parts": cell.parts.iter().map(|(name, core)| (*name, json!(core)))
                    .collect::<std::collections::BTreeMap<_, _>>(),
                "bytes_out_per_player_s": cell.bytes_out,
                "bytes_in_per_player_s": cell.bytes_in,
                "wire_bytes_out_per_player_s": self.wire_bytes(cell)[0],
                "patches_per_player_s": cell.patches,
                "messages_out_per_player_s": cell.messages_out,
                "syncs_per_s": cell.syncs,
                "messages_per_s": cell.messages,
            })
        };
        json!({
            "capacity": VERSION,
            "room": self.plan.room_type,
            "plan": self.plan.to_json(),
            "system_share": self.system_share,
            "cell": cell(&self.cell),
            "cells": self.others.iter().map(cell).collect::<Vec<_>>(),
            "spread": self.spread,
            "bytes_spread": self.bytes_spread,
            "fit_residual": self.fit.as_ref().map(|fit| fit.residual),
            "room_bytes": self.room_bytes,
            "player_bytes": self.player_bytes,
            "machine": self.machine.to_json(&self.calibration),
            "warnings": self.warnings,
        })
    }
}

/// The difference of the largest and the least, as a part of the middle one.
fn spread_of(cells: &[Cell], of: fn(&Cell) -> f64) -> f64 {
    let samples = Samples::new(cells.iter().map(of).collect());
    let at = |percent| samples.percentile(percent);
    if at(50.0) > 0.0 { (at(100.0) - at(0.0)) / at(50.0) } else { 0.0 }
}

/// The fit of the costs, if there are several.
fn fit(cell: &Cell, others: &[Cell]) -> Option<Fit> {
    if others.is_empty() {
        return None;
    }
    let all = others.iter().chain([cell]);
    let seen: Vec<_> =
        all.map(|cell| Observation { terms: cell.terms(), cost: cell.core }).collect();
    Fit::of(&seen)
}

#[cfg(test)]
mod tests {
    use super::Cell;

    #[test]
    fn each_message_is_a_segment_and_with_tls_a_record() {
        let cell = Cell {
            players: 10,
            hz: None,
            message_rate: 1.0,
            core: 0.01,
            parts: Vec::new(),
            bytes_out: 800.0,
            bytes_in: 64.0,
            patches: 20.0,
            // Patches, and a reply to each message.
            messages_out: 25.0,
            syncs: 20.0,
            messages: 50.0,
        };
        assert_eq!(cell.wire_bytes(false), [800.0 + 52.0 * 27.5, 64.0 + 52.0 * 17.5]);
        let [sent, received] = cell.wire_bytes(false);
        assert_eq!(cell.wire_bytes(true), [sent + 22.0 * 25.0, received + 22.0 * 5.0]);
    }
}
