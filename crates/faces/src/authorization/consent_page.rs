//! The page that asks a person whether a client may act for it. Everything that the client says of itself is
//! text there.

use axum::{http::StatusCode, response::Response};
use portcullis_app::{ConsentQuestion, shown_digest};
use portcullis_core::{
    authorization::{COMMAND_LINE, Client, ClientKind, Face},
    principal::Scope,
};

use crate::pages::{
    html::{Html, form_page, hidden, html, markup},
    login::SignedIn,
};

/// The page.
pub(super) fn show(asked: &ConsentQuestion, query: &str, signed_in: &SignedIn) -> Response {
    form_page(StatusCode::OK, "Allow access?", &text(asked, query, signed_in.form_token.expose()))
}

fn text(asked: &ConsentQuestion, query: &str, form_token: &str) -> Html {
    let client = asked.request().client();
    let person = asked.person();
    let purpose = match asked.face() {
        Face::All | Face::One(_) => "asks to use tools through this gateway in your name.",
        Face::Rest => "asks to work on this gateway in your name.",
    };
    let uri = asked.redirect_uri();
    let facts = [
        ("Client", vouched(client)),
        ("Returns to", format!("{} ({})", uri.describe(), uri.as_str())),
        ("Signed in as", person.name.clone()),
        ("Organization", person.org_name.clone()),
        ("Tools of", tools(asked.face())),
    ];
    let scopes = asked.scopes().iter().map(|scope| html("<li>{}</li>", &[&in_words(scope)]));
    let remember = uri.is_web().then(|| {
        markup(
            "<p><label><input type=\"checkbox\" name=\"remember\" value=\"1\"> Remember for this client</label></p>",
        )
    });
    html(
        "<p><strong>{}</strong> {}</p><dl>{}</dl><p>It could:</p><ul>{}</ul>\
         <p>Policies of your organization apply to each call. Did you not begin this yourself? Then deny it.</p>\
         <form method=\"post\" action=\"/oauth/authorize\">{}{}\
         <p><button name=\"decision\" value=\"allow\">Allow</button> \
         <button name=\"decision\" value=\"deny\">Deny</button></p>\
         <p><button name=\"decision\" value=\"other\">Use another account</button></p></form>",
        &[
            &client.reference().name,
            &purpose,
            &Html::from(
                facts.map(|(name, value)| html("<dt>{}</dt><dd>{}</dd>", &[&name, &value])),
            ),
            &scopes.collect::<Html>(),
            &Html::from([
                hidden("form_token", form_token),
                hidden("request", query),
                hidden("shown", &shown_digest(asked)),
            ]),
            &remember.unwrap_or_default(),
        ],
    )
}

/// Party that vouches for a client.
fn vouched(client: &Client) -> String {
    if client.reference().id == COMMAND_LINE {
        return "a program on your own machine: allow only what you began in your terminal"
            .to_owned();
    }
    match client.reference().kind {
        ClientKind::MetadataDocument => {
            let host = client.host().unwrap_or_default();
            format!("described by {host} ({})", client.reference().id)
        }
        ClientKind::Registered => "registered itself: nothing vouches for its name".to_owned(),
        ClientKind::Declared => "named by the operator of this gateway".to_owned(),
    }
}

fn tools(face: &Face) -> String {
    match face {
        Face::All => "all providers".to_owned(),
        Face::Rest => "all providers, and the administration of your organization".to_owned(),
        Face::One(slug) => format!("the provider {slug}"),
    }
}

/// A scope as people read it.
const fn in_words(scope: Scope) -> &'static str {
    match scope {
        Scope::Admin => "administer your organization: see and change what belongs to others",
        Scope::ApprovalsDecide => "decide about calls that wait for approval",
        Scope::ApprovalsRead => "see calls that wait for approval",
        Scope::AuditExport => "export the audit log of your organization",
        Scope::AuditRead => "read everybody's events in your organization",
        Scope::McpsInvoke => "call tools",
        Scope::McpsRead => "see which tools there are",
        Scope::PoliciesRead => "read and try out the policies of your organization",
        Scope::ProvidersRead => "see your connections to providers",
        Scope::ProvidersWrite => "connect and disconnect providers",
        Scope::Scim => "keep the people and groups of your organization",
        Scope::TokensIntrospect => "ask what tokens of your organization are worth",
    }
}
