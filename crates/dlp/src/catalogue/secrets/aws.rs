//! Keys of Amazon Web Services.

use crate::catalogue::secrets::{
    randomness::{is_row, random},
    vendor::vendor,
};
use crate::catalogue::{
    checks,
    detector::{Candidate, Detector, Edges, Shape},
};

pub(super) const ALL: &[Detector] = &[
    Detector {
        bits: 20,
        check: access_key_id,
        context: &["aws", "amazon", "access key", "key id", "s3"],
        context_bits: 8,
        ..vendor(
            "aws_access_key",
            "AWS access key id",
            &["akia", "asia", "abia", "acca", "a3t"],
            "(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}",
        )
    }
    .fires(&[
        concat!("key AKIA", "QYLPMN5HHHFPZAM2 in use"),
        concat!(r#"{"AWS_ACCESS_KEY_ID": "ASIA"#, r#"QYLPMN5HFHFPZAM2"}"#),
        concat!("MY_AKIA", "QYLPMN5HHHFPZAM2"),
        concat!("XAKIA", "QYLPMN5HHHFPZAM2"),
    ])
    .passes(&["AKIAXXXXXXXXXXXXXXXX", "ASIAN MARKETS", "EURASIAPACIFICREGIONSXX"]),
    Detector {
        shape: Shape::Beside {
            literals: &[
                "aws", "amazon", "secret_access_key", "secretaccesskey", "secret access key",
                "secret_key", "secretkey",
            ],
            pattern: "[A-Za-z0-9/+]{40}",
            after: 160,
        },
        edges: Edges::Word,
        bits: 6,
        check: secret_access_key,
        context: &["aws", "secret", "secret access key", "secret key"],
        context_bits: 14,
        ..vendor("aws_secret_key", "AWS secret access key, beside words that name it", &[], "")
    }
    .fires(&[
        concat!(r#"{"aws_secret_access_key": "Zq8vT/3nKf+0Lw"#, r#"Rj5mXyB7cHdPs2GuEa9NiVkQ4t"}"#),
        concat!("export AWS_SECRET_ACCESS_KEY=Zq8vT/3nKf+0Lw", "Rj5mXyB7cHdPs2GuEa9NiVkQ4t"),
        concat!(
            r#"{"credentials": {"SecretAccessKey": "Zq8vT/3nKf+0Lw"#,
            r#"Rj5mXyB7cHdPs2GuEa9NiVkQ4t"}}"#
        ),
    ])
    .passes(&[
        r#"{"aws_commit": "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12"}"#,
        "Zq8vT3nKf0LwRj5mXyB7cHdPs2GuEa9NiVkQ4tAA",
        "aws secret key: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ]),
    Detector {
        shape: Shape::Beside {
            literals: &["session_token", "sessiontoken", "session token", "security_token", "security-token", "securitytoken"],
            pattern: "[A-Za-z0-9/+]{100,1200}={0,2}",
            after: 1400,
        },
        edges: Edges::Any,
        ..vendor("aws_session_token", "AWS session token, beside words that name it", &[], "")
    }
    .fires(&[concat!(
        "AWS_SESSION_TOKEN=IQoJb3JpZ2luX2VjEXAMPLE8",
        "Zq8vT/3nKf+0LwRj5mXyB7cHdPs2GuEa9NiVkQ4tZq8vT/3nKf+0LwRj5mXyB7cHdPs2GuEa9NiVkQ4tZq8vT7Rj5mXyB"
    )])
    .passes(&["AWS_SESSION_TOKEN=$TOKEN"]),
    // From the credential on, so that the parts of one address are one finding.
    vendor(
        "presigned_url",
        "Signature in an address of S3 or of a service that signs like it, with all that it signs",
        &["x-amz-credential=", "x-goog-credential="],
        r#"X-(?:Amz|Goog)-Credential=[^\s"'<>\\]{20,2400}?-Signature=[0-9a-f]{64,1024}"#,
    )
    .reaching(0, 3500)
    .fires(&[
        concat!(
            "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA",
            "QYLPMN5HHHFPZAM2%2F20260101%2Feu-west-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z",
            "&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=",
            "3f1c2d4e5f60718293a4b5c6d7e8f9011a3b5c7d9e0f2a4b6c8d0e1f3a5b7c9d"
        ),
        concat!(
            "https://storage.googleapis.com/b/o?X-Goog-Credential=s%40p.iam.gserviceaccount.com%2F20260101",
            "%2Fauto%2Fstorage%2Fgoog4_request&X-Goog-Date=20260101T000000Z&X-Goog-Expires=900&X-Goog-",
            "SignedHeaders=host&X-Goog-Signature=",
            "3f1c2d4e5f60718293a4b5c6d7e8f9011a3b5c7d9e0f2a4b6c8d0e1f3a5b7c9d"
        ),
    ])
    .passes(&[
        "?X-Amz-Credential=AKIAQYLPMN5HHHFPZAM2%2F20260101%2Feu-west-1%2Fs3%2Faws4_request",
        "X-Amz-Signature=3f1c2d4e",
    ]),
];

/// Name of the signer in an address that is signed.
const SIGNER: &[u8] = b"-credential=";

fn access_key_id(candidate: &Candidate<'_>) -> Option<i32> {
    let before = candidate.text.get(..candidate.range.start)?;
    let ahead = before.get(before.len().saturating_sub(SIGNER.len())..)?;
    if ahead.eq_ignore_ascii_case(SIGNER) {
        return None;
    }
    let body = candidate.matched().get(4..)?;
    if is_row(body) {
        return Some(0);
    }
    if !checks::looks_random(body, 2.5) {
        return None;
    }
    let is_base32 =
        body.iter().all(|byte| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(byte));
    let has_digits = body.iter().any(u8::is_ascii_digit);
    Some(if is_base32 {
        12
    } else if has_digits {
        0
    } else {
        -8
    })
}

fn secret_access_key(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let touches = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, b'/' | b'+'));
    let before = candidate.range.start.checked_sub(1).and_then(|at| candidate.text.get(at));
    let mixed = matched.iter().any(u8::is_ascii_uppercase)
        && matched.iter().any(u8::is_ascii_lowercase)
        && matched.iter().any(u8::is_ascii_digit);
    let alone = !touches(before) && !touches(candidate.text.get(candidate.range.end));
    let is_random = random(candidate).is_some() && checks::entropy(matched) >= 4.0;
    (alone && mixed && is_random).then_some(8)
}
