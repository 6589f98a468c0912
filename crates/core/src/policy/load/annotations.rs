//! The annotations of a policy, read strictly: an annotation that is not understood would be a
//! control that silently does not exist.

use std::collections::BTreeSet;

use crate::{
    did_you_mean,
    dlp::Direction,
    policy::{
        load::{
            builtins::BUILTINS,
            obligations::{self, Fault, PolicyObligations, fault},
        },
        terms::{Effect, Phase, Severity, Status},
    },
};

/// Annotations of one policy.
#[derive(Debug, Clone)]
pub(in crate::policy) struct Annotations {
    pub(in crate::policy) id: String,
    pub(in crate::policy) title: Option<String>,
    pub(in crate::policy) description: Option<String>,
    pub(in crate::policy) reason: Option<String>,
    pub(in crate::policy) severity: Severity,
    pub(in crate::policy) priority: i32,
    pub(in crate::policy) status: Status,
    pub(in crate::policy) phase: Phase,
    pub(in crate::policy) tags: Vec<String>,
    pub(in crate::policy) owner: Option<String>,
    /// True if no org may switch it off for itself.
    pub(in crate::policy) locked: bool,
    pub(in crate::policy) obligations: PolicyObligations,
}

const LATER: [&str; 1] = ["step_up"];
const MAX_TEXT: usize = 2_000;
/// The annotations there are.
const KEYS: [&str; 16] = [
    "id", "title", "description", "reason", "owner", "tags", "severity", "locked", "mode", "phase",
    "priority", "redact", "rate_limit", "notify", "require_approval", "log",
];

/// The names that annotations may refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy) struct DeclaredNames<'a> {
    pub(in crate::policy) detectors: &'a BTreeSet<String>,
    pub(in crate::policy) webhooks: &'a BTreeSet<String>,
}

/// Reads the annotations of a policy with this effect; gives every fault at once.
pub(in crate::policy) fn read<'a>(
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
    effect: Effect,
    names: DeclaredNames<'_>,
) -> Result<Annotations, Vec<Fault>> {
    let mut read = Annotations {
        id: String::new(),
        title: None,
        description: None,
        reason: None,
        severity: Severity::Medium,
        priority: 0,
        status: Status::Active,
        phase: Phase::Request,
        tags: Vec::new(),
        owner: None,
        locked: false,
        obligations: PolicyObligations::default(),
    };
    let mut faults = Vec::new();
    for (key, value) in pairs {
        if let Err(found) = read.set(key, value, names) {
            faults.push(found);
        }
    }
    if read.id.is_empty() && !faults.iter().any(|fault| fault.key == "id") {
        faults.push(fault("id", "missing_id", "give the policy a name: `@id(\"…\")`".to_owned()));
    }
    faults.extend(read.contradiction(effect));
    if faults.is_empty() { Ok(read) } else { Err(faults) }
}

impl Annotations {
    fn set(&mut self, key: &str, value: &str, names: DeclaredNames<'_>) -> Result<(), Fault> {
        match key {
            "id" => self.id = id(value)?,
            "title" => self.title = Some(text(key, value)?),
            "description" => self.description = Some(text(key, value)?),
            "reason" => self.reason = Some(text(key, value)?),
            "owner" => self.owner = Some(text(key, value)?),
            "tags" => self.tags = obligations::list(value).map(str::to_owned).collect(),
            "severity" => {
                self.severity = one_of(key, value, &Severity::ALL, Severity::as_str)?;
            }
            "locked" => {
                // An annotation without a value has an empty one.
                let message =
                    || fault(key, "invalid_annotation", "`@locked` takes no value".to_owned());
                self.locked = value.is_empty().then_some(true).ok_or_else(message)?;
            }
            "mode" => self.status = one_of(key, value, &Status::ALL, Status::as_str)?,
            "phase" => self.phase = one_of(key, value, &Phase::ALL, Phase::as_str)?,
            "priority" => {
                let message = || fault(key, "invalid_annotation", "not a whole number".to_owned());
                self.priority = value.parse().map_err(|_| message())?;
            }
            "redact" => {
                self.obligations.redact = Some(obligations::redact(value, names.detectors)?);
            }
            "rate_limit" => self.obligations.rate = Some(obligations::rate(value)?),
            "notify" => {
                self.obligations.notify = Some(obligations::channel(value, names.webhooks)?);
            }
            "require_approval" => self.obligations.approval = Some(obligations::approval(value)?),
            "log" => self.obligations.log = Some(obligations::capture(value)?),
            later if LATER.contains(&later) => {
                let message = format!("`@{later}` is not supported yet");
                return Err(fault(key, "not_supported_yet", message));
            }
            unknown => {
                let nearest = did_you_mean(unknown, KEYS);
                let message = format!(
                    "`@{unknown}` is no annotation{nearest}; there are {}",
                    KEYS.join(", ")
                );
                return Err(fault(key, "unknown_annotation", message));
            }
        }
        Ok(())
    }

    /// Annotations that contradict each other.
    fn contradiction(&self, effect: Effect) -> Option<Fault> {
        let redacts_input = self
            .obligations
            .redact
            .as_ref()
            .is_some_and(|redact| redact.direction == Direction::Input);
        let (key, code, message) = match (effect, self.phase) {
            (Effect::Permit, _) if !self.obligations.is_empty() => (
                self.obligations.first_key(),
                "obligation_on_permit",
                "an obligation stands on a `forbid`: forbidden unless it is fulfilled",
            ),
            (Effect::Permit, Phase::Response) => (
                "phase",
                "permit_in_response",
                "a result needs no permit; only a `forbid` can be in the response phase",
            ),
            (Effect::Forbid, Phase::Response) if redacts_input => (
                "redact",
                "too_late",
                "in the response phase the input is sent already; redact the output",
            ),
            (Effect::Forbid, Phase::Response) if self.obligations.rate.is_some() => (
                "rate_limit",
                "too_late",
                "in the response phase the call is made already; limit it in the request phase",
            ),
            (Effect::Forbid, Phase::Response) if self.obligations.approval.is_some() => (
                "require_approval",
                "too_late",
                "in the response phase the call is made already; ask in the request phase",
            ),
            (Effect::Permit | Effect::Forbid, Phase::Request | Phase::Response) => return None,
        };
        Some(fault(key, code, message.to_owned()))
    }
}

fn one_of<T: Copy>(
    key: &str,
    value: &str,
    all: &[T],
    word: fn(T) -> &'static str,
) -> Result<T, Fault> {
    all.iter().copied().find(|one| word(*one) == value).ok_or_else(|| {
        let words: Vec<String> = all.iter().map(|one| format!("`{}`", word(*one))).collect();
        fault(key, "invalid_annotation", format!("`@{key}` is one of {}", words.join(", ")))
    })
}

fn text(key: &str, value: &str) -> Result<String, Fault> {
    let trimmed = value.trim();
    if trimmed.is_empty() || trimmed.len() > MAX_TEXT {
        let message = format!("`@{key}` is a text of 1 to {MAX_TEXT} bytes");
        return Err(fault(key, "invalid_annotation", message));
    }
    Ok(trimmed.to_owned())
}

/// `[a-z0-9][a-z0-9._-]{0,127}`, and not a built-in's name.
fn id(value: &str) -> Result<String, Fault> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let fits = (1..=128).contains(&value.len())
        && value.bytes().all(|byte| plain(byte) || b"._-".contains(&byte))
        && value.bytes().next().is_some_and(plain);
    if !fits {
        let message = "a policy name is 1 to 128 of a-z, 0-9, `.`, `_` and `-`, beginning with \
                       a letter or digit";
        return Err(fault("id", "invalid_id", message.to_owned()));
    }
    if BUILTINS.iter().any(|builtin| builtin.id == value) {
        return Err(fault("id", "reserved_id", format!("`{value}` is the name of a built-in")));
    }
    Ok(value.to_owned())
}
