//! Rooms that are measured, and rooms that can't be. The nodes are this program in processes of
//! their own, so it has a main function instead of the usual harness.

use std::process::ExitCode;
use std::time::Duration;

use playfield::prelude::{
    Context, Error, Handle, Map, Message, Player, PlayerId, Result, Room, State, room,
};
use playfield_load::{MakeBot, Turn};
use playfield_measure::{Case, Drive, Plan, Run, measure, node, profile, profile_cost, run};
use playfield_room::RoomType;
use playfield_server::{Pace, Server};

#[derive(State, Default)]
struct Field {
    places: Map<PlayerId, i32>,
}

#[derive(Message)]
struct Step {
    by: i32,
}

#[room(messages(Step), tick_hz = 20, capacity = 4)]
impl Room for Field {}

impl Handle<Step> for Field {
    fn handle(&mut self, step: Step, player: &Player, _: &mut Context<Self>) -> Result<()> {
        *self.places.get_or_default(player.id()) = step.by;
        Ok(())
    }
}

#[derive(State, Default)]
struct Closed {
    players: u32,
}

#[room()]
impl Room for Closed {
    fn join(&mut self, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Err(Error::from("it is closed on Mondays"))
    }
}

#[derive(State, Default)]
struct Broken {
    steps: u32,
}

#[room(messages(Step), tick_hz = 20)]
impl Room for Broken {}

impl Handle<Step> for Broken {
    fn handle(&mut self, step: Step, _: &Player, _: &mut Context<Self>) -> Result<()> {
        self.steps += 1;
        assert!(step.by > 1000, "a step of {}", step.by);
        Ok(())
    }
}

fn walk(turn: &mut Turn<'_, Field>) -> Duration {
    let by = turn.below(10) as i32;
    turn.send(&Step { by });
    Duration::from_millis(100)
}

fn case(room_type: &str, drive: Drive) -> Case {
    Case {
        room_type: room_type.into(),
        rooms: 1,
        players: 6,
        hz: None,
        drive,
        pace: Pace { speed: 8, evict_bytes: 1 << 20 },
        tls: None,
        time: Duration::from_millis(500),
        profiler: None,
        seed: 1,
    }
}

fn bots() -> Drive {
    Drive::Bot(MakeBot::of::<Field, _>(|_| walk))
}

fn messages() -> Drive {
    Drive::Messages { name: None, value: None, rate: 10.0, is_request: false }
}

fn a_run_has_the_time_the_messages_and_the_bytes_of_a_room() {
    for drive in [bots(), messages()] {
        let run: Run = run(&case("field", drive)).expect("it runs");
        assert!(run.room_s >= 3.9, "eight times 0.5 s at least: {}", run.room_s);
        // On a busy machine there are fewer.
        let syncs = run.syncs as f64 / run.room_s;
        assert!((0.5..=21.0).contains(&syncs), "{syncs} syncs a second");
        let messages = run.per_player(run.messages_in);
        assert!((0.5..20.0).contains(&messages), "{messages} messages of a player a second");
        assert!(run.bytes_out > 0 && run.bytes_in > 0 && run.patches > 0);
        assert!(run.eviction_s > 0.0 && run.cpu_s > 0.0 && run.part("send") > 0.0);
        assert_eq!((run.sync_hz, run.trouble), (20, None));
    }
}

fn a_room_has_the_rate_that_is_asked_for() {
    let run = run(&Case { hz: Some(5), ..case("field", bots()) }).expect("it runs");
    let syncs = run.syncs as f64 / run.room_s;
    assert!((0.5..=6.0).contains(&syncs), "{syncs} syncs a second");
}

fn a_plan_is_measured_at_all_its_sizes_and_rates() {
    let plan = Plan {
        room_type: "field".into(),
        players: 4,
        hz: None,
        drive: messages(),
        tls: None,
        time: Duration::from_millis(200),
        is_whole: true,
    };
    let mut told = 0;
    match measure(&plan, &mut |_| told += 1) {
        Ok(capacity) => {
            assert_eq!(capacity.others.len(), 14);
            let all = capacity.others.iter().chain([&capacity.cell]);
            assert!(all.clone().all(|cell| cell.core > 0.0 && cell.bytes_out > 0.0));
            assert!(capacity.fit.is_some() && capacity.player_bytes > 0.0 && told > 14);
        }
        // Other tests run beside this one.
        Err(error) => assert!(error.to_string().contains("too noisy"), "{error}"),
    }
}

fn a_profile_has_all_bytes_of_patches_by_field() {
    let plan = Plan {
        room_type: "field".into(),
        players: 4,
        hz: None,
        drive: bots(),
        tls: None,
        time: Duration::from_millis(300),
        is_whole: false,
    };
    let room = profile(&plan).expect("it runs");
    let bytes: u64 = room.profiled.fields.iter().map(|field| field.patches.bytes()).sum();
    assert!(bytes > 0 && bytes == room.profiled.bytes.bytes(), "{bytes}");
    let place = room.profiled.fields.iter().find(|field| field.path == "places.*");
    assert!(place.expect("the values of the map").patches.writes > 0);
    let (cpu, sync) = (&room.cpu, &room.sync);
    assert!([cpu.len(), sync.fields.len()] == [room.profiled.fields.len(); 2]);
    assert!(sync.sum() > 0.0 && sync.changes > 0.0 && sync.patches > 0.0, "{sync:?}");
    let timed = |path: &str| {
        let at = room.profiled.fields.iter().position(|field| field.path == path);
        cpu[at.expect("it is a field")].time
    };
    let [map, entries] = [timed("places"), timed("places.*")];
    assert!(map.compare > 0.0 && entries.compare > 0.0 && entries.shared > 0.0, "{cpu:?}");
    assert_eq!(entries.own, 0.0, "no player is sent anything of their own");
    assert!(sync.beside.iter().take(3).all(|time| *time > 0.0), "{sync:?}");
    let step = &room.exchange.messages[0];
    assert_eq!(step.name, "Step");
    assert!(step.count > 0 && step.own >= step.count && step.ns > 0, "{step:?}");
    let before = room.to_json();
    let same = room.changes(&before).expect("it is of the same room");
    assert_eq!(same.fields, []);
    assert!(same.rooms.is_some_and(|[before, now]| before == now && now > 0), "{same:?}");
    let mut less = before.clone();
    less["fields"] = serde_json::json!([]);
    let changes = room.changes(&less).expect("it is of the same room").fields;
    assert!(changes.iter().any(|change| change.text.contains("places.*") && change.is_worse));
    less["room"] = "chat".into();
    assert!(room.changes(&less).expect_err("of another").contains("room is \"chat\""));
    assert!(room.changes(&serde_json::json!({})).expect_err("nothing").contains("no result"));
}

fn live_profiles_are_measured_in_turns() {
    let plan = Plan {
        room_type: "field".into(),
        players: 4,
        hz: None,
        drive: bots(),
        tls: None,
        time: Duration::from_millis(300),
        is_whole: false,
    };
    let cost = profile_cost(&plan, 2, 2).expect("it runs");
    assert_eq!((cost.without.len(), cost.with.len()), (2, 2));
    assert!(cost.without.iter().chain(&cost.with).all(|core| *core > 0.0), "{cost:?}");
}

fn what_can_t_be_measured_is_an_error_that_says_why() {
    let error = |room: &str, drive| run(&case(room, drive)).expect_err(room).to_string();
    let text = error("no such", messages());
    assert!(text.contains("ended before it served"), "{text}");
    let text =
        error("closed", Drive::Messages { name: None, value: None, rate: 0.0, is_request: false });
    assert!(text.contains("0 of 6 players") && text.contains("closed on Mondays"), "{text}");
    let name = Some("Stop".to_owned());
    let drive = Drive::Messages { name, value: None, rate: 1.0, is_request: false };
    let text = error("field", drive);
    assert!(text.contains("Stop") && text.contains("Step"), "{text}");
}

fn a_room_that_panics_is_trouble() {
    let value = serde_json::json!({ "by": 1 });
    let drive = Drive::Messages { name: None, value: Some(value), rate: 10.0, is_request: false };
    match run(&case("broken", drive)) {
        Ok(run) => {
            let trouble = run.trouble.expect("players lose their room");
            assert!(trouble.contains("removed"), "{trouble}");
        }
        // The first messages can come before the last player.
        Err(error) => assert!(error.to_string().contains("room failed"), "{error}"),
    }
}

const TESTS: [(&str, fn()); 7] = [
    ("live_profiles_are_measured_in_turns", live_profiles_are_measured_in_turns),
    ("a_profile_has_all_bytes_of_patches_by_field", a_profile_has_all_bytes_of_patches_by_field),
    (
        "a_run_has_the_time_the_messages_and_the_bytes_of_a_room",
        a_run_has_the_time_the_messages_and_the_bytes_of_a_room,
    ),
    ("a_room_has_the_rate_that_is_asked_for", a_room_has_the_rate_that_is_asked_for),
    (
        "a_plan_is_measured_at_all_its_sizes_and_rates",
        a_plan_is_measured_at_all_its_sizes_and_rates,
    ),
    (
        "what_can_t_be_measured_is_an_error_that_says_why",
        what_can_t_be_measured_is_an_error_that_says_why,
    ),
    ("a_room_that_panics_is_trouble", a_room_that_panics_is_trouble),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == node::COMMAND) {
        // Rooms that panic do so on purpose.
        std::panic::set_hook(Box::new(|_| {}));
        let served = node::run(&arguments[1..], |config| {
            Ok(Server::new(config)
                .room_type(RoomType::of::<Field>("field"))
                .room_type(RoomType::of::<Closed>("closed"))
                .room_type(RoomType::of::<Broken>("broken")))
        });
        return match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    if arguments.iter().any(|word| word == "--list") {
        TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let filter = arguments.iter().find(|word| !word.starts_with('-'));
    for (name, test) in TESTS {
        if filter.is_none_or(|filter| name.contains(filter.as_str())) {
            test();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}
