//! The laws of a cluster, checked after every step, and the history that they are checked by.
//!
//! The state of a room is a list of numbers. All states of a run are a tree: each is another one
//! with one number more.

use std::fmt;

/// A law of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// (a) At most one incarnation acts on a key, while clocks are within their bounds.
    OneActs,
    /// (b) Saves that the store has confirmed form one chain.
    OneChain,
    /// (c) Each answered number is in the list once, in an order that fits real time, and a client
    /// who joins sees what was answered before. Numbers that were not answered are in it at most
    /// once.
    Appends,
    /// (g) A room without a key whose placing was given up is never entered, and does not stay.
    NoTwin,
    /// (h) Each key can be joined within the lease and 5 s after the last fault.
    Joinable,
    /// (j) An outage of the engine makes no node declare another one dead.
    NoDeathByOutage,
    /// (k) Each request of a node to another one is answered once, by the answer to it or by an
    /// error, and carried out at most once.
    Asks,
    /// (l) The messages of a node to another one come in order, and without a hole unless the link
    /// was reset.
    InOrder,
}

/// A law that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The law.
    pub law: Law,
    /// The time in microseconds.
    pub at: u64,
    /// The details.
    pub text: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { law, at, text } = self;
        write!(f, "{law:?} at {}.{:06} s: {text}", at / 1_000_000, at % 1_000_000)
    }
}

/// The number of a state in the tree. A later state has a greater one.
pub(super) type State = u32;

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: State,
    number: u32,
    length: u32,
}

#[derive(Clone, Copy, Debug)]
struct Append {
    key: u8,
    sent_at: u64,
    answered_at: u64,
}

/// The time from which, and until when, a reign may overlap others.
#[derive(Clone, Copy, Debug)]
struct Reign {
    began_at: u64,
}

#[derive(Debug)]
pub(super) struct Laws {
    states: Vec<Node>,
    appends: Vec<Append>,
    /// For each key: the newest state that was answered, and the newest reign that has acted.
    answered: Vec<State>,
    acted: Vec<u32>,
    reigns: Vec<Reign>,
    /// The time at which the engine was back after it last lost writes, and after it last lost one
    /// that began or ended an incarnation.
    lost_at: Option<u64>,
    lost_a_life_at: Option<u64>,
    pub(super) breach: Option<Breach>,
}

/// The longest time for which an owner acts that does not know of a loss: until it freezes, on the
/// slowest clock, and until a claim is proven.
const LOSS_NOTICED: u64 = 30_000_000;

impl Laws {
    pub(super) fn new(keys: usize) -> Self {
        Self {
            states: vec![Node { parent: 0, number: 0, length: 0 }],
            appends: Vec::new(),
            answered: vec![0; keys],
            acted: vec![0; keys],
            reigns: vec![Reign { began_at: 0 }],
            lost_at: None,
            lost_a_life_at: None,
            breach: None,
        }
    }

    pub(super) fn break_law(&mut self, law: Law, at: u64, text: String) {
        self.breach.get_or_insert(Breach { law, at, text });
    }

    /// Notes that the engine has lost writes: those who claimed before may act beside others until
    /// they know.
    pub(super) fn engine_lost(&mut self, back_at: u64, has_lost_a_life: bool) {
        self.lost_at = Some(back_at);
        if has_lost_a_life {
            self.lost_a_life_at = Some(back_at);
        }
    }

    /// Notes that an outage lasts longer: a loss in it is noticed later.
    pub(super) fn engine_stays_away(&mut self, since: u64, until: u64) {
        for lost_at in [&mut self.lost_at, &mut self.lost_a_life_at].into_iter().flatten() {
            if *lost_at >= since {
                *lost_at = until.max(*lost_at);
            }
        }
    }

    /// A new reign of a key, later than all before.
    pub(super) fn reign(&mut self, now: u64) -> u32 {
        self.reigns.push(Reign { began_at: now });
        (self.reigns.len() - 1) as u32
    }

    /// Checks an act on a key.
    pub(super) fn act(&mut self, now: u64, key: usize, reign: u32, is_sound: bool) {
        if !is_sound || self.is_excused(now, reign) {
            return;
        }
        let acted = self.acted[key];
        self.acted[key] = reign.max(acted);
        if reign < acted {
            let text = format!("reign {reign} acts on key {key} after reign {acted} has");
            self.break_law(Law::OneActs, now, text);
        }
    }

    /// Checks that a client who joins sees what was answered.
    pub(super) fn join(&mut self, now: u64, key: usize, reign: u32, state: State, is_sound: bool) {
        let answered = self.answered[key];
        if is_sound && !self.is_excused(now, reign) && !self.is_in(answered, state) {
            let text = format!("a client joins key {key} without what was answered");
            self.break_law(Law::Appends, now, text);
        }
    }

    /// A loss excuses those who claimed before it, or before they could know of it: until they
    /// know, or for good if it may have revived an incarnation.
    fn is_excused(&self, now: u64, reign: u32) -> bool {
        let began_at = self.reigns[reign as usize].began_at;
        let is_within =
            |at: u64, lost_at: Option<u64>| lost_at.is_some_and(|lost| at < lost + LOSS_NOTICED);
        is_within(began_at, self.lost_a_life_at)
            || is_within(began_at, self.lost_at) && is_within(now, self.lost_at)
    }

    /// Checks a save that the store has confirmed, after the one before.
    pub(super) fn saved(&mut self, now: u64, key: usize, before: State, after: State) {
        if !self.is_in(before, after) {
            let text = format!("a save of key {key} does not follow from the one before it");
            self.break_law(Law::OneChain, now, text);
        }
    }

    /// A number that a client is about to send.
    pub(super) fn sent(&mut self, now: u64, key: usize) -> u32 {
        self.appends.push(Append { key: key as u8, sent_at: now, answered_at: u64::MAX });
        (self.appends.len() - 1) as u32
    }

    pub(super) fn append(&mut self, state: State, number: u32) -> State {
        let length = self.states[state as usize].length + 1;
        self.states.push(Node { parent: state, number, length });
        (self.states.len() - 1) as State
    }

    /// Notes the state that an answer vouches for. What a node answers whose clock is out of its
    /// bounds is saved, but the owner that it does not know of learns that with its next save.
    pub(super) fn confirm(&mut self, key: usize, state: State, is_sound: bool) {
        let newest = &mut self.answered[key];
        if is_sound {
            *newest = state.max(*newest);
        }
    }

    pub(super) fn answered(&mut self, now: u64, number: u32) {
        self.appends[number as usize].answered_at = now;
    }

    /// Checks the list of a key at the end.
    pub(super) fn finish(&mut self, now: u64, key: usize, mut state: State) {
        let mut seen = vec![false; self.appends.len()];
        // From the last number to the first.
        let mut answered_first = u64::MAX;
        while state != 0 {
            let Node { parent, number, .. } = self.states[state as usize];
            let append = self.appends[number as usize];
            if std::mem::replace(&mut seen[number as usize], true) {
                self.break_law(Law::Appends, now, format!("number {number} is there twice"));
            }
            if append.sent_at > answered_first {
                let text = format!("number {number} is before one that was answered before");
                self.break_law(Law::Appends, now, text);
            }
            answered_first = answered_first.min(append.answered_at);
            state = parent;
        }
        for (number, append) in self.appends.iter().enumerate() {
            if usize::from(append.key) == key && append.answered_at < u64::MAX && !seen[number] {
                let text = format!("number {number} of key {key} was answered and is lost");
                let breach = Breach { law: Law::Appends, at: now, text };
                self.breach.get_or_insert(breach);
            }
        }
    }

    /// Returns whether one state has all of another one, in its order, at its beginning.
    fn is_in(&self, part: State, mut state: State) -> bool {
        let length = self.states[part as usize].length;
        while self.states[state as usize].length > length {
            state = self.states[state as usize].parent;
        }
        state == part
    }
}
