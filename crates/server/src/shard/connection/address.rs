//! Addresses of connections: they are counted by address when they are accepted, and behind a proxy
//! by the address that it names.

use std::net::IpAddr;
use std::time::Duration;

use playfield_room::Error;
use playfield_wire::excerpt;

use crate::addresses::{Crowded, Pace, Tally};
use crate::proxy::Client;
use crate::shard::connection::Links;
use crate::shard::env::Env;
use crate::shard::keys::ConnectionKey;
use crate::shard::log_limit::LogLimit;

/// The minimum time between two log lines about a proxy that did not name a client.
const UNNAMED_LOG_PERIOD: Duration = Duration::from_secs(60);

/// Requests of which a trusted proxy did not name the client, though it sent the header.
#[derive(Default)]
pub(crate) struct Unnamed {
    pub(crate) count: u64,
    /// Before this, the log does not say it again.
    logs_at: Duration,
}

impl Unnamed {
    /// A request came from this client. Returns whether it is unnamed.
    pub(crate) fn note(&mut self, client: Client, now: Duration) -> bool {
        if !client.is_unnamed {
            return false;
        }
        self.count += 1;
        if now >= self.logs_at {
            self.logs_at = now + UNNAMED_LOG_PERIOD;
            log::warn!(
                "trusted_proxies: the X-Forwarded-For that the proxy {} sent does not name its \
                 client by an address. All such clients of it share the limits of one address",
                client.address.ip()
            );
        }
        true
    }
}

/// Connections that were refused because there are too many, for the log.
#[derive(Default)]
pub(crate) struct TurnedAway {
    /// The settings that were reached.
    logged: LogLimit<&'static str>,
}

impl TurnedAway {
    /// Logs that this setting was reached by a connection from an address.
    pub(crate) fn note(&mut self, setting: &'static str, ip: IpAddr, now: Duration) {
        if self.logged.is_due(setting, now) {
            log::warn!(
                "{setting}: a connection from {ip} is refused. Further ones are only counted for a \
                 minute"
            );
        }
    }

    /// Logs that a page of this origin may not connect.
    pub(crate) fn note_origin(&mut self, origin: &[u8], now: Duration) {
        if self.logged.is_due("websocket.allowed_origins", now) {
            let origin = String::from_utf8_lossy(origin);
            log::warn!(
                "websocket.allowed_origins: a page of the origin {:?} is refused. Further ones are only \
                 counted for a minute",
                excerpt(&origin, 128)
            );
        }
    }

    /// Logs that a session ended with its connection because of this setting.
    pub(crate) fn note_away(&mut self, setting: &'static str, now: Duration) {
        if self.logged.is_due(setting, now) {
            log::warn!(
                "{setting}: a session ends with its connection, and its client can't resume it. \
                 Further ones are only counted for a minute"
            );
        }
    }
}

impl Links {
    /// Counts a new connection from this address, before anything is kept for it. `None` if there
    /// are too many.
    pub(crate) fn admit_from(
        &mut self,
        env: &mut Env,
        ip: IpAddr,
        is_service: bool,
    ) -> Option<Tally> {
        match env.node.addresses.admit(ip, env.now) {
            Ok(mut tally) => {
                if is_service {
                    tally.settle();
                }
                Some(tally)
            }
            Err(why) => {
                self.note_crowded(env, why, ip);
                None
            }
        }
    }

    /// A connection from this address was refused.
    pub(in crate::shard) fn note_crowded(&mut self, env: &mut Env, why: Crowded, ip: IpAddr) {
        let counters = &mut env.counters;
        match why {
            Crowded::Connections => counters.connections_refused_by_address += 1,
            Crowded::Handshakes | Crowded::AllHandshakes => counters.handshakes_refused += 1,
        }
        self.turned_away.note(why.setting(), ip, env.now);
    }

    /// A connection from this address was refused because of `limits.connections.total`.
    pub(crate) fn note_full(&mut self, env: &mut Env, ip: IpAddr) {
        self.turned_away.note("limits.connections.total", ip, env.now);
    }

    /// Counts that the address of a connection did this, if it may; the error says when.
    pub(in crate::shard) fn take_pace(
        &mut self,
        env: &mut Env,
        key: ConnectionKey,
        pace: Pace,
    ) -> Result<(), Error> {
        let Some(connection) = self.get(key) else { return Ok(()) };
        let taken = connection.tally.address().take(pace, env.now);
        if taken.is_err() {
            let counters = &mut env.counters;
            *match pace {
                Pace::Session => &mut counters.sessions_refused_by_address,
                Pace::Resume => &mut counters.resumes_refused_by_address,
                Pace::Join => &mut counters.joins_refused_by_address,
                Pace::Room => &mut counters.rooms_refused_by_address,
                Pace::MissedKey => &mut counters.keys_refused_by_address,
                Pace::Channel => &mut counters.channels_refused_by_address,
            } += 1;
        }
        taken
    }
}
