//! State that all shards of a node have in common.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use playfield_room::{AnyRoom, CreatedBy, Error, RoomType, Store};
use playfield_session::TokenKey;
use playfield_wire::ErrorCode;
use tokio::sync::Semaphore;

use crate::addresses::Addresses;
use crate::asks::Asks;
use crate::auth::{Admit, Authenticator};
use crate::away::AwaySessions;
use crate::channel::{ChannelRules, Totals};
use crate::cluster::{Cluster, KeyOf, SessionSeek};
use crate::config::Config;
use crate::directory::Directory;
use crate::fleet::HostedFleet;
use crate::http::Requests;
use crate::journal::Journal;
use crate::kept_store::KeptStore;
use crate::moved::Moved;
use crate::recordings::Recordings;
use crate::room_id::RoomId;
use crate::shard::keys::ConnectionKey;
use crate::tickets::TicketChecker;
use crate::users::Users;

/// The most replays that run at once, each on a thread of its own.
const REPLAYS_MAX: usize = 2;

/// The node, as its shards know it.
pub(crate) struct Node {
    pub(crate) config: Config,
    pub(crate) shards: usize,
    pub(crate) room_types: Vec<RoomType>,
    by_name: HashMap<String, u16>,
    /// The paths of services that are reached by WebSocket, and their numbers.
    pub(crate) service_paths: Vec<(String, u16)>,
    /// HTTP requests that wait for an answer.
    pub(crate) requests: Requests,
    pub(crate) authenticator: Box<dyn Authenticator>,
    /// Decides about users whom the authenticator or a ticket admits.
    pub(crate) admit: Option<Arc<Admit>>,
    /// Checks tickets, if there are any.
    pub(crate) tickets: Option<Box<dyn TicketChecker>>,
    /// Its devices, if it has a fleet.
    pub(crate) fleet: Option<HostedFleet>,
    pub(crate) directory: Directory,
    /// Limits by client address.
    pub(crate) addresses: Arc<Addresses>,
    /// The store of persistent rooms.
    pub(crate) store: KeptStore,
    /// Requests to rooms from outside.
    pub(crate) asks: Asks,
    /// Signs the tokens by which clients resume their sessions.
    pub(crate) tokens: TokenKey,
    /// The secret of these.
    pub(crate) token_secret: [u8; 32],
    /// Sessions whose clients may come back.
    pub(crate) away: AwaySessions,
    /// The sessions of users.
    pub(crate) users: Users,
    /// The rules for channels.
    pub(crate) channel_rules: ChannelRules,
    /// The number of channels and the bytes of history of all shards together.
    pub(crate) channel_totals: Arc<Totals>,
    /// Sends WebSocket messages back, in place of sessions.
    pub(crate) echoes: bool,
    /// Recordings of rooms, if they have a folder.
    pub(crate) recordings: Option<Recordings>,
    /// A permit for each replay that may run now.
    pub(crate) replays: Arc<Semaphore>,
    /// The journal, if a room type has one.
    pub(crate) journal: Option<Arc<Journal>>,
    /// The cluster that the node is in, if it is in one.
    pub(crate) cluster: Option<Arc<Cluster>>,
    /// Sessions that have moved between nodes.
    pub(crate) moved: Moved,
}

impl Node {
    pub(crate) fn new(
        config: Config,
        shards: usize,
        room_types: Vec<RoomType>,
        authenticator: Box<dyn Authenticator>,
        store: Option<Arc<dyn Store>>,
        token_secret: [u8; 32],
    ) -> Self {
        let tokens = TokenKey::new(&token_secret);
        let away = AwaySessions::new(&config, shards);
        let users = Users::new(config.timeouts.hello);
        let names = room_types.iter().enumerate();
        let by_name =
            names.map(|(index, room_type)| (room_type.name.clone(), index as u16)).collect();
        let directory = Directory::new(room_types.len(), shards, config.limits.rooms)
            .with_lateness_max(config.rooms.lateness)
            .with_busy_max(config.busy_max());
        let asks = Asks::new(config.limits.queues.asks, config.timeouts.ask);
        let (requests, addresses) = (Requests::new(&config), Addresses::new(&config));
        Self {
            config,
            shards,
            room_types,
            by_name,
            service_paths: Vec::new(),
            requests,
            authenticator,
            admit: None,
            tickets: None,
            fleet: None,
            directory,
            addresses,
            store: KeptStore::new(store),
            asks,
            tokens,
            token_secret,
            away,
            users,
            channel_rules: ChannelRules::default(),
            channel_totals: Arc::new(Totals::new(shards)),
            echoes: false,
            recordings: None,
            replays: Arc::new(Semaphore::new(REPLAYS_MAX)),
            journal: None,
            cluster: None,
            moved: Moved::default(),
        }
    }

    /// The node's slot in its cluster; 0 without one.
    pub(crate) fn slot(&self) -> u16 {
        self.cluster.as_ref().map_or(0, |cluster| cluster.slot())
    }

    /// The URLs of the node in another slot of the cluster, if one serves there.
    pub(crate) fn urls_of(&self, slot: u16) -> Option<Arc<[String]>> {
        self.cluster.as_ref()?.addresses_of(slot)
    }

    /// Asks the other nodes for a session that this one does not have. Returns whether the shard is
    /// [told](crate::shard::mail::ShardMail::SessionSought) the outcome.
    pub(crate) fn seeks_session(&self, number: u64, shard: u16, connection: ConnectionKey) -> bool {
        let session = SessionSeek { number, shard, connection };
        self.cluster.as_ref().is_some_and(|cluster| cluster.seek_session(session))
    }

    /// The URLs at which clients reach this very node; none without a cluster.
    pub(crate) fn own_urls(&self) -> Vec<Cow<'static, str>> {
        let Some(cluster) = &self.cluster else { return Vec::new() };
        cluster.addresses().iter().cloned().map(Cow::Owned).collect()
    }

    /// Removes a room from the directory, and frees its key.
    pub(crate) fn remove_room(&self, id: RoomId) {
        let key = self.directory.remove(id);
        let Some(cluster) = &self.cluster else { return };
        cluster.removed(id);
        if let Some((room_type, key)) = key {
            cluster.freed(KeyOf { room_type, key });
        }
    }

    /// The id of a new room, made of ten random bytes.
    pub(crate) fn room_id(&self, random: [u8; 10]) -> RoomId {
        match &self.cluster {
            Some(cluster) => RoomId::in_slot(cluster.slot(), random),
            None => RoomId::from_random(random),
        }
    }

    /// A room that was made, which is recorded if its type is.
    pub(crate) fn record(
        &self,
        room: Box<dyn AnyRoom>,
        id: RoomId,
        room_type: u16,
    ) -> Box<dyn AnyRoom> {
        match &self.recordings {
            Some(all) => all.record(room, id, &self.room_types[usize::from(room_type)]),
            None => room,
        }
    }

    /// The number of the service that is reached by WebSocket under this path.
    pub(crate) fn service_at(&self, path: &str) -> Option<u16> {
        let mut paths = self.service_paths.iter();
        paths.find(|(known, _)| known == path).map(|(_, service)| *service)
    }

    /// Whether clients may create rooms of this type.
    pub(crate) fn may_create(&self, room_type: u16) -> Result<(), Error> {
        let RoomType { name, settings, .. } = &self.room_types[usize::from(room_type)];
        match settings.creation {
            CreatedBy::Anyone => Ok(()),
            CreatedBy::Server => {
                let text = format!("clients can't create rooms of the type {name:?}");
                Err(Error::new(ErrorCode::CreationClosed, text))
            }
        }
    }

    /// Returns whether rooms of this type with a key are kept in the store.
    pub(crate) fn is_persistent(&self, room_type: u16) -> bool {
        self.room_types[usize::from(room_type)].settings.persist_s > 0
    }

    /// The number of the room type of this name.
    pub(crate) fn room_type(&self, name: &str) -> Option<u16> {
        self.by_name.get(name).copied()
    }
}
