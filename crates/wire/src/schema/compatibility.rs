//! Checks whether a node can serve a client that was built with another schema.
//!
//! State, replies and events go from the node to the client, which skips what it was not built
//! with. Messages and options go the other way: anything that the client was not built with must be
//! optional.
//!
//! In JSON and MessagePack the fields of a value that is sent as a whole have a [form](Form), which
//! follows from their number and their names. A client that reads and writes these trees depends on
//! it; one that converts `packed` by both schemas does not.

use std::fmt;

use super::form::Form;
use super::place::Place;
use super::{Enum, Policy, Quantized, RoomSchema, Struct, Type};

/// Why a client can't be served: the first incompatible place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incompatible {
    place: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Both have it, but they differ.
    Differs { node: String, client: String },
    /// The client was built with it, but the node lacks it.
    NodeLacks { what: &'static str },
    /// The node requires it, but the client was not built with it.
    ClientLacks { what: &'static str },
}

impl Incompatible {
    /// The place, such as `state.seats.*.hp`.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Display for Incompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        match &self.kind {
            Kind::Differs { node, client } => {
                write!(f, "the node has {node}, this client was built with {client}")?;
            }
            Kind::NodeLacks { what } => {
                write!(f, "this client was built with this {what}, which the node lacks")?;
            }
            Kind::ClientLacks { what } => {
                write!(
                    f,
                    "the node has this {what}, which is required and which this client was not built with"
                )?;
            }
        }
        f.write_str(": rebuild the client")
    }
}

impl std::error::Error for Incompatible {}

/// The direction in which values are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ToClient,
    ToNode,
}

/// Checks that a node with the schema `node` can serve a client that was built with `client`,
/// whatever its format: that the node's schema is the same or a compatible later one.
///
/// | | to the client: state, replies, events | to the node: messages, options |
/// |---|---|---|
/// | fields of structs, by name | the node may have more | the node may have more that are options, lists, maps or sets: they are sent empty |
/// | variants of enums, by name | the same | the node may have more |
/// | messages and events, by name | the node may have more | the node may have more |
/// | in values sent as a whole: no fields, one without a name, several without names, named ones | the same; without names, as many | none may become named ones, or any in a variant; one without a name several, unless it is an array |
/// | all else: numbers, keys, lengths, steps, policies | the same | the same |
///
/// A client without options is compatible with any: it creates rooms with their default options.
/// The digests of defaults ([`Field::default_digest`](super::Field::default_digest)) may differ.
///
/// # Errors
/// The first incompatible place.
pub fn check_compatible(node: &RoomSchema, client: &RoomSchema) -> Result<(), Incompatible> {
    Check { trees: true }.room(node, client)
}

/// The same for a client that converts `packed` by both schemas, as typed clients do: the form of
/// fields in JSON and MessagePack does not matter to it.
///
/// # Errors
/// The first incompatible place.
pub fn check_compatible_packed(node: &RoomSchema, client: &RoomSchema) -> Result<(), Incompatible> {
    Check { trees: false }.room(node, client)
}

/// The place of a value.
#[derive(Clone, Copy)]
struct Spot<'a> {
    place: &'a Place<'a>,
    way: Way,
    /// Whether it is sent as a whole, or in a value that is.
    is_whole: bool,
}

impl<'a> Spot<'a> {
    fn whole(place: &'a Place<'a>, way: Way) -> Self {
        Self { place, way, is_whole: true }
    }

    fn at<'b>(self, place: &'b Place<'b>) -> Spot<'b> {
        Spot { place, way: self.way, is_whole: self.is_whole }
    }
}

struct Check {
    /// Whether the client reads and writes trees.
    trees: bool,
}

impl Check {
    fn room(&self, node: &RoomSchema, client: &RoomSchema) -> Result<(), Incompatible> {
        let state = Place::root("state");
        let state = Spot { place: &state, way: Way::ToClient, is_whole: false };
        self.value(&node.state, &client.state, state)?;
        if client.options != Type::Unit {
            let options = Place::root("options");
            self.value(&node.options, &client.options, Spot::whole(&options, Way::ToNode))?;
        }
        let messages = Place::root("messages");
        for message in &client.messages {
            let place = messages.named(&message.name);
            let of_node = node.messages.iter().find(|other| other.name == message.name);
            let of_node =
                of_node.ok_or_else(|| lacks(&place, Kind::NodeLacks { what: "message" }))?;
            self.value(&of_node.of, &message.of, Spot::whole(&place, Way::ToNode))?;
            let reply = place.reply();
            self.value(&of_node.reply, &message.reply, Spot::whole(&reply, Way::ToClient))?;
        }
        let events = Place::root("events");
        for event in &client.events {
            let place = events.named(&event.name);
            let of_node = node.events.iter().find(|other| other.name == event.name);
            let of_node =
                of_node.ok_or_else(|| lacks(&place, Kind::NodeLacks { what: "event" }))?;
            self.value(&of_node.of, &event.of, Spot::whole(&place, Way::ToClient))?;
        }
        Ok(())
    }

    fn value(&self, node: &Type, client: &Type, spot: Spot<'_>) -> Result<(), Incompatible> {
        let place = spot.place;
        match (node, client) {
            (Type::Option(node), Type::Option(client)) => self.value(node, client, spot),
            (Type::List(node), Type::List(client)) => {
                self.value(node, client, spot.at(&place.each()))
            }
            (Type::Array(node, length), Type::Array(client, other)) if length == other => {
                self.value(node, client, spot.at(&place.each()))
            }
            (Type::Map(node_key, node), Type::Map(client_key, client)) => {
                self.value(node_key, client_key, spot.at(&place.key()))?;
                self.value(node, client, spot.at(&place.each()))
            }
            (Type::Set(node), Type::Set(client)) => self.value(node, client, spot.at(&place.key())),
            (Type::Struct(node), Type::Struct(client)) => {
                self.fields(node, client, spot)?;
                self.form(node, client, spot, false)
            }
            (Type::Enum(node), Type::Enum(client)) => {
                self.variants(node, client, Spot { is_whole: true, ..spot })
            }
            (node, client) if node == client => Ok(()),
            (node, client) => Err(differs(place, describe(node), describe(client))),
        }
    }

    fn fields(&self, node: &Struct, client: &Struct, spot: Spot<'_>) -> Result<(), Incompatible> {
        for field in client.shown() {
            let place = spot.place.named(&field.name);
            let of_node = node.shown().find(|other| other.name == field.name);
            let of_node =
                of_node.ok_or_else(|| lacks(&place, Kind::NodeLacks { what: "field" }))?;
            if of_node.policy != field.policy {
                let seen = |policy| format!("a field {}", seen_by(policy));
                return Err(differs(&place, seen(of_node.policy), seen(field.policy)));
            }
            self.value(&of_node.of, &field.of, spot.at(&place))?;
        }
        if spot.way == Way::ToNode {
            let is_new = |name: &str| client.shown().all(|other| other.name != name);
            let wanted = node.shown().find(|field| is_new(&field.name) && !field.of.may_be_empty());
            if let Some(field) = wanted {
                let place = spot.place.named(&field.name);
                return Err(lacks(&place, Kind::ClientLacks { what: "field" }));
            }
        }
        Ok(())
    }

    /// Checks the form of fields that are compatible otherwise.
    fn form(
        &self,
        node: &Struct,
        client: &Struct,
        spot: Spot<'_>,
        is_variant: bool,
    ) -> Result<(), Incompatible> {
        let (of_node, of_client) = (Form::of(&node.fields), Form::of(&client.fields));
        let may_grow = spot.way == Way::ToNode;
        let is_array = of_client == Form::One && may_be_array(&client.fields[0].of);
        let fits = match (of_node, of_client) {
            _ if !self.trees || !spot.is_whole => true,
            (Form::Tuple, Form::Tuple) => may_grow || node.fields.len() == client.fields.len(),
            // A variant without fields is its name. Another value is `null`, or `{}` of some
            // clients, which may be a value of the one field.
            (_, Form::Nothing) if may_grow && is_variant => true,
            (Form::Named, Form::Nothing) => may_grow,
            // The node reads anything but an array as the first of several fields.
            (Form::Tuple, Form::One) => may_grow && !is_array,
            _ => of_node == of_client,
        };
        if fits {
            return Ok(());
        }
        let describe = |of: &Struct| match Form::of(&of.fields) {
            Form::Nothing => "no fields".to_owned(),
            Form::One if may_grow && is_array => {
                "one field without a name, which is an array".to_owned()
            }
            Form::One => "one field without a name".to_owned(),
            Form::Tuple => format!("{} fields without names", of.fields.len()),
            Form::Named => "named fields".to_owned(),
        };
        Err(differs(spot.place, describe(node), describe(client)))
    }

    fn variants(&self, node: &Enum, client: &Enum, spot: Spot<'_>) -> Result<(), Incompatible> {
        for variant in &client.variants {
            let place = spot.place.named(&variant.name);
            let of_node = node.variants.iter().find(|other| other.name == variant.name);
            let of_node =
                of_node.ok_or_else(|| lacks(&place, Kind::NodeLacks { what: "variant" }))?;
            self.fields(of_node, variant, spot.at(&place))?;
            self.form(of_node, variant, spot.at(&place), true)?;
        }
        if spot.way == Way::ToClient {
            let is_new = |name: &str| client.variants.iter().all(|other| other.name != name);
            if let Some(variant) = node.variants.iter().find(|variant| is_new(&variant.name)) {
                let place = spot.place.named(&variant.name);
                return Err(lacks(&place, Kind::ClientLacks { what: "variant" }));
            }
        }
        Ok(())
    }
}

/// Whether a value that is sent as a whole may be an array in a tree.
fn may_be_array(of: &Type) -> bool {
    match of {
        Type::Option(of) => may_be_array(of),
        Type::List(_) | Type::Array(..) => true,
        Type::Struct(of) => match Form::of(&of.fields) {
            Form::Nothing | Form::Named => false,
            Form::One => may_be_array(&of.fields[0].of),
            Form::Tuple => true,
        },
        _ => false,
    }
}

fn lacks(place: &Place<'_>, kind: Kind) -> Incompatible {
    Incompatible { place: place.to_string(), kind }
}

fn differs(place: &Place<'_>, node: String, client: String) -> Incompatible {
    Incompatible { place: place.to_string(), kind: Kind::Differs { node, client } }
}

fn seen_by(policy: Policy) -> &'static str {
    match policy {
        Policy::Everyone => "that everyone sees",
        Policy::Owner => "that its owner sees",
        Policy::View => "with a view",
        Policy::Hidden => "that no player sees",
    }
}

/// A type in a few words.
fn describe(of: &Type) -> String {
    match of {
        Type::Option(inner) => format!("an option of {}", describe(inner)),
        Type::List(_) => "a list".into(),
        Type::Array(_, length) => format!("an array of {length}"),
        Type::Map(..) => "a map".into(),
        Type::Set(_) => "a set".into(),
        Type::Quantized(inner) => {
            let Quantized { of, step, range, angle } = &**inner;
            let angle = if *angle { " as an angle" } else { "" };
            let range =
                range.map_or_else(String::new, |(least, most)| format!(" from {least} to {most}"));
            format!("{}{angle}{range} in steps of {step}", describe(of))
        }
        Type::Struct(of) => format!("the struct {}", of.name),
        Type::Enum(of) => format!("the enum {}", of.name),
        plain => plain.word().unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EventSchema, Field, MessageSchema};
    use super::*;

    fn structure(fields: &[(&'static str, Type)]) -> Type {
        Type::Struct(fields_of("S", fields))
    }

    fn fields_of(name: &'static str, fields: &[(&'static str, Type)]) -> Struct {
        let field = |(name, of): &(&'static str, Type)| Field {
            name: (*name).into(),
            policy: Policy::Everyone,
            default_digest: None,
            of: of.clone(),
        };
        Struct { name: name.into(), fields: fields.iter().map(field).collect() }
    }

    fn variants(names: &[&'static str]) -> Type {
        let variants = names.iter().map(|name| fields_of(name, &[])).collect();
        Type::Enum(Enum { name: "E".into(), variants })
    }

    fn schema(state: Type, options: Type, message: Type, reply: Type) -> RoomSchema {
        RoomSchema {
            state: structure(&[("it", state)]),
            options,
            messages: vec![MessageSchema { name: "Ask".into(), of: message, reply }],
            events: vec![],
        }
    }

    fn down(node: Type, client: Type) -> Option<String> {
        let whole = |of| schema(of, Type::Unit, Type::Unit, Type::Unit);
        check_compatible(&whole(node), &whole(client)).err().map(|error| error.to_string())
    }

    fn up(node: Type, client: Type) -> Option<String> {
        let whole = |of| schema(Type::Unit, Type::Unit, of, Type::Unit);
        check_compatible(&whole(node), &whole(client)).err().map(|error| error.to_string())
    }

    fn seats(hp: Type) -> Type {
        Type::Map(Box::new(Type::Player), Box::new(structure(&[("hp", hp)])))
    }

    #[test]
    fn a_field_that_differs_is_named_by_its_place() {
        assert_eq!(
            down(seats(Type::I32), seats(Type::U16)).unwrap(),
            "state.it.*.hp: the node has i32, this client was built with u16: rebuild the client"
        );
        assert_eq!(
            up(seats(Type::I32), seats(variants(&["A"]))).unwrap(),
            "messages.Ask.*.hp: the node has i32, this client was built with the enum E: rebuild the client"
        );
    }

    #[test]
    fn fields_may_be_added_and_reordered() {
        let old = || structure(&[("a", Type::U8), ("b", Type::Text)]);
        let later = |of| structure(&[("b", Type::Text), ("new", of), ("a", Type::U8)]);
        assert_eq!(down(later(Type::U64), old()), None);
        assert_eq!(
            down(old(), later(Type::U64)).unwrap(),
            "state.it.new: this client was built with this field, which the node lacks: rebuild the client"
        );
        for empty in [
            Type::Option(Box::new(Type::U8)),
            Type::List(Box::new(Type::U8)),
            Type::Set(Box::new(Type::U8)),
            Type::Map(Box::new(Type::U8), Box::new(Type::U8)),
        ] {
            assert_eq!(up(later(empty), old()), None);
        }
        assert_eq!(
            up(later(Type::U64), old()).unwrap(),
            "messages.Ask.new: the node has this field, which is required and which this client was not built with: rebuild the client"
        );
        assert!(up(old(), later(Type::U64)).is_some());
    }

    #[test]
    fn variants_may_be_added_only_towards_the_node() {
        let (old, later) = (|| variants(&["A", "B"]), || variants(&["B", "C", "A"]));
        assert_eq!(up(later(), old()), None);
        assert_eq!(down(variants(&["B", "A"]), old()), None);
        let error = down(later(), old()).unwrap();
        assert!(error.starts_with("state.it.C: the node has this variant"), "{error}");
        for error in [down(old(), later()), up(old(), later())] {
            let error = error.unwrap();
            assert!(error.contains(".C: this client was built with this variant"), "{error}");
        }
    }

    #[test]
    fn everything_else_must_be_equal() {
        let array = |length| Type::Array(Box::new(Type::U8), length);
        let error = down(array(3), array(4)).unwrap();
        assert!(
            error.contains("the node has an array of 3, this client was built with an array of 4"),
            "{error}"
        );
        let keyed = |key| Type::Set(Box::new(key));
        let error = down(keyed(Type::U8), keyed(Type::Text)).unwrap();
        assert!(error.starts_with("state.it (its key): the node has u8"), "{error}");
        let steps = |step| {
            Type::Quantized(Box::new(Quantized { of: Type::F32, step, range: None, angle: false }))
        };
        let error = down(steps(0.5), steps(0.25)).unwrap();
        assert!(
            error.contains("f32 in steps of 0.5, this client was built with f32 in steps of 0.25"),
            "{error}"
        );
        assert!(down(Type::Option(Box::new(Type::U8)), Type::U8).is_some());

        let policy = |policy| {
            let field = Field { name: "hand".into(), policy, default_digest: None, of: Type::U8 };
            Type::Struct(Struct { name: "S".into(), fields: vec![field] })
        };
        let error = down(policy(Policy::Owner), policy(Policy::Everyone)).unwrap();
        assert!(
            error.starts_with("state.it.hand: the node has a field that its owner sees"),
            "{error}"
        );
        // A hidden field counts as absent.
        assert_eq!(down(policy(Policy::Owner), policy(Policy::Hidden)), None);
        assert!(down(policy(Policy::Hidden), policy(Policy::Owner)).is_some());
        // Nor do default digests matter.
        let default_digest = |default_digest| {
            let field =
                Field { name: "hand".into(), policy: Policy::Owner, default_digest, of: Type::U8 };
            Type::Struct(Struct { name: "S".into(), fields: vec![field] })
        };
        assert_eq!(down(default_digest(Some(1)), default_digest(None)), None);
        assert_eq!(down(default_digest(None), default_digest(Some(1))), None);
    }

    /// A struct that is a message, a reply or a variant of an enum.
    fn formed(names: &[&'static str], of: &Type) -> Type {
        let fields: Vec<_> = names.iter().map(|&name| (name, of.clone())).collect();
        structure(&fields)
    }

    fn variant(of: Type) -> Type {
        let Type::Struct(variant) = of else { unreachable!("a struct") };
        Type::Enum(Enum { name: "E".into(), variants: vec![variant] })
    }

    const NOTHING: &[&str] = &[];
    const ONE: &[&str] = &["0"];
    const TWO: &[&str] = &["0", "1"];
    const THREE: &[&str] = &["0", "1", "2"];
    const NAMED: &[&str] = &["a"];

    /// Clients that read trees: `null`, the field itself, an array or an object.
    #[test]
    fn the_form_of_what_a_client_reads_stays() {
        let maybe = Type::Option(Box::new(Type::U8));
        let of = |names| formed(names, &maybe);
        let reply = |node, client| {
            let whole = |of| schema(Type::U8, Type::Unit, Type::Unit, of);
            let (node, client) = (whole(node), whole(client));
            assert_eq!(check_compatible_packed(&node, &client), Ok(()));
            check_compatible(&node, &client).err().map(|error| error.to_string())
        };
        for (node, client, error) in [
            (NAMED, NOTHING, "the node has named fields, this client was built with no fields"),
            (ONE, NOTHING, "the node has one field without a name, this client was built with no"),
            (TWO, NOTHING, "the node has 2 fields without names, this client was built with no"),
            (TWO, ONE, "the node has 2 fields without names, this client was built with one field"),
            (THREE, TWO, "has 3 fields without names, this client was built with 2 fields without"),
        ] {
            let found = reply(of(node), of(client)).expect(error);
            let place = "messages.Ask (its reply): ";
            assert!(found.starts_with(place) && found.contains(error), "{found}");
            let found = reply(variant(of(node)), variant(of(client))).expect(error);
            assert!(found.contains("(its reply).S: ") && found.contains(error), "{found}");
            // A state has the names of fields as members, but an enum in it is sent as a whole.
            assert_eq!(down(of(node), of(client)), None);
            let found = down(variant(of(node)), variant(of(client))).expect(error);
            assert!(found.starts_with("state.it.S: ") && found.contains(error), "{found}");
        }
        assert_eq!(reply(of(&["b", "a"]), of(NAMED)), None);
    }

    /// The node reads what such clients wrote wherever it is clear what they meant.
    #[test]
    fn the_form_of_what_a_client_writes_may_grow() {
        let maybe = Type::Option(Box::new(Type::U8));
        let of = |names| formed(names, &maybe);
        for (node, client) in
            [(NAMED, NOTHING), (ONE, NOTHING), (TWO, NOTHING), (TWO, ONE), (THREE, TWO)]
        {
            let refused = client == NOTHING && node != NAMED;
            assert_eq!(up(of(node), of(client)).is_some(), refused, "{node:?}");
            assert_eq!(up(variant(of(node)), variant(of(client))), None);
        }
        let list = Type::List(Box::new(Type::U8));
        for first in [
            list.clone(),
            Type::Option(Box::new(list.clone())),
            Type::Array(Box::new(Type::U8), 2),
            formed(ONE, &list),
            formed(TWO, &maybe),
        ] {
            let node = structure(&[("0", first.clone()), ("1", maybe.clone())]);
            let client = structure(&[("0", first)]);
            assert_eq!(
                up(node.clone(), client.clone()).unwrap(),
                "messages.Ask: the node has 2 fields without names, this client was built with one \
                 field without a name, which is an array: rebuild the client"
            );
            let whole = |of| schema(Type::Unit, Type::Unit, of, Type::Unit);
            assert_eq!(check_compatible_packed(&whole(node), &whole(client)), Ok(()));
        }
    }

    #[test]
    fn messages_events_replies_and_options_are_checked() {
        let node = || schema(Type::U8, structure(&[("a", Type::U8)]), Type::Unit, seats(Type::U8));
        let check = |change: fn(&mut RoomSchema)| {
            let mut client = node();
            change(&mut client);
            check_compatible(&node(), &client).err().map(|error| error.place().to_owned())
        };
        assert_eq!(check(|_| {}), None);
        assert_eq!(check(|client| client.options = Type::Unit), None);
        assert_eq!(check(|client| client.options = Type::U8).as_deref(), Some("options"));
        assert_eq!(check(|client| client.messages.clear()), None);
        assert_eq!(
            check(|client| client.messages[0].name = "Tell".into()).as_deref(),
            Some("messages.Tell")
        );
        assert_eq!(
            check(|client| client.messages[0].reply = seats(Type::U16)).as_deref(),
            Some("messages.Ask (its reply).*.hp")
        );
        let event = |client: &mut RoomSchema| {
            client.events.push(EventSchema { name: "Done".into(), of: Type::Unit });
        };
        assert_eq!(check(event).as_deref(), Some("events.Done"));
    }
}
