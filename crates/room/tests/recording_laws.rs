//! The law of recordings: a room that is recorded sends what it would have sent otherwise, and runs
//! again as it ran.

use std::time::Duration;

use playfield_room::recording::{Moment, RecorderSettings, Recording, RecordingError, Replay, Why};
use playfield_room::{AnyRoom, RoomType};
use proptest::prelude::*;

use crate::freezing_laws::{Input, Play, Shown, cases, inputs};
use crate::support::park::Park;
use crate::support::recorded::Recorded;

/// Plays, recorded or not. Returns what the room shows, its last hash, and its recording.
fn play(
    seed: u64,
    inputs: &[Input],
    records: Option<RecorderSettings>,
) -> (Shown, Option<u64>, Vec<u8>) {
    let mut play = Play::new(seed, false);
    let recorded = Recorded::default();
    if let Some(settings) = records {
        take_room(&mut play, |room| recorded.record(room, settings));
        let recorder = play.host.room.recorder().unwrap();
        assert!(recorder.begin_file(&Why::Request));
    }
    let mut shown = Shown::default();
    for input in inputs {
        play.take(input);
        play.note(&mut shown);
    }
    let hash = play.host.room.state_hash();
    drop(play);
    let file = recorded.files().pop().map(|(bytes, _)| bytes);
    (shown, hash, file.unwrap_or_default())
}

pub(crate) fn take_room(play: &mut Play, make: impl FnOnce(Box<dyn AnyRoom>) -> Box<dyn AnyRoom>) {
    let other = crate::support::Host::create_of(RoomType::of::<Park>("test"), 0, &[]).unwrap().room;
    let room = std::mem::replace(&mut play.host.room, other);
    play.host.room = make(room);
}

pub(crate) fn settings(inputs_per_hash: u32, keyframe_every: Duration) -> RecorderSettings {
    RecorderSettings { inputs_per_hash, keyframe_every, ..RecorderSettings::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn recording_shows_in_no_byte_and_runs_again(
        seed: u64,
        inputs in inputs(),
        inputs_per_hash in 1..20_u32,
        keyframe_ms in 0..2_000_u64,
    ) {
        let settings = settings(inputs_per_hash, Duration::from_millis(keyframe_ms));
        let ((shown, hash, file), (other, ..)) =
            (play(seed, &inputs, Some(settings)), play(seed, &inputs, None));
        prop_assert!(shown == other, "a recorded room sends something else");
        let recording = match Recording::read(&file) {
            // The room was not called.
            Err(RecordingError::Empty) => return Ok(()),
            recording => recording.unwrap(),
        };
        prop_assert_eq!(recording.fault(), None);
        let room_type = RoomType::of::<Park>("test");
        let mut replay = Replay::new(&recording, &room_type).unwrap();
        let summary = replay.verify().unwrap();
        if let Some(difference) = &summary.difference {
            prop_assert!(false, "{}", difference);
        }
        prop_assert!(!summary.is_other_type && summary.gaps.is_empty(), "{:?}", summary);
        prop_assert_eq!(replay.room().state_hash(), hash);
        // From any keyframe on, it is the same.
        let last = summary.position;
        for tick in 0..=last.tick {
            let mut replay = Replay::new(&recording, &room_type).unwrap();
            if replay.seek(Moment::Tick(tick)).is_ok() {
                let summary = replay.verify().unwrap();
                prop_assert_eq!((summary.difference, summary.position), (None, last));
            }
        }
    }
}
