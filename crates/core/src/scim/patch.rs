//! PATCH requests (RFC 7644 §3.5.2), as Okta and Microsoft Entra ID send them.

use serde_json::{Map, Value};

use super::{
    AttributePath, ScimError, ScimType,
    object::{invalid, member},
};

/// Operations of a request at most.
const MOST: usize = 1_000;

/// Kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    Add,
    Replace,
    Remove,
}

/// One operation; its `op` may be written in any case.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchOperation {
    pub kind: PatchKind,
    /// Absent where the value is an object of attributes.
    pub path: Option<AttributePath>,
    pub value: Value,
}

/// A PATCH request.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchRequest {
    pub operations: Vec<PatchOperation>,
}

impl PatchRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// `invalidSyntax`, `invalidPath`, `invalidValue`, `noTarget`, `tooMany`.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, ScimError> {
        let operations = member(body, "Operations")?.and_then(Value::as_array);
        let operations = operations.filter(|list| !list.is_empty());
        let operations = operations.ok_or_else(|| {
            ScimError::new(ScimType::InvalidSyntax, "`Operations` has to be a list of operations.")
        })?;
        if operations.len() > MOST {
            let detail = format!("A request has {MOST} operations at most.");
            return Err(ScimError::new(ScimType::TooMany, detail));
        }
        let operations = operations.iter().map(operation).collect::<Result<_, _>>()?;
        Ok(Self { operations })
    }
}

fn operation(value: &Value) -> Result<PatchOperation, ScimError> {
    let wrong = |detail: &str| ScimError::new(ScimType::InvalidSyntax, detail);
    let object = value.as_object().ok_or_else(|| wrong("An operation has to be an object."))?;
    let name = member(object, "op")?.and_then(Value::as_str).unwrap_or_default();
    let kinds =
        [("add", PatchKind::Add), ("replace", PatchKind::Replace), ("remove", PatchKind::Remove)];
    let kind = kinds.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    let (_, kind) = kind.ok_or_else(|| wrong("`op` is `add`, `replace` or `remove`."))?;
    let path = match member(object, "path")? {
        None => None,
        Some(Value::String(path)) if path.trim().is_empty() => None,
        Some(Value::String(path)) => Some(AttributePath::parse(path)?),
        Some(
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) | Value::Null,
        ) => {
            return Err(ScimError::new(ScimType::InvalidPath, "`path` has to be a text."));
        }
    };
    let value = member(object, "value")?.cloned().unwrap_or(Value::Null);
    match (kind, &path) {
        (PatchKind::Remove, None) => {
            let detail = "A `remove` needs a `path`.";
            return Err(ScimError::new(ScimType::NoTarget, detail));
        }
        (PatchKind::Add | PatchKind::Replace, None) if !value.is_object() => {
            return Err(invalid("Without a `path`, `value` has to be an object of attributes."));
        }
        (PatchKind::Add | PatchKind::Replace | PatchKind::Remove, _) => {}
    }
    Ok(PatchOperation { kind, path, value })
}

impl PatchOperation {
    /// The operation as those on single attributes: an object without a path stands for one of each member,
    /// whose name may be a path.
    pub(super) fn targets(&self) -> Result<Vec<(AttributePath, &Value)>, ScimError> {
        match (&self.path, &self.value) {
            (Some(path), value) => Ok(vec![(path.clone(), value)]),
            (None, Value::Object(members)) => members
                .iter()
                .map(|(name, value)| Ok((AttributePath::parse(name)?, value)))
                .collect(),
            (
                None,
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_),
            ) => Ok(Vec::new()),
        }
    }
}
