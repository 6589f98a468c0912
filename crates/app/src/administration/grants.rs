//! Bounds on what one principal gives another.

use portcullis_core::{
    principal::{Caller, Role, ScopeSet},
    refusal::Refusal,
};

/// Rejects scopes that this caller must not give. An admin may give all there are; a program what its
/// token has, its own or that of an admin, so that one which is taken over cannot make itself more.
pub(super) fn check(caller: &Caller, given: ScopeSet) -> Result<(), Refusal> {
    let is_admin = caller.role == Role::Admin && caller.is_person();
    let allowed = if is_admin { ScopeSet::ALL } else { caller.scopes };
    if given.is_subset_of(allowed) {
        return Ok(());
    }
    Err(Refusal::InvalidScope { scope: given.difference(allowed).to_string(), allowed })
}
