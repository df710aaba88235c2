//! One field of many entries at a time.

use playfield_wire::DecodeError;

use super::node::{Made, Node, Target, field_of};
use super::plain::float;
use super::{Shape, Walk, bits, steps_digest};
use crate::Part;
use crate::array::read_marked;
use crate::change::PathStep;
use crate::profile::Step;

impl Walk<'_> {
    /// Reads the changes of several entries, or of one part of each of them. `names` are those of
    /// the entries, for a listener, and `inside` is the path from there to the part.
    pub(super) fn columns(
        &mut self,
        shape: &Shape,
        mut targets: Vec<Target<'_>>,
        names: &[PathStep],
        inside: &mut Vec<PathStep>,
    ) -> Result<(), DecodeError> {
        let at = self.reader.offset();
        match shape {
            Shape::Plain(plain) => {
                let mut column = Vec::with_capacity(targets.len());
                plain.read_column(&mut self.reader, targets.len(), |_, value, digest| {
                    column.push(Made { value, node: Node::Leaf(digest) });
                })?;
                self.values_read(at, Some(targets.len()));
                self.put_column(shape, targets, column, names, inside);
                Ok(())
            }
            Shape::Steps(scale, is_short) => {
                let mut column = Vec::with_capacity(targets.len());
                scale.decode_column(&mut self.reader, targets.len(), |steps| {
                    let value = float(scale.value(steps), *is_short);
                    column.push(Made::leaf((value, steps_digest(*scale, steps, *is_short))));
                })?;
                self.values_read(at, Some(targets.len()));
                self.put_column(shape, targets, column, names, inside);
                Ok(())
            }
            Shape::Struct(of) => {
                let mask = self.mask(of, of.open)?;
                self.each_field(of, bits(mask), |walk, place| {
                    let parts = targets.iter_mut().filter_map(|target| {
                        let (members, nodes) = target.again().fields();
                        field_of(of, place, members, nodes)
                    });
                    let parts = parts.collect();
                    let field = &of.fields[place];
                    inside.push(PathStep::Name(field.name.as_str().into()));
                    walk.columns(&field.of, parts, names, inside)?;
                    inside.pop();
                    Ok(())
                })
            }
            Shape::Array(of, length) => {
                for place in read_marked(&mut self.reader, *length)? {
                    let parts = targets.iter_mut().map(|target| {
                        let (values, nodes) = target.again().items();
                        Target { value: &mut values[place], node: &mut nodes[place] }
                    });
                    let parts: Vec<_> = parts.collect();
                    inside.push(PathStep::Index(place));
                    self.inside(Step::Elements, |walk| walk.columns(of, parts, names, inside))?;
                    inside.pop();
                }
                Ok(())
            }
            _ => targets.into_iter().enumerate().try_for_each(|(place, target)| {
                let depth = self.watch.depth();
                self.watch.go(names.get(place), inside);
                self.patch(shape, target, Part::Shared)?;
                self.watch.back_to(depth);
                Ok(())
            }),
        }
    }

    fn put_column(
        &mut self,
        shape: &Shape,
        targets: Vec<Target<'_>>,
        column: Vec<Made>,
        names: &[PathStep],
        inside: &[PathStep],
    ) {
        for (place, (target, made)) in targets.into_iter().zip(column).enumerate() {
            let depth = self.watch.depth();
            self.watch.go(names.get(place), inside);
            self.replace(shape, target, made);
            self.watch.back_to(depth);
        }
    }
}
