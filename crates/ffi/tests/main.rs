//! The C ABI, as a program uses it. The tests in `sdk/cpp` do so in C++, under sanitizers.

mod calls;
mod header;
mod orders;
mod redirects;
mod script;
