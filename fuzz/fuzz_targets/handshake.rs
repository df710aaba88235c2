//! Request and response heads. An accepted request is answered with one head, and a client accepts
//! only a response to its own request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use playfield_websocket::Deflate;
use playfield_websocket::handshake::{
    ClientHandshake, Head, HeadLimits, Response, accept, parse_request, reject,
};

fuzz_target!(|data: &[u8]| {
    let limits = HeadLimits { head_bytes_max: 2_048, headers_max: 16 };
    let mut out = Vec::new();
    match parse_request(data, &limits) {
        Ok(Head::Complete(request)) => {
            assert!(request.head_bytes <= data.len().min(limits.head_bytes_max));
            if let Some(upgrade) = &request.upgrade {
                let agreed = upgrade.deflate(&Deflate::default());
                let subprotocol = upgrade.subprotocols().last().copied();
                accept(&mut out, upgrade, subprotocol, agreed.as_ref())
                    .expect("the subprotocol was offered");
            }
        }
        Ok(Head::Partial) => assert!(data.len() < limits.head_bytes_max),
        Err(error) => reject(&mut out, error.status(), &error.to_string()),
    }
    if out.starts_with(b"HTTP/1.1 101") {
        let heads = out.windows(4).filter(|window| window == b"\r\n\r\n").count();
        assert!(heads == 1 && out.ends_with(b"\r\n\r\n"));
    }
    let client =
        ClientHandshake::new("here", "/", [7; 16], &[], &["chat"]).expect("a valid request");
    let client = client.with_deflate(Deflate::default());
    if let Ok(Response::Complete { head_bytes, .. }) = client.parse_response(data, &limits) {
        assert!(head_bytes <= data.len());
    }
});
