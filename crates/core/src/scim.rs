//! SCIM 2.0 (RFC 7643, RFC 7644): users and groups of an org, as an identity provider sends them.
//!
//! Attributes that are not kept are ignored, so that a provider may send its usual profile. **Invariant:**
//! nothing here names a role or a scope: what a person may do is said by trust rules and operators.

mod error;
mod filter;
mod group;
mod object;
mod patch;
mod path;
mod projection;
mod schemas;
mod user;

pub use self::{
    error::{ScimError, ScimRejection, ScimType},
    filter::{Comparison, Filter, FilterValue},
    group::{AttributeEdit, GroupAttributes, GroupPatch, MemberEdits, NewGroup},
    object::{GROUP_SCHEMA, LIST_SCHEMA, USER_SCHEMA},
    patch::{PatchKind, PatchOperation, PatchRequest},
    path::AttributePath,
    projection::ScimProjection,
    schemas::{find_resource_type, find_schema, resource_types, schemas, service_provider_config},
    user::{Email, PersonName, UserAttributes, UserRequest},
};

/// Resources on one page at most.
pub const MAX_PAGE: u32 = 200;
/// Users of an org at most.
pub const MAX_USERS: u32 = 100_000;
/// Groups of an org at most.
pub const MAX_GROUPS: u32 = 5_000;
/// Members of a group at most, and those that one request names: a group is written back as it was read.
pub const MAX_MEMBERS: usize = 10_000;
/// Groups of one user at most.
pub const MAX_GROUPS_OF_USER: u32 = 200;

#[cfg(test)]
mod tests;
