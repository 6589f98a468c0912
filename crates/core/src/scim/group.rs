//! Groups and their members. A group has a name and users; it gives no role.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    AttributePath, MAX_MEMBERS, PatchKind, PatchOperation, PatchRequest, ScimError, ScimType,
    object::{invalid, member, text},
    user::{AttributePlace, check_ignored},
};
use crate::id::{PrincipalId, PrincipalKind};

/// Attributes of a group besides its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupAttributes {
    pub display_name: String,
    pub external_id: Option<String>,
}

/// A group as a POST or PUT wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGroup {
    pub attributes: GroupAttributes,
    /// Absent where the request says nothing of members.
    pub members: Option<BTreeSet<PrincipalId>>,
}

/// Changes to a group by a PATCH.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupPatch {
    pub display_name: Option<String>,
    pub external_id: AttributeEdit,
    pub members: MemberEdits,
}

/// Change to an attribute that may be absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AttributeEdit {
    #[default]
    Keep,
    Set(String),
    Clear,
}

/// Changes to the members of a group: those that stay, then additions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberEdits {
    clear: bool,
    add: BTreeSet<PrincipalId>,
    remove: BTreeSet<PrincipalId>,
}

impl MemberEdits {
    /// The members after the changes.
    #[must_use]
    pub fn applied(&self, members: &BTreeSet<PrincipalId>) -> BTreeSet<PrincipalId> {
        let kept = members.iter().filter(|id| !self.clear && !self.remove.contains(id));
        kept.chain(&self.add).copied().collect()
    }

    fn clear(&mut self) {
        *self = Self { clear: true, ..Self::default() };
    }

    fn add(&mut self, members: BTreeSet<PrincipalId>) {
        for id in members {
            self.remove.remove(&id);
            self.add.insert(id);
        }
    }

    fn remove(&mut self, members: BTreeSet<PrincipalId>) {
        for id in members {
            self.add.remove(&id);
            self.remove.insert(id);
        }
    }
}

impl NewGroup {
    /// Reads the body of a POST or PUT.
    ///
    /// # Errors
    /// `invalidValue`, `tooMany`, `invalidSyntax`.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, ScimError> {
        let display_name = member(body, "displayName")?.unwrap_or(&Value::Null);
        let display_name = text("displayName", display_name)?;
        let display_name = display_name.ok_or_else(|| invalid("`displayName` is missing."))?;
        let external_id = member(body, "externalId")?.unwrap_or(&Value::Null);
        let external_id = text("externalId", external_id)?;
        let members = match member(body, "members")? {
            None => None,
            Some(value) => Some(member_ids(value, &mut 0)?),
        };
        Ok(Self { attributes: GroupAttributes { display_name, external_id }, members })
    }
}

impl GroupPatch {
    /// Returns true if it adds and removes members by their ids, and does nothing else.
    #[must_use]
    pub fn only_names_members(&self) -> bool {
        let keeps_id = self.external_id == AttributeEdit::Keep;
        self.display_name.is_none() && keeps_id && !self.members.clear
    }

    /// The changes that the operations come to, in their order.
    ///
    /// # Errors
    /// `invalidValue`, `invalidPath`, `noTarget`, `mutability`, `tooMany`.
    pub fn parse(request: &PatchRequest) -> Result<Self, ScimError> {
        let mut patch = Self::default();
        let mut count = 0;
        for operation in &request.operations {
            let place = if operation.path.is_some() {
                AttributePlace::Path
            } else {
                AttributePlace::Member
            };
            for (path, value) in operation.targets()? {
                patch.set(operation, &path, value, place, &mut count)?;
            }
        }
        Ok(patch)
    }

    fn set(
        &mut self,
        operation: &PatchOperation,
        path: &AttributePath,
        value: &Value,
        place: AttributePlace,
        count: &mut usize,
    ) -> Result<(), ScimError> {
        let kind = operation.kind;
        let is_plain = path.filter.is_none() && path.part.is_none();
        match path.attribute.as_str() {
            "displayname" if is_plain && kind == PatchKind::Remove => {
                let detail = "`displayName` cannot be removed.";
                return Err(ScimError::new(ScimType::Mutability, detail));
            }
            "displayname" if is_plain => {
                let name = text("displayName", value)?;
                self.display_name =
                    Some(name.ok_or_else(|| invalid("`displayName` cannot be empty."))?);
            }
            "externalid" if is_plain => {
                let value = if kind == PatchKind::Remove { &Value::Null } else { value };
                let id = text("externalId", value)?;
                self.external_id = id.map_or(AttributeEdit::Clear, AttributeEdit::Set);
            }
            "members" => self.set_members(kind, path, value, count)?,
            _ => check_ignored(path, place)?,
        }
        Ok(())
    }

    fn set_members(
        &mut self,
        kind: PatchKind,
        path: &AttributePath,
        value: &Value,
        count: &mut usize,
    ) -> Result<(), ScimError> {
        match (&path.filter, kind) {
            (None, _) if path.part.is_some() => Err(no_member_path()),
            (None, PatchKind::Add) => {
                self.members.add(member_ids(value, count)?);
                Ok(())
            }
            (None, PatchKind::Replace) => {
                let members = member_ids(value, count)?;
                self.members.clear();
                self.members.add(members);
                Ok(())
            }
            (None, PatchKind::Remove) if value.is_null() => {
                self.members.clear();
                Ok(())
            }
            (None, PatchKind::Remove) => {
                let ids = values(value, count)?;
                self.members.remove(ids.into_iter().filter_map(user).collect());
                Ok(())
            }
            (Some(filter), PatchKind::Remove)
                if path.part.is_none() && filter.attribute == "value" =>
            {
                *count += 1;
                within(*count)?;
                let id = filter.text().and_then(user);
                self.members.remove(id.into_iter().collect());
                Ok(())
            }
            (Some(_), PatchKind::Add | PatchKind::Replace | PatchKind::Remove) => {
                Err(no_member_path())
            }
        }
    }
}

/// The users that a value names.
fn member_ids(value: &Value, count: &mut usize) -> Result<BTreeSet<PrincipalId>, ScimError> {
    let unknown = |id: &str| {
        let id: String = id.chars().take(64).collect();
        invalid(format!("`{id}` is no user of this org; groups have users as members only."))
    };
    values(value, count)?.into_iter().map(|id| user(id).ok_or_else(|| unknown(id))).collect()
}

/// The ids in a list of members, or in one.
fn values<'a>(value: &'a Value, count: &mut usize) -> Result<Vec<&'a str>, ScimError> {
    let wrong = || invalid("`members` has to be a list of objects with a `value`.");
    let items: &[Value] = match value {
        Value::Null => &[],
        Value::Array(items) => items,
        Value::Object(_) | Value::String(_) | Value::Bool(_) | Value::Number(_) => {
            std::slice::from_ref(value)
        }
    };
    *count += items.len();
    within(*count)?;
    let id = |item: &'a Value| match item {
        Value::String(id) => Ok(id.as_str()),
        Value::Object(parts) => member(parts, "value")?.and_then(Value::as_str).ok_or_else(wrong),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err(wrong()),
    };
    items.iter().map(id).collect()
}

fn within(count: usize) -> Result<(), ScimError> {
    if count <= MAX_MEMBERS {
        return Ok(());
    }
    let detail = format!("A request names {MAX_MEMBERS} members at most; send several.");
    Err(ScimError::new(ScimType::TooMany, detail))
}

/// The user of this id. What is malformed can name none.
fn user(id: &str) -> Option<PrincipalId> {
    let id: PrincipalId = id.parse().ok()?;
    (id.kind() == PrincipalKind::User).then_some(id)
}

fn no_member_path() -> ScimError {
    let detail =
        "Of `members`, the whole list can be changed, or `members[value eq \"usr_…\"]` removed.";
    ScimError::new(ScimType::InvalidPath, detail)
}
