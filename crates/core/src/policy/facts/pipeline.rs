//! How a fact is computed: a path into the input, then one function after the other. Every function
//! says what it gives for everything, or that it fails; none runs longer than its input is long.

use std::borrow::Cow;

use serde_json::Value;

use super::{Element, Kind, path::Path, steps::Step};
use crate::policy::{engine::Plain, values};

/// The fact cannot be computed for this input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failed;

/// A parsed `from`.
#[derive(Debug)]
pub(super) struct Pipeline {
    start: Path,
    steps: Vec<Step>,
}

/// A value on its way.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item<'a> {
    Json(&'a Value),
    Text(Cow<'a, str>),
    Long(i64),
    Bool(bool),
    Decimal(i64),
}

/// What is known about the items before anything runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    /// Whatever the input holds.
    Any,
    Text,
    Long,
    Bool,
    Decimal,
}

impl Pipeline {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut stages = stages(text)?.into_iter();
        let start = stages.next().unwrap_or_default();
        let start = start
            .strip_prefix('$')
            .ok_or_else(|| format!("`{start}` does not begin with `$`, the input"))?;
        let start = Path::parse(start)?;
        let steps = stages.map(|stage| Step::parse(&stage)).collect::<Result<_, _>>()?;
        Ok(Self { start, steps })
    }

    /// Says no when no input could ever give a fact of this type.
    pub(super) fn check(&self, kind: Kind) -> Result<(), String> {
        let mut typed = Typed::Any;
        for step in &self.steps {
            typed = step.typed(typed)?;
        }
        let fits = match (kind.element, typed) {
            (_, Typed::Any)
            | (Element::Text, Typed::Text)
            | (Element::Long, Typed::Long)
            | (Element::Bool, Typed::Bool)
            | (Element::Decimal, Typed::Decimal) => true,
            (Element::Text | Element::Long | Element::Bool | Element::Decimal, _) => false,
        };
        if fits { Ok(()) } else { Err(format!("it gives no `{}`", kind.as_str())) }
    }

    pub(super) fn run<'a>(&self, input: &'a Value, kind: Kind) -> Result<Plain<'a>, Failed> {
        let selected = self.start.select(input)?;
        let mut items: Vec<Item<'a>> = selected.into_iter().map(Item::Json).collect();
        for step in &self.steps {
            items = step.apply(items)?;
        }
        let values = items.into_iter().map(|item| plain(item, kind.element));
        let mut values = values.collect::<Result<Vec<_>, _>>()?;
        if kind.set {
            return Ok(Plain::Set(values));
        }
        match (values.pop(), values.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(_), false) | (None, _) => Err(Failed),
        }
    }
}

fn plain(item: Item<'_>, element: Element) -> Result<Plain<'_>, Failed> {
    let value = match (element, item) {
        (Element::Text, Item::Text(text)) => Plain::Text(text),
        (Element::Text, Item::Json(Value::String(text))) => Plain::Text(text.into()),
        (Element::Long, Item::Long(number)) => Plain::Long(number),
        (Element::Long, Item::Json(Value::Number(number))) => {
            Plain::Long(values::integer(number.as_str()).map_err(|_| Failed)?)
        }
        (Element::Bool, Item::Bool(flag)) => Plain::Bool(flag),
        (Element::Bool, Item::Json(Value::Bool(flag))) => Plain::Bool(*flag),
        (Element::Decimal, Item::Decimal(scaled)) => Plain::Decimal(scaled),
        (Element::Decimal, Item::Json(Value::Number(number))) => {
            Plain::Decimal(values::decimal(number.as_str()).map_err(|_| Failed)?)
        }
        (Element::Text | Element::Long | Element::Bool | Element::Decimal, _) => {
            return Err(Failed);
        }
    };
    Ok(value)
}

/// The text between the bars that stand in no quotes.
fn stages(text: &str) -> Result<Vec<String>, String> {
    let (mut found, mut current, mut quote) = (Vec::new(), String::new(), None);
    for letter in text.chars() {
        match (quote, letter) {
            (None, '|') => found.push(std::mem::take(&mut current)),
            (None, '\'' | '"') => {
                quote = Some(letter);
                current.push(letter);
            }
            (Some(open), _) if open == letter => {
                quote = None;
                current.push(letter);
            }
            (None | Some(_), _) => current.push(letter),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    found.push(current);
    Ok(found.into_iter().map(|stage| stage.trim().to_owned()).collect())
}
