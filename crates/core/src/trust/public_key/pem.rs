//! A `SubjectPublicKeyInfo` in PEM as a JWK (RFC 7468 §13, RFC 5280 §4.1.2.7).

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use super::PublicKeyError;

const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";

const SEQUENCE: u8 = 0x30;
const OBJECT_ID: u8 = 0x06;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const NULL: u8 = 0x05;

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
/// Bytes of a coordinate on P-256.
const COORDINATE: usize = 32;

/// The key as a JWK. Whether it can be used is for the reader of the JWK to say.
pub(super) fn jwk(pem: &str) -> Result<Value, PublicKeyError> {
    if pem.contains("PRIVATE KEY-----") {
        return Err(PublicKeyError::Private);
    }
    let body = pem.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
    let body: String = body.ok_or(PublicKeyError::Form)?.split_ascii_whitespace().collect();
    let der = STANDARD.decode(body).map_err(|_| PublicKeyError::Form)?;
    let (algorithm, key) = parts(&der).ok_or(PublicKeyError::Form)?;
    of_algorithm(algorithm, key).ok_or(PublicKeyError::Unusable)
}

/// The contents of the algorithm identifier and of the key.
fn parts(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut whole = Der(der);
    let mut info = Der(whole.take(SEQUENCE)?);
    let algorithm = info.take(SEQUENCE)?;
    let (unused, key) = info.take(BIT_STRING)?.split_first()?;
    (whole.is_empty() && info.is_empty() && *unused == 0).then_some((algorithm, key))
}

fn of_algorithm(algorithm: &[u8], key: &[u8]) -> Option<Value> {
    let mut algorithm = Der(algorithm);
    let jwk = match algorithm.take(OBJECT_ID)? {
        RSA => {
            algorithm.take(NULL)?;
            let mut whole = Der(key);
            let mut numbers = Der(whole.take(SEQUENCE)?);
            let n = numbers.take(INTEGER)?;
            let e = numbers.take(INTEGER)?;
            let is_all = whole.is_empty() && numbers.is_empty();
            is_all.then(|| json!({ "kty": "RSA", "n": encoded(n), "e": encoded(e) }))
        }
        EC if algorithm.take(OBJECT_ID)? == P256 => {
            let (form, point) = key.split_first()?;
            let (x, y) = point.split_at_checked(COORDINATE)?;
            let is_uncompressed = *form == 4;
            is_uncompressed
                .then(|| json!({ "kty": "EC", "crv": "P-256", "x": encoded(x), "y": encoded(y) }))
        }
        ED25519 => Some(json!({ "kty": "OKP", "crv": "Ed25519", "x": encoded(key) })),
        _ => None,
    };
    jwk.filter(|_| algorithm.is_empty())
}

fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The rest of some DER.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The contents of the next element, if it has this tag and its length is written out.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            0x81..=0x82 => {
                let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let sum = |sum: usize, byte: &u8| (sum << 8) | usize::from(*byte);
                (length.iter().fold(0, sum), rest)
            }
            _ => return None,
        };
        let (contents, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        (*found == tag).then_some(contents)
    }
}
