//! Rule files and patterns that would switch detectors off, cost too much, or never match.

use std::fmt::Write as _;

use super::*;

fn parsed(rules: &str) -> Result<Gitleaks, String> {
    Gitleaks::parse("r.toml".to_owned(), rules)
}

fn ruled(rules: &str) -> Result<Engine, SettingsError> {
    let gitleaks = vec![parsed(rules).unwrap()];
    Engine::new(&Settings { gitleaks, ..Settings::default() })
}

fn found(engine: &Engine, text: &str) -> Vec<String> {
    let findings = engine.scan(&json!(text), &key()).unwrap();
    let names = findings.detectors().into_iter().filter(|name| name.starts_with("gitleaks_"));
    names.map(str::to_owned).collect()
}

/// Two rules, and what follows in their file.
fn pair(more: &str) -> String {
    let rule = |id: &str, more: &str| {
        format!(
            "[[rules]]\nid = '{id}'\nregex = '{id}-([a-z0-9]{{12}})'\nkeywords = ['{id}-']\n{more}\n"
        )
    };
    rule("qqa", "") + &rule("qqb", "") + more
}

const TEXT: &str = "see qqa-abc123def456 and qqb-abc123def456";

#[test]
fn an_allowlist_lets_pass_no_more_than_in_gitleaks() {
    let (both, first, none) =
        (&["gitleaks_qqa", "gitleaks_qqb"][..], &["gitleaks_qqa"][..], &[][..]);
    for (list, wanted) in [
        ("regexes = ['.*']", none),
        ("regexes = ['.*']\ntargetRules = ['qqb']", first),
        ("paths = ['x']\nregexes = ['.*']\ncondition = '&&'", both),
        ("commits = ['x']\nstopwords = ['abc']\ncondition = 'and'", both),
        ("paths = ['x']\nregexes = ['.*']\ncondition = '||'", none),
        ("regexes = ['.*']\nstopwords = ['zzz']\ncondition = 'AND'", both),
        ("regexes = ['.*']\nstopwords = ['ABC']\ncondition = 'AND'", none),
        ("regexes = ['xyz']\nstopwords = ['abc']\ncondition = 'OR'", none),
        ("regexes = ['^abc']\nregexTarget = 'line'", both),
        ("regexes = ['abc']\nregexTarget = 'match'", none),
        ("regexes = ['^abc']\nregexTarget = 'secret'", none),
        ("regexes = ['^abc']\nstopwords = ['abc']\nregexTarget = 'match'\ncondition = '&&'", both),
    ] {
        let engine = ruled(&pair(&format!("[[allowlists]]\n{list}"))).unwrap();
        assert_eq!(found(&engine, TEXT), wanted, "{list}");
    }
    for list in ["[rules.allowlist]", "[[rules.allowlists]]"] {
        let engine = ruled(&pair(&format!("{list}\nregexes = ['.*']"))).unwrap();
        assert_eq!(found(&engine, TEXT), first, "{list}");
    }
}

#[test]
fn what_has_no_meaning_here_is_refused_with_its_place() {
    let rule = "[[rules]]\nid = 'a'\nregex = 'ab-[0-9]{9}'\n";
    for (file, wanted) in [
        (
            pair("[[allowlists]]\nregexes = ['x']\ntargetRules = ['qqc']"),
            "allowlist on line 11: `targetRules` names no rule `qqc`",
        ),
        (pair("[[allowlists]]\nregexes = ['x']\ncondition = 'NOT'"), "line 11: `condition` is"),
        (
            pair("[[allowlists]]\nregexes = ['x']\nregexTarget = 'file'"),
            "line 11: `regexTarget` is",
        ),
        (
            pair("[[allowlists]]\nregexes = ['x']\nstopWords = ['x']"),
            "line 11: there is no key `stopWords` (did you mean `stopwords`?)",
        ),
        (pair("[[allowlists]]\ndescription = 'x'"), "line 11: it lists nothing"),
        (pair("[[allowlists]]\nstopwords = ['']"), "line 11: an empty stop word"),
        (
            pair("[[rules.allowlists]]\nregexes = ['x']\ntargetRules = ['qqa']"),
            "rule `qqb` on line 6: `targetRules`",
        ),
        (format!("{rule}keyword = ['ab']"), "rule `a` on line 1: there is no key `keyword`"),
        (format!("{rule}skipReport = true"), "rule `a` on line 1: `required` and `skipReport`"),
        (format!("{rule}[[rules.required]]\nid = 'b'"), "rule `a` on line 1: `required`"),
        (format!("{rule}[extend]\nuseDefault = true"), "name each rule file in `dlp.gitleaks`"),
        (format!("{rule}[extend]\ndisabledRules = ['b']"), "`enabled = false`"),
        (format!("{rule}[[allowlist]]\nregexes = ['x']"), "`r.toml` is no rule file"),
        (format!("files = []\n{rule}"), "unknown field `files`"),
        ("[[rules]]\nid = 'a'".to_owned(), "it has no `regex`"),
    ] {
        let told = parsed(&file).unwrap_err();
        assert!(told.contains(wanted), "{file}\n{told}");
    }
    for (regex, more, wanted) in [
        ("(a)b(c)", "secretGroup = 3", "it has 2 groups, and group 3"),
        (r"ab\hc", "", r"`\h` is no escape"),
        ("ab(?x)c", "", "`x` is no flag"),
    ] {
        let told = ruled(&format!("[[rules]]\nid = 'a'\nregex = '{regex}'\n{more}"));
        let told = told.unwrap_err().to_string();
        assert!(told.contains("`r.toml`, rule `a` on line 1: `regex`: "), "{told}");
        assert!(told.contains(wanted), "{told}");
    }
}

#[test]
fn a_rule_finds_what_go_finds() {
    for (regex, more, text) in [
        (r"abx[a&&b]zzq[0-9]{6}", "keywords = ['abx']", "abx&zzq482913"),
        (r"acx[%--/]zzq[0-9]{6}", "keywords = ['acx']", "acx-zzq482913"),
        (r"aex[a[b]c]zzq[0-9]{6}", "", "aex[c]zzq482913"),
        (r"aix\xe9zzq[0-9]{6}", "keywords = ['aix']", "aixézzq482913"),
        (r"akx.zzq[0-9]{6}", "", "akxézzq482913"),
        (r"(?i)alxÉzzq[0-9]{6}", "", "alxézzq482913"),
        (r"anx[^a-z]zzq[0-9]{6}", "", "anxézzq482913"),
        (r"ayx\/zzq\<\>[0-9]{6}", "", "ayx/zzq<>482913"),
        (r"bax()([0-9]{6})", "keywords = ['bax']", "bax482913"),
        (r"bbx(?:(x)|y)([0-9]{6})", "", "bbxy482913"),
        (r"bcx(z?)[0-9]{6}", "secretGroup = 1", "bcx482913"),
        (r"bdx([a-z])([0-9]{6})", "secretGroup = 0", "bdxa482913"),
        (r"(?i)schlüssel-[0-9]{6}", "keywords = ['schlüssel']", "SCHLÜSSEL-482913"),
    ] {
        let engine = ruled(&format!("[[rules]]\nid = 'r'\nregex = '{regex}'\n{more}")).unwrap();
        assert_eq!(found(&engine, &format!("q {text} w")), ["gitleaks_r"], "{regex}");
    }
}

#[test]
fn rules_have_so_much_room_and_no_more() {
    let many = |count: usize| {
        (0..count).fold(String::new(), |mut rules, number| {
            let _ = write!(rules, "[[rules]]\nid = 'r{number}'\nregex = 'r{number}x[0-9]{{6}}'\n");
            rules
        })
    };
    let told = ruled(&many(70_000)).unwrap_err().to_string();
    assert!(told.contains("there are 70000 custom detectors and rules"), "{told}");

    let large = (0..2_000).fold(String::new(), |mut rules, number| {
        let _ = write!(
            rules,
            "[[rules]]\nid = 'r{number}'\nregex = 'x{number}[a-z]{{900}}[0-9]{{900}}'\n"
        );
        rules
    });
    let told = ruled(&large).unwrap_err();
    assert_eq!(told.problems().len(), 1);
    assert!(told.to_string().contains("MiB that compiled rules may have"), "{told}");

    let regexes: Vec<String> = (0..200).map(|number| format!("'x{number}[a-z]{{20}}'")).collect();
    let shared = format!("{}[allowlist]\nregexes = [{}]", many(300), regexes.join(", "));
    assert_eq!(found(&ruled(&shared).unwrap(), "q r7x482913"), ["gitleaks_r7"]);
}

#[test]
fn values_that_many_regexes_may_let_pass_are_charged_for_them() {
    let regexes: Vec<String> = (0..200).map(|number| format!("'x{number}[a-z]{{20}}'")).collect();
    let list = format!("[allowlist]\nregexes = [{}]", regexes.join(", "));
    let text = json!("qqa-abc123def456 ".repeat(500));
    let [plain, listed] = [String::new(), list].map(|list| {
        let engine = ruled(&pair(&list)).unwrap();
        engine.steps(&text).unwrap()
    });

    assert!(listed - plain >= 500 * 12 * 200, "{plain} {listed}");
}

#[test]
fn rules_that_look_at_every_text_are_told_of_where_they_cost_too_much() {
    let rules = |count: usize| {
        (0..count).fold(String::new(), |mut rules, number| {
            let _ = write!(rules, "[[rules]]\nid = 'r{number}'\nregex = 'r{number}x[0-9]{{6}}'\n");
            rules
        })
    };
    let told = |count| ruled(&rules(count)).unwrap().cost_warning();

    assert_eq!(told(100), None);
    let warning = told(1_100).unwrap();
    assert!(warning.starts_with("1100 custom detectors"), "{warning}");
}

/// An engine with one pattern of the configuration.
fn custom(pattern: &str, literals: &[&str], sample: &str) -> Engine {
    let detector = json!({
        "name": "heavy", "category": "secret", "pattern": pattern, "literals": literals,
        "must_match": [sample], "must_not_match": ["zzz"],
    });
    let settings = json!({ "custom": [detector] });
    Engine::new(&serde_json::from_value(settings).unwrap()).unwrap()
}

#[test]
fn a_pattern_that_looks_far_ahead_costs_in_proportion_to_the_text() {
    let engine = custom("q[0-9](?:.*[0-9]{3}z)?", &["q1"], "q1 ");
    let steps = |times: usize| engine.steps(&json!("q1 ".repeat(times))).unwrap();

    let (small, large) = (steps(8_000), steps(32_000));

    assert!(large < 5 * small, "{small} {large}");
    assert!(small > 8_000 * 1_000, "each search reads far ahead: {small}");
}

#[test]
fn a_pattern_with_countless_states_is_charged_for_them() {
    let sample = format!("a{}c", "b".repeat(1_000));
    let engine = custom("[ab]*a[ab]{1000}c", &[], &sample);
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if state >> 31 == 0 { 'a' } else { 'b' }
    };
    let text: String = (0..200_000).map(|_| next()).collect();

    assert!(matches!(engine.scan(&json!(text), &key()), Err(Unscannable::TooCostly { .. })));
}

#[test]
fn a_search_ends_between_two_stretches_when_the_pace_says_so() {
    let engine = custom("q[0-9](?:.*[0-9]{3}z)?", &[], "q1 ");
    let text = json!("q1 ".repeat(30_000));
    let subject = Subject::of(key());

    assert!(engine.scan_at(&text, &subject, |steps| steps < 1 << 20).unwrap().is_none());
}

#[test]
fn a_match_at_the_border_of_two_stretches_is_found_whole() {
    let engine = custom("q[0-9]{6}z", &[], "q123456z");
    for before in 4_060..4_130 {
        for before in [before, before + 4_096] {
            let text = format!("{} q482913z {}", "x".repeat(before), "y".repeat(9_000));
            let findings = engine.scan(&json!(text), &key()).unwrap();
            let ranges: Vec<_> =
                findings.iter().flat_map(|it| it.ranges().collect::<Vec<_>>()).collect();
            assert!(
                ranges.len() == 1 && ranges[0] == (before + 1..before + 9),
                "{before} {ranges:?}"
            );
        }
    }
}
