//! Reading bodies in `packed` by a schema that is known only at run time.
//!
//! ```text
//!  schema::Type ──▶ Shape ─┐                ┌─▶ a value in JSON, and beside it slots and digests
//!                   body ──┴──▶ Walk ───────┼─▶ changes, for a listener
//!                                           ├─▶ the body by another schema
//!                                           └─▶ the bytes of each field
//! ```

mod check;
mod columns;
mod limits;
mod list;
mod map;
mod node;
mod plain;
mod private;
mod shape;
mod turn;
mod write;

use std::borrow::Cow;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::schema::Form;
use serde_json::{Map, Value};

pub use limits::ShapeError;
pub(crate) use node::Made;
use node::{Node, Target, field_of};
pub(crate) use plain::{KeyShape, Plain, Read as PlainJson};
use plain::{ReadKey, float};
pub use shape::explicit_default_digest;
pub(crate) use shape::{Access, FieldShape, MapShape, Shape, StructShape};
use shape::{EnumShape, steps_digest};
use turn::{Output, Turn};

use crate::array::read_marked;
use crate::change::Watch;
use crate::option::OptionPatch;
use crate::profile::{Step, Tally};
use crate::{Change, Data, Part, PlayerId, digest};

/// The number of places that a body may imply without sending a byte for them: this number, plus a
/// number for each of its bytes.
const IMPLIED_MIN: usize = 1 << 16;
const IMPLIED_PER_BYTE: usize = 16;

type Done = Result<(), DecodeError>;

/// A walk through one body. It recurses as deep as the shape does.
pub(crate) struct Walk<'a> {
    reader: Reader<'a>,
    /// The player whose copy it is.
    viewer: PlayerId,
    /// The player whose place this is: the key of the nearest map keyed by player.
    owner: Option<PlayerId>,
    watch: Watch<'a>,
    /// The number of places that may still be implied.
    implied_left: usize,
    /// The body converted to another schema, if requested.
    output: Option<Output<'a>>,
    /// The bytes by field, if requested.
    tally: Option<Tally<'a>>,
}

fn refused<T>(at: usize, what: impl Into<Cow<'static, str>>) -> Result<T, DecodeError> {
    Err(DecodeError::new(at, what.into()))
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        body: &'a [u8],
        viewer: PlayerId,
        tell: Option<&'a mut dyn FnMut(Change)>,
    ) -> Self {
        Self {
            reader: Reader::new(body),
            viewer,
            owner: None,
            watch: Watch::new(tell),
            implied_left: IMPLIED_MIN + IMPLIED_PER_BYTE * body.len(),
            output: None,
            tally: None,
        }
    }

    /// Also converts the body to the shape's target schema, and appends that to `out`.
    pub(crate) fn turning(mut self, body: &'a [u8], out: &'a mut Vec<u8>) -> Self {
        self.output = Some(Output::new(body, out));
        self
    }

    /// Also counts the bytes of the body by field.
    pub(crate) fn counting(mut self, tally: Tally<'a>) -> Self {
        self.tally = Some(tally);
        self
    }

    /// Reads a part of the value here, whose bytes are counted apart.
    #[inline]
    fn inside<T>(&mut self, step: Step, work: impl FnOnce(&mut Self) -> T) -> T {
        let at = self.reader.offset();
        let outer = self.tally.as_mut().map(|tally| tally.enter(step, at));
        let done = work(self);
        if let (Some(tally), Some(outer)) = (&mut self.tally, outer) {
            tally.leave(outer, self.reader.offset());
        }
        done
    }

    /// Reads an entry or an element.
    #[inline]
    fn inside_each<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        self.inside(Step::Each { is_own: self.owner == Some(self.viewer) }, work)
    }

    /// A value was read from this offset on, or a column of values.
    #[inline]
    fn values_read(&mut self, from: usize, column: Option<usize>) {
        if let Some(tally) = &mut self.tally {
            tally.values(from, self.reader.offset(), column);
        }
    }

    /// Reads a body that is an atomic value.
    pub(crate) fn atomic(mut self, shape: &Shape) -> Result<Value, DecodeError> {
        let made = self.whole(shape, Part::Shared)?;
        self.finish()?;
        Ok(made.value)
    }

    /// Reads the body of a snapshot.
    pub(crate) fn snapshot(mut self, shape: &Shape) -> Result<Made, DecodeError> {
        let mut made = self.whole(shape, Part::Shared)?;
        self.owned(shape, made.target())?;
        self.finish()?;
        Ok(made)
    }

    /// Reads the body of a patch.
    pub(crate) fn apply(mut self, shape: &Shape, made: &mut Made) -> Done {
        self.patch(shape, made.target(), Part::Shared)?;
        self.owned(shape, made.target())?;
        self.finish()
    }

    /// Reads what only the viewer sees, which follows if bytes are left.
    fn owned(&mut self, shape: &Shape, target: Target<'_>) -> Done {
        if self.reader.is_empty() {
            return Ok(());
        }
        if let Some(tally) = &mut self.tally {
            tally.begin_own(self.reader.offset());
        }
        self.patch(shape, target, Part::Owned)
    }

    fn finish(self) -> Done {
        self.reader.finish()?;
        if let Some(tally) = self.tally {
            tally.finish();
        }
        if let Some(output) = self.output {
            output.finish();
        }
        Ok(())
    }

    /// Reads a whole value.
    fn whole(&mut self, shape: &Shape, part: Part) -> Result<Made, DecodeError> {
        let reader = &mut self.reader;
        let at = reader.offset();
        Ok(match shape {
            Shape::Plain(plain) => {
                let leaf = plain.read(reader)?;
                self.values_read(at, None);
                Made::leaf(leaf)
            }
            Shape::Present => Made::leaf((Value::Bool(true), digest::of_bytes(&[]))),
            Shape::Steps(scale, is_short) => {
                let steps = scale.decode(reader)?;
                self.values_read(at, None);
                let value = float(scale.value(steps), *is_short);
                Made::leaf((value, steps_digest(*scale, steps, *is_short)))
            }
            Shape::Option(of) => match reader.bool()? {
                true => self.whole(of, part)?.some(),
                false => Made::nothing(),
            },
            Shape::List(of) => {
                let count = reader.count()?;
                self.items(of, count, part)?
            }
            Shape::Array(of, length) => self.items(of, *length, part)?,
            Shape::Map(of) => self.whole_map(of, part)?,
            Shape::Struct(of) => self.whole_struct(of, part)?,
            Shape::Enum(of) => {
                let mut bytes = reader.clone();
                let value = self.variant(of)?;
                let length = self.reader.offset() - bytes.offset();
                Made::leaf((value, digest::of_bytes(bytes.take(length)?)))
            }
        })
    }

    fn items(&mut self, of: &Shape, count: usize, part: Part) -> Result<Made, DecodeError> {
        let items = (0..count).map(|_| self.inside_each(|walk| walk.whole(of, part)));
        Ok(Made::of_items(items.collect::<Result<_, _>>()?))
    }

    fn variant(&mut self, of: &EnumShape) -> Result<Value, DecodeError> {
        let at = self.reader.offset();
        let place = of.place(&mut self.reader)?;
        if let Some(output) = &mut self.output {
            output.variant(of, place, at, self.reader.offset());
        }
        let variant = &of.variants[place];
        let fields = self.whole_struct(variant, Part::Shared)?.value;
        Ok(match variant.form {
            Some(Form::Nothing) => Value::String(variant.name.clone()),
            _ => Value::Object(Map::from_iter([(variant.name.clone(), fields)])),
        })
    }

    fn whole_struct(&mut self, of: &StructShape, part: Part) -> Result<Made, DecodeError> {
        let mut made = match of.form {
            Some(form) => self.atomic_struct(of, form)?,
            None => Made::structure(of),
        };
        if of.form.is_none() {
            let (members, nodes) = made.target().fields();
            self.each_field(of, bits(of.open), |walk, place| {
                let made = walk.whole(&of.fields[place].of, part)?;
                members.insert(of.fields[place].name.clone(), made.value);
                nodes[place] = Some(made.node);
                Ok(())
            })?;
            self.implied_fields(of, made.target())?;
        }
        if of.is_padded {
            let at = self.reader.offset();
            if !of.has_open() {
                <()>::decode(&mut self.reader)?;
            }
            if let Some(output) = &mut self.output {
                output.padding(of, at, self.reader.offset());
            }
        }
        if part == Part::All && of.private != 0 {
            self.whole_private(of, made.target())?;
        }
        Ok(made)
    }

    fn atomic_struct(&mut self, of: &StructShape, form: Form) -> Result<Made, DecodeError> {
        let mut values = Vec::with_capacity(of.fields.len());
        self.each_field(of, 0..of.fields.len(), |walk, place| {
            values.push(walk.whole(&of.fields[place].of, Part::Shared)?.value);
            Ok(())
        })?;
        let value = match form {
            Form::Nothing => Value::Null,
            Form::One => values.pop().unwrap_or_default(),
            Form::Tuple => Value::Array(values),
            Form::Named => {
                let names = of.fields.iter().map(|field| field.name.clone());
                Value::Object(names.zip(values).collect())
            }
        };
        Ok(Made { value, node: Node::Atomic })
    }

    /// Reads these fields of a struct.
    fn each_field(
        &mut self,
        of: &StructShape,
        places: impl Iterator<Item = usize>,
        mut read: impl FnMut(&mut Self, usize) -> Done,
    ) -> Done {
        let at = self.reader.offset();
        let mut pieces = self.output.as_mut().and_then(|output| output.begin_fields(of, at));
        for place in places {
            self.inside(Step::Field(place), |walk| read(walk, place))?;
            if let (Some(output), Some(pieces)) = (&mut self.output, &mut pieces) {
                output.end_field(of, pieces, place, self.reader.offset());
            }
        }
        if let (Some(output), Some(pieces)) = (&mut self.output, pieces) {
            output.end_fields(of, pieces);
        }
        Ok(())
    }

    /// Reads a mask of fields, in which only these may be marked.
    fn mask(&mut self, of: &StructShape, known: u64) -> Result<u64, DecodeError> {
        let at = self.reader.offset();
        let mut bytes = [0; 8];
        bytes[..of.mask_bytes()].copy_from_slice(self.reader.take(of.mask_bytes())?);
        let mask = u64::from_le_bytes(bytes);
        if mask & !known != 0 {
            return refused(
                at,
                format!("the mask {mask:#x} marks fields that are not allowed here"),
            );
        }
        if let Some(output) = &mut self.output {
            output.mask(of, mask, at, self.reader.offset());
        }
        Ok(mask)
    }

    /// Reads a patch.
    fn patch(&mut self, shape: &Shape, mut target: Target<'_>, part: Part) -> Done {
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
                if target.is_missing() {
                    let mut marked = marked.iter().peekable();
                    let items = (0..*length)
                        .map(|place| self.unsent(of, marked.next_if_eq(&&place).is_some()));
                    target.set(Made::of_items(items.collect::<Result<_, _>>()?));
                }
                let (values, nodes) = target.items();
                marked.into_iter().try_for_each(|place| {
                    let target = Target { value: &mut values[place], node: &mut nodes[place] };
                    self.patch_at(of, place, target, part)
                })
            }
            Shape::Map(of) => {
                if target.is_missing() {
                    target.set(Made::empty_map());
                }
                self.patch_map(of, target, part)
            }
            Shape::Struct(of) => self.patch_struct(of, target, part),
        }
    }

    /// Replaces the value at a place, and reports the difference.
    fn replace(&mut self, shape: &Shape, mut target: Target<'_>, made: Made) {
        // The JSON of an enum names the variant and has its fields.
        let known = !matches!(shape, Shape::Enum(_));
        self.watch.replaced(known.then_some(shape), target.value, &made.value);
        target.set(made);
    }

    fn patch_option(&mut self, shape: &Shape, of: &Shape, target: Target<'_>, part: Part) -> Done {
        let at = self.reader.offset();
        match OptionPatch::read(&mut self.reader)? {
            OptionPatch::Nothing => self.replace(shape, target, Made::nothing()),
            OptionPatch::Whole => {
                let made = self.whole(of, part)?.some();
                self.replace(shape, target, made);
            }
            OptionPatch::Patch => {
                let Node::Option(Some(node)) = target.node else {
                    return refused(at, "an option was changed, but it is None in this copy");
                };
                self.patch(of, Target { value: target.value, node }, part)?;
            }
        }
        Ok(())
    }

    fn patch_struct(&mut self, of: &StructShape, mut target: Target<'_>, part: Part) -> Done {
        let at = self.reader.offset();
        let mask = self.mask(of, of.open | of.private)?;
        if part == Part::Shared && mask & of.private != 0 {
            return refused(at, "a field that only its owner sees was sent in the shared part");
        }
        if target.is_missing() {
            target.set(self.unsent_struct(of, mask)?);
        }
        let (members, nodes) = target.fields();
        self.each_field(of, bits(mask & of.open), |walk, place| {
            let field = &of.fields[place];
            if let Some(target) = field_of(of, place, members, nodes) {
                walk.watch.enter(&field.name);
                walk.patch(&field.of, target, part)?;
                walk.watch.leave();
            }
            Ok(())
        })?;
        self.private_fields(of, mask, members, nodes)
    }

    fn patch_at(&mut self, of: &Shape, index: usize, target: Target<'_>, part: Part) -> Done {
        self.watch.enter_at(index);
        self.inside_each(|walk| walk.patch(of, target, part))?;
        self.watch.leave();
        Ok(())
    }
}

/// The positions of the bits that are set.
fn bits(mask: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |place| mask >> place & 1 == 1)
}
