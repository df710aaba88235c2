//! Nodes of a cluster over a real engine.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use playfield_cluster::{Effect, Event, Key, Node, Place, Save, Settings, Want, claim_key};
use playfield_nats::NatsEngine;
use playfield_nats::testing::Server;
use tokio::time::{sleep_until, timeout};

use crate::host::settings;

/// A node with its engine, whose store always has the save that it wrote last.
struct Process {
    node: Node,
    engine: NatsEngine,
    began: Instant,
    effects: VecDeque<Effect>,
}

impl Process {
    async fn start(url: String, name: &str, entropy: u64) -> Self {
        let engine = NatsEngine::connect(settings(url)).await.unwrap();
        let mut settings = Settings::new(Duration::from_secs(5)).unwrap();
        settings.name = name.to_owned();
        let node = Node::new(settings, entropy, Duration::ZERO);
        Self { node, engine, began: Instant::now(), effects: VecDeque::new() }
    }

    /// Runs until something is so.
    async fn until(&mut self, mut is_so: impl FnMut(&mut Self, Duration) -> bool) {
        let run = async {
            loop {
                let now = self.began.elapsed();
                self.node.exchange(now, &mut self.engine);
                let next = self.node.turn(now);
                self.node.exchange(now, &mut self.engine);
                while let Some(effect) = self.node.next_effect() {
                    if let Effect::Open { key, attempt } = effect {
                        let save = Some(Save::Intact);
                        self.node.event(now, Event::Opened { key, attempt, save });
                    } else {
                        self.effects.push_back(effect);
                    }
                }
                if is_so(self, now) {
                    return;
                }
                tokio::select! {
                    () = self.engine.ready() => {}
                    () = sleep_until((self.began + next).into()) => {}
                }
            }
        };
        timeout(Duration::from_secs(20), run).await.expect("it happens");
    }

    /// Wants a key until it is known where its room is.
    async fn find(&mut self, wanted: &Key) -> Place {
        let mut request = 0;
        let mut found = None;
        self.until(|process, now| {
            let place = process.effects.iter().find_map(|effect| match effect {
                Effect::Found { request: answered, place, .. } if *answered == request => {
                    Some(place.clone())
                }
                _ => None,
            });
            match place {
                Some(Place::Busy) => request += 1,
                Some(place) => {
                    found = Some(place);
                    return true;
                }
                None if request > 0 => return false,
                None => request += 1,
            }
            process.node.event(now, {
                let want = Want::Claim { is_code: false };
                Event::Wanted { key: wanted.clone(), request, want }
            });
            process.node.exchange(now, &mut process.engine);
            false
        })
        .await;
        found.expect("it was found")
    }
}

#[tokio::test]
async fn two_nodes_take_slots_and_one_serves_a_key() {
    let Some(server) = Server::start() else { return };
    let mut one = Process::start(server.url(), "one", 1).await;
    let mut two = Process::start(server.url(), "two", 2).await;
    tokio::join!(
        one.until(|process, now| process.node.acts(now)),
        two.until(|process, now| process.node.acts(now)),
    );
    assert_ne!(one.node.slot(), two.node.slot());

    // Both want each key at once.
    for number in 0..20 {
        let wanted = claim_key("match", &format!("§{number}")).unwrap();
        let places = tokio::join!(one.find(&wanted), two.find(&wanted));
        match places {
            (Place::Here { .. }, Place::At(peer)) => assert_eq!(&*peer.name, "one"),
            (Place::At(peer), Place::Here { .. }) => assert_eq!(&*peer.name, "two"),
            places => panic!("{wanted}: {places:?}"),
        }
    }

    // Both renew: they act for longer than the first renewals allowed.
    let first = (one.node.acts_until(), two.node.acts_until());
    tokio::join!(
        one.until(|process, _| process.node.acts_until() > first.0),
        two.until(|process, _| process.node.acts_until() > first.1),
    );
}
