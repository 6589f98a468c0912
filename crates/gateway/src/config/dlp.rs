//! `[dlp]`: what is looked for, and what is done about it. The one part of the configuration that
//! is read again while the gateway runs.

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

use portcullis_app::{self as app, WhenUnavailable};
use portcullis_core::{
    capability::CapabilityKind,
    did_you_mean,
    dlp::{
        Actions, Allow, Category, Custom, DetectorSettings, Engine, Floor, Gitleaks, Limits, Mask,
        Settings,
    },
    json,
};
use portcullis_upstream as upstream;
use serde::Deserialize;

use super::secrets::SecretSource;

/// The DLP settings as they are written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Dlp {
    actions: Actions,
    masks: BTreeMap<Category, Mask>,
    detectors: BTreeMap<String, DetectorSettings>,
    limits: Limits,
    custom: Vec<Custom>,
    allow: Vec<Allow>,
    /// Rule files of gitleaks.
    gitleaks: Vec<PathBuf>,
    external: Option<External>,
    floor: Floor,
}

/// A detector outside.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct External {
    url: String,
    /// The host may have a private or loopback address, and may be spoken to without TLS.
    #[serde(default)]
    allow_private: bool,
    /// Secret for `Authorization: Bearer`.
    token: Option<SecretSource>,
    /// Milliseconds for one question.
    #[serde(default = "usual_timeout")]
    timeout_ms: u64,
    /// Bytes of text it is shown at once.
    #[serde(default = "usual_bytes")]
    max_bytes: usize,
    /// Decision on a call when it does not answer.
    #[serde(default)]
    when_unavailable: Unavailable,
    /// Sends arguments to it.
    #[serde(default = "yes")]
    input: bool,
    /// Sends answers to it.
    #[serde(default = "yes")]
    output: bool,
    /// The kinds it may report, each with its category.
    detectors: BTreeMap<String, Category>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unavailable {
    #[default]
    Refuse,
    Pass,
}

const fn usual_timeout() -> u64 {
    500
}

const fn usual_bytes() -> usize {
    256 << 10
}

const fn yes() -> bool {
    true
}

/// The largest rule file that is read, in bytes.
const MAX_RULES: u64 = 4 << 20;

impl Dlp {
    /// Takes relative paths from `folder`.
    pub(super) fn lie_in(&mut self, folder: &Path) {
        for file in &mut self.gitleaks {
            *file = folder.join(&*file);
        }
    }

    /// Notes where its detectors stand in the text of the configuration, for messages.
    pub(super) fn stand_in(&mut self, file: &Path, text: &str) {
        Custom::stand_in(&mut self.custom, &file.display().to_string(), text);
    }

    /// The files besides the configuration that it is made of.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.gitleaks
    }

    /// Digests of the rule files and of the secret of the detector outside: what `[dlp]` refers to.
    pub(crate) fn sources(&self) -> Result<Vec<String>, String> {
        let rules = self.gitleaks.iter().map(|file| Ok(json::sha256(&[text_of(file)?.as_bytes()])));
        let token = self.external.as_ref().and_then(|external| external.token.as_ref());
        let token = token.map(|token| Ok(json::sha256(&[token.read()?.expose().as_bytes()])));
        rules.chain(token).collect()
    }

    /// Bytes of text that are scanned at once.
    pub(crate) const fn max_bytes(&self) -> usize {
        self.limits.max_bytes
    }

    /// Reads the rule files and compiles everything. The error lists everything that is wrong.
    pub(crate) fn engine(&self) -> Result<Engine, String> {
        let rules = self.gitleaks.iter();
        let rules = rules.map(|it| Gitleaks::parse(it.display().to_string(), &text_of(it)?));
        let external = self.external.as_ref().map(|it| it.detectors.clone()).unwrap_or_default();
        let settings = Settings {
            actions: self.actions.clone(),
            masks: self.masks.clone(),
            detectors: self.detectors.clone(),
            limits: self.limits,
            custom: self.custom.clone(),
            allow: self.allow.clone(),
            gitleaks: rules.collect::<Result<_, _>>()?,
            external,
            floor: self.floor,
        };
        Engine::new(&settings).map_err(|error| error.to_string())
    }

    /// The exceptions that allow nothing, because no tool of these providers fits their `tool`.
    pub(crate) fn idle_allows(&self, slugs: &[&str]) -> Vec<String> {
        let named = (1..).zip(self.allow.iter().map(|allow| allow.tool.as_deref()));
        let idle = named.filter_map(|(number, tool)| Some((number, without_tool(tool?, slugs)?)));
        idle.map(|(number, why)| format!("`dlp.allow` entry {number} allows nothing: {why}"))
            .collect()
    }

    /// The engine, and the detector outside if there is one.
    pub(crate) fn load(&self, outbound: &upstream::Outbound) -> Result<app::Dlp, String> {
        let external = self.external.as_ref().map(|external| external.declare(outbound));
        let external = external.transpose().map_err(|error| format!("`external`: {error}"))?;
        let engine = self.engine()?;
        if let Some(warning) = engine.cost_warning() {
            tracing::warn!("{warning}");
        }
        Ok(app::Dlp::new(engine, external))
    }
}

impl External {
    fn declare(&self, outbound: &upstream::Outbound) -> Result<app::External, String> {
        if self.detectors.is_empty() {
            return Err("name the kinds it may report in `detectors`".to_owned());
        }
        if !(self.input || self.output) {
            return Err("it is shown neither `input` nor `output`; remove it".to_owned());
        }
        if !(1..=30_000).contains(&self.timeout_ms) {
            return Err("`timeout_ms` is 1 to 30000".to_owned());
        }
        let endpoint = if self.allow_private {
            upstream::Endpoint::allowed(&self.url)
        } else {
            upstream::Endpoint::public(&self.url)
        };
        let token = self.token.as_ref().map(SecretSource::read).transpose()?;
        let credential = token.as_ref().map(upstream::Credential::bearer).transpose();
        let settings = upstream::DetectorSettings {
            endpoint: endpoint.map_err(|error| error.to_string())?,
            credential: credential.map_err(|error| error.to_string())?,
            timeout: Duration::from_millis(self.timeout_ms),
            max_bytes: self.max_bytes,
        };
        let detector = upstream::ExternalDetector::new(settings, outbound);
        Ok(app::External {
            detector: detector.map_err(|error| error.to_string())?,
            input: self.input,
            output: self.output,
            when_unavailable: match self.when_unavailable {
                Unavailable::Refuse => WhenUnavailable::Refuse,
                Unavailable::Pass => WhenUnavailable::Pass,
            },
        })
    }
}

/// Reason that the `tool` of an exception fits no tool of these providers, if that is certain.
fn without_tool(tool: &str, slugs: &[&str]) -> Option<String> {
    let kinds = [CapabilityKind::Prompt, CapabilityKind::Resource, CapabilityKind::Skill];
    let short = kinds.iter().find_map(|kind| tool.strip_prefix(kind.prefix())).unwrap_or(tool);
    let (start, is_pattern) = short.split_once('*').map_or((tool, false), |(it, _)| (it, true));
    let provider = match start.split_once(':') {
        Some((provider, _)) => provider,
        None if !is_pattern => {
            return Some(format!("`{tool}` is no id of a tool, such as `github:get_issue`"));
        }
        None if start.is_empty() || slugs.iter().any(|slug| slug.starts_with(start)) => {
            return None;
        }
        None => start,
    };
    if slugs.contains(&provider) {
        return None;
    }
    let nearest = did_you_mean(provider, slugs.iter().copied());
    Some(format!("`{tool}` names no provider of the configuration{nearest}"))
}

fn text_of(file: &Path) -> Result<String, String> {
    let name = file.display();
    let failed = |error: std::io::Error| format!("`{name}` cannot be read: {error}");
    // A pipe keeps whoever opens it waiting, and a device may never end.
    if !fs::metadata(file).map_err(failed)?.is_file() {
        return Err(format!("`{name}` is no regular file"));
    }
    let mut text = String::new();
    let opened = fs::File::open(file).map_err(failed)?;
    opened.take(MAX_RULES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_RULES {
        return Err(format!("`{name}` is larger than {MAX_RULES} bytes"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use portcullis_core::{
        clock::Timestamp,
        policy::{Catalogue, PolicyFile, PolicySet},
    };

    use super::*;
    use crate::config::Config;

    const PAGES: &str = concat!(
        include_str!("../../../../docs/dlp.md"),
        include_str!("../../../../docs/dlp-reference.md"),
    );

    /// The snippets of both pages in a language, without the indentation of lists.
    fn snippets(language: &str) -> Vec<String> {
        let mut snippets = Vec::new();
        let mut inside = false;
        for line in PAGES.lines().map(|line| line.strip_prefix("   ").unwrap_or(line)) {
            match (line.strip_prefix("```"), inside) {
                (Some(opened), false) if opened == language => {
                    snippets.push(String::new());
                    inside = true;
                }
                (Some(_), _) => inside = false,
                (None, true) => snippets.last_mut().unwrap().extend([line, "\n"]),
                (None, false) => {}
            }
        }
        snippets
    }

    fn dlp(text: &str) -> Dlp {
        let config: Config = toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        config.dlp
    }

    #[test]
    fn every_setting_on_the_pages_is_accepted() {
        let snippets = snippets("toml");

        assert!(snippets.len() >= 8, "{}", snippets.len());
        for snippet in snippets {
            let mut dlp = dlp(&snippet);
            // The file on the pages is not there.
            dlp.gitleaks.clear();
            let loaded = dlp.engine();
            assert!(loaded.is_ok(), "{:?}\n{snippet}", loaded.err());
        }
    }

    #[test]
    fn every_policy_on_the_pages_loads() {
        let engine = dlp("").engine().unwrap();
        let names = engine.names();
        let catalogue = Catalogue::new([("github".parse().unwrap(), None)]);

        for text in snippets("cedar") {
            let file = PolicyFile { path: "page.cedar".to_owned(), text };
            let set = PolicySet::load(vec![file], &catalogue, &names, Timestamp::default());
            assert!(set.is_ok(), "{:?}", set.err());
        }
    }

    #[test]
    fn the_limits_on_the_pages_are_the_defaults() {
        let snippets = snippets("toml");
        let page = snippets.iter().find(|snippet| snippet.starts_with("[dlp.limits]")).unwrap();

        let limits = dlp(page).limits;

        assert_eq!(format!("{limits:?}"), format!("{:?}", Limits::default()));
    }

    #[test]
    fn an_exception_for_a_tool_that_no_provider_can_have_is_told() {
        for (tool, wanted) in [
            ("github:get_issue", None),
            ("github:*", None),
            ("git*", None),
            ("*", None),
            ("*:get_*", None),
            ("githbu:get_issue", Some("no provider of the configuration (did you mean `github`?)")),
            ("slack:*", Some("`slack:*` names no provider of the configuration")),
            ("slack*", Some("`slack*` names no provider of the configuration")),
            ("get_issue", Some("`get_issue` is no id of a tool")),
        ] {
            let told = dlp(&format!("[[dlp.allow]]\ntool = \"{tool}\"")).idle_allows(&["github"]);

            let found = told.first().map(String::as_str);
            assert_eq!(found.is_some(), wanted.is_some(), "{tool}: {told:?}");
            assert!(found.unwrap_or_default().contains(wanted.unwrap_or_default()), "{told:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_rule_file_is_a_regular_file_of_a_bounded_size() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RWXU;
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, mode, 0).unwrap();
        let [exact, large] = ["exact", "large"].map(|name| folder.path().join(name));
        let most = usize::try_from(MAX_RULES).unwrap();
        fs::write(&exact, "#".repeat(most)).unwrap();
        fs::write(&large, "#".repeat(most + 1)).unwrap();

        let told = [&pipe, Path::new("/dev/zero"), folder.path(), &large].map(text_of);

        assert_eq!(text_of(&exact).map(|text| text.len()), Ok(most));
        for (told, wanted) in told.into_iter().zip(["regular", "regular", "regular", "larger"]) {
            let told = told.unwrap_err();
            assert!(told.contains(wanted), "{told}");
        }
    }

    #[test]
    fn a_detector_outside_is_declared_whole() {
        let outbound = upstream::Outbound::new(std::sync::Arc::new(Zeros));
        let external = |more: &str| {
            let url = "url = \"https://n.example/s\"\ndetectors = {x = \"contact\"}";
            dlp(&format!("[dlp.external]\n{url}\n{more}")).load(&outbound).err()
        };

        assert_eq!(external(""), None);
        for (more, wanted) in [
            ("timeout_ms = 0", "timeout_ms"),
            ("input = false\noutput = false", "neither"),
            ("token = { env = \"NOT_SET_ANYWHERE\" }", "NOT_SET_ANYWHERE"),
        ] {
            let told = external(more).unwrap();
            assert!(told.starts_with("`external`: ") && told.contains(wanted), "{told}");
        }
    }

    #[derive(Debug)]
    struct Zeros;

    impl portcullis_core::random::Random for Zeros {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(0);
        }
    }
}
