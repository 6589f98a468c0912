//! Keys of AI services.

use crate::catalogue::detector::Candidate;
use crate::catalogue::secrets::randomness::random_with_digits;

/// Keys with `T3BlbkFJ` in the middle have a detector of their own.
pub(crate) fn unlike_openai(candidate: &Candidate<'_>) -> Option<i32> {
    let is_openai = memchr::memmem::find(candidate.matched(), b"T3BlbkFJ").is_some();
    if is_openai { None } else { random_with_digits(candidate) }
}
