//! Passwords, by their names: below a key, beside a label, in a column, and in a text.
//!
//! A name that says password and nothing else is enough where a value stands alone: below a key, in a
//! cell, behind `DB_PASSWORD=`. The value may be any text that is no reference to a secret kept
//! elsewhere, no mask, no type and no dummy. A line of a program or a sentence needs more: digits
//! among letters, or three kinds of characters.

mod assignments;
mod given;
mod letters;
mod lists;
mod loud;
mod members;
mod names;
mod places;
mod strength;
mod values;

use crate::catalogue::{
    detector::{Candidate, Detector, Edges, Shape},
    secrets::vendor::vendor,
};
use strength::may_be;

pub(super) const ALL: &[Detector] = &[Detector {
    edges: Edges::Any,
    bits: 18,
    check: password,
    shape: Shape::Value {
        literals: &[
            "password",
            "passwd",
            "passphrase",
            "passcode",
            "passwort",
            "pwd",
            "pass",
            "pw",
            "psw",
            "pswd",
            "mdp",
            "secret",
            "token",
            "api key",
            "access key",
            "secret key",
            "auth key",
            "private key",
            "encryption key",
            "signing key",
            "master key",
            "authorization",
            "kennwort",
            "mot de passe",
            "contraseña",
            "contrasena",
            "contrasenya",
            "clave",
            "palavra passe",
            "senha",
            "wachtwoord",
            "hasło",
            "haslo",
            "пароль",
            "пароля",
            "парола",
            "токен",
            "секрет",
            "密码",
            "密碼",
            "口令",
            "令牌",
            "パスワード",
            "トークン",
            "비밀번호",
            "비번",
            "암호",
            "كلمة المرور",
            "كلمة السر",
            "סיסמה",
            "סיסמא",
            "şifre",
            "sifre",
            "parola",
            "mật khẩu",
            "κωδικός πρόσβασης",
            "mat khau",
            "kata sandi",
            "sandi",
            "รหัสผ่าน",
            "पासवर्ड",
            "পাসওয়ার্ড",
            "رمز عبور",
            "lösenord",
            "losenord",
            "adgangskode",
            "kodeord",
            "passord",
            "salasana",
            "heslo",
            "jelszó",
            "jelszo",
            "geslo",
            "lozinka",
            "parolă",
            "requirepass",
            "psk",
            "pre shared key",
            "wifi key",
            "wpa key",
            "hmac key",
            "license key",
            "chave de api",
            "clave de api",
            "clé api",
            "api schlüssel",
            "apiキー",
            "密钥",
            "密鑰",
            "api키",
            "ключ api",
            "api ключ",
        ],
        find: assignments::find,
    },
    ..vendor(
        "password",
        "Password or secret, given to a name that says so and nothing else",
        &[],
        "",
    )
}
.fires(&[
    r#"db_password = "n0t-A-real-0ne""#,
    r#"{"password": "hunter"}"#,
    r#"{"name": "DB_PASSWORD", "value": "hunter"}"#,
    "export PGPASSWORD='n0t-A-real-0ne'; MYSQL_PWD=n0t-A-real-0ne",
    "user,password\nada,hunter\nbob,letmein",
    "the password for the printer is n0t4real",
    r#"{"contraseña": "n0t a real 0ne"}"#,
    "dbpassword=n0t-A-real-0ne",
    r#"{"name": "DB_PASSWORD", "secret_value": "hunter2-xyz"}"#,
    r#"{"Name": "/prod/db/password", "Type": "SecureString", "Value": "hunter2-xyz"}"#,
])
.passes(&[
    "password: real_key",
    "password = getPassword()",
    r#"{"password": "string"}"#,
    r#"{"password": "your-password-here"}"#,
    r#"{"passwordField": "current-password-1"}"#,
    r#"{"password_policy": "n0t-A-real-0ne"}"#,
    "pwd=/srv/app/work1",
    "password = ${DB_PASSWORD_1}",
    "forgot password? see https://x.example/reset1",
    r#"{"token": "550e8400-e29b-41d4-a716-446655440000"}"#,
])];

/// Evidence of a value that is all that is given to a name.
const ALONE_BITS: i32 = 8;
/// Evidence of a value in a line of a program or a sentence.
const IN_TEXT_BITS: i32 = 2;

/// A candidate that is all of a value or a cell needs a name; one in a text was looked at when it was
/// found.
fn password(candidate: &Candidate<'_>) -> Option<i32> {
    let is_spare = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`');
    let before = candidate.text.get(..candidate.range.start)?;
    let name = if before.iter().all(is_spare) {
        let mut names = [candidate.key, candidate.head].into_iter().flatten();
        names.rfind(|name| names::kind(name).is_some())
    } else {
        let is_frame = |byte: &u8| matches!(byte, b' ' | b'"' | b'\'' | b'`');
        let last = before.iter().rev().find(|byte| !is_frame(byte));
        let begins_cell = last.is_some_and(|last| b",;|\t\n-*+.)".contains(last));
        match candidate.head.filter(|_| begins_cell) {
            Some(head) => Some(head).filter(|_| !candidate.matched().contains(&b' ')),
            None => return Some(IN_TEXT_BITS),
        }
    };
    let kind = names::kind(name?)?;
    may_be(kind, candidate.matched()).then_some(ALONE_BITS)
}
