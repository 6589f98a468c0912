//! Keys of cloud platforms.

use super::{Examples, random, vendor};
use crate::dlp::{
    checks,
    detector::{Candidate, Detector, Edges, NormalForm, Shape},
    kinds::Category,
};

pub(super) const ALL: &[Detector] = &[
    Detector {
        name: "aws_access_key",
        category: Category::Secret,
        description: "AWS access key id",
        shape: Shape::Pattern {
            literals: &["akia", "asia", "abia", "acca"],
            pattern: "(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
            before: 0,
            after: 20,
        },
        edges: Edges::Word,
        bits: 20,
        check: access_key_id,
        context: &["aws", "amazon", "access_key", "accesskey", "access key", "key id", "s3"],
        context_bits: 8,
        against: &[],
        normal_form: NormalForm::Verbatim,
        positives: &[
            concat!("key AKIA", "QYLPMN5HHHFPZAM2 in use"),
            concat!(r#"{"AWS_ACCESS_KEY_ID": "ASIA"#, r#"QYLPMN5HFHFPZAM2"}"#),
        ],
        negatives: &["AKIAXXXXXXXXXXXXXXXX", "ASIAN MARKETS", "XAKIAQYLPMN5HHHFPZAM2"],
    },
    Detector {
        name: "aws_secret_key",
        category: Category::Secret,
        description: "AWS secret access key, beside words that name it",
        shape: Shape::Beside {
            literals: &[
                "aws",
                "secret_access_key",
                "secretaccesskey",
                "secret access key",
                "secret_key",
                "secretkey",
            ],
            pattern: "[A-Za-z0-9/+]{40}",
            after: 160,
        },
        edges: Edges::Word,
        bits: 6,
        check: secret_access_key,
        context: &[
            "aws",
            "secret",
            "secret_access_key",
            "secretaccesskey",
            "secret access key",
            "secret_key",
            "secretkey",
        ],
        context_bits: 14,
        against: &[],
        normal_form: NormalForm::Verbatim,
        positives: &[
            concat!(
                r#"{"aws_secret_access_key": "Zq8vT/3nKf+0Lw"#,
                r#"Rj5mXyB7cHdPs2GuEa9NiVkQ4t"}"#
            ),
            concat!("export AWS_SECRET_ACCESS_KEY=Zq8vT/3nKf+0Lw", "Rj5mXyB7cHdPs2GuEa9NiVkQ4t"),
            concat!(
                r#"{"credentials": {"SecretAccessKey": "Zq8vT/3nKf+0Lw"#,
                r#"Rj5mXyB7cHdPs2GuEa9NiVkQ4t"}}"#
            ),
        ],
        negatives: &[
            r#"{"aws_commit": "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12"}"#,
            "Zq8vT3nKf0LwRj5mXyB7cHdPs2GuEa9NiVkQ4tAA",
            "aws secret key: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        ],
    },
    vendor(
        "google_api_key",
        "Google API key",
        &["aiza"],
        "AIza[0-9A-Za-z_-]{35}",
        &Examples {
            fires: &[concat!("key=AIza", "Sy-F4k3_0123456789abcdefghijklmnOPQ")],
            passes: &["AIzaSy", "AIzaXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX"],
        },
    ),
    vendor(
        "google_oauth_token",
        "Google OAuth access token or client secret",
        &["ya29.", "gocspx-"],
        r"ya29\.[0-9A-Za-z_-]{20,300}|GOCSPX-[0-9A-Za-z_-]{28}",
        &Examples {
            fires: &[
                concat!("ya29.", "a0F4k3Token_0123456789-abcdefghij"),
                concat!("GOCSPX-", "F4k3abcdefghijk0123456789LMN"),
            ],
            passes: &["ya29.short", "GOCSPX-"],
        },
    ),
    Detector {
        name: "azure_storage_key",
        category: Category::Secret,
        description: "Azure storage or service bus account key",
        shape: Shape::Pattern {
            literals: &["accountkey=", "sharedaccesskey="],
            pattern: "(?i:AccountKey|SharedAccessKey)=([0-9A-Za-z+/]{43}=|[0-9A-Za-z+/]{86}==)",
            before: 0,
            after: 120,
        },
        edges: Edges::Any,
        bits: 32,
        check: random,
        context: &[],
        context_bits: 0,
        against: &[],
        normal_form: NormalForm::Verbatim,
        positives: &[concat!(
            "DefaultEndpointsProtocol=https;AccountName=fake;AccountKey=",
            "Zq8vT/3nKf+0LwRj5mXyB7cHdPs2GuEa9NiVkQ4tZq8=;"
        )],
        negatives: &[
            "AccountKey=<your key>;",
            "AccountKey=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        ],
    },
    vendor(
        "azure_client_secret",
        "Microsoft Entra client secret",
        &["q~"],
        r"[0-9A-Za-z_~.-]{3}[0-9]Q~[0-9A-Za-z_~.-]{31,34}",
        &Examples {
            fires: &[concat!("secret: fK38", "Q~abcdefGHIJKLmnop012345_6789.qrstu")],
            passes: &["8Q~", "fK38Q~short"],
        },
    )
    .reaching_back(4),
    vendor(
        "digitalocean_token",
        "DigitalOcean token",
        &["doo_v1_", "dop_v1_", "dor_v1_"],
        "do[opr]_v1_[0-9a-f]{64}",
        &Examples {
            fires: &[concat!(
                "dop_v1_",
                "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
            )],
            passes: &["dop_v1_0f1e2d3c"],
        },
    ),
    vendor(
        "alibaba_access_key",
        "Alibaba Cloud access key id",
        &["ltai"],
        "LTAI[0-9A-Za-z]{17,21}",
        &Examples {
            fires: &[concat!("LTAI", "5tF4k3abcdefghijkLMN")],
            passes: &["LTAI5t", "voltaire"],
        },
    ),
    vendor(
        "vault_token",
        "HashiCorp Vault token",
        &["hvs.", "hvb.", "hvr."],
        r"hv[sbr]\.[0-9A-Za-z_-]{24,300}",
        &Examples {
            fires: &[concat!("hvs.", "CAESIF4k3abcdefghijklmnop0123456789")],
            passes: &["hvs.token", "hvs.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"],
        },
    ),
    vendor(
        "terraform_cloud_token",
        "Terraform Cloud API token",
        &[".atlasv1."],
        r"[0-9A-Za-z]{14}\.atlasv1\.[0-9A-Za-z_=-]{60,70}",
        &Examples {
            fires: &[concat!(
                "F4k3abcdefGHIJ.atlasv1.",
                "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012"
            )],
            passes: &["x.atlasv1.y"],
        },
    )
    .reaching_back(14),
    vendor(
        "databricks_token",
        "Databricks personal access token",
        &["dapi"],
        "dapi[0-9a-f]{32}(?:-[0-9])?",
        &Examples {
            fires: &[concat!("dapi", "0f1e2d3c4b5a69788796a5b4c3d2e1f0")],
            passes: &["dapi", "dapi00000000000000000000000000000000"],
        },
    ),
];

fn access_key_id(candidate: &Candidate<'_>) -> Option<i32> {
    let body = candidate.matched().get(4..)?;
    if !checks::looks_random(body, 2.5) {
        return None;
    }
    let is_base32 =
        body.iter().all(|byte| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(byte));
    Some(if is_base32 { 12 } else { 0 })
}

fn secret_access_key(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let touches = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, b'/' | b'+'));
    let before = candidate.range.start.checked_sub(1).and_then(|at| candidate.text.get(at));
    let mixed = matched.iter().any(u8::is_ascii_uppercase)
        && matched.iter().any(u8::is_ascii_lowercase)
        && matched.iter().any(u8::is_ascii_digit);
    let alone = !touches(before) && !touches(candidate.text.get(candidate.range.end));
    (alone && mixed && checks::looks_random(matched, 4.0)).then_some(8)
}
