//! Starting the shards of a node.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use mio::Poll;

use super::named;
use super::running::{Running, Word};
use super::services::ServiceAt;
use crate::control::Control;
use crate::entropy::Entropy;
use crate::event_loop::SharedRuntime;
use crate::journal::FileSink;
use crate::pulse::Watch;
use crate::shard::Shard;
use crate::shard::env::Stopwatch;
use crate::shard::journaled::Journaled;
use crate::shard_thread::{EndGuard, Listeners, ShardThread};
use crate::stats::Published;

/// Starts the threads of the shards, each of which opens its descriptor table.
pub(super) fn shard_threads(
    shared: &Arc<SharedRuntime>,
    shards: usize,
) -> io::Result<Vec<ShardThread>> {
    let threads: Vec<ShardThread> = (0..shards)
        .map(|index| ShardThread::start(index, Arc::clone(shared)))
        .collect::<io::Result<_>>()?;
    threads
        .into_iter()
        .map(ShardThread::ready)
        .collect::<io::Result<_>>()
        .map_err(|error| named("threads.descriptors", &error))
}

impl Running {
    /// Makes the shards.
    pub(super) fn make_shards(
        &self,
        services: &mut [ServiceAt],
        control: &Arc<Control>,
    ) -> io::Result<Vec<Shard>> {
        let make = |(index, published): (usize, &Arc<Published>)| {
            let journaled = self.node.journal.as_ref().map(|journal| {
                let shared = Arc::downgrade(&self.stopper.shared);
                let wake = move || {
                    let Some(shared) = shared.upgrade() else { return };
                    if let Err(error) = shared.mailboxes[index].wake() {
                        log::warn!("shard {index} could not be woken: {error}");
                    }
                };
                let sink = FileSink::start(journal, index as u16, wake)?;
                Ok::<_, io::Error>(Journaled::new(Arc::clone(journal), Box::new(sink)))
            });
            let mut shard = Shard::new(
                index as u16,
                Arc::clone(&self.node),
                Arc::clone(control) as _,
                Entropy::System,
                Watch(Arc::clone(published)),
                Stopwatch::start(),
            );
            if let Some(journaled) = journaled.transpose()? {
                shard = shard.with_journal(journaled);
            }
            shard.services.reach_by(self.handle());
            for service in &mut *services {
                shard.services.host((service.make)(index));
            }
            Ok(shard)
        };
        self.published.iter().enumerate().map(make).collect()
    }

    /// Runs the shards on their threads. When this returns, each listens.
    pub(super) fn start_shards(
        &mut self,
        shards: Vec<Shard>,
        threads: Vec<(ShardThread, Option<Poll>)>,
        mut listeners: Listeners,
        tells: &SyncSender<Word>,
    ) -> io::Result<()> {
        let mut begun = Vec::new();
        for (index, (shard, (thread, poll))) in shards.into_iter().zip(threads).enumerate() {
            let published = Arc::clone(&self.published[index]);
            let guard = EndGuard {
                index,
                node: Arc::clone(&self.node),
                shared: Arc::clone(&self.stopper.shared),
                published,
                ends: tells.clone(),
                has_failed: true,
            };
            let (thread, starts) = thread.run(shard, poll, listeners.of(index), guard);
            self.shards.push(thread);
            begun.push(starts);
        }
        for starts in begun {
            let failed = || io::Error::other("a shard failed at its start; see the log");
            starts.recv().map_err(|_| failed())??;
        }
        Ok(())
    }
}
