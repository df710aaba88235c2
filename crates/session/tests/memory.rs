//! The memory of a session that is never acknowledged, by the allocator's own count.

use std::alloc::System;

use playfield_session::{Log, Passage};
use playfield_wire::RoomNumber;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The default of `limits.session.resume_bytes`.
const BYTES_MAX: usize = 256 << 10;

fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// One test without the usual harness, which allocates in threads of its own: the counts are those
/// of the whole process.
fn main() {
    a_log_that_is_never_acknowledged_takes_a_tenth_more_than_it_may_keep();
}

fn a_log_that_is_never_acknowledged_takes_a_tenth_more_than_it_may_keep() {
    let most = BYTES_MAX + BYTES_MAX / 10;
    // Of different lengths: of few bytes, of many, of more than a chunk, and one that is too long.
    for lengths in [&[9][..], &[100], &[700, 3], &[5_000, 20], &[60_000, 1], &[9, 180_000, 100]] {
        for rooms in [1, 3] {
            let before = allocated();
            let mut log = Log::default();
            let mut pushed = 0;
            for count in 0.. {
                let body = vec![7; lengths[count % lengths.len()]];
                let room = Some(RoomNumber(1 + count as u32 % rooms));
                log.push(room, BYTES_MAX, Passage::Sent, |out| {
                    body.chunks(1000).for_each(|part| out.extend_from_slice(part));
                });
                pushed += body.len();
                drop(body);
                let taken = allocated() - before;
                assert!(taken <= most, "{taken} bytes, of lengths {lengths:?} in {rooms} rooms");
                assert!(log.memory() <= most, "{} bytes by its own count", log.memory());
                assert_eq!(log.memory(), taken, "its own count");
                if pushed > 10 * BYTES_MAX {
                    break;
                }
            }
            let kept: usize = log.unacknowledged().map(|(_, body)| body.len() + 8).sum();
            assert!(kept <= BYTES_MAX && kept == log.bytes(), "{kept} bytes are kept");
            assert!(kept > BYTES_MAX / 4, "{kept} bytes are kept");
            log.acknowledge(log.sent()).unwrap();
            assert_eq!(allocated(), before, "all is acknowledged");
        }
    }
}
