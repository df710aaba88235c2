//! Reading bodies in `packed` by a schema that is known only at run time.
//!
//! ```text
//!  schema::Type ──▶ Shape ─┐
//!                   body ──┴──▶ Walk ──▶ Sink: a copy in JSON, a JSON value, bytes of another schema
//! ```
//!
//! The walk knows the grammar and refuses what does not follow it. A sink makes something of the
//! values, and holds what a patch must fit.

mod limits;
mod list;
mod map;
mod plain;
mod shape;
mod turn;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

pub use limits::ShapeError;
pub(crate) use list::Run;
pub(crate) use map::empty;
pub(crate) use plain::{KeyShape, Plain, ReadKey, float};
pub use shape::explicit_default_digest;
pub(crate) use shape::{
    Access, EnumShape, FieldShape, Form, MapShape, Shape, StructShape, steps_digest,
};
pub(crate) use turn::Turn;

use crate::array::read_marked;
use crate::list::op::Op;
use crate::option::OptionPatch;
use crate::quantized::Scale;
use crate::viewed::ViewPatch;
use crate::{Data, Part, PlayerId};

pub(crate) type Done = Result<(), DecodeError>;

/// A walk through one body. It recurses as deep as the shape does.
pub(crate) struct Walk<'b, S> {
    pub(crate) reader: Reader<'b>,
    pub(crate) sink: S,
}

/// What whole values become.
pub(crate) trait Sink: Sized {
    /// A value.
    type Made;
    /// The key of an entry.
    type Key;
    /// A map whose entries are read.
    type Entries;
    /// A struct whose fields are read.
    type Fields;

    fn plain(&mut self, reader: &mut Reader<'_>, of: Plain) -> Result<Self::Made, DecodeError>;
    fn steps(&mut self, scale: Scale, is_short: bool, steps: i64) -> Self::Made;
    fn present(&mut self) -> Self::Made;
    fn option(&mut self, inner: Option<Self::Made>) -> Self::Made;
    fn items(&mut self, items: Vec<Self::Made>) -> Self::Made;

    fn key(&mut self, reader: &mut Reader<'_>, of: KeyShape) -> Result<Self::Key, DecodeError>;
    fn entries(&mut self) -> Self::Entries;
    /// Adds an entry. Returns whether its key is new.
    fn put_entry(
        &mut self,
        entries: &mut Self::Entries,
        slot: Option<u32>,
        key: Self::Key,
        made: Self::Made,
    ) -> bool;
    fn map(&mut self, entries: Self::Entries) -> Self::Made;

    fn fields(&mut self, of: &StructShape) -> Self::Fields;
    fn put_field(
        &mut self,
        fields: &mut Self::Fields,
        of: &StructShape,
        place: usize,
        made: Self::Made,
    );
    /// The struct, of whose fields only the open ones have come, up to the offset `at`.
    fn structure(
        &mut self,
        of: &StructShape,
        fields: Self::Fields,
        at: usize,
    ) -> Result<Self::Made, DecodeError>;
    /// Reads the fields of a whole struct that not everyone sees.
    fn private(walk: &mut Walk<'_, Self>, of: &StructShape, made: &mut Self::Made) -> Done;
    fn enumeration(walk: &mut Walk<'_, Self>, of: &EnumShape) -> Result<Self::Made, DecodeError>;

    /// The walk is in an entry of this key until `owner` is called with what this returns.
    fn owner(&mut self, owner: Option<PlayerId>) -> Option<PlayerId> {
        owner
    }
    fn player(_: &Self::Key) -> Option<PlayerId> {
        None
    }

    // What a sink needs that writes the body in another form. Offsets are those of the body.

    /// Fields follow. Returns where the sink stands, if it reorders them.
    fn begin_fields(&mut self, _: &StructShape, _at: usize) -> Option<Pieces> {
        None
    }
    fn end_field(&mut self, _: &StructShape, _: &mut Option<Pieces>, _place: usize, _at: usize) {}
    fn end_fields(&mut self, _: &StructShape, _: Option<Pieces>) {}
    /// This mask of fields was read.
    fn mask(&mut self, _: &StructShape, _mask: u64, _from: usize, _to: usize) {}
    /// The byte of a struct without open fields was read, if there is one.
    fn padding(&mut self, _: &StructShape, _from: usize, _to: usize) {}
    /// The number of a variant was read.
    fn variant(&mut self, _: &EnumShape, _place: usize, _from: usize, _to: usize) {}
}

/// Where the fields of a struct begin in a sink's output, and where each is, by its position in the
/// target.
#[derive(Debug)]
pub(crate) struct Pieces {
    pub(crate) start: usize,
    pub(crate) begin: usize,
    pub(crate) of: Vec<(usize, std::ops::Range<usize>)>,
}

/// What patches change.
pub(crate) trait PatchSink: Sink {
    /// A place in the copy.
    type At<'a>;
    /// What went from a map and what came, while its patch is read.
    type News: Default;
    /// The entries that are changed in columns.
    type Taken;
    /// The places of several entries, or of one part of each of them.
    type Group<'a>;

    /// One level down for those who listen: to a field, an element, an entry.
    fn enter(&mut self, _name: &str) {}
    fn enter_at(&mut self, _index: usize) {}
    fn leave(&mut self) {}

    fn replace(&mut self, shape: &Shape, at: &mut Self::At<'_>, made: Self::Made);
    /// The value in an option. `None` if it holds nothing.
    fn inside<'a>(&mut self, at: &'a mut Self::At<'_>) -> Option<Self::At<'a>>;
    /// A patch of a collection follows, which is there from now on if it was not.
    fn begin_collection(&mut self, _: &Shape, _: &mut Self::At<'_>) {}
    /// A patch of these elements of an array follows.
    fn begin_array(
        &mut self,
        of: &Shape,
        length: usize,
        at: &mut Self::At<'_>,
        marked: &[usize],
        offset: usize,
    ) -> Done;
    /// A patch of these fields of a struct follows.
    fn begin_struct(
        &mut self,
        of: &StructShape,
        at: &mut Self::At<'_>,
        mask: u64,
        offset: usize,
    ) -> Done;

    /// The length of a list.
    fn length(&mut self, at: &mut Self::At<'_>) -> usize;
    /// Changes the shape of a list. Returns which elements came, in the list as it is then.
    fn reshape(&mut self, at: &mut Self::At<'_>, ops: &[Op]) -> Vec<Run>;
    fn put_element(&mut self, at: &mut Self::At<'_>, index: usize, made: Self::Made);
    fn element<'a>(&mut self, at: &'a mut Self::At<'_>, index: usize) -> Self::At<'a>;

    /// The place of a field, if it is there.
    fn field<'a>(
        &mut self,
        of: &StructShape,
        at: &'a mut Self::At<'_>,
        place: usize,
    ) -> Option<Self::At<'a>>;
    /// Makes a place for a field. Returns whether it is new.
    fn open_field(&mut self, of: &StructShape, at: &mut Self::At<'_>, place: usize) -> bool;
    /// A field that is new has been read.
    fn close_field(&mut self, of: &StructShape, at: &mut Self::At<'_>, place: usize);
    fn set_field(
        &mut self,
        of: &StructShape,
        at: &mut Self::At<'_>,
        place: usize,
        made: Self::Made,
    );
    fn remove_field(&mut self, of: &StructShape, at: &mut Self::At<'_>, place: usize);

    fn remove_entry(&mut self, at: &mut Self::At<'_>, slot: u32, news: &mut Self::News);
    fn define_entry(
        &mut self,
        at: &mut Self::At<'_>,
        slot: u32,
        key: Self::Key,
        made: Self::Made,
        news: &mut Self::News,
    );
    /// All entries went and came. Returns whether each key stands in one slot.
    fn came_and_went(&mut self, of: &MapShape, at: &mut Self::At<'_>, news: Self::News) -> bool;
    /// Enters the entry in a slot: its place, and its key if that is a player. `None` if the slot
    /// is empty.
    fn entry<'a>(
        &mut self,
        at: &'a mut Self::At<'_>,
        slot: u32,
    ) -> Option<(Self::At<'a>, Option<PlayerId>)>;

    fn enter_own(&mut self, key: &Self::Key);
    fn own_entry<'a>(&mut self, at: &'a mut Self::At<'_>, key: &Self::Key) -> Option<Self::At<'a>>;
    fn remove_own(&mut self, at: &mut Self::At<'_>, key: &Self::Key);
    fn put_own(&mut self, of: &MapShape, at: &mut Self::At<'_>, key: Self::Key, made: Self::Made);

    /// Takes the entries of a set of slots out of a map, so that none is named twice.
    fn take(
        &mut self,
        reader: &mut Reader<'_>,
        at: &mut Self::At<'_>,
    ) -> Result<Self::Taken, DecodeError>;
    fn put_back(&mut self, at: &mut Self::At<'_>, taken: Self::Taken);
    fn group<'a>(&mut self, taken: &'a mut Self::Taken) -> Self::Group<'a>;
    fn group_length(group: &Self::Group<'_>) -> usize;
    /// One field of each. Followed by `leave_part`.
    fn group_field<'a>(
        &mut self,
        of: &StructShape,
        group: &'a mut Self::Group<'_>,
        place: usize,
    ) -> Self::Group<'a>;
    /// One element of each. Followed by `leave_part`.
    fn group_element<'a>(
        &mut self,
        group: &'a mut Self::Group<'_>,
        index: usize,
    ) -> Self::Group<'a>;
    fn leave_part(&mut self) {}
    /// Enters one of them. Returns its place, and what `leave_member` is to be given.
    fn member<'a>(&mut self, group: &'a mut Self::Group<'_>, place: usize)
    -> (Self::At<'a>, usize);
    fn leave_member(&mut self, _: usize) {}
    /// Reads a column of plain or quantized values.
    fn column(
        &mut self,
        reader: &mut Reader<'_>,
        shape: &Shape,
        group: &mut Self::Group<'_>,
    ) -> Done;
}

fn refused<T>(
    at: usize,
    what: impl Into<std::borrow::Cow<'static, str>>,
) -> Result<T, DecodeError> {
    Err(DecodeError::new(at, what.into().into_owned()))
}

impl<'b, S: Sink> Walk<'b, S> {
    pub(crate) fn new(body: &'b [u8], sink: S) -> Self {
        Self { reader: Reader::new(body), sink }
    }

    /// Reads a whole value.
    pub(crate) fn whole(&mut self, shape: &Shape, part: Part) -> Result<S::Made, DecodeError> {
        match shape {
            Shape::Plain(plain) => self.sink.plain(&mut self.reader, *plain),
            Shape::Present => Ok(self.sink.present()),
            Shape::Steps(scale, is_short) => {
                let steps = scale.decode(&mut self.reader)?;
                Ok(self.sink.steps(*scale, *is_short, steps))
            }
            Shape::Option(of) => {
                let is_there = self.reader.bool()?;
                let inner = is_there.then(|| self.whole(of, part)).transpose()?;
                Ok(self.sink.option(inner))
            }
            Shape::List(of) => {
                let count = self.reader.count()?;
                self.items(of, count, part)
            }
            Shape::Array(of, length) => self.items(of, *length, part),
            Shape::Map(of) => self.whole_map(of, part),
            Shape::Struct(of) => self.whole_struct(of, part),
            Shape::Enum(of) => S::enumeration(self, of),
        }
    }

    fn items(&mut self, of: &Shape, count: usize, part: Part) -> Result<S::Made, DecodeError> {
        let items = (0..count).map(|_| self.whole(of, part)).collect::<Result<_, _>>()?;
        Ok(self.sink.items(items))
    }

    /// Reads the number of a variant and its fields.
    pub(crate) fn variant(&mut self, of: &EnumShape) -> Result<(usize, S::Made), DecodeError> {
        let at = self.reader.offset();
        let number = self.reader.varint()?;
        let place = usize::try_from(number).ok().filter(|place| *place < of.variants.len());
        let Some(place) = place else {
            return refused(at, format!("{number} is no variant of {}", of.name));
        };
        self.sink.variant(of, place, at, self.reader.offset());
        Ok((place, self.whole_struct(&of.variants[place], Part::Shared)?))
    }

    fn whole_struct(&mut self, of: &StructShape, part: Part) -> Result<S::Made, DecodeError> {
        let mut fields = self.sink.fields(of);
        self.each_field(of, of.open_places(), |walk, place| {
            let made = walk.whole(&of.fields[place].of, part)?;
            walk.sink.put_field(&mut fields, of, place, made);
            Ok(())
        })?;
        let at = self.reader.offset();
        if of.is_padded {
            if !of.has_open() {
                <()>::decode(&mut self.reader)?;
            }
            self.sink.padding(of, at, self.reader.offset());
        }
        let mut made = self.sink.structure(of, fields, self.reader.offset())?;
        if part == Part::All && of.private != 0 {
            S::private(self, of, &mut made)?;
        }
        Ok(made)
    }

    /// Reads these fields of a struct.
    fn each_field(
        &mut self,
        of: &StructShape,
        places: impl Iterator<Item = usize>,
        mut read: impl FnMut(&mut Self, usize) -> Done,
    ) -> Done {
        let mut pieces = self.sink.begin_fields(of, self.reader.offset());
        for place in places {
            read(self, place)?;
            self.sink.end_field(of, &mut pieces, place, self.reader.offset());
        }
        self.sink.end_fields(of, pieces);
        Ok(())
    }

    /// Reads a mask of fields, in which only these may be marked.
    fn mask(&mut self, of: &StructShape, known: u64) -> Result<u64, DecodeError> {
        let at = self.reader.offset();
        let mut bytes = [0; 8];
        bytes[..of.mask_bytes()].copy_from_slice(self.reader.take(of.mask_bytes())?);
        let mask = u64::from_le_bytes(bytes);
        if mask & !known != 0 {
            return refused(at, format!("the mask {mask:#x} marks fields that can't come here"));
        }
        self.sink.mask(of, mask, at, self.reader.offset());
        Ok(mask)
    }

    /// Reads something in an entry whose key is this player, if it is one.
    fn under<T>(&mut self, player: Option<PlayerId>, read: impl FnOnce(&mut Self) -> T) -> T {
        let Some(player) = player else { return read(self) };
        let outer = self.sink.owner(Some(player));
        let done = read(self);
        self.sink.owner(outer);
        done
    }
}

impl<S: PatchSink> Walk<'_, S> {
    /// Reads what a viewer alone sees, which follows what everyone sees if bytes are left.
    pub(crate) fn owned(&mut self, shape: &Shape, at: S::At<'_>) -> Done {
        if !self.reader.is_empty() {
            self.patch(shape, at, Part::Owned)?;
        }
        self.reader.clone().finish()
    }

    /// Reads a patch.
    pub(crate) fn patch(&mut self, shape: &Shape, mut at: S::At<'_>, part: Part) -> Done {
        match shape {
            Shape::Plain(_) | Shape::Present | Shape::Steps(..) | Shape::Enum(_) => {
                let made = self.whole(shape, part)?;
                self.sink.replace(shape, &mut at, made);
                Ok(())
            }
            Shape::Option(of) => self.patch_option(shape, of, at, part),
            Shape::List(of) => self.patch_list(shape, of, at, part),
            Shape::Array(of, length) => {
                let marked = read_marked(&mut self.reader, *length)?;
                self.sink.begin_array(of, *length, &mut at, &marked, self.reader.offset())?;
                marked.into_iter().try_for_each(|place| self.patch_at(of, &mut at, place, part))
            }
            Shape::Map(of) => {
                self.sink.begin_collection(shape, &mut at);
                self.patch_map(of, at, part)
            }
            Shape::Struct(of) => self.patch_struct(of, at, part),
        }
    }

    fn patch_at(&mut self, of: &Shape, at: &mut S::At<'_>, index: usize, part: Part) -> Done {
        self.sink.enter_at(index);
        let element = self.sink.element(at, index);
        self.patch(of, element, part)?;
        self.sink.leave();
        Ok(())
    }

    fn patch_option(&mut self, shape: &Shape, of: &Shape, mut at: S::At<'_>, part: Part) -> Done {
        let start = self.reader.offset();
        let inner = match OptionPatch::read(&mut self.reader)? {
            OptionPatch::Nothing => None,
            OptionPatch::Whole => Some(self.whole(of, part)?),
            OptionPatch::Patch => {
                return match self.sink.inside(&mut at) {
                    Some(inside) => self.patch(of, inside, part),
                    None => refused(start, "a change came for an option that holds nothing here"),
                };
            }
        };
        let made = self.sink.option(inner);
        self.sink.replace(shape, &mut at, made);
        Ok(())
    }

    fn patch_struct(&mut self, of: &StructShape, mut at: S::At<'_>, part: Part) -> Done {
        let start = self.reader.offset();
        let mask = self.mask(of, of.open | of.private)?;
        if part == Part::Shared && mask & of.private != 0 {
            let what = "a field that is its owner's alone came in the part that all share";
            return refused(start, what);
        }
        self.sink.begin_struct(of, &mut at, mask, self.reader.offset())?;
        self.each_field(of, bits(mask & of.open), |walk, place| {
            let field = &of.fields[place];
            let Some(inner) = walk.sink.field(of, &mut at, place) else { return Ok(()) };
            walk.sink.enter(&field.name);
            walk.patch(&field.of, inner, part)?;
            walk.sink.leave();
            Ok(())
        })?;
        self.private_fields(of, mask, &mut at)
    }

    /// Reads the fields of a whole struct that not everyone sees.
    pub(crate) fn whole_private(&mut self, of: &StructShape, at: &mut S::At<'_>) -> Done {
        let mask = self.mask(of, of.private)?;
        self.private_fields(of, mask, at)
    }

    fn private_fields(&mut self, of: &StructShape, mask: u64, at: &mut S::At<'_>) -> Done {
        self.each_field(of, bits(mask & of.private), |walk, place| {
            walk.sink.enter(&of.fields[place].name);
            walk.private_field(of, place, at)?;
            walk.sink.leave();
            Ok(())
        })
    }

    fn private_field(&mut self, of: &StructShape, place: usize, at: &mut S::At<'_>) -> Done {
        let field = &of.fields[place];
        if field.access == Access::Viewed {
            let start = self.reader.offset();
            match ViewPatch::read(&mut self.reader)? {
                ViewPatch::Left => self.sink.remove_field(of, at, place),
                ViewPatch::Entered | ViewPatch::Replaced => {
                    let made = self.whole(&field.of, Part::All)?;
                    self.sink.set_field(of, at, place, made);
                }
                ViewPatch::Changed => {
                    let Some(inner) = self.sink.field(of, at, place) else {
                        let what = "a change came for a value that is not in view here";
                        return refused(start, what);
                    };
                    return self.patch(&field.of, inner, Part::All);
                }
            }
            return Ok(());
        }
        let is_new = self.sink.open_field(of, at, place);
        let Some(inner) = self.sink.field(of, at, place) else { return Ok(()) };
        match (field.access, &field.of) {
            (Access::OwnEntry, Shape::Map(map)) => self.patch_own(map, inner)?,
            (Access::ViewedMap, Shape::Map(map)) => self.patch_view(&field.of, map, inner)?,
            _ => self.patch(&field.of, inner, Part::All)?,
        }
        if is_new {
            self.sink.close_field(of, at, place);
        }
        Ok(())
    }

    /// Reads the changes of several entries, or of one part of each of them.
    fn columns(&mut self, shape: &Shape, mut group: S::Group<'_>) -> Done {
        match shape {
            Shape::Plain(_) | Shape::Steps(..) => {
                self.sink.column(&mut self.reader, shape, &mut group)
            }
            Shape::Struct(of) => {
                let mask = self.mask(of, of.open)?;
                self.each_field(of, bits(mask), |walk, place| {
                    let part = walk.sink.group_field(of, &mut group, place);
                    walk.columns(&of.fields[place].of, part)?;
                    walk.sink.leave_part();
                    Ok(())
                })
            }
            Shape::Array(of, length) => {
                for index in read_marked(&mut self.reader, *length)? {
                    let part = self.sink.group_element(&mut group, index);
                    self.columns(of, part)?;
                    self.sink.leave_part();
                }
                Ok(())
            }
            // It takes no bytes and does not change.
            Shape::Present => Ok(()),
            _ => (0..S::group_length(&group)).try_for_each(|place| {
                let (at, depth) = self.sink.member(&mut group, place);
                self.patch(shape, at, Part::Shared)?;
                self.sink.leave_member(depth);
                Ok(())
            }),
        }
    }
}

/// The positions of the bits that are set.
pub(crate) fn bits(mask: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |place| mask >> place & 1 == 1)
}
