//! The duel of `docs/guide.md`, as it is there after step 4. The client of `docs/cpp.md` plays it.

include!(concat!(env!("OUT_DIR"), "/duel.rs"));
