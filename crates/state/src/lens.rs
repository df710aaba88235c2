//! The lens on a shadow: its viewer, the part, and the version since which changes count.

use playfield_wire::TreeFormat;
use serde_json::Value;

use crate::PlayerId;
use crate::profile::{Beside, Point, Step as PlaceStep, Work};

/// The parts of a body. See `docs/state.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The part that everyone sees.
    Shared,
    /// The part that only the viewer sees, reached through what everyone sees.
    Owned,
    /// Both, inside something that only the viewer sees.
    All,
}

/// The way a shadow is looked at while a body is written.
#[derive(Clone, Copy, Debug)]
pub struct Lens {
    /// The part that is written.
    pub part: Part,
    /// For whom. [`Part::Shared`] ignores it.
    pub viewer: PlayerId,
    /// The owner of this place: the key that leads here in the nearest map keyed by player.
    pub owner: Option<PlayerId>,
    /// Only what changed after this version; 0 = everything.
    pub since: u64,
    /// That version is so old that keys removed before it are forgotten.
    pub stale: bool,
    /// The value came into view, or may have. The slots that the viewer sees must not reveal its
    /// history.
    pub fresh: bool,
    /// The place, for a probe.
    pub point: Point,
}

/// For how many versions a removed key is remembered if only one player learns of it. This must not
/// be a number of keys, which would reveal to that player how many others were removed.
pub(crate) const GONE_VERSIONS: u64 = 1 << 14;

impl Lens {
    /// A lens on what everyone sees (which ignores `viewer`), what only `viewer` sees, or both, at
    /// version `now`.
    pub fn new(part: Part, viewer: PlayerId, since: u64, now: u64) -> Self {
        let (stale, point) = (Self::forgotten(since, now), Point::default());
        Self { part, viewer, owner: None, since, stale, fresh: false, point }
    }

    /// The same at a field of the struct that is here.
    #[inline]
    #[must_use]
    pub fn field(self, field: usize) -> Self {
        self.inside(PlaceStep::Field(field))
    }

    /// The same at the entries of the map, or the elements of the list or array, that is here.
    #[inline]
    #[must_use]
    pub(crate) fn each(self) -> Self {
        self.inside(PlaceStep::Elements)
    }

    /// Notes for a probe that work here goes on after that on something inside.
    #[inline]
    pub(crate) fn here(self) {
        if !self.point.is_none() {
            self.point.go(self.work(), None);
        }
    }

    #[inline(always)]
    fn inside(self, step: PlaceStep) -> Self {
        match self.point.is_none() {
            true => self,
            false => Self { point: self.point.go(self.work(), Some(step)), ..self },
        }
    }

    fn work(self) -> Work {
        if self.part == Part::Shared { Work::Shared } else { Work::Own }
    }

    /// The same, inside something with a view.
    #[must_use]
    pub fn in_view(self) -> Self {
        Self { part: Part::All, fresh: true, ..self }
    }

    /// Returns whether a version is so old that what was removed before it is no longer sent to
    /// anyone.
    pub(crate) fn forgotten(version: u64, now: u64) -> bool {
        version.saturating_add(GONE_VERSIONS) < now
    }

    /// The same, for something that was created at version `defined`. For a copy of an earlier
    /// version, all of it is new.
    #[must_use]
    pub fn of(self, defined: u64) -> Self {
        if defined > self.since { Self { since: 0, ..self } } else { self }
    }

    /// The same, one level down, where `owner` is the key if the map is keyed by player.
    #[must_use]
    pub fn under(self, owner: Option<PlayerId>) -> Self {
        if owner.is_some() { Self { owner, ..self } } else { self }
    }

    /// Returns whether to look at every place that may have been the viewer's entry, so that the
    /// actions of others there have no influence.
    #[inline]
    pub fn recalls_all(self) -> bool {
        self.stale && self.part != Part::Shared
    }

    /// Through an `owner` field: all of it, if this place is the viewer's.
    pub fn owner_field(self) -> Option<Self> {
        (self.part != Part::Shared && self.owner == Some(self.viewer))
            .then_some(Self { part: Part::All, ..self })
    }
}

/// A version in four bytes, since shadows hold many of them. Version 0 = never.
///
/// It counts from the version at which the [`Tracker`](crate::Tracker) bound its state. The tracker
/// binds again before four bytes overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(u32);

/// The last version that fits.
pub(crate) const STAMP_MAX: u64 = u32::MAX as u64;

impl Stamp {
    /// That of nothing.
    pub(crate) const NEVER: Self = Self(0);

    /// Of a version up to [`STAMP_MAX`].
    #[inline]
    pub fn new(version: u64) -> Self {
        debug_assert!(version <= STAMP_MAX, "version {version} is past what a shadow can keep");
        Self(version as u32)
    }

    /// The version.
    #[inline]
    pub fn version(self) -> u64 {
        self.0.into()
    }
}

/// When something last changed, by who sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    shared: Stamp,
    owned: Stamp,
}

impl Stamps {
    /// The stamps of nothing.
    pub(crate) const NEVER: Self = Self { shared: Stamp::NEVER, owned: Stamp::NEVER };

    /// Everything new at `now`.
    pub fn new(now: u64, has_owned: bool) -> Self {
        let now = Stamp::new(now);
        Self { shared: now, owned: if has_owned { now } else { Stamp::default() } }
    }

    /// Of something that everyone sees.
    #[inline]
    pub fn of_shared(shared: Stamp) -> Self {
        Self { shared, owned: Stamp::default() }
    }

    /// The version of the last change that everyone sees.
    #[inline]
    pub fn shared(self) -> u64 {
        self.shared.version()
    }

    /// The version of the last change of any kind.
    #[inline]
    pub fn newest(self) -> u64 {
        self.shared.max(self.owned).version()
    }

    /// Returns whether there may be something to send to this lens.
    #[inline]
    pub fn after(self, lens: Lens) -> bool {
        let newest = match lens.part {
            Part::Shared => self.shared,
            Part::Owned => self.owned,
            Part::All => self.shared.max(self.owned),
        };
        newest.version() > lens.since || (lens.recalls_all() && self.owned > Stamp::default())
    }

    /// Notes a change.
    #[inline]
    pub fn note(&mut self, changed: Changed, now: u64) {
        if changed.shared {
            self.shared = Stamp::new(now);
        }
        if changed.owned {
            self.owned = Stamp::new(now);
        }
    }
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Something that everyone sees.
    pub shared: bool,
    /// Something that only an owner sees.
    pub owned: bool,
}

impl Changed {
    /// Nothing.
    pub const NO: Self = Self { shared: false, owned: false };

    /// Everything, as when a value appears or is removed.
    pub fn whole(has_owned: bool) -> Self {
        Self { shared: true, owned: has_owned }
    }

    /// Anything at all.
    #[inline]
    pub fn any(self) -> bool {
        self.shared || self.owned
    }

    /// The same, seen through an `owner` field: only the owner sees any change.
    #[inline]
    #[must_use]
    pub fn to_owner(self) -> Self {
        Self { shared: false, owned: self.any() }
    }
}

impl std::ops::BitOrAssign for Changed {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.shared |= other.shared;
        self.owned |= other.owned;
    }
}

/// Whether collections are compared only where they were touched, or everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracking {
    /// Only what was borrowed mutably since the last sync. The result is the same, at a cost that
    /// depends on the change.
    #[default]
    On,
    /// Everything, every time. Tests compare this with the above.
    Off,
}

/// One comparison of the whole tree.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The version that this sync makes.
    pub now: u64,
    /// Twice the place for a probe, and 1 without tracking: one number, so that a step is passed in
    /// registers.
    mode: u32,
}

impl Step {
    pub(crate) fn new(now: u64, tracking: Tracking, point: Point) -> Self {
        Self { now, mode: point.number() << 1 | u32::from(tracking == Tracking::Off) }
    }

    /// Returns the tracking in use.
    #[inline]
    pub(crate) fn tracking(self) -> Tracking {
        if self.mode & 1 == 0 { Tracking::On } else { Tracking::Off }
    }

    /// The same if it is one with tracking and without a probe, as nearly all are. Then the
    /// compiler knows that no field has to ask.
    #[inline(always)]
    pub(crate) fn plain(self) -> Option<Self> {
        (self.mode == 0).then_some(Self { mode: 0, ..self })
    }

    /// The same at a field of the struct that is here.
    #[inline(always)]
    #[must_use]
    pub fn field(self, field: usize) -> Self {
        self.inside(PlaceStep::Field(field))
    }

    /// The same at the entries of the map, or the elements of the list or array, that is here.
    #[inline]
    #[must_use]
    pub(crate) fn each(self) -> Self {
        self.inside(PlaceStep::Elements)
    }

    /// Notes for a probe that work here goes on after that on something inside.
    #[inline]
    pub(crate) fn here(self) {
        if self.mode > 1 {
            self.point().go(Work::Compare, None);
        }
    }

    /// Notes for a probe that what follows is beside the walk.
    #[inline]
    pub(crate) fn beside(self, what: Beside) {
        self.point().beside(what);
    }

    fn point(self) -> Point {
        Point::of_number(self.mode >> 1)
    }

    #[inline(always)]
    fn inside(self, step: PlaceStep) -> Self {
        if self.mode > 1 { self.go(step) } else { self }
    }

    #[cold]
    #[inline(never)]
    fn go(self, step: PlaceStep) -> Self {
        Self::new(self.now, self.tracking(), self.point().go(Work::Compare, Some(step)))
    }
}

/// The way the live state is looked at when a view of it is made.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// The viewer; `None` sees what everyone sees.
    pub viewer: Option<PlayerId>,
    /// The owner of this place in the tree.
    pub owner: Option<PlayerId>,
    /// The format from which a copy would be read. Numbers and bytes differ between the two.
    pub format: TreeFormat,
    /// The part of this place that the viewer saw before, for views with hysteresis.
    pub before: Option<&'a Value>,
    /// Whether it is the copy of a viewer, in which all that it holds is seen, and masked already.
    pub is_copy: bool,
}

impl Sight<'_> {
    /// Returns whether the viewer owns this place.
    pub fn owns(self) -> bool {
        self.viewer.is_some() && self.viewer == self.owner
    }

    /// One level down; see [`Lens::under`].
    #[must_use]
    pub fn under(self, owner: Option<PlayerId>) -> Self {
        if owner.is_some() { Self { owner, ..self } } else { self }
    }

    /// The same at a member or an element: only what was seen before depends on it.
    #[must_use]
    pub fn at(self, step: impl serde_json::value::Index) -> Self {
        Self { before: self.before.and_then(|before| before.get(step)), ..self }
    }

    /// Returns whether the viewer saw a member here before.
    pub fn saw(self, name: &str) -> bool {
        self.before.is_some_and(|before| before.get(name).is_some())
    }
}
