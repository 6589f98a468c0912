//! Keys of payment, commerce and exchange services.

use super::{named, vendor};
use crate::dlp::detector::Detector;

pub(super) const ALL: &[Detector] = &[
    vendor("stripe_key", "Stripe secret or restricted key", &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_prod_", "rk_prod_", "sk_org_"], r"[rs]k_(?:live|test|prod|org_live|org_test)_[0-9A-Za-z]{10,247}")
        .fires(&[concat!("sk_live_", "FK3ih2Zo4yK5LtGdyNUHr06G"), concat!("sk_test_", "gc8hg4PX4802JgQuzY4HIbmY")])
        .passes(&["sk_live_xxxxxxxxxxxxxxxxxxxxxxxx", "pk_live_abc", "disk_test_results"]),
    vendor("stripe_webhook_secret", "Webhook signing secret of Stripe and others", &["whsec_"], r"whsec_[0-9A-Za-z+/]{32,64}={0,2}")
        .fires(&[concat!("whsec_", "t294g65H3QF4gYUtOvlUo0UInwzggTTM")])
        .passes(&["whsec_"]),
    vendor("square_token", "Square access token or secret", &["sq0atp-", "sq0csp-", "sq0idp-", "eaaa"], r"sq0(?:atp|csp|idp)-[0-9A-Za-z_-]{22,60}|EAAA[0-9A-Za-z_-]{22,60}")
        .fires(&[concat!("sq0atp-", "Qp7Yq77r7v-91j5fTsVgj1")])
        .passes(&["sq0atp-x", "EAAA"])
        .needing_letters(),
    vendor("paypal_braintree_token", "PayPal or Braintree production access token", &["access_token$"], r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}")
        .fires(&[concat!("access_token$production$", "3v7lk8ad4ls6djwn$15ceeaf5c149678e13ffc879f7e74af3")])
        .passes(&["access_token$x"]),
    vendor("razorpay_key", "Razorpay key", &["rzp_live_", "rzp_test_"], r"rzp_(?:live|test)_[0-9A-Za-z]{14,20}")
        .fires(&[concat!("rzp_live_", "3C5aT43W3xX7SD")])
        .passes(&["rzp_live_"]),
    vendor("adyen_key", "Adyen API key", &["aqe"], r"AQE[0-9a-z]hm[0-9A-Za-z+/=-]{60,300}")
        .fires(&[concat!("AQE1hm", "0b7049eY2y46TnZhxyb8zHop0bshfIz0buOtkT2ex9OY2Urear0GAo9uMA7rPAphLPleYTMbIhrtj1OwLLyxU8rSUz")])
        .passes(&["AQE"]),
    named("gocardless_token", "GoCardless token, beside its name", &["gocardless"], r"(?:live|sandbox)_[0-9A-Za-z=_-]{40}")
        .fires(&[concat!(r#"gocardless_token = ""#, "live_EY9Bn7M42We8VJEIVfxwwMsVaZZOFwsOVMqd4dbe", r#"""#), concat!(r#"{"gocardlessApiKey": ""#, "live_qR3mj3jK2xC661fALN5g-YDUODvslImBjI3L0C-l", r#""}"#)])
        .passes(&[concat!("", "live_tN48v9s83g794W2ppBtZYXhahs93ly7pBREJAEp3")])
        .telling(),
    vendor("plaid_token", "Plaid access token", &["access-sandbox-", "access-development-", "access-production-"], r"access-(?:sandbox|development|production)-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("access-sandbox-", "0696067d-40a4-431d-a763-c04a04fdd040")])
        .passes(&["access-sandbox-"]),
    named("plaid_secret", "Plaid client id or secret, beside its name", &["plaid"], r"[0-9A-Za-z]{30}|[0-9A-Za-z]{24}")
        .fires(&[concat!(r#"plaid_token = ""#, "wi2vm84v7v629mm1nyfj8aicyo5758", r#"""#), concat!(r#"{"plaidApiKey": ""#, "u25xk43p4df68fv0a7oex073m4jf66", r#""}"#)])
        .passes(&[concat!("", "ux9ry9fq44x3iwc70616jlvjv73sgn")]),
    vendor("shopify_token", "Shopify access token or shared secret", &["shpat_", "shpca_", "shppa_", "shpss_", "shptka_"], r"shp(?:at|ca|pa|ss|tka)_[0-9A-Fa-f]{32}")
        .fires(&[concat!("shpat_", "8efb531205deaddb929da9469e1b797b")])
        .passes(&["shpat_0f1e"]),
    vendor("flutterwave_key", "Flutterwave key", &["flwseck", "flwpubk"], r"FLW(?:SECK|PUBK)(?:_TEST)?-[0-9a-hA-H]{12,40}(?:-X)?")
        .fires(&[concat!("FLWSECK_TEST-", "c7f52f58205777262d2f36aabc1da699-X")])
        .passes(&["FLWSECK_TEST-"]),
    vendor("duffel_token", "Duffel API token", &["duffel_"], r"duffel_(?:test|live)_[0-9A-Za-z=_-]{43}")
        .fires(&[concat!("duffel_test_", "sQ8MM7_q84N8jCczIxs9-ZoREb70bHCxrgNCjH861Zu")])
        .passes(&["duffel_test_"]),
    vendor("easypost_token", "EasyPost API token", &["ezak", "eztk"], r"EZ[AT]K[0-9A-Za-z]{54}")
        .fires(&[concat!("EZAK", "qJ5QG4Ls8Jb3paxyvDlFYuPM3aWw674kFS6SeaFuH4gaQGwvudbYHl")])
        .passes(&["EZAK"]),
    vendor("shippo_token", "Shippo API token", &["shippo_"], r"shippo_(?:live|test)_[0-9A-Fa-f]{40}")
        .fires(&[concat!("shippo_live_", "ae62032aece8bacb4205c2734b6679e7d3b3a1b5")])
        .passes(&["shippo_live_"]),
    named("lob_api_key", "Lob API key, beside its name", &["lob"], r"(?:live|test)_(?:pub_)?[0-9a-f]{31,35}")
        .fires(&[concat!(r#"lob_token = ""#, "test_f0db130cd10d8b1a0308fac1cdd9627c796", r#"""#), concat!(r#"{"lobApiKey": ""#, "test_e75250ecfe163d754058f6aec6864b43452", r#""}"#)])
        .passes(&[concat!("", "test_89f111ba08ef85df31f2b78b6cf2693e849")])
        .telling(),
    vendor("paddle_api_key", "Paddle API key", &["pdl_"], r"pdl_(?:live|sdbx)_apikey_[0-9a-z]{26}_[0-9A-Za-z]{22}_[0-9A-Za-z]{3}")
        .fires(&[concat!("pdl_live_apikey_", "h669y3m23wh4a63fsaej842nlp_O82Tz6mI2Bz24GvWnU2S0U_rAS")])
        .passes(&["pdl_live_"]),
    vendor("polar_token", "Polar access token", &["polar_"], r"polar_(?:oat|pat|whs)_[0-9A-Za-z]{30,60}")
        .fires(&[concat!("polar_oat_", "g93VS3PR4tz2BUSzIvnESy2Fj5WCtKI5Etoms97OAsA")])
        .passes(&["polar_coordinates"]),
    named("coinbase_token", "Coinbase token, beside its name", &["coinbase"], r"[0-9A-Za-z_-]{64}")
        .fires(&[concat!(r#"coinbase_token = ""#, "ds9jb3Wk9St45dtNrr9kuDIiOiDvtUO_nEm5VbMP3CtspoPTAkvkslRm93v5v8Tg", r#"""#), concat!(r#"{"coinbaseApiKey": ""#, "648CP5f-9MQ4yyhgqvP-GnXt43st920QYcF0tAw2nA3F0ZaYssg6LwKSvi8DPYoa", r#""}"#)])
        .passes(&[concat!("", "XK8l-7Aj4Fi7skrP-pMDKbBCUrbSgQ7eWZQHHfcmxE6iAuWXatroN8GedinxjKc7")]),
    named("kraken_token", "Kraken token, beside its name", &["kraken"], r"[0-9A-Za-z/=_+-]{80,90}")
        .fires(&[concat!(r#"kraken_token = ""#, "dt4bw9k45jW2SFNWSrWiP9UhPeWo8HGu-v-QcBqxJHhF6QMIrJt5qTPrecQKtWK2XN0Yj22XQFvoTUgdNZ50", r#"""#), concat!(r#"{"krakenApiKey": ""#, "AL65R58b5_o7c_QAn3Hjr_SrhhKsNrpwu0EhtKFUJoXAkrhff1OLsXP4NVIZ0VOPMiYUMw1JK43uGQbXn4nn", r#""}"#)])
        .passes(&[concat!("", "vt9jv3_-7jl2veUczq82JC0KV-b2UQ1tdG5lRMGBf-xt7h7JRfSacIlOp_jEEPmx2CCbTPb_BBsZkOe3r8oh")]),
    named("kucoin_key", "KuCoin key or secret, beside its name", &["kucoin"], r"[0-9a-f]{24}|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"kucoin_token = ""#, "7f6d5f7c9e87822f70bdaf6a", r#"""#), concat!(r#"{"kucoinApiKey": ""#, "4263fd61ea90b44d0bc70408", r#""}"#)])
        .passes(&[concat!("", "9e58c366e3202173b3248428")]),
    named("bittrex_key", "Bittrex key or secret, beside its name", &["bittrex"], r"[0-9a-z]{32}")
        .fires(&[concat!(r#"bittrex_token = ""#, "bd7r67mb6zi5zdegbjcvwu73oeq3z3vd", r#"""#), concat!(r#"{"bittrexApiKey": ""#, "vo7ss2349vd732kqxsnrgrlb2447nxie", r#""}"#)])
        .passes(&[concat!("", "8c8ng61l32q8tytbrdh4ivab8czv0txi")]),
    named("binance_key", "Binance key or secret, beside its name", &["binance"], r"[0-9A-Za-z]{64}")
        .fires(&[concat!(r#"binance_token = ""#, "vU8jI3ud4DB5suM0jcQpKUldBr7Z1FJ0TxDtSb6CdqH0lOfJLDh2GhyKf8NtqenX", r#"""#), concat!(r#"{"binanceApiKey": ""#, "f82jW9um2lq55C604YG6vFqep65Eg2gkssP3Cg123W35HKuWtpipGDF8KzqFRSMq", r#""}"#)])
        .passes(&[concat!("", "tA3a16Th2Fq5HHxuzL7SXUwXoiVKkvqsdgTzPSXjMg6uiX6xmv8JmZgNs1BURTwx")]),
    named("finicity_key", "Finicity token or secret, beside its name", &["finicity"], r"[0-9a-f]{32}|[0-9a-z]{20}")
        .fires(&[concat!(r#"finicity_token = ""#, "8cbbdf220109fa29a142b6cb54c46a6d", r#"""#), concat!(r#"{"finicityApiKey": ""#, "7dd688bc16b4b19282080cde7e83550e", r#""}"#)])
        .passes(&[concat!("", "b56879755109442f2b52bd90cc56704e")]),
    named("finnhub_token", "Finnhub token, beside its name", &["finnhub"], r"[0-9a-z]{20}")
        .fires(&[concat!(r#"finnhub_token = ""#, "9r3i39b33766esne9cys", r#"""#), concat!(r#"{"finnhubApiKey": ""#, "o69t295k6n15pp93tqyl", r#""}"#)])
        .passes(&[concat!("", "4l7ud8v377o8ptz0b4i5")]),
    named("squarespace_token", "Squarespace token, beside its name", &["squarespace"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"squarespace_token = ""#, "438253f2-9bd2-448e-a9b6-d5a04b3a9d94", r#"""#), concat!(r#"{"squarespaceApiKey": ""#, "11562bbc-565c-4289-a13e-3ce7a9e974a7", r#""}"#)])
        .passes(&[concat!("", "991b46fd-d21d-4136-aa0f-65615b2f25dd")]),
    named("freshbooks_token", "FreshBooks token, beside its name", &["freshbooks"], r"[0-9a-z]{64}")
        .fires(&[concat!(r#"freshbooks_token = ""#, "5k7zz2xh4jp9acnocmrnbsiga66dtbzgs0kaq2vhw0glrpx9g5wwlnl5431ndtfd", r#"""#), concat!(r#"{"freshbooksApiKey": ""#, "1g2t16fd2us65777luzo2jqj8g9bxti850dn9my3javd9um9g09zyl3gq0i8vu6v", r#""}"#)])
        .passes(&[concat!("", "eb8253wz4ej9hbqeboz5pq31z3xe6qxbwce3m5f39nkiout97pf5ypa9kvr3ki9u")]),
    named("quickbooks_secret", "QuickBooks or Intuit client secret, beside its name", &["quickbooks", "intuit"], r"[0-9A-Za-z]{40}")
        .fires(&[concat!(r#"quickbooks_token = ""#, "lY4qO6CL3qQ9Dd7un8g3BnOFjrsKzfQNsduCjPSa", r#"""#), concat!(r#"{"quickbooksApiKey": ""#, "hc2Ic6LW88r45vbTZeIn3b8DO6TcuFOZkNq40rf0", r#""}"#)])
        .passes(&[concat!("", "KK67J57I26g5l7HslZXwjcmW7BgWXvagzWrK643N")]),
    named("xero_secret", "Xero client secret, beside its name", &["xero"], r"[0-9A-Za-z_-]{48}")
        .fires(&[concat!(r#"xero_token = ""#, "oC64n63O9v17B4aFvU17PTnAmnQiHdfASerNTbQFyxOr0PpI", r#"""#), concat!(r#"{"xeroApiKey": ""#, "JB4BG4qS90Y3Au1x59Fa2Q92aBrtLmx4rgPPFD7VyhgJMRLA", r#""}"#)])
        .passes(&[concat!("", "Ds2bX9f34Ae68oOQde62o93Eja2hs5b3sLovusE7ZPStLqpx")]),
];
