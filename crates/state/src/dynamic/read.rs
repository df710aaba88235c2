//! Reading by a shape: structs, options, arrays, lists.

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use serde_json::{Map, Value};

use super::node::{Made, Node, Target, field_of};
use super::plain::{Plain, float};
use super::shape::{Access, FieldShape, Shape, StructShape, steps_digest};
use crate::array::read_marked;
use crate::change::{Watch, moved};
use crate::list::op::read_ops;
use crate::list::state::{ListPatch, next_index};
use crate::option::OptionPatch;
use crate::viewed::ViewPatch;
use crate::{Part, PlayerId, digest, map};

/// Reads one body. It goes as deep as the shape does.
pub(crate) struct Reading<'a, 'b> {
    pub(crate) reader: Reader<'b>,
    /// Whose copy it is.
    pub(crate) viewer: PlayerId,
    /// Whose this place is: the key of the nearest map keyed by player.
    pub(crate) owner: Option<PlayerId>,
    pub(crate) watch: Watch<'a>,
    /// How many places may still be made of which nothing was said.
    pub(crate) unsaid_left: usize,
}

type Done = Result<(), DecodeError>;

impl Reading<'_, '_> {
    /// A whole value.
    pub(crate) fn whole(&mut self, shape: &Shape, part: Part) -> Result<Made, DecodeError> {
        let reader = &mut self.reader;
        Ok(match shape {
            Shape::Plain(plain) => Made::leaf(plain.read(reader)?),
            Shape::Present => Made::leaf((Value::Bool(true), digest::of_bytes(&[]))),
            Shape::Steps(scale, is_short) => {
                let steps = scale.decode(reader)?;
                let value = float(scale.value(steps), *is_short);
                Made::leaf((value, steps_digest(*scale, steps, *is_short)))
            }
            Shape::Enum(of) => {
                let mut bytes = reader.clone();
                let value = of.read(reader)?;
                let length = reader.offset() - bytes.offset();
                Made::leaf((value, digest::of_bytes(bytes.take(length)?)))
            }
            Shape::Option(of) => match reader.bool()? {
                true => self.whole(of, part)?.some(),
                false => Made::nothing(),
            },
            Shape::List(of) => {
                let count = reader.count()?;
                Made::of_items((0..count).map(|_| self.whole(of, part)).collect::<Result<_, _>>()?)
            }
            Shape::Array(of, length) => Made::of_items(
                (0..*length).map(|_| self.whole(of, part)).collect::<Result<_, _>>()?,
            ),
            Shape::Map(of) => self.whole_map(of, part)?,
            Shape::Struct(of) => self.whole_struct(of, part)?,
        })
    }

    fn whole_struct(&mut self, of: &StructShape, part: Part) -> Result<Made, DecodeError> {
        let (mut members, mut nodes) = (Map::new(), Vec::with_capacity(of.fields.len()));
        for field in &of.fields {
            let made = match field.access {
                Access::Open => Some(self.whole(&field.of, part)?),
                _ => self.unsaid(field)?,
            };
            nodes.push(made.map(|made| {
                members.insert(field.name.clone(), made.value);
                made.node
            }));
        }
        if of.open == 0 {
            Plain::Unit.read(&mut self.reader)?;
        }
        let mut made = Made { value: Value::Object(members), node: Node::Struct(nodes) };
        if part == Part::All && of.private != 0 {
            let mask = self.mask(of, of.private)?;
            self.private_fields(of, mask, made.target())?;
        }
        Ok(made)
    }

    /// What stands in a field that not everyone sees until something is said of it.
    fn unsaid(&mut self, field: &FieldShape) -> Result<Option<Made>, DecodeError> {
        match field.access {
            Access::OwnEntry | Access::ViewedMap => {
                self.spend(1)?;
                Ok(Some(Made::empty_map()))
            }
            Access::Owner if self.owner == Some(self.viewer) => self.blank(&field.of),
            _ => Ok(None),
        }
    }

    fn blank(&mut self, shape: &Shape) -> Result<Option<Made>, DecodeError> {
        let mut places = 0;
        let made = shape.blank(&mut places);
        self.spend(places)?;
        Ok(made)
    }

    /// What goes without saying is made all the same: no more of it than is in proportion to what
    /// came.
    fn spend(&mut self, places: usize) -> Done {
        self.unsaid_left = self.unsaid_left.checked_sub(places).ok_or_else(|| {
            DecodeError::new(
                self.reader.offset(),
                "far more goes without saying than was said: this body is refused",
            )
        })?;
        Ok(())
    }

    /// A patch.
    pub(crate) fn patch(&mut self, shape: &Shape, target: Target<'_>, part: Part) -> Done {
        match shape {
            Shape::Plain(_) | Shape::Present | Shape::Steps(..) | Shape::Enum(_) => {
                let made = self.whole(shape, part)?;
                self.replace(shape, target, made);
                Ok(())
            }
            Shape::Option(of) => self.patch_option(shape, of, target, part),
            Shape::List(of) => self.patch_list(shape, of, target, part),
            Shape::Array(of, length) => {
                let marked = read_marked(&mut self.reader, *length)?;
                let (values, nodes) = target.items();
                marked.into_iter().try_for_each(|place| {
                    self.patch_at(
                        of,
                        place,
                        Target { value: &mut values[place], node: &mut nodes[place] },
                        part,
                    )
                })
            }
            Shape::Map(of) => self.patch_map(of, target, part),
            Shape::Struct(of) => self.patch_struct(of, target, part),
        }
    }

    /// Puts another value in a place, and tells of the difference.
    pub(crate) fn replace(&mut self, shape: &Shape, target: Target<'_>, made: Made) {
        // An enum's JSON says of which kind it is, and what is in it.
        let known = !matches!(shape, Shape::Enum(_));
        self.watch.replaced(known.then_some(shape), target.value, &made.value);
        target.set(made);
    }

    /// A mask of fields, in which only these may be marked.
    pub(crate) fn mask(&mut self, of: &StructShape, known: u64) -> Result<u64, DecodeError> {
        let at = self.reader.offset();
        let mut bytes = [0; 8];
        bytes[..of.mask_bytes()].copy_from_slice(self.reader.take(of.mask_bytes())?);
        match u64::from_le_bytes(bytes) {
            mask if mask & !known == 0 => Ok(mask),
            mask => Err(DecodeError::new(
                at,
                format!("the mask {mask:#x} marks fields that can't come here"),
            )),
        }
    }

    fn patch_struct(&mut self, of: &StructShape, target: Target<'_>, part: Part) -> Done {
        let at = self.reader.offset();
        let mask = self.mask(of, of.open | of.private)?;
        if part == Part::Shared && mask & of.private != 0 {
            return Err(DecodeError::new(
                at,
                "a field that is its owner's alone came in the part that all share",
            ));
        }
        let (members, nodes) = target.fields();
        for place in bits(mask & of.open) {
            let field = &of.fields[place];
            if let Some(target) = field_of(of, place, members, nodes) {
                self.watch.enter(&field.name);
                self.patch(&field.of, target, part)?;
                self.watch.leave();
            }
        }
        self.private(of, mask, members, nodes)
    }

    fn private_fields(&mut self, of: &StructShape, mask: u64, target: Target<'_>) -> Done {
        let (members, nodes) = target.fields();
        self.in_silence(|reading| reading.private(of, mask, members, nodes))
    }

    /// The fields that not everyone sees.
    fn private(
        &mut self,
        of: &StructShape,
        mask: u64,
        members: &mut Map<String, Value>,
        nodes: &mut [Option<Node>],
    ) -> Done {
        for place in bits(mask & of.private) {
            let field = &of.fields[place];
            self.watch.enter(&field.name);
            match field_of(of, place, members, nodes) {
                Some(target) => {
                    if !self.private_here(field, target)? {
                        nodes[place] = None;
                        self.watch.left(members.remove(&field.name).unwrap_or_default());
                    }
                }
                None => {
                    if let Some(made) = self.private_new(field)? {
                        self.watch.entered(&made.value);
                        nodes[place] = Some(made.node);
                        members.insert(field.name.clone(), made.value);
                    }
                }
            }
            self.watch.leave();
        }
        Ok(())
    }

    /// A field that is seen here. Says whether it still is.
    fn private_here(
        &mut self,
        field: &FieldShape,
        target: Target<'_>,
    ) -> Result<bool, DecodeError> {
        let Shape::Map(of) = &field.of else { return self.private_value(field, target) };
        match field.access {
            Access::OwnEntry => self.patch_own(of, target)?,
            Access::ViewedMap if self.reader.peek() == Some(map::wire::ALL) => {
                self.reader.u8()?;
                let made = self.whole_map(of, Part::All)?;
                self.replace(&field.of, target, made);
            }
            Access::Viewed => return self.private_value(field, target),
            _ => self.patch_map(of, target, Part::All)?,
        }
        Ok(true)
    }

    fn private_value(
        &mut self,
        field: &FieldShape,
        target: Target<'_>,
    ) -> Result<bool, DecodeError> {
        if field.access != Access::Viewed {
            self.patch(&field.of, target, Part::All)?;
            return Ok(true);
        }
        match ViewPatch::read(&mut self.reader)? {
            ViewPatch::Left => return Ok(false),
            ViewPatch::Entered | ViewPatch::Replaced => {
                let made = self.whole(&field.of, Part::All)?;
                self.replace(&field.of, target, made);
            }
            ViewPatch::Changed => self.patch(&field.of, target, Part::All)?,
        }
        Ok(true)
    }

    /// A field that was not seen here, if it is now.
    fn private_new(&mut self, field: &FieldShape) -> Result<Option<Made>, DecodeError> {
        if field.access != Access::Viewed {
            return self.new_value(&field.of).map(Some);
        }
        let at = self.reader.offset();
        match ViewPatch::read(&mut self.reader)? {
            // It may have come and gone since.
            ViewPatch::Left => Ok(None),
            ViewPatch::Entered | ViewPatch::Replaced => self.whole(&field.of, Part::All).map(Some),
            ViewPatch::Changed => {
                Err(DecodeError::new(at, "a change came for a value that is not in view here"))
            }
        }
    }

    /// A patch of what is not here yet: of all of it, in the part *all*.
    fn new_value(&mut self, shape: &Shape) -> Result<Made, DecodeError> {
        let part = Part::All;
        let mut made = match shape {
            Shape::Plain(_) | Shape::Present | Shape::Steps(..) | Shape::Enum(_) => {
                return self.whole(shape, part);
            }
            Shape::Option(_) => Made::nothing(),
            Shape::List(_) => Made::of_items(Vec::new()),
            Shape::Map(_) => Made::empty_map(),
            Shape::Array(of, length) => {
                let mut marked = read_marked(&mut self.reader, *length)?.into_iter().peekable();
                let items =
                    (0..*length).map(|place| self.element(of, marked.next_if_eq(&place).is_some()));
                return Ok(Made::of_items(items.collect::<Result<_, _>>()?));
            }
            Shape::Struct(of) => return self.struct_from_nothing(of),
        };
        self.in_silence(|reading| reading.patch(shape, made.target(), part))?;
        Ok(made)
    }

    fn struct_from_nothing(&mut self, of: &StructShape) -> Result<Made, DecodeError> {
        let mask = self.mask(of, of.open | of.private)?;
        let (mut members, mut nodes) = (Map::new(), Vec::with_capacity(of.fields.len()));
        for (place, field) in of.fields.iter().enumerate() {
            let made = match field.access {
                Access::Open => Some(self.element(&field.of, mask >> place & 1 == 1)?),
                _ => self.unsaid(field)?,
            };
            nodes.push(made.map(|made| {
                members.insert(field.name.clone(), made.value);
                made.node
            }));
        }
        let mut made = Made { value: Value::Object(members), node: Node::Struct(nodes) };
        self.private_fields(of, mask, made.target())?;
        Ok(made)
    }

    /// A part of what is not here yet. Only what has nothing in it goes without saying.
    fn element(&mut self, shape: &Shape, is_marked: bool) -> Result<Made, DecodeError> {
        if is_marked {
            return self.new_value(shape);
        }
        let blank = self.blank(shape)?;
        blank.ok_or_else(|| {
            DecodeError::new(
                self.reader.offset(),
                "a part of a value that is new here was not sent",
            )
        })
    }

    fn patch_option(&mut self, shape: &Shape, of: &Shape, target: Target<'_>, part: Part) -> Done {
        let at = self.reader.offset();
        match OptionPatch::read(&mut self.reader)? {
            OptionPatch::Nothing => self.replace(shape, target, Made::nothing()),
            OptionPatch::Whole => {
                let made = self.whole(of, part)?.some();
                self.replace(shape, target, made);
            }
            OptionPatch::Patch => match target.node {
                Node::Option(Some(node)) => {
                    self.patch(of, Target { value: target.value, node }, part)?;
                }
                _ => {
                    return Err(DecodeError::new(
                        at,
                        "a change came for an option that holds nothing here",
                    ));
                }
            },
        }
        Ok(())
    }

    fn patch_list(&mut self, shape: &Shape, of: &Shape, target: Target<'_>, part: Part) -> Done {
        match ListPatch::read(&mut self.reader)? {
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

    /// Elements that came, went or moved, then those that changed.
    fn reshape_list(&mut self, of: &Shape, target: Target<'_>, part: Part) -> Done {
        let (values, nodes) = target.items();
        let ops = read_ops(&mut self.reader, values.len())?;
        let mut stood: Vec<u32> = (0..values.len() as u32).collect();
        ops.iter().for_each(|op| op.apply(&mut stood));
        let old = values.drain(..).zip(nodes.drain(..));
        let mut old: Vec<Option<Made>> =
            old.map(|(value, node)| Some(Made { value, node })).collect();
        let mut items = Vec::with_capacity(stood.len().min(old.len() + self.reader.remaining()));
        for from in &stood {
            items.push(old.get_mut(*from as usize).and_then(Option::take));
        }
        if self.watch.listens() {
            self.tell_of_shape(&mut old, &stood);
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
                    let made = self.whole(of, part)?;
                    self.watch.enter_at(index);
                    self.watch.entered(&made.value);
                    self.watch.leave();
                    made
                }
                None => {
                    return Err(DecodeError::new(
                        self.reader.offset(),
                        "an element that came to a list was not sent",
                    ));
                }
            };
            values.push(made.value);
            nodes.push(made.node);
            if is_named {
                following = next_index(&mut self.reader, &mut next, stood.len())?;
            }
        }
        Ok(())
    }

    /// Tells which elements went, and which moved. `old` holds those that went.
    fn tell_of_shape(&mut self, old: &mut [Option<Made>], stood: &[u32]) {
        // How many went before each place: by so many those behind it moved down.
        let mut gone = Vec::with_capacity(old.len());
        let mut count = 0;
        for item in old.iter() {
            gone.push(count);
            count += usize::from(item.is_some());
        }
        for (index, item) in old.iter_mut().enumerate().rev() {
            if let Some(made) = item.take() {
                self.watch.enter_at(index);
                self.watch.left(made.value);
                self.watch.leave();
            }
        }
        let kept = stood.iter().filter_map(|from| Some(*from as usize - gone.get(*from as usize)?));
        moved(&kept.collect::<Vec<_>>())
            .into_iter()
            .for_each(|(to, from)| self.watch.moved(to, from));
    }

    fn patch_at(&mut self, of: &Shape, index: usize, target: Target<'_>, part: Part) -> Done {
        self.watch.enter_at(index);
        self.patch(of, target, part)?;
        self.watch.leave();
        Ok(())
    }

    /// Reads something that is told of as a whole.
    fn in_silence<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        self.watch.hush(true);
        let done = work(self);
        self.watch.hush(false);
        done
    }
}

/// The places of the bits that are set.
pub(crate) fn bits(mask: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |place| mask >> place & 1 == 1)
}
