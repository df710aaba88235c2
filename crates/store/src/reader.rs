//! The threads that read.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};

use playfield_room::{Loaded, StoreError, StoreErrorKind};
use redb::{Database, ReadOnlyTable, StorageError, TableError};
use tokio::sync::oneshot::Sender;

use crate::file::{DatabaseFile, SAVES};
use crate::queue::Name;
use crate::writer::{storage_of_table, storage_of_transaction};

/// The maximum number of waiting loads.
pub(crate) const LOADS_MAX: usize = 65_536;

/// Something to read, and who receives it.
pub(crate) enum Request {
    Load(Name, Sender<Result<Option<Loaded>, StoreError>>),
    Keys(Query, Sender<Result<Vec<String>, StoreError>>),
}

/// The keys to list.
pub(crate) struct Query {
    pub(crate) room_type: Box<str>,
    pub(crate) after: Option<Box<str>>,
    pub(crate) limit: usize,
}

/// Queues a request. If too many wait, it is answered at once.
pub(crate) fn put(requests: &SyncSender<Request>, request: Request) {
    let Err(TrySendError::Full(request) | TrySendError::Disconnected(request)) =
        requests.try_send(request)
    else {
        return;
    };
    let text = format!("the store is busy: {LOADS_MAX} loads wait");
    let error = StoreError::new(StoreErrorKind::Busy, text);
    match request {
        Request::Load(_, done) => drop(done.send(Err(error))),
        Request::Keys(_, done) => drop(done.send(Err(error))),
    }
}

/// Answers requests until there are no more senders.
pub(crate) fn run(file: &Arc<DatabaseFile>, requests: &Mutex<Receiver<Request>>) {
    loop {
        let request = requests.lock().unwrap_or_else(PoisonError::into_inner).recv();
        // Nobody may wait for the answer any more.
        match request {
            Ok(Request::Load(name, done)) => {
                let found = file.with("can't read", |database| load(database, &name));
                let _ = done.send(found);
            }
            Ok(Request::Keys(query, done)) => {
                let found = file.with("can't read", |database| keys(database, &query));
                let _ = done.send(found);
            }
            Err(_) => return,
        }
    }
}

type Table = ReadOnlyTable<(&'static str, &'static str), &'static [u8]>;

/// The table, if anything was ever written.
fn table(database: &Database) -> Result<Option<Table>, StorageError> {
    let transaction = database.begin_read().map_err(storage_of_transaction)?;
    match transaction.open_table(SAVES) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(storage_of_table(error)),
    }
}

fn load(database: &Database, name: &Name) -> Result<Option<Loaded>, StorageError> {
    let Some(table) = table(database)? else { return Ok(None) };
    let found = table.get((&*name.0, &*name.1))?;
    Ok(found.map(|bytes| bytes.value().to_vec().into()))
}

fn keys(database: &Database, query: &Query) -> Result<Vec<String>, StorageError> {
    let Some(table) = table(database)? else { return Ok(Vec::new()) };
    let after = query.after.as_deref();
    let mut found = Vec::new();
    for entry in table.range((&*query.room_type, after.unwrap_or_default())..)? {
        let (name, _) = entry?;
        let (room_type, key) = name.value();
        if room_type != &*query.room_type || found.len() == query.limit {
            break;
        }
        if after != Some(key) {
            found.push(key.to_owned());
        }
    }
    Ok(found)
}
