//! A node's counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::pulse::Pulse;

macro_rules! counters {
    ($($(#[doc = $help:literal])+ $name:ident,)*) => {
        /// The counters of a shard. They are published once per turn.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Counters {
            $(pub(crate) $name: u64,)*
        }

        /// Counters of one shard, or of all together, since the node's start.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct ShardStats {
            $($(#[doc = $help])+ pub $name: u64,)*
        }

        /// The published counters of a shard.
        #[derive(Default)]
        pub(crate) struct Published {
            $($name: AtomicU64,)*
            /// Counters of the control thread.
            pub(crate) http: HttpCounters,
            pub(crate) pulse: Pulse,
        }

        impl Published {
            /// Publishes the counters.
            pub(crate) fn publish(&self, counters: &Counters) {
                let published = self.lateness_us_max.load(Ordering::Relaxed);
                let lateness_us_max = published.max(counters.lateness_us_max);
                $(self.$name.store(counters.$name, Ordering::Relaxed);)*
                self.lateness_us_max.store(lateness_us_max, Ordering::Relaxed);
            }

            /// Reads the counters.
            pub(crate) fn read(&self) -> ShardStats {
                let of_shard = ShardStats { $($name: self.$name.load(Ordering::Relaxed),)* };
                of_shard.and(self.http.read())
            }
        }

        impl ShardStats {
            /// Each counter with its name, in the order of the fields.
            pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }

            /// The sum of these counters and another shard's.
            fn and(self, other: Self) -> Self {
                Self {
                    lateness_us_max: self.lateness_us_max.max(other.lateness_us_max),
                    ..Self { $($name: self.$name + other.$name,)* }
                }
            }
        }
    };
}

counters! {
    /// Connections open now.
    connections,
    /// Sessions open now.
    sessions,
    /// Sessions whose clients have lost their connections and may come back. They count in
    /// `sessions` too.
    sessions_away,
    /// Sessions that were resumed.
    sessions_resumed,
    /// Sessions that ended with their connections, because `limits.sessions_away.total` or
    /// `limits.sessions_away.per_address` was reached.
    sessions_away_refused,
    /// Counted messages that clients which came back were told to have lost, because of
    /// `limits.session.resume_bytes`.
    messages_lost,
    /// Rooms that exist now.
    rooms,
    /// Devices registered now.
    devices,
    /// Devices that are silent now. They count in `devices` too.
    devices_silent,
    /// Devices whose ids were taken over by others.
    devices_taken_over,
    /// Reports of devices.
    reports,
    /// Commands sent to devices, requests among them.
    commands,
    /// Pushes of rooms to devices that were refused.
    pushes_refused,
    /// Requests to devices that were not answered in time.
    commands_unanswered,
    /// Of those, requests that devices had not been sent yet, or not received before they were
    /// lost, and that they never will.
    commands_withdrawn,
    /// Messages received from clients.
    messages_in,
    /// Messages from clients that were refused as too fast, by the connection's rate or the
    /// message's own. They count in `messages_in` too.
    messages_too_fast,
    /// Connections that were closed because a multiple of a rate was exceeded.
    closed_too_fast,
    /// Messages written to clients.
    messages_out,
    /// Bytes received from clients.
    bytes_in,
    /// Bytes written to clients.
    bytes_out,
    /// Ticks of rooms.
    ticks,
    /// Ticks that were skipped, because too many were overdue.
    ticks_skipped,
    /// Saves of rooms that the store had not completed after 10 s, whether it did later or not.
    saves_late,
    /// Syncs of rooms.
    syncs,
    /// Syncs that were due by the rooms' rates but were missed because the shard was late. Players
    /// get the changes with the next sync.
    syncs_missed,
    /// Patches written.
    patches,
    /// Patches that were skipped because the client had not read the one before; a later one covers
    /// them.
    conflated,
    /// Entries that players did not see because of the cap of a view by place (`nearest`), summed
    /// over players and syncs.
    left_out,
    /// Mail between rooms that could not be delivered.
    mail_dropped,
    /// Connections that were closed on arrival because `limits.connections.total` was reached.
    connections_refused,
    /// Connections that were closed on arrival because `limits.connections.per_address` was
    /// reached.
    connections_refused_by_address,
    /// Connections that were closed on arrival because `limits.handshakes.total` or
    /// `limits.handshakes.per_address` was reached.
    handshakes_refused,
    /// Hellos that were refused because of `limits.address.sessions`.
    sessions_refused_by_address,
    /// Hellos with a resume token that were refused because of `tuning.resumes`.
    resumes_refused,
    /// Hellos with a resume token that were refused because of `limits.address.resumes`.
    resumes_refused_by_address,
    /// Joins and hellos with a resume token that were sent to another node of the cluster.
    redirects,
    /// Joins that were refused because of `limits.session.rooms`.
    joins_refused,
    /// Requests to create a room that were refused because of `limits.session.rooms_created`.
    creations_refused,
    /// Joins by key or ticket that were refused because of `limits.session.keys_missed`.
    keys_refused,
    /// Requests of clients to create a room that were refused because of `limits.rooms`.
    rooms_refused,
    /// Joins, and requests of clients to create a room, that were refused because of
    /// `rooms.lateness`.
    joins_refused_late,
    /// Requests of clients to create a room that were refused because of `rooms.busy_percent`.
    rooms_refused_busy,
    /// Joins that were refused because of `limits.address.joins`.
    joins_refused_by_address,
    /// Requests that may create a room and came when `limits.address.rooms_created` was
    /// reached. Those that found a room to join were not refused.
    rooms_refused_by_address,
    /// Joins that were refused because of `limits.address.keys_missed`.
    keys_refused_by_address,
    /// Requests that may create a channel and came when
    /// `limits.address.channels_opened` or `limits.channels.per_address` was reached.
    channels_refused_by_address,
    /// Connections that were refused because their PROXY header could not be read.
    proxies_refused,
    /// HTTP requests and WebSocket handshakes of which a trusted proxy sent an `X-Forwarded-For`
    /// that could not be read.
    clients_unnamed,
    /// Connections that were closed because of `timeouts.hello`: no hello came, or the
    /// authenticator did not decide.
    hello_timeouts,
    /// Connections that were closed because of `tuning.hello_bytes`.
    hellos_too_large,
    /// Hellos that were refused because of `limits.queues.authentications`.
    authentications_refused,
    /// Connections that were closed because of `limits.session.outbox_bytes.max`.
    closed_too_slow,
    /// Connections that were closed because of `timeouts.message`.
    closed_unfinished,
    /// Connections that were closed because of `limits.memory.total` or
    /// `limits.memory.per_address`.
    closed_over_budget,
    /// TLS handshakes that were completed.
    tls_handshakes,
    /// TLS handshakes that resumed an earlier TLS session, which costs less.
    tls_resumed,
    /// TLS connections that ended because of an error, or before the handshake was complete.
    tls_failed,
    /// Connections that were refused because they came without TLS, though `tls.only` is set, or
    /// with TLS, though there is no certificate.
    tls_refused,
    /// WebSocket handshakes that were refused, because they came from pages of other origins than
    /// `websocket.allowed_origins`.
    origins_refused,
    /// HTTP requests received, without those that opened a WebSocket.
    http_requests,
    /// HTTP requests that were answered with 431, because of `http.head_bytes` or because they
    /// had too many headers.
    http_heads_too_large,
    /// HTTP requests that were answered with 503, because `http.requests.total` was reached or
    /// their handler took longer than `http.answer_timeout`.
    http_unavailable,
    /// HTTP requests that were answered with 429, because `http.requests.per_address` was
    /// reached.
    http_too_many,
    /// Channels that exist now, on their home shards.
    channels,
    /// Subscriptions to channels now.
    subscriptions,
    /// Publications that were accepted, on the home shards of their channels.
    publications,
    /// Publications that subscribers did not get, because they read too slowly, or because the
    /// mailbox of their shard was full. They see the gap. A subscription or a connection that ends
    /// by `Slow::Unsubscribe` or `Slow::Disconnect` counts one, however many waited for it.
    publications_dropped,
    /// Publications that channels have forgotten early because of `limits.history_bytes.total`.
    history_evicted,
    /// Publications that channels have forgotten early because of
    /// `limits.history_bytes.per_address`.
    history_evicted_by_address,
    /// Publications of rooms, services and the program that were refused, because they were too
    /// large or of the wrong kind, no rule matches the channel, or `limits.channels.total` was
    /// reached.
    publications_refused,
    /// Turns of the shards.
    turns,
    /// Time in which there was nothing to do, in nanoseconds.
    waits_ns,
    /// Time taken by reading from sockets, handling what came, and answers written at once, in
    /// nanoseconds.
    input_ns,
    /// Time taken by running rooms that are due, in nanoseconds: the next three, for the most part.
    rooms_ns,
    /// Time taken by ticks and timers of rooms, in nanoseconds.
    ticks_ns,
    /// Time taken by finding what has changed in rooms that sync, in nanoseconds.
    syncs_ns,
    /// Time taken by making patches and snapshots for players, in nanoseconds.
    patches_ns,
    /// Time taken by writing to sockets at the end of turns, in nanoseconds.
    writes_ns,
    /// Time taken by reading memory so that caches are cold, which only a node that is measured
    /// does, in nanoseconds.
    eviction_ns,
    /// The maximum delay of a tick or sync, in microseconds.
    lateness_us_max,
}

/// Counters of the HTTP connections that a shard has handed over.
#[derive(Default)]
pub(crate) struct HttpCounters {
    /// Open now.
    pub(crate) connections: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) heads_too_large: AtomicU64,
    pub(crate) unavailable: AtomicU64,
    pub(crate) too_many: AtomicU64,
    /// Requests with clients that a trusted proxy did not name.
    pub(crate) unnamed: AtomicU64,
}

impl HttpCounters {
    fn read(&self) -> ShardStats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ShardStats {
            connections: of(&self.connections),
            bytes_in: of(&self.bytes_in),
            bytes_out: of(&self.bytes_out),
            http_requests: of(&self.requests),
            http_heads_too_large: of(&self.heads_too_large),
            http_unavailable: of(&self.unavailable),
            http_too_many: of(&self.too_many),
            clients_unnamed: of(&self.unnamed),
            ..ShardStats::default()
        }
    }
}

/// Counters of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// No shard is stuck in a turn, none has failed, and the control thread, which serves
    /// HTTP, is not stuck in a handler or a background task.
    pub healthy: bool,
    /// The number of recordings that could not be begun, or not be written to their end, because the
    /// disk was full, too slow or failed.
    pub recordings_lost: u64,
    /// Each shard's counters.
    pub shards: Vec<ShardStats>,
}

impl Stats {
    /// The counters as the shards published them.
    pub(crate) fn read(
        published: &[Arc<Published>],
        control: &Pulse,
        recordings_lost: u64,
    ) -> Self {
        let mut pulses = published.iter().map(|published| &published.pulse).chain([control]);
        Self {
            healthy: pulses.all(Pulse::is_well),
            recordings_lost,
            shards: published.iter().map(|published| published.read()).collect(),
        }
    }

    /// The sum over all shards.
    #[must_use]
    pub fn total(&self) -> ShardStats {
        self.shards.iter().copied().fold(ShardStats::default(), ShardStats::and)
    }
}
