//! The node's end of a connection, in whatever transport and format the client uses.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use playfield::Format;
use playfield_websocket::handshake::{Head, HeadLimits, accept, parse_request};
use playfield_websocket::{Decoder, Item, Limits, Opcode, Role, encode, encode_close};
use playfield_wire::client::ClientMessage;
use playfield_wire::framing::{Framing, PREAMBLE, write_frame};
use playfield_wire::message::MessageRef;
use playfield_wire::msgpack::read_value;
use serde_json::Value;

use super::messages::{message_name, payload};
use super::{Outcome, is_end, said, shut};

const MESSAGE_BYTES_MAX: usize = 1 << 20;

pub(super) struct Peer {
    stream: TcpStream,
    format: Option<Format>,
    decoder: Option<Decoder>,
    is_greeted: bool,
    unread: Vec<u8>,
}

/// A message of the client.
pub(super) struct Heard {
    /// Its form in JSON, but for payloads.
    pub(super) json: Value,
    pub(super) is_counted: bool,
    payload: Vec<u8>,
    format: Format,
}

impl Heard {
    pub(super) fn kind(&self) -> &str {
        self.json["type"].as_str().unwrap_or_default()
    }

    /// Checks that it has these members, which may have more members themselves.
    pub(super) fn check(&self, has: &Value) -> Outcome<()> {
        let mut has = has.clone();
        let expected = has.as_object_mut().and_then(|members| members.remove("payload"));
        if let Some(expected) = expected {
            let name = self.json["message"].as_str().unwrap_or_default();
            let expected = payload(name, &expected, self.format)?;
            if !is_same(self.format, &expected, &self.payload) {
                let found = String::from_utf8_lossy(&self.payload);
                return Err(format!("its payload is {found:?}: {}", self.json));
            }
        }
        if is_in(&has, &self.json) { Ok(()) } else { Err(format!("it is {}", self.json)) }
    }
}

fn is_same(format: Format, one: &[u8], other: &[u8]) -> bool {
    let tree = |bytes: &[u8]| match format {
        Format::Json => serde_json::from_slice(bytes).ok(),
        Format::Msgpack => read_value(bytes).ok(),
        Format::Packed => None::<Value>,
    };
    one == other || tree(one).is_some_and(|one| tree(other) == Some(one))
}

fn is_in(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Null, _) => true,
        (Value::Object(expected), found) => {
            expected.iter().all(|(name, value)| is_in(value, &found[name]))
        }
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(expected, found)| is_in(expected, found))
        }
        (expected, found) => expected == found,
    }
}

impl Peer {
    pub(super) fn new(stream: TcpStream) -> Self {
        let (format, decoder, unread) = (None, None, Vec::new());
        Self { stream, format, decoder, is_greeted: false, unread }
    }

    /// The format that the client has chosen.
    pub(super) fn format(&self) -> Format {
        self.format.unwrap_or(Format::Packed)
    }

    /// Appends the bytes that carry a message.
    pub(super) fn frame(&self, body: &[u8], out: &mut Vec<u8>) {
        match (&self.decoder, self.format()) {
            (None, _) => write_frame(out, body),
            (Some(_), Format::Json) => encode(out, Opcode::Text, body, None),
            (Some(_), _) => encode(out, Opcode::Binary, body, None),
        }
    }

    /// A client that has hung up is not an error: another step checks what it does then.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Outcome<()> {
        match self.stream.write_all(bytes) {
            Err(error) if !is_end(&error) => Err(said(error)),
            _ => Ok(()),
        }
    }

    /// Ends this half of the connection.
    pub(super) fn end(&self) -> Outcome<()> {
        shut(&self.stream)
    }

    /// Sends a close frame; without WebSocket, it ends this half.
    pub(super) fn close(&mut self, code: u16) -> Outcome<()> {
        if self.decoder.is_none() {
            return self.end();
        }
        let mut bytes = Vec::new();
        encode_close(&mut bytes, code, "", None);
        self.write(&bytes)
    }

    /// The client's next message; none if it has closed the connection.
    pub(super) fn next(&mut self) -> Outcome<Option<Heard>> {
        self.greet()?;
        loop {
            let (body, consumed) = self.body()?;
            let heard = body.map(|body| self.heard(&body)).transpose()?;
            self.unread.drain(..consumed);
            if heard.is_some() {
                return Ok(heard);
            }
            if consumed == 0 && !self.read()? {
                return Ok(None);
            }
        }
    }

    /// The next message in what was read, and how many bytes of it are done.
    fn body(&mut self) -> Outcome<(Option<Vec<u8>>, usize)> {
        let Some(decoder) = &mut self.decoder else {
            let framing = Framing { message_bytes_max: MESSAGE_BYTES_MAX };
            let frame = framing.decode(&self.unread).map_err(said)?;
            return Ok(match frame {
                Some(frame) => (Some(frame.body.to_vec()), frame.consumed),
                None => (None, 0),
            });
        };
        let decoded = decoder.decode(&mut self.unread).map_err(said)?;
        let consumed = decoded.consumed;
        let closes = matches!(decoded.item, Some(Item::Close(_)));
        let item = match decoded.item {
            Some(Item::Binary(body)) => (Some(body.to_vec()), consumed),
            Some(Item::Text(body)) => (Some(body.as_bytes().to_vec()), consumed),
            _ => (None, consumed),
        };
        if closes {
            self.close(1000)?;
            self.end()?;
        }
        Ok(item)
    }

    fn heard(&mut self, body: &[u8]) -> Outcome<Heard> {
        let (format, mut message) = match self.format {
            Some(format) => (format, ClientMessage::decode(format, body).map_err(said)?),
            None => ClientMessage::decode_first(body).map_err(said)?,
        };
        self.format = Some(format);
        let is_counted = message.is_counted();
        let payload = match &mut message {
            ClientMessage::Request(request) => {
                name(&mut request.message);
                std::mem::take(&mut request.payload)
            }
            ClientMessage::Send(send) => {
                name(&mut send.message);
                std::mem::take(&mut send.payload)
            }
            ClientMessage::Create(create) => std::mem::take(&mut create.options),
            ClientMessage::JoinOrCreate(join) => std::mem::take(&mut join.options),
            ClientMessage::Publish(publish) => std::mem::take(&mut publish.payload),
            _ => &[],
        };
        let payload = payload.to_vec();
        let mut json = Vec::new();
        message.encode(Format::Json, &mut json);
        let json = serde_json::from_slice(&json).map_err(said)?;
        Ok(Heard { json, is_counted, payload, format })
    }

    /// Reads what comes before the first message, and answers it.
    fn greet(&mut self) -> Outcome<()> {
        while !self.is_greeted {
            if self.unread.starts_with(&PREAMBLE) {
                self.unread.drain(..PREAMBLE.len());
                self.is_greeted = true;
                return Ok(());
            }
            if self.unread.starts_with(b"GET ") {
                let head = parse_request(&self.unread, &HeadLimits::default()).map_err(said)?;
                if let Head::Complete(request) = head {
                    let upgrade = request.upgrade.ok_or("it is not a WebSocket")?;
                    let mut answer = Vec::new();
                    accept(&mut answer, &upgrade, None, None).map_err(said)?;
                    let head_bytes = request.head_bytes;
                    self.unread.drain(..head_bytes);
                    let limits = Limits::default();
                    self.decoder = Some(Decoder::new(Role::Server, limits));
                    self.is_greeted = true;
                    return self.write(&answer);
                }
            }
            if !self.read()? {
                return Err("the client has closed the connection".to_owned());
            }
        }
        Ok(())
    }

    fn read(&mut self) -> Outcome<bool> {
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(length) => {
                self.unread.extend_from_slice(&chunk[..length]);
                Ok(length > 0)
            }
            Err(error) if is_end(&error) => Ok(false),
            Err(error) => Err(said(error)),
        }
    }
}

/// Names a message that has a number.
fn name(message: &mut MessageRef<'_>) {
    if let MessageRef::Index(index) = message {
        *message = MessageRef::Name(message_name(*index).into());
    }
}
