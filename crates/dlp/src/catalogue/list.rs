//! Every built-in detector.

use super::{contact, detector::Detector, financial, health, ids, injection, network, secrets};
use crate::vocabulary::Action;

/// Default action for the findings of a detector, where it differs from its category's; policies
/// and settings override it.
pub(crate) fn usual_action(name: &str) -> Option<Action> {
    (name == financial::CARD_NUMBER_ALONE || reports_doubts(name)).then_some(Action::Flag)
}

/// Returns true for the detector of numbers that others turned down.
pub(crate) fn reports_doubts(name: &str) -> bool {
    name == ids::MISTYPED_NUMBER
}

/// Private keys, and tokens of clouds and of code hosts: what is acted on whatever the settings say.
const FLOOR: &[&str] = &[
    "private_key",
    "putty_private_key",
    "wireguard_private_key",
    "aws_access_key",
    "aws_secret_key",
    "aws_session_token",
    "aws_bedrock_api_key",
    "azure_client_secret",
    "azure_service_key",
    "azure_annotated_key",
    "azure_devops_token",
    "entra_refresh_token",
    "google_api_key",
    "google_oauth_token",
    "google_client_secret",
    "google_express_key",
    "google_hmac_key",
    "alibaba_access_key",
    "cloudflare_token",
    "cloudflare_origin_ca_key",
    "digitalocean_token",
    "heroku_api_key",
    "github_token",
    "gitlab_token",
    "gitlab_runner_token",
    "atlassian_token",
    "bitbucket_server_token",
];

/// Returns true if the findings of a detector are acted on whatever the settings say.
pub(crate) fn is_on_floor(name: &str) -> bool {
    FLOOR.contains(&name)
}

/// Every built-in detector, in the order of the documentation.
pub(crate) fn all() -> impl Iterator<Item = &'static Detector> {
    let others: [&[Detector]; 4] = [contact::ALL, network::ALL, health::ALL, injection::ALL];
    let groups = secrets::ALL.iter().chain(financial::ALL).chain(ids::ALL).copied();
    groups.chain(others).flatten()
}
