//! Messages that borrow nothing.

use std::borrow::Cow;

use super::MessageRef;
use crate::{ErrorCode, RequestNumber, RoomNumber};

/// A type whose values can be kept longer than the bytes that they were read from.
pub(crate) trait IntoOwned {
    type Static;

    /// Copies what is borrowed.
    fn into_owned(self) -> Self::Static;
}

impl<B: ToOwned + ?Sized + 'static> IntoOwned for Cow<'_, B> {
    type Static = Cow<'static, B>;

    fn into_owned(self) -> Self::Static {
        Cow::Owned(Cow::into_owned(self))
    }
}

impl IntoOwned for MessageRef<'_> {
    type Static = MessageRef<'static>;

    fn into_owned(self) -> Self::Static {
        match self {
            Self::Index(index) => MessageRef::Index(index),
            Self::Name(name) => MessageRef::Name(IntoOwned::into_owned(name)),
        }
    }
}

impl<T: IntoOwned> IntoOwned for Option<T> {
    type Static = Option<T::Static>;

    fn into_owned(self) -> Self::Static {
        self.map(T::into_owned)
    }
}

impl<T: IntoOwned> IntoOwned for Vec<T> {
    type Static = Vec<T::Static>;

    fn into_owned(self) -> Self::Static {
        self.into_iter().map(T::into_owned).collect()
    }
}

impl<A: IntoOwned, B: IntoOwned> IntoOwned for (A, B) {
    type Static = (A::Static, B::Static);

    fn into_owned(self) -> Self::Static {
        (self.0.into_owned(), self.1.into_owned())
    }
}

macro_rules! borrow_nothing {
    ($($type:ty),*) => {$(
        impl IntoOwned for $type {
            type Static = Self;

            fn into_owned(self) -> Self {
                self
            }
        }
    )*};
}

borrow_nothing!(bool, u32, u64, RoomNumber, RequestNumber, ErrorCode);
