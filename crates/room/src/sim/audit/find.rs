//! The first difference between what two runs of a room have sent to one party, and its place.

use std::cmp::Ordering;

use playfield_state::{
    DynamicMirror, FieldProfile, Format, JsonExchange, JsonMirror, PlayerId, StateProfile,
    TreeFormat, differences,
};
use playfield_wire::schema::RoomSchema;
use playfield_wire::tree::read_value;
use serde_json::{Value, json};

use super::log::Moment;
use super::transcript::{Asked, Entry, Sent, Transcript};
use super::{Difference, LeakKind};
use crate::{Error, Payload};

/// The longest value in a report, in characters.
const VALUE_CHARS_MAX: usize = 160;

/// The most fields that one difference names.
const PLACES_MAX: usize = 8;

/// A difference between two runs.
pub(super) struct Finding {
    pub(super) kind: LeakKind,
    pub(super) difference: Difference,
    pub(super) path: String,
    pub(super) values: [String; 2],
    pub(super) moment: Moment,
    /// The number of inputs before, in a run that has sent it.
    pub(super) input: usize,
    /// That run.
    pub(super) run: usize,
}

/// A place, and its values in the two runs.
type Place = (String, [String; 2]);

/// Reads what a room has sent, by its schema.
pub(super) struct Reader {
    schema: RoomSchema,
    exchange: JsonExchange,
}

impl Reader {
    pub(super) fn new(schema: RoomSchema) -> Self {
        let exchange = JsonExchange::new(&schema)
            .unwrap_or_else(|error| panic!("clients could not read the room's schema: {error}"));
        Self { schema, exchange }
    }

    /// The places of the first difference, if there is one.
    pub(super) fn first_difference(&self, runs: [&Transcript; 2]) -> Vec<Finding> {
        let [a, b] = runs.map(|run| &run.entries[..]);
        let same = a.iter().zip(b).take_while(|(one, other)| one == other).count();
        let (run, difference) = match (a.get(same), b.get(same)) {
            (None, None) => return Vec::new(),
            (Some(_), None) => (0, Difference::Count),
            (None, Some(_)) => (1, Difference::Count),
            (Some(one), Some(other)) => difference(&a[same..], &b[same..], one, other),
        };
        let entry = &runs[run].entries[same];
        let viewer = runs[run].player.unwrap_or_default();
        let path = || self.path_of_entry(&runs[run].entries, same, viewer);
        let (difference, places) = match difference {
            Difference::Value => self.places(runs, same, viewer),
            Difference::Order => {
                (difference, vec![(path(), [&a[same], &b[same]].map(|of| self.value(&of.sent)))])
            }
            Difference::Time => (difference, vec![(path(), [&a[same], &b[same]].map(when))]),
            Difference::Count | Difference::Encoding => {
                let sent = self.value(&entry.sent);
                let nothing = "nothing".to_owned();
                let values = if run == 0 { [sent, nothing] } else { [nothing, sent] };
                (difference, vec![(path(), values)])
            }
        };
        let finding = |(path, values)| Finding {
            kind: kind(&entry.sent),
            difference,
            path,
            values,
            moment: entry.moment,
            input: entry.input,
            run,
        };
        places.into_iter().take(PLACES_MAX).map(finding).collect()
    }

    /// The places at which two messages of one kind differ. If no value does, they are encoded in
    /// other bytes.
    fn places(
        &self,
        runs: [&Transcript; 2],
        at: usize,
        viewer: PlayerId,
    ) -> (Difference, Vec<Place>) {
        let sent = runs.map(|run| &run.entries[at].sent);
        let (path, values) = match sent[0] {
            Sent::Body { format, .. } => {
                (String::new(), runs.map(|run| self.copy(&run.entries[..=at], *format, viewer)))
            }
            of => (self.path(of), sent.map(|sent| self.json(sent))),
        };
        let places = compared(&path, &values[0], &values[1]);
        if !places.is_empty() {
            return (Difference::Value, places);
        }
        let path = match sent[0] {
            Sent::Body { .. } => self.path_of_encoding(runs, at, viewer),
            _ => path,
        };
        (Difference::Encoding, vec![(path, sent.map(|sent| hex(bytes(sent))))])
    }

    /// A player's copy after the last of these entries.
    fn copy(&self, entries: &[Entry], format: Format, viewer: PlayerId) -> Value {
        let Some(mut copy) = Copy::new(&self.schema, format, viewer) else { return Value::Null };
        for (is_snapshot, bytes) in bodies(entries, format) {
            copy.read(is_snapshot, bytes);
        }
        copy.value()
    }

    /// The name and the places of an entry that only one run has sent.
    fn path_of_entry(&self, entries: &[Entry], at: usize, viewer: PlayerId) -> String {
        let Sent::Body { format, is_snapshot: false, .. } = &entries[at].sent else {
            return self.path(&entries[at].sent);
        };
        let before = self.copy(&entries[..at], *format, viewer);
        let after = self.copy(&entries[..=at], *format, viewer);
        let changed = differences(&before, &after);
        let paths = changed.iter().map(|change| change.path.to_string());
        paths.take(PLACES_MAX).collect::<Vec<_>>().join(", ")
    }

    /// The fields whose bytes differ, where all values are the same.
    fn path_of_encoding(&self, runs: [&Transcript; 2], at: usize, viewer: PlayerId) -> String {
        let fields = runs.map(|run| self.bytes_by_field(&run.entries[..=at], viewer));
        let differ = fields[0].iter().zip(&fields[1]).filter(|(one, other)| one != other);
        let mut paths: Vec<&str> = differ.map(|((path, _), _)| &**path).collect();
        if paths.is_empty() {
            paths =
                fields[0].iter().filter(|(_, bytes)| *bytes > 0).map(|(path, _)| &**path).collect();
        }
        // A place in another is named with it.
        let holds = |path: &str, of: &str| {
            of.strip_prefix(path).is_some_and(|rest| path.is_empty() || rest.starts_with('.'))
        };
        let inner = paths
            .iter()
            .filter(|path| !paths.iter().any(|other| other != *path && holds(path, other)));
        inner.take(PLACES_MAX).copied().collect::<Vec<_>>().join(", ")
    }

    /// The bytes of the last body, by field.
    fn bytes_by_field(&self, entries: &[Entry], viewer: PlayerId) -> Vec<(String, u64)> {
        let Ok(mut profile) = StateProfile::new(&self.schema.state) else { return Vec::new() };
        let bytes = |profile: &StateProfile| -> Vec<(String, u64)> {
            let of =
                |field: FieldProfile| (field.path, field.snapshots.bytes() + field.patches.bytes());
            profile.fields().into_iter().map(of).collect()
        };
        let mut before = bytes(&profile);
        for (is_snapshot, body) in bodies(entries, Format::Packed) {
            before = bytes(&profile);
            let _ = if is_snapshot {
                profile.snapshot(viewer, body)
            } else {
                profile.patch(viewer, body)
            };
        }
        let all = bytes(&profile).into_iter().zip(before);
        all.map(|((path, after), (_, before))| (path, after - before)).collect()
    }

    /// The name of what is sent: of a message, an event, a field of a list of rooms.
    fn path(&self, sent: &Sent) -> String {
        let message = |number: u32| self.exchange.message_name(number).unwrap_or("?").to_owned();
        match sent {
            Sent::Event { index, .. } => self.exchange.event_name(*index).unwrap_or("?").to_owned(),
            Sent::Reply { asked: Asked { message: number, .. }, .. } => message(*number),
            Sent::Error { message: Some(number), .. } => message(*number),
            Sent::Created(_) => "created".to_owned(),
            Sent::Mail { name, .. } => name.clone(),
            _ => String::new(),
        }
    }

    /// A description of what is sent, for people.
    fn value(&self, sent: &Sent) -> String {
        match sent {
            Sent::Body { is_snapshot, bytes, .. } => {
                let what = if *is_snapshot { "a snapshot" } else { "a patch" };
                format!("{what} of {} bytes", bytes.len())
            }
            other => short(&self.json(other)),
        }
    }

    fn json(&self, sent: &Sent) -> Value {
        match sent {
            Sent::Joined(player) => json!({ "player": player.0 }),
            Sent::Refused(error) | Sent::Removed(error) | Sent::Error { error, .. } => {
                of_error(error)
            }
            Sent::Event { index, format, bytes } => match format.tree() {
                None => {
                    self.exchange.event(*index, bytes).map(|(_, event)| event).unwrap_or_default()
                }
                Some(tree) => read_value(tree, bytes).unwrap_or_default(),
            },
            Sent::Reply { asked, format, bytes } => match format.tree() {
                None => self.exchange.reply(asked.message, bytes).unwrap_or_default(),
                Some(tree) => read_value(tree, bytes).unwrap_or_default(),
            },
            Sent::Listing(listed) | Sent::Created(listed) => listed.clone(),
            Sent::Payload(Payload::Json(text)) => {
                read_value(TreeFormat::Json, text).unwrap_or_default()
            }
            other => hex(bytes(other)).into(),
        }
    }
}

/// A copy in one format.
enum Copy {
    Packed(DynamicMirror),
    Tree(JsonMirror),
}

impl Copy {
    fn new(schema: &RoomSchema, format: Format, viewer: PlayerId) -> Option<Self> {
        match format.tree() {
            None => DynamicMirror::new(&schema.state, viewer).ok().map(Self::Packed),
            Some(tree) => Some(Self::Tree(JsonMirror::of(tree))),
        }
    }

    /// `Sim` has read the same body without an error.
    fn read(&mut self, is_snapshot: bool, body: &[u8]) {
        let _ = match (self, is_snapshot) {
            (Self::Packed(copy), true) => copy.snapshot(body),
            (Self::Packed(copy), false) => copy.patch(body),
            (Self::Tree(copy), true) => copy.snapshot(body),
            (Self::Tree(copy), false) => copy.patch(body),
        };
    }

    fn value(&self) -> Value {
        match self {
            Self::Packed(copy) => copy.state().clone(),
            Self::Tree(copy) => copy.state().clone(),
        }
    }
}

/// The encoded message, if it has one of its own.
fn bytes(sent: &Sent) -> &[u8] {
    match sent {
        Sent::Body { bytes, .. }
        | Sent::Event { bytes, .. }
        | Sent::Reply { bytes, .. }
        | Sent::Mail { bytes, .. }
        | Sent::Payload(Payload::Json(bytes) | Payload::Bytes(bytes)) => bytes,
        _ => &[],
    }
}

fn bodies(entries: &[Entry], of: Format) -> impl Iterator<Item = (bool, &[u8])> {
    entries.iter().filter_map(move |entry| match &entry.sent {
        Sent::Body { format, is_snapshot, bytes } if *format == of => {
            Some((*is_snapshot, &bytes[..]))
        }
        _ => None,
    })
}

/// The way in which two runs differ from these entries on, and the run whose entry shows it.
fn difference(a: &[Entry], b: &[Entry], one: &Entry, other: &Entry) -> (usize, Difference) {
    let is_one_moment = (one.moment, one.own) == (other.moment, other.own);
    if one.sent == other.sent {
        return (0, Difference::Time);
    }
    let later = |run: &[Entry], wanted: &Entry| {
        let together = run.iter().take_while(|entry| entry.moment == wanted.moment);
        together.skip(1).any(|entry| entry.sent == wanted.sent)
    };
    if is_one_moment && later(a, other) && later(b, one) {
        return (0, Difference::Order);
    }
    if is_one_moment && is_same_kind(&one.sent, &other.sent) {
        return (0, Difference::Value);
    }
    // The earlier one is missing in the other run.
    let run = match (one.moment, one.own).cmp(&(other.moment, other.own)) {
        Ordering::Greater => 1,
        Ordering::Less => 0,
        // Of two messages of one moment, the one that comes later in the other run is not missing.
        Ordering::Equal => usize::from(later(b, one)),
    };
    (run, Difference::Count)
}

fn is_same_kind(one: &Sent, other: &Sent) -> bool {
    match (one, other) {
        (
            Sent::Body { format, is_snapshot, .. },
            Sent::Body { format: other_format, is_snapshot: other_is, .. },
        ) => format == other_format && is_snapshot == other_is,
        (Sent::Event { index, .. }, Sent::Event { index: other, .. }) => index == other,
        (Sent::Reply { asked, .. }, Sent::Reply { asked: other, .. }) => asked == other,
        (Sent::Error { asked, .. }, Sent::Error { asked: other, .. }) => asked == other,
        (Sent::Mail { name, .. }, Sent::Mail { name: other, .. }) => name == other,
        (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

fn kind(sent: &Sent) -> LeakKind {
    match sent {
        Sent::Joined(_) => LeakKind::Joined,
        Sent::Refused(_) => LeakKind::Refused,
        Sent::Removed(_) => LeakKind::Removed,
        Sent::Body { is_snapshot: true, .. } => LeakKind::Snapshot,
        Sent::Body { .. } => LeakKind::Patch,
        Sent::Event { .. } => LeakKind::Event,
        Sent::Reply { .. } => LeakKind::Reply,
        Sent::Error { .. } => LeakKind::Error,
        Sent::Listing(_) | Sent::Created(_) => LeakKind::Listing,
        Sent::Payload(_) => LeakKind::Publication,
        Sent::Mail { .. } => LeakKind::Mail,
    }
}

fn when(entry: &Entry) -> String {
    let Moment { at, tick } = entry.moment;
    format!("at {at:?}, tick {tick}, after {} of their inputs", entry.own)
}

fn of_error(error: &Error) -> Value {
    json!({
        "code": error.code().to_string(),
        "text": error.text(),
        "retry_after_ms": error.retry_after_ms(),
    })
}

/// The places at which two values differ, below a path.
pub(super) fn compared(path: &str, one: &Value, other: &Value) -> Vec<Place> {
    let place = |change: playfield_state::Change| {
        let inner = change.path.to_string();
        let separator = if path.is_empty() || inner.is_empty() { "" } else { "." };
        let value = |of: Option<Value>| of.map_or_else(|| "nothing".to_owned(), |of| short(&of));
        (format!("{path}{separator}{inner}"), [value(change.old), value(change.new)])
    };
    differences(one, other).into_iter().map(place).collect()
}

fn short(value: &Value) -> String {
    cut(value.to_string())
}

fn cut(text: String) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

fn hex(bytes: &[u8]) -> String {
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    cut(format!("{} bytes: {text}", bytes.len()))
}
