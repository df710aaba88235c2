//! The crate writes and reads the examples of `docs/state.md`.
//!
//! A block that begins with ```` ```hex NAME ```` holds bytes, each line up to its first `;`, and
//! so does ```` ```msgpack NAME ````; one that begins with ```` ```json NAME ```` holds a value.

use std::collections::BTreeMap;

use playfield_state::{
    DynamicMirror, Format, JsonMirror, Mirror, PlayerId, State, Tracker, Tracking, TreeFormat, view,
};

use crate::common::documented::{Seat, Table};

const STATE_MD: &str = include_str!("../../../docs/state.md");

const ANN: PlayerId = PlayerId(1);
const BOB: PlayerId = PlayerId(2);

/// The examples of one kind, by name.
fn examples(kind: &str) -> BTreeMap<String, String> {
    let mut examples = BTreeMap::new();
    let mut lines = STATE_MD.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix(&format!("```{kind} ")) {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            assert!(
                examples.insert(name.to_owned(), body.join("\n")).is_none(),
                "{name} occurs twice"
            );
        }
    }
    examples
}

fn bytes(text: &str) -> Vec<u8> {
    let digits = text.lines().map(|line| line.split(';').next().unwrap_or_default());
    digits
        .flat_map(str::split_whitespace)
        .map(|byte| u8::from_str_radix(byte, 16).expect("two hex digits"))
        .collect()
}

/// The bodies that are sent to both players, step by step, checked against the document.
struct Checks {
    table: Table,
    tracker: Tracker<Table>,
    packed: [Mirror<Table>; 2],
    dynamic: [DynamicMirror; 2],
    json: [JsonMirror; 2],
    msgpack: [JsonMirror; 2],
    msgpack_hex: BTreeMap<String, String>,
    hex: BTreeMap<String, String>,
    text: BTreeMap<String, String>,
}

impl Checks {
    fn snapshots(&mut self, name: &str) {
        for (place, player) in [ANN, BOB].into_iter().enumerate() {
            let name = format!("{name} {}", ["ann", "bob"][place]);
            let mut body = Vec::new();
            self.tracker.snapshot(player, Format::Packed, &mut body);
            self.check(&name, &body, Format::Packed);
            self.packed[place].snapshot(&body).unwrap();
            self.dynamic[place].snapshot(&body).unwrap();
            body.clear();
            self.tracker.snapshot(player, Format::Json, &mut body);
            self.check(&name, &body, Format::Json);
            self.json[place].snapshot(&body).unwrap();
            body.clear();
            self.tracker.snapshot(player, Format::Msgpack, &mut body);
            self.check(&name, &body, Format::Msgpack);
            self.msgpack[place].snapshot(&body).unwrap();
        }
    }

    fn patches(&mut self, name: &str) {
        let since = self.tracker.version();
        self.tracker.sync(&mut self.table);
        for (place, player) in [ANN, BOB].into_iter().enumerate() {
            let name = format!("{name} {}", ["ann", "bob"][place]);
            let mut body = Vec::new();
            if self.tracker.patch(player, since, Format::Packed, &mut body) {
                self.check(&name, &body, Format::Packed);
                self.packed[place].patch(&body).unwrap();
                self.dynamic[place].patch(&body).unwrap();
            }
            body.clear();
            if self.tracker.patch(player, since, Format::Json, &mut body) {
                self.check(&name, &body, Format::Json);
                self.json[place].patch(&body).unwrap();
            }
            body.clear();
            if self.tracker.patch(player, since, Format::Msgpack, &mut body) {
                self.check(&name, &body, Format::Msgpack);
                self.msgpack[place].patch(&body).unwrap();
            }
            let seen = view(&self.table, Some(player));
            assert_eq!(view(self.packed[place].state(), Some(player)), seen);
            assert_eq!(*self.json[place].state(), seen);
            assert_eq!(*self.dynamic[place].state(), seen);
            assert_eq!(self.dynamic[place].digest(), self.tracker.digest(player, Format::Packed));
            assert_eq!(*self.msgpack[place].state(), seen);
        }
    }

    /// Checks a body against the document, if it has an example of it.
    fn check(&mut self, name: &str, body: &[u8], format: Format) {
        match format {
            Format::Packed => {
                if let Some(text) = self.hex.remove(name) {
                    assert_eq!(bytes(&text), body, "{name}: {body:02x?}");
                }
            }
            Format::Msgpack => {
                if let Some(text) = self.msgpack_hex.remove(name) {
                    assert_eq!(bytes(&text), body, "{name}: {body:02x?}");
                }
            }
            Format::Json => {
                if let Some(text) = self.text.remove(name) {
                    let said: serde_json::Value = serde_json::from_str(&text).unwrap();
                    let sent: serde_json::Value = serde_json::from_slice(body).unwrap();
                    assert_eq!(said, sent, "{name}");
                }
            }
        }
        if std::env::var_os("SHOW").is_some() {
            println!("{name}: {body:02x?} {}", String::from_utf8_lossy(body));
        }
    }
}

#[test]
fn the_examples_are_correct() {
    let mut table = Table { round: 1, last: Some(9), ..Table::default() };
    table.seats.insert(ANN, Seat { hp: 100, secret: 7 });
    table.seats.insert(BOB, Seat { hp: -3, secret: 8 });
    table.hands.get_or_default(ANN).cards.extend([5, 6]);
    table.deck.extend([1, 2, 3]);
    table.log.extend([10, 20, 30]);
    let tracker = Tracker::new(&mut table, Tracking::On);
    let mut checks = Checks {
        table,
        tracker,
        packed: Default::default(),
        dynamic: [ANN, BOB].map(|player| DynamicMirror::new(&Table::schema(), player).unwrap()),
        json: Default::default(),
        msgpack: [TreeFormat::Msgpack; 2].map(JsonMirror::of),
        msgpack_hex: examples("msgpack"),
        hex: examples("hex"),
        text: examples("json"),
    };
    assert!(
        checks.hex.len() >= 6 && checks.text.len() >= 5 && checks.msgpack_hex.len() >= 2,
        "the examples are found"
    );
    checks.snapshots("snapshot");

    checks.table.round = 300;
    checks.table.seats.get_mut(&ANN).unwrap().hp -= 1;
    checks.patches("fields");

    checks.table.seats.get_mut(&ANN).unwrap().secret = 9;
    checks.table.hands.get_mut(&ANN).unwrap().cards.push(4);
    checks.patches("owned");

    checks.table.seats.remove(&ANN);
    checks.table.hands.remove(&ANN);
    checks.table.seats.insert(PlayerId(3), Seat { hp: 1, secret: 2 });
    checks.table.hands.get_or_default(BOB);
    checks.patches("map");

    checks.table.log.remove(0);
    checks.table.log[0] = 21;
    checks.table.log.push(40);
    checks.table.last = None;
    checks.patches("list");

    checks.table.log.extend((1..=6).map(|n| 100 + n));
    checks.patches("longer list");
    checks.table.log.move_to(1, 7);
    checks.patches("move");
    checks.table.log.reverse();
    checks.patches("order");

    for player in 10..15 {
        checks.table.seats.insert(PlayerId(player), Seat { hp: 100, secret: 0 });
    }
    checks.patches("arrivals");
    for (player, hp) in (10..15).zip([100 - 1, 97, 98, 96, 95]) {
        checks.table.seats.get_mut(&PlayerId(player)).unwrap().hp = hp;
    }
    checks.patches("columns");

    checks.table.deck.clear();
    checks.patches("hidden");
    let unchecked: Vec<String> = [checks.hex, checks.text, checks.msgpack_hex]
        .into_iter()
        .flat_map(BTreeMap::into_keys)
        .collect();
    assert!(unchecked.is_empty(), "examples that nothing checks: {unchecked:?}");
}
