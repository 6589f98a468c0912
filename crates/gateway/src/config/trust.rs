//! `[[trust]]`: whose JWTs are taken for whom.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs,
    path::{Path, PathBuf},
};

use portcullis_app::KeySource;
use portcullis_core::{
    id::{OrgId, PrincipalId, PrincipalKind},
    principal::{Role, Scope, ScopeSet},
    trust::{
        ClaimPath, Expectation, Expectations, JoinKey, KeySet, LoginClaims, MaxTtl, Pattern,
        RoleMap, RuleSubject, ScimJoin, TrustRule, TrustRules,
    },
};
use portcullis_upstream::{Discovery, Endpoint, KeyLocation};
use serde::Deserialize;
use serde_json::json;
use toml::{Table, Value};

use super::{ConfigError, named::NamedOrg, times::Seconds};

const DAY: i64 = 24 * 60 * 60;
/// Seconds for which keys are good that an issuer, being down, cannot confirm.
const DEFAULT_STALE: i64 = DAY;
const MAX_STALE: i64 = 7 * DAY;
/// Characters of an issuer, an audience or a rule's name.
const MAX_TEXT: usize = 500;
const MAX_NAME: usize = 64;
/// The claim that tells roles unless `roles_from` names another.
const DEFAULT_ROLES_FROM: &str = "groups";

/// One `[[trust]]` entry.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustEntry {
    /// Its name, recorded in events.
    name: String,
    /// The org it lets into (its id or name).
    org: String,
    /// `iss`, exactly.
    issuer: String,
    /// Value that `aud` has to hold.
    audience: String,
    /// Values that the claims have to have.
    #[serde(rename = "match", default)]
    expects: Table,
    /// Subject of the rule: this principal of the org (its id or name),
    principal: Option<String>,
    /// or a user named by this claim.
    user_from: Option<String>,
    /// The user's role by the values of `roles_from`.
    roles: Option<BTreeMap<String, String>>,
    /// The claim that tells roles.
    roles_from: Option<String>,
    /// The claim that tells groups.
    groups_from: Option<String>,
    /// Values of `acr` that mean that a second factor was proved.
    #[serde(default)]
    mfa_acr: Vec<String>,
    /// Scopes of its tokens at most; those of the principal when absent.
    scopes: Option<Vec<String>>,
    max_ttl: Option<Seconds>,
    /// A JWT can be exchanged only once.
    #[serde(default)]
    single_use: bool,
    /// The rule admits the ID-JAGs of the issuer, by which a client acts for a person.
    #[serde(default)]
    id_jag: bool,
    /// Its people are kept over SCIM: the attribute that equals `user_from`.
    scim: Option<String>,
    /// The service account (its id or name) that pushes these people.
    scim_account: Option<String>,
    /// Service accounts of the org (ids or names) that may act on behalf of its subjects.
    #[serde(default)]
    delegation: Vec<String>,
    /// The address of the issuer's JWK Set; found by discovery when absent.
    jwks_url: Option<String>,
    /// The JWK Set itself, for issuers that publish none.
    jwks: Option<Jwks>,
    /// The issuer's host may have a private or loopback address, and may be spoken to without TLS.
    allow_private: Option<bool>,
    /// Time that known keys are good while the issuer is down.
    stale_keys_for: Option<Seconds>,
}

/// Source of an issuer's keys. The rules of one issuer share it: those that say nothing
/// follow the one that does.
#[derive(Debug, Clone, Default, PartialEq)]
struct IssuerKeys {
    jwks_url: Option<String>,
    jwks: Option<Jwks>,
    allow_private: Option<bool>,
    stale_keys_for: Option<Seconds>,
}

/// A JWK Set in a file or written down.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Jwks {
    file: Option<PathBuf>,
    keys: Option<Vec<Table>>,
}

/// The rules, and where the keys of each issuer come from.
#[derive(Debug)]
pub(crate) struct TrustConfig {
    pub(crate) rules: TrustRules,
    /// The place of the keys, by issuer.
    pub(crate) keys: BTreeMap<String, KeySource>,
}

impl TrustConfig {
    /// Reads all entries as a whole. The error says what to change. `public_url` is the issuer that
    /// ID-JAGs have to be for.
    pub(super) fn of(
        entries: &[TrustEntry],
        public_url: Option<&str>,
    ) -> Result<Self, ConfigError> {
        let mut rules = Vec::with_capacity(entries.len());
        let mut wrong = Vec::new();
        let mut declared: BTreeMap<&str, (&TrustEntry, IssuerKeys)> = BTreeMap::new();
        for entry in entries {
            match entry.check_issuer(public_url).and_then(|()| entry.rule()) {
                Ok(rule) => rules.push(rule),
                Err(error) => wrong.push(entry.wrong(&error).to_string()),
            }
            let said = entry.keys();
            match declared.entry(&entry.issuer) {
                Entry::Vacant(place) => {
                    place.insert((entry, said));
                }
                Entry::Occupied(mut place) if place.get().1 == IssuerKeys::default() => {
                    place.insert((entry, said));
                }
                Entry::Occupied(place) => {
                    let (first, known) = place.get();
                    if said != IssuerKeys::default() && said != *known {
                        return Err(entry.other_keys_than(first));
                    }
                }
            }
        }
        if !wrong.is_empty() {
            return Err(ConfigError::Wrong(wrong.join("\n")));
        }
        let keys = declared.into_iter().map(|(issuer, (entry, keys))| {
            let source = keys.source(issuer).map_err(|error| entry.wrong(&error))?;
            Ok((issuer.to_owned(), source))
        });
        let keys = keys.collect::<Result<_, ConfigError>>()?;
        let rules = TrustRules::new(rules).map_err(|error| ConfigError::Wrong(text(error)))?;
        Ok(Self { rules, keys })
    }
}

impl TrustEntry {
    pub(super) fn take_paths_from(&mut self, folder: &Path) {
        if let Some(jwks) = &mut self.jwks {
            jwks.take_paths_from(folder);
        }
    }

    /// Returns true if it lets the host of this issuer have a private address.
    pub(super) fn allows_private(&self, issuer: &str) -> bool {
        self.issuer == issuer && self.allow_private == Some(true)
    }

    /// The org and the principals that it names.
    pub(super) fn named_org(&mut self) -> NamedOrg<'_> {
        let place = format!("trust rule `{}`", self.name);
        let principals =
            self.principal.iter_mut().chain(&mut self.scim_account).chain(&mut self.delegation);
        let principals = principals.collect();
        NamedOrg { place, org: &mut self.org, principals }
    }

    fn wrong(&self, error: &str) -> ConfigError {
        ConfigError::Wrong(format!("trust rule `{}`: {error}", self.name))
    }

    fn other_keys_than(&self, first: &Self) -> ConfigError {
        self.wrong(&format!(
            "trust rule `{}` has the same issuer with other keys; an issuer has one set of keys",
            first.name
        ))
    }

    fn keys(&self) -> IssuerKeys {
        IssuerKeys {
            jwks_url: self.jwks_url.clone(),
            jwks: self.jwks.clone(),
            allow_private: self.allow_private,
            stale_keys_for: self.stale_keys_for,
        }
    }

    fn rule(&self) -> Result<TrustRule, String> {
        let who = self.who()?;
        let kind = match &who {
            RuleSubject::Fixed(principal) => principal.kind(),
            RuleSubject::User { .. } => PrincipalKind::User,
        };
        let max_ttl = self.max_ttl.map(|ttl| MaxTtl::new(ttl.0)).transpose();
        Ok(TrustRule {
            name: name(&self.name)?,
            org: self.org.parse::<OrgId>().map_err(in_key("org"))?,
            issuer: plain("issuer", &self.issuer)?,
            audience: plain("audience", &self.audience)?,
            expects: self.expects()?,
            who,
            login: self.login()?,
            scopes: self.scopes()?,
            max_ttl: max_ttl.map_err(in_key("max_ttl"))?.unwrap_or(MaxTtl::default_of(kind)),
            single_use: self.single_use,
            id_jag: self.id_jag()?,
            scim: self.scim()?,
            delegation: self.delegation()?,
        })
    }

    /// An ID-JAG is for the issuer of the authorization server, which is `server.public_url`.
    fn check_issuer(&self, public_url: Option<&str>) -> Result<(), String> {
        let issuer = public_url.map(|url| url.trim_end_matches('/'));
        match issuer {
            Some(issuer) if self.id_jag && self.audience != issuer => Err(format!(
                "`id_jag` needs `audience = \"{issuer}\"`, as `server.public_url` has it"
            )),
            None if self.id_jag => {
                Err("`id_jag` needs `server.public_url`: ID-JAGs are issued for it".to_owned())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// An ID-JAG speaks for a person, and a client acts without anybody's delegation.
    fn id_jag(&self) -> Result<bool, String> {
        if self.id_jag && self.principal.is_some() {
            return Err("`id_jag` needs `user_from`: an ID-JAG speaks for a person".to_owned());
        }
        if self.id_jag && !self.delegation.is_empty() {
            return Err(
                "`delegation` is for `POST /v1/auth/token`, which takes no ID-JAG".to_owned()
            );
        }
        Ok(self.id_jag)
    }

    /// A person is never joined by an address that the issuer has not verified.
    fn scim(&self) -> Result<Option<ScimJoin>, String> {
        let key = match self.scim.as_deref() {
            None if self.scim_account.is_some() => {
                return Err("`scim_account` needs `scim`: it pushes people over SCIM".to_owned());
            }
            None => return Ok(None),
            Some("external_id") => JoinKey::ExternalId,
            Some("user_name") => JoinKey::UserName,
            Some(_) => return Err("`scim` is `external_id` or `user_name`".to_owned()),
        };
        let Some(claim) = self.user_from.as_deref() else {
            return Err("`scim` needs `user_from`: SCIM keeps people".to_owned());
        };
        let is_verified = self.expects.get("email_verified") == Some(&Value::Boolean(true));
        if claim.trim_start_matches('/').eq_ignore_ascii_case("email") && !is_verified {
            return Err(
                "`scim` with `user_from = \"email\"` needs `email_verified = true` in `match`"
                    .to_owned(),
            );
        }
        let account = self.scim_account.as_deref().map(|id| service("scim_account", id));
        Ok(Some(ScimJoin { key, account: account.transpose()? }))
    }

    fn expects(&self) -> Result<Expectations, String> {
        let expected = self.expects.iter().map(|(claim, value)| {
            let error = |error: String| format!("`match.{claim}`: {error}");
            let path: ClaimPath = claim.parse().map_err(|it| error(text(it)))?;
            Ok((path, expectation(value).map_err(error)?))
        });
        Expectations::new(expected.collect::<Result<_, String>>()?).ok_or_else(|| {
            "`match` is empty, so that everybody the issuer knows would be trusted; say at least \
             one thing that has to hold"
                .to_owned()
        })
    }

    fn who(&self) -> Result<RuleSubject, String> {
        match (&self.principal, &self.user_from) {
            (Some(principal), None) if self.roles.is_none() && self.roles_from.is_none() => {
                principal.parse().map(RuleSubject::Fixed).map_err(in_key("principal"))
            }
            (Some(_), None) => {
                Err("`roles` are for `user_from`; a principal has its role already".to_owned())
            }
            (None, Some(claim)) => {
                let from = claim.parse().map_err(in_key("user_from"))?;
                Ok(RuleSubject::User { from, roles: self.roles()? })
            }
            (Some(_), Some(_)) | (None, None) => {
                Err("give either `principal` or `user_from`, one of them".to_owned())
            }
        }
    }

    /// True if the roles or the expectations of the rule name this group.
    pub(crate) fn names_group(&self, group: &str) -> bool {
        let claim = self.groups_from.as_deref().unwrap_or(LoginClaims::GROUPS);
        let roles_from = self.roles_from.as_deref().unwrap_or(DEFAULT_ROLES_FROM);
        let of_roles = self.roles.iter().flat_map(BTreeMap::keys).filter(|_| roles_from == claim);
        let expected = self.expects.get(claim).and_then(Value::as_str).into_iter();
        let names = |pattern: &str| {
            let pattern: Result<Pattern, _> = pattern.parse();
            pattern.is_ok_and(|it| it != Pattern::Any && it.matches(group))
        };
        of_roles.map(String::as_str).chain(expected).any(names)
    }

    fn login(&self) -> Result<LoginClaims, String> {
        let claim = self.groups_from.as_deref().unwrap_or(LoginClaims::GROUPS);
        let groups_from = claim.parse().map_err(in_key("groups_from"))?;
        let mfa_acr = self.mfa_acr.iter().map(|value| plain("mfa_acr", value));
        Ok(LoginClaims { groups_from, mfa_acr: mfa_acr.collect::<Result<_, _>>()? })
    }

    fn roles(&self) -> Result<RoleMap, String> {
        let claim = self.roles_from.as_deref().unwrap_or(DEFAULT_ROLES_FROM);
        let claim = claim.parse().map_err(in_key("roles_from"))?;
        let roles = self.roles.as_ref().ok_or(
            "`user_from` needs `roles`; `roles = { \"*\" = \"member\" }` makes everybody a member",
        )?;
        let entries = roles.iter().map(|(value, role)| {
            let pattern: Pattern = value.parse().map_err(in_key("roles"))?;
            let role = Role::from_parts(role, ScopeSet::EMPTY).ok_or_else(|| {
                format!("`roles`: `{role}` is no role; there are member, auditor and admin")
            })?;
            Ok((pattern, role))
        });
        RoleMap::new(claim, entries.collect::<Result<_, String>>()?).map_err(in_key("roles"))
    }

    fn scopes(&self) -> Result<ScopeSet, String> {
        let Some(listed) = &self.scopes else { return Ok(ScopeSet::ALL) };
        if listed.is_empty() {
            return Err("`scopes` is empty; leave it out, or name at least one".to_owned());
        }
        listed.iter().map(|scope| scope.parse::<Scope>().map_err(in_key("scopes"))).collect()
    }

    fn delegation(&self) -> Result<Vec<PrincipalId>, String> {
        let actors = self.delegation.iter().map(|actor| service("delegation", actor));
        actors.collect()
    }
}

impl IssuerKeys {
    fn source(&self, issuer: &str) -> Result<KeySource, String> {
        let stale = self.stale_keys_for.map_or(DEFAULT_STALE, |stale| stale.0);
        if stale > MAX_STALE {
            return Err("`stale_keys_for` is 7 days at most".to_owned());
        }
        let reach =
            if self.allow_private == Some(true) { Endpoint::allowed } else { Endpoint::public };
        let location = match (&self.jwks, &self.jwks_url) {
            (Some(jwks), None) => return self.written_down(jwks),
            (None, Some(url)) => KeyLocation::Jwks(reach(url).map_err(in_key("jwks_url"))?),
            (None, None) => {
                let discovery = Discovery::of(issuer, reach).map_err(in_key("issuer"))?;
                KeyLocation::Discovery(discovery)
            }
            (Some(_), Some(_)) => {
                return Err("give either `jwks_url` or `jwks`, one of them".to_owned());
            }
        };
        Ok(KeySource::Published { location, stale_seconds: stale })
    }

    fn written_down(&self, jwks: &Jwks) -> Result<KeySource, String> {
        if self.allow_private.is_some() || self.stale_keys_for.is_some() {
            return Err("`allow_private` and `stale_keys_for` are for keys that are fetched, and \
                        `jwks` is written down"
                .to_owned());
        }
        jwks.source()
    }
}

impl Jwks {
    /// The file, to be found from the folder of the configuration.
    pub(super) fn take_paths_from(&mut self, folder: &Path) {
        if let Some(file) = self.file.as_mut() {
            *file = folder.join(&*file);
        }
    }

    /// The keys. Rejects a set of which none can verify.
    pub(super) fn source(&self) -> Result<KeySource, String> {
        let set = match (&self.file, &self.keys) {
            (Some(file), None) => fs::read(file)
                .map_err(|error| format!("`jwks`: `{}` cannot be read: {error}", file.display()))?,
            (None, Some(keys)) => json!({ "keys": keys }).to_string().into_bytes(),
            (Some(_), Some(_)) | (None, None) => {
                return Err("`jwks` is either { file = … } or { keys = […] }".to_owned());
            }
        };
        let set = KeySet::parse(&set).map_err(in_key("jwks"))?;
        if set.is_empty() {
            return Err("`jwks` holds no key that can verify RS256, PS256, ES256 or EdDSA; RSA \
                        keys need 2048 bits"
                .to_owned());
        }
        Ok(KeySource::Static(set))
    }
}

fn expectation(value: &Value) -> Result<Expectation, String> {
    match value {
        Value::String(pattern) => Expectation::text(pattern).map_err(text),
        Value::Boolean(wanted) => Ok(Expectation::Flag(*wanted)),
        Value::Integer(wanted) => Ok(Expectation::Integer(*wanted)),
        Value::Array(_) => Err("write one rule for each of these".to_owned()),
        Value::Float(_) | Value::Datetime(_) | Value::Table(_) => Err(
            "a claim is matched with a text, a whole number, or true or false; one inside another \
             is named like \"/kubernetes.io/namespace\""
                .to_owned(),
        ),
    }
}

fn name(given: &str) -> Result<String, String> {
    let letter = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    if (1..=MAX_NAME).contains(&given.len()) && given.chars().all(letter) {
        Ok(given.to_owned())
    } else {
        Err("`name` has 1 to 64 letters, digits, `-`, `_` and `.`".to_owned())
    }
}

/// Issuer and audience are compared byte by byte; what cannot be seen cannot be meant.
fn plain(key: &str, given: &str) -> Result<String, String> {
    let hidden = |it: char| it.is_whitespace() || it.is_control();
    if (1..=MAX_TEXT).contains(&given.chars().count()) && !given.chars().any(hidden) {
        Ok(given.to_owned())
    } else {
        Err(format!("`{key}` has 1 to {MAX_TEXT} characters without white space"))
    }
}

/// The service account of this id; no person.
fn service(key: &str, id: &str) -> Result<PrincipalId, String> {
    let id: PrincipalId = id.parse().map_err(in_key(key))?;
    match id.kind() {
        PrincipalKind::Service => Ok(id),
        PrincipalKind::User => Err(format!("`{key}` names only service accounts (`sa_…`)")),
    }
}

fn in_key<E: std::fmt::Display>(key: &str) -> impl Fn(E) -> String {
    move |error| format!("`{key}`: {error}")
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;
