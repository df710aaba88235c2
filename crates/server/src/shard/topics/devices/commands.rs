//! Commands to devices, and their answers.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use playfield_room::{Error, Push, Target};
use playfield_wire::{ErrorCode, Format, server};

use crate::asks::Answer;
use crate::channel::Payload;
use crate::device::{Cursor, Device};
use crate::fleet::{HostedFleet, device_gone, no_fleet};
use crate::node::Node;
use crate::service::{CommandId, ConnectionId};
use crate::shard::connection::Kind;
use crate::shard::connection::transport::Input;
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::device::DeviceMail;
use crate::shard::outbound::Effect;
use crate::shard::session::outlet::Outlet;
use crate::shard::topics::Topics;
use crate::shard::topics::channels::payload_of;
use crate::shard::topics::devices::withdrawal::Unanswered;
use crate::shard::topics::devices::{ShardDevices, target};

/// The most devices that one mail is for.
const PER_MAIL: usize = 1024;

impl HostedFleet {
    /// Has a push sent to all that it is for, by `post`; how many they are.
    pub(crate) fn push(
        &self,
        to: &Target,
        payload: Payload,
        mut post: impl FnMut(u16, DeviceMail) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        let payload = Arc::new(payload);
        let mut send = |devices: &[Arc<Device>]| {
            let mut shards: Vec<(u16, Vec<_>)> = Vec::new();
            for device in devices {
                let shard = device.place().shard;
                match shards.iter_mut().find(|(of, _)| *of == shard) {
                    Some((_, to)) => to.push(target(device)),
                    None => shards.push((shard, vec![target(device)])),
                }
            }
            for (shard, to) in shards {
                let payload = Arc::clone(&payload);
                post(shard, DeviceMail::Command { to, payload, asks: None })?;
            }
            Ok::<_, Error>(devices.len())
        };
        let list = |from| match to {
            Target::Tag(tag) => self.registry.list_tag(tag, from, PER_MAIL),
            _ => self.registry.list(from, PER_MAIL),
        };
        if let Target::Device(id) = to {
            return send(&[self.get(id)?]);
        }
        let (mut sent, mut next) = (0, Some(Cursor::default()));
        while let Some(from) = next {
            let page = list(from);
            sent += send(&page.devices)?;
            next = page.next;
        }
        Ok(sent)
    }
}

impl Node {
    /// Whether a room, a service or the program may send this to devices.
    pub(crate) fn check_command(&self, payload: &Payload) -> Result<(), Error> {
        let fleet = self.fleet.as_ref().ok_or_else(no_fleet)?;
        if fleet.payload != payload.kind() {
            let text = match payload {
                Payload::Json(_) => "payloads of the fleet are bytes: push bytes",
                Payload::Bytes(_) => "payloads of the fleet are JSON: push a value",
            };
            return Err(Error::new(ErrorCode::BadPayload, text));
        }
        let (bytes, bytes_max) = (payload.as_slice().len(), self.config.limits.payload_bytes);
        if bytes > bytes_max {
            let text =
                format!("limits.payload_bytes: a command of {bytes} bytes, past {bytes_max}");
            return Err(Error::new(ErrorCode::Limit, text));
        }
        Ok(())
    }
}

impl Topics {
    /// A room pushes to devices.
    pub(in crate::shard) fn push_to_devices(
        &mut self,
        out: &mut Outlet<'_>,
        Push { to, payload }: Push,
    ) {
        if let Err(error) = self.try_push(out, &to, payload_of(payload)) {
            out.env.counters.pushes_refused += 1;
            if error.code() == ErrorCode::UnknownDevice {
                // A room does not see which devices there are.
                log::debug!("a room can't push to {to:?}: {error}");
            } else if self.pushes_logged.is_due(error.code(), self.channels.now) {
                log::warn!(
                    "a room can't push to {to:?}: {error}. Further ones like it are only counted \
                     for a minute"
                );
            }
        }
    }

    fn try_push(
        &mut self,
        out: &mut Outlet<'_>,
        to: &Target,
        payload: Payload,
    ) -> Result<usize, Error> {
        let node = Arc::clone(&out.env.node);
        node.check_command(&payload)?;
        let fleet = node.fleet.as_ref().ok_or_else(no_fleet)?;
        fleet.push(to, payload, |shard, mail| {
            let is_here = shard == out.env.shard;
            let is_full = if is_here {
                self.devices.posts.len() >= node.config.limits.queues.mail
            } else {
                out.outbound.congested[usize::from(shard)]
            };
            if is_full {
                let text = "limits.queues.mail: the mailbox of the device's shard is full";
                return Err(Error::new(ErrorCode::Busy, text));
            }
            self.devices.posts.push_back((shard, mail));
            Ok(())
        })
    }
}

impl ShardDevices {
    /// Takes an answer to a command, if it was sent to this connection and is waited for.
    pub(crate) fn answer(
        &mut self,
        node: &Node,
        (key, number): (ConnectionKey, u64),
        answer: Answer,
    ) -> bool {
        let Some(own) = self.get_mut(key) else { return false };
        let Some(at) = own.unanswered.iter().position(|of| of.number == number) else {
            return false;
        };
        let Unanswered { deadline, .. } = own.unanswered.swap_remove(at);
        self.deadlines.remove(&(deadline, number));
        node.asks.answer(number, answer);
        true
    }

    /// When the next request is given up.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.deadlines.first_key_value().map(|((deadline, _), _)| *deadline)
    }
}

impl Topics {
    /// A device answers a command.
    pub(in crate::shard) fn answer_command(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        number: u64,
        error: Option<Cow<'_, str>>,
        payload: &[u8],
    ) {
        let node = Arc::clone(&out.env.node);
        let Some(fleet) = &node.fleet else { return };
        let Some(connection) = out.links.get(key) else { return };
        let format = connection.dialect.format;
        let answer = match error {
            Some(text) => Err(Error::new(ErrorCode::Refused, text.into_owned())),
            None => Payload::read(fleet.payload, format, payload)
                .map(|payload| payload.as_slice().to_vec())
                .map_err(|error| Error::new(ErrorCode::BadPayload, error.to_string())),
        };
        self.devices.answer(&node, (key, number), answer);
    }

    /// Sends a command to devices of this shard.
    pub(super) fn command(
        &mut self,
        out: &mut Outlet<'_>,
        to: &[(ConnectionKey, u64)],
        payload: &Arc<Payload>,
        asks: Option<(u64, Duration)>,
    ) {
        // Encoded once for each format.
        let mut bodies: Vec<(Format, Vec<u8>)> = Vec::new();
        for &(key, number) in to {
            if !self.is_device(key, number) {
                out.refuse_command(asks, device_gone);
                continue;
            }
            if let Some((ask, wait)) = asks
                && !self.expect_answer(out, key, ask, wait)
            {
                continue;
            }
            out.env.counters.commands += 1;
            let Some(connection) = out.links.get(key) else { continue };
            let ask = asks.map(|(ask, _)| ask);
            if let Input::Service(service, _) = connection.input {
                let connection = ConnectionId { shard: out.env.shard, key };
                let id = ask.map(|number| CommandId { connection, number });
                let payload = Arc::clone(payload);
                let effect = Effect::ServiceCommand { key, service, id, payload };
                out.outbound.effects.push_back(effect);
                continue;
            }
            let format = connection.dialect.format;
            let at = bodies.iter().position(|(of, _)| *of == format).unwrap_or_else(|| {
                let payload = payload.written(format);
                let mut body = Vec::new();
                server::Command { command: ask, payload }.encode(format, &mut body);
                bodies.push((format, body));
                bodies.len() - 1
            });
            let body = &bodies[at].1;
            let bytes_max = out.env.node.config.limits.session.outbox_bytes.max;
            let unsent = connection.unsent();
            if !connection.held && unsent > 0 && unsent + body.len() > bytes_max {
                let text = format!(
                    "limits.session.outbox_bytes.max: more than {bytes_max} bytes are unsent"
                );
                out.links.doom(out.env, key, ErrorCode::TooSlow, text);
                continue;
            }
            let write = |_: Format, out: &mut Vec<u8>| out.extend_from_slice(body);
            out.write(key, Kind::Counted(None), write);
            if asks.is_some() {
                self.note_request(out, key);
            }
        }
    }

    /// Notes a request to a device. Whether it may be sent.
    fn expect_answer(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        ask: u64,
        wait: Duration,
    ) -> bool {
        let unanswered_max = out.env.node.config.limits.device.commands;
        let Some(own) = self.devices.get_mut(key) else { return false };
        if own.unanswered.len() >= unanswered_max {
            out.refuse_command(Some((ask, wait)), || {
                let text =
                    format!("limits.device.commands: {unanswered_max} requests to the device wait");
                Error::new(ErrorCode::Busy, text)
            });
            return false;
        }
        let deadline = out.env.now.saturating_add(wait);
        own.unanswered.push(Unanswered { number: ask, deadline, message: 0 });
        self.devices.deadlines.insert((deadline, ask), key);
        true
    }

    /// Gives up requests that devices have not answered in time.
    pub(in crate::shard) fn expire_commands(&mut self, out: &mut Outlet<'_>) {
        let node = Arc::clone(&out.env.node);
        while let Some(entry) = self.devices.deadlines.first_entry()
            && entry.key().0 <= out.env.now
        {
            let ((_, number), key) = entry.remove_entry();
            if let Some(own) = self.devices.get_mut(key)
                && let Some(at) = own.unanswered.iter().position(|of| of.number == number)
            {
                let Unanswered { message, .. } = own.unanswered.swap_remove(at);
                own.expired.push(message);
                self.withdraw_expired(out, key);
            }
            out.env.counters.commands_unanswered += 1;
            let text = "the device did not answer in time";
            node.asks.answer(number, Err(Error::new(ErrorCode::Timeout, text)));
        }
    }
}

impl Outlet<'_> {
    fn refuse_command(&self, asks: Option<(u64, Duration)>, why: impl FnOnce() -> Error) {
        if let Some((ask, _)) = asks {
            self.env.node.asks.answer(ask, Err(why()));
        }
    }
}
