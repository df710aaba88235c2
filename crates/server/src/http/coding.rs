//! The content codings that a client accepts (RFC 9110, 12.5.3).

/// Thousandths, as a weight has at most three digits after the point.
const WEIGHT_MAX: u16 = 1_000;

/// Returns whether gzip is accepted, and no less than a body without a coding, by the values of
/// `Accept-Encoding`. An element that is malformed is ignored.
pub(crate) fn accepts_gzip<'a>(values: impl Iterator<Item = &'a [u8]>) -> bool {
    let (mut gzip, mut identity, mut others) = (None, None, None);
    for element in values.flat_map(|value| value.split(|&byte| byte == b',')) {
        let (name, weight) = match element.iter().position(|&byte| byte == b';') {
            None => (element, Some(WEIGHT_MAX)),
            Some(at) => (&element[..at], weight(&element[at + 1..])),
        };
        let place = match &*name.trim_ascii().to_ascii_lowercase() {
            b"gzip" | b"x-gzip" => &mut gzip,
            b"identity" => &mut identity,
            b"*" => &mut others,
            _ => continue,
        };
        *place = weight.or(*place);
    }
    // What is not listed has the weight of `*`. Without that, only no coding at all is accepted.
    let gzip = gzip.or(others).unwrap_or(0);
    gzip > 0 && gzip >= identity.or(others).unwrap_or(0)
}

/// The weight that a parameter gives, such as `q=0.5`.
fn weight(parameter: &[u8]) -> Option<u16> {
    let (b'q' | b'Q', number) = parameter.trim_ascii().split_first()? else { return None };
    let (&whole, rest) = number.strip_prefix(b"=")?.split_first()?;
    let digits = match rest {
        [] => rest,
        [b'.', digits @ ..] if digits.len() <= 3 => digits,
        _ => return None,
    };
    if !matches!(whole, b'0' | b'1') || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |at: usize| u16::from(digits.get(at).map_or(0, |digit| digit - b'0'));
    let weight = u16::from(whole - b'0') * 1_000 + digit(0) * 100 + digit(1) * 10 + digit(2);
    (weight <= WEIGHT_MAX).then_some(weight)
}

#[cfg(test)]
mod tests {
    use super::accepts_gzip;

    #[test]
    fn gzip_is_for_clients_that_accept_it_no_less_than_the_plain_body() {
        for (values, accepts) in [
            (&["gzip"][..], true),
            (&["gzip, deflate, br, zstd"], true),
            (&["br", "deflate;q=0.1 , GZIP ; Q=0.001"], true),
            (&["x-gzip"], true),
            (&["*"], true),
            (&["gzip;q=0.5, identity;q=0.5"], true),
            (&["identity;q=0.5, *;q=0.7"], true),
            (&["gzip;q=0.2, *;q=0"], true),
            (&["gzip;q=1.000"], true),
            (&[], false),
            (&[""], false),
            (&["br"], false),
            (&["gzipped, xgzip"], false),
            (&["gzip;q=0"], false),
            (&["gzip;q=0.000, *"], false),
            (&["*;q=0"], false),
            (&["identity, *;q=0.5"], false),
            (&["gzip;q=0.4, identity;q=0.5"], false),
            // Malformed, and so as if they were not there.
            (&["gzip;q=2"], false),
            (&["gzip;q=1.001"], false),
            (&["gzip;q=.5"], false),
            (&["gzip;q=0.1234"], false),
            (&["gzip;q"], false),
            (&["gzip;x=1"], false),
            (&["gzip;;;,,;q=1"], false),
        ] {
            let bytes = values.iter().map(|value| value.as_bytes());
            assert_eq!(accepts_gzip(bytes), accepts, "{values:?}");
        }
    }
}
