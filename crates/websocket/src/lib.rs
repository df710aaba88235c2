//! RFC 6455 as a state machine over byte slices.
