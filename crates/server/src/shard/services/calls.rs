//! A shard's calls of its services: their connections, their input, their time, and their end.

use std::net::SocketAddr;
use std::time::Duration;

use crate::addresses::Tally;
use crate::fleet::Gone;
use crate::handle::NodeHandle;
use crate::pulse::Called;
use crate::service::{Answered, AnyService, Closed, Command, Reach, Served};
use crate::shard::connection::Connection;
use crate::shard::connection::transport::Input;
use crate::shard::keys::ConnectionKey;
use crate::shard::rooms::host::Below;
use crate::shard::services::{HostedService, Services};

impl Services {
    /// A client of a service connected.
    pub(crate) fn accept(
        &mut self,
        below: &mut Below<'_>,
        service: u16,
        address: SocketAddr,
        tally: Tally,
    ) -> ConnectionKey {
        let connection = Connection::new(below.env.now, Input::Service(service, None), tally);
        let key = below.links.insert(connection);
        below.links.look_at(key, below.env.now + below.env.node.config.timeouts.heartbeat / 2);
        if below.env.is_shutting_down {
            outlet!(below).close(key, None);
        } else {
            self.connected(below, key, service, address);
        }
        key
    }

    /// Lets services reach the node's rooms.
    pub(crate) fn reach_by(&mut self, handle: NodeHandle) {
        self.handle = Some(handle);
    }

    /// Takes in a service. They are numbered in the order in which they come.
    pub(crate) fn host(&mut self, service: Box<dyn AnyService>) {
        self.hosted.push(HostedService { service, wake_at: None });
    }

    /// Tells a service of a new connection.
    pub(in crate::shard) fn connected(
        &mut self,
        below: &mut Below<'_>,
        key: ConnectionKey,
        service: u16,
        address: SocketAddr,
    ) {
        self.serve(below, key, service, |service, reach| service.connected(key, address, reach));
    }

    /// Hands the whole frames at the front to the service, and says how many bytes are done with.
    pub(in crate::shard) fn received(
        &mut self,
        below: &mut Below<'_>,
        key: ConnectionKey,
        service: u16,
        input: &[u8],
    ) -> usize {
        if below.links.get(key).is_some_and(|connection| connection.doomed) {
            return input.len();
        }
        self.serve(below, key, service, |service, reach| service.received(key, input, reach))
    }

    /// Asks a service to ask its client for a sign of life.
    pub(in crate::shard) fn silent(
        &mut self,
        below: &mut Below<'_>,
        key: ConnectionKey,
        service: u16,
    ) {
        self.serve(below, key, service, |service, reach| service.silent(key, reach));
    }

    /// Gives a service a command for the device of a connection.
    pub(in crate::shard) fn command(
        &mut self,
        below: &mut Below<'_>,
        key: ConnectionKey,
        service: u16,
        command: Command<'_>,
    ) {
        self.serve(below, key, service, |service, reach| service.command(key, command, reach));
    }

    /// Calls a service for a connection, does what comes of it, and says how many bytes of input
    /// are done with.
    fn serve(
        &mut self,
        below: &mut Below<'_>,
        key: ConnectionKey,
        service: u16,
        call: impl FnOnce(&mut dyn AnyService, Reach<'_>) -> Served,
    ) -> usize {
        let Some(served) = self.call(below, service, call) else { return 0 };
        let Served { handled, frames, out, is_behind, ends } = served;
        below.env.counters.messages_in += frames;
        below.links.put(key, out);
        if is_behind && let Some(connection) = below.links.get_mut(key) {
            connection.pause.outbox = true;
        }
        if let Some(why) = ends {
            outlet!(below).close_service(key, why);
        }
        handled
    }

    /// Calls a service with all that it may reach.
    fn call<R>(
        &mut self,
        below: &mut Below<'_>,
        number: u16,
        call: impl FnOnce(&mut dyn AnyService, Reach<'_>) -> R,
    ) -> Option<R> {
        let HostedService { service, wake_at } = self.hosted.get_mut(usize::from(number))?;
        below.env.watch.calls(Called::Service(number));
        let config = &below.env.node.config;
        let reach = Reach {
            shard: below.env.shard,
            service: number,
            now: below.env.now,
            message_bytes_max: config.limits.message_bytes,
            outbox_bytes_max: config.limits.session.outbox_bytes.max,
            outbox_high_bytes: config.limits.session.outbox_bytes.high,
            connections: below.links,
            leaving: &mut self.leaving,
            wake_at,
            node: self.handle.as_ref(),
            at: &below.env.node,
            devices: &mut below.topics.devices,
        };
        Some(call(&mut **service, reach))
    }

    /// Gives a service the answer to its request to a room.
    pub(in crate::shard) fn answered(
        &mut self,
        below: &mut Below<'_>,
        service: u16,
        answer: Answered,
    ) {
        self.call(below, service, |service, reach| service.answered(answer, reach));
    }

    /// Takes a connection from its service, and tells the service why.
    pub(in crate::shard) fn left(
        &mut self,
        below: &mut Below<'_>,
        key: ConnectionKey,
        service: u16,
        why: &Closed,
    ) {
        below.topics.end_device(&mut outlet!(below), key, Gone::ConnectionLost);
        if !matches!(why, Closed::HungUp | Closed::ByService | Closed::ShuttingDown) {
            log::debug!("a connection of service {service} is closed: {why}");
        }
        self.call(below, service, |service, reach| service.closed(key, why, reach));
    }

    /// Closes the connections that services have given up.
    pub(in crate::shard) fn close_leaving(&mut self, below: &mut Below<'_>) {
        while let Some((key, why)) = self.leaving.pop() {
            outlet!(below).close_service(key, why);
        }
    }

    /// Wakes the services that are due.
    pub(in crate::shard) fn wake(&mut self, below: &mut Below<'_>) {
        for number in 0..self.hosted.len() {
            let wake_at = &mut self.hosted[number].wake_at;
            if wake_at.is_some_and(|at| at <= below.env.now) {
                *wake_at = None;
                self.call(below, number as u16, |service, reach| service.woken(reach));
            }
        }
    }

    /// When the next service has to be woken.
    pub(in crate::shard) fn next_wake(&self) -> Option<Duration> {
        self.hosted.iter().filter_map(|hosted| hosted.wake_at).min()
    }
}
