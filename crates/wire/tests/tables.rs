//! Other descriptions of the messages: the document, and the tables of other languages.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use playfield_wire::client::ClientMessage;
use playfield_wire::message::{FieldForm, Form, MessageForm};
use playfield_wire::server::ServerMessage;

/// Records that the document describes below the table, by their names there.
const NAMED: [(&str, &str); 4] = [
    ("Resume", "resume"),
    ("SchemaRef", "schema"),
    ("Position", "position"),
    ("Resumed", "resumed"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn all() -> Vec<MessageForm> {
    [ClientMessage::forms(), ServerMessage::forms()].concat()
}

#[test]
fn kinds_and_names_differ() {
    for forms in [ClientMessage::forms(), ServerMessage::forms()] {
        for (place, form) in forms.iter().enumerate() {
            let others = &forms[..place];
            assert!(!others.iter().any(|other| other.kind == form.kind || other.name == form.name));
        }
    }
}

#[test]
fn the_document_has_every_message_and_field() {
    let document = include_str!("../../../docs/protocol.md");
    for form in all() {
        let (kind, name) = (form.kind, form.name);
        let row =
            document.lines().find(|line| line.starts_with(&format!("| `{kind:02X}` | `{name}` |")));
        let row =
            row.unwrap_or_else(|| panic!("docs/protocol.md has no message {kind:02X}, {name}"));
        let spans = row.split('`').skip(1).step_by(2).filter(|span| span.contains(": "));
        let fields: Vec<String> = form.fields.iter().map(documented).collect();
        assert_eq!(spans.collect::<Vec<_>>(), fields, "docs/protocol.md, {name}");
    }
    let words = document.split_whitespace().collect::<Vec<_>>().join(" ");
    for field in all().iter().flat_map(|form| &form.fields) {
        if let Some((name, fields)) = record_of(&field.form)
            && let Some((_, name)) = NAMED.iter().find(|(of, _)| *of == name)
        {
            let line = format!("`{name}` is `{}`", inline(fields));
            assert!(words.contains(&line), "docs/protocol.md lacks: {line}");
        }
    }
}

fn record_of(form: &Form) -> Option<(&str, &[FieldForm])> {
    match form {
        Form::Option(form) | Form::List(form) => record_of(form),
        Form::Record(name, fields) => Some((*name, fields.as_slice())),
        _ => None,
    }
}

/// A field as the document has it.
fn documented(field: &FieldForm) -> String {
    let name = if field.form == Form::Since { "advance" } else { field.name };
    format!("{name}: {}", documented_form(&field.form))
}

fn documented_form(form: &Form) -> String {
    let form = match form {
        Form::Bool => "bool",
        Form::U32 | Form::U64 | Form::Since | Form::Message | Form::Code => "varint",
        Form::Fixed => "u64",
        Form::Format => "u8",
        Form::Text => "text",
        Form::Bytes | Form::Embedded => "bytes",
        Form::Rest | Form::JsonText => "rest",
        Form::Pairs => "list<(text, text)>",
        Form::Texts => "list<text>",
        Form::Option(form) => return format!("option<{}>", documented_form(form)),
        Form::List(form) => return format!("list<{}>", documented_form(form)),
        Form::Record(record, fields) => match NAMED.iter().find(|(of, _)| of == record) {
            Some((_, name)) => *name,
            None => return inline(fields),
        },
    };
    form.to_owned()
}

fn inline(fields: &[FieldForm]) -> String {
    format!("{{ {} }}", fields.iter().map(documented).collect::<Vec<_>>().join(", "))
}

/// Tables of the TypeScript client: the first kind, the name, and the subject.
type Tables = &'static [(u8, &'static str, &'static str)];

const CLIENT_TABLES: Tables = &[
    (0x01, "ROOMS_CLIENT", "connections and rooms"),
    (0x10, "MORE_CLIENT", "channels and devices"),
];

const SERVER_TABLES: Tables = &[
    (0x41, "ROOMS_SERVER", "connections and rooms"),
    (0x50, "MORE_SERVER", "channels and devices"),
    (0x59, "NODES_SERVER", "other nodes"),
];

/// `PLAYFIELD_WRITE_TABLES=1 cargo test -p playfield-wire tables` writes it.
#[test]
fn the_tables_of_the_typescript_client_are_current() {
    let path = root().join("sdk/typescript/src/tables.ts");
    let made = typescript();
    if std::env::var_os("PLAYFIELD_WRITE_TABLES").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == made,
        "{} is not what the tables of messages say: run `PLAYFIELD_WRITE_TABLES=1 cargo test -p \
         playfield-wire tables`",
        path.display()
    );
}

fn typescript() -> String {
    let mut out = "\
/**
 * The tables of the protocol's messages, as messages.ts reads them. Generated from crates/wire:
 * `PLAYFIELD_WRITE_TABLES=1 cargo test -p playfield-wire tables`.
 */

import type { Integer64 } from \"./reader.js\";
"
    .to_owned();
    for (mut forms, sender, parts) in [
        (ClientMessage::forms(), "a client", CLIENT_TABLES),
        (ServerMessage::forms(), "a node", SERVER_TABLES),
    ] {
        forms.sort_by_key(|form| form.kind);
        let follow = forms.windows(2).all(|two| two[0].kind + 1 == two[1].kind);
        assert!(follow && forms[0].kind == parts[0].0);
        for (place, (first, name, about)) in parts.iter().enumerate() {
            let next = parts.get(place + 1).map_or(u8::MAX, |(next, ..)| *next);
            let forms: Vec<_> =
                forms.iter().filter(|form| (*first..next).contains(&form.kind)).collect();
            assert!(forms.first().is_some_and(|form| form.kind == *first));
            write!(out, "\n/** What {sender} sends about {about}. */\n").unwrap();
            writeln!(out, "export const {name} = `").unwrap();
            let mut records = Vec::new();
            for form in &forms {
                form.fields.iter().for_each(|field| structs(&field.form, &mut records));
            }
            for (place, (_, fields)) in records.iter().enumerate() {
                line(&mut out, &format!("{{{place}}}"), fields, &records);
            }
            for form in &forms {
                line(&mut out, form.name, &form.fields, &records);
            }
            out.push_str("`;\n");
        }
    }
    let joined = ServerMessage::forms().into_iter().find(|form| form.name == "joined").unwrap();
    out.push_str("\n/** What a node says of a room that this client has entered. */\nexport interface Joined {\n");
    for field in &joined.fields {
        let (mark, of) = match &field.form {
            Form::Option(form) => ("?", &**form),
            form => ("", form),
        };
        let of = match of {
            Form::Bool => "boolean",
            Form::U32 => "number",
            Form::U64 => "Integer64",
            Form::Text => "string",
            other => panic!("no type in TypeScript for {other:?}"),
        };
        comment(&mut out, field.docs);
        writeln!(out, "  readonly {}{mark}: {of};", field.member).unwrap();
    }
    out.push_str("}\n");
    out
}

/// Documentation, without links into this crate.
fn comment(out: &mut String, docs: &str) {
    let words = docs.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = String::new();
    for (place, part) in words.split("](").enumerate() {
        text.push_str(if place == 0 {
            part
        } else {
            part.split_once(')').map_or("", |(_, rest)| rest)
        });
    }
    let text = text.replace('[', "");
    if text.len() < 90 {
        return writeln!(out, "  /** {text} */").unwrap();
    }
    out.push_str("  /**\n");
    wrapped(out, "   *", "   *", text.split(' '));
    out.push_str("   */\n");
}

/// Structs and their fields, each after those in it. In the tables they are named by their places.
type Record<'a> = (&'a str, &'a [FieldForm]);

fn structs<'a>(form: &'a Form, found: &mut Vec<Record<'a>>) {
    if let Some((name, fields)) = record_of(form) {
        fields.iter().for_each(|field| structs(&field.form, found));
        if !found.iter().any(|(other, _)| *other == name) {
            found.push((name, fields));
        }
    }
}

/// A line of a table. What does not fit follows on further lines, indented further.
fn line(out: &mut String, name: &str, fields: &[FieldForm], records: &[Record<'_>]) {
    let field = |field: &FieldForm| {
        let name = if field.form == Form::Since { "advance" } else { field.name };
        format!("{name}:{}", letter(&field.form, records))
    };
    let fields: Vec<String> = fields.iter().map(field).collect();
    wrapped(out, &format!("  {name}"), "    ", fields.iter().map(String::as_str));
}

fn wrapped<'a>(out: &mut String, first: &str, next: &str, words: impl Iterator<Item = &'a str>) {
    let mut line = first.to_owned();
    for word in words {
        if line.len() + 1 + word.len() > 100 {
            writeln!(out, "{line}").unwrap();
            next.clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(word);
    }
    writeln!(out, "{line}").unwrap();
}

fn letter(form: &Form, records: &[Record<'_>]) -> String {
    let letter = match form {
        Form::Bool => "o",
        Form::U32 => "u",
        Form::U64 | Form::Since | Form::Message => "v",
        Form::Fixed => "d",
        Form::Format => "8",
        Form::Text => "t",
        Form::Texts => "*t",
        Form::Bytes => "b",
        Form::Embedded => "x",
        Form::Rest | Form::JsonText => "r",
        Form::Pairs => "m",
        Form::Code => "c",
        Form::Option(form) => return format!("?{}", letter(form, records)),
        Form::List(form) => return format!("*{}", letter(form, records)),
        Form::Record(name, _) => {
            let place = records.iter().position(|(other, _)| other == name);
            return format!("{{{}}}", place.expect("a line of its own"));
        }
    };
    letter.to_owned()
}

#[test]
fn the_page_about_adding_a_field_names_files_that_exist() {
    let page = fs::read_to_string(root().join("docs/contributing/adding-a-message.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut count = 0;
    for path in rows.filter_map(|row| row.split_once('`')).map(|(path, _)| path) {
        let folder = path.split('*').next().unwrap_or(path);
        assert!(root().join(folder).exists(), "the page names {path}");
        count += 1;
    }
    assert!(count >= 8, "it names {count} files");
}
