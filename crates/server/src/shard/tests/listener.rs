//! A client that uses channels: it counts, comes back, and subscribes again from where it was.

use std::collections::BTreeMap;

use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_state::State;
use playfield_wire::client::{self, ClientMessage, Hello, Position, Resume};
use playfield_wire::framing::PREAMBLE;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::tree::read_value;
use playfield_wire::{ErrorCode, Format, RequestNumber};
use std::time::Duration;

use super::speech::encoded;
use super::world::{Client, World};
use crate::channel::{Access, ChannelRule, ChannelRules, Slow};

/// The number of publications that wait for a slow subscriber, in the channels that are about that.
pub(super) const QUEUE: usize = 3;

/// The rules of every world.
pub(super) fn rules() -> ChannelRules {
    let minute = Duration::from_secs(60);
    let open = |pattern| ChannelRule::new(pattern).publish(Access::Anyone);
    let mut rules = ChannelRules::default();
    for rule in [
        open("chat:*").presence(Access::Anyone).history(100, minute),
        open("plain:*"),
        open("short:*").history(5, minute),
        open("bytes:*").bytes(),
        open("drop:*").slow(Slow::DropOldest, QUEUE),
        open("latest:*").slow(Slow::KeepLatest, QUEUE),
        open("strict:*").slow(Slow::Unsubscribe, QUEUE).history(100, minute),
        open("hard:*").slow(Slow::Disconnect, QUEUE),
        ChannelRule::new("inbox:{user}").history(10, minute),
        ChannelRule::new("users:*").subscribe(Access::User).publish(Access::User),
        ChannelRule::new("news:**"),
        ChannelRule::new("gate:*")
            .subscribe(Access::check(|asker, _| super::users::may_pass(asker.user)))
            .publish(Access::Anyone)
            .presence(Access::Anyone),
        ChannelRule::new("trap:*").subscribe(Access::check(|_, name| panic!("{name}"))),
    ] {
        rules.add(rule).unwrap();
    }
    rules
}

/// A room that publishes what its players say.
#[derive(State, Default)]
struct Herald {}

/// Publishes a number in a channel.
#[derive(Message)]
#[reply(u32)]
pub(super) struct Say {
    pub(super) channel: String,
    pub(super) value: u32,
}

#[room(messages(Say))]
impl Room for Herald {
    fn create((): (), cx: &mut Context<Self>) -> Result<Self> {
        cx.publish("news:rooms", &0_u32);
        Ok(Self::default())
    }
}

impl Handle<Say> for Herald {
    fn handle(&mut self, say: Say, _: &Player, cx: &mut Context<Self>) -> Result<u32> {
        cx.publish(&say.channel, &say.value);
        Ok(say.value)
    }
}

pub(super) fn room_type() -> RoomType {
    RoomType::of::<Herald>("herald")
}

/// A message that it has heard.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Told {
    Subscribed { channel: String, offset: u64, recovered: bool, members: u64 },
    Publication { channel: String, offset: u64, user: Option<String>, payload: String },
    Unsubscribed { channel: String, code: ErrorCode },
    Presence { channel: String, sequence: u64, joined: bool, name: String },
    Published { offset: u64 },
    Members { sequence: u64, count: u64, names: Vec<String> },
    History { offset: u64, publications: Vec<(u64, String)> },
    Error { code: ErrorCode },
    Goodbye { code: ErrorCode },
}

/// One client, over as many connections as it takes.
pub(super) struct Listener {
    pub(super) client: Client,
    pub(super) format: Format,
    pub(super) is_websocket: bool,
    name: &'static str,
    address: [u8; 4],
    pub(super) session: u64,
    token: Vec<u8>,
    received: u64,
    requests: u32,
    /// The channels that it wants, and where it is.
    pub(super) wanted: BTreeMap<String, Option<Position>>,
    /// The epochs of its channels, when it subscribed last.
    pub(super) epochs: BTreeMap<String, u64>,
    /// The names of the channels that it has asked for, by request.
    asked: BTreeMap<RequestNumber, String>,
    /// The names of channels by their numbers.
    names: BTreeMap<u64, String>,
    pub(super) heard: Vec<Told>,
    pub(super) is_resumed: bool,
}

impl Listener {
    pub(super) fn new(
        world: &mut World,
        shard: usize,
        name: &'static str,
        is_websocket: bool,
        format: Format,
    ) -> Self {
        Self::at([10, 0, 0, 1], world, shard, name, is_websocket, format)
    }

    /// Connects from an address.
    pub(super) fn at(
        address: [u8; 4],
        world: &mut World,
        shard: usize,
        name: &'static str,
        is_websocket: bool,
        format: Format,
    ) -> Self {
        let mut listener = Self {
            client: 0,
            format,
            is_websocket,
            name,
            address,
            session: 0,
            token: Vec::new(),
            received: 0,
            requests: 0,
            wanted: BTreeMap::new(),
            epochs: BTreeMap::new(),
            asked: BTreeMap::new(),
            names: BTreeMap::new(),
            heard: Vec::new(),
            is_resumed: false,
        };
        listener.connect(world, shard);
        listener
    }

    /// In native framing and packed, as a guest.
    pub(super) fn packed(world: &mut World, shard: usize, name: &'static str) -> Self {
        Self::new(world, shard, name, false, Format::Packed)
    }

    /// Connects, comes back to its session, and subscribes again to what it wants.
    pub(super) fn connect(&mut self, world: &mut World, shard: usize) {
        self.client = world.connect_from(self.address, shard);
        self.asked.clear();
        if self.is_websocket {
            world.upgrade(self.client, self.format);
        } else {
            world.bytes(self.client, &PREAMBLE);
            world.speaks(self.client, self.format);
        }
        let (token, received) = (self.token.clone().into(), self.received);
        let resume = Resume { token, received, rooms: Vec::new() };
        let hello = Hello {
            name: self.name.into(),
            token: format!("user:{}", self.name).into_bytes().into(),
            resumable: true,
            resume: Some(resume).filter(|resume| !resume.token.is_empty()),
            ..Hello::new(self.format)
        };
        world.say(self.client, &encoded(self.format, &ClientMessage::Hello(hello)));
        self.listen(world);
        for (channel, since) in self.wanted.clone() {
            self.subscribe_from(world, &channel, since);
        }
    }

    /// Like [`connect`](Self::connect), but all requests come in one piece, and then it reads only
    /// so many bytes.
    pub(super) fn connect_and_read(&mut self, world: &mut World, shard: usize, bytes: usize) {
        let wanted = std::mem::take(&mut self.wanted);
        self.connect(world, shard);
        world.takes(self.client, bytes);
        let mut requests = Vec::new();
        for (channel, since) in &wanted {
            let request = self.next_request();
            self.asked.insert(request, channel.clone());
            let (channel, since) = (channel.into(), *since);
            let message = ClientMessage::Subscribe(client::Subscribe {
                request,
                channel,
                since,
                presence: true,
            });
            requests.extend(world.framed(self.client, &encoded(self.format, &message)));
        }
        self.wanted = wanted;
        world.bytes(self.client, &requests);
    }

    pub(super) fn vanish(&mut self, world: &mut World) {
        self.listen(world);
        world.vanish(self.client);
    }

    fn next_request(&mut self) -> RequestNumber {
        self.requests += 1;
        RequestNumber(self.requests)
    }

    pub(super) fn say(&self, world: &mut World, message: &ClientMessage<'_>) {
        world.say(self.client, &encoded(self.format, message));
    }

    pub(super) fn subscribe(&mut self, world: &mut World, channel: &str) {
        self.subscribe_from(world, channel, None);
    }

    pub(super) fn subscribe_from(
        &mut self,
        world: &mut World,
        channel: &str,
        since: Option<Position>,
    ) {
        self.wanted.insert(channel.into(), since);
        // Only the rule of `chat:*` shows who subscribes.
        self.ask_to_subscribe(world, channel, since, channel.starts_with("chat:"));
    }

    pub(super) fn ask_to_subscribe(
        &mut self,
        world: &mut World,
        channel: &str,
        since: Option<Position>,
        presence: bool,
    ) {
        let request = self.next_request();
        self.asked.insert(request, channel.into());
        let channel = channel.into();
        self.say(
            world,
            &ClientMessage::Subscribe(client::Subscribe { request, channel, since, presence }),
        );
    }

    /// Returns whether it has asked for a channel and has no answer.
    pub(super) fn awaits(&self, channel: &str) -> bool {
        self.asked.values().any(|asked| asked == channel)
    }

    pub(super) fn unsubscribe(&mut self, world: &mut World, channel: &str) {
        self.wanted.remove(channel);
        let number = self.names.iter().find(|(_, name)| *name == channel);
        let channel = number.map_or(0, |(number, _)| *number);
        self.say(world, &ClientMessage::Unsubscribe(client::Unsubscribe { channel }));
    }

    /// Publishes a JSON value, whatever the format.
    pub(super) fn publish(&mut self, world: &mut World, channel: &str, json: &str) {
        let payload = crate::channel::Payload::json(json.as_bytes()).unwrap();
        self.publish_raw(world, channel, &payload.written(self.format));
    }

    pub(super) fn publish_raw(&mut self, world: &mut World, channel: &str, payload: &[u8]) {
        let request = Some(self.next_request());
        let channel = channel.into();
        self.say(world, &ClientMessage::Publish(client::Publish { request, channel, payload }));
    }

    pub(super) fn ask_members(&mut self, world: &mut World, channel: &str) {
        let request = self.next_request();
        self.say(
            world,
            &ClientMessage::Members(client::Members { request, channel: channel.into() }),
        );
    }

    pub(super) fn ask_history(&mut self, world: &mut World, channel: &str, after: u64, limit: u32) {
        let request = self.next_request();
        let since = self.wanted.get(channel).copied().flatten();
        let since = since.map(|since| Position { offset: after, ..since });
        let channel = channel.into();
        self.say(
            world,
            &ClientMessage::History(client::History { request, channel, since, limit }),
        );
    }

    /// The messages that it has heard since the last call.
    pub(super) fn told(&mut self, world: &mut World) -> Vec<Told> {
        self.listen(world);
        std::mem::take(&mut self.heard)
    }

    /// The offsets of what it has heard since it was last asked, which is publications only.
    pub(super) fn offsets(&mut self, world: &mut World) -> Vec<u64> {
        let offset = |told| match told {
            Told::Publication { offset, .. } => Some(offset),
            _ => None,
        };
        self.told(world).into_iter().filter_map(offset).collect()
    }

    pub(super) fn listen(&mut self, world: &mut World) {
        for body in world.bodies(self.client) {
            let message = ServerMessage::decode(self.format, &body).unwrap();
            self.received += u64::from(message.is_counted());
            self.hear(message);
        }
    }

    fn text(&self, payload: &[u8]) -> String {
        match self.format {
            Format::Msgpack => {
                read_value(playfield_wire::TreeFormat::Msgpack, payload).unwrap().to_string()
            }
            Format::Packed | Format::Json => String::from_utf8_lossy(payload).into_owned(),
        }
    }

    fn named(&self, channel: u64) -> String {
        self.names.get(&channel).cloned().unwrap_or_default()
    }

    fn hear(&mut self, message: ServerMessage<'_>) {
        let told = match message {
            ServerMessage::Welcome(server::Welcome { session, resume, resumed, .. }) => {
                self.token = resume.into_owned();
                self.is_resumed = resumed.is_some();
                if let Some(resumed) = resumed {
                    assert_eq!(session, self.session);
                    self.received += resumed.lost.iter().map(|lost| lost.messages).sum::<u64>();
                } else {
                    self.received = 0;
                }
                self.session = session;
                return;
            }
            ServerMessage::Subscribed(server::Subscribed {
                request,
                channel: number,
                epoch,
                offset,
                recovered,
                members,
                ..
            }) => {
                let channel = self.asked.remove(&request).expect("it was asked for");
                // The channel may have had another number on an earlier connection.
                self.names.retain(|_, name| *name != channel);
                self.names.insert(number, channel.clone());
                self.epochs.insert(channel.clone(), epoch);
                if let Some(position) = self.wanted.get_mut(&channel) {
                    *position = Some(Position { epoch, offset });
                }
                Told::Subscribed { channel, offset, recovered, members }
            }
            ServerMessage::Publication(server::Publication { channel, offset, user, payload }) => {
                let channel = self.named(channel);
                if let Some(Some(position)) = self.wanted.get_mut(&channel) {
                    assert!(offset > position.offset, "publications are in order");
                    position.offset = offset;
                }
                let (user, payload) = (user.map(Into::into), self.text(&payload));
                Told::Publication { channel, offset, user, payload }
            }
            ServerMessage::Unsubscribed(server::Unsubscribed { channel, code, .. }) => {
                Told::Unsubscribed { channel: self.named(channel), code }
            }
            ServerMessage::Presence(server::Presence {
                channel,
                sequence,
                joined,
                name,
                session,
                ..
            }) => {
                assert_ne!(session, self.session, "it is not told about itself");
                let (channel, name) = (self.named(channel), name.into());
                Told::Presence { channel, sequence, joined, name }
            }
            ServerMessage::Published(server::Published { offset, .. }) => {
                Told::Published { offset }
            }
            ServerMessage::Members(server::Members { sequence, count, members, .. }) => {
                let mut names: Vec<String> =
                    members.iter().map(|member| member.name.clone().into()).collect();
                names.sort();
                Told::Members { sequence, count, names }
            }
            ServerMessage::History(server::History { offset, publications, .. }) => {
                let texts = publications.iter().map(|of| (of.offset, self.text(&of.payload)));
                Told::History { offset, publications: texts.collect() }
            }
            ServerMessage::Error(server::Error { code, .. }) => Told::Error { code },
            ServerMessage::Goodbye(server::Goodbye { code, .. }) => Told::Goodbye { code },
            _ => return,
        };
        self.heard.push(told);
    }
}
