//! HTTP requests. However the input is split, the same are found; each is within the limits, and
//! its parts can be read; a response that echoes them is one response.
#![no_main]

use libfuzzer_sys::fuzz_target;
use playfield_http::{Limits, Parser, Request, RequestError, Response, Sending, Step};

const LIMITS: Limits = Limits { head_bytes_max: 512, headers_max: 8, body_bytes_max: 128 };

fuzz_target!(|data: &[u8]| {
    // The first byte says where the others are split.
    let Some((&step, input)) = data.split_first() else { return };
    let whole = parsed(input, input.len().max(1));
    let split = parsed(input, usize::from(step).max(1));
    assert_eq!(whole.1, split.1, "the same error");
    assert_eq!(whole.0.len(), split.0.len(), "as many requests");
    for (one, other) in whole.0.iter().zip(&split.0) {
        assert_eq!(one.head().bytes(), other.head().bytes());
        assert_eq!(one.body(), other.body());
        check(one);
    }
});

fn parsed(input: &[u8], step: usize) -> (Vec<Request>, Option<RequestError>) {
    let mut parser = Parser::new(LIMITS);
    let (mut requests, mut at, mut end) = (Vec::new(), 0, 0);
    loop {
        match parser.parse(&input[at..end]) {
            Ok((0, Step::Partial)) if end == input.len() => return (requests, None),
            Ok((0, Step::Partial)) => end = (end + step).min(input.len()),
            Ok((consumed, step)) => {
                at += consumed;
                assert!(at <= end, "no more is consumed than there is");
                if let Step::Complete(request) = step {
                    requests.push(request);
                }
            }
            Err(error) => {
                assert!((400..600).contains(&error.status()));
                return (requests, Some(error));
            }
        }
    }
}

fn check(request: &Request) {
    assert!(request.head().bytes().len() <= LIMITS.head_bytes_max);
    assert!(request.head().bytes().ends_with(b"\r\n\r\n"));
    assert!(request.body().len() <= LIMITS.body_bytes_max);
    assert!(request.head().headers().count() <= LIMITS.headers_max);
    assert!(request.path() == "*" || request.path().starts_with('/'));
    let mut response = Response::text(request.path());
    for (name, value) in request.query() {
        response = response.with_header(name.into_owned(), value.into_owned());
    }
    let mut out = Vec::new();
    response.write(&mut out, &Sending::default());
    let head = out.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("an end of the head");
    let lines = out[..head].split(|&byte| byte == b'\n').count();
    let headers = if response.defect().is_some() { 0 } else { request.query().count() };
    assert_eq!(lines, 1 + 3 + headers, "no header is smuggled in");
}
