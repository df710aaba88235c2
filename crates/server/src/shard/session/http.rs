//! The handling of a connection's first request.

use std::net::SocketAddr;
use std::sync::Arc;

use playfield_websocket::handshake::{self, Request, Upgrade};
use playfield_websocket::{Agreed, Deflate};

use crate::config::Origin;
use crate::service::Closed;
use crate::shard::connection::Connection;
use crate::shard::connection::http::{HandedOver, Http, Refusal, client_of, crowded, parse_head};
use crate::shard::connection::transport::Input;
use crate::shard::env::SHUTTING_DOWN;
use crate::shard::keys::ConnectionKey;
use crate::shard::outbound::Effect;
use crate::shard::session::outlet::Outlet;

impl Outlet<'_> {
    /// Reads the head at the front of the input. Consumes what is done with: the head of a
    /// WebSocket request, or all, if the connection leaves or ends.
    pub(in crate::shard) fn handle_http(&mut self, key: ConnectionKey, input: &[u8]) -> usize {
        let node = Arc::clone(&self.env.node);
        let head_bytes_max = node.config.http.head_bytes;
        match parse_head(input, head_bytes_max) {
            Ok(None) => 0,
            Ok(Some((request, _))) => {
                if let Some(upgrade) = &request.upgrade {
                    self.upgrade(key, &request, upgrade);
                    return request.head_bytes;
                }
                self.links.hand_over(key, input);
                input.len()
            }
            Err(Refusal { status, text }) => {
                self.env.counters.http_heads_too_large += u64::from(status == 431);
                self.refuse_http(key, status, &text);
                input.len()
            }
        }
    }

    /// A connection that was handed over is back, with what its client sent: a request for a
    /// WebSocket first. It is handled when the connection is visited.
    pub(crate) fn handed_back(&mut self, http: HandedOver) -> ConnectionKey {
        let HandedOver { peer, tally, input } = http;
        let first = Input::Http(Box::new(Http { peer, since: self.env.now }));
        let mut connection = Connection::new(self.env.now, first, tally);
        connection.partial = input.into();
        let key = self.links.insert(connection);
        self.links.look_at(key, self.env.now + self.env.node.config.http.request_timeout);
        if self.env.is_shutting_down {
            self.go_away(key, SHUTTING_DOWN);
        }
        key
    }

    /// Answers with an error, after which nothing more is read.
    pub(in crate::shard) fn refuse_http(&mut self, key: ConnectionKey, status: u16, text: &str) {
        self.links.append(key, |out| {
            handshake::reject(out, status, &format!("{text}\n"));
            true
        });
        self.close(key, None);
    }

    /// Turns a connection into a WebSocket, as its request asks for.
    fn upgrade(&mut self, key: ConnectionKey, request: &Request<'_>, upgrade: &Upgrade<'_>) {
        let node = Arc::clone(&self.env.node);
        let config = &node.config;
        let now = self.env.now;
        let Some(connection) = self.links.slab.get_mut(key) else { return };
        let Input::Http(http) = &mut connection.input else { return };
        let mut response = Vec::new();
        let path = request.target.split('?').next().unwrap_or_default();
        let service = node.service_at(path);
        let client = client_of(&node, http.peer, request);
        if client != http.peer {
            self.links.unnamed.note(client, now);
        }
        let (mut tally, mut is_crowded) = (Ok(()), None);
        if client != http.peer {
            tally = connection.tally.come_from(node.addresses.of(client, now));
        }
        // A service's client need not say hello.
        let tally = tally.and_then(|()| match service {
            None => connection.tally.begin_handshake(),
            Some(_) => Ok(()),
        });
        let upgraded = if !Origin::is_allowed(upgrade.origin(), &config.websocket.allowed_origins) {
            self.links.turned_away.note_origin(upgrade.origin().unwrap_or_default(), now);
            let text = "websocket.allowed_origins: pages of this origin may not connect\n";
            handshake::reject(&mut response, 403, text);
            self.env.counters.origins_refused += 1;
            None
        } else if let Err(why) = tally {
            handshake::reject(&mut response, 429, crowded(why));
            is_crowded = Some(why);
            None
        } else {
            let is_deflated = config.websocket.deflate && service.is_none();
            let wishes = is_deflated.then(Deflate::default);
            let agreed = wishes.and_then(|wishes| upgrade.deflate(&wishes));
            let accepted = handshake::accept(&mut response, upgrade, None, agreed.as_ref());
            accepted.is_ok().then_some(agreed)
        };
        if let (Some(agreed), None) = (&upgraded, service) {
            self.links.become_websocket(key, agreed.as_ref().map(Agreed::deflate), self.env);
        }
        if let Some(why) = is_crowded {
            self.links.note_crowded(self.env, why, client.address.ip());
        }
        self.links.append(key, |out| {
            out.extend_from_slice(&response);
            true
        });
        match (upgraded, service) {
            (Some(_), Some(service)) => self.enter_service(key, service, client.address),
            (Some(_), None) => {}
            (None, _) => self.close(key, None),
        }
    }

    /// Hands a connection that has become a WebSocket to a service.
    fn enter_service(&mut self, key: ConnectionKey, service: u16, address: SocketAddr) {
        let Some(kept) = self.links.become_service(key, service, self.env) else { return };
        if self.env.is_shutting_down {
            return self.close_service(key, Closed::ShuttingDown);
        }
        let effect = Effect::ServiceEntered { key, service, address, kept };
        self.outbound.effects.push_back(effect);
    }

    /// Checks the timeout of a connection whose first head is coming in.
    pub(in crate::shard) fn examine_http(&mut self, key: ConnectionKey) {
        let config = &self.env.node.config;
        let limit = config.http.request_timeout;
        let Some(connection) = self.links.get(key) else { return };
        let Input::Http(http) = &connection.input else { return };
        let by = http.since + limit;
        if self.env.now < by {
            return self.links.look_at(key, by);
        }
        let text = format!("http.request_timeout: the request was not complete within {limit:?}");
        self.refuse_http(key, 408, &text);
    }
}
