//! Cookies of logins. Where browsers reach the gateway by `https` their names begin with `__Host-`, so
//! that no other host and no page without TLS can set them; browsers refuse such names over plain
//! HTTP, as on loopback.

use axum::http::{HeaderMap, HeaderValue, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use portcullis_core::{
    browser_session::{BrowserSecret, LONGEST, LocalPath},
    openid::LoginAttempt,
};

use crate::Gateway;

/// Cookie of a login.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cookie {
    /// The secret of the session.
    Session,
    /// Address to which the browser goes after the login.
    Return,
    /// The login that is under way at an issuer, sealed.
    Attempt,
}

impl Cookie {
    const fn name(self, secure: bool) -> &'static str {
        match (self, secure) {
            (Self::Session, true) => "__Host-portcullis-session",
            (Self::Session, false) => "portcullis-session",
            (Self::Return, true) => "__Host-portcullis-return",
            (Self::Return, false) => "portcullis-return",
            (Self::Attempt, true) => "__Host-portcullis-login",
            (Self::Attempt, false) => "portcullis-login",
        }
    }

    /// Seconds for which a browser keeps it.
    const fn life(self) -> i64 {
        match self {
            Self::Session => LONGEST,
            Self::Return | Self::Attempt => LoginAttempt::LIFE_SECONDS,
        }
    }

    /// The value that a browser sent, if it sent exactly one.
    fn read(self, secure: bool, headers: &HeaderMap) -> Option<&str> {
        let sent = headers.get_all(header::COOKIE).iter();
        let pairs = sent.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(';'));
        let named = pairs.filter_map(|pair| pair.trim().split_once('='));
        let mut values = named.filter(|(name, _)| *name == self.name(secure));
        let (_, first) = values.next()?;
        values.next().is_none().then_some(first)
    }

    fn set(self, secure: bool, value: &str, seconds: i64) -> Option<HeaderValue> {
        let only = if secure { "; Secure" } else { "" };
        let name = self.name(secure);
        let text =
            format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{only}");
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
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

    /// The login that is under way in a browser, sealed.
    pub(super) fn login_attempt<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        Cookie::Attempt.read(self.is_secure(), headers)
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
    fn a_cookie_is_bound_to_this_host_and_hidden_from_scripts() {
        let set = |secure| Cookie::Session.set(secure, "x", 60).unwrap();

        assert_eq!(
            set(true),
            "__Host-portcullis-session=x; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure"
        );
        assert_eq!(set(false), "portcullis-session=x; Path=/; Max-Age=60; HttpOnly; SameSite=Lax");
    }
}
