//! Devices, from outside the node's rooms.

use std::sync::Arc;
use std::time::Duration;

use playfield_room::{Push, Result, Target};
use playfield_state::{Data, Format};
use playfield_wire::ErrorCode;

use super::{NodeHandle, Pending, Waiting};
use crate::asks::Answer;
use crate::channel::Payload;
use crate::device::{Cursor, Device, Page};
use crate::fleet::{HostedFleet, no_fleet, refusal};
use crate::shard::mail::ShardMail;
use crate::shard::mail::device::DeviceMail;
use crate::shard::topics::channels::payload_of;
use crate::shard::topics::devices::target;

impl NodeHandle {
    /// The node's devices.
    #[must_use]
    pub fn devices(&self) -> Devices<'_> {
        Devices { node: self }
    }
}

/// The devices of a node: see [`NodeHandle::devices`].
#[derive(Clone, Copy, Debug)]
pub struct Devices<'a> {
    node: &'a NodeHandle,
}

impl Devices<'_> {
    fn fleet(&self) -> Result<&HostedFleet> {
        self.node.node.fleet.as_ref().ok_or_else(no_fleet)
    }

    /// The device of this id, if it is registered.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Arc<Device>> {
        self.fleet().ok()?.registry.get(id)
    }

    /// Returns the number of devices. Takes no lock.
    #[must_use]
    pub fn count(&self) -> usize {
        self.fleet().map_or(0, |fleet| fleet.registry.count())
    }

    /// Returns the number of devices with this tag.
    #[must_use]
    pub fn count_of_tag(&self, tag: &str) -> usize {
        self.fleet().map_or(0, |fleet| fleet.registry.count_of_tag(tag))
    }

    /// Up to `limit` devices, in no particular order: the first with the default cursor, then with
    /// that of the page before. Those that come or go meanwhile may be listed or not; all others
    /// are, once.
    #[must_use]
    pub fn list(&self, from: Cursor, limit: usize) -> Page {
        self.fleet().map_or_else(|_| Page::default(), |fleet| fleet.registry.list(from, limit))
    }

    /// Like [`list`](Self::list), for devices that have this tag.
    #[must_use]
    pub fn list_tag(&self, tag: &str, from: Cursor, limit: usize) -> Page {
        self.fleet()
            .map_or_else(|_| Page::default(), |fleet| fleet.registry.list_tag(tag, from, limit))
    }

    /// The time since the node started, as [`Device::last_seen`] has it.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.node.shared.clock.now()
    }

    /// Pushes a value to one device, by its id, to all that have a tag, or to all. The fleet's
    /// payloads are JSON. How many devices it is sent to.
    ///
    /// A device whose connection was lost gets it once when it comes back, however long that takes.
    /// If its session ends before that, or more than `limits.session.resume_bytes` waits for it, it
    /// is lost.
    ///
    /// # Errors
    /// `unknown_device` if none has the id, `bad_payload` if the fleet's payloads are bytes,
    /// `limit` past `limits.payload_bytes`, `forbidden` if the node has no fleet, `busy` if the
    /// mailbox of a shard is full (`limits.queues.mail`), `internal` if a shard has failed, or
    /// `shutting_down`. Of many devices, some may have been sent it then.
    pub fn push(&self, to: impl Into<Target>, value: &impl Data) -> Result<usize> {
        self.push_payload(Push::json(to, value))
    }

    /// Pushes bytes, in a fleet whose payloads are bytes, as [`push`](Self::push).
    ///
    /// # Errors
    /// As [`push`](Self::push), and `bad_payload` if the fleet's payloads are JSON.
    pub fn push_bytes(&self, to: impl Into<Target>, bytes: &[u8]) -> Result<usize> {
        let payload = playfield_room::Payload::Bytes(bytes.to_vec());
        self.push_payload(Push { to: to.into(), payload })
    }

    fn push_payload(&self, Push { to, payload }: Push) -> Result<usize> {
        let fleet = self.fleet()?;
        let payload = payload_of(payload);
        self.node.node.check_command(&payload)?;
        fleet.push(&to, payload, |shard, mail| self.node.post(shard, ShardMail::Device(mail)))
    }

    /// Sends a request to a device, whose payloads are JSON, and waits for the answer as long as
    /// `timeout`. As [`NodeHandle::ask`], the answer is the output of the future.
    ///
    /// A request whose time is over is withdrawn: a device whose connection is lost does not get it
    /// when it comes back. What was already sent to a device can't be withdrawn. It may carry it
    /// out although this failed with `timeout`, if it was slow to answer or its answer got lost.
    /// Commands that must not be late say in their payload until when they are valid.
    ///
    /// # Errors
    /// The device's refusal is `refused`, with its text. As [`push`](Self::push); `timeout` without
    /// an answer in time, `unknown_device` if the device goes before it answers, `busy` past
    /// `limits.device.commands` or `limits.queues.asks`.
    pub fn request<T: Data>(&self, id: &str, value: &impl Data, timeout: Duration) -> Pending<T> {
        let read = |answer: Answer| {
            T::read(Format::Json, &answer?).map_err(|error| {
                let text = format!("the device's answer: {error}");
                playfield_room::Error::new(ErrorCode::BadPayload, text)
            })
        };
        Pending::new(read, self.begin(id, payload_of(Push::json(id, value).payload), timeout))
    }

    /// Sends a request in bytes, as [`request`](Self::request).
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn request_bytes(&self, id: &str, bytes: &[u8], timeout: Duration) -> Pending<Vec<u8>> {
        Pending::new(|answer| answer, self.begin(id, Payload::Bytes(bytes.into()), timeout))
    }

    fn begin(&self, id: &str, payload: Payload, timeout: Duration) -> Result<Waiting> {
        self.node.node.check_command(&payload)?;
        let device = self.fleet()?.get(id)?;
        let shard = device.place().shard;
        let (number, answer) = self.node.node.asks.begin_for_device(shard, timeout)?;
        let waiting = Waiting { node: Arc::clone(&self.node.node), number, answer };
        let (to, payload) = (vec![target(&device)], Arc::new(payload));
        let mail = DeviceMail::Command { to, payload, asks: Some((number, timeout)) };
        self.node.post(shard, ShardMail::Device(mail))?;
        Ok(waiting)
    }

    /// Changes the tags of a device, whatever it registered with.
    ///
    /// # Errors
    /// `unknown_device`, or `limit` past `limits.device.tags` or `limits.name_bytes.device`.
    pub fn set_tags<T: Into<String>>(
        &self,
        id: &str,
        tags: impl IntoIterator<Item = T>,
    ) -> Result<()> {
        let fleet = self.fleet()?;
        let device = fleet.get(id)?;
        let tags = tags.into_iter().map(Into::into).collect();
        fleet.registry.set_tags(&device, tags).map_err(|error| refusal(&error))
    }

    /// Ends the session, or the connection to a service, behind a device. A session's client is
    /// sent `kicked` with this text.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn disconnect(&self, id: &str, text: impl Into<String>) -> Result<()> {
        let device = self.fleet()?.get(id)?;
        let (connection, number) = target(&device);
        let mail = DeviceMail::Disconnect { connection, number, text: text.into() };
        self.node.post(device.place().shard, ShardMail::Device(mail))
    }
}
