//! Random text that is given to a name.

use crate::catalogue::secrets::randomness::random;
use crate::catalogue::{checks, detector::Candidate, naming::name};

/// Evidence of a random-looking value that is given to a name, in code, in configuration or as a
/// member.
pub(crate) fn assigned(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits().len();
    let matched = candidate.matched();
    let is_mixed = digits >= if matched.len() > 20 { 1 } else { 2 };
    let is_random = if digits == matched.len() {
        checks::looks_random(matched, 2.5)
    } else {
        random(candidate).is_some()
    };
    (is_mixed && is_random && name(candidate).is_some()).then_some(4)
}
