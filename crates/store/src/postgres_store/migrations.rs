//! The tables, which the store makes and changes by itself.

use playfield_room::{StoreError, StoreErrorKind};
use tokio_postgres::{Client, Error, GenericClient};

use super::trouble::of_connecting;

/// The statements that make each version of the tables of the one before.
///
/// Fences are from a sequence, so that a row may be removed: the same fence is not handed out
/// again. Saves are not compressed, since that is the larger part of the work for a save of some
/// KiB.
const STEPS: [&str; 1] = ["
    create sequence playfield_fences;
    create table playfield_saves (
        room_type text collate \"C\" not null,
        key text collate \"C\" not null,
        fence bigint not null,
        bytes bytea,
        saved_at timestamptz,
        primary key (room_type, key)
    ) with (fillfactor = 70);
    alter table playfield_saves alter column bytes set storage external;
"];

/// The key of the lock that is held while the tables are changed.
const LOCK: i64 = 0x706c_6179_6669_656c;

/// Brings the tables to the version of this build.
pub(super) async fn migrate(client: &mut Client, place: &str) -> Result<(), StoreError> {
    let failed = |error: Error| of_connecting(place, &error);
    let newest = STEPS.len() as i32;
    // A user who may not create tables may use those that are there.
    if version(client).await.map_err(failed)? == Some(newest) {
        return Ok(());
    }
    // Before the transaction, which sees what another node has made meanwhile. A connection that
    // breaks releases it.
    client.execute("select pg_advisory_lock($1)", &[&LOCK]).await.map_err(failed)?;
    let change = client.transaction().await.map_err(failed)?;
    let found = version(&change).await.map_err(failed)?;
    let wrong = |text: String| {
        let text = format!("can't open the store {place}: {text}");
        Err(StoreError::new(StoreErrorKind::Other, text))
    };
    let steps = match found {
        None => {
            let first = "create table playfield_version (version int not null);
                 insert into playfield_version values (0)";
            change.batch_execute(first).await.map_err(failed)?;
            &STEPS[..]
        }
        Some(found) if found > newest => {
            return wrong(format!(
                "its tables have version {found}, and this build knows {newest}: run a newer build"
            ));
        }
        Some(found) => match usize::try_from(found) {
            Ok(found) => &STEPS[found..],
            Err(_) => return wrong(format!("its tables have version {found}, which none has")),
        },
    };
    for step in steps {
        change.batch_execute(step).await.map_err(failed)?;
    }
    let set = "update playfield_version set version = $1";
    change.execute(set, &[&newest]).await.map_err(failed)?;
    change.commit().await.map_err(failed)?;
    client.execute("select pg_advisory_unlock($1)", &[&LOCK]).await.map_err(failed)?;
    if !steps.is_empty() {
        log::info!("the tables of the store {place} have version {newest} now");
    }
    Ok(())
}

/// The version of the tables; `None` if there are none.
async fn version(client: &impl GenericClient) -> Result<Option<i32>, Error> {
    let is_there = "select to_regclass('playfield_version') is not null";
    if !client.query_one(is_there, &[]).await?.get::<_, bool>(0) {
        return Ok(None);
    }
    let found = client.query_opt("select max(version) from playfield_version", &[]).await?;
    // A table without a row is one of a process that did not finish.
    Ok(Some(found.and_then(|row| row.get(0)).unwrap_or(0)))
}
