//! Schemas as JSON: a parsed schema round-trips, and comparing it with others never panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use playfield_fuzz::older;
use playfield_state::{Transcoder, TranscoderError};
use playfield_wire::schema::RoomSchema;

fuzz_target!(|data: &[u8]| {
    let Ok(schema) = RoomSchema::from_json(data) else { return };
    let again =
        RoomSchema::from_json(schema.to_json().as_bytes()).expect("a written schema can be parsed");
    assert_eq!(again, schema);
    if let Err(TranscoderError::Incompatible(error)) = Transcoder::new(&schema, &schema) {
        panic!("a schema is compatible with itself: {error}");
    }
    let _ = (Transcoder::new(&schema, &older(&schema)), Transcoder::new(&older(&schema), &schema));
});
