//! Numbers whose check digit is wrong although a key says what they are.

use crate::catalogue::{
    builders::{any, national},
    detector::Detector,
};

/// Name of the detector.
pub(in crate::catalogue) const NAME: &str = "mistyped_number";

/// Nothing wakes it: the scan reports what other detectors turned down.
pub(super) const ALL: &[Detector] = &[national(
    NAME,
    "Number below a key that names its kind, whose check digit is wrong, as a slip or a sample has it: flagged \
     only, unless the settings say otherwise",
    any,
)
.fires(&[r#"{"pesel": "44051401358"}"#, r#"{"card_number": "4111 1111 1111 1112"}"#])
.passes(&[
    r#"{"pesel": "44051401359"}"#,
    "PESEL 44051401358",
    r#"{"pesel_id": "44051401358"}"#,
    r#"{"pesel": "11111111111"}"#,
    r#"{"tax_id": "12-3456789"}"#,
])];
