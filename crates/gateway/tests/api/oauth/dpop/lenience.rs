//! Proofs of clients whose clocks are off, or that write addresses in their own way.

use super::{Bound, ask, claims_of, tools};
use crate::{
    oauth::grants::{now, with},
    prelude::*,
};

/// Seconds by which a clock is off.
const DAY: i64 = 86_400;

#[tokio::test(flavor = "multi_thread")]
async fn a_nonce_stands_for_the_time_and_addresses_are_read_as_they_are_written() {
    // A nonce stands for the time where a clock is off.
    let bound = Bound::start();
    let Bound { gateway, key, token, address } = &bound;
    let timely = key.proof_of("GET", address, token);
    let timely = tools(gateway, "DPoP", token, &[&timely]).await.ok();
    let own = json!(timely.header("dpop-nonce"));
    for away in [-DAY, DAY] {
        let sent = async |nonce: &Value| -> (Answer, String) {
            let off = json!({ "iat": now() + away, "nonce": nonce });
            let proof = key.sign(&key.header(), &with(claims_of("GET", address, token), &off));
            (tools(gateway, "DPoP", token, &[&proof]).await, proof)
        };

        for unfit in [&Value::Null, &json!("unknown"), &own] {
            let (refused, _) = sent(unfit).await;
            has!("{unfit}"; refused, 401 "use_dpop_nonce", "/error/details/check": "iat");
            let challenge = refused.header("www-authenticate");
            assert!(challenge.contains("\"The DPoP proof needs a nonce: its `iat`"), "{challenge}");
            let (good, proof) = sent(&json!(refused.header("dpop-nonce"))).await;
            assert_eq!(good.status, 200, "{away}: {}", good.text);
            let again = tools(gateway, "DPoP", token, &[&proof]).await;
            assert_eq!(again.at("/error/details/check"), "replay", "{away}: {}", again.text);
        }
    }

    // Both spellings of the path of a tool are one address for a proof.
    let authorization = format!("DPoP {token}");
    for (path, named, status) in [
        ("/v1/mcps/sample:list_items", "/v1/mcps/sample%3Alist_items", 200),
        ("/v1/mcps/sample%3Alist_items", "/v1/mcps/sample:list_items", 200),
        ("/v1/mcps/sample%3alist_items", "/v1/mcps/sample%3Alist_items", 200),
        ("/v1/mcps/sample:list_items", "/v1/mcps%2Fsample:list_items", 401),
    ] {
        let proof = key.proof_of("GET", &format!("{}{named}", gateway.url()), token);
        let headers = [("authorization", authorization.as_str()), ("dpop", &proof)];
        let answer = ask(gateway, Method::GET, path, &headers, None).await;

        assert_eq!(answer.status, status, "{path} {named}: {}", answer.text);
    }
}
