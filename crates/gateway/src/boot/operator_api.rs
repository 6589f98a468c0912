//! The API of an installation for the commands of its operator.

use std::sync::Arc;

use portcullis_app::{App, LogIdentity, Operator, Parts};
use portcullis_core::random;
use portcullis_faces::OperatorApi;

use super::{BootError, OfflineNode, gateway, ungoverned};
use crate::config::Config;

impl OfflineNode {
    /// The use cases over this store, and their API for the operator. Seals the logs where it has their keys.
    pub(crate) fn api(
        &self,
        config: &Config,
        identity: Option<LogIdentity>,
    ) -> Result<(Arc<App>, OperatorApi), BootError> {
        let Operator { clock, random, store, writer, .. } = &self.operator;
        let (clock, random) = (Arc::clone(clock), Arc::clone(random));
        let key = random::bytes(&*random);
        let parts = Parts::bare(clock, random, store.clone(), writer.clone(), &self.tasks);
        let mut parts = parts.map_err(BootError::Other)?;
        if let Some(LogIdentity { host, keys }) = identity {
            parts.audit.log_host = host;
            parts.audit.log_keys = keys;
        }
        let app = App::new(parts).map_err(|errors| ungoverned(&errors))?;
        let api = OperatorApi::new(gateway(config, &key, Arc::clone(&app))?);
        Ok((app, api))
    }
}
