//! Defaults that do not follow from a type: the schema states their digests, so that a copy made
//! from it has the right digest.

use playfield_state::{
    Data, DynamicMirror, Format, Key, List, Map, Mirror, PlayerId, State, Tracker, Tracking, view,
};
use playfield_wire::schema::{Policy, RoomSchema, Struct, Type};

const ANN: PlayerId = PlayerId(1);
const BOB: PlayerId = PlayerId(2);

#[derive(State, Default)]
struct Table {
    seats: Map<PlayerId, Seat>,
    #[sync(owner)]
    bags: Map<PlayerId, Gear>,
    #[sync(view = knows, viewer = seats)]
    banner: Gear,
    #[sync(view = knows, viewer = seats)]
    phase: Phase,
    #[sync(view = knows, viewer = seats)]
    gears: Map<u8, Gear>,
    #[sync(view = knows, viewer = seats)]
    round: u8,
}

fn knows<T>(_: &T, seat: &Seat) -> bool {
    seat.knows
}

#[derive(State, Default)]
struct Seat {
    knows: bool,
    #[sync(owner)]
    gear: Gear,
    #[sync(owner)]
    pair: [Gear; 2],
    #[sync(owner)]
    phase: Phase,
    #[sync(owner)]
    badge: Badge,
    #[sync(owner)]
    kit: Kit,
    #[sync(owner)]
    hp: i32,
    #[sync(owner, quantize = 0.5, range = 10.0..=20.0)]
    heat: f32,
    #[sync(owner)]
    held: Option<Gear>,
    #[sync(owner)]
    tags: Map<u8, u8>,
}

#[derive(State)]
struct Gear {
    hp: i32,
    name: String,
    #[sync(quantize = 0.25)]
    x: f64,
    notes: List<u8>,
    tags: Map<u8, u8>,
}

impl Default for Gear {
    fn default() -> Self {
        let (notes, tags) = ([1, 2].into_iter().collect(), [(1, 2)].into_iter().collect());
        Self { hp: 100, name: "new".to_owned(), x: 1.5, notes, tags }
    }
}

#[derive(State, Data, Default, Clone)]
enum Phase {
    Waiting,
    Over(u8),
    #[default]
    Playing,
}

#[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Badge(u16);

impl Default for Badge {
    fn default() -> Self {
        Self(7)
    }
}

/// The private fields have other defaults here than their types have.
#[derive(State)]
struct Kit {
    eyes: Map<PlayerId, bool>,
    #[sync(owner)]
    coins: u8,
    #[sync(owner, quantize = 0.5)]
    worth: f32,
    #[sync(view = is_open, viewer = eyes)]
    spot: u8,
}

impl Default for Kit {
    fn default() -> Self {
        Self { eyes: Map::new(), coins: 9, worth: 2.5, spot: 55 }
    }
}

fn is_open(_: &u8, open: &bool) -> bool {
    *open
}

/// The fields of a struct for which the schema states a default digest.
fn stated(of: &Struct) -> Vec<&str> {
    let fields = of.fields.iter().filter(|field| field.default_digest.is_some());
    fields.map(|field| &*field.name).collect()
}

fn fields(of: &Type) -> &Struct {
    match of {
        Type::Struct(of) => of,
        Type::Map(_, value) => fields(value),
        other => panic!("{other:?} has no fields"),
    }
}

#[test]
fn only_defaults_that_do_not_follow_from_the_type_are_stated() {
    let schema = Table::schema();
    let table = fields(&schema);
    assert_eq!(stated(table), ["banner", "phase"]);
    let seat = fields(&table.fields[0].of);
    assert_eq!(stated(seat), ["gear", "pair", "phase", "badge"]);
    assert_eq!(stated(fields(&seat.fields[1].of)), [""; 0], "fields that everyone sees have none");
    // Not everyone sees a kit's fields. In its default digest they have the defaults of their own
    // types.
    assert_eq!(stated(fields(&seat.fields[5].of)), [""; 0]);
}

/// A player, with a typed copy and one made from the schema that a node sends.
struct Looker {
    player: PlayerId,
    typed: Mirror<Table>,
    dynamic: DynamicMirror,
}

impl Looker {
    fn new(player: PlayerId, of: &Type) -> Self {
        Self { player, typed: Mirror::new(), dynamic: DynamicMirror::new(of, player).unwrap() }
    }

    fn read(&mut self, table: &Table, tracker: &mut Tracker<Table>, since: u64) {
        let mut body = Vec::new();
        if since == 0 {
            tracker.snapshot(self.player, Format::Packed, &mut body);
            self.typed.snapshot(&body).unwrap();
            self.dynamic.snapshot(&body).unwrap();
        } else if tracker.patch(self.player, since, Format::Packed, &mut body) {
            self.typed.patch(&body).unwrap();
            self.dynamic.patch(&body).unwrap();
        }
        assert_eq!(*self.dynamic.state(), view(table, Some(self.player)));
        let digest = tracker.digest(self.player, Format::Packed);
        assert_eq!(
            [self.typed.digest(), self.dynamic.digest()],
            [digest; 2],
            "of {:?}",
            self.player
        );
    }
}

/// A change in the room.
type Step = fn(&mut Table);

const STEPS: [(&str, Step); 9] = [
    ("two take their seats", |table| {
        table.seats.get_or_default(ANN);
        table.seats.get_or_default(BOB);
        table.bags.get_or_default(BOB);
    }),
    ("what was not seen is seen", |table| table.seats.get_or_default(ANN).knows = true),
    ("things leave their defaults", |table| {
        let seat = table.seats.get_or_default(ANN);
        seat.gear.hp = 5;
        seat.pair[1].name = "old".to_owned();
        (seat.phase, seat.badge, seat.heat) = (Phase::Over(1), Badge(0), 12.0);
        (table.banner.x, table.phase) = (0.0, Phase::Waiting);
        table.gears.get_or_default(3).hp = 0;
    }),
    ("they have the defaults of their types", |table| {
        let seat = table.seats.get_or_default(ANN);
        seat.gear =
            Gear { hp: 0, name: String::new(), x: 0.0, notes: List::default(), tags: Map::new() };
        (seat.phase, seat.hp) = (Phase::Waiting, 1);
        table.banner.notes.clear();
    }),
    ("they go back", |table| {
        let seat = table.seats.get_or_default(ANN);
        (seat.gear, seat.phase, seat.badge, seat.hp) =
            (Gear::default(), Phase::Playing, Badge(7), 0);
        table.banner = Gear::default();
    }),
    ("maps empty", |table| {
        table.seats.values_mut().for_each(|seat| seat.gear.tags.clear());
        table.banner.tags.clear();
    }),
    ("an option holds what has a default", |table| {
        table.seats.values_mut().for_each(|seat| seat.held = Some(Gear::default()));
    }),
    ("who knew no longer knows", |table| table.seats.get_or_default(ANN).knows = false),
    ("a seat is left and taken again", |table| {
        table.seats.remove(&BOB);
        table.seats.get_or_default(BOB).kit.eyes.insert(BOB, true);
    }),
];

#[test]
fn copies_have_the_right_digests() {
    let schema = RoomSchema {
        state: Table::schema(),
        options: Type::Unit,
        messages: vec![],
        events: vec![],
    };
    let schema = RoomSchema::from_json(schema.to_json().as_bytes()).unwrap();
    let (mut table, mut lookers) = (
        Table::default(),
        [ANN, BOB, PlayerId(3)].map(|player| Looker::new(player, &schema.state)),
    );
    let mut tracker = Tracker::new(&mut table, Tracking::On);
    lookers.iter_mut().for_each(|looker| looker.read(&table, &mut tracker, 0));
    for (what, step) in STEPS {
        println!("{what}");
        step(&mut table);
        let since = tracker.version();
        tracker.sync(&mut table);
        for looker in &mut lookers {
            looker.read(&table, &mut tracker, since);
            Looker::new(looker.player, &schema.state).read(&table, &mut tracker, 0);
        }
    }
}

/// Without default digests in the schema, all defaults are taken to follow from the types.
#[test]
fn without_default_digests_the_defaults_of_the_types_apply() {
    let mut schema = Table::schema();
    let Type::Struct(table) = &mut schema else { unreachable!("the state is a struct") };
    table.fields.iter_mut().for_each(|field| field.default_digest = None);
    assert_eq!(table.fields[2].policy, Policy::View);
    let mut state = Table::default();
    state.seats.get_or_default(ANN).knows = true;
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let mut body = Vec::new();
    tracker.snapshot(ANN, Format::Packed, &mut body);
    let mut copy = DynamicMirror::new(&schema, ANN).unwrap();
    copy.snapshot(&body).unwrap();
    assert_eq!(*copy.state(), view(&state, Some(ANN)));
    assert_ne!(copy.digest(), tracker.digest(ANN, Format::Packed));
}
