//! A program on the disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The identity of a program's build, by its file. It does not matter who has built it: an editor
/// may run cargo beside `dev`, whose cargo then finds everything fresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    modified: Option<SystemTime>,
    length: u64,
    /// The file on its device. A linker writes another file.
    #[cfg(unix)]
    inode: (u64, u64),
}

impl Program {
    /// The program that is there now.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        let file = fs::metadata(path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        Ok(Self {
            path: path.to_owned(),
            modified: file.modified().ok(),
            length: file.len(),
            #[cfg(unix)]
            inode: {
                use std::os::unix::fs::MetadataExt;
                (file.dev(), file.ino())
            },
        })
    }
}
