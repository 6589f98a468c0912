//! The page that asks a person whether a client may act for it. Everything that the client says of itself is
//! text there.

use axum::{http::StatusCode, response::Response};
use portcullis_app::{ConsentQuestion, shown_digest};
use portcullis_core::{
    authorization::{COMMAND_LINE, Client, ClientKind, Face},
    principal::Scope,
};

use crate::pages::{
    html::{escape, form_page},
    login::SignedIn,
};

/// The page.
pub(super) fn show(asked: &ConsentQuestion, query: &str, signed_in: &SignedIn) -> Response {
    form_page(StatusCode::OK, "Allow access?", &text(asked, query, signed_in.form_token.expose()))
}

fn text(asked: &ConsentQuestion, query: &str, form_token: &str) -> String {
    let client = asked.request().client();
    let person = asked.person();
    let mut text = String::from("<p><strong>");
    escape(&client.reference().name, &mut text);
    text.push_str(match asked.face() {
        Face::All | Face::One(_) => {
            "</strong> asks to use tools through this gateway in your name.</p><dl>"
        }
        Face::Rest => "</strong> asks to work on this gateway in your name.</p><dl>",
    });
    entry("Client", &vouched(client), &mut text);
    let uri = asked.redirect_uri();
    entry("Returns to", &format!("{} ({})", uri.describe(), uri.as_str()), &mut text);
    entry("Signed in as", &person.name, &mut text);
    entry("Organization", &person.org_name, &mut text);
    entry("Tools of", &tools(asked.face()), &mut text);
    text.push_str("</dl><p>It could:</p><ul>");
    for scope in asked.scopes().iter() {
        text.push_str("<li>");
        escape(in_words(scope), &mut text);
        text.push_str("</li>");
    }
    text.push_str(
        "</ul><p>Policies of your organization apply to each call. Did you not begin this yourself? \
         Then deny it.</p><form method=\"post\" action=\"/oauth/authorize\">",
    );
    hidden("form_token", form_token, &mut text);
    hidden("request", query, &mut text);
    hidden("shown", &shown_digest(asked), &mut text);
    if uri.is_web() {
        text.push_str(
            "<p><label><input type=\"checkbox\" name=\"remember\" value=\"1\"> Remember for this \
             client</label></p>",
        );
    }
    text.push_str(
        "<p><button name=\"decision\" value=\"allow\">Allow</button> \
         <button name=\"decision\" value=\"deny\">Deny</button></p>\
         <p><button name=\"decision\" value=\"other\">Use another account</button></p></form>",
    );
    text
}

fn entry(name: &str, value: &str, text: &mut String) {
    text.push_str("<dt>");
    text.push_str(name);
    text.push_str("</dt><dd>");
    escape(value, text);
    text.push_str("</dd>");
}

fn hidden(name: &str, value: &str, text: &mut String) {
    text.push_str("<input type=\"hidden\" name=\"");
    text.push_str(name);
    text.push_str("\" value=\"");
    escape(value, text);
    text.push_str("\">");
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
