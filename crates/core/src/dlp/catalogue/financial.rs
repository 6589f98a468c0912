//! Money: cards, accounts, coins.

use crate::dlp::catalogue::detector::Detector;

mod accounts;
mod cards;
mod coins;
mod lone_cards;

pub(super) use crate::dlp::catalogue::financial::lone_cards::NAME as CARD_NUMBER_ALONE;

/// By kind.
pub(super) const ALL: &[&[Detector]] = &[cards::ALL, lone_cards::ALL, accounts::ALL, coins::ALL];
