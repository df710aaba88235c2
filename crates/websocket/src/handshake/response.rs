//! The server's response.

use crate::Agreed;

use super::{HandshakeError, Upgrade, error::excerpt, head::accept_value};

/// Appends the response that upgrades the connection to a WebSocket (RFC 6455, 4.2.2). It selects
/// one of the subprotocols that the client [offers](Upgrade::subprotocols), or none, and enables
/// compression if it was [agreed](Upgrade::deflate). Frames may follow immediately.
///
/// # Errors
///
/// [`HandshakeError::SubprotocolNotOffered`] if the client does not offer the subprotocol. Nothing
/// is written in that case.
pub fn accept(
    out: &mut Vec<u8>,
    upgrade: &Upgrade<'_>,
    subprotocol: Option<&str>,
    deflate: Option<&Agreed>,
) -> Result<(), HandshakeError> {
    // Offered subprotocols are known to be tokens, so none of them can split a header.
    if let Some(name) = subprotocol.filter(|name| !upgrade.subprotocols().contains(name)) {
        return Err(HandshakeError::SubprotocolNotOffered { value: excerpt(name.as_bytes()) });
    }
    out.extend_from_slice(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
          Sec-WebSocket-Accept: ",
    );
    out.extend_from_slice(accept_value(upgrade.key()).as_bytes());
    out.extend_from_slice(b"\r\n");
    if let Some(name) = subprotocol {
        out.extend_from_slice(b"Sec-WebSocket-Protocol: ");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if let Some(agreed) = deflate {
        out.extend_from_slice(b"Sec-WebSocket-Extensions: ");
        out.extend_from_slice(agreed.response.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Appends a response that refuses the request, with `reason` as its body. Close the connection
/// afterwards. A status outside 400 to 599 is written as 500. A 426 response names the supported
/// version, 13.
pub fn reject(out: &mut Vec<u8>, status: u16, reason: &str) {
    let status = if (400..600).contains(&status) { status } else { 500 };
    let upgrade = if status == 426 {
        "Connection: close, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    } else {
        "Connection: close\r\n"
    };
    let phrase = phrase(status);
    let length = reason.len();
    out.extend_from_slice(
        format!(
            "HTTP/1.1 {status} {phrase}\r\n{upgrade}Content-Type: text/plain; charset=utf-8\r\n\
             Content-Length: {length}\r\n\r\n{reason}"
        )
        .as_bytes(),
    );
}

fn phrase(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ if status < 500 => "Client Error",
        _ => "Server Error",
    }
}
