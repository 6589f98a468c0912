//! Tokens of code hosts, package registries and CI.

use super::{named, vendor};
use crate::dlp::detector::Detector;

pub(super) const ALL: &[Detector] = &[
    vendor("gitlab_token", "GitLab personal, deploy, runner, CI, OAuth or workspace token", &["glpat-", "gldt-", "glrt-", "glrtr-", "glptt-", "glft-", "glsoat-", "glcbt-", "glimt-", "glagent-", "gloas-", "glffct-", "glwt-"], r"gl(?:pat|dt|rtr?|ptt|ft|soat|cbt|imt|agent|oas|ffct|wt)-[0-9A-Za-z_.-]{20,255}")
        .fires(&[concat!("glpat-", "kr7eF7-779z33bZllyBm"), concat!("glcbt-", "yhd3x_g_3QC7bo2dg2i3vVR8ApNxzUDJ")])
        .passes(&["glpat-short", "glpat-xxxxxxxxxxxxxxxxxxxx"]),
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
    named("bitbucket_client_secret", "Bitbucket client id or secret, beside its name", &["bitbucket"], r"[0-9A-Za-z=_-]{64}|[0-9A-Za-z]{32}")
        .fires(&[concat!(r#"bitbucket_token = ""#, "of2ld3bf5tj53h8bdg36iy0e5g56aqsj8wpwxnzqqbo4cqs16vsqolorcti8en5w", r#"""#), concat!(r#"{"bitbucketApiKey": ""#, "bv2qq7th69w8kjsy9zpx0a5szvho4a7fsrqhzstr3f6b1k6aebekmzgtyfjdqs3g", r#""}"#)])
        .passes(&[concat!("", "oa3cc8wz9le2ce5pnxf66x66zpfoi9lbt07dsj622iqet29d7j87o3rcf6tyu85u")]),
    vendor("npm_token", "npm access token", &["npm_"], r"npm_[0-9A-Za-z]{36}")
        .fires(&[concat!("//registry.npmjs.org/:_authToken=npm_", "Ws6MY3cv20K90NMU1ErOKeA7JAErd8N5XMWb")])
        .passes(&["npm_config_registry", "npm_package_dependencies_something_else"])
        .needing_digits(),
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
    vendor("artifactory_api_key", "Artifactory API key or password", &["akcp", "akc", "cmvmdgtu"], r"AKCp[0-9A-Za-z]{65,75}|AKC[0-9A-Za-z]{10,80}|cmVmdGtu[0-9A-Za-z]{56}")
        .fires(&[concat!("X-JFrog-Art-Api: AKCp", "DB8Dn4aV9c96nJiY4x97JCsZVd6M2q45tUZzjTuyb1olyLTjpNC36Hx2fM86Rw8Qh7Rsd"), concat!("cmVmdGtu", "e85sQ44M6NF8IUg5wfbpdpYwioGKzNEiN3pCXd504chGzgWF1exqh6Tz")])
        .passes(&["AKC", "AKCx"])
        .even_if_dull(),
    named("jfrog_token", "JFrog API key or identity token, beside its name", &["jfrog", "artifactory", "bintray", "xray"], r"[0-9A-Za-z]{73}|[0-9A-Za-z]{64}")
        .fires(&[concat!(r#"jfrog_token = ""#, "7u3jf9ug6vy35dgrazq3uuqm91fbkwjhckucxydac7n3a3ep3jq1f490mq1g1l3i", r#"""#), concat!(r#"{"jfrogApiKey": ""#, "tm82k5ev7uw4j2oz6jp2kz3ovppnm49o5b20einhuiyu7f0p3eik8jbmp9bw4z8s", r#""}"#)])
        .passes(&[concat!("", "9y54w3hj47q4o90fkts8t0wax0xt4nnqfk9ryr574jz6lh490t8ep77tm00ka8c7")])
        .telling(),
    vendor("circleci_token", "CircleCI personal or project token", &["ccipat_", "cciprj_"], r"CCI(?:PAT|PRJ)_[0-9A-Za-z]{22}_[0-9A-Fa-f]{40}")
        .fires(&[concat!("CCIPAT_", "kZ5AH7Z57Gw9Jyo9dy9r8z_deaa96f77b86b0f36f05ae0c7bf42f87927f5fb8")])
        .passes(&["CCIPAT_"]),
    vendor("buildkite_token", "Buildkite API or agent token", &["bkua_", "bkct_", "bkaj_"], r"bk(?:ua|aj)_[0-9a-f]{40}|bkct_[0-9A-Za-z]{40,90}")
        .fires(&[concat!("bkua_", "75b6a0f789a42f3619a9759273a8029ab324c2ed")])
        .passes(&["bkua_1"]),
    named("travis_ci_token", "Travis CI token, beside its name", &["travis"], r"[0-9A-Za-z_-]{22}")
        .fires(&[concat!(r#"travis_token = ""#, "1U9ku4VI9b37kbutFBrwox", r#"""#), concat!(r#"{"travisApiKey": ""#, "YL4dd4bx3zP8PVBgRtHOXe", r#""}"#)])
        .passes(&[concat!("", "n06cF50c3u59KT77JeRCNZ")]),
    named("drone_ci_token", "Drone CI token, beside its name", &["drone", "droneci"], r"[0-9A-Za-z]{32}")
        .fires(&[concat!(r#"drone_token = ""#, "pj8cm4a87yg6170b6dk5nnl8oybgd1mv", r#"""#), concat!(r#"{"droneApiKey": ""#, "g88qy75m6vl28s4z0kwv687i49qdw6gr", r#""}"#)])
        .passes(&[concat!("", "nw6bl44837a6jrizznbl30mu1k0xkxi6")]),
    named("codecov_token", "Codecov token, beside its name", &["codecov"], r"[0-9A-Za-z]{32}|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"codecov_token = ""#, "hn5g652p5nt7e4spxh0jy4f82i129iz5", r#"""#), concat!(r#"{"codecovApiKey": ""#, "ep6wj46p4su2y0lc85sqkmq84ak4ste7", r#""}"#)])
        .passes(&[concat!("", "w47ve85f70z38f4loblz1rlyh182mpbc")]),
    vendor("sonar_token", "SonarQube or SonarCloud token", &["squ_", "sqp_", "sqa_"], r"sq[upa]_[0-9a-f]{40}")
        .fires(&[concat!("sqp_", "7f4f75cbb82b6fdbac614e0e4f6cbbc821ea3587")])
        .passes(&["sqp_"]),
    named("sonar_api_token", "SonarQube token of the older form, beside its name", &["sonar"], r"[0-9A-Za-z=_-]{40}")
        .fires(&[concat!(r#"sonar_token = ""#, "76ba2281b3cb28c75b07a665758986cd94ef5d96", r#"""#), concat!(r#"{"sonarApiKey": ""#, "36af221c53f7a2dd8c060d61b16128c9ffbe667d", r#""}"#)])
        .passes(&[concat!("", "1a33f74902b508fee52fc3916cf0ecdb93f3009e")]),
    vendor("snyk_token", "Snyk service token", &["snyk_"], r"snyk_(?:uat|sat)\.[0-9a-z]{8}\.[0-9A-Za-z_-]{40,200}\.[0-9A-Za-z_-]{40,200}")
        .fires(&[concat!("snyk_uat.", "srdqqs2x.7z49x7Gc70D3c4hPh5YSxNhE7Ysopy3RF6Nvwqt60OxbWex9G0HKW6zGNRbh.kc65c57q7sO6pzd_QMSlhTiqkuNINOZMXDSWaY1Xdnl_ycdjLouq_Cl7ZFgA")])
        .passes(&["snyk_org"]),
    named("snyk_api_token", "Snyk API token, beside its name", &["snyk"], r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!(r#"snyk_token = ""#, "5b8d51ed-8540-4d58-a129-27ed1a3b9cc9", r#"""#), concat!(r#"{"snykApiKey": ""#, "46d570b7-f4c4-42ba-a945-3ea244d98684", r#""}"#)])
        .passes(&[concat!("", "70f10a0b-4c54-49e6-a9df-8e5c703b4475")]),
    vendor("postman_api_key", "Postman API key", &["pmak-"], r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}")
        .fires(&[concat!("PMAK-", "b472a3fd7aceec2708a5d6f6-69f30f29e29e72ea2401eb68ee08b76da7")])
        .passes(&["PMAK-0f1e2d3c"]),
    vendor("sourcegraph_token", "Sourcegraph access token", &["sgp_", "slk_"], r"sgp_(?:(?:[0-9A-Fa-f]{16}|local)_)?[0-9A-Fa-f]{40}|slk_[0-9a-f]{64}")
        .fires(&[concat!("sgp_", "0f7ded32eb480905_cf11f952bb84410dac35e038d7c797aa56844007")])
        .passes(&["sgp_", "sgp_652d9a2e48FC7E!FcDbEA1BC2E2A6CE23cFe7F7D"]),
    named("jenkins_api_token", "Jenkins API token, beside its name", &["jenkins"], r"11[0-9a-f]{32}")
        .fires(&[concat!(r#"jenkins_token = ""#, "115dd1e36dd2843beb63f46918f2381aaf", r#"""#), concat!(r#"{"jenkinsApiKey": ""#, "112d31183338d4a685b6d8b9531c3f9c4e", r#""}"#)])
        .passes(&[concat!("", "11d1091b2a18fc2e3d153316a8948a72a8")]),
    vendor("launchdarkly_key", "LaunchDarkly SDK, mobile or API key", &["sdk-", "mob-", "api-"], r"(?:sdk|mob|api)-[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
        .fires(&[concat!("sdk-", "73243350-f431-478c-a426-b5c6f17d0969")])
        .passes(&["sdk-1.0", "api-gateway"]),
    named("launchdarkly_access_token", "LaunchDarkly token of the older form, beside its name", &["launchdarkly"], r"[0-9A-Za-z=_-]{40}")
        .fires(&[concat!(r#"launchdarkly_token = ""#, "A39wD7vm6lO7Cw_xuQ6vB9Z-fqStc41Zx_Jp1gBL", r#"""#), concat!(r#"{"launchdarklyApiKey": ""#, "xZ36v5xP6EX7ypekwMNZImLkzWazLKruqVu5v_T0", r#""}"#)])
        .passes(&[concat!("", "Lp3SP3MD6m-9E8gswuUHbmmB_-tPElXfsTrvKCxf")]),
    vendor("readme_api_key", "ReadMe API key", &["rdme_"], r"rdme_[0-9A-Za-z]{70}")
        .fires(&[concat!("rdme_", "c93az5ql63i2g81qsje7f7e181o966b5dupvrcf207hc2smvk666ob7su2x6ffpxcifqx4")])
        .passes(&["rdme_"]),
    vendor("contentful_token", "Contentful management token", &["cfpat-"], r"CFPAT-[0-9A-Za-z_-]{43}")
        .fires(&[concat!("CFPAT-", "cw3wW2vK4wa9Qd_m83aHAh7tTftx9-aG-9aAaeRA0iW")])
        .passes(&["CFPAT-"]),
    named("contentful_delivery_token", "Contentful delivery token, beside its name", &["contentful"], r"[0-9A-Za-z=_-]{43}")
        .fires(&[concat!(r#"contentful_token = ""#, "Zs5cw8o07EB2EiTaDLaNvcLKyXtt1YwVdVnX0qpJcxB", r#"""#), concat!(r#"{"contentfulApiKey": ""#, "XL6CN49N2WQ6s_O0CH11kOsmSrp5me1uUNMmCMdL1rJ", r#""}"#)])
        .passes(&[concat!("", "7b43f6IJ7rY7-gAOnxTanZdzUgHDoAMLQlrEwWwWt3B")]),
];
