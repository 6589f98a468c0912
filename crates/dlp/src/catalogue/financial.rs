//! Money: cards, accounts, coins.

pub(super) mod accounts;
pub(super) mod cards;
pub(super) mod coins;
pub(super) mod iban;
pub(super) mod lone_cards;
