//! The handling of requests by HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use playfield_http::{Request, Response, Sending, Step, write_continue};
use playfield_websocket::handshake::{self, HeadLimits};
use playfield_websocket::{Agreed, Decoder, Deflate, Role};
use tokio::sync::{mpsc, oneshot};

use crate::config::Origin;
use crate::http::{Answer, Call, Found, Full, Hold, Part, Then, Work};
use crate::service::Closed;
use crate::shard::connection::carrier::Carrier;
use crate::shard::connection::deflated::Deflated;
use crate::shard::connection::http::{
    Http, client_of, crowded, overload, period, refusal, unavailable,
};
use crate::shard::connection::transport::{Framing, Input, websocket_limits};
use crate::shard::keys::ConnectionKey;
use crate::shard::outbound::Effect;
use crate::shard::session::outlet::Outlet;

impl Outlet<'_> {
    pub(super) fn http_mut(&mut self, key: ConnectionKey) -> Option<&mut Http> {
        match &mut self.links.get_mut(key)?.input {
            Input::Http(http) => Some(http),
            _ => None,
        }
    }

    /// Handles the requests at the front of the input, and says how many bytes are done with.
    pub(in crate::shard) fn handle_http(&mut self, key: ConnectionKey, input: &[u8]) -> usize {
        let mut handled = 0;
        loop {
            let Some(connection) = self.links.get_mut(key) else {
                return input.len();
            };
            let takes_input = connection.takes_input();
            let Input::Http(http) = &mut connection.input else { return handled };
            if http.ends {
                return input.len();
            }
            if !takes_input {
                return handled;
            }
            let left = &input[handled..];
            match http.parser.parse(left) {
                Ok((consumed, step)) => {
                    handled += consumed;
                    match step {
                        Step::Partial if consumed > 0 => {}
                        Step::Partial => {
                            // Also if all of it was consumed, as part of a body.
                            let is_idle = left.is_empty() && http.parser.is_idle();
                            let since = http.receives_since.filter(|_| !is_idle);
                            http.receives_since = since.or((!is_idle).then_some(self.env.now));
                            return handled;
                        }
                        Step::Head => self.http_head(key),
                        Step::Complete(request) => self.http_request(key, request),
                    }
                }
                Err(error) => {
                    let is_too_large = error.status() == 431;
                    self.env.counters.http_heads_too_large += u64::from(is_too_large);
                    self.refuse_http(key, error.status(), &error.to_string());
                    return input.len();
                }
            }
        }
    }

    /// A head is complete: it may ask for a WebSocket, or for a sign that a body is welcome.
    fn http_head(&mut self, key: ConnectionKey) {
        let node = Arc::clone(&self.env.node);
        let Some(http) = self.http_mut(key) else { return };
        let Some(head) = http.parser.head() else { return };
        if head.upgrades_to_websocket() {
            return self.upgrade_when_answered(key);
        }
        if head.expects_continue() {
            match refusal(&node.site.find(head.method(), head.path())) {
                None => {
                    http.owes_continue = true;
                    self.pump_http(key);
                }
                // The body may follow or not, so that no request can be found after it.
                Some(response) => self.end_with(key, &response),
            }
        }
    }

    /// A request is complete.
    fn http_request(&mut self, key: ConnectionKey, request: Request) {
        self.env.counters.http_requests += 1;
        let node = Arc::clone(&self.env.node);
        let (now, shard) = (self.env.now, self.env.shard);
        let Some(connection) = self.links.slab.get_mut(key) else { return };
        let Input::Http(http) = &mut connection.input else { return };
        let head = request.head();
        let sending = Sending {
            head_only: head.method() == "HEAD",
            keeps_alive: head.keeps_alive(),
            is_http_1_0: head.is_http_1_0(),
            date: None,
        };
        http.receives_since = None;
        http.owes_continue = false;
        http.active = now;
        http.ends |= !sending.keeps_alive;
        connection.tally.settle();
        let client = client_of(&node, http.peer, head);
        if client != http.peer {
            self.links.unnamed.note(client, now);
        }
        let exchange = http.push(sending, now + node.config.http_answer_timeout());
        let (work, hold, params) = match node.site.find(request.method(), request.path()) {
            Found::Route { number, params } => {
                let (stays, gone) = oneshot::channel();
                (Work::Route { number, gone }, Hold::Route { _gone: stays }, params)
            }
            Found::File { folder } => {
                let (pull, pulls) = mpsc::channel(1);
                (Work::File { folder, pulls }, Hold::File { pulls: pull }, Vec::new())
            }
            Found::Page(page) => {
                exchange.fill(|out, how| page.answer(&request).write(out, how));
                return self.pump_http(key);
            }
            found => {
                let response = refusal(&found).unwrap_or_else(|| Response::new(404));
                exchange.fill(|out, how| response.write(out, how));
                return self.pump_http(key);
            }
        };
        let answer = Answer {
            shard,
            connection: key,
            exchange: exchange.number,
            head_only: sending.head_only,
            keeps_alive: sending.keeps_alive,
            is_http_1_0: sending.is_http_1_0,
        };
        let bytes = request.body().len();
        let request = request.with_origin(params, client.address);
        let full = match node.desk.admit(client, bytes, now) {
            Ok(under_way) => {
                if node.desk.submit(Call { answer, request, work, under_way }) {
                    exchange.hold = Some(hold);
                    // For the bound on how many may wait.
                    return self.pump_http(key);
                }
                Full::Node
            }
            Err(full) => full,
        };
        let response = overload(full, &node.config);
        exchange.fill(|out, how| response.write(out, how));
        match full {
            Full::Node | Full::Memory => self.env.counters.http_unavailable += 1,
            Full::Address => self.env.counters.http_too_many += 1,
        }
        self.pump_http(key);
    }

    /// Answers with an error, after which nothing more is read.
    pub(in crate::shard) fn refuse_http(&mut self, key: ConnectionKey, status: u16, text: &str) {
        self.end_with(key, &Response::error(status, format!("{text}\n")));
    }

    /// Answers, after which nothing more is read.
    fn end_with(&mut self, key: ConnectionKey, response: &Response) {
        let now = self.env.now;
        let Some(http) = self.http_mut(key) else { return };
        http.end_input();
        http.push(Sending::default(), now).fill(|out, how| response.write(out, how));
        self.pump_http(key);
    }

    /// A part of an answer has come from the worker.
    pub(in crate::shard) fn http_answer(&mut self, answer: Answer, part: Part) {
        let by = self.env.now + self.env.node.config.http_answer_timeout();
        let Some(http) = self.http_mut(answer.connection) else { return };
        let number = answer.exchange;
        let exchange = http.exchanges.iter_mut().find(|exchange| exchange.number == number);
        // It took too long, and was answered with an error.
        let Some(exchange) = exchange.filter(|exchange| !exchange.is_done) else { return };
        exchange.by = by;
        match part.then {
            Then::Broken if exchange.has_begun => return self.drop_connection(answer.connection),
            Then::Broken => exchange.fill(|out, how| {
                out.clear();
                unavailable("the file can't be read now; try again").write(out, how);
            }),
            Then::More | Then::Done => {
                if exchange.bytes.is_empty() {
                    exchange.bytes = part.bytes;
                } else {
                    exchange.bytes.extend_from_slice(&part.bytes);
                }
                if part.then == Then::Done {
                    exchange.is_done = true;
                    exchange.hold = None;
                }
            }
        }
        self.pump_http(answer.connection);
    }

    /// Writes what can be written in order, and goes on with what waited for it.
    fn pump_http(&mut self, key: ConnectionKey) {
        let now = self.env.now;
        let pipeline_max = self.env.node.config.http_pipeline_max;
        let high_bytes = self.env.node.config.outbox_high_bytes;
        loop {
            let Some(http) = self.http_mut(key) else { return };
            let Some(front) = http.exchanges.front_mut() else { break };
            let bytes = std::mem::take(&mut front.bytes);
            let (is_done, keeps_alive) = (front.is_done, front.sending.keeps_alive);
            front.has_begun |= !bytes.is_empty();
            if !bytes.is_empty() {
                http.active = now;
            }
            if is_done {
                http.exchanges.pop_front();
            }
            self.links.put(key, bytes);
            if !is_done {
                break;
            }
            if !keeps_alive {
                return self.close(key, None);
            }
        }
        let Some(connection) = self.links.get_mut(key) else { return };
        let is_behind = connection.unsent() > high_bytes;
        let Input::Http(http) = &mut connection.input else { return };
        connection.pause.outbox |= is_behind;
        let is_answered = http.exchanges.is_empty();
        let was_full = connection.pause.http;
        connection.pause.http =
            http.exchanges.len() >= pipeline_max || (http.upgrades() && !is_answered);
        let goes_on = was_full && !connection.pause.http;
        if is_answered && std::mem::take(&mut http.owes_continue) {
            self.links.append(key, |out| {
                write_continue(out);
                true
            });
        }
        let Some(http) = self.http_mut(key) else { return };
        if is_answered && http.ends {
            return self.close(key, None);
        }
        if is_answered && goes_on && http.upgrades() {
            self.upgrade(key);
        }
        if goes_on {
            self.links.resumed.push(key);
        }
    }

    /// Upgrades to a WebSocket, at once if all requests before are answered.
    fn upgrade_when_answered(&mut self, key: ConnectionKey) {
        let Some(connection) = self.links.get_mut(key) else { return };
        let Input::Http(http) = &connection.input else { return };
        if http.exchanges.is_empty() {
            self.upgrade(key);
        } else {
            connection.pause.http = true;
        }
    }

    /// Turns a connection into a WebSocket, as the head that has come asks for.
    fn upgrade(&mut self, key: ConnectionKey) {
        let node = Arc::clone(&self.env.node);
        let config = &node.config;
        let now = self.env.now;
        let Some(connection) = self.links.slab.get_mut(key) else { return };
        let Input::Http(http) = &mut connection.input else { return };
        let Some(head) = http.parser.head() else { return };
        let limits =
            HeadLimits { head_bytes_max: config.http_head_bytes_max, ..HeadLimits::default() };
        let mut response = Vec::new();
        let service = node.service_at(head.path());
        let client = client_of(&node, http.peer, head);
        if client != http.peer {
            self.links.unnamed.note(client, now);
        }
        let is_first = http.begun == 0;
        let (mut tally, mut is_crowded) = (Ok(()), None);
        if client != http.peer {
            tally = connection.tally.come_from(node.addresses.of(client, now));
        }
        // A service's client need not say hello.
        let tally = tally.and_then(|()| match service {
            None => connection.tally.begin_handshake(),
            Some(_) => Ok(()),
        });
        let upgraded = match handshake::parse_request(head.bytes(), &limits) {
            Ok(handshake::Head::Complete(request)) => match &request.upgrade {
                Some(upgrade) if !Origin::is_allowed(upgrade.origin(), &config.allowed_origins) => {
                    self.links.turned_away.note_origin(upgrade.origin().unwrap_or_default(), now);
                    let text = "allowed_origins: pages of this origin may not connect\n";
                    handshake::reject(&mut response, 403, text);
                    self.env.counters.origins_refused += 1;
                    None
                }
                Some(_) if let Err(why) = tally => {
                    handshake::reject(&mut response, 429, crowded(why));
                    is_crowded = Some(why);
                    None
                }
                Some(upgrade) => {
                    let is_deflated = config.websocket_deflate && service.is_none();
                    let wishes = is_deflated.then(Deflate::default);
                    let agreed = wishes.and_then(|wishes| upgrade.deflate(&wishes));
                    let accepted = handshake::accept(&mut response, upgrade, None, agreed.as_ref());
                    accepted.is_ok().then_some(agreed)
                }
                None => None,
            },
            Ok(handshake::Head::Partial) => None,
            Err(error) => {
                handshake::reject(&mut response, error.status(), &error.to_string());
                None
            }
        };
        let enters = service.filter(|_| upgraded.is_some());
        match upgraded {
            Some(_) if enters.is_some() => {}
            Some(agreed) => {
                let agreed = agreed.as_ref().map(Agreed::deflate);
                let limits = websocket_limits(config, true);
                connection.input =
                    Input::WebSocket(agreed.map(|agreed| {
                        Box::new(Decoder::with_deflate(Role::Server, limits, agreed))
                    }));
                let bytes_min = config.websocket_deflate_bytes_min;
                let deflated = agreed.map(|agreed| Deflated::new(agreed, bytes_min));
                connection.dialect.framing = Framing::WebSocket(deflated);
                // A hello has its time from when the client connected, or from here on if the
                // connection was of use before, or the request waited too long to be read.
                if !is_first || connection.put_off {
                    connection.heard = now.into();
                }
                let by = connection.heard.time() + config.hello_timeout();
                self.links.look_at(key, by);
            }
            None => http.ends = true,
        }
        if let Some(why) = is_crowded {
            self.links.note_crowded(self.env, why, client.address.ip());
        }
        self.links.append(key, |out| {
            out.extend_from_slice(&response);
            true
        });
        if let Some(service) = enters {
            self.enter_service(key, service, client.address);
        } else if self.http_mut(key).is_some() {
            self.close(key, None);
        }
    }

    /// Hands a connection that has become a WebSocket to a service.
    fn enter_service(&mut self, key: ConnectionKey, service: u16, address: SocketAddr) {
        let Some(connection) = self.links.get_mut(key) else { return };
        connection.input = Input::Service(service, Some(Box::new(Carrier::new())));
        connection.dialect.framing = Framing::WebSocket(None);
        connection.tally.settle();
        connection.lives(self.env.now);
        let kept = std::mem::take(&mut connection.partial).take();
        self.links.look_at(key, self.env.now + self.env.node.config.heartbeat() / 2);
        if self.env.is_shutting_down {
            return self.close_service(key, Closed::ShuttingDown);
        }
        let effect = Effect::ServiceEntered { key, service, address, kept };
        self.outbound.effects.push_back(effect);
    }

    /// Checks the timeouts of a connection.
    pub(in crate::shard) fn examine_http(&mut self, key: ConnectionKey) {
        let node = Arc::clone(&self.env.node);
        let (config, now) = (&node.config, self.env.now);
        self.links.look_at(key, now + period(config));
        let unsent = self.links.unsent(key).len();
        let Some(http) = self.http_mut(key) else { return };
        if unsent > 0 && now >= http.active + config.http_request_timeout() {
            // The client does not read.
            return self.drop_connection(key);
        }
        if let Some(front) = http.exchanges.front() {
            if front.has_begun && unsent == 0 && now >= front.by {
                return self.drop_connection(key);
            }
            let mut late = 0;
            for exchange in &mut http.exchanges {
                // One whose first part is there waits for its turn.
                let is_awaited = !exchange.is_done && exchange.bytes.is_empty();
                if now >= exchange.by && is_awaited && !exchange.has_begun {
                    late += 1;
                    let text = format!(
                        "http_answer_timeout_ms: no answer within {} ms",
                        config.http_answer_timeout_ms
                    );
                    exchange.fill(|out, how| unavailable(&text).write(out, how));
                }
            }
            self.env.counters.http_unavailable += late;
            self.pump_http(key);
            return self.probe(key);
        }
        if http.receives_since.is_some_and(|since| now >= since + config.http_request_timeout()) {
            let text = format!(
                "http_request_timeout_ms: the request was not complete within {} ms",
                config.http_request_timeout_ms
            );
            return self.refuse_http(key, 408, &text);
        }
        if http.receives_since.is_none() && now >= http.active + config.http_idle_timeout() {
            self.close(key, None);
        }
    }

    /// The node is shutting down: a connection ends when what is under way is answered.
    pub(in crate::shard) fn end_http(&mut self, key: ConnectionKey) -> bool {
        let Some(http) = self.http_mut(key).filter(|http| !http.exchanges.is_empty()) else {
            return false;
        };
        http.ends = true;
        true
    }
}
