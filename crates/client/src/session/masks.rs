//! Masks for WebSocket frames.

/// A generator of frame masks: PCG-XSH-RR 64/32 (M. E. O'Neill, "PCG: A Family of Simple Fast
/// Space-Efficient Statistically Good Algorithms for Random Number Generation", 2014).
///
/// RFC 6455 (10.3) requires masks that the author of the payload can't predict, so that no
/// intermediary mistakes a payload for something else. Take the seed from the operating system's
/// generator; a test may use a fixed one.
#[derive(Clone, Debug)]
pub struct Masks {
    state: u64,
    increment: u64,
}

const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

impl Masks {
    /// A generator with this seed.
    #[must_use]
    pub fn seeded(seed: [u8; 16]) -> Self {
        let seed = u128::from_le_bytes(seed);
        let (state, sequence) = (seed as u64, (seed >> 64) as u64);
        // The increment must be odd for the full period.
        let mut masks = Self { state: 0, increment: sequence << 1 | 1 };
        masks.draw();
        masks.state = masks.state.wrapping_add(state);
        masks.draw();
        masks
    }

    /// The next mask.
    pub(super) fn draw(&mut self) -> [u8; 4] {
        let before = self.state;
        self.state = before.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
        let mixed = (((before >> 18) ^ before) >> 27) as u32;
        mixed.rotate_right((before >> 59) as u32).to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::Masks;

    #[test]
    fn the_numbers_match_the_published_demonstration() {
        let mut seed = [0; 16];
        seed[0] = 42;
        seed[8] = 54;
        let mut masks = Masks::seeded(seed);
        let drawn: Vec<u32> = (0..6).map(|_| u32::from_le_bytes(masks.draw())).collect();
        let published =
            [0xa15c_02b7, 0x7b47_f409, 0xba1d_3330, 0x83d2_f293, 0xbfa4_784b, 0xcbed_606e];
        assert_eq!(drawn, published);
    }
}
