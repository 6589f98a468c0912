//! The official MCP conformance suite: its scenarios for authorization servers, for both revisions, with a person
//! who allows it in a real browser. Each scenario of the suite stands in [`SCENARIOS`]; all of them pass. Its
//! scenarios for clients are in [`crate::client_conformance`].

use std::net::TcpListener;

use portcullis_testkit::Chromium;
use tokio::process::Command;

use super::{
    Site,
    clients::{Program, QUESTION, sign_in},
};
use crate::{
    mcp::clients::{PATIENCE, node},
    prelude::*,
};

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// The scenarios of both revisions, each with its number of checks. The first gives the second the metadata.
const SCENARIOS: [(&str, u32); 2] =
    [("authorization-server-metadata-endpoint", 2), ("authorization-code-grant", 1)];

fn suite(arguments: &[&str]) -> Command {
    let entry = servers().join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let mut command = Command::new(node());
    command.arg(entry).args(arguments).kill_on_drop(true);
    command
}

#[tokio::test]
async fn every_scenario_of_the_suite_for_authorization_servers_is_played() {
    let listed = timeout(PATIENCE, suite(&["list"]).output()).await.unwrap().unwrap();

    let listed = String::from_utf8(listed.stdout).unwrap();
    let (_, listed) = listed.split_once("Authorization server scenarios").expect("their list");
    for revision in REVISIONS {
        let named = listed.lines().filter_map(|line| line.trim().strip_prefix("- "));
        let named = named.filter(|line| line.contains(revision));
        let named: BTreeSet<_> = named.filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(named, SCENARIOS.map(|(name, _)| name).into(), "{revision}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_is_an_authorization_server_as_the_suite_wants() {
    let site = Site::sampled();
    let browser = Chromium::start();
    sign_in(&site, &browser, "Sign out");
    for revision in REVISIONS {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = free.unwrap().port().to_string();
        // Loopback addresses may have any port.
        let client = site.client("http://127.0.0.1/callback").await;
        let resource = format!("{}/mcp", site.gateway.url());
        let mut play = Program::start(&suite(&[
            "authorization",
            "--url",
            site.gateway.url(),
            "--client-id",
            &client.id,
            "--resource",
            &resource,
            "--port",
            &port,
            "--spec-version",
            revision,
        ]));

        browser.go(&play.opens().await, QUESTION);
        browser.click("Allow", "/callback?code=");
        let told = play.ends().await;

        for (scenario, checks) in SCENARIOS {
            let held = format!("{scenario}: {checks} passed, 0 failed");
            assert!(told.contains(&held), "`{held}` of {revision}: {told}");
        }
    }
}
