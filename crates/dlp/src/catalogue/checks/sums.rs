//! Checksums that tokens of vendors end with: the CRC-32 (IEEE) of what stands before, in several bases.

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Returns true if the last six characters are the base62 CRC-32 of what stands between `from` and
/// them.
pub(crate) fn crc_base62(token: &[u8], from: usize) -> bool {
    let Some((rest, sum)) = token.split_last_chunk::<6>() else {
        return false;
    };
    let expected = base62(rest.get(from..).unwrap_or_default());
    expected.map(u32::from) == sum.map(u32::from)
}

/// The CRC-32 of `signed` as six base62 digits: the checksum of GitHub's tokens, and of our own.
#[must_use]
pub fn base62(signed: &[u8]) -> [char; 6] {
    let mut rest = crc32fast::hash(signed);
    let mut letters = ['0'; 6];
    for place in letters.iter_mut().rev() {
        let index = usize::try_from(rest % 62).unwrap_or(0);
        *place = ALPHABET.get(index).copied().map_or('0', char::from);
        rest /= 62;
    }
    letters
}

/// Returns true if the last seven characters are the base36 CRC-32 of all before them.
pub(crate) fn crc_base36(token: &[u8]) -> bool {
    let Some((rest, sum)) = token.split_last_chunk::<7>() else {
        return false;
    };
    number(sum, 36) == Some(u64::from(crc32fast::hash(rest)))
}

/// Returns true if the last eight characters are the CRC-32 of what stands before the sign that parts
/// them from the rest, in hex, with the lowest byte first.
pub(crate) fn crc_hex(token: &[u8]) -> bool {
    let Some(([rest @ .., _], sum)) = token.split_last_chunk::<8>() else {
        return false;
    };
    number(sum, 16) == Some(u64::from(crc32fast::hash(rest).swap_bytes()))
}

fn number(digits: &[u8], base: u32) -> Option<u64> {
    u64::from_str_radix(str::from_utf8(digits).ok()?, base).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of CRC-32 (IEEE), for `123456789`, is `cbf43926`.
    #[test]
    fn the_check_value_is_right_in_every_base() {
        assert!(crc_base36(b"1234567891kl8mjq"));
        assert!(crc_base62(b"1234567893jZRME", 0));
        assert!(crc_base62(b"x_1234567893jZRME", 2));
        assert!(crc_hex(b"123456789_2639f4cb"));
    }

    #[test]
    fn other_sums_are_wrong() {
        assert!(!crc_base36(b"1234567881kl8mjq"));
        assert!(!crc_base62(b"1234567883jZRME", 0));
        assert!(!crc_hex(b"123456789_cbf43926"));
        assert!(!crc_hex(b"2639f4cb"));
        assert!(!crc_base36(b"short"));
    }

    /// The example of Grafana's documentation.
    #[test]
    fn the_sum_of_a_published_token_is_right() {
        let token = concat!("glsa_", "HOruNAb7SOiCdshU9algkrq7FDsNSLAa_54e2f8be");
        assert!(crc_hex(token.as_bytes()));
    }
}
