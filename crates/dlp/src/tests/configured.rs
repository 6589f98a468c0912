//! Detectors, exceptions, masks and rule files from the configuration.

use std::ops::Range;

use super::*;
use portcullis_json::Document;

fn configured(settings: Value) -> Result<Engine, SettingsError> {
    Engine::new(&serde_json::from_value(settings).unwrap())
}

fn problems(settings: Value) -> Vec<String> {
    configured(settings).unwrap_err().problems().to_vec()
}

/// A detector of one's own with these changes.
fn staff(changes: Value) -> Value {
    let mut detector = json!({
        "name": "staff_number",
        "category": "national_id",
        "pattern": "EMP-[0-9]{6}",
        "literals": ["emp-"],
        "must_match": ["ask EMP-123456", r#"{"id": "EMP-654321"}"#],
        "must_not_match": ["EMP-12345", "TEMP-123456"],
    });
    let Value::Object(changes) = changes else { panic!("no object") };
    detector.as_object_mut().unwrap().extend(changes);
    json!({ "custom": [detector] })
}

fn detectors(engine: &Engine, value: &Value) -> Vec<String> {
    let findings = engine.scan(value, &key()).unwrap();
    findings.detectors().into_iter().map(str::to_owned).collect()
}

#[test]
fn a_detector_of_ones_own_finds_acts_and_is_named() {
    let engine = configured(staff(json!({}))).unwrap();

    let findings = engine.scan(&json!({"a": ["see EMP-123456"]}), &key()).unwrap();

    let finding = findings.iter().next().unwrap();
    assert_eq!((finding.detector(), finding.pointer()), ("staff_number", "/a/0"));
    assert_eq!(engine.default_action(finding, Direction::Output), Action::Redact);
    assert!(engine.names().contains(&"staff_number"));
    assert!(engine.samples().iter().all(Sample::holds));
    assert_eq!(engine.samples().len(), 4);
}

#[test]
fn the_placeholder_of_a_detector_of_ones_own_names_nothing() {
    let own = configured(staff(json!({ "name": "ssn_of_staff" }))).unwrap();
    let value = json!("[REDACTED:ssn_of_staff] 536228726");

    assert_eq!(detectors(engine(), &value), ["us_ssn"]);
    assert!(detectors(&own, &value).is_empty());
}

#[test]
fn a_detector_without_literals_looks_at_everything() {
    let engine = configured(staff(json!({ "literals": [] }))).unwrap();

    assert_eq!(detectors(&engine, &json!(["x", {"EMP-123456": 1}])), ["staff_number"]);
}

#[test]
fn context_checksum_and_entropy_count() {
    let needs_context = staff(json!({
        "pattern": "[0-9]{16}", "literals": [], "checksum": "luhn", "context": ["badge"],
        "needs_context": true,
        "must_match": [r#"{"badge": "1234567812345670"}"#, "badge 1234567812345670"],
        "must_not_match": ["1234567812345670", r#"{"badge": "1234567812345671"}"#],
    }));
    let random = staff(json!({
        "pattern": "key_([a-z0-9]{12})", "literals": ["key_"], "min_entropy": 3.0,
        "must_match": ["key_a1b2c3d4e5f6"], "must_not_match": ["key_aaaaaaaaaaaa"],
    }));

    for settings in [needs_context, random] {
        assert!(configured(settings).is_ok());
    }
}

#[test]
fn everything_wrong_with_a_detector_is_told_with_its_name() {
    for (changes, wanted) in [
        (json!({ "name": "Staff Number" }), "a name is"),
        (json!({ "name": "email" }), "two detectors `email`"),
        (json!({ "pattern": "EMP-(" }), "`pattern`"),
        (json!({ "pattern": "(?=x)" }), "`pattern`"),
        (json!({ "pattern": "[0-9]*" }), "nothing at all"),
        (json!({ "pattern": "(?:a{1000}){1000}" }), "`pattern`"),
        (json!({ "literals": ["e"] }), "a literal"),
        (json!({ "needs_context": true }), "`needs_context`"),
        (json!({ "must_match": [] }), "`must_match`"),
        (
            json!({ "must_match": ["EMP-1"] }),
            "`must_match` sample 1 is not found: its form is `AAA-0`",
        ),
        (json!({ "must_match": ["Emp 123456"] }), "the pattern is `EMP-[0-9]{6}`"),
        (json!({ "must_not_match": ["x", "EMP-123456"] }), "`must_not_match` sample 2 is found"),
    ] {
        let told = problems(staff(changes.clone()));

        assert!(told.iter().any(|it| it.contains(wanted)), "{changes}: {told:?}");
        assert!(!told.iter().any(|it| it.contains("123456")), "{told:?}");
    }
}

#[test]
fn a_faulty_detector_is_named_with_its_place() {
    let text = "[dlp.floor]\n\n[[dlp.custom]]\nname = \"a\"\n[[dlp.custom]]\nname = \"b\"\n";
    let bad = staff(json!({ "pattern": "EMP-(" }));
    let mut custom: Vec<Custom> = serde_json::from_value(bad["custom"].clone()).unwrap();
    custom.push(custom[0].clone());
    custom[1].name = "b".to_owned();
    Custom::stand_in(&mut custom, "portcullis.toml", text);

    let error = Engine::new(&Settings { custom, ..Settings::default() }).unwrap_err();

    let wanted = [(3, "staff_number"), (5, "b")];
    let wanted = wanted.map(|(line, name)| {
        format!("portcullis.toml:{line}: detector `{name}`: `pattern`: unclosed group")
    });
    assert_eq!(error.problems(), wanted);
}

#[test]
fn an_exception_lets_pass_exactly_what_it_names() {
    let body = json!({ "a": { "to": "ada@example.org" }, "to": "bob@example.org" });
    let print = |place: usize| {
        let findings = scan(&body);
        findings.iter().nth(place).unwrap().fingerprints()[0].to_string()
    };
    let subject = Subject::of(key()).calling("crm:get_person");
    for (allow, left) in [
        (json!({ "path": "/a/*" }), "/to"),
        (json!({ "path": "/a/**", "tool": "crm:*" }), "/to"),
        (json!({ "regex": "ada@.*" }), "/to"),
        (json!({ "fingerprints": [print(1)] }), "/a/to"),
        (json!({ "fingerprints": [print(0)], "detectors": ["email"] }), "/to"),
    ] {
        let engine = configured(json!({ "allow": [allow] })).unwrap();

        let findings = engine.scan_for(&body, &subject).unwrap();

        let places: Vec<&str> = findings.iter().map(Finding::pointer).collect();
        assert_eq!(places, [left], "{allow}");
        let masked = engine.redact_value(&body, &findings, |_| Some(Mask::Placeholder));
        assert_eq!(masked.to_string().matches("REDACTED").count(), 1, "{masked}");
    }
    for allow in [
        json!({ "path": "/a/to", "tool": "other:*" }),
        json!({ "path": "/a/to", "detectors": ["iban"] }),
        json!({ "regex": "ada" }),
    ] {
        let engine = configured(json!({ "allow": [allow] })).unwrap();
        assert_eq!(engine.scan_for(&body, &subject).unwrap().count(), 2, "{allow}");
    }
}

/// Settings that let everything pass.
fn lax() -> Value {
    let off = json!({ "enabled": false, "input": "flag", "output": "flag" });
    let unsure = json!({ "min_likelihood": "very_likely", "output": "flag" });
    json!({
        "actions": { "input": { "secret": "flag" }, "output": { "secret": "flag" } },
        "detectors": { "github_token": off, "gitlab_token": unsure, "private_key": off },
        "allow": [{ "path": "/**", "reason": "all of it" }],
    })
}

#[test]
fn keys_and_tokens_of_clouds_and_code_hosts_are_acted_on_whatever_is_set() {
    let key_of_a_machine = concat!(
        "-----BEGIN RSA PRIVATE ",
        "KEY-----\nMIIEpAIBAAKCAQEA1c7+9z5Pad7OejecsQ0bu3aozN3tihPmUtkTZhk1Hp8gBxCR\n-----END RSA PRIVATE KEY-----"
    );
    let body = json!({
        "a": concat!("glpat-", "F4k3abcdefghijklmnop"),
        "b": key_of_a_machine,
        "c": { "password": "hunter2xyz" },
    });
    let acted = |settings: Value| {
        let engine = configured(settings).unwrap();
        let findings = engine.scan(&body, &key()).unwrap();
        let actions = [Direction::Input, Direction::Output];
        let acted = findings.iter().map(|it| actions.map(|way| engine.default_action(it, way)));
        (findings.detectors().into_iter().map(str::to_owned).collect(), acted.collect())
    };

    let (names, actions): (Vec<String>, Vec<_>) = acted(lax());
    assert_eq!(names, ["gitlab_token", "private_key"]);
    assert!(actions.iter().all(|it| *it == [Action::Block, Action::Redact]), "{actions:?}");

    let mut without = lax();
    without["floor"] = json!(false);
    let (names, _): (Vec<String>, Vec<[Action; 2]>) = acted(without);
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn a_value_on_the_floor_is_allowed_by_its_fingerprint_alone() {
    let body = json!({ "a": concat!("glpat-", "F4k3abcdefghijklmnop") });
    let print = scan(&body).iter().next().unwrap().fingerprints()[0].to_string();
    let found = |allow: Value| {
        let engine = configured(json!({ "allow": [allow] })).unwrap();
        engine.scan(&body, &key()).unwrap().count()
    };

    assert_eq!(found(json!({ "regex": "glpat-.*" })), 1);
    assert_eq!(found(json!({ "path": "/a" })), 1);
    assert_eq!(found(json!({ "fingerprints": [print], "path": "/a" })), 0);
}

#[test]
fn an_exception_that_says_nothing_or_nonsense_is_refused() {
    for (allow, wanted) in [
        (json!({}), "say at least one"),
        (json!({ "detectors": ["email"] }), "say at least one"),
        (json!({ "detectors": ["emial"], "path": "/a" }), "`emial`"),
        (json!({ "path": "a" }), "JSON Pointer"),
        (json!({ "regex": "(" }), "`regex`"),
        (json!({ "fingerprints": ["abc"] }), "`abc`"),
    ] {
        let told = problems(json!({ "allow": [allow] }));

        assert!(told.len() == 1 && told[0].contains(wanted), "{allow}: {told:?}");
        assert!(told[0].contains("entry 1"), "{told:?}");
    }
}

#[test]
fn masks_keep_a_part_or_a_pseudonym() {
    let settings = json!({
        "masks": { "contact": "pseudonym" },
        "detectors": { "credit_card": { "mask": "keep_last=4" } },
    });
    let engine = configured(settings).unwrap();
    let masked = |value: Value, byte: u8| {
        let findings = engine.scan(&value, &FingerprintKey::new([byte; 32])).unwrap();
        engine.redact_value(&value, &findings, |finding| Some(engine.default_mask(finding)))
    };
    let body = || {
        json!([
            "4111 1111 1111 1111", {"card": 4_111_111_111_111_111_u64}, "a ada@example.org b",
        ])
    };

    let here = masked(body(), 1);

    assert_eq!(here[0], "[REDACTED:credit_card:1111]");
    assert_eq!(here[1]["card"], "[REDACTED:credit_card:1111]");
    let pseudonym = here[2].as_str().unwrap();
    assert!(pseudonym.starts_with("a [email:") && pseudonym.ends_with("] b"), "{pseudonym}");
    assert_eq!(masked(json!(["", "ADA@example.org"]), 1)[1], pseudonym[2..pseudonym.len() - 2]);
    assert_ne!(masked(body(), 2)[2], here[2]);
    let encoded = masked(json!(["ada%40example.org"]), 1);
    assert_eq!(encoded[0], pseudonym[2..pseudonym.len() - 2]);
}

#[test]
fn what_is_masked_fits_the_schema() {
    let schema = json!({"properties": {
        "card": {"type": "integer"}, "note": {"type": "string", "maxLength": 12},
    }});
    let value = json!({"card": 4_111_111_111_111_111_u64, "note": "ada@example.org"});
    let findings = scan(&value);

    let document = Document::of(&value);
    let mask = |_: &Finding| Some(Mask::Placeholder);
    let masked = engine().redact(&document, &findings, Some(&schema), mask).root().to_value();

    assert_eq!(masked, json!({"card": 0, "note": "[REDACTED]"}));
}

const RULES: &str = r#"
    title = "rules"
    allowlist = { regexes = ["^EXAMPLE", '^\$(?:\d+|{\d+})$'], stopwords = ["placeholder"] }

    [[rules]]
    id = "acme-api-key"
    description = "x"
    keywords = ["acme"]
    entropy = 2.5
    regex = "(?i)acme[a-z_ .\\-]{0,20}[=:]\\s*['\"]?([a-z0-9]{20})"

    [[rules]]
    id = "only-a-path"
    path = "\\.p12$"
"#;

/// An engine with the rules of this text, and with others.
fn ruled(rules: &str, others: Option<Gitleaks>) -> Result<Engine, SettingsError> {
    let rules = Gitleaks::parse("r.toml".to_owned(), rules).unwrap();
    let gitleaks = [rules].into_iter().chain(others).collect();
    Engine::new(&Settings { gitleaks, ..Settings::default() })
}

#[test]
fn rules_of_gitleaks_find_secrets() {
    let engine = ruled(RULES, None).unwrap();

    let found =
        |text: &str| detectors(&engine, &json!(text)).contains(&"gitleaks_acme_api_key".to_owned());

    assert!(found("acme_key = 'a1b2c3d4e5f6g7h8i9j0'"));
    assert!(!found("acme_key = 'aaaaaaaaaaaaaaaaaaaa'"));
    assert!(!found("acme_key = 'placeholder12345678a'"));
    assert!(!found("other_key = 'a1b2c3d4e5f6g7h8i9j0'"));
}

#[test]
fn rules_of_gitleaks_read_a_key_and_its_value_as_one_line() {
    let engine = ruled(RULES, None).unwrap();
    let value = json!({
        "acme_key": "a1b2c3d4e5f6g7h8i9j0",
        "other": "a1b2c3d4e5f6g7h8i9j0",
        "acme": { "key": "a1b2c3d4e5f6g7h8i9j0" },
    });

    let findings = engine.scan(&value, &key()).unwrap();

    let found: Vec<(&str, Range<usize>)> = findings
        .iter()
        .filter(|finding| finding.detector() == "gitleaks_acme_api_key")
        .flat_map(|finding| finding.ranges().map(|range| (finding.pointer(), range)))
        .collect();
    assert_eq!(found, [("/acme_key", 0..20)]);
    let masked = engine.redact_value(&value, &findings, |_| Some(Mask::Placeholder));
    assert!(!masked["acme_key"].to_string().contains("a1b2c3"), "{masked}");
}

#[test]
fn a_rule_that_does_not_compile_is_named_with_its_file() {
    let broken = RULES.replace("[a-z0-9]{20}", "(?!x)");
    let none = Gitleaks::parse("none.toml".to_owned(), "").unwrap();

    let error = ruled(&broken, Some(none)).unwrap_err().to_string();

    for named in ["`r.toml`, rule `acme-api-key` on line 5: `regex`: ", "none.toml"] {
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn what_a_detector_outside_reports_is_masked_like_the_rest() {
    let external = [("person_name".to_owned(), Category::Contact)].into();
    let engine = Engine::new(&Settings { external, ..Settings::default() }).unwrap();
    let value = json!({ "é Ada": "by Grace Ü, grace@example.org", "n": 1 });
    let subject = Subject::of(key());
    let texts = engine.texts(&value).unwrap();
    let report = |place, start, end| Reported {
        place,
        detector: "person_name".to_owned(),
        start,
        end,
        likelihood: Likelihood::Likely,
    };
    assert_eq!(texts.iter().map(|text| text.place).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(texts[3].text, "1");

    let own = engine.scan_for(&value, &subject).unwrap();
    let all =
        engine.add_reported(&value, &own, &[report(0, 2, 5), report(1, 3, 10)], &subject).unwrap();

    assert_eq!(all.detectors(), ["email", "person_name"]);
    assert!(all.iter().all(|finding| !finding.pointer().contains("Ada")), "{all:?}");
    assert_eq!(
        engine.redact_value(&value, &all, |_| Some(Mask::Placeholder)),
        json!({ "é [REDACTED:person_name]": "by [REDACTED:person_name], [REDACTED:email]", "n": 1 })
    );
    for nonsense in [report(9, 0, 1), report(0, 4, 90), report(0, 3, 3)] {
        assert!(engine.add_reported(&value, &own, &[nonsense], &subject).is_none());
    }
    let unknown = Reported { detector: "mood".to_owned(), ..report(0, 0, 1) };
    assert!(engine.add_reported(&value, &own, &[unknown], &subject).is_none());
}

#[test]
fn media_are_counted_and_hidden_characters_go() {
    let value = json!({ "content": [
        { "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" },
        { "type": "audio", "data": "iVBORw0KGgo=" },
        { "type": "resource", "resource": { "blob": "iVBORw0KGgo=", "mimeType": "video/mp4" } },
        { "type": "text", "data": "no", "text": "do\u{E0041}\u{202E} it" },
    ]});

    let findings = scan(&value);

    assert_eq!(findings.media(), 3);
    assert_eq!(findings.detectors(), ["hidden_characters"]);
    let masked = engine().redact_value(&value, &findings, |_| Some(Mask::Placeholder));
    assert_eq!(masked.pointer("/content/3/text").unwrap(), "do it");
}
