//! Pipelines that compute facts: a path into the input, then one function after the other. Every
//! function defines its result for everything, or that it fails; none runs longer than its input is
//! long.

use super::item::{Failed, Item, Typed};
use crate::policy::tool::facts::{
    kind::{FactElement, FactKind},
    path::Path,
    steps::FactStep,
};
use crate::{
    json::{JsonValue, Kind, Node},
    policy::{engine::Plain, tool::values},
};

/// A parsed `from`.
#[derive(Debug)]
pub(super) struct Pipeline {
    start: Path,
    steps: Vec<FactStep>,
}

impl Pipeline {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut stages = stages(text)?.into_iter();
        let start = stages.next().unwrap_or_default();
        let start = start
            .strip_prefix('$')
            .ok_or_else(|| format!("`{start}` does not begin with `$`, the input"))?;
        let start = Path::parse(start)?;
        let steps = stages.map(|stage| FactStep::parse(&stage)).collect::<Result<_, _>>()?;
        Ok(Self { start, steps })
    }

    /// Fails when no input could ever give a fact of this type.
    pub(super) fn check(&self, kind: FactKind) -> Result<(), String> {
        let mut typed = Typed::Any;
        for step in &self.steps {
            typed = step.typed(typed)?;
        }
        let fits = match (kind.element, typed) {
            (_, Typed::Any)
            | (FactElement::Text, Typed::Text)
            | (FactElement::Long, Typed::Long)
            | (FactElement::Bool, Typed::Bool)
            | (FactElement::Decimal, Typed::Decimal) => true,
            (
                FactElement::Text | FactElement::Long | FactElement::Bool | FactElement::Decimal,
                _,
            ) => false,
        };
        if fits { Ok(()) } else { Err(format!("it gives no `{}`", kind.as_str())) }
    }

    pub(super) fn run<'a>(&self, input: Node<'a>, kind: FactKind) -> Result<Plain<'a>, Failed> {
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

fn plain(item: Item<'_>, element: FactElement) -> Result<Plain<'_>, Failed> {
    let value = match (element, item) {
        (FactElement::Text, Item::Text(text)) => Plain::Text(text),
        (FactElement::Long, Item::Long(number)) => Plain::Long(number),
        (FactElement::Bool, Item::Bool(flag)) => Plain::Bool(flag),
        (FactElement::Decimal, Item::Decimal(scaled)) => Plain::Decimal(scaled),
        (element, Item::Json(node)) => return of_json(element, node),
        (FactElement::Text | FactElement::Long | FactElement::Bool | FactElement::Decimal, _) => {
            return Err(Failed);
        }
    };
    Ok(value)
}

fn of_json(element: FactElement, node: Node<'_>) -> Result<Plain<'_>, Failed> {
    Ok(match (element, node.kind()) {
        (FactElement::Text, Kind::Text(text)) => Plain::Text(text.into()),
        (FactElement::Long, Kind::Number(literal)) => {
            Plain::Long(values::integer(literal).map_err(|_| Failed)?)
        }
        (FactElement::Bool, Kind::Bool(flag)) => Plain::Bool(flag),
        (FactElement::Decimal, Kind::Number(literal)) => {
            Plain::Decimal(values::decimal(literal).map_err(|_| Failed)?)
        }
        (FactElement::Text | FactElement::Long | FactElement::Bool | FactElement::Decimal, _) => {
            return Err(Failed);
        }
    })
}

/// The text between the bars that stand in no quotes.
fn stages(text: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut current = String::new();
    let mut quote = None;
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
