//! Keys of payment, commerce and exchange services.

use crate::catalogue::detector::Detector;
use crate::catalogue::secrets::vendor::{named, vendor};

pub(super) const ALL: &[Detector] = &[
    vendor("stripe_key", "Stripe secret or restricted key", &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_prod_", "rk_prod_", "sk_org_"], r"[rs]k_(?:live|test|prod|org_live|org_test)_[0-9A-Za-z]{10,247}")
        .fires(&[concat!("sk_live_", "NW7dG80j2pg5IhgRPXU80NJg"), concat!("sk_test_", "YB4Ul5t254g75HgQFxgYUtOv")])
        .passes(&["sk_live_xxxxxxxxxxxxxxxxxxxxxxxx", "pk_live_abc", "disk_test_results"]),
    vendor("stripe_webhook_secret", "Webhook signing secret of Stripe and others", &["whsec_"], r"whsec_[0-9A-Za-z+/]{32,64}={0,2}")
        .fires(&[concat!("whsec_", "zg9TT2Cr8Kk3hqzivDi0g9k43Y9R7R72")])
        .passes(&["whsec_"]),
    vendor("square_token", "Square access token or secret", &["sq0atp-", "sq0csp-", "sq0csb-", "sq0idp-", "sq0idb-", "eaaa"], r"sq0(?:atp|cs[bp]|id[bp])-[0-9A-Za-z_-]{22,60}|EAAA[0-9A-Za-z_-]{22,60}")
        .fires(&[concat!("sq0atp-", "5f6sV4j12TP47QJxu-bhax")])
        .passes(&["sq0atp-x", "EAAA"])
        .needing_letters(),
    vendor("paypal_braintree_token", "PayPal or Braintree production access token", &["access_token$"], r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}")
        .fires(&[concat!("access_token$production$", "wn21k4dk6725u5ly$78e13ffc879f7e74af3e0be642b0052c")])
        .passes(&["access_token$x"]),
    vendor("razorpay_key", "Razorpay key", &["rzp_live_", "rzp_test_"], r"rzp_(?:live|test)_[0-9A-Za-z]{14,20}")
        .fires(&[concat!("rzp_live_", "4p2nZ6xy38z3op")])
        .passes(&["rzp_live_"]),
    vendor("adyen_key", "Adyen API key", &["aqe"], r"AQE[0-9a-z]hm[0-9A-Za-z+/=-]{60,300}")
        .fires(&[concat!("AQE1hm", "Iz2bu2tk72e69OY2Urear0GAo9uMA7rPAphLPleYTMbIhrtj1OwLLyxU8rSUzu44YI6Z4Da2qpOzTpnGg5rtC71gy5")])
        .passes(&["AQE"]),
    named("gocardless_token", "GoCardless token, beside its name", &["gocardless"], r#"(?:^|[\s"'`=:>(,\[])((?:live|sandbox)_[0-9A-Za-z=_-]{40})"#)
        .fires(&[concat!(r#"gocardless_token = ""#, "live_EI5fx7wM9Va8ZOFwsOVMqd4dbe5Pf1qROmj0jKPx", r#"""#), concat!(r#"{"gocardlessApiKey": ""#, "live_fA9N52-Y9UO8vslImBjI3L0C-ljicNtNC8vis8qg", r#""}"#)])
        .passes(&[concat!("", "live_2p7Bt4YX3ah293ly7pBREJAEp3u_j-aAKzbBE3tc")])
        .telling(),
    vendor("plaid_token", "Plaid access token", &["access-sandbox-", "access-development-", "access-production-"], r"access-(?:sandbox|development|production)-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("access-sandbox-", "d763c04a-04fd-4d04-a0b4-a63fa8a166d6")])
        .passes(&["access-sandbox-"]),
    named("plaid_secret", "Plaid client id or secret, beside its name", &["plaid"], r"[0-9A-Za-z]{30}|[0-9A-Za-z]{24}")
        .fires(&[concat!(r#"plaid_token = ""#, "yf38a7cy85728d1uau2sxk63p5dfu8", r#"""#), concat!(r#"{"plaidApiKey": ""#, "7o7x023m8jf86pilquxmryzfql4xxi", r#""}"#)])
        .passes(&[concat!("", "6j8vj9737gn85ih7q6834wlgcf8bl8")]),
    vendor("shopify_token", "Shopify access token or shared secret", &["shpat_", "shpca_", "shppa_", "shpss_", "shptka_"], r"shp(?:at|ca|pa|ss|tka)_[0-9A-Za-z]{32,64}")
        .fires(&[concat!("shpat_", "db929da9469e1b797bc7f52f58205777"), concat!("shpss_", "F4k3TRc9ZXAvcVvcrmtr7qoVw69WeeY1ex")])
        .passes(&["shpat_0f1e"]),
    vendor("flutterwave_key", "Flutterwave key", &["flwseck", "flwpubk"], r"FLW(?:SECK|PUBK)(?:_TEST)?-(?:[0-9a-hA-H]{12,40}|[0-9a-z]{32})(?:-X)?")
        .fires(&[concat!("FLWSECK_TEST-", "262d2f36aabc1da6994a5997f44e9727-X")])
        .passes(&["FLWSECK_TEST-"]),
    vendor("duffel_token", "Duffel API token", &["duffel_"], r"duffel_(?:test|live)_[0-9A-Za-z=_-]{43}")
        .fires(&[concat!("duffel_test_", "cz9xs4-Z9RE770bHCxrgNCjH861ZuXR23GKydBEaUXR")])
        .passes(&["duffel_test_"]),
    vendor("easypost_token", "EasyPost API token", &["ezak", "eztk"], r"EZ[AT]K[0-9A-Za-z]{54}")
        .fires(&[concat!("EZAK", "PM3aW3677kF96SeaFuH4gaQGwvudbYHlOYMMnJkzgYvTUOGDSme3bQ")])
        .passes(&["EZAK"]),
    vendor("shippo_token", "Shippo API token", &["shippo_"], r"shippo_(?:live|test)_[0-9A-Fa-f]{40}")
        .fires(&[concat!("shippo_live_", "ce8bacb4205c2734b6679e7d3b3a1b5f0db130cd")])
        .passes(&["shippo_live_"]),
    named("lob_api_key", "Lob API key, beside its name", &["lob"], r#"(?:^|[\s"'`=:>(,\[])((?:live|test)_(?:pub_)?[0-9a-f]{31,35})"#)
        .fires(&[concat!(r#"lob_token = ""#, "test_10d8b1a0308fac1cdd9627c796e75250ecf", r#"""#), concat!(r#"{"lobApiKey": ""#, "test_e163d754058f6aec6864b4345289f111ba0", r#""}"#)])
        .passes(&[concat!("", "test_8ef85df31f2b78b6cf2693e84939c06e9b3")])
        .telling(),
    vendor("paddle_api_key", "Paddle API key", &["pdl_"], r"pdl_(?:live|sdbx)_apikey_[0-9a-z]{26}_[0-9A-Za-z]{22}_[0-9A-Za-z]{3}")
        .fires(&[concat!("pdl_live_apikey_", "ia33f7ae5842nlptgejkzwm81z_sG84d7AS59Q9S5PRCtz8BU_Sy2")])
        .passes(&["pdl_live_"]),
    vendor("polar_token", "Polar access token", &["polar_"], r"polar_(?:oat|pat|whs)_[0-9A-Za-z]{30,60}")
        .fires(&[concat!("polar_oat_", "Fj7WC4KI9Et9ms97OAsAgQ9gldIJbjxe2ZKary5f00b")])
        .passes(&["polar_coordinates"]),
    named("coinbase_token", "Coinbase token, beside its name", &["coinbase"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z_-]{64})"#)
        .fires(&[concat!(r#"coinbase_token = ""#, "dt6rr7ku7Ii5iDvtUO_nEm5VbMP3CtspoPTAkvkslRm93v5v8Tg8m7x64oCP-f-6", r#"""#), concat!(r#"{"coinbaseApiKey": ""#, "yh5qv3-G6Xt43st920QYcF0tAw2nA3F0ZaYssg6LwKSvi8DPYoaZC9uXK5l-6Ajs", r#""}"#)])
        .passes(&[concat!("", "kr3-p8DK6BC7rbSgQ7eWZQHHfcmxE6iAuWXatroN8GedinxjKc7XUqUdtWbwGk4k")]),
    named("kraken_token", "Kraken token, beside its name", &["kraken"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z/=_+-]{80,90})"#)
        .fires(&[concat!(r#"kraken_token = ""#, "FN9Sr3iP6Uh2eWo8HGu-v-QcBqxJHhF6QMIrJt5qTPrecQKtWK2XN0Yj22XQFvoTUgdNZ50x8CbAL05RB8bx", r#"""#), concat!(r#"{"krakenApiKey": ""#, "kQ3n33jr3Sr4hKsNrpwu0EhtKFUJoXAkrhff1OLsXP4NVIZ0VOPMiYUMw1JK43uGQbXn4nnMzBVvtjjvN_-J", r#""}"#)])
        .passes(&[concat!("", "eU9zq62J50K6-b2UQ1tdG5lRMGBf-xt7h7JRfSacIlOp_jEEPmx2CCbTPb_BBsZkOe3r8oh-nPgE_B2w_DZL")]),
    named("kucoin_key", "KuCoin key or secret, beside its name", &["kucoin"], r"[0-9a-f]{24}|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"kucoin_token = ""#, "22f70bdaf6a4263fd61ea90b", r#"""#), concat!(r#"{"kucoinApiKey": ""#, "44d0bc704089e58c366e3202", r#""}"#)])
        .passes(&[concat!("", "173b324842801d84601c4ec1")]),
    named("bittrex_key", "Bittrex key or secret, beside its name", &["bittrex"], r"[0-9a-z]{32}")
        .fires(&[concat!(r#"bittrex_token = ""#, "eg2jc8wu93o9q3z3vduuqpvo8ssh34uv", r#"""#), concat!(r#"{"bittrexApiKey": ""#, "kq6sn8gr6b2847nxiewc4u8cbngw1l82", r#""}"#)])
        .passes(&[concat!("", "tb8dh6iv7b84zv0txi1rg70vej8dudb3")]),
    named("binance_key", "Binance key or secret, beside its name", &["binance"], r"[0-9A-Za-z]{64}")
        .fires(&[concat!(r#"binance_token = ""#, "cQ8KU4dB67Z3FJ0TxDtSb6CdqH0lOfJLDh2GhyKf8NtqenX2BhNUPGiof8jjW1um", r#"""#), concat!(r#"{"binanceApiKey": ""#, "5C8043G69Fq9p65Eg2gkssP3Cg123W35HKuWtpipGDF8KzqFRSMqHaL9EbmtAWa1", r#""}"#)])
        .passes(&[concat!("", "q67Hx7zL8SX9wXoiVKkvqsdgTzPSXjMg6uiX6xmv8JmZgNs1BURTwxfKNsbm6qNy")]),
    named("finicity_key", "Finicity token or secret, beside its name", &["finicity"], r"[0-9a-f]{32}|[0-9a-z]{20}")
        .fires(&[concat!(r#"finicity_token = ""#, "220109fa29a142b6cb54c46a6d7dd688", r#"""#), concat!(r#"{"finicityApiKey": ""#, "bc16b4b19282080cde7e83550eb56879", r#""}"#)])
        .passes(&[concat!("", "755109442f2b52bd90cc56704e8c4ee0")]),
    named("finnhub_token", "Finnhub token, beside its name", &["finnhub"], r"[0-9a-z]{20}")
        .fires(&[concat!(r#"finnhub_token = ""#, "3e6639sn39c9sg4hqo6j", r#"""#), concat!(r#"{"finnhubApiKey": ""#, "kk71v2p95tq7l44sp4lv", r#""}"#)])
        .passes(&[concat!("", "3r6om3tz4b4356xzuyjh")]),
    named("squarespace_token", "Squarespace token, beside its name", &["squarespace"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"squarespace_token = ""#, "f29bd248-e9b6-4d5a-a04b-3a9d9411562b", r#"""#), concat!(r#"{"squarespaceApiKey": ""#, "bc565c28-913e-43ce-a7a9-e974a7991b46", r#""}"#)])
        .passes(&[concat!("", "fdd21d13-6a0f-4656-a15b-2f25ddf57cc9")]),
    named("freshbooks_token", "FreshBooks token, beside its name", &["freshbooks"], r"[0-9a-z]{64}")
        .fires(&[concat!(r#"freshbooks_token = ""#, "xh3jp6ac8oc7rnbsiga66dtbzgs0kaq2vhw0glrpx9g5wwlnl5431ndtfduai31g", r#"""#), concat!(r#"{"freshbooksApiKey": ""#, "fd6us95797l3zo2jqj8g9bxti850dn9my3javd9um9g09zyl3gq0i8vu6vbsaqeb", r#""}"#)])
        .passes(&[concat!("", "wz6ej7hb9eb8z5pq31z3xe6qxbwce3m5f39nkiout97pf5ypa9kvr3ki9u1ek5lj")]),
    named("quickbooks_secret", "QuickBooks or Intuit client secret, beside its name", &["quickbooks", "intuit"], r"[0-9A-Za-z]{40}")
        .fires(&[concat!(r#"quickbooks_token = ""#, "qQ2Dd6un7g32nOFjrsKzfQNsduCjPSakqeChcPIc", r#"""#), concat!(r#"{"quickbooksApiKey": ""#, "TZ3In4b86O64cuFOZkNq40rf0bryViKK87Jr7In6", r#""}"#)])
        .passes(&[concat!("", "ZX7jc9W78gW2vagzWrK643Nq2oT2aZRJ3moCr4nh")]),
    named("xero_secret", "Xero client secret, beside its name", &["xero"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z_-]{48})"#)
        .fires(&[concat!(r#"xero_token = ""#, "Fv6172Tn8mn7iHdfASerNTbQFyxOr0PpIstQ5XJCvJBUBG5q", r#"""#), concat!(r#"{"xeroApiKey": ""#, "1x29F32Q82a3rtLmx4rgPPFD7VyhgJMRLAMkX5Ok9FQX9hDs", r#""}"#)])
        .passes(&[concat!("", "384OQ5e69o96Eja2hs5b3sLovusE7ZPStLqpxaSDLlqtWj2A")]),
    vendor("stripe_client_secret", "Client secret of a payment or setup at Stripe", &["pi_1", "pi_3", "seti_1"], r"(?:pi_[13]|seti_1)[0-9A-Za-z]{20,23}_secret_[0-9A-Za-z]{25}")
        .fires(&[concat!("pi_3", "4fJN1l9dZDhhtZFEqH2rJyB_secret_IsMBwXKJTEnWVERtMCxH2Y361")])
        .passes(&["pi_3", "pi_3NqPRl2eZvKYlo2C1x2y3z4A"]),
    vendor("alchemy_key", "Alchemy API key with a mark", &["alcht_"], r"alcht_[0-9A-Za-z]{30}")
        .fires(&[concat!("alcht_", "tMDCgnHyCf6h5WsGsNZzs8XI139udr")])
        .passes(&["alcht_"])
        .needing_digits(),
    vendor("mercury_token", "Mercury API token", &["mercury_production_"], r"mercury_production_[a-z]{3,6}_[0-9A-Za-z]{40,50}_yrucrem")
        .fires(&[concat!("mercury_production_", "wma_aHZEb2WBLDu0JvOFqQ5LpN79HP8se7jtMKpYmRZmUbjw_yrucrem")])
        .passes(&["mercury_production_"]),
    vendor("ramp_secret", "Ramp client id or secret", &["ramp_id_", "ramp_sec_"], r"ramp_(?:id_[0-9A-Za-z]{40}|sec_[0-9A-Za-z]{48})")
        .fires(&[concat!("ramp_sec_", "xuMG5UDL7odlPHqmTx0uoSBkoQ9sorpbLBYASXj0pEjeMWuW")])
        .passes(&["ramp_id_", "ramp_sec_"])
        .needing_digits(),
    vendor("asaas_api_key", "Asaas API key", &["$aact_"], r"\$aact_(?:prod|hmlg)_[0-9A-Za-z_-]{20,200}")
        .fires(&[concat!("$aact_prod_", "ImsbgVc67XlPqTXSYTXvU2TB8rMiJfzTecsgT40YAGmwUQ4O1ZV1nnNGo9HAbSHQ")])
        .passes(&["$aact_prod_"])
        .needing_digits(),
    vendor("xendit_key", "Xendit secret key", &["xnd_production_", "xnd_development_"], r"xnd_(?:production|development)_[0-9A-Za-z]{40,72}")
        .fires(&[concat!("xnd_production_", "xDfUOHbKQC0oB4XsXHIfboxqgFjysf4w3JYeaOV1RCg1WhSb3EKyhAgeCVVU")])
        .passes(&["xnd_production_"])
        .needing_digits(),
    vendor("midtrans_server_key", "Midtrans server key", &["mid-server-"], r"Mid-server-[0-9A-Za-z_-]{24}")
        .fires(&[concat!("SB-Mid-server-", "94EIqjk55doJ1RKlvICItxnQ")])
        .passes(&["Mid-server-", "mid-server-guided-setup-guides-in"])
        .needing_digits(),
    vendor("sumup_api_key", "SumUp API key", &["sup_sk_"], r"sup_sk_[0-9A-Za-z]{32,34}")
        .fires(&[concat!("sup_sk_", "N7alHDuZbUdAzPhRo2ZFRdr1ZA6kYtZax")])
        .passes(&["sup_sk_"]),
    vendor("iex_cloud_key", "IEX Cloud secret key, or another of its form", &["sk_"], r"sk_[0-9a-f]{32}")
        .fires(&[concat!("sk_", "f7b7036c85de9c08998a1e129938dc1d")])
        .passes(&["sk_", "task_0123456789abcdef0123456789abcdef"]),
    vendor("ticket_tailor_key", "Ticket Tailor API key", &["sk_"], r"sk_[0-9]{1,6}_[0-9]{1,8}_[0-9a-f]{32}")
        .fires(&[concat!("sk_", "5471_302918_d24921099f5ee0ca4f91c37bdcc52241")])
        .passes(&["sk_1_2"]),
    vendor("photoroom_key", "PhotoRoom API key", &["sk_pr_"], r"sk_pr_[0-9A-Za-z]{1,64}_[0-9a-f]{40}")
        .fires(&[concat!("sk_pr_", "studio_ca5a3f456000ba099fc34322dbc8ad7b172b9f7f")])
        .passes(&["sk_pr_"]),
    vendor("node_provider_url", "Address of a blockchain node with its key: Infura, Alchemy, QuickNode", &[".infura.io/", ".alchemyapi.io/", "g.alchemy.com/", ".quiknode.pro/"], r"(?:\.infura\.io|\.alchemyapi\.io|g\.alchemy\.com|\.quiknode\.pro)/(?:ws/)?(?:v[0-9]/)?([0-9A-Za-z_-]{32,40})")
        .fires(&[concat!("https://mainnet.infura.io/v3/", "85e50d76e85bdfffeb3c43ff34872ac9"), concat!("https://eth-mainnet.g.alchemy.com/v2/", "TZy87O4n7kjzwQwWIzHduOmfhH2PRN3v")])
        .passes(&["https://mainnet.infura.io/v3/"])
        .at_any_edge(),
    vendor("pagarme_key", "Pagar.me API key", &["ak_live_", "ak_test_"], r"ak_(?:live|test)_[0-9A-Za-z]{30}")
        .fires(&[concat!("ak_live_", "5bSapfQ7Dh3yEg42ipqnX1fkkjbd93")])
        .passes(&["ak_live_"])
        .needing_digits(),
];
