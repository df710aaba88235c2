//! The thread that runs HTTP handlers and has files read.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use playfield_http::{Request, Response, http_date};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

use super::desk::{Answer, Call, Order, Part, Then, Work};
use super::folder::Pieces;
use super::routes::Handling;
use crate::event_loop::SharedRuntime;
use crate::handle::NodeHandle;
use crate::node::Node;
use crate::panics::guard;
use crate::shard::mail::ShardMail;

/// How many orders are taken at once.
const ORDERS: usize = 256;
/// How many threads may read files, or run what handlers pass to `spawn_blocking`.
const BLOCKING_THREADS_MAX: usize = 64;

/// The thread that handlers run on, with a Tokio runtime.
pub(crate) struct Worker {
    pub(crate) shared: Arc<SharedRuntime>,
    pub(crate) node: Arc<Node>,
    pub(crate) handle: NodeHandle,
}

impl Worker {
    /// The runtime for its thread.
    pub(crate) fn runtime() -> io::Result<Runtime> {
        Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_name("playfield-http-blocking")
            .build()
    }

    /// Starts the thread. It ends on request, and drops what is under way.
    pub(crate) fn start(
        self,
        runtime: Runtime,
        mut orders: UnboundedReceiver<Order>,
    ) -> io::Result<JoinHandle<()>> {
        let worker = Arc::new(self);
        thread::Builder::new().name("playfield-http".into()).spawn(move || {
            runtime.block_on(async {
                let mut batch = Vec::with_capacity(ORDERS);
                while orders.recv_many(&mut batch, ORDERS).await > 0 {
                    for order in batch.drain(..) {
                        let Order::Call(call) = order else { return };
                        tokio::spawn(Arc::clone(&worker).serve(*call));
                    }
                }
            });
            runtime.shutdown_background();
        })
    }

    async fn serve(self: Arc<Self>, call: Call) {
        let Call { answer, request, work, under_way } = call;
        match work {
            Work::Route { number, gone } => {
                if let Some(response) = self.handle(number, request, gone).await {
                    if let Some(defect) = response.defect() {
                        log::error!("an HTTP handler's response is answered with 500: {defect}");
                    }
                    let mut bytes = Vec::new();
                    with_date(|date| response.write(&mut bytes, &answer.sending(Some(date))));
                    self.send(answer, bytes, Then::Done);
                }
            }
            Work::File { folder, pulls } => self.send_file(answer, folder, request, pulls).await,
        }
        drop(under_way);
    }

    /// Runs the handler of a route; `None` if the client is gone before it has ended.
    async fn handle(
        &self,
        number: usize,
        request: Request,
        mut gone: oneshot::Receiver<()>,
    ) -> Option<Response> {
        let failed = || Response::error(500, "the handler failed\n");
        let handler = || self.node.site.call(number, request, self.handle.clone());
        let Some(handling) = guard("an HTTP handler", handler) else { return Some(failed()) };
        let mut handling = Guarded(Some(handling));
        poll_fn(|cx| {
            if Pin::new(&mut gone).poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            let Some(future) = &mut handling.0 else { return Poll::Ready(Some(failed())) };
            match guard("an HTTP handler", || future.as_mut().poll(cx)) {
                Some(polled) => polled.map(Some),
                None => Poll::Ready(Some(failed())),
            }
        })
        .await
    }

    /// Sends a file, a piece at a time. Where its connection is gone, nobody asks for the next.
    async fn send_file(
        &self,
        answer: Answer,
        folder: usize,
        request: Request,
        mut pulls: mpsc::Receiver<()>,
    ) {
        let node = Arc::clone(&self.node);
        let reply = spawn_blocking(move || node.site.file(folder, &request));
        let Ok(reply) = reply.await else { return };
        let mut bytes = Vec::new();
        with_date(|date| {
            reply.response.write_head(&mut bytes, &answer.sending(Some(date)), reply.body_bytes);
        });
        let Some(mut pieces) = reply.pieces else {
            if !answer.head_only && reply.body_bytes.is_some() {
                bytes.extend_from_slice(reply.response.body());
            }
            return self.send(answer, bytes, Then::Done);
        };
        loop {
            let next = spawn_blocking(move || {
                let read = pieces.read(&mut bytes);
                (pieces, bytes, read)
            });
            let (rest, piece, read): (Pieces, Vec<u8>, io::Result<bool>) = match next.await {
                Ok(next) => next,
                Err(_) => return,
            };
            match read {
                Ok(is_last) => {
                    self.send(answer, piece, if is_last { Then::Done } else { Then::More });
                    if is_last || pulls.recv().await.is_none() {
                        return;
                    }
                }
                Err(error) => {
                    log::warn!("a file can't be sent to its end: {error}");
                    return self.send(answer, Vec::new(), Then::Broken);
                }
            }
            (pieces, bytes) = (rest, Vec::new());
        }
    }

    /// Sends a part of an answer to its connection. The number of requests under way bounds them.
    fn send(&self, answer: Answer, bytes: Vec<u8>, then: Then) {
        let mail = ShardMail::Answer { answer, part: Part { bytes, then } };
        self.shared.mailboxes[usize::from(answer.shard)].push_promised(mail);
    }
}

/// A handler under way, whose code may also panic when it is dropped.
struct Guarded(Option<Handling>);

impl Drop for Guarded {
    fn drop(&mut self) {
        guard("an HTTP handler", || drop(self.0.take()));
    }
}

/// Lends the present as a header has it. It is written once a second.
fn with_date(lend: impl FnOnce(&str)) {
    thread_local! {
        static DATE: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
    }
    let now = SystemTime::now();
    let second = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    DATE.with_borrow_mut(|(written, date)| {
        if *written != second {
            (*written, *date) = (second, http_date(now));
        }
        lend(date);
    });
}
