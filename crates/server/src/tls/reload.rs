//! Certificates that are renewed while a node runs.

use std::sync::Arc;
use std::time::Duration;

use super::certificate::{Contents, CurrentCertificate, Files};
use crate::watchdog::Leash;

/// Loads new certificates from their files.
pub(crate) struct Reloader {
    files: Files,
    current: Arc<CurrentCertificate>,
    /// The contents of the files when last read, or why they could not be read.
    seen: Option<Result<Contents, String>>,
}

impl Reloader {
    pub(crate) fn new(files: Files, current: Arc<CurrentCertificate>) -> Self {
        let seen = Some(files.read());
        Self { files, current, seen }
    }

    /// Looks at the files periodically, until the leash ends.
    pub(crate) fn run(mut self, period: Duration, leash: &Leash) {
        while leash.holds_for(period) {
            self.look();
        }
    }

    /// Loads the certificate again if its files have changed. If it can't be used, the old one
    /// stays, and the log says why, once.
    fn look(&mut self) {
        let now = self.files.read();
        if self.seen.as_ref() == Some(&now) {
            return;
        }
        match now.as_ref().map_err(Clone::clone).and_then(|now| now.certified(&self.files)) {
            Ok(certified) => {
                self.current.replace(certified);
                log::info!(
                    "the certificate was reloaded from {}",
                    self.files.certificate.display()
                );
            }
            Err(why) => log::error!("the certificate stays as it was: {why}"),
        }
        self.seen = Some(now);
    }
}
