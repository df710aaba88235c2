//! The thread that writes.

use std::sync::Arc;

use redb::{CommitError, Database, StorageError, TableError, TransactionError};

use crate::file::{DatabaseFile, SAVES};
use crate::writes::{Write, Writes};

/// Commits what waits until the queue is closed and empty.
pub(crate) fn run(file: &Arc<DatabaseFile>, queue: &Writes) {
    while let Some(writes) = queue.take() {
        let outcome = file.with("can't write to", |database| commit(database, &writes));
        if let Err(error) = &outcome {
            log::error!("{} saves were not written: {error}", writes.len());
            file.close();
        }
        queue.finish(writes, &outcome);
    }
}

/// Writes all of them or, after an error, none.
fn commit(database: &Database, writes: &[Write]) -> Result<(), StorageError> {
    let mut transaction = database.begin_write().map_err(storage_of_transaction)?;
    // After a crash the file is usable at once, however large it is.
    transaction.set_quick_repair(true);
    {
        let mut table = transaction.open_table(SAVES).map_err(storage_of_table)?;
        for write in writes {
            let name = (&*write.name.0, &*write.name.1);
            match &write.bytes {
                Some(bytes) => drop(table.insert(name, bytes.as_slice())?),
                None => drop(table.remove(name)?),
            }
        }
    }
    transaction.commit().map_err(|error| match error {
        CommitError::Storage(error) => error,
        other => StorageError::Corrupted(other.to_string()),
    })
}

pub(crate) fn storage_of_transaction(error: TransactionError) -> StorageError {
    match error {
        TransactionError::Storage(error) => error,
        other => StorageError::Corrupted(other.to_string()),
    }
}

pub(crate) fn storage_of_table(error: TableError) -> StorageError {
    match error {
        TableError::Storage(error) => error,
        other => StorageError::Corrupted(other.to_string()),
    }
}
