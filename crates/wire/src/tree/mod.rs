//! Trees: what `json` and `msgpack` have in common.
//!
//! Both formats carry objects, arrays, texts, bytes, numbers, booleans and null, so a single
//! [`TreeWriter`] writes both.

mod digest;
pub(crate) mod members;
mod message;
mod value;
mod writer;

pub use digest::{Place, TreeDigest, digest_of};
pub use value::read_value;
pub use writer::{Array, Object, TreeWriter};
