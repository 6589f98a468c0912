//! `[oauth]`: the clients that people let act for them.

use std::path::Path;

use portcullis_app::{
    AuthorizationParts, ConfidentialClient, ConfidentialClients, DocumentRules, KeySource,
};
use portcullis_core::authorization::{
    COMMAND_LINE, Client, ClientKind, ClientRef, MAX_CLIENT_ID, OwnHosts, RedirectUri,
    RegistrationKey,
};
use portcullis_upstream::{Endpoint, KeyLocation, Outbound};
use serde::Deserialize;
use tokio_util::task::TaskTracker;

use super::trust::Jwks;

/// Seconds for which the keys of a client are good while its JWK Set cannot be fetched.
const STALE_SECONDS: i64 = 24 * 60 * 60;

/// `[oauth]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OAuthServer {
    /// Offered where people can log in, unless this says otherwise.
    pub(crate) enabled: Option<bool>,
    /// Addresses of metadata documents that clients may have; each may end in `*`. Any when absent.
    pub(crate) clients: Option<Vec<String>>,
    /// Schemes of programs that clients may return to unless they are declared. Any that no browser or system
    /// interprets when absent.
    pub(crate) redirect_schemes: Option<Vec<String>>,
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
    /// Addresses that browsers are sent back to; none for a client that acts by ID-JAGs alone.
    #[serde(default)]
    redirect_uris: Vec<String>,
    /// Keys with which it proves itself: the address of its JWK Set,
    jwks_url: Option<String>,
    /// or the set itself. A client without keys is public.
    jwks: Option<Jwks>,
}

impl OAuthServer {
    /// Rejects patterns that no metadata document matches, schemes that are of no program, and what is wrong with
    /// declared clients.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut schemes = self.redirect_schemes.iter().flatten();
        if let Some(scheme) = schemes.find(|scheme| !RedirectUri::is_own_scheme(scheme)) {
            return Err(format!(
                "`oauth.redirect_schemes` holds `{scheme}`, but has to hold schemes of programs, such as cursor, \
                 which no browser or system interprets itself"
            ));
        }
        // A host that goes on behind the pattern would be another one.
        let host_ends = |pattern: &str| {
            let host = pattern.strip_prefix("https://").and_then(|rest| rest.split_once('/'));
            host.is_some_and(|(host, _)| !host.is_empty() && !host.contains('*'))
        };
        let patterns = self.clients.iter().flatten();
        match patterns.into_iter().find(|pattern| !host_ends(pattern)) {
            Some(pattern) => Err(format!(
                "`oauth.clients` holds `{pattern}`, but has to hold addresses with a whole host and a \
                 path, such as https://claude.ai/*"
            )),
            None => self.declared().and_then(|_| self.confidential()).map(drop),
        }
    }

    /// The parts of the authorization server.
    pub(crate) fn parts(
        &self,
        hosts: OwnHosts,
        registrations: RegistrationKey,
        outbound: &Outbound,
        tasks: &TaskTracker,
    ) -> Result<AuthorizationParts, String> {
        Ok(AuthorizationParts {
            enabled: self.enabled,
            hosts,
            registrations,
            declared: self.declared()?,
            confidential: ConfidentialClients::new(self.confidential()?, outbound, tasks),
            documents: self.documents(outbound.clone()),
            redirect_schemes: self
                .redirect_schemes
                .as_ref()
                .map(|schemes| schemes.iter().map(|scheme| scheme.to_ascii_lowercase()).collect()),
        })
    }

    /// The rules by which metadata documents are fetched.
    fn documents(&self, outbound: Outbound) -> DocumentRules {
        let hosts = self.private_hosts.iter().map(|host| host.to_ascii_lowercase());
        DocumentRules { allowed: self.clients.clone(), private_hosts: hosts.collect(), outbound }
    }

    /// The declared clients. Rejects ids that others could have, and addresses that no browser is sent back to.
    fn declared(&self) -> Result<Vec<Client>, String> {
        let mut clients: Vec<Client> = vec![Client::command_line()];
        for declared in self.client.iter().filter(|it| it.has_address() || !it.has_keys()) {
            let client = declared.client()?;
            if clients.iter().any(|known| known.reference().id == declared.id) {
                return Err(match declared.id.as_str() {
                    COMMAND_LINE => format!(
                        "`oauth.client.id` is `{COMMAND_LINE}`, which is the command line's own"
                    ),
                    id => format!("`oauth.client` has `{id}` twice"),
                });
            }
            clients.push(client);
        }
        Ok(clients)
    }

    /// The declared clients that prove themselves with a key.
    fn confidential(&self) -> Result<Vec<ConfidentialClient>, String> {
        let clients = self.client.iter().filter(|declared| declared.has_keys());
        clients.map(DeclaredClient::confidential).collect()
    }

    /// Files are found from the folder of the configuration.
    pub(crate) fn take_paths_from(&mut self, folder: &Path) {
        let sets = self.client.iter_mut().filter_map(|declared| declared.jwks.as_mut());
        sets.for_each(|jwks| jwks.take_paths_from(folder));
    }
}

impl DeclaredClient {
    const fn has_address(&self) -> bool {
        !self.redirect_uris.is_empty()
    }

    const fn has_keys(&self) -> bool {
        self.jwks.is_some() || self.jwks_url.is_some()
    }

    fn confidential(&self) -> Result<ConfidentialClient, String> {
        let id = self.known_id()?.clone();
        let error = |error: String| format!("`oauth.client` `{id}`: {error}");
        let keys = match (&self.jwks, &self.jwks_url) {
            (Some(jwks), None) => jwks.source().map_err(error)?,
            (None, Some(url)) => {
                let url = Endpoint::public(url);
                let url = url.map_err(|wrong| error(format!("`jwks_url`: {wrong}")))?;
                let location = KeyLocation::Jwks(url);
                KeySource::Published { location, stale_seconds: STALE_SECONDS }
            }
            (Some(_), Some(_)) | (None, None) => {
                return Err(error("give either `jwks_url` or `jwks`, one of them".to_owned()));
            }
        };
        let name = self.name.clone().unwrap_or_else(|| id.clone());
        let reference = ClientRef { id, kind: ClientKind::Declared, name };
        Ok(ConfidentialClient { reference, keys })
    }

    /// Its id, which no other kind of client can have.
    fn known_id(&self) -> Result<&String, String> {
        let id = &self.id;
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~".contains(letter);
        let known = ["dcr_", "reg_", "sa_", "usr_"].iter().any(|prefix| id.starts_with(prefix));
        if id.is_empty() || id.len() > MAX_CLIENT_ID || !id.chars().all(plain) || known {
            return Err(format!(
                "`oauth.client.id` is `{id}`, but has to be letters, digits and `-._~`, and may not \
                 begin like the id of a registered client or of a principal"
            ));
        }
        Ok(id)
    }

    fn client(&self) -> Result<Client, String> {
        let id = self.known_id()?;
        let uri = |text: &String| {
            RedirectUri::parse(text).ok_or_else(|| {
                format!(
                    "`oauth.client.redirect_uris` of `{id}` holds `{text}`, but has to hold https \
                     addresses, http at loopback addresses, or addresses of a program with a scheme of its own, \
                     such as app:/callback"
                )
            })
        };
        let uris: Result<Vec<_>, _> = self.redirect_uris.iter().map(uri).collect();
        let name = Some(self.name.as_deref().unwrap_or(id));
        Client::new(id.clone(), ClientKind::Declared, name, uris?)
            .map_err(|error| format!("`oauth.client` `{id}`: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_client_has_no_id_of_another_kind() {
        let ulid = "01M754BKTKX1YB8Q05NMW9TP4G";
        for (id, is_accepted) in [
            ("desk".to_owned(), true),
            (format!("usr_{ulid}"), false),
            (format!("sa_{ulid}"), false),
            ("reg_x".to_owned(), false),
        ] {
            let client =
                format!("[[client]]\nid = \"{id}\"\nredirect_uris = [\"https://a.example/cb\"]");
            let read: OAuthServer = toml::from_str(&client).unwrap();

            assert_eq!(read.check().is_ok(), is_accepted, "{id}");
        }
    }

    #[test]
    fn schemes_are_those_of_programs() {
        for (lines, is_accepted) in [
            ("redirect_schemes = []", true),
            ("redirect_schemes = [\"Cursor\", \"com.example.app\"]", true),
            ("redirect_schemes = [\"cursor\", \"javascript\"]", false),
            ("redirect_schemes = [\"https\"]", false),
            ("redirect_schemes = [\"cursor://\"]", false),
            ("[[client]]\nid = \"desk\"\nredirect_uris = [\"warp://mcp/cb\"]", true),
            ("[[client]]\nid = \"desk\"\nredirect_uris = [\"data:x\"]", false),
        ] {
            let read: OAuthServer = toml::from_str(lines).unwrap();

            assert_eq!(read.check().is_ok(), is_accepted, "{lines}");
        }
    }

    #[test]
    fn a_pattern_of_clients_ends_its_host() {
        for (pattern, is_accepted) in [
            ("https://app.example/*", true),
            ("https://app.example/client.json", true),
            ("https://app.example:8443/a*", true),
            ("https://app.example*", false),
            ("https://app.example", false),
            ("https://*.example/client.json", false),
            ("https:///*", false),
            ("http://app.example/*", false),
            ("*", false),
        ] {
            let read: OAuthServer = toml::from_str(&format!("clients = [\"{pattern}\"]")).unwrap();

            let checked = read.check();

            let told = checked.as_ref().is_err_and(|error| error.contains("https://claude.ai/*"));
            assert_eq!((checked.is_ok(), told), (is_accepted, !is_accepted), "{pattern}");
        }
    }
}
