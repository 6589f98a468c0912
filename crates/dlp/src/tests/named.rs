//! Values by their names: thousands of values that a name makes secret, and near misses of each kind.

use std::collections::BTreeSet;

use super::*;

/// Names that say password and nothing else.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let names = "password, Password, PASSWORD, passwd, pwd, passphrase, db_password, \
        DB_PASSWORD, dbPassword, db-password, spring.datasource.password, PGPASSWORD, \
        mysql_pwd, smtp_pass, userPassword2, newPassword, root password, Passwort, Kennwort, \
        Mot de passe, motDePasse, mdp, contraseña, contrasena, senha, wachtwoord, hasło, \
        пароль, 密码, 密碼, パスワード, 비밀번호, كلمة المرور, סיסמה, şifre, mật khẩu, kata sandi, รหัสผ่าน, \
        lösenord, heslo";
    names.split(", ")
}

/// Names that hold such a word and say something else.
const OTHER_NAMES: &str = "password_policy passwordPolicy token_count max_tokens secret_name \
    secretName password_changed_at has_password resetPassword forgot_password next_page_token \
    nextPageToken password_hint passwordField token_type boarding_pass first_pass compass \
    passenger secret_arn tokens pad_token password_url bypass";

/// A sequence that looks random and is always the same.
pub(super) struct Sequence(pub(super) u64);

impl Sequence {
    pub(super) fn next(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    pub(super) fn of(&mut self, alphabet: &str, length: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        (0..length).map(|_| letters[self.next(letters.len())]).collect()
    }

    pub(super) fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.next(list.len())]
    }

    /// A password of one of many kinds; none is made of words that stand in place of one.
    pub(super) fn password(&mut self) -> String {
        match self.next(8) {
            0 => format!("q{}", self.of("bcdfghjklmnpqrstvz", 7)),
            1 => format!("{}-{}", self.of("bcdfghjklmnpqrstvz", 5), self.of("bcdfgz", 4)),
            2 => format!("7{}", self.of("0123456789", 6)),
            3 => format!("changeme{}", self.of("23456789", 3)),
            4 => format!("my-password-{}", self.of("bcdfghjkz", 6)),
            5 => format!("Z{}!", self.of("abcdefghijkmnpqrstuvwz23456789@!_", 11)),
            6 => format!("zebra {} kiosk", self.of("bcdfghjklmnpz", 6)),
            _ => self.strong(),
        }
    }

    /// A password with digits and letters, and no space.
    pub(super) fn strong(&mut self) -> String {
        format!("Q{}{}x", self.of("bcdfghjklmnpqrstvwz", 6), self.of("23456789", 2))
    }
}

/// Texts in place of a password, the first of them empty.
fn no_passwords() -> impl Iterator<Item = &'static str> {
    let texts = " | ${DB_PASSWORD} | $DB_PASSWORD | {{ .Values.password }} | {{password}} | \
        vault:secret/data/db#password | env:DB_PASSWORD | op://vault/item/field | \
        arn:aws:secretsmanager:eu-west-1:123456789012:secret:x | /run/secrets/db_password | \
        ******** | •••••••• | [REDACTED] | <password> | (hidden) | string | String | null | \
        None | boolean | varchar | changeme | ChangeMe | change-me | example | \
        your-password-here | YOUR_PASSWORD | yourpassword | placeholder | password | Password | \
        Passwort | Mot de passe | Contraseña | Enter your password | \
        must be at least 8 characters";
    texts.split(" | ")
}

/// The places of passwords and other named secrets in a value.
fn secrets(value: &Value) -> BTreeSet<String> {
    let found = scan(value);
    let secrets = found.iter().filter(|it| it.category() == Category::Secret && !it.is_in_key());
    secrets.map(|it| it.pointer().to_owned()).collect()
}

/// The elements of a list in which there are secrets, or those in which there are none.
fn elements(list: &[Value], secret: bool) -> Vec<&Value> {
    let found = secrets(&json!(list));
    let holds = |at| found.iter().any(|place| place.starts_with(&format!("/{at}/")));
    let those = (0_usize..).zip(list).filter(|(at, _)| holds(*at) == secret);
    those.map(|(_, value)| value).collect()
}

/// Says which of some texts, read as answers of their own, hold a secret that is not expected, or hold
/// none that is.
pub(super) fn wrong(texts: &[String], expected: bool) -> Vec<&String> {
    texts.iter().filter(|text| secrets(&json!({ "text": text })).is_empty() == expected).collect()
}

#[test]
fn an_exact_key_is_enough() {
    let mut sequence = Sequence(1);
    let mut wrong = Vec::new();
    for name in names() {
        let values: Vec<String> = (0..40).map(|_| sequence.password()).collect();
        for form in 0..7 {
            let object = |value: &String| match form {
                0 => json!({ name: value }),
                1 => json!({ "name": name, "value": value }),
                2 => json!({ "value": value, "key": name }),
                3 => json!([name, format!("{value}7")]),
                4 => json!({ "Label": name, "type": "string", "content": value }),
                5 => json!({ name: { "type": "string", "default": value } }),
                _ => json!({ name: [value] }),
            };
            let list: Vec<Value> = values.iter().map(object).collect();
            wrong.extend(elements(&list, false).into_iter().map(ToString::to_string));
        }
    }
    assert_none(&wrong, "missed");
}

#[test]
fn what_stands_in_place_of_a_password_passes() {
    let mut list = Vec::new();
    for name in names() {
        for value in no_passwords() {
            list.push(json!({ name: value }));
            list.push(json!({ "name": name, "value": value }));
        }
        list.push(json!({ name: true, "x": null }));
        list.push(json!([name, "username"]));
    }
    assert_none(&elements(&list, true), "found");
}

#[test]
fn a_name_that_only_holds_the_word_says_something_else() {
    let mut sequence = Sequence(2);
    let mut list = Vec::new();
    for name in OTHER_NAMES.split(' ') {
        for _ in 0..20 {
            let value = sequence.password();
            list.push(json!({ name: value }));
            list.push(json!({ "name": name, "value": value }));
            list.push(json!({ "text": format!("{name}={value}\n{name}: {value}") }));
        }
    }
    assert_none(&elements(&list, true), "found");
}

#[test]
fn texts_give_values_to_names() {
    let mut sequence = Sequence(3);
    let ascii: Vec<&str> = names().filter(|name| !name.contains(' ')).collect();
    let words: Vec<&str> = names().filter(|name| !["mdp", "smtp_pass"].contains(name)).collect();
    let mut texts = Vec::new();
    for _ in 0..60 {
        let name = sequence.pick(&ascii);
        let value = sequence.strong();
        let word = sequence.pick(&words);
        texts.extend([
            format!("# settings\n{name}={value}\nLOG=info"),
            format!("{name}: {value}\nport: 80"),
            format!("  {name}: \"{value}\"  # for the tests"),
            format!("[db]\n{name} = {value}\n"),
            format!("let {name} = \"{value}\";").replace('-', "_"),
            format!("config[\"{name}\"] = '{value}'"),
            format!("{{\"user\": \"ada\", \"{name}\": \"{value}\"}}"),
            format!("{{\"name\": \"{name}\", \"value\": \"{value}\"}}"),
            format!("- name: {name}\n  value: {value}"),
            format!("Your {word} is {value}."),
            format!("{word}: {value}"),
            format!("**{word}:** {value}"),
            format!("login,{name},active\nada,{value},1\nbob,{value},0"),
            format!("id\t{name}\n7\t{value}\n8\t{value}"),
            format!("| user | {word} |\n|------|------|\n| ada | {value} |"),
        ]);
        texts.push(format!("export DB_PASSWORD={}", sequence.of("bcdfghjklmnpz", 8)));
        texts.push(format!("mysql --password {value} -u root"));
        texts.push(format!("the password for the VPN is {value}"));
        texts.push(format!("Passwords:\n- {value}\n- {value}"));
    }
    assert_none(&wrong(&texts, true), &format!("of {} missed", texts.len()));
}

#[test]
fn programs_and_prose_about_passwords_pass() {
    let mut texts: Vec<String> = [
        "password = get_password()",
        "let password = config.password2;",
        "password: &str,",
        "password: String,\n    pub token: String2,",
        "const password = req.body.password1;",
        "if (password == other2) {",
        "password := os.Getenv(\"DB_PASSWORD1\")",
        "PWD=/srv/app2",
        "def login(user, password=None2):",
        "The password is required.",
        "The password is hashed with sha256 and stored.",
        "Your password is 12 characters long",
        "A token is a word; the secret is to read2 it aloud",
        "password: 'required|min:8'",
        "label: \"password\", type: \"text2\"",
        "<label for=\"password2\">Password</label>",
        "type=\"password\" name=\"password1\" id=\"password1\"",
        "{\"required\": [\"password\", \"username\"]}",
        "user,password_policy,active\nada,strong9X,1\nbob,strong9X,0",
        "pass: 12, fail: 3",
        "tests pass 7of9",
        "max_tokens=4096a",
        "password_hint: \"dog7\"",
        "this.password = options.passwordValue1",
        "--password <password1>",
        "secret: my-secret-1",
        "password=\"${DB_PASSWORD_1}\"",
        "the plugins `native_password`, `sha256_password` and others",
        "DB_PASSWORD=$(cat /run/secrets/x1)",
        "DB_PASSWORD=changeme",
        "DB_PASSWORD=",
    ]
    .map(str::to_owned)
    .to_vec();
    for name in names().filter(|name| name.is_ascii()) {
        for value in no_passwords() {
            texts.push(format!("{name}={value}\nnext line"));
            texts.push(format!("{{\"{name}\": \"{value}\"}}"));
            texts.push(format!("the {name} is {value}"));
        }
    }
    assert_none(&wrong(&texts, false), "found");
}

#[test]
fn the_most_exact_detector_reports_a_secret() {
    for (value, expected) in [
        (json!({ "password": concat!("glpat-", "F4k3abcdefghijklmnop") }), "gitlab_token"),
        (
            json!({ "token": concat!("ghp_", "F4k3F4k3abcdefghijklmnopqrst01234567") }),
            "github_token",
        ),
        (json!({ "secret": concat!("sk_", "live_aB3defghij5kLmnopq7rs") }), "stripe_key"),
        (
            json!(concat!(
                "API_TOKEN=",
                "dop_v1_",
                "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
            )),
            "digitalocean_token",
        ),
        (json!({ "client_secret": "Zq8vT3nKf0LwRj5mXyB7cHdPs2" }), "generic_secret"),
        (json!({ "password": "n0t-A-real-0ne" }), "password"),
    ] {
        assert_eq!(scan(&value).detectors(), [expected], "{value}");
    }
    let both = json!({ "password": concat!("glpat-", "F4k3abcdefghijklmnop", " zebra more") });
    assert_eq!(scan(&both).detectors(), ["gitlab_token", "password"]);
}
