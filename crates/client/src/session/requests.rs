//! Requests that wait for their answers.

use std::collections::hash_map::Entry;

use playfield_wire::{RequestNumber, RoomNumber};

use super::numbers::NumberMap;
use super::{ClientError, CommandError};

/// The matter of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// To enter a room.
    Join,
    /// The list of rooms.
    List,
    /// The schema of a room type.
    Schema,
    /// To publish to a channel.
    Publish,
    /// The subscribers of a channel.
    Members,
    /// A publication to a channel.
    History,
    /// To be registered as a device.
    Register,
    /// A reply to a report.
    Report,
    /// To leave this room.
    Leave { room: RoomNumber },
    /// A user message to this room, with the number that the program uses.
    Message { room: RoomNumber, index: u32 },
}

impl Asked {
    /// The room that was asked.
    pub(super) fn room(self) -> Option<RoomNumber> {
        match self {
            Self::Leave { room } | Self::Message { room, .. } => Some(room),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    asked: Asked,
    /// The number of counted messages that were sent with this one; 0 if they are not counted,
    /// [`UNSENT`] if it is still to be sent.
    count: u64,
}

/// The count of a request that was not sent yet.
const UNSENT: u64 = u64::MAX;

/// Requests by number. Numbers count up from 1, which distinguishes an answer to an abandoned
/// request from one to a request that was never made.
#[derive(Debug)]
pub(super) struct Requests {
    waiting: NumberMap<RequestNumber, Waiting>,
    waiting_max: usize,
    next: RequestNumber,
    /// The count started over: any number may have been used before.
    wrapped: bool,
}

impl Requests {
    pub(super) fn new(waiting_max: usize) -> Self {
        Self { waiting: NumberMap::default(), waiting_max, next: RequestNumber(1), wrapped: false }
    }

    /// The number of the next request.
    ///
    /// # Errors
    /// If the most requests that may wait are waiting.
    pub(super) fn reserve(&mut self) -> Result<RequestNumber, CommandError> {
        if self.waiting.len() >= self.waiting_max {
            return Err(CommandError::Busy { waiting: self.waiting.len() });
        }
        Ok(self.free())
    }

    /// The request under the reserved number was sent.
    pub(super) fn sent(&mut self, request: RequestNumber, asked: Asked, count: u64) {
        self.waiting.insert(request, Waiting { asked, count });
        self.step();
    }

    /// The reserved number is used up, without a request.
    pub(super) fn skip(&mut self) {
        self.step();
    }

    /// The request under the reserved number will be sent later.
    pub(super) fn unsent(&mut self, request: RequestNumber, asked: Asked) {
        self.sent(request, asked, UNSENT);
    }

    /// A request that was not sent before is sent now.
    pub(super) fn sent_late(&mut self, request: RequestNumber, count: u64) {
        if let Some(waiting) = self.waiting.get_mut(&request) {
            waiting.count = count;
        }
    }

    /// The request will not be sent.
    pub(super) fn forget(&mut self, request: RequestNumber) {
        self.waiting.remove(&request);
    }

    /// The request is answered, and `fits` says whether by the right kind of message. `false` if
    /// the request was abandoned.
    #[inline]
    pub(super) fn answered(
        &mut self,
        request: RequestNumber,
        answer: &'static str,
        fits: impl FnOnce(Asked) -> bool,
    ) -> Result<bool, ClientError> {
        match self.waiting.entry(request) {
            Entry::Occupied(waiting) if fits(waiting.get().asked) => {
                waiting.remove();
                Ok(true)
            }
            Entry::Occupied(_) => Err(ClientError::WrongAnswer { request, answer }),
            Entry::Vacant(_) if self.wrapped || (1..self.next.0).contains(&request.0) => Ok(false),
            Entry::Vacant(_) => Err(ClientError::UnknownRequest { request }),
        }
    }

    /// A number for a request whose answer is ignored.
    pub(super) fn reserve_unanswered(&mut self) -> RequestNumber {
        let request = self.free();
        self.step();
        request
    }

    /// Abandons the messages that a room has not answered, in the order of asking.
    pub(super) fn give_up_room(&mut self, room: RoomNumber) -> Vec<RequestNumber> {
        let given_up = self.give_up(
            |waiting| matches!(waiting.asked, Asked::Message { room: of, .. } if of == room),
        );
        given_up.into_iter().map(|(request, _)| request).collect()
    }

    /// Abandons all requests.
    pub(super) fn give_up_all(&mut self) -> Vec<(RequestNumber, Asked)> {
        self.give_up(|_| true)
    }

    /// Abandons all requests that were sent.
    pub(super) fn give_up_sent(&mut self) -> Vec<(RequestNumber, Asked)> {
        self.give_up(|waiting| waiting.count != UNSENT)
    }

    /// Abandons the requests of this kind that were among the first `received` counted messages.
    pub(super) fn give_up_handled(
        &mut self,
        received: u64,
        which: impl Fn(Asked) -> bool,
    ) -> Vec<(RequestNumber, Asked)> {
        self.give_up(|waiting| waiting.count <= received && which(waiting.asked))
    }

    fn give_up(&mut self, which: impl Fn(&Waiting) -> bool) -> Vec<(RequestNumber, Asked)> {
        let given_up = self.waiting.extract_if(|_, waiting| which(waiting));
        let mut given_up: Vec<_> = given_up.map(|(request, of)| (request, of.asked)).collect();
        // Numbers above the next one are from before the count started over.
        given_up.sort_unstable_by_key(|(request, _)| request.0.wrapping_sub(self.next.0));
        given_up
    }

    /// The next number that nothing waits under.
    fn free(&mut self) -> RequestNumber {
        while self.wrapped && self.waiting.contains_key(&self.next) {
            self.step();
        }
        self.next
    }

    fn step(&mut self) {
        self.next = RequestNumber(self.next.0.checked_add(1).unwrap_or_else(|| {
            self.wrapped = true;
            1
        }));
    }
}

#[cfg(test)]
mod tests {
    use playfield_wire::{RequestNumber, RoomNumber};

    use super::{Asked, Requests};
    use crate::session::{ClientError, CommandError};

    /// Answers a request with a message of the right kind.
    fn answered(requests: &mut Requests, request: RequestNumber) -> Result<bool, ClientError> {
        requests.answered(request, "an answer", |_| true)
    }

    fn ask(requests: &mut Requests, asked: Asked) -> RequestNumber {
        let request = requests.reserve().unwrap();
        requests.sent(request, asked, 0);
        request
    }

    #[test]
    fn a_waiting_number_is_not_reused_when_the_count_starts_over() {
        let mut requests = Requests::new(10);
        assert_eq!(ask(&mut requests, Asked::List), RequestNumber(1));
        requests.next = RequestNumber(u32::MAX);
        assert_eq!(ask(&mut requests, Asked::Join), RequestNumber(u32::MAX));
        assert!(requests.wrapped);
        assert_eq!(ask(&mut requests, Asked::List), RequestNumber(2));
        assert_eq!(answered(&mut requests, RequestNumber(1)), Ok(true));
        assert_eq!(
            answered(&mut requests, RequestNumber(1)),
            Ok(false),
            "an old number is not a breach"
        );
        assert_eq!(
            requests.give_up_all(),
            [(RequestNumber(u32::MAX), Asked::Join), (RequestNumber(2), Asked::List)],
            "in the order asked"
        );
    }

    #[test]
    fn the_number_of_waiting_requests_is_limited() {
        let mut requests = Requests::new(2);
        ask(&mut requests, Asked::List);
        ask(&mut requests, Asked::List);
        assert_eq!(requests.reserve(), Err(CommandError::Busy { waiting: 2 }));
        assert_eq!(answered(&mut requests, RequestNumber(2)), Ok(true));
        assert_eq!(requests.reserve(), Ok(RequestNumber(3)));
    }

    #[test]
    fn a_request_that_was_never_made_is_not_answered() {
        let mut requests = Requests::new(2);
        ask(&mut requests, Asked::List);
        for request in [0, 2, u32::MAX].map(RequestNumber) {
            assert_eq!(
                answered(&mut requests, request),
                Err(ClientError::UnknownRequest { request })
            );
        }
    }

    #[test]
    fn a_wrongly_answered_request_still_waits() {
        let mut requests = Requests::new(2);
        let request = ask(&mut requests, Asked::List);
        let refused = requests.answered(request, "a reply", |asked| asked == Asked::Join);
        assert_eq!(refused, Err(ClientError::WrongAnswer { request, answer: "a reply" }));
        assert_eq!(requests.give_up_all(), [(request, Asked::List)]);
    }

    #[test]
    fn requests_to_a_room_end_with_it() {
        let mut requests = Requests::new(10);
        let first = ask(&mut requests, Asked::Message { room: RoomNumber(1), index: 0 });
        ask(&mut requests, Asked::Message { room: RoomNumber(2), index: 0 });
        let leave = ask(&mut requests, Asked::Leave { room: RoomNumber(1) });
        let second = ask(&mut requests, Asked::Message { room: RoomNumber(1), index: 0 });
        assert_eq!(requests.give_up_room(RoomNumber(1)), [first, second]);
        assert_eq!(answered(&mut requests, first), Ok(false), "an answer that crossed");
        assert_eq!(answered(&mut requests, leave), Ok(true));
    }
}
