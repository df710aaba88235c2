//! A room: its state, its players, its clock; deterministic.
