//! A service as its shard sees it: with its connections' states, and type-erased.

use std::net::SocketAddr;

use playfield_wire::framing::{FrameCodec, FrameError};

use crate::panics::guard;
use crate::service::{Answered, Closed, Command, ConnectionId, Context, Peer, Reach, Service};
use crate::shard::connection::Connection;
use crate::shard::keys::ConnectionKey;

/// The maximum overhead of a frame. An incomplete frame may be this much longer than the limit of a
/// body.
const AROUND_BODY_BYTES_MAX: usize = 64;

/// The error for a codec that consumes no bytes for a frame, or more than were received.
const NO_FRAME: &str = "the codec returned a frame of no bytes, or of more than were received";

/// A type-erased service. It makes one dynamic call for all frames of a read.
pub(crate) trait AnyService: Send {
    fn connected(&mut self, key: ConnectionKey, address: SocketAddr, reach: Reach<'_>) -> Served;
    /// Handles the complete frames at the front, as many as the outbox has space for replies.
    fn received(&mut self, key: ConnectionKey, input: &[u8], reach: Reach<'_>) -> Served;
    fn silent(&mut self, key: ConnectionKey, reach: Reach<'_>) -> Served;
    fn command(&mut self, key: ConnectionKey, command: Command<'_>, reach: Reach<'_>) -> Served;
    fn closed(&mut self, key: ConnectionKey, why: &Closed, reach: Reach<'_>);
    fn answered(&mut self, answer: Answered, reach: Reach<'_>);
    fn woken(&mut self, reach: Reach<'_>);
}

/// The result of a call for one connection.
pub(crate) struct Served {
    /// The number of bytes of the input that were handled.
    pub(crate) handled: usize,
    pub(crate) frames: u64,
    /// Data to be written to the connection.
    pub(crate) out: Vec<u8>,
    /// Too much is queued for it to handle more of its input for now.
    pub(crate) is_behind: bool,
    /// The connection has to be closed.
    pub(crate) ends: Option<Closed>,
}

/// A service, and its connections' states.
pub(crate) struct Hosted<S: Service> {
    service: S,
    codec: S::Codec,
    /// By the connections' places.
    states: Vec<Option<Held<S::Connection>>>,
}

/// The state of a connection.
struct Held<C> {
    state: C,
    /// The number of bytes at the front of its input that the codec has seen without finding the
    /// end of a frame.
    known: usize,
}

impl<S: Service> Hosted<S> {
    pub(crate) fn new(service: S) -> Self {
        Self { codec: service.codec(), service, states: Vec::new() }
    }

    /// Makes a call for one connection. After a panic, a partly written frame is discarded.
    fn serve(
        &mut self,
        key: ConnectionKey,
        reach: Reach<'_>,
        call: impl FnOnce(
            &mut S,
            &mut Option<Held<S::Connection>>,
            &S::Codec,
            &mut Peer<S>,
            &mut Progress,
        ) -> Option<Closed>,
    ) -> Served {
        let Self { service, codec, states } = self;
        if key.index() >= states.len() {
            states.resize_with(key.index() + 1, || None);
        }
        let state = &mut states[key.index()];
        let connection = reach.connections.get(key);
        let waiting = connection.map_or(0, Connection::unsent);
        let in_messages = connection.is_some_and(Connection::is_websocket);
        let space = reach.outbox_high_bytes.saturating_sub(waiting);
        let mut peer = Peer { cx: Context::new(codec, Some(key), in_messages, reach), key };
        let mut progress = Progress { space, ..Progress::default() };
        let result = guard("a service", || call(service, state, codec, &mut peer, &mut progress));
        let ends = result.unwrap_or_else(|| {
            peer.cx.out.truncate(progress.written);
            Some(Closed::Panicked)
        });
        let (out, is_told) = peer.cx.finish();
        Served {
            handled: progress.handled,
            frames: progress.frames,
            is_behind: out.len() > space,
            out,
            ends: ends.or_else(|| is_told.then_some(Closed::ByService)),
        }
    }
}

/// The progress of a call, also if it panics.
#[derive(Default)]
struct Progress {
    handled: usize,
    frames: u64,
    /// The number of bytes written when the last frame began.
    written: usize,
    /// Once this many bytes are written, no further frame is handled.
    space: usize,
}

impl<S: Service> AnyService for Hosted<S> {
    fn connected(&mut self, key: ConnectionKey, address: SocketAddr, reach: Reach<'_>) -> Served {
        self.serve(key, reach, |service, state, _, peer, _| {
            *state = Some(Held { state: service.connected(address, peer), known: 0 });
            None
        })
    }

    fn received(&mut self, key: ConnectionKey, input: &[u8], reach: Reach<'_>) -> Served {
        self.serve(key, reach, |service, state, codec, peer, progress| {
            let Held { state, known } = state.as_mut()?;
            let body_bytes_max = peer.cx.reach.message_bytes_max;
            loop {
                let left = input.get(progress.handled..)?;
                // The codec sees the first bytes again, and those after a frame for the first time.
                let seen = std::mem::take(known).min(left.len());
                let frame = match codec.decode_on(left, seen, body_bytes_max) {
                    Ok(Some(frame)) => frame,
                    Ok(None)
                        if left.len() > body_bytes_max.saturating_add(AROUND_BODY_BYTES_MAX) =>
                    {
                        return Some(Closed::Frame(FrameError::Endless { bytes: left.len() }));
                    }
                    Ok(None) => {
                        *known = left.len();
                        return None;
                    }
                    Err(error) => return Some(Closed::Frame(error)),
                };
                // Custom codecs may be wrong.
                if !(1..=left.len()).contains(&frame.consumed) {
                    return Some(Closed::Frame(FrameError::Malformed(NO_FRAME)));
                }
                if frame.body.len() > body_bytes_max {
                    let error = FrameError::too_large(frame.body.len(), body_bytes_max);
                    return Some(Closed::Frame(error));
                }
                progress.handled += frame.consumed;
                progress.frames += 1;
                if let Err(error) = service.received(state, frame, peer) {
                    return Some(Closed::Failed(error));
                }
                progress.written = peer.cx.out.len();
                if peer.cx.ends || progress.written > progress.space {
                    return None;
                }
            }
        })
    }

    fn silent(&mut self, key: ConnectionKey, reach: Reach<'_>) -> Served {
        self.serve(key, reach, |service, state, _, peer, _| {
            service.silent(&mut state.as_mut()?.state, peer);
            None
        })
    }

    fn command(&mut self, key: ConnectionKey, command: Command<'_>, reach: Reach<'_>) -> Served {
        self.serve(key, reach, |service, state, _, peer, _| {
            service.command(&mut state.as_mut()?.state, command, peer).err().map(Closed::Failed)
        })
    }

    fn closed(&mut self, key: ConnectionKey, why: &Closed, reach: Reach<'_>) {
        let Self { service, codec, states } = self;
        let Some(Held { state, .. }) = states.get_mut(key.index()).and_then(Option::take) else {
            return;
        };
        let id = ConnectionId { shard: reach.shard, key };
        let mut cx = Context::new(codec, None, false, reach);
        guard("a service", || service.closed(state, id, why, &mut cx));
        cx.finish();
    }

    fn answered(&mut self, answer: Answered, reach: Reach<'_>) {
        let Self { service, codec, .. } = self;
        let mut cx = Context::new(codec, None, false, reach);
        guard("a service", || service.answered(answer, &mut cx));
        cx.finish();
    }

    fn woken(&mut self, reach: Reach<'_>) {
        let Self { service, codec, .. } = self;
        let mut cx = Context::new(codec, None, false, reach);
        guard("a service", || service.woken(&mut cx));
        cx.finish();
    }
}
