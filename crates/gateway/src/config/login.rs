//! `[login]`: how people log in with a browser.

use portcullis_app::{IssuerCredential, LoginIssuer, LoginParts};
use portcullis_core::{
    id::PrincipalKind,
    oauth::is_scope,
    openid::{ClientKey, LoginKey},
    trust::{RuleSubject, TrustRule, TrustRules},
};
use portcullis_upstream::{Discovery, Endpoint, Outbound};
use serde::Deserialize;

use super::{secrets::SecretSource, times::Seconds, trust::TrustEntry};

/// Characters of a name of an issuer in addresses.
const MAX_NAME: usize = 32;
/// Characters of its name on the page, of a client id, and of a level of authentication.
const MAX_TEXT: usize = 200;
/// Scopes that tell who a person is.
const SCOPES: [&str; 3] = ["openid", "profile", "email"];

/// `[login]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Login {
    /// Links that `portcullis login-link` makes log people in.
    pub(crate) links: bool,
    /// Values of `acr` that a person needs who lets a client act as an admin; any when empty.
    admin_acr: Vec<String>,
    /// Issuers at which people log in.
    issuers: Vec<IssuerEntry>,
}

/// `[[login.issuers]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct IssuerEntry {
    /// Name in addresses.
    name: String,
    /// Name on the page; `name` when absent.
    label: Option<String>,
    /// `iss`, exactly.
    issuer: String,
    /// The gateway, as the issuer knows it.
    client_id: String,
    /// Secret of the gateway there,
    client_secret: Option<SecretSource>,
    /// or the key that signs its assertions, in PEM.
    private_key: Option<SecretSource>,
    /// `kid` of the key.
    key_id: Option<String>,
    /// Scopes that are asked for.
    scopes: Option<Vec<String>>,
    /// Levels of authentication that every login asks for.
    #[serde(default)]
    acr_values: Vec<String>,
    /// Time within which people have to have been asked for credentials.
    max_age: Option<Seconds>,
}

impl Login {
    /// As the app takes it. Rejects an issuer whose people no trust rule knows, and says which one to add.
    pub(crate) fn parts(
        &self,
        trust: &[TrustEntry],
        rules: &TrustRules,
        attempts: LoginKey,
        outbound: &Outbound,
    ) -> Result<LoginParts, String> {
        let mut issuers: Vec<LoginIssuer> = Vec::new();
        for entry in &self.issuers {
            let place = |error: String| format!("`login.issuers` `{}`: {error}", entry.name);
            if let Some(twin) = self.issuers.iter().find(|other| entry.is_twin_of(other)) {
                return Err(place(format!("`{}` has the same name or issuer", twin.name)));
            }
            let is_private = trust.iter().any(|rule| rule.allows_private(&entry.issuer));
            entry.check_rules(rules).map_err(place)?;
            issuers.push(entry.issuer(is_private).map_err(place)?);
        }
        texts("admin_acr", &self.admin_acr).map_err(|error| format!("`login`: {error}"))?;
        Ok(LoginParts {
            links: self.links,
            issuers,
            admin_acr: self.admin_acr.clone(),
            attempts,
            outbound: outbound.clone(),
        })
    }
}

impl IssuerEntry {
    fn is_twin_of(&self, other: &Self) -> bool {
        let same = self.name == other.name || self.issuer == other.issuer;
        same && !std::ptr::eq(self, other)
    }

    /// Rejects an issuer whose people no trust rule knows, as rules do at `POST /v1/auth/token`.
    fn check_rules(&self, rules: &TrustRules) -> Result<(), String> {
        let admits = |rule: &TrustRule| {
            let person = match &rule.who {
                RuleSubject::Fixed(principal) => principal.kind() == PrincipalKind::User,
                RuleSubject::User { .. } => true,
            };
            person && !rule.id_jag && rule.audience == self.client_id
        };
        if rules.of(&self.issuer, None).any(|rule| admits(rule)) {
            return Ok(());
        }
        let Self { name, issuer, client_id, .. } = self;
        Err(format!(
            "no trust rule says who its people are. Add, with the org and what you want to match:\n\n\
             [[trust]]\nname = \"{name}\"\norg = \"<org>\"\nissuer = \"{issuer}\"\n\
             audience = \"{client_id}\"\nmatch = {{ email_verified = true }}\nuser_from = \"sub\"\n\
             roles = {{ \"*\" = \"member\" }}\n"
        ))
    }

    fn issuer(&self, is_private: bool) -> Result<LoginIssuer, String> {
        let letter = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
        if !(1..=MAX_NAME).contains(&self.name.len()) || !self.name.chars().all(letter) {
            return Err("`name` has 1 to 32 letters, digits, `-` and `_`".to_owned());
        }
        let label = self.label.clone().unwrap_or_else(|| self.name.clone());
        let reach = if is_private { Endpoint::allowed } else { Endpoint::public };
        let discovery = Discovery::of(&self.issuer, reach);
        text("label", &label)?;
        text("client_id", &self.client_id)?;
        texts("acr_values", &self.acr_values)?;
        Ok(LoginIssuer {
            name: self.name.clone(),
            label,
            discovery: discovery.map_err(|error| format!("`issuer`: {error}"))?,
            client_id: self.client_id.clone(),
            credential: self.credential()?,
            scopes: self.scopes()?,
            acr_values: self.acr_values.clone(),
            max_age: self.max_age.map(|age| age.0),
        })
    }

    fn credential(&self) -> Result<IssuerCredential, String> {
        match (&self.client_secret, &self.private_key) {
            (Some(secret), None) if self.key_id.is_none() => {
                let secret = secret.read().map_err(|error| format!("`client_secret`: {error}"))?;
                Ok(IssuerCredential::Secret(secret))
            }
            (None, Some(key)) => {
                let error = |error: String| format!("`private_key`: {error}");
                let pem = key.read().map_err(error)?;
                let key = ClientKey::parse(pem.expose(), self.key_id.clone());
                Ok(IssuerCredential::Key(Box::new(key.map_err(|it| error(it.to_string()))?)))
            }
            (Some(_), None) => Err("`key_id` is for `private_key`".to_owned()),
            (Some(_), Some(_)) | (None, None) => {
                Err("give either `client_secret` or `private_key`, one of them".to_owned())
            }
        }
    }

    fn scopes(&self) -> Result<Vec<String>, String> {
        let Some(scopes) = &self.scopes else { return Ok(SCOPES.map(str::to_owned).to_vec()) };
        match scopes.iter().find(|scope| !is_scope(scope)) {
            Some(odd) => Err(format!("`scopes` holds `{odd}`, which is no scope")),
            None if scopes.iter().any(|scope| scope == "openid") => Ok(scopes.clone()),
            None => Err("`scopes` has to hold `openid`".to_owned()),
        }
    }
}

/// A text for people and issuers, without white space at its ends.
fn text(key: &str, given: &str) -> Result<(), String> {
    let fits = (1..=MAX_TEXT).contains(&given.chars().count()) && given.trim() == given;
    if fits && !given.chars().any(char::is_control) {
        Ok(())
    } else {
        Err(format!("`{key}` has 1 to {MAX_TEXT} characters, without white space at its ends"))
    }
}

/// Values that stand in a list with spaces between.
fn texts(key: &str, given: &[String]) -> Result<(), String> {
    match given.iter().find(|value| value.contains(char::is_whitespace)) {
        Some(_) => Err(format!("`{key}` holds a value with a space")),
        None => given.iter().try_for_each(|value| text(key, value)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{boot::SystemRandom, config::Config};

    const RULE: &str = "[[trust]]\nname = \"people\"\norg = \"org_01M754BKTKX1YB8Q05NMW9TP4G\"\n\
         issuer = \"https://id.example\"\naudience = \"gateway\"\nmatch = { email_verified = true }\n\
         user_from = \"sub\"\nroles = { \"*\" = \"member\" }\n";
    const ISSUER: &str = "[[login.issuers]]\nname = \"acme\"\nissuer = \"https://id.example\"\n\
         client_id = \"gateway\"\n";

    fn parts(text: &str) -> Result<LoginParts, String> {
        let config: Config = toml::from_str(text).map_err(|error| error.to_string())?;
        let trusted = config.trusted().map_err(|error| error.to_string())?;
        let outbound = Outbound::new(Arc::new(SystemRandom));
        config.login.parts(&config.trust, &trusted.rules, LoginKey::new(&[0; 32]), &outbound)
    }

    #[test]
    fn an_issuer_needs_a_rule_with_the_client_id_as_its_audience() {
        let secret = "client_secret = \"s\"\n";

        let parsed = parts(&format!("{ISSUER}{secret}{RULE}")).unwrap();
        let issuer = parsed.issuers.first().unwrap();
        assert_eq!(issuer.label, "acme");
        assert_eq!(issuer.scopes, SCOPES);

        for wrong in [
            String::new(),
            RULE.replace("\"gateway\"", "\"https://gateway.example\""),
            RULE.replace("https://id.example", "https://id.example/other"),
        ] {
            let error = parts(&format!("{ISSUER}{secret}{wrong}")).unwrap_err();
            for line in ["[[trust]]", "issuer = \"https://id.example\"", "audience = \"gateway\""] {
                assert!(error.contains(line), "{error}");
            }
        }
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        for (more, told) in [
            ("", "either `client_secret` or `private_key`"),
            ("client_secret = \"s\"\nkey_id = \"1\"\n", "`key_id` is for"),
            ("private_key = \"no key\"\n", "BEGIN PRIVATE KEY"),
            ("client_secret = { env = \"NO_SUCH_VARIABLE\" }\n", "NO_SUCH_VARIABLE"),
            ("client_secret = \"s\"\nscopes = [\"email\"]\n", "`openid`"),
            ("client_secret = \"s\"\nscopes = [\"openid\", \"a b\"]\n", "`a b`"),
            ("client_secret = \"s\"\nacr_values = [\"a b\"]\n", "`acr_values`"),
            ("client_secret = \"s\"\nlabel = \"\"\n", "`label`"),
        ] {
            let error = parts(&format!("{ISSUER}{more}{RULE}")).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        let named = |name: &str| ISSUER.replace("\"acme\"", name);
        let odd = format!("{}client_secret = \"s\"\n{RULE}", named("\"a/b\""));
        assert!(parts(&odd).unwrap_err().contains("`name`"));
        let twice = format!(
            "{ISSUER}client_secret = \"s\"\n{}client_secret = \"s\"\n{RULE}",
            named("\"other\"")
        );
        assert!(parts(&twice).unwrap_err().contains("same name or issuer"));
    }
}
