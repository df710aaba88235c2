//! Cases that once broke a law, or nearly did. Each has its own test.

use playfield_state::{
    Data, Format, JsonMirror, List, Map, Mirror, PlayerId, State, Tracker, Tracking, TreeFormat,
    view, view_in,
};

const ANN: PlayerId = PlayerId(1);
const BOB: PlayerId = PlayerId(2);

/// The patch for one player from a version to now; `None` if there is nothing to send.
fn patch<T: State>(
    tracker: &mut Tracker<T>,
    viewer: PlayerId,
    since: u64,
    format: Format,
) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    tracker.patch(viewer, since, format, &mut body).then_some(body)
}

fn patch_json<T: State>(tracker: &mut Tracker<T>, viewer: PlayerId, since: u64) -> Option<String> {
    patch(tracker, viewer, since, Format::Json).map(|body| String::from_utf8(body).unwrap())
}

fn trees() -> [(TreeFormat, JsonMirror); 2] {
    [TreeFormat::Msgpack, TreeFormat::Json].map(|format| (format, JsonMirror::of(format)))
}

/// One player's copies in every format, checked at every step.
struct Copies<T: State + Default> {
    viewer: PlayerId,
    packed: Mirror<T>,
    trees: [(TreeFormat, JsonMirror); 2],
    at: u64,
}

impl<T: State + Default> Copies<T> {
    fn of(state: &T, tracker: &mut Tracker<T>, viewer: PlayerId) -> Self {
        let mut copies =
            Self { viewer, packed: Mirror::new(), trees: trees(), at: tracker.version() };
        let mut body = Vec::new();
        tracker.snapshot(viewer, Format::Packed, &mut body);
        copies.packed.snapshot(&body).unwrap();
        for (format, tree) in &mut copies.trees {
            body.clear();
            tracker.snapshot(viewer, (*format).into(), &mut body);
            tree.snapshot(&body).unwrap();
        }
        copies.check(state);
        copies
    }

    fn read(&mut self, state: &T, tracker: &mut Tracker<T>) {
        if let Some(body) = patch(tracker, self.viewer, self.at, Format::Packed) {
            self.packed.patch(&body).unwrap();
        }
        for (format, tree) in &mut self.trees {
            if let Some(body) = patch(tracker, self.viewer, self.at, (*format).into()) {
                tree.patch(&body).unwrap();
            }
        }
        self.at = tracker.version();
        self.check(state);
    }

    fn check(&self, state: &T) {
        let seen = view(state, Some(self.viewer));
        assert_eq!(view(self.packed.state(), Some(self.viewer)), seen);
        for (format, tree) in &self.trees {
            assert_eq!(*tree.state(), view_in(*format, state, Some(self.viewer)), "{format:?}");
        }
    }
}

#[derive(State, Default)]
struct Table {
    cards: List<Back>,
}

/// A face-down card.
#[derive(State, Default, Clone)]
struct Back {
    back: u8,
    #[sync(hidden)]
    face: u8,
}

#[test]
fn a_shuffle_of_face_down_cards_sends_nothing() {
    let mut table = Table { cards: (0..52).map(|face| Back { back: 1, face }).collect() };
    let mut tracker = Tracker::new(&mut table, Tracking::On);
    table.cards.sort_by(|a, b| a.face.reverse_bits().cmp(&b.face.reverse_bits()));
    tracker.sync(&mut table);
    assert_eq!(patch(&mut tracker, ANN, 1, Format::Packed), None);
    assert_eq!(patch(&mut tracker, ANN, 1, Format::Json), None);
}

#[test]
fn which_of_many_equal_cards_was_drawn_is_not_revealed() {
    let sent = [0, 17, 51].map(|drawn| {
        let mut table = Table { cards: (0..52).map(|face| Back { back: 1, face }).collect() };
        let mut tracker = Tracker::new(&mut table, Tracking::On);
        table.cards.remove(drawn);
        tracker.sync(&mut table);
        patch(&mut tracker, ANN, 1, Format::Packed).unwrap()
    });
    assert_eq!(sent[0], sent[1]);
    assert_eq!(sent[0], sent[2]);
}

#[test]
fn a_sort_by_hidden_fields_reveals_only_the_order_of_the_backs() {
    // Two piles of backs, shuffled in one way; the faces under them are shuffled in many ways.
    let sent = [3_u8, 5, 7, 11].map(|step| {
        let card = |place: u8| Back { back: place / 26, face: place.wrapping_mul(step) };
        let mut table = Table { cards: (0..52).map(card).collect() };
        let mut tracker = Tracker::new(&mut table, Tracking::On);
        table.cards.sort_by_key(|card| card.face);
        // The backs alternate, whichever cards they are.
        let (mut ones, mut others): (Vec<Back>, Vec<Back>) =
            table.cards.drain(..).partition(|card| card.back == 0);
        while let (Some(one), Some(other)) = (ones.pop(), others.pop()) {
            table.cards.extend([one, other]);
        }
        tracker.sync(&mut table);
        [Format::Packed, Format::Json].map(|format| patch(&mut tracker, ANN, 1, format).unwrap())
    });
    assert!(sent.iter().all(|one| *one == sent[0]));
}

#[test]
fn a_move_between_equal_looking_values_is_not_revealed() {
    let mut table = Table { cards: (0..9).map(|face| Back { back: face % 2, face }).collect() };
    let mut tracker = Tracker::new(&mut table, Tracking::On);
    table.cards.move_to(0, 8);
    table.cards.move_to(7, 0);
    // The backs are unchanged, but the faces differ.
    assert!(table.cards[0].face == 8 && table.cards[8].face == 0);
    assert!(
        table.cards.iter().enumerate().all(|(place, card)| usize::from(card.back) == place % 2)
    );
    tracker.sync(&mut table);
    for format in [Format::Packed, Format::Json] {
        assert_eq!(patch(&mut tracker, ANN, 1, format), None);
    }
}

#[derive(State, Default)]
struct Numbers {
    list: List<u32>,
}

#[test]
fn a_list_with_another_history_sends_the_same() {
    let ways: [fn(&mut List<u32>); 4] = [
        |list| {
            list.remove(0);
            list.push(4);
        },
        |list| *list = List::from_iter([2, 3, 4]),
        |list| (0..3).for_each(|place| list[place] += 1),
        |list| {
            list.swap(0, 2);
            list.clear();
            list.extend([2, 3, 4]);
        },
    ];
    for tracking in [Tracking::On, Tracking::Off] {
        let sent = ways.map(|change| {
            let mut numbers = Numbers { list: List::from_iter([1, 2, 3]) };
            let mut tracker = Tracker::new(&mut numbers, tracking);
            change(&mut numbers.list);
            tracker.sync(&mut numbers);
            patch_json(&mut tracker, ANN, 1).unwrap()
        });
        for one in sent {
            assert_eq!(one, r#"[[["list",0]],[["list",2],4,"insert"]]"#);
        }
    }
}

#[derive(State, Default)]
struct Club {
    seats: Map<PlayerId, Seat>,
}

#[derive(State, Default, Clone)]
struct Seat {
    #[sync(owner)]
    plan: Plan,
    #[sync(owner)]
    bag: Map<String, u8>,
    #[sync(owner)]
    notes: List<Plan>,
    #[sync(owner)]
    offers: Map<PlayerId, Plan>,
}

#[derive(State, Default, Clone)]
struct Plan {
    steps: List<u8>,
    done: bool,
}

#[test]
fn a_new_entry_is_sent_with_its_owner_fields() {
    let mut club = Club::default();
    let mut tracker = Tracker::new(&mut club, Tracking::On);
    let mut ann = Copies::of(&club, &mut tracker, ANN);
    let mut bob = Copies::of(&club, &mut tracker, BOB);
    let seat = club.seats.get_or_default(ANN);
    seat.plan.steps.push(1);
    seat.bag.insert("a".into(), 1);
    seat.notes.push(Plan { steps: List::from_iter([1, 2]), done: true });
    seat.offers.get_or_default(BOB).done = true;
    tracker.sync(&mut club);
    ann.read(&club, &mut tracker);
    bob.read(&club, &mut tracker);
    assert_eq!(ann.trees[0].1.state()["seats"]["1"]["plan"]["steps"][0], 1);
    assert_eq!(bob.trees[0].1.state()["seats"]["1"]["plan"], serde_json::Value::Null);
    assert_eq!(bob.trees[0].1.state()["seats"]["1"]["offers"]["2"]["done"], true);
}

#[derive(State, Default)]
struct Market {
    stalls: Map<PlayerId, Stall>,
}

#[derive(State, Default)]
struct Stall {
    #[sync(owner)]
    goods: List<Good>,
}

#[derive(State, Default)]
struct Good {
    price: u8,
    #[sync(owner)]
    bids: Map<PlayerId, u8>,
}

#[test]
fn what_others_own_inside_my_fields_is_not_revealed() {
    let mut market = Market::default();
    market.stalls.get_or_default(ANN).goods.push(Good { price: 1, bids: Map::new() });
    let mut tracker = Tracker::new(&mut market, Tracking::On);
    let mut bob = Copies::of(&market, &mut tracker, BOB);
    market.stalls.get_or_default(ANN).goods[0].bids.insert(BOB, 3);
    tracker.sync(&mut market);
    for format in Format::ALL {
        assert_eq!(patch(&mut tracker, ANN, 1, format), None);
    }
    // Bob's bid is his, but it is inside something that only Ann sees.
    bob.read(&market, &mut tracker);
}

#[derive(State, Default)]
struct Sky {
    weather: Weather,
    temperature: f64,
    wind: Option<f32>,
}

#[derive(State, Data, Default, Clone)]
enum Weather {
    #[default]
    Fair,
    Rain(f64),
}

#[test]
fn a_nan_that_stays_is_sent_once() {
    for tracking in [Tracking::On, Tracking::Off] {
        let mut sky = Sky::default();
        let mut tracker = Tracker::new(&mut sky, tracking);
        sky = Sky { weather: Weather::Rain(f64::NAN), temperature: f64::NAN, wind: Some(f32::NAN) };
        tracker.sync(&mut sky);
        assert!(patch(&mut tracker, ANN, 1, Format::Packed).is_some());
        tracker.sync(&mut sky);
        assert_eq!(patch(&mut tracker, ANN, 2, Format::Packed), None);
    }
}

#[test]
fn zero_and_minus_zero_are_two_values() {
    let mut sky = Sky { weather: Weather::Rain(0.0), temperature: 0.0, wind: Some(0.0) };
    let mut tracker = Tracker::new(&mut sky, Tracking::On);
    let mut ann = Copies::of(&sky, &mut tracker, ANN);
    sky = Sky { weather: Weather::Rain(-0.0), temperature: -0.0, wind: Some(-0.0) };
    tracker.sync(&mut sky);
    ann.read(&sky, &mut tracker);
    let copy = ann.packed.state();
    assert!(matches!(copy.weather, Weather::Rain(amount) if amount.is_sign_negative()));
    assert!(copy.temperature.is_sign_negative() && copy.wind.unwrap().is_sign_negative());
}

#[derive(State, Default)]
struct Game {
    #[sync(owner)]
    hands: Map<PlayerId, Hand>,
}

#[derive(State, Default, Clone)]
struct Hand {
    cards: List<u8>,
}

/// More versions than those for which removed entries are remembered.
const LONG: u64 = (1 << 14) + 10;

#[test]
fn the_number_of_others_who_left_is_not_revealed() {
    let sent = [0_u64, 3, 20_000].map(|others| {
        let mut game = Game::default();
        let mut tracker = Tracker::new(&mut game, Tracking::On);
        for other in 0..others {
            game.hands.get_or_default(PlayerId(100 + other));
            tracker.sync(&mut game);
            game.hands.remove(&PlayerId(100 + other));
        }
        while tracker.version() < 20_010 {
            tracker.sync(&mut game);
        }
        [1, 20_010 - LONG, 20_000, 20_009]
            .map(|since| patch(&mut tracker, ANN, since, Format::Packed))
    });
    assert_eq!(sent[0], sent[1]);
    assert_eq!(sent[0], sent[2]);
}

#[test]
fn after_a_long_absence_a_player_learns_that_their_entry_was_removed() {
    let mut game = Game::default();
    game.hands.get_or_default(ANN).cards.push(1);
    let mut tracker = Tracker::new(&mut game, Tracking::On);
    let mut ann = Copies::of(&game, &mut tracker, ANN);
    game.hands.remove(&ANN);
    tracker.sync(&mut game);
    (0..LONG).for_each(|_| tracker.sync(&mut game));
    for other in 0..5_000 {
        game.hands.get_or_default(PlayerId(100 + other));
        tracker.sync(&mut game);
        game.hands.remove(&PlayerId(100 + other));
    }
    tracker.sync(&mut game);
    ann.read(&game, &mut tracker);
    assert!(ann.packed.state().hands.is_empty());
}

#[test]
fn after_a_long_absence_a_player_learns_what_was_removed_inside_anothers_entry() {
    let mut club = Club::default();
    club.seats.get_or_default(ANN).offers.get_or_default(BOB).done = true;
    let mut tracker = Tracker::new(&mut club, Tracking::On);
    let mut bob = Copies::of(&club, &mut tracker, BOB);
    // What everyone sees of the seats never changes.
    club.seats.get_or_default(ANN).offers.remove(&BOB);
    (0..LONG).for_each(|_| tracker.sync(&mut club));
    bob.read(&club, &mut tracker);
}

#[derive(State, Default)]
struct Words {
    words: Map<String, u8>,
}

#[test]
fn more_keys_are_removed_than_are_remembered() {
    let mut words = Words::default();
    words.words.extend((0..6_000).map(|n| (format!("{n}"), 1)));
    let mut tracker = Tracker::new(&mut words, Tracking::On);
    let mut ann = Copies::of(&words, &mut tracker, ANN);
    let mut late = Copies::of(&words, &mut tracker, BOB);
    for n in 0..6_000 {
        words.words.remove(&format!("{n}"));
        if n % 1_000 == 0 {
            tracker.sync(&mut words);
            ann.read(&words, &mut tracker);
        }
    }
    words.words.insert("last".into(), 2);
    tracker.sync(&mut words);
    ann.read(&words, &mut tracker);
    late.read(&words, &mut tracker);
}

#[test]
fn a_copy_of_a_map_that_shrank_is_a_copy_like_any_other() {
    let mut words = Words::default();
    words.words.extend((0..3_000).map(|n| (format!("{n:04}"), 1)));
    let mut tracker = Tracker::new(&mut words, Tracking::On);
    let mut early = Copies::of(&words, &mut tracker, ANN);
    words.words.retain(|key, _| key.as_str() >= "2990");
    tracker.sync(&mut words);
    let mut late = Copies::of(&words, &mut tracker, BOB);
    for n in 0..200 {
        words.words.insert(format!("new {}", n * 7 % 50), n as u8);
        words.words.remove(&format!("{}", 2_990 + n % 10));
        words.words.remove(&format!("new {}", n * 11 % 50));
        if let Some(value) = words.words.get_mut("2995") {
            *value += 1;
        }
        tracker.sync(&mut words);
        early.read(&words, &mut tracker);
        if n % 3 == 0 {
            late.read(&words, &mut tracker);
        }
    }
}

#[test]
fn a_key_removed_and_reinserted_between_syncs_keeps_its_slot() {
    let mut words = Words::default();
    words.words.extend([("a".into(), 1), ("b".into(), 2)]);
    let mut tracker = Tracker::new(&mut words, Tracking::On);
    let a = words.words.remove("a").unwrap();
    words.words.insert("c".into(), 3);
    words.words.remove("c");
    words.words.insert("a".into(), a);
    tracker.sync(&mut words);
    assert_eq!(patch(&mut tracker, ANN, 1, Format::Packed), None);
}
