//! The time of real syncs by field: each nanosecond counts for the place where the walk of the room
//! is, as [`Tally`](super::Tally) gives each byte to the place where the reader is.
//!
//! While a probe runs in a thread, a [`Tracker`](crate::Tracker) gives the lenses and steps of its
//! walk a [`Point`]. Generated code and the collections move it to the field, the entry or the
//! element that follows, and back to themselves. Without a probe, each such move is one branch.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use playfield_wire::schema::Type;

use super::tally::Step;
use super::tree::Tree;
use crate::walk::{Shape, ShapeError};

/// Measures where the time of syncs goes, by field.
///
/// ```
/// use playfield_state::{Beside, Format, Map, PlayerId, State, SyncProbe, Tracker, Tracking};
///
/// #[derive(State, Default)]
/// struct Arena {
///     scores: Map<PlayerId, u32>,
/// }
///
/// let mut arena = Arena::default();
/// let mut tracker = Tracker::new(&mut arena, Tracking::On);
/// let probe = SyncProbe::new(&Arena::schema())?;
/// arena.scores.insert(PlayerId(1), 7);
/// let running = probe.begin();
/// tracker.sync(&mut arena);
/// tracker.patch(PlayerId(1), 1, Format::Packed, &mut Vec::new());
/// drop(running);
///
/// // The root, the map and its entries, then what is beside the walk.
/// let places = probe.places();
/// assert_eq!(places.len(), 3 + Beside::ALL.len());
/// assert!(places[1].compare.marks > 0 && places[2].shared.marks > 0);
/// # Ok::<_, playfield_state::ShapeError>(())
/// ```
#[derive(Clone)]
pub struct SyncProbe(Arc<Shared>);

/// The time spent at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceTime {
    /// Comparing it with what was last synced, and deciding who sees it.
    pub compare: Spent,
    /// Writing what all players are sent alike.
    pub shared: Spent,
    /// Writing what one player is sent.
    pub own: Spent,
}

/// Time, with the looks at the clock that it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// In nanoseconds. Each mark adds [`SyncProbe::mark_ns`] to what the place takes by itself.
    pub ns: u64,
    /// Looks at the clock.
    pub marks: u64,
}

/// The work of a sync beside the walk through the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Once a sync: the call of the room, versions, and counting what views leave out.
    Sync,
    /// For each player: versions, headers, the outbox.
    Player,
    /// Copying to each player what all are sent alike.
    Copies,
    /// Digests of what players have, where these are due.
    Checks,
}

impl Beside {
    /// All of them, in the order of [`SyncProbe::places`].
    pub const ALL: [Self; 4] = [Self::Sync, Self::Player, Self::Copies, Self::Checks];
}

/// A place of the walk; none without a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point(u32);

/// The kinds of work at a place, in the order of [`PlaceTime`].
#[derive(Clone, Copy)]
pub(crate) enum Work {
    Compare,
    Shared,
    Own,
}

const WORKS: usize = 3;

/// Marks of a calibration, and how often it is made: the fastest is the one without disturbance.
const CALIBRATION: (u32, u32) = (200, 50);

struct Shared {
    tree: Tree,
    /// By place, those of the tree first.
    spent: Mutex<Vec<[Spent; WORKS]>>,
    clock: Clock,
    mark_ns: f64,
}

enum Clock {
    Time(Instant),
    /// Each look is a nanosecond.
    Looks(Arc<AtomicU64>),
}

/// The probe of this thread.
struct Running {
    of: Arc<Shared>,
    /// The time since it began.
    spent: Vec<[Spent; WORKS]>,
    place: usize,
    work: Work,
    last: u64,
}

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

impl SyncProbe {
    /// Creates a probe for states of this type.
    ///
    /// # Errors
    /// If no state can have this type.
    pub fn new(of: &Type) -> Result<Self, ShapeError> {
        let probe = || Self::with_clock(of, Clock::Time(Instant::now()), 0.0);
        let mark_ns = probe()?.calibrate();
        Self::with_clock(of, Clock::Time(Instant::now()), mark_ns)
    }

    /// Creates a probe whose clock is a counter that each look advances by one, for tests.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn counting_looks(of: &Type, looks: Arc<AtomicU64>) -> Result<Self, ShapeError> {
        Self::with_clock(of, Clock::Looks(looks), 0.0)
    }

    fn with_clock(of: &Type, clock: Clock, mark_ns: f64) -> Result<Self, ShapeError> {
        let tree = Tree::new(&Shape::root(of)?);
        let places = tree.places().len() + Beside::ALL.len();
        let spent = Mutex::new(vec![Default::default(); places]);
        Ok(Self(Arc::new(Shared { tree, spent, clock, mark_ns })))
    }

    /// Measures what this thread does until the result is dropped. It begins with
    /// [`Beside::Sync`].
    #[must_use = "the probe runs as long as this lives"]
    pub fn begin(&self) -> Probing {
        let of = Arc::clone(&self.0);
        let place = of.tree.places().len() + Beside::Sync as usize;
        let spent = vec![Default::default(); of.tree.places().len() + Beside::ALL.len()];
        let last = of.clock.read();
        RUNNING.set(Some(Running { of, spent, place, work: Work::Compare, last }));
        IS_ON.set(true);
        Probing(PhantomData)
    }

    /// The time so far of each field, in the order of [`StateProfile::fields`], then that of each
    /// [`Beside`], as its `compare`. The sum is all the time in which the probe ran.
    ///
    /// [`StateProfile::fields`]: super::StateProfile::fields
    #[must_use]
    pub fn places(&self) -> Vec<PlaceTime> {
        let spent = self.0.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.iter().map(|&[compare, shared, own]| PlaceTime { compare, shared, own }).collect()
    }

    /// The time that a mark takes by itself, in nanoseconds.
    #[must_use]
    pub fn mark_ns(&self) -> f64 {
        self.0.mark_ns
    }

    fn calibrate(&self) -> f64 {
        let (marks, times) = CALIBRATION;
        let _running = self.begin();
        let root = Point::root();
        let time = |_| {
            let began = Instant::now();
            for _ in 0..marks {
                std::hint::black_box(root).go(Work::Compare, Some(Step::Field(0)));
            }
            began.elapsed().as_nanos() as f64 / f64::from(marks)
        };
        (0..times).map(time).fold(f64::INFINITY, f64::min)
    }
}

impl fmt::Debug for SyncProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SyncProbe")
    }
}

/// A probe that runs in this thread. Dropping it ends that.
#[derive(Debug)]
pub struct Probing(PhantomData<*const ()>);

impl Drop for Probing {
    fn drop(&mut self) {
        IS_ON.set(false);
        if let Some(mut running) = RUNNING.take() {
            running.go(running.place, running.work);
            let mut all = running.of.spent.lock().unwrap_or_else(PoisonError::into_inner);
            for (sum, more) in all.as_flattened_mut().iter_mut().zip(running.spent.as_flattened()) {
                sum.ns += more.ns;
                sum.marks += more.marks;
            }
        }
    }
}

/// Notes that what follows is beside the walk, if a probe runs in this thread.
#[inline]
pub fn beside(what: Beside) {
    Point::root().beside(what);
}

impl Point {
    /// The root of the state, if a probe runs in this thread.
    #[inline]
    pub(crate) fn root() -> Self {
        Self(IS_ON.get().into())
    }

    /// A number for it; 0 for none.
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// The place of a number.
    pub(crate) fn of_number(number: u32) -> Self {
        Self(number)
    }

    #[inline(always)]
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Notes that what follows is beside the walk.
    #[inline]
    pub(crate) fn beside(self, what: Beside) {
        if !self.is_none() {
            go_beside(what);
        }
    }

    /// Notes that work at this place follows, or a step from it. Returns the place.
    #[cold]
    #[inline(never)]
    pub(crate) fn go(self, work: Work, step: Option<Step>) -> Self {
        RUNNING.with_borrow_mut(|running| {
            let Some(running) = running else { return self };
            let here = (self.0 as usize).saturating_sub(1);
            // What is sent as a unit has no places in it.
            let inside = step.and_then(|step| running.of.tree.inside(here, step));
            let place = inside.unwrap_or(here);
            running.go(place, work);
            Self(place as u32 + 1)
        })
    }
}

#[cold]
#[inline(never)]
fn go_beside(what: Beside) {
    RUNNING.with_borrow_mut(|running| {
        if let Some(running) = running {
            running.go(running.of.tree.places().len() + what as usize, Work::Compare);
        }
    });
}

impl Running {
    fn go(&mut self, place: usize, work: Work) {
        let now = self.of.clock.read();
        let spent = &mut self.spent[self.place][self.work as usize];
        spent.ns += now - self.last;
        spent.marks += 1;
        (self.place, self.work, self.last) = (place, work, now);
    }
}

impl Clock {
    fn read(&self) -> u64 {
        match self {
            Self::Time(began) => began.elapsed().as_nanos() as u64,
            Self::Looks(looks) => looks.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }
}
