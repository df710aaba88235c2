//! Borrows of several parts of a shard at once, beside others that are in use.

/// Borrows the outlet of a shard.
macro_rules! outlet {
    ($shard:ident) => {
        $crate::shard::session::outlet::Outlet {
            env: &mut $shard.env,
            links: &mut $shard.links,
            sessions: &mut $shard.sessions,
            outbound: &mut $shard.outbound,
        }
    };
}

/// Borrows the parts of a shard below its rooms.
macro_rules! below {
    ($shard:ident) => {
        $crate::shard::rooms::host::Below {
            env: &mut $shard.env,
            links: &mut $shard.links,
            sessions: &mut $shard.sessions,
            topics: &mut $shard.topics,
            outbound: &mut $shard.outbound,
        }
    };
}

/// Borrows what a room's output can reach: the parts below the rooms, and the queues of their host.
macro_rules! delivery {
    ($below:ident, $host:ident) => {
        $crate::shard::rooms::delivery::Delivery {
            env: &mut $below.env,
            links: &mut $below.links,
            sessions: &mut $below.sessions,
            topics: &mut $below.topics,
            outbound: &mut $below.outbound,
            queues: &mut $host.queues,
        }
    };
}
