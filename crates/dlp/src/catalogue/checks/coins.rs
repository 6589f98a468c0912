//! Checksums of addresses and keys of crypto-currencies.

use aws_lc_rs::digest;

/// Decodes `Base58Check` (Bitcoin's alphabet): version and payload, without the checksum.
pub(crate) fn base58_check(text: &[u8]) -> Option<Vec<u8>> {
    const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    for char in text {
        let digit = ALPHABET.iter().position(|known| known == char)?;
        let mut carry = u32::try_from(digit).ok()?;
        for byte in &mut bytes {
            carry += u32::from(*byte) * 58;
            *byte = u8::try_from(carry % 256).ok()?;
            carry /= 256;
        }
        while carry > 0 {
            bytes.push(u8::try_from(carry % 256).ok()?);
            carry /= 256;
        }
    }
    bytes.extend(text.iter().take_while(|char| **char == b'1').map(|_| 0));
    bytes.reverse();
    let (payload, check) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
    let once = digest::digest(&digest::SHA256, payload);
    let twice = digest::digest(&digest::SHA256, once.as_ref());
    (twice.as_ref().get(..4) == Some(check)).then(|| payload.to_vec())
}

/// Returns true if text is Bech32 or Bech32m (BIP-173, BIP-350): prefix, `1`, data, checksum.
pub(crate) fn is_bech32(text: &[u8]) -> bool {
    const ALPHABET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    let text = text.to_ascii_lowercase();
    let Some(cut) = text.iter().rposition(|byte| *byte == b'1') else { return false };
    let (prefix, data) = text.split_at(cut);
    let values = data.iter().skip(1).map(|byte| ALPHABET.iter().position(|known| known == byte));
    let Some(values) = values.collect::<Option<Vec<usize>>>() else { return false };
    let high = prefix.iter().map(|byte| usize::from(byte >> 5));
    let low = prefix.iter().map(|byte| usize::from(byte & 31));
    matches!(polymod(high.chain([0]).chain(low).chain(values)), 1 | 0x2BC8_30A3)
}

fn polymod(values: impl Iterator<Item = usize>) -> usize {
    const TERMS: [usize; 5] = [0x3B6A_57B2, 0x2650_8E6D, 0x1EA1_19FA, 0x3D42_33DD, 0x2A14_62B3];
    values.fold(1, |sum, value| {
        let top = sum >> 25;
        let next = (sum & 0x01FF_FFFF) << 5 ^ value;
        let set = TERMS.iter().enumerate().filter(|(at, _)| top >> at & 1 == 1);
        set.fold(next, |next, (_, term)| next ^ term)
    })
}

/// Returns true if the case of the forty hex digits of an Ethereum address is its checksum
/// (EIP-55).
pub(crate) fn is_checksummed(digits: &[u8]) -> bool {
    let lower = digits.to_ascii_lowercase();
    let Some(hash) = keccak_256(&lower) else { return false };
    digits.iter().enumerate().all(|(at, digit)| {
        let byte = hash.get(at / 2).copied().unwrap_or(0);
        let nibble = if at % 2 == 0 { byte >> 4 } else { byte & 15 };
        !digit.is_ascii_alphabetic() || digit.is_ascii_uppercase() == (nibble > 7)
    })
}

/// Keccak-256 as Ethereum uses it, for messages shorter than one block.
fn keccak_256(message: &[u8]) -> Option<[u8; 32]> {
    const RATE: usize = 136;
    let mut block = [0_u8; RATE];
    block.get_mut(..message.len())?.copy_from_slice(message);
    *block.get_mut(message.len())? ^= 1;
    *block.last_mut()? ^= 0x80;
    let mut lanes = [0_u64; 25];
    for (lane, bytes) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
        *lane = u64::from_le_bytes(*bytes);
    }
    for constant in ROUNDS {
        lanes = round(&lanes, constant);
    }
    let mut hash = [0; 32];
    for (into, lane) in hash.as_chunks_mut::<8>().0.iter_mut().zip(lanes) {
        *into = lane.to_le_bytes();
    }
    Some(hash)
}

const ROUNDS: [u64; 24] = [
    0x0000_0000_0000_0001, 0x0000_0000_0000_8082, 0x8000_0000_0000_808A, 0x8000_0000_8000_8000,
    0x0000_0000_0000_808B, 0x0000_0000_8000_0001, 0x8000_0000_8000_8081, 0x8000_0000_0000_8009,
    0x0000_0000_0000_008A, 0x0000_0000_0000_0088, 0x0000_0000_8000_8009, 0x0000_0000_8000_000A,
    0x0000_0000_8000_808B, 0x8000_0000_0000_008B, 0x8000_0000_0000_8089, 0x8000_0000_0000_8003,
    0x8000_0000_0000_8002, 0x8000_0000_0000_0080, 0x0000_0000_0000_800A, 0x8000_0000_8000_000A,
    0x8000_0000_8000_8081, 0x8000_0000_0000_8080, 0x0000_0000_8000_0001, 0x8000_0000_8000_8008,
];

/// Rotations of the lanes, in the order of the lanes.
const ROTATIONS: [u32; 25] =
    [0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14];

/// One round of Keccak-f\[1600\]: theta, rho, pi, chi, iota.
fn round(lanes: &[u64; 25], constant: u64) -> [u64; 25] {
    let lane = |x: usize, y: usize| lanes.get(x % 5 + 5 * (y % 5)).copied().unwrap_or(0);
    let column = |x: usize| (0..5).fold(0, |sum, y| sum ^ lane(x, y));
    let moved = |x: usize, y: usize| {
        let mixed = lane(x, y) ^ column(x + 4) ^ column(x + 1).rotate_left(1);
        mixed.rotate_left(ROTATIONS.get(x % 5 + 5 * (y % 5)).copied().unwrap_or(0))
    };
    // What pi puts at (x, y) comes from (x + 3 y, x).
    let placed = |x: usize, y: usize| moved((x + 3 * y) % 5, x % 5);
    let mut next = [0; 25];
    for (at, into) in next.iter_mut().enumerate() {
        let x = at % 5;
        let y = at / 5;
        *into = placed(x, y) ^ (!placed(x + 1, y) & placed(x + 2, y));
    }
    if let Some(first) = next.first_mut() {
        *first ^= constant;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standards_own_examples_are_right() {
        assert!(base58_check(b"1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa").is_some());
        assert!(base58_check(b"1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb").is_none());
        assert!(is_bech32(b"BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4"));
        assert!(!is_bech32(b"bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5"));
        assert!(is_checksummed(b"5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"));
        assert!(!is_checksummed(b"5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"));
    }
}
