//! The payload of a Close frame.

use crate::Error;

/// Why the peer closes the connection (RFC 6455, 5.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close<'a> {
    /// The status code (RFC 6455, 7.4). It is always a code that may be sent in a frame.
    pub code: u16,
    /// The peer's explanation, at most 123 bytes and often empty. Use it for logging only.
    pub reason: &'a str,
}

impl<'a> Close<'a> {
    /// Parses an unmasked Close payload: either empty, or a code and a reason.
    pub(crate) fn parse(payload: &'a [u8]) -> Result<Option<Self>, Error> {
        let Some((code, reason)) = payload.split_first_chunk() else {
            return if payload.is_empty() { Ok(None) } else { Err(Error::TruncatedCloseCode) };
        };
        let code = u16::from_be_bytes(*code);
        if !may_be_sent(code) {
            return Err(Error::InvalidCloseCode { code });
        }
        let reason = std::str::from_utf8(reason).map_err(|_| Error::InvalidCloseReason)?;
        Ok(Some(Self { code, reason }))
    }
}

/// Whether a close code may be sent in a frame. 1004, 1005, 1006 and 1015 are reserved. Codes
/// between the ranges are unassigned (RFC 6455, 7.4; 1012 to 1014 are from the IANA registry).
pub(crate) fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}
