//! Names in a schema may be any text, and the schema may be someone else's: what is generated holds
//! names as text, never as code.

use crate::codegen::Language;
use playfield_wire::schema::{Enum, Field, MessageSchema, Policy, RoomSchema, Struct, Type};

use super::generated::python_runs;

const NAMES: [&str; 7] = [
    "plain",
    "it's",
    "a \"quote\"",
    "back\\slash",
    "two\nlines \u{7} \u{2028}",
    "'] or __import__('sys').exit(3) or ['",
    "\"] or __import__(\"sys\").exit(3) or [\"",
];

fn schema(state: Vec<(&'static str, Type)>) -> RoomSchema {
    let field = |(name, of): (&'static str, Type)| Field {
        name: name.into(),
        policy: Policy::Everyone,
        default_digest: None,
        of,
    };
    let fields = state.into_iter().map(field).collect();
    RoomSchema {
        state: Type::Struct(Struct { name: "Room".into(), fields }),
        options: Type::Unit,
        messages: vec![],
        events: vec![],
    }
}

fn mode() -> Type {
    let variant = |name: &&'static str| Struct { name: (*name).into(), fields: vec![] };
    Type::Enum(Enum { name: "Mode".into(), variants: NAMES.iter().map(variant).collect() })
}

#[test]
fn names_of_variants_are_text_in_python() {
    let text = Language::Python.generate("hostile", &schema(vec![("mode", mode())]));
    let names: Vec<String> = NAMES.iter().map(|name| format!("{name:?}")).collect();
    let names = names.join(", ").replace("\\u{7}", "\\u0007").replace("\\u{2028}", "\\u2028");
    python_runs(&format!(
        "{text}\nfound = _typing.get_args(eval(Mode))\n\
         flat = [n for f in found for n in (_typing.get_args(f) or [f])]\n\
         assert flat == [{names}], flat\n\
         _typing.get_type_hints(HostileState)\n"
    ));
}

#[test]
fn names_of_room_types_are_text() {
    for name in ["*/ evil(); /*", "\"", "a\"", "\\", "\"\"\"\nraise SystemExit(3)\n\"\"\"", "\n"] {
        let text = Language::TypeScript.generate(name, &schema(vec![]));
        assert_eq!(text.matches("*/").count(), text.matches("/**").count(), "{text}");
        assert!(!text.contains("\nraise"), "{text}");
        let text = Language::Python.generate(name, &schema(vec![]));
        python_runs(&format!("{text}\nassert ROOM_TYPE == {name:?}, ROOM_TYPE\n"));
    }
}

#[test]
fn a_union_in_an_array_is_in_parentheses() {
    let map = Type::Map(Box::new(Type::Text), Box::new(Type::U32));
    let of = |inner: &Type| Type::List(Box::new(inner.clone()));
    let option = Type::Option(Box::new(map.clone()));
    let state = vec![("maps", of(&map)), ("some", of(&option)), ("deep", of(&of(&option)))];
    let text = Language::TypeScript.generate("grid", &schema(state));
    for line in [
        "readonly maps: readonly { readonly [key: string]: number }[];",
        "readonly some: readonly ({ readonly [key: string]: number } | null)[];",
        "readonly deep: readonly (readonly ({ readonly [key: string]: number } | null)[])[];",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn a_room_type_does_not_take_the_name_of_an_import() {
    let text = Language::TypeScript.generate("integer64", &schema(vec![("at", Type::U64)]));
    assert!(text.contains("import type { Integer64 }"), "{text}");
    assert!(text.contains("export interface Integer64Room {"), "{text}");
}

/// `room.request(Chat("hi"))` sends what the room calls `Chat`, whatever else has that name.
#[test]
fn a_message_is_sent_by_the_name_that_the_room_knows() {
    let text = |name: &'static str, of| Field {
        name: name.into(),
        policy: Policy::Everyone,
        default_digest: None,
        of,
    };
    let chat = |of| Type::Struct(Struct { name: "Chat".into(), fields: vec![text("text", of)] });
    let mut schema = schema(vec![("last", chat(Type::U8))]);
    for name in ["Chat", "join_me"] {
        let message = MessageSchema { name: name.into(), of: chat(Type::Text), reply: Type::Unit };
        schema.messages.push(message);
    }
    let Type::Struct(of) = &mut schema.messages[1].of else { unreachable!("a struct") };
    of.name = "join_me".into();
    let text = Language::Python.generate("chat", &schema);
    python_runs(&format!(
        "{text}\n\
         classes = [c for c in globals().values() if _dataclasses.is_dataclass(c)]\n\
         sent = {{getattr(c, '_playfield_name', c.__name__) for c in classes}}\n\
         assert {{'Chat', 'join_me'}} <= sent, sent\n\
         texts = {{c for c in classes if c.__annotations__.get('text') == 'str'}}\n\
         named = {{getattr(c, '_playfield_name', c.__name__) for c in texts}}\n\
         assert named == {{'Chat', 'join_me'}}, named\n"
    ));
}
