//! Connections of browsers to the console.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use playfield_http::{Limits, Parser, Request, Response, Sending, Step};
use playfield_server::NodeHandle;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::api;
use crate::gate::Gate;
use crate::pages;
use crate::places::{Place, Places};

/// How long a connection may be silent between requests, or take to read an answer.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// How long a request may take to arrive, from its first byte.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// The longest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 256 << 10;
/// How often it looks whether the node has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What a browser may do with what the console serves: nothing may be framed, loaded from elsewhere
/// or sniffed. WebSockets go to the rooms, whose port is another.
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

async fn serve(
    mut stream: TcpStream,
    from: IpAddr,
    place: Place,
    gate: Arc<Gate>,
    node: NodeHandle,
) {
    let _ = stream.set_nodelay(true);
    // A browser that went away needs no notice.
    let _ = requests(&mut stream, from, &place, &gate, &node).await;
}

/// Answers the requests of a connection, one after the other.
async fn requests(
    stream: &mut TcpStream,
    from: IpAddr,
    place: &Place,
    gate: &Gate,
    node: &NodeHandle,
) -> io::Result<()> {
    let mut requests = Requests::default();
    loop {
        place.waits();
        let request = match requests.next(stream).await? {
            Some(Ok(request)) => request,
            Some(Err(refusal)) => return send(stream, refusal, &Sending::default()).await,
            None => return Ok(()),
        };
        place.answers();
        let head = request.head();
        let sending = Sending {
            head_only: head.method() == "HEAD",
            keeps_alive: head.keeps_alive(),
            is_http_1_0: head.is_http_1_0(),
            date: None,
        };
        let response = answer(&request, from, gate, node).await;
        send(stream, response, &sending).await?;
        if !sending.keeps_alive {
            return Ok(());
        }
    }
}

/// What a connection has sent.
struct Requests {
    parser: Parser,
    input: Vec<u8>,
    consumed: usize,
}

impl Default for Requests {
    fn default() -> Self {
        let limits = Limits { body_bytes_max: BODY_BYTES_MAX, ..Limits::default() };
        Self { parser: Parser::new(limits), input: Vec::new(), consumed: 0 }
    }
}

impl Requests {
    /// The next request, or what is to be said about one that is none. `None` at the end.
    ///
    /// # Errors
    /// If the connection fails, is silent, or takes too long over a request.
    async fn next(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Option<Result<Request, Response>>> {
        let mut has_begun = false;
        let mut last = Instant::now() + SILENCE_MAX;
        loop {
            match self.parser.parse(&self.input[self.consumed..]) {
                Ok((taken, step)) => {
                    self.consumed += taken;
                    match step {
                        Step::Complete(request) => return Ok(Some(Ok(request))),
                        Step::Partial if taken == 0 => {}
                        Step::Partial | Step::Head => continue,
                    }
                }
                Err(error) => {
                    let refusal = Response::error(error.status(), format!("{error}\n"));
                    return Ok(Some(Err(refusal)));
                }
            }
            self.input.drain(..self.consumed);
            self.consumed = 0;
            if timeout_at(last, stream.read_buf(&mut self.input)).await?? == 0 {
                return Ok(None);
            }
            if !has_begun {
                has_begun = true;
                last = Instant::now() + REQUEST_MAX;
            }
        }
    }
}

async fn answer(request: &Request, from: IpAddr, gate: &Gate, node: &NodeHandle) -> Response {
    let cookie = match gate.check(request, from) {
        Ok(cookie) => cookie,
        Err(refusal) => return refusal,
    };
    let response = match request.path().strip_prefix("/api/") {
        Some(path) => api::answer(path, request, node).await,
        None => pages::page(request),
    };
    match cookie {
        Some(cookie) => response.with_header("set-cookie", cookie),
        None => response,
    }
}

async fn send(stream: &mut TcpStream, response: Response, sending: &Sending<'_>) -> io::Result<()> {
    let response = SECURITY
        .into_iter()
        .fold(response, |response, (name, value)| response.with_header(name, value));
    let mut bytes = Vec::new();
    response.write(&mut bytes, sending);
    timeout(SILENCE_MAX, stream.write_all(&bytes)).await?
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use tokio::io::{AsyncWriteExt, duplex};
    use tokio::time::{Instant, sleep};

    use super::{REQUEST_MAX, Requests, SILENCE_MAX};

    /// The clock is simulated: it stands still while there is something to do.
    fn simulated(test: impl Future<Output = ()>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(test);
    }

    #[test]
    fn a_request_that_trickles_is_given_up() {
        simulated(async {
            let (mut browser, mut stream) = duplex(64);
            tokio::spawn(async move {
                let _ = browser.write_all(b"GET /api/node HTTP/1.1\r\nHost: x\r\nX-A: ").await;
                while browser.write_all(b"a").await.is_ok() {
                    sleep(REQUEST_MAX / 10).await;
                }
            });
            let began = Instant::now();
            let error = Requests::default().next(&mut stream).await.unwrap_err();
            assert_eq!((error.kind(), began.elapsed()), (ErrorKind::TimedOut, REQUEST_MAX));
        });
    }

    #[test]
    fn a_connection_may_be_silent_between_requests_for_a_while() {
        simulated(async {
            let (mut browser, mut stream) = duplex(64);
            let mut requests = Requests::default();
            tokio::spawn(async move {
                for _ in 0..2 {
                    sleep(SILENCE_MAX * 9 / 10).await;
                    browser.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
                }
                sleep(SILENCE_MAX * 2).await;
            });
            for _ in 0..2 {
                let request = requests.next(&mut stream).await.unwrap();
                assert_eq!(request.unwrap().unwrap().path(), "/");
            }
            let began = Instant::now();
            let error = requests.next(&mut stream).await.unwrap_err();
            assert_eq!((error.kind(), began.elapsed()), (ErrorKind::TimedOut, SILENCE_MAX));
        });
    }
}
