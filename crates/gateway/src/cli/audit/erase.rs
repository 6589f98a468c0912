//! `portcullis audit erase`: on a node only, for no token may take anything out of the log. Like `audit verify` it reads
//! the log as it is stored, with the keys of the node; a request would only say the same selection once more.

use clap::Args;
use portcullis_app::ErasureRequest;
use portcullis_core::{clock::Timestamp, id::EventId};
use portcullis_store::Selection;
use serde_json::json;

use super::{Failure, moment};
use crate::{boot::OfflineNode, cli::api::OfOrg};

#[derive(Args)]
pub(in super::super) struct Erase {
    /// Reason, which is recorded
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Of this event
    #[arg(long, value_name = "EVENT", required_unless_present_any = ["actor", "from", "to"])]
    event: Option<EventId>,
    /// Of what this principal (id or name) did and what was done on its behalf
    #[arg(long, value_name = "PRINCIPAL")]
    actor: Option<String>,
    /// Of what was recorded at this moment or later
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Option<Timestamp>,
    /// Of what was recorded before this moment
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<Timestamp>,
    /// Only these members, such as `input,output,source_ip`; without it all that can be erased
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    members: Vec<String>,
    #[command(flatten)]
    of: OfOrg,
}

impl Erase {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let Self { reason, event, actor, from, to, members, of } = self;
        let config = of.installation.config()?;
        let erase = async |node: &OfflineNode| {
            let identity = node.log_identity(&config).await?;
            let org = node.operator.org_or_only(of.org.as_deref()).await?.id;
            let id = org.to_string();
            let find =
                async |named: &str| Ok(node.operator.principal_of(Some(&id), named).await?.id);
            let actor = super::actor(actor.as_deref(), find).await?;
            let selection = Selection { event, actor, from, to };
            let request = ErasureRequest { org, selection, members, reason };
            Ok(node.operator.erase(identity, &request).await?)
        };
        let erased = of.installation.with_offline_node(erase).await?;
        let value = json!({ "erased": erased.erased, "held": erased.held });
        let text = match erased.held {
            0 => format!("erased from {} events", erased.erased),
            held => format!("erased from {} events; {held} are under a hold", erased.erased),
        };
        of.installation.output().record(&value, &text)
    }
}
