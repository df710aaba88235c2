//! Bots: clients that a program writes in Rust, with the messages of its rooms.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use playfield_state::{Accepts, Message};

use crate::random::Random;

/// The behavior of one player in a room of type `R`.
///
/// ```
/// # use playfield_state as playfield;
/// use std::time::Duration;
/// use playfield_load::{Bot, Turn};
/// # use playfield_state::{Accepts, Message};
///
/// /// Sends a message five times a second.
/// struct Steady<M>(M);
///
/// impl<R: Accepts<M>, M: Message> Bot<R> for Steady<M> {
///     fn turn(&mut self, turn: &mut Turn<'_, R>) -> Duration {
///         turn.send(&self.0);
///         Duration::from_millis(200)
///     }
/// }
/// ```
pub trait Bot<R> {
    /// Acts: sends messages, and returns how long it waits until its next turn. The first turn
    /// comes once all players of the load have joined, at a random time within its first wait.
    fn turn(&mut self, turn: &mut Turn<'_, R>) -> Duration;
}

impl<R, F: FnMut(&mut Turn<'_, R>) -> Duration> Bot<R> for F {
    fn turn(&mut self, turn: &mut Turn<'_, R>) -> Duration {
        self(turn)
    }
}

/// The turn of a bot: its player, and what it sends.
pub struct Turn<'a, R> {
    inner: &'a mut AnyTurn<'a>,
    room: PhantomData<fn() -> R>,
}

/// A [`Turn`] in a room of any type.
pub(crate) struct AnyTurn<'a> {
    pub(crate) player: u64,
    pub(crate) number: usize,
    pub(crate) random: &'a mut Random,
    pub(crate) sends: &'a mut VecDeque<BotSend>,
}

/// A message that a bot wants to send.
#[derive(Debug)]
pub(crate) struct BotSend {
    pub(crate) index: u32,
    pub(crate) is_request: bool,
    pub(crate) payload: Vec<u8>,
}

impl<R> Turn<'_, R> {
    /// The id of its player in the room.
    #[must_use]
    pub fn player(&self) -> u64 {
        self.inner.player
    }

    /// The number of the bot among all, from 0.
    #[must_use]
    pub fn number(&self) -> usize {
        self.inner.number
    }

    /// A random number below `bound`; 0 if `bound` is 0. Loads with the same seed have the same.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.inner.random.below(bound)
    }

    /// A random number from 0 up to, not including, 1.
    pub fn fraction(&mut self) -> f64 {
        self.inner.random.fraction()
    }

    /// Sends a message without asking for a reply.
    pub fn send<M: Message>(&mut self, message: &M)
    where
        R: Accepts<M>,
    {
        self.push(message, false);
    }

    /// Sends a message that is answered. The reply is timed, and otherwise ignored.
    pub fn request<M: Message>(&mut self, message: &M)
    where
        R: Accepts<M>,
    {
        self.push(message, true);
    }

    fn push<M: Message>(&mut self, message: &M, is_request: bool)
    where
        R: Accepts<M>,
    {
        let mut payload = Vec::new();
        message.encode(&mut payload);
        self.inner.sends.push_back(BotSend {
            index: <R as Accepts<M>>::INDEX,
            is_request,
            payload,
        });
    }
}

/// A bot in a room of any type.
pub(crate) type AnyBot = Box<dyn FnMut(&mut AnyTurn<'_>) -> Duration>;

/// Makes the bot of each connection.
#[derive(Clone)]
pub struct MakeBot(Arc<dyn Fn(usize) -> AnyBot + Send + Sync>);

impl MakeBot {
    /// Makes bots in rooms of type `R`; `make` gets the number of each, from 0.
    pub fn of<R: 'static, B: Bot<R> + 'static>(
        make: impl Fn(usize) -> B + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |number| {
            let mut bot = make(number);
            Box::new(move |any: &mut AnyTurn<'_>| {
                let AnyTurn { player, number, random, sends } = any;
                let mut inner = AnyTurn { player: *player, number: *number, random, sends };
                bot.turn(&mut Turn { inner: &mut inner, room: PhantomData })
            })
        }))
    }

    pub(crate) fn bot(&self, number: usize) -> AnyBot {
        (self.0)(number)
    }
}

impl fmt::Debug for MakeBot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MakeBot")
    }
}

impl PartialEq for MakeBot {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
