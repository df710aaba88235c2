//! A copy in JSON, which bodies make and change.

use std::collections::BTreeMap;
use std::mem;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use serde_json::{Map, Value};

use super::json::Json;
use super::node::{Entry, Made, MapNode, Node, Target, field_of};
use crate::change::{PathStep, Watch, moved};
use crate::column::{Integer, get_ranked};
use crate::list::op::{CAME, Op};
use crate::map::wire::read_slots;
use crate::quantized::Scale;
use crate::walk::{
    Access, Done, EnumShape, FieldShape, KeyShape, MapShape, PatchSink, Plain, ReadKey, Run, Shape,
    Sink, StructShape, Walk, bits, empty, float, steps_digest,
};
use crate::{PlayerId, digest};

/// How many places a body may imply without a byte for them: so many, and so many more for each of
/// its bytes.
const UNSAID_MIN: usize = 1 << 16;
const UNSAID_PER_BYTE: usize = 16;

/// Makes values in JSON, or changes them in their places, and reports changes to a listener.
pub(super) struct CopySink<'w> {
    /// Whose copy it is.
    viewer: PlayerId,
    /// Whose this place is: the key of the nearest map keyed by player.
    owner: Option<PlayerId>,
    watch: Watch<'w>,
    /// How many places may still be implied.
    unsaid_left: usize,
    /// In columns, the steps from an entry to the part of it.
    inside: Vec<PathStep>,
}

/// What went from a map and what came. The values are kept only for a listener.
#[derive(Default)]
pub(super) struct News {
    gone: BTreeMap<String, Value>,
    came: Vec<String>,
    /// Slots that keys left for lower ones. Each has to be emptied by the same patch.
    left: Vec<u64>,
}

/// Entries that are out of their map while a column changes them, and their names for a listener.
pub(super) struct Taken {
    entries: Vec<(u64, Value, Entry)>,
    names: Vec<PathStep>,
}

pub(super) struct Group<'a> {
    targets: Vec<Target<'a>>,
    names: &'a [PathStep],
}

impl<'w> CopySink<'w> {
    pub(super) fn new(viewer: PlayerId, watch: Watch<'w>, body: &[u8]) -> Self {
        let unsaid_left = UNSAID_MIN + UNSAID_PER_BYTE * body.len();
        Self { viewer, owner: None, watch, unsaid_left, inside: Vec::new() }
    }

    /// What a field that not everyone sees holds until a body says something of it.
    fn unsaid(&mut self, field: &FieldShape, at: usize) -> Result<Option<Made>, DecodeError> {
        match field.access {
            Access::OwnEntry | Access::ViewedMap => {
                self.spend(1, at)?;
                Ok(Some(Made::empty_map()))
            }
            Access::Owner if self.owner == Some(self.viewer) => self.blank(&field.of, at),
            _ => Ok(None),
        }
    }

    fn blank(&mut self, shape: &Shape, at: usize) -> Result<Option<Made>, DecodeError> {
        let mut places = 0;
        let made = Made::blank(shape, &mut places);
        self.spend(places, at)?;
        Ok(made)
    }

    /// A part of a value that is new here and was not sent: only what is empty may be left out.
    fn unsent(&mut self, shape: &Shape, at: usize) -> Result<Made, DecodeError> {
        self.blank(shape, at)?
            .ok_or_else(|| DecodeError::new(at, "a part of a value that is new here was not sent"))
    }

    /// Bounds what is made without a byte for it by the length of the body.
    fn spend(&mut self, places: usize, at: usize) -> Done {
        self.unsaid_left = self.unsaid_left.checked_sub(places).ok_or_else(|| {
            DecodeError::new(at, "far more goes without saying than was said: this body is refused")
        })?;
        Ok(())
    }

    /// Reports which elements left, and which moved. `old` holds those that left.
    fn report_shape(&mut self, old: &mut [Option<Made>], stood: &[u32]) {
        // How many left before each place: those behind it moved down by as many.
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

    /// Reports which entries left, then which entered. One that left and came back changed.
    fn report_entries(&mut self, of: &MapShape, members: &Map<String, Value>, news: News) {
        let (back, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            news.gone.into_iter().partition(|(name, _)| members.contains_key(name));
        for (name, old) in gone {
            self.watch.enter(&name);
            self.watch.left(old);
            self.watch.leave();
        }
        for name in news.came {
            let Some(new) = members.get(&name) else { continue };
            self.watch.enter(&name);
            match back.get(&name) {
                Some(old) => self.watch.replaced(Some(&of.value), old, new),
                None => self.watch.entered(new),
            }
            self.watch.leave();
        }
    }
}

impl Sink for CopySink<'_> {
    type Made = Made;
    type Key = ReadKey;
    type Entries = (Map<String, Value>, Box<MapNode>);
    type Fields = (Map<String, Value>, Vec<Option<Node>>);

    #[inline]
    fn plain(&mut self, reader: &mut Reader<'_>, of: Plain) -> Result<Made, DecodeError> {
        of.read(reader).map(Made::leaf)
    }

    fn steps(&mut self, scale: Scale, is_short: bool, steps: i64) -> Made {
        let value = float(scale.value(steps), is_short);
        Made::leaf((value, steps_digest(scale, steps, is_short)))
    }

    fn present(&mut self) -> Made {
        Made::leaf((Value::Bool(true), digest::of_bytes(&[])))
    }

    fn option(&mut self, inner: Option<Made>) -> Made {
        inner.map_or_else(Made::nothing, Made::some)
    }

    fn items(&mut self, items: Vec<Made>) -> Made {
        Made::of_items(items)
    }

    fn key(&mut self, reader: &mut Reader<'_>, of: KeyShape) -> Result<ReadKey, DecodeError> {
        of.read(reader)
    }

    fn player(key: &ReadKey) -> Option<PlayerId> {
        key.player
    }

    fn owner(&mut self, owner: Option<PlayerId>) -> Option<PlayerId> {
        mem::replace(&mut self.owner, owner)
    }

    fn entries(&mut self) -> Self::Entries {
        Self::Entries::default()
    }

    fn put_entry(
        &mut self,
        (members, node): &mut Self::Entries,
        slot: Option<u32>,
        key: ReadKey,
        made: Made,
    ) -> bool {
        let slot = slot.map_or_else(|| node.own_slot(), u64::from);
        put(members, node, slot, key, made).is_none()
    }

    fn map(&mut self, (members, node): Self::Entries) -> Made {
        Made { value: Value::Object(members), node: Node::Map(node) }
    }

    fn fields(&mut self, of: &StructShape) -> Self::Fields {
        (Map::new(), of.fields.iter().map(|_| None).collect())
    }

    #[inline]
    fn put_field(
        &mut self,
        (members, nodes): &mut Self::Fields,
        of: &StructShape,
        place: usize,
        made: Made,
    ) {
        members.insert(of.fields[place].name.clone(), made.value);
        nodes[place] = Some(made.node);
    }

    fn structure(
        &mut self,
        of: &StructShape,
        mut fields: Self::Fields,
        at: usize,
    ) -> Result<Made, DecodeError> {
        for place in bits(of.private) {
            if let Some(made) = self.unsaid(&of.fields[place], at)? {
                self.put_field(&mut fields, of, place, made);
            }
        }
        Ok(Made { value: Value::Object(fields.0), node: Node::Struct(fields.1) })
    }

    fn private(walk: &mut Walk<'_, Self>, of: &StructShape, made: &mut Made) -> Done {
        walk.sink.watch.hush(true);
        walk.whole_private(of, &mut made.target())?;
        walk.sink.watch.hush(false);
        Ok(())
    }

    /// An enum is compared and sent whole: its digest is that of its bytes.
    fn enumeration(walk: &mut Walk<'_, Self>, of: &EnumShape) -> Result<Made, DecodeError> {
        let mut bytes = walk.reader.clone();
        let mut inner = Walk { reader: walk.reader.clone(), sink: Json };
        let value = Json::enumeration(&mut inner, of)?;
        walk.reader = inner.reader;
        let length = walk.reader.offset() - bytes.offset();
        Ok(Made::leaf((value, digest::of_bytes(bytes.take(length)?))))
    }
}

impl PatchSink for CopySink<'_> {
    type At<'a> = Target<'a>;
    type News = News;
    type Taken = Taken;
    type Group<'a> = Group<'a>;

    #[inline]
    fn enter(&mut self, name: &str) {
        self.watch.enter(name);
    }

    #[inline]
    fn enter_at(&mut self, index: usize) {
        self.watch.enter_at(index);
    }

    #[inline]
    fn leave(&mut self) {
        self.watch.leave();
    }

    fn replace(&mut self, shape: &Shape, at: &mut Target<'_>, made: Made) {
        // The JSON of an enum says which variant it is, and what is in it.
        let known = !matches!(shape, Shape::Enum(_));
        self.watch.replaced(known.then_some(shape), at.value, &made.value);
        at.set(made);
    }

    fn inside<'a>(&mut self, at: &'a mut Target<'_>) -> Option<Target<'a>> {
        match &mut *at.node {
            Node::Option(Some(node)) => Some(Target { value: &mut *at.value, node }),
            _ => None,
        }
    }

    fn begin_collection(&mut self, shape: &Shape, at: &mut Target<'_>) {
        if let Node::Missing = at.node {
            at.set(match shape {
                Shape::Map(_) => Made::empty_map(),
                _ => Made::of_items(Vec::new()),
            });
        }
    }

    fn begin_array(
        &mut self,
        of: &Shape,
        length: usize,
        at: &mut Target<'_>,
        marked: &[usize],
        offset: usize,
    ) -> Done {
        if let Node::Missing = at.node {
            let mut marked = marked.iter().peekable();
            let items = (0..length).map(|place| match marked.next_if_eq(&&place) {
                Some(_) => Ok(Made::missing()),
                None => self.unsent(of, offset),
            });
            at.set(Made::of_items(items.collect::<Result<_, _>>()?));
        }
        Ok(())
    }

    fn begin_struct(
        &mut self,
        of: &StructShape,
        at: &mut Target<'_>,
        mask: u64,
        offset: usize,
    ) -> Done {
        if let Node::Missing = at.node {
            let mut fields = self.fields(of);
            for place in bits(of.open) {
                let made = match mask >> place & 1 {
                    0 => self.unsent(&of.fields[place].of, offset)?,
                    _ => Made::missing(),
                };
                self.put_field(&mut fields, of, place, made);
            }
            let made = self.structure(of, fields, offset)?;
            at.set(made);
        }
        Ok(())
    }

    fn length(&mut self, at: &mut Target<'_>) -> usize {
        at.again().items().0.len()
    }

    fn reshape(&mut self, at: &mut Target<'_>, ops: &[Op]) -> Vec<Run> {
        let (values, nodes) = at.again().items();
        let mut stood: Vec<u32> = (0..values.len() as u32).collect();
        ops.iter().for_each(|op| op.apply(&mut stood));
        let old = values.drain(..).zip(nodes.drain(..));
        let mut old: Vec<Option<Made>> =
            old.map(|(value, node)| Some(Made { value, node })).collect();
        for from in &stood {
            let item = old.get_mut(*from as usize).and_then(Option::take);
            let made = item.unwrap_or_else(Made::missing);
            values.push(made.value);
            nodes.push(made.node);
        }
        if self.watch.listens() {
            self.report_shape(&mut old, &stood);
        }
        stood
            .chunk_by(|one, two| (*one == CAME) == (*two == CAME))
            .map(|run| Run { came: run[0] == CAME, count: run.len() as u64 })
            .collect()
    }

    fn put_element(&mut self, at: &mut Target<'_>, index: usize, made: Made) {
        self.watch.enter_at(index);
        self.watch.entered(&made.value);
        self.watch.leave();
        self.element(at, index).set(made);
    }

    fn element<'a>(&mut self, at: &'a mut Target<'_>, index: usize) -> Target<'a> {
        let (values, nodes) = at.again().items();
        Target { value: &mut values[index], node: &mut nodes[index] }
    }

    fn field<'a>(
        &mut self,
        of: &StructShape,
        at: &'a mut Target<'_>,
        place: usize,
    ) -> Option<Target<'a>> {
        let (members, nodes) = at.again().fields();
        field_of(of, place, members, nodes)
    }

    fn open_field(&mut self, of: &StructShape, at: &mut Target<'_>, place: usize) -> bool {
        let (members, nodes) = at.again().fields();
        if nodes[place].is_some() {
            return false;
        }
        members.insert(of.fields[place].name.clone(), Value::Null);
        nodes[place] = Some(Node::Missing);
        self.watch.hush(true);
        true
    }

    fn close_field(&mut self, of: &StructShape, at: &mut Target<'_>, place: usize) {
        self.watch.hush(false);
        if let Some(target) = self.field(of, at, place) {
            self.watch.entered(target.value);
        }
    }

    fn set_field(&mut self, of: &StructShape, at: &mut Target<'_>, place: usize, made: Made) {
        if let Some(mut target) = self.field(of, at, place) {
            self.replace(&of.fields[place].of, &mut target, made);
        } else {
            self.watch.entered(&made.value);
            let (members, nodes) = at.again().fields();
            members.insert(of.fields[place].name.clone(), made.value);
            nodes[place] = Some(made.node);
        }
    }

    fn remove_field(&mut self, of: &StructShape, at: &mut Target<'_>, place: usize) {
        let (members, nodes) = at.again().fields();
        // What comes into view may have left it since.
        if nodes[place].take().is_some() {
            self.watch.left(members.remove(&of.fields[place].name).unwrap_or_default());
        }
    }

    fn remove_entry(&mut self, at: &mut Target<'_>, slot: u32, news: &mut News) {
        // A copy from before knows nothing of an entry that has come and gone since.
        let (members, node) = at.again().map();
        displace(members, node, slot.into(), news);
    }

    fn define_entry(
        &mut self,
        at: &mut Target<'_>,
        slot: u32,
        key: ReadKey,
        made: Made,
        news: &mut News,
    ) {
        let (members, node) = at.again().map();
        displace(members, node, slot.into(), news);
        if self.watch.listens() {
            // Where the key is in another slot still, its value goes now.
            if let Some(old) = members.remove(&key.name) {
                news.gone.entry(key.name.clone()).or_insert(old);
            }
            news.came.push(key.name.clone());
        }
        // A key that moved to a lower slot is in the old one too, until that is displaced in turn.
        news.left.extend(put(members, node, slot.into(), key, made));
    }

    fn came_and_went(&mut self, of: &MapShape, at: &mut Target<'_>, news: News) -> bool {
        let (members, node) = at.again().map();
        if news.left.iter().any(|&slot| !node.stands(slot)) {
            return false;
        }
        if self.watch.listens() {
            self.report_entries(of, members, news);
        }
        true
    }

    fn entry<'a>(
        &mut self,
        at: &'a mut Target<'_>,
        slot: u32,
    ) -> Option<(Target<'a>, Option<PlayerId>)> {
        let (members, node) = at.again().map();
        let entry = node.slots.get_mut(&slot.into())?;
        let value = members.get_mut(&entry.name)?;
        self.watch.enter(&entry.name);
        Some((Target { value, node: &mut entry.node }, entry.player))
    }

    fn enter_own(&mut self, key: &ReadKey) {
        self.watch.enter(&key.name);
    }

    fn own_entry<'a>(&mut self, at: &'a mut Target<'_>, key: &ReadKey) -> Option<Target<'a>> {
        let (members, node) = at.again().map();
        let slot = *node.index.get(&key.name)?;
        let entry = node.slots.get_mut(&slot)?;
        Some(Target { value: members.get_mut(&key.name)?, node: &mut entry.node })
    }

    fn remove_own(&mut self, at: &mut Target<'_>, key: &ReadKey) {
        let (members, node) = at.again().map();
        if let Some(slot) = node.index.get(&key.name).copied() {
            node.displace(slot);
            self.watch.left(members.remove(&key.name).unwrap_or_default());
        }
    }

    fn put_own(&mut self, of: &MapShape, at: &mut Target<'_>, key: ReadKey, made: Made) {
        let (members, node) = at.again().map();
        match members.get(&key.name) {
            Some(old) => self.watch.replaced(Some(&of.value), old, &made.value),
            None => self.watch.entered(&made.value),
        }
        let slot = node.index.get(&key.name).copied().unwrap_or_else(|| node.own_slot());
        put(members, node, slot, key, made);
    }

    fn take(&mut self, reader: &mut Reader<'_>, at: &mut Target<'_>) -> Result<Taken, DecodeError> {
        let (members, node) = at.again().map();
        let start = reader.offset();
        let mut entries = Vec::new();
        read_slots(reader, |slot| {
            let entry = node.slots.remove(&slot.into()).ok_or_else(|| empty(start, slot))?;
            let value = members.get_mut(&entry.name).map(Value::take).unwrap_or_default();
            entries.push((slot.into(), value, entry));
            Ok(())
        })?;
        let listens = self.watch.listens();
        let names = entries.iter().filter(|_| listens);
        let names = names.map(|(_, _, entry)| PathStep::Name(entry.name.as_str().into())).collect();
        Ok(Taken { entries, names })
    }

    fn put_back(&mut self, at: &mut Target<'_>, taken: Taken) {
        let (members, node) = at.again().map();
        for (slot, value, entry) in taken.entries {
            members.insert(entry.name.clone(), value);
            node.slots.insert(slot, entry);
        }
    }

    fn group<'a>(&mut self, taken: &'a mut Taken) -> Group<'a> {
        let Taken { entries, names } = taken;
        let targets = entries.iter_mut();
        let targets = targets.map(|(_, value, entry)| Target { value, node: &mut entry.node });
        Group { targets: targets.collect(), names }
    }

    fn group_length(group: &Group<'_>) -> usize {
        group.targets.len()
    }

    fn group_field<'a>(
        &mut self,
        of: &StructShape,
        group: &'a mut Group<'_>,
        place: usize,
    ) -> Group<'a> {
        self.inside.push(PathStep::Name(of.fields[place].name.as_str().into()));
        let targets = group.targets.iter_mut().filter_map(|target| {
            let (members, nodes) = target.again().fields();
            field_of(of, place, members, nodes)
        });
        Group { targets: targets.collect(), names: group.names }
    }

    fn group_element<'a>(&mut self, group: &'a mut Group<'_>, index: usize) -> Group<'a> {
        self.inside.push(PathStep::Index(index));
        let targets = group.targets.iter_mut().map(|target| {
            let (values, nodes) = target.again().items();
            Target { value: &mut values[index], node: &mut nodes[index] }
        });
        Group { targets: targets.collect(), names: group.names }
    }

    fn leave_part(&mut self) {
        self.inside.pop();
    }

    fn member<'a>(&mut self, group: &'a mut Group<'_>, place: usize) -> (Target<'a>, usize) {
        let depth = self.watch.depth();
        self.watch.go(group.names.get(place), &self.inside);
        (group.targets[place].again(), depth)
    }

    fn leave_member(&mut self, depth: usize) {
        self.watch.back_to(depth);
    }

    fn column(&mut self, reader: &mut Reader<'_>, shape: &Shape, group: &mut Group<'_>) -> Done {
        let count = group.targets.len();
        let mut column = Vec::with_capacity(count);
        match shape {
            Shape::Steps(scale, is_short) => {
                let of_rank = |rank| i64::of_rank(rank).filter(|steps| scale.holds(*steps));
                let decode = |reader: &mut Reader<'_>| scale.decode(reader);
                get_ranked(reader, count, decode, i64::rank, of_rank, |_, steps| {
                    column.push(self.steps(*scale, *is_short, steps));
                })?;
            }
            Shape::Plain(plain) => plain.read_column(reader, count, |_, value, digest| {
                column.push(Made::leaf((value, digest)));
            })?,
            _ => unreachable!("only numbers and texts are read as columns"),
        }
        for (place, made) in column.into_iter().enumerate() {
            let (mut target, depth) = self.member(group, place);
            self.replace(shape, &mut target, made);
            self.leave_member(depth);
        }
        Ok(())
    }
}

/// Puts an entry into an empty slot. Returns in which other slot its key is.
fn put(
    members: &mut Map<String, Value>,
    node: &mut MapNode,
    slot: u64,
    key: ReadKey,
    made: Made,
) -> Option<u64> {
    members.insert(key.name.clone(), made.value);
    let entry = Entry { name: key.name, key: key.digest, player: key.player, node: made.node };
    node.put(slot, entry).filter(|other| *other != slot)
}

fn displace(members: &mut Map<String, Value>, node: &mut MapNode, slot: u64, news: &mut News) {
    if let Some(name) = node.displace(slot) {
        let old = members.remove(&name).unwrap_or_default();
        news.gone.entry(name).or_insert(old);
    }
}
