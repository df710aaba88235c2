//! Shards, listeners, sessions and limits.
