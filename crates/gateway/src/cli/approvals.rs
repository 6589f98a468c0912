//! `portcullis approval`.

use axum::http::Method;
use clap::{Args, Subcommand, ValueEnum};
use portcullis_core::{
    approval::{Status, Vote},
    id::ApprovalId,
};
use serde_json::{Value, json};

use super::{Failure, Installation, remote::body};

#[derive(Subcommand)]
pub(super) enum Approvals {
    /// List approvals of an org, the newest first
    List {
        /// Only those with this status at this moment
        #[arg(long, value_enum)]
        status: Option<NamedStatus>,
        /// Id or name of the org; not needed where there is only one
        #[arg(long)]
        org: Option<String>,
        #[command(flatten)]
        installation: Installation,
    },
    /// Show one approval in full: the call that it is bound to, and what was decided
    Show {
        /// Its id: `apr_…`
        approval: ApprovalId,
        /// Id or name of the org; not needed where there is only one
        #[arg(long)]
        org: Option<String>,
        #[command(flatten)]
        installation: Installation,
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
    /// Id or name of the org; not needed where there is only one
    #[arg(long)]
    org: Option<String>,
    #[command(flatten)]
    installation: Installation,
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
            Self::List { status, org, installation } => {
                list(status, org.as_deref(), &installation).await
            }
            Self::Show { approval, org, installation } => {
                show(approval, org.as_deref(), &installation).await
            }
            Self::Approve(decision) => decision.run(Vote::Approve).await,
            Self::Deny(decision) => decision.run(Vote::Deny).await,
        }
    }
}

async fn list(
    status: Option<NamedStatus>,
    org: Option<&str>,
    installation: &Installation,
) -> Result<(), Failure> {
    let status = status.map(NamedStatus::status);
    let approvals: Vec<Value> = if let Some(gateway) = installation.gateway(org).await? {
        let only: Vec<_> = status.iter().map(|status| ("status", status.as_str())).collect();
        gateway.list("/v1/approvals", &only).await?
    } else {
        let office = installation.office().await?;
        let listed = async {
            let org = office.shell.org_or_only(org).await?.id;
            office.shell.approvals(org, status).await
        };
        let listed = listed.await;
        office.close().await;
        listed?.iter().map(|approval| json!(approval)).collect()
    };
    let records: Vec<Value> = approvals.iter().map(record).collect();
    let columns = ["id", "status", "requester", "tool", "policy", "approved_by", "expires_at"];
    installation.output().table(&records, &columns)
}

async fn show(
    approval: ApprovalId,
    org: Option<&str>,
    installation: &Installation,
) -> Result<(), Failure> {
    if let Some(gateway) = installation.gateway(org).await? {
        let found = gateway.get(&format!("/v1/approvals/{approval}")).await?;
        return installation.output().members(&found);
    }
    let office = installation.office().await?;
    let found = async {
        let org = office.shell.org_or_only(org).await?.id;
        office.shell.approval(org, approval).await
    };
    let found = found.await;
    office.close().await;
    installation.output().members(&json!(found?))
}

impl Decision {
    async fn run(self, vote: Vote) -> Result<(), Failure> {
        let Self { approval, reason, org, installation } = self;
        let decided = if let Some(gateway) = installation.gateway(org.as_deref()).await? {
            let path = format!("/v1/approvals/{approval}/decision");
            let asked = body(json!({ "decision": vote, "comment": reason }));
            gateway.send(Method::POST, &path, Some(&asked)).await?
        } else {
            let office = installation.office().await?;
            let decided = async {
                let org = office.shell.org_or_only(org.as_deref()).await?.id;
                office.shell.decide(org, approval, vote, reason.as_deref()).await
            };
            let decided = decided.await;
            office.close().await;
            json!(decided?)
        };
        let status = decided.get("status").and_then(Value::as_str).unwrap_or_default();
        installation.output().record(&decided, &format!("{approval} is {status}"))
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
