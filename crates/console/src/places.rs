//! The console's connections: their greatest number, and which one makes room for another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;
use tokio::time::Instant;

/// The most connections at a time. A browser opens up to six.
pub(crate) const CONNECTIONS_MAX: usize = 64;

/// The places of connections.
///
/// If all are taken, the connection that has waited longest for a request is dropped, so idle
/// connections keep nobody out.
#[derive(Clone, Default)]
pub(crate) struct Places(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    next: u64,
    held: BTreeMap<u64, Held>,
}

struct Held {
    /// Since when it has waited for a whole request; `None` while one is answered.
    waits_since: Option<Instant>,
    task: Option<AbortHandle>,
}

/// A connection's place, until it is dropped.
pub(crate) struct Place {
    places: Places,
    number: u64,
}

impl Places {
    /// A place for a new connection. `None` if requests of all others are being answered.
    pub(crate) fn take(&self) -> Option<Place> {
        let mut table = self.table();
        if table.held.len() >= CONNECTIONS_MAX {
            let waits = |(number, held): (&u64, &Held)| Some((held.waits_since?, *number));
            let (_, slowest) = table.held.iter().filter_map(waits).min()?;
            if let Some(task) = table.held.remove(&slowest).and_then(|held| held.task) {
                task.abort();
            }
        }
        let number = table.next;
        table.next += 1;
        table.held.insert(number, Held { waits_since: Some(Instant::now()), task: None });
        Some(Place { places: self.clone(), number })
    }

    /// Names the task that serves a connection.
    pub(crate) fn served_by(&self, number: u64, task: AbortHandle) {
        if let Some(held) = self.table().held.get_mut(&number) {
            held.task = Some(task);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The connection waits for a request from now on.
    pub(crate) fn waits(&self) {
        self.set(Some(Instant::now()));
    }

    /// A request of the connection is answered.
    pub(crate) fn answers(&self) {
        self.set(None);
    }

    fn set(&self, waits_since: Option<Instant>) {
        if let Some(held) = self.places.table().held.get_mut(&self.number) {
            held.waits_since = waits_since;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.table().held.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::{CONNECTIONS_MAX, Place, Places};

    fn full() -> (Places, Vec<Place>) {
        let places = Places::default();
        let taken = (0..CONNECTIONS_MAX).map(|_| places.take().unwrap()).collect();
        (places, taken)
    }

    fn holds(places: &Places, place: &Place) -> bool {
        places.table().held.contains_key(&place.number)
    }

    #[test]
    fn one_too_many_takes_the_place_of_the_one_that_waits_longest() {
        let (places, mut taken) = full();
        taken[0].answers();
        taken[1].waits();
        let last = places.take().unwrap();
        assert!(holds(&places, &taken[0]) && holds(&places, &taken[1]) && holds(&places, &last));
        assert!(!holds(&places, &taken[2]));
        assert_eq!(places.table().held.len(), CONNECTIONS_MAX);
        // The end of one that has lost its place frees nothing.
        drop(taken.remove(2));
        assert_eq!(places.table().held.len(), CONNECTIONS_MAX);
        drop(taken.remove(1));
        assert_eq!(places.table().held.len(), CONNECTIONS_MAX - 1);
    }

    #[test]
    fn an_answer_is_not_cut_off_for_another_connection() {
        let (places, taken) = full();
        taken.iter().for_each(Place::answers);
        assert!(places.take().is_none());
        taken[9].waits();
        assert!(places.take().is_some());
        assert!(!holds(&places, &taken[9]));
    }
}
