//! Rooms that create others, keep seats, and know who writes to them.

use std::sync::Arc;
use std::time::Duration;

use playfield_room::sim::{OTHER_ROOM_ID, OTHER_ROOM_TYPE, ROOM_ID, Sim};
use playfield_room::{
    Context, CreatedBy, Creator, Handle, Message, NewRoom, On, Player, RESERVATION_MAX,
    Reservation, Result, Room, RoomType, SeatFor, room,
};
use playfield_state::{Data, Format, State};
use playfield_wire::ErrorCode;

const WAIT: Duration = Duration::from_secs(10);

#[derive(State, Default)]
struct Lobby {
    told_by: String,
    rung: u32,
}

#[derive(Message)]
#[reply(String)]
struct Open {
    key: Option<String>,
    private: bool,
    players: u32,
}

#[derive(Message)]
#[reply(Reservation)]
struct Hold {
    name: String,
    wait_ms: u64,
}

#[derive(Message)]
struct Lock;

#[derive(Message)]
#[reply(String)]
struct Who;

#[derive(Message)]
struct Later;

#[room(messages(Open, Hold, Lock), internal(Who, Later), capacity = 2, empty_ms = 5_000)]
impl Room for Lobby {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        if player.name() == "unwanted" {
            return Err("you are not".into());
        }
        Ok(())
    }
}

impl Handle<Open> for Lobby {
    fn handle(&mut self, open: Open, _: &Player, cx: &mut Context<Self>) -> Result<String> {
        let setup = Setup { map: "sea".into(), rounds: 3 };
        let mut new = cx.new_room::<Match>(&setup);
        if open.private {
            new = new.private();
        }
        if let Some(key) = &open.key {
            new = new.key(key);
        }
        let seats: Vec<String> = (0..open.players)
            .map(|player| new.reserve(SeatFor::User(player.to_string()), WAIT).to_string())
            .collect();
        Ok(format!("{} {}", new.create()?, seats.join(" ")))
    }
}

impl Handle<Hold> for Lobby {
    fn handle(&mut self, hold: Hold, _: &Player, cx: &mut Context<Self>) -> Result<Reservation> {
        cx.reserve(SeatFor::Name(hold.name), Duration::from_millis(hold.wait_ms))
    }
}

impl Handle<Lock> for Lobby {
    fn handle(&mut self, _: Lock, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.lock();
        Ok(())
    }
}

impl On<Who> for Lobby {
    fn on(&mut self, _: Who, cx: &mut Context<Self>) -> Result<String> {
        cx.after(Duration::from_secs(1), Later);
        let sender = cx.sender().ok_or("nobody")?;
        self.told_by = format!("{} {}", sender.room_id, sender.room_type);
        Ok(self.told_by.clone())
    }
}

impl On<Later> for Lobby {
    fn on(&mut self, _: Later, cx: &mut Context<Self>) -> Result<()> {
        assert_eq!(cx.sender(), None, "a timer is not a room");
        self.rung += 1;
        Ok(())
    }
}

#[derive(State, Default)]
struct Match {}

#[derive(Data, Default)]
struct Setup {
    map: String,
    rounds: u32,
}

#[room(criteria(map), creation = server, capacity = 4)]
impl Room for Match {
    type Options = Setup;
}

/// Returns the answer of the lobby and the room it creates, as seen from outside.
fn opens(sim: &mut Sim<Lobby>, open: Open) -> Result<(String, NewRoom)> {
    let ann = sim.join("Ann")?;
    let said = sim.request(ann, open)?;
    Ok((said, sim.created().pop().expect("a room")))
}

#[test]
fn a_room_creates_another_and_knows_its_id_at_once() {
    let open = || Open { key: Some("k".into()), private: true, players: 2 };
    let (said, new) = opens(&mut Sim::new(7), open()).unwrap();
    let words: Vec<&str> = said.split(' ').collect();
    assert_eq!(words[0], new.id);
    assert_eq!(new.id.len(), 16);
    assert!(new.is::<Match>() && !new.is::<Lobby>() && new.private);
    assert_eq!(new.key.as_deref(), Some("k"));
    assert_eq!(new.options::<Match>().unwrap().map, "sea");
    assert_eq!(new.creator.room().map(|room| &*room.room_id), Some(ROOM_ID));
    for (word, seat) in words[1..].iter().zip(&new.seats) {
        assert_eq!(*word, format!("{}.{}", new.id, seat.secret));
        assert_eq!(seat.wait, WAIT);
    }
    // The same inputs lead to the same ids; another seed does not.
    assert_eq!(opens(&mut Sim::new(7), open()).unwrap().0, said);
    assert_ne!(opens(&mut Sim::new(8), open()).unwrap().0, said);
}

#[test]
fn a_room_that_can_not_be_is_refused_at_once() {
    let mut sim = Sim::<Lobby>::new(1);
    let ann = sim.join("Ann").unwrap();
    let open = |key: &str| Open { key: Some(key.into()), private: false, players: 0 };
    assert_eq!(sim.request(ann, open("")).unwrap_err().code(), ErrorCode::BadKey);
    assert_eq!(sim.request(ann, open(&"k".repeat(129))).unwrap_err().code(), ErrorCode::BadKey);
    let open = |players| Open { key: None, private: false, players };
    assert_eq!(sim.request(ann, open(5)).unwrap_err().code(), ErrorCode::RoomFull);
    assert!(sim.created().is_empty());
    sim.request(ann, open(4)).unwrap();
}

#[test]
fn a_key_is_taken_until_the_room_ends() {
    let mut sim = Sim::<Lobby>::new(1);
    let ann = sim.join("Ann").unwrap();
    let open = |key: &str| Open { key: Some(key.into()), private: false, players: 0 };
    sim.request(ann, open("keep")).unwrap();
    let error = sim.request(ann, open("keep")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::RoomExists);
    assert!(error.text().contains("keep"), "{error}");
    sim.request(ann, open("hut")).unwrap();
    let created = sim.created();
    assert_eq!(created.len(), 2);

    // A room that is refused for its seats takes no key.
    let full = Open { key: Some("barn".into()), private: false, players: 5 };
    assert_eq!(sim.request(ann, full).unwrap_err().code(), ErrorCode::RoomFull);
    sim.request(ann, open("barn")).unwrap();
    sim.created();

    // Only the end of the room that has the key frees it.
    sim.created_ended(&created[1].id);
    assert_eq!(sim.request(ann, open("keep")).unwrap_err().code(), ErrorCode::RoomExists);
    sim.created_ended(&created[0].id);
    sim.request(ann, open("keep")).unwrap();
    assert_eq!(sim.created().len(), 1);
}

#[test]
fn a_message_says_which_room_sent_it() {
    let mut sim = Sim::<Lobby>::new(1);
    assert_eq!(sim.ask(&Who).unwrap(), format!("{OTHER_ROOM_ID} {OTHER_ROOM_TYPE}"));
    sim.advance(Duration::from_secs(2));
    assert_eq!(sim.room().rung, 1);
}

fn holds(sim: &mut Sim<Lobby>, name: &str) -> Result<Reservation> {
    let ann = sim.join("Ann")?;
    let held = sim.request(ann, Hold { name: name.into(), wait_ms: 10_000 });
    sim.leave(ann);
    held
}

#[test]
fn a_reserved_seat_is_kept_until_it_is_taken() {
    let mut sim = Sim::<Lobby>::new(1);
    let seat = holds(&mut sim, "Bob").unwrap();
    assert_eq!(seat.room_id(), ROOM_ID);
    let ann = sim.join("Ann").unwrap();
    assert_eq!(sim.summary().reserved, 1);
    assert_eq!(sim.join("Eve").unwrap_err().code(), ErrorCode::RoomFull);
    let another = sim.request(ann, Hold { name: "Eve".into(), wait_ms: 1 });
    assert_eq!(another.unwrap_err().code(), ErrorCode::RoomFull);
    sim.request(ann, Lock).unwrap();
    let stolen = sim.join_reserved("Eve", None, &seat);
    assert_eq!(stolen.unwrap_err().code(), ErrorCode::BadReservation);
    sim.join_reserved("Bob", None, &seat).unwrap();
    assert_eq!((sim.summary().players, sim.summary().reserved), (2, 0));
    let twice = sim.join_reserved("Bob", None, &seat);
    assert_eq!(twice.unwrap_err().code(), ErrorCode::BadReservation);
}

#[test]
fn a_reserved_seat_is_free_when_its_time_has_run_out() {
    let mut sim = Sim::<Lobby>::new(1);
    let seat = holds(&mut sim, "Bob").unwrap();
    sim.join("Ann").unwrap();
    sim.advance(Duration::from_millis(9_999));
    let refused = sim.join("Eve").unwrap_err();
    assert_eq!(refused.code(), ErrorCode::RoomFull);
    let text = "the room is full: it has 1 player, and keeps 1 seat for others";
    assert_eq!(refused.text(), text);
    sim.advance(Duration::from_millis(1));
    assert_eq!(sim.summary().reserved, 0, "without a call from outside");
    let late = sim.join_reserved("Bob", None, &seat);
    assert_eq!(late.unwrap_err().code(), ErrorCode::BadReservation);
    sim.join("Eve").unwrap();
}

#[test]
fn an_empty_room_waits_for_those_whose_seats_are_reserved() {
    let mut sim = Sim::<Lobby>::new(1);
    let seat = holds(&mut sim, "Bob").unwrap();
    sim.advance(Duration::from_millis(9_900));
    assert!(!sim.is_closed(), "empty_ms is 5,000");
    let bob = sim.join_reserved("Bob", None, &seat).unwrap();
    sim.leave(bob);
    sim.advance(Duration::from_millis(5_000));
    assert!(sim.is_closed());
}

#[test]
fn a_room_that_refuses_a_player_uses_up_their_reservation() {
    let mut sim = Sim::<Lobby>::new(1);
    let seat = holds(&mut sim, "unwanted").unwrap();
    let refused = sim.join_reserved("unwanted", None, &seat);
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Refused);
    assert_eq!(sim.summary().reserved, 0);
}

#[test]
fn a_seat_is_reserved_for_so_long_at_most() {
    let mut sim = Sim::<Lobby>::new(1);
    let ann = sim.join("Ann").unwrap();
    let most = RESERVATION_MAX.as_millis() as u64;
    for (wait_ms, code) in [(most + 1, Some(ErrorCode::Limit)), (most, None)] {
        let held = sim.request(ann, Hold { name: "Bob".into(), wait_ms });
        assert_eq!(held.err().map(|error| error.code()), code);
    }
}

#[test]
fn a_seat_is_for_a_user_or_for_a_guest_of_a_name() {
    let mut sim = Sim::<Lobby>::new(1);
    let bob = sim.join_as("Bob", "user 7").unwrap();
    let (_, new) = opens(&mut sim, Open { key: None, private: false, players: 1 }).unwrap();
    assert_eq!(new.seats[0].who, SeatFor::User("0".into()));
    assert!(sim.is_here(bob));
    let seat = {
        let mut sim = Sim::<Lobby>::new(1);
        holds(&mut sim, "Bob").unwrap()
    };
    let mut sim = Sim::<Lobby>::new(1);
    assert_eq!(holds(&mut sim, "Bob").unwrap(), seat, "the same inputs, the same secret");
    sim.join_reserved("Bob", Some("user 7"), &seat).unwrap();
}

#[test]
fn criteria_are_equal_for_equal_values() {
    let room_type = RoomType::of::<Match>("match");
    assert_eq!(room_type.settings.creation, CreatedBy::Server);
    let criteria = room_type.criteria.expect("it declares some");
    let of = |map: &str, rounds| {
        let mut options = Vec::new();
        Setup { map: map.into(), rounds }.encode(&mut options);
        criteria(Format::Packed, &options)
    };
    assert_eq!(of("sea", 1), of("sea", 2));
    assert_ne!(of("sea", 1), of("land", 1));
    assert_eq!(criteria(Format::Json, br#"{"map":"sea","rounds":5}"#), of("sea", 1));
    assert_eq!(criteria(Format::Packed, b""), of("", 0));
    assert_eq!(criteria(Format::Packed, b"\xff").unwrap_err().code(), ErrorCode::BadPayload);
    assert!(RoomType::of::<Lobby>("lobby").criteria.is_none());
}

#[test]
fn a_created_room_knows_the_room_that_wanted_it() {
    let (_, new) = opens(&mut Sim::new(1), Open { key: None, private: false, players: 0 }).unwrap();
    let options = new.options::<Match>().unwrap();
    let Creator::Room(creator) = &new.creator else { panic!("{:?}", new.creator) };
    let creator = Creator::Room(Arc::clone(creator));
    let sim = Sim::<Match>::created_by(creator, 1, &options).unwrap();
    assert!(!sim.is_closed());
}

/// A room that looks for another as it is created.
#[derive(State, Default)]
struct Eager {}

#[room]
impl Room for Eager {
    fn create((): (), cx: &mut Context<Self>) -> Result<Self> {
        cx.find::<Lobby>("hall")?;
        Ok(Self::default())
    }
}

#[test]
fn rooms_are_not_looked_for_in_create() {
    let Err(error) = Sim::<Eager>::with_options(1, &()) else { panic!("it looked for a room") };
    assert!(error.text().contains("can't look for the room \"hall\" in `create`"), "{error}");
}

/// Looks for a lobby.
#[derive(Message)]
#[reply(Option<String>)]
struct Seek;

#[derive(State, Default)]
struct Seeker {}

#[room(messages(Seek))]
impl Room for Seeker {}

impl Handle<Seek> for Seeker {
    fn handle(&mut self, _: Seek, _: &Player, cx: &mut Context<Self>) -> Result<Option<String>> {
        cx.find::<Lobby>("hall")
    }
}

#[test]
fn a_simulated_room_finds_the_rooms_that_a_test_names_while_they_last() {
    let mut sim = Sim::<Seeker>::new(1);
    let ann = sim.join("Ann").unwrap();
    sim.other_room::<Match>("hall", "M1");
    assert_eq!(sim.request(ann, Seek), Ok(None));
    sim.other_room::<Lobby>("hall", "L1");
    assert_eq!(sim.request(ann, Seek), Ok(Some("L1".into())));
    sim.created_ended("L1");
    assert_eq!(sim.request(ann, Seek), Ok(None));
}
