//! Negotiating compression (RFC 7692, 7.1).

use playfield_websocket::handshake::{
    ClientHandshake, HandshakeError, Head, HeadLimits, Response, accept, parse_request,
};
use playfield_websocket::{Deflate, Direction};

const fn direction(context_takeover: bool, window_bits: u8) -> Direction {
    Direction { context_takeover, window_bits }
}

const FRESH: Direction = direction(false, 15);
const KEPT: Direction = direction(true, 15);

/// A server's response to an offer, and what it agreed to.
fn answer(preferred: Deflate, offer: &str) -> Result<Option<(String, Deflate)>, HandshakeError> {
    let request = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: {offer}\r\n\r\n"
    );
    let Head::Complete(request) = parse_request(request.as_bytes(), &HeadLimits::default())? else {
        panic!("the request is complete")
    };
    let upgrade = request.upgrade.unwrap();
    let agreed = upgrade.deflate(&preferred);
    let mut response = Vec::new();
    accept(&mut response, &upgrade, None, agreed.as_ref()).unwrap();
    let response = String::from_utf8(response).unwrap();
    let line = response.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Extensions: "));
    assert_eq!(line.is_some(), agreed.is_some());
    Ok(agreed.map(|agreed| (line.unwrap().to_owned(), *agreed.deflate())))
}

/// The result of a server's response to the client's own offer.
fn response(preferred: Deflate, extensions: &str) -> Result<Option<Deflate>, HandshakeError> {
    let handshake = ClientHandshake::new("a", "/", *b"the sample nonce", &[], &[])
        .unwrap()
        .with_deflate(preferred);
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n{extensions}\r\n"
    );
    match handshake.parse_response(head.as_bytes(), &HeadLimits::default())? {
        Response::Complete { deflate, .. } => Ok(deflate),
        Response::Partial => panic!("the response is complete"),
    }
}

#[test]
fn a_server_accepts_the_first_acceptable_offer() {
    let both_kept = Deflate { server: KEPT, client: KEPT };
    let small = Deflate { server: direction(true, 10), client: direction(true, 11) };
    let fresh = Deflate::default();
    let none = "; server_no_context_takeover; client_no_context_takeover";
    let cases = [
        (fresh, "permessage-deflate", none, FRESH, FRESH),
        (both_kept, "permessage-deflate", "", KEPT, KEPT),
        (
            both_kept,
            "permessage-deflate; server_no_context_takeover",
            "; server_no_context_takeover",
            FRESH,
            KEPT,
        ),
        (
            both_kept,
            "permessage-deflate; client_no_context_takeover",
            "; client_no_context_takeover",
            KEPT,
            FRESH,
        ),
        (both_kept, "permessage-deflate; client_max_window_bits", "", KEPT, KEPT),
        (
            both_kept,
            "permessage-deflate; server_max_window_bits=15",
            "; server_max_window_bits=15",
            KEPT,
            KEPT,
        ),
        (
            both_kept,
            "permessage-deflate; server_max_window_bits=\"9\"; client_max_window_bits=12",
            "; server_max_window_bits=9; client_max_window_bits=12",
            direction(true, 9),
            direction(true, 12),
        ),
        (
            small,
            "permessage-deflate; client_max_window_bits",
            "; server_max_window_bits=10; client_max_window_bits=11",
            direction(true, 10),
            direction(true, 11),
        ),
        // A client that supports no smaller window keeps no context.
        (
            small,
            "permessage-deflate",
            "; client_no_context_takeover; server_max_window_bits=10",
            direction(true, 10),
            FRESH,
        ),
        (
            fresh,
            "x-other; a=1, permessage-deflate; server_max_window_bits=7, permessage-deflate; unknown, \
             permessage-deflate; server_max_window_bits=8",
            "; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=8",
            direction(false, 8),
            FRESH,
        ),
    ];
    for (preferred, offer, line, server, client) in cases {
        let expected = (format!("permessage-deflate{line}"), Deflate { server, client });
        assert_eq!(answer(preferred, offer), Ok(Some(expected)), "{offer}");
    }
}

#[test]
fn unacceptable_offers_are_skipped() {
    for parameters in [
        "; server_no_context_takeover=1",
        "; client_no_context_takeover=true",
        "; server_no_context_takeover; server_no_context_takeover",
        "; server_max_window_bits",
        "; server_max_window_bits=7",
        "; server_max_window_bits=16",
        "; server_max_window_bits=010",
        "; server_max_window_bits=+9",
        "; server_max_window_bits=9; server_max_window_bits=9",
        "; client_max_window_bits=0",
        "; client_max_window_bits=9; client_max_window_bits",
        "; client_max_window_bits=99999999999999999999",
        "; mode=fast",
    ] {
        assert_eq!(
            answer(Deflate::default(), &format!("permessage-deflate{parameters}")),
            Ok(None),
            "{parameters}"
        );
    }
    assert_eq!(answer(Deflate::default(), "permessage-bzip2"), Ok(None));
    assert_eq!(answer(Deflate::default(), ""), Ok(None));
}

#[test]
fn a_malformed_extension_header_is_rejected() {
    for offer in [
        "permessage-deflate;",
        "permessage-deflate; =1",
        "a b",
        "permessage-deflate; server_max_window_bits=\"9",
    ] {
        let error = answer(Deflate::default(), offer).unwrap_err();
        assert!(
            matches!(error, HandshakeError::Invalid { what: "Sec-WebSocket-Extensions", .. }),
            "{error}"
        );
        assert_eq!(error.status(), 400);
    }
}

#[test]
fn a_client_offers_its_preferences() {
    let offer = |preferred| {
        let handshake = ClientHandshake::new("a", "/", [0; 16], &[("X-A", "1")], &["b"]).unwrap();
        let request =
            String::from_utf8(handshake.with_deflate(preferred).request().to_vec()).unwrap();
        assert!(request.ends_with("\r\n\r\n") && request.contains("X-A: 1\r\n"));
        let line = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Extensions: "));
        line.unwrap().to_owned()
    };
    let none = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
    assert_eq!(offer(Deflate::default()), format!("{none}; client_max_window_bits"));
    let small = Deflate { server: direction(true, 9), client: direction(true, 10) };
    assert_eq!(
        offer(small),
        "permessage-deflate; server_max_window_bits=9; client_max_window_bits=10"
    );
}

#[test]
fn a_client_accepts_a_response_that_matches_its_offer() {
    let header =
        |parameters: &str| format!("Sec-WebSocket-Extensions: permessage-deflate{parameters}\r\n");
    let kept = Deflate { server: KEPT, client: KEPT };
    assert_eq!(response(kept, ""), Ok(None), "a server may decline");
    assert_eq!(response(kept, &header("")), Ok(Some(kept)));
    assert_eq!(
        response(kept, &header("; server_no_context_takeover; client_no_context_takeover")),
        Ok(Some(Deflate::default()))
    );
    assert_eq!(
        response(kept, &header("; server_max_window_bits=9; client_max_window_bits=8")),
        Ok(Some(Deflate { server: direction(true, 9), client: direction(true, 8) }))
    );
    let fresh = Deflate::default();
    assert_eq!(response(fresh, &header("; server_no_context_takeover")), Ok(Some(fresh)));
}

#[test]
fn a_client_rejects_a_response_that_does_not_match_its_offer() {
    let small = Deflate { server: direction(false, 10), client: FRESH };
    for extensions in [
        "permessage-deflate; server_max_window_bits=10", // context takeover was not offered
        "permessage-deflate; server_no_context_takeover", // the window is too large
        "permessage-deflate; server_no_context_takeover; server_max_window_bits=11",
        "permessage-deflate; server_no_context_takeover; server_max_window_bits=10; client_max_window_bits",
        "permessage-deflate; server_no_context_takeover; server_max_window_bits=10; unknown",
        "permessage-deflate; server_no_context_takeover; server_max_window_bits=10; server_max_window_bits=10",
        "x-other",
        "permessage-deflate; server_no_context_takeover; server_max_window_bits=10, x-other",
    ] {
        let error =
            response(small, &format!("Sec-WebSocket-Extensions: {extensions}\r\n")).unwrap_err();
        assert!(
            matches!(error, HandshakeError::ExtensionNotOffered { .. }),
            "{extensions}: {error}"
        );
    }
    let error = response(small, "Sec-WebSocket-Extensions: a;;\r\n").unwrap_err();
    assert!(matches!(error, HandshakeError::Invalid { .. }), "{error}");
}

/// Both ends agree on the same parameters, which never exceed either end's preferences.
#[test]
fn both_ends_agree() {
    let directions = || {
        [false, true].into_iter().flat_map(|kept| [8, 9, 12, 15].map(|bits| direction(kept, bits)))
    };
    for (server, client) in directions().flat_map(|one| directions().map(move |other| (one, other)))
    {
        let client_preferences = Deflate { server, client };
        for (server, client) in
            directions().flat_map(|one| directions().map(move |other| (one, other)))
        {
            let server_preferences = Deflate { server, client };
            let handshake = ClientHandshake::new("a", "/", [7; 16], &[], &[])
                .unwrap()
                .with_deflate(client_preferences);
            let Ok(Head::Complete(request)) =
                parse_request(handshake.request(), &HeadLimits::default())
            else {
                panic!("the request is complete")
            };
            let upgrade = request.upgrade.unwrap();
            let agreed = upgrade.deflate(&server_preferences).expect("an acceptable offer");
            let mut out = Vec::new();
            accept(&mut out, &upgrade, None, Some(&agreed)).unwrap();
            let response = handshake.parse_response(&out, &HeadLimits::default());
            let Ok(Response::Complete { deflate: Some(deflate), .. }) = response else {
                panic!("{response:?}")
            };
            assert_eq!(&deflate, agreed.deflate(), "{client_preferences:?} {server_preferences:?}");
            for preferred in [client_preferences, server_preferences] {
                for (agreed, preferred) in
                    [(deflate.server, preferred.server), (deflate.client, preferred.client)]
                {
                    assert!(agreed.window_bits <= preferred.window_bits);
                    assert!(preferred.context_takeover || !agreed.context_takeover);
                }
            }
        }
    }
}
