//! The bytes of a body, turned into those of another schema.
//!
//! What both schemas have is copied in long pieces. Masks, the order of fields and the numbers of
//! variants are rewritten where they differ; fields that the target lacks are left out. Slots, keys
//! and indices stay.

use playfield_wire::reader::Reader;
use playfield_wire::{DecodeError, writer};

use super::list::ListShape;
use crate::list::op::Op;
use crate::map::wire::count_slots;
use crate::quantized::Scale;
use crate::walk::{
    Done, EnumShape, KeyShape, MapShape, PatchSink, Pieces, Plain, Run, Shape, Sink, StructShape,
    Walk,
};
use crate::{PlayerId, column};

pub(super) struct ByteSink<'a> {
    body: &'a [u8],
    out: &'a mut Vec<u8>,
    /// Up to here the body has been copied or left out.
    done: usize,
    /// The length of the list whose patch is read.
    length: usize,
}

impl<'a> ByteSink<'a> {
    pub(super) fn new(body: &'a [u8], out: &'a mut Vec<u8>) -> Self {
        Self { body, out, done: 0, length: usize::MAX }
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
}

impl Sink for ByteSink<'_> {
    type Made = ();
    type Key = ();
    type Entries = ();
    type Fields = ();

    #[inline]
    fn plain(&mut self, reader: &mut Reader<'_>, of: Plain) -> Done {
        of.skip(reader)
    }
    fn steps(&mut self, _: Scale, _: bool, _: i64) {}
    fn present(&mut self) {}
    fn option(&mut self, _: Option<()>) {}
    fn items(&mut self, _: Vec<()>) {}
    fn key(&mut self, reader: &mut Reader<'_>, of: KeyShape) -> Done {
        of.skip(reader)
    }
    fn entries(&mut self) {}
    fn put_entry(&mut self, (): &mut (), _: Option<u32>, (): (), (): ()) -> bool {
        true
    }
    fn map(&mut self, (): ()) {}
    fn fields(&mut self, _: &StructShape) {}
    fn put_field(&mut self, (): &mut (), _: &StructShape, _: usize, (): ()) {}
    fn structure(&mut self, _: &StructShape, (): (), _: usize) -> Done {
        Ok(())
    }

    fn private(walk: &mut Walk<'_, Self>, of: &StructShape, (): &mut ()) -> Done {
        if of.turn.as_ref().is_none_or(|turn| turn.has_private) {
            return walk.whole_private(of, &mut ());
        }
        // The target has no such fields, so no mask of them either.
        walk.sink.copy_to(walk.reader.offset());
        let start = walk.sink.out.len();
        walk.whole_private(of, &mut ())?;
        walk.sink.copy_to(walk.reader.offset());
        walk.sink.out.truncate(start);
        Ok(())
    }

    fn enumeration(walk: &mut Walk<'_, Self>, of: &EnumShape) -> Done {
        walk.variant(of).map(|_| ())
    }

    fn begin_fields(&mut self, of: &StructShape, at: usize) -> Option<Pieces> {
        of.turn.as_ref()?;
        self.copy_to(at);
        Some(Pieces { start: self.out.len(), begin: self.out.len(), of: Vec::new() })
    }

    fn end_field(
        &mut self,
        of: &StructShape,
        pieces: &mut Option<Pieces>,
        place: usize,
        at: usize,
    ) {
        let (Some(turn), Some(pieces)) = (&of.turn, pieces) else { return };
        self.copy_to(at);
        match turn.to[place] {
            Some(to) => pieces.of.push((to, pieces.begin..self.out.len())),
            None => self.out.truncate(pieces.begin),
        }
        pieces.begin = self.out.len();
    }

    fn end_fields(&mut self, of: &StructShape, pieces: Option<Pieces>) {
        let (Some(turn), Some(Pieces { start, of: mut pieces, .. })) = (&of.turn, pieces) else {
            return;
        };
        for &to in &turn.missing {
            // An option that holds nothing, or an empty list, map or set.
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

    fn mask(&mut self, of: &StructShape, mask: u64, from: usize, to: usize) {
        if let Some(turn) = &of.turn {
            self.leave_out(from, to);
            turn.put_mask(mask, self.out);
        }
    }

    fn padding(&mut self, of: &StructShape, from: usize, to: usize) {
        if let Some(turn) = &of.turn {
            self.leave_out(from, to);
            if !turn.has_open {
                self.out.push(0);
            }
        }
    }

    fn variant(&mut self, of: &EnumShape, place: usize, from: usize, to: usize) {
        if of.numbers[place] != place {
            self.leave_out(from, to);
            writer::put_varint(self.out, of.numbers[place] as u64);
        }
    }
}

/// There is no copy: every patch fits.
impl PatchSink for ByteSink<'_> {
    type At<'a> = ();
    type News = ();
    /// How many entries.
    type Taken = usize;
    type Group<'a> = usize;

    fn replace(&mut self, _: &Shape, (): &mut (), (): ()) {}
    fn inside<'a>(&mut self, (): &'a mut ()) -> Option<()> {
        Some(())
    }
    fn begin_collection(&mut self, _: &Shape, (): &mut ()) {
        self.length = usize::MAX;
    }
    fn begin_array(&mut self, _: &Shape, _: usize, (): &mut (), _: &[usize], _: usize) -> Done {
        Ok(())
    }
    fn begin_struct(&mut self, _: &StructShape, (): &mut (), _: u64, _: usize) -> Done {
        Ok(())
    }

    fn length(&mut self, (): &mut ()) -> usize {
        self.length
    }

    fn reshape(&mut self, (): &mut (), ops: &[Op]) -> Vec<Run> {
        let mut shape = ListShape::unknown();
        ops.iter().for_each(|op| shape.apply(op));
        let length = shape.0.iter().fold(0, |length, run| run.count.saturating_add(length));
        self.length = usize::try_from(length).unwrap_or(usize::MAX);
        shape.0
    }

    fn put_element(&mut self, (): &mut (), _: usize, (): ()) {}
    fn element<'a>(&mut self, (): &'a mut (), _: usize) {}

    fn field<'a>(&mut self, _: &StructShape, (): &'a mut (), _: usize) -> Option<()> {
        Some(())
    }
    fn open_field(&mut self, _: &StructShape, (): &mut (), _: usize) -> bool {
        false
    }
    fn close_field(&mut self, _: &StructShape, (): &mut (), _: usize) {}
    fn set_field(&mut self, _: &StructShape, (): &mut (), _: usize, (): ()) {}
    fn remove_field(&mut self, _: &StructShape, (): &mut (), _: usize) {}

    fn remove_entry(&mut self, (): &mut (), _: u32, (): &mut ()) {}
    fn define_entry(&mut self, (): &mut (), _: u32, (): (), (): (), (): &mut ()) {}
    fn came_and_went(&mut self, _: &MapShape, (): &mut (), (): ()) -> bool {
        true
    }
    fn entry<'a>(&mut self, (): &'a mut (), _: u32) -> Option<((), Option<PlayerId>)> {
        Some(((), None))
    }
    fn enter_own(&mut self, (): &()) {}
    fn own_entry<'a>(&mut self, (): &'a mut (), (): &()) -> Option<()> {
        Some(())
    }
    fn remove_own(&mut self, (): &mut (), (): &()) {}
    fn put_own(&mut self, _: &MapShape, (): &mut (), (): (), (): ()) {}

    fn take(&mut self, reader: &mut Reader<'_>, (): &mut ()) -> Result<usize, DecodeError> {
        count_slots(reader)
    }
    fn put_back(&mut self, (): &mut (), _: usize) {}
    fn group<'a>(&mut self, taken: &'a mut usize) -> usize {
        *taken
    }
    fn group_length(group: &usize) -> usize {
        *group
    }
    fn group_field<'a>(&mut self, _: &StructShape, group: &'a mut usize, _: usize) -> usize {
        *group
    }
    fn group_element<'a>(&mut self, group: &'a mut usize, _: usize) -> usize {
        *group
    }
    fn member<'a>(&mut self, _: &'a mut usize, _: usize) -> ((), usize) {
        ((), 0)
    }

    fn column(&mut self, reader: &mut Reader<'_>, shape: &Shape, count: &mut usize) -> Done {
        match shape {
            Shape::Steps(scale, _) => {
                column::skip(reader, *count, |reader| scale.decode(reader).map(drop))
            }
            Shape::Plain(plain) if plain.is_integer() => {
                column::skip(reader, *count, |reader| plain.skip(reader))
            }
            Shape::Plain(plain) => (0..*count).try_for_each(|_| plain.skip(reader)),
            _ => unreachable!("only numbers and texts are read as columns"),
        }
    }
}
