//! Words of a server about its failures.

use super::{Link, Server};
use crate::text;

impl Server {
    /// Cause of its last failure, if there was one: for a program, how it ended and the last lines
    /// that it wrote. Words of the upstream stand in it, which may hold anything but the
    /// credentials that it was given.
    #[must_use]
    pub fn cause(&self) -> Option<String> {
        let cause = match &self.0.link {
            Link::Http { http, .. } => http.cause(),
            Link::Stdio(stdio) => stdio.last_words(),
        };
        let said = || self.0.words.load().as_ref().map(|words| format!("its server says: {words}"));
        cause.or_else(said).map(|cause| self.without_credentials(&cause))
    }

    /// A text of the server without the credentials that it was given.
    #[must_use]
    pub fn without_credentials(&self, text: &str) -> String {
        match &self.0.link {
            Link::Http { http, .. } => match http.credential() {
                Some(credential) => text::without(text, [credential.secret()].into_iter()),
                None => text.to_owned(),
            },
            Link::Stdio(stdio) => text::without(text, stdio.secrets()),
        }
    }
}
