//! Channels over connections that are cut: each subscriber sees each publication once, in order,
//! with gaps only where it is told of them, and each client's publications are published once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use playfield_channel::{Access, ChannelRule};
use playfield_client::{Channel, ChannelEvent, Connection};
use playfield_server::{Running, Server};
use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::proxy::{self, Cuts};
use crate::{config, connected, cuts_and_random, stands_still, ways};

/// Its history has all that was published.
const DEEP: &str = "deep";
/// Its history has four publications.
const SHALLOW: &str = "shallow";

fn start() -> (Running, Vec<u8>) {
    let rule = |name, count| {
        let rule = ChannelRule::new(name).publish(Access::Anyone).history_bytes(64 << 20);
        rule.history(count, Duration::from_secs(3600))
    };
    let server = Server::new(config()).channel(rule(DEEP, 1 << 20)).channel(rule(SHALLOW, 4));
    let running = server.start().unwrap();
    let certificate = running.tls_certificate().unwrap();
    (running, certificate)
}

/// What a subscriber has heard.
#[derive(Default)]
struct Heard {
    /// The offset that comes next.
    next: Option<u64>,
    missed: u64,
    /// Each publication: who, and its number.
    all: Vec<(u64, u64)>,
}

impl Heard {
    /// Takes out events up to a publication.
    async fn publication(&mut self, channel: &Channel) -> (u64, u64) {
        loop {
            match channel.next().await.expect("the subscription goes on") {
                ChannelEvent::Subscribed { recovered, missed, .. } => {
                    assert!(self.next.is_none() || recovered == (missed == 0));
                    self.miss(missed);
                    let before = channel.position().unwrap().offset;
                    assert_eq!(*self.next.get_or_insert(before + 1), before + 1);
                }
                ChannelEvent::Missed { publications } => self.miss(publications),
                ChannelEvent::Publication(publication) => {
                    assert_eq!(self.next, Some(publication.offset), "once, in order");
                    self.next = Some(publication.offset + 1);
                    let value = publication.payload.value().unwrap();
                    let said = (value["who"].as_u64().unwrap(), value["number"].as_u64().unwrap());
                    self.all.push(said);
                    return said;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn miss(&mut self, publications: u64) {
        self.missed += publications;
        self.next = self.next.map(|next| next + publications);
    }
}

/// One client, until there are no cuts left. Returns what it heard in both channels.
async fn play(
    connection: Connection,
    who: u64,
    cuts: Arc<Cuts>,
    playing: Arc<Barrier>,
) -> (Vec<(u64, u64)>, u64) {
    let deep = connection.subscribe(DEEP).await.unwrap();
    let shallow = connection.subscribe(SHALLOW).await.unwrap();
    let (mut heard, mut heard_shallow) = (Heard::default(), Heard::default());
    // All subscribe before the first publication.
    playing.wait().await;
    let mut number = 0;
    while cuts.left() > 0 {
        number += 1;
        let said = json!({ "who": who, "number": number });
        connection.publish_unconfirmed(SHALLOW, &said).await.unwrap();
        let offset = connection.publish(DEEP, &said).await.unwrap();
        while heard.publication(&deep).await != (who, number) {}
        assert_eq!(heard.next, Some(offset + 1));
    }
    // All have stopped. One last publication of each ends both channels.
    playing.wait().await;
    let end = json!({ "who": who, "number": 0 });
    connection.publish(DEEP, &end).await.unwrap();
    let last = connection.publish(SHALLOW, &end).await.unwrap();
    playing.wait().await;
    let mut ends = heard.all.iter().filter(|(_, number)| *number == 0).count();
    while ends < 12 {
        ends += usize::from(heard.publication(&deep).await.1 == 0);
    }
    while heard_shallow.next.is_none_or(|next| next <= last) {
        heard_shallow.publication(&shallow).await;
    }
    assert_eq!(heard.missed, 0, "the history has all");
    playing.wait().await;
    connection.close().await;
    (heard.all, heard_shallow.missed)
}

#[tokio::test]
async fn a_subscriber_sees_each_publication_once_and_is_told_of_gaps() {
    let (node, root) = start();
    let (count, mut random) = cuts_and_random();
    let cuts = Cuts::new(count);
    let ways = ways();
    let playing = Arc::new(Barrier::new(ways.len()));
    let mut players = JoinSet::new();
    for (who, (scheme, _)) in (0..).zip(ways) {
        let proxy = proxy::start(node.local_addr(), random.next(), Arc::clone(&cuts)).await;
        let (cuts, playing, root) = (Arc::clone(&cuts), Arc::clone(&playing), root.clone());
        players.spawn(async move {
            let url = format!("{scheme}://localhost:{}", proxy.port());
            let connection = connected(&url, "Ann", &root).await;
            play(connection, who, cuts, playing).await
        });
    }
    let left = Arc::clone(&cuts);
    players.spawn(async move { stands_still(&left).await });
    let (mut all, mut missed) = (None, 0);
    while players.len() > 1
        && let Some(player) = players.join_next().await
    {
        let (heard, missed_shallow) = player.unwrap();
        missed += missed_shallow;
        assert_eq!(*all.get_or_insert_with(|| heard.clone()), heard, "all hear the same");
    }
    let mut numbers: BTreeMap<u64, u64> = BTreeMap::new();
    let all = all.unwrap();
    for &(who, number) in all.iter().filter(|(_, number)| *number > 0) {
        let last = numbers.entry(who).or_default();
        *last += 1;
        assert_eq!(*last, number, "each is published once, in order");
    }
    println!("{count} cuts, {} publications, {missed} missed of short histories", all.len());
    node.shutdown();
}
