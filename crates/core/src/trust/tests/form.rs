//! Tokens that are refused before any key is looked at.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    claims,
    issuer::{Issuer, b64},
};
use crate::trust::{Algorithm, CredentialCheck, Jwt, MAX_JWT_BYTES, Rejection, is_jwt_shaped};

fn header() -> Value {
    json!({"alg": "RS256", "typ": "JWT", "kid": "rsa"})
}

fn parsed(header: &Value) -> Result<Jwt, Rejection> {
    Jwt::parse(&Issuer::get().sign_with(Algorithm::Rs256, header, &claims()))
}

fn refusal(text: &str) -> String {
    let rejection = Jwt::parse(text).unwrap_err();
    assert_eq!(rejection.check(), CredentialCheck::Signature, "{rejection}");
    rejection.to_string()
}

#[test]
fn a_header_with_another_algorithm_is_refused() {
    let texts =
        ["none", "None", "NONE", "HS256", "RS512", "RS1", "ES384", "ES256K", "rs256", " RS256"];
    let others = [json!(["RS256"]), json!(256), json!(null)];
    for alg in texts.map(Value::from).into_iter().chain(others) {
        let header = json!({"alg": alg, "kid": "rsa"});

        assert!(parsed(&header).unwrap_err().to_string().contains("`alg`"), "{header}");
    }
    assert!(parsed(&json!({"kid": "rsa"})).unwrap_err().to_string().contains("`alg`"));
}

#[test]
fn a_jwt_declared_for_another_purpose_is_refused() {
    for kind in [
        json!("logout+jwt"),
        json!("application/logout+jwt"),
        json!("dpop+jwt"),
        json!("secevent+jwt"),
        json!("token-introspection+jwt"),
        json!("entity-statement+jwt"),
        json!("oauth-authz-req+jwt"),
        json!("JWE"),
        json!("application/"),
        json!(""),
        json!(["JWT"]),
        json!(null),
    ] {
        let header = json!({"alg": "RS256", "typ": kind});

        assert!(parsed(&header).unwrap_err().to_string().contains("`typ`"), "{header}");
    }
    for kind in ["JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt", "Application/JWT", "JOSE"]
    {
        assert!(parsed(&json!({"alg": "RS256", "typ": kind})).is_ok(), "{kind}");
    }
}

#[test]
fn extensions_that_have_to_be_understood_are_refused() {
    for crit in [json!(["b64"]), json!(["exp"]), json!([]), json!(null)] {
        let header = json!({"alg": "RS256", "crit": crit, "b64": false});

        assert!(parsed(&header).unwrap_err().to_string().contains("crit"), "{header}");
    }
}

#[test]
fn a_key_id_is_a_short_text() {
    let long = "k".repeat(257);
    for kid in [json!(1), json!(["rsa"]), json!({}), json!(null), json!(long)] {
        let header = json!({"alg": "RS256", "kid": kid});

        assert!(parsed(&header).unwrap_err().to_string().contains("`kid`"), "{header}");
    }
}

#[test]
fn what_is_not_three_parts_of_base64url_is_refused() {
    let good = Issuer::get().sign(&claims());
    let (signed, signature) = good.rsplit_once('.').unwrap();
    for text in [
        String::new(),
        "...".to_owned(),
        "a".to_owned(),
        signed.to_owned(),
        format!("{good}."),
        format!("{good}.{signature}"),
        format!("{good}="),
        format!("{good}=="),
        format!("{signed}.{signature}\n"),
        format!(" {good}"),
        good.replace('_', "/").replace('-', "+") + "+",
        format!("{}.{}.{signature}", b64("{"), b64(claims().to_string())),
    ] {
        refusal(&text);
    }
}

#[test]
fn a_jwt_may_have_sixteen_kibibytes_and_an_id_token_of_its_issuer_sixty_four() {
    let room = |size: usize| {
        let mut claims = claims();
        claims["padding"] = json!(vec!["x".repeat(100); size / 104]);
        Issuer::get().sign(&claims)
    };

    assert!(Jwt::parse(&room(11_000)).is_ok());
    assert!(room(12_400).len() > MAX_JWT_BYTES);
    assert!(refusal(&room(12_400)).contains("16 KiB"));
    assert!(refusal(&"x".repeat(1 << 20)).contains("16 KiB"));
    assert!(Jwt::parse_id_token(&room(48_000)).is_ok());
    let longer = Jwt::parse_id_token(&room(50_000)).unwrap_err();
    assert!(longer.to_string().contains("64 KiB"), "{longer}");
    let mut many = claims();
    many["groups"] = json!(vec!["g"; 8_000]);
    assert!(Jwt::parse_id_token(&Issuer::get().sign(&many)).is_ok());
}

#[test]
fn json_that_two_readers_could_read_differently_is_refused() {
    let issuer = Issuer::get();
    let header = header().to_string();
    let claims = claims().to_string();
    let deep = format!(r#"{{"iss":"x","a":{}1{}}}"#, "[".repeat(9), "]".repeat(9));
    let wide = format!(r#"{{"iss":"x","a":[{}1]}}"#, "1,".repeat(2_000));
    for (header, claims) in [
        (r#"{"alg":"RS256","alg":"RS256"}"#, claims.as_str()),
        (r#"{"alg":"RS256","\u0061lg":"RS256"}"#, &claims),
        (&header, r#"{"iss":"a","iss":"b"}"#),
        (&header, r#"{"iss":"a","x":{"y":1,"y":2}}"#),
        (&header, &deep),
        (&header, &wide),
        (&header, r#"{"iss":"a"} {}"#),
        (&header, "[]"),
        (&header, r#""text""#),
        ("[]", &claims),
        (&header, ""),
        ("", &claims),
        (&header, "\u{feff}{}"),
        (&header, r#"{"iss":"a","exp":11111111111111111111111111111111111}"#),
        (&header, r#"{"iss":"a","sub":7}"#),
        (&header, r#"{"iss":"a","sub":null}"#),
    ] {
        refusal(&issuer.sign_text(Algorithm::Rs256, header, claims));
    }
}

#[test]
fn without_an_issuer_nobody_is_trusted() {
    for claims in [json!({}), json!({"iss": 7}), json!({"iss": ["https://login.acme.example"]})] {
        let rejection = Jwt::parse(&Issuer::get().sign(&claims)).unwrap_err();

        assert_eq!(rejection.check(), CredentialCheck::Issuer, "{claims}");
    }
}

#[test]
fn the_shape_of_a_jwt_is_not_that_of_our_tokens() {
    assert!(is_jwt_shaped(&Issuer::get().sign(&claims())));
    for text in [
        "mcp_live_0EesofMSwCG8nv7cDAQcRILuT7BcZuvX1rxfbu",
        "svc_live_TNnwkiflsxEy9KeHg5z85x63fBld5c3k45IJpx",
        "",
        "a.b",
        "a.b.c.d",
        "a.b.c d",
        "a.b.ç",
    ] {
        assert!(!is_jwt_shaped(text), "{text}");
    }
}

#[test]
fn neither_a_jwt_nor_its_claims_are_printed_by_debug() {
    let text = Issuer::get().sign(&claims());
    let jwt = Jwt::parse(&text).unwrap();

    let shown = format!("{jwt:?} {:?}", jwt.unverified());

    assert!(!shown.contains("acme") && !shown.contains(&text[..20]), "{shown}");
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,60}\\..{0,60}\\..{0,60}") {
        let _ = Jwt::parse(&text);
    }

    #[test]
    fn no_header_or_claims_make_the_parser_panic(
        header in "\\PC{0,80}", claims in "\\PC{0,80}", signature in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let text = format!("{}.{}.{}", b64(header), b64(claims), b64(signature));
        if let Ok(jwt) = Jwt::parse(&text) {
            prop_assert!(jwt.verify(Issuer::get().keys()).is_err());
        }
    }
}
