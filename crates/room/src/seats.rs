//! The players in a room.

use std::collections::VecDeque;

use playfield_state::PlayerId;

use crate::Player;

/// Memory is given back if there is space for this many times the players.
const SLACK: usize = 8;

/// The players in a room, in the order of their numbers, which is that in which they came.
#[derive(Default)]
pub(crate) struct Seats(VecDeque<(PlayerId, Box<Player>)>);

impl Seats {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the place of a player, or the place for one with this number.
    #[inline]
    fn place(&self, id: PlayerId) -> Result<usize, usize> {
        // Numbers are given one after the other: as long as nobody but the first ones has left,
        // this is the place.
        let first = self.0.front().map_or(id, |(first, _)| *first);
        let place = usize::try_from(id.0.wrapping_sub(first.0)).unwrap_or(usize::MAX);
        match self.0.get(place) {
            Some((at, _)) if *at == id => Ok(place),
            _ => self.0.binary_search_by_key(&id, |(at, _)| *at),
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: PlayerId) -> Option<&Player> {
        let (_, player) = self.0.get(self.place(id).ok()?)?;
        Some(player)
    }

    pub(crate) fn get_mut(&mut self, id: PlayerId) -> Option<&mut Player> {
        let place = self.place(id).ok()?;
        let (_, player) = self.0.get_mut(place)?;
        Some(player)
    }

    /// Adds a player, who takes the place of one with the same number.
    pub(crate) fn insert(&mut self, player: Player) {
        let seat = (player.id, Box::new(player));
        match self.place(seat.0) {
            Ok(place) => self.0[place] = seat,
            Err(place) => self.0.insert(place, seat),
        }
    }

    pub(crate) fn remove(&mut self, id: PlayerId) -> Option<Player> {
        let (_, player) = self.0.remove(self.place(id).ok()?)?;
        if self.0.capacity() > SLACK * self.0.len() {
            self.0.shrink_to(2 * self.0.len());
        }
        Some(*player)
    }

    /// The number of the first player.
    pub(crate) fn first(&self) -> Option<PlayerId> {
        self.0.front().map(|(id, _)| *id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Player> {
        self.0.iter().map(|(_, player)| &**player)
    }

    /// Takes all players out.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Player> + use<> {
        std::mem::take(&mut self.0).into_iter().map(|(_, player)| *player)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use playfield_state::{Format, PlayerId};
    use proptest::prelude::*;

    use super::{SLACK, Seats};
    use crate::{Claims, Link, Player};

    fn player(id: u64, link: u64) -> Player {
        Player {
            id: PlayerId(id),
            name: String::new(),
            user: None,
            claims: Claims::default(),
            seat: None,
            link: Link(link),
            format: Format::Packed,
            is_connected: true,
        }
    }

    proptest! {
        /// Most players come with the next number; one who has waited comes with an earlier one.
        #[test]
        fn seats_are_a_map_in_the_order_of_numbers(
            steps in proptest::collection::vec((0_u64..6, 0_u64..24), 1..300),
        ) {
            let (mut seats, mut model, mut next) = (Seats::default(), BTreeMap::new(), 1_u64);
            for (link, (step, back)) in (0..).zip(steps) {
                let id = match step {
                    0..3 => next,
                    _ => next.saturating_sub(back),
                };
                if step < 4 {
                    next = next.max(id) + 1;
                    seats.insert(player(id, link));
                    model.insert(PlayerId(id), Link(link));
                } else {
                    let removed = seats.remove(PlayerId(id)).map(|player| player.link);
                    prop_assert_eq!(removed, model.remove(&PlayerId(id)));
                }
                for id in (0..next + 2).map(PlayerId) {
                    let found = seats.get(id).map(|player| (player.id, player.link));
                    prop_assert_eq!(found, model.get(&id).map(|link| (id, *link)));
                }
                let all: Vec<_> = seats.iter().map(|player| (player.id, player.link)).collect();
                prop_assert_eq!(all, model.clone().into_iter().collect::<Vec<_>>());
                prop_assert_eq!(seats.first(), model.keys().next().copied());
                prop_assert_eq!((seats.len(), seats.is_empty()), (model.len(), model.is_empty()));
            }
        }
    }

    #[test]
    fn a_room_that_was_full_gives_memory_back() {
        let mut seats = Seats::default();
        (0..10_000).for_each(|id| seats.insert(player(id, id)));
        (0..9_999).for_each(|id| drop(seats.remove(PlayerId(id))));
        assert_eq!(seats.get(PlayerId(9_999)).map(|player| player.link), Some(Link(9_999)));
        assert!(seats.0.capacity() <= 2 * SLACK, "{}", seats.0.capacity());
        drop(seats.remove(PlayerId(9_999)));
        assert_eq!(seats.0.capacity(), 0);
    }
}
