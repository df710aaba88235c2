//! The rule of a view by place: who sees what.

use std::cmp::Ordering;

/// A position, with 0 on an axis that a plane does not have.
pub type Spot = [f64; 3];

/// The most entries that a player sees by place, unless `nearest` says otherwise.
pub const NEAREST_DEFAULT: usize = 4_096;

/// The rule that a field's attribute states. For generated code.
///
/// An entry that the viewer saw at the last sync counts as nearer by the hysteresis. The viewer
/// sees the entries of the same group within reach and, if there are more than
/// [`NEAREST`](Self::NEAREST) of them, the nearest of these; of equally near ones, those with the
/// least keys.
pub trait Placing: 'static {
    /// The type of the map's values.
    type Entry;
    /// The type of the viewers' entries.
    type Viewer;
    /// The viewing distance.
    const REACH: Reach;
    /// The additional viewing distance for what a viewer saw before.
    const HYSTERESIS: f64;
    /// The most entries that one viewer sees.
    const NEAREST: usize;

    /// Returns the entry's place. `None`: nowhere, so nobody sees it.
    fn entry(entry: &Self::Entry) -> Option<Spot>;

    /// Returns the viewer's place. `None`: nowhere, so the viewer sees nothing.
    fn viewer(viewer: &Self::Viewer) -> Option<Spot>;

    /// Appends what viewers must equal to see the entry.
    fn entry_group(entry: &Self::Entry, out: &mut Vec<u8>);

    /// Appends the same of the viewer.
    fn viewer_group(viewer: &Self::Viewer, out: &mut Vec<u8>);
}

/// The viewing distance, without hysteresis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reach {
    /// Any distance: only the group counts.
    All,
    /// Up to this distance.
    Radius(f64),
    /// Up to this distance on each axis.
    Box(Spot),
}

/// Distances must be such that their squares are numbers.
const DISTANCES: (f64, f64) = (1e-100, 1e100);

impl Reach {
    /// A radius, which is checked.
    pub const fn radius(radius: f64) -> Self {
        check(radius, "a `radius` must be a number greater than 0");
        Self::Radius(radius)
    }

    /// Half extents on a plane, which are checked.
    pub const fn plane([x, y]: [f64; 2]) -> Self {
        Self::space([x, y, 1.0])
    }

    /// Half extents in space, which are checked.
    pub const fn space([x, y, z]: Spot) -> Self {
        const SAY: &str = "`half_extents` must be numbers greater than 0";
        check(x, SAY);
        check(y, SAY);
        check(z, SAY);
        Self::Box([x, y, z])
    }

    /// The hysteresis, which is checked.
    pub const fn hysteresis(by: f64) -> f64 {
        assert!(
            by >= 0.0 && by <= DISTANCES.1,
            "a `hysteresis` must be a distance of at least 0, as a number"
        );
        by
    }

    /// The cap, which is checked.
    pub const fn nearest(nearest: usize) -> usize {
        assert!(nearest > 0, "`nearest = 0` shows nothing to anyone: write at least 1");
        nearest
    }

    /// Whether both are within reach, `by` farther than stated, and the square of their distance.
    #[inline(always)]
    pub(super) fn sees(self, viewer: &Spot, entry: &Spot, by: f64) -> (bool, f64) {
        let [x, y, z] = [entry[0] - viewer[0], entry[1] - viewer[1], entry[2] - viewer[2]];
        let square = x * x + y * y + z * z;
        let is_near = match self {
            Self::All => true,
            Self::Radius(radius) => square <= (radius + by) * (radius + by),
            // Not `&&`: a branch that can't be predicted costs more than a comparison.
            Self::Box(half) => {
                (x.abs() <= half[0] + by) & (y.abs() <= half[1] + by) & (z.abs() <= half[2] + by)
            }
        };
        (is_near, square)
    }

    /// The most that a viewer and an entry can be apart on each axis.
    pub(super) fn extents(self, by: f64) -> Spot {
        match self {
            Self::All => [f64::INFINITY; 3],
            Self::Radius(radius) => [radius + by; 3],
            Self::Box(half) => half.map(|half| half + by),
        }
    }
}

const fn check(distance: f64, say: &str) {
    assert!(distance >= DISTANCES.0 && distance <= DISTANCES.1, "{}", say);
}

/// Returns the distance of an entry as the cap counts it.
pub(super) fn rank(square: f64, was_seen: bool, hysteresis: f64) -> f64 {
    square.sqrt() - if was_seen { hysteresis } else { 0.0 }
}

/// The order in which the cap takes entries. A tie goes to the lesser key.
pub(super) fn by_rank<K: Ord>(one: f64, two: f64, keys: impl FnOnce() -> (K, K)) -> Ordering {
    one.total_cmp(&two).then_with(|| {
        let (one, two) = keys();
        one.cmp(&two)
    })
}

/// A position, as a function for `near` returns it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a position",
    note = "a position is an array of 2 or 3 numbers (f64, f32, or integers of up to 32 bits), or an Option of one"
)]
pub trait Position {
    /// [`Plane`] or [`Space`].
    type Of;

    /// The position as three numbers. `None` if there is none, or if one is NaN or infinite.
    fn spot(self) -> Option<Spot>;
}

/// Positions with two numbers.
pub struct Plane;

/// Positions with three numbers.
pub struct Space;

impl<C: Coordinate> Position for [C; 2] {
    type Of = Plane;

    #[inline]
    fn spot(self) -> Option<Spot> {
        let [x, y] = self;
        [x, y]
            .map(Coordinate::coordinate)
            .iter()
            .all(|number| number.is_finite())
            .then(|| [x.coordinate(), y.coordinate(), 0.0])
    }
}

impl<C: Coordinate> Position for [C; 3] {
    type Of = Space;

    #[inline]
    fn spot(self) -> Option<Spot> {
        let spot = self.map(Coordinate::coordinate);
        spot.iter().all(|number| number.is_finite()).then_some(spot)
    }
}

impl<P: Position> Position for Option<P> {
    type Of = P::Of;

    #[inline]
    fn spot(self) -> Option<Spot> {
        self?.spot()
    }
}

/// A number of a position.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a coordinate",
    note = "coordinates are f64, f32, and integers of up to 32 bits"
)]
pub trait Coordinate: Copy {
    /// Converts it to the widest of them, exactly.
    fn coordinate(self) -> f64;
}

macro_rules! coordinates {
    ($($number:ty)*) => {$(
        impl Coordinate for $number {
            #[inline]
            fn coordinate(self) -> f64 {
                self.into()
            }
        }
    )*};
}

coordinates! { f32 f64 i8 i16 i32 u8 u16 u32 }

/// A position as three numbers. For generated code.
#[inline]
pub fn spot(position: impl Position) -> Option<Spot> {
    position.spot()
}

/// A field of a position. For generated code.
#[inline]
pub fn coordinate(field: &impl Coordinate) -> f64 {
    field.coordinate()
}

/// Requires positions in the same space, of an entry and of a viewer. For generated code, which
/// never calls it.
pub fn same_axes<P: Position, Q: Position<Of = P::Of>>(_: P, _: Q) {}

/// Requires two values of the same type. For generated code, which never calls it.
pub fn same_type<T>(_: &T, _: &T) {}
