//! The names of generated types.

use std::collections::BTreeSet;

use playfield_wire::schema::{Field, RoomSchema, Struct, Type};

/// The form of a struct's fields in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// No fields: `null`.
    Nothing,
    /// One field without a name: the field itself.
    One,
    /// Several fields without names: an array.
    Tuple,
    /// An object.
    Named,
}

impl Form {
    /// The form of fields, in a value that is sent as a whole or in a state.
    pub(crate) fn of(fields: &[Field], is_whole: bool) -> Self {
        match fields {
            _ if !is_whole => Self::Named,
            [] => Self::Nothing,
            // The name of a field without a name is its position, which no named field can have.
            [first, ..] if first.name != "0" => Self::Named,
            [_] => Self::One,
            _ => Self::Tuple,
        }
    }
}

/// A struct or an enum that gets a name.
pub(crate) struct Definition<'a> {
    pub(crate) name: String,
    pub(crate) of: &'a Type,
    /// Whether it is in a value that is sent as a whole: in a message, an event or an enum.
    pub(crate) is_whole: bool,
}

/// All structs and enums of a schema, in the order in which they occur.
pub(crate) struct Definitions<'a> {
    pub(crate) all: Vec<Definition<'a>>,
    taken: BTreeSet<String>,
    escape: fn(String) -> String,
}

impl<'a> Definitions<'a> {
    /// The state's begins with `root`. `reserved` are names that no definition gets; `escape` makes a
    /// name of a keyword.
    pub(crate) fn of(
        schema: &'a RoomSchema,
        root: &str,
        reserved: &[&str],
        escape: fn(String) -> String,
    ) -> Self {
        let taken = reserved.iter().map(|name| (*name).to_owned()).collect();
        let mut definitions = Self { all: Vec::new(), taken, escape };
        definitions.add(&schema.state, false, Some(format!("{root}State")));
        definitions.add(&schema.options, true, None);
        for message in &schema.messages {
            definitions.add(&message.of, true, Some(identifier(&message.name)));
            definitions.add(&message.reply, true, None);
        }
        for event in &schema.events {
            definitions.add(&event.of, true, Some(identifier(&event.name)));
        }
        definitions
    }

    /// The name of a struct or an enum. `None` if it is written in place.
    pub(crate) fn name(&self, of: &Type, is_whole: bool) -> Option<&str> {
        self.all
            .iter()
            .find(|known| known.is(of, is_whole))
            .map(|definition| definition.name.as_str())
    }

    fn add(&mut self, of: &'a Type, is_whole: bool, wanted: Option<String>) {
        match of {
            Type::Option(of) | Type::List(of) | Type::Array(of, _) | Type::Map(_, of) => {
                self.add(of, is_whole, None);
            }
            Type::Struct(inner) => {
                if Form::of(&inner.fields, is_whole) == Form::Named {
                    self.define(of, is_whole, wanted.unwrap_or_else(|| identifier(&inner.name)));
                }
                self.add_fields(inner, is_whole);
            }
            Type::Enum(inner) => {
                self.define(of, true, wanted.unwrap_or_else(|| identifier(&inner.name)));
                inner.variants.iter().for_each(|variant| self.add_fields(variant, true));
            }
            _ => {}
        }
    }

    fn add_fields(&mut self, of: &'a Struct, is_whole: bool) {
        of.shown().for_each(|field| self.add(&field.of, is_whole, None));
    }

    fn define(&mut self, of: &'a Type, is_whole: bool, wanted: String) {
        if self.all.iter().any(|known| known.is(of, is_whole)) {
            return;
        }
        let wanted = (self.escape)(wanted);
        let numbered = (2..).map(|number| format!("{wanted}{number}"));
        let name = std::iter::once(wanted.clone())
            .chain(numbered)
            .find(|name| !self.taken.contains(name))
            .expect("there is always another number");
        self.taken.insert(name.clone());
        self.all.push(Definition { name, of, is_whole });
    }
}

impl Definition<'_> {
    fn is(&self, of: &Type, is_whole: bool) -> bool {
        let is_same_form = self.is_whole == is_whole || !depends_on_place(of);
        self.of == of && is_same_form
    }
}

/// Whether the JSON of a value in a state is another than that in a message.
fn depends_on_place(of: &Type) -> bool {
    match of {
        Type::Option(of) | Type::List(of) | Type::Array(of, _) | Type::Map(_, of) => {
            depends_on_place(of)
        }
        Type::Struct(of) => {
            Form::of(&of.fields, true) != Form::Named
                || of.shown().any(|field| depends_on_place(&field.of))
        }
        _ => false,
    }
}

/// A name in the style of types, from any text: `join_me-now` is `JoinMeNow`.
pub(crate) fn identifier(text: &str) -> String {
    let mut name = String::new();
    for word in text.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    match name.chars().next() {
        None => "Type".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("T{name}"),
        Some(_) => name,
    }
}

/// A text in double quotes, as in JSON, which TypeScript and Python read.
pub(crate) fn quoted(text: &str) -> String {
    quoted_in('"', text)
}

/// A text in single quotes, for Python.
pub(crate) fn single_quoted(text: &str) -> String {
    quoted_in('\'', text)
}

fn quoted_in(mark: char, text: &str) -> String {
    let mut quoted = String::from(mark);
    for letter in text.chars() {
        match letter {
            letter if letter == mark || letter == '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push(mark);
    quoted
}
