//! The lock by which a node shows that the one before it on the machine is gone.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// A locked file, which names the slot of the node.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    /// The kernel that keeps the lock, and the file. Others with this name had the lock before.
    name: String,
    /// The slot of the node that had the lock before.
    slot: Option<u16>,
}

impl Lock {
    /// Takes the lock of a file; `None` without a file, or if another process has it.
    ///
    /// # Errors
    /// If the file can't be opened or locked.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        if path.as_os_str().is_empty() {
            return Ok(None);
        }
        Self::take_file(path).map_err(|error| {
            io::Error::new(error.kind(), format!("cluster.lock = {}: {error}", path.display()))
        })
    }

    fn take_file(path: &Path) -> io::Result<Option<Self>> {
        let mut options = File::options();
        let mut file = options.create(true).truncate(false).read(true).write(true).open(path)?;
        let path = path.display();
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                log::warn!(
                    "cluster.lock = {path}: another process has it, so this node can't take over \
                     from that one at once"
                );
                return Ok(None);
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let Some(name) = name_of(&file)? else {
            log::warn!("cluster.lock = {path}: this system does not name its start; not used");
            return Ok(None);
        };
        let mut slot = String::new();
        file.read_to_string(&mut slot)?;
        let slot = slot.trim().parse().ok();
        Ok(Some(Self { file, name, slot }))
    }

    /// The name in the record of the node.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The slot of the node that had the lock before, if there was one.
    pub(super) fn slot(&self) -> Option<u16> {
        self.slot
    }

    /// Notes the slot of this node, for the next one.
    pub(super) fn note(&mut self, slot: u16) {
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(slot.to_string().as_bytes())
        };
        if let Err(error) = write(&mut self.file) {
            log::warn!("cluster.lock: the slot can't be noted: {error}");
        }
    }
}

/// The start of the kernel, which keeps the locks of its processes, and the file. An image may
/// carry the name of a machine to others, but not this.
#[cfg(target_os = "linux")]
fn name_of(file: &File) -> io::Result<Option<String>> {
    use std::os::unix::fs::MetadataExt;

    let start = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let facts = file.metadata()?;
    let start = start.trim();
    Ok((!start.is_empty()).then(|| format!("{start}:{}:{}", facts.dev(), facts.ino())))
}

#[cfg(not(target_os = "linux"))]
fn name_of(_: &File) -> io::Result<Option<String>> {
    Ok(None)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::Lock;

    #[test]
    fn the_next_one_learns_the_slot_and_has_the_same_name() {
        let folder = std::env::temp_dir().join(format!("playfield-lock-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("lock");
        let mut first = Lock::take(&path).unwrap().unwrap();
        assert_eq!(first.slot(), None);
        assert!(Lock::take(&path).unwrap().is_none(), "it is taken");
        first.note(1023);
        first.note(7);
        let name = first.name().to_owned();
        drop(first);
        let next = Lock::take(&path).unwrap().unwrap();
        assert_eq!((next.slot(), next.name()), (Some(7), &*name));
        let other = Lock::take(&folder.join("other")).unwrap().unwrap();
        assert_ne!(other.name(), name);
        assert!(Lock::take(&folder.join("none/lock")).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
