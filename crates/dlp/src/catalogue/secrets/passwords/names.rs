//! Names that say that their value is a password or another secret: `password`, `db_pass`,
//! `contraseña`, `API_TOKEN`.
//!
//! A name says so with its end. What only holds such a word (`password_policy`, `max_tokens`,
//! `secret_name`, `password_changed_at`) names something else, and so does a name with a word such as
//! `has`, `reset` or `next` before.

use std::sync::LazyLock;

use super::lists::WordList;

/// Kind of secret that a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretKind {
    /// A password, which may be any text.
    Password,
    /// The same, by a word that means other things in prose.
    ShortPassword,
    /// A key or token, which looks random.
    Key,
}

/// Words that name a password wherever they end a name, in the languages of most people, without the
/// joints between their parts.
const PASSWORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "passwort",
    "kennwort",
    "motdepasse",
    "contraseña",
    "contrasena",
    "contrasenya",
    "palavrapasse",
    "senha",
    "wachtwoord",
    "hasło",
    "haslo",
    "пароль",
    "пароля",
    "парола",
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "비밀번호",
    "비번",
    "암호",
    "كلمةالمرور",
    "كلمةالسر",
    "סיסמה",
    "סיסמא",
    "şifre",
    "sifre",
    "matkhau",
    "mậtkhẩu",
    "katasandi",
    "รหัสผ่าน",
    "पासवर्ड",
    "পাসওয়ার্ড",
    "پاسورڈ",
    "رمزعبور",
    "lösenord",
    "losenord",
    "adgangskode",
    "kodeord",
    "passord",
    "salasana",
    "heslo",
    "jelszó",
    "jelszo",
    "κωδικόςπρόσβασης",
    "geslo",
    "lozinka",
    "parolă",
    "requirepass",
    "psk",
    "presharedkey",
    "wifikey",
    "wpakey",
];

/// Words that do so only as a whole word.
const SHORT: &[&str] = &["pwd", "psw", "pswd", "mdp"];

/// Words that do so alone, or behind one of the words for what they open.
const ALONE: &[&str] = &["pass", "clave", "sandi", "parola", "pw", "pasw"];

/// Words for what a password opens.
static OPENED: LazyLock<WordList> = LazyLock::new(|| {
    WordList::of(
        "\
    db database user admin root smtp mail email ftp sftp ssh mysql pg postgres redis mongo \
    amqp rabbitmq proxy login auth app wifi vpn ldap sudo my http basic imap web server \
    account service bind become truststore keystore key store ssl cert host os rdp router \
    switch device guest client owner sa api bot cluster repo registry initial temp default \
    require master vault wlan samba smb nas pop pop3 snmp",
    )
});

/// Words that name a key or a token where they end a name.
const KEYS: &[&str] = &[
    "secret",
    "token",
    "authtoken",
    "accesstoken",
    "apitoken",
    "clientsecret",
    "apisecret",
    "apikey",
    "accesskey",
    "secretkey",
    "authkey",
    "privatekey",
    "encryptionkey",
    "signingkey",
    "masterkey",
    "clientkey",
    "sessionkey",
    "accountkey",
    "sharedkey",
    "sharedaccesskey",
    "hmackey",
    "licensekey",
    "bearer",
    "chaveapi",
    "chavedeapi",
    "clavedeapi",
    "cléapi",
    "apischlüssel",
    "apikulcs",
    "apiキー",
    "api密钥",
    "api密鑰",
    "密钥",
    "api키",
    "ключapi",
    "apiключ",
    "webhookkey",
    "servicekey",
    "authorization",
    "令牌",
    "токен",
    "секрет",
    "トークン",
    "토큰",
];

/// Words after the one that names a secret that change nothing.
const TAILS: &[&str] = &["value", "text", "plain", "plaintext", "cleartext", "raw", "string"];

/// Words before that make it a name of something else.
static OTHERS: LazyLock<WordList> = LazyLock::new(|| {
    WordList::of(
        "\
    has is was no not forgot forgotten lost show hide require required requires use uses \
    allow enable enabled disable disabled min max minimum maximum last next need needs with \
    without check verify validate can should must remember toggle generate send get read num \
    total count page continuation cursor sync csrf xsrf pad eos bos unk sep cls mask special \
    stop start end resume upload cancel progress prompt input output completion reset change \
    public invalid expected missing wrong bad contract erc mint design peek",
    )
});

/// A longer name is none.
pub(super) const LONGEST: usize = 64;

/// The kind of secret that a name says its value is.
pub(super) fn kind(name: &[u8]) -> Option<SecretKind> {
    let name = std::str::from_utf8(name).ok().filter(|name| name.len() <= LONGEST)?;
    let mut words = words(name);
    while words.len() > 1 && words.last().is_some_and(|last| is_tail(last)) {
        words.pop();
    }
    let last = words.last()?.trim_end_matches(|tail: char| tail.is_ascii_digit()).to_owned();
    let mut joined = words.concat();
    joined.truncate(joined.trim_end_matches(|tail: char| tail.is_ascii_digit()).len());
    let before = words.len().checked_sub(2).and_then(|at| words.get(at));
    let ends = |known: &[&str]| known.iter().any(|word| joined.ends_with(word));
    let is = |known: &[&str], word: &str| known.contains(&word);
    let kind = if ends(PASSWORDS) || is(SHORT, &last) || is_plural(&joined) {
        SecretKind::Password
    } else if is(ALONE, &last) && before.is_none_or(|word| OPENED.holds(word)) {
        SecretKind::ShortPassword
    } else if KEYS.iter().any(|word| ends_at_word(&words, &joined, word)) {
        SecretKind::Key
    } else {
        return None;
    };
    (!words.iter().any(|word| OTHERS.holds(word))).then_some(kind)
}

/// Returns true if a text is such a word and nothing else, as titles and translations are.
pub(super) fn is_word(text: &str) -> bool {
    let joined = words(text).concat();
    [PASSWORDS, SHORT, ALONE, KEYS].iter().any(|list| list.contains(&joined.as_str()))
}

/// Returns true if a text holds a word for a password.
pub(super) fn speaks_of_passwords(text: &str) -> bool {
    let joined = words(text).concat();
    PASSWORDS.iter().any(|word| joined.contains(word))
}

fn is_plural(joined: &str) -> bool {
    ["passwords", "passphrases", "passwörter"].iter().any(|word| joined.ends_with(word))
}

fn is_tail(word: &str) -> bool {
    TAILS.contains(&word) || word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true if a name ends with a word of one or more of its parts, and not within one.
fn ends_at_word(words: &[String], joined: &str, word: &str) -> bool {
    let Some(before) = joined.len().checked_sub(word.len()) else { return false };
    let mut at = 0;
    joined.ends_with(word)
        && (!word.is_ascii()
            || words.iter().any(|part| {
                let begins = at == before;
                at += part.len();
                begins
            }))
}

/// The words that a name is joined of, in lower case: `dbPassword`, `DB_PASSWORD`, `db.password`.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    let mut chars = name.chars().peekable();
    while let Some(char) = chars.next() {
        let is_lower = |char: char| char.is_lowercase();
        let begins_hump = char.is_uppercase()
            && (is_lower(before)
                || before.is_uppercase() && chars.peek().is_some_and(|it| is_lower(*it)));
        if char.is_alphanumeric() || is_mark(char) {
            if !before.is_alphanumeric() && !is_mark(before) || begins_hump {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(char.to_lowercase());
            }
        }
        before = char;
    }
    words
}

/// Returns true for the vowel signs of scripts of India and Thailand, which are no letters.
fn is_mark(char: char) -> bool {
    matches!(char, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{e4f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_with_the_word_for_its_secret() {
        use SecretKind::{Key, Password, ShortPassword};
        for (name, expected) in [
            ("password", Some(Password)),
            ("DB_PASSWORD", Some(Password)),
            ("userPassword2", Some(Password)),
            ("PGPASSWORD", Some(Password)),
            ("spring.datasource.password", Some(Password)),
            ("Mot de passe", Some(Password)),
            ("contraseña", Some(Password)),
            ("数据库密码", Some(Password)),
            ("passwordValue", Some(Password)),
            ("MYSQL_PWD", Some(Password)),
            ("pass", Some(ShortPassword)),
            ("smtp_pass", Some(ShortPassword)),
            ("clave", Some(ShortPassword)),
            ("clientSecret", Some(Key)),
            ("X-Api-Key", Some(Key)),
            ("token", Some(Key)),
            ("boarding_pass", None),
            ("password_policy", None),
            ("token_count", None),
            ("max_tokens", None),
            ("max_token", None),
            ("secret_name", None),
            ("password_changed_at", None),
            ("has_password", None),
            ("next_page_token", None),
            ("resetPassword", None),
            ("tokens", None),
            ("key", None),
            ("compass", None),
            ("bypass", None),
            ("", None),
        ] {
            assert_eq!(kind(name.as_bytes()), expected, "{name}");
        }
    }
}
