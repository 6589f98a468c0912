//! The opaque tokens: their form, their checksum, and what is stored of them.
//!
//! A token is `<prefix><32 × base62><6 × base62 checksum>`. The checksum is the CRC-32 (IEEE) of
//! prefix and body; it keeps garbage from the database and lets secret scanners be sure. Only the
//! SHA-256 of the whole text is ever stored.

use std::{fmt, net::IpAddr, str::FromStr};

use aws_lc_rs::digest;
use serde::Deserialize;

use crate::{
    id::PrincipalKind,
    random::{self, Random},
    secret::Secret,
};

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BODY: usize = 32;
const CHECKSUM: usize = 6;

crate::words! { listed
    /// Purpose of a token.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TokenKind {
        /// `mcp_live_…`: a user's access token.
        User = "user",
        /// `svc_live_…`: a service account's access token.
        Service = "service",
        /// `mcp_refresh_…`: buys the next access token of a user.
        Refresh = "refresh",
    }
}

impl TokenKind {
    /// Prefix of tokens of this kind.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::User => "mcp_live_",
            Self::Service => "svc_live_",
            Self::Refresh => "mcp_refresh_",
        }
    }

    /// The kind of access token a principal of `kind` carries.
    #[must_use]
    pub const fn of_principal(kind: PrincipalKind) -> Self {
        match kind {
            PrincipalKind::User => Self::User,
            PrincipalKind::Service => Self::Service,
        }
    }
}

/// The SHA-256 of a whole token: what is stored and looked up.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// The text is not a token: wrong prefix, length, alphabet or checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a token")]
pub struct TokenError;

/// A well-formed token. Whether it is known and live, only the store can tell.
#[derive(Debug, Clone)]
pub struct Token {
    kind: TokenKind,
    text: Secret,
}

impl Token {
    /// A new token with 190 bits from `source`.
    #[must_use]
    pub fn generate(kind: TokenKind, source: &dyn Random) -> Self {
        let mut text = String::with_capacity(kind.prefix().len() + BODY + CHECKSUM);
        text.push_str(kind.prefix());
        let body_end = text.len() + BODY;
        while text.len() < body_end {
            for byte in random::bytes::<64>(source) {
                // 248 = 4 × 62: larger bytes would favour the first letters.
                if byte < 248 && text.len() < body_end {
                    text.push(letter(u32::from(byte) % 62));
                }
            }
        }
        let checksum = checksum(&text);
        text.push_str(&checksum);
        Self { kind, text: Secret::new(text) }
    }

    /// Reads a token; rejects anything whose form or checksum is wrong.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let kind = TokenKind::ALL
            .into_iter()
            .find(|kind| text.starts_with(kind.prefix()))
            .ok_or(TokenError)?;
        if text.len() != kind.prefix().len() + BODY + CHECKSUM
            || !text.bytes().skip(kind.prefix().len()).all(|byte| byte.is_ascii_alphanumeric())
        {
            return Err(TokenError);
        }
        let (signed, presented) = text.split_at_checked(text.len() - CHECKSUM).ok_or(TokenError)?;
        if checksum(signed) != presented {
            return Err(TokenError);
        }
        Ok(Self { kind, text: Secret::new(text.to_owned()) })
    }

    /// Purpose of the token.
    #[must_use]
    pub const fn kind(&self) -> TokenKind {
        self.kind
    }

    /// The token itself, to hand to its owner once.
    #[must_use]
    pub const fn secret(&self) -> &Secret {
        &self.text
    }

    /// Hash of the token, which is all that is stored of it.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        let digest = digest::digest(&digest::SHA256, self.text.expose().as_bytes());
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        TokenHash(bytes)
    }
}

fn checksum(signed: &str) -> String {
    crate::dlp::base62_checksum(signed.as_bytes()).iter().collect()
}

fn letter(index: u32) -> char {
    let index = usize::try_from(index).unwrap_or(0);
    ALPHABET.get(index).copied().map_or('0', char::from)
}

/// Networks a token may be used from, such as `10.0.0.0/8` or `2001:db8::/32`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CidrList(Vec<Cidr>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cidr {
    network: IpAddr,
    length: u8,
}

/// The text is no list of networks in CIDR form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network in CIDR form, such as 10.0.0.0/8")]
pub struct CidrError(String);

impl CidrList {
    /// Returns true if `address` is in one of the networks; a v4 address in v6 form counts as v4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|cidr| cidr.contains(address))
    }
}

impl CidrList {
    /// The networks that are in both lists; `None` when there are none.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let pairs = self.0.iter().flat_map(|one| other.0.iter().map(move |two| (*one, *two)));
        let common: Vec<Cidr> = pairs.filter_map(|(one, two)| one.narrower(two)).collect();
        if common.is_empty() { None } else { Some(Self(common)) }
    }
}

impl Cidr {
    /// The one inside the other: two networks are nested or apart.
    fn narrower(self, other: Self) -> Option<Self> {
        let (wide, narrow) =
            if self.length <= other.length { (self, other) } else { (other, self) };
        wide.contains(narrow.network).then_some(narrow)
    }

    fn contains(self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.length);
                u32::from(network).checked_shr(shift) == u32::from(address).checked_shr(shift)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.length);
                u128::from(network).checked_shr(shift) == u128::from(address).checked_shr(shift)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for CidrList {
    type Err = CidrError;
    fn from_str(text: &str) -> Result<Self, CidrError> {
        let networks = text.split(',').map(str::trim).map(Cidr::from_str);
        networks.collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Cidr {
    type Err = CidrError;
    fn from_str(text: &str) -> Result<Self, CidrError> {
        let error = || CidrError(text.chars().take(64).collect());
        let (network, length) = text.split_once('/').ok_or_else(error)?;
        let network: IpAddr = network.parse().map_err(|_| error())?;
        let length: u8 = length.parse().map_err(|_| error())?;
        let longest = if network.is_ipv4() { 32 } else { 128 };
        if length > longest { Err(error()) } else { Ok(Self { network, length }) }
    }
}

impl fmt::Display for CidrList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, cidr) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}/{}", cidr.network, cidr.length)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VECTORS: [(&str, TokenKind, &str); 3] = [
        (
            "mcp_live_0EesofMSwCG8nv7cDAQcRILuT7BcZuvX1rxfbu",
            TokenKind::User,
            "6f89124d110a543f5dfb4b259b36f7a2bd3d29f587baa5cdf178e59c392bbf5b",
        ),
        (
            "svc_live_TNnwkiflsxEy9KeHg5z85x63fBld5c3k45IJpx",
            TokenKind::Service,
            "1bc19d7f5bc437e59b7561a62941d51f573045a5be22c7e657f14edc932ea9f3",
        ),
        (
            "mcp_refresh_SABnjxCJHfilY2ajLrAVc7vcVbJCBRxw0DlfUK",
            TokenKind::Refresh,
            "d56290c73222aaec7a382f697560718cd4cb6dddd63ca16f4e832f72d95bec4d",
        ),
    ];

    #[derive(Debug)]
    struct Counting;

    impl Random for Counting {
        fn fill(&self, bytes: &mut [u8]) {
            for (value, byte) in (0..=255).cycle().zip(bytes) {
                *byte = value;
            }
        }
    }

    fn bytes_of(hex: &str) -> Vec<u8> {
        let digits: Vec<_> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
        digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
    }

    #[test]
    fn the_published_vectors_parse_and_hash() {
        for (text, kind, sha256) in VECTORS {
            let token = Token::parse(text).unwrap();

            assert_eq!(token.kind(), kind);
            assert_eq!(token.hash().as_bytes().as_slice(), bytes_of(sha256));
        }
    }

    #[test]
    fn a_token_under_another_prefix_fails_its_checksum() {
        let moved = VECTORS[0].0.replace("mcp_live_", "svc_live_");

        assert_eq!(Token::parse(&moved).err(), Some(TokenError));
    }

    #[test]
    fn a_generated_token_parses() {
        for kind in TokenKind::ALL {
            let token = Token::generate(kind, &Counting);

            assert_eq!(Token::parse(token.secret().expose()).unwrap().kind(), kind);
        }
    }

    #[test]
    fn networks_contain_their_addresses_only() {
        let list: CidrList = "10.0.0.0/8, 2001:db8::/32,0.0.0.0/0".parse().unwrap();
        let narrow: CidrList = "10.1.2.3/32".parse().unwrap();

        assert!(list.contains("10.200.0.1".parse().unwrap()));
        assert!(list.contains("2001:db8::1".parse().unwrap()));
        assert!(!list.contains("2001:db9::1".parse().unwrap()));
        assert!(narrow.contains("::ffff:10.1.2.3".parse().unwrap()));
        assert!(!narrow.contains("10.1.2.4".parse().unwrap()));
        assert!("10.0.0.0/33".parse::<CidrList>().is_err());
    }

    #[test]
    fn networks_in_both_lists_are_their_intersection() {
        let list = |text: &str| text.parse::<CidrList>().unwrap();

        let common =
            list("10.0.0.0/8,192.0.2.0/24").intersection(&list("10.1.0.0/16,2001:db8::/32"));

        assert_eq!(common, Some(list("10.1.0.0/16")));
        assert_eq!(list("10.0.0.0/8").intersection(&list("192.0.2.0/24")), None);
    }

    proptest! {
        #[test]
        fn any_form_but_the_grammar_is_refused(
            prefix in "(mcp_live_|svc_live_|mcp_refresh_|mcp_test_|mcp_|)",
            body in "[0-9A-Za-z_-]{0,45}",
        ) {
            let text = format!("{prefix}{body}");
            if let Ok(token) = Token::parse(&text) {
                prop_assert_eq!(token.secret().expose(), &text);
                prop_assert!(text.starts_with(token.kind().prefix()));
                prop_assert_eq!(text.len(), token.kind().prefix().len() + 38);
            }
        }

        #[test]
        fn every_generated_token_has_the_grammar(seed in any::<[u8; 32]>()) {
            #[derive(Debug)]
            struct Seeded([u8; 32]);
            impl Random for Seeded {
                fn fill(&self, bytes: &mut [u8]) {
                    for (byte, seed) in bytes.iter_mut().zip(self.0.iter().cycle()) {
                        // Below 248 and above 0: a source of one constant byte is none.
                        *byte = seed % 200;
                    }
                }
            }
            for kind in TokenKind::ALL {
                let token = Token::generate(kind, &Seeded(seed));
                let text = token.secret().expose();
                let body = text.strip_prefix(kind.prefix()).unwrap();
                prop_assert_eq!(body.len(), 38);
                prop_assert!(body.bytes().all(|byte| byte.is_ascii_alphanumeric()));
                prop_assert_eq!(Token::parse(text).unwrap().hash(), token.hash());
            }
        }

        #[test]
        fn one_changed_character_is_never_a_token(place in 0usize..47, letter in "[0-9A-Za-z]") {
            let (text, _, _) = VECTORS[0];
            let mut changed = text.to_owned();
            changed.replace_range(place..=place, &letter);
            prop_assume!(changed != text);

            prop_assert!(Token::parse(&changed).is_err());
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,80}") {
            let _ = Token::parse(&text);
        }
    }
}
