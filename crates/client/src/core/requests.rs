//! Requests that wait for their answers.

use std::collections::hash_map::Entry;

use super::numbers::NumberMap;
use super::{ClientError, CommandError};

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// To enter a room.
    Join,
    /// Which rooms there are.
    List,
    /// The schema of a room type.
    Schema,
    /// To leave this room.
    Leave { room: u32 },
    /// A user message to this room.
    Message { room: u32 },
}

/// Requests by number. Numbers count up from 1, so that an answer to a request that was given up on
/// can be told from one to a request that was never made.
#[derive(Debug)]
pub(super) struct Requests {
    waiting: NumberMap<Asked>,
    waiting_max: usize,
    next: u32,
    /// All numbers have been used once; any might be an old one.
    wrapped: bool,
}

impl Requests {
    pub(super) fn new(waiting_max: usize) -> Self {
        Self { waiting: NumberMap::default(), waiting_max, next: 1, wrapped: false }
    }

    /// The number of the next request, for whom there has to be room.
    pub(super) fn reserve(&mut self) -> Result<u32, CommandError> {
        if self.waiting.len() >= self.waiting_max {
            return Err(CommandError::Busy { waiting: self.waiting.len() });
        }
        Ok(self.free())
    }

    /// The request under the reserved number was sent.
    pub(super) fn sent(&mut self, request: u32, asked: Asked) {
        self.waiting.insert(request, asked);
        self.step();
    }

    /// The request is answered by something that fits what it asked, and waits no longer. `false`
    /// if it was given up on.
    #[inline]
    pub(super) fn answered(
        &mut self,
        request: u32,
        answer: &'static str,
        fits: impl FnOnce(Asked) -> bool,
    ) -> Result<bool, ClientError> {
        match self.waiting.entry(request) {
            Entry::Occupied(asked) if fits(*asked.get()) => {
                asked.remove();
                Ok(true)
            }
            Entry::Occupied(_) => Err(ClientError::WrongAnswer { request, answer }),
            Entry::Vacant(_) if self.wrapped || (1..self.next).contains(&request) => Ok(false),
            Entry::Vacant(_) => Err(ClientError::UnknownRequest { request }),
        }
    }

    /// A number for a request of which the answer matters to nobody.
    pub(super) fn pass(&mut self) -> u32 {
        let request = self.free();
        self.step();
        request
    }

    /// Gives up on what was asked of a room, in the order in which it was asked.
    pub(super) fn give_up_room(&mut self, room: u32) -> Vec<u32> {
        let given_up = self.give_up(|asked| *asked == Asked::Message { room });
        given_up.into_iter().map(|(request, _)| request).collect()
    }

    /// Gives up on everything.
    pub(super) fn give_up_all(&mut self) -> Vec<u32> {
        self.give_up_each().into_iter().map(|(request, _)| request).collect()
    }

    /// Gives up on everything, and says what each request was.
    pub(super) fn give_up_each(&mut self) -> Vec<(u32, Asked)> {
        self.give_up(|_| true)
    }

    fn give_up(&mut self, which: impl Fn(&Asked) -> bool) -> Vec<(u32, Asked)> {
        let mut given_up: Vec<_> = self.waiting.extract_if(|_, asked| which(asked)).collect();
        // Numbers behind the next one are from before the count began anew.
        given_up.sort_unstable_by_key(|(request, _)| request.wrapping_sub(self.next));
        given_up
    }

    /// The next number that nothing waits under.
    fn free(&mut self) -> u32 {
        while self.wrapped && self.waiting.contains_key(&self.next) {
            self.step();
        }
        self.next
    }

    fn step(&mut self) {
        self.next = self.next.checked_add(1).unwrap_or_else(|| {
            self.wrapped = true;
            1
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, Requests};
    use crate::core::{ClientError, CommandError};

    /// Answers a request by whatever fits it.
    fn answered(requests: &mut Requests, request: u32) -> Result<bool, ClientError> {
        requests.answered(request, "an answer", |_| true)
    }

    fn ask(requests: &mut Requests, asked: Asked) -> u32 {
        let request = requests.reserve().unwrap();
        requests.sent(request, asked);
        request
    }

    #[test]
    fn a_number_that_waits_is_not_used_again_when_the_count_begins_anew() {
        let mut requests = Requests::new(10);
        assert_eq!(ask(&mut requests, Asked::List), 1);
        requests.next = u32::MAX;
        assert_eq!(ask(&mut requests, Asked::Join), u32::MAX);
        assert!(requests.wrapped);
        assert_eq!(ask(&mut requests, Asked::List), 2);
        assert_eq!(answered(&mut requests, 1), Ok(true));
        assert_eq!(answered(&mut requests, 1), Ok(false), "an old number is no breach");
        assert_eq!(requests.give_up_all(), [u32::MAX, 2], "in the order asked");
    }

    #[test]
    fn only_so_many_wait() {
        let mut requests = Requests::new(2);
        ask(&mut requests, Asked::List);
        ask(&mut requests, Asked::List);
        assert_eq!(requests.reserve(), Err(CommandError::Busy { waiting: 2 }));
        assert_eq!(answered(&mut requests, 2), Ok(true));
        assert_eq!(requests.reserve(), Ok(3));
    }

    #[test]
    fn a_request_that_was_never_made_is_not_answered() {
        let mut requests = Requests::new(2);
        ask(&mut requests, Asked::List);
        for request in [0, 2, u32::MAX] {
            assert_eq!(
                answered(&mut requests, request),
                Err(ClientError::UnknownRequest { request })
            );
        }
    }

    #[test]
    fn a_request_that_is_answered_wrongly_still_waits() {
        let mut requests = Requests::new(2);
        let request = ask(&mut requests, Asked::List);
        let refused = requests.answered(request, "a reply", |asked| asked == Asked::Join);
        assert_eq!(refused, Err(ClientError::WrongAnswer { request, answer: "a reply" }));
        assert_eq!(requests.give_up_all(), [request]);
    }

    #[test]
    fn what_was_asked_of_a_room_goes_with_it() {
        let mut requests = Requests::new(10);
        let first = ask(&mut requests, Asked::Message { room: 1 });
        ask(&mut requests, Asked::Message { room: 2 });
        let leave = ask(&mut requests, Asked::Leave { room: 1 });
        let second = ask(&mut requests, Asked::Message { room: 1 });
        assert_eq!(requests.give_up_room(1), [first, second]);
        assert_eq!(answered(&mut requests, first), Ok(false), "an answer that crossed");
        assert_eq!(answered(&mut requests, leave), Ok(true));
    }
}
