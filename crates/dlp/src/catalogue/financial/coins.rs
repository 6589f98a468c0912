//! Addresses of crypto-currencies, and the keys behind them.

use std::ops::Range;

use crate::{
    catalogue::{
        builders::number,
        checks::{base58_check, entropy, is_bech32, is_checksummed},
        detector::{Candidate, Detector, Edges, NormalForm, Shape},
    },
    text::window::Window,
    vocabulary::Category,
};

pub(super) const ALL: &[Detector] = &[
    Detector { shape: Shape::Run(whole), ..coin("bitcoin_address", "Bitcoin address (Base58Check)", bitcoin) }
        .beside(&["bitcoin", "btc", "wallet"])
        .fires(&["pay to 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy"])
        .passes(&["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb"]),
    Detector {
        shape: Shape::Pattern {
            literals: &["bc1", "tb1", "ltc1"],
            pattern: "(?i:(?:bc|tb|ltc)1[02-9ac-hj-np-z]{11,71})",
            before: 0,
            after: 80,
        },
        ..coin("bitcoin_segwit_address", "Bitcoin or Litecoin address (Bech32)", |candidate| {
            is_bech32(candidate.matched()).then_some(26)
        })
    }
    .fires(&["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"])
    .passes(&["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5", "abc123"]),
    Detector {
        shape: Shape::Pattern {
            literals: &["0x"],
            pattern: "0x[0-9A-Fa-f]{40}",
            before: 0,
            after: 42,
        },
        ..coin("ethereum_address", "Ethereum address, with its checksum or beside words that name it", ethereum)
    }
    .beside(&["ethereum", "eth", "wallet", "erc20", "metamask", "ether", "evm"])
    .fires(&[
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        r#"{"ethAddress": "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"}"#,
    ])
    .passes(&[
        "0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
        "0x0000000000000000000000000000000000000000",
    ]),
    Detector { shape: Shape::Run(whole), ..coin("crypto_address", "Litecoin, Dogecoin, Dash, Zcash or Tron address (Base58Check)", other_coin) }
        .fires(&["TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"])
        .passes(&["TJRabPrwbZy45sbavfcjinPJC18kjpRTv9"]),
    Detector {
        category: Category::Secret,
        normal_form: NormalForm::Verbatim,
        shape: Shape::Run(whole),
        ..coin("bitcoin_private_key", "Bitcoin private key in wallet import format", wallet_key)
    }
    .fires(&[concat!("5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4d", "Z1jvhTVqvbTLvyTJ")])
    .passes(&["5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTK"]),
    Detector {
        category: Category::Secret,
        normal_form: NormalForm::Verbatim,
        shape: Shape::Pattern {
            literals: &["xprv", "yprv", "zprv"],
            pattern: "[xyz]prv[1-9A-HJ-NP-Za-km-z]{107,108}",
            before: 0,
            after: 120,
        },
        ..coin("bip32_private_key", "Extended private key of a wallet (BIP-32)", |candidate| {
            base58_check(candidate.matched()).map(|_| 26)
        })
    }
    .fires(&[concat!(
        "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6",
        "LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi"
    )])
    .passes(&["xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHj"]),
    Detector {
        category: Category::Secret,
        normal_form: NormalForm::Verbatim,
        shape: Shape::Beside {
            literals: &["seed phrase", "seed_phrase", "seedphrase", "mnemonic", "recovery phrase", "recovery_phrase", "recoveryphrase", "seed words"],
            pattern: "(?:[a-z]{3,8} ){11}(?:(?:[a-z]{3,8} ){3}){0,4}[a-z]{3,8}",
            after: 240,
        },
        ..coin("wallet_seed_phrase", "Seed phrase of a wallet (BIP-39), beside words that name it", phrase)
    }
    .beside(&["seed phrase", "mnemonic", "recovery phrase", "seed words"])
    .fires(&["mnemonic: legal winner thank year wave sausage worth useful legal winner thank yellow"])
    .passes(&["legal winner thank year wave sausage worth useful legal winner thank yellow", "the seed phrase is a list of words that you must never show to any person at all"]),
];

const fn coin(
    name: &'static str,
    description: &'static str,
    check: fn(&Candidate<'_>) -> Option<i32>,
) -> Detector {
    Detector {
        edges: Edges::Word,
        normal_form: NormalForm::Verbatim,
        ..number(name, Category::Financial, description, check)
    }
}

/// All of a run.
#[expect(clippy::unnecessary_wraps, reason = "others find no more than a part")]
fn whole(_: &Window<'_>, run: Range<usize>) -> Option<Range<usize>> {
    Some(run)
}

/// Version and payload of a match that has the length of an address.
fn address(candidate: &Candidate<'_>) -> Option<Vec<u8>> {
    let length = candidate.matched().len();
    if !(25..=36).contains(&length) {
        return None;
    }
    base58_check(candidate.matched())
}

fn bitcoin(candidate: &Candidate<'_>) -> Option<i32> {
    if !matches!(candidate.matched().first()?, b'1' | b'3' | b'2' | b'm' | b'n') {
        return None;
    }
    let payload = address(candidate)?;
    (payload.len() == 21 && matches!(payload.first()?, 0 | 5 | 0x6F | 0xC4)).then_some(26)
}

fn other_coin(candidate: &Candidate<'_>) -> Option<i32> {
    if !matches!(
        candidate.matched().first()?,
        b'L' | b'M' | b'D' | b'9' | b'A' | b'X' | b'T' | b't'
    ) {
        return None;
    }
    let payload = address(candidate)?;
    let is_known = match payload.len() {
        21 => matches!(payload.first()?, 0x30 | 0x32 | 0x1E | 0x16 | 0x4C | 0x10 | 0x41),
        22 => matches!(payload.get(..2)?, [0x1C, 0xB8 | 0xBD]),
        _ => false,
    };
    is_known.then_some(26)
}

fn wallet_key(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    if !matches!(matched.len(), 51 | 52) || !matches!(matched.first()?, b'5' | b'K' | b'L') {
        return None;
    }
    let payload = base58_check(matched)?;
    (payload.first() == Some(&0x80) && matches!(payload.len(), 33 | 34)).then_some(26)
}

/// Mixed case is a checksum; without it only context speaks for an address.
fn ethereum(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.matched().get(2..)?;
    let has = |test: fn(&u8) -> bool| digits.iter().any(test);
    if entropy(digits) < 2.5 {
        return None;
    }
    if has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) {
        return is_checksummed(digits).then_some(20);
    }
    Some(4)
}

/// Prose has short words and articles; a list for a wallet has neither.
fn phrase(candidate: &Candidate<'_>) -> Option<i32> {
    const PROSE: &[&[u8]] =
        &[b"the", b"and", b"for", b"you", b"with", b"from", b"are", b"must", b"your"];
    let mut words = candidate.matched().split(|byte| *byte == b' ');
    (!words.any(|word| PROSE.contains(&word))).then_some(10)
}
