//! Keys that their vendors or well-known projects have published themselves, so that everyone has
//! them: they are no secrets.

use aws_lc_rs::digest::{SHA256, digest};

use crate::catalogue::detector::Candidate;
use crate::catalogue::secrets::randomness::random;

/// The first eight bytes of SHA-256 of keys of Google that stand in the sources of Android, Chromium,
/// Firefox and Google's own documentation.
const GOOGLE: &[u64] = &[
    0x0b47_6bdf_9acf_2123, 0x2037_abca_ffb2_b777, 0x27a9_a429_31df_f7eb, 0x37f8_f09b_df12_c2f2,
    0x3a8b_61d0_f636_b007, 0x3f37_0c9d_d822_5c63, 0x49f7_77db_995e_8260, 0x4c98_242d_cadc_8b29,
    0x8731_261c_b72d_8626, 0xa19f_89ab_3555_eac1, 0xa6c8_14bc_555a_e62c, 0xdc0f_cf04_6c61_640c,
    0xe4a5_542b_b7fd_7b67, 0xea9b_b108_2cf9_5663, 0xeb54_0d2b_6ee2_a0a4, 0xf56e_3234_94a6_ffc2,
];

/// Nothing more, if it is random and no published key.
pub(crate) fn unpublished(candidate: &Candidate<'_>) -> Option<i32> {
    let hash = digest(&SHA256, candidate.matched());
    let head = hash.as_ref().first_chunk().map(|head| u64::from_be_bytes(*head));
    let is_public = head.is_some_and(|head| GOOGLE.contains(&head));
    if is_public { None } else { random(candidate) }
}
