//! Data-loss prevention: finds what must not travel in a JSON value, and takes it out.
//!
//! [`Engine::scan`] looks at every key, string and number literal once, and at the texts hidden
//! in them by look-alikes, escapes and encodings, or cut in pieces. It runs in linear time, holds no
//! clock and no connection, and refuses what is beyond its limits rather than pass it unseen.
//! A scan returns [`Findings`]: place, kind and likelihood; never the text itself.
//!
//! The modules stand in reading order, from the words of the domain to the engine. Each uses only
//! modules above it.
//!
//! **Invariant:** nothing here prints, stores or returns matched text. Fingerprints are keyed.

mod body;
mod catalogue;
mod engine;
mod findings;
mod limits;
mod mask;
mod nearest;
mod pace;
mod scan;
mod settings;
pub mod terminal;
mod text;
mod views;
mod vocabulary;

pub use body::media::text_in_base64;
pub use catalogue::{
    checks::{conditions::Checksum, sums::base62 as base62_checksum},
    detector::Detector,
    page::catalogue,
};
pub use engine::{
    Engine,
    definitions::Unshowable,
    external::{Reported, Text},
    samples::Sample,
};
pub use findings::{
    finding::{Finding, Findings},
    fingerprint::{Fingerprint, FingerprintKey},
    subject::Subject,
};
pub use limits::{Limits, Unscannable};
pub use mask::replacement::Mask;
pub use nearest::did_you_mean;
pub use pace::Pace;
pub use settings::{
    allow::Allow,
    custom::Custom,
    floor::Floor,
    gitleaks::Gitleaks,
    options::{Actions, DetectorSettings, Settings, SettingsError},
};
pub use vocabulary::{Action, Category, Direction, Likelihood};

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
