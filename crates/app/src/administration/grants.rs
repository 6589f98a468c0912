//! Bounds on what one principal gives another.

use portcullis_core::{
    principal::{Caller, Role, ScopeSet},
    refusal::Refusal,
};

/// Rejects scopes that this caller must not give. An admin may give all there are; a service account
/// what its own token has, so that one which is taken over cannot make itself more.
pub(super) fn check(caller: &Caller, given: ScopeSet) -> Result<(), Refusal> {
    let allowed = match caller.role {
        Role::Admin => ScopeSet::ALL,
        Role::Member | Role::Auditor | Role::Service(_) => caller.scopes,
    };
    if given.is_subset_of(allowed) {
        return Ok(());
    }
    Err(Refusal::InvalidScope { scope: given.difference(allowed).to_string(), allowed })
}
