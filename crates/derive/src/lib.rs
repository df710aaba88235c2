//! The derive macros State, Data and Message, and the attribute room.
