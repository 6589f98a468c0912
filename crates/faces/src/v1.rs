//! Version 1 of the API, one file a resource.

pub(super) mod approvals;
pub(super) mod auth;
pub(super) mod checkpoint;
pub(super) mod consents;
pub(super) mod counts;
pub(super) mod dlp;
mod download;
pub(super) mod events;
pub(super) mod exports;
pub(super) mod holds;
pub(super) mod invoke;
pub(super) mod mcps;
pub(super) mod org;
pub(super) mod policies;
pub(super) mod policy_check;
pub(crate) mod policy_overrides;
pub(super) mod principal_keys;
pub(super) mod principals;
pub(super) mod prompts;
pub(super) mod providers;
pub(super) mod resources;
pub(super) mod sessions;
pub(super) mod simulate;
pub(super) mod skills;
pub(super) mod tokens;
pub(super) mod tools;

use std::sync::Arc;

use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use portcullis_app::parse_id;
use portcullis_core::{
    capability::{CapabilityId, CapabilityKind},
    refusal::Refusal,
};

use crate::{
    exchange::{Outcome, Segment, segment},
    gateway::Gateway,
};

macro_rules! path_of_kind {
    ($(#[$doc:meta])* $name:ident, $kind:ident) => {
        $(#[$doc])*
        pub(super) struct $name(Result<CapabilityId, Refusal>);

        impl $name {
            /// The path of what has this id, which names its kind nowhere.
            pub(super) fn of(id: &str) -> Self {
                Self(parse_id(CapabilityKind::$kind, id))
            }
        }

        impl FromRequestParts<Arc<Gateway>> for $name {
            type Rejection = Outcome;

            async fn from_request_parts(
                parts: &mut Parts,
                gateway: &Arc<Gateway>,
            ) -> Result<Self, Outcome> {
                Ok(Self::of(&segment(Path::from_request_parts(parts, gateway).await)))
            }
        }
    };
}

path_of_kind! {
    /// The tool that the path names, decoded and parsed once. What is malformed can name no tool.
    ToolPath, Tool
}
path_of_kind! {
    /// The prompt that the path names, in the same way.
    PromptPath, Prompt
}
path_of_kind! {
    /// The skill that the path names.
    SkillPath, Skill
}
