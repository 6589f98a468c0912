//! Tokens of this gateway, and those of GitHub, which prove themselves with a checksum.

use crate::catalogue::secrets::{summed, vendor::vendor};
use crate::catalogue::{
    checks,
    detector::{Candidate, Detector},
};

pub(super) const ALL: &[Detector] = &[
    Detector {
        check: portcullis,
        ..vendor(
            "portcullis_token",
            "Token of this gateway",
            &["mcp_live_", "svc_live_", "mcp_refresh_"],
            "(?:mcp_live|svc_live|mcp_refresh)_[0-9A-Za-z]{38}",
        )
    }
    .fires(&["Bearer mcp_live_0EesofMSwCG8nv7cDAQcRILuT7BcZuvX1rxfbu"])
    .passes(&["mcp_live_0EesofMSwCG8nv7cDAQcRILuT7BcZuvX1rxfbv", "mcp_live_ marks a user token"]),
    Detector {
        check: summed::github,
        ..vendor(
            "github_token",
            "GitHub personal, OAuth, app, refresh or fine-grained token",
            &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
            r"gh[pousr]_[0-9A-Za-z]{36,251}|github_pat_[0-9A-Za-z_]{82,251}|ghs_[0-9]{1,12}_eyJ[0-9A-Za-z_.-]{60,1200}",
        )
    }
    .reaching(0, 1300)
    .fires(&[
        concat!("token ghp_", "F4k3F4k3abcdefghijklmnopqrst01234567"),
        concat!("Authorization: bearer gho_", "F4k3F4k3abcdefghijklmnopqrst01234567"),
        concat!("tokenghp_", "F4k3F4k3abcdefghijklmnopqrst01234567"),
        concat!(
            "ghs_",
            "1234567_eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJmYWtlIn0.F4k3abcdefghijklmnop0123456789F4k3-_a",
        ),
        concat!(
            "github_pat_",
            "11F4K3F4K3abcdefghijkl_",
            "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
        ),
    ])
    .passes(&[
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "tokens begin with ghp_ or github_pat_",
        "weighs_abcdefghijklmnopqrstuvwxyz0123456789",
    ]),
];

fn portcullis(candidate: &Candidate<'_>) -> Option<i32> {
    checks::crc_base62(candidate.matched(), 0).then_some(8)
}
