//! Moves of rooms to other nodes.

use playfield_room::{Error, Result};
use playfield_wire::ErrorCode;

use super::NodeHandle;
use crate::cluster::Drained;

impl NodeHandle {
    /// Moves a room to the node of the cluster with this name (`cluster.node`), with the sessions
    /// of its players. It keeps its id, key, state, timers and players. To clients, their
    /// connections are lost for a moment, and they come back at the other node without losing
    /// anything. Sessions that are in other rooms, too, stay here and leave the room with
    /// `room_moved`.
    ///
    /// # Errors
    /// `room_not_found`; `unreachable` if no other node has that name; `refused` if the other node
    /// can't read the room, or it is of a journaled type; `busy` if it can't be decided now. The
    /// room goes on here then. `room_moved` if another node has taken it over meanwhile.
    pub async fn move_room(&self, room_id: &str, node: &str) -> Result<()> {
        let (id, _) = self.place(room_id)?;
        let Some(cluster) = &self.node.cluster else {
            let text = "this node is in no cluster: set cluster.engine";
            return Err(Error::new(ErrorCode::Refused, text));
        };
        cluster.move_room(id, node.to_owned()).await
    }

    /// Moves all rooms to the other nodes of the cluster, as [`move_room`](Self::move_room) does,
    /// for up to `cluster.drain_timeout`. From now on, no new room is placed here by the cluster.
    /// Rooms that can't move go on here: to end them, [stop](crate::Stopper) the node then. Without
    /// a cluster, nothing happens.
    pub async fn drain(&self) -> Drained {
        match &self.node.cluster {
            Some(cluster) => {
                let drained = cluster.drain(self.node.config.cluster.drain_timeout).await;
                log::info!(
                    "{} rooms have moved to other nodes, {} are left",
                    drained.moved,
                    drained.left
                );
                drained
            }
            None => Drained { moved: 0, left: self.node.directory.count() },
        }
    }
}
