//! The browser client (`playfield.js`) applies the engine's patches: its copy equals what its
//! player may see.
//!
//! Node runs it. If Node is missing, the test reports that and is skipped. `PLAYFIELD_LAW_CASES`
//! sets the number of histories.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _, stderr};
use std::process::{Command, Stdio};

use playfield::{Format, List, Map, PlayerId, State, Tracker, Tracking, view};

#[derive(State, Default)]
struct World {
    round: u32,
    ratio: f64,
    title: String,
    last: Option<u32>,
    clock: Clock,
    tags: Map<String, Tag>,
    rows: Map<i32, List<u8>>,
    seats: Map<PlayerId, Seat>,
    #[sync(owner)]
    hands: Map<PlayerId, List<u32>>,
    #[sync(hidden)]
    deck: List<u32>,
    log: List<String>,
    units: List<Unit>,
    nested: List<List<u8>>,
}

#[derive(State, Default)]
struct Clock {
    tick: u32,
    alarm: Option<Alarm>,
}

#[derive(State, Default)]
struct Alarm {
    at: u16,
    marks: Map<u32, bool>,
}

#[derive(State, Default)]
struct Tag {
    count: u32,
    places: List<u8>,
    #[sync(hidden)]
    trap: bool,
}

#[derive(State, Default)]
struct Seat {
    name: String,
    #[sync(owner)]
    notes: List<String>,
    #[sync(owner)]
    goal: Option<Alarm>,
}

#[derive(State, Default)]
struct Unit {
    x: i32,
    path: List<u8>,
    target: Option<Alarm>,
}

impl World {
    fn change(&mut self, dice: &mut Dice) {
        let player = PlayerId(1 + dice.pick(3) as u64);
        match dice.pick(16) {
            0 => self.round += 1,
            1 => self.ratio = dice.pick(9) as f64 / 7.0,
            2 => self.title = dice.word(),
            3 => self.last = if dice.pick(2) == 0 { None } else { Some(dice.number()) },
            4 => self.clock.tick += 1,
            5 => change_option(&mut self.clock.alarm, dice),
            6 => drop(self.tags.remove(&dice.word())),
            7 => {
                let tag = self.tags.get_or_default(dice.word());
                tag.count += dice.number();
                tag.trap = dice.pick(2) == 0;
                change_list(&mut tag.places, dice, Dice::byte);
            }
            8 => drop(self.rows.remove(&(dice.pick(5) as i32 - 2))),
            9 => change_list(self.rows.get_or_default(dice.pick(5) as i32 - 2), dice, Dice::byte),
            10 if dice.pick(3) == 0 => {
                drop((self.seats.remove(&player), self.hands.remove(&player)));
            }
            10 => self.seats.get_or_default(player).name = dice.word(),
            11 => change_list(&mut self.seats.get_or_default(player).notes, dice, Dice::word),
            12 => change_option(&mut self.seats.get_or_default(player).goal, dice),
            13 => {
                change_list(self.hands.get_or_default(player), dice, Dice::number);
                change_list(&mut self.deck, dice, Dice::number);
            }
            14 => {
                let length = self.nested.len();
                match self.nested.get_mut(dice.pick(length + 1)) {
                    Some(inner) => change_list(inner, dice, Dice::byte),
                    None => change_list(&mut self.nested, dice, |_| List::new()),
                }
                change_list(&mut self.log, dice, Dice::word);
            }
            _ => {
                let length = self.units.len();
                match self.units.get_mut(dice.pick(length + 1)) {
                    Some(unit) if dice.pick(2) == 0 => {
                        change_list(&mut unit.path, dice, Dice::byte);
                    }
                    Some(unit) if dice.pick(2) == 0 => change_option(&mut unit.target, dice),
                    _ => {
                        change_list(&mut self.units, dice, |dice| Unit {
                            x: dice.pick(9) as i32,
                            ..Unit::default()
                        });
                        let down = dice.pick(4) == 0;
                        self.units.sort_by(|a, b| if down { b.x.cmp(&a.x) } else { a.x.cmp(&b.x) });
                    }
                }
            }
        }
    }
}

fn change_option(alarm: &mut Option<Alarm>, dice: &mut Dice) {
    match alarm {
        None => *alarm = Some(Alarm { at: dice.pick(9) as u16, ..Alarm::default() }),
        Some(_) if dice.pick(3) == 0 => *alarm = None,
        Some(alarm) => drop(alarm.marks.insert(dice.number(), dice.pick(2) == 0)),
    }
}

fn change_list<T: State>(
    list: &mut List<T>,
    dice: &mut Dice,
    mut make: impl FnMut(&mut Dice) -> T,
) {
    let length = list.len();
    match dice.pick(8) {
        0..=2 => list.insert(dice.pick(length + 1), make(dice)),
        _ if length == 0 => list.push(make(dice)),
        3 => drop(list.remove(dice.pick(length))),
        4 => list.swap(dice.pick(length), dice.pick(length)),
        5 => list[dice.pick(length)] = make(dice),
        6 => {
            if let Some(moved) = list.remove(dice.pick(length)) {
                list.insert(dice.pick(length), moved);
            }
        }
        _ if length > 20 => list.truncate(4),
        // Many places change at once.
        _ => (0..length).for_each(|_| list.swap(dice.pick(length), dice.pick(length))),
    }
}

/// Random numbers from a seed: SplitMix64, by Steele, Lea and Flood.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn pick(&mut self, count: usize) -> usize {
        (self.roll() % count as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        self.pick(5) as u8
    }

    fn number(&mut self) -> u32 {
        self.pick(6) as u32
    }

    /// These include indices, and words with a special meaning in JavaScript.
    fn word(&mut self) -> String {
        ["a", "0", "1", "", "ü \"quoted\"", "length", "__proto__", "constructor"][self.pick(8)]
            .to_owned()
    }
}

/// One history as a line of JSON. Some syncs send no patch, as to a slow reader.
fn history(seed: u64) -> String {
    let dice = &mut Dice(seed);
    let viewer = PlayerId(1 + dice.pick(3) as u64);
    let mut world = World::default();
    (0..dice.pick(30)).for_each(|_| world.change(dice));
    let mut tracker = Tracker::new(&mut world, Tracking::On);
    let mut line = br#"{"snapshot":"#.to_vec();
    tracker.snapshot(viewer, Format::Json, &mut line);
    line.extend_from_slice(br#","patches":["#);
    let (mut since, mut comma) = (tracker.version(), false);
    let syncs = 1 + dice.pick(30);
    for sync in 1..=syncs {
        (0..dice.pick(5)).for_each(|_| world.change(dice));
        tracker.sync(&mut world);
        let mut ops = Vec::new();
        let is_read = sync == syncs || dice.pick(3) > 0;
        if is_read && tracker.patch(viewer, since, Format::Json, &mut ops) {
            line.extend_from_slice(if comma { b"," } else { b"" });
            line.extend_from_slice(&ops);
            (since, comma) = (tracker.version(), true);
        }
    }
    let mut line = String::from_utf8(line).expect("JSON is text");
    let (expected, digest) = (view(&world, Some(viewer)), tracker.digest(viewer, Format::Json));
    writeln!(line, r#"],"expected":{expected},"digest":{digest}}}"#)
        .expect("writing to a String can't fail");
    line
}

#[test]
fn the_browsers_copy_equals_what_its_player_may_see() {
    let count = std::env::var("PLAYFIELD_LAW_CASES")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(300);
    let node = Command::new("node")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/typescript/test/served/histories.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut node = match node {
        Ok(node) => node,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            assert!(std::env::var_os("CI").is_none(), "node is missing");
            // This bypasses the test harness, which hides the output of passing tests.
            let text = "playfield: node is missing, so the test of the browser's copy (tests/browser.rs) is skipped.";
            return writeln!(stderr(), "{text}").expect("stderr can be written");
        }
        Err(error) => panic!("node can't be started: {error}"),
    };
    // Node answers only after it has read everything. If it ends earlier, its output says more than
    // the broken pipe.
    let mut input = node.stdin.take().expect("it is piped");
    let written = (0..count).try_for_each(|seed| input.write_all(history(seed).as_bytes()));
    drop(input);
    let output = node.wait_with_output().expect("node ends when its input does");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(written.is_ok() && output.status.success(), "{written:?}, {}\n{said}", output.status);
    assert_eq!(said, format!("{count} histories\n"));
}
