//! A node's schema, and what was made of it. All connections of the process share one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use playfield_state::{JsonExchange, Transcoder, TranscoderError};
use playfield_wire::schema::{RoomSchema, fingerprint};

use super::{Learned, Unusable};

/// The schemas that connections know, by fingerprint.
static KNOWN: Mutex<BTreeMap<u64, Weak<Schema>>> = Mutex::new(BTreeMap::new());

/// A schema of a node.
#[derive(Debug)]
pub(in crate::session) struct Schema {
    fingerprint: u64,
    schema: Arc<RoomSchema>,
    learned: OnceLock<Arc<Learned>>,
    /// By the fingerprint of the client's build.
    transcoders: Mutex<Vec<(u64, Arc<Transcoder>)>>,
}

impl Schema {
    /// The one that another connection has, if it is equal: fingerprints can be forged.
    pub(in crate::session) fn shared(schema: RoomSchema) -> Arc<Self> {
        let fingerprint = fingerprint(&schema);
        let known = lock(&KNOWN).get(&fingerprint).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| *known.schema == schema) {
            return known;
        }
        let (learned, transcoders) = (OnceLock::new(), Mutex::default());
        let made = Arc::new(Self { fingerprint, schema: Arc::new(schema), learned, transcoders });
        lock(&KNOWN).insert(fingerprint, Arc::downgrade(&made));
        made
    }

    pub(in crate::session) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub(in crate::session) fn schema(&self) -> &Arc<RoomSchema> {
        &self.schema
    }

    /// Reads and writes messages of a client that was built with another schema.
    ///
    /// # Errors
    /// If the schemas are incompatible, or a type can't be transcoded.
    pub(in crate::session) fn transcoder(
        &self,
        own: u64,
        build: &RoomSchema,
    ) -> Result<Arc<Transcoder>, Unusable> {
        let mut transcoders = lock(&self.transcoders);
        if let Some((_, transcoder)) = transcoders.iter().find(|(known, _)| *known == own) {
            return Ok(Arc::clone(transcoder));
        }
        let transcoder = Transcoder::new(&self.schema, build).map_err(|error| match error {
            TranscoderError::Incompatible(error) => Unusable::Incompatible(error),
            TranscoderError::Shape(error) => Unusable::Shape(error),
        })?;
        let transcoder = Arc::new(transcoder);
        transcoders.push((own, Arc::clone(&transcoder)));
        Ok(transcoder)
    }

    /// Reads and writes messages of a client that was built with none.
    ///
    /// # Errors
    /// If a type can't be read.
    pub(super) fn learned(&self) -> Result<Arc<Learned>, Unusable> {
        if let Some(learned) = self.learned.get() {
            return Ok(Arc::clone(learned));
        }
        let exchange = JsonExchange::new(&self.schema).map_err(Unusable::Shape)?;
        let learned = Arc::new(Learned { schema: Arc::clone(&self.schema), exchange });
        Ok(Arc::clone(self.learned.get_or_init(|| learned)))
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let mut known = lock(&KNOWN);
        // Another may have taken the place.
        if known.get(&self.fingerprint).is_some_and(|of| of.strong_count() == 0) {
            known.remove(&self.fingerprint);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use playfield_wire::schema::{RoomSchema, Struct, Type, fingerprint};

    use super::{Arc, KNOWN, Schema, lock};

    fn schema(options: Type) -> RoomSchema {
        let state = Type::Struct(Struct { name: "Room".into(), fields: Vec::new() });
        let (messages, events) = (Vec::new(), Vec::new());
        RoomSchema { state, options, messages, events }
    }

    #[test]
    fn connections_share_equal_schemas_while_one_of_them_lasts() {
        let one = Schema::shared(schema(Type::U8));
        let same = Schema::shared(schema(Type::U8));
        let other = Schema::shared(schema(Type::U16));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        let learned = one.learned().expect("types that can be read");
        assert!(Arc::ptr_eq(&learned, &same.learned().expect("types that can be read")));

        let number = one.fingerprint();
        drop((one, same, learned));
        assert!(!lock(&KNOWN).contains_key(&number), "the last is gone");
        assert!(lock(&KNOWN).contains_key(&other.fingerprint()));
    }

    #[test]
    fn a_schema_with_the_fingerprint_of_another_is_not_mistaken_for_it() {
        let own = schema(Type::U32);
        let number = fingerprint(&own);
        let forged = Schema::shared(schema(Type::U64));
        lock(&KNOWN).insert(number, Arc::downgrade(&forged));
        let found = Schema::shared(own.clone());
        assert!(!Arc::ptr_eq(&found, &forged));
        assert_eq!(*found.schema, own);
        assert!(Arc::ptr_eq(&found, &Schema::shared(own)));
    }
}
