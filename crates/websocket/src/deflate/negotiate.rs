//! Negotiating permessage-deflate (RFC 7692, 7.1).

use super::{Deflate, Direction};
use crate::handshake::extension::Extension;

/// The extension's name.
const NAME: &str = "permessage-deflate";

/// The largest window size, as a power of two.
pub(crate) const WINDOW_BITS_MAX: u8 = 15;
const WINDOW_BITS_MIN: u8 = 8;

/// The parameters that a server agreed to, and the response header that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    deflate: Deflate,
    pub(crate) response: String,
}

impl Agreed {
    /// The negotiated parameters.
    pub fn deflate(&self) -> &Deflate {
        &self.deflate
    }
}

/// The parameters of an offer or a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    server_no_context_takeover: bool,
    client_no_context_takeover: bool,
    server_max_window_bits: Option<u8>,
    /// Without a value, it allows the largest window.
    client_max_window_bits: Option<Option<u8>>,
}

impl Terms {
    /// Parses the parameters. Returns `None` for another extension, and for a parameter that is
    /// unknown, repeated or out of range. Such an offer is declined, and such a response is an
    /// error (7.1).
    pub(crate) fn read(extension: &Extension<'_>) -> Option<Self> {
        if extension.name != NAME {
            return None;
        }
        let mut terms = Self::default();
        for (name, value) in &extension.parameters {
            let is_new = match (*name, value.as_deref()) {
                ("server_no_context_takeover", None) => {
                    !std::mem::replace(&mut terms.server_no_context_takeover, true)
                }
                ("client_no_context_takeover", None) => {
                    !std::mem::replace(&mut terms.client_no_context_takeover, true)
                }
                ("server_max_window_bits", Some(value)) => {
                    terms.server_max_window_bits.replace(window_bits(value)?).is_none()
                }
                ("client_max_window_bits", value) => {
                    let bits = value.map(window_bits);
                    if bits == Some(None) {
                        return None;
                    }
                    terms.client_max_window_bits.replace(bits.flatten()).is_none()
                }
                _ => false,
            };
            if !is_new {
                return None;
            }
        }
        Some(terms)
    }
}

/// Parses a number from 8 to 15 without leading zeros (7.1.2.1).
fn window_bits(value: &str) -> Option<u8> {
    let bits =
        value.parse().ok().filter(|bits| (WINDOW_BITS_MIN..=WINDOW_BITS_MAX).contains(bits))?;
    (bits.to_string() == value).then_some(bits)
}

impl Deflate {
    /// Accepts the first acceptable offer, as a server with these preferences.
    pub(crate) fn answer(&self, offers: &[Extension<'_>]) -> Option<Agreed> {
        let offer = offers.iter().find_map(Terms::read)?;
        let server = Direction {
            context_takeover: self.server.context_takeover && !offer.server_no_context_takeover,
            window_bits: self
                .server
                .window_bits
                .min(offer.server_max_window_bits.unwrap_or(WINDOW_BITS_MAX)),
        };
        let offered_bits = offer.client_max_window_bits.map(|bits| bits.unwrap_or(WINDOW_BITS_MAX));
        let client_bits =
            offered_bits.map_or(WINDOW_BITS_MAX, |bits| bits.min(self.client.window_bits));
        let client = Direction {
            // A client that can't use the preferred window is asked not to keep a context.
            context_takeover: self.client.context_takeover
                && !offer.client_no_context_takeover
                && client_bits <= self.client.window_bits,
            window_bits: client_bits,
        };
        let mut response = NAME.to_owned();
        if !server.context_takeover {
            response += "; server_no_context_takeover";
        }
        if !client.context_takeover {
            response += "; client_no_context_takeover";
        }
        // If the offer names a window, the response must name one too (7.1.2.1).
        if offer.server_max_window_bits.is_some() || server.window_bits < WINDOW_BITS_MAX {
            response += &format!("; server_max_window_bits={}", server.window_bits);
        }
        // The response must not name this parameter unless the client offered it (7.1.2.2).
        if offered_bits.is_some() && client.window_bits < WINDOW_BITS_MAX {
            response += &format!("; client_max_window_bits={}", client.window_bits);
        }
        Some(Agreed { deflate: Self { server, client }, response })
    }

    /// Returns the offer that a client with these preferences sends.
    pub(crate) fn offer(&self) -> String {
        let mut offer = NAME.to_owned();
        if !self.server.context_takeover {
            offer += "; server_no_context_takeover";
        }
        if !self.client.context_takeover {
            offer += "; client_no_context_takeover";
        }
        if self.server.window_bits < WINDOW_BITS_MAX {
            offer += &format!("; server_max_window_bits={}", self.server.window_bits);
        }
        offer += "; client_max_window_bits";
        if self.client.window_bits < WINDOW_BITS_MAX {
            offer += &format!("={}", self.client.window_bits);
        }
        offer
    }

    /// Returns the parameters that the server's response selects, for a client that sent this
    /// offer. `None` if the response does not match the offer (7.1).
    pub(crate) fn accepted(&self, response: &Extension<'_>) -> Option<Self> {
        let terms = Terms::read(response)?;
        let server_bits = match terms.server_max_window_bits {
            Some(bits) if bits <= self.server.window_bits => bits,
            Some(_) => return None,
            None if self.server.window_bits < WINDOW_BITS_MAX => return None,
            None => WINDOW_BITS_MAX,
        };
        let client_bits = match terms.client_max_window_bits {
            Some(None) => return None,
            Some(Some(bits)) => bits.min(self.client.window_bits),
            None => self.client.window_bits,
        };
        if !self.server.context_takeover && !terms.server_no_context_takeover {
            return None;
        }
        Some(Self {
            server: Direction {
                context_takeover: !terms.server_no_context_takeover,
                window_bits: server_bits,
            },
            client: Direction {
                context_takeover: self.client.context_takeover && !terms.client_no_context_takeover,
                window_bits: client_bits,
            },
        })
    }
}
