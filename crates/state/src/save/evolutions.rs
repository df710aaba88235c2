//! Saves under random schemas: from an older build to a newer one and back, twice.

use std::borrow::Cow;

use playfield_wire::reader::Reader;
use playfield_wire::schema::{Enum, Field, Policy, Struct, Type};
use playfield_wire::writer;
use proptest::prelude::*;

use super::kept::{Follow, Kept};
use super::skim::skip;
use super::turn::{Failed, Turned, turned};

/// The bytes that random choices are made of. At the end of them, every choice is the first one.
struct Dice<'a>(&'a [u8]);

impl Dice<'_> {
    fn below(&mut self, count: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first) % count
    }

    fn type_of(&mut self, depth: usize) -> Type {
        let inner = |dice: &mut Self| Box::new(dice.type_of(depth + 1));
        let kinds = if depth > 3 { 6 } else { 13 };
        match self.below(kinds) {
            0 => Type::U32,
            1 => Type::Text,
            2 => Type::Bool,
            3 => Type::F32,
            4 => Type::I64,
            5 => Type::Unit,
            6 => Type::Option(inner(self)),
            7 => Type::List(inner(self)),
            8 => Type::Array(inner(self), 1 + self.below(3)),
            9 => Type::Map(Box::new(Type::U8), inner(self)),
            10 => Type::Set(Box::new(Type::U8)),
            11 => {
                let variants = 1 + self.below(3);
                let variants = (0..variants).map(|n| self.fields_of(format!("V{n}"), depth));
                Type::Enum(Enum { name: Cow::Borrowed(""), variants: variants.collect() })
            }
            _ => Type::Struct(self.fields_of(String::new(), depth)),
        }
    }

    fn fields_of(&mut self, name: String, depth: usize) -> Struct {
        let count = self.below(4);
        let field = |n| field(&format!("f{n}"), self.type_of(depth + 1));
        Struct { name: name.into(), fields: (0..count).map(field).collect() }
    }

    /// The type in a newer build: fields and variants are added, in any place.
    fn newer(&mut self, of: &Type, tag: &str) -> Type {
        match of {
            Type::Option(of) => Type::Option(Box::new(self.newer(of, tag))),
            Type::List(of) => Type::List(Box::new(self.newer(of, tag))),
            Type::Array(of, length) => Type::Array(Box::new(self.newer(of, tag)), *length),
            Type::Map(key, of) => Type::Map(key.clone(), Box::new(self.newer(of, tag))),
            Type::Struct(of) => Type::Struct(self.newer_fields(of, tag)),
            Type::Enum(of) => {
                let mut variants: Vec<Struct> =
                    of.variants.iter().map(|variant| self.newer_fields(variant, tag)).collect();
                let turns = self.below(variants.len());
                variants.rotate_left(turns);
                Type::Enum(Enum { name: of.name.clone(), variants })
            }
            plain => plain.clone(),
        }
    }

    fn newer_fields(&mut self, of: &Struct, tag: &str) -> Struct {
        let mut fields: Vec<Field> =
            of.fields.iter().map(|old| field(&old.name, self.newer(&old.of, tag))).collect();
        for number in 0..self.below(3) {
            let place = self.below(fields.len() + 1);
            fields.insert(place, field(&format!("{tag}{number}"), self.type_of(2)));
        }
        Struct { name: of.name.clone(), fields }
    }

    fn value(&mut self, of: &Type, out: &mut Vec<u8>) {
        match of {
            Type::U32 => writer::put_varint(out, self.below(200) as u64),
            Type::I64 => writer::put_zigzag(out, self.below(200) as i64 - 100),
            Type::F32 => writer::put_f32(out, self.below(9) as f32),
            Type::Bool => writer::put_bool(out, self.below(2) == 1),
            Type::Text => writer::put_text(out, ["", "a", "text"][self.below(3)]),
            Type::Option(of) => {
                let is_some = self.below(3) > 0;
                writer::put_bool(out, is_some);
                if is_some {
                    self.value(of, out);
                }
            }
            Type::List(of) => {
                let count = self.below(4);
                writer::put_varint(out, count as u64);
                (0..count).for_each(|_| self.value(of, out));
            }
            Type::Array(of, length) => (0..*length).for_each(|_| self.value(of, out)),
            Type::Map(_, of) => {
                let count = self.below(4);
                writer::put_varint(out, count as u64);
                for key in 0..count {
                    out.push(key as u8 * 7);
                    self.value(of, out);
                }
            }
            Type::Set(_) => {
                let count = self.below(4);
                writer::put_varint(out, count as u64);
                out.extend((0..count).map(|key| key as u8));
            }
            Type::Struct(of) if of.fields.is_empty() => out.push(0),
            Type::Struct(of) => of.fields.iter().for_each(|field| self.value(&field.of, out)),
            Type::Enum(of) => {
                let place = self.below(of.variants.len());
                writer::put_varint(out, place as u64);
                of.variants[place].fields.iter().for_each(|field| self.value(&field.of, out));
            }
            _ => out.push(0),
        }
    }
}

fn field(name: &str, of: Type) -> Field {
    let name = Cow::Owned(name.to_owned());
    Field { name, policy: Policy::Everyone, default_digest: None, of }
}

fn turn(stored: &Type, kept: Kept, here: &Type, body: &[u8]) -> Turned {
    turned(stored, kept, &here.clone().into(), body, 0..body.len()).unwrap_or_else(|failed| {
        match failed {
            Failed::Load(error) => panic!("{error}"),
            Failed::Bytes(error) => panic!("{error}"),
        }
    })
}

/// Returns the fields that a build keeps, as the next one reads them: through the bytes of a save,
/// and following the values.
fn saved(of: &Type, turned: &Turned) -> Kept {
    let bytes = &turned.body;
    let (columns, mut root) = turned.kept.clone().into_parts();
    for mut how in [Follow::first(), Follow::default()] {
        root.follow_whole(of, (bytes, &mut Reader::new(bytes)), &mut how).unwrap();
    }
    let mut out = Vec::new();
    Kept::of(columns, root).put(&mut out);
    if out.is_empty() { Kept::default() } else { Kept::read(&mut Reader::new(&out)).unwrap() }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Three builds, each with more than the one before. A save of the newest is read and saved by
    /// the older ones in turn; nothing is dropped, and the newest gets back every byte.
    #[test]
    fn what_older_builds_lack_comes_back(
        dice in prop::collection::vec(any::<u8>(), 0..400),
        order in prop::collection::vec(0..2_usize, 1..5),
    ) {
        let mut dice = Dice(&dice);
        let old = dice.type_of(0);
        let middle = dice.newer(&old, "m");
        let new = dice.newer(&middle, "n");
        let mut body = Vec::new();
        dice.value(&new, &mut body);
        skip(&new, &mut Reader::new(&body)).unwrap();

        let older = [&old, &middle];
        let (mut at, mut bytes, mut kept) = (&new, body.clone(), Kept::default());
        for build in order {
            let next = turn(at, kept, older[build], &bytes);
            prop_assert_eq!(&next.dropped, &[]);
            kept = saved(older[build], &next);
            (at, bytes) = (older[build], next.body);
            skip(at, &mut Reader::new(&bytes)).unwrap();
        }
        let last = turn(at, kept, &new, &bytes);
        prop_assert!(last.kept.is_empty());
        prop_assert_eq!(last.body, body);
    }

    /// Any type is read as any other: what does not fit is dropped, or the save is refused.
    #[test]
    fn whatever_changes_a_save_is_read_or_refused(
        dice in prop::collection::vec(any::<u8>(), 0..300),
        changes in prop::collection::vec((any::<u16>(), any::<u8>()), 0..4),
        cut in any::<Option<u16>>(),
    ) {
        let mut dice = Dice(&dice);
        let (stored, here) = (dice.type_of(0), dice.type_of(0));
        let mut body = Vec::new();
        dice.value(&stored, &mut body);
        if let Ok(next) = turned(&stored, Kept::default(), &here.clone().into(), &body, 0..body.len()) {
            skip(&here, &mut Reader::new(&next.body)).unwrap();
            saved(&here, &next);
        }
        for (at, byte) in changes {
            let length = body.len();
            body[usize::from(at) % length] = byte;
        }
        let end = cut.map_or(body.len(), |cut| usize::from(cut) % (body.len() + 1));
        let _ = turned(&stored, Kept::default(), &here.clone().into(), &body, 0..end);
        let _ = Kept::read(&mut Reader::new(&body));
    }
}
