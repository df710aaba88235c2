//! Changes of a state, and the bodies that its viewers get.

use playfield_state::{
    DynamicMirror, Format, JsonMirror, Mirror, PlayerId, State, Tracker, Tracking, TreeFormat,
    view, view_in,
};
use playfield_wire::schema::{RoomSchema, Type};
use serde_json::{Value, json};

/// A change of a state, with a description. A change without one is not sent by itself, but with
/// the next that has one.
pub(crate) type Step<T> = (&'static str, fn(&mut T));

/// A body that a copy at the end of the story must reject, and why.
pub(crate) type Refused = (&'static str, &'static str);

/// Runs a story from the beginning. The first step happens before the snapshot.
pub(crate) fn story<T: State + Default>(
    about: &str,
    viewers: &[u64],
    steps: &[Step<T>],
    refused: &[Refused],
) -> Value {
    let schema = RoomSchema {
        state: T::schema(),
        options: Type::Unit,
        messages: Vec::new(),
        events: Vec::new(),
    };
    let schema: Value = serde_json::from_str(&schema.to_json()).unwrap();
    let viewers: Vec<Value> =
        viewers.iter().map(|viewer| viewer_story(PlayerId(*viewer), steps, refused)).collect();
    json!({ "about": about, "schema": schema, "viewers": viewers })
}

fn viewer_story<T: State + Default>(
    viewer: PlayerId,
    steps: &[Step<T>],
    refused: &[Refused],
) -> Value {
    let (first, rest) = steps.split_first().expect("a story begins somewhere");
    let mut state = T::default();
    first.1(&mut state);
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let mut copies = Copies::<T>::new(viewer);
    let mut steps_sent = vec![copies.snapshot(first.0, &state, &mut tracker)];
    let mut sent = tracker.version();
    for (what, change) in rest {
        change(&mut state);
        tracker.sync(&mut state);
        if what.is_empty() {
            continue; // a version that is sent to no one
        }
        if let Some(step) = copies.patch(what, &state, &mut tracker, sent) {
            sent = tracker.version();
            steps_sent.push(step);
        }
    }
    if !refused.is_empty() {
        let refused = refused.iter().map(|(why, hex)| copies.refuse(why, hex));
        steps_sent.push(json!({ "kind": "refused", "refused": refused.collect::<Vec<Value>>() }));
    }
    json!({ "viewer": viewer.0, "steps": steps_sent })
}

/// One viewer's copies.
struct Copies<T> {
    viewer: PlayerId,
    typed: Mirror<T>,
    dynamic: DynamicMirror,
    json: JsonMirror,
    msgpack: JsonMirror,
    /// The bodies that the typed copy was made from, since it can't be cloned.
    bodies: Vec<Vec<u8>>,
}

impl<T: State + Default> Copies<T> {
    fn new(viewer: PlayerId) -> Self {
        Self {
            viewer,
            typed: Mirror::new(),
            dynamic: DynamicMirror::new(&T::schema(), viewer).unwrap(),
            json: JsonMirror::new(),
            msgpack: JsonMirror::of(TreeFormat::Msgpack),
            bodies: Vec::new(),
        }
    }

    fn snapshot(&mut self, what: &str, state: &T, tracker: &mut Tracker<T>) -> Value {
        let [packed, msgpack, json] = Format::ALL.map(|format| {
            let mut body = Vec::new();
            tracker.snapshot(self.viewer, format, &mut body);
            body
        });
        self.typed.snapshot(&packed).unwrap();
        self.dynamic.snapshot(&packed).unwrap();
        self.json.snapshot(&json).unwrap();
        self.msgpack.snapshot(&msgpack).unwrap();
        self.bodies = vec![packed.clone()];
        self.compare(state, tracker);
        json!({
            "kind": "snapshot",
            "what": what,
            "version": tracker.version(),
            "packed": hex(&packed),
            "msgpack": hex(&msgpack),
            "json": serde_json::from_slice::<Value>(&json).unwrap(),
            "state": self.json.state(),
            "digests": self.digests(),
        })
    }

    fn patch(
        &mut self,
        what: &str,
        state: &T,
        tracker: &mut Tracker<T>,
        since: u64,
    ) -> Option<Value> {
        let [packed, msgpack, json] = Format::ALL.map(|format| {
            let mut body = Vec::new();
            tracker.patch(self.viewer, since, format, &mut body);
            body
        });
        if packed.is_empty() {
            self.compare(state, tracker);
            return None;
        }
        let cuts: Vec<usize> =
            (0..packed.len()).filter(|end| !self.takes(&packed[..*end])).collect();
        self.typed.patch(&packed).unwrap();
        self.dynamic.patch(&packed).unwrap();
        self.json.patch(&json).unwrap();
        self.msgpack.patch(&msgpack).unwrap();
        self.bodies.push(packed.clone());
        self.compare(state, tracker);
        Some(json!({
            "kind": "patch",
            "what": what,
            "base": since,
            "version": tracker.version(),
            "packed": hex(&packed),
            "refused_cuts": cuts,
            "msgpack": hex(&msgpack),
            "json": serde_json::from_slice::<Value>(&json).unwrap(),
            "state": self.json.state(),
            "digests": self.digests(),
        }))
    }

    fn refuse(&self, why: &str, body: &str) -> Value {
        assert!(!self.takes(&bytes(body)), "it should be rejected: {why}");
        json!({ "why": why, "packed": body })
    }

    /// Whether the typed copy and the other both accept this patch.
    fn takes(&self, body: &[u8]) -> bool {
        let mut typed = Mirror::<T>::new();
        let (snapshot, patches) = self.bodies.split_first().expect("a snapshot has come");
        typed.snapshot(snapshot).unwrap();
        patches.iter().for_each(|patch| typed.patch(patch).unwrap());
        let takes = typed.patch(body).is_ok();
        assert_eq!(self.dynamic.clone().patch(body).is_ok(), takes, "{body:02x?}");
        takes
    }

    fn compare(&self, state: &T, tracker: &mut Tracker<T>) {
        let seen = view(state, Some(self.viewer));
        assert_eq!(view(self.typed.state(), Some(self.viewer)), seen);
        assert_eq!(*self.dynamic.state(), seen);
        assert_eq!(*self.json.state(), seen);
        assert_eq!(*self.msgpack.state(), view_in(TreeFormat::Msgpack, state, Some(self.viewer)));
        let digests = Format::ALL.map(|format| tracker.digest(self.viewer, format));
        assert_eq!([self.typed.digest(), self.msgpack.digest(), self.json.digest()], digests);
        assert_eq!(self.dynamic.digest(), self.typed.digest());
    }

    fn digests(&self) -> Value {
        json!({
            "packed": format!("{:016x}", self.typed.digest()),
            "msgpack": format!("{:08x}", self.msgpack.digest()),
            "json": format!("{:08x}", self.json.digest()),
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of a hex string. Spaces are ignored.
pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}
