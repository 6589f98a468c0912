//! Types of facts.

use crate::policy::tool::shape::Shape;

/// Type of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FactKind {
    pub(super) element: FactElement,
    pub(super) set: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FactElement {
    Text,
    Long,
    Bool,
    Decimal,
}

impl FactKind {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let inner = text.strip_prefix("Set<").and_then(|rest| rest.strip_suffix('>'));
        let element = match inner.unwrap_or(text).trim() {
            "String" => FactElement::Text,
            "Long" => FactElement::Long,
            "Bool" => FactElement::Bool,
            "decimal" => FactElement::Decimal,
            _ => return None,
        };
        Some(Self { element, set: inner.is_some() })
    }

    pub(super) fn shape(self) -> Shape {
        let element = match self.element {
            FactElement::Text => Shape::Text,
            FactElement::Long => Shape::Long,
            FactElement::Bool => Shape::Bool,
            FactElement::Decimal => Shape::Decimal,
        };
        if self.set { Shape::Set(Box::new(element)) } else { element }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match (self.element, self.set) {
            (FactElement::Text, false) => "String",
            (FactElement::Long, false) => "Long",
            (FactElement::Bool, false) => "Bool",
            (FactElement::Decimal, false) => "decimal",
            (FactElement::Text, true) => "Set<String>",
            (FactElement::Long, true) => "Set<Long>",
            (FactElement::Bool, true) => "Set<Bool>",
            (FactElement::Decimal, true) => "Set<decimal>",
        }
    }
}
