//! Whatever happens to rooms, a list equals the result of checking every room.

use std::collections::BTreeMap;

use playfield_room::RoomSummary;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::{Directory, Plan};
use crate::room_id::RoomId;

const TYPES: u16 = 3;
const NAMES: [&str; 3] = ["mode", "map", "level"];
const VALUES: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug)]
enum Step {
    Plan { number: u8, room_type: u16, private: bool },
    Publish { number: u8, summary: RoomSummary },
    Seated { number: u8, summary: RoomSummary },
    Reserve { number: u8 },
    Release { number: u8 },
    Remove { number: u8 },
    List { room_type: Option<u16>, filter: Vec<(usize, usize)>, limit: usize },
}

/// One room in the model, which has no index.
struct Noted {
    number: u8,
    room_type: u16,
    made: bool,
    summary: RoomSummary,
}

fn summary() -> impl Strategy<Value = RoomSummary> {
    let metadata = btree_map(0..NAMES.len(), 0..VALUES.len(), 0..=NAMES.len());
    let rarely = || prop::bool::weighted(0.2);
    (0..4_u32, any::<bool>(), rarely(), rarely(), metadata).prop_map(
        |(players, locked, private, closing, metadata)| RoomSummary {
            players,
            capacity: 4,
            locked,
            private,
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
        3 => (number.clone(), 0..TYPES, prop::bool::weighted(0.2))
            .prop_map(|(number, room_type, private)| Step::Plan { number, room_type, private }),
        6 => (number.clone(), summary()).prop_map(|(number, summary)| Step::Publish { number, summary }),
        2 => (number.clone(), summary()).prop_map(|(number, summary)| Step::Seated { number, summary }),
        1 => number.clone().prop_map(|number| Step::Reserve { number }),
        1 => number.clone().prop_map(|number| Step::Release { number }),
        1 => number.prop_map(|number| Step::Remove { number }),
        6 => (prop::option::of(0..TYPES), vec((0..NAMES.len(), 0..VALUES.len()), 0..4), 0..6_usize)
            .prop_map(|(room_type, filter, limit)| Step::List { room_type, filter, limit }),
    ]
}

fn id(number: u8) -> RoomId {
    RoomId::from_random([number; 10])
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
    fn a_list_is_what_a_look_at_every_room_finds(steps in vec(step(), 0..150)) {
        let directory = Directory::new(usize::from(TYPES), 1, 100);
        let mut rooms: Vec<Noted> = Vec::new();
        for step in steps {
            match step {
                Step::Plan { number, room_type, private } => {
                    // Room ids are unique.
                    if rooms.iter().all(|room| room.number != number) {
                        directory.plan(&Plan { id: id(number), room_type, capacity: 4, private, shard: 0 }).unwrap();
                        let summary = RoomSummary { capacity: 4, private, ..RoomSummary::default() };
                        rooms.push(Noted { number, room_type, made: false, summary });
                    }
                }
                Step::Publish { number, summary } => {
                    directory.publish(id(number), &summary);
                    if let Some(room) = rooms.iter_mut().find(|room| room.number == number) {
                        (room.made, room.summary) = (true, summary);
                    }
                }
                Step::Seated { number, summary } => {
                    directory.seated(id(number), &summary);
                    if let Some(room) = rooms.iter_mut().find(|room| room.number == number) {
                        room.summary = summary;
                    }
                }
                Step::Reserve { number } => drop(directory.reserve(id(number))),
                Step::Release { number } => directory.release(id(number)),
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
        assert!(inner.listed.iter().all(super::Index::is_empty), "nothing is kept of a removed room");
        assert!(inner.open.iter().all(BTreeMap::is_empty) && inner.loads == [0]);
    }
}
