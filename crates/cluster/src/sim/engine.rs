//! The simulated engine: linearizable compare-and-set, which may lose its last writes.

use std::collections::{BTreeMap, VecDeque};

use crate::engine::{Answer, Command, EngineError, Key, Record, Revision};
use crate::record::{Incarnation, NodeRecord, NodeState};

/// The most writes that can be lost at once.
const LOST_MAX: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Records {
    records: BTreeMap<Key, Record>,
    sequence: Revision,
    /// The records from before the last writes.
    before: VecDeque<(Key, Record)>,
    /// Writes ignore their condition: a mutation.
    pub(super) is_unconditional: bool,
}

impl Records {
    pub(super) fn apply(&mut self, command: Command) -> Result<Answer, EngineError> {
        match command {
            Command::Read { key, .. } => {
                Ok(Answer::Read(self.records.get(&key).cloned().unwrap_or_default()))
            }
            Command::List { prefix, .. } => {
                let is_there = |(key, record): &(&Key, &Record)| {
                    key.starts_with(prefix) && record.value.is_some()
                };
                let keys = self.records.iter().filter(is_there).map(|(key, _)| key.clone());
                Ok(Answer::Listed(keys.collect()))
            }
            Command::Write { key, value, expect, .. } => self.write(&key, Some(value), expect),
            Command::Purge { key, expect, .. } => self.write(&key, None, expect),
            Command::Broadcast { .. } | Command::Send { .. } | Command::Listen { .. } => {
                Err(EngineError::Unknown)
            }
        }
    }

    fn write(
        &mut self,
        key: &Key,
        value: Option<Vec<u8>>,
        expect: Revision,
    ) -> Result<Answer, EngineError> {
        if !self.records.contains_key(key) {
            self.records.insert(key.clone(), Record::default());
        }
        let record = self.records.get_mut(key).expect("a record that was inserted");
        if record.revision != expect && !self.is_unconditional {
            return Err(EngineError::Conflict);
        }
        self.sequence += 1;
        let written = Record { revision: self.sequence, value };
        let before = std::mem::replace(record, written);
        if self.before.len() == LOST_MAX {
            self.before.pop_front();
        }
        self.before.push_back((key.clone(), before));
        Ok(Answer::Written(self.sequence))
    }

    /// Forgets the last writes. Returns whether one of them began or ended an incarnation.
    pub(super) fn lose(&mut self, writes: usize) -> bool {
        let mut has_lost_a_life = false;
        for _ in 0..writes {
            let Some((key, before)) = self.before.pop_back() else { break };
            let after = self.records.insert(key.clone(), before.clone()).unwrap_or_default();
            self.sequence -= 1;
            has_lost_a_life |= key.starts_with("n.") && life(&before) != life(&after);
        }
        has_lost_a_life
    }

    pub(super) fn wipe(&mut self) {
        self.records.clear();
        self.before.clear();
        self.sequence = 0;
    }
}

fn life(record: &Record) -> Option<(Incarnation, NodeState)> {
    let record = NodeRecord::decode(record.value.as_deref()?).ok()?;
    Some((record.incarnation, record.state))
}
