//! Excerpts of recordings, and searches in them: any moment is shown as it was.

use std::collections::BTreeMap;
use std::time::Duration;

use playfield_room::recording::{
    Excerpt, ExcerptOf, Found, Glance, InputKind, Moment, RecordedKind, RecorderSettings,
    Recording, Search, Wanted, Why,
};
use playfield_room::{AnyRoom, PlayerId, RoomType};
use playfield_state::{Change, ChangeKind, Format, JsonMirror, PathStep, saved_as_json};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::freezing_laws::{Input, Play, cases, inputs};
use crate::recording::{MORE, Recordable, counters};
use crate::recording_laws::{settings, take_room};
use crate::support::park::Park;
use crate::support::recorded::Recorded;

fn of(inputs: u64) -> ExcerptOf {
    let moment = Moment::Inputs(inputs);
    ExcerptOf { moment, before: 0, viewer: None, frames: 5, every: Duration::ZERO, bytes: 1 << 20 }
}

/// Runs an excerpt, however long it takes.
fn run(recording: &Recording, room_type: &RoomType, of: &ExcerptOf) -> Excerpt {
    Excerpt::run(recording, room_type, of, &mut || true).unwrap()
}

fn state(room: &dyn AnyRoom) -> Value {
    let mut whole = Vec::new();
    match room.whole(&mut whole) {
        true => saved_as_json(&whole).unwrap(),
        false => Value::Null,
    }
}

fn view(room: &mut dyn AnyRoom, player: PlayerId) -> Value {
    if room.players(&mut |of| of.id() == player).is_empty() {
        return Value::Null;
    }
    let (mut body, mut mirror) = (Vec::new(), JsonMirror::new());
    room.snapshot(player, Format::Json, &mut body);
    match mirror.snapshot(&body) {
        Ok(()) => mirror.state().clone(),
        Err(_) => Value::Null,
    }
}

/// Makes of a value what the changes say.
fn apply(value: &mut Value, changes: &[Change]) {
    for Change { path, kind, new, .. } in changes {
        let Some((last, steps)) = path.steps().split_last() else {
            *value = new.clone().unwrap();
            continue;
        };
        let place = steps.iter().fold(&mut *value, |at, step| match step {
            PathStep::Name(name) => &mut at[&**name],
            PathStep::Index(index) => &mut at[*index],
        });
        let new = new.clone().unwrap_or_default();
        match (place, last, kind) {
            (Value::Object(of), PathStep::Name(name), ChangeKind::Left) => {
                of.remove(&**name).unwrap();
            }
            (Value::Object(of), PathStep::Name(name), _) => drop(of.insert((**name).into(), new)),
            (Value::Array(of), PathStep::Index(at), ChangeKind::Entered) => of.insert(*at, new),
            (Value::Array(of), PathStep::Index(at), ChangeKind::Left) => drop(of.remove(*at)),
            (Value::Array(of), PathStep::Index(at), _) => of[*at] = new,
            other => panic!("{other:?}"),
        }
    }
}

const VIEWERS: std::ops::Range<u64> = 1..6;

#[test]
fn a_recording_whose_first_call_is_a_tick_begins_before_it() {
    let mut play = Play::new(0, false);
    let recorded = Recorded::default();
    take_room(&mut play, |room| recorded.record(room, settings(1, Duration::ZERO)));
    play.host.room.recorder().unwrap().begin_file(&Why::Request);
    play.take(&Input::Tick);
    drop(play);
    let (file, _) = recorded.files().pop().unwrap();
    let begin = Recording::read(&file).unwrap().begin();
    assert_eq!((begin.inputs, begin.tick), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_moment_is_shown_as_it_was(
        seed: u64,
        inputs in inputs(),
        inputs_per_hash in 1..20_u32,
        keyframe_ms in 0..2_000_u64,
        picks in prop::collection::vec((any::<prop::sample::Index>(), VIEWERS, 0..9_u64), 1..6),
    ) {
        let mut play = Play::new(seed, false);
        let recorded = Recorded::default();
        let settings = settings(inputs_per_hash, Duration::from_millis(keyframe_ms));
        take_room(&mut play, |room| recorded.record(room, settings));
        play.host.room.recorder().unwrap().begin_file(&Why::Request);
        let mut live = BTreeMap::new();
        for input in &inputs {
            play.take(input);
            let room = &mut *play.host.room;
            let position = room.recorder().unwrap().position();
            if room.is_closed() && live.contains_key(&position.inputs) {
                continue;
            }
            let views: Vec<_> = VIEWERS.map(|player| view(room, PlayerId(player))).collect();
            live.insert(position.inputs, (position, state(room), views));
        }
        drop(play);
        let (file, _) = recorded.files().pop().unwrap();
        let Ok(recording) = Recording::read(&file) else { return Ok(()) };
        let glance = Glance::of(&file, &file).unwrap();
        let (first, last) = (recording.begin(), recording.last().unwrap());
        prop_assert_eq!(glance.length, Some(last.at - first.at));
        prop_assert_eq!(glance.end.as_ref(), recording.end());
        let room_type = RoomType::of::<Park>("test");
        for (pick, viewer, before) in picks {
            let moment = pick.get(&live.keys().copied().collect::<Vec<_>>()).to_owned();
            let of = ExcerptOf { before, viewer: Some(PlayerId(viewer)), ..of(moment) };
            let excerpt = run(&recording, &room_type, &of);
            prop_assert_eq!(&excerpt.difference, &None);
            prop_assert_eq!(excerpt.inputs, moment);
            let begin = excerpt.begin.unwrap();
            prop_assert_eq!(begin.position.inputs, moment.saturating_sub(before));
            let (mut state, mut view, mut at) = (begin.state, begin.view, begin.position);
            let mut frames = excerpt.frames.iter();
            loop {
                if let Some((position, live_state, views)) = live.get(&at.inputs) {
                    prop_assert_eq!((at.inputs, at.tick), (position.inputs, position.tick));
                    prop_assert_eq!(&state, live_state);
                    prop_assert_eq!(&view, &views[(viewer - VIEWERS.start) as usize]);
                }
                let Some(frame) = frames.next() else { break };
                prop_assert_eq!(frame.inputs.len(), 1);
                apply(&mut state, &frame.changes);
                apply(&mut view, &frame.view_changes);
                at = frame.position;
            }
        }
    }
}

/// A room in which Ann adds 1 to 5, a second each.
fn counted(keyframe_every: Duration) -> Vec<u8> {
    let mut room = Recordable::to_file(RecorderSettings {
        keyframe_every,
        inputs_per_hash: 10,
        ..RecorderSettings::default()
    });
    for number in 1..=5 {
        room.run(20);
        room.add(number);
    }
    room.run(20);
    room.end()
}

/// The join, and 20 ticks and syncs.
const FIRST_ADD: u64 = 1 + 40 + 1;

#[test]
fn an_excerpt_says_what_each_input_changed_and_what_was_sent() {
    let bytes = counted(Duration::from_secs(2));
    let recording = Recording::read(&bytes).unwrap();
    let of = ExcerptOf { before: 2, viewer: Some(PlayerId(1)), ..of(FIRST_ADD) };
    let excerpt = run(&recording, &counters(), &of);
    let begin = excerpt.begin.as_ref().unwrap();
    assert_eq!((begin.position.inputs, begin.position.tick), (FIRST_ADD - 2, 20));
    assert_eq!(begin.state, json!({ "count": 0, "ticks": 20 }));
    assert_eq!(begin.view, json!({ "count": 0 }));
    assert_eq!(begin.players[0].name(), "Ann");
    let kinds: Vec<_> = excerpt.frames.iter().map(|frame| frame.inputs[0].0.kind).collect();
    use InputKind::{Message, Sync, Tick};
    assert_eq!(kinds, [Sync, Message, Tick, Sync, Tick, Sync, Tick]);
    let add = &excerpt.frames[1];
    assert_eq!(add.changes[0].path.to_string(), "count");
    assert_eq!((&add.changes[0].old, &add.changes[0].new), (&Some(json!(0)), &Some(json!(1))));
    assert!(add.view_changes.is_empty(), "the player sees it after the sync");
    let (input, number) = &add.inputs[0];
    assert_eq!((input.player, *number), (Some(PlayerId(1)), Some(add.messages[0].number)));
    assert!(matches!(add.messages[1].kind, RecordedKind::Reply(_)), "{:?}", add.messages);
    assert_eq!(excerpt.frames[3].view_changes[0].new, Some(json!(1)));
    assert!(excerpt.is_verified && !excerpt.is_over && excerpt.difference.is_none());
}

#[test]
fn frames_of_a_time_have_many_inputs() {
    let bytes = counted(Duration::from_secs(2));
    let recording = Recording::read(&bytes).unwrap();
    let second = Duration::from_secs(1);
    let of = ExcerptOf { every: second, frames: 100, ..of(1) };
    let excerpt = run(&recording, &counters(), &of);
    let last = recording.last().unwrap();
    assert_eq!(excerpt.frames.len(), 6);
    assert_eq!((excerpt.frames[5].position, excerpt.is_over), (last, true));
    let counts: Vec<_> = excerpt.frames.iter().map(|frame| frame.changes[0].new.clone()).collect();
    assert_eq!(counts[..2], [Some(json!(20)), Some(json!(1))]);
    let moment = |moment| {
        run(&recording, &counters(), &ExcerptOf { moment, frames: 0, ..of }).begin.unwrap().position
    };
    assert_eq!(moment(Moment::Tick(20)).inputs, FIRST_ADD - 2);
    assert_eq!(moment(Moment::At(second)).inputs, FIRST_ADD);
    assert_eq!(moment(Moment::At(Duration::ZERO)).inputs, 1);
    assert_eq!(moment(Moment::At(last.at * 2)), last);
    let of = |moment| ExcerptOf { moment, ..of };
    for (moment, why) in [
        (Moment::Tick(121), "the recording ends at tick 120, before tick 121"),
        (Moment::Inputs(999), "the recording has the inputs 0 to 246, not 999"),
    ] {
        let error = Excerpt::run(&recording, &counters(), &of(moment), &mut || true).unwrap_err();
        assert_eq!(error.to_string(), why);
    }
    // Without time it has what leads to the moment.
    let before = ExcerptOf { before: 3, frames: 9, every: Duration::ZERO, ..of(Moment::Tick(50)) };
    let excerpt = Excerpt::run(&recording, &counters(), &before, &mut || false).unwrap();
    assert_eq!(excerpt.frames.len(), 3);
    let few = ExcerptOf { bytes: 0, ..before };
    let excerpt = run(&recording, &counters(), &few);
    assert_eq!(excerpt.frames.len(), 1, "the input that leads to the moment");
    assert_eq!(excerpt.frames[0].position.inputs, excerpt.inputs);
}

#[test]
fn what_leads_to_a_moment_is_not_larger_than_it_may_be() {
    let bytes = counted(Duration::from_secs(2));
    let recording = Recording::read(&bytes).unwrap();
    let last = recording.last().unwrap().inputs;
    let whole = ExcerptOf { before: 200, frames: 0, viewer: Some(PlayerId(1)), ..of(last) };
    let few = ExcerptOf { bytes: 1_000, ..whole };
    let (whole, few) = (run(&recording, &counters(), &whole), run(&recording, &counters(), &few));
    assert_eq!(whole.frames.len(), 200);
    // A frame counts as at least 100 bytes.
    assert!((1..=10).contains(&few.frames.len()), "{} frames", few.frames.len());
    let begin = few.begin.as_ref().unwrap();
    let first = whole.frames.len() - few.frames.len();
    assert_eq!(begin.position, whole.frames[first - 1].position);
    let (mut state, mut view) =
        (whole.begin.as_ref().unwrap().state.clone(), whole.begin.as_ref().unwrap().view.clone());
    for frame in &whole.frames[..first] {
        apply(&mut state, &frame.changes);
        apply(&mut view, &frame.view_changes);
    }
    assert_eq!((&begin.state, &begin.view), (&state, &view));
    assert_eq!(begin.players.len(), 1);
    for (frame, same) in few.frames.iter().zip(&whole.frames[first..]) {
        assert_eq!((frame.position, &frame.changes), (same.position, &same.changes));
    }
}

#[test]
fn a_state_is_marked_unless_it_was_so() {
    let bytes = counted(Duration::from_secs(2));
    let recording = Recording::read(&bytes).unwrap();
    MORE.set(1);
    let shown = |inputs| run(&recording, &counters(), &ExcerptOf { frames: 100, ..of(inputs) });
    let search = |from| {
        let search = Search { from, is_back: false, wanted: Wanted::Difference };
        search.run(&recording, &counters(), &mut || true).unwrap()
    };
    let (before, behind) = (shown(FIRST_ADD - 5), shown(FIRST_ADD));
    let keyframe = recording.keyframe_positions()[1].inputs;
    let (there, found) = (shown(keyframe), search(0));
    MORE.set(0);
    let difference = before.difference.clone().unwrap();
    let same_until = difference.same_until.inputs;
    assert!((FIRST_ADD - 10..FIRST_ADD).contains(&same_until), "{same_until}");
    // The inputs are shown up to the next keyframe, and marked.
    for shown in [&before, &behind] {
        assert_eq!(shown.frames.last().map(|last| last.position.inputs), Some(keyframe));
        for frame in &shown.frames {
            assert_eq!(frame.differs, frame.position.inputs > same_until, "{frame:?}");
        }
    }
    let add = before.frames.iter().find(|frame| frame.position.inputs == FIRST_ADD).unwrap();
    assert_eq!(add.inputs[0].0.kind, InputKind::Message);
    assert!(behind.begin.unwrap().differs && behind.difference.is_some() && !behind.is_over);
    // A keyframe is as it was recorded.
    let begin = there.begin.unwrap();
    assert_eq!((begin.state["count"].clone(), begin.differs), (json!(1), false));
    let Found::Differs(found) = found else { panic!("{found:?}") };
    assert_eq!(found, difference);
    assert_eq!(search(0), Found::Nothing);
}

#[test]
fn a_search_finds_what_happens_next_and_what_happened_before() {
    let bytes = counted(Duration::from_secs(2));
    let recording = Recording::read(&bytes).unwrap();
    let search = |from, is_back, wanted: &Wanted| {
        let search = Search { from, is_back, wanted: wanted.clone() };
        let (mut found, mut looks) = (search.run(&recording, &counters(), &mut || false), 1);
        // In as many pieces as it likes.
        while let Ok(Found::Until(from)) = found {
            let search = Search { from, ..search.clone() };
            (found, looks) = (search.run(&recording, &counters(), &mut || false), looks + 1);
        }
        let whole = search.run(&recording, &counters(), &mut || true).unwrap();
        assert_eq!(found.unwrap(), whole, "in {looks} pieces");
        match whole {
            Found::At(position) => Some(position.inputs),
            Found::Nothing => None,
            other => panic!("{other:?}"),
        }
    };
    let add = |number: u64| FIRST_ADD + (number - 1) * 41;
    let input = Wanted::Input(None);
    assert_eq!(search(1, false, &input), Some(add(1)));
    assert_eq!(search(add(1), false, &input), Some(add(2)));
    assert_eq!(search(add(5), false, &input), None);
    assert_eq!(search(add(5), true, &input), Some(add(4)));
    assert_eq!(search(add(2) - 1, true, &input), Some(add(1)));
    assert_eq!(search(add(1), true, &input), Some(1), "the join");
    assert_eq!(search(1, true, &input), None);
    assert_eq!(search(add(1), false, &Wanted::Input(Some(PlayerId(2)))), None);
    let change = |pointer: &str, viewer| Wanted::Change { pointer: pointer.into(), viewer };
    assert_eq!(search(1, false, &change("/count", None)), Some(add(1)));
    assert_eq!(search(add(3), true, &change("/count", None)), Some(add(2)));
    let seen = change("/count", Some(PlayerId(1)));
    assert_eq!(search(1, false, &seen), Some(add(1) + 2), "after the tick and the sync");
    assert_eq!(search(1, false, &change("/nothing", None)), None);
    for wanted in [Wanted::Error, Wanted::InternalError, Wanted::Difference] {
        assert_eq!(search(1, false, &wanted), None);
    }
}

#[test]
fn errors_and_failures_are_found() {
    let record = |number| {
        let mut room = Recordable::to_file(RecorderSettings::default());
        room.run(5);
        room.add(number);
        match room.host.room.is_closed() {
            true => room.recorded.files().pop().unwrap().0,
            false => room.end(),
        }
    };
    for number in [13, 14] {
        let recording = record(number);
        let recording = Recording::read(&recording).unwrap();
        for wanted in [Wanted::Error, Wanted::InternalError] {
            let search = Search { from: 0, is_back: false, wanted };
            let Ok(Found::At(at)) = search.run(&recording, &counters(), &mut || true) else {
                panic!("{number}")
            };
            assert_eq!(at.inputs, 12);
            let back = Search { from: at.inputs + 1, is_back: true, ..search };
            if number == 14 {
                assert_eq!(back.run(&recording, &counters(), &mut || true), Ok(Found::At(at)));
            }
            let excerpt = run(&recording, &counters(), &ExcerptOf { before: 1, ..of(12) });
            assert!(excerpt.frames[0].has_error, "{number}");
        }
    }
}

#[test]
fn a_gap_is_a_frame_of_its_own() {
    let mut room = Recordable::to_file(RecorderSettings::default());
    room.run(3);
    let mut form = playfield_room::frozen::FrozenWriter::new();
    room.host.room.freeze(room.host.at, &mut form, &mut room.host.out).unwrap();
    room.host.room.moved(room.host.at, &mut room.host.out);
    room.run(3);
    let bytes = room.end();
    let recording = Recording::read(&bytes).unwrap();
    let [(position, "the room was frozen")] = recording.gaps()[..] else { panic!() };
    let excerpt = run(&recording, &counters(), &ExcerptOf { frames: 100, ..of(1) });
    let gaps: Vec<_> = excerpt.frames.iter().filter(|frame| frame.gap.is_some()).collect();
    let [gap] = gaps[..] else { panic!("{gaps:?}") };
    assert_eq!((gap.position, gap.inputs.len()), (position, 0));
    assert_eq!(excerpt.frames.last().unwrap().position, recording.last().unwrap());
    assert!(excerpt.is_over && excerpt.is_verified);
}

#[test]
fn a_moment_behind_damage_is_shown_and_one_in_it_is_refused() {
    let bytes = counted(Duration::from_secs(1));
    let whole = Recording::read(&bytes).unwrap();
    let keyframes = whole.keyframe_positions();
    let (lost, found) = (keyframes[2], keyframes[3]);
    // Flips a bit of a block of inputs: each one in turn, until what is lost is what follows a
    // keyframe.
    let damaged = (0..bytes.len()).find_map(|at| {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        let recording = Recording::read(&flipped).ok()?;
        let [(position, _)] = recording.gaps()[..] else { return None };
        let is_it = position == found && recording.keyframe_positions() == keyframes;
        is_it.then_some(recording)
    });
    let damaged = damaged.unwrap();
    let excerpt = |inputs| Excerpt::run(&damaged, &counters(), &of(inputs), &mut || true);
    let error = excerpt(lost.inputs + 1).unwrap_err().to_string();
    let why = format!("the inputs around input {} are missing: block", lost.inputs + 1);
    assert!(error.starts_with(&why), "{error}");
    let tick = ExcerptOf { moment: Moment::Tick(lost.tick + 1), ..of(0) };
    let error = Excerpt::run(&damaged, &counters(), &tick, &mut || true).unwrap_err();
    assert!(error.to_string().contains("are missing"), "{error}");
    let begin = |inputs| excerpt(inputs).unwrap().begin.unwrap();
    assert_eq!(begin(lost.inputs).position, lost);
    assert_eq!(begin(found.inputs).position, found);
    let last = whole.last().unwrap();
    assert_eq!(damaged.last().unwrap(), last);
    assert_eq!(
        begin(last.inputs).state,
        run(&whole, &counters(), &of(last.inputs)).begin.unwrap().state
    );
    // A way over the damage has a gap.
    let over = ExcerptOf { before: 3, ..of(found.inputs + 1) };
    let error = Excerpt::run(&damaged, &counters(), &over, &mut || true);
    assert!(error.is_err() || error.unwrap().frames.iter().any(|frame| frame.gap.is_some()));
}
