//! Devices come and go.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use playfield_room::Error;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber, excerpt};

use crate::channel::{Payload, PayloadKind};
use crate::device::{Device, Place, Registration};
use crate::fleet::{Gone, device_gone, no_fleet, refusal};
use crate::node::Node;
use crate::pulse::Called;
use crate::service::Closed;
use crate::shard::connection::transport::Input;
use crate::shard::connection::{Kind, Links};
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::ShardMail;
use crate::shard::mail::device::DeviceMail;
use crate::shard::session::outlet::Outlet;
use crate::shard::topics::Topics;
use crate::shard::topics::devices::withdrawal::Unanswered;
use crate::shard::topics::devices::{OwnDevice, ShardDevices, target};

impl ShardDevices {
    /// Registers the device behind a connection. Whether no other had its id.
    pub(crate) fn register(
        &mut self,
        node: &Node,
        connections: &mut Links,
        (key, place): (ConnectionKey, Place),
        registration: Registration,
        now: Duration,
    ) -> Result<bool, Error> {
        let fleet = node.fleet.as_ref().ok_or_else(no_fleet)?;
        if connections.get(key).is_none() {
            return Err(device_gone());
        }
        let known = self.get(key).map(|own| Arc::clone(&own.device));
        if let Some(known) = known.as_ref().filter(|known| known.id() != registration.id) {
            let text = format!(
                "a session is one device, and this is {:?} already: open another connection",
                excerpt(known.id(), 64)
            );
            return Err(Error::new(ErrorCode::Limit, text));
        }
        let (metadata, tags) = match &known {
            Some(_) => (registration.metadata.clone(), registration.tags.clone()),
            None => (Vec::new(), Vec::new()),
        };
        let prepared = fleet.registry.prepare(registration, place, now);
        let prepared = prepared.map_err(|error| refusal(&error))?;
        if let Some(other) = fleet.registry.get(prepared.id())
            && known.as_ref().is_none_or(|known| known.number() != other.number())
        {
            if !fleet.replaces(&other, &prepared) {
                return Err(taken(prepared.id()));
            }
            fleet.take_over(&other, &prepared)?;
        }
        fleet.call(|fleet| fleet.register(&prepared)).unwrap_or_else(|| Err(failed()))?;
        if let Some(known) = known {
            let updated = fleet.registry.update(&known, metadata, tags);
            return updated.map(|()| false).map_err(|error| refusal(&error));
        }
        let registered = fleet.registry.insert(prepared, |other, new| {
            // Another may have come meanwhile.
            fleet.replaces(other, new) && fleet.take_over(other, new).is_ok()
        });
        let registered = registered.map_err(|error| refusal(&error))?;
        if let Some(replaced) = &registered.replaced {
            let (connection, number) = target(replaced);
            let mail = DeviceMail::Replaced { connection, number };
            self.posts.push_back((replaced.place().shard, mail));
        }
        let device = registered.device;
        fleet.call(|fleet| fleet.registered(&device));
        self.begin(connections, (key, place), device);
        Ok(registered.replaced.is_none())
    }

    /// Registers the device of a session of another process, if this node takes it. The fleet is
    /// told by [`go_on`](Self::go_on).
    pub(in crate::shard) fn thaw(
        &mut self,
        node: &Node,
        connections: &mut Links,
        (key, place): (ConnectionKey, Place),
        registration: Registration,
        now: Duration,
    ) {
        let Some(fleet) = &node.fleet else { return };
        let prepared = fleet.registry.prepare(registration, place, now);
        match prepared.and_then(|prepared| fleet.registry.insert(prepared, |_, _| false)) {
            Ok(registered) => self.begin(connections, (key, place), registered.device),
            Err(error) => log::warn!("a device of the process before is left out: {error}"),
        }
    }

    /// Tells the fleet of the devices that go on here.
    pub(in crate::shard) fn go_on(&self, node: &Node) {
        let Some(fleet) = &node.fleet else { return };
        for own in self.own.keys().filter_map(|key| self.get(key)) {
            fleet.call(|fleet| fleet.registered(&own.device));
        }
    }

    fn begin(
        &mut self,
        connections: &mut Links,
        (key, place): (ConnectionKey, Place),
        device: Arc<Device>,
    ) {
        self.count += 1;
        self.posts.push_back((place.shard, DeviceMail::Begun { connection: key }));
        if let Some(connection) = connections.get_mut(key) {
            connection.is_device = true;
        }
        let (unanswered, expired) = (Vec::new(), Vec::new());
        let own = OwnDevice { device, is_silent: false, unanswered, expired };
        self.own.insert(key, Box::new(own));
    }
}

impl Topics {
    /// A client registers as a device.
    pub(in crate::shard) fn register(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        request: RequestNumber,
        id: &str,
        metadata: Vec<(Cow<'_, str>, Cow<'_, str>)>,
        tags: Vec<Cow<'_, str>>,
    ) {
        match self.try_register(out, key, id, metadata, tags) {
            Ok(is_new) => {
                let fleet = out.env.node.fleet.as_ref();
                let bytes = fleet.is_some_and(|fleet| fleet.payload == PayloadKind::Bytes);
                let registered =
                    ServerMessage::Registered(server::Registered { request, is_new, bytes });
                out.send(key, &registered);
            }
            Err(error) => out.send_error(key, Some(request), None, &error),
        }
    }

    fn try_register(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        id: &str,
        metadata: Vec<(Cow<'_, str>, Cow<'_, str>)>,
        tags: Vec<Cow<'_, str>>,
    ) -> Result<bool, Error> {
        let node = Arc::clone(&out.env.node);
        let fleet = node.fleet.as_ref().ok_or_else(no_fleet)?;
        let session = out.sessions.get_mut(key).ok_or_else(device_gone)?;
        let user = session.user().map(str::to_owned);
        if !fleet.admits(id, user.as_deref()) {
            let text = format!("this session may not be the device {:?}", excerpt(id, 64));
            return Err(Error::new(ErrorCode::Forbidden, text));
        }
        let metadata = metadata.into_iter();
        let metadata = metadata.map(|(name, value)| (name.into_owned(), value.into_owned()));
        let registration = Registration {
            id: id.to_owned(),
            user,
            metadata: metadata.collect(),
            tags: tags.into_iter().map(Cow::into_owned).collect(),
        };
        out.env.watch.calls(Called::Fleet);
        let place = Place { shard: out.env.shard, connection: key.bits(), is_service: false };
        let (devices, connections) = (&mut self.devices, &mut out.links);
        devices.register(&node, connections, (key, place), registration, out.env.now)
    }

    /// A device reports.
    pub(in crate::shard) fn report(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        request: Option<RequestNumber>,
        payload: &[u8],
    ) {
        out.env.counters.reports += 1;
        match (self.try_report(out, key, payload), request) {
            (Ok(answer), Some(request)) => {
                out.write(key, Kind::Counted(None), |format, out| {
                    server::write_reply(format, out, request, &answer.written(format));
                });
            }
            (Ok(_), None) => {}
            (Err(error), request) => out.send_error(key, request, None, &error),
        }
    }

    fn try_report(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        payload: &[u8],
    ) -> Result<Payload, Error> {
        let node = Arc::clone(&out.env.node);
        let fleet = node.fleet.as_ref().ok_or_else(no_fleet)?;
        let connection = out.links.get(key).ok_or_else(device_gone)?;
        let Some(own) = self.devices.get(key) else {
            let text = "only devices report: register first";
            return Err(Error::new(ErrorCode::Forbidden, text));
        };
        let report = Payload::read(fleet.payload, connection.dialect.format, payload)
            .map_err(|error| Error::new(ErrorCode::BadPayload, error.to_string()))?;
        out.env.watch.calls(Called::Fleet);
        let answer = fleet.call(|fleet| fleet.report(&own.device, report.as_slice()));
        let answer = answer.unwrap_or_else(|| Err(failed()))?;
        fleet.payload(&answer).map_err(|error| {
            log::error!("the fleet's answer to a report: {error}");
            failed()
        })
    }

    /// Carries out what concerns devices of this shard, and passes on the rest.
    pub(in crate::shard) fn deliver_device_mail(&mut self, out: &mut Outlet<'_>) {
        while let Some((shard, mail)) = self.devices.posts.pop_front() {
            if shard == out.env.shard {
                self.device_mail(out, mail);
            } else {
                out.outbound.post(shard, ShardMail::Device(mail));
            }
        }
    }

    pub(in crate::shard) fn device_mail(&mut self, out: &mut Outlet<'_>, mail: DeviceMail) {
        match mail {
            DeviceMail::Command { to, payload, asks } => self.command(out, &to, &payload, asks),
            DeviceMail::Replaced { connection, number } => {
                if self.is_device(connection, number) {
                    self.devices.taken_over += 1;
                    self.end_device(out, connection, Gone::TakenOver);
                    let text = "another has registered as this device";
                    out.part(connection, ErrorCode::TakenOver, text, Closed::TakenOver);
                }
            }
            DeviceMail::Disconnect { connection, number, text } => {
                if self.is_device(connection, number) {
                    self.end_device(out, connection, Gone::Disconnected);
                    out.part(connection, ErrorCode::Kicked, &text, Closed::Disconnected);
                }
            }
            DeviceMail::Heard { connection } => self.device_heard(out, connection),
            DeviceMail::Begun { connection } => self.note_silence(out, connection),
        }
    }

    /// Returns whether the connection is that of the device with this number.
    pub(super) fn is_device(&self, key: ConnectionKey, number: u64) -> bool {
        let own = self.devices.get(key);
        own.is_some_and(|own| own.device.number() == number)
    }

    /// The session or the connection behind a device ends.
    pub(in crate::shard) fn end_device(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        why: Gone,
    ) {
        let Some(own) = self.devices.own.remove(key) else { return };
        if let Some(connection) = out.links.get_mut(key) {
            connection.is_device = false;
        }
        let OwnDevice { device, is_silent, unanswered, .. } = *own;
        let node = Arc::clone(&out.env.node);
        for Unanswered { number, deadline, .. } in unanswered {
            self.devices.deadlines.remove(&(deadline, number));
            node.asks.answer(number, Err(device_gone()));
        }
        self.devices.count -= 1;
        self.devices.silent -= u64::from(is_silent);
        let Some(fleet) = &node.fleet else { return };
        fleet.registry.remove(&device);
        out.env.watch.calls(Called::Fleet);
        let why = if out.env.is_shutting_down && why == Gone::ConnectionLost {
            Gone::ShuttingDown
        } else {
            why
        };
        fleet.call(|fleet| fleet.gone(&device, why));
    }
}

impl Outlet<'_> {
    fn part(&mut self, key: ConnectionKey, code: ErrorCode, text: &str, why: Closed) {
        let connection = self.links.get(key);
        if connection.is_some_and(|of| matches!(of.input, Input::Service(..))) {
            self.close_service(key, why);
        } else {
            self.goodbye(key, code, text, None);
        }
    }
}

fn taken(id: &str) -> Error {
    let text = format!("another is registered as the device {:?}", excerpt(id, 64));
    Error::new(ErrorCode::DeviceTaken, text)
}

fn failed() -> Error {
    Error::new(ErrorCode::Internal, "the fleet failed; the node's log says more")
}
