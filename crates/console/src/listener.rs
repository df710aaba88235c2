//! Connections of browsers to the console.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::http::header::{CONNECTION, HOST, SET_COOKIE};
use axum::response::Response;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use playfield_server::NodeHandle;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::gate::Gate;
use crate::places::{Place, Places};
use crate::request::{self, Request};
use crate::{api, pages};

/// The longest time of a connection's next request, up to the end of its head.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The longest time in which the body of a request arrives.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// The longest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 256 << 10;
/// The time between two looks whether the node has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The limits for a browser on what the console serves: nothing may be framed, loaded from
/// elsewhere or sniffed. WebSockets go to the rooms, whose port is another.
const SECURITY: [(&str, &str); 4] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
];

pub(crate) struct Listener {
    socket: TcpListener,
    gate: Arc<Gate>,
    node: NodeHandle,
    places: Places,
}

impl Listener {
    pub(crate) fn new(socket: TcpListener, gate: Gate, node: NodeHandle) -> Self {
        Self { socket, gate: Arc::new(gate), node, places: Places::default() }
    }

    /// Serves until the node has ended.
    pub(crate) async fn run(self) {
        // Looked at after each connection, too: some clients connect without a pause.
        while !self.node.has_ended() {
            let Ok(accepted) = timeout(LOOK_EVERY, self.socket.accept()).await else { continue };
            match accepted {
                // Without a place it is closed at once.
                Ok((stream, from)) => {
                    if let Some(place) = self.places.take() {
                        let number = place.number();
                        let (gate, node) = (Arc::clone(&self.gate), self.node.clone());
                        let task = tokio::spawn(serve(stream, from.ip(), place, gate, node));
                        self.places.served_by(number, task.abort_handle());
                    }
                }
                // Such as when there are no descriptors left.
                Err(_) => sleep(LOOK_EVERY).await,
            }
        }
    }
}

async fn serve(stream: TcpStream, from: IpAddr, place: Place, gate: Arc<Gate>, node: NodeHandle) {
    let _ = stream.set_nodelay(true);
    let place = Arc::new(place);
    let service = service_fn(move |request| {
        let (place, gate, node) = (Arc::clone(&place), Arc::clone(&gate), node.clone());
        async move {
            place.answers();
            let response = match whole(request).await {
                Ok(request) => answer(&request, from, &gate, &node).await,
                Err(refusal) => refusal,
            };
            // A browser that does not read its answer keeps nobody out.
            place.waits();
            Ok::<_, Infallible>(secured(response))
        }
    });
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(SILENCE_MAX);
    // A browser that went away needs no notice.
    let _ = protocol.serve_connection(TokioIo::new(stream), service).await;
}

/// Reads a request to its end, or says what is wrong with it.
async fn whole(request: hyper::Request<Incoming>) -> Result<Request, Response> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect();
    let closing = |status, text: &str| {
        let mut response = request::text(status, text);
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    };
    if parts.headers.get_all(HOST).iter().count() != 1 {
        return Err(closing(400, "a request needs one Host header"));
    }
    match timeout(REQUEST_MAX, body).await {
        Ok(Ok(body)) => Ok(Request::new(parts, body.to_bytes())),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(closing(413, "the body is too large"))
        }
        Ok(Err(_)) => Err(closing(400, "the body can't be read")),
        Err(_) => Err(closing(408, "the body was not complete in time")),
    }
}

async fn answer(request: &Request, from: IpAddr, gate: &Gate, node: &NodeHandle) -> Response {
    let cookie = match gate.check(request, from) {
        Ok(cookie) => cookie,
        Err(refusal) => return refusal,
    };
    let mut response = match request.path().strip_prefix("/api/") {
        Some(path) => api::answer(path, request, node).await,
        None => pages::page(request),
    };
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

fn secured(mut response: Response) -> Response {
    for (name, value) in SECURITY {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
