//! Names that most tests use.

pub(crate) use std::{collections::BTreeMap, collections::BTreeSet, sync::Arc, time::Duration};

pub(crate) use portcullis_core::{
    approval::{Approval, ApprovalTerms, Approver, Audience, Decider, Status, Vote},
    audit::merkle::{Frontier, is_consistent, root_of_path},
    audit::{DlpResult, Hash, OutcomeStatus, RecordedDecision},
    authorization::{ClientGrant, ClientKind, ClientRef, CodeChallenge, Face, RedirectUri},
    capability::{CapabilityId, CapabilityKind},
    clock::Timestamp,
    grant::Presented,
    id::{ApprovalId, ConsentId, EventId, GroupId, Ids, OrgId, PrincipalId, TokenId},
    limits::{Resource, Window, window_offset},
    lineage::Lineage,
    policy::{Full, Per, Rate},
    principal::{AuthMethod, Plan, Role, Scope, ScopeSet},
    random::Random,
    scim::{GroupAttributes, MAX_GROUPS_OF_USER, UserAttributes},
    token::TokenKind,
    trust::{JoinKey, Login, PublicKey},
};
pub(crate) use portcullis_store::*;
pub(crate) use tokio::{task::JoinSet, time::Instant, time::timeout};

pub(crate) use crate::{
    database::{Database, on_both, on_postgres, on_sqlite},
    given::{self, *},
};
