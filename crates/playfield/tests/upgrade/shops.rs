//! Builds of a shop. Each has a message, an event and fields in front of those of the previous
//! build.

/// A build: its additions in front, and what a message wants more than in any other build.
macro_rules! shop {
    ($build:ident, [$($new:ident $own:ident $message:ident $event:ident),*], $($price:ident)?) => {
        pub(crate) mod $build {
            use playfield::prelude::*;

            #[derive(State, Default)]
            pub(crate) struct Shop {
                $(
                    pub(crate) $new: u64,
                    #[sync(owner)]
                    pub(crate) $own: Map<PlayerId, u64>,
                )*
                pub(crate) total: u64,
                pub(crate) goods: Map<u32, Good>,
                #[sync(owner)]
                pub(crate) own: Map<PlayerId, u64>,
                #[sync(hidden)]
                held: List<Deferred<Hold>>,
            }

            #[derive(State, Default)]
            pub(crate) struct Good {
                $(pub(crate) $new: u32,)*
                pub(crate) count: u64,
            }

            #[derive(Message)]
            #[reply(Sum)]
            pub(crate) struct Add {
                $(pub(crate) $new: Option<u32>,)*
                $(pub(crate) $price: u32,)?
                pub(crate) good: u32,
                pub(crate) count: u64,
            }

            #[derive(Data)]
            pub(crate) struct Sum {
                $(pub(crate) $new: u8,)*
                pub(crate) total: u64,
            }

            impl Sum {
                fn new(total: u64) -> Self {
                    Self { $($new: 7,)* total }
                }
            }

            #[derive(Message)]
            pub(crate) struct Added {
                $(pub(crate) $new: u8,)*
                pub(crate) good: u32,
                pub(crate) count: u64,
            }

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
                    fn handle(
                        &mut self,
                        _: $message,
                        _: &Player,
                        _: &mut Context<Self>,
                    ) -> Result<()> {
                        self.total = 0;
                        Ok(())
                    }
                }

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
                fn handle(
                    &mut self,
                    add: Add,
                    player: &Player,
                    cx: &mut Context<Self>,
                ) -> Result<Sum> {
                    let Add { good, count, .. } = add;
                    self.goods.get_or_default(good).count += count;
                    *self.own.get_or_default(player.id()) += count;
                    self.total += count;
                    cx.emit(&Added { $($new: 7,)* good, count });
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
        }
    };
}

shop!(first, [],);
shop!(second, [stock own_stock Reset Emptied],);
shop!(third, [audit own_audit Audit Audited, stock own_stock Reset Emptied],);
// Clients of the first build can't speak with it.
shop!(strict, [], price);
