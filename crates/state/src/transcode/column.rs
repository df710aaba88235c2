//! Columns: the changes of many entries, field by field.

use playfield_wire::DecodeError;

use super::plan::{Plan, Scalar};
use super::walk::Walk;
use crate::column::{ONE_BY_ONE, packed_bytes};

impl Walk<'_> {
    /// The columns of so many values. A set of slots takes few bytes however many it names, so
    /// nothing is done here for each of them that takes no bytes itself.
    pub(super) fn columns(&mut self, plan: &Plan, count: usize) -> Result<(), DecodeError> {
        match plan {
            Plan::Scalar(scalar @ (Scalar::Bool | Scalar::Byte | Scalar::Varint)) => {
                self.integers(*scalar, count)
            }
            Plan::Scalar(_) | Plan::Enum(_) => {
                (0..count).try_for_each(|_| self.whole(plan, crate::Part::Shared))
            }
            Plan::Array(inner, length) => {
                self.array_marks(*length)?.into_iter().try_for_each(|_| self.columns(inner, count))
            }
            Plan::Struct(of) => {
                let mask = self.open_mask(of)?;
                self.out.extend_from_slice(&of.target_mask(mask));
                self.open_columns(of, mask, |walk, field| walk.columns(&field.plan, count))
            }
            Plan::Option(_) | Plan::List(_) | Plan::Map(_) => {
                let what = "an option or a collection came in a column";
                Err(DecodeError::new(self.reader.offset(), what))
            }
        }
    }

    fn integers(&mut self, scalar: Scalar, count: usize) -> Result<(), DecodeError> {
        let at = self.reader.offset();
        let width = self.byte()?;
        if width == ONE_BY_ONE {
            return (0..count).try_for_each(|_| self.scalar(scalar));
        }
        if width > 64 {
            return Err(DecodeError::new(
                at,
                format!("a column's width is at most 65, {width} came"),
            ));
        }
        self.scalar(scalar)?;
        let above = self.reader.take(packed_bytes(count, width.into()))?;
        self.out.extend_from_slice(above);
        Ok(())
    }
}
