//! Rooms that create others and keep seats, across shards.

use std::time::Duration;

use playfield_room::{
    Context, CreatedBy, EndReason, Handle, Message, On, Player, Result, Room, RoomType, SeatFor,
    Settings, room,
};
use playfield_state::{Data, State};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use super::speech::{Heard, encoded};
use super::world::{Client, World};
use crate::room_id::RoomId;
use crate::shard::mail::ShardMail;
use crate::shard::work::{Founder, Host};

const PACKED: Format = Format::Packed;
const WAIT: Duration = Duration::from_secs(10);

/// A lobby that makes matches.
#[derive(State, Default)]
struct Lobby {
    #[sync(hidden)]
    told: String,
}

/// A match on a map, with seats for these players. The answer is its id, and a reservation each.
#[derive(Message)]
#[reply(String)]
struct Open {
    map: String,
    key: Option<String>,
    players: String,
}

/// Asks what the lobby heard from a match, and from which.
#[derive(Message)]
#[reply(String)]
struct Told;

/// A match has begun.
#[derive(Message)]
struct Begun;

/// The match with this key, or nothing.
#[derive(Message)]
#[reply(String)]
struct Find(String);

#[room(messages(Open, Told, Find), internal(Begun))]
impl Room for Lobby {}

impl Handle<Find> for Lobby {
    fn handle(&mut self, Find(key): Find, _: &Player, cx: &mut Context<Self>) -> Result<String> {
        Ok(cx.find::<Match>(&key)?.unwrap_or_default())
    }
}

impl Handle<Open> for Lobby {
    fn handle(&mut self, open: Open, _: &Player, cx: &mut Context<Self>) -> Result<String> {
        let lobby = cx.room_id().to_owned();
        let mut new = cx.new_room::<Match>(&Setup { map: open.map, lobby, rounds: 1 });
        if let Some(key) = &open.key {
            new = new.key(key);
        }
        let mut said = new.id().to_owned();
        for name in open.players.split_whitespace() {
            said += " ";
            said += new.reserve(SeatFor::Name(name.into()), WAIT).as_str();
        }
        new.create()?;
        Ok(said)
    }
}

impl Handle<Told> for Lobby {
    fn handle(&mut self, _: Told, _: &Player, _: &mut Context<Self>) -> Result<String> {
        Ok(self.told.clone())
    }
}

impl On<Begun> for Lobby {
    fn on(&mut self, _: Begun, cx: &mut Context<Self>) -> Result<()> {
        let sender = cx.sender().ok_or("no room")?;
        self.told = format!("{} {}", sender.room_type, sender.room_id);
        Ok(())
    }
}

#[derive(State, Default)]
struct Match {}

#[derive(Data, Default)]
struct Setup {
    map: String,
    lobby: String,
    rounds: u32,
}

#[room(criteria(map), creation = server, capacity = 2)]
impl Room for Match {
    type Options = Setup;

    fn create(setup: Setup, cx: &mut Context<Self>) -> Result<Self> {
        if setup.map == "none" {
            return Err("there is no such map".into());
        }
        if let Some(lobby) = cx.creator().room().map(|room| room.room_id.clone()) {
            cx.tell(&lobby, &Begun);
        }
        Ok(Self::default())
    }
}

pub(super) fn room_types() -> [RoomType; 4] {
    let closed = RoomType::of::<Match>("match");
    let settings = Settings { creation: CreatedBy::Anyone, ..closed.settings };
    let open = RoomType { name: "open match".into(), settings, ..closed.clone() };
    [RoomType::of::<Lobby>("lobby"), RoomType::of::<Document>("document"), closed, open]
}

/// The answer to a client's request: the text of the reply, or the id of the room.
fn answer(world: &mut World, client: Client) -> Result<String, ErrorCode> {
    for _ in 0..20 {
        world.wait(60);
        for heard in world.heard(client) {
            match heard {
                Heard::Joined { id, .. } => return Ok(id),
                // The text follows its length.
                Heard::Reply { payload, .. } => return Ok(payload.chars().skip(1).collect()),
                Heard::Error { code, .. } => return Err(code),
                _ => {}
            }
        }
    }
    panic!("no answer came")
}

fn asks(
    world: &mut World,
    client: Client,
    message: &ClientMessage<'_>,
) -> Result<String, ErrorCode> {
    world.say(client, &encoded(PACKED, message));
    answer(world, client)
}

/// A client in a lobby of its own, which is its first room.
fn in_lobby(world: &mut World, shard: usize) -> Client {
    let client = world.named_client(shard, false, PACKED, "host");
    world.heard(client);
    let (request, room_type) = (RequestNumber(1), "lobby".into());
    let create = ClientMessage::Create(client::Create {
        request,
        room_type,
        private: false,
        code: false,
        key: None,
        options: b"",
    });
    asks(world, client, &create).unwrap();
    client
}

fn tell(
    world: &mut World,
    client: Client,
    index: u32,
    message: &impl Data,
) -> Result<String, ErrorCode> {
    let mut payload = Vec::new();
    message.encode(&mut payload);
    let message = MessageRef::Index(index);
    let (room, request) = (RoomNumber(1), RequestNumber(2));
    asks(
        world,
        client,
        &ClientMessage::Request(client::Request { room, request, message, payload: &payload }),
    )
}

fn opens(
    world: &mut World,
    client: Client,
    map: &str,
    key: Option<&str>,
    players: &str,
) -> Result<Vec<String>, ErrorCode> {
    let key = key.map(str::to_owned);
    let said = tell(world, client, 0, &Open { map: map.into(), key, players: players.into() })?;
    Ok(said.split(' ').map(str::to_owned).collect())
}

fn joins(world: &mut World, client: Client, id: &str) -> Result<String, ErrorCode> {
    asks(
        world,
        client,
        &ClientMessage::Join(client::Join { request: RequestNumber(9), room: id.into() }),
    )
}

fn guest(world: &mut World, shard: usize, name: &str) -> Client {
    let client = world.named_client(shard, false, PACKED, name);
    world.heard(client);
    client
}

fn finds(
    world: &mut World,
    client: Client,
    room_type: &str,
    map: &str,
) -> Result<String, ErrorCode> {
    let mut options = Vec::new();
    Setup { map: map.into(), lobby: String::new(), rounds: map.len() as u32 }.encode(&mut options);
    let (request, room_type) = (RequestNumber(8), room_type.into());
    asks(
        world,
        client,
        &ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request,
            room_type,
            key: None,
            options: &options,
        }),
    )
}

#[test]
fn a_lobby_makes_matches_for_its_players() {
    for shards in [1, 2, 3] {
        let mut world = World::new(shards, &[]);
        let host = in_lobby(&mut world, 0);
        let [id, ann, bob] = &opens(&mut world, host, "sea", None, "ann bob").unwrap()[..] else {
            panic!()
        };
        assert_eq!(tell(&mut world, host, 1, &Told), Ok(format!("match {id}")));
        let players = [("ann", ann), ("bob", bob)]
            .map(|(name, seat)| (guest(&mut world, shards - 1, name), name, seat.clone()));
        let eve = guest(&mut world, 0, "eve");
        assert_eq!(joins(&mut world, eve, id), Err(ErrorCode::RoomFull), "all seats are reserved");
        assert_eq!(joins(&mut world, eve, ann), Err(ErrorCode::BadReservation), "it is Ann's");
        for (client, _, seat) in &players {
            assert_eq!(joins(&mut world, *client, seat).as_ref(), Ok(id));
        }
        let again = guest(&mut world, 0, "ann");
        assert_eq!(joins(&mut world, again, ann), Err(ErrorCode::BadReservation), "it was used");
    }
}

#[test]
fn rooms_that_the_room_of_a_client_creates_are_charged_to_that_client() {
    let mut world = World::new(2, &[]);
    let host = in_lobby(&mut world, 0);
    for _ in 0..3 {
        opens(&mut world, host, "sea", None, "").unwrap();
    }
    let address = world.node.addresses.at([10, 0, 0, 1].into(), world.now);
    let founder = Founder::Client(Host(address));
    for (shard, rooms) in [(0, 2), (1, 2)] {
        let host = &mut world.shards[shard].host;
        let founders = host.rooms.keys().into_iter().filter_map(|key| {
            let hosted = host.rooms.get_mut(key)?;
            Some(hosted.founder.clone())
        });
        let founders: Vec<_> = founders.collect();
        assert_eq!(founders.len(), rooms, "on shard {shard}");
        assert!(founders.iter().all(|of| *of == founder));
    }
}

#[test]
fn a_reserved_seat_that_is_not_taken_is_free_for_others() {
    for shards in [1, 2] {
        let mut world = World::new(shards, &[]);
        let host = in_lobby(&mut world, 0);
        let said = opens(&mut world, host, "sea", None, "ann bob").unwrap();
        let (ann, eve) = (guest(&mut world, 0, "ann"), guest(&mut world, 0, "eve"));
        world.wait(9_000);
        assert_eq!(joins(&mut world, eve, &said[0]), Err(ErrorCode::RoomFull));
        world.wait(1_100);
        assert_eq!(joins(&mut world, ann, &said[1]), Err(ErrorCode::BadReservation), "too late");
        assert_eq!(finds(&mut world, eve, "match", "sea"), Ok(said[0].clone()));
    }
}

#[test]
fn a_player_may_use_a_reservation_before_the_room_is_there() {
    let mut world = World::new(2, &[]);
    let (host, ann) = (in_lobby(&mut world, 0), guest(&mut world, 1, "ann"));
    // The reservation reaches Ann while the room's creation is still in the mail.
    world.space[1] = 0;
    let said = opens(&mut world, host, "sea", None, "ann");
    let Ok(said) = said else { panic!("{said:?}") };
    world.say(
        ann,
        &encoded(
            PACKED,
            &ClientMessage::Join(client::Join {
                request: RequestNumber(9),
                room: (&*said[1]).into(),
            }),
        ),
    );
    world.space[1] = usize::MAX;
    assert_eq!(answer(&mut world, ann), Ok(said[0].clone()));
}

#[test]
fn what_is_no_reservation() {
    let mut world = World::new(1, &[]);
    let (host, ann) = (in_lobby(&mut world, 0), guest(&mut world, 0, "ann"));
    let said = opens(&mut world, host, "sea", None, "bob").unwrap();
    for (text, code) in [
        (format!("{}.", said[0]), ErrorCode::BadReservation),
        // With two periods it is a ticket.
        (format!("{}.x.y", said[0]), ErrorCode::BadTicket),
        (format!("{}.{}", said[0], "x".repeat(10_000)), ErrorCode::BadReservation),
        (".".to_owned(), ErrorCode::RoomNotFound),
        (format!("x{}", said[1]), ErrorCode::RoomNotFound),
    ] {
        assert_eq!(joins(&mut world, ann, &text), Err(code), "{text}");
    }
    assert!(joins(&mut world, ann, &said[0]).is_ok(), "one seat is free");
}

#[test]
fn a_room_that_can_not_be_created_leaves_nothing_behind() {
    for shards in [1, 2] {
        let mut world = World::new(shards, &[]);
        let (host, ann) = (in_lobby(&mut world, 0), guest(&mut world, 0, "ann"));
        // Its own code refuses, which the log says.
        let said = opens(&mut world, host, "none", Some("k"), "ann").unwrap();
        assert_eq!(joins(&mut world, ann, &said[1]), Err(ErrorCode::RoomNotFound));
        let made = opens(&mut world, host, "sea", Some("k"), "").unwrap();
        assert_eq!(opens(&mut world, host, "sea", Some("k"), ""), Err(ErrorCode::RoomExists));
        assert_eq!(opens(&mut world, host, "sea", Some("k "), ""), Err(ErrorCode::BadKey));
        let (request, room_type) = (RequestNumber(5), "match".into());
        let join =
            ClientMessage::JoinByKey(client::JoinByKey { request, room_type, key: "k".into() });
        assert_eq!(asks(&mut world, ann, &join), Ok(made[0].clone()));
        // More reservations than seats.
        let crowded = opens(&mut world, host, "sea", None, "a b c");
        assert_eq!(crowded, Err(ErrorCode::RoomFull));
    }
}

#[test]
fn rooms_max_counts_the_rooms_that_rooms_create() {
    let mut world = World::new(1, &[("limits.rooms", "2")]);
    let host = in_lobby(&mut world, 0);
    opens(&mut world, host, "sea", None, "").unwrap();
    assert_eq!(opens(&mut world, host, "sea", None, ""), Err(ErrorCode::Limit));
}

#[test]
fn a_full_mailbox_refuses_a_room() {
    let mut world = World::new(2, &[]);
    let host = in_lobby(&mut world, 0);
    let other = in_lobby(&mut world, 1);
    world.space[1] = 0;
    // The first waits in the shard's own queue, and the next is refused where it would go there.
    let answers: Vec<_> = (0..4).map(|_| opens(&mut world, host, "sea", None, "")).collect();
    assert!(answers.contains(&Err(ErrorCode::Busy)), "{answers:?}");
    world.space[1] = usize::MAX;
    world.wait(60);
    for made in answers.into_iter().flatten() {
        let eve = guest(&mut world, 0, "eve");
        assert_eq!(joins(&mut world, eve, &made[0]), Ok(made[0].clone()));
    }
    assert!(tell(&mut world, other, 1, &Told).is_ok());
}

#[test]
fn clients_can_not_create_rooms_of_a_type_that_is_closed_to_them() {
    let mut world = World::new(1, &[]);
    let (host, ann) = (in_lobby(&mut world, 0), guest(&mut world, 0, "ann"));
    let (request, room_type) = (RequestNumber(3), "match".into());
    let create = ClientMessage::Create(client::Create {
        request,
        room_type,
        private: false,
        code: true,
        key: None,
        options: b"",
    });
    assert_eq!(asks(&mut world, ann, &create), Err(ErrorCode::CreationClosed));
    assert_eq!(finds(&mut world, ann, "match", "sea"), Err(ErrorCode::CreationClosed));
    let made = opens(&mut world, host, "sea", None, "").unwrap();
    assert_eq!(finds(&mut world, ann, "match", "sea"), Ok(made[0].clone()));
}

#[test]
fn players_are_matched_by_the_criteria() {
    for shards in [1, 2] {
        let mut world = World::new(shards, &[]);
        let clients: Vec<Client> =
            (0..6).map(|number| guest(&mut world, number % shards, "guest")).collect();
        let maps = ["sea", "land", "sea", "land", "sea", "s"];
        let found: Vec<String> = clients
            .iter()
            .zip(maps)
            .map(|(client, map)| finds(&mut world, *client, "open match", map).unwrap())
            .collect();
        assert_eq!(found[0], found[2]);
        assert_eq!(found[1], found[3]);
        assert_ne!(found[0], found[1]);
        assert_ne!(found[4], found[0], "two seats");
        assert!(!found[..5].contains(&found[5]));
    }
    let mut world = World::new(1, &[]);
    let ann = guest(&mut world, 0, "ann");
    let (request, room_type) = (RequestNumber(3), "open match".into());
    let options = b"\xff\xff";
    let bad = ClientMessage::JoinOrCreate(client::JoinOrCreate {
        request,
        room_type,
        key: None,
        options,
    });
    assert_eq!(asks(&mut world, ann, &bad), Err(ErrorCode::BadPayload));
}

/// A room that saves itself at its end.
#[derive(State, Default)]
pub(super) struct Document {}

#[derive(Message)]
struct Finish;

#[derive(Message)]
struct Saved;

#[room(messages(Finish), internal(Saved), closing_ms = 2_000, joins_waiting_max = 2)]
impl Room for Document {
    fn closing(&mut self, _: EndReason, cx: &mut Context<Self>) {
        let _ = cx.spawn(async { Saved });
    }
}

impl Handle<Finish> for Document {
    fn handle(&mut self, _: Finish, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.close("it is finished");
        Ok(())
    }
}

impl On<Saved> for Document {
    fn on(&mut self, _: Saved, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

#[test]
fn who_asks_for_the_key_of_a_room_that_ends_waits_for_its_end() {
    // The room is saved, or has no more time for it.
    for is_saved in [true, false] {
        for shards in [1, 2] {
            let mut world = World::new(shards, &[]);
            let [ann, bob, eve] = [0, shards - 1, 0].map(|shard| world.client(shard));
            let (room_type, options) = ("document", &b""[..]);
            let open = |request| {
                ClientMessage::JoinOrCreate(client::JoinOrCreate {
                    request: RequestNumber(request),
                    room_type: room_type.into(),
                    key: Some("42".into()),
                    options,
                })
            };
            let made = asks(&mut world, ann, &open(1)).unwrap();
            let message = MessageRef::Index(0);
            let (room, request) = (RoomNumber(1), RequestNumber(2));
            let finish =
                ClientMessage::Request(client::Request { room, request, message, payload: b"\0" });
            world.say(ann, &encoded(PACKED, &finish));
            world.wait(100);
            world.say(bob, &encoded(PACKED, &open(3)));
            let join = ClientMessage::JoinByKey(client::JoinByKey {
                request: RequestNumber(4),
                room_type: room_type.into(),
                key: "42".into(),
            });
            world.say(eve, &encoded(PACKED, &join));
            world.wait(500);
            assert_eq!((world.heard(bob), world.heard(eve)), (vec![], vec![]), "it ends");
            let more = world.client(0);
            assert_eq!(asks(&mut world, more, &open(5)), Err(ErrorCode::Busy), "two wait");
            let late = world.client(0);
            assert_eq!(joins(&mut world, late, &made), Err(ErrorCode::RoomClosed));
            if is_saved {
                world.run_background();
            } else {
                world.wait(2_000);
            }
            let again = answer(&mut world, bob).unwrap();
            assert_ne!(again, made);
            let found = answer(&mut world, eve);
            assert!(found == Ok(again) || found == Err(ErrorCode::RoomNotFound), "{found:?}");
        }
    }
}

#[test]
fn a_room_finds_another_by_its_key() {
    for shards in [1, 2] {
        let mut world = World::new(shards, &[]);
        let [ann, bob] = [0, shards - 1].map(|shard| in_lobby(&mut world, shard));
        let find = |world: &mut World, key: &str| tell(world, bob, 2, &Find(key.into()));
        assert_eq!(find(&mut world, "final"), Ok(String::new()));
        let made = opens(&mut world, ann, "sea", Some("final"), "").unwrap();
        assert_eq!(find(&mut world, "final").as_ref(), Ok(&made[0]), "{shards}");
        assert_eq!(find(&mut world, "Final"), Ok(String::new()));
        let room = RoomId::parse(&made[0]).unwrap();
        for shard in 0..shards {
            world.shards[shard].mail(ShardMail::Close { room, text: "over".into() });
        }
        world.wait(100);
        assert_eq!(find(&mut world, "final"), Ok(String::new()), "it has ended");
    }
}
