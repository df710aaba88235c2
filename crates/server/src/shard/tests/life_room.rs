//! A room that holds, defers and saves, and notes who came and went.

use std::cell::RefCell;
use std::collections::BTreeMap;

use playfield_room::{
    Context, Deferred, EndReason, Error, Handle, LeaveReason, Message, On, Player, PlayerId,
    Result, Room, RoomType, room,
};
use playfield_state::{Data, List, Map, State};

thread_local! {
    /// By room and player, how often `join` admitted them, and how often they left.
    static SEEN: RefCell<BTreeMap<(String, PlayerId), (u32, u32)>> = const { RefCell::new(BTreeMap::new()) };
    /// The values that rooms have saved, by id.
    static SAVED: RefCell<BTreeMap<String, u32>> = const { RefCell::new(BTreeMap::new()) };
    /// The callbacks since the last look.
    static CALLED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Takes the counts of how often each player was admitted and left, by room.
pub(super) fn take_seen() -> BTreeMap<(String, PlayerId), (u32, u32)> {
    SEEN.take()
}

/// Takes the values that rooms have saved, by id.
pub(super) fn take_saved() -> BTreeMap<String, u32> {
    SAVED.take()
}

pub(super) fn take_called() -> Vec<String> {
    CALLED.take()
}

fn seen(cx: &Context<Life>, player: PlayerId, left: bool) {
    SEEN.with_borrow_mut(|seen| {
        let (joins, leaves) = seen.entry((cx.room_id().to_owned(), player)).or_default();
        *(if left { leaves } else { joins }) += 1;
    });
}

#[derive(Data, Clone, Debug, Default)]
pub(super) struct Setup {
    /// The room opens when a piece of work has ended.
    pub(super) holds_room: bool,
    /// So does each seat.
    pub(super) holds_players: bool,
    /// The room never opens.
    pub(super) never: bool,
    /// At its end it begins work that does not end.
    pub(super) hangs: bool,
}

#[derive(State, Default)]
pub(super) struct Life {
    count: u32,
    names: Map<PlayerId, String>,
    #[sync(hidden)]
    waiting: List<Deferred<Do>>,
    #[sync(hidden)]
    holds_players: bool,
    #[sync(hidden)]
    hangs: bool,
}

#[derive(Message, Clone, Debug)]
#[reply(u32)]
pub(super) enum Do {
    Add,
    Wait,
    /// Answers the one who has waited longest.
    Answer,
    Work,
    KickMe,
    Close,
    Panic,
}

#[derive(Message)]
enum Found {
    Room { ok: bool },
    Player { ok: bool },
    Saved(u32),
}

#[derive(Message)]
struct Bye;

#[room(
    messages(Do),
    events(Bye),
    internal(Found),
    capacity = 4,
    empty_ms = 2_000,
    closing_ms = 1_500,
    join_wait_ms = 1_000,
    joins_waiting_max = 3,
    reply_ms = 1_000
)]
impl Room for Life {
    type Options = Setup;

    fn create(setup: Setup, cx: &mut Context<Self>) -> Result<Self> {
        if setup.holds_room {
            cx.hold(async move { Found::Room { ok: !setup.never } })?;
        }
        if setup.never {
            cx.hold(std::future::pending::<Found>())?;
        }
        let Setup { holds_players, hangs, .. } = setup;
        Ok(Self { holds_players, hangs, ..Self::default() })
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        if player.name() == "refused" {
            return Err(Error::with_code(1_001, "not you"));
        }
        if self.holds_players {
            let ok = player.name() != "unknown";
            return cx.hold(async move { Found::Player { ok } });
        }
        self.admit(player, cx);
        Ok(())
    }

    fn leave(&mut self, player: &Player, why: LeaveReason, cx: &mut Context<Self>) {
        seen(cx, player.id(), true);
        CALLED.with_borrow_mut(|called| called.push(format!("leave {} {why:?}", player.id())));
        self.names.remove(&player.id());
    }

    fn closing(&mut self, why: EndReason, cx: &mut Context<Self>) {
        CALLED.with_borrow_mut(|called| called.push(format!("closing {why:?}")));
        self.count += 1_000;
        cx.emit(&Bye);
        let count = self.count;
        let _ = cx.spawn(async move { Found::Saved(count) });
        if self.hangs {
            let _ = cx.spawn(std::future::pending::<Found>());
        }
    }
}

impl Life {
    fn admit(&mut self, player: &Player, cx: &Context<Self>) {
        seen(cx, player.id(), false);
        self.names.insert(player.id(), player.name().to_owned());
    }
}

impl Handle<Do> for Life {
    fn handle(&mut self, what: Do, player: &Player, cx: &mut Context<Self>) -> Result<u32> {
        match what {
            Do::Add => self.count += 1,
            Do::Wait => {
                self.waiting.push(cx.defer());
                return Err(Error::deferred());
            }
            Do::Answer => {
                while let Some(later) = self.waiting.remove(0) {
                    if cx.answer(later, Ok(self.count)) {
                        break;
                    }
                }
            }
            Do::Work => {
                let count = self.count;
                return cx.reply_later::<Do>(async move { Ok(count) });
            }
            Do::KickMe => cx.kick(player.id(), "as asked"),
            Do::Close => cx.close("as asked"),
            Do::Panic => panic!("as asked"),
        }
        Ok(self.count)
    }
}

impl On<Found> for Life {
    fn on(&mut self, found: Found, cx: &mut Context<Self>) -> Result<()> {
        match found {
            Found::Room { ok: false } => return Err(Error::with_code(1_002, "no such document")),
            Found::Player { ok: false } => return Err(Error::with_code(1_003, "unknown")),
            Found::Room { ok: true } => {}
            Found::Player { ok: true } => {
                let player = cx.joining().ok_or("nobody joins")?;
                self.admit(player, cx);
            }
            Found::Saved(count) => {
                let id = cx.room_id().to_owned();
                SAVED.with_borrow_mut(|saved| saved.insert(id, count));
            }
        }
        Ok(())
    }
}

pub(super) fn room_type() -> RoomType {
    RoomType::of::<Life>("life")
}
