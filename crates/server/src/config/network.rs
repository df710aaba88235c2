//! Addresses and networks of them, as settings name them.

use std::fmt;
use std::net::IpAddr;

/// An IP address, or all that share a prefix, such as `10.0.0.0/8` or `2001:db8::/32`.
/// [`Config::set`](crate::Config::set) reads them. An IPv4 address that is written as IPv6
/// (`::ffff:10.0.0.1`) is the IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Reads one; otherwise says why not.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| Err(format!("{text:?} is not an address or network: {why}"));
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let Ok(address) = address.parse::<IpAddr>() else {
            return refuse("write it as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32");
        };
        let bits = match bits.map(str::parse::<u8>) {
            None => bits_of(address),
            Some(Ok(bits)) if bits <= bits_of(address) => bits,
            Some(_) => return refuse("its prefix length is out of range"),
        };
        let canonical = address.to_canonical();
        let bits = match (address, canonical) {
            (IpAddr::V6(_), IpAddr::V4(_)) if bits < MAPPED_BITS => {
                return refuse("it holds more than IPv4 addresses; write them as IPv4");
            }
            (IpAddr::V6(_), IpAddr::V4(_)) => bits - MAPPED_BITS,
            _ => bits,
        };
        if masked(canonical, bits) != canonical {
            return refuse("it has bits set after its prefix");
        }
        Ok(Self { address: canonical, bits })
    }

    /// Returns whether every address of its kind is in it.
    pub(crate) fn is_all(self) -> bool {
        self.bits == 0
    }

    /// Returns whether an address is in it.
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.bits) == self.address
    }
}

/// The number of bits before an IPv4 address that is written as IPv6.
const MAPPED_BITS: u8 = 96;

fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address with all bits cleared but the first `bits`.
pub(crate) fn masked(address: IpAddr, bits: u8) -> IpAddr {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits)).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(bits)).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, bits } = self;
        if *bits == bits_of(*address) {
            write!(f, "{address}")
        } else {
            write!(f, "{address}/{bits}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn a_network_holds_the_addresses_that_begin_like_it() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::10.1.2.3"),
            ("::ffff:10.0.0.0/104", "10.1.2.3", "11.0.0.1"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "203.0.113.5", "2001:db8::1"),
            ("::/0", "2001:db8::1", "203.0.113.5"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("::1", "::1", "::2"),
        ] {
            let network = Network::read(network).unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{network} {outside}");
            assert_eq!(Network::read(&network.to_string()), Ok(network));
        }
    }

    #[test]
    fn what_is_no_network_is_refused_with_the_reason() {
        for (text, why) in [
            ("localhost", "write it as"),
            ("10.0.0.0:80", "write it as"),
            ("10.0.0.0/33", "prefix length is out of range"),
            ("10.0.0.0/", "prefix length is out of range"),
            ("10.0.0.1/8", "bits set after"),
            ("::ffff:10.0.0.0/90", "more than IPv4"),
        ] {
            let error = Network::read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
