//! Which requests are read, and which are refused.

use playfield_http::{Limits, Parser, Request, RequestError, Step, TARGET_BYTES_MAX};

/// All requests in the input, and the error after them, if there is one.
pub(crate) fn parsed(input: &[u8], limits: Limits) -> (Vec<Request>, Option<RequestError>) {
    let mut parser = Parser::new(limits);
    let (mut requests, mut at) = (Vec::new(), 0);
    loop {
        match parser.parse(&input[at..]) {
            Ok((0, Step::Partial)) => return (requests, None),
            Ok((consumed, step)) => {
                at += consumed;
                if let Step::Complete(request) = step {
                    requests.push(request);
                }
            }
            Err(error) => return (requests, Some(error)),
        }
    }
}

fn one(input: &str) -> Request {
    let (mut requests, error) = parsed(input.as_bytes(), Limits::default());
    assert_eq!((requests.len(), &error), (1, &None), "{input:?}");
    requests.remove(0)
}

fn refused(input: &str) -> RequestError {
    let (requests, error) = parsed(input.as_bytes(), Limits::default());
    assert_eq!(requests.len(), 0, "{input:?}");
    error.unwrap_or_else(|| panic!("it is accepted: {input:?}"))
}

#[test]
fn a_request_is_its_line_its_headers_and_its_body() {
    let request =
        one("POST /a%20b/c?x=1&y=a+b%26&z&&x=2 HTTP/1.1\r\nHost: here\r\nX-Thing:  7 \r\n\
         content-length: 5\r\n\r\nhello");
    assert_eq!((request.method(), request.path()), ("POST", "/a%20b/c"));
    assert_eq!((request.header("x-thing"), request.header("nothing")), (Some("7"), None));
    let query: Vec<_> = request.query().map(|(name, value)| format!("{name}:{value}")).collect();
    assert_eq!(query, ["x:1", "y:a b&", "z:", "x:2"]);
    assert_eq!(request.query_value("x").as_deref(), Some("1"));
    assert_eq!((request.text(), request.param("id")), (Some("hello"), None));
    assert!(request.head().keeps_alive() && !request.head().expects_continue());
    assert_eq!(request.head().headers().count(), 3);
}

#[test]
fn targets_have_three_forms() {
    for (line, path, query) in [
        ("GET / HTTP/1.1", "/", ""),
        ("GET /a?b?c#d HTTP/1.1", "/a", "b?c"),
        ("GET HTTP://host:80/a?b HTTP/1.1", "/a", "b"),
        ("GET https://host HTTP/1.1", "/", ""),
        ("GET http://host?a HTTP/1.1", "/", "a"),
        ("OPTIONS * HTTP/1.1", "*", ""),
    ] {
        let request = one(&format!("{line}\r\nHost: x\r\n\r\n"));
        assert_eq!((request.path(), request.head().query()), (path, query), "{line}");
    }
    for line in
        ["GET * HTTP/1.1", "CONNECT host:80 HTTP/1.1", "GET a HTTP/1.1", "GET ftp://x/ HTTP/1.1"]
    {
        let what = "the request target";
        assert_eq!(
            refused(&format!("{line}\r\nHost: x\r\n\r\n")),
            RequestError::Malformed { what }
        );
    }
}

#[test]
fn connections_are_kept_as_the_client_asks() {
    for (version, header, keeps) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: x, Close\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: keep-alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let request = one(&format!("GET / HTTP/{version}\r\nHost: x\r\n{header}\r\n"));
        assert_eq!(request.head().keeps_alive(), keeps, "{version} {header}");
        assert_eq!(request.head().is_http_1_0(), version == "1.0");
    }
    assert_eq!(one("GET / HTTP/1.0\r\n\r\n").method(), "GET");
}

#[test]
fn an_upgrade_needs_the_option_in_connection() {
    for (version, headers, upgrades) in [
        ("1.1", "Upgrade: h2c, WebSocket\r\nConnection: keep-alive, upgrade\r\n", true),
        ("1.1", "Upgrade: websocket\r\n", false),
        ("1.1", "Upgrade: websocket\r\nConnection: keep-alive\r\n", false),
        ("1.1", "Upgrade: h2c\r\nConnection: Upgrade\r\n", false),
        ("1.0", "Upgrade: websocket\r\nConnection: Upgrade\r\n", false),
    ] {
        let request = one(&format!("GET / HTTP/{version}\r\nHost: x\r\n{headers}\r\n"));
        assert_eq!(request.head().upgrades_to_websocket(), upgrades, "{version} {headers}");
    }
}

#[test]
fn chunks_are_put_together() {
    let request = one("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n\
         3\r\nabc\r\n00a ;x=\"y\"\r\n0123456789\r\n0\r\nX-After: 1\r\nY:\r\n\r\n");
    assert_eq!(request.text(), Some("abc0123456789"));
}

#[test]
fn requests_follow_each_other_even_after_empty_lines() {
    let input = "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab\r\n\r\n\
                 GET /2 HTTP/1.1\r\nHost: x\r\n\r\nGET /3 HTTP/1.1\r\nHost: x\r\n\r\n";
    let (requests, error) = parsed(input.as_bytes(), Limits::default());
    let paths: Vec<_> = requests.iter().map(Request::path).collect();
    assert_eq!((paths, error), (vec!["/1", "/2", "/3"], None));
}

#[test]
fn what_two_parsers_could_read_differently_is_refused() {
    let line_end = "a line ends in a line feed without a carriage return";
    for (headers, status, what) in [
        ("Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400, "repeated"),
        ("Content-Length: 1, 1\r\n\r\na", 400, "Content-Length"),
        ("Content-Length: +1\r\n\r\na", 400, "Content-Length"),
        ("Content-Length: -1\r\n\r\na", 400, "Content-Length"),
        ("Content-Length: 0x1\r\n\r\na", 400, "Content-Length"),
        ("Content-Length:\r\n\r\n", 400, "Content-Length"),
        ("Content-Length: 99999999999999999999999\r\n\r\n", 413, "limit"),
        ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "beside"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "repeated"),
        ("Transfer-Encoding: chunked, chunked\r\n\r\n", 501, "coding"),
        ("Transfer-Encoding: gzip, chunked\r\n\r\n", 501, "coding"),
        ("Transfer-Encoding: xchunked\r\n\r\n", 501, "coding"),
        ("Transfer-Encoding: identity\r\n\r\n", 501, "coding"),
        ("Transfer-Encoding : chunked\r\n\r\n", 400, "a header name"),
        ("X: a\r\n b\r\n\r\n", 400, "a header name"),
        (" X: a\r\n\r\n", 400, "a header name"),
        ("X: a\nContent-Length: 1\r\n\r\n", 400, line_end),
        ("X: a\r\n\n", 400, line_end),
        ("X: a\rb\r\n\r\n", 400, "a header value"),
        ("X: a\0b\r\n\r\n", 400, "a header value"),
        ("X\0: a\r\n\r\n", 400, "a header name"),
        (": a\r\n\r\n", 400, "a header name"),
        ("Host: y\r\n\r\n", 400, "repeated"),
        ("Expect: 200-ok\r\n\r\n", 417, "100-continue"),
    ] {
        let error = refused(&format!("POST / HTTP/1.1\r\nHost: x\r\n{headers}"));
        assert_eq!(error.status(), status, "{headers:?}: {error}");
        assert!(error.to_string().contains(what), "{headers:?}: {error}");
    }
    for (line, what) in [
        ("GET / HTTP/1.1\nHost: x\r\n\r\n", line_end),
        ("GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "the first line"),
        ("GET / HTTP/2.0\r\nHost: x\r\n\r\n", "the HTTP version"),
        ("GET /\r\n", "the first line"),
        ("GET / HTTP/1.1\r\n\r\n", "Host is missing"),
        ("G\0T / HTTP/1.1\r\n", "the first line"),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "in HTTP/1.0"),
    ] {
        assert!(refused(line).to_string().contains(what), "{line:?}: {}", refused(line));
    }
}

#[test]
fn chunks_that_are_not_quite_right_are_refused() {
    for (body, what) in [
        ("\r\n", "the size"),
        ("x\r\n", "the size"),
        ("-1\r\n", "the size"),
        (" 1\r\n", "the size"),
        ("0x1\r\n", "the size"),
        ("1 a\r\n", "the size"),
        ("00000000000000001\r\na\r\n", "the size"),
        ("1\na\r\n", "line feed"),
        ("1;a\0\r\n", "the size"),
        ("1;a\rb\r\n", "the size"),
        ("1\r\nab", "the end of a chunk"),
        ("1\r\na\n", "the end of a chunk"),
        ("0\r\nX a\r\n", "after the body"),
        ("0\r\n X: a\r\n", "after the body"),
        ("0\r\n: a\r\n", "after the body"),
        ("0\r\nX: a\0\r\n", "after the body"),
        ("0\r\nX: a\n", "line feed"),
    ] {
        let head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        let error = refused(&format!("{head}{body}"));
        assert!(error.to_string().contains(what), "{body:?}: {error}");
    }
}

#[test]
fn limits_hold_to_the_byte() {
    let limits = Limits { head_bytes_max: 300, headers_max: 3, body_bytes_max: 10 };
    let head = |headers: &str, bytes: usize| {
        let head = format!("GET / HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
        let filler = "a".repeat(bytes - head.len());
        head.replace("fill", &format!("fill{filler}"))
    };
    let result = |input: String| {
        let (requests, error) = parsed(input.as_bytes(), limits);
        (requests.len(), error)
    };
    assert_eq!(result(head("X: fill\r\n", 300)), (1, None));
    let error = RequestError::HeadTooLarge { bytes_max: 300 };
    assert_eq!(result(head("X: fill\r\n", 301)), (0, Some(error)));
    assert_eq!(result(head("A:\r\nB:\r\n", 36)), (1, None));
    let error = RequestError::TooManyHeaders { headers_max: 3 };
    assert_eq!(result(head("A:\r\nB:\r\nC:\r\n", 40)), (0, Some(error)));
    let target =
        |bytes: usize| format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(bytes - 1));
    assert_eq!(result(target(310)), (0, Some(RequestError::TargetTooLong)));
    let long = Limits { head_bytes_max: 1 << 16, ..limits };
    assert_eq!(parsed(target(TARGET_BYTES_MAX).as_bytes(), long).0.len(), 1);
    let error = parsed(target(TARGET_BYTES_MAX + 1).as_bytes(), long).1;
    assert_eq!(error, Some(RequestError::TargetTooLong));

    let post = |framing: &str| format!("POST / HTTP/1.1\r\nHost: x\r\n{framing}");
    let error = RequestError::BodyTooLarge { bytes_max: 10 };
    assert_eq!(result(post("Content-Length: 10\r\n\r\n0123456789")), (1, None));
    assert_eq!(result(post("Content-Length: 11\r\n\r\n")), (0, Some(error.clone())));
    let chunked = |chunks: &str| post(&format!("Transfer-Encoding: chunked\r\n\r\n{chunks}"));
    assert_eq!(result(chunked("5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n")), (1, None));
    assert_eq!(result(chunked("5\r\n01234\r\n6\r\n")), (0, Some(error.clone())));
    assert_eq!(result(chunked("FFFFFFFFFFFFFFFF\r\n")), (0, Some(error)));
    let line = |bytes: usize| chunked(&format!("0;{}\r\n\r\n", "a".repeat(bytes - 4)));
    assert_eq!(result(line(256)), (1, None));
    let what = "the line before a chunk";
    assert_eq!(result(line(257)), (0, Some(RequestError::Malformed { what })));
    let trailer = |bytes: usize| chunked(&format!("0\r\nX:{}\r\n\r\n", "a".repeat(bytes - 6)));
    assert_eq!(result(trailer(300)), (1, None));
    let what = "the headers after the body";
    assert_eq!(result(trailer(301)), (0, Some(RequestError::Malformed { what })));
}

#[test]
fn what_is_no_http_is_refused_before_the_head_ends() {
    let mut parser = Parser::new(Limits::default());
    assert!(matches!(parser.parse(b"GET / HTTP/9.9"), Ok((0, Step::Partial))));
    assert!(parser.parse(b"GET / HTTP/9.9\r\n").is_err());
}

#[test]
fn a_client_that_expects_100_is_known_once_the_head_is_there() {
    let mut parser = Parser::new(Limits::default());
    let head = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n";
    assert!(matches!(parser.parse(head), Ok((_, Step::Head))));
    assert!(parser.head().unwrap().expects_continue());
    assert!(
        !one("GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n").head().expects_continue()
    );
}
