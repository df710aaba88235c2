//! Errors of the database.

use std::error::Error as _;
use std::fmt::Write as _;

use playfield_room::{StoreError, StoreErrorKind};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// The meaning of an error for what waits.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The connection is of no use any more: another one may be.
    Away(StoreError),
    /// Other statements were in the way: the same one may succeed now.
    Again(StoreError),
    /// The statement failed.
    Failed(StoreError),
}

impl Trouble {
    /// An error of a statement.
    pub(super) fn of(place: &str, error: &Error) -> Self {
        let failed =
            |kind| StoreError::new(kind, format!("the store {place} failed: {}", text(error)));
        let Some(state) = error.code() else {
            return match error.is_closed() || has_io_error(error) {
                true => Self::Away(failed(StoreErrorKind::Away)),
                false => Self::Failed(failed(StoreErrorKind::Other)),
            };
        };
        match state {
            state if is_away(state) => Self::Away(failed(StoreErrorKind::Away)),
            &SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE => {
                Self::Again(failed(StoreErrorKind::Busy))
            }
            &SqlState::DISK_FULL => Self::Failed(failed(StoreErrorKind::Full)),
            &SqlState::IO_ERROR => Self::Failed(failed(StoreErrorKind::Io)),
            &SqlState::QUERY_CANCELED | &SqlState::LOCK_NOT_AVAILABLE => {
                Self::Failed(failed(StoreErrorKind::Busy))
            }
            _ => Self::Failed(failed(StoreErrorKind::Other)),
        }
    }
}

/// Returns whether the server ends the connection, or is one that can't be written to.
fn is_away(state: &SqlState) -> bool {
    let class = &state.code()[..2];
    // Connections, and what the server's operator does.
    matches!(class, "08" | "57") && *state != SqlState::QUERY_CANCELED
        || *state == SqlState::READ_ONLY_SQL_TRANSACTION
        || *state == SqlState::TOO_MANY_CONNECTIONS
}

fn has_io_error(error: &Error) -> bool {
    error.source().is_some_and(|source| source.is::<std::io::Error>())
}

/// An error while the store connects, with what to do.
pub(super) fn of_connecting(place: &str, error: &Error) -> StoreError {
    let advice = match error.code() {
        Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
            "check the user and the password"
        }
        Some(&SqlState::INVALID_CATALOG_NAME) => "create the database, such as with `createdb`",
        Some(&SqlState::TOO_MANY_CONNECTIONS) => {
            "raise max_connections of the server, or use fewer (PostgresOptions::connections)"
        }
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            "let the user create tables, as by `grant create on schema public to …`, or own a schema"
        }
        _ => "check that it runs, and the URL",
    };
    let is_away = error.code().is_none_or(is_away);
    let kind = if is_away { StoreErrorKind::Away } else { StoreErrorKind::Other };
    StoreError::new(kind, format!("can't open the store {place}: {}: {advice}", text(error)))
}

/// An error with its causes. That of a server is its message, and the code to look up.
fn text(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", error.message(), error.code().code());
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}
