//! Facts that a shadow has beside the state: which slots of maps, and of views, stand for which
//! keys. Copies know these slots, so a shadow that is made again in another process has to give the
//! same.
//!
//! First comes the fingerprint of what players see, in 8 bytes, little endian: in a build where
//! that is another, the rest says nothing. It is in the order of the state: for each map a byte
//! that is 0 if its entries have the slots from 0 on in the order of their keys, or 1 and then the
//! slot of each entry in that order; for each view, what each viewer sees (`map/viewed/slots.rs`).

use std::any::TypeId;
use std::cell::RefCell;
use std::collections::BTreeMap;

use playfield_wire::reader::Reader;
use playfield_wire::schema::{RoomSchema, Type, fingerprint};
use playfield_wire::{DecodeError, writer};

use crate::State;
use crate::map::MAP_SLOTS_MAX;

/// A way to make a shadow. For generated code.
///
/// Implementations are type parameters, so that shadows of new values, at each sync, pay nothing
/// for those that are made again.
pub trait Bind: Copy {
    /// The version at which everything is stamped.
    fn now(self) -> u64;

    /// Reads what is known of the place at hand; `None` if nothing is.
    fn known<T>(
        self,
        read: impl FnOnce(&mut Reader<'_>, &mut Vacancies) -> Result<T, DecodeError>,
    ) -> Option<T> {
        let _ = read;
        None
    }
}

/// Makes a shadow of a new value, at this version.
#[derive(Clone, Copy, Debug)]
pub struct New(pub u64);

impl Bind for New {
    #[inline(always)]
    fn now(self) -> u64 {
        self.0
    }
}

/// Makes a shadow again, with the slots that it had.
pub(crate) struct Again<'a>(RefCell<Source<'a>>);

struct Source<'a> {
    reader: Reader<'a>,
    vacancies: Vacancies,
    error: Option<DecodeError>,
}

/// The number of vacant slots that may still be read. A few bytes can name a slot far out, and each
/// vacant slot before it takes memory.
pub struct Vacancies(usize);

impl Vacancies {
    pub(crate) fn take(&mut self, vacant: usize, at: usize) -> Result<(), DecodeError> {
        let left = self.0.checked_sub(vacant).ok_or_else(|| {
            let text = format!("its maps have more than {MAP_SLOTS_MAX} vacant slots");
            DecodeError::new(at, text)
        })?;
        self.0 = left;
        Ok(())
    }
}

impl<'a> Again<'a> {
    pub(crate) fn new(reader: Reader<'a>) -> Self {
        let vacancies = Vacancies(MAP_SLOTS_MAX);
        Self(RefCell::new(Source { reader, vacancies, error: None }))
    }

    /// Returns whether all was read, and fitted.
    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        let Source { reader, error, .. } = self.0.into_inner();
        error.map_or_else(|| reader.finish(), Err)
    }
}

impl Bind for &Again<'_> {
    fn now(self) -> u64 {
        1
    }

    fn known<T>(
        self,
        read: impl FnOnce(&mut Reader<'_>, &mut Vacancies) -> Result<T, DecodeError>,
    ) -> Option<T> {
        let Source { reader, vacancies, error } = &mut *self.0.borrow_mut();
        if error.is_some() {
            return None;
        }
        read(reader, vacancies).map_err(|found| *error = Some(found)).ok()
    }
}

/// The fingerprint of what players see of a state: made once for each type and thread.
pub(crate) fn fingerprint_of<T: State>() -> u64 {
    thread_local! {
        static FINGERPRINTS: RefCell<BTreeMap<TypeId, u64>> = RefCell::default();
    }
    FINGERPRINTS.with_borrow_mut(|known| {
        *known.entry(TypeId::of::<T>()).or_insert_with(|| {
            let (options, state) = (Type::Unit, T::schema());
            let (messages, events) = (Vec::new(), Vec::new());
            fingerprint(&RoomSchema { state, options, messages, events })
        })
    })
}

const IN_ORDER: u8 = 0;
const IN_ANY_ORDER: u8 = 1;

/// Appends the slots of entries in the order of their keys.
pub(crate) fn put(slots: impl ExactSizeIterator<Item = u32> + Clone, out: &mut Vec<u8>) {
    if slots.clone().zip(0..).all(|(slot, place)| slot == place) {
        out.push(IN_ORDER);
        return;
    }
    out.push(IN_ANY_ORDER);
    slots.for_each(|slot| writer::put_varint(out, slot.into()));
}

/// Reads what [`put`] wrote for this many entries. `None`: they are in the order of keys.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    vacancies: &mut Vacancies,
    count: usize,
) -> Result<Option<Vec<u32>>, DecodeError> {
    let at = reader.offset();
    match reader.u8()? {
        IN_ORDER => Ok(None),
        IN_ANY_ORDER if count <= reader.remaining() => {
            let slots = (0..count).map(|_| read_one(reader)).collect::<Result<Vec<u32>, _>>()?;
            check(&slots, vacancies, at)?;
            Ok(Some(slots))
        }
        IN_ANY_ORDER => {
            let text = format!("the slots of {count} entries don't fit in what remains");
            Err(DecodeError::new(at, text))
        }
        other => {
            Err(DecodeError::new(at, format!("the slots of a map begin with 0 or 1, not {other}")))
        }
    }
}

pub(crate) fn read_one(reader: &mut Reader<'_>) -> Result<u32, DecodeError> {
    let at = reader.offset();
    let slot = reader.varint()?;
    match u32::try_from(slot) {
        Ok(slot) if (slot as usize) < MAP_SLOTS_MAX => Ok(slot),
        _ => {
            let text = format!("slot {slot} is past the limit of {MAP_SLOTS_MAX}");
            Err(DecodeError::new(at, text))
        }
    }
}

/// Checks that no slot is named twice, and that not too many before the last are vacant.
pub(crate) fn check(
    slots: &[u32],
    vacancies: &mut Vacancies,
    at: usize,
) -> Result<(), DecodeError> {
    let mut sorted = slots.to_vec();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(DecodeError::new(at, format!("slot {} stands for two keys", pair[0])));
    }
    let slots_len = sorted.last().map_or(0, |last| *last as usize + 1);
    vacancies.take(slots_len - slots.len(), at)
}
