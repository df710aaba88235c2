//! Fields that not everyone sees, and values that a patch creates.

use playfield_wire::DecodeError;
use serde_json::{Map, Value};

use super::node::field_of;
use super::{
    Access, Done, FieldShape, Made, Node, Shape, StructShape, Target, Walk, bits, refused,
};
use crate::Part;
use crate::map::wire::ALL;
use crate::viewed::ViewPatch;

impl Walk<'_> {
    /// Reads the private fields of a whole struct.
    pub(super) fn whole_private(&mut self, of: &StructShape, target: Target<'_>) -> Done {
        let left_out =
            self.output.as_mut().and_then(|output| output.begin_private(of, self.reader.offset()));
        let mask = self.mask(of, of.private)?;
        let (members, nodes) = target.fields();
        self.watch.mute(true);
        self.private_fields(of, mask, members, nodes)?;
        self.watch.mute(false);
        if let (Some(output), Some(start)) = (&mut self.output, left_out) {
            output.leave_out_private(self.reader.offset(), start);
        }
        Ok(())
    }

    pub(super) fn private_fields(
        &mut self,
        of: &StructShape,
        mask: u64,
        members: &mut Map<String, Value>,
        nodes: &mut [Option<Node>],
    ) -> Done {
        self.each_field(of, bits(mask & of.private), |walk, place| {
            let field = &of.fields[place];
            walk.watch.enter(&field.name);
            let is_new = nodes[place].is_none();
            if is_new {
                members.insert(field.name.clone(), Value::Null);
                nodes[place] = Some(Node::Missing);
                walk.watch.mute(true);
            }
            let mut is_seen = true;
            if let Some(target) = field_of(of, place, members, nodes) {
                is_seen = walk.private_field(field, target)?;
            }
            if is_new {
                walk.watch.mute(false);
            }
            if is_seen && is_new {
                walk.watch.entered(&members[&field.name]);
            } else if !is_seen {
                nodes[place] = None;
                let old = members.remove(&field.name).unwrap_or_default();
                // A value may have entered the view and left it since.
                if !is_new {
                    walk.watch.left(old);
                }
            }
            walk.watch.leave();
            Ok(())
        })
    }

    /// Reads one of them. Returns whether it is still visible.
    fn private_field(
        &mut self,
        field: &FieldShape,
        target: Target<'_>,
    ) -> Result<bool, DecodeError> {
        let at = self.reader.offset();
        match (field.access, &field.of) {
            (Access::OwnEntry, Shape::Map(of)) => self.patch_own(of, target)?,
            (Access::ViewedMap, Shape::Map(of)) if self.reader.peek() == Some(ALL) => {
                self.reader.u8()?;
                let made = self.whole_map(of, Part::All)?;
                self.replace(&field.of, target, made);
            }
            (Access::Viewed, shape) => match ViewPatch::read(&mut self.reader)? {
                ViewPatch::Left => return Ok(false),
                ViewPatch::Entered | ViewPatch::Replaced => {
                    let made = self.whole(shape, Part::All)?;
                    self.replace(shape, target, made);
                }
                ViewPatch::Changed if target.is_missing() => {
                    return refused(at, "a value was changed, but it is not in view in this copy");
                }
                ViewPatch::Changed => self.patch(shape, target, Part::All)?,
            },
            (_, shape) => self.patch(shape, target, Part::All)?,
        }
        Ok(true)
    }

    /// A new struct whose fields with these bits are about to be read.
    pub(super) fn unsent_struct(
        &mut self,
        of: &StructShape,
        mask: u64,
    ) -> Result<Made, DecodeError> {
        let mut made = Made::structure(of);
        let (members, nodes) = made.target().fields();
        for place in bits(of.open) {
            let field = &of.fields[place];
            let made = self.unsent(&field.of, mask >> place & 1 == 1)?;
            members.insert(field.name.clone(), made.value);
            nodes[place] = Some(made.node);
        }
        self.implied_fields(of, made.target())?;
        Ok(made)
    }

    /// A part of a new value. Only an empty part may be left out.
    pub(super) fn unsent(&mut self, shape: &Shape, is_marked: bool) -> Result<Made, DecodeError> {
        if is_marked {
            return Ok(Made::missing());
        }
        match self.blank(shape)? {
            Some(made) => Ok(made),
            None => refused(self.reader.offset(), "a part of a new value was not sent"),
        }
    }

    /// The values of private fields that no body has sent yet.
    pub(super) fn implied_fields(&mut self, of: &StructShape, target: Target<'_>) -> Done {
        if of.private == 0 {
            return Ok(());
        }
        let (members, nodes) = target.fields();
        for place in bits(of.private) {
            let field = &of.fields[place];
            let made = match field.access {
                Access::OwnEntry | Access::ViewedMap => {
                    self.spend(1)?;
                    Made::empty_map()
                }
                Access::Owner if self.owner == Some(self.viewer) => match self.blank(&field.of)? {
                    Some(made) => made,
                    None => continue,
                },
                _ => continue,
            };
            members.insert(field.name.clone(), made.value);
            nodes[place] = Some(made.node);
        }
        Ok(())
    }

    fn blank(&mut self, shape: &Shape) -> Result<Option<Made>, DecodeError> {
        let mut places = 0;
        let made = Made::blank(shape, &mut places);
        self.spend(places)?;
        Ok(made)
    }

    /// Bounds by the length of the body what is created without a byte for it.
    fn spend(&mut self, places: usize) -> Done {
        match self.implied_left.checked_sub(places) {
            Some(left) => self.implied_left = left,
            None => {
                let what = "this body implies too many values that it does not send";
                return refused(self.reader.offset(), what);
            }
        }
        Ok(())
    }
}
