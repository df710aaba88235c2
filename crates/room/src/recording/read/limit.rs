//! A recording is read from a file, up to a limit.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::super::Recording;
use super::RecordingError;

/// The limit on the size of a recording, which is in memory as a whole while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimit {
    /// The most bytes of its file, or of the room in a journal.
    pub bytes: u64,
}

impl Default for ReadLimit {
    /// 256 MiB.
    fn default() -> Self {
        Self { bytes: 256 << 20 }
    }
}

impl ReadLimit {
    /// The most bytes of its blocks, twice as many as of its file. A few deflated bytes may inflate
    /// to many more.
    #[must_use]
    pub fn inflated_bytes(self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX).saturating_mul(2)
    }

    /// Checks the size of a file, or of a room in a journal.
    ///
    /// # Errors
    /// [`RecordingError::TooLong`].
    pub fn check(self, bytes: u64) -> Result<(), RecordingError> {
        match bytes > self.bytes {
            true => Err(RecordingError::TooLong { bytes, limit: self.bytes }),
            false => Ok(()),
        }
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// [`RecordingError::TooLong`], or [`RecordingError::File`].
    pub fn read(self, path: &Path) -> Result<Vec<u8>, RecordingError> {
        let unreadable = |error: std::io::Error| RecordingError::File { why: error.to_string() };
        let file = File::open(path).map_err(unreadable)?;
        self.check(file.metadata().map_err(unreadable)?.len())?;
        let mut bytes = Vec::new();
        // The file may still grow.
        file.take(self.bytes).read_to_end(&mut bytes).map_err(unreadable)?;
        Ok(bytes)
    }
}

impl Recording {
    /// Reads a file. Returns the number of its bytes, too.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read), or the file is too large or can't be read.
    pub fn open(path: &Path, limit: ReadLimit) -> Result<(Self, u64), RecordingError> {
        let bytes = limit.read(path)?;
        let recording = Self::read_within(&bytes, limit.inflated_bytes())?;
        Ok((recording, bytes.len() as u64))
    }
}
