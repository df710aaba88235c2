//! A shard's calls of its services: their connections, their input, their time, and their end.

use std::net::SocketAddr;
use std::time::Duration;

use crate::addresses::Tally;
use crate::fleet::Gone;
use crate::service::{Answered, AnyService, Closed, Command, Reach, Served};
use crate::shard::Shard;
use crate::shard::connection::Connection;
use crate::shard::connection::transport::Input;
use crate::shard::keys::ConnectionKey;
use crate::shard::services::HostedService;

impl Shard {
    /// Takes in a service. They are numbered in the order in which they come.
    pub(crate) fn host(&mut self, service: Box<dyn AnyService>) {
        self.services.hosted.push(HostedService { service, wake_at: None });
    }

    /// A client of a service connected.
    pub(crate) fn accepted_for(
        &mut self,
        service: u16,
        address: SocketAddr,
        tally: Tally,
    ) -> ConnectionKey {
        let connection = Connection::new(self.env.now, Input::Service(service, None), tally);
        let key = self.links.insert(connection);
        self.links.look_at(key, self.env.now + self.env.node.config.heartbeat() / 2);
        if self.env.is_shutting_down {
            outlet!(self).close(key, None);
        } else {
            self.serve_newcomer(key, service, address);
        }
        self.apply_effects();
        key
    }

    /// Tells a service of a new connection.
    pub(in crate::shard) fn serve_newcomer(
        &mut self,
        key: ConnectionKey,
        service: u16,
        address: SocketAddr,
    ) {
        self.serve(key, service, |service, reach| service.connected(key, address, reach));
    }

    /// Hands the whole frames at the front to the service, and says how many bytes are done with.
    pub(in crate::shard) fn handle_service(
        &mut self,
        key: ConnectionKey,
        service: u16,
        input: &[u8],
    ) -> usize {
        if self.links.get(key).is_some_and(|connection| connection.doomed) {
            return input.len();
        }
        self.serve(key, service, |service, reach| service.received(key, input, reach))
    }

    /// Asks a service to ask its client for a sign of life.
    pub(in crate::shard) fn ask_service_for_life(&mut self, key: ConnectionKey, service: u16) {
        self.serve(key, service, |service, reach| service.silent(key, reach));
    }

    /// Gives a service a command for the device of a connection.
    pub(in crate::shard) fn command_service(
        &mut self,
        key: ConnectionKey,
        service: u16,
        command: Command<'_>,
    ) {
        self.serve(key, service, |service, reach| service.command(key, command, reach));
    }

    /// Calls a service for a connection, does what comes of it, and says how many bytes of input
    /// are done with.
    fn serve(
        &mut self,
        key: ConnectionKey,
        service: u16,
        call: impl FnOnce(&mut dyn AnyService, Reach<'_>) -> Served,
    ) -> usize {
        let Some(served) = self.call_service(service, call) else { return 0 };
        let Served { handled, frames, out, is_behind, ends } = served;
        self.env.counters.messages_in += frames;
        self.links.put(key, out);
        if is_behind && let Some(connection) = self.links.get_mut(key) {
            connection.pause.outbox = true;
        }
        if let Some(why) = ends {
            outlet!(self).close_service(key, why);
        }
        handled
    }

    /// Calls a service with all that it may reach.
    fn call_service<R>(
        &mut self,
        number: u16,
        call: impl FnOnce(&mut dyn AnyService, Reach<'_>) -> R,
    ) -> Option<R> {
        let HostedService { service, wake_at } =
            self.services.hosted.get_mut(usize::from(number))?;
        self.env.watch.enters_service(number);
        let config = &self.env.node.config;
        let reach = Reach {
            shard: self.env.shard,
            service: number,
            now: self.env.now,
            message_bytes_max: config.max_message_bytes,
            outbox_bytes_max: config.outbox_bytes_max,
            outbox_high_bytes: config.outbox_high_bytes,
            connections: &mut self.links,
            leaving: &mut self.services.leaving,
            wake_at,
            node: self.services.handle.as_ref(),
            at: &self.env.node,
            devices: &mut self.topics.devices,
        };
        Some(call(&mut **service, reach))
    }

    /// Gives a service the answer to its request to a room.
    pub(in crate::shard) fn answered(&mut self, service: u16, answer: Answered) {
        self.call_service(service, |service, reach| service.answered(answer, reach));
    }

    /// A connection is no longer one of a service, which learns why.
    pub(in crate::shard) fn left_service(
        &mut self,
        key: ConnectionKey,
        service: u16,
        why: &Closed,
    ) {
        self.topics.end_device(&mut outlet!(self), key, Gone::ConnectionLost);
        if !matches!(why, Closed::HungUp | Closed::ByService | Closed::ShuttingDown) {
            log::debug!("a connection of service {service} is closed: {why}");
        }
        self.call_service(service, |service, reach| service.closed(key, why, reach));
    }

    /// Closes the connections that services have given up.
    pub(in crate::shard) fn close_leaving(&mut self) {
        while let Some((key, why)) = self.services.leaving.pop() {
            outlet!(self).close_service(key, why);
        }
    }

    /// Wakes the services that are due.
    pub(in crate::shard) fn wake_services(&mut self) {
        for number in 0..self.services.hosted.len() {
            let wake_at = &mut self.services.hosted[number].wake_at;
            if wake_at.is_some_and(|at| at <= self.env.now) {
                *wake_at = None;
                self.call_service(number as u16, |service, reach| service.woken(reach));
            }
        }
    }

    /// When the next service has to be woken.
    pub(in crate::shard) fn next_service_wake(&self) -> Option<Duration> {
        self.services.hosted.iter().filter_map(|hosted| hosted.wake_at).min()
    }
}
