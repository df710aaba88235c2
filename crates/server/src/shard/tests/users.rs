//! Sessions of users, which the program ends, and of which there may be one.

use std::collections::BTreeSet;
use std::sync::Mutex;

use playfield_room::OnePerUser;
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber};

use super::listener::{Listener, Told};
use super::speech::encoded;
use super::wanderer::{Return, Wanderer};
use super::world::World;
use crate::channel::Pattern;
use crate::shard::mail::ShardMail;
use crate::shard::mail::channel::Unsubscribe;
use crate::shard::mail::channel::Whose;
use crate::shard::mail::user::UserMail;

/// The users who may not subscribe to `gate:*` any more.
static SHUT_OUT: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Returns whether a user may subscribe to `gate:*`.
pub(super) fn may_pass(user: Option<&str>) -> bool {
    user.is_some_and(|user| !SHUT_OUT.lock().unwrap().contains(user))
}

fn user(user: &str) -> Wanderer {
    Wanderer::of(&format!("user:{user}"), false, Format::Packed)
}

fn connected(world: &mut World, name: &str, shard: usize) -> Wanderer {
    let mut wanderer = user(name);
    assert_eq!(wanderer.come_back(world, shard), Return::NewSession);
    wanderer
}

/// Nothing is left of users who have gone.
fn assert_forgotten(world: &World) {
    assert_eq!(world.node.users.counts(), (0, 0));
}

#[test]
fn all_sessions_of_a_user_end_connected_or_away_on_all_shards() {
    let mut world = World::new(3, &[]);
    let mut bob = connected(&mut world, "bob", 0);
    let room = bob.room(&mut world, "");
    let id = bob.rooms[&room].id.clone();
    let mut anns = [0, 1, 2].map(|shard| connected(&mut world, "ann", shard));
    for ann in &mut anns {
        ann.join(&mut world, &id);
    }
    anns[2].cut(&mut world, usize::MAX);
    assert_eq!((world.sessions(), world.members()), ((4, 1), 4));

    assert_eq!(world.end_sessions("ann", "cheating"), 3);
    assert_eq!((world.sessions(), world.members()), ((1, 0), 1));
    for ann in &mut anns[..2] {
        ann.listen(&mut world);
        assert_eq!(ann.goodbye, Some(ErrorCode::Kicked));
        assert!(world.is_over(ann.client));
    }
    // Whoever comes back for a session that was ended hears why, and has no other.
    for ann in &mut anns {
        assert_eq!(ann.come_back(&mut world, 0), Return::Refused(ErrorCode::Kicked));
    }
    assert_eq!(world.end_sessions("ann", "again"), 0);
    bob.listen(&mut world);
    assert_eq!(bob.goodbye, None);
    connected(&mut world, "ann", 1);
    assert_eq!(world.end_sessions("ann", "") + world.end_sessions("bob", ""), 2);
    assert_forgotten(&world);
}

#[test]
fn a_session_whose_hello_is_under_way_does_not_open() {
    for one in [OnePerUser::No, OnePerUser::TakeOver] {
        let mut world = World::keeping_one(2, &[], one);
        let mut ann = Wanderer::of("later:ann", false, Format::Packed);
        assert_eq!(ann.come_back(&mut world, 1), Return::Unknown, "the authenticator takes time");
        assert_eq!(world.end_sessions("ann", "banned"), 0);
        world.run_background();
        ann.listen(&mut world);
        assert_eq!(ann.returned, Return::Refused(ErrorCode::Kicked));
        assert_eq!(world.sessions(), (0, 0));
        // One that comes after that is another matter.
        assert_eq!(ann.come_back(&mut world, 1), Return::Unknown);
        world.run_background();
        ann.listen(&mut world);
        assert_eq!(ann.returned, Return::NewSession);
    }
}

#[test]
fn a_session_on_its_way_to_another_shard_ends_when_it_arrives() {
    let mut world = World::new(2, &[]);
    let mut bob = connected(&mut world, "bob", 1);
    let room = bob.room(&mut world, "");
    let ann = connected(&mut world, "ann", 0);
    let join = ClientMessage::Join(client::Join {
        request: RequestNumber(1),
        room: bob.rooms[&room].id.clone().into(),
    });
    let join = world.framed(ann.client, &encoded(Format::Packed, &join));
    world.leave(ann.client, &join);
    world.turn_once(0);
    assert_eq!((world.sessions(), world.sessions_of("ann")), ((1, 0), 1), "it is between two");
    assert_eq!(world.end_sessions("ann", "out"), 1);
    assert_eq!((world.sessions(), world.members()), ((1, 0), 1));
    assert!(world.is_over(ann.client));
}

#[test]
fn sessions_by_tickets_of_a_user_end_too() {
    let mut world = World::new(2, &[]);
    let mut bob = connected(&mut world, "bob", 1);
    let room = bob.room(&mut world, "");
    let id = bob.rooms[&room].id.clone();
    let mut guest = Wanderer::of("ticket", false, Format::Packed);
    assert_eq!(guest.come_back(&mut world, 0), Return::NewSession);
    guest.join(&mut world, &format!("ann.{id}.ticket"));
    assert_eq!(world.members(), 2);
    assert_eq!(world.end_sessions("ann", "out"), 1);
    assert_eq!((world.members(), world.sessions()), (1, (1, 0)));
    guest.listen(&mut world);
    assert_eq!(guest.goodbye, Some(ErrorCode::Kicked));
    world.end_sessions("bob", "");
    assert_forgotten(&world);
}

#[test]
fn of_two_hellos_at_the_same_instant_one_session_is_left() {
    for (one, loser) in
        [(OnePerUser::TakeOver, ErrorCode::TakenOver), (OnePerUser::Refuse, ErrorCode::AlreadyHere)]
    {
        for count in [2, 5] {
            let mut world = World::keeping_one(3, &[], one);
            let mut anns: Vec<_> =
                (0..count).map(|_| Wanderer::of("later:ann", false, Format::Packed)).collect();
            for (number, ann) in anns.iter_mut().enumerate() {
                ann.come_back(&mut world, number % 3);
            }
            world.run_background();
            anns.iter_mut().for_each(|ann| ann.listen(&mut world));
            assert_eq!((world.sessions(), world.sessions_of("ann")), ((1, 0), 1));
            let lost = |ann: &&Wanderer| {
                ann.goodbye == Some(loser) || ann.returned == Return::Refused(loser)
            };
            assert_eq!(anns.iter().filter(lost).count(), count - 1);
            assert_eq!(world.node.users.counts(), (1, 1));
        }
    }
}

#[test]
fn a_second_session_takes_over_and_the_first_client_does_not_take_it_back() {
    let mut world =
        World::keeping_one(2, &[("timeouts.reconnect", "1000ms")], OnePerUser::TakeOver);
    let mut phone = connected(&mut world, "ann", 0);
    let room = phone.room(&mut world, "");
    let id = phone.rooms[&room].id.clone();
    // A return is not a second session.
    phone.cut(&mut world, usize::MAX);
    assert_eq!(phone.come_back(&mut world, 1), Return::Resumed);

    let mut desk = connected(&mut world, "ann", 1);
    assert_eq!((world.sessions(), world.members()), ((1, 0), 0), "it has left its rooms");
    phone.listen(&mut world);
    assert_eq!(phone.goodbye, Some(ErrorCode::TakenOver));
    assert_eq!(phone.come_back(&mut world, 0), Return::Refused(ErrorCode::TakenOver));
    desk.join(&mut world, &id);

    // One that is away counts, and its client hears it later.
    desk.cut(&mut world, usize::MAX);
    let mut phone = connected(&mut world, "ann", 0);
    assert_eq!(world.sessions(), (1, 0));
    assert_eq!(desk.come_back(&mut world, 1), Return::Refused(ErrorCode::TakenOver));
    // So does one that was away for so long that its session ended by itself.
    phone.cut(&mut world, usize::MAX);
    world.wait(20_000);
    assert_forgotten(&world);
    let mut desk = connected(&mut world, "ann", 1);
    assert_eq!(phone.come_back(&mut world, 0), Return::Refused(ErrorCode::TakenOver));
    desk.listen(&mut world);
    assert_eq!((desk.goodbye, world.sessions()), (None, (1, 0)));
    // Others have nothing to do with it.
    connected(&mut world, "bob", 1);
    assert_eq!(world.sessions(), (2, 0));
}

#[test]
fn a_client_that_lost_the_welcome_of_its_new_session_gets_another() {
    for one in [OnePerUser::TakeOver, OnePerUser::Refuse] {
        let mut world = World::keeping_one(2, &[("timeouts.reconnect", "1000ms")], one);
        let mut ann = connected(&mut world, "ann", 0);
        ann.cut(&mut world, usize::MAX);
        world.wait(20_000);
        // The session is over. That of the new one is lost.
        ann.begin_return(&mut world, 1);
        ann.cut(&mut world, 0);
        assert_eq!(world.sessions(), (1, 1));
        assert_eq!(ann.come_back(&mut world, 0), Return::NewSession);
        assert_eq!((world.sessions(), world.sessions_of("ann")), ((1, 0), 1));
    }
}

#[test]
fn a_second_session_is_refused_as_long_as_the_first_is_there_or_away() {
    let mut world = World::keeping_one(2, &[("timeouts.reconnect", "1000ms")], OnePerUser::Refuse);
    let mut first = connected(&mut world, "ann", 0);
    let refused = Return::Refused(ErrorCode::AlreadyHere);
    assert_eq!(user("ann").come_back(&mut world, 1), refused);
    first.cut(&mut world, usize::MAX);
    assert_eq!(user("ann").come_back(&mut world, 1), refused);
    assert_eq!(first.come_back(&mut world, 1), Return::Resumed);
    first.cut(&mut world, usize::MAX);
    world.wait(20_000);
    connected(&mut world, "ann", 1);
}

#[test]
fn a_client_that_waits_for_a_session_on_a_shard_that_does_nothing_may_go() {
    let mut world = World::keeping_one(2, &[], OnePerUser::TakeOver);
    connected(&mut world, "ann", 0);
    world.space[0] = 0;
    let mut second = user("ann");
    second.come_back(&mut world, 1);
    assert_eq!((second.returned, world.sessions_of("ann")), (Return::Unknown, 1));
    second.cut(&mut world, 0);
    world.space[0] = usize::MAX;
    world.wait(100);
    assert_eq!(world.sessions(), (0, 0));
    assert_forgotten(&world);
}

#[test]
fn subscriptions_end_that_the_rules_allow_no_longer() {
    let mut world = World::new(2, &[]);
    let mut eve = Listener::packed(&mut world, 0, "eve");
    let mut bob = Listener::packed(&mut world, 1, "bob");
    for listener in [&mut eve, &mut bob] {
        listener.subscribe(&mut world, "gate:a");
        listener.subscribe(&mut world, "plain:a");
        listener.told(&mut world);
    }
    let recheck = |world: &mut World, user| {
        for place in world.node.users.places(user) {
            world.post(place.shard, ShardMail::User(UserMail::Recheck(place)));
        }
    };
    recheck(&mut world, "eve");
    assert_eq!(eve.told(&mut world), []);
    SHUT_OUT.lock().unwrap().insert("eve".into());
    recheck(&mut world, "bob");
    recheck(&mut world, "eve");
    let (channel, code) = ("gate:a".to_owned(), ErrorCode::Forbidden);
    assert_eq!(eve.told(&mut world), [Told::Unsubscribed { channel, code }]);
    bob.publish(&mut world, "gate:a", "1");
    assert_eq!(eve.told(&mut world), []);
    assert!(matches!(bob.told(&mut world)[..], [Told::Publication { .. }, Told::Published { .. }]));
    eve.subscribe(&mut world, "gate:a");
    assert_eq!(eve.told(&mut world), [Told::Error { code }]);
    let subscriptions: u64 = (0..2).map(|shard| world.counters(shard).subscriptions).sum();
    assert_eq!(subscriptions, 3);
}

#[test]
fn sessions_are_taken_out_of_channels_there_or_away() {
    let mut world = World::new(2, &[]);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    let mut bob = Listener::packed(&mut world, 1, "bob");
    for channel in ["chat:a", "chat:b", "news:x:y"] {
        ann.subscribe(&mut world, channel);
        bob.subscribe(&mut world, channel);
    }
    let unsubscribe = |world: &mut World, whose: &dyn Fn(&World) -> Whose, channels| {
        for shard in 0..2 {
            let channels = Pattern::new(channels).unwrap();
            let what = Unsubscribe { whose: whose(world), channels, text: "too loud".into() };
            world.post(shard, ShardMail::User(UserMail::Unsubscribe(what.into())));
        }
    };
    ann.told(&mut world);
    bob.told(&mut world);
    let kicked = |channel: &str| {
        let (channel, code) = (channel.to_owned(), ErrorCode::Kicked);
        Told::Unsubscribed { channel, code }
    };
    let number = bob.session;
    unsubscribe(&mut world, &|_| Whose::Session(number), "chat:a");
    assert_eq!(bob.told(&mut world), [kicked("chat:a")]);
    assert!(matches!(&ann.told(&mut world)[..], [Told::Presence { joined: false, .. }]));
    unsubscribe(&mut world, &|world| Whose::At(world.node.users.places("bob")), "chat:*");
    assert_eq!(bob.told(&mut world), [kicked("chat:b")]);
    ann.told(&mut world);
    // A session that is away is not a member any more.
    bob.vanish(&mut world);
    unsubscribe(&mut world, &|world| Whose::At(world.node.users.places("ann")), "news:**");
    unsubscribe(&mut world, &|world| Whose::At(world.node.users.places("bob")), "**");
    assert_eq!(ann.told(&mut world), [kicked("news:x:y")]);
    assert_eq!(world.end_sessions("ann", "") + world.end_sessions("bob", ""), 2);
    let counters = [world.counters(0), world.counters(1)];
    assert!(counters.iter().all(|counters| counters.subscriptions == 0));
}
