//! Devices of tests, and their fleet.

use std::sync::{Arc, Mutex};

use playfield_room::{Error, Result};
use playfield_wire::client::{self, ClientMessage, Hello, Resume};
use playfield_wire::framing::PREAMBLE;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber};

use super::speech::encoded;
use super::world::{Client, World};
use crate::channel::Payload;
use crate::device::Device;
use crate::fleet::{Fleet, Gone};

/// The calls of the fleet.
pub(super) type FleetLog = Arc<Mutex<Vec<String>>>;

/// Logs what it is called for. It refuses devices with the tag `bad`, panics at `panic`, and
/// answers reports with themselves.
pub(super) struct TestFleet(pub(super) FleetLog);

impl TestFleet {
    fn log(&self, device: &Device, what: &str) {
        self.0.lock().unwrap().push(format!("{} {what}", device.id()));
    }
}

impl Fleet for TestFleet {
    fn register(&self, device: &Device) -> Result<()> {
        assert!(!device.has_tag("panic"), "on purpose");
        if device.has_tag("bad") {
            return Err(Error::new(ErrorCode::Refused, "no bad devices"));
        }
        Ok(())
    }

    fn registered(&self, device: &Device) {
        self.log(device, "registered");
    }

    fn report(&self, _: &Device, report: &[u8]) -> Result<Vec<u8>> {
        match report {
            br#""panic""# => panic!("on purpose"),
            br#""refuse""# => Err("no such reports".into()),
            br#""garbage""# => Ok(b"{".to_vec()),
            report => Ok(report.to_vec()),
        }
    }

    fn silent(&self, device: &Device) {
        self.log(device, "silent");
    }

    fn back(&self, device: &Device) {
        self.log(device, "back");
    }

    fn gone(&self, device: &Device, why: Gone) {
        self.log(device, &format!("{why:?}"));
    }
}

/// A message that a gadget has heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Registered { is_new: bool },
    Reply(String),
    Command { command: Option<u64>, payload: String },
    Error(ErrorCode),
    Goodbye(ErrorCode),
}

/// A client that is a device, and comes back to its session.
pub(super) struct Gadget {
    pub(super) client: Client,
    format: Format,
    user: String,
    token: Vec<u8>,
    received: u64,
    requests: u32,
    pub(super) is_resumed: bool,
    told: Vec<Told>,
}

impl Gadget {
    /// In native framing if it speaks packed, else over WebSocket. Without a user it is a guest.
    pub(super) fn new(world: &mut World, shard: usize, format: Format, user: &str) -> Self {
        let mut gadget = Self {
            client: 0,
            format,
            user: user.into(),
            token: Vec::new(),
            received: 0,
            requests: 0,
            is_resumed: false,
            told: Vec::new(),
        };
        gadget.connect(world, shard);
        gadget
    }

    pub(super) fn guest(world: &mut World, shard: usize) -> Self {
        Self::new(world, shard, Format::Packed, "")
    }

    pub(super) fn connect(&mut self, world: &mut World, shard: usize) {
        self.client = world.connect(shard);
        match self.format {
            Format::Packed => world.bytes(self.client, &PREAMBLE),
            format => world.upgrade(self.client, format),
        }
        let (token, received) = (self.token.clone().into(), self.received);
        let resume = Resume { token, received, rooms: Vec::new() };
        let mut hello = Hello { resumable: true, ..Hello::new(self.format) };
        hello.resume = Some(resume).filter(|resume| !resume.token.is_empty());
        if !self.user.is_empty() {
            hello.token = format!("user:{}", self.user).into_bytes().into();
        }
        self.say(world, &ClientMessage::Hello(hello));
        self.listen(world);
    }

    pub(super) fn vanish(&mut self, world: &mut World) {
        self.listen(world);
        world.vanish(self.client);
    }

    pub(super) fn say(&self, world: &mut World, message: &ClientMessage<'_>) {
        world.say(self.client, &encoded(self.format, message));
    }

    fn next_request(&mut self) -> RequestNumber {
        self.requests += 1;
        RequestNumber(self.requests)
    }

    /// Registers, and says what the answer is.
    pub(super) fn register(&mut self, world: &mut World, id: &str, tags: &[&str]) -> Vec<Told> {
        let request = self.next_request();
        let tags = tags.iter().map(|&tag| tag.into()).collect();
        let metadata = vec![("fw".into(), "7".into())];
        let device = id.into();
        self.say(
            world,
            &ClientMessage::Register(client::Register { request, device, metadata, tags }),
        );
        self.told(world)
    }

    /// Reports a JSON value, and says what the answer is.
    pub(super) fn report(&mut self, world: &mut World, json: &str) -> Vec<Told> {
        let request = Some(self.next_request());
        let payload = Payload::json(json.as_bytes()).unwrap();
        let payload = &payload.written(self.format);
        self.say(world, &ClientMessage::Report(client::Report { request, payload }));
        self.told(world)
    }

    /// Answers a command with a JSON value, or refuses it.
    pub(super) fn answer(&self, world: &mut World, command: u64, answer: Result<&str, &str>) {
        let payload = Payload::json(answer.unwrap_or("null").as_bytes()).unwrap();
        let payload = &payload.written(self.format);
        let error = answer.err().map(Into::into);
        self.say(world, &ClientMessage::Answer(client::Answer { command, error, payload }));
    }

    /// The messages that it has heard since the last call.
    pub(super) fn told(&mut self, world: &mut World) -> Vec<Told> {
        self.listen(world);
        std::mem::take(&mut self.told)
    }

    fn listen(&mut self, world: &mut World) {
        for body in world.bodies(self.client) {
            let message = ServerMessage::decode(self.format, &body).unwrap();
            self.received += u64::from(message.is_counted());
            let told = match message {
                ServerMessage::Welcome(server::Welcome { resume, resumed, .. }) => {
                    self.token = resume.into_owned();
                    self.is_resumed = resumed.is_some();
                    if !self.is_resumed {
                        self.received = 0;
                    }
                    continue;
                }
                ServerMessage::Registered(server::Registered { is_new, .. }) => {
                    Told::Registered { is_new }
                }
                ServerMessage::Reply(server::Reply { payload, .. }) => {
                    Told::Reply(self.text(&payload))
                }
                ServerMessage::Command(server::Command { command, payload }) => {
                    Told::Command { command, payload: self.text(&payload) }
                }
                ServerMessage::Error(server::Error { code, .. }) => Told::Error(code),
                ServerMessage::Goodbye(server::Goodbye { code, .. }) => Told::Goodbye(code),
                _ => continue,
            };
            self.told.push(told);
        }
    }

    fn text(&self, payload: &[u8]) -> String {
        let kind = crate::channel::PayloadKind::Json;
        let payload = Payload::read(kind, self.format, payload).unwrap();
        String::from_utf8(payload.as_slice().to_vec()).unwrap()
    }
}
