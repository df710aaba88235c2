//! What has to be done with the values of one type so that they become those of another.

use playfield_wire::schema::{Enum, Policy, Struct, Type};

/// How values of a type are read from the one side, the source, and written for the other, the
/// target.
#[derive(Debug)]
pub(super) enum Plan {
    Scalar(Scalar),
    Option(Box<Plan>),
    List(Box<Plan>),
    Array(Box<Plan>, usize),
    Map(Box<MapPlan>),
    Struct(Box<StructPlan>),
    /// By the source's numbers: the target's number, and the fields.
    Enum(Vec<(u64, StructPlan)>),
}

/// A value that is passed on as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Bool,
    Byte,
    /// An integer, a player or a number of steps.
    Varint,
    F32,
    F64,
    Text,
    Bytes,
    Unit,
}

/// A map, or a set, which is a map to nothing.
#[derive(Debug)]
pub(super) struct MapPlan {
    pub(super) key: Scalar,
    pub(super) value: Option<Plan>,
    /// Its entries have slots; those of a map that travels whole don't.
    pub(super) has_slots: bool,
}

/// A struct, or a variant of an enum.
#[derive(Debug)]
pub(super) struct StructPlan {
    /// The fields that all see who see the struct, in the source's order.
    pub(super) open: Vec<FieldPlan>,
    /// The others.
    pub(super) private: Vec<FieldPlan>,
    /// How many fields the source has.
    pub(super) source_fields: usize,
    /// How many fields the target has.
    pub(super) target_fields: usize,
    pub(super) target_has_open: bool,
    pub(super) target_has_private: bool,
    /// Fields of the target that the source lacks. They are sent as nothing.
    pub(super) missing: Vec<usize>,
    /// The target has them in another order.
    pub(super) reorders: bool,
    /// Without open fields it is one byte 0.
    pub(super) pads: bool,
}

#[derive(Debug)]
pub(super) struct FieldPlan {
    /// Its place among the source's fields.
    pub(super) from: usize,
    /// Its place among the target's; `None` if the target lacks it.
    pub(super) to: Option<usize>,
    pub(super) form: Form,
    pub(super) plan: Plan,
}

/// How a patch of a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As that of its value.
    Value,
    /// As one's own entry of a map that is keyed by player.
    OwnEntry,
    /// As a map of which a function says who sees which entry.
    ViewOfEntries,
    /// As a value of which a function says who sees it.
    ViewOfWhole,
}

impl Plan {
    /// Of what is kept in step.
    pub(super) fn of_state(source: &Type, target: &Type) -> Self {
        Self::new(source, target, true)
    }

    /// Of what travels whole.
    pub(super) fn of_value(source: &Type, target: &Type) -> Self {
        Self::new(source, target, false)
    }

    /// That the two fit has been checked.
    fn new(source: &Type, target: &Type, in_step: bool) -> Self {
        let boxed = |source, target| Box::new(Self::new(source, target, in_step));
        match (source, target) {
            (Type::Option(source), Type::Option(target)) => Self::Option(boxed(source, target)),
            (Type::List(source), Type::List(target)) => Self::List(boxed(source, target)),
            (Type::Array(source, length), Type::Array(target, _)) => {
                Self::Array(boxed(source, target), *length)
            }
            (Type::Map(key, source), Type::Map(_, target)) => Self::Map(Box::new(MapPlan {
                key: Scalar::of(key),
                value: Some(Self::new(source, target, in_step)),
                has_slots: in_step,
            })),
            (Type::Set(key), _) => Self::Map(Box::new(MapPlan {
                key: Scalar::of(key),
                value: None,
                has_slots: in_step,
            })),
            (Type::Struct(source), Type::Struct(target)) => {
                Self::Struct(Box::new(StructPlan::new(source, target, in_step, true)))
            }
            (Type::Enum(source), Type::Enum(target)) => Self::of_variants(source, target),
            (source, _) => Self::Scalar(Scalar::of(source)),
        }
    }

    /// An enum is compared and sent whole, wherever it stands.
    fn of_variants(source: &Enum, target: &Enum) -> Self {
        let variant = |variant: &Struct| {
            let at = target.variants.iter().position(|other| other.name == variant.name);
            let number = at.expect("the two were found to fit");
            (number as u64, StructPlan::new(variant, &target.variants[number], false, false))
        };
        Self::Enum(source.variants.iter().map(variant).collect())
    }
}

impl Scalar {
    fn of(of: &Type) -> Self {
        match of {
            Type::Bool => Self::Bool,
            Type::U8 | Type::I8 => Self::Byte,
            Type::F32 => Self::F32,
            Type::F64 => Self::F64,
            Type::Text => Self::Text,
            Type::Bytes => Self::Bytes,
            Type::Unit => Self::Unit,
            Type::U16
            | Type::U32
            | Type::U64
            | Type::I16
            | Type::I32
            | Type::I64
            | Type::Player
            | Type::Quantized(_) => Self::Varint,
            Type::Option(_)
            | Type::List(_)
            | Type::Array(..)
            | Type::Map(..)
            | Type::Set(_)
            | Type::Struct(_)
            | Type::Enum(_) => unreachable!("the two were found to fit, and {of:?} is no key"),
        }
    }
}

impl StructPlan {
    fn new(source: &Struct, target: &Struct, in_step: bool, pads: bool) -> Self {
        let targets: Vec<_> = target.shown().collect();
        let (mut open, mut private) = (Vec::new(), Vec::new());
        for (from, field) in source.shown().enumerate() {
            let to = targets.iter().position(|other| other.name == field.name);
            // What the target lacks is read as what it is, and left out.
            let of_target = to.map_or(&field.of, |to| &targets[to].of);
            let form = match (field.policy, &field.of) {
                (Policy::Owner, Type::Map(key, _) | Type::Set(key)) if **key == Type::Player => {
                    Form::OwnEntry
                }
                (Policy::View, Type::Map(..)) => Form::ViewOfEntries,
                (Policy::View, _) => Form::ViewOfWhole,
                _ => Form::Value,
            };
            let plan = Plan::new(&field.of, of_target, in_step);
            let list = if field.policy == Policy::Everyone { &mut open } else { &mut private };
            list.push(FieldPlan { from, to, form, plan });
        }
        let is_missing = |to: &usize| source.shown().all(|field| field.name != targets[*to].name);
        let missing: Vec<usize> = (0..targets.len()).filter(is_missing).collect();
        let in_order =
            |fields: &[FieldPlan]| fields.iter().filter_map(|field| field.to).is_sorted();
        Self {
            reorders: !missing.is_empty() || !in_order(&open) || !in_order(&private),
            source_fields: source.shown().count(),
            target_fields: targets.len(),
            target_has_open: targets.iter().any(|field| field.policy == Policy::Everyone),
            target_has_private: targets.iter().any(|field| field.policy != Policy::Everyone),
            open,
            private,
            missing,
            pads,
        }
    }
    /// The target's mask for the fields that the source's marks.
    pub(super) fn target_mask(&self, mask: &[u8]) -> Vec<u8> {
        let mut target = vec![0; self.target_fields.div_ceil(8)];
        for field in
            self.open.iter().chain(&self.private).filter(|field| is_marked(mask, field.from))
        {
            if let Some(to) = field.to {
                target[to / 8] |= 1 << (to % 8);
            }
        }
        target
    }
}

/// Whether a mask marks the field or the element at a place.
pub(super) fn is_marked(mask: &[u8], place: usize) -> bool {
    mask[place / 8] >> (place % 8) & 1 == 1
}
