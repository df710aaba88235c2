//! Values and their patches, from the source's form to the target's.

use std::ops::Range;

use playfield_wire::reader::Reader;
use playfield_wire::{DecodeError, writer};

use super::plan::{FieldPlan, Form, Plan, Scalar, StructPlan, is_marked};
use crate::Part;
use crate::option::OptionPatch;
use crate::viewed::ViewPatch;

/// A walk through a body.
pub(super) struct Walk<'a> {
    body: &'a [u8],
    pub(super) reader: Reader<'a>,
    pub(super) out: &'a mut Vec<u8>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(body: &'a [u8], out: &'a mut Vec<u8>) -> Self {
        Self { body, reader: Reader::new(body), out }
    }

    /// Passes on the bytes from an offset up to here.
    pub(super) fn pass_from(&mut self, start: usize) {
        self.out.extend_from_slice(&self.body[start..self.reader.offset()]);
    }

    /// Passes on a byte.
    pub(super) fn byte(&mut self) -> Result<u8, DecodeError> {
        let byte = self.reader.u8()?;
        self.out.push(byte);
        Ok(byte)
    }

    /// Passes on a varint.
    pub(super) fn varint(&mut self) -> Result<u64, DecodeError> {
        let start = self.reader.offset();
        let value = self.reader.varint()?;
        self.pass_from(start);
        Ok(value)
    }

    pub(super) fn scalar(&mut self, scalar: Scalar) -> Result<(), DecodeError> {
        let start = self.reader.offset();
        match scalar {
            Scalar::Bool => drop(self.reader.bool()?),
            Scalar::Byte => drop(self.reader.u8()?),
            Scalar::Varint => drop(self.reader.varint()?),
            Scalar::F32 => drop(self.reader.take(4)?),
            Scalar::F64 => drop(self.reader.take(8)?),
            Scalar::Text => drop(self.reader.text()?),
            Scalar::Bytes => drop(self.reader.bytes()?),
            Scalar::Unit => return self.zero("nothing"),
        }
        self.pass_from(start);
        Ok(())
    }

    /// Passes on the byte 0 that stands for `what`.
    fn zero(&mut self, what: &str) -> Result<(), DecodeError> {
        let at = self.reader.offset();
        match self.byte()? {
            0 => Ok(()),
            other => Err(DecodeError::new(at, format!("{what} is one byte 0, {other} came"))),
        }
    }

    /// A whole value.
    pub(super) fn whole(&mut self, plan: &Plan, part: Part) -> Result<(), DecodeError> {
        match plan {
            Plan::Scalar(scalar) => self.scalar(*scalar),
            Plan::Option(inner) => {
                let is_there = self.reader.bool()?;
                self.out.push(is_there.into());
                if is_there { self.whole(inner, part) } else { Ok(()) }
            }
            Plan::List(inner) => {
                let count = self.reader.count()?;
                writer::put_varint(self.out, count as u64);
                (0..count).try_for_each(|_| self.whole(inner, part))
            }
            Plan::Array(inner, length) => (0..*length).try_for_each(|_| self.whole(inner, part)),
            Plan::Map(map) => self.whole_map(map, part),
            Plan::Struct(of) => self.whole_struct(of, part),
            Plan::Enum(variants) => {
                let at = self.reader.offset();
                let number = self.reader.varint()?;
                let variant = usize::try_from(number).ok().and_then(|number| variants.get(number));
                let (number, fields) = variant
                    .ok_or_else(|| DecodeError::new(at, format!("{number} is no variant")))?;
                writer::put_varint(self.out, *number);
                self.whole_struct(fields, part)
            }
        }
    }

    fn whole_struct(&mut self, of: &StructPlan, part: Part) -> Result<(), DecodeError> {
        if of.open.is_empty() && of.pads {
            let at = self.out.len();
            self.zero("a struct without fields")?;
            self.out.truncate(at);
        }
        self.fields(of, of.open.iter(), &of.missing, |walk, field| walk.whole(&field.plan, part))?;
        if !of.target_has_open && of.pads {
            self.out.push(0);
        }
        if part == Part::All && !of.private.is_empty() {
            let start = self.out.len();
            let mask = self.mask(of, &of.private)?;
            self.marked(of, &of.private, mask)?;
            if !of.target_has_private {
                self.out.truncate(start);
            }
        }
        Ok(())
    }

    /// The fields, in the target's order.
    fn fields<'p>(
        &mut self,
        of: &StructPlan,
        fields: impl Iterator<Item = &'p FieldPlan>,
        missing: &[usize],
        mut pass: impl FnMut(&mut Self, &FieldPlan) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let start = self.out.len();
        let mut pieces: Vec<(usize, Range<usize>)> = Vec::new();
        for field in fields {
            let at = self.out.len();
            pass(self, field)?;
            match field.to {
                None => self.out.truncate(at),
                Some(to) if of.reorders => pieces.push((to, at - start..self.out.len() - start)),
                Some(_) => {}
            }
        }
        if !of.reorders {
            return Ok(());
        }
        for &to in missing {
            let at = self.out.len() - start;
            // An option that holds nothing, or a list, a map or a set of nothing.
            self.out.push(0);
            pieces.push((to, at..at + 1));
        }
        if !pieces.is_sorted_by_key(|(to, _)| *to) {
            pieces.sort_unstable_by_key(|(to, _)| *to);
            let written = self.out.split_off(start);
            pieces.into_iter().for_each(|(_, piece)| self.out.extend_from_slice(&written[piece]));
        }
        Ok(())
    }

    /// Reads a mask in which only these fields may be marked.
    fn mask(&mut self, of: &StructPlan, fields: &[FieldPlan]) -> Result<&'a [u8], DecodeError> {
        let at = self.reader.offset();
        let mask = self.reader.take(of.source_fields.div_ceil(8))?;
        let marks = mask.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
        if marks != fields.iter().filter(|field| is_marked(mask, field.from)).count() {
            return Err(DecodeError::new(at, "a mask marks fields that can't come here"));
        }
        Ok(mask)
    }

    /// Writes the target's mask, and the patches of those fields that the source's marks.
    fn marked(
        &mut self,
        of: &StructPlan,
        fields: &[FieldPlan],
        mask: &[u8],
    ) -> Result<(), DecodeError> {
        self.out.extend_from_slice(&of.target_mask(mask));
        self.patches(of, fields, mask, Part::All)
    }

    fn patches(
        &mut self,
        of: &StructPlan,
        fields: &[FieldPlan],
        mask: &[u8],
        part: Part,
    ) -> Result<(), DecodeError> {
        let marked = fields.iter().filter(|field| is_marked(mask, field.from));
        self.fields(of, marked, &[], |walk, field| walk.field(field, part))
    }

    /// A patch.
    pub(super) fn patch(&mut self, plan: &Plan, part: Part) -> Result<(), DecodeError> {
        match plan {
            Plan::Scalar(_) | Plan::Enum(_) => self.whole(plan, part),
            Plan::Option(inner) => {
                let how = OptionPatch::read(&mut self.reader)?;
                self.out.push(how as u8);
                match how {
                    OptionPatch::Nothing => Ok(()),
                    OptionPatch::Whole => self.whole(inner, part),
                    OptionPatch::Patch => self.patch(inner, part),
                }
            }
            Plan::List(inner) => self.list_patch(inner, part),
            Plan::Array(inner, length) => {
                self.array_marks(*length)?.into_iter().try_for_each(|_| self.patch(inner, part))
            }
            Plan::Map(map) => self.map_patch(map, part),
            Plan::Struct(of) => self.struct_patch(of, part),
        }
    }

    fn struct_patch(&mut self, of: &StructPlan, part: Part) -> Result<(), DecodeError> {
        let at = self.reader.offset();
        let mask = self.reader.take(of.source_fields.div_ceil(8))?;
        let last = mask.iter().rposition(|byte| *byte != 0);
        let fields = last.map_or(0, |last| 8 * last + mask[last].ilog2() as usize + 1);
        if fields > of.source_fields {
            return Err(DecodeError::new(at, "a mask marks fields that can't come here"));
        }
        let is_private = of.private.iter().any(|field| is_marked(mask, field.from));
        if part == Part::Shared && is_private {
            let what = "a field that is its owner's alone came in the part that all share";
            return Err(DecodeError::new(at, what));
        }
        self.out.extend_from_slice(&of.target_mask(mask));
        self.patches(of, &of.open, mask, part)?;
        self.patches(of, &of.private, mask, Part::All)
    }

    /// The patch of a field.
    fn field(&mut self, field: &FieldPlan, part: Part) -> Result<(), DecodeError> {
        match (field.form, &field.plan) {
            (Form::OwnEntry, Plan::Map(map)) => self.own_entry(map),
            (Form::ViewOfEntries, Plan::Map(map)) => self.view_of_entries(map),
            (Form::ViewOfWhole, plan) => {
                let how = ViewPatch::read(&mut self.reader)?;
                self.out.push(how as u8);
                match how {
                    ViewPatch::Left => Ok(()),
                    ViewPatch::Entered | ViewPatch::Replaced => self.whole(plan, Part::All),
                    ViewPatch::Changed => self.patch(plan, Part::All),
                }
            }
            (_, plan) => self.patch(plan, part),
        }
    }

    /// Passes on the mask of an array, and says which elements it marks.
    pub(super) fn array_marks(&mut self, length: usize) -> Result<Vec<usize>, DecodeError> {
        let at = self.reader.offset();
        let mask = self.reader.take(length.div_ceil(8))?;
        let marked: Vec<usize> =
            (0..8 * mask.len()).filter(|place| is_marked(mask, *place)).collect();
        if let Some(last) = marked.last().filter(|last| **last >= length) {
            let what = format!("element {last} is past the end of an array of {length}");
            return Err(DecodeError::new(at, what));
        }
        self.out.extend_from_slice(mask);
        Ok(marked)
    }

    /// Reads the mask of columns: only open fields may be marked.
    pub(super) fn open_mask(&mut self, of: &StructPlan) -> Result<&'a [u8], DecodeError> {
        self.mask(of, &of.open)
    }

    /// The columns of those open fields that the mask marks.
    pub(super) fn open_columns(
        &mut self,
        of: &StructPlan,
        mask: &[u8],
        column: impl FnMut(&mut Self, &FieldPlan) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let marked = of.open.iter().filter(|field| is_marked(mask, field.from));
        self.fields(of, marked, &[], column)
    }
}
