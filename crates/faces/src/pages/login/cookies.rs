//! Cookies of logins. Where browsers reach the gateway by `https` their names begin with `__Host-`, so
//! that no other host and no page without TLS can set them; browsers refuse such names over plain
//! HTTP, as on loopback.

use axum::http::{HeaderMap, HeaderValue, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use portcullis_app::BegunLogin;
use portcullis_core::{
    browser_session::{BrowserSecret, LONGEST, LocalPath},
    clock::Timestamp,
    openid::LoginAttempt,
};

use crate::gateway::Gateway;

/// Logins that a browser has under way at once. The oldest makes room for another.
const MAX_ATTEMPTS: usize = 8;
/// Bytes of all cookies of the gateway in a browser: heads of requests have a limit (HTTP/2: 16 KiB), and in the one
/// that comes back from an issuer there is much else. A login with the longest path fits beside a session.
const MAX_BYTES: usize = 7 << 10;

/// Cookie of a login.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cookie {
    /// The secret of the session.
    Session,
    /// Address to which the browser goes after the login.
    Return,
}

impl Cookie {
    const fn name(self, secure: bool) -> &'static str {
        match (self, secure) {
            (Self::Session, true) => "__Host-portcullis-session",
            (Self::Session, false) => "portcullis-session",
            (Self::Return, true) => "__Host-portcullis-return",
            (Self::Return, false) => "portcullis-return",
        }
    }

    /// Seconds for which a browser keeps it.
    const fn life(self) -> i64 {
        match self {
            Self::Session => LONGEST,
            Self::Return => LoginAttempt::LIFE_SECONDS,
        }
    }

    /// The value that a browser sent, if it sent exactly one.
    fn read(self, secure: bool, headers: &HeaderMap) -> Option<&str> {
        let mut values = sent(headers).filter(|(name, _)| *name == self.name(secure));
        let (_, first) = values.next()?;
        values.next().is_none().then_some(first)
    }

    /// Bytes of those of this name that a browser sent.
    fn bytes(self, secure: bool, headers: &HeaderMap) -> usize {
        let name = self.name(secure);
        sent(headers).filter(|it| it.0 == name).map(|it| name.len() + it.1.len()).sum()
    }

    fn set(self, secure: bool, value: &str, seconds: i64) -> Option<HeaderValue> {
        set(self.name(secure), secure, value, seconds)
    }
}

/// Names and values of the cookies that a browser sent.
fn sent(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let sent = headers.get_all(header::COOKIE).iter();
    let pairs = sent.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(';'));
    pairs.filter_map(|pair| pair.trim().split_once('='))
}

fn set(name: &str, secure: bool, value: &str, seconds: i64) -> Option<HeaderValue> {
    let only = if secure { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{only}");
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A login under way at an issuer that a browser brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeptAttempt<'a> {
    /// The name of its cookie: the microsecond in which it began, and its label.
    name: &'a str,
    begun_at: i64,
    label: &'a str,
    pub(super) sealed: &'a str,
}

const fn attempt_prefix(secure: bool) -> &'static str {
    if secure { "__Host-portcullis-login-" } else { "portcullis-login-" }
}

impl<'a> KeptAttempt<'a> {
    fn read(secure: bool, name: &'a str, sealed: &'a str) -> Option<Self> {
        let (begun_at, label) = name.strip_prefix(attempt_prefix(secure))?.split_once('-')?;
        Some(Self { name, begun_at: begun_at.parse().ok()?, label, sealed })
    }

    fn bytes(&self) -> usize {
        self.name.len() + self.sealed.len()
    }

    /// Those that have to go so that one has room that has `bytes` with all other cookies, the oldest first.
    fn without_room(mut kept: Vec<Self>, bytes: usize) -> Vec<Self> {
        kept.sort_unstable_by_key(|it| it.begun_at);
        let mut total = bytes + kept.iter().map(Self::bytes).sum::<usize>();
        let mut left = kept.len() + 1;
        let has_no_room = |it: &Self| {
            let too_much = left > MAX_ATTEMPTS || total > MAX_BYTES;
            left -= usize::from(too_much);
            total -= if too_much { it.bytes() } else { 0 };
            too_much
        };
        kept.into_iter().take_while(has_no_room).collect()
    }
}

impl Gateway {
    /// Returns true if browsers reach the gateway by `https`.
    pub(super) fn is_secure(&self) -> bool {
        let public = self.app.providers.public_url();
        self.mcp.guard.is_secure() || public.is_some_and(|url| url.starts_with("https://"))
    }

    /// The secret of the session that a browser brings.
    pub(super) fn session_secret(&self, headers: &HeaderMap) -> Option<BrowserSecret> {
        BrowserSecret::parse(Cookie::Session.read(self.is_secure(), headers)?)
    }

    /// The logins that are under way in a browser.
    fn attempts<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = KeptAttempt<'a>> {
        let secure = self.is_secure();
        sent(headers).filter_map(move |(name, sealed)| KeptAttempt::read(secure, name, sealed))
    }

    /// The login under way in a browser that has this `state`, if the browser sent exactly one.
    pub(super) fn attempt<'a>(
        &self,
        state: Option<&str>,
        headers: &'a HeaderMap,
    ) -> Option<KeptAttempt<'a>> {
        let label = LoginAttempt::label(state?);
        let mut found = self.attempts(headers).filter(|it| it.label == label);
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    /// Gives a browser the cookie of a login that began `now`, beside those of its others; if they are too many, takes
    /// the path of a login by a link, then the oldest of them.
    pub(super) fn keep_attempt(
        &self,
        begun: &BegunLogin,
        now: Timestamp,
        brought: &HeaderMap,
        headers: &mut HeaderMap,
    ) {
        let secure = self.is_secure();
        let (begun_at, label) = (now.as_micros(), LoginAttempt::label(&begun.state));
        let name = format!("{}{begun_at}-{label}", attempt_prefix(secure));
        let sealed = begun.sealed.expose();
        let kept: Vec<_> = self.attempts(brought).collect();
        let others = kept.iter().map(KeptAttempt::bytes).sum::<usize>();
        let mut bytes = name.len() + sealed.len() + Cookie::Session.bytes(secure, brought);
        let path = Cookie::Return.bytes(secure, brought);
        if path > 0 && bytes + path + others > MAX_BYTES {
            self.drop_cookie(Cookie::Return, headers);
        } else {
            bytes += path;
        }
        for old in KeptAttempt::without_room(kept, bytes) {
            self.drop_attempt(old, headers);
        }
        if let Some(set) = set(&name, secure, sealed, LoginAttempt::LIFE_SECONDS) {
            headers.append(header::SET_COOKIE, set);
        }
    }

    /// Takes the cookie of a login that was under way from the browser.
    pub(super) fn drop_attempt(&self, attempt: KeptAttempt<'_>, headers: &mut HeaderMap) {
        if let Some(set) = set(attempt.name, self.is_secure(), "", 0) {
            headers.append(header::SET_COOKIE, set);
        }
    }

    /// Gives a browser the path that it goes to after a login by a link, if its other cookies leave room for it.
    pub(super) fn keep_return(
        &self,
        path: &LocalPath,
        brought: &HeaderMap,
        headers: &mut HeaderMap,
    ) {
        let secure = self.is_secure();
        let logins = self.attempts(brought).map(|it| it.bytes()).sum::<usize>();
        let others = logins + Cookie::Session.bytes(secure, brought);
        let value = utf8_percent_encode(path.as_str(), VALUE).map(str::len).sum::<usize>();
        if others + Cookie::Return.name(secure).len() + value > MAX_BYTES {
            self.drop_cookie(Cookie::Return, headers);
        } else {
            self.set_cookie(Cookie::Return, path.as_str(), headers);
        }
    }

    /// The path that a browser goes to after a login; the page of the person if it brings none.
    pub(super) fn return_path(&self, headers: &HeaderMap) -> LocalPath {
        let kept = Cookie::Return.read(self.is_secure(), headers);
        let path = kept.and_then(|text| percent_decode_str(text).decode_utf8().ok());
        path.and_then(|path| LocalPath::parse(&path)).unwrap_or_else(|| self.home())
    }

    /// The page that a login leads to by itself: the console, or that of the person without one.
    pub(super) fn home(&self) -> LocalPath {
        let console = self.console.then(|| LocalPath::parse("/console")).flatten();
        console.unwrap_or_else(LocalPath::start)
    }

    /// Gives the browser a cookie.
    pub(super) fn set_cookie(&self, cookie: Cookie, value: &str, headers: &mut HeaderMap) {
        let value = utf8_percent_encode(value, VALUE).to_string();
        if let Some(set) = cookie.set(self.is_secure(), &value, cookie.life()) {
            headers.append(header::SET_COOKIE, set);
        }
    }

    /// Takes the cookie of a session that has ended from the browser.
    pub(crate) fn drop_session(&self, headers: &mut HeaderMap) {
        self.drop_cookie(Cookie::Session, headers);
    }

    /// Takes a cookie from the browser.
    pub(super) fn drop_cookie(&self, cookie: Cookie, headers: &mut HeaderMap) {
        if let Some(set) = cookie.set(self.is_secure(), "", 0) {
            headers.append(header::SET_COOKIE, set);
        }
    }
}

/// Letters that do not stand in a value as they are; those of secrets do.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(cookies: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(header::COOKIE, cookie.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_cookie_is_read_under_its_name_and_only_once() {
        let read = |secure, cookies: &[&str]| {
            Cookie::Session.read(secure, &headers(cookies)).map(str::to_owned)
        };

        assert_eq!(read(true, &["a=b; __Host-portcullis-session=x"]).as_deref(), Some("x"));
        assert_eq!(read(true, &["portcullis-session=x"]), None);
        assert_eq!(read(false, &["portcullis-session=x;c=d"]).as_deref(), Some("x"));
        assert_eq!(read(false, &["portcullis-session=x; portcullis-session=y"]), None);
        assert_eq!(read(false, &["portcullis-session=x", "portcullis-session=y"]), None);
        assert_eq!(read(false, &["Portcullis_session=x"]), None);
        assert_eq!(read(false, &[]), None);
    }

    #[test]
    fn the_oldest_logins_under_way_make_room_for_another() {
        let big = "x".repeat(3_000);
        let dropped = |secure, cookies: &[&str]| {
            let headers = headers(cookies);
            let kept = sent(&headers)
                .filter_map(|(name, value)| KeptAttempt::read(secure, name, value))
                .collect();
            let gone = KeptAttempt::without_room(kept, 3_000);
            gone.iter().map(|it| it.begun_at).collect::<Vec<_>>()
        };
        let many: Vec<_> = (1..=9).rev().map(|at| format!("portcullis-login-{at}-l=x")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();

        assert_eq!(dropped(false, &many[2..]), [] as [i64; 0]);
        assert_eq!(dropped(false, &many[1..]), [1]);
        assert_eq!(dropped(false, &[many.join("; ").as_str()]), [1, 2]);
        assert_eq!(dropped(true, &many), [] as [i64; 0], "cookies of other hosts are none of ours");
        let large = [9, 3].map(|at| format!("__Host-portcullis-login-{at}-l={big}"));
        assert_eq!(dropped(true, &[large[0].as_str(), large[1].as_str()]), [3]);
        assert_eq!(dropped(true, &["__Host-portcullis-login-l=x", "a=b"]), [] as [i64; 0]);
    }

    #[test]
    fn a_cookie_is_counted_with_its_name_as_often_as_it_is_sent() {
        let headers = headers(&["portcullis-return=abc; a=b", "portcullis-return=d"]);

        assert_eq!(Cookie::Return.bytes(false, &headers), 2 * "portcullis-return".len() + 4);
        assert_eq!(Cookie::Return.bytes(true, &headers), 0);
    }

    #[test]
    fn a_cookie_is_bound_to_this_host_and_hidden_from_scripts() {
        let set = |secure| Cookie::Session.set(secure, "x", 60).unwrap();

        assert_eq!(
            set(true),
            "__Host-portcullis-session=x; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure"
        );
        assert_eq!(set(false), "portcullis-session=x; Path=/; Max-Age=60; HttpOnly; SameSite=Lax");
    }
}
