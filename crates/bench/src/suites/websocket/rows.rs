//! The rows: their names and operations.

use super::deflate::{self, Compress, Context, Inflate};
use super::frames::{Memcpy, Read, Stream};
use crate::harness::rounds::{Body, Form, Run};

/// The measurement of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Masked frames with payloads of this many bytes, parsed and unmasked.
    Frames(usize),
    /// The payloads of as many such frames, copied.
    Memcpy(usize),
    /// Chat messages, compressed at a level.
    Compress(Context, u8),
    /// The same, decompressed.
    Inflate(Context, u8),
}

impl Kind {
    pub(super) fn forms(self) -> &'static [Form] {
        match self {
            Self::Frames(_) | Self::Memcpy(_) => &Form::ALL,
            Self::Compress(..) | Self::Inflate(..) => &[Form::Verified],
        }
    }

    /// The compressed size of messages relative to their own.
    pub(super) fn compressed_to(self) -> Option<f64> {
        match self {
            Self::Compress(context, level) | Self::Inflate(context, level) => {
                Some(deflate::compressed_to(context, level))
            }
            Self::Frames(_) | Self::Memcpy(_) => None,
        }
    }
}

/// A row with everything it needs.
pub(super) struct Prepared {
    pub(super) kind: Kind,
    body: Box<dyn Body>,
}

impl Prepared {
    /// `corrupt_one` corrupts one byte of the input.
    pub(super) fn new(kind: Kind, corrupt_one: bool) -> Self {
        let body: Box<dyn Body> = match kind {
            Kind::Frames(bytes) => Box::new(Read(Stream::new(bytes, corrupt_one))),
            Kind::Memcpy(bytes) => Box::new(Memcpy(Stream::new(bytes, corrupt_one))),
            Kind::Compress(context, level) => Box::new(Compress { context, level, corrupt_one }),
            Kind::Inflate(context, level) => Box::new(Inflate::new(context, level, corrupt_one)),
        };
        Self { kind, body }
    }
}

impl Body for Prepared {
    fn run(&self, form: Form, times: u64) -> Run {
        self.body.run(form, times)
    }

    fn proof(&self) -> u64 {
        self.body.proof()
    }
}

/// The rows that compress or decompress messages, by their names.
pub(crate) fn compressing() -> Vec<(&'static str, Box<dyn Body>)> {
    let rows =
        ALL.iter().filter(|(_, kind)| matches!(kind, Kind::Compress(..) | Kind::Inflate(..)));
    rows.map(|(name, kind)| (*name, Prepared::new(*kind, false).body)).collect()
}

/// The compressed size of messages, relative to their own, of a row that has one.
pub(crate) fn compressed_to(row: &str) -> Option<f64> {
    let (_, kind) = ALL.iter().find(|(name, _)| *name == row)?;
    kind.compressed_to()
}

/// The names of all rows.
pub(super) fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, _)| *name).collect()
}

const ALL: &[(&str, Kind)] = &[
    ("parse and unmask 8 B", Kind::Frames(8)),
    ("memcpy 8 B", Kind::Memcpy(8)),
    ("parse and unmask 64 B", Kind::Frames(64)),
    ("memcpy 64 B", Kind::Memcpy(64)),
    ("parse and unmask 1 KB", Kind::Frames(1 << 10)),
    ("memcpy 1 KB", Kind::Memcpy(1 << 10)),
    ("parse and unmask 64 KB", Kind::Frames(64 << 10)),
    ("memcpy 64 KB", Kind::Memcpy(64 << 10)),
    ("compress", Kind::Compress(Context::Fresh, 1)),
    ("compress, level 6", Kind::Compress(Context::Fresh, 6)),
    ("compress, takeover", Kind::Compress(Context::Kept, 1)),
    ("compress, takeover, level 6", Kind::Compress(Context::Kept, 6)),
    ("inflate", Kind::Inflate(Context::Fresh, 1)),
    ("inflate, level 6", Kind::Inflate(Context::Fresh, 6)),
    ("inflate, takeover", Kind::Inflate(Context::Kept, 1)),
    ("inflate, takeover, level 6", Kind::Inflate(Context::Kept, 6)),
];

/// All rows, or the one with this name; frames together with the copy they are compared with.
pub(super) fn chosen(name: Option<&str>) -> Vec<(&'static str, Kind)> {
    let is_beside = |kind| match kind {
        Kind::Memcpy(bytes) => {
            ALL.iter().any(|(of, other)| Some(*of) == name && *other == Kind::Frames(bytes))
        }
        _ => false,
    };
    let is_chosen = |of, kind| name.is_none_or(|name| name == of) || is_beside(kind);
    ALL.iter().copied().filter(|(of, kind)| is_chosen(*of, *kind)).collect()
}
