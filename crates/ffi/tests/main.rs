//! The C ABI, as a program uses it.

mod header;
