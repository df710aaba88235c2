//! Whatever happens to rooms, lists, keys and choices lead to what checking every room finds.

use std::collections::BTreeMap;

use playfield_room::{Error, RoomSummary};
use playfield_wire::ErrorCode;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::keys::Key;
use super::{Directory, Plan};
use crate::room_id::RoomId;

const TYPES: u16 = 3;
const WAITING_MAX: u32 = 2;
const NAMES: [&str; 3] = ["mode", "map", "level"];
const VALUES: [&str; 3] = ["a", "b", "c"];
/// The first is a code, and the second the same in lower case.
const KEYS: [&str; 4] = ["K7WQ4C", "k7wq4c", "document 42", "Document 42"];

#[derive(Clone, Debug)]
enum Step {
    Plan { number: u8, room_type: u16, private: bool, key: Option<usize>, criteria: u8 },
    Choose { room_type: u16, criteria: u8 },
    ByKey { room_type: u16, key: usize },
    Publish { number: u8, summary: RoomSummary },
    Seated { number: u8, summary: RoomSummary },
    Reserve { number: u8, is_kept: bool },
    Release { number: u8 },
    Remove { number: u8 },
    List { room_type: Option<u16>, filter: Vec<(usize, usize)>, limit: usize },
}

/// One room in the model, which has no index.
struct Noted {
    number: u8,
    room_type: u16,
    key: Option<usize>,
    criteria: u8,
    reserved: u32,
    made: bool,
    summary: RoomSummary,
}

fn summary() -> impl Strategy<Value = RoomSummary> {
    let metadata = btree_map(0..NAMES.len(), 0..VALUES.len(), 0..=NAMES.len());
    let rarely = || prop::bool::weighted(0.2);
    ((0..4_u32, 0..3_u32), any::<bool>(), rarely(), rarely(), metadata).prop_map(
        |((players, reserved), locked, private, closing, metadata)| RoomSummary {
            players,
            capacity: 4,
            reserved,
            locked,
            private,
            key: None,
            is_code: false,
            closing,
            metadata: metadata
                .into_iter()
                .map(|(name, value)| (NAMES[name].to_owned(), VALUES[value].to_owned()))
                .collect(),
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let number = 0..12_u8;
    prop_oneof![
        3 => (number.clone(), 0..TYPES, prop::bool::weighted(0.2), prop::option::of(0..KEYS.len()), 0..3_u8)
            .prop_map(|(number, room_type, private, key, criteria)| {
                Step::Plan { number, room_type, private, key, criteria }
            }),
        6 => (0..TYPES, 0..3_u8).prop_map(|(room_type, criteria)| Step::Choose { room_type, criteria }),
        3 => (0..TYPES, 0..KEYS.len()).prop_map(|(room_type, key)| Step::ByKey { room_type, key }),
        6 => (number.clone(), summary()).prop_map(|(number, summary)| Step::Publish { number, summary }),
        2 => (number.clone(), summary()).prop_map(|(number, summary)| Step::Seated { number, summary }),
        1 => (number.clone(), any::<bool>())
            .prop_map(|(number, is_kept)| Step::Reserve { number, is_kept }),
        1 => number.clone().prop_map(|number| Step::Release { number }),
        1 => number.prop_map(|number| Step::Remove { number }),
        6 => (prop::option::of(0..TYPES), vec((0..NAMES.len(), 0..VALUES.len()), 0..4), 0..6_usize)
            .prop_map(|(room_type, filter, limit)| Step::List { room_type, filter, limit }),
    ]
}

fn id(number: u8) -> RoomId {
    RoomId::from_random([number; 10])
}

fn plan(number: u8, room_type: u16, private: bool, key: Option<usize>, criteria: u8) -> Plan {
    let key = key.map(|key| Key { text: KEYS[key].into(), is_code: key == 0 });
    Plan {
        id: id(number),
        room_type,
        key,
        criteria: vec![criteria],
        seats: 1,
        waiting_max: WAITING_MAX,
        capacity: 4,
        private,
        shard: 0,
    }
}

impl Noted {
    fn is_full(&self) -> bool {
        let RoomSummary { players, reserved, capacity, .. } = self.summary;
        players + reserved + self.reserved >= capacity
    }
}

fn noted(rooms: &mut [Noted], number: u8) -> Option<&mut Noted> {
    rooms.iter_mut().find(|room| room.number == number)
}

/// The room that a key names, found by checking all rooms: a code before any other.
fn named(rooms: &[Noted], room_type: u16, key: usize) -> Option<usize> {
    let has =
        |key| rooms.iter().position(|room| room.room_type == room_type && room.key == Some(key));
    let code = if key <= 1 { has(0) } else { None };
    code.or_else(|| has(key))
}

/// The list, computed by checking all rooms, oldest first.
fn naive(
    rooms: &[Noted],
    room_type: Option<u16>,
    filter: &[(&str, &str)],
    limit: usize,
) -> Vec<RoomId> {
    let has = |metadata: &BTreeMap<String, String>| {
        filter.iter().all(|&(name, value)| metadata.get(name).is_some_and(|known| known == value))
    };
    rooms
        .iter()
        .filter(|room| {
            room.made
                && !room.summary.private
                && !room.summary.closing
                && room_type.is_none_or(|only| only == room.room_type)
        })
        .filter(|room| has(&room.summary.metadata))
        .map(|room| id(room.number))
        .take(limit)
        .collect()
}

fn check(
    directory: &Directory,
    rooms: &[Noted],
    room_type: Option<u16>,
    filter: &[(&str, &str)],
    limit: usize,
) {
    let listed = directory.list(room_type, filter, limit);
    let ids: Vec<_> = listed.iter().map(|listing| listing.id).collect();
    assert_eq!(ids, naive(rooms, room_type, filter, limit), "{room_type:?} {filter:?} {limit}");
    for listing in listed {
        let room = rooms.iter().find(|room| id(room.number) == listing.id).unwrap();
        assert_eq!((listing.room_type, &listing.summary), (room.room_type, &room.summary));
    }
}

proptest! {
    #[test]
    fn lists_keys_and_choices_are_what_a_look_at_every_room_finds(steps in vec(step(), 0..150)) {
        let directory = Directory::new(usize::from(TYPES), 1, 100);
        let mut rooms: Vec<Noted> = Vec::new();
        for step in steps {
            match step {
                Step::Plan { number, room_type, private, key, criteria } => {
                    // Room ids are unique.
                    if rooms.iter().all(|room| room.number != number) {
                        let planned = directory.plan(&plan(number, room_type, private, key, criteria));
                        let taken = key.and_then(|key| named(&rooms, room_type, key));
                        prop_assert_eq!(planned.is_err(), taken.is_some());
                        if planned.is_ok() {
                            let summary = RoomSummary { capacity: 4, private, ..RoomSummary::default() };
                            rooms.push(Noted { number, room_type, key, criteria, reserved: 1, made: false, summary });
                        }
                    }
                }
                Step::Choose { room_type, criteria } => {
                    let plan = plan(99, room_type, false, None, criteria);
                    let may_not = Err(Error::from("it may not create one"));
                    let chosen = directory.choose(&plan, &[], may_not, false).ok().map(|choice| choice.id);
                    // The oldest, as they stand in the order of their creation.
                    let room = rooms.iter_mut().find(|room| {
                        let RoomSummary { locked, private, closing, .. } = room.summary;
                        room.room_type == room_type
                            && room.criteria == criteria
                            && room.key.is_none()
                            && !(room.is_full() || locked || private || closing)
                    });
                    prop_assert_eq!(chosen, room.as_ref().map(|room| id(room.number)));
                    if let Some(room) = room {
                        room.reserved += 1;
                    }
                }
                Step::ByKey { room_type, key } => {
                    let chosen = directory.reserve_by_key(room_type, KEYS[key], &[], false);
                    match named(&rooms, room_type, key) {
                        None => prop_assert_eq!(chosen.unwrap_err().code(), ErrorCode::RoomNotFound),
                        Some(at) if rooms[at].summary.closing && rooms[at].reserved >= WAITING_MAX => {
                            prop_assert_eq!(chosen.unwrap_err().code(), ErrorCode::Busy);
                        }
                        Some(at) if rooms[at].is_full() && !rooms[at].summary.closing => {
                            prop_assert_eq!(chosen.unwrap_err().code(), ErrorCode::RoomFull);
                        }
                        Some(at) => {
                            prop_assert_eq!(chosen.unwrap().id, id(rooms[at].number));
                            rooms[at].reserved += 1;
                        }
                    }
                }
                Step::Publish { number, summary } => {
                    directory.publish(id(number), &summary);
                    if let Some(room) = noted(&mut rooms, number) {
                        (room.made, room.summary) = (true, summary);
                    }
                }
                Step::Seated { number, summary } => {
                    directory.seated(id(number), &summary);
                    if let Some(room) = noted(&mut rooms, number) {
                        room.summary = summary;
                        room.reserved = room.reserved.saturating_sub(1);
                    }
                }
                Step::Reserve { number, is_kept } => {
                    let room = noted(&mut rooms, number);
                    let free = room.as_ref().is_some_and(|room| is_kept || !room.is_full());
                    prop_assert_eq!(directory.reserve(id(number), is_kept).is_ok(), free);
                    if let (Some(room), true) = (room, free) {
                        room.reserved += 1;
                    }
                }
                Step::Release { number } => {
                    directory.release(id(number));
                    if let Some(room) = noted(&mut rooms, number) {
                        room.reserved = room.reserved.saturating_sub(1);
                    }
                }
                Step::Remove { number } => {
                    directory.remove(id(number));
                    rooms.retain(|room| room.number != number);
                }
                Step::List { room_type, filter, limit } => {
                    let filter: Vec<_> =
                        filter.into_iter().map(|(name, value)| (NAMES[name], VALUES[value])).collect();
                    check(&directory, &rooms, room_type, &filter, limit);
                }
            }
        }
        check(&directory, &rooms, None, &[], usize::MAX);
        for room in &rooms {
            directory.remove(id(room.number));
        }
        let inner = directory.lock();
        assert!(inner.keys.iter().all(super::Keys::is_empty));
        assert!(inner.listed.iter().all(super::Index::is_empty), "nothing is kept of a removed room");
        assert!(inner.open.iter().all(super::Open::is_empty) && inner.loads == [0]);
    }
}
