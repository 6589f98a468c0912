//! Obligations that a `forbid` can set instead of forbidding: each annotation's small grammar.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::Arc,
};

use serde_json::{Value, json};

use crate::{
    approval::ApprovalTerms,
    audit::Capture,
    did_you_mean,
    dlp::{Category, Finding, Mask},
};
use crate::{
    dlp::Direction,
    policy::rate::{Per, Rate},
};

/// Error in an annotation.
#[derive(Debug)]
pub(in crate::policy) struct Fault {
    /// The annotation at fault, without `@`.
    pub(in crate::policy) key: String,
    pub(in crate::policy) code: &'static str,
    pub(in crate::policy) message: String,
}

pub(in crate::policy) fn fault(key: &str, code: &'static str, message: String) -> Fault {
    Fault { key: key.to_owned(), code, message }
}

/// Detectors whose findings are masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detectors {
    All(Option<Mask>),
    /// Detectors by the names of detectors and of categories.
    Named(BTreeMap<Arc<str>, Option<Mask>>),
}

impl Detectors {
    /// Mask of a finding: `None` when it is not among those named, `Some(None)` when it is and no
    /// mask is given.
    #[must_use]
    pub fn of(&self, finding: &Finding) -> Option<Option<Mask>> {
        match self {
            Self::All(mask) => Some(*mask),
            Self::Named(names) => names
                .get(finding.detector())
                .or_else(|| names.get(finding.category().as_str()))
                .copied(),
        }
    }
}

/// Obligations of one policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::policy) struct PolicyObligations {
    pub(in crate::policy) approval: Option<Arc<ApprovalTerms>>,
    pub(in crate::policy) redact: Option<Redact>,
    pub(in crate::policy) rate: Option<Rate>,
    pub(in crate::policy) notify: Option<Channel>,
    pub(in crate::policy) log: Option<Capture>,
}

/// The obligation of `@redact`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::policy) struct Redact {
    pub(in crate::policy) direction: Direction,
    pub(in crate::policy) detectors: Detectors,
}

/// Destination of a notice.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Channel {
    /// The program's log.
    Log,
    /// The webhook of this name in the configuration.
    Webhook(Arc<str>),
}

impl PolicyObligations {
    /// Returns true if the policy forbids outright.
    pub(in crate::policy) const fn is_empty(&self) -> bool {
        self.approval.is_none()
            && self.redact.is_none()
            && self.rate.is_none()
            && self.notify.is_none()
            && self.log.is_none()
    }

    /// The annotation that makes it conditional.
    pub(in crate::policy) const fn first_key(&self) -> &'static str {
        match (&self.approval, &self.redact, &self.rate, &self.notify) {
            (Some(_), _, _, _) => "require_approval",
            (None, Some(_), _, _) => "redact",
            (None, None, Some(_), _) => "rate_limit",
            (None, None, None, Some(_)) => "notify",
            (None, None, None, None) => "log",
        }
    }

    /// The obligations as policy records and decisions show them.
    pub(in crate::policy) fn to_json(&self) -> Vec<Value> {
        let rate = self.rate.map(rate_json);
        let redact = self.redact.as_ref().map(|r| redact_json(r.direction, &r.detectors));
        let notify = self.notify.as_ref().map(channel_json);
        let log = self.log.map(|capture| ("log", json!({ "payloads": capture })));
        let approval = self.approval.as_deref().map(approval_json);
        let all = [rate, redact, notify, log, approval].into_iter().flatten();
        let numbered = |((kind, properties), number): (NamedProperties, usize)| json!({ "id": format!("o{number}"), "type": kind, "properties": properties });
        all.zip(1..).map(numbered).collect()
    }
}

/// The type of an obligation and its properties.
type NamedProperties = (&'static str, Value);

pub(in crate::policy) fn rate_json(rate: Rate) -> NamedProperties {
    let properties = json!({
        "limit": rate.count, "period_s": rate.period_s, "per": rate.per,
    });
    ("rate_limit", properties)
}

pub(in crate::policy) fn redact_json(
    direction: Direction,
    detectors: &Detectors,
) -> NamedProperties {
    let direction = match direction {
        Direction::Input => "input",
        Direction::Output => "output",
    };
    let detectors: Vec<&str> = match detectors {
        Detectors::All(_) => vec!["*"],
        Detectors::Named(names) => names.keys().map(|name| &**name).collect(),
    };
    let properties = json!({ "direction": direction, "detectors": detectors });
    ("redact", properties)
}

pub(in crate::policy) fn approval_json(terms: &ApprovalTerms) -> NamedProperties {
    ("require_approval", json!(terms))
}

fn channel_json(channel: &Channel) -> NamedProperties {
    ("notify", json!({ "to": channel.to_string() }))
}

impl std::fmt::Display for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Log => f.write_str("log"),
            Self::Webhook(name) => write!(f, "webhook:{name}"),
        }
    }
}

pub(in crate::policy) fn list(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// `input: a, b` or `output: *`; after a name, how it is masked: `output: credit_card keep_last=4`.
pub(in crate::policy) fn redact(
    value: &str,
    detectors: &BTreeSet<String>,
) -> Result<Redact, Fault> {
    let wrong = |message: String| fault("redact", "invalid_annotation", message);
    let form = "write `@redact(\"output: email, iban keep_last=4\")`, with `input` or `output`, and \
                names of detectors or categories, or `*`";
    let (direction, names) = value.split_once(':').ok_or_else(|| wrong(form.to_owned()))?;
    let direction = match direction.trim() {
        "input" => Direction::Input,
        "output" => Direction::Output,
        _ => return Err(wrong(form.to_owned())),
    };
    let mut masks = BTreeMap::new();
    for item in list(names) {
        let (name, mask) = match item.split_once(char::is_whitespace) {
            Some((name, mask)) => (name, Some(mask.trim().parse::<Mask>().map_err(wrong)?)),
            None => (item, None),
        };
        let is_known = detectors.contains(name) || is_category(name);
        if name != "*" && !is_known {
            let nearest = did_you_mean(name, detectors.iter().map(String::as_str));
            let message =
                format!("`{name}` is no detector{nearest}; `portcullis dlp detectors` lists them");
            return Err(fault("redact", "unknown_detector", message));
        }
        masks.insert(Arc::<str>::from(name), mask);
    }
    let detectors = match (masks.len(), masks.get("*")) {
        (0, _) => return Err(wrong(form.to_owned())),
        (1, Some(mask)) => Detectors::All(*mask),
        (_, Some(_)) => return Err(wrong("`*` stands alone: it names all detectors".to_owned())),
        (_, None) => Detectors::Named(masks),
    };
    Ok(Redact { direction, detectors })
}

fn is_category(name: &str) -> bool {
    Category::ALL.iter().any(|category| category.as_str() == name)
}

/// `20/1h per=principal`; without `per=`, per principal.
pub(in crate::policy) fn rate(value: &str) -> Result<Rate, Fault> {
    let form = || {
        let text = "write `@rate_limit(\"20/1h per=principal\")`: a count, a period in `s`, `m`, \
                    `h` or `d` of at most 31 days, and `principal`, `agent`, `org` or `tool`";
        fault("rate_limit", "invalid_annotation", text.to_owned())
    };
    let mut words = value.split_whitespace();
    let (count, period) = words.next().and_then(|word| word.split_once('/')).ok_or_else(form)?;
    let per = match words.next() {
        None | Some("per=principal") => Per::Principal,
        Some("per=agent") => Per::Agent,
        Some("per=org") => Per::Org,
        Some("per=tool") => Per::Tool,
        Some(_) => return Err(form()),
    };
    if words.next().is_some() {
        return Err(form());
    }
    let count = count.parse::<NonZeroU32>().map_err(|_| form())?;
    let period_s = seconds(period).ok_or_else(form)?;
    Ok(Rate { count, period_s, per })
}

/// `approvers=finance ttl=15m uses=1 approvals=1 mfa=true hidden=true`.
pub(in crate::policy) fn approval(value: &str) -> Result<Arc<ApprovalTerms>, Fault> {
    let terms = ApprovalTerms::parse(value, |text| seconds(text).map(NonZeroU32::get));
    let wrong = |message| fault("require_approval", "invalid_annotation", message);
    terms.map(Arc::new).map_err(wrong)
}

/// `90s`, `15m`, `1h` or `2d`.
fn seconds(text: &str) -> Option<NonZeroU32> {
    const LONGEST: u32 = 31 * 86_400;
    let unit = text.chars().last()?;
    let number = text.strip_suffix(unit)?;
    let number: u32 = if number.is_empty() { 1 } else { number.parse().ok()? };
    let unit = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let seconds = number.checked_mul(unit).filter(|seconds| *seconds <= LONGEST)?;
    NonZeroU32::new(seconds)
}

/// `log` or `webhook:<name>`.
pub(in crate::policy) fn channel(
    value: &str,
    webhooks: &BTreeSet<String>,
) -> Result<Channel, Fault> {
    match value.trim().split_once(':') {
        None if value.trim() == "log" => Ok(Channel::Log),
        Some(("webhook", name)) if webhooks.contains(name) => Ok(Channel::Webhook(name.into())),
        Some(("webhook", name)) => {
            let message = format!("no webhook `{name}` is configured");
            Err(fault("notify", "unknown_webhook", message))
        }
        None | Some(_) => {
            let message = "write `@notify(\"log\")` or `@notify(\"webhook:<name>\")`";
            Err(fault("notify", "invalid_annotation", message.to_owned()))
        }
    }
}

/// `off`, `commit`, `redacted` or `full`.
pub(in crate::policy) fn capture(value: &str) -> Result<Capture, Fault> {
    Capture::from_word(value.trim()).ok_or_else(|| {
        let message = "write `@log(\"full\")`, or `redacted`, `commit` or `off`";
        fault("log", "invalid_annotation", message.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_count_a_period_and_whose() {
        let told = |text: &str| {
            rate(text).map(|r| (r.count.get(), r.period_s.get(), r.per)).map_err(|_| ())
        };
        let table = [
            ("20/1h per=principal", Ok((20, 3_600, Per::Principal))),
            ("5/10m", Ok((5, 600, Per::Principal))),
            ("1/s per=tool", Ok((1, 1, Per::Tool))),
            ("100/31d per=org", Ok((100, 2_678_400, Per::Org))),
            ("3/90s  per=agent", Ok((3, 90, Per::Agent))),
            ("", Err(())),
            ("20", Err(())),
            ("0/1h", Err(())),
            ("20/0h", Err(())),
            ("20/32d", Err(())),
            ("20/1w", Err(())),
            ("-1/1h", Err(())),
            ("20/1h per=user", Err(())),
            ("20/1h per=org per=tool", Err(())),
            ("20/99999999999h", Err(())),
        ];
        for (text, expected) in table {
            assert_eq!(told(text), expected, "{text}");
        }
    }

    #[test]
    fn a_notice_goes_to_the_log_or_to_a_webhook_that_is_configured() {
        let webhooks = BTreeSet::from(["secops".to_owned()]);
        let told = |text: &str| channel(text, &webhooks).map_err(|fault| fault.code);

        assert_eq!(told("log"), Ok(Channel::Log));
        assert_eq!(told("webhook:secops"), Ok(Channel::Webhook("secops".into())));
        assert_eq!(told("webhook:typo"), Err("unknown_webhook"));
        assert_eq!(told("mail:secops"), Err("invalid_annotation"));
    }
}
