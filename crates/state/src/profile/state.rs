//! Bytes of snapshots and patches, by field.

use std::collections::BTreeMap;
use std::sync::Arc;

use playfield_wire::DecodeError;
use playfield_wire::schema::Type;

use super::tally::{Counts, Tally, Totals};
use super::tree::{Place, Tree};
use crate::walk::{Shape, ShapeError};
use crate::{DynamicMirror, PlayerId};

/// The policy, in a saving.
const OWNER: &str = "owner";

/// Counts the bytes of a room's snapshots and patches in `packed` by field, and what other types
/// would save.
///
/// The profile reads bodies as clients do, so it keeps a copy of the state for each player whose
/// bodies it is given. The bytes of all fields add up to the length of the bodies.
///
/// ```
/// use playfield_state::{Format, Map, PlayerId, State, StateProfile, Tracker, Tracking};
///
/// #[derive(State, Default)]
/// struct Arena {
///     players: Map<PlayerId, Tank>,
/// }
///
/// #[derive(State, Default)]
/// struct Tank {
///     x: f64,
///     hp: u8,
/// }
///
/// let ann = PlayerId(1);
/// let mut arena = Arena::default();
/// let mut tracker = Tracker::new(&mut arena, Tracking::On);
/// let mut profile = StateProfile::new(&Arena::schema())?;
/// let mut body = Vec::new();
/// tracker.snapshot(ann, Format::Packed, &mut body);
/// profile.snapshot(ann, &body)?;
///
/// arena.players.insert(ann, Tank { x: 1.25, hp: 100 });
/// tracker.sync(&mut arena);
/// body.clear();
/// tracker.patch(ann, 1, Format::Packed, &mut body);
/// profile.patch(ann, &body)?;
///
/// let fields = profile.fields();
/// let x = fields.iter().find(|field| field.path == "players.*.x").unwrap();
/// assert_eq!((x.of.as_str(), x.patches.writes, x.patches.shared), ("f64", 1, 8));
/// let hundredths = x.savings.iter().find(|saving| saving.to == "quantized 0.01").unwrap();
/// assert_eq!(hundredths.patches, 6);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StateProfile {
    /// The copies have its shape.
    empty: DynamicMirror,
    tree: Tree,
    copies: BTreeMap<PlayerId, DynamicMirror>,
    snapshots: Totals,
    patches: Totals,
    /// Counts of the body that is being read.
    body: Totals,
}

/// The cost of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProfile {
    /// The names on the way from the root, with dots between them; `*` is any key or index. Empty
    /// for the root.
    ///
    /// What belongs to no field in a struct, a map or a list counts for itself: masks, counts,
    /// slots, keys and indices.
    pub path: String,
    /// Its type, for people: `f64`, `quantized 0.01`, `map`, the name of a struct or of an enum.
    pub of: String,
    /// In snapshots.
    pub snapshots: FieldCounts,
    /// In patches.
    pub patches: FieldCounts,
    /// Savings by other types, if they can hold all values that were seen, and by the policy
    /// `owner`. The most in patches comes first.
    pub savings: Vec<Saving>,
}

/// The writes and bytes of a field, without those of the fields in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldCounts {
    /// The number of values sent, in whole or in part.
    pub writes: u64,
    /// Bytes that are the same for all players to whom the same sync is sent.
    pub shared: u64,
    /// Bytes that the policies `owner` and `view` have written for one player.
    pub own: u64,
}

impl FieldCounts {
    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shared + self.own
    }
}

/// The bytes that another type or policy would save.
///
/// For a type, the values that were sent are encoded in it, alone or in the same columns. That a
/// quantized number is not sent at all where it stays on its step comes on top.
///
/// For the policy `owner`, these are the bytes of the field, and of those in it, in the entries of
/// other players. What an owner's part takes in addition is not subtracted: some bytes for each
/// player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saving {
    /// The type, such as `f32`, `u8` or `quantized 0.01`; or `owner`, the policy.
    pub to: String,
    /// Bytes saved in snapshots; negative if it takes more.
    pub snapshots: i64,
    /// Bytes saved in patches.
    pub patches: i64,
}

impl StateProfile {
    /// Creates an empty profile of a state of this type.
    ///
    /// # Errors
    /// If no state can have this type.
    pub fn new(of: &Type) -> Result<Self, ShapeError> {
        let shape = Arc::new(Shape::root(of)?);
        let tree = Tree::new(&shape);
        let (snapshots, patches) = (Totals::new(&tree), Totals::new(&tree));
        let body = Totals::new(&tree);
        let empty = DynamicMirror::turning(shape, PlayerId(0));
        Ok(Self { empty, tree, copies: BTreeMap::new(), snapshots, patches, body })
    }

    /// Counts the body of a snapshot for a player.
    ///
    /// # Errors
    /// If the body doesn't match the schema. It is not counted, and the player's copy is unchanged.
    pub fn snapshot(&mut self, viewer: PlayerId, body: &[u8]) -> Result<(), DecodeError> {
        let copy = self.copies.entry(viewer).or_insert_with(|| self.empty.for_viewer(viewer));
        let read = copy.count_snapshot(body, Tally::new(body, &self.tree, &mut self.body));
        match read {
            Ok(()) => self.snapshots.take(&mut self.body),
            Err(_) => self.body.discard(),
        }
        read
    }

    /// Counts the body of a patch for a player. The patch must start at the version of the last
    /// body for this player.
    ///
    /// # Errors
    /// If the body doesn't match the schema or the player's copy. It is not counted, and the player
    /// needs a snapshot first.
    pub fn patch(&mut self, viewer: PlayerId, body: &[u8]) -> Result<(), DecodeError> {
        let copy = self.copies.entry(viewer).or_insert_with(|| self.empty.for_viewer(viewer));
        let read = copy.count_patch(body, Tally::new(body, &self.tree, &mut self.body));
        match read {
            Ok(()) => self.patches.take(&mut self.body),
            Err(_) => self.body.discard(),
        }
        read
    }

    /// Applies a patch to the copy of a player without counting it, where not all patches are to be
    /// counted.
    ///
    /// # Errors
    /// As [`patch`](Self::patch).
    pub fn skip_patch(&mut self, viewer: PlayerId, body: &[u8]) -> Result<(), DecodeError> {
        let copy = self.copies.entry(viewer).or_insert_with(|| self.empty.for_viewer(viewer));
        copy.patch(body)
    }

    /// Drops the copy of a player who has left. What was counted stays.
    pub fn forget(&mut self, viewer: PlayerId) {
        self.copies.remove(&viewer);
    }

    /// The bodies and bytes of all snapshots.
    #[must_use]
    pub fn snapshots(&self) -> FieldCounts {
        self.snapshots.sum()
    }

    /// The bodies and bytes of all patches.
    #[must_use]
    pub fn patches(&self) -> FieldCounts {
        self.patches.sum()
    }

    /// The bytes of all patches by field, in the order of [`fields`](Self::fields).
    #[must_use]
    pub fn patches_by_field(&self) -> Vec<u64> {
        self.patches.places.iter().map(|counts| counts.shared + counts.own).collect()
    }

    /// All fields, in the order of the schema: each before those in it.
    #[must_use]
    pub fn fields(&self) -> Vec<FieldProfile> {
        let counts = self.snapshots.places.iter().zip(&self.patches.places);
        let fields = self.tree.places().iter().zip(counts);
        let field = |(place, (snapshots, patches)): (&Place, (&Counts, &Counts))| {
            let owner = place.owned.map(|owned| Saving {
                to: OWNER.to_owned(),
                snapshots: self.snapshots.of_others(owned, &self.tree),
                patches: self.patches.of_others(owned, &self.tree),
            });
            let savings = place.alternatives.iter().enumerate().filter_map(|(at, of)| {
                Some(Saving {
                    to: of.to_string(),
                    snapshots: snapshots.saved(at)?,
                    patches: patches.saved(at)?,
                })
            });
            let is_worth = |saving: &Saving| saving.patches > 0 || saving.snapshots > 0;
            let mut savings: Vec<_> = savings.chain(owner).filter(is_worth).collect();
            savings.sort_by_key(|saving| -saving.patches);
            FieldProfile {
                path: place.path.clone(),
                of: place.of.clone(),
                snapshots: snapshots.into(),
                patches: patches.into(),
                savings,
            }
        };
        fields.map(field).collect()
    }
}

impl From<&Counts> for FieldCounts {
    fn from(&Counts { writes, shared, own, .. }: &Counts) -> Self {
        Self { writes, shared, own }
    }
}

impl Counts {
    /// The bytes that an alternative saves, if it can hold all values.
    fn saved(&self, alternative: usize) -> Option<i64> {
        let bytes = self.alternatives[alternative]?;
        Some(self.numbers.cast_signed() - bytes.cast_signed())
    }
}

impl Totals {
    /// The bytes that everyone is sent of a place and those in it, as far as they are in entries of
    /// other players. A column has no bytes of one entry, so each write counts the same.
    fn of_others(&self, place: usize, tree: &Tree) -> i64 {
        let Counts { writes_shared: all, writes_of_others: others, .. } = self.places[place];
        let inside = place..tree.places()[place].end;
        let shared: u64 = self.places[inside].iter().map(|counts| counts.shared).sum();
        (shared as f64 * others as f64 / all.max(1) as f64).round() as i64
    }

    /// The counts of whole bodies.
    fn sum(&self) -> FieldCounts {
        let bytes = |of: fn(&Counts) -> u64| self.places.iter().map(of).sum();
        FieldCounts {
            writes: self.places[0].writes,
            shared: bytes(|counts| counts.shared),
            own: bytes(|counts| counts.own),
        }
    }
}
