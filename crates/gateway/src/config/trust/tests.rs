//! Tests of `[[trust]]` entries.

use std::sync::Arc;

use serde_json::json;

use super::*;

const PUBLIC: &str = "https://gateway.acme.example";
/// A service account of a directory.
const PUSHES: &str = "\"sa_01M754BKTK9KV856N96WMEHWY9\"";
const ED25519: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

/// A configuration with nothing but trust rules.
#[derive(Debug, Deserialize)]
struct Config {
    trust: Vec<TrustEntry>,
}

fn parsed(toml: &str) -> Result<Config, toml::de::Error> {
    toml::from_str(toml)
}

fn trusted(toml: &str) -> Result<TrustConfig, String> {
    let file = parsed(toml).map_err(|error| error.to_string())?;
    TrustConfig::of(&file.trust, Some(PUBLIC)).map_err(|error| error.to_string())
}

fn refusal(toml: &str) -> String {
    trusted(toml).unwrap_err()
}

fn keys() -> serde_json::Value {
    json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": ED25519}]})
}

/// A JWK Set in TOML.
fn inline() -> String {
    format!("{{ keys = [{{ kty = \"OKP\", crv = \"Ed25519\", x = \"{ED25519}\" }}] }}")
}

/// A rule that is right, as a list of lines to be changed.
fn lines() -> Vec<(&'static str, String)> {
    [
        ("name", "\"ci\""),
        ("org", "\"org_01M754BKTKX1YB8Q05NMW9TP4G\""),
        ("issuer", "\"https://login.acme.example\""),
        ("audience", "\"https://gateway.acme.example\""),
        ("match", "{ repository_id = \"821093847\" }"),
        ("principal", "\"sa_01M754BKTK9KV856N96WMEHWY9\""),
    ]
    .map(|(key, value)| (key, value.to_owned()))
    .to_vec()
}

/// The rule with these keys set, or left out when the value is empty.
fn entry(changes: &[(&'static str, &str)]) -> String {
    let mut lines = lines();
    for (key, value) in changes {
        lines.retain(|(known, _)| known != key);
        if !value.is_empty() {
            lines.push((key, (*value).to_owned()));
        }
    }
    let lines: Vec<String> = lines.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("[[trust]]\n{}\n", lines.join("\n"))
}

fn user(changes: &[(&'static str, &str)]) -> String {
    let mut all = vec![("principal", ""), ("user_from", "\"sub\"")];
    all.extend(changes);
    entry(&all)
}

#[test]
fn an_entry_that_is_wrong_is_refused_and_the_wrong_is_named() {
    let inline = inline();
    for (toml, wanted) in [
        (entry(&[("nmae", "\"x\"")]), "nmae"),
        (entry(&[("name", "")]), "name"),
        (entry(&[("name", "\"a b\"")]), "`name`"),
        (entry(&[("org", "\"acme\"")]), "`org`"),
        (entry(&[("org", "")]), "org"),
        (entry(&[("issuer", "\"\"")]), "`issuer`"),
        (entry(&[("issuer", "\"https://a b\"")]), "`issuer`"),
        (entry(&[("issuer", "\"http://login.acme.example\"")]), "https://"),
        (entry(&[("issuer", "\"https://127.0.0.1\"")]), "may not be dialled"),
        (entry(&[("issuer", "\"kubernetes/serviceaccount\"")]), "not a URL"),
        (entry(&[("audience", "\"\"")]), "`audience`"),
        (entry(&[("audience", "")]), "audience"),
        (entry(&[("match", "")]), "`match` is empty"),
        (entry(&[("match", "{}")]), "`match` is empty"),
        (entry(&[("match", "{ ref = \"*\" }")]), "`match.ref`"),
        (entry(&[("match", "{ ref = \"refs/*/main\" }")]), "at the end"),
        (entry(&[("match", "{ ref = \"\" }")]), "`match.ref`"),
        (entry(&[("match", "{ ref = [\"a\", \"b\"] }")]), "one rule for each"),
        (entry(&[("match", "{ ref = 1.5 }")]), "`match.ref`"),
        (entry(&[("match", "{ ref = { a = \"b\" } }")]), "/kubernetes.io/namespace"),
        (entry(&[("principal", "\"acme\"")]), "`principal`"),
        (entry(&[("principal", "")]), "either `principal` or `user_from`"),
        (entry(&[("user_from", "\"sub\"")]), "either `principal` or `user_from`"),
        (entry(&[("roles", "{ \"*\" = \"member\" }")]), "`roles`"),
        (user(&[]), "needs `roles`"),
        (user(&[("roles", "{}")]), "`roles` is empty"),
        (user(&[("roles", "{ a = \"root\" }")]), "`root` is no role"),
        (user(&[("roles", "{ a = \"service\" }")]), "role"),
        (user(&[("roles", "{ \"a*b\" = \"member\" }")]), "at the end"),
        (user(&[("roles", "{ a = \"member\" }"), ("roles_from", "\"\"")]), "`roles_from`"),
        (entry(&[("scopes", "[\"mcps:all\"]")]), "mcps:all"),
        (entry(&[("scopes", "[]")]), "`scopes` is empty"),
        (entry(&[("max_ttl", "\"13h\"")]), "`max_ttl`"),
        (entry(&[("max_ttl", "59")]), "`max_ttl`"),
        (entry(&[("max_ttl", "\"soon\"")]), "soon"),
        (entry(&[("max_ttl", "-5")]), "15m"),
        (entry(&[("single_use", "\"yes\"")]), "single_use"),
        (entry(&[("delegation", "[\"usr_01M754BKTKFVJC7V0B9VHVKZBP\"]")]), "sa_"),
        (entry(&[("delegation", "[\"acme\"]")]), "`delegation`"),
        (entry(&[("jwks_url", "\"http://8.8.8.8/keys\"")]), "`jwks_url`"),
        (entry(&[("jwks_url", "\"https://a.example/k\""), ("jwks", &inline)]), "one of them"),
        (entry(&[("jwks", "{}")]), "file"),
        (entry(&[("jwks", "{ file = \"/nowhere.json\" }")]), "/nowhere.json"),
        (entry(&[("jwks", "{ keys = [] }")]), "no key"),
        (entry(&[("jwks", "{ keys = [{ kty = \"oct\", k = \"c2VjcmV0\" }] }")]), "no key"),
        (entry(&[("jwks", "{ keys = 1 }")]), "keys"),
        (entry(&[("jwks", "{ url = \"x\" }")]), "url"),
        (entry(&[("jwks", &inline), ("allow_private", "true")]), "`allow_private`"),
        (entry(&[("stale_keys_for", "\"8d\"")]), "`stale_keys_for`"),
        (entry(&[]).repeat(2), "two trust rules `ci`"),
        (
            entry(&[("jwks_url", "\"https://a.example/1\"")])
                + &entry(&[("name", "\"cd\""), ("jwks_url", "\"https://a.example/2\"")]),
            "other keys",
        ),
    ] {
        let told = refusal(&toml);

        assert!(told.contains(wanted), "{wanted}: {told}");
    }
}

#[test]
fn rules_of_one_issuer_share_its_keys_whichever_of_them_names_them() {
    let issuer = ("issuer", "\"kubernetes/serviceaccount\"");
    let silent = entry(&[issuer]);
    let naming = entry(&[issuer, ("name", "\"cd\""), ("jwks", &inline())]);
    for toml in [silent.clone() + &naming, naming + &silent] {
        let trusted = trusted(&toml).unwrap();

        assert_eq!(trusted.rules.iter().count(), 2);
        let source = &trusted.keys["kubernetes/serviceaccount"];
        assert!(matches!(source, KeySource::Static(keys) if keys.ids().count() == 1));
    }
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    let service = trusted(&entry(&[])).unwrap();
    let user = trusted(&user(&[("roles", "{ a = \"admin\" }")])).unwrap();
    let only = |trusted: &TrustConfig| Arc::clone(trusted.rules.iter().next().unwrap());

    let service = only(&service);
    let user = only(&user);

    assert_eq!((service.max_ttl.seconds(), user.max_ttl.seconds()), (900, 43_200));
    assert_eq!((service.scopes, service.single_use), (ScopeSet::ALL, false));
    assert!(service.delegation.is_empty());
    let RuleSubject::User { roles, .. } = &user.who else { panic!("a user") };
    assert_eq!(roles.claim().as_str(), "groups");
}

#[test]
fn keys_are_good_for_a_day_without_their_issuer_unless_it_says_otherwise() {
    for (changes, seconds) in [
        (vec![], 86_400),
        (vec![("stale_keys_for", "\"2h\"")], 7200),
        (vec![("stale_keys_for", "\"7d\"")], 604_800),
    ] {
        let trusted = trusted(&entry(&changes)).unwrap();

        let source = &trusted.keys["https://login.acme.example"];
        assert!(
            matches!(source, KeySource::Published { stale_seconds, .. } if *stale_seconds == seconds)
        );
    }
}

#[test]
fn a_file_of_keys_is_taken_from_the_folder_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("keys.json"), keys().to_string()).unwrap();
    let mut file = parsed(&entry(&[("jwks", "{ file = \"keys.json\" }")])).unwrap();

    file.trust[0].take_paths_from(folder.path());

    assert!(TrustConfig::of(&file.trust, Some(PUBLIC)).is_ok());
}

#[test]
fn a_rule_for_id_jags_makes_users_of_jwts_for_the_public_url() {
    let jag = ("id_jag", "true");
    let roles = ("roles", "{ \"*\" = \"member\" }");
    let read = trusted(&user(&[roles, jag])).unwrap();
    assert!(read.rules.iter().all(|rule| rule.id_jag));

    for (toml, wanted) in [
        (entry(&[jag]), "speaks for a person"),
        (user(&[roles, jag, ("audience", "\"mcp-gateway\"")]), "server.public_url"),
        (user(&[roles, jag, ("audience", "\"https://gateway.acme.example/\"")]), "`audience = "),
        (
            user(&[roles, jag, ("delegation", "[\"sa_01M754BKTK9KV856N96WMEHWY9\"]")]),
            "`delegation`",
        ),
        (user(&[roles, ("id_jag", "\"yes\"")]), "id_jag"),
    ] {
        assert!(refusal(&toml).contains(wanted), "{toml}: {}", refusal(&toml));
    }
    let file = parsed(&user(&[roles, jag])).unwrap();
    let homeless = TrustConfig::of(&file.trust, None).unwrap_err().to_string();
    assert!(homeless.contains("needs `server.public_url`"), "{homeless}");
    assert!(TrustConfig::of(&file.trust, Some("https://gateway.acme.example/")).is_ok());
}

#[test]
fn people_kept_over_scim_are_joined_by_what_the_issuer_vouches_for() {
    let roles = ("roles", "{ \"*\" = \"member\" }");
    let by = |value| ("scim", value);
    let read = trusted(&user(&[roles, by("\"external_id\"")])).unwrap();
    let by_id = |rule: &Arc<TrustRule>| rule.scim.map(|it| it.key) == Some(JoinKey::ExternalId);
    assert!(read.rules.iter().all(by_id));

    let email = ("user_from", "\"email\"");
    let unverified = ("match", "{ hd = \"acme.example\" }");
    let verified = ("match", "{ email_verified = true }");
    assert!(trusted(&user(&[roles, by("\"user_name\""), email, verified])).is_ok());
    for (toml, wanted) in [
        (user(&[roles, by("\"email\"")]), "`external_id` or `user_name`"),
        (user(&[roles, by("\"user_name\""), email, unverified]), "email_verified"),
        (entry(&[by("\"external_id\"")]), "needs `user_from`"),
        (user(&[roles, ("scim_account", PUSHES)]), "`scim_account` needs `scim`"),
        (
            user(&[
                roles,
                by("\"user_name\""),
                ("scim_account", "\"usr_01M754BKTK9KV856N96WMEHWY9\""),
            ]),
            "`scim_account` names only service accounts",
        ),
    ] {
        assert!(refusal(&toml).contains(wanted), "{toml}: {}", refusal(&toml));
    }
}

#[test]
fn rules_that_could_take_each_others_people_say_whose_these_are() {
    let roles = ("roles", "{ \"*\" = \"member\" }");
    let by_id = ("scim", "\"external_id\"");
    let account = ("scim_account", PUSHES);
    let first = user(&[roles, by_id]);
    let second = |changes: &[_]| user(&[&[roles, ("name", "\"second\"")], changes].concat());
    let issuer = ("issuer", "\"https://login.other.example\"");
    let claim = ("user_from", "\"oid\"");
    let org = ("org", "\"org_01M754BKTKFVJC7V0B9VHVKZBP\"");

    for (one, other, is_accepted) in [
        (first.clone(), second(&[by_id]), true),
        (first.clone(), second(&[issuer]), true),
        (first.clone(), second(&[by_id, issuer, org]), true),
        (user(&[roles, by_id, account]), second(&[by_id, issuer, account]), true),
        (first.clone(), second(&[by_id, issuer]), false),
        (first.clone(), second(&[by_id, claim]), false),
        (first.clone(), second(&[("scim", "\"user_name\"")]), false),
        (first.clone(), second(&[by_id, issuer, account]), false),
    ] {
        let read = trusted(&format!("{one}{other}"));
        let asked = read.as_ref().is_err_and(|error| error.contains("`scim_account`"));
        assert_eq!((read.is_ok(), asked), (is_accepted, !is_accepted), "{one}{other}: {read:?}");
    }
}
