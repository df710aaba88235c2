//! A snapshot that is the same for all players is written once for each version and format.

use std::cell::Cell;

use playfield_state::{
    Data, DecodeError, Format, Map, PlayerId, State, Tracker, Tracking, TreeWriter,
};
use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use serde_json::Value;

thread_local! {
    static WRITTEN: Cell<u32> = const { Cell::new(0) };
}

/// A number that counts how often it is written.
#[derive(State, Clone, Default)]
enum Counted {
    #[default]
    Nought,
}

impl Data for Counted {
    fn schema() -> Type {
        Type::U8
    }
    fn encode(&self, out: &mut Vec<u8>) {
        WRITTEN.set(WRITTEN.get() + 1);
        out.push(0);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.u8().map(|_| Self::Nought)
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        WRITTEN.set(WRITTEN.get() + 1);
        out.u64(0);
    }
    fn from_json(_: &Value) -> Result<Self, DecodeError> {
        Ok(Self::Nought)
    }
    fn same(&self, _: &Self) -> bool {
        true
    }
}

#[derive(State, Default)]
struct Board {
    counted: Counted,
    turn: u32,
}

#[derive(State, Default)]
struct Hands {
    counted: Counted,
    hands: Map<PlayerId, Hand>,
}

#[derive(State, Default)]
struct Hand {
    #[sync(owner)]
    card: u8,
}

/// Returns the number of times that the counted value is written when three players get snapshots.
fn writes<T: State>(tracker: &mut Tracker<T>, format: Format) -> u32 {
    WRITTEN.set(0);
    let mut first = Vec::new();
    tracker.snapshot(PlayerId(1), format, &mut first);
    for player in 2..4 {
        let mut body = Vec::new();
        tracker.snapshot(PlayerId(player), format, &mut body);
        assert_eq!(body, first);
    }
    WRITTEN.get()
}

#[test]
fn without_owner_fields_all_players_get_the_same_bytes() {
    let mut board = Board::default();
    let mut tracker = Tracker::new(&mut board, Tracking::On);
    for turn in 1..4 {
        for format in Format::ALL {
            assert_eq!(writes(&mut tracker, format), 1, "{format}");
            assert_eq!(writes(&mut tracker, format), 0, "{format}, once more");
        }
        board.turn = turn;
        tracker.sync(&mut board);
    }
}

#[test]
fn what_everyone_sees_is_written_once_even_with_owner_fields() {
    let mut hands = Hands::default();
    hands.hands.extend((1..4).map(|player| (PlayerId(u64::from(player)), Hand { card: player })));
    let mut tracker = Tracker::new(&mut hands, Tracking::On);
    for format in Format::ALL {
        WRITTEN.set(0);
        let bodies = [1, 2, 3].map(|player| {
            let mut body = Vec::new();
            tracker.snapshot(PlayerId(player), format, &mut body);
            body
        });
        assert_eq!(WRITTEN.get(), 1, "{format}");
        assert!(bodies[0] != bodies[1] && bodies[1] != bodies[2], "{format}");
    }
}
