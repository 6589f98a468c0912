//! A login that is under way. It is kept by the browser alone, sealed, so that any node of the installation can
//! finish it and no other browser can.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use crate::{
    browser_session::LocalPath,
    clock::Timestamp,
    idempotency::AnswerKey,
    oauth::{PkceVerifier, digest},
    random::{self, Random},
    secret::Secret,
    trust::SingleUse,
};

/// Purpose for which the key of logins under way is derived.
pub const LOGIN_ATTEMPTS: &str = "login-attempts";
/// Purpose of the seal under that key.
const ATTEMPT: &str = "attempt";
/// The longest sealed attempt: all of them are shorter, so that each fits into a cookie with its name.
const MAX_SEALED: usize = 4_000;
/// The longest path to come back to that an attempt has room for.
const MAX_RETURN: usize = 2_600;
/// Bytes of a digest of the `state` by which the cookie of an attempt is found.
const LABEL_BYTES: usize = 12;

/// Reason to ask a person who is signed in for another login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepUp {
    /// A second factor: `mfa`.
    Mfa,
    /// A level that changes of an admin need: `admin`.
    Admin,
    /// The login itself, maybe of another person: `again`.
    Again,
}

impl StepUp {
    /// The name in an address.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mfa => "mfa",
            Self::Admin => "admin",
            Self::Again => "again",
        }
    }

    /// Reads what [`Self::name`] gave.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Mfa, Self::Admin, Self::Again].into_iter().find(|step_up| step_up.name() == name)
    }
}

/// A login under way: with which issuer, and the one-time values of its request.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginAttempt {
    issuer: String,
    state: String,
    nonce: String,
    verifier: String,
    step_up: Option<StepUp>,
    return_to: Option<String>,
    expires_at: Timestamp,
}

impl fmt::Debug for LoginAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginAttempt").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl LoginAttempt {
    /// Seconds within which a person has to come back from the issuer.
    pub const LIFE_SECONDS: i64 = 15 * 60;

    /// Begins a login with the issuer of this name, after which the browser goes to `return_to`. A path of more than
    /// 2,600 bytes, for which a cookie has no room, is left out.
    #[must_use]
    pub fn begin(
        issuer: &str,
        step_up: Option<StepUp>,
        return_to: Option<&LocalPath>,
        now: Timestamp,
        source: &dyn Random,
    ) -> Self {
        let return_to = return_to.map(LocalPath::as_str).filter(|path| path.len() <= MAX_RETURN);
        let value = || URL_SAFE_NO_PAD.encode(random::bytes::<32>(source));
        Self {
            issuer: issuer.to_owned(),
            state: value(),
            nonce: value(),
            verifier: PkceVerifier::generate(source).secret().expose().to_owned(),
            step_up,
            return_to: return_to.map(str::to_owned),
            expires_at: now.plus_seconds(Self::LIFE_SECONDS),
        }
    }

    /// The name of the issuer in the configuration.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The `state` of the request.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Returns true if a browser came back with the state of this login. Compares hashes, so that the time tells
    /// nothing.
    #[must_use]
    pub fn has_state(&self, sent: &str) -> bool {
        digest(&self.state) == digest(sent)
    }

    /// The `nonce` that the ID token has to repeat.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.nonce
    }

    /// The secret behind the PKCE challenge.
    #[must_use]
    pub fn verifier(&self) -> PkceVerifier {
        PkceVerifier::from_stored(Secret::new(self.verifier.clone()))
    }

    /// Proof that the login needs besides the identity of the person.
    #[must_use]
    pub const fn step_up(&self) -> Option<StepUp> {
        self.step_up
    }

    /// The path that the browser goes to afterwards, if the login was begun with one.
    #[must_use]
    pub fn return_to(&self) -> Option<LocalPath> {
        self.return_to.as_deref().and_then(LocalPath::parse)
    }

    /// Label of the login with this `state` among those of its browser: 16 letters, digits, `-` and `_`.
    #[must_use]
    pub fn label(state: &str) -> String {
        URL_SAFE_NO_PAD.encode(digest(state).get(..LABEL_BYTES).unwrap_or_default())
    }

    /// Record by which this login is finished once.
    #[must_use]
    pub fn once(&self) -> SingleUse {
        // No issuer has a space in its name, so that this never uses up the `jti` of one.
        SingleUse {
            issuer: "login state".to_owned(),
            jti: self.state.clone(),
            until: self.expires_at,
        }
    }
}

/// Seals the logins under way of one installation.
#[derive(Debug)]
pub struct LoginKey(AnswerKey);

impl LoginKey {
    /// From 32 bytes that are used for nothing else.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        Self(AnswerKey::new(key))
    }

    /// Seals a login for its browser. `None` if the cipher fails, which it does for no input.
    #[must_use]
    pub fn seal(&self, attempt: &LoginAttempt, source: &dyn Random) -> Option<Secret> {
        let text = serde_json::to_vec(attempt).ok()?;
        let sealed = self.0.seal_of_installation(ATTEMPT, &text, source)?;
        Some(Secret::new(URL_SAFE_NO_PAD.encode(sealed)))
    }

    /// Opens what a browser brought back. `None` if it was changed, is over its time, or was never sealed here.
    #[must_use]
    pub fn open(&self, sealed: &str, now: Timestamp) -> Option<LoginAttempt> {
        if sealed.len() > MAX_SEALED {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let text = self.0.open_of_installation(ATTEMPT, &sealed)?;
        let attempt: LoginAttempt = serde_json::from_slice(&text).ok()?;
        (now < attempt.expires_at).then_some(attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Sevens;

    const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_000_000);

    #[test]
    fn a_login_opens_in_this_installation_until_its_time_is_over() {
        let key = LoginKey::new(&[1; 32]);
        let path = LocalPath::parse("/oauth/authorize?a=b");
        let attempt = LoginAttempt::begin("okta", Some(StepUp::Mfa), path.as_ref(), NOW, &Sevens);

        let sealed = key.seal(&attempt, &Sevens).unwrap();

        let sealed = sealed.expose();
        assert_eq!(key.open(sealed, NOW), Some(attempt.clone()));
        assert_eq!(key.open(sealed, NOW).unwrap().return_to(), path);
        let last = NOW.plus_seconds(LoginAttempt::LIFE_SECONDS);
        assert_eq!(key.open(sealed, last), None);
        assert_eq!(LoginKey::new(&[2; 32]).open(sealed, NOW), None);
        assert_eq!(key.open(&sealed[1..], NOW), None);
        assert_eq!(key.open(&format!("{sealed}A"), NOW), None);
        assert_eq!(key.open("", NOW), None);
        assert_eq!(key.open(&"A".repeat(5_000), NOW), None);
        for hidden in [attempt.state(), attempt.nonce(), attempt.verifier().secret().expose()] {
            assert!(!sealed.contains(hidden));
            assert!(!format!("{attempt:?}").contains(hidden));
        }
    }

    #[test]
    fn a_sealed_login_fits_into_a_cookie() {
        let key = LoginKey::new(&[1; 32]);
        let name = "n".repeat(32);
        for (length, kept) in [(MAX_RETURN, true), (MAX_RETURN + 1, false)] {
            let path = LocalPath::parse(&format!("/{}", "x".repeat(length - 1))).unwrap();
            let attempt =
                LoginAttempt::begin(&name, Some(StepUp::Admin), Some(&path), NOW, &Sevens);

            let sealed = key.seal(&attempt, &Sevens).unwrap();

            assert_eq!(attempt.return_to(), kept.then_some(path));
            assert!(sealed.expose().len() < MAX_SEALED, "{}", sealed.expose().len());
        }
    }

    #[test]
    fn only_the_state_of_the_login_is_its_state() {
        let attempt = LoginAttempt::begin("okta", None, None, NOW, &Sevens);

        assert!(attempt.has_state(attempt.state()));
        for other in ["", "x", &attempt.state()[1..], &format!("{}=", attempt.state())] {
            assert!(!attempt.has_state(other), "{other}");
        }
        assert_eq!(attempt.once().jti, attempt.state());
        assert_eq!(LoginAttempt::label(attempt.state()).len(), 16);
        assert_ne!(LoginAttempt::label(attempt.state()), LoginAttempt::label("x"));
    }

    #[test]
    fn reasons_to_ask_for_more_have_names() {
        for step_up in [StepUp::Mfa, StepUp::Admin, StepUp::Again] {
            assert_eq!(StepUp::from_name(step_up.name()), Some(step_up));
        }
        assert_eq!(StepUp::from_name("MFA"), None);
    }
}
