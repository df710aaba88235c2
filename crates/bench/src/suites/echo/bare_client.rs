//! The baseline of the C++ client: one socket that blocks, and one write for all that a read has
//! answered. It makes the system calls of a C program that does nothing else.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::server::{self, ServerMessage};

use super::server::start;
use super::traffic::{Cycle, Replies, Traffic};
use super::{Options, WARM_UP};
use crate::harness::Side;
use crate::harness::dialogue::{Dialogue, FORMAT, Frame, join_or_create};
use crate::harness::fleet::wrong;
use crate::harness::machine::process_cpu;

const INPUT_BYTES: usize = 256 << 10;
/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// The work of one client in a round.
pub(super) struct Round {
    pub(super) messages: u64,
    /// Replies that were compared, also outside of the measured time.
    pub(super) compared: u64,
    pub(super) rate: f64,
    /// The client's processor time for a message.
    pub(super) cpu_ns: f64,
    pub(super) is_verified: bool,
}

/// Measures a node with the bare client. A wrong reply is an error.
pub(super) fn measure(options: &Options) -> io::Result<Round> {
    let server = start(options, Side::Node)?;
    let Traffic { sent, replies: Replies::Frames(replies) } = Traffic::new(options) else {
        return Err(io::Error::other("the bare client only makes requests"));
    };
    let socket = TcpStream::connect(server.address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let (dialogue, input) = (Dialogue::new(options.transport), vec![0; INPUT_BYTES]);
    let mut bare =
        Bare { socket, dialogue, input, filled: 0, sent, replies, asked: 0, answered: 0 };
    bare.enter()?;
    bare.ask(options.window)?;
    bare.run(WARM_UP)?;
    let (before, cpu, began) = (bare.answered, process_cpu(), Instant::now());
    bare.run(options.time)?;
    let (time, cpu) = (began.elapsed(), process_cpu().saturating_sub(cpu));
    let messages = (bare.answered - before) as u64;
    while bare.answered < bare.asked {
        bare.hear()?;
    }
    Ok(Round {
        messages,
        compared: bare.answered as u64,
        rate: messages as f64 / time.as_secs_f64(),
        cpu_ns: cpu.as_secs_f64() * 1e9 / messages.max(1) as f64,
        is_verified: messages > 0,
    })
}

struct Bare {
    socket: TcpStream,
    dialogue: Dialogue,
    input: Vec<u8>,
    filled: usize,
    sent: Cycle,
    replies: Cycle,
    asked: usize,
    answered: usize,
}

impl Bare {
    /// Enters a room, and gets its state.
    fn enter(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.dialogue.opening(false))?;
        loop {
            self.read()?;
            while let Some((frame, consumed)) = self.dialogue.frame(&self.input[..self.filled])? {
                let is_entered = Self::other(&self.dialogue, &mut self.socket, &frame)?;
                self.done_with(consumed);
                if is_entered {
                    return Ok(());
                }
            }
        }
    }

    /// Asks again for all that is answered.
    fn run(&mut self, time: Duration) -> io::Result<()> {
        let began = Instant::now();
        while began.elapsed() < time {
            let answered = self.hear()?;
            self.ask(answered)?;
        }
        Ok(())
    }

    fn ask(&mut self, requests: usize) -> io::Result<()> {
        let mut left = requests * self.sent.frame_bytes;
        while left > 0 {
            let place = self.sent.after(0, self.asked * self.sent.frame_bytes);
            let bytes = self.sent.at(place, left);
            self.socket.write_all(bytes)?;
            left -= bytes.len();
            self.asked += bytes.len() / self.sent.frame_bytes;
        }
        Ok(())
    }

    /// Reads once, and compares the replies. Returns how many there are.
    fn hear(&mut self) -> io::Result<usize> {
        self.read()?;
        let (mut handled, before) = (0, self.answered);
        while handled < self.filled {
            let left = &self.input[handled..self.filled];
            let place = self.replies.after(0, self.answered * self.replies.frame_bytes);
            let frames = self.replies.agrees(place, left) / self.replies.frame_bytes;
            self.answered += frames;
            handled += frames * self.replies.frame_bytes;
            let left = &self.input[handled..self.filled];
            let Some((frame, consumed)) = self.dialogue.frame(left)? else { break };
            Self::other(&self.dialogue, &mut self.socket, &frame)?;
            handled += consumed;
        }
        self.done_with(handled);
        Ok(self.answered - before)
    }

    fn read(&mut self) -> io::Result<()> {
        match self.socket.read(&mut self.input[self.filled..])? {
            0 => Err(wrong("the node has closed the connection")),
            count => {
                self.filled += count;
                Ok(())
            }
        }
    }

    fn done_with(&mut self, bytes: usize) {
        self.input.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
    }

    /// Handles any message but a reply. Returns whether it was the state of the room.
    fn other(dialogue: &Dialogue, socket: &mut TcpStream, frame: &Frame<'_>) -> io::Result<bool> {
        let Frame::Message(body) = frame else {
            return socket.write_all(&dialogue.reply(frame, false)).map(|()| false);
        };
        match ServerMessage::decode(FORMAT, body).map_err(io::Error::other)? {
            ServerMessage::Welcome(_) => {
                socket.write_all(&dialogue.framed(&join_or_create("hall")))?;
            }
            ServerMessage::Ping(server::Ping { nonce }) => {
                let pong = ClientMessage::Pong(client::Pong { nonce });
                socket.write_all(&dialogue.framed(&pong))?;
            }
            ServerMessage::Snapshot(_) => return Ok(true),
            ServerMessage::Joined(_) | ServerMessage::Check(_) => {}
            other => return Err(wrong(&format!("not expected now: {other:?}"))),
        }
        Ok(false)
    }
}
