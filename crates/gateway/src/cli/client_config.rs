//! `portcullis client-config`: settings of MCP clients, to be pasted.

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use portcullis_core::{capability::ProviderSlug, did_you_mean};
use portcullis_faces::client_settings::{ClientEntry, McpClient};

use super::{installation::Installation, output::Failure};
use crate::config::{self, Config, Server};

/// The variable from which clients take the token, unless another is named.
const TOKEN: &str = "PORTCULLIS_TOKEN";

#[derive(Args)]
pub(super) struct ClientConfig {
    #[command(flatten)]
    installation: Installation,
    /// The client whose settings are printed
    #[arg(long, value_parser = client_names(), default_value = McpClient::Claude.name())]
    client: McpClient,
    /// Only the tools of this provider, under their own names
    #[arg(long, value_name = "SLUG")]
    provider: Option<ProviderSlug>,
    /// Environment variable that holds the token
    #[arg(long, value_name = "NAME", value_parser = variable, default_value = TOKEN)]
    token_env: String,
}

/// Reads a client by its name.
fn client_names() -> impl TypedValueParser<Value = McpClient> {
    let names = McpClient::ALL.map(|client| {
        PossibleValue::new(client.name()).help(format!("{}: `{}`", client.title(), client.file()))
    });
    PossibleValuesParser::new(names)
        .try_map(|name| McpClient::from_name(&name).ok_or("no such client"))
}

/// Reads the name of an environment variable, which stands in files that programs expand.
fn variable(name: &str) -> Result<String, &'static str> {
    let is_letter = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    let is_name = name.bytes().all(is_letter) && !name.starts_with(|it: char| it.is_ascii_digit());
    if is_name && !name.is_empty() {
        Ok(name.to_owned())
    } else {
        Err("a name of an environment variable is A-Z, a-z, 0-9 and `_`, and begins with no digit")
    }
}

impl ClientConfig {
    /// Prints the settings; nothing of them is secret.
    pub(super) fn run(self) -> Result<(), Failure> {
        let config = self.installation.own_config()?;
        self.check_provider(&config)?;
        let origin = match &self.installation.remote.url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => origin(&config.server)?,
        };
        let (name, path) = match &self.provider {
            Some(slug) => (format!("portcullis-{slug}"), format!("/mcp/{slug}")),
            None => ("portcullis".to_owned(), "/mcp".to_owned()),
        };
        if let Some(cliff) = config.mcp.told_of_cliff().filter(|_| self.provider.is_none()) {
            self.installation.output().note(&cliff);
        }
        let url = format!("{origin}{path}");
        let entry = ClientEntry { name: &name, url: &url, token: Some(&self.token_env) };
        self.installation.output().line(&self.client.settings(&entry))
    }

    /// Rejects a provider that a configuration does not declare. Without one, and of a gateway elsewhere, the
    /// providers are not known.
    fn check_provider(&self, config: &Config) -> Result<(), Failure> {
        let is_known = config.is_given && self.installation.remote.url.is_none();
        let Some(slug) = self.provider.as_ref().filter(|_| is_known) else { return Ok(()) };
        let declared = || config.providers.iter().map(|provider| provider.slug.as_str());
        if declared().any(|known| known == slug.as_str()) {
            return Ok(());
        }
        let nearest = did_you_mean(slug.as_str(), declared());
        Err(format!("the configuration declares no provider `{slug}`{nearest}").into())
    }
}

/// Origin of the gateway, for clients.
pub(super) fn origin(server: &Server) -> Result<String, Failure> {
    if let Some(url) = &server.public_url {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    let address = config::address(&server.listen, "server.listen")?;
    let scheme = if server.tls.is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{address}"))
}
