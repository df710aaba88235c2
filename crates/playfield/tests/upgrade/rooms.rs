//! The rooms of the programs.

use std::os::unix::process::parent_id;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use playfield::prelude::*;

use crate::node::say_that_it_waits;

/// Makes rooms that continue in this process wait until the previous process has ended.
pub(crate) static WAITS_IN_MOVED: AtomicBool = AtomicBool::new(false);
/// Ends this process as soon as a room continues in it.
pub(crate) static DIES_IN_MOVED: AtomicBool = AtomicBool::new(false);

/// Counts what each bot asks for.
#[derive(State, Default)]
pub(crate) struct Ledger {
    counts: Map<u32, u64>,
    ticks: u64,
    pub(crate) departures: u32,
}

/// The next number of a bot. The reply is the number of requests that were executed.
#[derive(Message, Clone)]
#[reply(u64)]
pub(crate) struct Count {
    pub(crate) bot: u32,
    pub(crate) number: u64,
}

/// A request was executed.
#[derive(Message, Clone)]
pub(crate) struct Counted {
    pub(crate) bot: u32,
    pub(crate) number: u64,
}

/// The reply has this many bytes.
#[derive(Message)]
#[reply(String)]
pub(crate) struct Fill {
    pub(crate) bytes: u32,
}

/// The reply comes when all that was counted is on disk.
#[derive(Message)]
#[reply(())]
pub(crate) struct Save;

#[derive(Message)]
pub(crate) struct Saved(pub(crate) Deferred<Save>);

#[room(
    messages(Count, Save, Fill),
    events(Counted),
    internal(Saved),
    tick_hz = 20,
    sync_hz = 20,
    empty_ms = 60_000,
    persist = 1
)]
impl Room for Ledger {
    fn leave(&mut self, _: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.departures += 1;
    }

    fn tick(&mut self, _: &mut Context<Self>) {
        self.ticks += 1;
    }

    fn moved(&mut self, _: &mut Context<Self>) {
        if DIES_IN_MOVED.load(Ordering::Relaxed) {
            #[expect(clippy::disallowed_methods, reason = "it is to die")]
            std::process::exit(4);
        }
        if WAITS_IN_MOVED.load(Ordering::Relaxed) {
            let before = parent_id();
            say_that_it_waits();
            while parent_id() == before {
                #[expect(clippy::disallowed_methods, reason = "the system does not signal it")]
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

impl Handle<Count> for Ledger {
    fn handle(&mut self, count: Count, _: &Player, cx: &mut Context<Self>) -> Result<u64> {
        let Count { bot, number } = count;
        let executed = self.counts.get_or_default(bot);
        *executed += 1;
        let executed = *executed;
        cx.emit(&Counted { bot, number });
        Ok(executed)
    }
}

impl Handle<Fill> for Ledger {
    fn handle(&mut self, fill: Fill, _: &Player, _: &mut Context<Self>) -> Result<String> {
        Ok("x".repeat(fill.bytes as usize))
    }
}

impl Handle<Save> for Ledger {
    fn handle(&mut self, _: Save, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        let later = cx.defer();
        cx.save(Saved(later))?;
        Err(Error::deferred())
    }
}

impl On<Saved> for Ledger {
    fn on(&mut self, Saved(later): Saved, cx: &mut Context<Self>) -> Result<()> {
        cx.answer(later, Ok(()));
        Ok(())
    }
}

/// A room that only the program speaks to.
#[derive(State, Default)]
pub(crate) struct Desk {
    added: u64,
    #[sync(hidden)]
    held: List<Deferred<Hold>>,
}

/// The reply is the number of these.
#[derive(Message)]
#[reply(u64)]
pub(crate) struct Add;

/// The reply comes with [`Free`].
#[derive(Message)]
#[reply(u64)]
pub(crate) struct Hold;

/// Answers all that is held with this.
#[derive(Message)]
pub(crate) struct Free(pub(crate) u64);

#[room(internal(Add, Hold, Free), empty_ms = 600_000, reply_ms = 600_000)]
impl Room for Desk {}

impl On<Add> for Desk {
    fn on(&mut self, _: Add, _: &mut Context<Self>) -> Result<u64> {
        self.added += 1;
        Ok(self.added)
    }
}

impl On<Hold> for Desk {
    fn on(&mut self, _: Hold, cx: &mut Context<Self>) -> Result<u64> {
        self.held.push(cx.defer());
        Err(Error::deferred())
    }
}

impl On<Free> for Desk {
    fn on(&mut self, Free(with): Free, cx: &mut Context<Self>) -> Result<()> {
        while let Some(held) = self.held.pop() {
            cx.answer(held, Ok(with));
        }
        Ok(())
    }
}

/// Like [`Ledger`], with a field of another type.
pub(crate) mod other_build {
    use playfield::prelude::*;

    #[derive(State, Default)]
    pub(crate) struct Ledger {
        pub(crate) counts: Map<String, u64>,
        pub(crate) ticks: u64,
        pub(crate) departures: u32,
    }

    #[room(tick_hz = 20, sync_hz = 20)]
    impl Room for Ledger {}
}

/// Another game.
#[derive(State, Default)]
pub(crate) struct Chess {
    moves: u32,
}

#[room()]
impl Room for Chess {}

/// Hangs when it is thawed.
pub(crate) mod hanging {
    use playfield::prelude::*;

    use crate::node::say_that_it_waits;

    #[derive(State, Default)]
    pub(crate) struct Ledger {
        pub(crate) counts: Map<u32, u64>,
        pub(crate) ticks: u64,
        pub(crate) departures: u32,
        #[sync(skip)]
        _hangs: Hangs,
    }

    struct Hangs;

    impl Default for Hangs {
        fn default() -> Self {
            say_that_it_waits();
            #[expect(clippy::disallowed_methods, reason = "it hangs, as it is to do")]
            std::thread::sleep(crate::PATIENCE);
            Self
        }
    }

    #[room(tick_hz = 20, sync_hz = 20)]
    impl Room for Ledger {}
}
