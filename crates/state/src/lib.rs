//! Plain state, compared at sync: tracked collections, diffs, patches, snapshots.
