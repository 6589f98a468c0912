//! `portcullis token`. On a node, `inspect` and `revoke` find a token in whichever org it is.

use std::{
    fs,
    io::{self, Read},
};

use clap::{Args, Subcommand};
use portcullis_core::{
    id::TokenId, principal::ScopeSet, secret::Secret, token::CidrList, trust::PublicKey,
};
use serde_json::{Value, json};

use super::{
    api::{Api, OfOrg, Orgs, Search, Shape, text},
    installation::Installation,
    output::{Failure, Output},
};
use crate::config::seconds;

#[derive(Subcommand)]
pub(super) enum Tokens {
    /// Make a token and print it: this once, for only its SHA-256 is stored
    Create(Box<Create>),
    /// List the tokens of an org; never the tokens themselves
    List {
        #[command(flatten)]
        search: Search,
        #[command(flatten)]
        of: OfOrg,
    },
    /// Tell what is known of a token: whose it is, what it may do now, whether it is accepted
    Inspect {
        /// The token's id (`tok_…`), or `-` to read the token itself from standard input
        token: String,
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

#[derive(Args)]
pub(super) struct Create {
    /// Its principal: id (`usr_…`, `sa_…`) or name
    #[arg(long)]
    principal: String,
    /// Id or name of the org, where several have a principal of that name
    #[arg(long)]
    org: Option<String>,
    /// Scopes, such as "mcps:read mcps:invoke"; all of what the principal may but
    /// `admin`, `audit:export`, `approvals:read`, `approvals:decide` and `scim` when absent
    #[arg(long, value_name = "SCOPES", value_parser = crate::cli::remote::scopes)]
    scopes: Option<ScopeSet>,
    /// Lifetime, such as 15m, 12h or 90d (the default); 365d at most
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    expires_in: Option<i64>,
    /// Free text that is recorded in every event
    #[arg(long)]
    label: Option<String>,
    /// Networks it may be used from, such as `10.0.0.0/8,2001:db8::/32`
    #[arg(long, value_name = "CIDRS")]
    allowed_from: Option<CidrList>,
    /// It can only be exchanged at /v1/auth/token for another one, and not used itself
    #[arg(long)]
    exchange_only: bool,
    /// Bind it to a public key (DPoP, RFC 9449): a JWK or PEM, or a file with one. It is then good
    /// only with a proof of that key beside each request
    #[arg(long, value_name = "KEY|FILE", value_parser = dpop_key)]
    dpop_key: Option<PublicKey>,
    #[command(flatten)]
    installation: Installation,
}

impl Tokens {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Create(create) => create.run().await,
            Self::List { search, of } => {
                of.list("/v1/tokens", search.parameter().as_slice(), &SHAPE).await
            }
            Self::Inspect { token, installation } => inspect(&token, &installation).await,
            Self::Revoke { token_id, installation } => {
                let path = format!("/v1/tokens/{token_id}");
                let revoke = async |api: &Api<'_>| api.delete(&path).await;
                let answer = installation.ask(Orgs::Any(None), revoke).await?;
                let others = answer.get("descendants_revoked").cloned().unwrap_or_default();
                let shown = json!({ "revoked": token_id, "descendants_revoked": others });
                let text = format!("revoked {token_id} and {others} tokens that descend from it");
                installation.output().record(&shown, &text)
            }
        }
    }
}

/// A token as the API tells of it; `principal` is its principal's id.
const SHAPE: Shape = Shape {
    members: &[
        "id", "org_id", "kind", "principal=/principal_id", "principal_name", "via", "method",
        "parent_id", "scopes", "label", "issued_at", "expires_at", "revoked_at", "last_used_at",
        "exchange_only", "dpop_jkt", "allowed_from",
    ],
    columns: &[
        "id", "principal_name", "scopes", "label", "expires_at", "revoked_at", "last_used_at",
    ],
    add: |members| {
        if let Some(networks) = members.get("allowed_from").and_then(Value::as_array) {
            let networks: Vec<&str> = networks.iter().filter_map(Value::as_str).collect();
            let networks = Value::from(networks.join(","));
            members.insert("allowed_from".to_owned(), networks);
        }
    },
};

impl Create {
    async fn run(self) -> Result<(), Failure> {
        let networks = self.allowed_from.as_ref().map(ToString::to_string);
        let networks: Option<Vec<&str>> = networks.as_deref().map(|list| list.split(',').collect());
        let create = async |api: &Api<'_>| {
            let principal = api.principal(&self.principal).await?;
            let allowed = api.get(&format!("/v1/principals/{principal}")).await?;
            let asked = json!({
                "principal_id": principal,
                "scopes": self.scopes,
                "expires_in": self.expires_in,
                "label": self.label,
                "allowed_from": networks,
                "exchange_only": self.exchange_only.then_some(true),
                "dpop_jkt": self.dpop_key.map(|key| key.name()),
            });
            let answer = api.post("/v1/tokens", asked).await?;
            let token = answer.get("token").cloned();
            let mut made = api.record(answer, &SHAPE).await?;
            if let Value::Object(members) = &mut made {
                members.extend(token.map(|token| ("token".to_owned(), token)));
            }
            Ok((made, allowed))
        };
        let (made, allowed) = self.installation.ask(Orgs::Any(self.org.as_deref()), create).await?;
        let scopes = text(&made, "scopes");
        let output = self.installation.output();
        tell_scopes(output, scopes);
        let unnamed = text(&allowed, "scopes").parse().unwrap_or(ScopeSet::EMPTY);
        let unnamed = unnamed.difference(scopes.parse().unwrap_or(ScopeSet::ALL));
        if self.scopes.is_none() && !unnamed.is_empty() {
            output.note(&format!("only if named in `--scopes`: {unnamed}"));
        }
        output.record(&made, text(&made, "token"))
    }
}

/// Tells the scopes of a new token, and what it means to have none.
fn tell_scopes(output: Output, scopes: &str) {
    output.note(&format!("scopes: {scopes}"));
    if scopes.is_empty() {
        output.warn("the token has no scope: it can call nothing; make another with `--scopes`");
    }
}

/// A token in full.
const INSPECTED: Shape = Shape {
    members: &[
        "id", "org_id", "kind", "principal=/principal_id", "via", "lineage", "method", "parent_id",
        "grant_id", "scopes", "label", "issued_at", "expires_at", "revoked_at", "last_used_at",
        "exchange_only", "dpop_jkt", "allowed_from", "state", "effective_scopes", "principal_name",
        "role",
    ],
    columns: &[],
    add: SHAPE.add,
};

async fn inspect(token: &str, installation: &Installation) -> Result<(), Failure> {
    let token = if token == "-" { typed()? } else { Secret::new(token.to_owned()) };
    let inspect = async |api: &Api<'_>| {
        let answer = api.post("/v1/tokens/inspect", json!({ "token": token.expose() })).await?;
        api.record(answer, &INSPECTED).await
    };
    installation.output().members(&installation.ask(Orgs::Any(None), inspect).await?)
}

/// A public key as it is, or the name of a file that holds it.
fn dpop_key(text: &str) -> Result<PublicKey, String> {
    let is_key = text.trim_start().starts_with(['{', '-']);
    let key = if is_key {
        text.to_owned()
    } else {
        fs::read_to_string(text).map_err(|error| format!("`{text}` cannot be read: {error}"))?
    };
    PublicKey::parse(&key).map_err(|error| error.to_string())
}

/// A token on standard input: an argument would stand in the list of processes.
fn typed() -> Result<Secret, Failure> {
    let mut text = String::new();
    io::stdin().lock().take(1024).read_to_string(&mut text)?;
    Ok(Secret::new(text.trim().to_owned()))
}
