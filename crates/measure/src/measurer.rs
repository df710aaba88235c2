//! Runs of one room after the other: its cost, its memory, and the system's share.

use std::io;
use std::time::Duration;

use playfield_server::Pace;

use crate::capacity::{Cell, Plan, check_delayed};
use crate::drive::Drive;
use crate::node::Traits;
use crate::run::{Case, run};

/// The share of its core that the node of a measured room takes, most of it for cold caches: its
/// clock runs as fast as that needs. With less, it would sleep and wake more often than a full core
/// does, and with more, it would batch work that many rooms do not batch.
const NODE_SHARE: f64 = 0.65;
/// The speed of the clock in the run that tells how fast it has to be.
const GUESS_SPEED: u32 = 4;
/// The fastest clock. On a faster one, connections would be busier than any are.
const SPEED_MAX: f64 = 24.0;
/// The memory that each turn reads, in bytes, so that caches are as cold as if other rooms had run:
/// some times the size of a core's own cache. Rooms that share a core find their memory in the
/// processor's last cache, and most of the node's code in the core's own. With 8 MiB, a room of
/// four players that each send 20 messages a second took up to 1.6 times what it takes among 600
/// others; with 1 MiB, an arena of 15 took 0.7 times what it takes among 190.
pub(crate) const EVICT_BYTES: usize = 3 << 20;
/// With less CPU time, the system's clock has too few samples, in seconds.
const SAMPLED_MIN_S: f64 = 0.5;
/// The share of a core that a room takes to tell what is in the system.
const BUSY_SHARE: f64 = 0.6;
/// Measurements of the room that was asked for. The second lowest cost counts, since all that
/// disturbs a measurement adds to it.
pub(crate) const ROUNDS: u64 = 5;
/// The most players whose memory is measured at once.
const MEMORY_PLAYERS: usize = 2_000;
/// The most rooms whose memory is measured at once.
const MEMORY_ROOMS: usize = 64;
/// Rates of the table, in ticks and syncs a second.
const RATES: [u32; 4] = [10, 20, 30, 60];
/// Sizes of rooms, in relation to the one that was asked for.
const SIZES: [f64; 3] = [0.5, 1.0, 2.0];
/// Rates of messages, in relation to the one that was asked for.
const MESSAGE_RATES: [f64; 2] = [0.5, 2.0];
/// The most of a core that rooms take whose memory is measured.
const MEMORY_SHARE: f64 = 0.5;

/// Runs one room after the other.
pub(crate) struct Measurer<'a> {
    plan: &'a Plan,
    traits: Traits,
    /// The share of its core that the node takes at a speed of 1, the players and the rate of this
    /// room.
    guess: Option<(f64, usize, u32)>,
    delayed: Vec<f64>,
    /// Messages that players could not make, in sentences.
    pub(crate) unmade: Vec<String>,
}

/// The rounds of a room, by their cost.
pub(crate) struct Rounds(Vec<Cell>);

impl Rounds {
    /// The rounds, the cheapest first.
    pub(crate) fn by_cost(&self) -> &[Cell] {
        &self.0
    }

    /// The round that counts.
    pub(crate) fn counted(&self) -> &Cell {
        &self.0[self.0.len() / 4]
    }
}

impl<'a> Measurer<'a> {
    pub(crate) fn new(plan: &'a Plan, traits: Traits) -> Self {
        Self { plan, traits, guess: None, delayed: Vec::new(), unmade: Vec::new() }
    }

    /// Measures the room that was asked for.
    ///
    /// # Errors
    /// If it can't be measured, or the machine is too noisy to say.
    pub(crate) fn rounds(&mut self) -> io::Result<Rounds> {
        let plan = self.plan;
        let mut rounds = Vec::new();
        for seed in 1..=ROUNDS {
            rounds.push(self.cell(plan.players, plan.hz, 1.0, seed)?);
        }
        check_delayed(std::mem::take(&mut self.delayed))?;
        rounds.sort_by(|one, other| one.core.total_cmp(&other.core));
        Ok(Rounds(rounds))
    }

    fn case(&self, players: usize, hz: Option<u32>, message_rate: f64) -> Case {
        let drive = self.plan.drive.at_rate(message_rate);
        let pace = Pace { speed: 1, evict_bytes: EVICT_BYTES };
        Case { players, hz, drive, pace, ..self.plan.case(1, 1) }
    }

    /// Measures a room.
    fn cell(
        &mut self,
        players: usize,
        hz: Option<u32>,
        message_rate: f64,
        seed: u64,
    ) -> io::Result<Cell> {
        let case = Case { seed, ..self.case(players, hz, message_rate) };
        let speed = self.speed(&case)?;
        let run = run(&Case { pace: Pace { speed, ..case.pace }, ..case })?;
        self.delayed.push(run.node_delayed);
        if let Some(unmade) = &run.unmade {
            let text = format!("with {players} players: {unmade}");
            if !self.unmade.contains(&text) {
                self.unmade.push(text);
            }
        }
        let cell = Cell::of(&run, hz, message_rate);
        if cell.core.is_nan() || cell.core <= 0.0 {
            // The parts are taken by the clock, and cold caches are taken off the CPU time by it.
            let text = match run.parts.iter().any(|(_, seconds)| *seconds > 0.0) {
                true => {
                    "the machine is too noisy to say: something else ran in the node's time; stop \
                     what else runs, and measure again"
                }
                false => "the room has cost nothing: it has no ticks, no syncs and no messages",
            };
            return Err(io::Error::other(text));
        }
        Ok(cell)
    }

    /// The speed of the clock at which the node takes the share of its core that it should.
    fn speed(&mut self, case: &Case) -> io::Result<u32> {
        let (share, players, hz) = match self.guess {
            Some(guess) => guess,
            None => {
                let pace = Pace { speed: GUESS_SPEED, ..case.pace };
                let short = run(&Case { time: self.plan.time / 4, pace, ..case.clone() })?;
                let share = short.node_core / f64::from(GUESS_SPEED);
                *self.guess.insert((share, case.players, case.hz.unwrap_or(self.traits.hz())))
            }
        };
        let rates = case.hz.filter(|_| hz > 0).map_or(1.0, |now| f64::from(now) / f64::from(hz));
        let share = share * case.players as f64 / players as f64 * rates;
        Ok((NODE_SHARE / share).clamp(1.0, SPEED_MAX).round() as u32)
    }

    pub(crate) fn others(&mut self, progress: &mut dyn FnMut(&str)) -> io::Result<Vec<Cell>> {
        let plan = self.plan;
        let mut cells = Vec::new();
        let traits = self.traits;
        let size = |part: f64| (plan.players as f64 * part).round() as usize;
        let mut sizes = SIZES.map(|part| size(part).clamp(1, traits.players_max())).to_vec();
        sizes.dedup();
        // A type without a rate has no table of rates.
        let rates = if traits.hz() > 0 { &RATES[..] } else { &[] };
        for players in sizes {
            for &hz in rates {
                progress(&format!("{players} players at {hz} Hz"));
                cells.push(self.cell(players, Some(hz), 1.0, 1)?);
            }
        }
        for times in MESSAGE_RATES {
            if plan.drive.at_rate(times) != plan.drive {
                progress(&format!("{times} times as many messages"));
                cells.push(self.cell(plan.players, plan.hz, times, 1)?);
            }
        }
        Ok(cells)
    }

    /// The part of the CPU time in the system. The system's clock samples it, so the room is run as
    /// fast as fills most of a core, and nothing else runs on that.
    pub(crate) fn system_share(&self, core: f64) -> io::Result<Option<f64>> {
        let case = self.case(self.plan.players, self.plan.hz, 1.0);
        let speed = (BUSY_SHARE / core).clamp(1.0, 100.0).round() as u32;
        let run = run(&Case { pace: Pace { speed, evict_bytes: 0 }, ..case })?;
        Ok((run.cpu_s >= SAMPLED_MIN_S).then_some(run.system_share))
    }

    /// The memory of a room and of a player in it, in bytes: what rooms of two sizes take. The
    /// larger one takes this share of a core.
    pub(crate) fn memory(&self, core: f64) -> io::Result<(f64, f64)> {
        let of = |players: usize| {
            let rooms = memory_rooms(core, players);
            let drive = match &self.plan.drive {
                Drive::Messages { name, value, is_request, .. } => Drive::Messages {
                    name: name.clone(),
                    value: value.clone(),
                    rate: 0.0,
                    is_request: *is_request,
                },
                other => other.clone(),
            };
            let case = self.case(players, self.plan.hz, 1.0);
            let pace = Pace::default();
            let time = Duration::from_millis(100);
            let run = run(&Case { rooms, drive, pace, time, ..case })?;
            let bytes = run.resident.saturating_sub(run.resident_before) as f64;
            Ok::<_, io::Error>(bytes / rooms as f64)
        };
        let (most, least) = (self.plan.players, self.plan.players.div_ceil(2));
        let whole = of(most)?;
        if most == least {
            return Ok((0.0, whole));
        }
        let player = ((whole - of(least)?) / (most - least) as f64).max(0.0);
        let room = (whole - player * most as f64).max(0.0);
        Ok((room, (whole - room) / most as f64))
    }
}

/// Rooms that are run to measure their memory: no more than can be joined in time.
fn memory_rooms(core: f64, players: usize) -> usize {
    let most = ((MEMORY_SHARE / core) as usize).clamp(1, MEMORY_ROOMS);
    (MEMORY_PLAYERS / players).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use super::memory_rooms;

    #[test]
    fn the_memory_of_heavy_rooms_is_measured_with_few() {
        let rooms = [(0.001, 30), (0.05, 4), (0.3, 4), (1.5, 4), (0.001, 4_000)];
        assert_eq!(rooms.map(|(core, players)| memory_rooms(core, players)), [64, 10, 1, 1, 1]);
    }
}
