//! Lists: changes of shape, then the inserted and changed elements.

use super::{Done, Made, Shape, Target, Walk, refused};
use crate::Part;
use crate::list::op::read_ops;
use crate::list::state::{ListPatch, next_index};

impl Walk<'_> {
    pub(super) fn patch_list(
        &mut self,
        shape: &Shape,
        of: &Shape,
        mut target: Target<'_>,
        part: Part,
    ) -> Done {
        let how = ListPatch::read(&mut self.reader)?;
        if target.is_missing() {
            target.set(Made::of_items(Vec::new()));
        }
        match how {
            ListPatch::Whole => {
                let made = self.whole(shape, part)?;
                self.replace(shape, target, made);
            }
            ListPatch::Elements => {
                let (values, nodes) = target.items();
                let mut next = 0;
                while let Some(index) = next_index(&mut self.reader, &mut next, values.len())? {
                    let target = Target { value: &mut values[index], node: &mut nodes[index] };
                    self.patch_at(of, index, target, part)?;
                }
            }
            ListPatch::ShapeAndElements => self.reshape_list(of, target, part)?,
        }
        Ok(())
    }

    /// Reads which elements were inserted, removed or moved, then the inserted and changed ones.
    fn reshape_list(&mut self, of: &Shape, target: Target<'_>, part: Part) -> Done {
        let (values, nodes) = target.items();
        let ops = read_ops(&mut self.reader, values.len())?;
        let mut old_indices: Vec<u32> = (0..values.len() as u32).collect();
        ops.iter().for_each(|op| op.apply(&mut old_indices));
        let old = values.drain(..).zip(nodes.drain(..));
        let mut old: Vec<Option<Made>> =
            old.map(|(value, node)| Some(Made { value, node })).collect();
        let mut items =
            Vec::with_capacity(old_indices.len().min(old.len() + self.reader.remaining()));
        for from in &old_indices {
            items.push(old.get_mut(*from as usize).and_then(Option::take));
        }
        if self.watch.listens() {
            let left = old.into_iter().map(|item| item.map(|made| made.value)).collect();
            self.watch.reshaped(left, &old_indices);
        }
        let mut next = 0;
        let mut following = next_index(&mut self.reader, &mut next, items.len())?;
        for (index, item) in items.into_iter().enumerate() {
            let is_named = following == Some(index);
            let made = match item {
                Some(mut made) => {
                    if is_named {
                        self.patch_at(of, index, made.target(), part)?;
                    }
                    made
                }
                None if is_named => {
                    let made = self.inside_each(|walk| walk.whole(of, part))?;
                    self.watch.enter_at(index);
                    self.watch.entered(&made.value);
                    self.watch.leave();
                    made
                }
                None => {
                    let what = "an inserted list element was not sent";
                    return refused(self.reader.offset(), what);
                }
            };
            values.push(made.value);
            nodes.push(made.node);
            if is_named {
                following = next_index(&mut self.reader, &mut next, old_indices.len())?;
            }
        }
        Ok(())
    }
}
