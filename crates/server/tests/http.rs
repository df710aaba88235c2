//! HTTP over real sockets: handlers, and files of a folder.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use axum::extract::{ConnectInfo, Path, Request};
use axum::http::Method;
use axum::response::IntoResponse;
use flate2::Compression;
use flate2::write::GzEncoder;
use playfield_server::http::Failure;
use playfield_server::{NodeHandle, Running, Server};
use socket2::SockRef;

use crate::common::{PATIENCE, config, room, until};

/// A response as a client reads it.
#[derive(Debug)]
struct Answer {
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

/// A connection that is kept.
struct Client(TcpStream);

impl Client {
    fn new(running: &Running) -> Self {
        Self::at(running.local_addr())
    }

    fn at(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    fn send(&mut self, request: &str) {
        self.0.write_all(request.as_bytes()).unwrap();
    }

    fn receive(&mut self, has_body: bool) -> Answer {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        let mut answer = Answer { head: String::from_utf8(head).unwrap(), body: Vec::new() };
        let length = answer.header("Content-Length").map_or(0, |length| length.parse().unwrap());
        answer.body = vec![0; if has_body { length } else { 0 }];
        self.0.read_exact(&mut answer.body).unwrap();
        answer
    }

    /// Sends a request with these headers, and reads the response.
    fn ask(&mut self, line: &str, headers: &str, body: &str) -> Answer {
        let length = body.len();
        self.send(&format!(
            "{line} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        ));
        self.receive(!line.starts_with("HEAD "))
    }

    fn get(&mut self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), "", "")
    }
}

fn server() -> Server {
    Server::new(config(&[("shards", "2")]))
}

/// A folder of this test's own, which is removed after it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("playfield-http-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("public/sub")).unwrap();
        fs::create_dir_all(path.join("public/.git")).unwrap();
        fs::write(path.join("secret.txt"), "secret").unwrap();
        fs::write(path.join("public/.git/config"), "secret").unwrap();
        fs::write(path.join("public/.env"), "secret").unwrap();
        fs::write(path.join("public/index.html"), "<p>home").unwrap();
        fs::write(path.join("public/a b.js"), "let a;").unwrap();
        fs::write(path.join("public/empty.txt"), "").unwrap();
        fs::write(path.join("public/sub/index.html"), "<p>sub").unwrap();
        Self(path)
    }

    fn public(&self) -> PathBuf {
        self.0.join("public")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn echo(
    method: Method,
    Path(id): Path<String>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    uri: axum::http::Uri,
    _: NodeHandle,
    body: String,
) -> impl IntoResponse {
    let (query, is_local) = (uri.query().unwrap_or_default(), peer.ip().is_loopback());
    ([("X-Echo", "yes")], format!("{method} {id} {query} {is_local} {body}"))
}

#[test]
pub(crate) fn a_handler_answers_and_the_connection_is_kept() {
    let server = server().route("POST", "/echo/{id}", echo).route("GET", "/echo/{id}", echo).route(
        "GET",
        "/refused",
        async || -> Result<(), Failure> { Err("not today".into()) },
    );
    let running = server.start().unwrap();
    let mut client = Client::new(&running);
    let answer = client.ask("POST /echo/a%20b?q=c+d", "", "hello");
    assert_eq!((answer.status(), answer.text()), (200, "POST a b q=c+d true hello"));
    assert_eq!(answer.header("X-Echo"), Some("yes"));
    assert!(answer.header("Date").is_some_and(|date| date.ends_with(" GMT")));
    let head = client.ask("HEAD /echo/1", "", "");
    assert_eq!((head.status(), head.header("Content-Length")), (200, Some("13")));
    let answer = client.ask("DELETE /echo/1", "", "");
    assert_eq!((answer.status(), answer.header("Allow")), (405, Some("POST,GET,HEAD")));
    let answer = client.get("/refused");
    assert_eq!((answer.status(), answer.text()), (422, "refused: not today\n"));
    assert_eq!(client.get("/nowhere").status(), 404);

    // Several at once are answered in order.
    let one = |number: usize| format!("GET /echo/{number} HTTP/1.1\r\nHost: x\r\n\r\n");
    client.send(&(0..100).map(one).collect::<String>());
    for number in 0..100 {
        assert_eq!(client.receive(true).text(), format!("GET {number}  true "));
    }
    // In chunks, a byte at a time.
    let request = "POST /echo/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\
                   Connection: close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    for byte in request.chars() {
        client.send(&byte.to_string());
    }
    assert!(client.receive(true).text().ends_with("abcde"));
    let mut rest = Vec::new();
    client.0.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
    assert!(running.stats().total().http_requests >= 100);
    until(&running, |running| running.stats().total().connections == 0);
}

/// Says when it is dropped.
struct Dropped(SyncSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn handlers_that_panic_harm_nobody_else() {
    let in_layer =
        axum::middleware::from_fn(async |_: Request, _| -> &'static str { panic!("on purpose") });
    let router = axum::Router::new().route("/layer", axum::routing::get(async || "good"));
    let running = server()
        .route("GET", "/panic", async || -> String { panic!("on purpose") })
        .route("GET", "/panic-at-once", || -> std::future::Ready<()> { panic!("on purpose") })
        .route("GET", "/good", async || "good")
        .http(router.layer(in_layer))
        .start()
        .unwrap();
    let mut client = Client::new(&running);
    for path in ["/panic", "/panic-at-once", "/layer"] {
        let answer = client.get(path);
        assert_eq!((answer.status(), answer.text()), (500, "the handler failed\n"), "{path}");
    }
    assert_eq!(client.get("/good").text(), "good");
}

#[test]
pub(crate) fn a_handler_that_hangs_is_cut_off_and_dropped() {
    let (drops, dropped) = sync_channel(9);
    let server = Server::new(config(&[("http.answer_timeout", "100ms")]))
        .route("GET", "/panic-at-drop", || {
            struct Bomb;
            impl Drop for Bomb {
                fn drop(&mut self) {
                    panic!("on purpose");
                }
            }
            let bomb = Bomb;
            async move {
                std::future::pending::<()>().await;
                drop(bomb);
            }
        })
        .route("GET", "/hang", move || {
            let guard = Dropped(drops.clone());
            async move {
                std::future::pending::<()>().await;
                drop(guard);
            }
        })
        .page("/good", "text/plain", "good");
    let running = server.start().unwrap();
    let mut client = Client::new(&running);
    for path in ["/hang", "/panic-at-drop", "/hang"] {
        assert_eq!(client.get(path).status(), 503, "{path}");
    }
    assert_eq!(client.get("/good").text(), "good");
    for _ in 0..2 {
        dropped.recv_timeout(PATIENCE).expect("a handler that is late is dropped");
    }
}

/// A server whose handler of `/hang` never ends, and says when it begins and when it is dropped.
fn hanging(settings: &[(&str, &str)]) -> (Running, Receiver<()>, Receiver<()>) {
    let (begins, begun) = sync_channel(99);
    let (drops, dropped) = sync_channel(99);
    let server = Server::new(config(settings)).route("GET", "/hang", move || {
        let guard = Dropped(drops.clone());
        let begins = begins.clone();
        async move {
            let _ = begins.send(());
            std::future::pending::<()>().await;
            drop(guard);
        }
    });
    (server.start().unwrap(), begun, dropped)
}

#[test]
fn a_client_that_is_gone_holds_no_handler() {
    for leaves in [Leaves::Resets, Leaves::Closes, Leaves::ClosesItsHalf, Leaves::WithMoreRequests]
    {
        let (running, begun, dropped) =
            hanging(&[("http.requests.total", "2"), ("http.answer_timeout", "3600000ms")]);
        // The third two can only begin if the first have made room.
        for _ in 0..3 {
            for _ in 0..2 {
                let mut client = Client::new(&running);
                client.send("GET /hang HTTP/1.1\r\nHost: x\r\n\r\n");
                begun.recv_timeout(PATIENCE).expect("a handler begins");
                match leaves {
                    Leaves::Resets => {
                        SockRef::from(&client.0).set_linger(Some(Duration::ZERO)).unwrap();
                    }
                    Leaves::Closes => {}
                    Leaves::ClosesItsHalf => {
                        client.0.shutdown(Shutdown::Write).unwrap();
                        client.0.read_to_end(&mut Vec::new()).unwrap();
                    }
                    Leaves::WithMoreRequests => {
                        client.send("GET /hang HTTP/1.1\r\nHost: x\r\n\r\n");
                    }
                }
            }
            for _ in 0..2 {
                dropped.recv_timeout(PATIENCE).expect("the handler of a vanished client ends");
            }
        }
        assert_eq!(running.stats().total().http_unavailable, 0);
    }
}

/// A body that never ends, and has nothing to send for now.
struct Quiet;

impl http_body::Body for Quiet {
    type Data = axum::body::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        std::task::Poll::Pending
    }
}

#[test]
fn a_stream_is_under_way_until_it_ends_and_the_refusal_says_so() {
    for (setting, status) in [("http.requests.total", 503), ("http.requests.per_address", 429)] {
        let none = ("limits.address.trusted", "");
        let running = Server::new(config(&[(setting, "1"), none, ("timeouts.shutdown", "100ms")]))
            .route("GET", "/stream", async || axum::body::Body::new(Quiet))
            .page("/page", "text/plain", "a page")
            .start()
            .unwrap();
        let (mut viewer, mut other) = (Client::new(&running), Client::new(&running));
        assert_eq!(viewer.get("/stream").status(), 200);
        let answer = other.get("/stream");
        assert_eq!(answer.status(), status);
        let expected = [setting, "1 requests", "streams and files that are being sent included"];
        assert!(expected.iter().all(|text| answer.text().contains(text)), "{}", answer.text());
        assert_eq!(other.get("/page").text(), "a page");
    }
}

/// The end of a client.
enum Leaves {
    Resets,
    Closes,
    ClosesItsHalf,
    WithMoreRequests,
}

#[test]
fn a_folder_is_served_with_types_and_browsers_ask_only_for_what_changed() {
    let folder = Folder::new();
    let running =
        server().folder("/", folder.public()).folder("/more", folder.public().join("sub"));
    let running = running.start().unwrap();
    let mut client = Client::new(&running);
    for (path, media_type, body) in [
        ("/", "text/html; charset=utf-8", "<p>home"),
        ("/?x=/../y", "text/html; charset=utf-8", "<p>home"),
        ("/index.html", "text/html; charset=utf-8", "<p>home"),
        ("/a%20b.js", "text/javascript; charset=utf-8", "let a;"),
        ("/sub/", "text/html; charset=utf-8", "<p>sub"),
        ("/more/", "text/html; charset=utf-8", "<p>sub"),
        ("/empty.txt", "text/plain; charset=utf-8", ""),
    ] {
        let answer = client.get(path);
        assert_eq!((answer.status(), answer.text()), (200, body), "{path}");
        assert_eq!(answer.header("Content-Type"), Some(media_type), "{path}");
        assert_eq!(answer.header("Cache-Control"), Some("no-cache"));
        let head = client.ask(&format!("HEAD {path}"), "", "");
        assert_eq!(head.header("Content-Length"), Some(&*body.len().to_string()));
        let tag = answer.header("ETag").unwrap();
        let date = answer.header("Last-Modified").unwrap();
        for (header, status) in [
            (format!("If-None-Match: {tag}\r\n"), 304),
            (format!("If-None-Match: \"x\", W/{tag}\r\n"), 304),
            ("If-None-Match: *\r\n".to_owned(), 304),
            (format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {date}\r\n"), 200),
            (format!("If-Modified-Since: {date}\r\n"), 304),
            ("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n".to_owned(), 200),
        ] {
            assert_eq!(
                client.ask(&format!("GET {path}"), &header, "").status(),
                status,
                "{header}"
            );
        }
    }
    for path in ["/sub", "/sub?x=1", "/more"] {
        let answer = client.get(path);
        let to = path.replace("sub", "sub/").replace("more", "more/");
        assert_eq!((answer.status(), answer.header("Location")), (308, Some(&*to)));
    }
    assert_eq!(client.ask("POST /", "", "x").status(), 405);
    // A file that changes has another tag.
    let tag = client.get("/a%20b.js").header("ETag").unwrap().to_owned();
    fs::write(folder.public().join("a b.js"), "let a, b;").unwrap();
    let answer = client.ask("GET /a%20b.js", &format!("If-None-Match: {tag}\r\n"), "");
    assert_eq!((answer.status(), answer.text()), (200, "let a, b;"));
}

#[test]
fn a_file_that_lies_beside_its_form_in_gzip_is_sent_in_it() {
    let folder = Folder::new();
    let running = server().folder("/", folder.public()).start().unwrap();
    let mut client = Client::new(&running);
    let mut ask = |accepts: &str| client.ask("GET /a%20b.js", accepts, "");
    let accepts = "Accept-Encoding: br, gzip\r\n";
    assert_eq!(ask(accepts).header("Content-Encoding"), None);
    let beside = folder.public().join("a b.js.gz");
    fs::write(&beside, in_gzip("let a;")).unwrap();
    let gzip = ask(accepts);
    assert_eq!(gzip.body, in_gzip("let a;"));
    assert_eq!(gzip.header("Content-Encoding"), Some("gzip"));
    assert_eq!(gzip.header("Content-Type"), Some("text/javascript; charset=utf-8"));
    let plain = ask("Accept-Encoding: gzip;q=0\r\n");
    assert_eq!((plain.text(), plain.header("Content-Encoding")), ("let a;", None));
    let [gzip_tag, tag] = [&gzip, &plain].map(|answer| answer.header("ETag").unwrap());
    assert_ne!(gzip_tag, tag);
    for answer in [&gzip, &plain] {
        assert_eq!(answer.header("Vary"), Some("accept-encoding"));
    }
    assert_eq!(ask(&format!("{accepts}If-None-Match: {gzip_tag}\r\n")).status(), 304);
    assert_eq!(ask(&format!("{accepts}If-None-Match: {tag}\r\n")).status(), 200);
}

#[test]
fn a_part_is_of_the_form_that_the_client_has_the_rest_of() {
    let folder = Folder::new();
    fs::write(folder.public().join("a b.js.gz"), in_gzip("let a;")).unwrap();
    let running = server().folder("/", folder.public()).start().unwrap();
    let mut client = Client::new(&running);
    let mut ask = |headers: &str| client.ask("GET /a%20b.js", headers, "");
    let (plain, gzip) = ("", "Accept-Encoding: gzip\r\n");
    let [plain_tag, gzip_tag] = [plain, gzip].map(|of| ask(of).header("ETag").unwrap().to_owned());
    for accepts in [plain, gzip] {
        let answer = ask(&format!("{accepts}Range: bytes=1-2\r\nIf-Range: {plain_tag}\r\n"));
        assert_eq!((answer.status(), answer.text()), (206, "et"), "{accepts}");
        assert_eq!(answer.header("Content-Encoding"), None);
    }
    let part = format!("Range: bytes=1-2\r\nIf-Range: {gzip_tag}\r\n");
    let answer = ask(&format!("{gzip}{part}"));
    assert_eq!((answer.status(), &answer.body[..]), (206, &in_gzip("let a;")[1..3]));
    assert_eq!(answer.header("Content-Encoding"), Some("gzip"));
    let answer = ask(&part);
    assert_eq!((answer.status(), answer.text()), (200, "let a;"));
}

#[cfg(unix)]
#[test]
fn a_form_in_gzip_that_may_not_be_served_is_left_out() {
    let folder = Folder::new();
    let running = server().folder("/", folder.public()).start().unwrap();
    let mut client = Client::new(&running);
    let beside = folder.public().join("a b.js.gz");
    let outside = folder.public().parent().unwrap().join("outside.gz");
    fs::write(&outside, in_gzip("a secret")).unwrap();
    std::os::unix::fs::symlink(&outside, &beside).unwrap();
    let mut ask = || client.ask("GET /a%20b.js", "Accept-Encoding: gzip\r\n", "").text().to_owned();
    assert_eq!(ask(), "let a;");
    fs::remove_file(&beside).unwrap();
    fs::create_dir(&beside).unwrap();
    assert_eq!(ask(), "let a;");
}

#[test]
fn a_body_is_read_up_to_the_limit_of_the_settings_and_no_other() {
    const LIMIT: usize = 3 << 20;
    let running = Server::new(config(&[("http.body_bytes", &LIMIT.to_string())]))
        .route("POST", "/size", async |body: axum::body::Bytes| body.len().to_string())
        .start()
        .unwrap();
    let mut client = Client::new(&running);
    let body = "x".repeat(LIMIT);
    assert_eq!(client.ask("POST /size", "", &body).text(), LIMIT.to_string());
}

/// The body of an answer that panics when it is read, and when it is dropped.
struct Bomb;

impl http_body::Body for Bomb {
    type Data = axum::body::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        panic!("on purpose")
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose, again")
    }
}

#[test]
fn a_body_that_panics_and_panics_when_it_is_dropped_ends_its_connection_alone() {
    let running = server()
        .route("GET", "/bomb", async || axum::body::Body::new(Bomb))
        .page("/page", "text/plain", "a page")
        .start()
        .unwrap();
    let mut other = Client::new(&running);
    let mut stream = std::net::TcpStream::connect(running.local_addr()).unwrap();
    stream.write_all(b"GET /bomb HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // Its end may be a reset.
    let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
    assert_eq!(other.get("/page").text(), "a page");
}

fn in_gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_page_is_compressed_and_asked_for_again_in_few_bytes() {
    let long = "a page ".repeat(1_000);
    let running = server()
        .page("/long", "text/plain", long.clone())
        .script("/script.js", format!("// {long}"))
        .start()
        .unwrap();
    let mut client = Client::new(&running);
    let accepts = "Accept-Encoding: gzip, deflate\r\n";
    assert_eq!(client.get("/long").text(), long);
    for (path, origins) in [("/long", None), ("/script.js", Some("*"))] {
        let gzip = client.ask(&format!("GET {path}"), accepts, "");
        assert_eq!(gzip.header("Content-Encoding"), Some("gzip"));
        assert_eq!(gzip.header("Access-Control-Allow-Origin"), origins);
        let head = client.ask(&format!("HEAD {path}"), accepts, "");
        assert_eq!(head.header("Content-Length"), Some(&*gzip.body.len().to_string()));
        assert_eq!(head.header("ETag"), gzip.header("ETag"));
        let known = format!("{accepts}If-None-Match: {}\r\n", gzip.header("ETag").unwrap());
        for method in ["GET", "HEAD"] {
            let unchanged = client.ask(&format!("{method} {path}"), &known, "");
            assert_eq!((unchanged.status(), unchanged.body.len()), (304, 0));
        }
    }
}

#[test]
fn nothing_outside_a_folder_and_nothing_hidden_is_served() {
    let folder = Folder::new();
    let public = folder.public();
    #[cfg(unix)]
    for (target, link) in [
        ("secret.txt", "link.txt"),
        ("public/.env", "env.txt"),
        (".", "up"),
        ("public/index.html", "good.html"),
    ] {
        std::os::unix::fs::symlink(folder.0.join(target), public.join(link)).unwrap();
    }
    fs::create_dir(public.join("bare")).unwrap();
    let running = server().folder("/", &public).start().unwrap();
    let mut client = Client::new(&running);
    for path in [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/sub/../../secret.txt",
        "/sub/%2e%2e/%2e%2e/secret.txt",
        "/..%5csecret.txt",
        "/..\\secret.txt",
        "//etc/passwd",
        "/%2Fetc/passwd",
        "/./index.html",
        "/.env",
        "/.git/config",
        "/%2egit/config",
        "/index.html%00.txt",
        "/index.html/",
        "/bare/",
        "/nothing",
        "/link.txt",
        "/env.txt",
        "/up/secret.txt",
    ] {
        let answer = client.get(path);
        assert_eq!(answer.status(), 404, "{path}: {}", answer.text());
        assert!(!answer.text().contains("secret") && !answer.text().contains("root:"));
    }
    #[cfg(unix)]
    assert_eq!(client.get("/good.html").text(), "<p>home", "a link inside is a file");
}

#[test]
pub(crate) fn large_files_come_in_pieces_and_parts_of_them_too() {
    let folder = Folder::new();
    let bytes: Vec<u8> =
        (0..5_000_000_u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(folder.public().join("large.bin"), &bytes).unwrap();
    let running = server().folder("/", folder.public()).start().unwrap();
    let mut clients: Vec<Client> = (0..4).map(|_| Client::new(&running)).collect();
    // All of them at once, and two requests of each.
    for client in &mut clients {
        client.send(&"GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2));
    }
    for client in &mut clients {
        for _ in 0..2 {
            let answer = client.receive(true);
            assert_eq!(answer.header("Content-Type"), Some("application/octet-stream"));
            assert!(answer.body == bytes, "it is the file");
        }
    }
    let client = &mut clients[0];
    for (range, expected) in [
        ("bytes=0-0", &bytes[..1]),
        ("bytes=70000-200000", &bytes[70_000..=200_000]),
        ("bytes=-10", &bytes[4_999_990..]),
        ("bytes=4999999-", &bytes[4_999_999..]),
    ] {
        let answer = client.ask("GET /large.bin", &format!("Range: {range}\r\n"), "");
        assert_eq!(answer.status(), 206);
        assert!(answer.body == expected, "{range}");
    }
    for range in ["bytes=0-1,3-4", "bytes=0-1\r\nRange: bytes=3-4", "pages=1-2"] {
        let answer = client.ask("GET /large.bin", &format!("Range: {range}\r\n"), "");
        assert_eq!((answer.status(), answer.body.len()), (200, bytes.len()), "{range}");
    }
    let answer = client.ask("HEAD /large.bin", "Range: bytes=0-1\r\n", "");
    assert_eq!((answer.status(), answer.header("Content-Length")), (200, Some("5000000")));
    let answer = client.ask("GET /large.bin", "Range: bytes=5000000-\r\n", "");
    assert_eq!((answer.status(), answer.header("Content-Range")), (416, Some("bytes */5000000")));
    let answer = client.ask("GET /large.bin", "Range: bytes=0-0\r\nIf-Range: \"x\"\r\n", "");
    assert_eq!((answer.status(), answer.body.len()), (200, bytes.len()));
}

#[test]
fn what_cant_be_served_is_an_error_of_the_start() {
    let folder = Folder::new();
    let here = folder.public();
    for (server, expected) in [
        (server().page("index.html", "text/html", ""), "the page \"index.html\": a path begins"),
        (
            server().page("/", "text/html", "").page("/", "text/html", ""),
            "the page \"/\": there is a page at this path already",
        ),
        (
            server().page("/", "text/html", "").route("GET", "/", async || ()),
            "the path \"/\" has a page and a route",
        ),
        (server().route("FETCH", "/", async || ()), "the route FETCH /: the method is not"),
        (
            server().route("GET", "/rooms/:id", async || ()),
            "the route GET /rooms/:id: a parameter is in braces: write {id} in place of \":id\"",
        ),
        (
            server().route("GET", "/files/*rest", async || ()),
            "a parameter is in braces: write {*rest} in place of \"*rest\"",
        ),
        (
            server().route("GET", "/{*a}", async || ()).route("GET", "/{*a}/b", async || ()),
            "the route /{*a}/b",
        ),
        (server().http(router("/a")).http(router("/a")), "`GET /a` already exists"),
        (server().http(router("/a/{x}")).http(router("/a/{y}")), "\"/a/{y}\": "),
        (
            server().http(router("/a").fallback(get)).http(router("/b").fallback(get)),
            "both have a fallback; ",
        ),
        (server().folder("/", here.join("nothing")), "the folder "),
        (server().folder("/", here.join("index.html")), "it is not a folder"),
        (
            server().room_type(room::room_type("a")).room_type(room::room_type("a")),
            "two room types have the name \"a\"",
        ),
    ] {
        let error = server.start().err().expect("it does not start").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Such as one for operators, which players do not reach.
#[test]
fn a_router_may_have_an_address_of_its_own() {
    async fn rooms(node: NodeHandle, ConnectInfo(from): ConnectInfo<SocketAddr>) -> String {
        format!("{} rooms, {}", node.stats().total().rooms, from.ip())
    }
    let running = server()
        .page("/", "text/plain", "a page")
        .http_on(
            ([127, 0, 0, 1], 0).into(),
            axum::Router::new().route("/rooms", axum::routing::get(rooms)),
        )
        .start()
        .unwrap();
    let at = Client::at;
    let [private, public] = [running.http_addrs()[0], running.local_addr()];
    assert_eq!(at(private).get("/rooms").text(), "0 rooms, 127.0.0.1");
    assert_eq!(at(public).get("/rooms").status(), 404);
    assert_eq!(at(private).get("/").status(), 404);
    assert_eq!(at(public).get("/").text(), "a page");
    // The listener is not a way into a room.
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
    assert_eq!(at(private).ask("GET /", upgrade, "").status(), 404);
    // Its connections count, and end with the node.
    until(&running, |running| running.stats().total().connections == 0);
    let mut kept = at(private);
    kept.get("/rooms");
    assert_eq!(running.stats().total().connections, 1);
    running.shutdown();
    assert_eq!(kept.0.read(&mut [0]).unwrap(), 0);
    // The start names an address that is in use.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _holds = std::net::TcpListener::bind(taken).unwrap();
    let error = server().http_on(taken, router("/rooms")).start().err().unwrap().to_string();
    assert!(error.starts_with(&format!("Server::http_on({taken}): ")), "{error}");
}

async fn get() {}

fn router(path: &str) -> axum::Router {
    axum::Router::new().route(path, axum::routing::get(get))
}

#[test]
fn what_is_not_found_is_said_in_one_sentence() {
    let folder = Folder::new();
    for server in [
        server().page("/page", "text/plain", ""),
        server().route("GET", "/a", get),
        server().http(router("/a")),
        server().folder("/", folder.public()),
        server().folder("/more", folder.public()).http(router("/a")),
    ] {
        let running = server.start().unwrap();
        let mut client = Client::new(&running);
        for path in ["/none", "/more/none"] {
            let answer = client.get(path);
            assert_eq!(
                (answer.status(), answer.text()),
                (404, "nothing is served at this path\n"),
                "{path}"
            );
            assert!(answer.header("Content-Type").unwrap().starts_with("text/plain"));
            assert_eq!(client.ask(&format!("HEAD {path}"), "", "").status(), 404);
        }
    }
}
