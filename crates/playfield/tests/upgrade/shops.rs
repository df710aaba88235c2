//! Builds of a shop. Each has a message, an event and fields in front of those of the previous
//! build.

/// The code that all builds share.
macro_rules! shop {
    ([$($message:ident),*], [$($event:ident),*]) => {
        use playfield::prelude::*;

        /// The reply comes with [`Free`].
        #[derive(Message)]
        #[reply(Sum)]
        pub(crate) struct Hold;

        /// Answers all that is held.
        #[derive(Message)]
        #[reply(())]
        pub(crate) struct Free;

        $(
            /// The others must not be mistaken for it.
            #[derive(Message)]
            #[reply(())]
            pub(crate) struct $message;

            impl Handle<$message> for Shop {
                fn handle(&mut self, _: $message, _: &Player, _: &mut Context<Self>) -> Result<()> {
                    self.total = 0;
                    Ok(())
                }
            }
        )*

        $(
            #[derive(Message)]
            pub(crate) struct $event;
        )*

        #[room(
            messages($($message,)* Add, Hold, Free),
            events($($event,)* Added),
            sync_hz = 50,
            reply_ms = 600_000
        )]
        impl Room for Shop {}

        impl Handle<Add> for Shop {
            fn handle(&mut self, add: Add, player: &Player, cx: &mut Context<Self>) -> Result<Sum> {
                let Add { good, count, .. } = add;
                self.goods.get_or_default(good).count += count;
                *self.own.get_or_default(player.id()) += count;
                self.total += count;
                cx.emit(&Added::new(good, count));
                Ok(Sum::new(self.total))
            }
        }

        impl Handle<Hold> for Shop {
            fn handle(&mut self, _: Hold, _: &Player, cx: &mut Context<Self>) -> Result<Sum> {
                self.held.push(cx.defer());
                Err(Error::deferred())
            }
        }

        impl Handle<Free> for Shop {
            fn handle(&mut self, _: Free, _: &Player, cx: &mut Context<Self>) -> Result<()> {
                while let Some(held) = self.held.pop() {
                    cx.answer(held, Ok(Sum::new(self.total)));
                }
                Ok(())
            }
        }
    };
}

pub(crate) mod first {
    shop!([], []);

    #[derive(State, Default)]
    pub(crate) struct Shop {
        pub(crate) total: u64,
        pub(crate) goods: Map<u32, Good>,
        #[sync(owner)]
        pub(crate) own: Map<PlayerId, u64>,
        #[sync(hidden)]
        held: List<Deferred<Hold>>,
    }

    #[derive(State, Default)]
    pub(crate) struct Good {
        pub(crate) count: u64,
    }

    #[derive(Message)]
    #[reply(Sum)]
    pub(crate) struct Add {
        pub(crate) good: u32,
        pub(crate) count: u64,
    }

    #[derive(Data)]
    pub(crate) struct Sum {
        pub(crate) total: u64,
    }

    impl Sum {
        fn new(total: u64) -> Self {
            Self { total }
        }
    }

    #[derive(Message)]
    pub(crate) struct Added {
        pub(crate) good: u32,
        pub(crate) count: u64,
    }

    impl Added {
        fn new(good: u32, count: u64) -> Self {
            Self { good, count }
        }
    }
}

pub(crate) mod second {
    shop!([Reset], [Emptied]);

    #[derive(State, Default)]
    pub(crate) struct Shop {
        pub(crate) stock: u64,
        #[sync(owner)]
        pub(crate) own_stock: Map<PlayerId, u64>,
        pub(crate) total: u64,
        pub(crate) goods: Map<u32, Good>,
        #[sync(owner)]
        pub(crate) own: Map<PlayerId, u64>,
        #[sync(hidden)]
        held: List<Deferred<Hold>>,
    }

    #[derive(State, Default)]
    pub(crate) struct Good {
        pub(crate) stock: u32,
        pub(crate) count: u64,
    }

    #[derive(Message)]
    #[reply(Sum)]
    pub(crate) struct Add {
        pub(crate) stock: Option<u32>,
        pub(crate) good: u32,
        pub(crate) count: u64,
    }

    #[derive(Data)]
    pub(crate) struct Sum {
        pub(crate) stock: u8,
        pub(crate) total: u64,
    }

    impl Sum {
        fn new(total: u64) -> Self {
            Self { stock: 7, total }
        }
    }

    #[derive(Message)]
    pub(crate) struct Added {
        pub(crate) stock: u8,
        pub(crate) good: u32,
        pub(crate) count: u64,
    }

    impl Added {
        fn new(good: u32, count: u64) -> Self {
            Self { stock: 7, good, count }
        }
    }
}

pub(crate) mod third {
    shop!([Audit, Reset], [Audited, Emptied]);

    #[derive(State, Default)]
    pub(crate) struct Shop {
        pub(crate) audit: u64,
        #[sync(owner)]
        pub(crate) own_audit: Map<PlayerId, u64>,
        pub(crate) stock: u64,
        #[sync(owner)]
        pub(crate) own_stock: Map<PlayerId, u64>,
        pub(crate) total: u64,
        pub(crate) goods: Map<u32, Good>,
        #[sync(owner)]
        pub(crate) own: Map<PlayerId, u64>,
        #[sync(hidden)]
        held: List<Deferred<Hold>>,
    }

    #[derive(State, Default)]
    pub(crate) struct Good {
        pub(crate) audit: u32,
        pub(crate) stock: u32,
        pub(crate) count: u64,
    }

    #[derive(Message)]
    #[reply(Sum)]
    pub(crate) struct Add {
        pub(crate) audit: Option<u32>,
        pub(crate) stock: Option<u32>,
        pub(crate) good: u32,
        pub(crate) count: u64,
    }

    #[derive(Data)]
    pub(crate) struct Sum {
        pub(crate) audit: u8,
        pub(crate) stock: u8,
        pub(crate) total: u64,
    }

    impl Sum {
        fn new(total: u64) -> Self {
            Self { audit: 7, stock: 7, total }
        }
    }

    #[derive(Message)]
    pub(crate) struct Added {
        pub(crate) audit: u8,
        pub(crate) stock: u8,
        pub(crate) good: u32,
        pub(crate) count: u64,
    }

    impl Added {
        fn new(good: u32, count: u64) -> Self {
            Self { audit: 7, stock: 7, good, count }
        }
    }
}

/// A build that clients of the [first](first) can't speak with: it wants more with a message.
pub(crate) mod strict {
    shop!([], []);

    #[derive(State, Default)]
    pub(crate) struct Shop {
        pub(crate) total: u64,
        pub(crate) goods: Map<u32, Good>,
        #[sync(owner)]
        pub(crate) own: Map<PlayerId, u64>,
        #[sync(hidden)]
        held: List<Deferred<Hold>>,
    }

    #[derive(State, Default)]
    pub(crate) struct Good {
        pub(crate) count: u64,
    }

    #[derive(Message)]
    #[reply(Sum)]
    pub(crate) struct Add {
        pub(crate) price: u32,
        pub(crate) good: u32,
        pub(crate) count: u64,
    }

    #[derive(Data)]
    pub(crate) struct Sum {
        pub(crate) total: u64,
    }

    impl Sum {
        fn new(total: u64) -> Self {
            Self { total }
        }
    }

    #[derive(Message)]
    pub(crate) struct Added {
        pub(crate) good: u32,
        pub(crate) count: u64,
    }

    impl Added {
        fn new(good: u32, count: u64) -> Self {
            Self { good, count }
        }
    }
}
