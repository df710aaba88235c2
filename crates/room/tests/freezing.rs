//! Freezing a room, and what becomes of work in flight, of other builds and of damaged bytes.

use std::sync::Arc;
use std::time::Duration;

use playfield_room::frozen::{FROZEN_BYTES_MAX, FreezeError, Frozen, FrozenWriter, ThawError};
use playfield_room::sim::Sim;
use playfield_room::{
    Claims, Context, EndReason, Entrant, Error, Handle, Link, MemoryStore, Message, On, Player,
    Result, Room, RoomType, Store, Thaw, room,
};
use playfield_state::{Data, Format, List, LoadError, Map, State};
use playfield_wire::{ErrorCode, RequestNumber};
use proptest::prelude::*;

use crate::support::park::{Act, Park, Quick};
use crate::support::{Host, Output, Record};

/// A room whose joins, requests and saves wait for work.
#[derive(State, Default)]
struct Office {
    log: List<String>,
}

#[derive(Message)]
#[reply(String)]
enum Do {
    Work,
    Reply,
    Save,
    Defer,
}

#[derive(Message)]
struct Checked;

#[derive(Message)]
struct Worked;

#[derive(Message)]
struct Saved(bool);

#[room(messages(Do), internal(Checked, Worked, Saved), persist = 1)]
impl Room for Office {
    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        if player.name() == "slow" { cx.hold(async { Checked }) } else { Ok(()) }
    }

    fn moved(&mut self, cx: &mut Context<Self>) {
        self.log.push(format!("moved, {} given up", cx.given_up::<Worked>()));
    }
}

impl Handle<Do> for Office {
    fn handle(&mut self, what: Do, _: &Player, cx: &mut Context<Self>) -> Result<String> {
        match what {
            Do::Work => cx.spawn(async { Worked }).map(|()| String::new()),
            Do::Reply => cx.reply_later::<Do>(async { Ok("done".into()) }),
            Do::Save => cx.try_save(|outcome| Saved(outcome.is_ok())).map(|()| String::new()),
            Do::Defer => {
                cx.defer::<Do>();
                Err(Error::deferred())
            }
        }
    }
}

impl On<Checked> for Office {
    fn on(&mut self, _: Checked, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

impl On<Worked> for Office {
    fn on(&mut self, _: Worked, _: &mut Context<Self>) -> Result<()> {
        self.log.push("worked".into());
        Ok(())
    }
}

impl On<Saved> for Office {
    fn on(&mut self, Saved(is_saved): Saved, _: &mut Context<Self>) -> Result<()> {
        self.log.push(format!("saved: {is_saved}"));
        Ok(())
    }
}

fn office() -> Sim<Office> {
    let mut sim = Sim::with_store(1, &(), "42", MemoryStore::new());
    sim.run_background();
    sim
}

fn moves() -> Error {
    Error::new(ErrorCode::Busy, "the room moves; ask again")
}

#[test]
fn a_room_with_work_in_flight_says_which_and_is_frozen_after_it() {
    let mut sim = office();
    let ann = sim.join("Ann").unwrap();
    sim.request(ann, Do::Work).unwrap();
    sim.request(ann, Do::Save).unwrap();
    let asked = sim.request_begin(ann, Do::Reply);
    let bob = sim.join_begin("slow").unwrap();
    let Err(FreezeError::Busy(work)) = sim.freeze() else { panic!("work is in flight") };
    assert_eq!((work.is_opening, work.joins, work.is_saving), (false, 1, true));
    assert_eq!(work.tasks, ["Worked", "Do"]);
    let text = "work is in flight: 1 players wait to join; background tasks that end with Worked, \
                Do; a save";
    assert_eq!(FreezeError::Busy(work).to_string(), text);
    while sim.run_background() > 0 {}
    let frozen = sim.freeze().unwrap();
    sim.thaw(&frozen).unwrap();
    assert_eq!(sim.reply(&asked), Some(Ok("done".into())));
    assert!(sim.is_here(bob));
    let log: Vec<&str> = sim.room().log.iter().map(|line| &**line).collect();
    assert_eq!(log, ["worked", "saved: true", "moved, 0 given up"]);
}

#[test]
fn work_that_is_given_up_is_refused_and_the_room_learns_of_the_rest() {
    let mut sim = office();
    let ann = sim.join("Ann").unwrap();
    sim.request(ann, Do::Work).unwrap();
    sim.request(ann, Do::Work).unwrap();
    sim.request(ann, Do::Save).unwrap();
    let asked = sim.request_begin(ann, Do::Reply);
    let owed = sim.request_begin(ann, Do::Defer);
    let bob = sim.join_begin("slow").unwrap();
    let frozen = sim.freeze_after(&moves()).unwrap();
    sim.thaw(&frozen).unwrap();
    assert_eq!(sim.reply(&asked), Some(Err(moves())));
    assert_eq!(sim.reply(&owed), None, "a reply that the room itself owes goes with it");
    assert_eq!(sim.why_gone(bob), Some(&moves()));
    let log: Vec<&str> = sim.room().log.iter().map(|line| &**line).collect();
    assert_eq!(log, ["saved: false", "moved, 2 given up"]);
    sim.advance(Duration::from_secs(30));
    assert_eq!(sim.reply(&owed).unwrap().unwrap_err().code(), ErrorCode::Timeout);
    assert_eq!(sim.run_background(), 1, "what may not be on disk is saved again");
}

#[test]
fn a_room_that_goes_on_where_it_was_ignores_what_it_gave_up() {
    let host = Host::create::<Park>(1, &[]).map(|mut host| {
        let ann = host.join("Ann").unwrap();
        host.act(ann, &Act::Work(7), None);
        host
    });
    let mut host = host.unwrap();
    let mut form = FrozenWriter::new();
    host.room.freeze_after(host.at, &moves(), &mut form, &mut host.out).unwrap();
    host.out.take();
    for (task, job) in std::mem::take(&mut host.out.jobs) {
        host.mail(playfield_room::Mail::Done { task, message: job() });
    }
    assert!(host.out.take().is_empty());
    assert!(!host.room.is_closed());
}

#[test]
fn a_room_that_ends_or_is_not_open_is_not_frozen() {
    let mut sim = office();
    sim.close(EndReason::Drained);
    assert_eq!(sim.freeze(), Err(FreezeError::Ended));
    let mut sim = Sim::<Office>::with_store(1, &(), "42", MemoryStore::new());
    let Err(FreezeError::Busy(work)) = sim.freeze() else { panic!("its save is being loaded") };
    assert!(work.is_opening);
    let ann = sim.join_begin("Ann").unwrap();
    assert_eq!(sim.freeze_after(&moves()), Err(FreezeError::Ended));
    assert_eq!((sim.why_gone(ann), sim.is_closed()), (Some(&moves()), true));
}

#[test]
fn a_player_who_is_behind_gets_a_snapshot_and_all_others_go_on() {
    let mut sim = office();
    let (ann, bob) = (sim.join("Ann").unwrap(), sim.join("Bob").unwrap());
    sim.stall(bob);
    sim.room_mut().log.push("one".into());
    let frozen = sim.freeze().unwrap();
    sim.thaw(&frozen).unwrap();
    sim.room_mut().log.push("two".into());
    sim.resume(bob);
    sim.sync();
    assert_eq!((sim.copy(ann).log.len(), sim.copy(bob).log.len()), (3, 3));
}

/// The same room in other builds.
mod build {
    use super::*;

    macro_rules! build {
        ($name:ident, $times:ty, { $($field:tt)* }) => {
            pub(super) mod $name {
                use super::*;

                #[derive(State, Default)]
                pub(crate) struct Town {
                    houses: Map<u32, u8>,
                    $($field)*
                }

                #[derive(Message)]
                pub(crate) struct Bell {
                    times: $times,
                }

                #[room(internal(Bell))]
                impl Room for Town {
                    fn create(_: (), cx: &mut Context<Self>) -> Result<Self> {
                        cx.every(Duration::from_secs(10), Bell { times: 1 });
                        Ok(Self::default())
                    }
                }

                impl On<Bell> for Town {
                    fn on(&mut self, _: Bell, _: &mut Context<Self>) -> Result<()> {
                        self.houses.insert(9, 9);
                        Ok(())
                    }
                }
            }
        };
    }

    build!(one, u8, {});
    build!(more, u8, { mayor: String, });
    build!(hides, u8, { #[sync(hidden)] mayor: String, });
    build!(number, u8, { mayor: u32, });
    build!(louder, u16, {});

    pub(super) mod quiet {
        use super::*;

        #[derive(State, Default)]
        pub(crate) struct Town {
            houses: Map<u32, u8>,
        }

        #[room()]
        impl Room for Town {}
    }
}

/// A host with one player, and a timer.
fn town<R: Room + State>() -> (Host, Vec<u8>) {
    let mut host = Host::create::<R>(1, &[]).unwrap();
    host.join("Ann").unwrap();
    host.sync();
    let mut form = FrozenWriter::new();
    host.room.freeze(host.at, &mut form, &mut host.out).unwrap();
    let frozen = form.finish().unwrap();
    (host, frozen)
}

fn thaw<R: Room>(frozen: &[u8]) -> Result<Box<dyn playfield_room::AnyRoom>, ThawError> {
    let frozen = Frozen::read(frozen)?;
    let thaw = Thaw { frozen: &frozen, store: None, link: &mut |player| Link(player.0) };
    (RoomType::of::<R>("test").thaw)(thaw)
}

#[test]
fn a_build_with_more_fields_goes_on_and_every_copy_gets_a_snapshot() {
    let (host, frozen) = town::<build::one::Town>();
    let version = host.room.version();
    let room = thaw::<build::one::Town>(&frozen).unwrap();
    assert!(room.version() == version && room.reaches(version));
    for room in [thaw::<build::more::Town>(&frozen), thaw::<build::hides::Town>(&frozen)] {
        let mut room = room.unwrap();
        assert!(room.version() == version + 1 && !room.reaches(version));
        let mut body = Vec::new();
        room.snapshot(playfield_room::PlayerId(1), Format::Json, &mut body);
        assert!(!body.is_empty());
    }
    // The save is the same, but players see another field.
    let (_, frozen) = town::<build::more::Town>();
    let room = thaw::<build::hides::Town>(&frozen).unwrap();
    assert!(!room.reaches(room.version() - 1));
    // Parts that this build lacks are kept.
    assert!(thaw::<build::one::Town>(&frozen).is_ok());
}

#[test]
fn a_build_that_can_not_read_a_field_names_it() {
    let (_, frozen) = town::<build::more::Town>();
    let Err(error) = thaw::<build::number::Town>(&frozen) else { panic!("a text is no number") };
    let ThawError::State(LoadError::Incompatible { place, .. }) = &error else { panic!("{error}") };
    assert_eq!(place, "mayor");
    let Err(error) = thaw::<Office>(&frozen) else { panic!("it is another type") };
    assert!(matches!(&error, ThawError::State(LoadError::OtherType { .. })), "{error}");
}

#[test]
fn a_build_in_which_a_waiting_message_is_another_names_its_field() {
    let (_, frozen) = town::<build::one::Town>();
    let Err(error) = thaw::<build::louder::Town>(&frozen) else { panic!("u8 is not u16") };
    let ThawError::Message { name, place, .. } = &error else { panic!("{error}") };
    assert_eq!((name.as_str(), place.as_str()), ("Bell", "times"));
    let Err(error) = thaw::<build::quiet::Town>(&frozen) else { panic!("it lacks the message") };
    assert_eq!(
        error.to_string(),
        "the message `Bell`, which waits in the room: this build lacks it: declare it in \
         `#[room(internal(…))]`"
    );
}

/// A room with something in every part.
fn full() -> Vec<u8> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let kept = Some(("key", store));
    let mut host = Host::create_kept(RoomType::of::<Park>("test"), 7, &[], kept).unwrap();
    host.wake_after(0);
    host.finish_work();
    let player = |name: &str| Entrant {
        link: Link(0),
        format: Format::Packed,
        name: name.into(),
        user: Some(format!("user {name}")),
        claims: Claims::from_json(r#"{"team":"red"}"#).unwrap(),
        seat: Some("north".into()),
        reservation: None,
    };
    let players = ["Ann", "Bob", "Cleo"].map(|name| host.enter(player(name)).unwrap());
    let acts = [
        Act::Beast(1, 2, 3),
        Act::Beast(2, 4, 4),
        Act::Gone(1),
        Act::Note(1, 2),
        Act::Ride(1, 2, 3),
        Act::Bag(1, 1),
        Act::After(200, 4),
        Act::Every(100),
        Act::Keep(200),
        Act::Ask(1),
        Act::Name(4),
    ];
    for act in acts {
        host.act(players[0], &act, None);
    }
    host.act(players[0], &Act::Defer, Some(1));
    for _ in 0..3 {
        let mut payload = Vec::new();
        Quick(1).encode(&mut payload);
        host.message(players[0], 1, &payload, None);
    }
    let (at, who) = (Duration::from_millis(80), players[0]);
    host.room.measured(host.at, who, at, &mut host.out);
    host.lost(players[1]);
    host.returned(players[1]);
    let mut form = FrozenWriter::new();
    host.room.freeze(host.at, &mut form, &mut host.out).unwrap();
    form.host_part(70, |out| out.extend_from_slice(b"of the host"));
    form.finish().unwrap()
}

#[test]
fn a_host_has_parts_of_its_own() {
    let frozen = full();
    let frozen = Frozen::read(&frozen).unwrap();
    assert_eq!(frozen.host_part(70), Some(&b"of the host"[..]));
    assert_eq!((frozen.host_part(71), frozen.host_part(1)), (None, None));
    assert_eq!((frozen.room_id(), frozen.room_type(), frozen.key()), ("room", "test", Some("key")));
    assert_eq!(frozen.settings().unwrap(), RoomType::of::<Park>("test").settings);
}

#[test]
fn parts_of_later_builds_are_passed_over() {
    let mut frozen = full();
    let part = [&[200, 3, 0, 0, 0][..], b"new"].concat();
    frozen.extend(&part);
    frozen.extend(crc32fast::hash(&part).to_le_bytes());
    let bytes = frozen.len() as u64;
    frozen[8..16].copy_from_slice(&bytes.to_le_bytes());
    let check = crc32fast::hash(&frozen[..16]);
    frozen[16..20].copy_from_slice(&check.to_le_bytes());
    assert!(thaw::<Park>(&frozen).is_ok());
}

#[test]
fn bytes_that_are_cut_short_or_flipped_are_refused_wherever_that_is() {
    let frozen = full();
    assert!(thaw::<Park>(&frozen).is_ok());
    for length in 0..frozen.len() {
        let Err(error) = thaw::<Park>(&frozen[..length]) else { panic!("{length} bytes") };
        let is_told = match error {
            ThawError::NotFrozen => length < 1,
            ThawError::Truncated { bytes, .. } => bytes == length,
            _ => false,
        };
        assert!(is_told, "{length} bytes: {error}");
    }
    for bit in 0..8 * frozen.len() {
        let mut wrong = frozen.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        let Err(error) = thaw::<Park>(&wrong) else { panic!("bit {bit}") };
        if let ThawError::Damaged { at, .. } = error {
            assert!(at <= bit / 8, "bit {bit}: {error}");
        }
    }
    let longer = [&frozen[..], &[0]].concat();
    assert!(matches!(thaw::<Park>(&longer), Err(ThawError::TooLong { .. })));
    assert!(matches!(thaw::<Park>(b"{}"), Err(ThawError::NotFrozen)));
    let mut huge = vec![0; FROZEN_BYTES_MAX + 1];
    huge[..frozen.len()].copy_from_slice(&frozen);
    assert!(matches!(thaw::<Park>(&huge), Err(ThawError::TooLarge { .. })));
}

#[test]
fn a_part_that_is_missing_is_named() {
    let (frozen, form) = (full(), FrozenWriter::new().finish().unwrap());
    let error = Frozen::read(&form).unwrap_err();
    assert_eq!(error.to_string(), "the frozen room lacks the part `about`");
    let mut missing = 0;
    for (number, _) in parts(&frozen) {
        let rest: Vec<_> = parts(&frozen).into_iter().filter(|(of, _)| *of != number).collect();
        match thaw::<Park>(&written(&rest)) {
            Err(ThawError::Missing { .. }) => missing += 1,
            Ok(_) => assert!(number == 12 || number >= 64, "part {number}"),
            Err(error) => panic!("part {number}: {error}"),
        }
    }
    assert_eq!(missing, 13, "all but what concerns saves");
}

/// The parts of a frozen room.
fn parts(frozen: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut parts = Vec::new();
    let mut rest = &frozen[20..];
    while let [number, a, b, c, d, more @ ..] = rest {
        let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        parts.push((*number, more[..length].to_vec()));
        rest = &more[length + 4..];
    }
    parts
}

/// A frozen room of these parts, with right checksums.
fn written(parts: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut out = FrozenWriter::new().finish().unwrap();
    for (number, content) in parts {
        let length = (content.len() as u32).to_le_bytes();
        let part = [&[*number], &length[..], content].concat();
        out.extend(&part);
        out.extend(crc32fast::hash(&part).to_le_bytes());
    }
    let bytes = out.len() as u64;
    out[8..16].copy_from_slice(&bytes.to_le_bytes());
    let check = crc32fast::hash(&out[..16]);
    out[16..20].copy_from_slice(&check.to_le_bytes());
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Right checksums around wrong content: the room is refused, or goes on without a panic.
    #[test]
    fn wrong_content_of_any_part_is_refused_or_works(
        part in 0..14_usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..6),
    ) {
        static FULL: std::sync::LazyLock<Vec<(u8, Vec<u8>)>> =
            std::sync::LazyLock::new(|| parts(&full()));
        let mut parts = FULL.clone();
        let content = &mut parts[part].1;
        for (place, byte, how) in changes {
            let place = if content.is_empty() { 0 } else { place.index(content.len()) };
            match how {
                0 => content.insert(place, byte),
                1 if !content.is_empty() => drop(content.remove(place)),
                2 => content.truncate(place),
                _ if content.is_empty() => {}
                _ => content[place] = byte,
            }
        }
        if let Ok(mut room) = thaw::<Park>(&written(&parts)) {
            let mut out = Record::default();
            let mut at = Duration::ZERO;
            room.moved(at, &mut out);
            for tick in 1..5 {
                at = room.wake_at().unwrap_or(at).min(Duration::from_secs(1_000_000));
                room.tick(at, tick, &mut out);
                room.wake(at, &mut out);
                room.sync(at, &mut out);
                for format in Format::ALL {
                    room.snapshot(playfield_room::PlayerId(1), format, &mut Vec::new());
                }
            }
            let _ = room.freeze(at, &mut FrozenWriter::new(), &mut out);
            room.close(at, EndReason::ShuttingDown, "", &mut out);
            room.part(at, &mut out);
        }
    }
}

/// A frozen room of the first format is read, bit for bit. A new format gets a file of its own.
#[test]
fn the_first_format_is_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/freezing/format-1.frozen");
    if std::env::var_os("PLAYFIELD_WRITE_VECTORS").is_some() {
        std::fs::write(path, full()).unwrap();
    }
    let frozen = std::fs::read(path).unwrap();
    let mut room = thaw::<Park>(&frozen).unwrap();
    let summary = room.summary().clone();
    assert_eq!((summary.players, summary.reserved, summary.capacity), (3, 1, 5));
    assert_eq!((&*summary.metadata["name"], summary.key.as_deref()), ("4", Some("key")));
    let players = room.players(&mut |_| true);
    let ann = &players[0];
    assert_eq!((ann.name(), ann.user(), ann.seat()), ("Ann", Some("user Ann"), Some("north")));
    assert_eq!(ann.claims().text("team"), Some("red"));
    assert_eq!(room.wake_at(), Some(Duration::from_millis(120)));
    let mut out = Record::default();
    room.moved(Duration::ZERO, &mut out);
    room.wake(Duration::from_millis(700), &mut out);
    let Output::Error { link, request, error } = &out.take()[0] else { panic!("a reply is late") };
    assert_eq!((*link, *request), (Link(ann.id().0), Some(RequestNumber(1))));
    assert_eq!(error.code(), ErrorCode::Timeout);
    let mut text = Vec::new();
    room.sync(Duration::from_millis(700), &mut out);
    room.snapshot(ann.id(), Format::Json, &mut text);
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(r#""4 at 700ms by None""#), "{text}");
}
