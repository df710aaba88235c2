//! When messages are sent in an open loop, whatever became of those before.

/// Poisson arrivals on each of many connections: together they are one Poisson process, each of
/// whose arrivals is on a connection picked at random.
pub(super) struct Arrivals {
    /// Nanoseconds between arrivals, on average.
    gap_ns: f64,
    /// When the next one is, in nanoseconds.
    next: Option<f64>,
    count: usize,
    random: u64,
    /// The connections with new arrivals. Kept for its memory.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
}

impl Arrivals {
    pub(super) fn new(per_s: u64, count: usize) -> Self {
        Self {
            gap_ns: 1e9 / per_s as f64,
            next: None,
            count,
            random: 0x9E37_79B9_7F4A_7C15,
            touched: Vec::new(),
            is_touched: vec![false; count],
        }
    }

    pub(super) fn begin(&mut self, now: u64) {
        self.next = Some(now as f64);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.next.is_some()
    }

    /// Gives each arrival up to now to its connection. Returns the connections that had any.
    pub(super) fn take<T>(
        &mut self,
        now: u64,
        connections: &mut [T],
        mut arrives: impl FnMut(&mut T, u64),
    ) -> &[usize] {
        self.touched.iter().for_each(|&number| self.is_touched[number] = false);
        self.touched.clear();
        while let Some(next) = self.next
            && next <= now as f64
        {
            let number = ((self.random() >> 32) as usize * self.count) >> 32;
            arrives(&mut connections[number], next as u64);
            if !std::mem::replace(&mut self.is_touched[number], true) {
                self.touched.push(number);
            }
            // Uniform in (0, 1]: its logarithm is finite.
            let uniform = ((self.random() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
            self.next = Some(next - uniform.ln() * self.gap_ns);
        }
        &self.touched
    }

    /// xorshift64*, Vigna 2016.
    fn random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

#[cfg(test)]
mod tests {
    use super::Arrivals;

    #[test]
    fn arrivals_come_at_the_rate_and_on_all_connections() {
        let mut arrivals = Arrivals::new(1_000_000, 10);
        arrivals.begin(0);
        let mut counts = vec![0_u64; 10];
        let touched = arrivals.take(1_000_000_000, &mut counts, |count, _| *count += 1).len();
        assert_eq!(touched, 10);
        assert!((995_000..1_005_000).contains(&counts.iter().sum::<u64>()), "{counts:?}");
        assert!(counts.iter().all(|count| (98_000..102_000).contains(count)), "{counts:?}");
    }
}
