//! Laws of users' sessions, by random hellos, returns, cuts, moves and bans over several shards, in
//! turns that leave much half done:
//!
//! 1. Where a user has one session, there is never a moment with two, on shards or between them.
//! 2. A user who was banned has no session once the shards are at rest, and opens none.
//! 3. The table of users has those with sessions, and no others.

use std::collections::BTreeSet;

use playfield_room::OnePerUser;
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{Format, RequestNumber};
use proptest::prelude::*;

use super::speech::encoded;
use super::wanderer::Wanderer;
use super::world::World;

const SHARDS: usize = 3;
const USERS: [&str; 2] = ["ann", "bob"];

#[derive(Clone, Debug)]
enum Step {
    /// A client says hello, for the session that it had or, if `anew`, for a new one. The
    /// authenticator may take time.
    Hello {
        client: usize,
        shard: usize,
        anew: bool,
        later: bool,
    },
    /// Decisions of the authenticator arrive.
    Decide,
    /// The connection breaks.
    Cut {
        client: usize,
    },
    /// The client closes the connection, but not the session.
    Close {
        client: usize,
    },
    /// The client ends its session.
    Goodbye {
        client: usize,
    },
    /// Joins the room on a shard; the first takes the connection there.
    Join {
        client: usize,
        room: usize,
    },
    /// The program bans a user, or only ends the sessions.
    End {
        user: usize,
        bans: bool,
    },
    Pardon {
        user: usize,
    },
    /// Time passes.
    Wait {
        ms: u64,
    },
    /// A shard's mailbox takes so few parcels, or anything.
    Mailbox {
        shard: usize,
        space: Option<usize>,
    },
    /// All comes to rest.
    Rest,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (client, shard, user) = (0..5_usize, 0..SHARDS, 0..USERS.len());
    let step = prop_oneof![
        8 => (client.clone(), shard.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(client, shard, anew, later)| Step::Hello { client, shard, anew, later }),
        3 => Just(Step::Decide),
        3 => client.clone().prop_map(|client| Step::Cut { client }),
        1 => client.clone().prop_map(|client| Step::Close { client }),
        1 => client.clone().prop_map(|client| Step::Goodbye { client }),
        4 => (client, shard.clone()).prop_map(|(client, room)| Step::Join { client, room }),
        2 => (user.clone(), any::<bool>()).prop_map(|(user, bans)| Step::End { user, bans }),
        1 => user.prop_map(|user| Step::Pardon { user }),
        2 => (1..2000_u64).prop_map(|ms| Step::Wait { ms }),
        1 => (shard, proptest::option::of(0..2_usize))
            .prop_map(|(shard, space)| Step::Mailbox { shard, space }),
        2 => Just(Step::Rest),
    ];
    proptest::collection::vec(step, 1..60)
}

struct Play {
    world: World,
    one: OnePerUser,
    rooms: [String; SHARDS],
    clients: Vec<Wanderer>,
    /// The clients that have a connection, as far as they know.
    connected: BTreeSet<usize>,
    banned: BTreeSet<&'static str>,
    seed: u64,
}

impl Play {
    fn new(one: OnePerUser, seed: u64) -> Self {
        let settings = [("timeouts.reconnect", "1000ms"), ("tuning.resumes.per_minute", "100000")];
        let mut world = World::keeping_one(SHARDS, &settings, one);
        let rooms = [0, 1, 2].map(|shard| {
            let mut founder = Wanderer::new(&mut world, shard, false, Format::Packed);
            let room = founder.room(&mut world, "");
            assert_eq!(world.shard_of(founder.client), shard);
            founder.rooms[&room].id.clone()
        });
        let client = |number: usize| {
            let user = USERS[usize::from(number > 2)];
            Wanderer::of(&format!("user:{user}"), false, Format::Json)
        };
        let clients = (0..5).map(client).collect();
        let (connected, banned) = (BTreeSet::new(), BTreeSet::new());
        Self { world, one, rooms, clients, connected, banned, seed }
    }

    fn step(&mut self, step: &Step) {
        self.world.pace = Some(self.seed);
        let world = &mut self.world;
        match *step {
            Step::Hello { client, shard, anew, later } => {
                let of = &mut self.clients[client];
                let user = of.user.split(':').next_back().unwrap().to_owned();
                of.user = format!("{}:{user}", if later { "later" } else { "user" });
                if anew {
                    of.token.clear();
                }
                let pace = world.pace;
                of.begin_return_at(world, shard, pace);
                self.connected.insert(client);
            }
            Step::Decide => world.run_background(),
            Step::Cut { client } => {
                if self.connected.remove(&client) {
                    self.clients[client].cut(world, usize::MAX);
                }
            }
            Step::Close { client } => {
                if self.connected.remove(&client) {
                    self.clients[client].hang_up(world, usize::MAX);
                }
            }
            Step::Goodbye { client } => {
                let of = &mut self.clients[client];
                if self.connected.contains(&client) {
                    of.listen(world);
                }
                if of.is_welcome() {
                    world.say(
                        of.client,
                        &encoded(of.format, &ClientMessage::Goodbye(client::Goodbye {})),
                    );
                }
            }
            Step::Join { client, room } => {
                let of = &mut self.clients[client];
                let room = self.rooms[room].clone().into();
                let join = ClientMessage::Join(client::Join { request: RequestNumber(1), room });
                if self.connected.contains(&client) {
                    of.listen(world);
                }
                if of.is_welcome() {
                    of.say(world, &join);
                }
            }
            Step::End { user, bans } => {
                let user = USERS[user];
                if bans {
                    world.banned.lock().unwrap().insert(user.to_owned());
                    self.banned.insert(user);
                }
                world.end_sessions(user, "out");
            }
            Step::Pardon { user } => {
                world.banned.lock().unwrap().remove(USERS[user]);
                self.banned.remove(USERS[user]);
            }
            Step::Wait { ms } => {
                let pace = world.pace.take();
                world.wait(ms);
                world.pace = pace;
            }
            Step::Mailbox { shard, space } => world.space[shard] = space.unwrap_or(usize::MAX),
            Step::Rest => self.rest(),
        }
        self.seed = self.world.pace.take().unwrap_or(self.seed);
        self.check();
    }

    fn check(&self) {
        for user in USERS {
            let count = self.world.sessions_of(user);
            assert!(self.one == OnePerUser::No || count <= 1, "{user} has {count} sessions");
        }
    }

    /// Lets the shards finish all that has begun.
    fn rest(&mut self) {
        let world = &mut self.world;
        world.pace = None;
        world.space.fill(usize::MAX);
        world.run_background();
        world.wait(250);
        let count = |world: &World| USERS.map(|user| world.sessions_of(user));
        for user in &self.banned {
            assert_eq!(world.sessions_of(user), 0, "{user} is banned");
        }
        let (users, sessions) = world.node.users.counts();
        let counts = count(world);
        assert_eq!(sessions, counts.iter().sum::<usize>());
        assert_eq!(users, counts.iter().filter(|count| **count > 0).count());
        for client in &self.connected {
            self.clients[*client].listen(&mut self.world);
        }
    }

    /// All clients go, and time passes: nothing is left.
    fn end(&mut self) {
        self.rest();
        for client in std::mem::take(&mut self.connected) {
            self.clients[client].cut(&mut self.world, usize::MAX);
        }
        self.world.wait(100_000);
        assert_eq!(self.world.node.users.counts(), (0, 0));
        assert_eq!((self.world.sessions(), self.world.members()), ((0, 0), 0));
    }
}

proptest! {
    #![proptest_config(super::laws::config(200))]

    #[test]
    fn sessions_of_users_keep_the_laws(
        steps in steps(),
        one in proptest::sample::select(vec![OnePerUser::No, OnePerUser::TakeOver, OnePerUser::Refuse]),
        seed in any::<u64>(),
    ) {
        let mut play = Play::new(one, seed);
        for step in &steps {
            play.step(step);
        }
        play.end();
    }
}
