//! The tool without rooms of its own: for its benchmarks.

use std::alloc::System;
use std::process::ExitCode;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts, for `bench packet` and `bench websocket` to say how often an operation allocates, and
/// what a connection keeps.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    playfield_cli::count_allocations_by(|| {
        let stats = ALLOCATOR.stats();
        playfield_cli::Allocations {
            count: (stats.allocations + stats.reallocations) as u64,
            live_bytes: (stats.bytes_allocated - stats.bytes_deallocated) as u64,
        }
    });
    playfield::Server::new().run()
}
