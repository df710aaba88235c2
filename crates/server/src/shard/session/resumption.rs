//! State of a session by which it outlives its connection.

use std::time::Duration;

use playfield_session::{Log, Received, Token};
use playfield_wire::RoomNumber;
use playfield_wire::client::ResumeRoom;

use crate::node::Node;
use crate::shard::moment::Moment;

/// The part of a session that can be resumed.
pub(crate) struct Resumption {
    /// The shard that opened it.
    pub(crate) home: u16,
    /// The number of the client's last token.
    pub(crate) generation: u32,
    /// The number of times that the client came back.
    pub(crate) resumes: u32,
    /// The place of the hello by which it came back last in the order of all.
    pub(crate) resumed_by: u64,
    /// Whether the client has spoken since the last `welcome`, so that it has the last token.
    pub(crate) confirmed: bool,
    /// Messages that were sent and are not confirmed.
    pub(crate) log: Log,
    /// The count of messages that were handled.
    pub(crate) received: Received,
    pub(crate) presence: Presence,
}

/// Whether the client of a session is there.
pub(crate) enum Presence {
    Here,
    /// Its connection was lost.
    Away {
        /// Graces count from then.
        since: Moment,
        /// Set once its rooms know. Those of a session that came from another process hear of it
        /// `since` then.
        is_told: bool,
    },
    /// The client has come back, and its rooms bring their copies up to date.
    Resuming(Box<Resuming>),
}

/// A session on the way back: what its client has, and how far it is.
pub(crate) struct Resuming {
    /// The number of counted messages that the client has handled.
    pub(crate) received: u64,
    /// The first counted message that it can still be sent.
    pub(crate) began: u64,
    /// The number of counted messages that it has handled, or was sent again.
    pub(crate) sent: u64,
    /// The copies that the client has, in the order that it names them.
    pub(crate) copies: Vec<ResumeRoom>,
    /// The rooms whose copies are up to date.
    pub(crate) up_to_date: Vec<RoomNumber>,
    /// A room of another shard that was asked for what brings its copy up to date.
    pub(crate) asked: Option<RoomNumber>,
    /// Rooms that the client knows and the session had left before it came back, until the client
    /// is sent that.
    pub(crate) left: Vec<RoomNumber>,
}

impl Resumption {
    pub(crate) fn new(home: u16) -> Self {
        Self {
            home,
            generation: 0,
            resumes: 0,
            resumed_by: 0,
            confirmed: true,
            log: Log::default(),
            received: Received::default(),
            presence: Presence::Here,
        }
    }

    /// The content of the present token of the session with this number, on the node in this slot.
    pub(crate) fn token(&self, slot: u16, session: u64) -> Token {
        Token { slot, shard: self.home, session, generation: self.generation }
    }

    /// The token, as the client is sent it.
    pub(crate) fn signed_token(&self, session: u64, node: &Node) -> Vec<u8> {
        node.tokens.sign(self.token(node.slot(), session)).to_vec()
    }

    /// Returns whether a token of the session is the last one, or the one before if the client may
    /// not have the last.
    pub(crate) fn takes(&self, token: Token) -> bool {
        let Token { generation, .. } = token;
        generation == self.generation
            || (!self.confirmed && generation.wrapping_add(1) == self.generation)
    }

    /// The session is resumed with this token, which it accepts. A client that never received the
    /// last token gets that one again: however many answers are lost in a row, it can come back
    /// with the token that it has.
    pub(crate) fn resumed(&mut self, token: Token) {
        if token.generation == self.generation {
            self.generation = self.generation.wrapping_add(1);
        }
        self.resumes = self.resumes.wrapping_add(1);
        self.confirmed = false;
    }

    /// Returns whether its client is there.
    pub(crate) fn is_here(&self) -> bool {
        matches!(self.presence, Presence::Here)
    }

    /// Since when the client is away.
    pub(crate) fn away_since(&self) -> Option<Duration> {
        match self.presence {
            Presence::Away { since, .. } => Some(since.time()),
            Presence::Here | Presence::Resuming(_) => None,
        }
    }

    /// Returns whether its rooms know that it is away.
    pub(crate) fn is_told(&self) -> bool {
        matches!(self.presence, Presence::Away { is_told: true, .. })
    }

    /// The session on its way back.
    pub(crate) fn resuming(&mut self) -> Option<&mut Resuming> {
        match &mut self.presence {
            Presence::Resuming(resuming) => Some(resuming),
            Presence::Here | Presence::Away { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Resumption;

    #[test]
    fn a_client_whose_answers_are_all_lost_comes_back_by_the_token_that_it_has() {
        let mut resumption = Resumption::new(0);
        let first = resumption.token(0, 7);
        for _ in 0..5 {
            assert!(resumption.takes(first));
            resumption.resumed(first);
        }
        let second = resumption.token(0, 7);
        assert!(resumption.takes(second) && second != first);
        // Once the client has shown that it has a token, the one before is of no use.
        resumption.resumed(second);
        assert!(resumption.takes(second) && !resumption.takes(first));
        resumption.confirmed = true;
        assert!(resumption.takes(resumption.token(0, 7)) && !resumption.takes(second));
    }
}
