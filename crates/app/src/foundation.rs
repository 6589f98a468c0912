//! Rooms that most others stand on.

use std::sync::Arc;

use crate::{
    audit::Audit, base::Base, catalogue::ToolCatalogue, limits::Quotas, screening::Screening,
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
