//! Login attributes of a subject besides its identity: the claims that policies see.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::trust::{ClaimPath, Claims};

/// Claims that make a JWT what it is and say nothing about its subject.
const OF_THE_TOKEN: [&str; 14] = [
    "iss", "sub", "aud", "exp", "nbf", "iat", "jti", "typ", "nonce", "at_hash", "c_hash", "s_hash",
    "sid", "auth_time",
];
/// Claims whose one text is a list with spaces between (RFC 8693 §4.2).
const SPACED: [&str; 2] = ["scope", "scp"];
/// The value of `amr` for several factors (RFC 8176).
const SEVERAL_FACTORS: &str = "mfa";
/// Values of `acr` that mean several factors for every issuer: REFEDS, the levels of OpenID's
/// Extended Authentication Profile, PAPE.
const SEVERAL_FACTORS_ACR: [&str; 4] = [
    "https://refeds.org/profile/mfa",
    "phr",
    "phrh",
    "http://schemas.openid.net/pape/policies/2007/06/multi-factor",
];

/// Claims that a rule reads at a login.
#[derive(Debug, Clone)]
pub struct LoginClaims {
    pub groups_from: ClaimPath,
    /// The values of `acr` by which this issuer says that several factors were proved, besides
    /// those that mean it everywhere.
    pub mfa_acr: Vec<String>,
}

impl LoginClaims {
    /// The claim that tells groups when a rule names no other.
    pub const GROUPS: &str = "groups";

    /// The groups from `groups_from`.
    #[must_use]
    pub const fn new(groups_from: ClaimPath) -> Self {
        Self { groups_from, mfa_acr: Vec::new() }
    }
}

/// Statements of the issuer at a login. It is kept with the tokens of the login and those made from
/// them, and stays as it was until the next login.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Login {
    pub groups: BTreeSet<String>,
    /// Every other claim about the subject whose value is a text, a number, a flag, or a list of
    /// these; always a set of texts.
    pub claims: BTreeMap<String, BTreeSet<String>>,
    pub mfa: bool,
}

/// Claims name people: they are not printed by accident.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("mfa", &self.mfa).finish_non_exhaustive()
    }
}

impl Login {
    /// Returns true if the login says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads `claims` as a rule wants them read.
    pub(crate) fn of(claims: &Claims, reading: &LoginClaims) -> Self {
        let groups = claims.at(&reading.groups_from).map(texts).unwrap_or_default();
        let about_subject =
            |name: &str| !OF_THE_TOKEN.contains(&name) && name != reading.groups_from.as_str();
        let members = claims.members().as_object().into_iter().flatten();
        let told = members.filter(|(name, _)| about_subject(name)).filter_map(|(name, value)| {
            let list = value.as_str().filter(|_| SPACED.contains(&name.as_str()));
            let values = list.map_or_else(
                || texts(value),
                |list| list.split_ascii_whitespace().map(str::to_owned).collect(),
            );
            (!values.is_empty()).then(|| (name.clone(), values))
        });
        let claims: BTreeMap<String, BTreeSet<String>> = told.collect();
        let has = |claim: &str, wanted: &dyn Fn(&str) -> bool| {
            claims.get(claim).is_some_and(|values| values.iter().any(|value| wanted(value)))
        };
        let mfa = has("amr", &|method| method == SEVERAL_FACTORS)
            || has("acr", &|level| {
                SEVERAL_FACTORS_ACR.contains(&level)
                    || reading.mfa_acr.iter().any(|known| known == level)
            });
        Self { groups, claims, mfa }
    }
}

/// The texts that a value is or lists; nothing of what has members of its own.
fn texts(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Array(items) => items.iter().filter_map(text).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            text(value).into_iter().collect()
        }
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::trust::claims::BOUNDS;

    fn login(claims: &Value, reading: &LoginClaims) -> Login {
        let mut claims = claims.clone();
        claims["iss"] = json!("https://issuer.example");
        Login::of(&Claims::parse(claims.to_string().as_bytes(), BOUNDS).unwrap(), reading)
    }

    fn usual() -> LoginClaims {
        LoginClaims::new(LoginClaims::GROUPS.parse().unwrap())
    }

    fn set(texts: &[&str]) -> BTreeSet<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn groups_are_groups_and_every_other_claim_is_a_set_of_texts() {
        let claims = json!({
            "sub": "u1", "exp": 5, "jti": "x", "nonce": "n", "auth_time": 4,
            "groups": ["staff", "eu", "staff"], "department": "sales", "level": 3.5,
            "email_verified": true, "regions": ["eu", 7, {"x": 1}], "scope": "a b  a",
            "address": {"city": "Ulm"}, "nothing": null, "none": [],
        });

        let said = login(&claims, &usual());

        assert_eq!(said.groups, set(&["staff", "eu"]));
        let tags: Vec<(&str, BTreeSet<String>)> =
            said.claims.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
        assert_eq!(
            tags,
            [
                ("department", set(&["sales"])),
                ("email_verified", set(&["true"])),
                ("level", set(&["3.5"])),
                ("regions", set(&["7", "eu"])),
                ("scope", set(&["a", "b"])),
            ]
        );
        assert!(!said.mfa);
    }

    #[test]
    fn groups_may_stand_in_another_claim() {
        let reading = LoginClaims::new("/realm_access/roles".parse().unwrap());

        let said = login(&json!({ "realm_access": {"roles": ["ops"]}, "groups": "x" }), &reading);

        assert_eq!(said.groups, set(&["ops"]));
        assert_eq!(said.claims["groups"], set(&["x"]));
    }

    #[test]
    fn a_second_factor_is_proved_by_amr_or_by_an_acr_that_means_it() {
        let own = LoginClaims { mfa_acr: vec!["urn:acme:gold".to_owned()], ..usual() };
        for (claims, reading, proved) in [
            (json!({ "amr": ["pwd", "mfa"] }), usual(), true),
            (json!({ "amr": ["pwd", "otp"] }), usual(), false),
            (json!({ "amr": ["not-mfa"] }), usual(), false),
            (json!({ "acr": "phr" }), usual(), true),
            (json!({ "acr": "https://refeds.org/profile/mfa" }), usual(), true),
            (json!({ "acr": "urn:acme:gold" }), usual(), false),
            (json!({ "acr": "urn:acme:gold" }), own, true),
            (json!({ "mfa": true }), usual(), false),
        ] {
            assert_eq!(login(&claims, &reading).mfa, proved, "{claims}");
        }
    }

    #[test]
    fn a_login_is_kept_and_read_back_and_never_printed() {
        let said =
            login(&json!({ "groups": "g", "email": "ana@acme.com", "amr": "mfa" }), &usual());

        let kept = serde_json::to_string(&said).unwrap();

        assert_eq!(serde_json::from_str::<Login>(&kept).unwrap(), said);
        assert!(!format!("{said:?}").contains("ana"));
        assert!(Login::default().is_empty() && !said.is_empty());
    }
}
