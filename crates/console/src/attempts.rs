//! Limits of the tokens that may be tried: few from one address, and few from all together.
//!
//! Addresses share a fixed number of places, by a hash that nobody else knows. So memory is
//! bounded, and nobody can aim at the place of another. Addresses that have sent the right token do
//! not share the limit of all with those that have not, so that who guesses does not lock them out.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// So many wrong tokens may come from an address in one burst.
const BURST: u32 = 10;
/// After the burst, an address has one more attempt this often.
const PERIOD: Duration = Duration::from_secs(6);
/// The same for all addresses that have not sent the right token lately.
const BURST_OF_ALL: u32 = 100;
const PERIOD_OF_ALL: Duration = Duration::from_millis(600);
/// The number of places.
const PLACES: usize = 4096;
/// The most addresses that are known to have sent the right token.
const RIGHT_MAX: usize = 64;

/// The digest of a token.
pub(crate) type Digest = [u8; 32];

/// The wrong tokens that were tried lately.
pub(crate) struct Attempts {
    hasher: RandomState,
    places: Vec<Place>,
    all: Bucket,
    /// Addresses that have sent the right token, the last at the end.
    right: VecDeque<IpAddr>,
}

#[derive(Clone, Default)]
struct Place {
    bucket: Bucket,
    /// The last that was wrong. To try the same again says nothing new, so it is not counted: a
    /// page with an old token asks more than once.
    last: Option<Box<Digest>>,
}

/// A bucket that leaks: it is empty again at this time.
#[derive(Clone, Copy, Default)]
struct Bucket {
    empty_at: Duration,
}

impl Default for Attempts {
    fn default() -> Self {
        let places = vec![Place::default(); PLACES];
        let right = VecDeque::new();
        Self { hasher: RandomState::new(), places, all: Bucket::default(), right }
    }
}

impl Attempts {
    /// Compares a token that came from an address, `now` since any fixed time. `Ok` says whether it
    /// is the right one.
    ///
    /// # Errors
    /// It is not compared, since there were too many wrong ones. The time to wait.
    pub(crate) fn try_token(
        &mut self,
        from: IpAddr,
        sent: &Digest,
        right: &Digest,
        now: Duration,
    ) -> Result<bool, Duration> {
        let from = counted(from);
        let number = self.hasher.hash_one(from) as usize % PLACES;
        let place = &mut self.places[number];
        let mut wait = place.bucket.wait(BURST, PERIOD, now);
        let is_known = self.right.contains(&from) && place.bucket.empty_at <= now;
        if !is_known {
            wait = wait.max(self.all.wait(BURST_OF_ALL, PERIOD_OF_ALL, now));
        }
        if !wait.is_zero() {
            return Err(wait);
        }
        if is_same(sent, right) {
            if !is_known {
                self.right.retain(|known| *known != from);
                if self.right.len() == RIGHT_MAX {
                    self.right.pop_front();
                }
                self.right.push_back(from);
            }
            return Ok(true);
        }
        if place.last.as_deref() != Some(sent) {
            place.last = Some(Box::new(*sent));
            place.bucket.add(PERIOD, now);
            self.all.add(PERIOD_OF_ALL, now);
        }
        Ok(false)
    }
}

impl Bucket {
    /// Returns the time until one more goes into it.
    fn wait(self, burst: u32, period: Duration, now: Duration) -> Duration {
        self.empty_at.saturating_sub(now).saturating_sub(period * (burst - 1))
    }

    fn add(&mut self, period: Duration, now: Duration) {
        self.empty_at = self.empty_at.max(now) + period;
    }
}

/// Returns the part of an address that counts as one: of IPv6, a network of 64 bits.
fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// Compares in a time that does not depend on where they differ.
pub(crate) fn is_same(one: &Digest, other: &Digest) -> bool {
    one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::time::Duration;

    use super::{Attempts, BURST, BURST_OF_ALL, Digest, PERIOD};

    const RIGHT: Digest = [7; 32];
    const NOW: Duration = Duration::ZERO;

    fn address(number: u32) -> IpAddr {
        (0x0A00_0000 + number).to_be_bytes().into()
    }

    /// A wrong token, which differs by its number.
    fn wrong(number: u32) -> Digest {
        let mut digest = RIGHT;
        digest[28..].copy_from_slice(&number.to_be_bytes());
        digest
    }

    #[test]
    fn an_address_that_was_wrong_too_often_waits_and_others_do_not() {
        let mut attempts = Attempts::default();
        let mut tries =
            |from, token: &Digest, now| attempts.try_token(address(from), token, &RIGHT, now);
        for number in 0..BURST {
            assert_eq!(tries(1, &wrong(number), NOW), Ok(false));
            if number + 1 < BURST {
                assert_eq!(tries(1, &wrong(number), NOW), Ok(false), "the same says nothing new");
            }
        }
        assert_eq!(tries(1, &wrong(99), NOW), Err(PERIOD));
        assert_eq!(tries(1, &RIGHT, NOW), Err(PERIOD), "it would say that this is the right one");
        let operators = (2..90).filter(|&from| tries(from, &RIGHT, NOW) == Ok(true)).count();
        assert!(operators >= 86, "{operators}: one may have the same place");
        assert_eq!(tries(1, &wrong(100), NOW + PERIOD), Ok(false));
        assert_eq!(tries(1, &wrong(101), NOW + PERIOD), Err(PERIOD));
        assert_eq!(tries(1, &RIGHT, NOW + PERIOD * BURST), Ok(true));
    }

    #[test]
    fn a_network_of_64_bits_is_one_address() {
        let mut attempts = Attempts::default();
        let mut tries = |from: &str, number| {
            attempts.try_token(from.parse().unwrap(), &wrong(number), &RIGHT, NOW)
        };
        for number in 0..BURST {
            assert_eq!(tries(&format!("2001:db8::{number}"), number), Ok(false));
        }
        assert!(tries("2001:db8::ffff:0:0:1", 99).is_err());
        for number in 0..BURST {
            assert_eq!(tries("::ffff:10.9.9.9", number), Ok(false));
        }
        assert!(tries("10.9.9.9", 99).is_err());
    }

    #[test]
    fn however_many_addresses_try_few_attempts_are_made_and_who_was_right_is_served() {
        let mut attempts = Attempts::default();
        let operator = address(5_000_000);
        assert_eq!(attempts.try_token(operator, &RIGHT, &RIGHT, NOW), Ok(true));
        let mut made = 0;
        for number in 0..1_000_000 {
            let from = address(number);
            made += u32::from(attempts.try_token(from, &wrong(number), &RIGHT, NOW).is_ok());
        }
        assert_eq!(made, BURST_OF_ALL);
        for number in 0..600_000 {
            let now = NOW + Duration::from_millis(number.into());
            let from = address(number);
            made += u32::from(attempts.try_token(from, &wrong(number), &RIGHT, now).is_ok());
        }
        assert!(made <= BURST_OF_ALL + 1001, "{made} in ten minutes");
        let later = NOW + Duration::from_secs(600);
        for number in 0..9 {
            let _ = attempts.try_token(address(700_000 + number), &wrong(number), &RIGHT, later);
        }
        assert!(attempts.try_token(address(6_000_000), &RIGHT, &RIGHT, later).is_err());
        // Some who tried had the operator's place, perhaps, which is free again after a while.
        let later = later + PERIOD * BURST;
        assert_eq!(attempts.try_token(operator, &RIGHT, &RIGHT, later), Ok(true));
        for from in 0..1000 {
            let _ = attempts.try_token(address(from), &RIGHT, &RIGHT, later + PERIOD * 100);
        }
        assert!(attempts.right.len() <= super::RIGHT_MAX);
    }
}
