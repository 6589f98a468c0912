//! Tokens of code hosts, package registries and CI.

use crate::catalogue::detector::Detector;
use crate::catalogue::secrets::{
    summed,
    vendor::{named, vendor},
};

pub(super) const ALL: &[Detector] = &[
    Detector {
        check: summed::gitlab,
        ..vendor("gitlab_token", "GitLab personal, deploy, runner, CI, OAuth or workspace token; routable ones with a right checksum", &["glpat-", "gldt-", "glrt-", "glrtr-", "glptt-", "glft-", "glsoat-", "glcbt-", "glimt-", "glagent-", "gloas-", "glffct-", "glwt-"], r"gl(?:pat|dt|rtr?|ptt|ft|soat|cbt|imt|agent|oas|ffct|wt)-(?:[0-9A-Za-z_-]{27,300}\.(?:[0-9a-z]{2}\.)?[0-9a-z]{9}|eyJ[0-9A-Za-z_.-]{60,1300}|[0-9A-Za-z_.-]{20,319})")
    }
        .reaching(0, 1400)
        .fires(&[concat!("glpat-", "kr7eF7-779z33bZllyBm"), concat!("glcbt-", "yhd3x_g_3QC7bo2dg2i3vVR8ApNxzUDJ"), concat!("glpat-", "OLTmUuRNp_I3DZ4mDicTZW86MQp1OjdqMmsK.01.101j32b5p"), concat!("glrt-", "t1_OLTmUuRNp_I3DZ4mDicTZW86MQp1OjdqMmsK.01.100hb1g4h")])
        .passes(&["glpat-short", "glpat-xxxxxxxxxxxxxxxxxxxx", concat!("glrt-", "OLTmUuRNp_I3DZ4mDicTZW86MQp1OjdqMmsK.01.101j32b5p")]),
    vendor("gitlab_runner_token", "GitLab runner registration token", &["gr1348941"], r"GR1348941[0-9A-Za-z_-]{20,60}")
        .fires(&[concat!("GR1348941", "8A3MG5D53Bc5RvdvW-4r")])
        .passes(&["GR1348941", "GR1348941helloWord0"]),
    vendor("gitlab_session_cookie", "GitLab session cookie", &["_gitlab_session="], r"_gitlab_session=[0-9a-z]{32}")
        .fires(&[concat!("_gitlab_session=", "e99bb648d61113438336abf69182c5fe")])
        .passes(&["_gitlab_session=x"]),
    vendor("atlassian_token", "Atlassian or Bitbucket API token", &["atatt3", "atbb", "atctt3"], r"AT(?:ATT|CTT)3[0-9A-Za-z_=-]{60,250}|ATBB[0-9A-Za-z]{32}")
        .fires(&[concat!("ATBB", "4n5uO2vY4um3XXReKEHtxDs5uz2BreQQ"), concat!("ATATT3", "rS2t05Z33cl8bHTsvewZqFz1nRD1Gk_xP8eF7y51NTetNkgwLuqu5htjD8usN-RePm37LLFheWMxE-ugO9UXnuI0BPSfyPjk0HCt4sEQuAJccT4-DQLuoHbx_2W2IL-TTiT0zVOOfhHdR6rwJO2CqzerSUBsYnUoCWtzLsAPYD4Q9ckiRPe3")])
        .passes(&["ATBB", "atbbabcdefghijklmnop01234567890123456"]),
    named("atlassian_api_token", "Atlassian, Jira or Confluence token of the older form, beside its name", &["atlassian", "jira", "confluence"], r"[0-9A-Za-z]{24}")
        .fires(&[concat!(r#"atlassian_token = ""#, "f73o19k237o3jpraihlg34iq", r#"""#), concat!(r#"{"atlassianApiKey": ""#, "i74xt3em8wv4nyvt2dl60e0q", r#""}"#)])
        .passes(&[concat!("", "6y63q6rg5k59p708mnjvsdhb")]),
    named("bitbucket_client_secret", "Bitbucket client id or secret, beside its name", &["bitbucket"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z=_-]{64}|[0-9A-Za-z]{32})"#)
        .fires(&[concat!(r#"bitbucket_token = ""#, "of2ld3bf5tj53h8bdg36iy0e5g56aqsj8wpwxnzqqbo4cqs16vsqolorcti8en5w", r#"""#), concat!(r#"{"bitbucketApiKey": ""#, "bv2qq7th69w8kjsy9zpx0a5szvho4a7fsrqhzstr3f6b1k6aebekmzgtyfjdqs3g", r#""}"#)])
        .passes(&[concat!("", "oa3cc8wz9le2ce5pnxf66x66zpfoi9lbt07dsj622iqet29d7j87o3rcf6tyu85u")]),
    Detector {
        check: summed::npm,
        ..vendor("npm_token", "npm access token", &["npm_", "npms_"], r"npms?_[0-9A-Za-z]{36,48}")
    }
        .fires(&[concat!("//registry.npmjs.org/:_authToken=npm_", "Ws6MY3cv20K90NMU1ErOKeA7JAErd8N5XMWb"), concat!("npm_", "KLzdocJisAjIhKtJRlgLKOmxgJTeKd0C8U6u")])
        .passes(&["npm_config_registry", "npm_package_dependencies_something_else"]),
    vendor("npmrc_auth_token", "Token of a registry in an .npmrc", &["_authtoken"], r#"//[0-9A-Za-z][0-9A-Za-z.:/-]{2,80}/?:_authToken ?= ?("?(?:[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}|[0-9A-Za-z_+/-]{20,200}={0,2}))"#)
        .fires(&[concat!("//registry.npmjs.org/:_authToken=", "4dadf2f7-55c8-4ec0-a978-41fda13c9760")])
        .passes(&["///:_authToken=743b294a-cd03-41ec-9d64-0242ac120002", "//registry.npmjs.org/:_authToken=${NPM_TOKEN}"])
        .at_any_edge()
        .reaching_back(100),
    vendor("pypi_token", "PyPI upload token", &["pypi-ageichlwas5vcmc", "pypi-agendgvzdc5wexbp"], r"pypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBp)[0-9A-Za-z_-]{50,300}")
        .fires(&[concat!("pypi-AgEIcHlwaS5vcmc", "dm2pt8AU66k7WT364x9F2LYjovwpI6IGQVfpuYkr8iH_s1Bnegvugiou767on2daH-ntKL")])
        .passes(&["pypi-AgEIcHlwaS5vcmc", "pypi-server"]),
    vendor("rubygems_token", "RubyGems API key", &["rubygems_"], r"rubygems_[0-9a-f]{48}")
        .fires(&[concat!("rubygems_", "895d0823e48c6b04fcc423c954c6ed6051a4d89dd2f23893")])
        .passes(&["rubygems_version"]),
    vendor("crates_io_token", "crates.io token", &["cio"], r"cio[0-9A-Za-z]{32}")
        .fires(&[concat!("cio", "8D9uX3Za4rn9F8Cl5IXwywCt4TdSBskd")])
        .passes(&["cio", "socioeconomic"])
        .needing_digits(),
    vendor("nuget_api_key", "NuGet API key", &["oy2"], r"oy2[0-9a-z]{43}")
        .fires(&[concat!("oy2", "li64e4ku6ql52gh9zxb4ofnvnuemi3mru36ove6sl6l")])
        .passes(&["oy2"]),
    vendor("clojars_token", "Clojars deploy token", &["clojars_"], r"(?i:CLOJARS)_[0-9a-z]{60}")
        .fires(&[concat!("CLOJARS_", "qo49j3g158a3z3zslyth96f8nqocmafsc0jaf3op7tq5bbeezvo63qk4fphx")])
        .passes(&["CLOJARS_USER"]),
    vendor("docker_token", "Docker Hub access token", &["dckr_pat_", "dckr_oat_"], r"dckr_[po]at_[0-9A-Za-z_-]{27,32}")
        .fires(&[concat!("dckr_pat_", "6N8qP5FT92l76aRAo80MrJAEEMB")])
        .passes(&["dckr_pat_x"]),
    vendor("artifactory_api_key", "Artifactory API key or password", &["akc", "cmvmd"], r"AKC[0-9A-Za-z]{10,80}|cmVmd[0-9A-Za-z]{59}")
        .fires(&[concat!("X-JFrog-Art-Api: AKCp", "DB8Dn4aV9c96nJiY4x97JCsZVd6M2q45tUZzjTuyb1olyLTjpNC36Hx2fM86Rw8Qh7Rsd"), concat!("cmVmdGtu", "e85sQ44M6NF8IUg5wfbpdpYwioGKzNEiN3pCXd504chGzgWF1exqh6Tz")])
        .passes(&["AKC", "AKCx"])
        .even_if_dull(),
    vendor("artifactory_password", "Encrypted password of Artifactory", &["_password=ap", "_password = ap"], r"_password ?= ?(AP[0-9A-F][0-9A-Za-z]{10,200})")
        .fires(&[concat!("artifactory:_password=", "AP6HR2Jj8Ju6gH9XyaF4MXdgrX9")])
        .passes(&["artifactory:_password=AP6xxxxxx"])
        .at_any_edge()
        .even_if_dull(),
    named("jfrog_token", "JFrog API key or identity token, beside its name", &["jfrog", "artifactory", "bintray", "xray"], r"[0-9A-Za-z]{73}|[0-9A-Za-z]{64}")
        .fires(&[concat!(r#"jfrog_token = ""#, "uu4m95fb9wj4ckucxydac7n3a3ep3jq1f490mq1g1l3ie3setmp2keev2uwbj2oz", r#"""#), concat!(r#"{"jfrogApiKey": ""#, "z36vp6nm69o8b20einhuiyu7f0p3eik8jbmp9bw4z8s1pxj9yc4wghjp7q2o90fk", r#""}"#)])
        .passes(&[concat!("", "wa70x74n9qf89ryr574jz6lh490t8ep77tm00ka8c7ogklky07286wr9yodyrzn8")])
        .telling(),
    vendor("circleci_token", "CircleCI personal or project token", &["ccipat_", "cciprj_"], r"CCI(?:PAT|PRJ)_[0-9A-Za-z]{22}_[0-9A-Fa-f]{40}")
        .fires(&[concat!("CCIPAT_", "7M5DN7vs2X69LOFLpp5Wxq_36f05ae0c7bf42f87927f5fb875b6a0f789a42f3")])
        .passes(&["CCIPAT_"]),
    vendor("buildkite_token", "Buildkite API or agent token", &["bkua_", "bkct_", "bkaj_"], r"bk(?:ua|aj)_[0-9a-z]{40,53}|bkct_[0-9A-Za-z]{40,90}")
        .fires(&[concat!("bkua_", "619a9759273a8029ab324c2edf5aa050a9fd8b7b")])
        .passes(&["bkua_1"]),
    named("travis_ci_token", "Travis CI token, beside its name", &["travis"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z_-]{22})"#)
        .fires(&[concat!(r#"travis_token = ""#, "Ci3wY40d4Yb36zP1PVBgRt", r#"""#), concat!(r#"{"travisApiKey": ""#, "Bn6Oc5003zu9iKT77JeRCN", r#""}"#)])
        .passes(&[concat!("", "p68Pk2mV2ON4aIjKyPgJBH")]),
    named("drone_ci_token", "Drone CI token, beside its name", &["drone", "droneci"], r"[0-9A-Za-z]{32}")
        .fires(&[concat!(r#"drone_token = ""#, "5n8l88yb4d17vylwqg8jqyo5m7vle8s4", r#"""#), concat!(r#"{"droneApiKey": ""#, "v647i89q8w65r09vqdnwlblo48r7a3jr", r#""}"#)])
        .passes(&[concat!("", "bl60m51k7xk3i6qjeshnqg632p2ntpe4")]),
    named("codecov_token", "Codecov token, beside its name", &["codecov"], r"[0-9A-Za-z]{32}|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"codecov_token = ""#, "0j84f42i2299z5n9pouep4wj66pesucy", r#"""#), concat!(r#"{"codecovApiKey": ""#, "sq9mq44a54s2e7tjjcw4xve75fv0zw8f", r#""}"#)])
        .passes(&[concat!("", "lz7rl5h192m8bcu6yvfp4j4plzx6w8qf")]),
    vendor("sonar_token", "SonarQube or SonarCloud token", &["squ_", "sqp_", "sqa_", "sqco_"], r"sq[upa]_[0-9a-f]{40}|sqco_[0-9A-Za-z]{59}")
        .fires(&[concat!("sqp_", "bac614e0e4f6cbbc821ea358776ba2281b3cb28c")])
        .passes(&["sqp_"]),
    named("sonar_api_token", "SonarQube token of the older form, beside its name", &["sonar"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z=_-]{40})"#)
        .fires(&[concat!(r#"sonar_token = ""#, "75b07a665758986cd94ef5d9636af221c53f7a2d", r#"""#), concat!(r#"{"sonarApiKey": ""#, "d8c060d61b16128c9ffbe667d1a33f74902b508f", r#""}"#)])
        .passes(&[concat!("", "ee52fc3916cf0ecdb93f3009e981889ebe65f5e8")]),
    vendor("snyk_token", "Snyk service token", &["snyk_"], r"snyk_(?:uat|sat)\.[0-9a-z]{8}\.[0-9A-Za-z_-]{40,200}\.[0-9A-Za-z_-]{40,200}")
        .fires(&[concat!("snyk_uat.", "bz0o3b2d.Ph6YS3Nh57Y2opy3RF6Nvwqt60OxbWex9G0HKW6zGNRbhrTQn-cx5ca7qRsO.kQ2Sl8Ti4ku6INOZMXDSWaY1Xdnl_ycdjLouq_Cl7ZFgAIzRKuTI3ug73Jvs")])
        .passes(&["snyk_org"]),
    named("snyk_api_token", "Snyk API token, beside its name", &["snyk"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"snyk_token = ""#, "12927ed1-a3b9-4cc9-a46d-570b7f4c42ba", r#"""#), concat!(r#"{"snykApiKey": ""#, "9453ea24-4d98-4684-a70f-10a0b4c549e6", r#""}"#)])
        .passes(&[concat!("", "9df8e5c7-03b4-4475-ab47-2a3fd7aceec2")]),
    vendor("postman_api_key", "Postman API key or collection access key", &["pmak-", "pmat-"], r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}|PMAT-[0-9A-Z]{26}")
        .fires(&[concat!("PMAK-", "708a5d6f669f30f29e29e72e-a2401eb68ee08b76da70f7ded32eb48090"), concat!("PMAT-", "PYS2F20QE6SU48IQ1S0KSY2MYV")])
        .passes(&["PMAK-0f1e2d3c"]),
    vendor("sourcegraph_token", "Sourcegraph access token", &["sgp_", "slk_"], r"sgp_(?:(?:[0-9A-Fa-f]{16}|local)_)?[0-9A-Fa-f]{40}|slk_[0-9a-f]{64}")
        .fires(&[concat!("sgp_", "5cf11f952bb84410_dac35e038d7c797aa568440075dd1e36dd2843be")])
        .passes(&["sgp_", "sgp_652d9a2e48FC7E!FcDbEA1BC2E2A6CE23cFe7F7D"]),
    named("jenkins_api_token", "Jenkins API token, beside its name", &["jenkins"], r"11[0-9a-f]{32}")
        .fires(&[concat!(r#"jenkins_token = ""#, "11b63f46918f2381aaf2d31183338d4a68", r#"""#), concat!(r#"{"jenkinsApiKey": ""#, "115b6d8b9531c3f9c4ed1091b2a18fc2e3", r#""}"#)])
        .passes(&[concat!("", "11d153316a8948a72a873243350f43178c")]),
    vendor("launchdarkly_key", "LaunchDarkly SDK, mobile or API key", &["sdk-", "mob-", "api-"], r"(?:sdk|mob|api)-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("sdk-", "426b5c6f-17d0-4969-a6df-5795392ad75f")])
        .passes(&["sdk-1.0", "api-gateway"]),
    named("launchdarkly_access_token", "LaunchDarkly token of the older form, beside its name", &["launchdarkly"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z=_-]{40})"#)
        .fires(&[concat!(r#"launchdarkly_token = ""#, "xu86v59Z3fq2tc41Zx_Jp1gBL6TITxZH6vQxPoEX", r#"""#), concat!(r#"{"launchdarklyApiKey": ""#, "kw5NZ5mL9zW2zLKruqVu5v_T0jCGOLpkSPDMDAmk", r#""}"#)])
        .passes(&[concat!("", "sw8UH6mm6_-4PElXfsTrvKCxflpL-e1aZ_Gxt6qn")]),
    vendor("readme_api_key", "ReadMe API key", &["rdme_"], r"rdme_[0-9A-Za-z]{70}")
        .fires(&[concat!("rdme_", "e797e3819968b5dupvrcf207hc2smvk666ob7su2x6ffpxcifqx4hprbbldlyhks1laivb")])
        .passes(&["rdme_"]),
    vendor("rootly_token", "Rootly API key", &["rootly_"], r"rootly_[0-9a-f]{64}")
        .fires(&[concat!("rootly_", "67878bdfad63a776f4975bcef0d79260fbdafe069a40446aa79fc95948b4e44e")])
        .passes(&["rootly_0f1e"]),
    vendor("adafruit_io_key", "Adafruit IO key", &["aio_"], r"aio_[0-9A-Za-z]{28}")
        .fires(&[concat!("aio_", "F4k3b67VvzSaM7fr3nMXrfZ1uMPH")])
        .passes(&["aio_error_context", "aio_abcdefghijklmnopqrstuvwxyzab"])
        .needing_digits(),
    vendor("contentful_token", "Contentful management token", &["cfpat-"], r"CFPAT-[0-9A-Za-z_-]{43}")
        .fires(&[concat!("CFPAT-", "aH7h72Tf5x96aG-9aAaeRA0iWneu9ZsacwRo0gEBZEi")])
        .passes(&["CFPAT-"]),
    named("contentful_delivery_token", "Contentful delivery token, beside its name", &["contentful"], r#"(?:^|[\s"'`=:>(,\[])([0-9A-Za-z=_-]{43})"#)
        .fires(&[concat!(r#"contentful_token = ""#, "aN7cL8yX5t16wVdVnX0qpJcxByWRgXLtCNY9NiWQRsk", r#"""#), concat!(r#"{"contentfulApiKey": ""#, "115Os7Sr35m41uUNMmCMdL1rJNveG7b53fyIJ9rY--g", r#""}"#)])
        .passes(&[concat!("", "Ta7Zd7Ug5Do2MLQlrEwWwWt3BwMSUi2XBX9i9uV9Ufm")]),
    vendor("deno_token", "Deno Deploy access token", &["ddp_", "ddo_", "ddw_"], r"dd[pow]_[0-9A-Za-z]{36}")
        .fires(&[concat!("ddp_", "5GH6G7u7e8qQqDcovmFOcBO4h4bjj3Yxt7LO")])
        .passes(&["ddp_"])
        .needing_digits(),
    vendor("packagist_token", "Private Packagist key, secret or token", &["packagist_"], r"packagist_(?:ac[ks]|[cou]ut|ort)_[0-9a-f]{28,96}")
        .fires(&[concat!("packagist_ack_", "4af98c2282e3686bf8ec8764a715ec10"), concat!("packagist_uut_", "7d2a7dde236ce2fa0777b56e8d1883163f1496a54353d35b04a8c37e492496f627df")])
        .passes(&["packagist_ack_", "packagist_url"]),
    vendor("spectral_token", "SpectralOps API key", &["spu-"], r"spu-[0-9a-z]{32}")
        .fires(&[concat!("spu-", "4beed99d98d5b6f05870f6aa865f0efd")])
        .passes(&["spu-"])
        .needing_digits(),
    vendor("codesandbox_token", "CodeSandbox API key", &["csb_v1_"], r"csb_v1_[0-9A-Za-z_-]{43}")
        .fires(&[concat!("csb_v1_", "uAiUC0KufgJbSZmdXDDllIEGEM5rmGoDtcAY62dggpU")])
        .passes(&["csb_v1_"]),
    vendor("aikido_secret", "Aikido client or CI secret", &["aik_secret_", "aik_ci_"], r"AIK_(?:SECRET_[0-9A-Za-z]{64}|CI_[0-9A-Za-z]{20,44})")
        .fires(&[concat!("AIK_SECRET_", "lLBSEBKgwmHdba8JJ5E7caiGVNBBxW1GdUa0PWKZthtElRGMq7A5DW90LXeAHkTj")])
        .passes(&["AIK_SECRET_"]),
    vendor("endor_labs_key", "Endor Labs API key or secret", &["endr+"], r"endr\+[0-9A-Za-z-]{16}")
        .fires(&[concat!("endr+", "dg6o0E4y1UwnH37f")])
        .passes(&["endr+", "endr+x"])
        .needing_digits(),
    vendor("wakatime_key", "WakaTime API key", &["waka_"], r"waka_(?:[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}|[0-9a-z]{32,64})")
        .fires(&[concat!("waka_", "29610aa9-6b0d-5fb5-a6e0-f3945b8e1021")])
        .passes(&["waka_", "waka_time"])
        .needing_digits(),
    vendor("jetbrains_token", "YouTrack, Hub or Space permanent token", &["perm:", "perm-"], r"perm[:-][0-9A-Za-z+/=-]{4,80}\.[0-9A-Za-z+/=-]{2,80}\.[0-9A-Za-z]{30}")
        .fires(&[concat!("perm:", "am9obi5kb2U=.NDctMg==.XBpTPxxiIc6iq7vh0Pcqr9Ejqhn6Il")])
        .passes(&["perm:", "perm: read.write.all"]),
    vendor("bitbucket_server_token", "Bitbucket Data Center HTTP access token", &["bbdc-"], r"BBDC-[0-9A-Za-z+/@_-]{40,50}")
        .fires(&[concat!("BBDC-", "owFhMcvd43a/mHLD6Etrb42QLDJRWoJZ7qj5YXiWJOpS")])
        .passes(&["BBDC-"]),
    vendor("coderabbit_api_key", "CodeRabbit API key", &["cr-"], r"cr-[0-9a-f]{58}")
        .fires(&[concat!("cr-", "8b40c1164abd298f7b20a75ff42475ca4e1b2bd12a76bcf10e29da4f70")])
        .passes(&["cr-"]),
    vendor("pyx_api_key", "API key of the pyx registry", &["sk-pyx-"], r"sk-pyx-(?:2[A-Za-z]{45}|[0-9A-Za-z]{64})")
        .fires(&[concat!("sk-pyx-2", "oQGXyKTUMAFGrMgENAsIrsDmbLFecbVjafQgGnRfXBkgQ"), concat!("sk-pyx-", "ysD4FIS0Xzm41PB2qs353f2Huu6mXrxWUREVXXPHzGIz3qyV4J1TQt7frRgjix7Y")])
        .passes(&["sk-pyx-"]),
    named("code_climate_reporter_id", "Code Climate test reporter id, beside its name", &["cc_test_reporter_id", "codeclimate"], r"[0-9a-f]{64}")
        .fires(&[concat!("CC_TEST_REPORTER_ID=", "4393a96e78c3403049d3e8474f2a7dccc06616cd334b459e42220d8c947e0ded"), concat!(r#"{"codeclimateToken": ""#, "c8b137913993ed6da209da99098b260ff3ac1c97570cf1dcb92107c907cbeac0", r#""}"#)])
        .passes(&[concat!("", "ddd60132f96aa87e5a4bb15d4dcc513d4654c340b67c01ffff3195f80135f3b9")])
        .telling(),
];
