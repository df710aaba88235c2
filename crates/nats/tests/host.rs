//! A host of the engine, for tests.

use std::collections::VecDeque;
use std::time::Duration;

use playfield_cluster::{Answer, Command, Engine as _, EngineError, EngineEvent, Key, Record, Tag};
use playfield_nats::{ConnectError, NatsEngine, Settings};
use tokio::time::timeout;

/// The longest time for anything: then a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Host {
    pub(crate) engine: NatsEngine,
    last_tag: Tag,
    /// Events that were not waited for yet.
    events: VecDeque<EngineEvent>,
}

pub(crate) fn settings(url: impl Into<String>) -> Settings {
    let mut settings = Settings::new(url, "test");
    settings.patience = PATIENCE;
    settings
}

/// The text of the error of settings that can't work, which are tried once.
pub(crate) async fn refusal(mut settings: Settings) -> String {
    settings.patience = Duration::ZERO;
    NatsEngine::connect(settings).await.expect_err("it can't work").to_string()
}

pub(crate) fn key(name: &str) -> Key {
    Key::from(name)
}

impl Host {
    pub(crate) async fn connect(url: impl Into<String>) -> Self {
        Self::with(settings(url)).await.unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) async fn with(settings: Settings) -> Result<Self, ConnectError> {
        let engine = NatsEngine::connect(settings).await?;
        Ok(Self { engine, last_tag: 0, events: VecDeque::new() })
    }

    pub(crate) fn begin(&mut self, command: impl FnOnce(Tag) -> Command) -> Tag {
        self.last_tag += 1;
        self.engine.begin(command(self.last_tag));
        self.last_tag
    }

    pub(crate) fn begin_write(&mut self, name: &str, value: &[u8], expect: u64) -> Tag {
        let (key, value) = (key(name), value.to_vec());
        self.begin(|tag| Command::Write { key, value, expect, tag })
    }

    /// Waits for an event, and takes it out of the others.
    pub(crate) async fn event<T>(
        &mut self,
        mut wanted: impl FnMut(&EngineEvent) -> Option<T>,
    ) -> T {
        timeout(PATIENCE, async {
            let mut at = 0;
            loop {
                while let Some(event) = self.engine.next() {
                    self.events.push_back(event);
                }
                while at < self.events.len() {
                    if let Some(found) = wanted(&self.events[at]) {
                        self.events.remove(at);
                        return found;
                    }
                    at += 1;
                }
                self.engine.ready().await;
            }
        })
        .await
        .expect("an event that came too late, or never")
    }

    pub(crate) async fn answer(&mut self, wanted: Tag) -> Result<Answer, EngineError> {
        self.event(|event| match event {
            EngineEvent::Answered { tag, result } if *tag == wanted => Some(result.clone()),
            _ => None,
        })
        .await
    }

    pub(crate) async fn interrupted(&mut self) {
        self.event(|event| (*event == EngineEvent::Interrupted).then_some(())).await;
    }

    /// Waits until the engine answers.
    pub(crate) async fn answered(&mut self) {
        let answered = async { while self.read("meta.format").await.is_err() {} };
        timeout(PATIENCE, answered).await.expect("an engine that answers again");
    }

    pub(crate) async fn write(
        &mut self,
        name: &str,
        value: &[u8],
        expect: u64,
    ) -> Result<u64, EngineError> {
        let tag = self.begin_write(name, value, expect);
        self.written(tag).await
    }

    pub(crate) async fn purge(&mut self, name: &str, expect: u64) -> Result<u64, EngineError> {
        let tag = self.begin(|tag| Command::Purge { key: key(name), expect, tag });
        self.written(tag).await
    }

    pub(crate) async fn written(&mut self, tag: Tag) -> Result<u64, EngineError> {
        self.answer(tag).await.map(|answer| match answer {
            Answer::Written(revision) => revision,
            other => panic!("{other:?} as the answer to a write"),
        })
    }

    pub(crate) async fn read(&mut self, name: &str) -> Result<Record, EngineError> {
        let tag = self.begin(|tag| Command::Read { key: key(name), tag });
        self.answer(tag).await.map(|answer| match answer {
            Answer::Read(record) => record,
            other => panic!("{other:?} as the answer to a read"),
        })
    }

    pub(crate) async fn list(&mut self, prefix: &'static str) -> Result<Vec<String>, EngineError> {
        let tag = self.begin(|tag| Command::List { prefix, tag });
        self.answer(tag).await.map(|answer| match answer {
            Answer::Listed(keys) => {
                let mut keys: Vec<String> = keys.iter().map(|key| key.as_ref().into()).collect();
                keys.sort();
                keys
            }
            other => panic!("{other:?} as the answer to a list"),
        })
    }
}
