//! Background work, and saves.

use std::future::Future;

use playfield_wire::ErrorCode;

use super::{Context, limit};
use crate::context_state::{Asked, Effect, PENDING_MAX};
use crate::message::InternalOf;
use crate::{Error, InternalMessage, Result};

impl<'a, R> Context<'a, R> {
    /// Starts a background task that waits: for a database, a web service, a file. Its result
    /// arrives by [`On`](crate::On).
    ///
    /// All tasks of a node share one thread with a Tokio runtime (`current_thread`, with I/O and
    /// time enabled). So `tokio::spawn` and clients built on Tokio work in them, and a task must
    /// not compute or block: use [`compute`](Self::compute), or `tokio::task::spawn_blocking`.
    ///
    /// A task that panics closes the room. A room that ends waits for tasks that it has begun since
    /// its end began, at most `closing_ms`. Other tasks outlive their room: their result is
    /// discarded. At shutdown, unfinished tasks are dropped. In [`Sim`](crate::sim::Sim), tasks run
    /// without Tokio; end those that need it with [`Sim::finish`](crate::sim::Sim::finish).
    ///
    /// # Errors
    /// `busy` when the node has `limits.queues.tasks` unfinished tasks, `limit` at
    /// [`PENDING_MAX`](crate::PENDING_MAX). If a task begun in `create` meets a busy node, the room
    /// is closed.
    pub fn spawn<M: InternalOf<R>>(
        &mut self,
        work: impl Future<Output = M> + Send + 'static,
    ) -> Result<()> {
        self.spawn_numbered(work).map(drop)
    }

    /// Starts a background task as [`spawn`](Self::spawn) does, and holds the room or the player
    /// until its message was handled.
    ///
    /// - In [`Room::create`](crate::Room::create): nobody enters the room before. `Ok` from the
    ///   handler ([`On`](crate::On)) of the message opens the room; an error refuses all who wait,
    ///   and there is no room. Until it opens, there are no ticks and no timers, and messages from
    ///   other rooms wait (at most [`HELD_MAIL_MAX`](crate::HELD_MAIL_MAX)).
    /// - In [`Room::join`](crate::Room::join), which returns `Ok`: the player waits, with a seat
    ///   that counts against the capacity, but is not among the [players](Self::players). `Ok` from
    ///   the handler of the message seats the player, who is [`joining`](Self::joining) there; an
    ///   error refuses them. The handler does what `join` would do with someone it admits at once.
    ///   If the player disconnects before, the message is dropped, and no callback is called for
    ///   them.
    /// - In that handler: the wait goes on.
    ///
    /// If the work panics, a player is refused with `internal`, and the room goes on; a room that
    /// waited for it is closed.
    ///
    /// Whoever waits for more than `join_wait_ms` is refused with `timeout`. Beyond
    /// `joins_waiting_max` players who wait, more are refused with `busy`.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// use playfield::prelude::*;
    /// use playfield::sim::Sim;
    ///
    /// #[derive(State, Default)]
    /// struct Club {
    ///     members: Map<PlayerId, String>,
    /// }
    ///
    /// #[derive(Message)]
    /// struct LookedUp {
    ///     is_member: bool,
    /// }
    ///
    /// async fn look_up(name: String) -> bool {
    ///     name == "Ann" // ask a database instead
    /// }
    ///
    /// #[room(internal(LookedUp))]
    /// impl Room for Club {
    ///     fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
    ///         let name = player.name().to_owned();
    ///         cx.hold(async move { LookedUp { is_member: look_up(name).await } })
    ///     }
    /// }
    ///
    /// impl On<LookedUp> for Club {
    ///     fn on(&mut self, found: LookedUp, cx: &mut Context<Self>) -> Result<()> {
    ///         let player = cx.joining().ok_or("nobody is joining")?;
    ///         if !found.is_member {
    ///             return Err("members only".into());
    ///         }
    ///         self.members.insert(player.id(), player.name().to_owned());
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let mut sim = Sim::<Club>::new(1);
    /// let (ann, bob) = (sim.join_begin("Ann")?, sim.join_begin("Bob")?);
    /// assert!(sim.is_waiting(ann));
    /// sim.run_background();
    /// assert!(sim.is_here(ann));
    /// assert_eq!(sim.why_gone(bob).unwrap().text(), "members only");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn); `internal` in any other callback.
    pub fn hold<M: InternalOf<R>>(
        &mut self,
        work: impl Future<Output = M> + Send + 'static,
    ) -> Result<()> {
        let Some(subject) = self.context.subject else {
            let text = "cx.hold: nobody is to be held in this callback; call it in create, in \
                        join, or in the handler of work that was held";
            return Err(Error::new(ErrorCode::Internal, text));
        };
        let task = self.spawn_numbered(work)?;
        self.context.holds.insert(task, subject);
        self.context.holds_begun += 1;
        Ok(())
    }

    /// In [`Room::moved`](crate::Room::moved): the number of abandoned background tasks that would
    /// have ended with this message. They were in flight when the room was frozen, and the host
    /// didn't wait for them.
    pub fn given_up<M: InternalOf<R>>(&self) -> usize {
        self.context.given_up.iter().filter(|name| **name == M::NAME).count()
    }

    /// Saves the room now, instead of when it is due. The room receives this message by
    /// [`On`](crate::On) when the state as it is after this callback, or a later one, is on disk.
    ///
    /// A save that fails is logged and tried again, so the message may take longer; if the room
    /// ends before one succeeds, it is not sent. To learn of a failure, use
    /// [`try_save`](Self::try_save).
    ///
    /// # Errors
    /// `refused` if the room is not [persistent](crate::Room#rooms-that-last), `limit` if
    /// [`PENDING_MAX`](crate::PENDING_MAX) messages wait for a save.
    pub fn save<M: InternalOf<R>>(&mut self, message: M) -> Result<()> {
        self.ask_for_save(Asked::Saved(InternalMessage::of(&message)))
    }

    /// Saves the room as [`save`](Self::save) does. The room receives what `message` makes of the
    /// outcome of one attempt. An attempt that failed is followed by others all the same.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn try_save<M: InternalOf<R>>(
        &mut self,
        message: impl FnOnce(Result<()>) -> M + Send + 'static,
    ) -> Result<()> {
        let make = move |outcome| InternalMessage::of(&message(outcome));
        self.ask_for_save(Asked::Outcome(Box::new(make)))
    }

    /// Queues a computation for a pool of threads that the node's rooms share (`threads.compute` of
    /// them). Its result arrives by [`On`](crate::On).
    ///
    /// A computation that panics closes the room. At the room's end it is as with
    /// [`spawn`](Self::spawn). At shutdown, queued computations are dropped; one that is running is
    /// not interrupted.
    ///
    /// # Errors
    /// `busy` when `limits.queues.computations` computations are queued, `limit` at
    /// [`PENDING_MAX`](crate::PENDING_MAX). If a computation begun in `create` meets a full queue,
    /// the room is closed.
    pub fn compute<M: InternalOf<R>>(
        &mut self,
        work: impl FnOnce() -> M + Send + 'static,
    ) -> Result<()> {
        let task = self.context.number()?;
        self.out.compute(task, Box::new(move || InternalMessage::of(&work())))?;
        self.context.tasks.insert(task, M::NAME);
        Ok(())
    }

    fn ask_for_save(&mut self, asked: Asked) -> Result<()> {
        if !self.context.persists {
            let text = "cx.save: the room is not saved: its type needs `#[room(persist = 10)]`, \
                        and the room a key";
            return Err(Error::new(ErrorCode::Refused, text));
        }
        if self.context.saves_asked >= PENDING_MAX {
            return Err(limit(format!("{PENDING_MAX} messages wait for a save of this room")));
        }
        self.context.saves_asked += 1;
        self.context.effects.push(Effect::Save(asked));
        Ok(())
    }

    fn spawn_numbered<M: InternalOf<R>>(
        &mut self,
        work: impl Future<Output = M> + Send + 'static,
    ) -> Result<u64> {
        let task = self.context.number()?;
        self.out.spawn(task, Box::pin(async move { InternalMessage::of(&work.await) }))?;
        self.context.tasks.insert(task, M::NAME);
        Ok(task)
    }
}
