//! Saves of arbitrary bytes, with and without the right checksums. What is loaded is saved as the
//! same bytes again, and what is kept for another build goes on with it.
#![no_main]

// The states that the laws of `playfield-state` are tested with.
#[path = "../../crates/state/tests/common/mod.rs"]
mod common;

use common::world::Root;
use libfuzzer_sys::fuzz_target;
use playfield_fuzz::input::Input;
use playfield_state::{load, restore, save, save_kept};

/// The end of a header; see `docs/state.md`.
const HEADER_BYTES: usize = 44;
const BLOCK_BYTES: usize = 1 << 16;

fuzz_target!(|data: &[u8]| playfield_fuzz::of_one_state!(check, data));

fn check<T: Root>(mut input: Input<'_>) {
    let is_other_schema = input.byte() % 4 == 0;
    let is_kept = input.byte() % 2 == 0;
    let Some(bytes) = input.piece() else { return };
    let _ = load::<T>(bytes);
    let own = save(&T::default());
    let schema_bytes = u64::from_le_bytes(own[16..24].try_into().expect("8 bytes")) as usize;
    let mut sealed = own[..HEADER_BYTES].to_vec();
    if is_other_schema {
        // All of it is a description of types.
        sealed[16..24].copy_from_slice(&(bytes.len() as u64 / 2).to_le_bytes());
        sealed[24..32].copy_from_slice(&(bytes.len().div_ceil(2) as u64).to_le_bytes());
    } else {
        sealed.extend_from_slice(&own[HEADER_BYTES..HEADER_BYTES + schema_bytes]);
        sealed[24..32].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    }
    // In the second format something is kept.
    sealed[7] = 1 + u8::from(is_kept);
    let check = crc32fast::hash(&sealed[..40]);
    sealed[40..HEADER_BYTES].copy_from_slice(&check.to_le_bytes());
    sealed.extend_from_slice(bytes);
    let end = sealed.len();
    for start in (HEADER_BYTES..end).step_by(BLOCK_BYTES) {
        let check = crc32fast::hash(&sealed[start..end.min(start + BLOCK_BYTES)]);
        sealed.extend(check.to_le_bytes());
    }
    if let Ok(mut read) = restore::<T>(&sealed) {
        read.kept.bind(&read.state);
        let mut bytes = Vec::new();
        save_kept(&read.state, read.mark, &mut read.kept, &mut bytes);
        let again = restore::<T>(&bytes).expect("what was saved is restored");
        assert!(again.state.equals(&read.state) && again.dropped.is_empty());
    }
    if let Ok(state) = load::<T>(&sealed) {
        let again: T = load(&save(&state)).expect("what was saved is loaded");
        assert!(again.equals(&state));
    }
}
