//! A self-signed certificate, for development.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Identifiers, in DER: the contents after the tag and the length.
const ECDSA_WITH_SHA256: &[u8] = b"\x2A\x86\x48\xCE\x3D\x04\x03\x02";
const EC_PUBLIC_KEY: &[u8] = b"\x2A\x86\x48\xCE\x3D\x02\x01";
const P256: &[u8] = b"\x2A\x86\x48\xCE\x3D\x03\x01\x07";
const COMMON_NAME: &[u8] = b"\x55\x04\x03";
const ALTERNATIVE_NAMES: &[u8] = b"\x55\x1D\x11";
const KEY_PURPOSES: &[u8] = b"\x55\x1D\x25";
const SERVER_AUTHENTICATION: &[u8] = b"\x2B\x06\x01\x05\x05\x07\x03\x01";

/// Tags of DER.
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const IDENTIFIER: u8 = 0x06;
const UTF8: u8 = 0x0C;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xA0;
const EXTENSIONS: u8 = 0xA3;
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;

/// A certificate (RFC 5280) for development and tests, signed with its own key: ECDSA with P-256.
/// Clients accept it only if they are given it.
pub struct SelfSigned {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl SelfSigned {
    /// A certificate for these host names and IP addresses, valid from a day ago for 30 days.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new(names: &[impl AsRef<str>]) -> Result<Self, String> {
        let now = SystemTime::now();
        Self::valid(names, now - DAY, now + 29 * DAY)
    }

    /// Like [`new`](Self::new), valid between these times.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn valid(
        names: &[impl AsRef<str>],
        from: SystemTime,
        to: SystemTime,
    ) -> Result<Self, String> {
        let failed = |_| "no key can be made: the system has no random numbers";
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(failed)?;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random)
            .map_err(|error| error.to_string())?;
        let mut serial = [0; 16];
        ring::rand::SecureRandom::fill(&random, &mut serial).map_err(failed)?;
        // Positive, and of fixed length.
        serial[0] = serial[0] & 0x7F | 0x40;

        let algorithm = der(SEQUENCE, &[&der(IDENTIFIER, &[ECDSA_WITH_SHA256])]);
        // Different issuers have different names.
        let issuer = format!("playfield {:x}", u128::from_be_bytes(serial));
        let name =
            der(SEQUENCE, &[&der(IDENTIFIER, &[COMMON_NAME]), &der(UTF8, &[issuer.as_bytes()])]);
        let name = der(SEQUENCE, &[&der(SET, &[&name])]);
        let point = pair.public_key().as_ref();
        let curve = der(SEQUENCE, &[&der(IDENTIFIER, &[EC_PUBLIC_KEY]), &der(IDENTIFIER, &[P256])]);
        let names: Vec<Vec<u8>> = names.iter().map(|name| alternative(name.as_ref())).collect();
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let purposes = der(SEQUENCE, &[&der(IDENTIFIER, &[SERVER_AUTHENTICATION])]);
        let extension = |identifier: &[u8], value: &[u8]| {
            der(SEQUENCE, &[&der(IDENTIFIER, &[identifier]), &der(OCTET_STRING, &[value])])
        };
        let extensions = [
            extension(ALTERNATIVE_NAMES, &der(SEQUENCE, &names)),
            extension(KEY_PURPOSES, &purposes),
        ];
        let signed = der(
            SEQUENCE,
            &[
                &der(VERSION, &[&der(INTEGER, &[&[2]])]),
                &der(INTEGER, &[&serial]),
                &algorithm,
                &name,
                &der(SEQUENCE, &[&time(from), &time(to)]),
                &name,
                &der(SEQUENCE, &[&curve, &der(BIT_STRING, &[&[0], point])]),
                &der(EXTENSIONS, &[&der(SEQUENCE, &[&extensions[0], &extensions[1]])]),
            ],
        );
        let signature = pair.sign(&random, &signed).map_err(failed)?;
        let signature = der(BIT_STRING, &[&[0], signature.as_ref()]);
        let certificate = der(SEQUENCE, &[&signed, &algorithm, &signature]);
        Ok(Self { certificate, key: key.as_ref().to_vec() })
    }

    /// The certificate, in DER.
    #[must_use]
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// The certificate, in PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> String {
        pem("CERTIFICATE", &self.certificate)
    }

    /// The key, in PEM (PKCS #8).
    #[must_use]
    pub fn key_pem(&self) -> String {
        pem("PRIVATE KEY", &self.key)
    }

    pub(super) fn certified(&self) -> Result<CertifiedKey, String> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.clone()));
        let key = any_supported_type(&key).map_err(|error| error.to_string())?;
        Ok(CertifiedKey::new(vec![CertificateDer::from(self.certificate.clone())], key))
    }
}

/// A value in DER: the tag, the length, and the parts one after the other.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let bytes = length.to_be_bytes();
    let bytes = &bytes[(length.leading_zeros() / 8) as usize..];
    let mut out = vec![tag];
    if length >= 0x80 {
        out.push(0x80 | bytes.len() as u8);
        out.extend_from_slice(bytes);
    } else {
        out.push(length as u8);
    }
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

fn alternative(name: &str) -> Vec<u8> {
    match name.parse() {
        Ok(IpAddr::V4(address)) => der(IP_ADDRESS, &[&address.octets()]),
        Ok(IpAddr::V6(address)) => der(IP_ADDRESS, &[&address.octets()]),
        Err(_) => der(DNS_NAME, &[name.as_bytes()]),
    }
}

/// A time (RFC 5280, 4.1.2.5): from 2050 on with four digits for the year.
fn time(time: SystemTime) -> Vec<u8> {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, second) = (seconds / DAY.as_secs(), seconds % DAY.as_secs());
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let rest = format!("{month:02}{day:02}{hour:02}{minute:02}{second:02}Z");
    if year < 2050 {
        der(UTC_TIME, &[format!("{:02}{rest}", year % 100).as_bytes()])
    } else {
        der(GENERALIZED_TIME, &[format!("{year:04}{rest}").as_bytes()])
    }
}

/// The year, month and day that is `days` days after 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

fn pem(label: &str, der: &[u8]) -> String {
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in der.chunks(48) {
        out += &STANDARD.encode(line);
        out.push('\n');
    }
    out + &format!("-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::{SelfSigned, date, der, time};

    #[test]
    fn lengths_and_times_are_encoded_as_der_has_them() {
        assert_eq!(der(4, &[b"ab", b"c"]), b"\x04\x03abc");
        assert_eq!(der(4, &[&[7; 200]])[..3], [4, 0x81, 200]);
        assert_eq!(der(4, &[&[7; 300]])[..4], [4, 0x82, 1, 44]);
        let at = |seconds| time(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(951_782_400), b"\x17\x0D000229000000Z");
        assert_eq!(at(2_524_607_999), b"\x17\x0D491231235959Z");
        assert_eq!(at(2_524_608_000), b"\x18\x0F20500101000000Z");
        assert_eq!(date(47_540), (2100, 2, 28));
    }

    #[test]
    fn certificates_and_keys_are_read_as_they_were_written() {
        use rustls::pki_types::pem::PemObject;
        use rustls::pki_types::{CertificateDer, PrivateKeyDer};
        let signed = SelfSigned::new(&["localhost", "::1"]).unwrap();
        let certificate = CertificateDer::from_pem_slice(signed.certificate_pem().as_bytes());
        assert_eq!(&certificate.unwrap()[..], signed.certificate());
        assert!(PrivateKeyDer::from_pem_slice(signed.key_pem().as_bytes()).is_ok());
        signed.certified().unwrap().keys_match().unwrap();
    }
}
