//! One table with every construct, all the way from state to copy.

use playfield_state::{
    Data, Format, JsonMirror, List, Map, Mirror, PlayerId, State, Tracker, Tracking, view,
};

#[derive(State, Default)]
struct Table {
    round: u32,
    players: Map<PlayerId, Seat>,
    #[sync(owner)]
    hands: Map<PlayerId, Hand>,
    #[sync(hidden)]
    deck: List<Card>,
    marks: Map<String, List<i64>>,
    last: Option<Card>,
}

#[derive(State, Default, Clone)]
struct Seat {
    name: String,
    hp: i32,
    #[sync(owner)]
    secret: u32,
    bag: Map<u16, Item>,
}

#[derive(State, Default, Clone)]
struct Item {
    count: u32,
    #[sync(owner)]
    worth: Option<f64>,
}

#[derive(State, Default)]
struct Hand {
    cards: List<Card>,
}

#[derive(State, Data, Default, Clone, PartialEq, Debug)]
struct Card {
    suit: u8,
    rank: u8,
}

const ANN: PlayerId = PlayerId(1);
const BOB: PlayerId = PlayerId(2);

/// A table synced to two players in both formats.
struct Bench {
    table: Table,
    tracker: Tracker<Table>,
    packed: [Mirror<Table>; 2],
    json: [JsonMirror; 2],
    at: [u64; 2],
}

impl Bench {
    fn new() -> Self {
        let mut table = Table::default();
        let tracker = Tracker::new(&mut table, Tracking::On);
        let mut bench = Self {
            table,
            tracker,
            packed: Default::default(),
            json: Default::default(),
            at: [0; 2],
        };
        bench.snapshot();
        bench
    }

    fn snapshot(&mut self) {
        for (place, viewer) in [ANN, BOB].into_iter().enumerate() {
            let mut body = Vec::new();
            self.tracker.snapshot(viewer, Format::Packed, &mut body);
            self.packed[place].snapshot(&body).unwrap();
            body.clear();
            self.tracker.snapshot(viewer, Format::Json, &mut body);
            self.json[place].snapshot(&body).unwrap();
            self.at[place] = self.tracker.version();
        }
        self.check();
    }

    /// Syncs, and gives each player a patch; returns the bytes of the packed ones.
    fn sync(&mut self) -> [Vec<u8>; 2] {
        self.tracker.sync(&mut self.table);
        let mut sent = [Vec::new(), Vec::new()];
        for (place, viewer) in [ANN, BOB].into_iter().enumerate() {
            let since = self.at[place];
            if self.tracker.patch(viewer, since, Format::Packed, &mut sent[place]) {
                self.packed[place].patch(&sent[place]).unwrap();
            }
            let mut ops = Vec::new();
            if self.tracker.patch(viewer, since, Format::Json, &mut ops) {
                self.json[place]
                    .patch(&ops)
                    .unwrap_or_else(|error| panic!("{error} in {}", String::from_utf8_lossy(&ops)));
            }
            self.at[place] = self.tracker.version();
        }
        self.check();
        sent
    }

    fn check(&self) {
        for (place, viewer) in [ANN, BOB].into_iter().enumerate() {
            let seen = view(&self.table, Some(viewer));
            assert_eq!(view(self.packed[place].state(), Some(viewer)), seen, "{viewer:?}, packed");
            assert_eq!(*self.json[place].state(), seen, "{viewer:?}, json");
        }
    }
}

fn seat(name: &str) -> Seat {
    Seat { name: name.into(), hp: 100, secret: 7, bag: Map::new() }
}

#[test]
fn copies_follow_through_a_game() {
    let mut bench = Bench::new();
    bench.table.players.insert(ANN, seat("Ann"));
    bench.table.players.insert(BOB, seat("Bob"));
    bench.table.hands.get_or_default(ANN).cards.push(Card { suit: 1, rank: 2 });
    bench.table.deck.push(Card { suit: 3, rank: 3 });
    bench.sync();
    bench.table.players.get_mut(&BOB).unwrap().hp -= 1;
    bench.table.players.get_mut(&BOB).unwrap().secret = 9;
    bench.table.players.get_mut(&BOB).unwrap().bag.insert(5, Item { count: 1, worth: Some(0.5) });
    bench.table.hands.get_or_default(BOB).cards.push(Card { suit: 0, rank: 12 });
    bench.table.marks.get_or_default("x".into()).extend([1, 2, 3]);
    bench.table.last = Some(Card { suit: 1, rank: 1 });
    bench.sync();
    bench.table.players.get_mut(&BOB).unwrap().bag.get_mut(&5).unwrap().worth = None;
    bench.table.marks.get_mut("x").unwrap().remove(0);
    bench.table.marks.get_mut("x").unwrap().push(-4);
    bench.table.last.as_mut().unwrap().rank = 9;
    bench.sync();
    bench.table.players.remove(&ANN);
    bench.table.hands.remove(&ANN);
    bench.table.last = None;
    bench.sync();
    bench.table.players.insert(ANN, seat("Ann again"));
    bench.table.hands.get_or_default(ANN).cards.extend([Card::default(), Card::default()]);
    bench.sync();
    bench.snapshot();
}

#[test]
fn a_write_without_a_change_sends_nothing() {
    let mut bench = Bench::new();
    bench.table.players.insert(ANN, seat("Ann"));
    bench.sync();
    let ann = bench.table.players.get_mut(&ANN).unwrap();
    ann.hp += 1;
    ann.hp -= 1;
    let ann = bench.table.players.remove(&ANN).unwrap();
    bench.table.players.insert(ANN, ann);
    bench.table.deck.push(Card::default());
    assert_eq!(bench.sync(), [Vec::<u8>::new(), Vec::new()]);
}

#[test]
fn only_the_owner_gets_owner_fields() {
    let mut bench = Bench::new();
    bench.table.players.insert(ANN, seat("Ann"));
    bench.table.hands.get_or_default(ANN);
    bench.sync();
    bench.table.players.get_mut(&ANN).unwrap().secret = 8;
    bench.table.hands.get_mut(&ANN).unwrap().cards.push(Card::default());
    let [ann, bob] = bench.sync();
    assert!(!ann.is_empty());
    assert!(bob.is_empty());
}

#[test]
fn a_collection_that_is_replaced_is_compared_whole() {
    let mut bench = Bench::new();
    bench.table.players.insert(ANN, seat("Ann"));
    bench.table.players.insert(BOB, seat("Bob"));
    bench.table.marks.get_or_default("x".into()).extend([1, 2, 3]);
    bench.sync();
    bench.table.players =
        bench.table.players.iter().map(|(id, seat)| (*id, seat.clone())).collect();
    bench.table.marks = bench.table.marks.clone();
    assert_eq!(bench.sync(), [Vec::<u8>::new(), Vec::new()]);
    bench.table.players = Map::new();
    bench.table.marks.insert("x".into(), List::from_iter([3, 2]));
    bench.sync();
}

#[test]
fn two_collections_that_swap_places_are_distinguished() {
    let mut bench = Bench::new();
    bench.table.marks.get_or_default("a".into()).extend([1, 2, 3]);
    bench.table.marks.get_or_default("b".into()).extend([9]);
    bench.sync();
    let a = std::mem::take(bench.table.marks.get_mut("a").unwrap());
    let b = std::mem::replace(bench.table.marks.get_mut("b").unwrap(), a);
    *bench.table.marks.get_mut("a").unwrap() = b;
    bench.table.marks.get_mut("a").unwrap().push(4);
    bench.sync();
}
