//! The bodies in `conformance/vectors/state/`, for clients in other languages. This crate writes
//! exactly these, and every reader here applies them.
//!
//! `PLAYFIELD_WRITE_VECTORS=1 cargo test -p playfield-state vectors` regenerates them.

mod cases;
mod story;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use playfield_state::{DynamicMirror, JsonMirror, PlayerId};
use playfield_wire::TreeFormat;
use playfield_wire::schema::RoomSchema;
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/vectors/state")
}

#[test]
fn the_vectors_are_what_is_written() {
    let is_to_write = std::env::var_os("PLAYFIELD_WRITE_VECTORS").is_some();
    let mut names = BTreeSet::new();
    for (name, story) in cases::all() {
        let (file, text) = (format!("{name}.json"), format!("{story:#}\n"));
        let path = folder().join(&file);
        if is_to_write {
            fs::write(&path, &text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "{file} is not what is written now. If that is intended, regenerate the vectors: see the top of this test"
        );
        names.insert(file);
    }
    let there = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(there.filter(|name| name.ends_with(".json")).collect::<BTreeSet<_>>(), names);
}

/// Reads them as a client in another language would: from the files alone.
#[test]
fn a_reader_that_knows_only_the_files_follows_them() {
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let story: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let schema = RoomSchema::from_json(story["schema"].to_string().as_bytes()).unwrap();
            for viewer in story["viewers"].as_array().unwrap() {
                follow(&schema, viewer, path.file_name().unwrap().to_str().unwrap());
            }
        }
    }
}

fn follow(schema: &RoomSchema, story: &Value, name: &str) {
    let viewer = PlayerId(story["viewer"].as_u64().unwrap());
    let mut packed = DynamicMirror::new(&schema.state, viewer).unwrap();
    let mut trees = [JsonMirror::of(TreeFormat::Json), JsonMirror::of(TreeFormat::Msgpack)];
    for (place, step) in story["steps"].as_array().unwrap().iter().enumerate() {
        let place = format!("{name}, viewer {}, step {place}", viewer.0);
        let body = |format: &str| match &step[format] {
            Value::String(hex) => story_bytes(hex),
            tree => tree.to_string().into_bytes(),
        };
        let [json, msgpack] = &mut trees;
        if step["kind"] == "snapshot" {
            packed.snapshot(&body("packed")).expect(&place);
            json.snapshot(&body("json")).expect(&place);
            msgpack.snapshot(&body("msgpack")).expect(&place);
        } else if step["kind"] == "patch" {
            for refused in step["refused_cuts"].as_array().unwrap() {
                let cut = &body("packed")[..refused.as_u64().unwrap() as usize];
                assert!(packed.clone().patch(cut).is_err(), "{place}: {refused} bytes");
            }
            packed.patch(&body("packed")).expect(&place);
            json.patch(&body("json")).expect(&place);
            msgpack.patch(&body("msgpack")).expect(&place);
        } else {
            for refused in step["refused"].as_array().unwrap() {
                let bytes = story_bytes(refused["packed"].as_str().unwrap());
                assert!(packed.clone().patch(&bytes).is_err(), "{place}: {refused}");
            }
            continue;
        }
        assert_eq!(*packed.state(), step["state"], "{place}");
        assert_eq!(*json.state(), step["state"], "{place}");
        // Values that only MessagePack has, numbers past 2^53 and floats of 32 bits, are compared
        // where the vectors are written.
        assert_eq!(
            msgpack.state().as_object().map(|members| members.len()),
            step["state"].as_object().map(|members| members.len())
        );
        let digests = [
            format!("{:016x}", packed.digest()),
            format!("{:08x}", msgpack.digest()),
            format!("{:08x}", json.digest()),
        ];
        let of = |format: &str| step["digests"][format].as_str().unwrap().to_owned();
        assert_eq!(digests, [of("packed"), of("msgpack"), of("json")], "{place}");
    }
}

fn story_bytes(hex: &str) -> Vec<u8> {
    story::bytes(hex)
}
