//! Scripts, compiled with the schemas of their rooms: each step is checked before the load begins.

mod compiler;

use std::collections::BTreeMap;

use playfield_state::JsonExchange;
use playfield_state::generate::Generator;
use playfield_wire::schema::{RoomSchema, Type};
use serde_json::Value;

use self::compiler::Compiler;
use crate::bot::MakeBot;
use crate::name::Name;
use crate::payload::Payload;
use crate::random::Random;
use crate::settings::{Action, Enter, LoadError, MessageKind, Script, Step};

/// The number of values of each step generated to check it.
const SAMPLES: u64 = 32;

/// Everything that connections do.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) programs: Vec<Program>,
    pub(crate) rooms: Vec<RoomType>,
    /// The names of messages, for their timings.
    pub(crate) messages: Vec<String>,
    /// The factor by which they run faster.
    pub(crate) speed: u32,
    weights: u64,
}

/// The steps of one connection.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) ops: Vec<Op>,
    /// Says whether it waits for all connections.
    pub(crate) waits_for_all: bool,
    pub(crate) token: Option<String>,
    weight: u32,
}

/// A room type that scripts use.
#[derive(Debug)]
pub(crate) struct RoomType {
    pub(crate) name: String,
    pub(crate) schema: RoomSchema,
    exchange: JsonExchange,
}

#[derive(Debug)]
pub(crate) enum Op {
    Join {
        room: u32,
        enter: Enter,
        options: Vec<u8>,
    },
    Leave {
        room: u32,
    },
    Wait {
        least_ns: u64,
        most_ns: u64,
    },
    WaitForAll,
    Message {
        room: u32,
        join: u32,
        choices: Vec<Message>,
        kind: MessageKind,
    },
    Subscribe {
        channel: Name,
        presence: bool,
        timing: u32,
    },
    Unsubscribe {
        channel: Option<Name>,
    },
    Publish {
        channel: Name,
        payload: Payload,
        kind: MessageKind,
        timing: u32,
    },
    Register {
        device: Name,
        metadata: Vec<(String, Name)>,
        tags: Vec<Name>,
        answer: Reaction,
        timing: u32,
    },
    Report {
        payload: Payload,
        kind: MessageKind,
        timing: u32,
    },
    Ping,
    Repeat {
        times: u64,
        every_ns: u64,
        end: u32,
    },
    End {
        begin: u32,
    },
    Bot {
        room: u32,
        join: u32,
        make: MakeBot,
        timing: u32,
    },
    Hold,
}

/// The answer of a device to commands.
#[derive(Debug)]
pub(crate) enum Reaction {
    Echo,
    Never,
    Answer {
        payload: Payload,
        /// The step's place and the value.
        shown: Box<str>,
    },
}

/// A message that a step may send.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) index: u32,
    pub(crate) name: String,
    /// The number of its timings.
    pub(crate) timing: u32,
    payload: MessagePayload,
}

#[derive(Debug)]
enum MessagePayload {
    /// The same each time.
    Fixed(Vec<u8>),
    Generated {
        of: Type,
        given: Option<Value>,
    },
}

impl Programs {
    /// Compiles scripts. `schemas` has all room types that they name.
    pub(crate) fn new(
        scripts: &[Script],
        schemas: BTreeMap<String, RoomSchema>,
        speed: u32,
    ) -> Result<Self, LoadError> {
        let rooms = schemas
            .into_iter()
            .map(|(name, schema)| {
                let exchange = JsonExchange::new(&schema).map_err(|error| {
                    LoadError::Work(format!("the node's schema of {name:?} is invalid: {error}"))
                })?;
                Ok(RoomType { name, schema, exchange })
            })
            .collect::<Result<_, LoadError>>()?;
        let speed = speed.max(1);
        let mut programs =
            Self { programs: Vec::new(), rooms, messages: Vec::new(), weights: 0, speed };
        for script in scripts {
            let program = Compiler::compile(&mut programs, script)?;
            programs.weights += u64::from(script.weight);
            programs.programs.push(program);
        }
        Ok(programs)
    }

    /// The number of the program for a connection: each gets its share of any run of numbers.
    pub(crate) fn program_of(&self, number: usize) -> u32 {
        let mut at = number as u64 % self.weights.max(1);
        for (index, program) in self.programs.iter().enumerate() {
            match at.checked_sub(program.weight.into()) {
                Some(rest) => at = rest,
                None => return index as u32,
            }
        }
        0
    }

    /// The token of a connection, if its script has one.
    pub(crate) fn token_of(&self, number: usize) -> Option<&str> {
        self.programs.get(self.program_of(number) as usize)?.token.as_deref()
    }

    /// Writes a message's payload.
    pub(crate) fn payload(
        &self,
        room: u32,
        message: &Message,
        random: &mut Random,
        player: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let (of, given) = match &message.payload {
            MessagePayload::Fixed(payload) => {
                out.extend_from_slice(payload);
                return Ok(());
            }
            MessagePayload::Generated { of, given } => (of, given.as_ref()),
        };
        let value = Generator::new(&mut || random.bits(), player).value(of, given)?;
        let exchange = &self.rooms[room as usize].exchange;
        let written = exchange.message(&message.name, &value);
        let (_, payload) = written.map_err(|error| format!("{value}: {error}"))?;
        out.extend_from_slice(&payload);
        Ok(())
    }

    fn room(&self, name: &str) -> Option<u32> {
        self.rooms.iter().position(|room| room.name == name).map(|index| index as u32)
    }

    /// A message as a step sends it, checked.
    fn message(
        &mut self,
        room: u32,
        index: usize,
        given: Option<&Value>,
    ) -> Result<Message, String> {
        let of = self.rooms[room as usize].schema.messages[index].of.clone();
        let name = self.rooms[room as usize].schema.messages[index].name.clone().into_owned();
        let exchange = &self.rooms[room as usize].exchange;
        let mut same: Option<(Value, bool)> = None;
        for seed in 0..SAMPLES {
            let mut random = Random::new(seed, 0);
            let value = Generator::new(&mut || random.bits(), 1).value(&of, given)?;
            let checked = exchange.message(&name, &value);
            checked.map_err(|error| format!("{value} is not a valid {name:?}: {error}"))?;
            same = Some(match same {
                None => (value, true),
                Some((first, is_same)) => {
                    let is_same = is_same && first == value;
                    (first, is_same)
                }
            });
        }
        let is_own_player = given.is_some_and(|given| given.to_string().contains("\"me\""));
        let payload = match same {
            Some((value, true)) if !is_own_player => {
                let written = exchange.message(&name, &value);
                MessagePayload::Fixed(written.map_err(|error| error.to_string())?.1)
            }
            _ => MessagePayload::Generated { of, given: given.cloned() },
        };
        let shown = match &self.rooms[..] {
            [_] => name.clone(),
            rooms => format!("{}.{name}", rooms[room as usize].name),
        };
        let timing = self.timing(&shown);
        Ok(Message { index: index as u32, name, timing, payload })
    }

    /// The number of the timings with this name.
    fn timing(&mut self, name: &str) -> u32 {
        let known = self.messages.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.messages.push(name.to_owned());
            self.messages.len() - 1
        }) as u32
    }
}

impl Program {
    /// Returns whether it ends by itself.
    pub(crate) fn ends(&self) -> bool {
        !self.ops.iter().any(|op| matches!(op, Op::Hold | Op::Repeat { times: u64::MAX, .. }))
    }
}

/// The room types that scripts join.
pub(crate) fn room_types(scripts: &[Script]) -> Vec<String> {
    fn add(steps: &[Step], names: &mut Vec<String>) {
        for step in steps {
            match &step.action {
                Action::Join { room_type, .. } => names.push(room_type.clone()),
                Action::Repeat { steps, .. } => add(steps, names),
                _ => {}
            }
        }
    }
    let mut names = Vec::new();
    scripts.iter().for_each(|script| add(&script.steps, &mut names));
    names.sort();
    names.dedup();
    names
}
