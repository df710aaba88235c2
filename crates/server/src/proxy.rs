//! Client addresses from proxies: the PROXY protocol, versions 1 and 2, at the beginning of a
//! connection (<https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>), and
//! `X-Forwarded-For` in HTTP requests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The result of reading the first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proxied {
    /// More bytes are needed.
    Partial,
    /// The bytes are not a PROXY header.
    Not,
    /// A header of `bytes` bytes, which names this client; `None` if it names none: the proxy
    /// connected for itself, or for a client without an IP address.
    Header { bytes: usize, client: Option<SocketAddr> },
    /// A header that can't be read, and why.
    Malformed(&'static str),
}

/// The first bytes of version 1, which is a line of text.
const V1: &[u8] = b"PROXY ";
/// The maximum length of the line, with its end.
const V1_BYTES_MAX: usize = 107;
/// The first bytes of version 2, which is binary.
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Its fixed part: how it begins, a version and a command, a family and a protocol, a length.
const V2_FIXED_BYTES: usize = 16;
/// The maximum length of the rest: addresses, and what may follow them. No proxy sends more.
const V2_REST_BYTES_MAX: usize = 2048;

/// Reads the first bytes of a connection from a proxy.
pub(crate) fn proxied(input: &[u8]) -> Proxied {
    if input.starts_with(V1) {
        version_1(input)
    } else if input.starts_with(V2) {
        version_2(input)
    } else if V1.starts_with(input) || V2.starts_with(input) {
        Proxied::Partial
    } else {
        Proxied::Not
    }
}

fn version_1(input: &[u8]) -> Proxied {
    let line = &input[..input.len().min(V1_BYTES_MAX)];
    let Some(end) = line.windows(2).position(|pair| pair == b"\r\n") else {
        return if input.len() < V1_BYTES_MAX {
            Proxied::Partial
        } else {
            Proxied::Malformed("the line of version 1 does not end")
        };
    };
    let bytes = end + 2;
    let Ok(line) = std::str::from_utf8(&line[V1.len()..end]) else {
        return Proxied::Malformed("the line of version 1 is not text");
    };
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["UNKNOWN", ..] => Proxied::Header { bytes, client: None },
        [family @ ("TCP4" | "TCP6"), source, target, source_port, target_port] => {
            let address = |text: &str| -> Option<IpAddr> {
                match family {
                    "TCP4" => text.parse().ok().map(IpAddr::V4),
                    _ => text.parse().ok().map(IpAddr::V6),
                }
            };
            match (address(source), address(target), port(source_port), port(target_port)) {
                (Some(ip), Some(_), Some(port), Some(_)) => {
                    Proxied::Header { bytes, client: Some(SocketAddr::new(ip, port)) }
                }
                _ => Proxied::Malformed("an address or a port of version 1 is none"),
            }
        }
        _ => Proxied::Malformed("the line of version 1 does not have its parts"),
    }
}

/// A port in digits alone.
fn port(text: &str) -> Option<u16> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn version_2(input: &[u8]) -> Proxied {
    let Some((fixed, rest)) = input.split_at_checked(V2_FIXED_BYTES) else {
        return Proxied::Partial;
    };
    let &[.., command, family, high, low] = fixed else { return Proxied::Partial };
    if command >> 4 != 2 {
        return Proxied::Malformed("the version of version 2 is another");
    }
    let rest_bytes = usize::from(u16::from_be_bytes([high, low]));
    if rest_bytes > V2_REST_BYTES_MAX {
        return Proxied::Malformed("version 2 is too long");
    }
    let Some(rest) = rest.get(..rest_bytes) else { return Proxied::Partial };
    let bytes = V2_FIXED_BYTES + rest_bytes;
    let client = match (command & 15, family >> 4) {
        // A health check of the proxy.
        (0, _) => None,
        (1, 0) => None,
        (1, 1) => match *rest {
            [a, b, c, d, _, _, _, _, high, low, _, _, ..] => {
                Some((Ipv4Addr::new(a, b, c, d).into(), u16::from_be_bytes([high, low])))
            }
            _ => return Proxied::Malformed("version 2 is too short for its addresses"),
        },
        (1, 2) => match rest.split_first_chunk::<16>() {
            Some((
                source,
                &[_, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, high, low, _, _, ..],
            )) => Some((Ipv6Addr::from(*source).into(), u16::from_be_bytes([high, low]))),
            _ => return Proxied::Malformed("version 2 is too short for its addresses"),
        },
        // A Unix socket.
        (1, 3) => None,
        (1, _) => return Proxied::Malformed("the family of version 2 is unknown"),
        _ => return Proxied::Malformed("the command of version 2 is unknown"),
    };
    Proxied::Header { bytes, client: client.map(|(ip, port)| SocketAddr::new(ip, port)) }
}

/// The sender of an HTTP request, as far as trusted proxies say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// The client, or the last proxy that is known. The port is 0 if no proxy gave it.
    pub(crate) address: SocketAddr,
    /// A proxy, whose address this is, was connected by someone whose address can't be read.
    pub(crate) is_unnamed: bool,
}

impl Client {
    /// One whose address is known.
    pub(crate) const fn named(address: SocketAddr) -> Self {
        Self { address, is_unnamed: false }
    }

    /// One that the proxy at this address does not name.
    pub(crate) const fn unnamed(proxy: SocketAddr) -> Self {
        Self { address: proxy, is_unnamed: true }
    }
}

/// The client that `X-Forwarded-For` headers from a trusted proxy at `peer` name. Each proxy
/// appends the address that it was connected from, so the last address that is not a trusted
/// proxy's is the client's. What is further left than an item that can't be read does not count: it
/// may come from the client.
pub(crate) fn forwarded<'a>(
    peer: Client,
    headers: impl DoubleEndedIterator<Item = &'a [u8]>,
    is_proxy: impl Fn(IpAddr) -> bool,
) -> Client {
    let mut client = peer;
    for item in headers.rev().flat_map(|header| header.rsplit(|&byte| byte == b',')) {
        if !is_proxy(client.address.ip()) {
            break;
        }
        let Some(address) = std::str::from_utf8(item).ok().and_then(|text| hop(text.trim())) else {
            return Client::unnamed(client.address);
        };
        client = Client::named(address);
    }
    client
}

/// An address, as `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]` or
/// `[2001:db8::1]:4711`.
fn hop(text: &str) -> Option<SocketAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    match bare.parse() {
        Ok(ip) => Some(SocketAddr::new(ip, 0)),
        Err(_) => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use super::{Client, Proxied, V1, V1_BYTES_MAX, V2, V2_REST_BYTES_MAX, forwarded, proxied};

    fn client(text: &str) -> Option<SocketAddr> {
        Some(text.parse().unwrap())
    }

    fn version_2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [V2, &[command, family], &length, rest].concat()
    }

    /// Headers, and the client that each names.
    fn headers() -> Vec<(Vec<u8>, Option<SocketAddr>)> {
        let v4 = [203, 0, 113, 5, 10, 0, 0, 1, 0x12, 0x34, 0x1C, 0xB6];
        let source = "2001:db8::5".parse::<std::net::Ipv6Addr>().unwrap().octets();
        let v6 = [&source[..], &[0; 16], &[0, 80, 0, 81]].concat();
        vec![
            (b"PROXY TCP4 203.0.113.5 10.0.0.1 4711 7350\r\n".into(), client("203.0.113.5:4711")),
            (b"PROXY TCP6 2001:db8::5 ::1 1 2\r\n".into(), client("[2001:db8::5]:1")),
            (b"PROXY UNKNOWN\r\n".into(), None),
            (b"PROXY UNKNOWN ffff:: ::1 1 2\r\n".into(), None),
            (version_2(0x21, 0x11, &v4), client("203.0.113.5:4660")),
            // What follows the addresses is not ours.
            (
                version_2(0x21, 0x11, &[&v4[..], b"\x03\0\x04abcd"].concat()),
                client("203.0.113.5:4660"),
            ),
            (version_2(0x21, 0x21, &v6), client("[2001:db8::5]:80")),
            (version_2(0x20, 0x00, &[]), None),
            (version_2(0x21, 0x00, &[]), None),
            (version_2(0x21, 0x31, &[0; 216]), None),
        ]
    }

    #[test]
    fn a_header_names_the_client_however_it_is_cut() {
        for (header, client) in headers() {
            for end in 0..header.len() {
                assert_eq!(proxied(&header[..end]), Proxied::Partial, "{end} of {header:x?}");
            }
            let bytes = header.len();
            for behind in [&b""[..], b"PF1\n", b"GET / HTTP/1.1\r\n", b"\x16\x03\x01", &header] {
                let input = [&header, behind].concat();
                assert_eq!(proxied(&input), Proxied::Header { bytes, client }, "{input:x?}");
            }
        }
    }

    #[test]
    fn what_is_no_header_is_left_alone() {
        for input in [&b"PF1\n"[..], b"GET / ", b"PUT /", b"\x16\x03\x01", b"\r\nGET /", b"PROXX"] {
            assert_eq!(proxied(input), Proxied::Not, "{input:x?}");
        }
    }

    #[test]
    fn a_malformed_header_is_refused() {
        let lines = [
            "PROXY TCP4 203.0.113.5 10.0.0.1 4711\r\n",
            "PROXY TCP4 203.0.113.5 10.0.0.1 4711 7350 1\r\n",
            "PROXY TCP4 203.0.113.500 10.0.0.1 4711 7350\r\n",
            "PROXY TCP4 2001:db8::5 ::1 4711 7350\r\n",
            "PROXY TCP6 203.0.113.5 10.0.0.1 4711 7350\r\n",
            "PROXY TCP4 203.0.113.5 10.0.0.1 65536 7350\r\n",
            "PROXY TCP4 203.0.113.5 10.0.0.1 +1 7350\r\n",
            "PROXY TCP4  203.0.113.5 10.0.0.1 4711 7350\r\n",
            "PROXY UDP4 203.0.113.5 10.0.0.1 4711 7350\r\n",
            "PROXY tcp4 203.0.113.5 10.0.0.1 4711 7350\r\n",
            "PROXY \r\n",
            "PROXY \u{e9}\r\n",
        ];
        let long = [V1, &[b'1'; V1_BYTES_MAX]].concat();
        let others = [
            [V1, b"\xFF\r\n"].concat(),
            long[..V1_BYTES_MAX].to_vec(),
            version_2(0x11, 0x11, &[0; 12]),
            version_2(0x22, 0x11, &[0; 12]),
            version_2(0x21, 0x41, &[0; 12]),
            version_2(0x21, 0x11, &[0; 11]),
            version_2(0x21, 0x21, &[0; 35]),
            version_2(0x21, 0x11, &[0; V2_REST_BYTES_MAX + 1]),
        ];
        for input in lines.into_iter().map(|line| line.as_bytes().to_vec()).chain(others) {
            assert!(matches!(proxied(&input), Proxied::Malformed(_)), "{input:x?}");
        }
        assert_eq!(proxied(&long[..V1_BYTES_MAX - 1]), Proxied::Partial);
        let most = version_2(0x21, 0x11, &[0; V2_REST_BYTES_MAX]);
        assert!(matches!(proxied(&most), Proxied::Header { .. }));
    }

    #[test]
    fn no_bytes_are_too_strange_and_more_of_them_change_no_verdict() {
        // A small generator, so that a failure can be repeated.
        let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = move |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % below as u64) as usize
        };
        let headers = headers();
        for _ in 0..50_000 {
            let mut input = headers[random(headers.len())].0.clone();
            for _ in 0..random(4) {
                let at = random(input.len());
                match random(4) {
                    0 => input[at] = random(256) as u8,
                    1 => input[at] ^= 1 << random(8),
                    2 => drop(input.remove(at)),
                    _ => input.insert(at, random(256) as u8),
                }
            }
            let verdict = proxied(&input);
            if let Proxied::Header { bytes, .. } = verdict {
                assert!(bytes <= input.len());
            }
            // What was decided stays so, and was undecided before the bytes that decide.
            let mut decided = None;
            for end in 0..=input.len() {
                let now = proxied(&input[..end]);
                match decided {
                    None if now != Proxied::Partial => decided = Some(now),
                    None => {}
                    Some(before) => assert_eq!(now, before, "{end} of {input:x?}"),
                }
            }
        }
    }

    #[test]
    fn the_last_address_that_is_not_a_proxy_is_the_client() {
        let peer = Client::named("10.0.0.1:5000".parse().unwrap());
        let is_proxy = |ip: IpAddr| matches!(ip, IpAddr::V4(ip) if ip.octets()[0] == 10);
        for (headers, expected) in [
            (&[][..], "10.0.0.1:5000"),
            (&["203.0.113.5"][..], "203.0.113.5:0"),
            (&["203.0.113.5:99"], "203.0.113.5:99"),
            (&["[2001:db8::1]:99"], "[2001:db8::1]:99"),
            (&["[2001:db8::1]"], "[2001:db8::1]:0"),
            (&["2001:db8::1"], "[2001:db8::1]:0"),
            // What stands further left is what a client said of itself.
            (&["1.1.1.1, 203.0.113.5"], "203.0.113.5:0"),
            (&["1.1.1.1", "203.0.113.5"], "203.0.113.5:0"),
            (&["1.1.1.1, 203.0.113.5 ,10.0.0.2"], "203.0.113.5:0"),
            (&["203.0.113.5", "10.0.0.3,10.0.0.2"], "203.0.113.5:0"),
            (&["10.0.0.3"], "10.0.0.3:0"),
        ] {
            let headers = headers.iter().map(|header| header.as_bytes());
            let named = Client::named(expected.parse().unwrap());
            assert_eq!(forwarded(peer, headers, is_proxy), named);
        }
        let stranger = Client::named("203.0.113.9:1".parse().unwrap());
        assert_eq!(forwarded(stranger, [&b"unknown"[..]].into_iter(), is_proxy), stranger);
        // What names no client, before that, leaves it to the header.
        let unnamed = Client::unnamed(peer.address);
        assert_eq!(forwarded(unnamed, [].into_iter(), is_proxy), unnamed);
        let headers = [&b"203.0.113.5"[..]].into_iter();
        let named = Client::named("203.0.113.5:0".parse().unwrap());
        assert_eq!(forwarded(unnamed, headers, is_proxy), named);
    }

    #[test]
    fn an_address_that_cannot_be_read_names_nobody_and_nor_does_what_stands_before_it() {
        let peer = Client::named("10.0.0.1:5000".parse().unwrap());
        let is_proxy = |ip: IpAddr| matches!(ip, IpAddr::V4(ip) if ip.octets()[0] == 10);
        for (header, last_proxy) in [
            (&b"unknown"[..], "10.0.0.1:5000"),
            (b"", "10.0.0.1:5000"),
            (b"\xFF", "10.0.0.1:5000"),
            (b"1.1.1.1, unknown", "10.0.0.1:5000"),
            (b"203.0.113.5,", "10.0.0.1:5000"),
            (b"203.0.113.5, _hidden, 10.0.0.7", "10.0.0.7:0"),
        ] {
            let client = Client::unnamed(last_proxy.parse().unwrap());
            assert_eq!(forwarded(peer, [header].into_iter(), is_proxy), client, "{header:x?}");
        }
    }
}
