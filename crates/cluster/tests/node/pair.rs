//! Two nodes with a link between them.

use std::collections::VecDeque;
use std::time::Duration;

use playfield_cluster::{AskError, Command, Effect, EngineEvent, Event, Node, Settings};

use crate::bench::{Bench, run, secs, settings};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Two nodes, in slots 0 and 1, and the messages between them.
pub(crate) struct Pair {
    pub(crate) bench: Bench,
    pub(crate) nodes: [Node; 2],
    pub(crate) now: Duration,
    pub(crate) effects: [Vec<Effect>; 2],
    /// The messages on the way to each node.
    pub(crate) ways: [VecDeque<Vec<u8>>; 2],
    /// Messages to that node are lost.
    pub(crate) is_deaf: [bool; 2],
    pub(crate) is_stopped: [bool; 2],
    pub(crate) frames: usize,
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self::with(|settings| settings)
    }

    /// Nodes that know each other, and have no link yet.
    pub(crate) fn with(set: impl Fn(Settings) -> Settings) -> Self {
        let mut bench = Bench::default();
        let mut nodes = [0, 1].map(|slot| Node::new(set(settings(slot)), slot.into(), secs(0)));
        let [one, two] = &mut nodes;
        run(&mut [one, two], &mut bench, secs(0), secs(1));
        let mut pair = Self {
            bench,
            nodes,
            now: secs(1),
            effects: [Vec::new(), Vec::new()],
            ways: [VecDeque::new(), VecDeque::new()],
            is_deaf: [false; 2],
            is_stopped: [false; 2],
            frames: 0,
        };
        // Each hears of the other.
        pair.pass(3 * SECOND);
        pair.effects = [Vec::new(), Vec::new()];
        pair.frames = 0;
        pair
    }

    /// Passes on messages until nothing is on the way.
    pub(crate) fn settle(&mut self) {
        loop {
            for index in 0..2 {
                self.exchange(index);
            }
            if self.ways.iter().all(VecDeque::is_empty) {
                return;
            }
        }
    }

    pub(crate) fn exchange(&mut self, index: usize) {
        if self.is_stopped[index] {
            return;
        }
        let delivered = self.ways[index].drain(..).map(|bytes| EngineEvent::Delivered { bytes });
        self.bench.events.extend(delivered);
        self.bench.sent.clear();
        self.nodes[index].exchange(self.now, &mut self.bench);
        self.effects[index].extend(std::iter::from_fn(|| self.nodes[index].next_effect()));
        for command in std::mem::take(&mut self.bench.sent) {
            match command {
                Command::Send { to, bytes, .. } if !self.is_deaf[usize::from(to)] => {
                    self.frames += 1;
                    self.ways[usize::from(to)].push_back(bytes);
                }
                Command::Broadcast { bytes } if !self.is_stopped[1 - index] => {
                    let event = Event::Engine(EngineEvent::Received { bytes });
                    self.nodes[1 - index].event(self.now, event);
                }
                _ => {}
            }
        }
    }

    /// Lets time pass, in steps of 100 ms.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_millis(100);
            for index in 0..2 {
                if !self.is_stopped[index] {
                    self.nodes[index].turn(self.now);
                }
            }
            if !self.is_stopped.contains(&true) {
                self.settle();
            } else {
                (0..2).for_each(|index| self.exchange(index));
            }
        }
    }

    pub(crate) fn ask(&mut self, from: usize, ask: u64, body: &[u8]) {
        let (to, within, body) = (1 - from as u16, 2 * SECOND, body.to_vec());
        self.nodes[from].event(self.now, Event::Ask { to, ask, within, body });
    }

    pub(crate) fn tell(&mut self, from: usize, body: &[u8]) {
        self.nodes[from].event(self.now, Event::Tell { to: 1 - from as u16, body: body.to_vec() });
    }

    pub(crate) fn effects(&mut self, index: usize) -> Vec<Effect> {
        std::mem::take(&mut self.effects[index])
    }

    /// The bodies of the requests and messages that a node got.
    pub(crate) fn heard(&mut self, index: usize) -> Vec<Vec<u8>> {
        let bodies = self.effects(index).into_iter().filter_map(|effect| match effect {
            Effect::Asked { body, .. } | Effect::Told { body, .. } => Some(body),
            _ => None,
        });
        bodies.collect()
    }

    pub(crate) fn reset(&self, index: usize) -> Effect {
        let peer = self.nodes[index].peers().next().unwrap();
        Effect::LinkReset { with: peer.id() }
    }
}

pub(crate) fn answered(ask: u64, result: Result<&[u8], AskError>) -> Effect {
    Effect::Answered { ask, result: result.map(<[u8]>::to_vec) }
}

/// Nodes with a link that has carried a message.
pub(crate) fn linked() -> Pair {
    let mut pair = Pair::new();
    pair.tell(0, b"first");
    pair.settle();
    assert_eq!(pair.heard(1), [b"first"]);
    pair
}
