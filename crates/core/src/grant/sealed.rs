//! The pair that a refresh token bought, sealed under that token.
//!
//! The key is HKDF-SHA-256 of the presented token (RFC 5869), the cipher AES-256-GCM with a random
//! nonce in front. A reader of the database without the token can open nothing.

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Salt},
};
use zeroize::Zeroizing;

use crate::{
    id::TokenId,
    random::{self, Random},
    token::Token,
};

const PURPOSE: &[u8] = b"portcullis refresh pair v1";

/// Two tokens that were handed out together.
#[derive(Debug, Clone)]
pub struct TokenPair {
    pub access: Token,
    pub refresh: Token,
}

impl TokenPair {
    /// Seals the pair for the holder of `presented`, whose id is `id`. `None` if the cipher fails,
    /// which it does for no input.
    #[must_use]
    pub fn seal(&self, presented: &Token, id: TokenId, source: &dyn Random) -> Option<Vec<u8>> {
        let nonce = random::bytes::<NONCE_LEN>(source);
        let access = self.access.secret().expose();
        let refresh = self.refresh.secret().expose();
        // Tokens are ASCII without spaces.
        let mut text = Zeroizing::new(format!("{access} {refresh}").into_bytes());
        let key = key(presented)?;
        let aad = Aad::from(id.to_string());
        let tag =
            key.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), aad, &mut text);
        let mut sealed = nonce.to_vec();
        sealed.extend_from_slice(&text);
        sealed.extend_from_slice(tag.ok()?.as_ref());
        Some(sealed)
    }

    /// Opens what [`Self::seal`] gave. `None` for another token, another id or changed bytes.
    #[must_use]
    pub fn open(sealed: &[u8], presented: &Token, id: TokenId) -> Option<Self> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = Zeroizing::new(sealed.to_vec());
        let opened = key(presented)?.open_in_place(nonce, Aad::from(id.to_string()), &mut text);
        let (access, refresh) = std::str::from_utf8(opened.ok()?).ok()?.split_once(' ')?;
        Some(Self { access: Token::parse(access).ok()?, refresh: Token::parse(refresh).ok()? })
    }
}

fn key(presented: &Token) -> Option<LessSafeKey> {
    let extracted = Salt::new(HKDF_SHA256, &[]).extract(presented.secret().expose().as_bytes());
    let expanded = extracted.expand(&[PURPOSE], &AES_256_GCM).ok()?;
    Some(LessSafeKey::new(UnboundKey::from(expanded)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::TokenKind;

    #[derive(Debug)]
    struct Filled(u8);

    impl Random for Filled {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    fn token(kind: TokenKind, n: u8) -> Token {
        Token::generate(kind, &Filled(n))
    }

    fn id(n: u8) -> TokenId {
        format!("tok_{n:026}").parse().unwrap()
    }

    #[test]
    fn only_the_presented_token_opens_the_pair() {
        let presented = token(TokenKind::Refresh, 1);
        let pair =
            TokenPair { access: token(TokenKind::User, 2), refresh: token(TokenKind::Refresh, 3) };

        let sealed = pair.seal(&presented, id(1), &Filled(9)).unwrap();
        let opened = TokenPair::open(&sealed, &presented, id(1)).unwrap();

        assert_eq!(opened.access.secret(), pair.access.secret());
        assert_eq!(opened.refresh.secret(), pair.refresh.secret());
        assert!(TokenPair::open(&sealed, &pair.refresh, id(1)).is_none());
        assert!(TokenPair::open(&sealed, &presented, id(2)).is_none());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(TokenPair::open(&changed, &presented, id(1)).is_none(), "byte {at}");
        }
        for length in 0..sealed.len() {
            assert!(TokenPair::open(&sealed[..length], &presented, id(1)).is_none());
        }
    }

    #[test]
    fn nothing_of_the_pair_stands_in_the_sealed_bytes() {
        let presented = token(TokenKind::Refresh, 1);
        let pair =
            TokenPair { access: token(TokenKind::User, 2), refresh: token(TokenKind::Refresh, 3) };

        let sealed = pair.seal(&presented, id(1), &Filled(9)).unwrap();

        assert!(!sealed.windows(8).any(|window| window == b"mcp_live"));
    }
}
