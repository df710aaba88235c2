//! Packets, framing and the messages of the Playfield protocol.
