//! Names that say that their value is a password or another secret: `password`, `db_pass`,
//! `contraseña`, `API_TOKEN`.
//!
//! A name says so with its end. What only holds such a word (`password_policy`, `max_tokens`,
//! `secret_name`, `password_changed_at`) names something else, and so does a name with a word such as
//! `has`, `reset` or `next` before.

use std::sync::LazyLock;

use super::lists::{WordEnds, WordList};
use crate::catalogue::lists::{KEY, PASSWORD};

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

static PASSWORD_ENDS: LazyLock<WordEnds> =
    LazyLock::new(|| WordEnds::of(&[*PASSWORD, PLURALS].concat()));

/// Plurals that say so as well.
const PLURALS: &[&str] = &["passwords", "passphrases", "passwörter"];

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

static KEY_ENDS: LazyLock<WordEnds> = LazyLock::new(|| WordEnds::of(&KEY));

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
    if !may_be_known(name) {
        return None;
    }
    let name = std::str::from_utf8(name).ok().filter(|name| name.len() <= LONGEST)?;
    let mut words = Words::of(name);
    while words.begins.len() > 1 && words.last().is_some_and(is_tail) {
        words.pop();
    }
    let joined = trim_number(&words.joined);
    let last = trim_number(words.last()?);
    let kind = if PASSWORD_ENDS.ends_of(joined).next().is_some() || SHORT.contains(&last) {
        SecretKind::Password
    } else if ALONE.contains(&last) && words.before_last().is_none_or(|word| OPENED.holds(word)) {
        SecretKind::ShortPassword
    } else if KEY_ENDS.ends_of(joined).any(|word| words.ends_with(joined, word)) {
        SecretKind::Key
    } else {
        return None;
    };
    (!words.iter().any(|word| OTHERS.holds(word))).then_some(kind)
}

/// Returns false for a name whose last two letters are those of no word. Most names that a literal wakes for
/// end here, before they are split.
fn may_be_known(name: &[u8]) -> bool {
    let known = last_letters(name).and_then(|(last, second)| {
        LAST_LETTERS.get(usize::from(last)).map(|before| before >> second & 1 == 1)
    });
    known.unwrap_or(!name.is_ascii())
}

/// The last letter of a name but for joints and digits, and the one before it, by their places in the alphabet.
fn last_letters(name: &[u8]) -> Option<(u8, u8)> {
    let letters = name.iter().rev().filter(|byte| byte.is_ascii_alphanumeric());
    let mut letters = letters.skip_while(|byte| byte.is_ascii_digit());
    let mut next = || Some(letters.next()?.to_ascii_lowercase().wrapping_sub(b'a') & 31);
    Some((next()?, next()?)).filter(|_| name.is_ascii())
}

/// By the last letter of the words that end a name, a bit for each letter before it.
static LAST_LETTERS: LazyLock<[u32; 32]> = LazyLock::new(|| {
    let mut known = [0; 32];
    for word in [*PASSWORD, PLURALS, SHORT, ALONE, *KEY, TAILS].concat() {
        if let Some((last, second)) = last_letters(word.as_bytes())
            && let Some(before) = known.get_mut(usize::from(last))
        {
            *before |= 1 << second;
        }
    }
    known
});

/// Returns true if a text is such a word and nothing else, as titles and translations are.
pub(super) fn is_word(text: &str) -> bool {
    let joined = Words::of(text).joined;
    [*PASSWORD, SHORT, ALONE, *KEY].iter().any(|list| list.contains(&joined.as_str()))
}

/// Returns true if a text holds a word for a password.
pub(super) fn speaks_of_passwords(text: &str) -> bool {
    let joined = Words::of(text).joined;
    PASSWORD.iter().any(|word| joined.contains(word))
}

fn trim_number(word: &str) -> &str {
    word.trim_end_matches(|tail: char| tail.is_ascii_digit())
}

fn is_tail(word: &str) -> bool {
    TAILS.contains(&word) || word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The words that a name is joined of, in lower case: `dbPassword`, `DB_PASSWORD`, `db.password`.
#[derive(Default)]
pub(super) struct Words {
    joined: String,
    /// Offset of each word.
    begins: Vec<usize>,
}

impl Words {
    /// The words of a name.
    pub(super) fn of(name: &str) -> Self {
        if name.is_ascii() {
            return Self::of_ascii(name);
        }
        let mut words = Self::default();
        let mut before = ' ';
        let mut chars = name.chars().peekable();
        while let Some(char) = chars.next() {
            let begins_hump = char.is_uppercase()
                && (before.is_lowercase()
                    || before.is_uppercase() && chars.peek().is_some_and(|it| it.is_lowercase()));
            if char.is_alphanumeric() || is_mark(char) {
                if !before.is_alphanumeric() && !is_mark(before) || begins_hump {
                    words.begins.push(words.joined.len());
                }
                words.joined.extend(char.to_lowercase());
            }
            before = char;
        }
        words
    }

    /// The same without tables of letters: nearly every name is written in ASCII.
    fn of_ascii(name: &str) -> Self {
        let mut joined = Vec::with_capacity(name.len());
        let mut begins = Vec::new();
        let mut before = b' ';
        for (byte, next) in name.bytes().zip(name.bytes().skip(1).chain([b' '])) {
            let begins_hump = byte.is_ascii_uppercase()
                && (before.is_ascii_lowercase()
                    || before.is_ascii_uppercase() && next.is_ascii_lowercase());
            if byte.is_ascii_alphanumeric() {
                if begins_hump || !before.is_ascii_alphanumeric() {
                    begins.push(joined.len());
                }
                joined.push(byte.to_ascii_lowercase());
            }
            before = byte;
        }
        Self { joined: String::from_utf8(joined).unwrap_or_default(), begins }
    }

    /// The words in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let ends = self.begins.iter().skip(1).copied().chain([self.joined.len()]);
        self.begins.iter().zip(ends).filter_map(|(begin, end)| self.joined.get(*begin..end))
    }

    fn last(&self) -> Option<&str> {
        self.joined.get(*self.begins.last()?..)
    }

    fn before_last(&self) -> Option<&str> {
        let [.., begin, end] = self.begins.as_slice() else { return None };
        self.joined.get(*begin..*end)
    }

    fn pop(&mut self) {
        if let Some(begin) = self.begins.pop() {
            self.joined.truncate(begin);
        }
    }

    /// Returns true if `joined`, a beginning of these words, ends with a word that is made of one or more
    /// of them, and not within one.
    fn ends_with(&self, joined: &str, word: &str) -> bool {
        joined
            .strip_suffix(word)
            .is_some_and(|before| !word.is_ascii() || self.begins.contains(&before.len()))
    }
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
