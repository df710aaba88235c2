//! Devices of several shards: one for each id, found, reached and noticed.

use std::sync::Arc;
use std::time::Duration;

use playfield_room::{Error, Target};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, Format};
use tokio::sync::oneshot::Receiver;

use super::gadget::{Gadget, Told};
use super::timing::says_last;
use super::world::World;
use crate::asks::Answer;
use crate::channel::Payload;
use crate::fleet::{Duplicates, FleetSettings, HostedFleet};
use crate::shard::mail::ShardMail;
use crate::shard::mail::device::DeviceMail;
use crate::shard::topics::devices::target;

fn fleet(world: &World) -> &HostedFleet {
    world.node.fleet.as_ref().unwrap()
}

fn log(world: &World) -> Vec<String> {
    std::mem::take(&mut *world.fleet_log.lock().unwrap())
}

pub(super) fn push(world: &mut World, to: impl Into<Target>, json: &str) -> Result<usize, Error> {
    let payload = Payload::json(json.as_bytes()).unwrap();
    let mut posts = Vec::new();
    let sent = fleet(world).push(&to.into(), payload, |shard, mail| {
        posts.push((shard, mail));
        Ok(())
    });
    for (shard, mail) in posts {
        world.post(shard, ShardMail::Device(mail));
    }
    sent
}

/// Sends a request to a device, as [`Devices::request`](crate::Devices::request) does.
pub(super) fn request(world: &mut World, id: &str, json: &str, wait_ms: u64) -> Receiver<Answer> {
    let device = fleet(world).get(id).unwrap();
    let (shard, wait) = (device.place().shard, Duration::from_millis(wait_ms));
    let (number, answered) = world.node.asks.begin_for_device(shard, wait).unwrap();
    let payload = Arc::new(Payload::json(json.as_bytes()).unwrap());
    let asks = Some((number, wait));
    world.post(
        shard,
        ShardMail::Device(DeviceMail::Command { to: vec![target(&device)], payload, asks }),
    );
    answered
}

pub(super) fn code(mut answered: Receiver<Answer>) -> ErrorCode {
    answered.try_recv().expect("it is answered").unwrap_err().code()
}

fn pushed(json: &str) -> Told {
    Told::Command { command: None, payload: json.into() }
}

/// The number of the one request that a device has heard.
fn asked(told: &[Told]) -> u64 {
    let [Told::Command { command: Some(number), .. }] = told else { panic!("{told:?}") };
    *number
}

const NEW: [Told; 1] = [Told::Registered { is_new: true }];
const KNOWN: [Told; 1] = [Told::Registered { is_new: false }];

#[test]
fn a_device_registers_reports_and_is_reached_in_every_format() {
    for format in Format::ALL {
        let mut world = World::new(2, &[]);
        let mut lamp = Gadget::new(&mut world, 1, format, "ann");
        assert_eq!(lamp.report(&mut world, "1"), [Told::Error(ErrorCode::Forbidden)]);
        assert_eq!(lamp.register(&mut world, "lamp", &["light"]), NEW);
        let device = fleet(&world).get("lamp").unwrap();
        assert_eq!((device.user(), device.metadata_of("fw")), (Some("ann"), Some("7".into())));
        assert_eq!(lamp.report(&mut world, r#"{"w":4.5}"#), [Told::Reply(r#"{"w":4.5}"#.into())]);
        for (report, code) in [
            ("panic", ErrorCode::Internal),
            ("refuse", ErrorCode::Refused),
            ("garbage", ErrorCode::Internal),
        ] {
            let report = format!("{report:?}");
            assert_eq!(lamp.report(&mut world, &report), [Told::Error(code)], "{report}");
        }
        assert_eq!(push(&mut world, "lamp", "[1]").unwrap(), 1);
        assert_eq!(lamp.told(&mut world), [pushed("[1]")]);
        let mut answered = request(&mut world, "lamp", r#""on?""#, 1000);
        let number = asked(&lamp.told(&mut world));
        lamp.answer(&mut world, number, Ok("true"));
        assert_eq!(answered.try_recv().unwrap(), Ok(b"true".to_vec()));
        let answered = request(&mut world, "lamp", r#""on?""#, 1000);
        let number = asked(&lamp.told(&mut world));
        lamp.answer(&mut world, number, Err("broken"));
        assert_eq!(code(answered), ErrorCode::Refused);
        let counters = world.counters(1);
        assert_eq!((counters.devices, counters.commands, counters.reports), (1, 3, 5));
        lamp.say(&mut world, &ClientMessage::Goodbye(client::Goodbye {}));
        assert_eq!(log(&world), ["lamp registered", "lamp Left"]);
        assert_eq!((fleet(&world).registry.count(), world.counters(1).devices), (0, 0));
    }
}

#[test]
fn pushes_go_to_those_that_have_a_tag_and_to_all_on_every_shard() {
    let mut world = World::new(3, &[]);
    let mut gadgets: Vec<_> = (0..3).map(|shard| Gadget::guest(&mut world, shard)).collect();
    for (at, gadget) in gadgets.iter_mut().enumerate() {
        let tags: &[&str] = if at < 2 { &["t"] } else { &[] };
        assert_eq!(gadget.register(&mut world, &format!("g{at}"), tags), NEW);
    }
    assert_eq!(push(&mut world, Target::tag("t"), "1").unwrap(), 2);
    assert_eq!(push(&mut world, Target::All, "2").unwrap(), 3);
    assert_eq!(push(&mut world, Target::tag("none"), "3").unwrap(), 0);
    assert_eq!(push(&mut world, "none", "3").unwrap_err().code(), ErrorCode::UnknownDevice);
    assert_eq!(gadgets[0].told(&mut world), [pushed("1"), pushed("2")]);
    assert_eq!(gadgets[2].told(&mut world), [pushed("2")]);
    // It changes its tags, under the same id.
    assert_eq!(gadgets[2].register(&mut world, "g2", &["t", "u"]), KNOWN);
    assert_eq!(push(&mut world, Target::tag("t"), "4").unwrap(), 3);
    assert_eq!(gadgets[2].told(&mut world), [pushed("4")]);
}

#[test]
fn a_device_goes_on_in_another_process() {
    for passes in [false, true] {
        let mut world = World::new(2, &[]);
        let mut lamp = Gadget::guest(&mut world, 1);
        assert_eq!(lamp.register(&mut world, "lamp", &["light"]), NEW);
        let open = world.replace(2, passes);
        assert_eq!(open, if passes { vec![lamp.client] } else { vec![] });
        assert_eq!(log(&world), ["lamp registered"]);
        if !passes {
            lamp.connect(&mut world, 0);
            assert!(lamp.is_resumed);
        }
        let device = fleet(&world).get("lamp").unwrap();
        assert_eq!(
            (device.tags(), device.metadata_of("fw")),
            (vec!["light".into()], Some("7".into()))
        );
        assert_eq!(push(&mut world, Target::tag("light"), "1").unwrap(), 1);
        assert_eq!(lamp.told(&mut world), [pushed("1")]);
        assert_eq!(lamp.register(&mut world, "lamp", &["light"]), KNOWN);
    }
}

#[test]
fn the_later_one_takes_over_an_id_wherever_the_other_is() {
    for other_shard in [0, 1] {
        let mut world = World::new(2, &[]);
        let mut first = Gadget::guest(&mut world, 0);
        assert_eq!(first.register(&mut world, "one", &["a"]), NEW);
        let waits = request(&mut world, "one", "1", 1000);
        first.told(&mut world);
        let mut second = Gadget::guest(&mut world, other_shard);
        assert_eq!(second.register(&mut world, "one", &["b"]), KNOWN);
        assert_eq!(first.told(&mut world), [Told::Goodbye(ErrorCode::TakenOver)]);
        assert_eq!(code(waits), ErrorCode::UnknownDevice);
        assert_eq!(log(&world), ["one registered", "one registered", "one TakenOver"]);
        let registry = &fleet(&world).registry;
        assert_eq!((registry.count(), registry.count_of_tag("a")), (1, 0));
        push(&mut world, "one", "5").unwrap();
        assert_eq!(second.told(&mut world), [pushed("5")]);
        // One that is away loses its session.
        second.vanish(&mut world);
        let mut third = Gadget::guest(&mut world, 0);
        assert_eq!(third.register(&mut world, "one", &[]), KNOWN);
        second.connect(&mut world, other_shard);
        assert!(!second.is_resumed);
        assert_eq!((0..2).map(|shard| world.counters(shard).devices).sum::<u64>(), 1);
        assert_eq!((0..2).map(|shard| world.counters(shard).devices_taken_over).sum::<u64>(), 2);
    }
}

#[test]
fn an_id_is_taken_over_so_often_and_not_once_more() {
    let mut world = World::new(2, &[("tuning.take_overs_per_minute", "3")]);
    let mut last = Gadget::guest(&mut world, 0);
    assert_eq!(last.register(&mut world, "one", &[]), NEW);
    for shard in [1, 0, 1] {
        let mut next = Gadget::guest(&mut world, shard);
        assert_eq!(next.register(&mut world, "one", &[]), KNOWN);
        assert_eq!(last.told(&mut world), [Told::Goodbye(ErrorCode::TakenOver)]);
        last = next;
    }
    let mut next = Gadget::guest(&mut world, 0);
    assert_eq!(next.register(&mut world, "one", &[]), [Told::Error(ErrorCode::Limit)]);
    assert_eq!(last.told(&mut world), [], "it stays");
    assert_eq!(next.register(&mut world, "other", &[]), NEW, "that is for each id");
    // The next is free after a third of a minute.
    world.wait(19_000);
    let mut early = Gadget::guest(&mut world, 0);
    assert_eq!(early.register(&mut world, "one", &[]), [Told::Error(ErrorCode::Limit)]);
    world.wait(1_000);
    assert_eq!(early.register(&mut world, "one", &[]), KNOWN);
}

#[test]
fn two_that_fight_for_one_id_leave_one() {
    let mut world = World::new(2, &[]);
    for round in 0..50 {
        let mut gadget = Gadget::guest(&mut world, round % 2);
        let expected = if round == 0 { NEW } else { KNOWN };
        assert_eq!(gadget.register(&mut world, "one", &["t"]), expected);
    }
    let registry = &fleet(&world).registry;
    assert_eq!((registry.count(), registry.count_of_tag("t")), (1, 1));
    assert_eq!(log(&world).iter().filter(|line| line.ends_with("TakenOver")).count(), 49);
}

#[test]
fn an_id_is_kept_from_other_users_and_from_all_where_duplicates_are_refused() {
    const TAKEN: [Told; 1] = [Told::Error(ErrorCode::DeviceTaken)];
    let mut world = World::new(1, &[]);
    let mut ann = Gadget::new(&mut world, 0, Format::Packed, "ann");
    assert_eq!(ann.register(&mut world, "one", &[]), NEW);
    let mut bob = Gadget::new(&mut world, 0, Format::Packed, "bob");
    assert_eq!(bob.register(&mut world, "one", &[]), TAKEN);
    assert_eq!(Gadget::guest(&mut world, 0).register(&mut world, "one", &[]), TAKEN);
    let mut again = Gadget::new(&mut world, 0, Format::Packed, "ann");
    assert_eq!(again.register(&mut world, "one", &[]), KNOWN);

    let settings = FleetSettings::new().duplicates(Duplicates::Refuse).ids("{user}:*");
    let mut world = World::with_fleet(1, &[], settings);
    let mut ann = Gadget::new(&mut world, 0, Format::Packed, "ann");
    let forbidden = [Told::Error(ErrorCode::Forbidden)];
    assert_eq!(ann.register(&mut world, "bob:one", &[]), forbidden);
    assert_eq!(Gadget::guest(&mut world, 0).register(&mut world, "ann:one", &[]), forbidden);
    assert_eq!(ann.register(&mut world, "ann:one", &[]), NEW);
    assert_eq!(
        ann.register(&mut world, "ann:one", &["t"]),
        KNOWN,
        "it is not a duplicate of itself"
    );
    let mut again = Gadget::new(&mut world, 0, Format::Packed, "ann");
    assert_eq!(again.register(&mut world, "ann:one", &[]), TAKEN);
    ann.say(&mut world, &ClientMessage::Goodbye(client::Goodbye {}));
    assert_eq!(again.register(&mut world, "ann:one", &[]), NEW);
}

#[test]
fn one_that_comes_back_gets_each_command_once() {
    let mut world = World::new(2, &[]);
    let mut lamp = Gadget::guest(&mut world, 0);
    lamp.register(&mut world, "lamp", &[]);
    lamp.vanish(&mut world);
    assert_eq!(push(&mut world, "lamp", "1").unwrap(), 1);
    let mut answered = request(&mut world, "lamp", "2", 5000);
    push(&mut world, "lamp", "3").unwrap();
    lamp.connect(&mut world, 1);
    assert!(lamp.is_resumed);
    let told = lamp.told(&mut world);
    assert_eq!((&told[0], &told[2], told.len()), (&pushed("1"), &pushed("3"), 3));
    lamp.answer(&mut world, asked(&told[1..2]), Ok("20"));
    assert_eq!(answered.try_recv().unwrap(), Ok(b"20".to_vec()));
    lamp.vanish(&mut world);
    lamp.connect(&mut world, 0);
    assert_eq!(lamp.told(&mut world), []);
    assert_eq!(log(&world), ["lamp registered"]);
    // Its grace ends.
    lamp.vanish(&mut world);
    let answered = request(&mut world, "lamp", "2", 60_000);
    world.wait(11_000);
    assert_eq!(code(answered), ErrorCode::UnknownDevice);
    assert_eq!(log(&world), ["lamp ConnectionLost"]);
    assert_eq!(push(&mut world, "lamp", "4").unwrap_err().code(), ErrorCode::UnknownDevice);
}

/// The payloads of the commands that a device has heard.
fn commands<'a>(told: &'a [Told]) -> Vec<&'a str> {
    let payload = |told: &'a Told| match told {
        Told::Command { payload, .. } => payload.as_str(),
        other => panic!("{other:?}"),
    };
    told.iter().map(payload).collect()
}

#[test]
fn a_request_whose_time_is_over_is_not_carried_out_later() {
    for format in Format::ALL {
        let mut world = World::new(2, &[]);
        let mut lamp = Gadget::new(&mut world, 0, format, "ann");
        lamp.register(&mut world, "lamp", &[]);
        // Its connection fails, and the node does not know that: what it sends gets lost.
        let heard = lamp.told(&mut world);
        assert_eq!(heard, []);
        let on_its_way = request(&mut world, "lamp", "0", 300);
        push(&mut world, "lamp", "1").unwrap();
        world.vanish(lamp.client);
        let first = request(&mut world, "lamp", "2", 500);
        push(&mut world, "lamp", "3").unwrap();
        let second = request(&mut world, "lamp", "4", 600);
        let mut third = request(&mut world, "lamp", "5", 5000);
        world.wait(601);
        for given_up in [on_its_way, first, second] {
            assert_eq!(code(given_up), ErrorCode::Timeout);
        }
        assert_eq!(world.counters(0).commands_withdrawn, 2, "of the first it does not know");
        lamp.connect(&mut world, 1);
        assert!(lamp.is_resumed);
        let told = lamp.told(&mut world);
        assert_eq!(commands(&told), ["1", "3", "5"]);
        assert_eq!(world.counters(0).commands_withdrawn, 3);
        lamp.answer(&mut world, asked(&told[2..]), Ok("50"));
        assert_eq!(third.try_recv().unwrap(), Ok(b"50".to_vec()));
        // The counts of both ends agree.
        push(&mut world, "lamp", "6").unwrap();
        lamp.vanish(&mut world);
        push(&mut world, "lamp", "7").unwrap();
        lamp.connect(&mut world, 0);
        assert!(lamp.is_resumed);
        assert_eq!(lamp.told(&mut world), [pushed("6"), pushed("7")]);
    }
}

#[test]
fn one_that_is_silent_is_noticed_once_and_so_is_its_return() {
    let settings = FleetSettings::new().silent_ms(2000);
    let mut world = World::with_fleet(1, &[], settings);
    let mut lamp = Gadget::guest(&mut world, 0);
    lamp.register(&mut world, "lamp", &[]);
    world.wait(900);
    lamp.report(&mut world, "1");
    let device = fleet(&world).get("lamp").unwrap();
    let heard = device.last_seen();
    assert!(heard >= Duration::from_millis(900));
    world.wait(1900);
    assert_eq!(log(&world), ["lamp registered"]);
    world.wait(400);
    assert_eq!(log(&world), ["lamp silent"]);
    assert!(device.is_silent() && device.last_seen() == heard);
    assert_eq!(world.counters(0).devices_silent, 1);
    world.wait(5000);
    assert_eq!(log(&world), [""; 0]);
    lamp.report(&mut world, "2");
    assert_eq!(log(&world), ["lamp back"]);
    assert!(!device.is_silent() && device.last_seen() > heard);
    world.wait(2400);
    assert_eq!(log(&world), ["lamp silent"]);
    // Away, it stays silent, and it is back when it is back.
    lamp.vanish(&mut world);
    world.wait(2400);
    lamp.connect(&mut world, 0);
    assert_eq!(log(&world), ["lamp back"]);
    lamp.vanish(&mut world);
    world.wait(2400);
    assert_eq!(log(&world), ["lamp silent"]);
    world.wait(8000);
    assert_eq!(log(&world), ["lamp ConnectionLost"]);
    let counters = world.counters(0);
    assert_eq!((counters.devices, counters.devices_silent), (0, 0));
}

#[test]
fn one_whose_input_waits_is_not_silent() {
    let mut world = World::with_fleet(1, &[], FleetSettings::new().silent_ms(2000));
    let others: Vec<_> = (0..120).map(|_| world.client(0)).collect();
    let mut lamp = Gadget::new(&mut world, 0, Format::Packed, "ann");
    lamp.register(&mut world, "lamp", &[]);
    says_last(&mut world, lamp.client, &others);
    assert_eq!(log(&world), ["lamp registered"]);
    world.run();
    world.wait(2400);
    assert_eq!(log(&world), ["lamp silent"], "it says nothing more");
}

#[test]
fn a_request_that_is_not_answered_in_time_is_given_up() {
    let mut world = World::new(1, &[("limits.device.commands", "2")]);
    let mut lamp = Gadget::guest(&mut world, 0);
    lamp.register(&mut world, "lamp", &[]);
    let first = request(&mut world, "lamp", "1", 500);
    let mut second = request(&mut world, "lamp", "2", 1000);
    assert_eq!(code(request(&mut world, "lamp", "3", 500)), ErrorCode::Busy);
    world.wait(501);
    assert_eq!(code(first), ErrorCode::Timeout);
    let told = lamp.told(&mut world);
    lamp.answer(&mut world, asked(&told[..1]), Ok("1"));
    lamp.answer(&mut world, 999, Ok("1"));
    let mut other = Gadget::guest(&mut world, 0);
    other.register(&mut world, "other", &[]);
    other.answer(&mut world, asked(&told[1..]), Ok("0"));
    assert!(second.try_recv().is_err(), "no other device answers");
    lamp.answer(&mut world, asked(&told[1..]), Ok("2"));
    assert_eq!(second.try_recv().unwrap(), Ok(b"2".to_vec()));
    assert_eq!(world.counters(0).commands_unanswered, 1);
    // It is disconnected in the midst of one.
    let waits = request(&mut world, "lamp", "4", 1000);
    let (connection, number) = target(&fleet(&world).get("lamp").unwrap());
    let text = "enough".into();
    world.post(0, ShardMail::Device(DeviceMail::Disconnect { connection, number, text }));
    assert_eq!(code(waits), ErrorCode::UnknownDevice);
    assert_eq!(lamp.told(&mut world).last(), Some(&Told::Goodbye(ErrorCode::Kicked)));
    assert!(log(&world).contains(&"lamp Disconnected".to_owned()));
}

#[test]
fn a_session_is_one_device_and_one_more_than_a_limit_is_refused() {
    let limits = [
        ("limits.devices", "2"),
        ("limits.device.tags", "1"),
        ("limits.name_bytes.device", "4"),
        ("limits.device.metadata_bytes", "3"),
        ("limits.payload_bytes", "3"),
    ];
    let mut world = World::new(1, &limits);
    let mut one = Gadget::guest(&mut world, 0);
    let limit = [Told::Error(ErrorCode::Limit)];
    assert_eq!(one.register(&mut world, "12345", &[]), limit);
    assert_eq!(one.register(&mut world, "1", &["a", "b"]), limit);
    assert_eq!(one.register(&mut world, "", &[]), [Told::Error(ErrorCode::Refused)]);
    assert_eq!(one.register(&mut world, "1", &["bad"]), [Told::Error(ErrorCode::Refused)]);
    assert_eq!(one.register(&mut world, "1", &[]), NEW);
    for id in 0..1000 {
        assert_eq!(one.register(&mut world, &format!("x{id}"), &[]), limit);
    }
    let mut two = Gadget::guest(&mut world, 0);
    assert_eq!(two.register(&mut world, "2", &[]), NEW);
    assert_eq!(Gadget::guest(&mut world, 0).register(&mut world, "3", &[]), limit);
    assert_eq!(fleet(&world).registry.count(), 2);
    let fits = |json: &[u8]| world.node.check_command(&Payload::json(json).unwrap());
    assert_eq!((fits(b"123").is_ok(), fits(b"1234").unwrap_err().code()), (true, ErrorCode::Limit));
    let world = World::new(1, &[("limits.device.metadata_bytes", "2")]);
    let mut world = world;
    assert_eq!(Gadget::guest(&mut world, 0).register(&mut world, "1", &[]), limit, "fw and 7");
}

#[test]
fn a_fleet_that_panics_refuses_and_goes_on() {
    let mut world = World::new(1, &[]);
    let mut one = Gadget::guest(&mut world, 0);
    let internal = [Told::Error(ErrorCode::Internal)];
    assert_eq!(one.register(&mut world, "1", &["panic"]), internal);
    assert_eq!(fleet(&world).registry.count(), 0);
    assert_eq!(one.register(&mut world, "1", &[]), NEW);
}
