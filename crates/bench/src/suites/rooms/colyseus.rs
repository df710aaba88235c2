//! Clients of a Colyseus server with the same rooms, which is another project's program.
//!
//! The clients do what ours do: they enter rooms of a known size, read every frame and note when it
//! arrived. What they receive is kept, and Colyseus' own decoder compares it with the model after
//! the run (`peers/colyseus/verify.mjs`), all of it from the first state on.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use playfield_websocket::Opcode;
use serde_json::Value;

use super::Options;
use super::driver::CONNECTING_MAX;
use super::measure::{Audience, Outcome, timed};
use super::window::{Arrivals, Failure, Window};
use crate::harness::dialogue::{Dialogue, Frame, MASK, Transport};
use crate::harness::fleet::{Fleet, Links, Next, Script, wrong};
use crate::harness::machine::{DRIVER_CORE, pin, raise_descriptors};
use crate::harness::process::Server;
use crate::harness::source::Source;

/// First bytes of their messages.
const JOIN_ROOM: u8 = 10;
const ROOM_STATE: u8 = 14;
const ROOM_STATE_PATCH: u8 = 15;

/// Starts the server whose programs are in `folder`, and runs a case against it.
pub(super) fn run(case: &Options, folder: &Path) -> Result<Outcome, Failure> {
    pin(DRIVER_CORE)?;
    raise_descriptors();
    let mut server = Server::start_foreign(
        Command::new("node")
            .arg(folder.join("rooms.mjs"))
            .args([case.players.to_string(), case.hz.to_string()])
            .env("NODE_ENV", "production"),
    )?;
    let mut fleet = Fleet::new(Clients::new(case), server.address, Source::Network(100), None)?;
    fleet.connect(0..case.clients(), CONNECTING_MAX);
    fleet.until(|clients, _| clients.joined == case.clients() || clients.window.failure.is_some());
    let fault = fleet.fault.take().map(|fault| Failure::Overload(format!("can't join: {fault}")));
    if let Some(failure) = fleet.script.window.failure.take().or(fault) {
        return Err(failure);
    }
    let timed = timed(&mut fleet, &mut server, case)?;
    if let Some(status) = server.ended()? {
        return Err(Failure::Fault(format!("the server's process ended: {status}")));
    }
    drop(server);
    let Clients { window, lost, all, patches, .. } = fleet.script;
    let mut outcome = timed.outcome(case, window, lost, fleet.fault);
    match verify(case, folder, &all) {
        // Patches outside the measurement are compared as well.
        Ok(compared) if compared == patches => outcome.compared = outcome.messages,
        Ok(compared) => {
            let text = format!("{compared} of {patches} patches were compared");
            outcome.failure = Some(Failure::Fault(text));
        }
        Err(error) => outcome.failure = Some(error.into()),
    }
    Ok(outcome)
}

/// Has Colyseus' decoder read everything that clients received. Returns how many patches it
/// compared with the model.
fn verify(case: &Options, folder: &Path, clients: &[Client]) -> io::Result<u64> {
    let path = folder.join(format!("received-{}", std::process::id()));
    let mut file = io::BufWriter::new(fs::File::create(&path)?);
    for client in clients {
        file.write_all(&(client.received.len() as u32).to_le_bytes())?;
        file.write_all(&client.received)?;
    }
    file.into_inner().map_err(|error| error.into_error())?.sync_all()?;
    let output = Command::new("node")
        .arg(folder.join("verify.mjs"))
        .args([case.players.to_string().as_ref(), path.as_os_str()])
        .output();
    fs::remove_file(&path)?;
    let output = output?;
    let line: Value = serde_json::from_slice(&output.stdout).map_err(|_| {
        let text = String::from_utf8_lossy(&output.stderr);
        io::Error::other(format!("the comparison ended with {}: {}", output.status, text.trim()))
    })?;
    match line["failure"].as_str() {
        Some(failure) => Err(wrong(failure)),
        None => Ok(line["compared"].as_u64().unwrap_or(0)),
    }
}

/// All clients, and what is known of their rooms.
struct Clients<'a> {
    case: &'a Options,
    all: Vec<Client>,
    rooms: Vec<Room>,
    window: Window,
    joined: usize,
    lost: u64,
    /// Patches that were received, in the measurement or not.
    patches: u64,
    /// The next patch is kept as if it were damaged.
    corrupt_one: bool,
}

#[derive(Default)]
struct Client {
    arrivals: Arrivals,
    /// Its session, and messages with its state and patches, each with its length in four bytes
    /// before it.
    received: Vec<u8>,
    is_joined: bool,
}

/// A room, and the clients that wait for it to be created.
#[derive(Default)]
struct Room {
    id: Option<String>,
    is_creating: bool,
    waiting: Vec<usize>,
}

impl<'a> Clients<'a> {
    fn new(case: &'a Options) -> Self {
        Self {
            case,
            all: (0..case.clients()).map(|_| Client::default()).collect(),
            rooms: (0..case.rooms).map(|_| Room::default()).collect(),
            window: Window::default(),
            joined: 0,
            lost: 0,
            patches: 0,
            corrupt_one: case.corrupt_one,
        }
    }

    /// Asks for a seat in a client's room, creates the room, or waits until the first one has.
    fn enter(&mut self, client: usize, links: &mut Links) -> io::Result<()> {
        let room = &mut self.rooms[client / self.case.players as usize];
        let path = match &room.id {
            Some(id) => format!("joinById/{id}"),
            None if room.is_creating => {
                room.waiting.push(client);
                return Ok(());
            }
            None => {
                room.is_creating = true;
                "create/bench".to_owned()
            }
        };
        let request = format!(
            "POST /matchmake/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\
             Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        links.send(client, request.as_bytes()).map(drop)
    }

    /// Handles the answer to the request for a seat, if it is whole. Returns its length.
    fn seat(&mut self, client: usize, input: &[u8], links: &mut Links) -> io::Result<usize> {
        let Some((seat, length)) = seat(input)? else { return Ok(0) };
        let word =
            |name: &str| seat[name].as_str().ok_or_else(|| wrong(&format!("no seat, but {seat}")));
        let (process, id, session) = (word("processId")?, word("roomId")?, word("sessionId")?);
        let path = format!("/{process}/{id}?sessionId={session}");
        self.all[client].keep(session.as_bytes());
        let dialogue = Dialogue::new(Transport::WebSocket);
        links.send(client, &dialogue.opening_at(&path, false))?;
        let room = &mut self.rooms[client / self.case.players as usize];
        if room.id.is_none() {
            room.id = Some(id.to_owned());
            let waiting = std::mem::take(&mut room.waiting);
            waiting.into_iter().try_for_each(|other| self.enter(other, links))?;
        }
        Ok(length)
    }

    fn message(&mut self, client: usize, body: &[u8], links: &mut Links) -> io::Result<()> {
        let of = &mut self.all[client];
        match body.first() {
            Some(&ROOM_STATE_PATCH) => {
                self.patches += 1;
                self.window.arrived(1, body.len(), &mut of.arrivals, links.now);
                of.keep(body);
                if self.window.is_open() && std::mem::take(&mut self.corrupt_one) {
                    let middle = of.received.len() - body.len() / 2;
                    of.received[middle] ^= 1;
                }
            }
            Some(&ROOM_STATE) => of.keep(body),
            Some(&JOIN_ROOM) if !of.is_joined => {
                of.is_joined = true;
                self.joined += 1;
                links.ready += 1;
                // Without it, nothing else is sent.
                return links.send(client, &frame(Opcode::Binary, &[JOIN_ROOM])).map(drop);
            }
            _ => return Err(wrong(&format!("unexpected message {body:?}"))),
        }
        Ok(())
    }
}

impl Client {
    fn keep(&mut self, body: &[u8]) {
        self.received.extend_from_slice(&(body.len() as u32).to_le_bytes());
        self.received.extend_from_slice(body);
    }
}

impl Audience for Clients<'_> {
    fn open(&mut self, case: &Options) {
        let expected = case.clients() * (case.hz * (case.seconds + 1)) as usize;
        self.window.open(expected, self.all.iter_mut().map(|client| &mut client.arrivals));
    }

    fn close(&mut self, case: &Options) -> u64 {
        let period = Duration::from_secs(1) / case.hz;
        let arrivals = self.all.iter().map(|client| &client.arrivals);
        self.window.close(Instant::now(), period, arrivals)
    }
}

impl Script for Clients<'_> {
    fn opened(&mut self, client: usize, links: &mut Links) -> io::Result<()> {
        self.enter(client, links)
    }

    fn receive(&mut self, client: usize, input: &mut [u8], links: &mut Links) -> io::Result<usize> {
        if input.starts_with(b"HTTP/1.1 200") {
            return self.seat(client, input, links);
        }
        Dialogue::new(Transport::WebSocket).each(input, |part| match part {
            Frame::Message(body) => self.message(client, body, links),
            Frame::Ping(payload) => links.send(client, &frame(Opcode::Pong, payload)).map(drop),
            Frame::Upgraded => Ok(()),
        })
    }

    /// The others go on.
    fn lost(&mut self, client: usize, why: io::Error, links: &mut Links) -> io::Result<Next> {
        links.ready += 1;
        self.lost += 1;
        self.window.fail(Failure::of_lost(client, &why));
        Ok(Next::Stay)
    }

    fn progress(&self) -> u64 {
        self.patches + self.joined as u64
    }
}

fn frame(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    playfield_websocket::encode(&mut out, opcode, payload, Some(MASK));
    out
}

/// The JSON of an HTTP response, and the length of all of it; `None` if it is incomplete.
fn seat(input: &[u8]) -> io::Result<Option<(Value, usize)>> {
    let Some(end) = input.windows(4).position(|end| end == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&input[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse::<usize>().ok());
    let length = length.ok_or_else(|| wrong(&format!("no length: {head}")))?;
    let Some(body) = input.get(end + 4..end + 4 + length) else { return Ok(None) };
    Ok(Some((serde_json::from_slice(body)?, end + 4 + length)))
}

#[cfg(test)]
mod tests {
    use super::seat;

    #[test]
    fn a_response_is_read_when_it_is_whole() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"roomId\":\"a\"}HTTP";
        for end in 0..whole.len() - 4 {
            assert!(seat(&whole[..end]).unwrap().is_none(), "{end}");
        }
        let (seat_of, length) = seat(whole).unwrap().unwrap();
        assert_eq!((seat_of["roomId"].as_str(), length), (Some("a"), whole.len() - 4));
        assert!(seat(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
