//! Sentences for models: why a call was refused or failed, and the next thing to do.

use serde_json::Value;

use crate::{
    approval::Status,
    hidden::spelled,
    refusal::{AskedApproval, Executed, Refusal, Violation},
};

/// Violations of a schema and findings that are told in the sentence; all of them stand in the details.
const TOLD: usize = 5;
/// Characters of a place that are told.
const MAX_PLACE: usize = 120;

/// Returns true for the code of a refusal that a model can act on. It is answered as the result of
/// the tool, with `isError`; anything else is an error of the protocol or of HTTP.
#[must_use]
pub fn is_for_models(code: &str) -> bool {
    matches!(
        code,
        "policy_denied"
            | "invalid_input"
            | "provider_auth_required"
            | "upstream_error"
            | "upstream_timeout"
    )
}

/// The message of a refusal and the next thing to do.
#[must_use]
pub fn sentence(refusal: &Refusal, executed: Executed) -> String {
    if let Refusal::InvalidInput { violations, .. } = refusal {
        return invalid(refusal, violations);
    }
    if let Refusal::AwaitsApproval { approval, .. } = refusal {
        return awaits(refusal, approval);
    }
    if let Refusal::UpstreamError { said: Some(said), .. } = refusal {
        return repeated(
            refusal.code(),
            &format!("{refusal} Its server says: \"{said}\"."),
            executed,
        );
    }
    if let Refusal::PolicyDenied { dlp: Some(dlp), .. } = refusal {
        return repeated(refusal.code(), &format!("{refusal}{}", places(dlp)), executed);
    }
    repeated(refusal.code(), &refusal.to_string(), executed)
}

/// The places of what DLP found, from the details of a denial, each with its detector: models do not see details.
#[must_use]
pub fn places(dlp: &Value) -> String {
    let findings = dlp.get("findings").and_then(Value::as_array).map(Vec::as_slice);
    let findings = findings.unwrap_or_default();
    let place = |finding: &Value| {
        let detector = finding.get("detector")?.as_str()?;
        let path: String = finding.get("path")?.as_str()?.chars().take(MAX_PLACE).collect();
        Some(if path.is_empty() {
            detector.to_owned()
        } else {
            format!("{detector} at {}", spelled(&path))
        })
    };
    let mut told: Vec<String> = findings.iter().take(TOLD).filter_map(place).collect();
    if findings.len() > TOLD {
        told.push(format!("{} more", findings.len() - TOLD));
    }
    if told.is_empty() { String::new() } else { format!(" Found: {}.", told.join(", ")) }
}

/// The sentence about a call that waits for people while its client asks for the answer later.
#[must_use]
pub fn task(refusal: &Refusal) -> String {
    let Refusal::AwaitsApproval { policy, reason, approval } = refusal else {
        return format!("{refusal} The tool has not been called yet.");
    };
    let url = approval.url.as_ref().map(|url| format!(" People decide at {url}."));
    format!(
        "Policy '{policy}' asks for an approval: {}.{} The tool has not been called; it is called once \
         they approve. Tell the user, and do not repeat the call.",
        reason.trim_end_matches('.'),
        url.unwrap_or_default()
    )
}

/// The message of an answer given before and the next thing to do.
#[must_use]
pub fn repeated(code: &str, message: &str, executed: Executed) -> String {
    let advice = advice(code, executed);
    if advice.is_empty() { message.to_owned() } else { format!("{message} {advice}") }
}

fn advice(code: &str, executed: Executed) -> &'static str {
    match (code, executed) {
        // Its message says the remedy.
        ("provider_auth_required", _) => "",
        ("policy_denied", Executed::Yes) => {
            "The tool was called; only its result is withheld. Do not repeat the call."
        }
        ("policy_denied", Executed::No | Executed::Unknown) => {
            "The tool was not called. The same call will be denied again: change what the reason \
             names, or tell the user."
        }
        (_, Executed::Unknown) => "Whether the tool ran is unknown: look before you call it again.",
        (_, Executed::No) => "The tool was not called; the same call may be tried again later.",
        (_, Executed::Yes) => "The tool was called.",
    }
}

fn awaits(refusal: &Refusal, approval: &AskedApproval) -> String {
    let url = approval.url.as_ref().map(|url| format!(" People decide at {url}."));
    let advice = if approval.status == Status::Pending {
        "Tell the user, and make the same call again once it is approved; another input is another \
         call."
    } else {
        "Do not repeat the call; tell the user."
    };
    format!("{refusal}{} The tool was not called. {advice}", url.unwrap_or_default())
}

fn invalid(refusal: &Refusal, violations: &[Violation]) -> String {
    let others: Vec<String> = violations
        .iter()
        .skip(1)
        .take(TOLD - 1)
        .map(|it| format!("{} {}", it.path, it.message).trim().to_owned())
        .collect();
    let more =
        if others.is_empty() { String::new() } else { format!(" Also: {}.", others.join("; ")) };
    format!("{refusal}{more} The tool was not called: correct the arguments and call it again.")
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn a_denied_model_learns_the_policy_the_reason_and_what_to_do() {
        let denied = Refusal::PolicyDenied {
            policy: "no-prod".to_owned(),
            reason: "production is read-only".to_owned(),
            dlp: None,
            more: Map::new(),
        };

        let before = sentence(&denied, Executed::No);
        let after = sentence(&denied, Executed::Yes);

        assert!(
            before.starts_with("Denied by policy 'no-prod': production is read-only. The tool")
        );
        assert!(before.contains("was not called") && after.contains("only its result is withheld"));
        assert!(is_for_models(denied.code()) && !is_for_models(Refusal::Internal.code()));
    }

    #[test]
    fn a_denied_model_learns_where_something_was_found() {
        let findings = |count: usize| -> Vec<Value> {
            let finding =
                |n| json!({"detector": "github_token", "path": format!("/rows/{n}"), "count": 1});
            (0..count).map(finding).collect()
        };
        let told = |findings: Vec<Value>| {
            let denied = Refusal::PolicyDenied {
                policy: "dlp".to_owned(),
                reason: "a secret".to_owned(),
                dlp: Some(json!({"stage": "input", "findings": findings})),
                more: Map::new(),
            };
            sentence(&denied, Executed::No)
        };

        let one = told(findings(1));
        let many = told(findings(7));
        let odd = vec![
            json!({"detector": "a", "path": ""}),
            json!({"detector": "b", "path": format!("/\u{202e}{}", "x".repeat(900))}),
        ];

        let expected = "a secret. Found: github_token at /rows/0. The tool was not called.";
        assert!(one.contains(expected), "{one}");
        assert!(many.contains("at /rows/4, 2 more. The tool"), "{many}");
        let odd = told(odd);
        assert!(odd.contains("Found: a, b at /[U+202E]xxx") && odd.len() < 500, "{odd}");
        assert!(!told(Vec::new()).contains("Found"));
    }

    #[test]
    fn wrong_arguments_are_all_named() {
        let violation = |path: &str| Violation {
            path: path.to_owned(),
            keyword: None,
            message: "is required".to_owned(),
        };
        let tool = "a:b".parse().unwrap();
        let violations = vec![violation("/x"), violation("/y")];

        let told = sentence(&Refusal::InvalidInput { tool, violations }, Executed::No);

        assert_eq!(
            told,
            "Input does not match the schema of a:b: /x is required. Also: /y is required. The tool \
             was not called: correct the arguments and call it again."
        );
    }
}
