//! A room type whose schema clients could not read is refused at the start.

use std::panic::catch_unwind;

use playfield_room::{Room, RoomType, room};
use playfield_state::{Data, DecodeError, State, TreeWriter};
use playfield_wire::reader::Reader;
use playfield_wire::schema::{SCHEMA_BYTES_MAX, Struct, TYPE_DEPTH_MAX, Type};

/// Nested lists, this many types deep, with a name of this many bytes.
#[derive(Default)]
struct Shape<const DEPTH: usize, const NAME_BYTES: usize>;

impl<const DEPTH: usize, const NAME_BYTES: usize> Data for Shape<DEPTH, NAME_BYTES> {
    fn schema() -> Type {
        let innermost =
            Type::Struct(Struct { name: "x".repeat(NAME_BYTES).into(), fields: vec![] });
        (1..DEPTH).fold(innermost, |of, _| Type::List(Box::new(of)))
    }
    fn encode(&self, _: &mut Vec<u8>) {}
    fn decode(_: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self)
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        out.null();
    }
    fn from_json(_: &serde_json::Value) -> Result<Self, DecodeError> {
        Ok(Self)
    }
}

macro_rules! rooms {
    ($($name:ident: $depth:expr, $bytes:expr;)*) => {$(
        #[derive(State, Default)]
        struct $name;

        #[room()]
        impl Room for $name {
            type Options = Shape<{ $depth }, { $bytes }>;
        }
    )*};
}

rooms! {
    Deep: TYPE_DEPTH_MAX, 1;
    TooDeep: TYPE_DEPTH_MAX + 1, 1;
    Long: 1, SCHEMA_BYTES_MAX - 1_000;
    TooLong: 1, SCHEMA_BYTES_MAX;
}

fn refusal<R: Room>() -> String {
    let refused = catch_unwind(|| RoomType::of::<R>("tower")).unwrap_err();
    *refused.downcast::<String>().expect("a text")
}

#[test]
fn a_schema_may_be_as_deep_as_the_limit_and_no_deeper() {
    RoomType::of::<Deep>("tower");
    let what = refusal::<TooDeep>();
    assert!(
        what.starts_with("clients could not read the schema of the room type \"tower\": options"),
        "{what}"
    );
    assert!(what.contains("24") && what.contains("Move the innermost types to a map"), "{what}");
}

#[test]
fn a_schema_may_be_as_long_as_the_limit_and_no_longer() {
    RoomType::of::<Long>("tower");
    let what = refusal::<TooLong>();
    assert!(
        what.contains("\"tower\"") && what.contains("a schema has at most 1048576 bytes"),
        "{what}"
    );
}

#[derive(Data)]
enum Term {
    Number(u32),
    Sum(Vec<Product>),
}

#[derive(Data)]
struct Product {
    of: Vec<Term>,
}

#[derive(State, Default)]
struct Endless;

#[room()]
impl Room for Endless {
    type Options = Maybe;
}

#[derive(Data, Default)]
enum Maybe {
    #[default]
    Nothing,
    Something(Term),
}

#[test]
fn types_that_contain_each_other_are_named_and_do_not_overflow_the_stack() {
    for _ in 0..2 {
        let what = refusal::<Endless>();
        assert!(
            what.starts_with("the schema of `Maybe` has no end, or none within 48 types"),
            "{what}"
        );
        assert!(what.contains("Term > Product > Term > Product"), "{what}");
    }
}
