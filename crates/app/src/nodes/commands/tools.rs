//! The tools of a provider as they are accepted.

use portcullis_core::{
    capability::{Definition, ProviderSlug},
    id::OrgId,
};

use super::{Operator, OperatorError};
use crate::providers::tools::pins::recalled::accepted;

impl Operator {
    /// The tools of a provider as they are accepted; none where the store knows of none.
    pub async fn accepted_tools(
        &self,
        org: Option<OrgId>,
        provider: &ProviderSlug,
    ) -> Result<Vec<Definition>, OperatorError> {
        Ok(accepted(&self.store, org, provider).await?)
    }
}
