//! Replies that come later.

use std::future::Future;

use playfield_state::Data;
use playfield_wire::ErrorCode;

use super::Context;
use crate::Message;
use crate::deferred::{Asker, Deferred, pack};
use crate::{Error, InternalMessage, Mail, Result, RoomOutput};

impl<'a, R> Context<'a, R> {
    /// Keeps the request that this handler ([`Handle`](crate::Handle), or [`On`](crate::On) for
    /// another room's) is about to answer, for [`answer`](Self::answer). The handler then returns
    /// [`Error::deferred`]. If it returns anything else, that is the answer.
    ///
    /// A reply that is not given within `reply_ms` fails with `timeout`, and at the room's end with
    /// `room_closed`. Past [`DEFERRED_MAX`](crate::DEFERRED_MAX) of them, a request is answered
    /// with `limit`. If the message was no request, nobody waits.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// use playfield::prelude::*;
    /// use playfield::sim::Sim;
    ///
    /// /// Two players who press at the same time see each other's name.
    /// #[derive(State, Default)]
    /// struct Handshake {
    ///     #[sync(hidden)]
    ///     waiting: Option<Deferred<Shake>>,
    /// }
    ///
    /// #[derive(Message)]
    /// #[reply(String)]
    /// struct Shake;
    ///
    /// #[room(messages(Shake))]
    /// impl Room for Handshake {}
    ///
    /// impl Handle<Shake> for Handshake {
    ///     fn handle(&mut self, _: Shake, player: &Player, cx: &mut Context<Self>) -> Result<String> {
    ///         match self.waiting.take() {
    ///             Some(other) if cx.answer(other, Ok(player.name().to_owned())) => {
    ///                 Ok("them, at once".into())
    ///             }
    ///             _ => {
    ///                 self.waiting = Some(cx.defer());
    ///                 Err(Error::deferred())
    ///             }
    ///         }
    ///     }
    /// }
    ///
    /// let mut sim = Sim::<Handshake>::new(1);
    /// let (ann, bob) = (sim.join("Ann")?, sim.join("Bob")?);
    /// let asked = sim.request_begin(ann, Shake);
    /// assert_eq!(sim.reply(&asked), None);
    /// assert_eq!(sim.request(bob, Shake)?, "them, at once");
    /// assert_eq!(sim.reply(&asked), Some(Ok("Bob".into())));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn defer<M: Message>(&mut self) -> Deferred<M> {
        let by = self.context.now.saturating_add(self.context.reply_wait);
        self.context.replies.defer(by)
    }

    /// Answers a request that was [deferred](Self::defer). Returns `false` if nobody waits for the
    /// answer: it was answered before, it failed, or the player has left.
    pub fn answer<M: Message>(&mut self, later: Deferred<M>, reply: Result<M::Reply>) -> bool {
        let Some(to) = self.context.replies.take(later) else { return false };
        let reply = reply.map(|reply| {
            let mut payload = Vec::new();
            reply.write(to.format(), &mut payload);
            payload
        });
        send_reply(&to, reply.as_deref().map_err(Error::clone), self.out);
        true
    }

    /// Defers the reply to background work, which runs as with [`spawn`](Self::spawn): return what
    /// this returns from the handler of `M`.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// # use playfield::prelude::*;
    /// # #[derive(State, Default)]
    /// # struct Library {}
    /// # #[derive(Message)]
    /// # #[reply(String)]
    /// # struct Look { word: String }
    /// # async fn look_up(word: String) -> Result<String> { Ok(word) }
    /// # #[room(messages(Look))]
    /// # impl Room for Library {}
    /// impl Handle<Look> for Library {
    ///     fn handle(&mut self, look: Look, _: &Player, cx: &mut Context<Self>) -> Result<String> {
    ///         cx.reply_later::<Look>(look_up(look.word))
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// Always: [`Error::deferred`], or as [`spawn`](Self::spawn).
    pub fn reply_later<M: Message>(
        &mut self,
        work: impl Future<Output = Result<M::Reply>> + Send + 'static,
    ) -> Result<M::Reply> {
        let format = self.context.replies.format();
        let task = self.context.number()?;
        let name = M::NAME.into();
        let work = async move { InternalMessage { name, payload: pack(format, work.await) } };
        self.out.spawn(task, Box::pin(work))?;
        let later = self.defer::<M>();
        self.context.tasks.insert(task, M::NAME);
        self.context.replying.insert(task, later.number);
        Err(Error::deferred())
    }

    /// Returns the error with which the handler of `M` refused; another one, if it deferred the
    /// reply to another message.
    #[cold]
    pub(crate) fn checked<M: Message>(&mut self, error: Error) -> Error {
        match self.context.replies.check(M::NAME) {
            Err(wrong) if error.is_deferred() => wrong,
            _ => error,
        }
    }
}

/// Answers a request that was deferred.
pub(crate) fn send_reply(to: &Asker, reply: Result<&[u8]>, out: &mut dyn RoomOutput) {
    // It would say that the answer comes later.
    let reply = reply.map_err(|error| match error.is_deferred() {
        true => Error::new(ErrorCode::Internal, "the room did not answer"),
        false => error,
    });
    match (to, reply) {
        (Asker::Player { link, request, .. }, Ok(payload)) => out.reply(*link, *request, payload),
        (Asker::Player { link, request, .. }, Err(error)) => {
            out.error(*link, Some(*request), &error);
        }
        (Asker::Room { from, ask }, reply) => {
            let to = from.as_deref().map_or("", |from| &from.room_id);
            out.post(to, Mail::Answered { ask: *ask, reply: reply.map(<[u8]>::to_vec) });
        }
    }
}
