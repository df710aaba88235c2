//! Rooms that are measured, and rooms that can't be. The nodes are this program in processes of
//! their own, so it has a main function instead of the usual harness.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use playfield::prelude::{
    Context, Error, Handle, Map, Message, Player, PlayerId, Result, Room, State, room,
};
use playfield_load::{MakeBot, Turn};
use playfield_measure::{
    Case, Certificate, Drive, Plan, ProfileBaseline, Run, measure, node, profile, profile_cost, run,
};
use playfield_room::RoomType;
use playfield_server::{Pace, SelfSigned, Server};
use serde_json::Value;

#[derive(State, Default)]
struct Field {
    places: Map<PlayerId, i32>,
}

#[derive(Message)]
struct Step {
    by: i32,
}

#[room(messages(Step), tick_hz = 20, capacity = 8)]
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

/// Prints its first message.
#[derive(State, Default)]
struct Chatty {
    steps: u32,
}

#[room(messages(Step), tick_hz = 20, sync_hz = 0)]
impl Room for Chatty {}

impl Handle<Step> for Chatty {
    fn handle(&mut self, step: Step, _: &Player, _: &mut Context<Self>) -> Result<()> {
        self.steps += 1;
        if self.steps == 1 {
            println!("a step of {}", step.by);
            print!("more");
        }
        Ok(())
    }
}

/// Ends when it is sent something.
#[derive(State, Default)]
struct Brief {
    steps: u32,
}

#[room(messages(Step))]
impl Room for Brief {}

impl Handle<Step> for Brief {
    fn handle(&mut self, _: Step, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        self.steps += 1;
        cx.close("the match is over");
        Ok(())
    }
}

/// Never comes back from its first player.
#[derive(State, Default)]
struct Stuck {
    players: u32,
}

#[room()]
impl Room for Stuck {
    fn join(&mut self, _: &Player, _: &mut Context<Self>) -> Result<()> {
        eprintln!("{STUCK}");
        loop {
            std::thread::park();
        }
    }
}

/// The line that a room prints before it hangs, and the word for a process that measures it.
const STUCK: &str = "stuck";

/// Has no rates at all.
#[derive(State, Default)]
struct Still {
    steps: u32,
}

#[room(messages(Step), sync_hz = 0)]
impl Room for Still {}

impl Handle<Step> for Still {
    fn handle(&mut self, _: Step, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        self.steps += 1;
        cx.sync_now();
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

fn silence() -> Drive {
    Drive::Messages { name: None, value: None, rate: 0.0, is_request: false }
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
        assert!(run.messages_out >= run.patches, "patches are messages");
        assert!(run.node_delayed <= 1.0 && run.driver_delayed <= 1.0);
        assert_eq!((run.sync_hz, run.trouble), (20, None));
    }
}

fn a_room_has_the_rate_that_is_asked_for() {
    let run = run(&Case { hz: Some(5), ..case("field", bots()) }).expect("it runs");
    let syncs = run.syncs as f64 / run.room_s;
    assert!((0.5..=6.0).contains(&syncs), "{syncs} syncs a second");
}

fn a_type_without_syncs_has_the_rate_of_its_ticks() {
    let run = run(&Case { hz: Some(5), ..case("chatty", messages()) }).expect("it runs");
    assert_eq!((run.sync_hz, run.syncs), (0, 0));
    assert!(run.messages_in > 0, "its prints break nothing");
}

fn a_run_over_tls_is_measured() {
    let folder = std::env::temp_dir().join(format!("playfield-measure-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let signed = SelfSigned::new(&["localhost"]).expect("a certificate");
    let files = ["certificate.pem", "key.pem"].map(|name| folder.join(name));
    std::fs::write(&files[0], signed.certificate_pem()).expect("it is written");
    std::fs::write(&files[1], signed.key_pem()).expect("it is written");
    let [certificate, key] = files;
    let tls = Some(Certificate { certificate, key });
    let run = run(&Case { tls, ..case("field", bots()) });
    std::fs::remove_dir_all(&folder).expect("the folder is gone");
    let run = run.expect("it runs");
    assert!(run.bytes_out > 0 && run.messages_out > 0, "{run:?}");
}

fn plan(room_type: &str, players: usize) -> Plan {
    Plan {
        room_type: room_type.into(),
        players,
        is_default_size: false,
        hz: None,
        drive: messages(),
        script: None,
        tls: None,
        time: Duration::from_millis(200),
        is_whole: false,
    }
}

fn a_plan_is_of_rooms_that_can_exist() {
    let error = |plan: &Plan| measure(plan, &mut |_| {}).expect_err("it can't be").to_string();
    let text = error(&plan("field", 9));
    assert!(text.starts_with("9 players are more than rooms of the type \"field\" take"), "{text}");
    assert!(text.contains("ask for 8 at most"), "{text}");
    let text = error(&Plan { hz: Some(5), ..plan("still", 2) });
    assert!(text.starts_with("5 Hz can't be measured"), "{text}");
    let whole = Plan { is_default_size: true, is_whole: true, ..plan("field", 30) };
    match measure(&whole, &mut |_| {}) {
        Ok(capacity) => {
            assert_eq!((capacity.plan.players, capacity.cell.players), (8, 8));
            let sizes = capacity.others.iter().map(|cell| cell.players);
            assert!(sizes.clone().all(|players| players == 4 || players == 8), "all that fit");
            assert_eq!(sizes.count(), 10);
        }
        // Other tests run beside this one.
        Err(error) => assert!(error.to_string().contains("too noisy"), "{error}"),
    }
    let still = Plan { is_whole: true, ..plan("still", 2) };
    match measure(&still, &mut |_| {}) {
        Ok(capacity) => assert!(capacity.others.iter().all(|cell| cell.hz.is_none())),
        Err(error) => assert!(error.to_string().contains("too noisy"), "{error}"),
    }
}

fn a_node_ends_with_its_parent_even_if_a_room_hangs() {
    let mut parent = Command::new(std::env::current_exe().expect("this program has a path"))
        .arg(STUCK)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // The node has the same standard error.
    let mut lines = BufReader::new(parent.stderr.take().expect("it is piped")).lines();
    let first = lines.next().expect("a player joins").expect("text");
    assert_eq!(first, STUCK);
    parent.kill().expect("it still measures");
    parent.wait().expect("it can be waited for");
    assert_eq!(lines.count(), 0, "the node is gone, too: its standard error ends");
}

fn a_plan_is_measured_at_all_its_sizes_and_rates() {
    let plan = Plan {
        room_type: "field".into(),
        players: 4,
        is_default_size: false,
        hz: None,
        drive: messages(),
        script: None,
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
        is_default_size: false,
        hz: None,
        drive: bots(),
        script: None,
        tls: None,
        time: Duration::from_millis(300),
        is_whole: false,
    };
    let room = match profile(&plan) {
        Ok(room) => room,
        // Other tests run beside this one.
        Err(error) => {
            assert!(error.to_string().contains("too noisy"), "{error}");
            return;
        }
    };
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
    assert_eq!(before["plan"]["drive"], "bot");
    let read = |before: &Value| ProfileBaseline::read(before, &plan);
    let same = room.changes(&read(&before).expect("it is of the same room"));
    assert_eq!(same.fields, []);
    // A machine that is busy with other tests is not compared with itself.
    match same.rooms {
        Some([before, now]) => assert!(before == now && now > 0, "{same:?}"),
        None => assert!(same.notes.iter().any(|note| note.contains("not quiet")), "{same:?}"),
    }
    let mut less = before.clone();
    less["fields"] = serde_json::json!([]);
    let changes = room.changes(&read(&less).expect("it is of the same room"));
    let found = changes.fields.iter().any(|of| of.text.contains("places.*") && of.is_worse);
    let is_short = changes.notes.iter().any(|note| note.contains("too short to compare"));
    assert!(found || is_short, "{changes:?}");
    less["room"] = "chat".into();
    assert!(read(&less).expect_err("of another").contains("room is \"chat\""));
    assert!(read(&serde_json::json!({})).expect_err("nothing").contains("no result"));
}

fn a_room_that_panics_has_no_profile() {
    let value = serde_json::json!({ "by": 1 });
    let drive = Drive::Messages { name: None, value: Some(value), rate: 1.0, is_request: false };
    let error = profile(&Plan { drive, ..plan("broken", 4) }).expect_err("players lose their room");
    assert!(error.to_string().contains("removed"), "{error}");
}

fn live_profiles_are_measured_in_turns() {
    let plan = Plan {
        room_type: "field".into(),
        players: 4,
        is_default_size: false,
        hz: None,
        drive: bots(),
        script: None,
        tls: None,
        time: Duration::from_millis(300),
        is_whole: false,
    };
    let cost = profile_cost(&plan, 2, 2).expect("it runs");
    assert_eq!(cost.rounds.len(), 2);
    assert!(cost.rounds.iter().flatten().all(|time| *time > 0), "{cost:?}");
}

fn what_can_t_be_measured_is_an_error_that_says_why() {
    let error = |room: &str, drive| run(&case(room, drive)).expect_err(room).to_string();
    let text = error("no such", messages());
    assert!(text.contains("ended before it served"), "{text}");
    let text = error("closed", silence());
    assert!(text.contains("0 of 6 players") && text.contains("closed on Mondays"), "{text}");
    let name = Some("Stop".to_owned());
    let drive = Drive::Messages { name, value: None, rate: 1.0, is_request: false };
    let text = error("field", drive);
    assert!(text.contains("Stop") && text.contains("Step"), "{text}");
}

fn a_room_that_fails_or_ends_is_an_error_with_the_reason() {
    let value = serde_json::json!({ "by": 1 });
    let drive = Drive::Messages { name: None, value: Some(value), rate: 10.0, is_request: false };
    for (room_type, reason) in [("broken", "room_failed"), ("brief", "the match is over")] {
        let error = run(&case(room_type, drive.clone())).expect_err(room_type).to_string();
        assert!(error.contains("removed") && error.contains(reason), "{error}");
    }
}

fn a_script_that_ends_is_said_to_have_ended() {
    let text = "steps = [{ join = \"field\", key = \"k\", per_room = 6 }]";
    let scripts = playfield_load::script::parse("players.toml", text).expect("it is a script");
    let error = run(&case("field", Drive::Scripts(scripts))).expect_err("it ends").to_string();
    assert!(error.contains("players have ended"), "{error}");
}

const TESTS: [(&str, fn()); 13] = [
    ("a_room_that_panics_has_no_profile", a_room_that_panics_has_no_profile),
    (
        "a_type_without_syncs_has_the_rate_of_its_ticks",
        a_type_without_syncs_has_the_rate_of_its_ticks,
    ),
    ("a_run_over_tls_is_measured", a_run_over_tls_is_measured),
    ("a_plan_is_of_rooms_that_can_exist", a_plan_is_of_rooms_that_can_exist),
    (
        "a_node_ends_with_its_parent_even_if_a_room_hangs",
        a_node_ends_with_its_parent_even_if_a_room_hangs,
    ),
    ("a_script_that_ends_is_said_to_have_ended", a_script_that_ends_is_said_to_have_ended),
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
    (
        "a_room_that_fails_or_ends_is_an_error_with_the_reason",
        a_room_that_fails_or_ends_is_an_error_with_the_reason,
    ),
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
                .room_type(RoomType::of::<Broken>("broken"))
                .room_type(RoomType::of::<Chatty>("chatty"))
                .room_type(RoomType::of::<Brief>("brief"))
                .room_type(RoomType::of::<Still>("still"))
                .room_type(RoomType::of::<Stuck>(STUCK)))
        });
        return match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    if arguments.iter().any(|word| word == STUCK) {
        let ended = run(&case(STUCK, silence())).map(|run| run.trouble);
        panic!("it is killed before: {ended:?}");
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
