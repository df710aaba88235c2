//! One HTTP connection: hyper, between the stream and the limits.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use playfield_websocket::handshake::reject;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::limits::Limits;
use super::progress::Timeouts;
use super::stream::Stream;
use crate::config::Config;
use crate::shard::connection::http::Refusal;

/// The smallest buffer that hyper takes, in bytes.
const BUFFER_BYTES_MIN: usize = 8 << 10;

/// An event of a connection.
enum Step {
    Ended,
    /// The connection is to return to its shard.
    Returns,
    /// The next request is refused by its head.
    Refused(Refusal),
    /// The client sends nothing more, and is taken for gone at this time.
    Leaves(Instant),
}

/// Settings of connections.
#[derive(Clone)]
pub(super) struct Protocol {
    builder: http1::Builder,
    timeouts: Timeouts,
}

/// The end of a connection.
pub(super) enum End {
    /// In order, or because it broke.
    Closed,
    /// The client was too slow.
    Late,
    /// A request was refused by its head, with this status.
    Refused(u16),
    /// The client asks for a WebSocket: it goes back to its shard, with the bytes behind the head.
    Returns(Box<Stream>, Vec<u8>),
}

impl Protocol {
    pub(super) fn new(config: &Config) -> Self {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            // The timeouts here are those of the whole request.
            .header_read_timeout(None)
            // The stream notices clients that are gone.
            .half_close(true)
            .max_header_size(config.http.head_bytes)
            .max_buf_size(config.http.head_bytes.max(BUFFER_BYTES_MIN));
        let timeouts =
            Timeouts { request: config.http.request_timeout, idle: config.http.idle_timeout };
        Self { builder, timeouts }
    }

    /// Serves a connection to its end, or until `ends` is true and its request is answered.
    pub(super) async fn serve(
        &self,
        stream: Stream,
        limits: Limits,
        mut ends: watch::Receiver<bool>,
    ) -> End {
        let origin = Arc::clone(&limits.origin);
        let service = TowerToHyperService::new(limits);
        let mut connection = self.builder.serve_connection(TokioIo::new(stream), service);
        let progress = Arc::clone(&origin.progress);
        let period = self.timeouts.period();
        let mut tick = std::pin::pin!(sleep_until(Instant::now() + period));
        let (mut is_ending, mut is_leaving) = (false, false);
        let (stream, refusal) = loop {
            tokio::select! {
                biased;
                step = poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
                    Poll::Ready(_) => Poll::Ready(Step::Ended),
                    Poll::Pending if progress.is_broken() => Poll::Ready(Step::Ended),
                    Poll::Pending if origin.is_returning() => Poll::Ready(Step::Returns),
                    Poll::Pending => match (progress.take_refusal(), progress.leaves_at()) {
                        (Some(refusal), _) => Poll::Ready(Step::Refused(refusal)),
                        (None, Some(at)) if !is_leaving => Poll::Ready(Step::Leaves(at)),
                        _ => Poll::Pending,
                    },
                }) => match step {
                    Step::Refused(refusal) => {
                        break (connection.into_parts().io.into_inner(), refusal);
                    }
                    Step::Ended => return End::Closed,
                    Step::Returns => {
                        let parts = connection.into_parts();
                        return End::Returns(Box::new(parts.io.into_inner()), parts.read_buf.into());
                    }
                    Step::Leaves(at) => {
                        is_leaving = true;
                        tick.as_mut().reset(at);
                    }
                },
                _ = ends.wait_for(|ends| *ends), if !is_ending => {
                    is_ending = true;
                    Pin::new(&mut connection).graceful_shutdown();
                }
                () = tick.as_mut() => {
                    if progress.is_late(&self.timeouts) {
                        return End::Late;
                    }
                    tick.as_mut().reset(Instant::now() + period);
                }
            }
        };
        // A client that does not read it can't be helped.
        let _ = timeout(self.timeouts.request, refuse(stream, &refusal)).await;
        End::Refused(refusal.status)
    }
}

/// Answers a request that is refused as the shard answers one, and ends the connection.
async fn refuse(mut stream: Stream, refusal: &Refusal) -> std::io::Result<()> {
    let mut response = Vec::new();
    reject(&mut response, refusal.status, &format!("{}\n", refusal.text));
    stream.write_all(&response).await?;
    stream.shutdown().await
}
