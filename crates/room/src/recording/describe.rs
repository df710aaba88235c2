//! Inputs, as people read them.

use playfield_state::PlayerId;

use super::Input;
use crate::{Mail, Operation};

/// An input without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The kind of input.
    pub kind: InputKind,
    /// The player whom it is about.
    pub player: Option<PlayerId>,
    /// More about it; may be empty.
    pub text: String,
}

/// The kinds of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputKind {
    /// A step of the simulation.
    Tick,
    /// A sync, or several that changed nothing.
    Sync,
    /// Timers and deadlines.
    Wake,
    /// The round trip to a player was measured.
    Measured,
    /// A player's message.
    Message,
    /// A player wants to join.
    Join,
    /// A player left.
    Leave,
    /// A player's connection was lost.
    Lost,
    /// A player is back.
    Returned,
    /// A seat is reserved.
    Reserve,
    /// A message from others than the players.
    Mail,
    /// An operator's wish.
    Operate,
    /// The room ends.
    Close,
    /// The room stood still, and goes on.
    Resumed,
}

impl InputKind {
    /// Its name, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tick => "tick",
            Self::Sync => "sync",
            Self::Wake => "wake",
            Self::Measured => "measured",
            Self::Message => "message",
            Self::Join => "join",
            Self::Leave => "leave",
            Self::Lost => "lost",
            Self::Returned => "returned",
            Self::Reserve => "reserve",
            Self::Mail => "mail",
            Self::Operate => "operate",
            Self::Close => "close",
            Self::Resumed => "resumed",
        }
    }

    /// Returns whether it comes from the host's clock, and not from anybody.
    #[must_use]
    pub fn is_clock(self) -> bool {
        matches!(self, Self::Tick | Self::Sync | Self::Wake | Self::Measured)
    }
}

impl Input<'_> {
    /// The kind of input.
    #[must_use]
    pub fn kind(&self) -> InputKind {
        match self {
            Self::Tick(_) => InputKind::Tick,
            Self::Sync | Self::PassSyncs(_) => InputKind::Sync,
            Self::Wake => InputKind::Wake,
            Self::Measured(..) => InputKind::Measured,
            Self::Message { .. } => InputKind::Message,
            Self::Join(_) => InputKind::Join,
            Self::Leave(..) => InputKind::Leave,
            Self::Lost(_) => InputKind::Lost,
            Self::Returned(..) => InputKind::Returned,
            Self::Reserve(..) => InputKind::Reserve,
            Self::Mail(_) => InputKind::Mail,
            Self::Operate(_) => InputKind::Operate,
            Self::Close(..) | Self::Part | Self::Abandon => InputKind::Close,
            Self::Resumed(_) => InputKind::Resumed,
        }
    }

    /// The player whom it is about. One who joins has no number yet.
    #[must_use]
    pub fn player(&self) -> Option<PlayerId> {
        match self {
            Self::Message { player, .. }
            | Self::Lost(player)
            | Self::Returned(player, _)
            | Self::Measured(player, _)
            | Self::Leave(player, _) => Some(*player),
            Self::Operate(operation) => match &**operation {
                Operation::Kick { player, .. } => Some(*player),
                Operation::Emit { to, .. } => *to,
                Operation::Lock(_) | Operation::Record(_) => None,
            },
            _ => None,
        }
    }

    /// The input, without its payload.
    #[must_use]
    pub fn describe(&self) -> Described {
        let text = match self {
            Self::Tick(number) => number.to_string(),
            Self::PassSyncs(syncs) => format!("{syncs} that changed nothing"),
            Self::Join(entrant) => entrant.name.clone(),
            Self::Reserve(who, wait) => format!("{who:?}, for {wait:?}"),
            Self::Returned(_, away) | Self::Resumed(away) => format!("after {away:.1?}"),
            Self::Measured(_, round_trip) => format!("{round_trip:.1?}"),
            Self::Leave(_, why) => format!("{why:?}"),
            Self::Mail(mail) => described_mail(mail),
            Self::Operate(operation) => match &**operation {
                Operation::Kick { text, .. } => format!("kick: {text}"),
                Operation::Lock(locked) => if *locked { "lock" } else { "unlock" }.to_owned(),
                Operation::Record(_) => "record".to_owned(),
                Operation::Emit { .. } => "an event".to_owned(),
            },
            Self::Close(why, text) => format!("{why:?}: {text}"),
            Self::Part => "the players leave".to_owned(),
            Self::Abandon => "at once".to_owned(),
            Self::Sync | Self::Wake | Self::Message { .. } | Self::Lost(_) => String::new(),
        };
        Described { kind: self.kind(), player: self.player(), text }
    }
}

fn described_mail(mail: &Mail) -> String {
    let from = |from: &Option<std::sync::Arc<crate::Sender>>| match from {
        Some(sender) => format!("room {}", sender.room_id),
        None => "outside".to_owned(),
    };
    match mail {
        Mail::Done { message, .. } => format!("background work ended: {}", message.name),
        Mail::Panicked { .. } => "background work panicked".to_owned(),
        Mail::Saved { outcome: Ok(()), .. } => "saved".to_owned(),
        Mail::Saved { outcome: Err(error), .. } => format!("not saved: {error}"),
        Mail::Told { from: of, message } => format!("{} from {}", message.name, from(of)),
        Mail::Asked { from: of, message, .. } => {
            format!("request {} from {}", message.name, from(of))
        }
        Mail::Answered { reply: Ok(_), .. } => "the answer of another room".to_owned(),
        Mail::Answered { reply: Err(error), .. } => format!("another room refused: {error}"),
    }
}
