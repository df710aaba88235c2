//! A host for tests: it calls a room as a server would, and keeps what the room sends, in order.

#![allow(dead_code, reason = "each test binary uses a part of it")]

mod logged;
pub(crate) mod park;
pub(crate) mod recorded;

pub(crate) use logged::logged;

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use playfield_room::frozen::Frozen;
use playfield_room::{
    Admission, AnyRoom, Birth, Claims, Completion, Creator, EndReason, Entrant, Error, EventHeader,
    Job, LeaveReason, Link, Mail, MemoryStore, NewRoom, PlayerId, Publication, Push, Result, Room,
    RoomOutput, RoomType, Sender, Stage, Store, Task, Thaw,
};
use playfield_state::{Data, Format};
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, RequestNumber};

/// One output of a room.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Output {
    Reply { link: Link, request: RequestNumber, payload: Vec<u8> },
    Error { link: Link, request: Option<RequestNumber>, error: Error },
    Event { link: Link, index: u32, name: &'static str, version: u64, payload: Vec<u8> },
    Removed { link: Link, why: Error },
    Spawn { task: u64 },
    Compute { task: u64 },
    Create { id: String },
    Post { to: String, mail: Mail },
    Publish { publication: Publication },
    Push { push: Push },
}

/// All output of a room.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) outputs: Vec<Output>,
    pub(crate) tasks: Vec<(u64, Task)>,
    pub(crate) jobs: Vec<(u64, Job)>,
    /// The outcomes of saves.
    pub(crate) saved: Arc<Mutex<Vec<Mail>>>,
    /// The pool's queue is full.
    pub(crate) pool_is_full: bool,
    /// The host opens saves again that another owner has opened.
    pub(crate) reopens: bool,
    /// The players whose messages wait.
    pub(crate) waits: Vec<PlayerId>,
}

impl Record {
    /// The output since the last call.
    pub(crate) fn take(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }
}

impl RoomOutput for Record {
    fn reply(&mut self, link: Link, request: RequestNumber, payload: &[u8]) {
        self.outputs.push(Output::Reply { link, request, payload: payload.to_vec() });
    }

    fn error(&mut self, link: Link, request: Option<RequestNumber>, error: &Error) {
        self.outputs.push(Output::Error { link, request, error: error.clone() });
    }

    fn event(&mut self, link: Link, event: EventHeader, payload: &[u8]) {
        let EventHeader { index, name, version } = event;
        self.outputs.push(Output::Event { link, index, name, version, payload: payload.to_vec() });
    }

    fn admitted(&mut self, link: Link, player: PlayerId) {
        panic!("{player} of {link:?} did not wait");
    }

    fn refused(&mut self, link: Link, why: &Error) {
        panic!("{link:?} did not wait: {why}");
    }

    fn removed(&mut self, link: Link, why: &Error) {
        self.outputs.push(Output::Removed { link, why: why.clone() });
    }

    fn spawn(&mut self, task: u64, work: Task) -> Result<()> {
        if self.pool_is_full {
            return Err(Error::new(ErrorCode::Busy, "too much is under way"));
        }
        self.outputs.push(Output::Spawn { task });
        self.tasks.push((task, work));
        Ok(())
    }

    fn compute(&mut self, task: u64, job: Job) -> Result<()> {
        if self.pool_is_full {
            return Err(Error::new(ErrorCode::Busy, "the pool's queue is full"));
        }
        self.outputs.push(Output::Compute { task });
        self.jobs.push((task, job));
        Ok(())
    }

    fn completion(&mut self, save: u64) -> Completion {
        let saved = Arc::clone(&self.saved);
        Completion::new(move |outcome| saved.lock().unwrap().push(Mail::Saved { save, outcome }))
    }

    fn waits(&mut self, player: PlayerId) {
        self.waits.push(player);
    }

    fn fenced(&mut self) -> bool {
        self.reopens
    }

    fn create(&mut self, room: NewRoom) -> Result<()> {
        self.outputs.push(Output::Create { id: room.id });
        Ok(())
    }

    fn find(&mut self, _: TypeId, key: &str) -> Result<Option<String>> {
        Ok((key == "there").then(|| "found".to_owned()))
    }

    fn push(&mut self, push: Push) {
        self.outputs.push(Output::Push { push });
    }

    fn publish(&mut self, publication: Publication) {
        self.outputs.push(Output::Publish { publication });
    }

    fn post(&mut self, to: &str, mail: Mail) {
        self.outputs.push(Output::Post { to: to.to_owned(), mail });
    }
}

/// A room and its time.
pub(crate) struct Host {
    pub(crate) room: Box<dyn AnyRoom>,
    pub(crate) out: Record,
    pub(crate) at: Duration,
    links: u64,
    linked: BTreeMap<PlayerId, Link>,
}

impl Host {
    /// A room with options in `packed`.
    pub(crate) fn create<R: Room>(seed: u64, options: &[u8]) -> Result<Self> {
        Self::create_of(RoomType::of::<R>("test"), seed, options)
    }

    /// A room of a type that may have other settings than the attribute.
    pub(crate) fn create_of(room_type: RoomType, seed: u64, options: &[u8]) -> Result<Self> {
        Self::create_kept(room_type, seed, options, None)
    }

    /// A room that is kept in a store by a key.
    pub(crate) fn create_kept(
        room_type: RoomType,
        seed: u64,
        options: &[u8],
        kept: Option<(&str, Arc<dyn Store>)>,
    ) -> Result<Self> {
        let (key, store) = kept.unzip();
        let RoomType { settings, create, .. } = room_type;
        let birth = Birth {
            id: "room".into(),
            room_type: "test".into(),
            key: key.map(Arc::from),
            key_origin: playfield_room::KeyOrigin::Chosen,
            seed,
            settings,
            private: false,
            options,
            format: Format::Packed,
            creator: Creator::Node,
            store,
            seats: Vec::new(),
        };
        let room = create(birth)?;
        let (out, at) = (Record::default(), Duration::ZERO);
        Ok(Self { room, out, at, links: 0, linked: BTreeMap::new() })
    }

    pub(crate) fn join(&mut self, name: &str) -> Result<PlayerId> {
        self.join_in(name, Format::Packed)
    }

    /// Links count from 1.
    pub(crate) fn join_in(&mut self, name: &str, format: Format) -> Result<PlayerId> {
        let entrant = Entrant {
            link: Link(0),
            format,
            name: name.into(),
            user: None,
            claims: Claims::default(),
            seat: None,
            reservation: None,
        };
        self.enter(entrant)
    }

    /// The same for anyone. The link is replaced.
    pub(crate) fn enter(&mut self, entrant: Entrant) -> Result<PlayerId> {
        self.links += 1;
        let entrant = Entrant { link: Link(self.links), ..entrant };
        let link = entrant.link;
        match self.room.join(self.at, entrant, &mut self.out)? {
            Admission::Seated(player) => {
                self.linked.insert(player, link);
                Ok(player)
            }
            Admission::Waiting(player) => panic!("{player} waits"),
        }
    }

    /// Replaces the room by one that goes on from these bytes, and opens its save again.
    pub(crate) fn thaw(&mut self, of: RoomType, frozen: &[u8], store: Option<MemoryStore>) {
        self.thaw_in(of, frozen, store, |room| room);
    }

    /// Like the above, for a room that continues in the result of `wrap`.
    pub(crate) fn thaw_in(
        &mut self,
        of: RoomType,
        frozen: &[u8],
        store: Option<MemoryStore>,
        wrap: impl FnOnce(Box<dyn AnyRoom>) -> Box<dyn AnyRoom>,
    ) {
        let frozen = Frozen::read(frozen).unwrap();
        let linked = &self.linked;
        let thaw = Thaw {
            frozen: &frozen,
            store: store.map(|store| Arc::new(store) as Arc<dyn Store>),
            link: &mut |player| linked[&player],
        };
        self.room = wrap((of.thaw)(thaw).unwrap());
        self.room.moved(self.at, &mut self.out);
        let opens = |task: u64| task >= 1 << 63;
        self.out.outputs.retain(|output| !matches!(output, Output::Spawn { task } if opens(*task)));
        if let Some(place) = self.out.tasks.iter().position(|(task, _)| opens(*task)) {
            let (task, work) = self.out.tasks.remove(place);
            self.run_task(task, work);
        }
    }

    pub(crate) fn leave(&mut self, player: PlayerId) {
        self.room.leave(self.at, player, LeaveReason::Left, &mut self.out);
    }

    pub(crate) fn lost(&mut self, player: PlayerId) {
        self.room.lost(self.at, player, &mut self.out);
    }

    pub(crate) fn returned(&mut self, player: PlayerId) {
        self.room.returned(self.at, player, Duration::ZERO, &mut self.out);
    }

    /// Closes the room from outside, and does what a host does then.
    pub(crate) fn close(&mut self, why: EndReason, text: &str) {
        self.room.close(self.at, why, text, &mut self.out);
        self.follow_up();
    }

    /// Gives a room that is about to end its last sync, and lets its players leave.
    pub(crate) fn follow_up(&mut self) {
        if self.room.stage() == Stage::Closing {
            self.sync();
            self.room.part(self.at, &mut self.out);
        }
    }

    pub(crate) fn message(
        &mut self,
        player: PlayerId,
        index: u32,
        payload: &[u8],
        request: Option<RequestNumber>,
    ) {
        let message = MessageRef::Index(index);
        self.room.message(self.at, player, &message, payload, request, &mut self.out);
        self.follow_up();
    }

    /// A player sends what is the first message of a room, in `packed`.
    pub(crate) fn act(&mut self, player: PlayerId, act: &impl Data, request: Option<u32>) {
        let mut payload = Vec::new();
        act.encode(&mut payload);
        self.message(player, 0, &payload, request.map(RequestNumber));
    }

    /// Runs all background work that ends at once, and delivers the outcomes of saves.
    pub(crate) fn finish_work(&mut self) {
        for (task, job) in std::mem::take(&mut self.out.jobs) {
            self.mail(Mail::Done { task, message: job() });
        }
        for (task, work) in std::mem::take(&mut self.out.tasks) {
            self.run_task(task, work);
        }
        let saved = std::mem::take(&mut *self.out.saved.lock().unwrap());
        saved.into_iter().for_each(|mail| self.mail(mail));
    }

    /// Runs all background work that ends at once, and returns its outcomes.
    pub(crate) fn work_done(&mut self) -> Vec<Mail> {
        let jobs = std::mem::take(&mut self.out.jobs).into_iter();
        let jobs = jobs.map(|(task, job)| Mail::Done { task, message: job() });
        let tasks = std::mem::take(&mut self.out.tasks).into_iter();
        let tasks = tasks.filter_map(|(task, work)| ended(task, work));
        jobs.chain(tasks).chain(std::mem::take(&mut *self.out.saved.lock().unwrap())).collect()
    }

    fn run_task(&mut self, task: u64, work: Task) {
        if let Some(mail) = ended(task, work) {
            self.mail(mail);
        }
    }

    pub(crate) fn mail(&mut self, mail: Mail) {
        self.room.mail(self.at, mail, &mut self.out);
    }

    pub(crate) fn tick(&mut self, number: u64) {
        self.room.tick(self.at, number, &mut self.out);
    }

    pub(crate) fn sync(&mut self) {
        self.room.sync(self.at, &mut self.out);
    }

    /// Lets time pass, and wakes the room if it wants to be.
    pub(crate) fn wake_after(&mut self, ms: u64) {
        self.at += Duration::from_millis(ms);
        if self.room.wake_at().is_some_and(|due| due <= self.at) {
            self.room.wake(self.at, &mut self.out);
            self.follow_up();
        }
    }

    /// The links that were removed since the last call, with the code of each.
    pub(crate) fn removed(&mut self) -> Vec<(u64, ErrorCode)> {
        let removed = |output| match output {
            Output::Removed { link, why } => Some((link.0, why.code())),
            _ => None,
        };
        self.out.take().into_iter().filter_map(removed).collect()
    }
}

/// The outcome of a task, if it ends at once.
fn ended(task: u64, mut work: Task) -> Option<Mail> {
    let mut cx = TaskContext::from_waker(Waker::noop());
    match work.as_mut().poll(&mut cx) {
        Poll::Ready(message) => Some(Mail::Done { task, message }),
        Poll::Pending => None,
    }
}

/// Another room, as mail names it.
pub(crate) fn room_named(id: &str) -> Option<Arc<Sender>> {
    Some(Arc::new(Sender { room_id: id.into(), room_type: "other".into() }))
}
