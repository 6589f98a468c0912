//! A real browser as a child process: Chromium, driven by `tests/servers/browser.mjs`.

use serde_json::{Value, json};

use crate::driven::{Driven, text};

/// A browser without a window, and with cookies of its own. It ends when it is dropped.
#[derive(Debug)]
pub struct Chromium(Driven);

/// The page that a browser shows.
#[derive(Debug, Clone)]
pub struct Sight {
    pub url: String,
    pub text: String,
}

impl Chromium {
    /// Starts one.
    pub fn start() -> Self {
        Self(Driven::start("node", "browser.mjs", &[]))
    }

    /// Opens a page, and waits for `until`: a part of the address, or a text of the page.
    pub fn go(&self, url: &str, until: &str) -> Sight {
        self.act(&json!({"do": "go", "url": url, "until": until}))
    }

    /// Clicks the button or link of this name, and waits for `until`.
    pub fn click(&self, name: &str, until: &str) -> Sight {
        self.act(&json!({"do": "click", "name": name, "until": until}))
    }

    /// Clicks this text, which is neither, and waits for `until`.
    pub fn choose(&self, name: &str, until: &str) -> Sight {
        self.act(&json!({"do": "choose", "name": name, "until": until}))
    }

    /// Moves the switch whose name has this part, and waits for `until`.
    pub fn toggle(&self, name: &str, until: &str) -> Sight {
        self.act(&json!({"do": "toggle", "name": name, "until": until}))
    }

    /// Writes a text into the field with this label or placeholder.
    pub fn fill(&self, name: &str, text: &str) {
        self.act(&json!({"do": "fill", "name": name, "text": text}));
    }

    /// Drops all cookies.
    pub fn forget(&self) {
        self.act(&json!({"do": "forget"}));
    }

    /// Answer to a `fetch` of the page: `status`, the `headers` that it may read, and `text`; or `failed`.
    pub fn ask(&self, url: &str, init: &Value) -> Value {
        let said = self.0.command(&json!({"do": "ask", "url": url, "init": init}));
        said.get("answer").cloned().unwrap_or_default()
    }

    fn act(&self, action: &Value) -> Sight {
        let seen = self.0.command(action);
        Sight { url: text(&seen, "url"), text: text(&seen, "text") }
    }
}
