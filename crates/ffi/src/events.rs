//! The events of the session: what each of them is to the program.

use std::sync::Arc;
use std::time::{Duration, Instant};

use playfield_client::poll::{Readiness, Token};
use playfield_client::session::{Event, Failure as Failed, Subscribed, SubscriptionNumber};
use playfield_client::{Error, RequestNumber, RoomNumber};
use playfield_wire::schema::RoomSchema;
use playfield_wire::server;
use serde_json::{Value, json};

use crate::channel::{self, ChannelCell};
use crate::client::ClientCell;
use crate::commands::room_info;
use crate::device::DeviceCell;
use crate::event::{PfEventKind, Report};
use crate::failure::{Failure, PfCode};
use crate::node::Link;
use crate::room::RoomCell;
use crate::state::{Asked, News, PackedReply, Seat, Sender, State, What};
use crate::text::milliseconds;

impl State {
    /// Takes what the connections have, and gives them what waits, until there is nothing more to
    /// do. `others` is the news of the sockets to other nodes.
    pub(crate) fn drive(
        &mut self,
        client: &Arc<ClientCell>,
        readiness: Option<Readiness>,
        others: &[(Token, Readiness)],
    ) {
        self.drive_node(client, readiness);
        if !self.steps.is_empty() || !self.others.is_empty() {
            self.drive_others(client, readiness, others);
        }
    }

    /// The same for the other nodes.
    #[cold]
    fn drive_others(
        &mut self,
        client: &Arc<ClientCell>,
        readiness: Option<Readiness>,
        others: &[(Token, Readiness)],
    ) {
        let mut readiness = readiness;
        loop {
            self.follow(client);
            for other in 0..self.others.len() {
                let token =
                    self.others[other].elsewhere.as_deref().map(|elsewhere| elsewhere.token);
                let news = readiness.zip(token).map(|(news, token)| news.of_other(token, others));
                self.at(other, |state| state.drive_node(client, news));
            }
            readiness = None;
            self.leave_unused(Instant::now());
            if self.steps.is_empty() {
                break;
            }
        }
        if self.others.is_empty()
            && let Some(last) = self.last.take()
        {
            self.report(last);
        }
    }

    /// Takes what the connection to the present node has.
    fn drive_node(&mut self, client: &Arc<ClientCell>, readiness: Option<Readiness>) {
        if let (Link::Open(connection), Some(readiness)) = (&mut self.node.link, readiness) {
            connection.pump(readiness, &mut self.buffers);
        }
        loop {
            // It is apart while its events, which borrow from it, change the rest.
            let Link::Open(mut connection) = std::mem::replace(&mut self.node.link, Link::Over)
            else {
                return;
            };
            while let Some((event, why)) = connection.poll_event() {
                self.take(client, event, why);
            }
            if connection.takes_token() {
                self.node.token_request = self.next_request();
                let request = self.node.token_request;
                self.report(Report { request, ..self.node.report(PfEventKind::TokenWanted) });
            }
            self.node.link = Link::Open(connection);
            self.go_on();
            let Link::Open(connection) = &mut self.node.link else { return };
            if !self.is_corked {
                connection.settle(&mut self.buffers);
            }
            if !connection.has_news() {
                return;
            }
        }
    }

    fn take(&mut self, client: &Arc<ClientCell>, event: Event<'_>, why: Option<Error>) {
        match event {
            Event::Update { room, .. } => self.updated(room),
            Event::Reply(reply) => self.replied(reply.request, &reply.payload),
            Event::Event(event) => self.room_event(&event),
            Event::Publication(subscription, publication) => {
                self.channel_news(subscription, |cell| cell.publication(&publication));
            }
            Event::Joined(joined) => self.joined(joined),
            Event::Redirected(redirect) => self.redirected(&redirect),
            Event::Entered { room, translation } => {
                if let Some(seat) = self.node.seats.get(&room) {
                    seat.room.entered(&translation);
                    self.entered(client, room);
                }
            }
            Event::Unusable { room, why } => {
                if let Some(seat) = self.node.seats.remove(&room) {
                    let error = seat.room.unusable(why);
                    self.left_room(seat, error);
                }
            }
            Event::Left(left) => self.left_by(&left),
            Event::Failed { failure: Failed::Closed, .. } => {
                // These fail in `closed`, which knows how the connection ended.
            }
            Event::Failed { request, failure } => {
                let asked = self.node.asked.remove(&request);
                if let Some(asked) = asked.and_then(|asked| self.goes_on(asked, &failure)) {
                    self.refused(Some(asked), Sender::Nobody, Error::from(&failure));
                }
            }
            Event::Error(error) => self.refusal(&error),
            Event::Missed { room, events } => {
                if let Some(seat) = self.node.seats.get(&room) {
                    seat.room.put_lost(events);
                    self.put_room(room);
                }
            }
            Event::Listed(listed) => {
                self.value(listed.request, || listed.rooms.iter().map(room_info).collect());
            }
            Event::Schema(server::Schema { request: Some(request), schema, .. }) => {
                self.schema(request, &schema);
            }
            Event::Published(published) => {
                self.value(published.request, || json!(published.offset));
            }
            Event::Members(members) => self.value(members.request, || channel::members(&members)),
            Event::History(history) => self.value(history.request, || channel::history(&history)),
            Event::Pong { nonce, round_trip } => {
                if let Some(request) = self.node.pings.remove(&nonce) {
                    let us = u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX);
                    let answer = Report::answer(PfEventKind::Reply, request);
                    self.answer(Report { value: Some(json!(us)), ..answer });
                }
            }
            Event::Subscribed(number, subscribed) => {
                self.subscribed(client, number, &subscribed);
            }
            Event::Unsubscribed { subscription, code, text } => {
                self.unsubscribed(subscription, &code.name(), &text);
            }
            Event::PublicationsMissed { subscription, publications } => {
                self.channel_news(subscription, |cell| cell.missed(publications));
            }
            Event::Presence(subscription, presence) => {
                self.channel_news(subscription, |cell| cell.presence(&presence));
            }
            Event::Registered { request, is_new, bytes } => {
                self.registered(client, request, is_new, bytes);
            }
            Event::Unregistered { .. } => self.end_device(),
            Event::Command(command) => {
                let session = self.node.session;
                if let Some(cell) = self.devices.get(&self.device) {
                    let refused = cell.put(&command, session);
                    if cell.announces(&self.kept) {
                        self.news.push_back(News::Device(self.device));
                    }
                    self.refuse_commands(&refused);
                } else if let Some(number) = command.command {
                    self.refuse_commands(&[(session, number)]);
                }
            }
            Event::Welcome(_) => {
                self.node.is_welcomed = true;
                if self.node.elsewhere.is_none() {
                    self.report(Report::new(PfEventKind::Connected));
                }
            }
            Event::ConnectionLost { .. } => {
                self.node.lost_at = Some(Instant::now());
                self.connection_report(PfEventKind::Lost, why);
            }
            Event::AttemptFailed { is_last: false, .. } => {
                self.connection_report(PfEventKind::AttemptFailed, why);
            }
            Event::Resumed(_) => {
                self.counts.reconnects += 1;
                let number = milliseconds(self.away());
                self.report(Report { number, ..self.node.report(PfEventKind::Resumed) });
            }
            Event::NewSession(_) => self.new_session(),
            Event::Unconfirmed { sends } => self.node.unconfirmed += sends,
            Event::Weak { is_weak } => {
                let kind = if is_weak { PfEventKind::Weak } else { PfEventKind::Back };
                self.report(self.node.report(kind));
            }
            Event::Closed { .. } => self.closed(why),
            Event::AttemptFailed { is_last: true, .. }
            | Event::Schema(_)
            | Event::Goodbye(_)
            | Event::OutOfStep { .. }
            | Event::Checked { .. }
            | Event::PublicationIgnored { .. } => {}
        }
    }

    fn away(&mut self) -> Duration {
        self.node.lost_at.take().map_or(Duration::ZERO, |at| at.elapsed())
    }

    fn connection_report(&mut self, kind: PfEventKind, why: Option<Error>) {
        if let Some(error) = why {
            let failure = self.failure(error);
            self.report(self.node.report(kind).because(failure));
        }
    }

    /// An error of the connection to the present node, which names that if the program has not.
    fn failure(&self, error: Error) -> Failure {
        let failure = Failure::from(error);
        match self.node.url() {
            Some(url) => Failure { message: format!("{url}: {}", failure.message), ..failure },
            None => failure,
        }
    }

    /// A room's copy has changed.
    fn updated(&mut self, room: RoomNumber) {
        let Some(seat) = self.node.seats.get(&room) else { return };
        if let Some(cell) = self.rooms.get(&seat.handle).filter(|_| seat.entering.is_none())
            && cell.moves()
        {
            self.news.push_back(News::State(seat.handle));
        }
    }

    fn room_event(&mut self, event: &server::Event<'_>) {
        if let Some(seat) = self.node.seats.get(&event.room) {
            seat.room.put(event);
            self.put_room(event.room);
        }
    }

    /// Something waits in a room's queue.
    fn put_room(&mut self, room: RoomNumber) {
        let Some(seat) = self.node.seats.get_mut(&room) else { return };
        match seat.entering {
            Some(_) => seat.events += 1,
            None => {
                if self.rooms.get(&seat.handle).is_some_and(|cell| cell.announces(&self.kept)) {
                    self.news.push_back(News::Room(seat.handle));
                }
            }
        }
    }

    fn joined(&mut self, joined: server::Joined<'_>) {
        let Some(Asked { request, what }) = self.node.asked.remove(&joined.request) else { return };
        if let What::Enter(join) = what {
            let (number, joined) = (joined.room, joined.into_owned());
            let (room, entering) = (join.room, Some(request));
            self.node.seats.insert(number, Seat { room, joined, entering, handle: 0, events: 0 });
        }
    }

    /// A room has its copy: the program gets its handle.
    fn entered(&mut self, client: &Arc<ClientCell>, number: RoomNumber) {
        let (session, node) = (self.node.session, self.node.name());
        let Some(seat) = self.node.seats.get_mut(&number) else { return };
        let Some(request) = seat.entering.take() else { return };
        let answer = Report::answer(PfEventKind::Joined, request);
        match RoomCell::enter(client, seat, session, node) {
            Ok((handle, cell)) => {
                seat.handle = handle;
                let events = std::mem::take(&mut seat.events);
                let (player, name) = (seat.joined.player, seat.joined.id.to_string());
                self.rooms.insert(handle, cell);
                self.answer(Report { room: handle, number: player, name, ..answer });
                for _ in 0..events {
                    self.put_room(number);
                }
            }
            Err(failure) => {
                let place = crate::state::Place { session, number };
                self.answer(answer.because(failure));
                self.forsake(place);
            }
        }
    }

    fn left_by(&mut self, left: &server::Left<'_>) {
        if let Some(seat) = self.node.seats.remove(&left.room) {
            seat.room.left(left);
            let error = seat.room.ended();
            self.left_room(seat, error.unwrap_or_else(playfield_client::poll::Room::new_session));
        }
        if let Some(asked) = left.request.and_then(|request| self.node.asked.remove(&request)) {
            let Asked { request, what } = asked;
            self.answer(what.report(request));
        }
    }

    /// This client is no longer in a room.
    fn left_room(&mut self, seat: Seat, error: Error) {
        match seat.entering {
            Some(request) => {
                self.answer(Report::answer(PfEventKind::Joined, request).because(error));
            }
            None => self.news.push_back(News::Room(seat.handle)),
        }
    }

    fn refusal(&mut self, error: &server::Error<'_>) {
        match error.room {
            Some(room) => {
                if let Some(seat) = self.node.seats.get(&room) {
                    seat.room.put_refusal(error);
                    self.put_room(room);
                }
            }
            None if error.code.closes()
                || self.node.lost_at.is_some()
                || !self.node.is_welcomed => {}
            None => {
                let (reason, said) = (error.code.name().into_owned(), error.text.to_string());
                let failure = Failure::new(PfCode::Refused, said.clone());
                let failure = Failure { reason, said, ..failure };
                self.report(Report::new(PfEventKind::Error).because(failure));
            }
        }
    }

    fn replied(&mut self, request: RequestNumber, payload: &[u8]) {
        let Some(Asked { request, what }) = self.node.asked.remove(&request) else { return };
        if let What::Reply { room, of, index, is_packed: true } = &what {
            match of.room().check_reply(*index, payload) {
                Ok(()) => {
                    let (room, bytes) = (*room, payload.to_vec());
                    self.reply(PackedReply { request, room, bytes });
                }
                Err(error) => self.answer(what.report(request).because(error)),
            }
            return;
        }
        let answer = what.report(request);
        let answer = match what {
            What::Reply { of, index, .. } => match of.room().reply(index, payload) {
                Ok(value) => Report { value: Some(value), ..answer },
                Err(error) => answer.because(error),
            },
            What::Report { is_bytes, .. } => channel::with_payload(answer, payload, is_bytes),
            _ => answer,
        };
        self.answer(answer);
    }

    /// The answer to a request is a value.
    fn value(&mut self, request: RequestNumber, value: impl FnOnce() -> Value) {
        if let Some(Asked { request, what }) = self.node.asked.remove(&request) {
            self.answer(Report { value: Some(value()), ..what.report(request) });
        }
    }

    fn schema(&mut self, request: RequestNumber, schema: &[u8]) {
        let Some(Asked { request, what }) = self.node.asked.remove(&request) else { return };
        let answer = what.report(request);
        self.answer(match RoomSchema::from_json(schema) {
            // What it writes is JSON.
            Ok(schema) => {
                let value = serde_json::from_str(&schema.to_json()).unwrap_or(Value::Null);
                Report { value: Some(value), ..answer }
            }
            Err(error) => {
                let text = format!("the node's schema can't be read: {error}");
                answer.because(Failure::new(PfCode::Failed, text))
            }
        });
    }

    /// Something happened in a channel: `put` puts so many events in its queue.
    fn channel_news(
        &mut self,
        subscription: SubscriptionNumber,
        put: impl FnOnce(&ChannelCell) -> usize,
    ) {
        let handle = self.subscriptions.get(&subscription).copied();
        if let Some((handle, cell)) = handle.and_then(|of| self.channels.get_key_value(&of)) {
            for _ in 0..put(cell) {
                if cell.announces(&self.kept) {
                    self.news.push_back(News::Channel(*handle));
                }
            }
        }
    }

    fn subscribed(
        &mut self,
        client: &Arc<ClientCell>,
        number: SubscriptionNumber,
        subscribed: &Subscribed,
    ) {
        if let Some(Asked { request, what }) = self.subscribing.remove(&number) {
            let answer = what.report(request);
            let What::Subscribe { since } = what else { return };
            match ChannelCell::begin(client, number, since, self.kept) {
                Ok((handle, cell)) => {
                    self.channels.insert(handle, cell);
                    self.subscriptions.insert(number, handle);
                    self.answer(Report { channel: handle, ..answer });
                }
                Err(failure) => return self.answer(answer.because(failure)),
            }
        }
        self.channel_news(number, |cell| cell.subscribed(subscribed));
    }

    fn unsubscribed(&mut self, number: SubscriptionNumber, code: &str, text: &str) {
        if let Some(Asked { request, what }) = self.subscribing.remove(&number) {
            let failure = Failure::new(PfCode::Refused, format!("refused: {code}: {text}"));
            let (reason, said) = (code.to_owned(), text.to_owned());
            let failure = Failure { reason, said, ..failure };
            return self.answer(what.report(request).because(failure));
        }
        self.channel_news(number, |cell| cell.unsubscribed(code, text));
        self.subscriptions.remove(&number);
    }

    fn registered(
        &mut self,
        client: &Arc<ClientCell>,
        request: Option<RequestNumber>,
        is_new: bool,
        is_bytes: bool,
    ) {
        let Some(asked) = request.and_then(|request| self.node.asked.remove(&request)) else {
            return;
        };
        let answer = asked.what.report(asked.request);
        let What::Register { device } = asked.what else { return };
        match DeviceCell::begin(client, device, is_new, is_bytes, self.kept) {
            Ok((handle, cell)) => {
                // Another registration makes way.
                self.end_device();
                self.devices.insert(handle, cell);
                self.device = handle;
                self.answer(Report { device: handle, ..answer });
            }
            Err(failure) => self.answer(answer.because(failure)),
        }
    }

    /// The registration is over.
    fn end_device(&mut self) {
        let device = std::mem::take(&mut self.device);
        if let Some(cell) = self.devices.get(&device) {
            cell.end();
            self.news.push_back(News::Device(device));
        }
    }

    /// Refuses commands that nobody will answer.
    pub(crate) fn refuse_commands(&mut self, commands: &[(u32, u64)]) {
        let session = self.node.session;
        for &(_, command) in commands.iter().filter(|(of, _)| *of == session) {
            self.answer_later(command);
        }
    }

    fn new_session(&mut self) {
        self.counts.reconnects += 1;
        self.away();
        for (_, seat) in std::mem::take(&mut self.node.seats) {
            seat.room.end_session();
            self.left_room(seat, playfield_client::poll::Room::new_session());
        }
        self.sessions += 1;
        self.node.session = self.sessions;
        let number = std::mem::take(&mut self.node.unconfirmed) + self.end_session();
        self.report(Report { number, ..self.node.report(PfEventKind::NewSession) });
    }

    /// The connection to the present node has ended.
    fn closed(&mut self, why: Option<Error>) {
        let failure = why.clone().map_or_else(Failure::closed, |error| self.failure(error));
        if self.node.elsewhere.is_some() {
            return self.closed_elsewhere(why, &failure);
        }
        self.ended.clone_from(&why);
        let mut asked = self.asked();
        asked.extend(self.subscribing.drain().map(|(_, asked)| asked));
        asked.sort_unstable_by_key(|asked| asked.request);
        self.fail_all(asked, &failure);
        self.end_rooms(why.as_ref());
        let number = self.fail_waiting(&failure);
        self.subscriptions.clear();
        self.end_device();
        self.close_others(why.as_ref(), &failure);
        let number = number + std::mem::take(&mut self.unconfirmed);
        let last = Report { number, ..Report::new(PfEventKind::Ended).because(failure) };
        if self.others.is_empty() {
            self.report(last);
        } else {
            self.last = Some(last);
        }
    }

    /// Takes the requests to the present node that have no answer.
    pub(crate) fn asked(&mut self) -> Vec<Asked> {
        let mut asked: Vec<Asked> = self.node.asked.drain().map(|(_, asked)| asked).collect();
        let value = |request| Asked { request, what: What::Value };
        asked.extend(self.node.pings.drain().map(|(_, request)| value(request)));
        asked
    }

    pub(crate) fn fail_all(&mut self, asked: Vec<Asked>, failure: &Failure) {
        for Asked { request, what } in asked {
            self.answer(what.report(request).because(failure.clone()));
        }
    }

    /// The rooms of the present node have ended with the connection.
    pub(crate) fn end_rooms(&mut self, why: Option<&Error>) {
        for (_, seat) in std::mem::take(&mut self.node.seats) {
            if let Some(error) = why {
                seat.room.close(error.clone());
            }
            match (seat.entering, why) {
                (Some(_), Some(error)) => self.left_room(seat, error.clone()),
                _ => self.news.push_back(News::Room(seat.handle)),
            }
        }
    }

    /// The commands that wait for the present node fail. Returns how many sends are not confirmed.
    pub(crate) fn fail_waiting(&mut self, failure: &Failure) -> u64 {
        let mut number = std::mem::take(&mut self.node.unconfirmed);
        for waiting in std::mem::take(&mut self.node.waiting) {
            number += waiting.fail(self, failure);
        }
        number
    }
}
