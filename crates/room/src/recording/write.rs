//! The bytes of a recording's file.

use super::{About, BlockKind, BlockWriter, HEAD};

/// Makes the bytes of a recording of the blocks that a [recorder](super::Recorder) gave to its
/// [files](super::Files).
#[derive(Debug)]
pub struct RecordingWriter {
    blocks: BlockWriter,
}

impl RecordingWriter {
    /// Appends the begin of a file.
    pub fn begin(about: &About, out: &mut Vec<u8>) -> Self {
        out.extend(HEAD);
        let mut this = Self { blocks: BlockWriter::default() };
        this.block(BlockKind::About, &about.encode(), out);
        this
    }

    /// Appends a block.
    pub fn block(&mut self, kind: BlockKind, content: &[u8], out: &mut Vec<u8>) {
        self.blocks.put(kind as u8, content, true, out);
    }
}
