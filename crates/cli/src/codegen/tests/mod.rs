//! Code generated from a schema.

mod generated;
mod hostile;
