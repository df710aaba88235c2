//! Converting the body that is read to another schema.
//!
//! What both schemas have is copied in long runs. Masks, the order of fields and the numbers of
//! variants are rewritten where they differ; fields that the target lacks are left out. Slots, keys
//! and indices stay.

use std::ops::Range;

use playfield_wire::schema::{Policy, Struct};
use playfield_wire::writer;

use super::{EnumShape, StructShape, bits};

/// The conversion of the fields of a struct of one schema, the source, to those of another, the
/// target.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// By the source's fields: their positions among the target's. `None` if the target lacks it.
    to: Vec<Option<usize>>,
    /// The number of fields of the target.
    fields: usize,
    /// Positions of the target's fields that the source lacks. They are sent empty.
    missing: Vec<usize>,
    has_open: bool,
    has_private: bool,
}

impl Turn {
    /// `None` if both have the same fields at the same positions.
    pub(super) fn new(source: &Struct, target: &Struct) -> Option<Self> {
        if std::ptr::eq(source, target) {
            return None;
        }
        let targets: Vec<_> = target.shown().collect();
        let to: Vec<Option<usize>> = source
            .shown()
            .map(|field| targets.iter().position(|other| other.name == field.name))
            .collect();
        if targets.len() == to.len() && to.iter().enumerate().all(|(at, to)| *to == Some(at)) {
            return None;
        }
        let missing = (0..targets.len()).filter(|at| !to.contains(&Some(*at))).collect();
        let has = |is_open: bool| {
            targets.iter().any(|field| (field.policy == Policy::Everyone) == is_open)
        };
        let (has_open, has_private) = (has(true), has(false));
        Some(Self { to, fields: targets.len(), missing, has_open, has_private })
    }
}

/// The body by the target's schema. Offsets are those of the body that is read.
pub(super) struct Output<'a> {
    body: &'a [u8],
    out: &'a mut Vec<u8>,
    /// The body has been copied or left out up to this offset.
    done: usize,
}

/// The ranges of a struct's fields in the output, each with its position in the target.
pub(super) struct Pieces {
    start: usize,
    /// The start of the next one.
    begin: usize,
    of: Vec<(usize, Range<usize>)>,
}

impl<'a> Output<'a> {
    pub(super) fn new(body: &'a [u8], out: &'a mut Vec<u8>) -> Self {
        Self { body, out, done: 0 }
    }

    /// Copies the rest.
    pub(super) fn finish(mut self) {
        self.copy_to(self.body.len());
    }

    fn copy_to(&mut self, at: usize) {
        self.out.extend_from_slice(&self.body[self.done..at]);
        self.done = at;
    }

    /// Copies up to an offset, and leaves out what follows up to another.
    fn leave_out(&mut self, from: usize, to: usize) {
        self.copy_to(from);
        self.done = to;
    }

    /// Fields follow.
    pub(super) fn begin_fields(&mut self, of: &StructShape, at: usize) -> Option<Pieces> {
        of.turn.as_ref()?;
        self.copy_to(at);
        Some(Pieces { start: self.out.len(), begin: self.out.len(), of: Vec::new() })
    }

    pub(super) fn end_field(
        &mut self,
        of: &StructShape,
        pieces: &mut Pieces,
        place: usize,
        at: usize,
    ) {
        self.copy_to(at);
        match of.turn.as_ref().and_then(|turn| turn.to[place]) {
            Some(to) => pieces.of.push((to, pieces.begin..self.out.len())),
            None => self.out.truncate(pieces.begin),
        }
        pieces.begin = self.out.len();
    }

    pub(super) fn end_fields(&mut self, of: &StructShape, pieces: Pieces) {
        let Pieces { start, of: mut pieces, .. } = pieces;
        for &to in of.turn.iter().flat_map(|turn| &turn.missing) {
            // An option that is `None`, or an empty list, map or set.
            pieces.push((to, self.out.len()..self.out.len() + 1));
            self.out.push(0);
        }
        if !pieces.is_sorted_by_key(|(to, _)| *to) {
            pieces.sort_unstable_by_key(|(to, _)| *to);
            let written = self.out.split_off(start);
            for (_, piece) in pieces {
                self.out.extend_from_slice(&written[piece.start - start..piece.end - start]);
            }
        }
    }

    /// A mask was read.
    pub(super) fn mask(&mut self, of: &StructShape, mask: u64, from: usize, to: usize) {
        if let Some(turn) = &of.turn {
            self.leave_out(from, to);
            let marked = bits(mask).filter_map(|place| turn.to[place]);
            let mask = marked.fold(0_u64, |mask, to| mask | 1 << to);
            self.out.extend_from_slice(&mask.to_le_bytes()[..turn.fields.div_ceil(8)]);
        }
    }

    /// The byte of a struct without open fields was read, if there is one.
    pub(super) fn padding(&mut self, of: &StructShape, from: usize, to: usize) {
        if let Some(turn) = &of.turn {
            self.leave_out(from, to);
            if !turn.has_open {
                self.out.push(0);
            }
        }
    }

    /// The private fields of a whole struct follow. Returns where they begin if the target has none,
    /// and so no mask of them either.
    pub(super) fn begin_private(&mut self, of: &StructShape, at: usize) -> Option<usize> {
        of.turn.as_ref().filter(|turn| !turn.has_private)?;
        self.copy_to(at);
        Some(self.out.len())
    }

    pub(super) fn leave_out_private(&mut self, at: usize, start: usize) {
        self.copy_to(at);
        self.out.truncate(start);
    }

    /// The number of a variant was read.
    pub(super) fn variant(&mut self, of: &EnumShape, place: usize, from: usize, to: usize) {
        if of.numbers[place] != place {
            self.leave_out(from, to);
            writer::put_varint(self.out, of.numbers[place] as u64);
        }
    }
}
