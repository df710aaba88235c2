//! The small numbers by which one session names its rooms and requests.

use std::fmt;

macro_rules! numbers {
    ($($(#[$docs:meta])* $Number:ident;)*) => {$(
        $(#[$docs])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Number(pub u32);

        impl From<$Number> for u64 {
            #[inline]
            fn from(number: $Number) -> Self {
                number.0.into()
            }
        }

        /// The number alone: the field or the text around it says what it numbers.
        impl fmt::Debug for $Number {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $Number {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    )*};
}

numbers! {
    /// The number of a room in one session. The node assigns it in `joined`.
    RoomNumber;
    /// The number of a request in one session. The client chooses it; the answer repeats it.
    RequestNumber;
}
