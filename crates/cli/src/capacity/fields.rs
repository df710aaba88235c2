//! `profile`: the bytes and the CPU time of a room by field, and of its messages and events.

use std::io::{self, Write};
use std::path::Path;

use playfield_measure::{BESIDE, Exchanged, FieldChanges, FieldCpu, RoomProfiled};
use playfield_state::{FieldProfile, Saving};

/// Fields with a smaller part of all bytes, and of the CPU time of a sync, are summed up.
const PART_MIN: f64 = 0.005;
/// The saving that hides the field from other players instead of changing its type.
const OWNER: &str = "owner";

/// Prints the fields, those with the most bytes first, then messages and events.
pub(super) fn print(room: &RoomProfiled, out: &mut dyn Write) -> io::Result<()> {
    let run = &room.run;
    writeln!(
        out,
        "{} with {} players: {:.1} B in a patch, {:.1} patches a second to each player",
        room.plan.room_type,
        run.players,
        room.per_patch(room.profiled.bytes.bytes()),
        run.per_player(run.patches)
    )?;
    writeln!(out, "players: {}", room.plan.players_text())?;
    writeln!(
        out,
        "with headers, frames and all else: {:.0} B a second to each player",
        run.per_player(run.bytes_out)
    )?;
    print_fields(room, out)?;
    print_cpu(room, out)?;
    print_exchange(room, out)
}

fn print_fields(room: &RoomProfiled, out: &mut dyn Write) -> io::Result<()> {
    let whole = room.per_patch(room.profiled.bytes.bytes());
    let whole_cpu = room.sync.whole();
    let part = |of: f64, whole: f64| if whole > 0.0 { of / whole } else { 0.0 };
    let mut fields: Vec<(&FieldProfile, &FieldCpu)> = room
        .profiled
        .fields
        .iter()
        .zip(&room.cpu)
        .filter(|(field, cpu)| field.patches.bytes() > 0 || cpu.time.all() > 0.0)
        .collect();
    fields.sort_by_key(|(field, _)| std::cmp::Reverse(field.patches.bytes()));
    let is_large = |(field, cpu): &(&FieldProfile, &FieldCpu)| {
        part(room.per_patch(field.patches.bytes()), whole) >= PART_MIN
            || part(cpu.time.all(), whole_cpu) >= PART_MIN
    };
    let (shown, rest): (Vec<_>, Vec<_>) = fields.into_iter().partition(is_large);
    let name = |path: &str| if path.is_empty() { "(root)".to_owned() } else { path.to_owned() };
    let width = shown.iter().map(|(field, _)| name(&field.path).len()).max().unwrap_or(0).max(5);
    let heads = ["field", "type", "B/patch", "%", "own", "µs/sync", "CPU %", "compare", "own"];
    let [field, of, bytes, percent, own, sync, cpu, compare, write] = heads;
    writeln!(
        out,
        "\n{field:<width$}  {of:<16}{bytes:>9}{percent:>7}{own:>7}{sync:>9}{cpu:>7}{compare:>9}\
         {write:>9}  would save"
    )?;
    for (field, cpu) in shown {
        let bytes = room.per_patch(field.patches.bytes());
        let own = part(field.patches.own as f64, field.patches.bytes() as f64) * 100.0;
        let of_whole = |saving: &Saving| part(room.per_patch_signed(saving.patches), whole);
        let saving = proposed(&field.savings, of_whole).map_or(String::new(), |saving| {
            format!("{}: −{:.0} % of all bytes", saving.to, of_whole(saving) * 100.0)
        });
        let line = format!(
            "{:<width$}  {:<16}{bytes:>9.1}{:>7.1}{own:>7.0}{:>9.2}{:>7.1}{:>9.2}{:>9.2}  {saving}",
            name(&field.path),
            field.of,
            part(bytes, whole) * 100.0,
            cpu.time.all() / 1e3,
            part(cpu.time.all(), whole_cpu) * 100.0,
            cpu.time.compare / 1e3,
            cpu.time.own / 1e3,
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    if !rest.is_empty() {
        let bytes: u64 = rest.iter().map(|(field, _)| field.patches.bytes()).sum();
        let us = rest.iter().map(|(_, cpu)| cpu.time.all()).sum::<f64>() / 1e3;
        let bytes = room.per_patch(bytes);
        writeln!(out, "{} more: {bytes:.1} B a patch, {us:.2} µs a sync", rest.len())?;
    }
    if let Some(trouble) = room.calibration.trouble() {
        writeln!(out, "warning: {trouble}")?;
    }
    Ok(())
}

/// The best change of type, or `owner` if none of them saves: that hides the field from others,
/// which most games can't.
fn proposed(savings: &[Saving], part: impl Fn(&Saving) -> f64) -> Option<&Saving> {
    let large = || savings.iter().filter(|saving| part(saving) >= PART_MIN);
    large().find(|saving| saving.to != OWNER).or_else(|| large().next())
}

/// Prints the whole as the node counts it beside the sum of the parts.
fn print_cpu(room: &RoomProfiled, out: &mut dyn Write) -> io::Result<()> {
    let (sync, whole) = (&room.sync, room.sync.whole());
    writeln!(
        out,
        "\nCPU of a sync: {:.1} µs ({:.1} to find changes, {:.1} for patches); {:.1} µs without \
         the probe",
        whole / 1e3,
        sync.changes / 1e3,
        sync.patches / 1e3,
        room.unprobed_ns / 1e3
    )?;
    let what = [
        "once a sync: the room's call, versions, what views leave out",
        "each player: versions, headers, the outbox",
        "to each player, of what all are sent",
        "digests of what players have",
    ];
    let beside =
        BESIDE.iter().zip(sync.beside).zip(what).map(|((name, ns), what)| (*name, ns, what));
    let rows = [("fields", sync.sum(), "")].into_iter().chain(beside);
    for (name, time, what) in rows.chain([("rest", sync.rest(), "not measured")]) {
        let percent = if whole > 0.0 { time / whole * 100.0 } else { 0.0 };
        let line = format!("  {name:<8}{:>9.1} µs {percent:>5.1} %  {what}", time / 1e3);
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(
        out,
        "by the clock, a sync: {:.1} µs for receiving, {:.1} µs for decoding and handlers",
        sync.receive / 1e3,
        room.messages_ns() / 1e3
    )
}

fn print_exchange(room: &RoomProfiled, out: &mut dyn Write) -> io::Result<()> {
    let exchange = &room.exchange;
    let kinds = [("message", &exchange.messages), ("event", &exchange.events)];
    let mut rows: Vec<(&str, &Exchanged)> =
        kinds.iter().flat_map(|(kind, all)| all.iter().map(move |one| (*kind, one))).collect();
    rows.retain(|(_, one)| one.count > 0);
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|(_, one)| std::cmp::Reverse(one.shared + one.own));
    let width = rows.iter().map(|(_, one)| one.name.len()).max().unwrap_or(0).max(7);
    let seconds = exchange.lasted.as_secs_f64() * room.run.players as f64;
    let heads = ["name", "kind", "a second", "B/s", "B each", "shared", "µs/sync", "µs each"];
    let [name, kind, rate, bytes, each, shared, sync, time] = heads;
    writeln!(
        out,
        "\n{name:<width$}  {kind:<8}{rate:>9}{bytes:>9}{each:>9}{shared:>8}{sync:>9}{time:>9}"
    )?;
    for (kind, one) in rows {
        let (bytes, count) = ((one.shared + one.own) as f64, one.count as f64);
        let shared = match kind {
            "event" => format!("{:.0} %", one.shared as f64 / bytes.max(1.0) * 100.0),
            _ => String::new(),
        };
        let (sync, time) = match kind {
            "message" => (
                format!("{:.2}", exchange.per_sync(one.ns) / 1e3),
                format!("{:.2}", one.ns as f64 / count / 1e3),
            ),
            _ => (String::new(), String::new()),
        };
        let line = format!(
            "{:<width$}  {kind:<8}{:>9.2}{:>9.1}{:>9.1}{shared:>8}{sync:>9}{time:>9}",
            one.name,
            count / seconds,
            bytes / seconds,
            bytes / count,
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out, "a second and B/s are for each player; µs are by the clock, not CPU time")
}

/// Prints what has changed.
pub(super) fn print_changes(
    changes: &FieldChanges,
    file: &Path,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "\nsince {}:", file.display())?;
    if changes.fields.is_empty() {
        writeln!(out, "  no field that can be compared has changed beyond the noise")?;
    }
    changes.fields.iter().try_for_each(|change| writeln!(out, "  {}", change.text))?;
    if let Some([before, now]) = changes.rooms {
        writeln!(out, "  {before} → {now} rooms a core")?;
    }
    changes.notes.iter().try_for_each(|note| writeln!(out, "  {note}"))
}

#[cfg(test)]
mod tests {
    use playfield_state::Saving;

    use super::proposed;

    #[test]
    fn a_change_of_type_is_proposed_before_hiding_the_field() {
        let saving = |to: &str, patches| Saving { to: to.into(), snapshots: 0, patches };
        let shown = |savings: &[Saving]| {
            let part = |saving: &Saving| saving.patches as f64 / 1000.0;
            proposed(savings, part).map(|saving| saving.to.clone())
        };
        let owner = saving("owner", 400);
        let named = |to: &str| Some(to.to_owned());
        assert_eq!(shown(&[owner.clone(), saving("f32", 90), saving("u8", 20)]), named("f32"));
        assert_eq!(shown(&[owner.clone(), saving("f32", -5)]), named("owner"));
        assert_eq!(shown(&[owner, saving("f32", 1)]), named("owner"), "that is next to nothing");
        assert_eq!(shown(&[saving("f32", 0)]), None);
    }
}
