//! `[audit]` `capture` and `[audit.retention]`: what events keep, and for how long.

use portcullis_app::Retention;
use portcullis_core::audit::Capture;
use serde::{Deserialize, Deserializer, de::Error};

use super::times::Seconds;

/// Payload that events keep where no policy says so: `"off"`, `"commit"`, `"redacted"` or
/// `"full"`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CaptureMode(pub(crate) Capture);

impl<'de> Deserialize<'de> for CaptureMode {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let name = String::deserialize(reader)?;
        let wrong = || D::Error::custom("one of \"off\", \"commit\", \"redacted\" and \"full\"");
        Capture::from_word(&name).map(Self).ok_or_else(wrong)
    }
}

/// `[audit.retention]`.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuditRetention {
    /// Whole events; 400 days when absent, 183 at least.
    events: Option<Seconds>,
    /// The payloads in them; 30 days when absent.
    payloads: Option<Seconds>,
}

impl AuditRetention {
    /// The same, with what is absent filled in.
    pub(crate) fn rule(self) -> Retention {
        let usual = Retention::default();
        Retention {
            events: self.events.map_or(usual.events, |seconds| seconds.0),
            payloads: self.payloads.map_or(usual.payloads, |seconds| seconds.0),
        }
    }

    /// Rejects retention below the minimum.
    pub(super) fn check(self) -> Result<(), String> {
        self.rule().check().map(drop).map_err(|error| format!("`[audit.retention]`: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retention(text: &str) -> Result<AuditRetention, String> {
        let read: AuditRetention = toml::from_str(text).map_err(|error| error.to_string())?;
        read.check().map(|()| read)
    }

    #[test]
    fn less_than_half_a_year_is_refused() {
        assert_eq!(retention("").unwrap().rule(), Retention::default());
        let year = retention("events = \"365d\"\npayloads = \"7d\"").unwrap().rule();
        assert_eq!((year.events, year.payloads), (365 * 86_400, 7 * 86_400));
        assert!(retention("events = \"182d\"").unwrap_err().contains("183 days"));
        assert!(retention("payloads = \"500d\"").is_err());
        assert!(retention("event = \"400d\"").is_err());
    }

    #[test]
    fn a_mode_of_capture_is_one_of_four() {
        #[derive(Deserialize)]
        struct Table {
            capture: CaptureMode,
        }
        let read = |mode: &str| toml::from_str::<Table>(&format!("capture = \"{mode}\""));

        for mode in Capture::ALL {
            assert_eq!(read(mode.as_str()).unwrap().capture.0, mode);
        }
        assert!(read("everything").is_err());
    }
}
