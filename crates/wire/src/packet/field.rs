//! Whole values in packets: fields and structs.

use super::{Number, Order, PacketError, PacketErrorKind, PacketReader, PacketWriter, Prefix};

pub(super) type Done = Result<(), PacketError>;

/// A value that can be a field of a packet: a number, a bool, a length-prefixed text or byte
/// string, an array or a list of these, or a struct that derives `Packet`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a field of a packet",
    label = "not a packet field",
    note = "fields can be numbers of 8 to 64 bits, `bool`, `&str`, `String`, `&[u8]`, `&[u8; N]`, arrays, `Vec`s, and structs with `#[derive(Packet)]`",
    note = "send a length or an index as a `u32` or `u64`, and an enum or an `Option` as a number that determines how to read what follows"
)]
pub trait PacketField<'a>: Sized {
    /// The minimum number of bytes that a value takes.
    const BYTES_MIN: usize;

    /// The depth to which its contents are nested. Recursive types don't compile, since a sender
    /// could nest them until the reader's stack overflows. For generated code.
    ///
    /// ```compile_fail,E0391
    /// use playfield_derive::Packet;
    ///
    /// #[derive(Packet)]
    /// struct Folder {
    ///     files: Vec<File>,
    /// }
    ///
    /// #[derive(Packet)]
    /// struct File {
    ///     archive: Vec<Folder>,
    /// }
    /// ```
    ///
    /// It is computed for each type that derives `Packet`, used or not, so this also detects lists
    /// of elements that take no bytes.
    ///
    /// ```compile_fail,E0080
    /// use playfield_derive::Packet;
    ///
    /// #[derive(Packet)]
    /// struct Marker;
    ///
    /// #[derive(Packet)]
    /// struct Board {
    ///     markers: Vec<Marker>,
    /// }
    /// ```
    #[doc(hidden)]
    const DEPTH: usize = 0;

    /// Whether it takes all remaining bytes, so that nothing can follow it. A struct does if its
    /// last field has `#[packet(rest)]`, or is such a struct.
    const OPEN_ENDED: bool = false;

    /// Whether it holds several such structs, none of which can follow another. For generated code.
    #[doc(hidden)]
    const ELEMENTS_OPEN_ENDED: bool = false;

    /// Appends it.
    ///
    /// # Errors
    /// If something in it is longer than its prefix allows.
    fn write<O: Order>(&self, packet: &mut PacketWriter<'_, O>) -> Done;

    /// Reads it.
    ///
    /// # Errors
    /// If the bytes are not such a value.
    fn read<O: Order>(packet: &mut PacketReader<'a, O>) -> Result<Self, PacketError>;

    /// Appends several, one after the other.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    #[inline]
    fn write_all<O: Order>(all: &[Self], packet: &mut PacketWriter<'_, O>) -> Done {
        all.iter().try_for_each(|one| one.write(packet))
    }

    /// Reads `N`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    fn read_array<O: Order, const N: usize>(
        packet: &mut PacketReader<'a, O>,
    ) -> Result<[Self; N], PacketError> {
        let mut failed = None;
        let all: [Option<Self>; N] = std::array::from_fn(|_| match failed {
            None => Self::read(packet).map_err(|error| failed = Some(error)).ok(),
            Some(_) => None,
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(all.map(|one| one.expect("all were read"))),
        }
    }

    /// Reads `count`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    fn read_list<O: Order>(
        count: usize,
        packet: &mut PacketReader<'a, O>,
    ) -> Result<Vec<Self>, PacketError> {
        let mut all = Vec::with_capacity(count.min(packet.remaining()));
        for _ in 0..count {
            all.push(Self::read(packet)?);
        }
        Ok(all)
    }
}

/// A complete packet: a struct with an opcode before its fields.
pub trait Packet<'a>: PacketField<'a> {
    /// The opcode's type.
    type Opcode: Number;
    /// The opcode, which is written first.
    const OPCODE: Self::Opcode;

    /// Appends opcode and fields to `out`.
    ///
    /// # Errors
    /// If something is longer than its prefix allows. `out` is then unchanged.
    #[inline]
    fn append<O: Order>(&self, out: &mut Vec<u8>) -> Done {
        let start = out.len();
        let mut packet = PacketWriter::<O>::new(out);
        packet.put(Self::OPCODE);
        let done = self.write(&mut packet);
        if done.is_err() {
            out.truncate(start);
        }
        done
    }

    /// Reads opcode and fields from bytes that hold nothing else.
    ///
    /// # Errors
    /// If it is another packet, if something in it is wrong, or if bytes are left.
    #[inline]
    fn parse<O: Order>(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let mut packet = PacketReader::<O>::new(bytes);
        let opcode: Self::Opcode = packet.at("opcode").get()?;
        if opcode != Self::OPCODE {
            let (expected, got) = (Self::OPCODE.bits(), opcode.bits());
            return Err(PacketError::new(0, "opcode", PacketErrorKind::Opcode { expected, got }));
        }
        let value = Self::read(&mut packet)?;
        packet.finish()?;
        Ok(value)
    }
}

macro_rules! number_fields {
    ($($of:ident)*) => {$(
        impl PacketField<'_> for $of {
            const BYTES_MIN: usize = <$of as Number>::BYTES;

            #[inline]
            fn write<O: Order>(&self, packet: &mut PacketWriter<'_, O>) -> Done {
                packet.put(*self);
                Ok(())
            }

            #[inline]
            fn read<O: Order>(packet: &mut PacketReader<'_, O>) -> Result<Self, PacketError> {
                packet.get()
            }

            #[inline]
            fn write_all<O: Order>(all: &[Self], packet: &mut PacketWriter<'_, O>) -> Done {
                packet.numbers(all);
                Ok(())
            }

            #[inline]
            fn read_array<O: Order, const N: usize>(
                packet: &mut PacketReader<'_, O>,
            ) -> Result<[Self; N], PacketError> {
                let (each, _) = packet.raw(N * Self::BYTES)?.as_chunks();
                Ok(std::array::from_fn(|place| Self::from_bytes::<O>(each[place])))
            }

            #[inline]
            fn read_list<O: Order>(
                count: usize,
                packet: &mut PacketReader<'_, O>,
            ) -> Result<Vec<Self>, PacketError> {
                let (each, _) = packet.raw(count.saturating_mul(Self::BYTES))?.as_chunks();
                Ok(each.iter().map(|bytes| Self::from_bytes::<O>(*bytes)).collect())
            }
        }
    )*};
}

number_fields! { u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 }

impl PacketField<'_> for bool {
    const BYTES_MIN: usize = 1;

    #[inline]
    fn write<O: Order>(&self, packet: &mut PacketWriter<'_, O>) -> Done {
        packet.bool(*self);
        Ok(())
    }

    #[inline]
    fn read<O: Order>(packet: &mut PacketReader<'_, O>) -> Result<Self, PacketError> {
        packet.bool()
    }
}

impl<'a, T: PacketField<'a>, const N: usize> PacketField<'a> for [T; N] {
    const BYTES_MIN: usize = T::BYTES_MIN * N;
    const DEPTH: usize = T::DEPTH;
    const ELEMENTS_OPEN_ENDED: bool = T::OPEN_ENDED || T::ELEMENTS_OPEN_ENDED;

    #[inline]
    fn write<O: Order>(&self, packet: &mut PacketWriter<'_, O>) -> Done {
        const { ends::<T>() };
        T::write_all(self, packet)
    }

    #[inline]
    fn read<O: Order>(packet: &mut PacketReader<'a, O>) -> Result<Self, PacketError> {
        const { ends::<T>() };
        T::read_array(packet)
    }
}

impl<'a, const N: usize> PacketField<'a> for &'a [u8; N] {
    const BYTES_MIN: usize = N;

    #[inline]
    fn write<O: Order>(&self, packet: &mut PacketWriter<'_, O>) -> Done {
        packet.raw(*self);
        Ok(())
    }

    #[inline]
    fn read<O: Order>(packet: &mut PacketReader<'a, O>) -> Result<Self, PacketError> {
        packet.array()
    }
}

/// A value with a length prefix: two bytes, unless the field has `#[packet(len = …)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no length prefix in a packet",
    label = "not a text, bytes or a list",
    note = "`#[packet(len = …)]` is for `&str`, `String`, `&[u8]` and `Vec`s: remove it from this field"
)]
pub trait Prefixed<'a>: Sized {
    /// Appends the length and the value.
    ///
    /// # Errors
    /// If it is longer than the prefix allows.
    fn write_prefixed<O: Order>(&self, prefix: Prefix, packet: &mut PacketWriter<'_, O>) -> Done;

    /// Reads the length and the value.
    ///
    /// # Errors
    /// If the bytes are not such a value.
    fn read_prefixed<O: Order>(
        prefix: Prefix,
        packet: &mut PacketReader<'a, O>,
    ) -> Result<Self, PacketError>;
}

/// A list could announce any number of elements that take no bytes.
const fn takes_bytes<'a, T: PacketField<'a>>() {
    assert!(T::BYTES_MIN > 0, "the elements of a packet's list must take at least one byte each");
}

/// Only one element could take the rest.
const fn ends<'a, T: PacketField<'a>>() {
    assert!(
        !T::OPEN_ENDED,
        "an element of an array or a list takes the rest of the packet, so no other can follow it: give its last field a length in place of #[packet(rest)]"
    );
}

macro_rules! prefixed_fields {
    ($([$($generics:tt)*] $of:ty, $depth:expr, $elements:expr, $value:ident, $packet:ident, $write:expr, $prefix:ident, $read:expr;)*) => {$(
        impl<$($generics)*> Prefixed<'a> for $of {
            #[inline]
            fn write_prefixed<O: Order>(&self, $prefix: Prefix, $packet: &mut PacketWriter<'_, O>) -> Done {
                let $value = self;
                $write
            }

            #[inline]
            fn read_prefixed<O: Order>(
                $prefix: Prefix,
                $packet: &mut PacketReader<'a, O>,
            ) -> Result<Self, PacketError> {
                $read
            }
        }

        impl<$($generics)*> PacketField<'a> for $of {
            const BYTES_MIN: usize = 2;
            const DEPTH: usize = $depth;
            const ELEMENTS_OPEN_ENDED: bool = $elements;

            #[inline]
            fn write<O: Order>(&self, packet: &mut PacketWriter<'_, O>) -> Done {
                self.write_prefixed(Prefix::U16, packet)
            }

            #[inline]
            fn read<O: Order>(packet: &mut PacketReader<'a, O>) -> Result<Self, PacketError> {
                Self::read_prefixed(Prefix::U16, packet)
            }
        }
    )*};
}

prefixed_fields! {
    ['a] &'a str, 0, false, value, packet, packet.text(prefix, value), prefix, packet.text(prefix);
    ['a] String, 0, false, value, packet, packet.text(prefix, value), prefix, packet.text(prefix).map(str::to_owned);
    ['a] &'a [u8], 0, false, value, packet, packet.bytes(prefix, value), prefix, packet.bytes(prefix);
    ['a, T: PacketField<'a>] Vec<T>, { takes_bytes::<T>(); 1 + T::DEPTH }, T::OPEN_ENDED || T::ELEMENTS_OPEN_ENDED, value, packet, {
        const {
            takes_bytes::<T>();
            ends::<T>();
        }
        packet.length(prefix, value.len())?;
        T::write_all(value, packet)
    }, prefix, {
        const {
            takes_bytes::<T>();
            ends::<T>();
        }
        let count = packet.length(prefix, T::BYTES_MIN)?;
        T::read_list(count, packet)
    };
}
