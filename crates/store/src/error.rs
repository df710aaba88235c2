//! Errors of the database, as those of a store.

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;

use playfield_room::{StoreError, StoreErrorKind};
use redb::{DatabaseError, StorageError};

/// Why the file can't be opened.
pub(crate) fn of_opening(path: &Path, error: &DatabaseError) -> StoreError {
    let path = path.display();
    match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::new(
            StoreErrorKind::InUse,
            format!(
                "the store {path} is in use by another process, or by another store in this one: \
                 a store has one node; stop the other one, or use another file"
            ),
        ),
        DatabaseError::UpgradeRequired(version) => StoreError::new(
            StoreErrorKind::Damaged,
            format!(
                "the store {path} has the old file format {version}: convert it with an older version"
            ),
        ),
        DatabaseError::Storage(error) => of_storage("can't open", &path, error),
        other => {
            StoreError::new(StoreErrorKind::Other, format!("can't open the store {path}: {other}"))
        }
    }
}

/// Why reading or writing failed.
pub(crate) fn of_storage(what: &str, path: &impl Display, error: &StorageError) -> StoreError {
    let (kind, advice) = match error {
        StorageError::Io(io) => match io.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                (StoreErrorKind::Full, ": free some space")
            }
            ErrorKind::InvalidData => {
                (StoreErrorKind::Damaged, ": is it the right file? restore it from a backup if so")
            }
            _ => (StoreErrorKind::Io, ""),
        },
        StorageError::Corrupted(_) => (StoreErrorKind::Damaged, ": restore it from a backup"),
        StorageError::PreviousIo => (StoreErrorKind::Io, ""),
        _ => (StoreErrorKind::Other, ""),
    };
    StoreError::new(kind, format!("{what} the store {path}: {error}{advice}"))
}
