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

/// Chooses this node, with that load if it may have the room, unless it is busy or has more than
/// 5/4 of the rooms that nodes have on average. Otherwise the better one of two others.
pub(crate) fn choose(
    own: Option<Load>,
    peers: &[(&Peer, Load)],
    random: &mut Random,
) -> Option<Choice> {
    let Some(own) = own else {
        let (peer, _) = better_of_two(peers, random)?;
        return Some(Choice::At(peer.clone()));
    };
    let rooms: u64 = peers.iter().map(|(_, load)| u64::from(load.rooms)).sum();
    let (rooms, nodes) = (rooms + u64::from(own.rooms), peers.len() as u64 + 1);
    let is_even = u64::from(own.rooms) * nodes * 4 <= rooms * 5;
    if own.busy_percent < BUSY && is_even {
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
