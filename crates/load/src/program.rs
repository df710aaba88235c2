//! Scripts, compiled with the schemas of their rooms: each step is checked before the load begins.

use std::collections::BTreeMap;

use playfield_client::Format;
use playfield_state::JsonExchange;
use playfield_wire::schema::{RoomSchema, Type};
use playfield_wire::tree::TreeWriter;
use serde_json::Value;

use crate::generate::Generator;
use crate::random::Random;
use crate::settings::{Action, Enter, LoadError, MessageKind, Script, Step};

/// How many values of each step are generated to check it.
const SAMPLES: u64 = 32;

/// Everything that connections do.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) programs: Vec<Program>,
    pub(crate) rooms: Vec<RoomType>,
    /// The names of messages, for their timings.
    pub(crate) messages: Vec<String>,
    pub(crate) format: Format,
    weights: u64,
}

/// What one connection does.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) ops: Vec<Op>,
    /// Whether it waits for all connections.
    pub(crate) waits_for_all: bool,
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
    Join { room: u32, enter: Enter, options: Vec<u8> },
    Leave { room: u32 },
    Wait { least_ns: u64, most_ns: u64 },
    WaitForAll,
    Message { room: u32, join: u32, choices: Vec<Message>, kind: MessageKind },
    Ping,
    Repeat { times: u64, every_ns: u64, end: u32 },
    End { begin: u32 },
    Hold,
}

/// A message that a step may send.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) index: u32,
    pub(crate) name: String,
    /// The number of its timings.
    pub(crate) timing: u32,
    payload: Payload,
}

#[derive(Debug)]
enum Payload {
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
        format: Format,
        schemas: BTreeMap<String, RoomSchema>,
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
        let mut programs =
            Self { programs: Vec::new(), rooms, messages: Vec::new(), format, weights: 0 };
        for script in scripts {
            let mut compiler =
                Compiler { all: &mut programs, ops: Vec::new(), joined: Vec::new(), waits: false };
            compiler.steps(&script.steps)?;
            let Compiler { ops, waits, .. } = compiler;
            programs.weights += u64::from(script.weight);
            programs.programs.push(Program { ops, waits_for_all: waits, weight: script.weight });
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

    /// Writes a message's payload in the connection's format.
    pub(crate) fn payload(
        &self,
        room: u32,
        message: &Message,
        random: &mut Random,
        player: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let (of, given) = match &message.payload {
            Payload::Fixed(payload) => {
                out.extend_from_slice(payload);
                return Ok(());
            }
            Payload::Generated { of, given } => (of, given.as_ref()),
        };
        let value = Generator { random, player }.value(of, given)?;
        match self.format.tree() {
            Some(format) => TreeWriter::new(format, out).value(&value),
            None => {
                let exchange = &self.rooms[room as usize].exchange;
                let (_, payload) = exchange
                    .message(&message.name, &value)
                    .map_err(|error| format!("{value}: {error}"))?;
                out.extend_from_slice(&payload);
            }
        }
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
            let value = Generator { random: &mut random, player: 1 }.value(&of, given)?;
            let checked = exchange.message(&name, &value);
            checked.map_err(|error| format!("{value} is no {name:?}: {error}"))?;
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
            Some((value, true)) if !is_own_player => Payload::Fixed(match self.format.tree() {
                Some(format) => {
                    let mut out = Vec::new();
                    TreeWriter::new(format, &mut out).value(&value);
                    out
                }
                None => exchange.message(&name, &value).map_err(|error| error.to_string())?.1,
            }),
            _ => Payload::Generated { of, given: given.cloned() },
        };
        let shown = match &self.rooms[..] {
            [_] => name.clone(),
            rooms => format!("{}.{name}", rooms[room as usize].name),
        };
        let timing = self.messages.iter().position(|known| *known == shown).unwrap_or_else(|| {
            self.messages.push(shown);
            self.messages.len() - 1
        });
        Ok(Message { index: index as u32, name, timing: timing as u32, payload })
    }
}

impl Program {
    /// Whether it ends by itself.
    pub(crate) fn ends(&self) -> bool {
        !self.ops.iter().any(|op| matches!(op, Op::Hold | Op::Repeat { times: u64::MAX, .. }))
    }
}

struct Compiler<'a> {
    all: &'a mut Programs,
    ops: Vec<Op>,
    /// The room types that were joined, each with the step that joins, last joined last.
    joined: Vec<(u32, u32)>,
    waits: bool,
}

impl Compiler<'_> {
    fn steps(&mut self, steps: &[Step]) -> Result<(), LoadError> {
        for step in steps {
            self.step(step).map_err(|error| match error {
                Wrong::Here(why) => LoadError::Usage(format!("{}: {why}", step.place)),
                Wrong::Within(error) => error,
            })?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), Wrong> {
        let here = self.ops.len() as u32;
        let op = match &step.action {
            Action::Join { room_type, enter, options } => {
                let room = self.all.room(room_type);
                let room =
                    room.ok_or_else(|| format!("the node has no room type {room_type:?}"))?;
                self.joined.retain(|(other, _)| *other != room);
                self.joined.push((room, here));
                let options = options.as_ref().map(|options| self.options(room, options));
                let options = options.transpose()?.unwrap_or_default();
                Op::Join { room, enter: enter.clone(), options }
            }
            Action::Leave { room_type } => {
                let (room, _) = self.joined(room_type.as_deref())?;
                self.joined.retain(|(other, _)| *other != room);
                Op::Leave { room }
            }
            Action::Wait { least, most } => {
                Op::Wait { least_ns: nanoseconds(*least), most_ns: nanoseconds(*most) }
            }
            Action::WaitForAll => {
                self.waits = true;
                Op::WaitForAll
            }
            Action::Message { room_type, name, value, kind } => {
                let (room, join) = self.joined(room_type.as_deref())?;
                let choices = self.choices(room, name.as_deref(), value.as_ref())?;
                Op::Message { room, join, choices, kind: *kind }
            }
            Action::Ping => Op::Ping,
            Action::Hold => Op::Hold,
            Action::Repeat { times, every, steps } => {
                if steps.is_empty() {
                    return Err("repeat has no steps; give some".to_owned().into());
                }
                let every_ns = every.map_or(0, nanoseconds);
                self.ops.push(Op::Hold);
                self.steps(steps).map_err(Wrong::Within)?;
                let end = self.ops.len() as u32;
                self.ops.push(Op::End { begin: here });
                let times = times.unwrap_or(u64::MAX);
                self.ops[here as usize] = Op::Repeat { times, every_ns, end };
                return Ok(());
            }
        };
        self.ops.push(op);
        Ok(())
    }

    /// The room type that a step means, and where it is joined.
    fn joined(&self, name: Option<&str>) -> Result<(u32, u32), String> {
        let known = self.joined.iter().rev();
        let mut known = known.filter(|(room, _)| {
            name.is_none_or(|name| self.all.rooms[*room as usize].name == name)
        });
        known.next().copied().ok_or_else(|| match name {
            Some(name) => format!("no step before this one joins {name:?}; add one"),
            None => "no step before this one joins a room; add one".into(),
        })
    }

    fn options(&self, room: u32, options: &Value) -> Result<Vec<u8>, String> {
        let room = &self.all.rooms[room as usize];
        let checked = room.exchange.options(options);
        let payload = checked
            .map_err(|error| format!("{options} are no options of {:?}: {error}", room.name))?;
        Ok(match self.all.format.tree() {
            None => payload,
            Some(format) => {
                let mut out = Vec::new();
                TreeWriter::new(format, &mut out).value(options);
                out
            }
        })
    }

    fn choices(
        &mut self,
        room: u32,
        name: Option<&str>,
        value: Option<&Value>,
    ) -> Result<Vec<Message>, String> {
        let RoomType { name: room_type, schema, .. } = &self.all.rooms[room as usize];
        let known: Vec<_> = schema.messages.iter().map(|message| message.name.as_ref()).collect();
        if known.is_empty() {
            return Err(format!("rooms of type {room_type:?} take no messages"));
        }
        let indices: Vec<usize> = match name {
            None => (0..known.len()).collect(),
            Some(name) => vec![known.iter().position(|known| *known == name).ok_or_else(|| {
                format!(
                    "rooms of type {room_type:?} take no message {name:?}; they take {}",
                    known.join(", ")
                )
            })?],
        };
        indices.into_iter().map(|index| self.all.message(room, index, value)).collect()
    }
}

enum Wrong {
    /// In this step.
    Here(String),
    /// In a step within it.
    Within(LoadError),
}

impl From<String> for Wrong {
    fn from(why: String) -> Self {
        Self::Here(why)
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

fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
