//! `portcullis token`.

use clap::Subcommand;
use portcullis_app::TokenRequest;
use portcullis_core::{
    id::{PrincipalId, TokenId},
    principal::ScopeSet,
    token::CidrList,
};
use portcullis_store::TokenRecord;
use serde_json::{Value, json};

use super::{Failure, Installation};
use crate::config::seconds;

#[derive(Subcommand)]
pub(super) enum Tokens {
    /// Make a token and print it: this once, for only its SHA-256 is stored
    Create {
        /// Whose it is: `usr_…` or `sa_…`
        #[arg(long)]
        principal: PrincipalId,
        /// What it may do, such as "mcps:read mcps:invoke"; all but `admin` and `audit:export`
        /// of what the principal may when absent
        #[arg(long, value_name = "SCOPES", value_parser = super::scopes)]
        scopes: Option<ScopeSet>,
        /// How long it lives, such as 15m, 12h or 90d (the default); 365d at most
        #[arg(long, value_name = "TIME", value_parser = seconds)]
        expires_in: Option<i64>,
        /// Free text that is recorded in every event
        #[arg(long)]
        label: Option<String>,
        /// Networks it may be used from, such as `10.0.0.0/8,2001:db8::/32`
        #[arg(long, value_name = "CIDRS")]
        allowed_from: Option<CidrList>,
        #[command(flatten)]
        installation: Installation,
    },
    /// List the tokens of an org; never the tokens themselves
    List {
        /// Id or name of the org
        #[arg(long)]
        org: String,
        #[command(flatten)]
        installation: Installation,
    },
    /// Revoke a token and all that descends from it; running nodes follow within 5 seconds
    Revoke {
        /// The token's id: `tok_…`
        token_id: TokenId,
        #[command(flatten)]
        installation: Installation,
    },
}

impl Tokens {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Create { principal, scopes, expires_in, label, allowed_from, installation } => {
                let office = installation.office().await?;
                let request = TokenRequest {
                    principal,
                    scopes,
                    lifetime_seconds: expires_in,
                    label,
                    allowed_from,
                };
                let made = office.shell.create_token(request).await;
                office.close().await;
                let made = made?;
                let mut shown = record(&made.record);
                let text = made.token.secret().expose();
                if let Value::Object(members) = &mut shown {
                    members.insert("token".to_owned(), Value::from(text));
                }
                installation.output().record(&shown, text)
            }
            Self::List { org, installation } => {
                let office = installation.office().await?;
                let listed = async {
                    let org = office.shell.org(&org).await?;
                    office.shell.tokens(org.id).await
                };
                let listed = listed.await;
                office.close().await;
                let records: Vec<Value> = listed?.iter().map(record).collect();
                let columns = [
                    "id",
                    "principal",
                    "scopes",
                    "label",
                    "expires_at",
                    "revoked_at",
                    "last_used_at",
                ];
                installation.output().table(&records, &columns)
            }
            Self::Revoke { token_id, installation } => {
                let office = installation.office().await?;
                let revoked = office.shell.revoke_token(token_id).await;
                office.close().await;
                let others = revoked?;
                let shown = json!({ "revoked": token_id, "descendants_revoked": others });
                let text = format!("revoked {token_id} and {others} tokens that descend from it");
                installation.output().record(&shown, &text)
            }
        }
    }
}

fn record(token: &TokenRecord) -> Value {
    json!({
        "id": token.id,
        "org_id": token.org_id,
        "principal": token.principal_id,
        "scopes": token.scopes,
        "label": token.label,
        "issued_at": token.issued_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "last_used_at": token.last_used_at,
    })
}
