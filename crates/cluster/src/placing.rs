//! The choice of a node for a new room.

use crate::effect::Peer;
use crate::random::Random;
use crate::record::Load;

/// The node for a new room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This node.
    Here,
    /// That node.
    At(Peer),
}

/// The percentage from which on a node is busy.
const BUSY: u8 = 70;

/// A node has so many rooms more than that before others get new ones: to be sent to another node
/// takes a player longer than a few rooms more.
const SLACK: u64 = 8;

/// Returns whether a node with this load gets new rooms before others do: it is not busy, and has
/// no more than 5/4 of the rooms that nodes have on average, but for some.
pub(crate) fn takes_next(own: Load, others: impl ExactSizeIterator<Item = Load>) -> bool {
    let nodes = others.len() as u64 + 1;
    let rooms = others.map(|load| u64::from(load.rooms)).sum::<u64>() + u64::from(own.rooms);
    let is_even = u64::from(own.rooms) * nodes * 4 <= rooms * 5 + SLACK * nodes * 4;
    own.busy_percent < BUSY && is_even
}

/// Chooses this node, with that load if it may have the room, if it [takes the
/// next](takes_next). Otherwise the better one of two others.
pub(crate) fn choose(
    own: Option<Load>,
    peers: &[(&Peer, Load)],
    random: &mut Random,
) -> Option<Choice> {
    let Some(own) = own else {
        let (peer, _) = better_of_two(peers, random)?;
        return Some(Choice::At(peer.clone()));
    };
    if takes_next(own, peers.iter().map(|(_, load)| *load)) {
        return Some(Choice::Here);
    }
    match better_of_two(peers, random) {
        Some((peer, load)) if weight(load) < weight(own) => Some(Choice::At(peer.clone())),
        _ => Some(Choice::Here),
    }
}

fn better_of_two<'a>(peers: &[(&'a Peer, Load)], random: &mut Random) -> Option<(&'a Peer, Load)> {
    let count = peers.len() as u64;
    if count < 2 {
        return peers.first().copied();
    }
    let first = random.below(count);
    let second = (first + 1 + random.below(count - 1)) % count;
    let two = [first, second].map(|index| peers[index as usize]);
    two.into_iter().min_by_key(|(_, load)| weight(*load))
}

/// Nodes with less are better.
fn weight(load: Load) -> (bool, u32, u8) {
    (load.busy_percent >= BUSY, load.rooms, load.busy_percent)
}
