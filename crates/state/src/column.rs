//! One field of many entries, written together.
//!
//! If many entries of a map change in the same fields, a patch names the fields once. Then it
//! writes, for each field, the values of all those entries: a *column*. Integers are often close
//! together, so a column of integers is its least value and the distance of each integer from it,
//! in as few bits as the largest distance needs (frame of reference; Goldstein, Ramakrishnan,
//! Shaft, "Compressing Relations and Indexes", 1998).

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

use crate::{Data, PlayerId};

/// In place of a width: the values follow one by one, as outside columns, since a few of them are
/// far from the rest.
pub(crate) const ONE_BY_ONE: u8 = 65;

/// An integer, or a type that is one on the wire.
pub(crate) trait Integer: Data + Copy {
    /// A number with the same order and the same distances as the integers.
    fn rank(self) -> u64;

    /// The integer of a rank, if it is in range.
    fn of_rank(rank: u64) -> Option<Self>;

    /// Its length in bytes outside columns.
    fn bytes(self) -> usize;
}

/// Appends the integers at the places up to `count`, which is not 0.
pub(crate) fn put<'a, T: Integer + 'a>(
    out: &mut Vec<u8>,
    count: usize,
    at: impl Fn(usize) -> &'a T,
) {
    let (mut least, mut most) = (*at(0), *at(0));
    for value in (1..count).map(|place| *at(place)) {
        if value.rank() < least.rank() {
            least = value;
        }
        if value.rank() > most.rank() {
            most = value;
        }
    }
    let base = least.rank();
    let width = 64 - (most.rank() - base).leading_zeros();
    let packed = packed_bytes(count, width) + least.bytes();
    // On one side of 0, those farther from it are never shorter.
    let same_side = (base ^ most.rank()) & SIGN == 0;
    let shortest = if same_side { least.bytes().min(most.bytes()) } else { 1 };
    if packed <= count * shortest || packed <= (0..count).map(|place| at(place).bytes()).sum() {
        out.push(width as u8);
        least.encode(out);
        put_bits(out, count, width, |place| at(place).rank() - base);
    } else {
        out.push(ONE_BY_ONE);
        (0..count).for_each(|place| at(place).encode(out));
    }
}

/// Reads `count` integers that [`put`] wrote, and passes each with its place to `set`.
pub(crate) fn get<T: Integer>(
    reader: &mut Reader<'_>,
    count: usize,
    set: impl FnMut(usize, T),
) -> Result<(), DecodeError> {
    get_ranked(reader, count, T::decode, T::rank, T::of_rank, set)
}

/// The same, for types that are known only at run time.
pub(crate) fn get_ranked<T>(
    reader: &mut Reader<'_>,
    count: usize,
    decode: impl Fn(&mut Reader<'_>) -> Result<T, DecodeError>,
    rank: impl Fn(T) -> u64,
    of_rank: impl Fn(u64) -> Option<T>,
    mut set: impl FnMut(usize, T),
) -> Result<(), DecodeError> {
    let at = reader.offset();
    let width = read_width(reader)?;
    if width == ONE_BY_ONE {
        for place in 0..count {
            set(place, decode(reader)?);
        }
        return Ok(());
    }
    let least = rank(decode(reader)?);
    get_bits(
        reader.take(packed_bytes(count, width.into()))?,
        count,
        width.into(),
        |place, above| {
            let value = least.checked_add(above).and_then(&of_rank).ok_or_else(|| {
                DecodeError::new(
                    at,
                    format!("a value {above} above the least of its column is out of range"),
                )
            })?;
            set(place, value);
            Ok(())
        },
    )
}

fn read_width(reader: &mut Reader<'_>) -> Result<u8, DecodeError> {
    let at = reader.offset();
    match reader.u8()? {
        width @ 0..=ONE_BY_ONE => Ok(width),
        width => {
            Err(DecodeError::new(at, format!("the width of a column is at most 65, not {width}")))
        }
    }
}

/// Appends the values at the places up to `count`, one by one.
pub(crate) fn put_each<'a, T: Data + 'a>(
    out: &mut Vec<u8>,
    count: usize,
    at: impl Fn(usize) -> &'a T,
) {
    (0..count).for_each(|place| at(place).encode(out));
}

/// Reads what [`put_each`] wrote.
pub(crate) fn get_each<T: Data>(
    reader: &mut Reader<'_>,
    count: usize,
    mut set: impl FnMut(usize, T),
) -> Result<(), DecodeError> {
    (0..count).try_for_each(|place| {
        set(place, T::decode(reader)?);
        Ok(())
    })
}

fn packed_bytes(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Appends the lowest `width` bits of each value, the lowest first, without gaps; the last
/// byte is filled up with 0.
fn put_bits(out: &mut Vec<u8>, count: usize, width: u32, at: impl Fn(usize) -> u64) {
    let (mut held, mut bits) = (0_u128, 0);
    for place in 0..count {
        held |= u128::from(at(place)) << bits;
        bits += width;
        if bits >= 64 {
            out.extend_from_slice(&(held as u64).to_le_bytes());
            held >>= 64;
            bits -= 64;
        }
    }
    out.extend_from_slice(&(held as u64).to_le_bytes()[..bits.div_ceil(8) as usize]);
}

/// Reads what [`put_bits`] wrote.
fn get_bits(
    bytes: &[u8],
    count: usize,
    width: u32,
    mut set: impl FnMut(usize, u64) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut bytes = bytes.iter();
    let (mut held, mut bits) = (0_u128, 0);
    let mask = (1_u128 << width) - 1;
    for place in 0..count {
        while bits < width {
            held |= u128::from(bytes.next().copied().unwrap_or(0)) << bits;
            bits += 8;
        }
        set(place, (held & mask) as u64)?;
        held >>= width;
        bits -= width;
    }
    Ok(())
}

fn varint_bytes(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

macro_rules! integers {
    ($($int:ty, |$value:ident| $rank:expr, |$of:ident| $back:expr, $bytes:expr;)*) => {$(
        impl Integer for $int {
            #[inline]
            fn rank(self) -> u64 {
                let $value = self;
                $rank
            }
            #[inline]
            fn of_rank($of: u64) -> Option<Self> {
                $back
            }
            #[inline]
            fn bytes(self) -> usize {
                let $value = self;
                $bytes
            }
        }
    )*};
}

/// Turns the order of signed integers into that of unsigned ones, and back.
const SIGN: u64 = 1 << 63;

macro_rules! unsigned {
    ($($int:ty)*) => {
        integers! { $($int, |value| value.into(), |rank| rank.try_into().ok(), varint_bytes(value.into());)* }
    };
}

macro_rules! signed {
    ($($int:ty)*) => {
        integers! { $($int,
            |value| i64::from(value).cast_unsigned() ^ SIGN,
            |rank| (rank ^ SIGN).cast_signed().try_into().ok(),
            { let wide = i64::from(value); varint_bytes((wide << 1 ^ wide >> 63).cast_unsigned()) };
        )* }
    };
}

unsigned! { u16 u32 u64 }
signed! { i16 i32 i64 }
integers! {
    bool, |value| value.into(), |rank| (rank < 2).then_some(rank == 1), { let _ = value; 1 };
    u8, |value| value.into(), |rank| rank.try_into().ok(), { let _ = value; 1 };
    i8, |value| i64::from(value).cast_unsigned() ^ SIGN, |rank| (rank ^ SIGN).cast_signed().try_into().ok(), { let _ = value; 1 };
    PlayerId, |value| value.0, |rank| Some(Self(rank)), varint_bytes(value.0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written<T: Integer>(values: &[T]) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, values.len(), |place| &values[place]);
        out
    }

    fn read<T: Integer>(bytes: &[u8], count: usize) -> Result<Vec<T>, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut values = Vec::new();
        get(&mut reader, count, |place, value| {
            assert_eq!(place, values.len());
            values.push(value);
        })?;
        reader.finish()?;
        Ok(values)
    }

    fn comes_back<T: Integer + PartialEq + std::fmt::Debug>(
        values: &[T],
    ) -> Result<(), TestCaseError> {
        let bytes = written(values);
        let alone: usize = values.iter().map(|value| value.bytes()).sum();
        let rank = |value: &T| value.rank();
        let least = values.iter().copied().min_by_key(rank).unwrap();
        let most = values.iter().map(rank).max().unwrap();
        let width = 64 - (most - least.rank()).leading_zeros();
        let packed = packed_bytes(values.len(), width) + least.bytes();
        prop_assert_eq!(bytes.len(), 1 + packed.min(alone), "the shorter form is chosen");
        prop_assert_eq!(read::<T>(&bytes, values.len()), Ok(values.to_vec()));
        for end in 0..bytes.len() {
            prop_assert!(read::<T>(&bytes[..end], values.len()).is_err());
        }
        for value in values {
            let mut alone = Vec::new();
            value.encode(&mut alone);
            prop_assert_eq!(alone.len(), value.bytes());
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn columns_come_back(
            from in any::<i64>(), spread in 0..64_u32, offsets in proptest::collection::vec(any::<u64>(), 1..60)
        ) {
            let near: Vec<i64> = offsets.iter().map(|offset| from.saturating_add_unsigned(offset >> spread)).collect();
            comes_back(&near)?;
            comes_back(&near.iter().map(|value| value.cast_unsigned()).collect::<Vec<u64>>())?;
            comes_back(&near.iter().map(|value| *value as i32).collect::<Vec<i32>>())?;
            comes_back(&near.iter().map(|value| *value as u16).collect::<Vec<u16>>())?;
            comes_back(&near.iter().map(|value| *value as u8).collect::<Vec<u8>>())?;
            comes_back(&near.iter().map(|value| *value as i8).collect::<Vec<i8>>())?;
            comes_back(&near.iter().map(|value| value % 2 == 0).collect::<Vec<bool>>())?;
            comes_back(&near.iter().map(|value| PlayerId(value.cast_unsigned())).collect::<Vec<_>>())?;
        }
    }

    #[test]
    fn values_near_each_other_take_few_bits() {
        assert_eq!(written(&[100_i32, 103, 101, 100, 102]), [2, 0xc8, 1, 0b0001_1100, 0b10]);
        assert_eq!(written(&[7_u8; 100]), [0, 7]);
        assert_eq!(written(&[0_u32, 0, 1 << 31]), [ONE_BY_ONE, 0, 0, 0x80, 0x80, 0x80, 0x80, 8]);
    }

    #[test]
    fn invalid_columns_are_rejected() {
        let say = |bytes: &[u8]| read::<u8>(bytes, 2).unwrap_err().to_string();
        assert_eq!(say(&[66, 0, 0, 0]), "at byte 0: the width of a column is at most 65, not 66");
        assert_eq!(
            say(&[4, 250, 0x0f]),
            "at byte 0: a value 15 above the least of its column is out of range"
        );
    }
}
