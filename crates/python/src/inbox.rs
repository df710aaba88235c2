//! Received messages that wait for the program.

use std::collections::VecDeque;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// The most fragments of a message that are kept apart; further ones are joined. A fragment may be
/// empty, and each takes some memory.
const FRAGMENTS_MAX: usize = 1 << 10;

/// The most received bytes at the front of a message that are kept, if they are less than half of
/// it.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Messages in their order. The last one may be incomplete, and the first one may be received in
/// part: fragment by fragment.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    messages: VecDeque<Message>,
    /// The number of fragments that wait. A message that arrived whole is one.
    fragments: usize,
    /// The start of the first message was received, and the rest was not.
    streams: bool,
    /// The rest of the last message is dropped as it arrives.
    drops: bool,
}

#[derive(Debug)]
enum Message {
    Whole(Py<PyAny>),
    Fragments(Box<Fragments>),
}

/// A message, or the rest of one, that arrives in fragments.
#[derive(Debug)]
struct Fragments {
    bytes: Bytes,
    /// The ends of the fragments in `bytes`.
    ends: VecDeque<usize>,
    /// The number of bytes received at the front.
    received: usize,
    complete: bool,
}

#[derive(Debug)]
enum Bytes {
    Text(String),
    Binary(Vec<u8>),
}

/// A message or a fragment.
#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    Text(&'a str),
    Binary(&'a [u8]),
}

impl Inbox {
    /// Adds a message or a fragment; `fin` says whether it ends its message. If it begins a message
    /// and `fragments_max` wait, the message is dropped.
    pub(crate) fn push(&mut self, py: Python<'_>, part: Part<'_>, fin: bool, fragments_max: usize) {
        if self.drops {
            self.drops = !fin;
            return;
        }
        if let Some(Message::Fragments(last)) = self.messages.back_mut()
            && !last.complete
        {
            self.fragments += last.push(part, fin);
            return;
        }
        if self.fragments >= fragments_max {
            self.drops = !fin;
        } else if fin {
            self.push_whole(part.object(py).unbind());
        } else {
            let mut message = Box::new(Fragments::new(part));
            self.fragments += message.push(part, fin);
            self.messages.push_back(Message::Fragments(message));
        }
    }

    /// Adds a whole message.
    pub(crate) fn push_whole(&mut self, message: Py<PyAny>) {
        self.fragments += 1;
        self.messages.push_back(Message::Whole(message));
    }

    /// Puts a message back that was [popped](Self::pop).
    pub(crate) fn put_back(&mut self, message: Py<PyAny>) {
        self.fragments += 1;
        self.messages.push_front(Message::Whole(message));
    }

    /// Returns the number of fragments that wait.
    pub(crate) fn len(&self) -> usize {
        self.fragments
    }

    /// Whether somebody receives the first message fragment by fragment.
    pub(crate) fn is_streamed(&self) -> bool {
        self.streams
    }

    pub(crate) fn has_message(&self) -> bool {
        match self.messages.front() {
            Some(Message::Whole(_)) => true,
            Some(Message::Fragments(first)) => first.complete,
            None => false,
        }
    }

    pub(crate) fn has_fragment(&self) -> bool {
        match self.messages.front() {
            Some(Message::Whole(_)) => true,
            Some(Message::Fragments(first)) => !first.ends.is_empty(),
            None => false,
        }
    }

    /// The next message, once it is complete.
    pub(crate) fn pop<'py>(&mut self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        if !self.has_message() {
            return None;
        }
        match self.messages.pop_front()? {
            Message::Whole(message) => {
                self.fragments -= 1;
                Some(message.into_bound(py))
            }
            Message::Fragments(message) => {
                self.fragments -= message.ends.len();
                Some(message.bytes.object(py, message.received, message.bytes.len()))
            }
        }
    }

    /// The next fragment, and whether it ends its message.
    pub(crate) fn pop_fragment<'py>(
        &mut self,
        py: Python<'py>,
    ) -> Option<(Bound<'py, PyAny>, bool)> {
        let fragment = match self.messages.front_mut()? {
            Message::Whole(_) => (self.messages.pop_front()?.whole(py)?, true),
            Message::Fragments(first) => {
                let (fragment, ends) = first.pop(py)?;
                if ends {
                    self.messages.pop_front();
                }
                (fragment, ends)
            }
        };
        self.fragments -= 1;
        self.streams = !fragment.1;
        Some(fragment)
    }

    /// The messages that arrived whole, for the garbage collector.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Py<PyAny>> {
        self.messages.iter().filter_map(|message| match message {
            Message::Whole(message) => Some(message),
            Message::Fragments(_) => None,
        })
    }
}

impl Message {
    fn whole(self, py: Python<'_>) -> Option<Bound<'_, PyAny>> {
        match self {
            Self::Whole(message) => Some(message.into_bound(py)),
            Self::Fragments(_) => None,
        }
    }
}

impl Fragments {
    fn new(first: Part<'_>) -> Self {
        let bytes = match first {
            Part::Text(_) => Bytes::Text(String::new()),
            Part::Binary(_) => Bytes::Binary(Vec::new()),
        };
        Self { bytes, ends: VecDeque::new(), received: 0, complete: false }
    }

    /// Adds a fragment. Returns how many more wait now.
    fn push(&mut self, part: Part<'_>, fin: bool) -> usize {
        self.bytes.extend(part);
        self.complete = fin;
        let end = self.bytes.len();
        let is_full = self.ends.len() >= FRAGMENTS_MAX;
        match self.ends.back_mut().filter(|_| is_full) {
            Some(last) => {
                *last = end;
                0
            }
            None => {
                self.ends.push_back(end);
                1
            }
        }
    }

    /// The next fragment, and whether it ends the message.
    fn pop<'py>(&mut self, py: Python<'py>) -> Option<(Bound<'py, PyAny>, bool)> {
        let end = self.ends.pop_front()?;
        let fragment = self.bytes.object(py, self.received, end);
        self.received = end;
        if self.ends.is_empty() || (end >= KEPT_BYTES_MAX && end >= self.bytes.len() / 2) {
            self.bytes.drop_front(end);
            self.ends.iter_mut().for_each(|later| *later -= end);
            self.received = 0;
        }
        Some((fragment, self.complete && self.ends.is_empty()))
    }
}

impl Bytes {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }

    fn extend(&mut self, part: Part<'_>) {
        match (self, part) {
            (Self::Text(text), Part::Text(more)) => text.push_str(more),
            (Self::Binary(bytes), Part::Binary(more)) => bytes.extend_from_slice(more),
            // All fragments of a message are of one kind.
            (Self::Text(_), Part::Binary(_)) | (Self::Binary(_), Part::Text(_)) => {}
        }
    }

    fn drop_front(&mut self, bytes: usize) {
        match self {
            Self::Text(text) => *text = text.split_off(bytes),
            Self::Binary(all) => *all = all.split_off(bytes),
        }
    }

    fn object<'py>(&self, py: Python<'py>, begin: usize, end: usize) -> Bound<'py, PyAny> {
        match self {
            Self::Text(text) => PyString::new(py, &text[begin..end]).into_any(),
            Self::Binary(bytes) => PyBytes::new(py, &bytes[begin..end]).into_any(),
        }
    }
}

impl Part<'_> {
    fn object<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self {
            Self::Text(text) => PyString::new(py, text).into_any(),
            Self::Binary(bytes) => PyBytes::new(py, bytes).into_any(),
        }
    }
}
