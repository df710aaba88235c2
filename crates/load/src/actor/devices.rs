//! Steps of a connection as a device.

use playfield_client::session::Session;

use super::steps::Stop;
use super::{Actor, What};
use crate::engine::Shared;
use crate::name::Name;
use crate::payload::Payload;
use crate::program::{Op, Reaction};
use crate::settings::MessageKind;

/// The most answers of one connection that may wait to be sent. Later commands are not answered.
const ANSWERS_WAITING_MAX: usize = 1024;

impl Actor {
    pub(super) fn register(
        &mut self,
        device: &Name,
        metadata: &[(String, Name)],
        tags: &[Name],
        timing: u32,
        client: &mut Session,
        shared: &mut Shared,
    ) -> Result<(), Stop> {
        let own = |name: &Name| name.of(self.number as usize);
        let values: Vec<_> = metadata.iter().map(|(name, value)| (name, own(value))).collect();
        let metadata: Vec<_> =
            values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let tags: Vec<_> = tags.iter().map(own).collect();
        let tags: Vec<_> = tags.iter().map(String::as_str).collect();
        let asked = client.register(&own(device), &metadata, &tags);
        let request = self.taken(asked, shared)?;
        self.registered_at = self.at;
        self.ask(request.0.into(), What::Register { timing }, true, self.due);
        Ok(())
    }

    pub(super) fn report(
        &mut self,
        payload: &Payload,
        kind: MessageKind,
        timing: u32,
        client: &mut Session,
        shared: &mut Shared,
    ) -> Result<(), Stop> {
        let mut bytes = std::mem::take(&mut shared.payload);
        bytes.clear();
        payload.write(&mut self.random, None, &mut bytes);
        let sent = client.report(&bytes, kind != MessageKind::Send);
        shared.payload = bytes;
        let request = self.taken(sent, shared)?;
        shared.counts.reports += 1;
        self.sent(request, What::Message { timing }, kind, client, shared)
    }

    /// Sends answers to commands, as many as the connection takes now.
    pub(crate) fn answer_commands(&mut self, client: &mut Session, shared: &mut Shared) {
        while let Some((command, payload)) = self.answers.front() {
            if client.is_full() {
                return;
            }
            match client.answer(*command, Ok(payload)) {
                Ok(()) => shared.counts.answers += 1,
                Err(error) => shared.undone(format!("a command could not be answered: {error}")),
            }
            self.answers.pop_front();
        }
    }

    /// Generated answers are JSON: they do not fit a fleet of bytes, which only `registered` tells.
    pub(super) fn check_answers(&self, has_bytes: bool, shared: &mut Shared) {
        let ops = &shared.programs.programs[self.program as usize].ops;
        let op = ops.get(self.registered_at as usize);
        if let (true, Some(Op::Register { answer: Reaction::Answer { shown, .. }, .. })) =
            (has_bytes, op)
        {
            let why = "the payloads of this fleet are bytes; leave answer out, which sends the \
                       command back, or write answer = false";
            shared.misfit = Some(format!("{shown}: {why}"));
        }
    }

    pub(super) fn commanded(&mut self, command: Option<u64>, payload: &[u8], shared: &mut Shared) {
        shared.counts.commands += 1;
        let Some(command) = command else { return };
        let ops = &shared.programs.programs[self.program as usize].ops;
        let Some(Op::Register { answer, .. }) = ops.get(self.registered_at as usize) else {
            return;
        };
        let mut written = Vec::new();
        match answer {
            Reaction::Never => return,
            Reaction::Echo => written.extend_from_slice(payload),
            Reaction::Answer { payload, .. } => {
                payload.write(&mut self.random, None, &mut written);
            }
        }
        if self.answers.len() >= ANSWERS_WAITING_MAX {
            let text = format!("{ANSWERS_WAITING_MAX} answers wait: a command is not answered");
            return shared.undone(text);
        }
        self.answers.push_back((command, written));
    }
}
