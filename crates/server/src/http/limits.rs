//! Limits around the site: by address, on the size of bodies, and on time.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Method, Request, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout, timeout_at};
use tower::Service;

use super::answer::{Answer, HandlerOf, Sending};
use super::folder::not_found;
use super::pages::Pages;
use super::progress::Progress;
use super::requests::{Full, UnderWay};
use crate::addresses::{BytesHeld, Tally};
use crate::config::Config;
use crate::handle::NodeHandle;
use crate::proxy::{Client, forwarded};
use crate::shard::connection::address::Unnamed;
use crate::stats::{HttpCounters, Published};

/// A node's site, and what its requests need to know of the node.
pub(super) struct Front {
    pub(super) handle: NodeHandle,
    pub(super) pages: Pages,
    pub(super) router: Router,
    pub(super) unnamed: Mutex<Unnamed>,
    /// A connection may become a WebSocket to the rooms.
    pub(super) has_rooms: bool,
}

/// A connection, as its requests know it.
pub(super) struct Origin {
    pub(super) peer: Client,
    tally: Mutex<Option<Tally>>,
    pub(super) progress: Arc<Progress>,
    published: Arc<Published>,
    /// The head of a request that asks for a WebSocket, with which the connection returns to its
    /// shard.
    returns: Mutex<Option<Vec<u8>>>,
}

impl Origin {
    pub(super) fn new(
        peer: Client,
        tally: Tally,
        progress: Arc<Progress>,
        published: Arc<Published>,
    ) -> Self {
        let (tally, returns) = (Mutex::new(Some(tally)), Mutex::default());
        Self { peer, tally, progress, published, returns }
    }

    /// Returns whether the connection is to return to its shard, and all answers are written.
    pub(super) fn is_returning(&self) -> bool {
        lock(&self.returns).is_some() && !self.progress.is_blocked()
    }

    /// Takes what the shard needs: the head of the request, and where the connection is counted.
    pub(super) fn take(&self) -> Option<(Vec<u8>, Tally)> {
        Some((lock(&self.returns).take()?, lock(&self.tally).take()?))
    }

    /// Ends the handshake: the connection was of use.
    fn settle(&self) {
        if let Some(tally) = &mut *lock(&self.tally) {
            tally.settle();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers the requests of one connection: the limits, and the site within.
#[derive(Clone)]
pub(super) struct Limits {
    pub(super) front: Arc<Front>,
    pub(super) origin: Arc<Origin>,
}

impl Service<Request<Incoming>> for Limits {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { Ok(this.answer(request).await) })
    }
}

impl Limits {
    async fn answer(self, request: Request<Incoming>) -> Response<Answer> {
        let begun = self.origin.progress.begins();
        let sending = Sending(Arc::clone(&self.origin.progress));
        let (parts, body) = request.into_parts();
        if self.front.has_rooms
            && let Some(head) = websocket_head(&parts)
        {
            *lock(&self.origin.returns) = Some(head);
            return pending().await;
        }
        self.origin.published.http.requests.fetch_add(1, Ordering::Relaxed);
        let ends = parts.headers.contains_key(TRANSFER_ENCODING);
        let (mut response, under_way) = match self.decide(parts, body, begun).await {
            Ok((response, under_way)) => (response, under_way),
            Err(Refused(refused)) => (*refused, None),
        };
        if ends {
            // A reader that used `Content-Length` instead would see another end of the request, and
            // another beginning of the next: there is none (RFC 9112, 6.1).
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response.map(|body| Answer::new(body, under_way, sending))
    }

    async fn decide(
        &self,
        mut parts: Parts,
        body: Incoming,
        begun: Instant,
    ) -> Result<(Response, Option<UnderWay>), Refused> {
        let Self { front, origin } = self;
        check_target(&parts)?;
        let node = front.handle.node();
        let now = front.handle.now();
        let client = self.client_of(&parts);
        let address = node.addresses.of(client, now);
        origin.settle();
        let mut held = BytesHeld::new(Arc::clone(&address));
        let reads = matches!(parts.method, Method::GET | Method::HEAD);
        if reads && let Some(page) = front.pages.find(parts.uri.path()) {
            return Ok((page.answer(&parts), None));
        }
        let body = if body.is_end_stream() {
            Bytes::new()
        } else {
            let by = begun + node.config.http.request_timeout;
            let collected = collect(body, &mut held, &node.config, &origin.published.http);
            timeout_at(by, collected).await.unwrap_or_else(|_| Err(too_slow(&node.config)))?
        };
        let under_way = match node.requests.admit(address, held) {
            Ok(under_way) => under_way,
            Err(full) => return Ok((self.overload(full), None)),
        };
        parts.extensions.insert(front.handle.clone());
        parts.extensions.insert(ConnectInfo::<SocketAddr>(client.address));
        let called = HandlerOf::new(&front.handle, &parts);
        let request = Request::from_parts(parts, Body::from(body));
        let failed = || (StatusCode::INTERNAL_SERVER_ERROR, "the handler failed\n").into_response();
        let Some(handling) = called.call(&front.router, request) else {
            return Ok((failed(), Some(under_way)));
        };
        let response = match timeout(node.config.http.answer_timeout, handling).await {
            Ok(Some(Ok(response))) => explained(response),
            Ok(None) => failed(),
            Err(_) => {
                origin.published.http.unavailable.fetch_add(1, Ordering::Relaxed);
                let limit = node.config.http.answer_timeout;
                let text = format!("http.answer_timeout: no answer within {limit:?}\n");
                (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
            }
        };
        Ok((response, Some(under_way)))
    }

    /// The client that sent a request: the one that a trusted proxy names, or else the peer.
    fn client_of(&self, parts: &Parts) -> Client {
        let (peer, addresses) = (self.origin.peer, &self.front.handle.node().addresses);
        if !addresses.is_proxy(peer.address.ip()) {
            return peer;
        }
        let headers: Vec<&[u8]> =
            parts.headers.get_all("x-forwarded-for").iter().map(HeaderValue::as_bytes).collect();
        let client = forwarded(peer, headers.into_iter(), |ip| addresses.is_proxy(ip));
        if client != peer && lock(&self.front.unnamed).note(client, self.front.handle.now()) {
            self.origin.published.http.unnamed.fetch_add(1, Ordering::Relaxed);
        }
        client
    }

    /// The answer to a request that is refused because of a limit.
    fn overload(&self, full: Full) -> Response {
        let (config, counters) = (&self.front.handle.node().config, &self.origin.published.http);
        let (status, text) = match full {
            Full::Node => {
                let max = config.http.requests.total;
                let text = format!(
                    "http.requests.total: {max} requests are under way already, streams and \
                         files that are being sent included; try again\n"
                );
                (StatusCode::SERVICE_UNAVAILABLE, text)
            }
            Full::Address => {
                let max = config.http.requests.per_address;
                let text = format!(
                    "http.requests.per_address: {max} requests from your address are under way \
                     already, streams and files that are being sent included; try again when some \
                     are answered\n"
                );
                (StatusCode::TOO_MANY_REQUESTS, text)
            }
        };
        let counter = match full {
            Full::Address => &counters.too_many,
            Full::Node => &counters.unavailable,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        (status, [(RETRY_AFTER, "1")], text).into_response()
    }
}

/// A request that is refused before its body is read: the connection ends with the answer.
struct Refused(Box<Response>);

impl Refused {
    fn new(status: StatusCode, text: impl Into<String>) -> Self {
        let close = [(CONNECTION, "close")];
        Self(Box::new((status, close, text.into()).into_response()))
    }
}

/// The head of a request that asks for a WebSocket, as bytes; `None` for any other.
fn websocket_head(parts: &Parts) -> Option<Vec<u8>> {
    let names = |header, token: &str| {
        let values = parts.headers.get_all(header).into_iter();
        let tokens = values.flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
        tokens.map(<[u8]>::trim_ascii).any(|of| of.eq_ignore_ascii_case(token.as_bytes()))
    };
    if parts.version != Version::HTTP_11
        || !names(CONNECTION, "upgrade")
        || !names(UPGRADE, "websocket")
    {
        return None;
    }
    let target = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut head = format!("{} {target} HTTP/1.1\r\n", parts.method).into_bytes();
    for (name, value) in &parts.headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    Some(head)
}

/// Refuses targets that are no paths, which `CONNECT` and `OPTIONS *` have.
fn check_target(parts: &Parts) -> Result<(), Refused> {
    if parts.uri.path().starts_with('/') {
        return Ok(());
    }
    let method = &parts.method;
    let text = format!("{method}: the target of the request is not a path, such as /\n");
    Err(Refused::new(StatusCode::BAD_REQUEST, text))
}

/// Gives a 404 without a text the one that all others have, such as that of a router that has no
/// route.
fn explained(mut response: Response) -> Response {
    let is_empty = response.body().size_hint().exact() == Some(0);
    if response.status() == StatusCode::NOT_FOUND
        && is_empty
        && !response.headers().contains_key(CONTENT_TYPE)
    {
        let (parts, body) = not_found().into_parts();
        *response.body_mut() = body;
        response.headers_mut().remove(CONTENT_LENGTH);
        response.headers_mut().extend(parts.headers);
    }
    response
}

fn too_slow(config: &Config) -> Refused {
    let limit = config.http.request_timeout;
    let text = format!("http.request_timeout: the request was not complete within {limit:?}\n");
    Refused::new(StatusCode::REQUEST_TIMEOUT, text)
}

/// Reads a body to its end.
async fn collect(
    mut body: Incoming,
    held: &mut BytesHeld,
    config: &Config,
    counters: &HttpCounters,
) -> Result<Bytes, Refused> {
    let bytes_max = config.http.body_bytes;
    let too_large = || {
        let text = format!("http.body_bytes: a body may have {bytes_max} bytes\n");
        Refused::new(StatusCode::PAYLOAD_TOO_LARGE, text)
    };
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large());
    }
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let cut = |_| Refused::new(StatusCode::BAD_REQUEST, "the body can't be read\n");
        let Ok(data) = frame.map_err(cut)?.into_data() else { continue };
        if all.len() + data.len() > bytes_max {
            return Err(too_large());
        }
        if !held.adds(data.len()) {
            counters.unavailable.fetch_add(1, Ordering::Relaxed);
            let text = "limits.memory: clients hold too much \
                        memory; try again\n";
            return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, text));
        }
        all.extend_from_slice(&data);
    }
    Ok(all.into())
}
