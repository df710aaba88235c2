//! Lists whose elements move: what is sent, what the copies become, and the identity of elements.

use crate::common;

use common::Dice;
use playfield_state::{
    ElementId, Format, JsonMirror, List, Map, Mirror, PlayerId, State, Tracker, Tracking, view,
};
use proptest::prelude::*;
use proptest::test_runner::Config;

const ANN: PlayerId = PlayerId(1);
const BOB: PlayerId = PlayerId(2);

#[derive(State, Default, Clone)]
struct Table {
    seats: Map<PlayerId, Seat>,
    rows: List<List<u8>>,
}

#[derive(State, Default, Clone)]
struct Seat {
    cards: List<Card>,
    #[sync(owner)]
    own: List<Card>,
}

#[derive(State, Default, Clone)]
struct Card {
    look: u16,
    #[sync(owner)]
    note: u16,
    #[sync(hidden)]
    face: u16,
    marks: List<u8>,
}

impl Card {
    fn any(dice: &mut Dice, kinds: usize) -> Self {
        let (look, note) = (dice.pick(kinds) as u16, dice.pick(500) as u16);
        let marks = (0..dice.pick(3)).map(|mark| mark as u8).collect();
        Self { look, note, face: dice.pick(500) as u16, marks }
    }
}

fn change<T>(
    list: &mut List<T>,
    dice: &mut Dice,
    make: impl Fn(&mut Dice) -> T,
    key: impl Fn(&T) -> u64,
) {
    let length = list.len();
    if length < 2 || (length < 200 && dice.once_in(30)) {
        return (0..1 + dice.pick(120)).for_each(|_| list.push(make(dice)));
    }
    let (one, other) = (dice.pick(length), dice.pick(length));
    match dice.pick(13) {
        0 => list.insert(one, make(dice)),
        1 => drop(list.remove(one)),
        2 => list.swap(one, other),
        3 | 4 => list.move_to(one, other),
        5 => list.sort_by_key(key),
        6 => list.sort_by_key(|value| std::cmp::Reverse(key(value))),
        7 => list.reverse(),
        8 => drop(list.drain(one.min(other)..one.max(other).min(one.min(other) + 5))),
        9 if dice.once_in(4) => {
            (0..length).for_each(|_| list.swap(dice.pick(length), dice.pick(length)));
        }
        10 => (0..dice.pick(30)).for_each(|_| {
            list.pop();
            list.insert(dice.pick(list.len() + 1), make(dice));
        }),
        11 => (0..dice.pick(30)).for_each(|_| list[dice.pick(length)] = make(dice)),
        12 if dice.once_in(4) => list.iter_mut().for_each(|value| *value = make(dice)),
        _ => list[one] = make(dice),
    }
}

fn change_cards(cards: &mut List<Card>, dice: &mut Dice, kinds: usize) {
    match cards.get_mut(dice.pick(200)) {
        Some(card) if dice.once_in(2) => card.note = dice.pick(500) as u16,
        Some(card) => {
            change(&mut card.marks, dice, |dice| dice.pick(4) as u8, |mark| u64::from(*mark));
        }
        None => change(cards, dice, |dice| Card::any(dice, kinds), |card| u64::from(card.look)),
    }
}

impl Table {
    fn change(&mut self, dice: &mut Dice, kinds: usize) {
        match dice.pick(5) {
            0 => change_cards(&mut self.seats.get_or_default(BOB).cards, dice, kinds),
            1 => change_cards(&mut self.seats.get_or_default(ANN).own, dice, kinds),
            2 => change(
                &mut self.rows,
                dice,
                |dice| (0..dice.pick(4)).map(|_| dice.pick(3) as u8).collect(),
                |row| row.iter().map(|n| u64::from(*n)).sum(),
            ),
            _ => change_cards(&mut self.seats.get_or_default(ANN).cards, dice, kinds),
        }
    }

    /// A table that looks the same to Bob, with other hidden contents and another history.
    fn disguised(&self, dice: &mut Dice) -> Self {
        let mut other = self.clone();
        if let Some(seat) = other.seats.get_mut(&ANN) {
            seat.own.push(Card::any(dice, 3));
            // Cards that look the same swap places.
            let length = seat.cards.len();
            for _ in 0..length {
                let (a, b) = (dice.pick(length), dice.pick(length));
                if seat.cards[a].look == seat.cards[b].look
                    && seat.cards[a].marks == seat.cards[b].marks
                {
                    seat.cards.swap(a, b);
                }
            }
            seat.cards
                .iter_mut()
                .for_each(|card| (card.face, card.note) = (dice.pick(9) as u16, 7));
        }
        if let Some(seat) = other.seats.get_mut(&BOB) {
            seat.cards.iter_mut().for_each(|card| card.face = dice.pick(9) as u16);
        }
        other
    }
}

/// One player's copies, updated now and then.
struct Client {
    player: PlayerId,
    packed: Mirror<Table>,
    json: JsonMirror,
    at: u64,
}

fn body(
    tracker: &mut Tracker<Table>,
    player: PlayerId,
    since: u64,
    format: Format,
) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    tracker.patch(player, since, format, &mut body).then_some(body)
}

impl Client {
    fn new(tracker: &mut Tracker<Table>, player: PlayerId) -> Self {
        let (mut packed, mut json) = (Mirror::new(), JsonMirror::new());
        let mut body = Vec::new();
        tracker.snapshot(player, Format::Packed, &mut body);
        packed.snapshot(&body).unwrap();
        body.clear();
        tracker.snapshot(player, Format::Json, &mut body);
        json.snapshot(&body).unwrap();
        Self { player, packed, json, at: tracker.version() }
    }

    fn read(&mut self, table: &Table, tracker: &mut Tracker<Table>) {
        if let Some(body) = body(tracker, self.player, self.at, Format::Packed) {
            self.packed.patch(&body).unwrap();
        }
        if let Some(body) = body(tracker, self.player, self.at, Format::Json) {
            self.json.patch(&body).unwrap();
        }
        self.at = tracker.version();
        let seen = view(table, Some(self.player));
        assert_eq!(view(self.packed.state(), Some(self.player)), seen);
        assert_eq!(*self.json.state(), seen);
        assert_eq!(self.packed.digest(), tracker.digest(self.player, Format::Packed));
        for seat in self.packed.state().seats.values() {
            assert!(all_different(&seat.cards) && all_different(&seat.own));
        }
    }
}

fn all_different<T>(list: &List<T>) -> bool {
    let mut ids: Vec<ElementId> = list.ids().collect();
    ids.sort_unstable();
    ids.windows(2).all(|pair| pair[0] != pair[1])
}

fn config() -> Config {
    let cases = std::env::var("PLAYFIELD_LAW_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(30);
    Config { cases, failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn copies_of_long_lists_are_right(seed in any::<u64>(), on in any::<bool>()) {
        let mut dice = Dice::new(seed);
        let kinds = [2, 20, 60_000][dice.pick(3)];
        let mut table = Table::default();
        (0..5).for_each(|_| table.change(&mut dice, kinds));
        let mut tracker = Tracker::new(&mut table, if on { Tracking::On } else { Tracking::Off });
        let mut clients = [ANN, BOB, ANN, BOB].map(|player| Client::new(&mut tracker, player));
        for _ in 0..20 {
            (0..dice.pick(4)).for_each(|_| table.change(&mut dice, kinds));
            tracker.sync(&mut table);
            for (place, client) in clients.iter_mut().enumerate() {
                if dice.once_in(1 + 3 * place) {
                    client.read(&table, &mut tracker);
                }
            }
        }
    }

    #[test]
    fn which_of_equal_elements_moved_does_not_show(seed in any::<u64>(), on in any::<[bool; 2]>()) {
        let mut dice = Dice::new(seed);
        let kinds = [2, 20, 60_000][dice.pick(3)];
        let mut table = Table::default();
        (0..5).for_each(|_| table.change(&mut dice, kinds));
        let mut other = table.disguised(&mut dice);
        let tracking = on.map(|on| if on { Tracking::On } else { Tracking::Off });
        let mut trackers = [Tracker::new(&mut table, tracking[0]), Tracker::new(&mut other, tracking[1])];
        for _ in 0..12 {
            (0..dice.pick(3)).for_each(|_| table.change(&mut dice, kinds));
            other = table.disguised(&mut dice);
            let [one, two] = &mut trackers;
            one.sync(&mut table);
            two.sync(&mut other);
            for since in [one.version() - 1, 1 + dice.pick(one.version() as usize) as u64] {
                for format in [Format::Packed, Format::Json] {
                    prop_assert_eq!(body(one, BOB, since, format), body(two, BOB, since, format));
                }
            }
        }
    }
}

/// A table with this many cards, all different, before Ann.
fn table_of(cards: u16) -> Table {
    let mut table = Table::default();
    let card = |look| Card { look, note: look + 500, face: 0, marks: List::from([1, 2]) };
    table.seats.get_or_default(ANN).cards = (0..cards).map(card).collect();
    table
}

/// Returns the number of bytes sent to Bob for a change of Ann's cards. Ann's copy is checked too.
fn sent(cards: u16, change: impl FnOnce(&mut List<Card>)) -> [usize; 2] {
    let mut table = table_of(cards);
    let mut tracker = Tracker::new(&mut table, Tracking::On);
    let mut clients = [ANN, BOB].map(|player| Client::new(&mut tracker, player));
    change(&mut table.seats.get_mut(&ANN).unwrap().cards);
    tracker.sync(&mut table);
    clients.iter_mut().for_each(|client| client.read(&table, &mut tracker));
    [Format::Packed, Format::Json]
        .map(|format| body(&mut tracker, BOB, 1, format).map_or(0, |body| body.len()))
}

#[test]
fn a_move_takes_a_few_bytes_and_an_order_one_or_two_for_each_element() {
    assert_eq!(sent(50, |cards| cards.move_to(40, 3)), [11, 37]);
    assert_eq!(sent(50, |cards| cards.swap(40, 3)), [14, 73]);
    // By position it would be 157 bytes, and 1851 in JSON.
    assert_eq!(sent(50, List::reverse), [60, 175]);
    assert_eq!(sent(10_000, |cards| cards.move_to(9_000, 3)), [12, 39]);
    assert!(sent(10_000, List::reverse)[0] < 20_000);
}

/// Elements keep their ids, on the server and in every copy, whatever moves.
#[test]
fn ids_stay_with_their_elements() {
    let mut table = table_of(60);
    let mut tracker = Tracker::new(&mut table, Tracking::On);
    let mut clients = [ANN, BOB].map(|player| Client::new(&mut tracker, player));
    let by_look = |table: &Table| {
        let cards = &table.seats.get(&ANN).unwrap().cards;
        let mut ids: Vec<(u16, ElementId)> =
            cards.iter().map(|card| card.look).zip(cards.ids()).collect();
        ids.sort_unstable();
        ids
    };
    let changes: [fn(&mut List<Card>); 9] = [
        |cards| cards.move_to(0, 59),
        |cards| cards.swap(7, 30),
        List::reverse,
        |cards| cards.sort_by_key(|card| card.look.reverse_bits()),
        |cards| cards.sort_by_key(|card| card.look),
        |cards| drop(cards.drain(5..9)),
        |cards| {
            (0..9).for_each(|look| cards.insert(20, Card { look: 100 + look, ..Card::default() }));
        },
        |cards| {
            cards.reverse();
            cards.pop();
            cards.insert(0, Card { look: 300, ..Card::default() });
        },
        |cards| cards[3].marks.push(1),
    ];
    for change in changes {
        let before: Vec<_> = clients.iter().map(|client| by_look(client.packed.state())).collect();
        let on_server = by_look(&table);
        change(&mut table.seats.get_mut(&ANN).unwrap().cards);
        tracker.sync(&mut table);
        clients.iter_mut().for_each(|client| client.read(&table, &mut tracker));
        for (before, after) in
            before.iter().zip(clients.iter().map(|client| by_look(client.packed.state())))
        {
            let stayed = after.iter().filter(|(look, _)| before.iter().any(|(one, _)| one == look));
            let kept = stayed.clone().filter(|one| before.contains(one)).count();
            assert_eq!(kept, stayed.count());
            assert!(kept >= 50);
        }
        assert!(by_look(&table).iter().filter(|one| on_server.contains(one)).count() >= 50);
    }
}

#[test]
fn a_list_that_is_sent_whole_has_new_ids() {
    let mut table = table_of(60);
    let mut tracker = Tracker::new(&mut table, Tracking::On);
    let mut bob = Client::new(&mut tracker, BOB);
    let ids =
        |bob: &Client| bob.packed.state().seats.get(&ANN).unwrap().cards.ids().collect::<Vec<_>>();
    let before = ids(&bob);
    for _ in 0..80 {
        let cards = &mut table.seats.get_mut(&ANN).unwrap().cards;
        cards.pop();
        cards.insert(30, Card { look: 400, ..Card::default() });
        tracker.sync(&mut table);
    }
    bob.read(&table, &mut tracker);
    assert!(ids(&bob).iter().all(|id| !before.contains(id)));
}

#[test]
fn the_time_to_sort_a_long_list_grows_with_its_length() {
    let mut table = table_of(10_000);
    let mut tracker = Tracker::new(&mut table, Tracking::On);
    let mut bob = Client::new(&mut tracker, BOB);
    // With quadratic time, these would take minutes.
    for turn in 0..4 {
        let cards = &mut table.seats.get_mut(&ANN).unwrap().cards;
        cards.sort_by_key(|card| {
            u64::from(card.look + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> turn
        });
        tracker.sync(&mut table);
        bob.read(&table, &mut tracker);
    }
}
