//! Money: cards, accounts, coins.

use crate::catalogue::detector::Detector;

mod accounts;
mod card_words;
mod cards;
mod coins;
mod iban;
mod lone_cards;

pub(super) use crate::catalogue::financial::lone_cards::NAME as CARD_NUMBER_ALONE;

/// By kind.
pub(super) const ALL: &[&[Detector]] =
    &[cards::ALL, lone_cards::ALL, iban::ALL, accounts::ALL, coins::ALL];
