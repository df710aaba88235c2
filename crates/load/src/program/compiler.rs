//! Compiles the steps of a script, and checks them with the schemas.

use std::time::Duration;

use serde_json::Value;

use super::{Message, Op, Program, Programs, Reaction, RoomType};
use crate::engine::nanoseconds;
use crate::name::Name;
use crate::payload::Payload;
use crate::settings::{Action, Answer, Content, LoadError, Script, Step};

pub(super) struct Compiler<'a> {
    all: &'a mut Programs,
    ops: Vec<Op>,
    /// The room types that were joined, each with the step that joins, last joined last.
    joined: Vec<(u32, u32)>,
    /// The channels that were subscribed to.
    subscribed: Vec<Name>,
    /// The last step that registers a device; within, its answer to commands if that is a value.
    registers: Option<Option<Box<str>>>,
    waits: bool,
}

impl<'a> Compiler<'a> {
    pub(super) fn compile(all: &'a mut Programs, script: &Script) -> Result<Program, LoadError> {
        let (ops, joined, subscribed) = (Vec::new(), Vec::new(), Vec::new());
        let mut compiler = Self { all, ops, joined, subscribed, registers: None, waits: false };
        compiler.steps(&script.steps)?;
        let Self { ops, waits, .. } = compiler;
        Ok(Program {
            ops,
            waits_for_all: waits,
            token: script.token.clone(),
            weight: script.weight,
        })
    }

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
                Op::Wait { least_ns: self.wait_ns(*least), most_ns: self.wait_ns(*most) }
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
            Action::Subscribe { channel, presence } => {
                self.subscribed.push(channel.clone());
                let (channel, presence) = (channel.clone(), *presence);
                Op::Subscribe { channel, presence, timing: self.all.timing("subscribe") }
            }
            Action::Unsubscribe { channel } => {
                let is_known = match channel {
                    None => !self.subscribed.is_empty(),
                    Some(channel) => self.subscribed.contains(channel),
                };
                if !is_known {
                    let what = "no step before this one subscribes to the channel; add one";
                    return Err(what.to_owned().into());
                }
                Op::Unsubscribe { channel: channel.clone() }
            }
            Action::Publish { channel, content, kind } => {
                let payload = Payload::new(content, true)?;
                let (channel, timing) = (channel.clone(), self.all.timing("publish"));
                Op::Publish { channel, payload, kind: *kind, timing }
            }
            Action::Register { device, metadata, tags, answer } => {
                let answer = match answer {
                    Answer::Echo => Reaction::Echo,
                    Answer::Never => Reaction::Never,
                    Answer::Value(value) => {
                        let content = Content::Json(value.clone());
                        let payload = Payload::new(&content, false)?;
                        let shown = format!("{}: answer = {value}", step.place).into();
                        Reaction::Answer { payload, shown }
                    }
                };
                self.registers = Some(match &answer {
                    Reaction::Answer { shown, .. } => Some(shown.clone()),
                    Reaction::Echo | Reaction::Never => None,
                });
                let (device, metadata, tags) = (device.clone(), metadata.clone(), tags.clone());
                let timing = self.all.timing("register");
                Op::Register { device, metadata, tags, answer, timing }
            }
            Action::Report { content, kind } => {
                let Some(answer) = &self.registers else {
                    let what = "no step before this one registers a device; add one";
                    return Err(what.to_owned().into());
                };
                if let (Content::Bytes(_), Some(shown)) = (content, answer) {
                    let why = format!("it reports bytes, but answers by a value ({shown})");
                    return Err(format!("{why}; a fleet has one kind of payloads").into());
                }
                let payload = Payload::new(content, false)?;
                Op::Report { payload, kind: *kind, timing: self.all.timing("report") }
            }
            Action::Ping => Op::Ping,
            Action::Bot { make } => {
                let (room, join) = self.joined(None)?;
                Op::Bot { room, join, make: make.clone(), timing: self.all.timing("bot") }
            }
            Action::Hold => Op::Hold,
            Action::Repeat { times, every, steps } => {
                if steps.is_empty() {
                    return Err("repeat has no steps; give some".to_owned().into());
                }
                let every_ns = every.map_or(0, |every| self.wait_ns(every));
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

    /// A time between steps, at the speed of the load.
    fn wait_ns(&self, time: Duration) -> u64 {
        nanoseconds(time / self.all.speed)
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
        checked.map_err(|error| format!("{options} are no options of {:?}: {error}", room.name))
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
