//! The pages of an org with nothing in it: each says what to do next.

use super::Site;
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_an_empty_org_say_what_to_do_next() {
    let upstream = Hostile::start(Vec::new()).await;
    let gateway = gateway().config("[login]\nlinks = true").start();
    let org = gateway.org("acme", &ENOUGH);
    let site = Site { gateway, upstream, org };
    let admin = site.browser("Ada", "admin").await;

    for (path, sentence) in [
        ("/console", "No tool is visible to you yet. See the"),
        ("/console/events?decision=deny", "No event fits these filters."),
        ("/console/log", "Without times, an export has the last 30 days."),
        ("/console/log", "<code>portcullis audit hold add</code> lays one"),
        ("/console/approvals", "<code>@require_approval</code>"),
        ("/console/tools", "No tool is visible to you. See the <a href=\"/console/providers\">"),
        ("/console/waiting", "No definition waits. One that a provider changes"),
        ("/console/providers", "connect one of them below"),
        ("/console/limits", "Callers that are get 429"),
        ("/console/people?role=service", "Make a user or a service account below."),
        ("/console/tokens", "Make one for a service account below."),
        ("/console/clients", "Add the gateway to one by the settings below."),
    ] {
        let page = admin.open(path).await;

        assert_eq!(page.status, 200, "{path}: {}", page.text);
        assert!(page.text.contains("class=\"empty\""), "{path}: {}", page.text);
        assert!(page.text.contains(sentence), "{path}: {}", page.text);
    }
}
