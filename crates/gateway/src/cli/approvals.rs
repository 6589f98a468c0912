//! `portcullis approval`.

use clap::{Args, Subcommand, ValueEnum};
use portcullis_core::{
    approval::{Status, Vote},
    id::ApprovalId,
};
use portcullis_store::Org;
use serde_json::{Value, json};

use super::{
    of_org::{OfOrg, values},
    output::Failure,
    remote::{RemoteGateway, body},
};
use crate::boot::OfflineNode;

#[derive(Subcommand)]
pub(super) enum Approvals {
    /// List approvals of an org, the newest first
    List {
        /// Only those with this status at this moment
        #[arg(long, value_enum)]
        status: Option<NamedStatus>,
        #[command(flatten)]
        of: OfOrg,
    },
    /// Show one approval in full: the call that it is bound to, and what was decided
    Show {
        /// Its id: `apr_…`
        approval: ApprovalId,
        #[command(flatten)]
        of: OfOrg,
    },
    /// Say yes to the call; it runs when its caller makes it again
    ///
    /// Recorded as a decision of the operator, with the user of the operating system. The operator
    /// counts as one of the people that the policy asks for, whatever groups it names.
    Approve(Decision),
    /// Say no to the call; this request cannot be approved any more
    ///
    /// Recorded as a decision of the operator, with the user of the operating system.
    Deny(Decision),
}

#[derive(Args)]
pub(super) struct Decision {
    /// Its id: `apr_…`
    approval: ApprovalId,
    /// The reason, which is recorded and shown to requester and approvers
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    of: OfOrg,
}

/// A status on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum NamedStatus {
    /// A person has to decide
    Pending,
    /// The call may run
    Approved,
    /// A person said no
    Denied,
    /// Its time is over, or what it was bound to ended
    Expired,
    /// The call ran as often as it may
    Consumed,
}

impl NamedStatus {
    const fn status(self) -> Status {
        match self {
            Self::Pending => Status::Pending,
            Self::Approved => Status::Approved,
            Self::Denied => Status::Denied,
            Self::Expired => Status::Expired,
            Self::Consumed => Status::Consumed,
        }
    }
}

impl Approvals {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::List { status, of } => list(status.map(NamedStatus::status), &of).await,
            Self::Show { approval, of } => {
                let found = of.act(
                    async |gateway| gateway.get(&format!("/v1/approvals/{approval}")).await,
                    async |node, org| Ok(json!(node.shell.approval(org.id, approval).await?)),
                );
                of.installation.output().members(&found.await?)
            }
            Self::Approve(decision) => decision.run(Vote::Approve).await,
            Self::Deny(decision) => decision.run(Vote::Deny).await,
        }
    }
}

async fn list(status: Option<Status>, of: &OfOrg) -> Result<(), Failure> {
    let only: Vec<_> = status.iter().map(|status| ("status", status.as_str())).collect();
    let approvals = of.act(
        async |gateway| gateway.list("/v1/approvals", &only).await,
        async |node, org| Ok(values(node.shell.approvals(org.id, status).await?)),
    );
    let records: Vec<Value> = approvals.await?.iter().map(record).collect();
    let columns = ["id", "status", "requester", "tool", "policy", "approved_by", "expires_at"];
    of.installation.output().table(&records, &columns)
}

impl Decision {
    async fn run(self, vote: Vote) -> Result<(), Failure> {
        let Self { approval, reason, of } = self;
        let request = body(json!({ "decision": vote, "comment": reason }));
        let remotely = async |gateway: &RemoteGateway| {
            gateway.post(&format!("/v1/approvals/{approval}/decision"), &request).await
        };
        let here = async |node: &OfflineNode, org: Org| {
            Ok(json!(node.shell.decide(org.id, approval, vote, reason.as_deref()).await?))
        };
        let decided: Value = of.act(remotely, here).await?;
        let status = decided.get("status").and_then(Value::as_str).unwrap_or_default();
        of.installation.output().record(&decided, &format!("{approval} is {status}"))
    }
}

/// An approval in a list, of what the API tells of it.
fn record(approval: &Value) -> Value {
    let at = |pointer: &str| approval.pointer(pointer).cloned().unwrap_or_default();
    let decisions = approval.get("decisions").and_then(Value::as_array);
    let says_yes = |it: &&Value| it.get("decision") == Some(&json!(Vote::Approve));
    let yes = decisions.map_or(0, |all| all.iter().filter(says_yes).count());
    json!({
        "id": at("/id"),
        "status": at("/status"),
        "requester": at("/requester/principal_name"),
        "requester_id": at("/requester/principal_id"),
        "tool": at("/tool/id"),
        "policy": at("/policy/id"),
        "approved_by": format!("{yes} of {}", at("/terms/approvals")),
        "digest": at("/digest"),
        "created_at": at("/created_at"),
        "expires_at": at("/expires_at"),
    })
}
