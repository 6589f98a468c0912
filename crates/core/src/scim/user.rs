//! Attributes of users that are kept: those by which people are found and shown.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    AttributePath, Comparison, FilterValue, PatchKind, PatchRequest, ScimError, ScimType,
    object::{flag, invalid, text},
};

/// E-mail addresses of a user at most.
const MAX_EMAILS: usize = 10;
/// Attributes that the server sets.
const READ_ONLY: [&str; 4] = ["id", "schemas", "meta", "groups"];
/// Attributes that are kept as one value.
const PLAIN: [&str; 5] = ["username", "active", "externalid", "displayname", "name"];

/// Parts of a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersonName {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formatted: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub middle_name: Option<String>,
}

/// An e-mail address as the provider tells it; never trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Email {
    pub value: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub primary: bool,
}

/// Attributes of a user, besides whether it is active.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UserAttributes {
    pub user_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub name: PersonName,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub emails: Vec<Email>,
}

/// A user as a request wants it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserRequest {
    pub attributes: UserAttributes,
    /// Absent where the request says nothing of it.
    pub active: Option<bool>,
}

fn is_default(name: &PersonName) -> bool {
    *name == PersonName::default()
}

impl UserAttributes {
    /// The name for people: the display name, the parts of the name, or `userName`.
    #[must_use]
    pub fn shown_name(&self) -> String {
        let PersonName { formatted, given_name, family_name, .. } = &self.name;
        let parts: Vec<&str> =
            [given_name, family_name].into_iter().flatten().map(String::as_str).collect();
        let joined = (!parts.is_empty()).then(|| parts.join(" "));
        let shown = self.display_name.clone().or_else(|| formatted.clone()).or(joined);
        shown.unwrap_or_else(|| self.user_name.clone()).chars().take(200).collect()
    }
}

impl UserRequest {
    /// Reads the body of a POST or PUT.
    ///
    /// # Errors
    /// `invalidValue` and `invalidPath`.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, ScimError> {
        let mut user = Self::default();
        for (name, value) in body {
            let path = AttributePath::parse(name)?;
            user.set(PatchKind::Replace, &path, value, AttributePlace::Member)?;
        }
        user.complete()
    }

    /// The user after the operations of a PATCH, of which either all are done or none.
    ///
    /// # Errors
    /// `invalidValue`, `invalidPath`, `noTarget`, `mutability`.
    pub fn patched(attributes: &UserAttributes, patch: &PatchRequest) -> Result<Self, ScimError> {
        let mut user = Self { attributes: attributes.clone(), active: None };
        for operation in &patch.operations {
            let place = if operation.path.is_some() {
                AttributePlace::Path
            } else {
                AttributePlace::Member
            };
            for (path, value) in operation.targets()? {
                user.set(operation.kind, &path, value, place)?;
            }
        }
        user.complete()
    }

    fn complete(self) -> Result<Self, ScimError> {
        if self.attributes.user_name.is_empty() {
            return Err(invalid("`userName` is missing."));
        }
        Ok(self)
    }

    /// Gives one attribute another value.
    fn set(
        &mut self,
        kind: PatchKind,
        path: &AttributePath,
        value: &Value,
        place: AttributePlace,
    ) -> Result<(), ScimError> {
        let given = value;
        let value = if kind == PatchKind::Remove { &Value::Null } else { given };
        let is_plain = path.filter.is_none() && path.part.is_none();
        match path.attribute.as_str() {
            "username" if is_plain => {
                let name = text("userName", value)?.ok_or_else(|| required("userName", kind))?;
                self.attributes.user_name = name;
            }
            "active" if is_plain => {
                let active = flag("active", value)?;
                self.active = Some(active.ok_or_else(|| required("active", kind))?);
            }
            "externalid" if is_plain => self.attributes.external_id = text("externalId", value)?,
            "displayname" if is_plain => self.attributes.display_name = text("displayName", value)?,
            "name" if path.filter.is_none() => {
                self.attributes.name.set(path.part.as_deref(), value)?;
            }
            "emails" => set_emails(&mut self.attributes.emails, kind, path, given)?,
            _ => check_ignored(path, place)?,
        }
        Ok(())
    }
}

/// Place that an attribute is named in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttributePlace {
    /// The path of an operation.
    Path,
    /// An object.
    Member,
}

/// Rejects a path to what cannot be changed, or into an attribute that has no parts. An attribute that is not known is
/// ignored (RFC 7643 §3), wherever it is named.
pub(super) fn check_ignored(path: &AttributePath, place: AttributePlace) -> Result<(), ScimError> {
    let name = path.attribute.as_str();
    if place == AttributePlace::Member {
        return Ok(());
    }
    if READ_ONLY.contains(&name) {
        let detail = format!("`{name}` is set by the server.");
        return Err(ScimError::new(ScimType::Mutability, detail));
    }
    if PLAIN.contains(&name) && (path.filter.is_some() || path.part.is_some()) {
        let detail = format!("`{name}` has no parts that this path could mean.");
        return Err(ScimError::new(ScimType::InvalidPath, detail));
    }
    Ok(())
}

fn required(name: &str, kind: PatchKind) -> ScimError {
    match kind {
        PatchKind::Remove => {
            let detail = format!("`{name}` cannot be removed.");
            ScimError::new(ScimType::Mutability, detail)
        }
        PatchKind::Add | PatchKind::Replace => invalid(format!("`{name}` cannot be empty.")),
    }
}

impl PersonName {
    /// Gives a part another value, or all parts that an object names; `null` clears them.
    fn set(&mut self, part: Option<&str>, value: &Value) -> Result<(), ScimError> {
        let Some(part) = part else {
            return match value {
                Value::Null => {
                    *self = Self::default();
                    Ok(())
                }
                Value::Object(parts) => {
                    parts.iter().try_for_each(|(part, value)| self.set(Some(part), value))
                }
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    Err(invalid("`name` has to be an object."))
                }
            };
        };
        let place = match part.to_ascii_lowercase().as_str() {
            "formatted" => &mut self.formatted,
            "familyname" => &mut self.family_name,
            "givenname" => &mut self.given_name,
            "middlename" => &mut self.middle_name,
            _ => return Ok(()),
        };
        *place = text("name", value)?;
        Ok(())
    }
}

impl Email {
    fn parse(value: &Value) -> Result<Self, ScimError> {
        let mut email = Self::default();
        match value {
            Value::Object(parts) => {
                for (part, value) in parts {
                    email.set(part, value)?;
                }
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                email.set("value", value)?;
            }
        }
        if email.value.is_empty() {
            return Err(invalid("An item of `emails` needs a `value`."));
        }
        Ok(email)
    }

    fn set(&mut self, part: &str, value: &Value) -> Result<(), ScimError> {
        match part.to_ascii_lowercase().as_str() {
            "value" => self.value = text("emails.value", value)?.unwrap_or_default(),
            "type" => self.kind = text("emails.type", value)?,
            "primary" => self.primary = flag("emails.primary", value)?.unwrap_or_default(),
            _ => {}
        }
        Ok(())
    }

    fn matches(&self, filter: &Comparison) -> bool {
        let same =
            |text: &str| filter.text().is_some_and(|wanted| wanted.eq_ignore_ascii_case(text));
        match filter.attribute.as_str() {
            "value" => same(&self.value),
            "type" => same(self.kind.as_deref().unwrap_or_default()),
            "primary" => match &filter.value {
                FilterValue::Flag(wanted) => *wanted == self.primary,
                FilterValue::Text(_) => same(if self.primary { "true" } else { "false" }),
            },
            _ => false,
        }
    }
}

fn set_emails(
    emails: &mut Vec<Email>,
    kind: PatchKind,
    path: &AttributePath,
    value: &Value,
) -> Result<(), ScimError> {
    let mut changed = emails.clone();
    match (&path.filter, kind) {
        (None, PatchKind::Remove) if value.is_null() => changed.clear(),
        (None, PatchKind::Remove) => {
            let gone = read_emails(value)?;
            changed.retain(|email| gone.iter().all(|it| it.value != email.value));
        }
        (None, PatchKind::Replace) => changed = read_emails(value)?,
        (None, PatchKind::Add) => {
            let added = read_emails(value)?;
            changed.retain(|email| added.iter().all(|new| new.value != email.value));
            changed.extend(added);
        }
        (Some(filter), PatchKind::Remove) => match path.part.as_deref() {
            None | Some("value") => changed.retain(|email| !email.matches(filter)),
            Some(part) => set_matching(&mut changed, filter, part, &Value::Null)?,
        },
        (Some(filter), PatchKind::Add | PatchKind::Replace) => {
            let part = path.part.as_deref().unwrap_or("value");
            if !changed.iter().any(|email| email.matches(filter)) {
                changed.push(new_email(filter)?);
            }
            set_matching(&mut changed, filter, part, value)?;
        }
    }
    changed.retain(|email| !email.value.is_empty());
    keep_one_primary(emails, &mut changed);
    if changed.len() > MAX_EMAILS {
        return Err(invalid(format!("A user has {MAX_EMAILS} e-mail addresses at most.")));
    }
    *emails = changed;
    Ok(())
}

/// Leaves one primary address (RFC 7643 §2.4): the one that became it, if one did.
fn keep_one_primary(before: &[Email], changed: &mut [Email]) {
    let was = |email: &Email| before.iter().any(|it| it.primary && it.value == email.value);
    let newer = changed.iter().position(|email| email.primary && !was(email));
    let kept = newer.or_else(|| changed.iter().position(|email| email.primary));
    for (at, email) in changed.iter_mut().enumerate() {
        email.primary = Some(at) == kept;
    }
}

/// The address that a path means which matches none: Microsoft Entra ID adds them so.
fn new_email(filter: &Comparison) -> Result<Email, ScimError> {
    match (filter.attribute.as_str(), filter.text()) {
        ("type", Some(kind)) => {
            let kind = text("emails.type", &Value::from(kind))?;
            Ok(Email { kind, ..Email::default() })
        }
        _ => Err(ScimError::new(ScimType::NoTarget, "No item of `emails` matches the path.")),
    }
}

fn set_matching(
    emails: &mut [Email],
    filter: &Comparison,
    part: &str,
    value: &Value,
) -> Result<(), ScimError> {
    for email in emails.iter_mut().filter(|email| email.matches(filter)) {
        match value {
            Value::Object(parts) => {
                for (part, value) in parts {
                    email.set(part, value)?;
                }
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                email.set(part, value)?;
            }
        }
    }
    Ok(())
}

fn read_emails(value: &Value) -> Result<Vec<Email>, ScimError> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) if items.len() > MAX_EMAILS => {
            Err(invalid(format!("A user has {MAX_EMAILS} e-mail addresses at most.")))
        }
        Value::Array(items) => items.iter().map(Email::parse).collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            Ok(vec![Email::parse(value)?])
        }
    }
}
