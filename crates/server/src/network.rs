//! Where a client is, as far as limits per address go.

use std::net::IpAddr;

/// What counts as one address: of IPv6 the first 64 bits, as the rest is the client's to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Network(u64);

/// The first bits for addresses of IPv4: no IPv6 network has them (RFC 6666).
const IPV4: u64 = 0x0100 << 48;

impl Network {
    /// The network of an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => Self((address.to_bits() >> 64) as u64),
            IpAddr::V4(address) => Self(IPV4 | u64::from(address.to_bits())),
        }
    }
}
