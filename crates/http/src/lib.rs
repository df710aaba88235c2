//! HTTP/1.1 (RFC 9110, RFC 9112) as a state machine over byte slices, for a server: bytes in,
//! [`Request`]s out; [`Response`]s in, bytes out.
//!
//! Nothing here reads a socket or a clock. A [`Parser`] finds the same requests, however the input
//! was split, and refuses whatever two parsers could read differently: bare line feeds, folded
//! headers, two lengths, a length beside a transfer coding.
//!
//! ```
//! use playfield_http::{Limits, Parser, Step};
//!
//! let input = b"POST /rooms/7/score?by=ann HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n42";
//! let mut parser = Parser::new(Limits::default());
//! let (head_bytes, step) = parser.parse(input)?;
//! assert!(matches!(step, Step::Head));
//! let (_, step) = parser.parse(&input[head_bytes..])?;
//! let Step::Complete(request) = step else { panic!("it is complete") };
//! assert_eq!((request.method(), request.path(), request.body()), ("POST", "/rooms/7/score", &b"42"[..]));
//! assert_eq!(request.query_value("by").as_deref(), Some("ann"));
//! # Ok::<(), playfield_http::RequestError>(())
//! ```

mod body;
mod coding;
mod date;
mod decode;
mod error;
mod head;
mod parser;
mod request;
mod response;
mod status;

pub use date::http_date;
pub use decode::percent_decoded;
pub use error::RequestError;
pub use head::{Head, TARGET_BYTES_MAX};
pub use parser::{Limits, Parser, Step};
pub use request::Request;
pub use response::{Response, Sending, write_continue};
