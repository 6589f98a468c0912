//! Pages of other origins that the operator lists: preflights, and headers that they may read.

use crate::prelude::*;

const PAGE: &str = "http://localhost:6274";

fn builder() -> Builder {
    gateway().config(&format!("[mcp]\norigins = [\"{PAGE}\"]")).sample()
}

async fn preflight(gateway: &Gateway, origin: &str, headers: &str) -> Answer {
    let request = gateway.request(Method::OPTIONS, "/mcp").header("origin", origin);
    let request = request.header("access-control-request-method", "POST");
    gateway.send(request.header("access-control-request-headers", headers)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_are_listed_read_answers_and_preflights_and_others_nothing() {
    // A listed page can read answers and refusals.
    let (gateway, who) = serve(builder());
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let post = || {
        let request = gateway.request(Method::POST, "/mcp").header("origin", PAGE);
        request.header("content-type", "application/json").body(message.clone())
    };

    let answered = gateway.send(post().bearer_auth(&who.token)).await;
    let refused = gateway.send(post()).await;

    assert_eq!((answered.status.as_u16(), refused.status.as_u16()), (200, 401));
    for answer in [&answered, &refused] {
        assert_eq!(answer.header("access-control-allow-origin"), PAGE);
        let exposed = answer.header("access-control-expose-headers");
        assert!(exposed.contains("www-authenticate") && exposed.contains("x-ratelimit-limit"));
        assert!(exposed.contains("dpop-nonce"), "{exposed}");
    }
    let own = gateway.send(gateway.request(Method::GET, "/healthz").header("origin", PAGE)).await;
    // Elsewhere there are no pages.
    assert!(!own.headers.contains_key("access-control-allow-origin"));

    // A preflight of a listed page is answered without a token however often.
    let asked = "Authorization, content-type, DPoP, mcp-protocol-version, x-evil";

    // More often than a stranger may fail.
    for _ in 0..50 {
        let answer = preflight(&gateway, PAGE, asked).await;

        assert_eq!(answer.status, 204, "{}", answer.text);
        assert_framed(&answer, "preflight");
        assert_eq!(answer.header("access-control-allow-origin"), PAGE);
        assert_eq!(answer.header("access-control-allow-methods"), "POST");
        let allowed = "authorization, content-type, dpop, mcp-protocol-version";
        assert_eq!(answer.header("access-control-allow-headers"), allowed);
        assert!(answer.header("vary").contains("Origin"));
    }

    // A page of another origin is told nothing.
    for origin in ["https://evil.example", "http://localhost:6275", "null"] {
        let answer = preflight(&gateway, origin, "authorization").await;

        assert_eq!(answer.status, 401, "{origin}: {}", answer.text);
        for name in ["access-control-allow-origin", "access-control-allow-headers"] {
            assert!(!answer.headers.contains_key(name), "{origin}");
        }
    }
}
