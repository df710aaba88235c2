//! `profile`: the bytes of a room by field.

use std::io::{self, Write};
use std::path::Path;

use playfield_measure::RoomBytes;

/// Fields with a smaller part of all bytes are summed up.
const PART_MIN: f64 = 0.005;

/// Prints the fields, those with the most bytes first.
pub(super) fn print(room: &RoomBytes, out: &mut dyn Write) -> io::Result<()> {
    let whole = room.per_patch(room.profiled.bytes.bytes());
    let run = &room.run;
    writeln!(
        out,
        "{} with {} players: {whole:.1} B in a patch, {:.1} patches a second to each player",
        room.room_type,
        run.players,
        run.per_player(run.patches)
    )?;
    writeln!(
        out,
        "with headers, frames and all else: {:.0} B a second to each player",
        run.per_player(run.bytes_out)
    )?;
    let mut fields: Vec<_> =
        room.profiled.fields.iter().filter(|field| field.patches.bytes() > 0).collect();
    fields.sort_by_key(|field| std::cmp::Reverse(field.patches.bytes()));
    let part = |bytes: f64| if whole > 0.0 { bytes / whole } else { 0.0 };
    let (shown, rest): (Vec<_>, Vec<_>) = fields
        .into_iter()
        .partition(|field| part(room.per_patch(field.patches.bytes())) >= PART_MIN);
    let name = |path: &str| if path.is_empty() { "(root)".to_owned() } else { path.to_owned() };
    let width = shown.iter().map(|field| name(&field.path).len()).max().unwrap_or(0).max(5);
    let heads = ["field", "type", "B/patch", "%", "own"];
    let [field, of, bytes, percent, own] = heads;
    writeln!(out, "\n{field:<width$}  {of:<16}{bytes:>9}{percent:>7}{own:>7}  would save")?;
    for field in shown {
        let bytes = room.per_patch(field.patches.bytes());
        let own = field.patches.own as f64 / field.patches.bytes() as f64 * 100.0;
        let saving = field.savings.iter().find(|saving| saving.patches > 0);
        let saving = saving.map_or(String::new(), |saving| {
            let part = part(room.per_patch_signed(saving.patches)) * 100.0;
            format!("{}: −{part:.0} % of all bytes", saving.to)
        });
        let line = format!(
            "{:<width$}  {:<16}{bytes:>9.1}{:>7.1}{own:>7.0}  {saving}",
            name(&field.path),
            field.of,
            part(bytes) * 100.0
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    if !rest.is_empty() {
        let bytes: u64 = rest.iter().map(|field| field.patches.bytes()).sum();
        writeln!(out, "{} more: {:.1} B a patch", rest.len(), room.per_patch(bytes))?;
    }
    if let Some(trouble) = room.calibration.trouble() {
        writeln!(out, "warning: {trouble}")?;
    }
    Ok(())
}

/// Prints what has changed.
pub(super) fn print_changes(
    changes: &[(String, bool)],
    file: &Path,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "\nsince {}:", file.display())?;
    if changes.is_empty() {
        return writeln!(out, "  no field has changed beyond the noise");
    }
    changes.iter().try_for_each(|(text, _)| writeln!(out, "  {text}"))
}
