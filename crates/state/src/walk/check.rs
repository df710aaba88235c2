//! Checking a payload against its shape, without a tree of it.

use std::collections::BTreeSet;

use playfield_wire::reader::Reader;

use super::{Done, EnumShape, MapShape, Shape, StructShape, refused};
use crate::Data;

impl Shape {
    /// Checks that a payload is a whole atomic value of this shape: exactly what
    /// [`Walk::atomic`](super::Walk::atomic) reads is accepted.
    pub(crate) fn check(&self, payload: &[u8]) -> Done {
        let mut reader = Reader::new(payload);
        self.skip(&mut reader)?;
        reader.finish()
    }

    /// Skips one value. It recurses as deep as the shape does.
    fn skip(&self, reader: &mut Reader<'_>) -> Done {
        match self {
            Self::Plain(plain) => plain.skip(reader),
            Self::Option(of) => match reader.bool()? {
                true => of.skip(reader),
                false => Ok(()),
            },
            Self::List(of) => {
                let count = reader.count()?;
                (0..count).try_for_each(|_| of.skip(reader))
            }
            Self::Array(of, length) => (0..*length).try_for_each(|_| of.skip(reader)),
            Self::Map(of) => of.skip(reader),
            Self::Struct(of) => of.skip(reader),
            Self::Enum(of) => of.skip(reader),
            Self::Present | Self::Steps(..) => unreachable!("only patched values have these"),
        }
    }
}

impl MapShape {
    fn skip(&self, reader: &mut Reader<'_>) -> Done {
        let mut names = BTreeSet::new();
        for _ in 0..reader.count()? {
            let at = reader.offset();
            let key = self.key.read(reader)?;
            self.value.skip(reader)?;
            if !names.insert(key.name) {
                return refused(at, "a key occurs twice in one map");
            }
        }
        Ok(())
    }
}

impl StructShape {
    fn skip(&self, reader: &mut Reader<'_>) -> Done {
        self.fields.iter().try_for_each(|field| field.of.skip(reader))?;
        if self.is_padded && self.fields.is_empty() {
            <()>::decode(reader)?;
        }
        Ok(())
    }
}

impl EnumShape {
    fn skip(&self, reader: &mut Reader<'_>) -> Done {
        self.variants[self.place(reader)?].skip(reader)
    }
}
