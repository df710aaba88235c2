//! Options.

use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::tree::TreeWriter;
use playfield_wire::{DecodeError, writer};
use serde_json::Value;

use crate::change::Watch;
use crate::lens::{Changed, Lens, Sight, Stamps, Step, Tracking};
use crate::ops::Ops;
use crate::patch_kind::read_kind;
use crate::slots::{Bind, New};
use crate::state::{Compare, Describe, Read, Write};
use crate::{Part, PlayerId, State, digest};

/// The shadow of an option.
#[derive(Debug)]
pub struct OptionShadow<S> {
    some: Option<S>,
    /// The version at which it last became `Some` or `None`.
    defined: u64,
    stamps: Stamps,
}

/// The first byte of an option's patch.
#[derive(Clone, Copy)]
pub(crate) enum OptionPatch {
    Nothing = 0,
    Whole = 1,
    Patch = 2,
}

impl OptionPatch {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        read_kind(
            reader,
            &[Self::Nothing, Self::Whole, Self::Patch],
            "an option's patch begins with 0, 1 or 2",
        )
    }
}

/// In a tree, `null` or the value, so the value must not be `null` itself.
impl<T: State> Describe for Option<T> {
    const UNOWNED: Option<&'static str> = {
        assert!(
            !T::NULLABLE,
            "JSON can't represent an Option in an Option: use one Option, or an enum"
        );
        T::UNOWNED
    };
    const HAS_OWNED: bool = T::HAS_OWNED;
    const HYSTERESIS: bool = T::HYSTERESIS;
    const PLACED: bool = T::PLACED;
    const NESTED_OWNERS: bool = T::NESTED_OWNERS;
    const NULLABLE: bool = true;
    const PLAIN: bool = T::PLAIN;
    const REPORTS: bool = T::REPORTS;

    fn shape() -> Type {
        Type::Option(Box::new(T::shape()))
    }
}

impl<T: State> Compare for Option<T> {
    type Shadow = OptionShadow<T::Shadow>;

    fn bind<B: Bind>(&mut self, bind: B) -> Self::Shadow {
        let (some, now) = (self.as_mut().map(|value| value.bind(bind)), bind.now());
        OptionShadow { some, defined: now, stamps: Stamps::new(now, T::HAS_OWNED) }
    }

    fn put_slots(shadow: &Self::Shadow, out: &mut Vec<u8>) {
        if let Some(some) = &shadow.some {
            T::put_slots(some, out);
        }
    }

    fn diff(&mut self, shadow: &mut Self::Shadow, step: Step) -> Changed {
        let changed = match (self, &mut shadow.some) {
            (Some(value), Some(some)) => value.diff(some, step),
            (None, None) => Changed::NO,
            (value, some) => {
                *some = value.as_mut().map(|value| value.bind(New(step.now)));
                shadow.defined = step.now;
                Changed::whole(T::HAS_OWNED)
            }
        };
        shadow.stamps.note(changed, step.now);
        changed
    }

    fn same_shared(&self, shadow: &Self::Shadow, tracking: Tracking) -> bool {
        match (self, &shadow.some) {
            (Some(value), Some(some)) => value.same_shared(some, tracking),
            (None, None) => true,
            _ => false,
        }
    }

    fn stamps(shadow: &Self::Shadow) -> Stamps {
        shadow.stamps
    }

    fn left_out(shadow: &Self::Shadow, viewer: PlayerId) -> u64 {
        shadow.some.as_ref().map_or(0, |value| T::left_out(value, viewer))
    }

    fn digest(&self, part: Part) -> u64 {
        digest::of_option(self.as_ref().map(|value| value.digest(part)))
    }

    fn view(&self, sight: Sight<'_>) -> Value {
        self.as_ref().map_or(Value::Null, |value| value.view(sight))
    }
}

impl<T: State> Write for Option<T> {
    fn write_full(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) {
        writer::put_bool(out, shadow.some.is_some());
        if let Some(some) = &shadow.some {
            T::write_full(some, lens, out);
        }
    }

    fn write_patch(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) -> bool {
        let Some(some) = &shadow.some else {
            // The shared part already states that it is absent.
            out.push(OptionPatch::Nothing as u8);
            return lens.part != Part::Owned && shadow.defined > lens.since;
        };
        if lens.part != Part::Owned && shadow.defined > lens.since {
            out.push(OptionPatch::Whole as u8);
            T::write_full(some, lens.of(shadow.defined), out);
            return true;
        }
        out.push(OptionPatch::Patch as u8);
        let lens = lens.of(shadow.defined);
        T::stamps(some).after(lens) && T::write_patch(some, lens, out)
    }

    fn tree_full(shadow: &Self::Shadow, lens: Lens, out: TreeWriter<'_>) {
        match &shadow.some {
            Some(some) => T::tree_full(some, lens, out),
            None => out.null(),
        }
    }

    fn tree_patch(shadow: &Self::Shadow, lens: Lens, ops: &mut Ops<'_, '_>) {
        match &shadow.some {
            Some(some) if lens.part == Part::Owned || shadow.defined <= lens.since => {
                let lens = lens.of(shadow.defined);
                if T::stamps(some).after(lens) {
                    T::tree_patch(some, lens, ops);
                }
            }
            None if lens.part == Part::Owned || shadow.defined <= lens.since => {}
            _ => ops.set(|out| Self::tree_full(shadow, lens.of(shadow.defined), out)),
        }
    }

    fn shadow_digest(shadow: &Self::Shadow, lens: Lens) -> u64 {
        let Some(some) = &shadow.some else { return 0 };
        let there = if lens.part == Part::Owned { 0 } else { digest::PRESENT };
        T::shadow_digest(some, lens).wrapping_mul(digest::weight(0)).wrapping_add(there)
    }
}

impl<T: State> Read for Option<T> {
    fn read_full(reader: &mut Reader<'_>, part: Part) -> Result<Self, DecodeError> {
        reader.bool()?.then(|| T::read_full(reader, part)).transpose()
    }

    fn read_patch(
        &mut self,
        reader: &mut Reader<'_>,
        part: Part,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        let at = reader.offset();
        match OptionPatch::read(reader)? {
            OptionPatch::Nothing => watch.replace(self, |option| {
                *option = None;
                Ok(())
            })?,
            OptionPatch::Whole => watch.replace(self, |option| {
                *option = Some(T::read_full(reader, part)?);
                Ok(())
            })?,
            OptionPatch::Patch => match self {
                Some(value) => value.read_patch(reader, part, watch)?,
                None => {
                    return Err(DecodeError::new(
                        at,
                        "an option was changed, but it is None in this copy",
                    ));
                }
            },
        }
        Ok(())
    }
}
