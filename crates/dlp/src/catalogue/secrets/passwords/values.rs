//! Texts that stand where a secret would, and are none: references to a secret that is kept
//! elsewhere, masks, types, messages and dummies.

use std::sync::LazyLock;

use super::{
    lists::WordList,
    names::{self, Words},
};

/// Beginnings of references to a secret that is kept elsewhere.
static REFERENCES: LazyLock<WordList> = LazyLock::new(|| {
    WordList::of(
        "\
    ${ $( {{ <% %{ #{ @{ [[ ${{ vault: vault( env: env( env. op:// arn: ref+ ref: ssm: \
    secret: secrets. secretref secretkeyref aws-sm gcp-sm gcpsm sm:// akv keyvault \
    @microsoft.keyvault file: enc[ enc( {cipher} !vault !ref !sub !getatt !secret \
    process.env import.meta os.environ os.getenv getenv system.getenv env[ var. data. local. \
    module. config. keyring: pass: bws: doppler: infisical: resolve: {{resolve: projects/ \
    azurekeyvault lookup( valuefrom cmd: exec: stdin prompt: http:// https:// base64:${",
    )
});

/// Words that a value in place of a secret is made of, when all of its words are among them.
static FILLERS: LazyLock<WordList> = LazyLock::new(|| {
    WordList::of(
        "\
    a an the your my our this that it me is be of for to in with and or not no any some here \
    there goes now please change changeme changeit replace replaced insert enter put add set \
    fill type use choose provide specify paste password passwd pass pwd passphrase passcode \
    secret secrets token key keys api apikey client access auth bearer credential \
    credentials value values string str text example examples sample placeholder dummy test \
    testing fake mock foo bar baz qux foobar todo tbd fixme xxx super very strong secure \
    safe real actual own new old current previous confirm repeat again same default none \
    null nil undefined unset empty blank missing unknown redacted hidden masked filtered \
    removed omitted sensitive encrypted protected private public confidential user username \
    db database app application service server account name something anything whatever \
    required optional invalid incorrect wrong valid true false yes on off ok enabled \
    disabled bool boolean int integer number float object array list bytes byte date char \
    varchar nvarchar field input email basic oauth form random generated generate see above \
    below config env file from known after apply n na applicable plain plaintext hash hashed \
    weak short long too must match matches mismatch given good bad data id only write read \
    self pw reset expired login signin grant never always optionalstring nullable length \
    option flag argument parameter switch prompt incorrectly kwargs args params request \
    response body query payload schema locked unlocked",
    )
});

/// Words of messages: texts with spaces that hold one are sentences.
static MESSAGES: LazyLock<WordList> = LazyLock::new(|| {
    WordList::of(
        "\
    is are was the must should your be at enter please cannot can can't has have this field \
    required invalid incorrect characters to of and or not for with you we if when used use \
    least will does do doesn't don't in from by minimum maximum optional wrong debe ist est \
    muss doit es deve é é обязательно должен",
    )
});

/// Longest value of a name that is a password.
const LONGEST: usize = 256;

/// Returns true if a text may be a secret, going by what it says alone.
pub(super) fn may_be_secret(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else { return false };
    text.len() <= LONGEST
        && text.chars().count() >= 3
        && !text.chars().any(char::is_control)
        && !is_reference(text)
        && !is_masked(text)
        && !is_dummy(text)
        && !is_message(text)
}

/// Returns true if a text says where a secret is kept.
fn is_reference(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_variable = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let is_in = |open: char, close: char| text.starts_with(open) && text.ends_with(close);
    let is_path = |text: &str| {
        let steps = text.strip_prefix(['/', '.', '~']).unwrap_or_default();
        steps.contains('/') && steps.bytes().all(|byte| byte.is_ascii_graphic())
    };
    REFERENCES.prefixes(&lower).next().is_some()
        || text.strip_prefix('$').is_some_and(|name| {
            is_variable(name) && !name.starts_with(|it: char| it.is_ascii_digit())
        })
        || is_in('%', '%')
        || is_in('<', '>')
        || is_in('@', '@')
        || is_in('{', '}')
        || is_in('[', ']')
        || is_in('(', ')')
        || is_path(text)
        || lower.starts_with("/run/secrets")
        || lower.contains("/secrets/")
}

/// Returns true if a text only shows that something is left out.
fn is_masked(text: &str) -> bool {
    let is_sign = |char: char| {
        matches!(
            char,
            '*' | '•'
                | '·'
                | '●'
                | '○'
                | '∙'
                | 'x'
                | 'X'
                | '#'
                | '.'
                | '_'
                | '-'
                | '?'
                | '…'
                | '█'
                | '■'
                | '0'
                | ' '
        )
    };
    text.chars().all(is_sign) && !text.chars().all(|char| char == '0')
        || ["***", "•••", "●●●", "...", "…", "xxxx", "XXXX"].iter().any(|row| text.contains(row))
}

/// Returns true if all words of a text are such as stand in place of a secret.
pub(super) fn is_dummy(text: &str) -> bool {
    let words = Words::of(text);
    names::is_word(text) || words.iter().next().is_some() && words.iter().all(is_filler)
}

/// Returns true if a word is one of those, or joined of them.
fn is_filler(word: &str) -> bool {
    // Which of its beginnings are made of fillers.
    let mut ends = vec![false; word.len() + 1];
    if let Some(first) = ends.first_mut() {
        *first = true;
    }
    for start in 0..word.len() {
        if !ends.get(start).copied().unwrap_or_default() {
            continue;
        }
        let Some(rest) = word.get(start..) else { continue };
        for filler in FILLERS.prefixes(rest).filter(|it| it.len() > 1) {
            if let Some(end) = ends.get_mut(start + filler.len()) {
                *end = true;
            }
        }
    }
    FILLERS.holds(word) || ends.last().copied().unwrap_or_default()
}

/// Returns true if a text is a sentence about a password.
fn is_message(text: &str) -> bool {
    if !text.trim().contains(char::is_whitespace) {
        return false;
    }
    let mut parts = text.split_whitespace();
    names::speaks_of_passwords(text)
        || parts.any(|part| {
            let part = part.trim_matches(|sign: char| sign.is_ascii_punctuation());
            MESSAGES.holds(&part.to_ascii_lowercase())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dummies_and_references_are_no_secrets() {
        for value in [
            "",
            "${DB_PASSWORD}",
            "$DB_PASSWORD",
            "{{ .Values.password }}",
            "vault:secret/data/db#pw",
            "op://vault/item/field",
            "arn:aws:secretsmanager:eu-west-1:1:secret:x",
            "env:DB_PASS",
            "<password>",
            "[REDACTED]",
            "********",
            "xxxxxxxx",
            "changeme",
            "change-me",
            "CHANGE_ME",
            "your-password-here",
            "yourpassword",
            "example",
            "string",
            "null",
            "varchar",
            "Password",
            "Mot de passe",
            "Contraseña",
            "Enter your password",
            "must be at least 8 characters",
            "/run/secrets/db",
            "hunt...",
            "%DB_PASSWORD%",
            "ENC[AES256,data:x]",
            "foobar",
            "secret",
        ] {
            assert!(!may_be_secret(value.as_bytes()), "{value}");
        }
        for value in [
            "hunter2", "letmein", "qwerty", "12345678", "correct horse battery staple",
            "changeme123", "my-password-7", "P@ss", "secret99", "Example!1", "ünïcödé", "0000",
            "$3cretly", "s3cr3t/part", "admin",
        ] {
            assert!(may_be_secret(value.as_bytes()), "{value}");
        }
    }
}
