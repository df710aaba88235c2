//! A player whose session moves between nodes, and who notices what gets lost or doubled.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use playfield_wire::Format;
use playfield_wire::client::{self, ClientMessage, Hello, Resume, ResumeRoom};
use playfield_wire::server::{self, ServerMessage};

/// The time within which a player is back.
const BACK_WITHIN: Duration = Duration::from_secs(20);

pub(crate) struct Nomad {
    name: String,
    /// The node that it was started with, and the one to try next.
    home: String,
    url: String,
    stream: Option<TcpStream>,
    token: Vec<u8>,
    /// The number of its session.
    pub(crate) session: u64,
    received: u64,
    /// Counted messages that no node has confirmed, and how many one has.
    sent: VecDeque<Vec<u8>>,
    confirmed: u64,
    pub(crate) room: Option<ResumeRoom>,
    pub(crate) room_id: String,
    pub(crate) snapshots: usize,
    /// The number of events of its room.
    pub(crate) events: u64,
    /// The times that it came back to its session.
    pub(crate) returns: usize,
}

impl Nomad {
    pub(crate) fn new(url: &str, name: &str) -> Self {
        let mut nomad = Self {
            name: name.into(),
            home: url.into(),
            url: url.into(),
            stream: None,
            token: Vec::new(),
            session: 0,
            received: 0,
            sent: VecDeque::new(),
            confirmed: 0,
            room: None,
            room_id: String::new(),
            snapshots: 0,
            events: 0,
            returns: 0,
        };
        nomad.connect().unwrap();
        nomad
    }

    /// Loses its connection, for now.
    pub(crate) fn hang_up(&mut self) {
        self.stream = None;
    }

    /// Dials this node next.
    pub(crate) fn dial(&mut self, url: &str) {
        self.url = url.into();
        self.home = url.into();
    }

    /// Says something, and waits until `is_it` answers `true` to a message.
    pub(crate) fn say_until(
        &mut self,
        message: &ClientMessage<'_>,
        is_it: impl Fn(&ServerMessage<'_>) -> bool,
    ) {
        let mut body = Vec::new();
        message.encode(Format::Packed, &mut body);
        if message.is_counted() {
            self.sent.push_back(body.clone());
        }
        // What a lost connection did not take is sent again.
        let _ = self.write(&body);
        self.until(is_it);
    }

    /// Hears until `is_it` answers `true` to a message.
    pub(crate) fn until(&mut self, is_it: impl Fn(&ServerMessage<'_>) -> bool) {
        let by = Instant::now() + BACK_WITHIN;
        loop {
            assert!(Instant::now() < by, "{}: it waits in vain at {}", self.name, self.url);
            if self.stream.is_none() {
                if self.connect().is_err() {
                    self.url.clone_from(&self.home);
                    super::rest();
                }
                continue;
            }
            match self.read() {
                Ok(body) => {
                    let message = ServerMessage::decode(Format::Packed, &body).unwrap();
                    let found = is_it(&message);
                    self.handle(&message);
                    if found {
                        return;
                    }
                }
                Err(_) => self.stream = None,
            }
        }
    }

    fn connect(&mut self) -> io::Result<()> {
        let address = self.url.strip_prefix("tcp://").unwrap();
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(BACK_WITHIN))?;
        self.stream = Some(stream);
        self.stream.as_mut().unwrap().write_all(b"PF1\n")?;
        let resume = Resume {
            token: self.token.clone().into(),
            received: self.received,
            rooms: self.room.into_iter().collect(),
        };
        let mut body = Vec::new();
        ClientMessage::Hello(Hello {
            name: self.name.as_str().into(),
            resumable: true,
            redirects: true,
            resume: Some(resume).filter(|_| !self.token.is_empty()),
            ..Hello::new(Format::Packed)
        })
        .encode(Format::Packed, &mut body);
        self.write(&body)?;
        if self.token.is_empty() {
            self.until(|message| matches!(message, ServerMessage::Welcome(_)));
        }
        Ok(())
    }

    fn handle(&mut self, message: &ServerMessage<'_>) {
        let is_redirect = matches!(message, ServerMessage::Redirect(_));
        self.received += u64::from(message.is_counted() && !is_redirect);
        match message {
            ServerMessage::Welcome(welcome) => self.welcomed(welcome),
            ServerMessage::Redirect(redirect) => self.url = redirect.addresses[0].to_string(),
            ServerMessage::Ack(server::Ack { received }) => self.confirm(*received),
            ServerMessage::Joined(joined) => {
                self.room_id = joined.id.to_string();
                let (room, epoch) = (joined.room, joined.epoch);
                self.room = Some(ResumeRoom { room, epoch, version: 0 });
            }
            ServerMessage::Snapshot(snapshot) => {
                self.room.as_mut().unwrap().version = snapshot.version;
                self.snapshots += 1;
            }
            ServerMessage::Patch(patch) => {
                let room = self.room.as_mut().unwrap();
                assert_eq!(room.version, patch.base, "{}: a patch is missing", self.name);
                room.version = patch.version;
            }
            ServerMessage::Event(event) => {
                assert_eq!(event.sequence, self.events + 1, "{}: an event is lost", self.name);
                self.events = event.sequence;
            }
            ServerMessage::Goodbye(_) => {}
            ServerMessage::Left(left) => panic!("{}: {left:?}", self.name),
            ServerMessage::Error(error) => panic!("{}: {error:?}", self.name),
            _ => {}
        }
    }

    fn welcomed(&mut self, welcome: &server::Welcome<'_>) {
        let is_back = !self.token.is_empty();
        self.token = welcome.resume.to_vec();
        match &welcome.resumed {
            Some(resumed) => {
                assert!(resumed.lost.is_empty(), "{}: messages are lost", self.name);
                self.confirm(resumed.received);
                self.returns += 1;
                for body in self.sent.clone() {
                    let _ = self.write(&body);
                }
            }
            None => assert!(!is_back, "{}: its session is gone", self.name),
        }
        self.session = welcome.session;
    }

    fn confirm(&mut self, received: u64) {
        let count = usize::try_from(received - self.confirmed).unwrap();
        self.sent.drain(..count);
        self.confirmed = received;
    }

    fn write(&mut self, body: &[u8]) -> io::Result<()> {
        let mut frame = (body.len() as u32).to_le_bytes().to_vec();
        frame.extend(body);
        match &mut self.stream {
            Some(stream) => stream.write_all(&frame),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let mut body = vec![0; u32::from_le_bytes(length) as usize];
        stream.read_exact(&mut body)?;
        Ok(body)
    }
}

/// A request to the room with the number 1 in the session.
pub(crate) fn request(number: u32, payload: &[u8]) -> ClientMessage<'_> {
    ClientMessage::Request(client::Request {
        room: playfield_wire::RoomNumber(1),
        request: playfield_wire::RequestNumber(number),
        message: playfield_wire::message::MessageRef::Index(1),
        payload,
    })
}
