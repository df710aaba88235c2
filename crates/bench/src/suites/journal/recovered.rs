//! Recovery from the files of a journal.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use playfield_room::frozen::Frozen;
use playfield_room::recording::{BlockKind, Blocks, HEAD, Journal, RecoveredRoom, recover};
use playfield_room::{Link, MemoryStore, PlayerId, Thaw};

use super::till::{Receipts, Till, till, till_of};
use super::{Folder, Options, start};

/// Kills a node while requests are in flight, and recovers its rooms. Returns the requests that
/// were answered, and whether one of them is lost.
pub(super) fn kill(options: &Options, window: usize, number: usize) -> io::Result<(u64, bool)> {
    let name = format!("playfield-bench-journal-{}-{window}-{number}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    let server = start(options, true, &folder.0)?;
    let mut clients = Receipts::connect(options, window, &server, true)?;
    clients.begin();
    clients.run(options.time / 2);
    clients.check()?;
    // SIGKILL.
    drop(server);
    // The clients still read the answers that it has sent.
    clients.script.ends_with_server();
    clients.drain();
    clients.check()?;
    if options.corrupt_one {
        let (path, bytes) = files(&folder.0)?.pop().unwrap_or_default();
        File::options().write(true).open(path)?.set_len(bytes.len() as u64 / 2)?;
    }
    let kept = look(&folder.0)?;
    let Receipts { counts, seats, per_room, .. } = &clients.script.answers;
    let mut lost = 0;
    for (client, (answered, player)) in counts.iter().zip(seats).enumerate() {
        let kept = kept.get(&(till_of(client / per_room), *player)).copied().unwrap_or_default();
        // Requests in flight may have been executed.
        if !(*answered as u64..=(answered + window) as u64).contains(&kept) {
            if lost == 0 {
                let but = format!("{answered} requests were answered, and {kept} are recovered");
                eprintln!("client {client}, when the node was killed: {but}");
            }
            lost += 1;
        }
    }
    let answered = clients.script.answered;
    if lost > 1 || answered == 0 {
        eprintln!("{lost} clients have lost requests; {answered} were answered before the kill");
    }
    Ok((answered, lost > 0 || answered == 0))
}

/// The files of a journal, in their order.
fn files(folder: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "journal") {
            files.push((path.display().to_string(), fs::read(&path)?));
        }
    }
    files.sort();
    Ok(files)
}

/// Runs the rooms of a journal again. Returns the number of requests that they have executed, by
/// room key and player.
pub(super) fn look(folder: &Path) -> io::Result<BTreeMap<(String, PlayerId), u64>> {
    let files = files(folder)?;
    let journal = Journal::read(files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])));
    if journal.is_damaged() {
        return Err(io::Error::other(format!("the journal is damaged: {:?}", journal.faults())));
    }
    let (room_type, mut counts) = (till(true), BTreeMap::new());
    for (_, recording) in journal.rooms() {
        let recovered = recover(recording, &room_type).map_err(io::Error::other)?;
        let RecoveredRoom::Open(form) = recovered.room else { continue };
        let frozen = form.finish().map_err(io::Error::other)?;
        let frozen = Frozen::read(&frozen).map_err(io::Error::other)?;
        let store = Some(Arc::new(MemoryStore::new()) as _);
        let thaw = Thaw { frozen: &frozen, store, link: &mut |_| Link(0) };
        let room = (room_type.thaw)(thaw).map_err(io::Error::other)?;
        let mut save = Vec::new();
        room.whole(&mut save);
        let till: Till = playfield_state::load(&save).map_err(io::Error::other)?;
        let key = recording.about().key.clone().unwrap_or_default();
        counts.extend(till.counts.iter().map(|(player, count)| ((key.clone(), *player), *count)));
    }
    Ok(counts)
}

/// The sizes of the last blocks of a journal.
pub(super) fn blocks(folder: &Path) -> io::Result<Vec<usize>> {
    let files = files(folder)?;
    let (_, last) = files.last().ok_or_else(|| io::Error::other("there is no journal"))?;
    let blocks = last.strip_prefix(HEAD).map(|body| Blocks::new(body, 0));
    let blocks = blocks.into_iter().flatten().filter_map(Result::ok);
    let blocks = blocks.filter(|block| block.kind == BlockKind::Rooms as u8);
    Ok(blocks.map(|block| block.content.len()).collect())
}
