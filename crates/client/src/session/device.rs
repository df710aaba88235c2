//! The registration of this client as a device. It outlives sessions: in each new one the client
//! registers again.

use std::time::Duration;

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, RequestNumber, server};

use super::channels::{RETRY_AFTER, is_passing};
use super::numbers::NumberMap;
use super::protocol::Protocol;
use super::requests::Asked;
use super::{ClientError, CommandError, Event, Failure};

/// The registration of a device.
#[derive(Clone, Debug)]
pub(super) struct Registration {
    pub(super) device: String,
    pub(super) metadata: Vec<(String, String)>,
    pub(super) tags: Vec<String>,
}

impl Registration {
    fn message(&self, request: RequestNumber) -> ClientMessage<'_> {
        let pair = |(name, value): &(String, String)| (name.clone().into(), value.clone().into());
        ClientMessage::Register(client::Register {
            request,
            device: self.device.as_str().into(),
            metadata: self.metadata.iter().map(pair).collect(),
            tags: self.tags.iter().map(|tag| tag.as_str().into()).collect(),
        })
    }
}

/// The registration, and requests for others.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    present: Option<Registration>,
    /// Requested by the caller, and not answered.
    waiting: NumberMap<RequestNumber, Registration>,
    /// The client's own request in a new session.
    renewal: Option<RequestNumber>,
    pub(super) retry_at: Option<Duration>,
}

impl Protocol {
    pub(super) fn register(
        &mut self,
        registration: Registration,
    ) -> Result<RequestNumber, CommandError> {
        let request = self.ask(Asked::Register, |request| registration.message(request))?;
        self.registrations.waiting.insert(request, registration);
        Ok(request)
    }

    /// A new session has begun.
    pub(super) fn register_again(&mut self) {
        self.registrations.waiting.clear();
        self.renew();
    }

    /// Registers again where the node has refused it for a while.
    pub(super) fn retry_registration(&mut self) {
        let is_due = self.registrations.retry_at.is_some_and(|at| at <= self.pulse.now());
        if is_due && self.can_send() {
            self.renew();
        }
    }

    fn renew(&mut self) {
        self.registrations.retry_at = None;
        let Some(registration) = self.registrations.present.clone() else { return };
        match self.ask(Asked::Register, |request| registration.message(request)) {
            Ok(request) => self.registrations.renewal = Some(request),
            Err(_) => {
                self.registrations.retry_at = Some(self.pulse.now().saturating_add(RETRY_AFTER));
            }
        }
    }

    pub(super) fn registered(
        &mut self,
        &server::Registered { request, is_new, bytes }: &server::Registered,
    ) -> Result<(), ClientError> {
        if !self.requests.answered(request, "a registration", |asked| asked == Asked::Register)? {
            return Ok(());
        }
        if self.registrations.renewal.take_if(|renewal| *renewal == request).is_some() {
            self.events.push_back(Event::Registered { request: None, is_new, bytes });
        } else {
            self.registrations.present = self.registrations.waiting.remove(&request);
            (self.registrations.renewal, self.registrations.retry_at) = (None, None);
            let request = Some(request);
            self.events.push_back(Event::Registered { request, is_new, bytes });
        }
        Ok(())
    }

    /// A request to register has failed. Returns whether it was the client's own.
    pub(super) fn registration_failed(
        &mut self,
        request: RequestNumber,
        failure: &Failure<'_>,
    ) -> bool {
        self.registrations.waiting.remove(&request);
        if self.registrations.renewal.take_if(|renewal| *renewal == request).is_none() {
            return false;
        }
        match failure {
            Failure::Refused { code, retry_after, .. } if is_passing(*code) => {
                let wait = retry_after.unwrap_or(RETRY_AFTER);
                self.registrations.retry_at = Some(self.pulse.now().saturating_add(wait));
            }
            Failure::Refused { code, text, .. } => self.unregister(*code, text),
            // The node has handled it, or the next session registers again.
            _ => {}
        }
        true
    }

    fn unregister(&mut self, code: ErrorCode, text: &str) {
        self.registrations.present = None;
        self.events.push_back(Event::Unregistered { code, text: text.to_owned() });
    }
}
