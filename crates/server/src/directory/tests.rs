use std::time::Duration;

use playfield_room::{Error, METADATA_BYTES_MAX, RoomSummary};
use playfield_wire::ErrorCode;

use super::keys::Key;
use super::{Choice, Directory, Plan};
use crate::room_id::RoomId;

fn id(number: u8) -> RoomId {
    RoomId::from_random([number; 10])
}

fn plan(number: u8) -> Plan {
    Plan {
        id: id(number),
        room_type: 0,
        key: None,
        criteria: Vec::new(),
        seats: 1,
        waiting_max: 2,
        capacity: 2,
        private: false,
        shard: 0,
    }
}

fn choose(directory: &Directory, number: u8) -> Choice {
    directory.choose(&plan(number), &[], Ok(()), false).unwrap()
}

#[test]
fn seats_are_reserved_before_anyone_arrives() {
    let directory = Directory::new(1, 1, 10);
    assert!(choose(&directory, 1).new);
    assert_eq!(choose(&directory, 2), Choice { id: id(1), shard: 0, new: false });
    assert_eq!(choose(&directory, 3), Choice { id: id(3), shard: 0, new: true });
    assert_eq!(directory.reserve(id(1), false).unwrap_err().code(), ErrorCode::RoomFull);
    let summary = RoomSummary { players: 1, capacity: 2, ..RoomSummary::default() };
    directory.seated(id(1), &summary);
    let text = "the room is full: it has 1 player, and keeps 1 seat for others";
    assert_eq!(directory.reserve(id(1), false).unwrap_err().text(), text);
    directory.seated(id(1), &RoomSummary { players: 2, ..summary });
    let text = "the room is full: it has 2 players";
    assert_eq!(directory.reserve(id(1), false).unwrap_err().text(), text);
    directory.publish(id(1), &RoomSummary { capacity: 1, ..RoomSummary::default() });
    assert!(directory.reserve(id(1), false).is_ok());
    assert_eq!(directory.reserve(id(9), false).unwrap_err().code(), ErrorCode::RoomNotFound);
}

#[test]
fn the_oldest_room_that_fits_is_chosen() {
    let directory = Directory::new(1, 1, 10);
    let open = |players, locked, private| RoomSummary {
        players,
        capacity: 2,
        locked,
        private,
        ..RoomSummary::default()
    };
    for (number, summary) in [
        (1, open(2, false, false)),
        (2, open(0, true, false)),
        (3, open(0, false, true)),
        (4, open(0, false, false)),
        (5, open(1, false, false)),
    ] {
        directory.plan(&plan(number)).unwrap();
        directory.seated(id(number), &summary);
    }
    assert_eq!(choose(&directory, 6).id, id(4));
    assert_eq!(directory.choose(&plan(6), &[id(4)], Ok(()), false).unwrap().id, id(5));
    directory.remove(id(4));
    assert!(choose(&directory, 6).new, "the other is full");
}

#[test]
fn new_rooms_go_to_the_least_loaded_shard() {
    let directory = Directory::new(1, 3, 10);
    let shards: Vec<u16> =
        (1..=4).map(|number| directory.plan(&plan(number)).unwrap().shard).collect();
    assert_eq!(shards, [0, 1, 2, 0]);
    directory.remove(id(2));
    assert_eq!(directory.plan(&plan(5)).unwrap().shard, 1);
}

#[test]
fn rooms_and_players_go_to_shards_that_are_on_time() {
    let ms = Duration::from_millis;
    let directory = Directory::new(1, 2, 10).with_lateness_max(ms(5));
    assert_eq!(choose(&directory, 1).shard, 0);
    let summary = RoomSummary { players: 1, capacity: 9, ..RoomSummary::default() };
    directory.seated(id(1), &summary);

    directory.set_lateness(0, ms(6));
    assert_eq!(directory.plan(&plan(2)).unwrap().shard, 1);
    assert_eq!(directory.plan(&plan(3)).unwrap().shard, 1, "though it has more already");
    assert_eq!(choose(&directory, 4).id, id(1), "players still come");

    directory.set_lateness(0, ms(21));
    assert!(directory.reserve(id(1), true).is_ok(), "a reserved seat was promised");
    let busy = |error: Error| assert_eq!(error.code(), ErrorCode::Busy, "{error:?}");
    busy(directory.reserve(id(1), false).unwrap_err());
    assert_eq!(choose(&directory, 5), Choice { id: id(2), shard: 1, new: false });

    let summary = RoomSummary { capacity: 9, ..RoomSummary::default() };
    directory.seated(id(3), &summary);
    let none = || Err(Error::new(ErrorCode::Forbidden, "no rooms of this type"));
    let choice = directory.choose(&plan(6), &[], none(), false).unwrap();
    assert_eq!(choice.shard, 1, "not the oldest, but on time");
    let all: Vec<_> = (2..=5).map(id).collect();
    let full = directory.choose(&plan(6), &all, none(), false).unwrap_err();
    assert_eq!(full.code(), ErrorCode::Busy, "there would be a seat in room 1: {full:?}");

    directory.set_lateness(1, ms(21));
    let key = Some(Key { text: "k".into(), is_code: false });
    busy(directory.plan(&Plan { key, ..plan(6) }).unwrap_err());
    assert!(!directory.has_key(0, "k"), "what was refused leaves no key");
    busy(directory.choose(&plan(6), &[id(5)], Ok(()), false).unwrap_err());
    directory.set_lateness(0, ms(0));
    assert_eq!(directory.plan(&plan(6)).unwrap().shard, 0);
}

#[test]
fn there_are_at_most_rooms_max() {
    let directory = Directory::new(1, 1, 2);
    directory.plan(&plan(1)).unwrap();
    directory.plan(&plan(2)).unwrap();
    let error = directory.plan(&plan(3)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Limit);
    assert!(error.text().starts_with("limits.rooms: "));
    directory.remove(id(1));
    directory.plan(&plan(3)).unwrap();
}

#[test]
fn lists_omit_private_and_unborn_rooms() {
    let directory = Directory::new(2, 1, 10);
    for number in 1..=4 {
        directory.plan(&plan(number)).unwrap();
    }
    let summary = |private, mode: &str| RoomSummary {
        capacity: 2,
        private,
        metadata: [("mode".to_owned(), mode.to_owned())].into(),
        ..RoomSummary::default()
    };
    directory.publish(id(2), &summary(false, "duel"));
    directory.publish(id(1), &summary(false, "race"));
    directory.publish(id(3), &summary(true, "duel"));
    let list = |room_type, filter: &[(&str, &str)], limit| {
        directory
            .list(room_type, filter, limit)
            .iter()
            .map(|listing| listing.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(list(None, &[], 10), [id(1), id(2)]);
    assert_eq!(list(None, &[], 1), [id(1)]);
    assert_eq!(list(Some(1), &[], 10), []);
    assert_eq!(list(None, &[("mode", "duel")], 10), [id(2)]);
    assert_eq!(list(None, &[("mode", "duel"), ("map", "x")], 10), []);
    assert_eq!(list(None, &[("mode", "duel"); 1000], 10), [id(2)]);
    assert_eq!(list(None, &[("mode", "duel"), ("mode", "race")], 10), []);
}

#[test]
fn filters_are_as_long_as_metadata_may_be() {
    let directory = Directory::new(1, 1, 1);
    directory.plan(&plan(1)).unwrap();
    let longest = "x".repeat(METADATA_BYTES_MAX);
    let metadata = [(longest.clone(), longest.clone())].into();
    let summary = RoomSummary { capacity: 2, metadata, ..RoomSummary::default() };
    directory.publish(id(1), &summary);
    let count = |name: &str, value: &str| directory.list(None, &[(name, value)], 9).len();
    let longer = longest.clone() + "x";
    assert_eq!(count(&longest, &longest), 1);
    assert_eq!(count(&longer, &longest), 0);
    assert_eq!(count(&longest, &longer), 0);
}

#[test]
fn a_player_who_may_not_create_rooms_gets_an_existing_one_or_an_error() {
    let directory = Directory::new(1, 1, 1);
    let may_not = || Err(Error::new(ErrorCode::Limit, "too fast"));
    assert_eq!(directory.choose(&plan(1), &[], may_not(), false).unwrap_err().text(), "too fast");
    assert_eq!(directory.find(id(1)), None);
    assert!(choose(&directory, 2).new, "there is space for it");
    assert_eq!(directory.choose(&plan(3), &[], may_not(), false).unwrap().id, id(2));
    assert!(directory.choose(&plan(3), &[], may_not(), false).is_err());
    directory.release(id(2));
    assert!(directory.reserve(id(2), false).is_ok(), "every reserved seat was released");
}
