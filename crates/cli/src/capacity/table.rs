//! Tables of what was measured, for people.

use std::io::{self, Write};
use std::path::Path;

use playfield_measure::{Bound, Capacity, Cell, Comparison, Proof, Target};
use serde_json::{Value, json};

/// Prints the cost of a room, what a machine carries, and the table of sizes and rates.
pub(super) fn print(capacity: &Capacity, target: &Target, out: &mut dyn Write) -> io::Result<()> {
    let Capacity { plan, cell, warnings, .. } = capacity;
    let own = |hz: Option<u32>| hz.map_or("its own rate".to_owned(), |hz| format!("{hz} Hz"));
    writeln!(
        out,
        "{} with {} players, at {}: {:.2} % of a core here",
        plan.room_type,
        plan.players,
        own(plan.hz),
        cell.core * 100.0
    )?;
    writeln!(out, "players: {}", plan.players_text())?;
    for (name, core) in &cell.parts {
        writeln!(out, "  {name:<10} {:>7.3} %", core * 100.0)?;
    }
    if let Some(share) = capacity.system_share {
        writeln!(out, "  of it {:.0} % in the system", share * 100.0)?;
    }
    let [wire_out, wire_in] = capacity.wire_bytes(cell);
    writeln!(
        out,
        "each player: {:.0} B/s out, {:.0} B/s in; {} {wire_out:.0} and {wire_in:.0}",
        cell.bytes_out,
        cell.bytes_in,
        capacity.wire()
    )?;
    writeln!(
        out,
        "memory: {:.0} kB a room, {:.1} kB a player (without the system's, for sockets)",
        capacity.room_bytes / 1e3,
        capacity.player_bytes / 1e3
    )?;
    let answer = target.answer(&capacity.need(cell));
    writeln!(
        out,
        "\n{} cores at clock {}, {:.0} % used, safety {}:",
        target.cores,
        target.clock,
        target.utilization * 100.0,
        target.safety
    )?;
    for (bound, rooms) in answer.by {
        let binds = if bound == answer.bound { "  binds" } else { "" };
        match rooms.is_finite() {
            true => writeln!(out, "  by {:<10} {:>8.0} rooms{binds}", bound.name(), rooms.floor())?,
            false => writeln!(out, "  by {:<10} no limit given", bound.name())?,
        }
    }
    writeln!(
        out,
        "  {} rooms, {} players; they take {:.0} % of the cores",
        answer.rooms,
        answer.players,
        answer.core_share * 100.0
    )?;
    target.too_small(&capacity.need(cell)).iter().try_for_each(|why| writeln!(out, "  {why}"))?;
    if let Some(price) = answer.per_thousand_hours {
        writeln!(out, "  {price:.4} for a thousand hours of players")?;
    }
    print_sizes(capacity, target, out)?;
    if let Some(fit) = &capacity.fit {
        writeln!(out, "\nfit: costs deviate by {:.0} % at most", fit.residual * 100.0)?;
    }
    warnings.iter().try_for_each(|warning| writeln!(out, "warning: {warning}"))
}

/// Rooms and players by size and rate.
fn print_sizes(capacity: &Capacity, target: &Target, out: &mut dyn Write) -> io::Result<()> {
    let cells = || capacity.others.iter().filter(|cell| cell.message_rate == 1.0);
    let mut sizes: Vec<usize> = cells().map(|cell| cell.players).collect();
    let mut rates: Vec<u32> = cells().filter_map(|cell| cell.hz).collect();
    sizes.sort_unstable();
    sizes.dedup();
    rates.sort_unstable();
    rates.dedup();
    if rates.is_empty() {
        return Ok(());
    }
    write!(out, "\nrooms (players)  ")?;
    rates.iter().try_for_each(|hz| write!(out, "{:>18}", format!("{hz} Hz")))?;
    writeln!(out)?;
    for size in sizes {
        write!(out, "{:<17}", format!("{size} players"))?;
        for hz in &rates {
            let cell = cells().find(|cell| cell.players == size && cell.hz == Some(*hz));
            let shown = cell.map_or("-".to_owned(), |cell| {
                let answer = target.answer(&capacity.need(cell));
                format!("{} ({})", answer.rooms, answer.players)
            });
            write!(out, "{shown:>18}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Prints what has changed.
pub(super) fn print_comparison(
    comparison: &Comparison,
    file: &Path,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "\nsince {}:", file.display())?;
    let Comparison { rooms, note, .. } = comparison;
    comparison.texts().iter().try_for_each(|text| writeln!(out, "  {text}"))?;
    if let Some([before, now]) = rooms {
        writeln!(out, "  {before} → {now} rooms a core")?;
    }
    note.iter().try_for_each(|note| writeln!(out, "  {note}"))
}

/// Prints the prediction beside what was found.
pub(super) fn print_proof(
    capacity: &Capacity,
    proof: &Proof,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Capacity { cell, .. } = capacity;
    writeln!(out, "\n{:<26}{:>12}{:>12}", "", "predicted", "measured")?;
    let mut row = |name: &str, predicted: f64, measured: f64, digits: usize| {
        writeln!(out, "{name:<26}{predicted:>12.digits$}{measured:>12.digits$}")
    };
    row("rooms", proof.predicted.into(), proof.measured.into(), 0)?;
    if let Some(run) = &proof.run {
        row("% of a core, a room", cell.core * 100.0, run.core_per_room() * 100.0, 3)?;
        let need = capacity.need(cell);
        row("B/s to a player", cell.bytes_out, run.per_player(run.bytes_out), 0)?;
        let memory = run.resident.saturating_sub(run.resident_before) as f64 / run.rooms as f64;
        row("kB of memory, a room", need.memory / 1e3, memory / 1e3, 0)?;
        writeln!(
            out,
            "intervals of patches: {:.1} ms, p50, {:.1} ms, p99, at {} rooms",
            run.interval_ms[0], run.interval_ms[1], run.rooms
        )?;
    }
    writeln!(out, "the prediction is off by {:+.1} %", proof.relative_error() * 100.0)?;
    writeln!(out, "measured again, after the searches: {} rooms predicted", proof.predicted_again)?;
    proof.limits.iter().try_for_each(|limit| writeln!(out, "limit: {limit}"))?;
    if proof.is_driver_bound {
        writeln!(out, "warning: the players' core was the limit; the node carries more")?;
    }
    Ok(())
}

/// The answer for a machine, for programs.
pub(super) fn answer_json(capacity: &Capacity, target: &Target) -> Value {
    let of = |cell: &Cell| {
        let answer = target.answer(&capacity.need(cell));
        let by = |bound: Bound| {
            let rooms = answer.by.iter().find(|(of, _)| *of == bound).map(|(_, rooms)| *rooms);
            rooms.filter(|rooms| rooms.is_finite()).map(f64::floor)
        };
        json!({
            "players": cell.players, "hz": cell.hz, "message_rate": cell.message_rate,
            "rooms": answer.rooms, "room_players": answer.players,
            "bound_by": answer.bound.name(), "core_share": answer.core_share,
            "rooms_by_cpu": by(Bound::Cpu), "rooms_by_bandwidth": by(Bound::Bandwidth),
            "rooms_by_memory": by(Bound::Memory),
            "price_per_thousand_player_hours": answer.per_thousand_hours,
        })
    };
    let mut answer = of(&capacity.cell);
    answer["table"] = capacity.others.iter().map(of).collect();
    answer
}
