//! `[oauth]`: the clients that people let act for them.

use portcullis_app::DocumentRules;
use portcullis_core::authorization::{Client, ClientKind, MAX_CLIENT_ID, RedirectUri};
use portcullis_upstream::Outbound;
use serde::Deserialize;

/// `[oauth]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OAuth {
    /// Offered where people can log in, unless this says otherwise.
    pub(crate) enabled: Option<bool>,
    /// Addresses of metadata documents that clients may have; each may end in `*`. Any when absent.
    pub(crate) clients: Option<Vec<String>>,
    /// Hosts in private networks whose metadata documents may be fetched.
    pub(crate) private_hosts: Vec<String>,
    /// Clients that the operator names.
    pub(crate) client: Vec<DeclaredClient>,
}

/// `[[oauth.client]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredClient {
    /// Its `client_id`.
    id: String,
    /// Its name on the consent page.
    name: Option<String>,
    /// Addresses that browsers are sent back to.
    redirect_uris: Vec<String>,
}

impl OAuth {
    /// Rejects patterns that no metadata document matches, and what is wrong with declared clients.
    pub(crate) fn check(&self) -> Result<(), String> {
        let host_ends =
            |pattern: &str| pattern.strip_prefix("https://").is_some_and(|it| it.contains('/'));
        let patterns = self.clients.iter().flatten();
        match patterns.into_iter().find(|pattern| !host_ends(pattern)) {
            Some(pattern) => Err(format!(
                "`oauth.clients` holds `{pattern}`, but has to hold addresses with a host and a path, \
                 such as https://claude.ai/*"
            )),
            None => self.declared().map(drop),
        }
    }

    /// The rules by which metadata documents are fetched.
    pub(crate) fn documents(&self, outbound: Outbound) -> DocumentRules {
        let hosts = self.private_hosts.iter().map(|host| host.to_ascii_lowercase());
        DocumentRules { allowed: self.clients.clone(), private_hosts: hosts.collect(), outbound }
    }

    /// The declared clients. Rejects ids that others could have, and addresses that no browser is sent back to.
    pub(crate) fn declared(&self) -> Result<Vec<Client>, String> {
        let mut clients: Vec<Client> = Vec::new();
        for declared in &self.client {
            let client = declared.client()?;
            if clients.iter().any(|known| known.reference().id == declared.id) {
                return Err(format!("`oauth.client` has `{}` twice", declared.id));
            }
            clients.push(client);
        }
        Ok(clients)
    }
}

impl DeclaredClient {
    fn client(&self) -> Result<Client, String> {
        let id = &self.id;
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~".contains(letter);
        let known = ["dcr_", "reg_"].iter().any(|prefix| id.starts_with(prefix));
        if id.is_empty() || id.len() > MAX_CLIENT_ID || !id.chars().all(plain) || known {
            return Err(format!(
                "`oauth.client.id` is `{id}`, but has to be letters, digits and `-._~`, and may not \
                 begin like the id of a registered client"
            ));
        }
        let uri = |text: &String| {
            RedirectUri::parse(text).ok_or_else(|| {
                format!(
                    "`oauth.client.redirect_uris` of `{id}` holds `{text}`, but has to hold https \
                     addresses, loopback addresses, or addresses of a program"
                )
            })
        };
        let uris: Result<Vec<_>, _> = self.redirect_uris.iter().map(uri).collect();
        let name = Some(self.name.as_deref().unwrap_or(id));
        Client::new(id.clone(), ClientKind::Declared, name, uris?)
            .map_err(|error| format!("`oauth.client` `{id}`: {error}"))
    }
}
