//! Decides when to ask the node for schemas, and how long to wait for them. Like the session, it
//! takes the time as an argument.

use std::collections::VecDeque;
use std::time::Duration;

/// The number of times that a request may be refused as too frequent before it fails.
const REFUSALS_MAX: u32 = 16;

/// The time to wait after such a refusal if it states no time.
const WAIT: Duration = Duration::from_secs(1);

/// All requests are sent at once. Once the node has refused one as too frequent, the rest wait as
/// long as it said, and are then sent one by one.
#[derive(Debug)]
pub(in crate::session) struct SchemaRequests {
    /// The time limit for an answer.
    timeout: Duration,
    /// Requests to send, in order.
    queue: VecDeque<Request>,
    /// Requests that were sent, and not answered.
    sent: Vec<Request>,
    /// When the next may be sent, if one was refused as too frequent.
    paced: Option<Duration>,
    /// When the node last answered one.
    answered_at: Duration,
}

/// A request for the schema of a room type.
#[derive(Debug)]
struct Request {
    room_type: String,
    /// When it was queued, or sent.
    since: Duration,
    refusals: u32,
}

impl SchemaRequests {
    pub(in crate::session) fn new(timeout: Duration) -> Self {
        let answered_at = Duration::ZERO;
        Self { timeout, queue: VecDeque::new(), sent: Vec::new(), paced: None, answered_at }
    }

    pub(in crate::session) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Queues a request for a schema, unless there is one.
    pub(in crate::session) fn ask(&mut self, now: Duration, room_type: &str) {
        if self.sent.iter().chain(&self.queue).all(|request| request.room_type != room_type) {
            self.queue.push_back(Request {
                room_type: room_type.to_owned(),
                since: now,
                refusals: 0,
            });
        }
    }

    /// The room type to ask for now, if any. The request then counts as sent.
    pub(in crate::session) fn next(&mut self, now: Duration) -> Option<String> {
        if self.paced.is_some_and(|not_before| now < not_before || !self.sent.is_empty()) {
            return None;
        }
        let request = Request { since: now, ..self.queue.pop_front()? };
        let room_type = request.room_type.clone();
        self.sent.push(request);
        Some(room_type)
    }

    /// The node has sent the schema.
    pub(in crate::session) fn answered(&mut self, now: Duration, room_type: &str) {
        self.answered_at = now;
        self.forget(room_type);
    }

    /// The node refused the request as too frequent. Returns whether it will be sent again.
    pub(in crate::session) fn too_often(
        &mut self,
        now: Duration,
        room_type: &str,
        retry_after: Option<Duration>,
    ) -> bool {
        self.answered_at = now;
        let wait = retry_after.unwrap_or(WAIT);
        let Some(at) = self.sent.iter().position(|request| request.room_type == room_type) else {
            return false;
        };
        let request = self.sent.remove(at);
        let refusals = request.refusals + 1;
        if refusals > REFUSALS_MAX || wait > self.timeout {
            return false;
        }
        self.queue.push_back(Request { since: now, refusals, ..request });
        self.paced = self.paced.max(Some(now.saturating_add(wait)));
        true
    }

    /// The answer was lost. Returns whether the request will be sent again.
    pub(in crate::session) fn lost(&mut self, room_type: &str) -> bool {
        let at = self.sent.iter().position(|request| request.room_type == room_type);
        at.map(|at| self.queue.push_front(self.sent.remove(at))).is_some()
    }

    /// The schema is no longer needed, or will not come.
    pub(in crate::session) fn forget(&mut self, room_type: &str) {
        self.sent.retain(|request| request.room_type != room_type);
        self.queue.retain(|request| request.room_type != room_type);
        if self.sent.is_empty() && self.queue.is_empty() {
            self.paced = None;
        }
    }

    /// Returns whether there is nothing to send, and nothing to wait for.
    pub(in crate::session) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.sent.is_empty()
    }

    pub(in crate::session) fn clear(&mut self) {
        *self = Self::new(self.timeout);
    }

    /// Removes the requests whose time limit has passed, and returns their room types.
    pub(in crate::session) fn expired(&mut self, now: Duration) -> Vec<String> {
        let deadlines: Vec<_> = self.deadlines().collect();
        let expired = deadlines.into_iter().filter(|(_, deadline)| *deadline <= now);
        let room_types: Vec<String> =
            expired.map(|(request, _)| request.room_type.clone()).collect();
        for room_type in &room_types {
            self.forget(room_type);
        }
        room_types
    }

    /// When the next request may be sent, or one expires.
    pub(in crate::session) fn due_at(&self) -> Option<Duration> {
        let next = if self.sent.is_empty() && !self.queue.is_empty() { self.paced } else { None };
        self.deadlines().map(|(_, deadline)| deadline).chain(next).min()
    }

    /// The time limit of a queued request starts over with each answer of the node.
    fn deadlines(&self) -> impl Iterator<Item = (&Request, Duration)> {
        let sent = self.sent.iter().map(|request| (request, request.since));
        let queued =
            self.queue.iter().map(|request| (request, request.since.max(self.answered_at)));
        sent.chain(queued).map(|(request, since)| (request, since.saturating_add(self.timeout)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{REFUSALS_MAX, SchemaRequests};

    const TIMEOUT: Duration = Duration::from_secs(10);

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn asking(names: &[&str]) -> SchemaRequests {
        let mut schema_requests = SchemaRequests::new(TIMEOUT);
        for name in names {
            schema_requests.ask(s(0), name);
            schema_requests.ask(s(0), name);
        }
        schema_requests
    }

    fn all(schema_requests: &mut SchemaRequests, now: Duration) -> Vec<String> {
        std::iter::from_fn(|| schema_requests.next(now)).collect()
    }

    #[test]
    fn each_schema_is_asked_for_once_and_all_at_once() {
        let mut schema_requests = asking(&["a", "b", "c"]);
        assert_eq!(all(&mut schema_requests, s(0)), ["a", "b", "c"]);
        schema_requests.ask(s(0), "b");
        assert_eq!(all(&mut schema_requests, s(0)), [""; 0]);
        for name in ["a", "b", "c"] {
            schema_requests.answered(s(1), name);
        }
        assert_eq!(schema_requests.due_at(), None);
    }

    #[test]
    fn what_came_too_often_waits_as_long_as_was_said_and_then_goes_one_by_one() {
        let mut schema_requests = asking(&["a", "b", "c"]);
        all(&mut schema_requests, s(0));
        schema_requests.answered(s(0), "a");
        for name in ["b", "c"] {
            assert!(schema_requests.too_often(s(0), name, Some(s(3))));
        }
        schema_requests.ask(s(1), "d");
        assert_eq!((schema_requests.due_at(), schema_requests.next(s(2))), (Some(s(3)), None));
        assert_eq!(all(&mut schema_requests, s(3)), ["b"]);
        schema_requests.answered(s(4), "b");
        assert_eq!(all(&mut schema_requests, s(4)), ["c"]);
        // Unless it says, it is a second.
        assert!(schema_requests.too_often(s(5), "c", None));
        assert_eq!((schema_requests.due_at(), schema_requests.next(s(5))), (Some(s(6)), None));
        assert_eq!(all(&mut schema_requests, s(6)), ["d"]);
        schema_requests.answered(s(6), "d");
        assert_eq!(all(&mut schema_requests, s(6)), ["c"]);
        schema_requests.answered(s(6), "c");
        // All is as at the beginning.
        schema_requests.ask(s(7), "e");
        schema_requests.ask(s(7), "f");
        assert_eq!(all(&mut schema_requests, s(7)), ["e", "f"]);
    }

    #[test]
    fn a_node_that_answers_nothing_is_waited_for_so_long() {
        let mut schema_requests = asking(&["a"]);
        all(&mut schema_requests, s(0));
        schema_requests.ask(s(4), "b");
        all(&mut schema_requests, s(4));
        assert_eq!(schema_requests.due_at(), Some(s(10)));
        assert_eq!(schema_requests.expired(Duration::from_millis(9999)), [""; 0]);
        assert_eq!(schema_requests.expired(s(10)), ["a"]);
        assert_eq!(schema_requests.expired(s(14)), ["b"]);
        // The request may be made again.
        schema_requests.ask(s(20), "a");
        assert_eq!(all(&mut schema_requests, s(20)), ["a"]);
    }

    #[test]
    fn those_who_wait_their_turn_wait_as_long_as_the_node_answers() {
        let names: Vec<String> = (0..30).map(|number| number.to_string()).collect();
        let mut schema_requests = asking(&names.iter().map(String::as_str).collect::<Vec<_>>());
        for name in all(&mut schema_requests, s(0)) {
            assert!(schema_requests.too_often(s(0), &name, Some(s(1))));
        }
        for now in 1..=25 {
            let name = schema_requests.next(s(now)).unwrap();
            schema_requests.answered(s(now), &name);
            assert_eq!(schema_requests.expired(s(now)), [""; 0]);
        }
        // Then it falls silent: for all at once.
        assert!(schema_requests.next(s(26)).is_some());
        assert_eq!(schema_requests.expired(s(35)).len(), 4);
        assert_eq!(schema_requests.expired(s(36)).len(), 1);
        assert_eq!(schema_requests.due_at(), None);
    }

    #[test]
    fn a_node_that_only_refuses_is_asked_so_often() {
        let mut schema_requests = asking(&["a"]);
        for count in 0..REFUSALS_MAX {
            let now = s(count.into());
            assert_eq!(all(&mut schema_requests, now), ["a"]);
            assert!(schema_requests.too_often(now, "a", Some(s(1))));
        }
        let now = s(REFUSALS_MAX.into());
        assert_eq!(all(&mut schema_requests, now), ["a"]);
        assert!(!schema_requests.too_often(now, "a", Some(s(1))));
    }

    #[test]
    fn nobody_waits_longer_than_the_timeout_because_the_node_says_so() {
        for wait in [s(11), Duration::MAX] {
            let mut schema_requests = asking(&["a"]);
            all(&mut schema_requests, s(0));
            assert!(!schema_requests.too_often(s(0), "a", Some(wait)));
        }
        // Just as long: it is sent before it is given up.
        let mut schema_requests = asking(&["a"]);
        all(&mut schema_requests, s(0));
        assert!(schema_requests.too_often(s(0), "a", Some(s(10))));
        assert_eq!(schema_requests.due_at(), Some(s(10)));
        assert_eq!(
            (all(&mut schema_requests, s(10)), schema_requests.expired(s(10))),
            (vec!["a".to_owned()], vec![])
        );
    }
}
