//! A connection, and the statements of the store.
//!
//! Each statement is a transaction, so a node that dies or is cut off holds no row. Each takes many
//! saves, as arrays.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use playfield_room::{Fence, Loaded, Opened, StoreError, StoreErrorKind};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, Statement};

use super::batch::Write;
use super::trouble::Trouble;
use crate::queue::Name;
use crate::reader::Query;

/// A row that another node opens meanwhile is compared again once that is committed, so a save
/// never overtakes it.
const WRITE: &str = "
    update playfield_saves as s set bytes = n.bytes, saved_at = now()
    from unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[]) with ordinality
        as n(room_type, key, fence, bytes, at)
    where s.room_type = n.room_type and s.key = n.key and s.fence = n.fence
    returning n.at";

/// The sequence is read while the row is locked, so later owners have greater fences.
const OPEN: &str = "
    insert into playfield_saves as s (room_type, key, fence)
    select room_type, key, nextval('playfield_fences')
    from unnest($1::text[], $2::text[]) as n(room_type, key)
    on conflict (room_type, key)
    do update set fence = greatest(s.fence + 1, nextval('playfield_fences'))
    returning s.room_type, s.key, s.fence, s.bytes";

/// Of a save that was never written nothing remains.
const CLOSE: &str = "
    delete from playfield_saves as s using unnest($1::text[], $2::text[], $3::bigint[])
        as n(room_type, key, fence)
    where s.room_type = n.room_type and s.key = n.key and s.fence = n.fence and s.bytes is null";

const LOAD: &str = "
    select n.at, s.bytes from unnest($1::text[], $2::text[]) with ordinality as n(room_type, key, at)
    join playfield_saves as s on s.room_type = n.room_type and s.key = n.key
    where s.bytes is not null";

const KEYS: &str = "
    select key from playfield_saves
    where room_type = $1 and key >= $2 and key is distinct from $3 and bytes is not null
    order by key limit $4";

/// The time that is added to the database's own limit, for its answer to arrive.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

pub(super) struct Session {
    client: Client,
    driver: AbortHandle,
    place: Arc<str>,
    statement_timeout: Duration,
    write: Statement,
    open: Statement,
    close: Statement,
    load: Statement,
    keys: Statement,
}

/// The parameters of a statement.
type Given<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Session {
    pub(super) async fn new(
        client: Client,
        driver: AbortHandle,
        place: Arc<str>,
        statement_timeout: Duration,
    ) -> Result<Self, Error> {
        const NAMES: [Type; 2] = [Type::TEXT_ARRAY, Type::TEXT_ARRAY];
        let [room_types, keys] = NAMES;
        let fenced = [room_types, keys, Type::INT8_ARRAY, Type::BYTEA_ARRAY];
        let one = [Type::TEXT, Type::TEXT, Type::TEXT, Type::INT8];
        Ok(Self {
            write: client.prepare_typed(WRITE, &fenced).await?,
            open: client.prepare_typed(OPEN, &NAMES).await?,
            close: client.prepare_typed(CLOSE, &fenced[..3]).await?,
            load: client.prepare_typed(LOAD, &NAMES).await?,
            keys: client.prepare_typed(KEYS, &one).await?,
            client,
            driver,
            place,
            statement_timeout,
        })
    }

    /// Writes saves with different names or fences. Returns, for each, whether its fence was the
    /// newest one.
    pub(super) async fn write(&self, writes: &[&Write]) -> Result<Vec<bool>, Trouble> {
        let (room_types, keys) = columns(writes.iter().map(|write| &write.name));
        let fences: Vec<i64> = writes.iter().map(|write| number(write.fence)).collect();
        let bytes: Vec<Option<&[u8]>> = writes.iter().map(|write| write.bytes.as_deref()).collect();
        let given: Given<'_> = &[&room_types, &keys, &fences, &bytes];
        let rows = self.run(self.client.query(&self.write, given)).await?;
        let mut written = vec![false; writes.len()];
        for row in rows {
            written[place(&row)] = true;
        }
        Ok(written)
    }

    /// Opens saves with different names, which are sorted: nodes that open the same ones don't wait
    /// for each other in a circle.
    pub(super) async fn open(&self, names: &[&Name]) -> Result<Vec<Opened>, Trouble> {
        let (room_types, keys) = columns(names.iter().copied());
        let rows = self.run(self.client.query(&self.open, &[&room_types, &keys])).await?;
        let mut opened: HashMap<(&str, &str), Opened> = HashMap::with_capacity(rows.len());
        for row in &rows {
            let fence = Fence(row.get::<_, i64>(2) as u64);
            opened.insert((row.get(0), row.get(1)), Opened { fence, save: saved(row, 3) });
        }
        let found = names.iter().map(|(room_type, key)| opened.remove(&(&**room_type, &**key)));
        found.collect::<Option<_>>().ok_or_else(|| {
            let text = format!("the store {} did not open each save", self.place);
            Trouble::Failed(StoreError::new(StoreErrorKind::Other, text))
        })
    }

    /// Removes what owners have opened and not written.
    pub(super) async fn close(&self, closes: &[(Name, Fence)]) -> Result<(), Trouble> {
        let (room_types, keys) = columns(closes.iter().map(|(name, _)| name));
        let fences: Vec<i64> = closes.iter().map(|(_, fence)| number(*fence)).collect();
        let given: Given<'_> = &[&room_types, &keys, &fences];
        self.run(self.client.execute(&self.close, given)).await.map(drop)
    }

    pub(super) async fn load(&self, names: &[&Name]) -> Result<Vec<Option<Loaded>>, Trouble> {
        let (room_types, keys) = columns(names.iter().copied());
        let rows = self.run(self.client.query(&self.load, &[&room_types, &keys])).await?;
        let mut loaded = vec![None; names.len()];
        for row in rows {
            loaded[place(&row)] = saved(&row, 1);
        }
        Ok(loaded)
    }

    pub(super) async fn keys(&self, query: &Query) -> Result<Vec<String>, Trouble> {
        let (room_type, after) = (&*query.room_type, query.after.as_deref());
        let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
        let given: Given<'_> = &[&room_type, &after.unwrap_or_default(), &after, &limit];
        let rows = self.run(self.client.query(&self.keys, given)).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn run<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Trouble> {
        let limit = self.statement_timeout + ANSWER_WAIT;
        match timeout(limit, work).await {
            Ok(done) => done.map_err(|error| Trouble::of(&self.place, &error)),
            Err(_) => {
                let text = format!("the store {} gave no answer within {limit:?}", self.place);
                Err(Trouble::Away(StoreError::new(StoreErrorKind::Away, text)))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The room types and the keys, as arrays.
fn columns<'a>(names: impl Iterator<Item = &'a Name>) -> (Vec<&'a str>, Vec<&'a str>) {
    names.map(|(room_type, key)| (&**room_type, &**key)).unzip()
}

fn number(Fence(fence): Fence) -> i64 {
    // The database never hands out one that is larger.
    i64::try_from(fence).unwrap_or(i64::MAX)
}

/// The place in the arrays, from the column that counts from 1.
fn place(row: &Row) -> usize {
    row.get::<_, i64>(0) as usize - 1
}

fn saved(row: &Row, column: usize) -> Option<Loaded> {
    row.get::<_, Option<Vec<u8>>>(column).map(Loaded::from)
}
