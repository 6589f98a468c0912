//! Rooms that most others stand on.

use std::sync::Arc;

use crate::{
    audit::{Audit, AuditParts},
    base::Base,
    catalogue::ToolCatalogue,
    policies::limits::{LimitParts, Quotas},
    request::screening::Screening,
};

/// Rooms that most others stand on, shared by all of them.
#[derive(Debug, Clone)]
pub(crate) struct Foundation {
    pub(crate) base: Arc<Base>,
    pub(crate) screening: Arc<Screening>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) quotas: Arc<Quotas>,
    pub(crate) catalogue: Arc<ToolCatalogue>,
}

impl Foundation {
    pub(crate) fn new(
        base: &Arc<Base>,
        catalogue: ToolCatalogue,
        screening: Screening,
        audit: AuditParts,
        limits: LimitParts,
    ) -> Self {
        let screening = Arc::new(screening);
        let audit = Arc::new(Audit::new(Arc::clone(base), Arc::clone(&screening), audit));
        let quotas = Quotas::new(Arc::clone(base), Arc::clone(&audit), limits);
        Self {
            base: Arc::clone(base),
            screening,
            audit,
            quotas: Arc::new(quotas),
            catalogue: Arc::new(catalogue),
        }
    }
}
