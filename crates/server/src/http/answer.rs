//! The code of the program that makes an answer: a handler, and the body of what it returns. It may
//! panic, and the watchdog knows what was called.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{Method, Request, Uri};
use axum::response::Response;
use http_body::{Frame, SizeHint};
use tower::Service;

use super::progress::Progress;
use super::requests::UnderWay;
use crate::handle::NodeHandle;
use crate::panics::guard;

/// A handler under way, whose code may panic when it is polled and when it is dropped. Its output
/// is `None` then.
pub(super) struct Guarded<F> {
    handling: Option<Pin<Box<F>>>,
    called: HandlerOf,
}

impl<F: Future> Future for Guarded<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.called.note();
        let Some(future) = &mut self.handling else { return Poll::Ready(None) };
        match guard(HANDLER, || future.as_mut().poll(cx)) {
            Some(polled) => polled.map(Some),
            None => Poll::Ready(None),
        }
    }
}

impl<F> Drop for Guarded<F> {
    fn drop(&mut self) {
        guard(HANDLER, || drop(self.handling.take()));
    }
}

/// The handler of a request, as the watchdog knows it.
pub(super) struct HandlerOf {
    handle: NodeHandle,
    request: (Method, Uri),
}

impl HandlerOf {
    pub(super) fn new(handle: &NodeHandle, parts: &Parts) -> Self {
        let request = (parts.method.clone(), parts.uri.clone());
        Self { handle: handle.clone(), request }
    }

    /// Calls it. `None` if it panics.
    pub(super) fn call(
        self,
        router: &Router,
        request: Request<Body>,
    ) -> Option<Guarded<impl Future<Output = Result<Response, Infallible>>>> {
        self.note();
        let handling = guard(HANDLER, || router.clone().call(request))?;
        Some(Guarded { handling: Some(Box::pin(handling)), called: self })
    }

    /// The handler is about to be called.
    fn note(&self) {
        self.handle.control_pulse().calls_handler(&self.request);
    }
}

/// Reports that an answer is handed to the socket, when it is dropped.
pub(super) struct Sending(pub(super) Arc<Progress>);

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.answered();
    }
}

/// The body of an answer, whose code may panic as well as a handler's. Its request is under way until
/// it is sent.
pub(super) struct Answer {
    body: Option<Body>,
    _under_way: Option<UnderWay>,
    _sending: Sending,
}

impl Answer {
    pub(super) fn new(body: Body, under_way: Option<UnderWay>, sending: Sending) -> Self {
        Self { body: Some(body), _under_way: under_way, _sending: sending }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        guard(BODY, || Pin::new(body).poll_frame(cx)).unwrap_or_else(|| {
            let body = self.body.take();
            guard(BODY, || drop(body));
            Poll::Ready(Some(Err(axum::Error::new("the body of an answer panicked"))))
        })
    }

    fn is_end_stream(&self) -> bool {
        let is_over = |body: &Body| guard(BODY, || body.is_end_stream()).unwrap_or(false);
        self.body.as_ref().is_none_or(is_over)
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.as_ref().and_then(|body| guard(BODY, || body.size_hint()));
        hint.unwrap_or_default()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        guard(BODY, || drop(self.body.take()));
    }
}

/// The code of the program, as the log names it: a handler, and what runs while the body of an answer
/// is sent.
const HANDLER: &str = "an HTTP handler";
const BODY: &str = "the body of an HTTP answer";
