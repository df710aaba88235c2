//! Rooms with one peculiarity each.

use playfield::prelude::*;

/// Has two seats.
#[derive(State, Default)]
pub(crate) struct Duo {
    players: Map<PlayerId, String>,
}

/// Lets nobody in any more, or everybody again.
#[derive(Message)]
pub(crate) struct Lock {
    locked: bool,
}

#[room(messages(Lock), capacity = 2)]
impl Room for Duo {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.players.insert(player.id(), player.name().to_owned());
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.players.remove(&player.id());
    }
}

impl Handle<Lock> for Duo {
    fn handle(&mut self, lock: Lock, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        if lock.locked {
            cx.lock();
        } else {
            cx.unlock();
        }
        Ok(())
    }
}

/// Keeps the seat of a player whose connection was lost for a moment only.
#[derive(State, Default)]
pub(crate) struct Brief {
    gone: u32,
    total: u32,
}

#[room(messages(Add), grace_ms = 50)]
impl Room for Brief {
    fn leave(&mut self, _: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.gone += 1;
    }
}

impl Handle<Add> for Brief {
    fn handle(&mut self, add: Add, _: &Player, _: &mut Context<Self>) -> Result<u32> {
        self.total = self.total.saturating_add(add.number);
        Ok(self.total)
    }
}

/// Syncs on demand only.
#[derive(State, Default)]
pub(crate) struct Still {
    value: u32,
}

#[derive(Message)]
#[reply(u32)]
pub(crate) struct Add {
    number: u32,
}

#[derive(Message)]
pub(crate) struct Sync;

#[room(messages(Add, Sync), sync_hz = 0)]
impl Room for Still {}

impl Handle<Add> for Still {
    fn handle(&mut self, add: Add, _: &Player, _: &mut Context<Self>) -> Result<u32> {
        self.value = self.value.saturating_add(add.number);
        Ok(self.value)
    }
}

impl Handle<Sync> for Still {
    fn handle(&mut self, _: Sync, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.sync_now();
        Ok(())
    }
}

/// Ticks, and changes with each tick.
#[derive(State, Default)]
pub(crate) struct Ticking {
    ticks: u32,
}

#[room(tick_hz = 20)]
impl Room for Ticking {
    fn tick(&mut self, _: &mut Context<Self>) {
        self.ticks = self.ticks.wrapping_add(1);
    }
}

/// Clients can't create it.
#[derive(State, Default)]
pub(crate) struct Closed {}

#[room(creation = server)]
impl Room for Closed {}

/// A user is in it once, and nobody else once someone is.
#[derive(State, Default)]
pub(crate) struct Single {
    players: Map<PlayerId, String>,
}

#[room(one_per_user = take_over)]
impl Room for Single {
    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        self.players.insert(player.id(), player.name().to_owned());
        cx.lock();
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.players.remove(&player.id());
    }
}

/// Decides about itself and its players.
#[derive(State, Default)]
pub(crate) struct Guarded {
    size: u32,
    map: String,
}

#[derive(Data, Default)]
pub(crate) struct Setup {
    size: u32,
    map: String,
}

#[room(criteria(map))]
impl Room for Guarded {
    type Options = Setup;

    fn create(setup: Setup, _: &mut Context<Self>) -> Result<Self> {
        if setup.size > 8 {
            return Err(Error::with_code(1008, format!("a size of {} is too large", setup.size)));
        }
        Ok(Self { size: setup.size, map: setup.map })
    }

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        if player.name() == "Nobody" { Err("nobody may join".into()) } else { Ok(()) }
    }
}
