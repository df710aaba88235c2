//! The byte that a patch begins with.

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

/// Reads a byte and returns the kind at that index in `kinds`. The error for any other byte begins
/// with `rule`.
#[inline]
pub(crate) fn read_kind<T: Copy>(
    reader: &mut Reader<'_>,
    kinds: &[T],
    rule: &str,
) -> Result<T, DecodeError> {
    let at = reader.offset();
    let byte = reader.u8()?;
    let kind = kinds.get(usize::from(byte)).copied();
    kind.ok_or_else(|| DecodeError::new(at, format!("{rule}, not {byte}")))
}
