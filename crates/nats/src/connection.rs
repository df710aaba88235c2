//! One connection to one server: a client that never connects again.

use std::error::Error as _;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError};

use crate::settings::{Settings, without_secrets};
use crate::{ConnectError, lock};

/// The time for a connection to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The time between two pings. A connection is lost after two that were not answered.
const PING: Duration = Duration::from_secs(2);
/// The time for an answer while the connection is set up.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// An address at which no server can be: a client that only knows this one gives up.
const NOWHERE: &str = "nats://127.0.0.1:0";
/// The most messages, of any size, that wait to be written, or to be read by the driver.
const MESSAGES_MAX: usize = 65_536;

/// A connection to a server.
///
/// The client forgets all servers as soon as it has connected, so it ends with its
/// connection. It would connect again otherwise, and send what waits: a condition from before an
/// engine lost its last writes could then hold by chance.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// The server, for texts.
    pub(crate) server: String,
    pub(crate) reports: Arc<Reports>,
}

/// Reports of the connection that are no messages.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Messages were dropped because they were not read in time.
    pub(crate) has_dropped: AtomicBool,
    /// The server's last error, such as a missing permission.
    refusal: Mutex<Option<String>>,
}

impl Connection {
    pub(crate) async fn open(
        settings: &Settings,
        address: &ServerAddr,
        credentials: Option<&str>,
    ) -> Result<Self, ConnectError> {
        let reports = Arc::new(Reports::default());
        let options = options(settings, address, credentials, &reports)?;
        let server = without_secrets(address.as_url_str());
        let client =
            options.connect(address.clone()).await.map_err(|error| match error.kind() {
                ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                    ConnectError::Unauthorized { server: server.clone() }
                }
                _ => {
                    let reason = whole(&error);
                    match reason.split_once("invalid peer certificate: ") {
                        Some((_, reason)) => ConnectError::Certificate {
                            server: server.clone(),
                            reason: reason.into(),
                        },
                        None => ConnectError::Unreachable { tried: format!("{server}: {reason}") },
                    }
                }
            })?;
        client
            .set_server_pool(NOWHERE)
            .await
            .map_err(|error| ConnectError::Unreachable { tried: format!("{server}: {error}") })?;
        Ok(Self { client, server, reports })
    }
}

impl Reports {
    /// The server's last error.
    pub(crate) fn refusal(&self) -> Option<String> {
        lock(&self.refusal).clone()
    }

    fn hear(&self, event: Event) {
        match event {
            Event::SlowConsumer(_) => self.has_dropped.store(true, Ordering::Relaxed),
            Event::ServerError(error) => {
                let text = match error {
                    ServerError::Other(text) => text,
                    other => other.to_string(),
                };
                let mut refusal = lock(&self.refusal);
                if refusal.as_ref() != Some(&text) {
                    log::error!("the engine says: {text}");
                    *refusal = Some(text);
                }
            }
            Event::LameDuckMode => log::info!("the engine's server is about to stop"),
            _ => {}
        }
    }
}

fn options(
    settings: &Settings,
    address: &ServerAddr,
    credentials: Option<&str>,
    reports: &Arc<Reports>,
) -> Result<ConnectOptions, ConnectError> {
    let reports = reports.clone();
    let mut options = ConnectOptions::new()
        .name(&settings.name)
        .no_echo()
        .ignore_discovered_servers()
        .max_reconnects(1)
        .connection_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING)
        .request_timeout(Some(ANSWER_TIMEOUT))
        .client_capacity(MESSAGES_MAX)
        .subscription_capacity(MESSAGES_MAX)
        .event_callback(move |event| {
            reports.hear(event);
            std::future::ready(())
        });
    if let Some(user) = address.username() {
        let user = decoded(user);
        options = match address.password() {
            Some(password) => options.user_and_password(user, decoded(password)),
            None => options.token(user),
        };
    }
    if let (Some(text), Some(file)) = (credentials, &settings.credentials) {
        options = options.credentials(text).map_err(|error| ConnectError::Credentials {
            file: file.clone(),
            reason: error.to_string(),
        })?;
    }
    Ok(options)
}

/// A part of a URL without its percent-encoding.
fn decoded(part: &str) -> String {
    let bytes = part.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = part.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// An error with what caused it.
fn whole(error: &async_nats::ConnectError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        if !text.contains(&error.to_string()) {
            let _ = write!(text, ": {error}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_in_urls_are_decoded() {
        for (part, text) in
            [("me", "me"), ("p%40ss%3A", "p@ss:"), ("%", "%"), ("%4", "%4"), ("%zz%C3%BC", "%zzü")]
        {
            assert_eq!(decoded(part), text);
        }
    }
}
