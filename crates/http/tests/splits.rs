//! However the input is split, the same requests are found, and the same error.

use playfield_http::{Limits, Parser, RequestError, Step};
use proptest::prelude::*;

/// What is found in input that comes in pieces which end at these places.
fn found(input: &[u8], ends: &[usize]) -> (Vec<String>, Option<RequestError>) {
    let limits = Limits { head_bytes_max: 256, headers_max: 4, body_bytes_max: 64 };
    let (mut parser, mut requests) = (Parser::new(limits), Vec::new());
    let mut at = 0;
    for &end in ends.iter().chain([&input.len()]) {
        loop {
            match parser.parse(&input[at..end.max(at)]) {
                Ok((0, Step::Partial)) => break,
                Ok((consumed, step)) => {
                    assert!(consumed <= end - at, "no more is consumed than there is");
                    at += consumed;
                    if let Step::Complete(request) = step {
                        requests.push(format!(
                            "{:?} {:?} {:?} {:?}",
                            request.method(),
                            request.path(),
                            request.head().headers().collect::<Vec<_>>(),
                            request.body()
                        ));
                    }
                }
                Err(error) => return (requests, Some(error)),
            }
        }
    }
    (requests, None)
}

/// Requests of all kinds, and parts of requests.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("GET /a?b HTTP/1.1\r\n"),
        Just("POST /b HTTP/1.1\r\n"),
        Just("PUT x HTTP/1.1\r\n"),
        Just("GET / HTTP/1.0\r\n"),
        Just("GET / HTTP/3.0\r\n"),
        Just("Host: x\r\n"),
        Just("Content-Length: 3\r\n"),
        Just("Content-Length: 65\r\n"),
        Just("Transfer-Encoding: chunked\r\n"),
        Just("Connection: close\r\n"),
        Just("\r\n"),
        Just("\n"),
        Just("\r"),
        Just("abc"),
        Just("3\r\nabc\r\n"),
        Just("0\r\n"),
        Just("0;x\r\nX: y\r\n\r\n"),
        Just("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        Just("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"),
        Just(
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
        ),
    ];
    let filler =
        (0..300_usize).prop_map(|bytes| format!("X: {}\r\n", "y".repeat(bytes)).into_bytes());
    let part = prop_oneof![
        8 => piece.prop_map(|text| text.as_bytes().to_vec()),
        1 => filler,
        1 => proptest::collection::vec(any::<u8>(), 0..8),
    ];
    proptest::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_split_equals_the_whole(
        input in pieces(),
        mut ends in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let whole = found(&input, &[]);
        let mut places: Vec<usize> = ends.drain(..).map(|end| end.index(input.len() + 1)).collect();
        places.sort_unstable();
        prop_assert_eq!(found(&input, &places), whole.clone());
        let every: Vec<usize> = (0..=input.len()).collect();
        prop_assert_eq!(found(&input, &every), whole);
    }
}

#[test]
fn requests_split_at_every_byte_are_the_same() {
    let input =
        b"\r\nPOST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;e\r\nabc\r\n\
                  0\r\nA: b\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n\r\n\r\n\
                  PUT /c HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";
    let whole = found(input, &[]);
    assert_eq!((whole.0.len(), &whole.1), (3, &None));
    for end in 0..=input.len() {
        assert_eq!(found(input, &[end]), whole);
    }
    let every: Vec<usize> = (0..=input.len()).collect();
    assert_eq!(found(input, &every), whole);
}
