//! Tokens of code hosts, package registries and CI.

use super::{Examples, random, vendor};
use crate::dlp::{
    checks,
    detector::{Candidate, Detector},
};

pub(super) const ALL: &[Detector] = &[
    Detector {
        check: github,
        ..vendor(
            "github_token",
            "GitHub personal, OAuth, app or fine-grained token",
            &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
            "gh[pousr]_[0-9A-Za-z]{36,251}|github_pat_[0-9A-Za-z_]{82}",
            &Examples {
                fires: &[
                    concat!("token ghp_", "F4k3F4k3abcdefghijklmnopqrst01234567"),
                    concat!("Authorization: bearer gho_", "F4k3F4k3abcdefghijklmnopqrst01234567"),
                    concat!(
                        "github_pat_",
                        "11F4K3F4K3abcdefghijkl_",
                        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
                    ),
                ],
                passes: &[
                    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                    "tokens begin with ghp_ or github_pat_",
                    "weighs_abcdefghijklmnopqrstuvwxyz0123456789",
                ],
            },
        )
    },
    vendor(
        "gitlab_token",
        "GitLab personal, deploy, runner, CI or OAuth token",
        &[
            "glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glsoat-", "glcbt-", "glimt-",
            "glagent-", "gloas-", "glffct-",
        ],
        r"gl(?:pat|dt|rt|ptt|ft|soat|cbt|imt|agent|oas|ffct)-[0-9A-Za-z_.-]{20,255}",
        &Examples {
            fires: &[concat!("glpat-", "F4k3abcdefghijklmnop")],
            passes: &["glpat-short", "glpat-xxxxxxxxxxxxxxxxxxxx"],
        },
    ),
    vendor(
        "bitbucket_token",
        "Bitbucket or Atlassian API token",
        &["atatt3", "atbb"],
        "ATATT3[0-9A-Za-z_=-]{60,250}|ATBB[0-9A-Za-z]{32}",
        &Examples {
            fires: &[concat!("ATBB", "F4k3abcdefghijklmnop012345678901")],
            passes: &["ATBB", "atbbabcdefghijklmnop01234567890123456"],
        },
    ),
    vendor(
        "npm_token",
        "npm access token",
        &["npm_"],
        "npm_[0-9A-Za-z]{36}",
        &Examples {
            fires: &[concat!(
                "//registry.npmjs.org/:_authToken=npm_",
                "F4k3abcdefghijklmnopqrstuvwxyz012345"
            )],
            passes: &["npm_config_registry", "npm_package_dependencies_something_else"],
        },
    ),
    vendor(
        "pypi_token",
        "PyPI upload token",
        &["pypi-ageichlwas5vcmc", "pypi-agendgvzdc5wexbp"],
        "pypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBp)[0-9A-Za-z_-]{50,300}",
        &Examples {
            fires: &[concat!(
                "pypi-AgEIcHlwaS5vcmc",
                "F4k3abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRST"
            )],
            passes: &["pypi-AgEIcHlwaS5vcmc", "pypi-server"],
        },
    ),
    vendor(
        "rubygems_token",
        "RubyGems API key",
        &["rubygems_"],
        "rubygems_[0-9a-f]{48}",
        &Examples {
            fires: &[concat!("rubygems_", "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a6978")],
            passes: &["rubygems_version"],
        },
    ),
    vendor(
        "docker_token",
        "Docker Hub access token",
        &["dckr_pat_", "dckr_oat_"],
        "dckr_[po]at_[0-9A-Za-z_-]{27,32}",
        &Examples {
            fires: &[concat!("dckr_pat_", "F4k3abcdefghijklmnop0123456")],
            passes: &["dckr_pat_x"],
        },
    ),
    vendor(
        "circleci_token",
        "CircleCI personal or project token",
        &["ccipat_", "cciprj_"],
        "CCI(?:PAT|PRJ)_[0-9A-Za-z]{22}_[0-9A-Fa-f]{40}",
        &Examples {
            fires: &[concat!(
                "CCIPAT_",
                "F4k3abcdefghijklmnop01_0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"
            )],
            passes: &["CCIPAT_"],
        },
    ),
    vendor(
        "buildkite_token",
        "Buildkite API token",
        &["bkua_"],
        "bkua_[0-9a-f]{40}",
        &Examples {
            fires: &[concat!("bkua_", "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c")],
            passes: &["bkua_1"],
        },
    ),
    vendor(
        "postman_api_key",
        "Postman API key",
        &["pmak-"],
        "PMAK-[0-9a-f]{24}-[0-9a-f]{34}",
        &Examples {
            fires: &[concat!(
                "PMAK-",
                "0f1e2d3c4b5a69788796a5b4-c3d2e1f00f1e2d3c4b5a69788796a5b4c3"
            )],
            passes: &["PMAK-0f1e2d3c"],
        },
    ),
    vendor(
        "sentry_token",
        "Sentry organisation or user token",
        &["sntrys_", "sntryu_"],
        "sntrys_eyJ[0-9A-Za-z+/=_-]{60,300}|sntryu_[0-9a-f]{64}",
        &Examples {
            fires: &[concat!(
                "sntryu_",
                "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
            )],
            passes: &["sntryu_0f1e"],
        },
    ),
    vendor(
        "pulumi_token",
        "Pulumi access token",
        &["pul-"],
        "pul-[0-9a-f]{40}",
        &Examples {
            fires: &[concat!("pul-", "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c")],
            passes: &["pul-0f1e"],
        },
    ),
];

/// A right checksum is more evidence; a wrong one is none against, since not all kinds have it.
fn github(candidate: &Candidate<'_>) -> Option<i32> {
    let more = if checks::crc_base62(candidate.matched(), 4) { 16 } else { 0 };
    random(candidate).map(|bits| bits + more)
}
