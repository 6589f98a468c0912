//! Money: cards, accounts, coins.

use crate::dlp::detector::Detector;

mod accounts;
mod cards;
mod coins;

/// By kind.
pub(super) const ALL: &[&[Detector]] = &[cards::ALL, accounts::ALL, coins::ALL];
