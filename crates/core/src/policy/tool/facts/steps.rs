//! The functions of a pipeline.

use regex::{Regex, RegexBuilder};
use url::Url;

use crate::json::{JsonValue, Kind, Node};
use crate::policy::tool::facts::{
    item::{Failed, Item, Typed},
    path::Path,
};
use crate::policy::tool::values;

/// One function.
#[derive(Debug)]
pub(super) enum FactStep {
    /// `select(.path[*])`: goes further into what there is.
    Select(Path),
    /// Number of items.
    Count,
    /// Length of each item: letters of a text, items of an array, members of an object.
    Len,
    /// Each text in lower case.
    Lower,
    /// The part behind the `@` of each address.
    EmailDomain,
    /// The host of each URL, in lower case.
    Host,
    /// The last part of each path.
    Basename,
    /// True for each text that matches.
    Matches(Regex),
    /// Each number, or text that is one, as a decimal.
    Number,
}

/// Maximum size of a compiled expression, in bytes.
const MAX_REGEX: usize = 1 << 20;

impl FactStep {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Some(argument) = call("matches", text) {
            let expression = unquoted(argument)
                .ok_or_else(|| format!("write the expression of `{text}` in quotes"))?;
            let regex = RegexBuilder::new(expression).size_limit(MAX_REGEX).build();
            return regex.map(Self::Matches).map_err(|error| error.to_string());
        }
        if let Some(argument) = call("select", text) {
            return Path::parse(argument).map(Self::Select);
        }
        Ok(match text {
            "count" => Self::Count,
            "len" => Self::Len,
            "lower" => Self::Lower,
            "email_domain" => Self::EmailDomain,
            "host" => Self::Host,
            "basename" => Self::Basename,
            "number" => Self::Number,
            _ => {
                return Err(format!(
                    "`{text}` is none of `select(…)`, `count`, `len`, `lower`, `email_domain`, \
                     `host`, `basename`, `matches('…')` and `number`"
                ));
            }
        })
    }

    /// Returns the type of the result for this type of items; fails when the step could only fail.
    pub(super) fn typed(&self, given: Typed) -> Result<Typed, String> {
        let (takes, result): (&[Typed], Typed) = match self {
            Self::Select(_) => (&[], Typed::Any),
            Self::Count => return Ok(Typed::Long),
            Self::Len => (&[Typed::Text], Typed::Long),
            Self::Lower | Self::EmailDomain | Self::Host | Self::Basename => {
                (&[Typed::Text], Typed::Text)
            }
            Self::Matches(_) => (&[Typed::Text], Typed::Bool),
            Self::Number => (&[Typed::Text], Typed::Decimal),
        };
        if given == Typed::Any || takes.contains(&given) {
            Ok(result)
        } else {
            Err("a function is given what it cannot take; check the order".to_owned())
        }
    }

    pub(super) fn apply<'a>(&self, items: Vec<Item<'a>>) -> Result<Vec<Item<'a>>, Failed> {
        if let Self::Count = self {
            let count = i64::try_from(items.len()).map_err(|_| Failed)?;
            return Ok(vec![Item::Long(count)]);
        }
        let mut given = Vec::with_capacity(items.len());
        for item in items {
            match (self, &item) {
                (Self::Select(path), Item::Json(value)) => {
                    given.extend(path.select(*value)?.into_iter().map(Item::Json));
                }
                (Self::Len, Item::Json(value)) => given.push(Item::Long(length(*value)?)),
                (Self::Number, Item::Json(node)) if node.number().is_some() => {
                    let literal = node.number().unwrap_or_default();
                    let scaled = values::decimal(literal).map_err(|_| Failed)?;
                    given.push(Item::Decimal(scaled));
                }
                _ => given.push(self.of_text(text(&item)?)?),
            }
        }
        Ok(given)
    }

    fn of_text<'a>(&self, text: &str) -> Result<Item<'a>, Failed> {
        let owned = |text: &str| Item::Text(text.to_owned().into());
        Ok(match self {
            Self::Select(_) | Self::Count => return Err(Failed),
            Self::Len => Item::Long(i64::try_from(text.chars().count()).map_err(|_| Failed)?),
            Self::Lower => Item::Text(text.to_lowercase().into()),
            Self::EmailDomain => owned(email_domain(text)?),
            Self::Host => Item::Text(host(text)?.into()),
            Self::Basename => owned(basename(text)?),
            Self::Matches(regex) => Item::Bool(regex.is_match(text)),
            Self::Number => Item::Decimal(values::decimal_text(text).map_err(|_| Failed)?),
        })
    }
}

fn call<'a>(name: &str, text: &'a str) -> Option<&'a str> {
    text.strip_prefix(name)?.trim_start().strip_prefix('(')?.strip_suffix(')').map(str::trim)
}

fn unquoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|letter| ['\'', '"'].contains(letter))?;
    text.strip_prefix(quote)?.strip_suffix(quote)
}

fn text<'i>(item: &'i Item<'_>) -> Result<&'i str, Failed> {
    match item {
        Item::Text(text) => Ok(text),
        Item::Json(node) => node.text().ok_or(Failed),
        Item::Long(_) | Item::Bool(_) | Item::Decimal(_) => Err(Failed),
    }
}

fn length(value: Node<'_>) -> Result<i64, Failed> {
    let length = match value.kind() {
        Kind::Text(text) => text.chars().count(),
        Kind::Array(_) | Kind::Object(_) => value.len(),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => return Err(Failed),
    };
    i64::try_from(length).map_err(|_| Failed)
}

/// Of one address, also of one written `Name <address>`. Whatever could be read as several
/// addresses fails: the domain of one of them would speak for all.
fn email_domain(text: &str) -> Result<&str, Failed> {
    let text = text.trim();
    let address = match text.strip_suffix('>') {
        Some(named) => named.split_once('<').ok_or(Failed)?.1,
        None => text,
    };
    let (local, domain) = address.rsplit_once('@').ok_or(Failed)?;
    let plain = |letter: char| {
        !letter.is_whitespace() && !letter.is_control() && !",;:<>()[]\\\"@".contains(letter)
    };
    let domain = domain.strip_suffix('.').unwrap_or(domain);
    let fits = !local.is_empty() && !domain.is_empty();
    let clean = local.chars().all(plain) && domain.chars().all(plain);
    let before = text.split_once('<').map_or("", |(name, _)| name);
    // A name may hold anything but what begins another address.
    let named = !before.contains(['@', ',', ';', '<', '>']);
    if fits && clean && named { Ok(domain) } else { Err(Failed) }
}

/// As browsers read it.
fn host(text: &str) -> Result<String, Failed> {
    let url = Url::parse(text).map_err(|_| Failed)?;
    url.host_str().filter(|host| !host.is_empty()).map(str::to_lowercase).ok_or(Failed)
}

fn basename(text: &str) -> Result<&str, Failed> {
    let last = text.rsplit(['/', '\\']).next().unwrap_or(text);
    if last.is_empty() { Err(Failed) } else { Ok(last) }
}
