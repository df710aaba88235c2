//! Masked frames from a client, for readers that get them through a buffer, as from a socket. This
//! file is a part of `bench peers` and of the program `peers/websocket`.

/// Sizes of payloads.
pub(super) const SIZES: [usize; 4] = [8, 64, 1 << 10, 64 << 10];

/// The number of bytes that a shard reads at once.
pub(super) const READ_BYTES: usize = 256 << 10;

/// The payload bytes read per round.
const ROUND_BYTES: usize = 16 << 20;

/// Frames, and the payload that each of them has.
pub(super) struct Case {
    pub(super) payload: Vec<u8>,
    pub(super) wire: Vec<u8>,
    pub(super) frames: usize,
}

impl Case {
    pub(super) fn new(bytes: usize) -> Self {
        let payload: Vec<u8> = (0..bytes).map(|place| (place * 7) as u8).collect();
        let frames = (ROUND_BYTES / bytes).clamp(256, 400_000);
        let mut wire = Vec::new();
        for number in 0..frames {
            let key = ((number as u32).wrapping_mul(0x9e37_79b9) | 1).to_ne_bytes();
            wire.push(0x82);
            match bytes {
                0..=125 => wire.push(0x80 | bytes as u8),
                126..=0xFFFF => {
                    wire.push(0xFE);
                    wire.extend((bytes as u16).to_be_bytes());
                }
                _ => {
                    wire.push(0xFF);
                    wire.extend((bytes as u64).to_be_bytes());
                }
            }
            wire.extend(key);
            wire.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
        }
        Self { payload, wire, frames }
    }
}
