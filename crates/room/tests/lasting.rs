//! Persistent rooms: loaded before anyone enters, saved when they change, on demand and at the end.

use std::future::{pending, ready};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playfield_room::sim::{ROOM_TYPE, Sim};
use playfield_room::{
    Completion, Context, EndReason, Error, Fence, Handle, LeaveReason, Loaded, Mail, MemoryStore,
    Message, On, Opened, Player, PlayerId, Result, Room, RoomType, Store, StoreError,
    StoreErrorKind, Stored, room,
};
use playfield_state::{List, Map, State, load, save};
use playfield_wire::ErrorCode;

use crate::support::{Host, logged};

/// Notes what is called.
#[derive(State, Default, Debug, PartialEq)]
struct Document {
    text: String,
    calls: List<String>,
    #[sync(owner)]
    drafts: Map<PlayerId, Draft>,
    #[sync(hidden)]
    seed: u64,
    #[sync(skip)]
    index: Option<usize>,
}

#[derive(State, Default, Debug, PartialEq)]
struct Draft {
    text: String,
}

#[derive(Message)]
struct Write(String);

/// Saves, and tells when that is done.
#[derive(Message)]
struct Keep {
    /// Whether failures are reported too.
    once: bool,
}

#[derive(Message)]
struct Kept(String);

#[room(messages(Write, Keep), internal(Kept), persist = 10, empty_ms = 60_000, closing_ms = 5_000)]
impl Room for Document {
    fn create((): (), cx: &mut Context<Self>) -> Result<Self> {
        let mut this = Self { seed: cx.rng().below(u64::MAX), ..Self::default() };
        this.calls.push("create".into());
        this.index = Some(0);
        Ok(this)
    }

    fn rebuild(&mut self, _: &mut Context<Self>) {
        assert_eq!(self.index, None, "it is left out of saves");
        self.index = Some(self.text.len());
        self.calls.push("rebuild".into());
    }

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.drafts.insert(player.id(), Draft { text: player.name().into() });
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.calls.push(format!("{} left", player.name()));
    }

    fn closing(&mut self, _: EndReason, _: &mut Context<Self>) {
        self.calls.push("closing".into());
    }
}

impl Handle<Write> for Document {
    fn handle(&mut self, write: Write, _: &Player, _: &mut Context<Self>) -> Result<()> {
        self.text.push_str(&write.0);
        Ok(())
    }
}

impl Handle<Keep> for Document {
    fn handle(&mut self, keep: Keep, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        if keep.once {
            cx.try_save(|outcome| match outcome {
                Ok(()) => Kept("yes".into()),
                Err(error) => Kept(error.text().into()),
            })
        } else {
            cx.save(Kept(format!("kept {}", self.text)))
        }
    }
}

impl On<Kept> for Document {
    fn on(&mut self, kept: Kept, _: &mut Context<Self>) -> Result<()> {
        self.calls.push(kept.0);
        Ok(())
    }
}

/// The behavior of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Mood {
    #[default]
    Fine,
    Full,
    /// Nothing ends.
    Stuck,
    Panicking,
    /// Panics before it returns a future.
    PanickingAtOnce,
    /// Loads saves that are still on their way to the disk.
    Late,
    /// Can't be reached.
    Away,
}

/// A store that counts saves, and can fail.
#[derive(Clone, Default)]
struct Disk {
    saves: MemoryStore,
    mood: Arc<Mutex<(Mood, u32)>>,
    /// Saves that never end.
    stuck: Arc<Mutex<Vec<Completion>>>,
    /// The fences that were closed.
    closed: Arc<Mutex<Vec<Fence>>>,
}

fn full() -> StoreError {
    StoreError::new(StoreErrorKind::Full, "the disk is full")
}

fn away() -> StoreError {
    StoreError::new(StoreErrorKind::Away, "the database is restarted")
}

impl Disk {
    fn set(&self, mood: Mood) {
        self.mood.lock().unwrap().0 = mood;
    }

    fn mood(&self) -> Mood {
        self.mood.lock().unwrap().0
    }

    /// Returns the number of saves that were begun.
    fn count(&self) -> u32 {
        self.mood.lock().unwrap().1
    }

    fn document(&self) -> Option<Document> {
        self.saves.get(ROOM_TYPE, "42").map(|bytes| load(&bytes).unwrap())
    }

    fn now<T: Send + 'static>(&self, done: impl FnOnce(&MemoryStore) -> Stored<T>) -> Stored<T> {
        match self.mood() {
            Mood::Fine | Mood::Late => done(&self.saves),
            Mood::Full => Box::pin(ready(Err(full()))),
            Mood::Away => Box::pin(ready(Err(away()))),
            Mood::Stuck => Box::pin(pending()),
            Mood::Panicking => Box::pin(async { panic!("the store is broken") }),
            Mood::PanickingAtOnce => panic!("the store is broken"),
        }
    }
}

impl Store for Disk {
    fn open(&self, room_type: &str, key: &str) -> Stored<Opened> {
        let is_durable = self.mood() != Mood::Late;
        let opened = self.now(|saves| saves.open(room_type, key));
        Box::pin(async move {
            let Opened { fence, save } = opened.await?;
            Ok(Opened { fence, save: save.map(|save| Loaded { is_durable, ..save }) })
        })
    }
    fn close(&self, room_type: &str, key: &str, fence: Fence) {
        self.closed.lock().unwrap().push(fence);
        assert!(self.mood() != Mood::PanickingAtOnce, "the store is broken");
        self.saves.close(room_type, key, fence);
    }
    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
        self.now(|saves| saves.load(room_type, key))
    }
    fn save(&self, room_type: &str, key: &str, fence: Fence, bytes: Vec<u8>, done: Completion) {
        self.mood.lock().unwrap().1 += 1;
        match self.mood() {
            Mood::Fine | Mood::Late => self.saves.save(room_type, key, fence, bytes, done),
            Mood::Full => done.complete(Err(full())),
            Mood::Away => done.complete(Err(away())),
            Mood::Stuck => self.stuck.lock().unwrap().push(done),
            Mood::Panicking => {
                let writes = std::thread::spawn(|| {
                    let _done = done;
                    panic!("the store is broken");
                });
                assert!(writes.join().is_err());
            }
            Mood::PanickingAtOnce => panic!("the store is broken"),
        }
    }
    fn remove(&self, room_type: &str, key: &str, fence: Fence) -> Stored<()> {
        self.now(|saves| saves.remove(room_type, key, fence))
    }
    fn keys(&self, room_type: &str, after: Option<&str>, limit: usize) -> Stored<Vec<String>> {
        self.now(|saves| saves.keys(room_type, after, limit))
    }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A room that has opened.
fn open(disk: &Disk) -> Sim<Document> {
    let mut sim = Sim::with_store(1, &(), "42", disk.clone());
    assert_eq!(sim.run_background(), 1, "the load");
    sim
}

fn calls(document: &Document) -> Vec<&str> {
    document.calls.iter().map(String::as_str).collect()
}

#[test]
fn create_is_called_once_and_rebuild_ever_after() {
    let disk = Disk::default();
    let mut sim = open(&disk);
    let seed = sim.room().seed;
    let ann = sim.join("Ann").unwrap();
    sim.request(ann, Write("Hello".into())).unwrap();
    sim.close(EndReason::ShuttingDown);
    assert!(!sim.is_closed(), "it waits for its save");
    sim.run_background();
    assert!(sim.is_closed());

    let sim = open(&disk);
    let room = sim.room();
    assert_eq!((room.text.as_str(), room.seed, room.index), ("Hello", seed, Some(5)));
    assert_eq!(calls(room), ["create", "closing", "Ann left", "rebuild"]);
}

#[test]
fn those_who_join_wait_for_the_save_and_numbers_of_players_are_not_used_again() {
    let disk = Disk::default();
    let mut sim = open(&disk);
    assert_eq!((sim.join("Ann"), sim.join("Bob")), (Ok(PlayerId(1)), Ok(PlayerId(2))));
    sim.close(EndReason::Closed);
    sim.run_background();

    let mut sim = Sim::<Document>::with_store(2, &(), "42", disk);
    let waiting = ["Cleo", "Dora", "Emil"].map(|name| sim.join_begin(name).unwrap());
    sim.leave(waiting[1]);
    sim.run_background();
    let [cleo, dora, emil] = waiting.map(|player| sim.number_of(player));
    assert_eq!((cleo, emil), (PlayerId(3), PlayerId(4)));
    assert!(sim.is_here(cleo) && sim.is_here(emil) && !sim.is_here(dora));
    // What Ann and Bob own is nobody's now.
    assert_eq!(sim.copy(cleo).drafts.keys().copied().collect::<Vec<_>>(), [cleo]);
    assert_eq!(sim.room().drafts.len(), 4);
}

#[test]
fn a_player_who_waited_for_the_save_can_leave_while_the_room_decides() {
    let disk = Disk::default();
    let mut sim = Sim::<Document>::with_store(2, &(), "42", disk);
    let ann = sim.join_begin("Ann").unwrap();
    sim.run_background();
    let ann = sim.number_of(ann);
    sim.leave(ann);
    assert_eq!(calls(sim.room()), ["create", "Ann left"]);
}

#[test]
fn a_room_is_saved_when_it_has_changed_and_only_then() {
    let disk = Disk::default();
    let mut sim = open(&disk);
    let ann = sim.join("Ann").unwrap();
    sim.advance(seconds(9));
    sim.run_background();
    assert_eq!(disk.count(), 0);
    sim.advance(seconds(1));
    sim.run_background();
    assert_eq!(disk.count(), 1);
    assert_eq!(disk.document().unwrap(), Document { index: None, ..snapshot(&sim) });
    // Nothing calls the room: it is not even looked at.
    sim.advance(seconds(100));
    assert_eq!(disk.count(), 1);
    // A call that changes nothing writes nothing.
    sim.request(ann, Write(String::new())).unwrap();
    sim.advance(seconds(100));
    assert_eq!(disk.count(), 1);
    sim.request(ann, Write("x".into())).unwrap();
    sim.advance(seconds(10));
    assert_eq!(disk.count(), 2);
}

fn snapshot(sim: &Sim<Document>) -> Document {
    load(&sim.save()).unwrap()
}

#[test]
fn a_crash_costs_at_most_the_time_between_saves() {
    let disk = Disk::default();
    let mut sim = open(&disk);
    let ann = sim.join("Ann").unwrap();
    for second in 0..35 {
        sim.request(ann, Write(format!("{second} "))).unwrap();
        sim.advance(seconds(1));
        sim.run_background();
        let written = disk.document().map_or(0, |document| document.text.split(' ').count());
        assert!(written + 10 >= second, "at {second}, {written} are on disk");
    }
    // The process is killed.
    drop(sim);
    let sim = open(&disk);
    assert!(sim.room().text.ends_with(" 29 ") || sim.room().text.len() > 80, "{:?}", sim.room());
}

#[test]
fn a_save_on_demand_ends_in_a_message_once_it_is_on_disk() {
    let disk = Disk::default();
    let mut sim = open(&disk);
    let ann = sim.join("Ann").unwrap();
    sim.request(ann, Write("a".into())).unwrap();
    sim.request(ann, Keep { once: false }).unwrap();
    assert_eq!(calls(sim.room()), ["create"], "it is on its way");
    // Later ones wait for the next save: one at a time is on its way.
    sim.request(ann, Write("b".into())).unwrap();
    sim.request(ann, Keep { once: false }).unwrap();
    sim.request(ann, Keep { once: true }).unwrap();
    assert_eq!(disk.count(), 1);
    assert_eq!(disk.document().unwrap().text, "a");
    sim.run_background();
    assert_eq!(calls(sim.room()), ["create", "kept a"]);
    assert_eq!(disk.count(), 2);
    sim.run_background();
    assert_eq!(calls(sim.room()), ["create", "kept a", "kept ab", "yes"]);
    assert_eq!(disk.document().unwrap().text, "ab");
}

#[test]
fn a_save_that_fails_is_tried_again_and_told_to_those_who_want_to_know() {
    for mood in [Mood::Full, Mood::Panicking, Mood::PanickingAtOnce] {
        let disk = Disk::default();
        let mut sim = open(&disk);
        let ann = sim.join("Ann").unwrap();
        disk.set(mood);
        sim.request(ann, Keep { once: false }).unwrap();
        sim.request(ann, Keep { once: true }).unwrap();
        sim.run_background();
        sim.advance(seconds(1));
        sim.run_background();
        let why = match mood {
            Mood::Full => "the disk is full",
            _ => "the store panicked",
        };
        let why = format!("the room was not saved: {why}");
        assert_eq!(calls(sim.room()), ["create", &why]);
        assert!(!sim.is_closed(), "the room goes on");
        disk.set(Mood::Fine);
        sim.advance(seconds(1));
        sim.run_background();
        assert_eq!(calls(sim.room()), ["create", &why, "kept "]);
        assert!(disk.document().is_some());
    }
}

#[test]
fn a_room_that_ends_tries_to_save_itself_until_closing_ms() {
    let disk = Disk::default();
    let mut sim = open(&disk);
    let ann = sim.join("Ann").unwrap();
    sim.request(ann, Write("precious".into())).unwrap();
    disk.set(Mood::Full);
    sim.close(EndReason::Drained);
    for _ in 0..20 {
        sim.run_background();
        sim.advance(Duration::from_millis(100));
    }
    assert!(!sim.is_closed() && disk.document().is_none());
    assert_eq!(disk.count(), 21);
    disk.set(Mood::Fine);
    sim.run_background();
    sim.advance(Duration::from_millis(100));
    sim.run_background();
    assert!(sim.is_closed());
    assert_eq!(disk.document().unwrap().text, "precious");

    // A disk that never answers can't keep it.
    let mut sim = open(&disk);
    sim.room_mut().text.push('!');
    disk.set(Mood::Stuck);
    sim.close(EndReason::Drained);
    sim.advance(Duration::from_millis(4_999));
    sim.run_background();
    assert!(!sim.is_closed());
    let lines = logged(|| sim.advance(Duration::from_millis(1)));
    assert!(sim.is_closed());
    let last = lines.last().unwrap();
    let text = "did not end within closing_ms = 5000, and is dropped; unfinished: its save";
    assert!(last.ends_with(text), "{lines:?}");
}

#[test]
fn a_save_that_is_on_its_way_when_the_room_ends_is_followed_by_the_last_one() {
    let disk = Disk::default();
    let mut sim = open(&disk);
    let ann = sim.join("Ann").unwrap();
    sim.request(ann, Keep { once: false }).unwrap();
    sim.request(ann, Write("late".into())).unwrap();
    sim.close(EndReason::Closed);
    assert_eq!(disk.count(), 1);
    sim.run_background();
    assert!(!sim.is_closed());
    assert_eq!(disk.count(), 2);
    sim.run_background();
    let document = disk.document().unwrap();
    assert_eq!(document.text, "late");
    assert_eq!(calls(&document), ["create", "closing", "Ann left", "kept "]);
    // It heard of the save after it, so it is as it was saved.
    assert!(sim.is_closed());
}

#[test]
fn a_save_that_cannot_be_read_refuses_all_and_is_left_as_it_is() {
    let whole = save(&Document { text: "precious".into(), ..Document::default() });
    let mut torn = whole.clone();
    torn.truncate(whole.len() / 2);
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    for bytes in [torn, damaged, b"no save".to_vec(), save(&Draft::default())] {
        let disk = Disk::default();
        disk.saves.set(ROOM_TYPE, "42", bytes.clone());
        let mut sim = Sim::<Document>::with_store(1, &(), "42", disk.clone());
        let (ann, bob) = (sim.join_begin("Ann").unwrap(), sim.join_begin("Bob").unwrap());
        sim.run_background();
        for player in [ann, bob] {
            let why = sim.why_gone(player).unwrap();
            assert_eq!(why.code(), ErrorCode::RoomFailed);
            assert_eq!(why.text(), "the room's save can't be read; it was left as it is");
        }
        assert!(sim.is_closed());
        assert_eq!(disk.saves.get(ROOM_TYPE, "42"), Some(bytes));
        assert_eq!(disk.count(), 0);
        assert_eq!(sim.join_begin("Cleo").unwrap_err().code(), ErrorCode::RoomNotFound);
    }
    for mood in [Mood::Full, Mood::Panicking, Mood::PanickingAtOnce] {
        let disk = Disk::default();
        disk.set(mood);
        let mut sim = Sim::<Document>::with_store(1, &(), "42", disk.clone());
        let ann = sim.join_begin("Ann").unwrap();
        sim.run_background();
        assert_eq!(sim.why_gone(ann).unwrap().code(), ErrorCode::RoomFailed);
        assert!(sim.is_closed() && disk.count() == 0);
    }
}

/// Saves nothing but what it is given.
#[derive(State, Default)]
struct Plain {
    text: String,
}

#[room(internal(Write), persist = 10, empty_ms = 600_000)]
impl Room for Plain {}

impl On<Write> for Plain {
    fn on(&mut self, write: Write, _: &mut Context<Self>) -> Result<()> {
        self.text = write.0;
        Ok(())
    }
}

#[test]
fn a_room_made_of_a_save_that_may_not_reach_the_disk_saves_itself_again() {
    let disk = Disk::default();
    let mut sim = Sim::<Plain>::with_store(1, &(), "42", disk.clone());
    sim.run_background();
    sim.tell(&Write("precious".into()));
    sim.close(EndReason::Closed);
    sim.run_background();
    let mut known = disk.count();
    for (mood, closes) in [(Mood::Fine, true), (Mood::Late, false), (Mood::Late, true)] {
        disk.set(mood);
        let mut sim = Sim::<Plain>::with_store(1, &(), "42", disk.clone());
        sim.run_background();
        // The save that it was made of may have failed meanwhile.
        if closes {
            sim.close(EndReason::Closed);
        } else {
            sim.advance(seconds(10));
        }
        sim.run_background();
        known += u32::from(mood == Mood::Late);
        assert_eq!((disk.count(), sim.is_closed()), (known, closes), "{mood:?}");
        // From here on it is as any other.
        sim.advance(seconds(100));
        assert_eq!(disk.count(), known);
    }
}

#[test]
fn after_a_save_that_failed_the_disk_may_have_either() {
    let disk = Disk::default();
    let mut sim = Sim::<Plain>::with_store(1, &(), "42", disk.clone());
    sim.run_background();
    let mut write = |text: &str, mood, wait| {
        disk.set(mood);
        sim.tell(&Write(text.into()));
        sim.advance(seconds(wait));
        sim.run_background();
        save(sim.room())
    };
    write("one", Mood::Fine, 10);
    let failed = write("two", Mood::Full, 10);
    // It was written nevertheless.
    disk.saves.set(ROOM_TYPE, "42", failed);
    write("one", Mood::Fine, 1);
    let on_disk: Plain = load(&disk.saves.get(ROOM_TYPE, "42").unwrap()).unwrap();
    assert_eq!(on_disk.text, "one");
}

#[test]
fn a_room_whose_save_is_opened_again_ends_without_a_further_call() {
    for ends in [false, true] {
        let disk = Disk::default();
        let mut sim = open(&disk);
        let ann = sim.join("Ann").unwrap();
        sim.request(ann, Write("old".into())).unwrap();
        sim.request(ann, Keep { once: false }).unwrap();
        sim.run_background();
        // Another node takes over the room.
        let mut newer = open(&disk);
        assert_eq!(newer.room().text, "old");
        newer.room_mut().text.push_str(" and newer");
        newer.close(EndReason::Closed);
        newer.run_background();
        let saved = disk.saves.get(ROOM_TYPE, "42");

        sim.request(ann, Write("lost".into())).unwrap();
        let log = logged(|| {
            if ends {
                sim.close(EndReason::Drained);
            } else {
                sim.advance(seconds(10));
            }
            sim.run_background();
        });
        assert!(sim.is_closed());
        let said = "sim \"42\": room sim ends without a further call, and its changes since its last \
                    save are lost: the save of sim \"42\" was opened again since: fence 1 is not \
                    the newest, and may not write it";
        assert!(log.len() == 1 && log[0].ends_with(said), "{log:?}");
        if !ends {
            let why = sim.why_gone(ann).unwrap();
            assert_eq!(why.code(), ErrorCode::RoomClosed);
            let text = "the room's save was opened elsewhere, so this room ended; join it again";
            assert_eq!(why.text(), text);
        }
        assert_eq!(disk.saves.get(ROOM_TYPE, "42"), saved);
    }
}

#[test]
fn a_save_is_closed_when_its_room_is_gone() {
    let disk = Disk::default();
    let closed = || std::mem::take(&mut *disk.closed.lock().unwrap());
    let mut sim = open(&disk);
    sim.close(EndReason::Closed);
    sim.run_background();
    assert_eq!(closed(), [], "the host still has it");
    drop(sim);
    assert_eq!(closed(), [Fence(1)]);
    // One that failed, whatever the store does.
    let sim = open(&disk);
    disk.set(Mood::PanickingAtOnce);
    let log = logged(|| drop(sim));
    assert!(log[0].ends_with("sim \"42\": the store panicked in `close`: the store is broken"));
    disk.set(Mood::Fine);
    assert_eq!(closed(), [Fence(2)]);
    // One that was dropped before its load ended.
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    let kept = Some(("42", Arc::clone(&store)));
    let mut host = Host::create_kept(RoomType::of::<Document>("test"), 1, &[], kept).unwrap();
    host.wake_after(0);
    let (_, mut load) = host.out.tasks.pop().unwrap();
    drop(host);
    assert_eq!(closed(), []);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(load.as_mut().poll(&mut cx).is_ready());
    assert_eq!(closed(), [Fence(3)]);
}

#[test]
fn a_store_that_is_away_refuses_those_who_wait_for_now() {
    let disk = Disk::default();
    disk.set(Mood::Away);
    let mut sim = Sim::<Document>::with_store(1, &(), "42", disk.clone());
    let ann = sim.join_begin("Ann").unwrap();
    let log = logged(|| assert_eq!(sim.run_background(), 1));
    let why = sim.why_gone(ann).unwrap();
    assert_eq!(why.code(), ErrorCode::Busy);
    assert_eq!(why.text(), "the save of sim \"42\" can't be loaded now; try again later");
    let said = "the save of sim \"42\" can't be loaded now, so room sim is not created: the \
                database is restarted";
    assert!(log[0].ends_with(said), "{log:?}");
    assert!(sim.is_closed());
}

#[test]
fn a_store_that_never_answers_refuses_those_who_wait() {
    let disk = Disk::default();
    disk.set(Mood::Stuck);
    let mut sim = Sim::<Document>::with_store(1, &(), "42", disk);
    let ann = sim.join_begin("Ann").unwrap();
    sim.advance(Duration::from_millis(9_999));
    assert!(sim.is_waiting(ann));
    sim.advance(Duration::from_millis(1));
    assert_eq!(sim.why_gone(ann).unwrap().code(), ErrorCode::Timeout);
    assert!(sim.is_closed());
}

#[test]
fn a_room_that_panics_is_not_saved() {
    #[derive(State, Default)]
    struct Fragile {
        count: u32,
    }

    #[derive(Message)]
    struct Break;

    #[room(messages(Break), persist = 1)]
    impl Room for Fragile {}

    impl Handle<Break> for Fragile {
        fn handle(&mut self, _: Break, _: &Player, _: &mut Context<Self>) -> Result<()> {
            self.count = 7;
            panic!("half done")
        }
    }

    let store = MemoryStore::new();
    let mut sim = Sim::<Fragile>::with_store(1, &(), "1", store.clone());
    sim.run_background();
    let ann = sim.join("Ann").unwrap();
    assert!(sim.request(ann, Break).is_err());
    sim.advance(seconds(5));
    sim.run_background();
    assert!(sim.is_closed() && store.is_empty());
}

#[test]
fn a_room_without_a_key_is_not_saved_and_says_so() {
    let mut sim = Sim::<Document>::new(1);
    let ann = sim.join("Ann").unwrap();
    let error = sim.request(ann, Keep { once: false }).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Refused);
    assert!(error.text().starts_with("cx.save: the room is not saved"), "{error}");
    sim.close(EndReason::Closed);
    assert!(sim.is_closed());
}

#[test]
fn a_room_can_refuse_to_be_created_after_the_store_was_asked() {
    #[derive(State, Default)]
    struct Picky {}

    #[room(persist = 1)]
    impl Room for Picky {
        fn create((): (), _: &mut Context<Self>) -> Result<Self> {
            Err(Error::from("not today"))
        }
    }

    let mut sim = Sim::<Picky>::with_store(1, &(), "1", MemoryStore::new());
    let ann = sim.join_begin("Ann").unwrap();
    sim.run_background();
    assert_eq!(sim.why_gone(ann).unwrap().text(), "not today");
    assert!(sim.is_closed());
}

#[test]
fn a_simulation_is_saved_and_loaded() {
    let mut sim = Sim::<Document>::new(1);
    sim.room_mut().text.push_str("here");
    let bytes = sim.save();
    let sim = Sim::<Document>::load(2, &bytes).unwrap();
    assert_eq!(sim.room().text, "here");
    assert_eq!(calls(sim.room()), ["create", "rebuild"]);
    assert!(Sim::<Document>::load(2, &bytes[1..]).is_err());
}

#[test]
fn the_same_inputs_lead_to_the_same_saves() {
    let run = || {
        let disk = Disk::default();
        let mut sim = open(&disk);
        let ann = sim.join("Ann").unwrap();
        let mut saves = Vec::new();
        for step in 0..40_u64 {
            if step % 3 == 0 {
                sim.request(ann, Write(format!("{step}"))).unwrap();
            }
            if step % 7 == 0 {
                sim.request(ann, Keep { once: step % 2 == 0 }).unwrap();
            }
            sim.advance(seconds(step % 5));
            if step % 2 == 0 {
                sim.run_background();
            }
            saves.push((disk.count(), disk.saves.get(ROOM_TYPE, "42")));
        }
        saves
    };
    assert_eq!(run(), run());
}

/// A save of more than 32 KiB is read on another thread, so that other rooms need not wait.
#[test]
fn a_long_save_is_read_elsewhere_and_what_rebuild_changes_is_in_every_copy() {
    let disk = Disk::default();
    let text = "long ".repeat(10_000);
    let document = Document { text: text.clone(), seed: 7, ..Document::default() };
    disk.saves.set(ROOM_TYPE, "42", save(&document));
    let mut sim = Sim::<Document>::with_store(1, &(), "42", disk.clone());
    let early = sim.join_begin("Ann").unwrap();
    assert_eq!(sim.run_background(), 1, "the load");
    let later = sim.join_begin("Bob").unwrap();
    assert!(sim.why_gone(early).is_none() && sim.background().len() == 1, "it is being read");
    assert_eq!(sim.run_background(), 1, "the read");
    let [ann, bob] = [early, later].map(|player| sim.number_of(player));
    assert_eq!((ann, bob), (PlayerId(1), PlayerId(2)));
    for player in [ann, bob] {
        assert_eq!(calls(sim.copy(player)), ["rebuild"]);
        assert_eq!(sim.copy(player).text, text);
    }
    assert_eq!((sim.room().seed, sim.room().index), (7, Some(text.len())));
    let loaded = Sim::<Document>::load(1, &sim.save()).unwrap();
    assert_eq!(loaded.room().text, text);
    // It is saved as every other room is.
    sim.request(ann, Write("end".into())).unwrap();
    sim.advance(seconds(10));
    sim.run_background();
    assert_eq!(disk.document().unwrap().text, text + "end");
}

#[test]
fn a_room_may_end_while_its_long_save_is_read_and_a_damaged_one_is_left_as_it_is() {
    let whole = save(&Document { text: "long ".repeat(10_000), ..Document::default() });
    let mut damaged = whole.clone();
    damaged[40_000] ^= 1;
    let disk = Disk::default();
    disk.saves.set(ROOM_TYPE, "42", damaged.clone());
    let mut sim = Sim::<Document>::with_store(1, &(), "42", disk.clone());
    let ann = sim.join_begin("Ann").unwrap();
    sim.run_background();
    sim.run_background();
    assert_eq!(sim.why_gone(ann).unwrap().code(), ErrorCode::RoomFailed);
    assert_eq!(disk.saves.get(ROOM_TYPE, "42"), Some(damaged));

    disk.saves.set(ROOM_TYPE, "42", whole.clone());
    let mut sim = Sim::<Document>::with_store(1, &(), "42", disk.clone());
    let ann = sim.join_begin("Ann").unwrap();
    sim.run_background();
    sim.close(EndReason::Closed);
    sim.run_background();
    assert!(sim.is_closed() && sim.why_gone(ann).is_some());
    assert_eq!(disk.saves.get(ROOM_TYPE, "42"), Some(whole));
}

#[test]
fn a_long_save_is_read_by_the_room_itself_if_too_many_computations_wait() {
    let disk = Disk::default();
    disk.saves.set(
        "test",
        "42",
        save(&Document { text: "x".repeat(40_000), ..Document::default() }),
    );
    let kept = Some(("42", Arc::new(disk) as Arc<dyn Store>));
    let mut host = Host::create_kept(RoomType::of::<Document>("test"), 1, &[], kept).unwrap();
    host.wake_after(0);
    let (task, mut load) = host.out.tasks.pop().unwrap();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(message) = load.as_mut().poll(&mut cx) else {
        panic!("it is there")
    };
    host.out.pool_is_full = true;
    host.mail(Mail::Done { task, message });
    assert!(host.out.jobs.is_empty());
    assert_eq!(host.join("Ann"), Ok(PlayerId(1)));
}

/// A frozen room with a change that is not saved.
fn frozen(disk: &Disk) -> (Sim<Document>, PlayerId, Vec<u8>) {
    let mut sim = open(disk);
    let ann = sim.join("Ann").unwrap();
    sim.request(ann, Write("a".into())).unwrap();
    let frozen = sim.freeze().unwrap();
    (sim, ann, frozen)
}

#[test]
fn a_thawed_room_opens_its_save_again_and_owns_it() {
    let disk = Disk::default();
    let (mut sim, ann, frozen) = frozen(&disk);
    assert_eq!(*disk.closed.lock().unwrap(), [Fence(1)], "it is given up");
    let other = Opened { fence: Fence(2), save: None };
    assert_eq!(opened_by_other(&disk), other, "as by the process that failed");
    sim.thaw(&frozen).unwrap();
    sim.request(ann, Keep { once: true }).unwrap();
    sim.run_background();
    assert_eq!(calls(sim.room()).last(), Some(&"yes"));
    assert_eq!(disk.document().unwrap().text, "a");
    assert!(sim.freeze().is_ok(), "nothing is in flight");
}

/// Opens the save as another process does.
fn opened_by_other(disk: &Disk) -> Opened {
    let mut opening = disk.open(ROOM_TYPE, "42");
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match opening.as_mut().poll(&mut cx) {
        std::task::Poll::Ready(opened) => opened.unwrap(),
        std::task::Poll::Pending => panic!("it is in memory"),
    }
}

#[test]
fn a_frozen_room_that_goes_on_where_it_was_opens_its_save_again_and_saves_itself() {
    let disk = Disk::default();
    let (mut sim, ann, _) = frozen(&disk);
    // The other process opened the save, and wrote it, before it failed.
    let Opened { fence, .. } = opened_by_other(&disk);
    disk.saves.save(ROOM_TYPE, "42", fence, b"of the other".to_vec(), Completion::new(drop));
    sim.advance(seconds(1));
    assert_eq!(sim.run_background(), 1, "it opens its save");
    sim.advance(seconds(10));
    assert_eq!(sim.run_background(), 1, "it saves itself");
    assert_eq!(disk.document().unwrap().text, "a");
    sim.request(ann, Write("b".into())).unwrap();
    sim.close(EndReason::Drained);
    sim.run_background();
    assert!(sim.is_closed());
    assert_eq!(disk.document().unwrap().text, "ab");
}

#[test]
fn a_thawed_room_tries_to_open_its_save_until_the_store_is_there() {
    for mood in [Mood::Away, Mood::Full, Mood::Panicking, Mood::PanickingAtOnce] {
        let disk = Disk::default();
        let (mut sim, ann, frozen) = frozen(&disk);
        disk.set(mood);
        sim.thaw(&frozen).unwrap();
        sim.request(ann, Keep { once: false }).unwrap();
        sim.request(ann, Keep { once: true }).unwrap();
        sim.advance(seconds(1));
        sim.run_background();
        let why = calls(sim.room()).last().unwrap().to_string();
        assert!(why.starts_with("the room was not saved: the save can't be opened: "), "{why}");
        assert_eq!(disk.count(), 0, "nothing is written without a fence");
        disk.set(Mood::Fine);
        sim.advance(seconds(1));
        while sim.run_background() > 0 {}
        assert_eq!(calls(sim.room()).last(), Some(&"kept a"), "{mood:?}");
        assert!(disk.document().is_some());
    }
}

#[test]
fn an_opening_that_is_given_up_ends_and_disturbs_nothing() {
    let disk = Disk::default();
    let (mut sim, ann, frozen) = frozen(&disk);
    disk.set(Mood::Stuck);
    sim.thaw(&frozen).unwrap();
    let work = sim.freeze().unwrap_err();
    assert_eq!(work.to_string(), "work is in flight: a save");
    let frozen = sim.freeze_after(&Error::new(ErrorCode::Busy, "the room moves")).unwrap();
    disk.set(Mood::Fine);
    sim.thaw(&frozen).unwrap();
    sim.request(ann, Keep { once: false }).unwrap();
    sim.run_background();
    assert_eq!(calls(sim.room()).last(), Some(&"kept a"));
}

#[test]
fn a_room_whose_save_can_not_be_opened_again_ends_by_closing_ms() {
    let disk = Disk::default();
    let (mut sim, _, frozen) = frozen(&disk);
    disk.set(Mood::Away);
    sim.thaw(&frozen).unwrap();
    sim.close(EndReason::Drained);
    sim.advance(Duration::from_millis(2_000));
    sim.run_background();
    assert!(!sim.is_closed());
    disk.set(Mood::Fine);
    for _ in 0..4 {
        sim.advance(Duration::from_millis(500));
        sim.run_background();
    }
    assert!(sim.is_closed());
    assert_eq!(disk.document().unwrap().text, "a");
}
