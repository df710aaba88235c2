//! A room type in several builds.

use playfield_room::RoomType;
use playfield_wire::schema::RoomSchema;

pub(super) const NAME: &str = "switching";

/// The room type of a build: new items are in front.
macro_rules! build {
    ($build:ident, [$($new:ident $message:ident $event:ident),*]) => {
        mod $build {
            use playfield_room::{Context, Handle, Message, Player, Result, Room, room};
            use playfield_state::{Data, State};

            #[derive(State, Default)]
            pub(super) struct Ledger {
                $($new: u8,)*
                sum: u64,
            }

            #[derive(Data, Default)]
            pub(super) struct Setup {
                $($new: Option<u8>,)*
                sum: u32,
            }

            #[derive(Message)]
            #[reply(Sum)]
            pub(super) struct Add {
                $($new: Option<u8>,)*
                number: u32,
            }

            #[derive(Data)]
            pub(super) struct Sum {
                $($new: u8,)*
                number: u32,
            }

            #[derive(Message)]
            pub(super) struct Added {
                $($new: u8,)*
                number: u32,
            }

            $(
                #[derive(Message)]
                pub(super) struct $message;

                impl Handle<$message> for Ledger {
                    fn handle(&mut self, _: $message, _: &Player, _: &mut Context<Self>) -> Result<()> {
                        self.sum = 0;
                        Ok(())
                    }
                }

                #[derive(Message)]
                pub(super) struct $event;
            )*

            #[room(messages($($message,)* Add), events($($event,)* Added), sync_hz = 50, empty_ms = 60_000)]
            impl Room for Ledger {
                type Options = Setup;

                fn create(setup: Setup, _: &mut Context<Self>) -> Result<Self> {
                    Ok(Self { $($new: 0,)* sum: setup.sum.into() })
                }
            }

            impl Handle<Add> for Ledger {
                fn handle(&mut self, add: Add, _: &Player, cx: &mut Context<Self>) -> Result<Sum> {
                    let number = add.number;
                    self.sum += u64::from(number);
                    cx.emit(&Added { $($new: 7,)* number });
                    Ok(Sum { $($new: 7,)* number })
                }
            }
        }
    };
}

build!(first, []);
build!(second, [one ResetOne WasOne]);
build!(third, [two ResetTwo WasTwo, one ResetOne WasOne]);

/// The number of compatible builds, each numbered by its additions in front.
pub(super) const BUILDS: usize = 3;

/// A build whose schema is not compatible with that of any other.
pub(super) const OTHER: usize = 3;

mod other {
    use playfield_room::{Context, Result, Room, room};
    use playfield_state::{Data, State};

    #[derive(State, Default)]
    pub(super) struct Ledger {
        title: String,
    }

    #[derive(Data, Default)]
    pub(super) struct Setup {
        title: String,
    }

    #[room(sync_hz = 50, empty_ms = 60_000)]
    impl Room for Ledger {
        type Options = Setup;

        fn create(Setup { title }: Setup, _: &mut Context<Self>) -> Result<Self> {
            Ok(Self { title })
        }
    }
}

/// The room type of a build.
pub(in crate::shard::tests) fn room_type(build: usize) -> RoomType {
    match build {
        0 => RoomType::of::<first::Ledger>(NAME),
        1 => RoomType::of::<second::Ledger>(NAME),
        2 => RoomType::of::<third::Ledger>(NAME),
        _ => RoomType::of::<other::Ledger>(NAME),
    }
}

pub(super) fn schema(build: usize) -> RoomSchema {
    RoomSchema::from_json(room_type(build).schema.as_bytes()).unwrap()
}

/// The build that has this schema.
pub(super) fn build_of(schema: &[u8]) -> usize {
    let schema = RoomSchema::from_json(schema).unwrap();
    (0..=OTHER).find(|build| self::schema(*build) == schema).unwrap()
}
