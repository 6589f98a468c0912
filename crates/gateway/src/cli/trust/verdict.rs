//! Verdict on one JWT with its reasons, for people and for programs.

use std::collections::BTreeSet;

use portcullis_app::Trust;
use portcullis_core::{
    clock::Timestamp,
    id::OrgId,
    trust::{
        Jwt, JwtType, Recipient, Rejection, RuleReport, RuleSubject, Subject, TrustRule,
        TrustRules, TrustedSubject, Verified,
    },
};
use serde_json::{Map, Value, json};

/// Claims that every JWT has a use for.
const REGISTERED: [&str; 7] = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti"];
/// Characters of a claim's value that are shown.
const SHOWN: usize = 200;

/// Verdict on a JWT.
pub(super) struct Verdict {
    jwt: Option<Jwt>,
    signature: Result<(), String>,
    rules: Vec<RuleReport>,
    outcome: Result<TrustedSubject, Refused>,
}

/// Reason for a rejection.
struct Refused {
    check: &'static str,
    reason: String,
}

impl From<&Rejection> for Refused {
    fn from(rejection: &Rejection) -> Self {
        Self { check: rejection.check().as_str(), reason: rejection.to_string() }
    }
}

impl Verdict {
    /// Looks at a JWT as the exchange would, and goes on looking where that would stop.
    pub(super) async fn of(text: &str, org: Option<OrgId>, trust: &Trust, now: Timestamp) -> Self {
        let jwt = match Jwt::parse_typed(text) {
            Ok(jwt) => jwt,
            Err(rejection) => return Self::unreadable(&rejection),
        };
        let mut rules = trust.rules().explain(&jwt, now);
        rules.retain(|report| org.is_none_or(|org| report.rule.org == org));
        let (signature, outcome) = signed(&jwt, org, trust, now).await;
        Self { jwt: Some(jwt), signature, rules, outcome }
    }

    fn unreadable(rejection: &Rejection) -> Self {
        let signature = Err("not checked".to_owned());
        Self { jwt: None, signature, rules: Vec::new(), outcome: Err(rejection.into()) }
    }

    /// The reason, if it is refused.
    pub(super) fn refused(&self) -> Option<String> {
        let refused = self.outcome.as_ref().err()?;
        Some(format!("{} ({})", refused.reason, refused.check))
    }

    pub(super) fn to_json(&self) -> Value {
        let refused = self.outcome.as_ref().err();
        let (claims, others) = self.claims();
        json!({
            "accepted": refused.is_none(),
            "check": refused.map(|refused| refused.check),
            "reason": refused.map(|refused| &refused.reason),
            "algorithm": self.jwt.as_ref().map(|jwt| jwt.algorithm().as_str()),
            "key_id": self.jwt.as_ref().and_then(Jwt::key_id),
            "signature": self.signature_text(),
            "claims": claims,
            "other_claims": others,
            "rules": self.rules.iter().map(rule_json).collect::<Vec<_>>(),
            "subject": self.outcome.as_ref().ok().map(subject_json),
        })
    }

    pub(super) fn to_text(&self) -> String {
        let mut lines = Vec::new();
        if let Some(jwt) = &self.jwt {
            let key = jwt.key_id().map_or("without a `kid`".to_owned(), |id| {
                format!("key {}", printable(&Value::from(id)))
            });
            lines.push(format!("algorithm   {}, {key}", jwt.algorithm().as_str()));
            lines.push(format!("signature   {}", self.signature_text()));
            let (claims, others) = self.claims();
            lines.extend(
                claims.iter().map(|(name, value)| {
                    format!("claim       {} = {}", bare(name), printable(value))
                }),
            );
            let others: Vec<String> = others.iter().map(|name| bare(name)).collect();
            if !others.is_empty() {
                lines.push(format!("            and {}", others.join(", ")));
            }
        }
        lines.extend(self.rules.iter().flat_map(rule_text));
        lines.push(match &self.outcome {
            Ok(subject) => format!("verdict     accepted as {}", who_text(&subject.who)),
            Err(refused) => format!("verdict     refused: {} ({})", refused.reason, refused.check),
        });
        lines.join("\n")
    }

    fn signature_text(&self) -> &str {
        self.signature.as_ref().err().map_or("verified", String::as_str)
    }

    /// The claims that the rules for its issuer ask for, and the names of the others.
    fn claims(&self) -> (Map<String, Value>, Vec<String>) {
        let Some(jwt) = &self.jwt else { return (Map::new(), Vec::new()) };
        let claims = jwt.unverified();
        let meant = self.rules.iter().filter(|it| it.rule.issuer == claims.issuer());
        let mut asked: BTreeSet<String> = REGISTERED.iter().map(ToString::to_string).collect();
        asked.extend(meant.flat_map(|it| asked_by(&it.rule)));
        let found = asked.iter().filter_map(|name| {
            let value = claims.at(&name.parse().ok()?)?;
            Some((name.clone(), value.clone()))
        });
        let names = claims.members().as_object().into_iter().flat_map(Map::keys);
        let others = names.filter(|name| !asked.contains(*name)).cloned().collect();
        (found.collect(), others)
    }
}

/// Checks the signature of the issuer, and the principal that the rules give.
async fn signed(
    jwt: &Jwt,
    org: Option<OrgId>,
    trust: &Trust,
    now: Timestamp,
) -> (Result<(), String>, Result<TrustedSubject, Refused>) {
    let issuer = jwt.unverified().issuer();
    if let Err(rejection) = trust.rules().trusts(issuer, org) {
        return (Err("not checked: no rule trusts the issuer".to_owned()), refuse(&rejection));
    }
    let keys = match trust.try_keys(issuer).await {
        Ok(keys) => keys,
        Err(error) => {
            let reason = error.to_string();
            let refused = Refused { check: "unavailable", reason: reason.clone() };
            return (Err(format!("not checked: {reason}")), Err(refused));
        }
    };
    match jwt.verify(&keys) {
        Ok(verified) => {
            let admitted = admitted(jwt, verified, trust.rules(), org, now);
            (Ok(()), admitted.map_err(|rejection| Refused::from(&rejection)))
        }
        Err(rejection) => (Err(rejection.to_string()), refuse(&rejection)),
    }
}

/// The subject as the endpoint for this kind of JWT admits it. An ID-JAG is looked at as if its
/// client presented it to the gateway that it names.
fn admitted(
    jwt: &Jwt,
    verified: Verified<'_>,
    rules: &TrustRules,
    org: Option<OrgId>,
    now: Timestamp,
) -> Result<TrustedSubject, Rejection> {
    match jwt.kind() {
        JwtType::Identity | JwtType::ClientAuthentication => rules.admit(verified, org, now),
        JwtType::IdJag => {
            let claims = verified.claims();
            let client = claims.name("client_id").ok_or(Rejection::WrongClient)?;
            let named = claims.texts("aud", 1).unwrap_or_default();
            let issuer = named.first().copied().unwrap_or_default().to_owned();
            let recipient = Recipient { issuer, token_endpoint: String::new() };
            rules.admit_id_jag(verified, client, &recipient, org, now)
        }
    }
}

fn refuse<T>(rejection: &Rejection) -> Result<T, Refused> {
    Err(Refused::from(rejection))
}

/// The claims that a rule asks for.
fn asked_by(rule: &TrustRule) -> Vec<String> {
    let mut asked: Vec<String> = rule.expects.iter().map(|(claim, _)| claim.to_string()).collect();
    match &rule.who {
        RuleSubject::Fixed(_) => {}
        RuleSubject::User { from, roles } => {
            asked.extend([from.to_string(), roles.claim().to_string()]);
        }
    }
    asked
}

fn rule_json(report: &RuleReport) -> Value {
    let faults = report.faults.iter();
    json!({
        "rule": report.rule.name,
        "org": report.rule.org,
        "matches": report.faults.is_empty(),
        "faults": faults
            .map(|fault| json!({ "check": fault.check.as_str(), "reason": fault.text }))
            .collect::<Vec<_>>(),
        "who": report.who.as_ref().map(who_json),
    })
}

fn rule_text(report: &RuleReport) -> Vec<String> {
    let RuleReport { rule, faults, who } = report;
    let verdict = match who {
        Some(who) if faults.is_empty() => format!("matches, makes {}", who_text(who)),
        Some(_) | None => "does not match".to_owned(),
    };
    let mut lines = vec![format!("rule        {}: {verdict}", rule.name)];
    let faults = faults.iter().map(|it| format!("            {}: {}", it.check.as_str(), it.text));
    lines.extend(faults);
    lines
}

fn who_json(who: &Subject) -> Value {
    match who {
        Subject::Fixed(principal) => json!({ "principal": principal }),
        Subject::User(user) => json!({ "user": {
            "issuer": user.issuer,
            "claim": user.claim,
            "subject": user.subject,
            "name": user.name,
            "role": user.role.name(),
        }}),
    }
}

fn who_text(who: &Subject) -> String {
    match who {
        Subject::Fixed(principal) => principal.to_string(),
        Subject::User(user) => {
            let subject = printable(&Value::from(user.subject.as_str()));
            format!("the user {subject} with role {}", user.role.name())
        }
    }
}

fn subject_json(subject: &TrustedSubject) -> Value {
    json!({
        "rule": subject.rule.name,
        "org": subject.org(),
        "who": who_json(&subject.who),
        "scopes": subject.scopes(),
        "max_ttl_seconds": subject.max_ttl_seconds(),
        "single_use": subject.single_use.is_some(),
        "expires_at": subject.expires_at,
    })
}

/// A value as JSON, cut, and without anything that a terminal would act on: the author of the JWT
/// may not be its subject.
fn printable(value: &Value) -> String {
    let text = harmless(&value.to_string());
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// The name of a claim, which the author of the JWT chose as well.
fn bare(name: &str) -> String {
    harmless(&name.chars().take(SHOWN).collect::<String>())
}

fn harmless(text: &str) -> String {
    let harmless = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' '..='~');
    text.chars()
        .flat_map(|letter| {
            let kept = Some(letter).filter(harmless);
            let escaped = kept.is_none().then(|| letter.escape_unicode());
            kept.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_escaped() {
        let value = json!("a\u{1b}[31m\u{202e}\u{200b}é\u{9b}");

        assert_eq!(printable(&value), "\"a\\u001b[31m\\u{202e}\\u{200b}é\\u{9b}\"");
        assert_eq!(bare("a\nb"), "a\\u{a}b");
    }

    #[test]
    fn long_values_are_cut() {
        assert_eq!(printable(&json!("x".repeat(500))).chars().count(), SHOWN + 1);
    }
}
