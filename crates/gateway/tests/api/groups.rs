//! `portcullis principal set-groups`: groups that the operator puts principals into.

use portcullis_testkit::tool;

use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn policies_see_the_groups_that_the_operator_put_a_principal_into() {
    const FOR_FINANCE: &str = "@id(\"finance\") permit (principal in Mcp::Group::\"finance\", \
        action, resource);\n@id(\"books\") @require_approval(\"approvers=finance\")\n\
        forbid (principal, action == Mcp::Action::\"up:close\", resource);";
    let server = McpServer::start(vec![tool("read"), tool("close")]).await;
    let (gateway, admin) =
        serve_admin(gateway().policies(FOR_FINANCE).http("up", &server.url(), ""));
    let ci = gateway.service(&admin.org, "mcps:read mcps:invoke");
    let set = |groups: &[&str]| {
        gateway.admin(&[&["principal", "set-groups", &ci.id][..], groups].concat())
    };
    let becomes = async |status: u16| {
        let call = async || gateway.invoke(&ci, "up:read", json!({})).await;
        let answered = async || Some(call().await).filter(|call| call.status == status);
        eventually("a call in the groups of now", answered).await
    };
    let imagined = async || {
        let case = json!({"tool": "up:read", "input": {}, "principal": {"id": ci.id}});
        let answer = gateway.post(&admin, "/v1/policies/simulate", &case.to_string()).await;
        answer.at("/data/results/0/decision").as_str().expect(&answer.text).to_owned()
    };
    let warnings = async || {
        let policy = gateway.get(&admin, "/v1/policies/books").await;
        policy.at("/data/validation/warnings").to_string()
    };
    assert!(warnings().await.contains("set-groups"), "{}", warnings().await);
    becomes(403).await;
    assert_eq!(imagined().await, "deny");

    assert_eq!(set(&["finance", "on-call"])["groups"], json!(["finance", "on-call"]));

    let call = becomes(200).await;
    assert_eq!(imagined().await, "allow");
    assert!(!warnings().await.contains("set-groups"), "{}", warnings().await);
    let event = gateway.get(&admin, &format!("/v1/audit/events/{}", call.event_id())).await;
    let inputs = event.at("/data/detached/decision_inputs/principal/groups");
    assert_eq!(inputs, &json!(["finance", "on-call"]), "{}", event.text);
    assert_eq!(set(&["on-call"])["groups"], json!(["on-call"]));
    becomes(403).await;
    assert_eq!(set(&["--none"])["groups"], json!([]));
    let long = "g".repeat(201);
    for (groups, wanted) in [
        (&[][..], "--none"),
        (&["a", "--none"], "cannot be used"),
        (&["a\nb"], "control"),
        (&[&long], "1 to 200"),
    ] {
        let command = [&["principal", "set-groups", &ci.id][..], groups].concat();
        let (code, told) = failure(&gateway, &command).await;
        assert!(code != 0 && told.contains(wanted), "{command:?}: {code}: {told}");
    }
}
