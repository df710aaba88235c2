//! The state of the engine, which the host and the driver share.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use async_nats::{Client, HeaderMap, Message, StatusCode, Subscriber};
use playfield_cluster::{Answer, Command, EngineError, EngineEvent, Key, Record, Revision, Tag};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::api::{self, Failure, Found, StreamInfo, Written};
use crate::complaints::Complaints;
use crate::names::{Names, is_valid_key};
use crate::outlet::{NotSent, Outlet};
use crate::pending::{Asked, Pending};

/// The most messages that wait for the host, and their bytes.
const MESSAGES_MAX: usize = 65_536;
const BYTES_MAX: usize = 32 << 20;
/// The time that the removal of a record is kept.
const REMOVAL_TTL: &str = "1h";

#[derive(Debug)]
pub(crate) struct State {
    names: Arc<Names>,
    /// The connection, if there is one.
    outlet: Option<Outlet>,
    pending: Pending,
    /// Commands that were not sent. The driver answers them a little later, so that a host that
    /// asks again at once does not spin.
    unsent: Vec<Tag>,
    events: VecDeque<EngineEvent>,
    /// The messages among the events, and their bytes.
    messages: usize,
    bytes: usize,
    /// The subject of the messages to this node.
    listening: Option<String>,
    /// The subscription to it could not be asked for yet.
    must_listen: bool,
    /// A new subscription, for the driver.
    pub(crate) listener: Option<Subscriber>,
    /// Wakes the driver.
    pub(crate) driver: Option<Waker>,
    /// The stream may be gone, or JetStream.
    pub(crate) is_suspect: bool,
    complaints: Complaints,
}

impl State {
    pub(crate) fn new(names: Arc<Names>) -> Self {
        Self {
            names,
            outlet: None,
            pending: Pending::default(),
            unsent: Vec::new(),
            events: VecDeque::new(),
            messages: 0,
            bytes: 0,
            listening: None,
            must_listen: false,
            listener: None,
            driver: None,
            is_suspect: false,
            complaints: Complaints::default(),
        }
    }

    pub(crate) fn begin(&mut self, command: Command) {
        match command {
            Command::Read { key, tag } => {
                let subject = format!("$JS.API.STREAM.MSG.GET.{}", self.names.stream);
                let payload = api::last_by_subject(&self.names.record(&key)).into_bytes();
                self.ask_about(&key, Asked::Read { tag }, subject, None, payload);
            }
            Command::List { prefix, tag } => {
                let parts = prefix.rsplit_once('.').map_or(String::new(), |(p, _)| format!("{p}."));
                let filter = self.names.record(&format!("{parts}>"));
                self.list(Asked::List { tag, prefix, filter, found: Vec::new() });
            }
            Command::Write { key, value, expect, tag } => {
                let headers = condition(expect);
                let subject = self.names.record(&key);
                self.ask_about(&key, Asked::Write { tag }, subject, Some(headers), value);
            }
            Command::Purge { key, expect, tag } => {
                let mut headers = condition(expect);
                headers.insert(api::OPERATION, api::PURGE);
                headers.insert(api::ROLLUP, "sub");
                headers.insert(api::TTL, REMOVAL_TTL);
                let subject = self.names.record(&key);
                self.ask_about(&key, Asked::Write { tag }, subject, Some(headers), Vec::new());
            }
            Command::Broadcast { bytes } => self.send(self.names.all.clone(), bytes),
            Command::Send { to, incarnation, bytes } => {
                self.send(self.names.node(to, incarnation), bytes);
            }
            Command::Listen { slot, incarnation } => {
                self.listening = Some(self.names.node(slot, incarnation));
                self.drop_messages(|event| matches!(event, EngineEvent::Delivered { .. }));
                self.listen();
            }
        }
    }

    pub(crate) fn next(&mut self) -> Option<EngineEvent> {
        let event = self.events.pop_front()?;
        if let Some(length) = message_length(&event) {
            self.messages -= 1;
            self.bytes -= length;
        }
        Some(event)
    }

    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The client of the connection.
    pub(crate) fn client(&self) -> Option<Client> {
        self.outlet.as_ref().map(|outlet| outlet.client().clone())
    }

    /// Goes on with a connection, the first or another one.
    pub(crate) fn connected(&mut self, outlet: Outlet, is_first: bool) {
        self.outlet = Some(outlet);
        // The first one was checked.
        self.is_suspect = !is_first;
        self.listen();
        if !is_first {
            // Messages to this node did not arrive meanwhile.
            self.interrupted();
        }
    }

    /// The connection was lost. Nothing of it is sent again.
    pub(crate) fn disconnected(&mut self) {
        self.outlet = None;
        self.listener = None;
        let asked: Vec<_> = self.pending.take_all().collect();
        for asked in asked {
            self.answer(asked.tag(), Err(EngineError::Unknown));
        }
        self.interrupted();
    }

    /// Messages were dropped, or may have been.
    pub(crate) fn interrupted(&mut self) {
        if self.events.back() != Some(&EngineEvent::Interrupted) {
            self.events.push_back(EngineEvent::Interrupted);
        }
    }

    /// Answers commands that were not sent, or wait for too long.
    pub(crate) fn tick(&mut self, now: Instant) {
        for tag in std::mem::take(&mut self.unsent) {
            self.answer(tag, Err(EngineError::Unknown));
        }
        while let Some(asked) = self.pending.take_late(now) {
            self.is_suspect = true;
            self.answer(asked.tag(), Err(EngineError::Unknown));
        }
        if self.must_listen {
            self.listen();
        }
    }

    /// A message to all nodes.
    pub(crate) fn received(&mut self, message: Message) {
        self.push(EngineEvent::Received { bytes: message.payload.into() });
    }

    /// A message to this node, or to an incarnation that it had before.
    pub(crate) fn delivered(&mut self, message: Message) {
        if self.listening.as_deref() == Some(message.subject.as_str()) {
            self.push(EngineEvent::Delivered { bytes: message.payload.into() });
        }
    }

    /// The answer to a request.
    pub(crate) fn answered(&mut self, message: &Message) {
        let number = self.outlet.as_ref().and_then(|outlet| outlet.number(&message.subject));
        let Some(asked) = number.and_then(|number| self.pending.take(number)) else { return };
        let tag = asked.tag();
        if message.status == Some(StatusCode::NO_RESPONDERS) {
            // The stream has no leader now, or is gone.
            self.is_suspect = true;
            return self.answer(tag, Err(EngineError::Unknown));
        }
        let result = match asked {
            Asked::Read { .. } => self.read(&message.payload).map(Answer::Read),
            Asked::Write { .. } => self.written(&message.payload).map(Answer::Written),
            Asked::List { prefix, filter, found, .. } => {
                match self.listed(&message.payload, prefix, found) {
                    Ok((found, total)) if found.len() < total => {
                        return self.list(Asked::List { tag, prefix, filter, found });
                    }
                    Ok((mut found, _)) => {
                        found.retain(|key| key.starts_with(prefix));
                        Ok(Answer::Listed(found))
                    }
                    Err(error) => Err(error),
                }
            }
        };
        self.answer(tag, result);
    }

    fn read(&mut self, payload: &[u8]) -> Result<Record, EngineError> {
        let found: Found = self.parsed("a read", payload)?;
        match found.error {
            Some(Failure { err_code: api::NO_MESSAGE, .. }) => Ok(Record::default()),
            Some(error) => Err(self.failed("a read", &error)),
            None => found.record().ok_or(EngineError::Unknown),
        }
    }

    fn written(&mut self, payload: &[u8]) -> Result<Revision, EngineError> {
        let written: Written = self.parsed("a write", payload)?;
        match written.error {
            Some(error) if api::WRONG_SEQUENCE.contains(&error.err_code) => {
                Err(EngineError::Conflict)
            }
            Some(error) => Err(self.failed("a write", &error)),
            None => Ok(written.seq),
        }
    }

    /// The names found so far, and the number of all.
    fn listed(
        &mut self,
        payload: &[u8],
        prefix: &str,
        mut found: Vec<Key>,
    ) -> Result<(Vec<Key>, usize), EngineError> {
        let info: StreamInfo = self.parsed("a list", payload)?;
        if let Some(error) = info.error {
            return Err(self.failed("a list", &error));
        }
        let subjects = info.state.subjects.unwrap_or_default();
        let is_last = subjects.is_empty();
        found.extend(subjects.keys().filter_map(|subject| self.names.key(subject)).map(Key::from));
        log::trace!("{} of {} records for {prefix}", found.len(), info.total);
        let total = if is_last { found.len() } else { info.total };
        Ok((found, total))
    }

    fn parsed<T: DeserializeOwned>(&mut self, what: &str, json: &[u8]) -> Result<T, EngineError> {
        serde_json::from_slice(json).map_err(|error| {
            self.complaints.log(|| format!("the engine's answer to {what} can't be read: {error}"));
            EngineError::Unknown
        })
    }

    fn failed(&mut self, what: &str, error: &Failure) -> EngineError {
        let is_passing = api::PASSING.contains(&error.err_code);
        self.is_suspect |= is_passing || error.err_code == api::NO_STREAM;
        if !is_passing {
            let (bucket, text) = (self.names.bucket(), &error.description);
            self.complaints.log(|| {
                format!(
                    "the engine refuses {what} in the bucket {bucket}: {text}; check its limits \
                     and its disks"
                )
            });
        }
        EngineError::Unknown
    }

    fn list(&mut self, asked: Asked) {
        let Asked::List { filter, found, .. } = &asked else { return };
        let subject = format!("$JS.API.STREAM.INFO.{}", self.names.stream);
        let payload = api::subjects(filter, found.len()).into_bytes();
        self.ask(asked, subject, None, payload);
    }

    fn ask_about(
        &mut self,
        key: &str,
        asked: Asked,
        subject: String,
        headers: Option<HeaderMap>,
        payload: Vec<u8>,
    ) {
        if !is_valid_key(key) {
            debug_assert!(false, "{key:?} is no name of a record: its parts must be encoded");
            self.complaints.log(|| format!("{key:?} is no name of a record, so it is not read"));
            return self.unsent.push(asked.tag());
        }
        self.ask(asked, subject, headers, payload);
    }

    fn ask(&mut self, asked: Asked, subject: String, headers: Option<HeaderMap>, payload: Vec<u8>) {
        let number = self.pending.next_number();
        let outlet = self.outlet.as_mut().ok_or(NotSent);
        match outlet.and_then(|outlet| outlet.request(subject, number, headers, payload)) {
            Ok(()) => self.pending.insert(Instant::now(), asked),
            Err(NotSent) => self.unsent.push(asked.tag()),
        }
    }

    fn send(&mut self, subject: String, bytes: Vec<u8>) {
        // Without a connection nothing arrives, which the host knows; it hears of the next one.
        if let Some(outlet) = &mut self.outlet
            && outlet.send(subject, bytes).is_err()
        {
            self.interrupted();
        }
    }

    fn listen(&mut self) {
        let (Some(outlet), Some(subject)) = (&self.outlet, &self.listening) else { return };
        self.listener = outlet.subscribe(subject.clone());
        self.must_listen = self.listener.is_none();
        if let Some(driver) = &self.driver {
            driver.wake_by_ref();
        }
    }

    fn push(&mut self, event: EngineEvent) {
        let length = message_length(&event).unwrap_or_default();
        if self.messages == MESSAGES_MAX || self.bytes + length > BYTES_MAX {
            // Messages, and earlier interruptions.
            self.drop_messages(|event| !matches!(event, EngineEvent::Answered { .. }));
            return self.interrupted();
        }
        self.messages += 1;
        self.bytes += length;
        self.events.push_back(event);
    }

    fn drop_messages(&mut self, is_dropped: impl Fn(&EngineEvent) -> bool) {
        self.events.retain(|event| !is_dropped(event));
        let lengths = || self.events.iter().filter_map(message_length);
        (self.messages, self.bytes) = (lengths().count(), lengths().sum());
    }

    fn answer(&mut self, tag: Tag, result: Result<Answer, EngineError>) {
        self.events.push_back(EngineEvent::Answered { tag, result });
    }
}

/// The bytes of an event that is a message.
fn message_length(event: &EngineEvent) -> Option<usize> {
    match event {
        EngineEvent::Received { bytes } | EngineEvent::Delivered { bytes } => Some(bytes.len()),
        EngineEvent::Answered { .. } | EngineEvent::Interrupted => None,
    }
}

fn condition(expect: Revision) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(api::EXPECTED, expect.to_string());
    headers
}
