//! The page of a capacity.

use super::{Bars, Page, Plot, Series, Table, swift_state_tree};
use crate::capacity::{Capacity, Cell};
use crate::prove::Proof;
use crate::target::{Answer, Target};

/// The page of a capacity: the machine, the answer for a target, what was measured, and the proof.
#[must_use]
pub fn capacity(capacity: &Capacity, target: &Target, proof: Option<&Proof>) -> Page {
    let plan = &capacity.plan;
    let mut page =
        Page::new(&format!("Capacity of {} with {} players", plan.room_type, plan.players));
    capacity.warnings.iter().for_each(|warning| page.warning(warning));
    answer(&mut page, capacity, target);
    sizes(&mut page, capacity, target);
    cost(&mut page, capacity);
    if let Some(proof) = proof {
        prove(&mut page, capacity, proof);
    }
    page.heading("Others' figures");
    let (table, source) = swift_state_tree();
    page.paragraph(source);
    page.table(&table);
    page.machine(capacity.machine.fields().into_iter().chain(capacity.calibration.fields()));
    page
}

fn answer(page: &mut Page, capacity: &Capacity, target: &Target) {
    let answer = target.answer(&capacity.need(&capacity.cell));
    page.heading("Answer");
    page.paragraph(&format!("Players: {}.", capacity.plan.players_text()));
    page.paragraph(&format!(
        "{} rooms and {} players on {} cores at clock {}, with utilization {} and safety {}; {} \
         binds. They take {:.0} % of the cores.",
        answer.rooms,
        answer.players,
        target.cores,
        target.clock,
        target.utilization,
        target.safety,
        answer.bound.name(),
        answer.core_share * 100.0
    ));
    let mut table = Table::new(["by", "rooms"]);
    for (bound, rooms) in answer.by {
        let rooms = if rooms.is_finite() { rooms.floor().to_string() } else { "no limit".into() };
        table.row([bound.name().to_owned(), rooms]);
    }
    page.table(&table);
    target.too_small(&capacity.need(&capacity.cell)).iter().for_each(|why| page.warning(why));
    if let Some(price) = answer.per_thousand_hours {
        page.paragraph(&format!("{price:.4} for a thousand hours of players."));
    }
}

/// Rooms and players by size and rate.
fn sizes(page: &mut Page, capacity: &Capacity, target: &Target) {
    let sizes = sorted(cells(capacity).map(|cell| cell.players));
    let rates = sorted(cells(capacity).filter_map(|cell| cell.hz));
    if rates.is_empty() {
        return;
    }
    page.heading("Rooms (players) by size and rate");
    let heads = rates.iter().map(|hz| format!("{hz} Hz"));
    let mut table = Table::new(["players of a room".to_owned()].into_iter().chain(heads));
    for size in sizes {
        let at = |hz: &u32| {
            let mut same = cells(capacity).filter(|cell| cell.players == size);
            same.find(|cell| cell.hz == Some(*hz)).map_or(String::new(), |cell| {
                let Answer { rooms, players, .. } = target.answer(&capacity.need(cell));
                format!("{rooms} ({players})")
            })
        };
        table.row([size.to_string()].into_iter().chain(rates.iter().map(at)));
    }
    page.table(&table);
}

fn cost(page: &mut Page, capacity: &Capacity) {
    let cell = &capacity.cell;
    page.heading("CPU time of a room");
    page.paragraph(&format!("{:.3} % of a core, in parts:", cell.core * 100.0));
    let mut parts = Bars::new("part", "% of a core");
    cell.parts.iter().for_each(|(name, core)| parts.bar(name, percent(*core)));
    page.bars(&parts);
    if let Some(share) = capacity.system_share {
        page.paragraph(&format!("{:.0} % of it is in the system.", share * 100.0));
    }
    let [wire_out, wire_in] = capacity.wire_bytes(cell);
    let mut table = Table::new(["a player", "bytes a second", capacity.wire()]);
    for (way, bytes, wire) in [("out", cell.bytes_out, wire_out), ("in", cell.bytes_in, wire_in)] {
        table.row([way.to_owned(), format!("{bytes:.0}"), format!("{wire:.0}")]);
    }
    page.table(&table);
    page.paragraph(&format!(
        "Memory: {:.0} kB a room, {:.1} kB a player, without the system's for sockets.",
        capacity.room_bytes / 1e3,
        capacity.player_bytes / 1e3
    ));
    let mut plot = Plot::new("CPU of a room over players", "players", "% of a core");
    for hz in sorted(cells(capacity).filter_map(|cell| cell.hz)) {
        let of_rate = cells(capacity).filter(|cell| cell.hz == Some(hz));
        let points = of_rate.map(|cell| (cell.players as f64, percent(cell.core)));
        plot.series.push(Series::line(format!("{hz} Hz"), points.collect()));
    }
    page.plot(&plot);
    fit(page, capacity);
}

/// Measured costs over those that the fit has.
fn fit(page: &mut Page, capacity: &Capacity) {
    let Some(fit) = &capacity.fit else { return };
    page.heading("Fit");
    page.paragraph(&format!("Costs deviate by {:.0} % at most.", fit.residual * 100.0));
    let all = capacity.others.iter().chain([&capacity.cell]);
    let points: Vec<_> = all
        .filter_map(|cell| Some((percent(capacity.fitted(cell)?), percent(cell.core))))
        .collect();
    let most = points.iter().fold(0.0, |most: f64, (fitted, _)| most.max(*fitted));
    let mut plot =
        Plot::new("Measured against fitted", "fitted, % of a core", "measured, % of a core");
    plot.series.push(Series::points("a size and a rate", points));
    plot.series.push(Series::line("equal", vec![(0.0, 0.0), (most, most)]));
    page.plot(&plot);
}

fn prove(page: &mut Page, capacity: &Capacity, proof: &Proof) {
    page.heading("Proof");
    page.paragraph(&format!(
        "Predicted, before any run of several rooms: {} rooms on one core of this machine, used to \
         the full. Measured: {}, the median of {} searches. The prediction is off by {:+.1} %.",
        proof.predicted,
        proof.measured,
        proof.searches.len(),
        proof.relative_error() * 100.0
    ));
    let mut table = Table::new(["", "predicted", "measured"]);
    table.row(["rooms".to_owned(), proof.predicted.to_string(), proof.measured.to_string()]);
    if let Some(run) = &proof.run {
        let mut row = |name: &str, [predicted, measured]: [f64; 2], digits: usize| {
            let [predicted, measured] = [predicted, measured].map(|of| format!("{of:.digits$}"));
            table.row([name.to_owned(), predicted, measured]);
        };
        let cell = &capacity.cell;
        row("% of a core, a room", [cell.core, run.core_per_room()].map(percent), 3);
        row("B/s to a player", [cell.bytes_out, run.per_player(run.bytes_out)], 0);
        let memory = run.resident.saturating_sub(run.resident_before) as f64 / run.rooms as f64;
        row("kB of memory, a room", [capacity.need(cell).memory, memory].map(|of| of / 1e3), 0);
    }
    page.table(&table);
    page.paragraph(&format!(
        "Measured again after the searches, {} rooms are predicted.",
        proof.predicted_again
    ));
    proof.limits.iter().for_each(|limit| page.paragraph(&format!("Limit: {limit}.")));
    if proof.is_driver_bound {
        page.warning("the players' core was the limit; the node carries more");
    }
    let title = "Interval of patches over rooms, and the rooms that were predicted";
    let mut plot = Plot::new(title, "rooms", "ms, p99");
    let mut most: f64 = 0.0;
    for (name, holds) in [("in time", true), ("too late", false)] {
        let runs = proof.tried.iter().filter(|run| run.holds == holds);
        let points: Vec<_> = runs.map(|run| (f64::from(run.rooms), run.interval_ms[1])).collect();
        most = points.iter().fold(most, |most, (_, interval)| most.max(*interval));
        plot.series.push(Series::points(name, points));
    }
    let predicted = f64::from(proof.predicted);
    plot.series.push(Series::line("predicted", vec![(predicted, 0.0), (predicted, most)]));
    page.plot(&plot);
}

/// The rooms of the table, with messages at the rate that was asked for.
fn cells(capacity: &Capacity) -> impl Iterator<Item = &Cell> {
    capacity.others.iter().filter(|cell| cell.message_rate == 1.0)
}

fn sorted<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// A share as a percentage with three decimals.
fn percent(share: f64) -> f64 {
    (share * 1e5).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::capacity as page;
    use crate::capacity::Cell;
    use crate::compare::tests::capacity;
    use crate::fit::Fit;
    use crate::prove::{Proof, Tried};
    use crate::report::tests::check_tags;
    use crate::target::Target;

    #[test]
    fn the_page_has_the_figures_of_the_measurement_and_of_the_proof() {
        let mut measured = capacity(0.0125, 849.0);
        measured.plan.room_type = "arena <b>".into();
        measured.warnings = vec!["the machine is not quiet: its load was 3.10".into()];
        measured.cell.parts = vec![("send", 0.0075), ("ticks", 0.005)];
        let cell =
            |players, hz, core| Cell { players, hz: Some(hz), core, ..measured.cell.clone() };
        let others = vec![cell(15, 10, 0.004), cell(30, 10, 0.007), cell(30, 20, 0.0125)];
        measured.others = others;
        measured.fit = Some(Fit { factors: vec![0.01, 0.0, 0.0, 0.0, 0.0], residual: 0.25 });
        let target = Target { cores: 8.0, price: Some(0.3), ..Target::default() };
        let tried = |rooms, p99, holds| Tried {
            search: 1,
            rooms,
            interval_ms: [50.0, p99],
            node_core: 0.9,
            holds,
        };
        let proof = Proof {
            predicted: 80,
            measured: 76,
            searches: vec![76, 76, 78],
            limits: vec!["80 rooms: late".into()],
            tried: vec![tried(80, 120.5, false), tried(76, 60.25, true)],
            run: None,
            is_driver_bound: false,
            predicted_again: 78,
        };

        let html = page(&measured, &target, Some(&proof)).html();
        check_tags(&html);
        let rooms = target.answer(&measured.need(&measured.cell)).rooms;
        for text in [
            "Capacity of arena &lt;b&gt; with 30 players",
            "Warning: the machine is not quiet: its load was 3.10",
            "Players: messages, 5 a second.",
            &format!("<td>cpu</td><td class=\"n\">{rooms}</td>"),
            &format!("<td class=\"n\">{rooms} ({})</td>", rooms * 30),
            "<td>send</td><td class=\"n\">0.75</td>",
            "Costs deviate by 25 % at most",
            "80 rooms on one core of this machine",
            "The prediction is off by +5.3 %",
            "Limit: 80 rooms: late.",
            "<td>calibration_us</td><td class=\"n\">200.0</td>",
            "SwiftStateTree&#39;s own estimate",
        ] {
            assert!(html.contains(text), "{text}");
        }
        assert_eq!(html.matches("<svg ").count(), 3);
        let brief = page(&capacity(0.0125, 849.0), &Target::default(), None).html();
        check_tags(&brief);
        assert!(!brief.contains("<svg ") && !brief.contains("Proof"));
    }
}
