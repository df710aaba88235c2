//! What changes in a struct on the way from one schema to another.

use playfield_wire::schema::{Policy, Struct};

/// How the fields of a struct of one schema, the source, become those of another, the target.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// By the source's fields: their positions among the target's. `None` if the target lacks it.
    pub(crate) to: Vec<Option<usize>>,
    /// How many fields the target has.
    fields: usize,
    /// Positions of the target's fields that the source lacks. They are sent empty.
    pub(crate) missing: Vec<usize>,
    pub(crate) has_open: bool,
    pub(crate) has_private: bool,
}

impl Turn {
    /// `None` if both have the same fields at the same positions.
    pub(super) fn new(source: &Struct, target: &Struct) -> Option<Self> {
        if std::ptr::eq(source, target) {
            return None;
        }
        let targets: Vec<_> = target.shown().collect();
        let to: Vec<Option<usize>> = source
            .shown()
            .map(|field| targets.iter().position(|other| other.name == field.name))
            .collect();
        if targets.len() == to.len() && to.iter().enumerate().all(|(at, to)| *to == Some(at)) {
            return None;
        }
        let missing = (0..targets.len()).filter(|at| !to.contains(&Some(*at))).collect();
        let has = |is_open: bool| {
            targets.iter().any(|field| (field.policy == Policy::Everyone) == is_open)
        };
        let (has_open, has_private) = (has(true), has(false));
        Some(Self { to, fields: targets.len(), missing, has_open, has_private })
    }

    /// Appends the target's mask for the fields that the source's marks.
    pub(crate) fn put_mask(&self, mask: u64, out: &mut Vec<u8>) {
        let marked = super::bits(mask).filter_map(|place| self.to[place]);
        let mask = marked.fold(0_u64, |mask, to| mask | 1 << to);
        out.extend_from_slice(&mask.to_le_bytes()[..self.fields.div_ceil(8)]);
    }
}
