//! `profile`: the bytes and the CPU time of a room by field, and of its messages and events.

use std::io::{self, Write};
use std::path::Path;

use playfield_measure::{Exchanged, FieldChanges, FieldCpu, RoomProfiled, SyncCpu};
use playfield_state::FieldProfile;

/// Fields with a smaller part of all bytes, and of the CPU time of all fields, are summed up.
const PART_MIN: f64 = 0.005;

/// Prints the fields, those with the most bytes first, then messages and events.
pub(super) fn print(room: &RoomProfiled, out: &mut dyn Write) -> io::Result<()> {
    let run = &room.run;
    writeln!(
        out,
        "{} with {} players: {:.1} B in a patch, {:.1} patches a second to each player",
        room.room_type,
        run.players,
        room.per_patch(room.profiled.bytes.bytes()),
        run.per_player(run.patches)
    )?;
    writeln!(
        out,
        "with headers, frames and all else: {:.0} B a second to each player",
        run.per_player(run.bytes_out)
    )?;
    print_fields(room, out)?;
    print_cpu(&room.sync_cpu(), out)?;
    print_exchange(room, out)
}

fn print_fields(room: &RoomProfiled, out: &mut dyn Write) -> io::Result<()> {
    let whole = room.per_patch(room.profiled.bytes.bytes());
    let whole_cpu = room.sync_cpu().fields;
    let part = |of: f64, whole: f64| if whole > 0.0 { of / whole } else { 0.0 };
    let mut fields: Vec<(&FieldProfile, &FieldCpu)> = room
        .profiled
        .fields
        .iter()
        .zip(&room.cpu)
        .filter(|(field, _)| field.patches.bytes() > 0)
        .collect();
    fields.sort_by_key(|(field, _)| std::cmp::Reverse(field.patches.bytes()));
    let is_large = |(field, cpu): &(&FieldProfile, &FieldCpu)| {
        part(room.per_patch(field.patches.bytes()), whole) >= PART_MIN
            || part(cpu.per_sync, whole_cpu) >= PART_MIN
    };
    let (shown, rest): (Vec<_>, Vec<_>) = fields.into_iter().partition(is_large);
    let name = |path: &str| if path.is_empty() { "(root)".to_owned() } else { path.to_owned() };
    let width = shown.iter().map(|(field, _)| name(&field.path).len()).max().unwrap_or(0).max(5);
    let heads = ["field", "type", "B/patch", "%", "own", "µs/sync", "ns/player"];
    let [field, of, bytes, percent, own, sync, player] = heads;
    writeln!(
        out,
        "\n{field:<width$}  {of:<16}{bytes:>9}{percent:>7}{own:>7}{sync:>9}{player:>11}  would save"
    )?;
    for (field, cpu) in shown {
        let bytes = room.per_patch(field.patches.bytes());
        let own = field.patches.own as f64 / field.patches.bytes() as f64 * 100.0;
        let saving = field.savings.iter().find(|saving| saving.patches > 0);
        let saving = saving.map_or(String::new(), |saving| {
            let part = part(room.per_patch_signed(saving.patches), whole) * 100.0;
            format!("{}: −{part:.0} % of all bytes", saving.to)
        });
        let line = format!(
            "{:<width$}  {:<16}{bytes:>9.1}{:>7.1}{own:>7.0}{:>9.2}{:>11.1}  {saving}",
            name(&field.path),
            field.of,
            part(bytes, whole) * 100.0,
            (cpu.time.compare + cpu.time.shared) / 1e3,
            cpu.time.own,
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    if !rest.is_empty() {
        let bytes: u64 = rest.iter().map(|(field, _)| field.patches.bytes()).sum();
        writeln!(out, "{} more: {:.1} B a patch", rest.len(), room.per_patch(bytes))?;
    }
    if let Some(trouble) = room.calibration.trouble() {
        writeln!(out, "warning: {trouble}")?;
    }
    Ok(())
}

/// Prints the whole as the node counts it beside the sum of the parts.
fn print_cpu(cpu: &SyncCpu, out: &mut dyn Write) -> io::Result<()> {
    let SyncCpu { changes, patches, receive, fields, copies, messages } = *cpu;
    let whole = changes + patches;
    writeln!(
        out,
        "\nCPU of a sync: {:.1} µs ({:.1} to find changes, {:.1} for patches)",
        whole / 1e3,
        changes / 1e3,
        patches / 1e3
    )?;
    let rest = "the way to entries and players, masks, headers";
    for (name, time, what) in
        [("fields", fields, ""), ("copies", copies, "to each player"), ("rest", cpu.rest(), rest)]
    {
        let percent = if whole > 0.0 { time / whole * 100.0 } else { 0.0 };
        let line = format!("  {name:<8}{:>9.1} µs {percent:>5.0} %  {what}", time / 1e3);
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(
        out,
        "receiving, a sync: {:.1} µs, of it {:.1} in handlers; the rest is reading from sockets",
        receive / 1e3,
        messages / 1e3
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
    writeln!(out, "a second and B/s are for each player")
}

/// Prints what has changed.
pub(super) fn print_changes(
    changes: &FieldChanges,
    file: &Path,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "\nsince {}:", file.display())?;
    if changes.fields.is_empty() {
        writeln!(out, "  no field has changed beyond the noise")?;
    }
    changes.fields.iter().try_for_each(|change| writeln!(out, "  {}", change.text))?;
    match changes.rooms {
        Some([before, now]) => writeln!(out, "  {before} → {now} rooms a core"),
        None => writeln!(
            out,
            "  CPU time is not compared: it was measured on another machine, kernel or build"
        ),
    }
}
