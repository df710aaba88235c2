//! From bytes to requests.

use crate::body::Body;
use crate::head::check_first_line;
use crate::{Head, Request, RequestError};

/// Limits on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest head, in bytes, including the empty line that ends it; also the longest trailer
    /// section (default 8 KiB).
    pub head_bytes_max: usize,
    /// The maximum number of headers (default 64).
    pub headers_max: usize,
    /// The longest body, in bytes (default 1 MiB).
    pub body_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { head_bytes_max: 8 << 10, headers_max: 64, body_bytes_max: 1 << 20 }
    }
}

/// Parses the requests of one connection, one after the other. It keeps only what it needs to go on;
/// the caller keeps input that was not consumed, and adds to it.
#[derive(Debug)]
pub struct Parser {
    limits: Limits,
    state: State,
}

#[derive(Debug)]
enum State {
    /// A head is coming in.
    Head(Scan),
    /// The head is complete.
    Body { head: Head, body: Body },
}

/// How much of a head was looked at: no byte is looked at twice.
#[derive(Debug, Default)]
struct Scan {
    /// So many bytes have no end of the head.
    seen: usize,
    /// Where the current line begins.
    line: usize,
    /// The first line was found to be valid.
    checked: bool,
}

/// What a call of [`Parser::parse`] has found.
#[derive(Debug)]
pub enum Step {
    /// More input is needed.
    Partial,
    /// The head is complete: see [`Parser::head`]. The request follows in a later step, even if it
    /// has no body.
    Head,
    /// A whole request.
    Complete(Request),
}

impl Parser {
    /// A parser at the beginning of a connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits, state: State::Head(Scan::default()) }
    }

    /// Goes on with the input, which begins where the last call stopped consuming. Returns how much
    /// was consumed, and what was found. Input that is not consumed must be given again, with more
    /// behind it.
    ///
    /// # Errors
    /// What is wrong with the request. Nothing after it can be parsed.
    pub fn parse(&mut self, input: &[u8]) -> Result<(usize, Step), RequestError> {
        match &mut self.state {
            State::Head(scan) => {
                if let Some(empty) = empty_lines(input).filter(|_| scan.seen == 0) {
                    return Ok((empty, Step::Partial));
                }
                let Some(end) = scan.find_end(input, &self.limits)? else {
                    return Ok((0, Step::Partial));
                };
                let head = Head::parse(&input[..end], &self.limits)?;
                let body = Body::new(head.framing);
                self.state = State::Body { head, body };
                Ok((end, Step::Head))
            }
            State::Body { body, .. } => {
                let taken = body.take(input, &self.limits)?;
                let Some(body) = body.finished() else { return Ok((taken, Step::Partial)) };
                let begin = State::Head(Scan::default());
                let State::Body { head, .. } = std::mem::replace(&mut self.state, begin) else {
                    return Ok((taken, Step::Partial));
                };
                Ok((taken, Step::Complete(Request::new(head, body))))
            }
        }
    }

    /// The head of the request whose body is coming in.
    pub fn head(&self) -> Option<&Head> {
        match &self.state {
            State::Head(_) => None,
            State::Body { head, .. } => Some(head),
        }
    }

    /// How much memory a request takes while its body is being received.
    pub fn buffered_bytes(&self) -> usize {
        match &self.state {
            State::Head(_) => 0,
            State::Body { head, body } => head.bytes().len() + body.buffered_bytes(),
        }
    }

    /// Whether nothing of a request has been consumed or looked at.
    pub fn is_idle(&self) -> bool {
        matches!(&self.state, State::Head(scan) if scan.seen == 0)
    }
}

/// How many bytes of empty lines are at the front, which some clients send after a body (RFC 9112,
/// 2.2); `None` if there are none.
fn empty_lines(input: &[u8]) -> Option<usize> {
    let lines = input.chunks(2).take_while(|line| line == b"\r\n").count();
    (lines > 0).then_some(2 * lines)
}

impl Scan {
    /// Where the head ends, if its end is there.
    fn find_end(&mut self, input: &[u8], limits: &Limits) -> Result<Option<usize>, RequestError> {
        // What lies beyond the limit must not matter, however the input is split.
        let input = &input[..input.len().min(limits.head_bytes_max)];
        while let Some(at) = input[self.seen..].iter().position(|&byte| byte == b'\n') {
            let at = self.seen + at;
            if at == 0 || input[at - 1] != b'\r' {
                // The parser accepts it, but a proxy in front of us may not, and would then see one
                // header where we see two.
                self.check_first_line(input, limits)?;
                return Err(RequestError::malformed(
                    "a line ends in a line feed without a carriage return",
                ));
            }
            let is_empty = at == self.line + 1;
            (self.seen, self.line) = (at + 1, at + 1);
            if is_empty {
                return Ok(Some(at + 1));
            }
        }
        // A carriage return at the end may be half of an empty line before the request.
        self.seen = if input == b"\r" { 0 } else { input.len() };
        self.check_first_line(input, limits)?;
        if input.len() < limits.head_bytes_max {
            return Ok(None);
        }
        let is_in_target = self.line == 0 && input.contains(&b' ');
        Err(if is_in_target {
            RequestError::TargetTooLong
        } else {
            RequestError::HeadTooLarge { bytes_max: limits.head_bytes_max }
        })
    }

    /// Checks the first line once it is there, so that anything but HTTP is refused early.
    fn check_first_line(&mut self, input: &[u8], limits: &Limits) -> Result<(), RequestError> {
        if !self.checked
            && let Some(end) = input.iter().position(|&byte| byte == b'\n')
        {
            check_first_line(&input[..=end], limits)?;
            self.checked = true;
        }
        Ok(())
    }
}
