//! Puts a node together.

mod access;
mod claim;
mod durability;
pub(crate) mod log_keys;
mod names;
mod nodes;
mod operator_api;
mod outdated;
mod problems;
mod system;
mod workbench;

pub(crate) use self::{
    claim::{claim, claimed, serving, take_over},
    durability::{TORN_PAGES, UNWALLED, weakness},
    outdated::{needing_restart, outdated},
    system::{SystemClock, SystemRandom, detach, now},
    workbench::{ToolSource, workbench},
};

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

use aws_lc_rs::hmac;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use portcullis_app::{
    App, AuditParts, AuthorizationParts, CallParts, Cluster, Fallback, Folder, LastGood,
    LogIdentity, Operator, Overrides, Parts, PolicyFolder, PolicySource, ProviderParts, Trust,
    Vaults,
};
use portcullis_core::{
    audit::keyring::Keyring,
    authorization::{REGISTRATIONS, RegistrationKey},
    call::{STATES, StateKey},
    clock::Clock,
    dlp::FingerprintKey,
    id::{Ids, OrgId},
    idempotency::{ANSWERS, AnswerKey},
    policy::PolicyError,
    random::Random,
    vault::Vault,
};
use portcullis_faces::{Cursors, Feeds, Gateway, KnownSenders, Proxies, Strangers};
use portcullis_lanes::Workers;
use portcullis_store::{
    AuditSettings, AuditTask, AuditWriter, DatabaseSettings, RowKey, Store, Weakness,
};
use portcullis_upstream::{Outbound, Webhook};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use zeroize::Zeroizing;

use crate::config::{Config, Sink};

/// Error that keeps a node from starting.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BootError {
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    #[error("the data folder `{0}` cannot be used")]
    DataFolder(String, #[source] io::Error),
    #[error(
        "another process serves from the data folder `{0}`: stop it, or give this one a \
         `data_dir` of its own (`--data-dir` for the quickstart)"
    )]
    Served(String),
    #[error("nothing serves from the data folder `{0}`")]
    Idle(String),
    #[error(
        "the key file `{0}` cannot be read; `portcullis key new` with this configuration makes it \
         (mode 0600), and `portcullis quickstart` does so by itself"
    )]
    Key(String, #[source] io::Error),
    #[error("the key file `{0}` has to hold 32 bytes in base64")]
    KeyForm(String),
    #[error("the database cannot be opened")]
    Store(#[from] portcullis_store::StoreError),
    #[error(
        "`audit.sync` is \"power-loss\", which this database does not keep: {0}; or set `audit.sync` \
         to \"process-crash\": then what was recorded in the last moments before a power loss may \
         be gone (docs/postgresql.md)"
    )]
    Durability(Weakness),
    #[error("nothing was moved")]
    Moving(#[from] portcullis_store::MovingError),
    #[error("the keys that seal credentials cannot be used: {0}")]
    Vault(String),
    #[error(
        "{count} secrets are sealed under the key `{id}`, which is not there: put it back into \
         `[keys]`, or connect those providers again after `portcullis key list`"
    )]
    MissingKey { id: String, count: u64 },
    #[error("the `[dlp]` settings are not valid: {0}")]
    Dlp(String),
    #[error("the policies cannot be loaded, so nothing would be governed as written:\n{0}")]
    Policies(String),
    #[error("the signing keys of the audit logs: {0}")]
    LogKeys(String),
    #[error(transparent)]
    SignedLog(#[from] portcullis_app::LogKeyError),
    #[error(transparent)]
    Join(#[from] portcullis_app::JoinError),
    #[error("several things in the configuration are wrong:\n{0}")]
    Several(String),
    #[error("{0}")]
    Other(String),
}

/// Purpose of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// To serve: it takes its name among the others.
    Serving,
    /// To see whether it could; beside one that serves, maybe.
    Check,
}

/// A node that is ready to serve.
pub(crate) struct Node {
    pub(crate) app: Arc<App>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) store: Store,
    pub(crate) tasks: TaskTracker,
    pub(crate) outbound: Outbound,
    /// Ends what says that this node lives.
    pub(crate) living: CancellationToken,
}

/// Parts for the operator's commands: the store and its writer, no providers, no port.
pub(crate) struct OfflineNode {
    pub(crate) operator: Operator,
    tasks: TaskTracker,
}

impl OfflineNode {
    /// Opens the store of this configuration.
    pub(crate) async fn open(config: &Config) -> Result<Self, BootError> {
        Ok(Self::over(open_store(config).await?))
    }

    /// The same for commands that need no store and change nothing: `None` where there is none, or one of
    /// another schema, or no key.
    pub(crate) async fn present(config: &Config) -> Result<Option<Self>, BootError> {
        match database_settings(config) {
            Ok(settings) => Ok(Store::open_as_it_is(&settings).await?.map(Self::over)),
            Err(BootError::Key(..)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn over(store: Store) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let tasks = TaskTracker::new();
        let node = format!("cli-{}", std::process::id());
        let (writer, task) =
            AuditWriter::new(store.clone(), Arc::clone(&clock), AuditSettings::new(node));
        tasks.spawn(task.run());
        let os_user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok();
        let random = Arc::new(SystemRandom);
        Self { operator: Operator { clock, random, store, writer, os_user }, tasks }
    }

    /// The name and the keys of the logs. Makes the keys if nothing was ever signed.
    pub(crate) async fn log_identity(&self, config: &Config) -> Result<LogIdentity, BootError> {
        let Operator { store, random, clock, .. } = &self.operator;
        let keys = log_keys::load(config, store, &**random, clock.now()).await?;
        Ok(LogIdentity { host: config.server.public_host.clone(), keys })
    }

    /// Writes out what waits and closes the store.
    pub(crate) async fn close(self) {
        let Self { operator: Operator { store, writer, .. }, tasks } = self;
        drop(writer);
        tasks.close();
        tasks.wait().await;
        store.close().await;
    }
}

async fn open_store(config: &Config) -> Result<Store, BootError> {
    let folder = &config.data_dir;
    let failed = |error| BootError::DataFolder(folder.display().to_string(), error);
    make_private(folder).map_err(failed)?;
    Ok(Store::open(&database_settings(config)?).await?)
}

/// Settings for opening the database.
fn database_settings(config: &Config) -> Result<DatabaseSettings, BootError> {
    let row_key = RowKey::derive(&read_key(&config.key_file())?);
    Ok(config.database.settings(&config.data_dir, &config.audit, row_key)?)
}

/// The folder of export files, made if it is not there.
fn export_folder(config: &Config) -> Result<Folder, BootError> {
    let path = config.export_folder();
    let shown = path.display().to_string();
    Folder::open(path, config.audit.exports.shared)
        .map_err(|error| BootError::DataFolder(shown, error))
}

/// A folder only its owner may look into.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Writes a new key file, readable by its owner only. Fails if there is one already.
pub(crate) fn new_key(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{}", *key_line())?;
    file.sync_all()
}

/// A new key as it stands in a file.
pub(crate) fn key_line() -> Zeroizing<String> {
    let mut key = Zeroizing::new([0; 32]);
    SystemRandom.fill(&mut *key);
    Zeroizing::new(STANDARD.encode(*key))
}

/// The keys that seal credentials, as the configuration says.
pub(crate) fn open_vault(config: &Config) -> Result<Vault, BootError> {
    let derived = Zeroizing::new(derived(&read_key(&config.key_file())?, VAULT));
    let place = config.keys.vault_place(&config.key_file());
    place.open(&derived).map_err(BootError::Vault)
}

/// The same as a running node holds them: read again when a secret comes under another key.
fn vaults(config: &Config, key: &[u8; 32]) -> Result<Vaults, BootError> {
    let derived = Zeroizing::new(derived(key, VAULT));
    let place = config.keys.vault_place(&config.key_file());
    Vaults::open(Box::new(move || place.open(&derived))).map_err(BootError::Vault)
}

/// Rejects a store that holds secrets under a key that is not there: nothing that needs them would
/// work, without a visible cause. A row that was changed is no such key: the sealed value itself
/// does not name it.
async fn check_keys(store: &Store, vaults: &Vaults) -> Result<(), BootError> {
    let known = vaults.ids();
    let counted = store.count_secrets().await?;
    for (id, count) in counted.into_iter().filter(|(id, _)| !known.contains(id)) {
        let some = store.secrets_under(&id, LOOKED_AT).await?;
        if some.iter().any(|secret| vaults.lack_key_of(secret)) {
            return Err(BootError::MissingKey { id, count });
        }
        tracing::error!(id, count, "stored secrets name a key that did not seal them");
    }
    Ok(())
}

/// Secrets of a key that are looked at before the start is refused for want of it.
const LOOKED_AT: u32 = 100;

/// Context of the derivation of the first key that seals credentials.
const VAULT: &str = "vault";

fn read_key(path: &Path) -> Result<[u8; 32], BootError> {
    let shown = || path.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| BootError::Key(shown(), error))?;
    let bytes = STANDARD.decode(text.trim()).map_err(|_| BootError::KeyForm(shown()))?;
    bytes.try_into().map_err(|_| BootError::KeyForm(shown()))
}

/// The key under which the values of an org have their fingerprints.
pub(crate) fn fingerprint_key(config: &Config, org: OrgId) -> Result<FingerprintKey, BootError> {
    let key = derived(&read_key(&config.key_file())?, FINGERPRINTS);
    Ok(portcullis_app::fingerprint_key(&hmac::Key::new(hmac::HMAC_SHA256, &key), org))
}

/// Context of the derivation of the key of fingerprints.
const FINGERPRINTS: &str = "dlp-fingerprint";

/// A key for one purpose, derived from the key file.
fn derived(key: &[u8; 32], purpose: &str) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), purpose.as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}

impl Node {
    /// Opens store and keys, loads policies and detectors, declares providers. Nothing is listened
    /// on and no server is called yet.
    pub(crate) async fn assemble(
        config: &Config,
        fallback: Fallback,
        mode: Mode,
    ) -> Result<Self, BootError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let random: Arc<dyn Random> = Arc::new(SystemRandom);
        let outbound = Outbound::new(Arc::clone(&random));
        let config = &problems::none_in(config, mode, &outbound).await?;
        let key = read_key(&config.key_file())?;
        let dlp = config.dlp.load(&outbound).map_err(BootError::Dlp)?;
        let providers = declared(config, &outbound)?;
        let tasks = TaskTracker::new();
        let access = access::parts(config, &key, &outbound, &tasks)?;
        let vaults = vaults(config, &key)?;
        let connecting = config.connect.connecting()?;
        let store = durability::open(config, mode).await?;
        check_keys(&store, &vaults).await?;
        let limits = nodes::limits(config).await?;
        let ids = Ids { clock: &*clock, random: &*random };
        let cluster = nodes::join(config, mode, ids).await?;
        let lease = cluster.as_ref().map_or(config.server.node.as_str(), Cluster::lease);
        let settings = AuditSettings::new(lease.to_owned());
        let (writer, task) = AuditWriter::new(store.clone(), Arc::clone(&clock), settings);
        let log_keys = log_keys::load(config, &store, &*random, clock.now()).await?;
        run_writer(task);
        let app = App::new(Parts {
            clock,
            random,
            store: store.clone(),
            node: config.server.node.clone(),
            workers: Workers::start(),
            tasks: tasks.clone(),
            cluster,
            limits,
            policies: policy_source(config, fallback),
            dlp,
            fingerprint_key: derived(&key, FINGERPRINTS),
            audit: audit(config, &outbound, writer, log_keys)?,
            calls: calls(config, &key),
            declared: providers,
            providers: ProviderParts { vaults, outbound: outbound.clone(), connecting },
            login: config.login_parts(access.trust.rules(), access::login_key(&key), &outbound)?,
            access,
            authorization: authorization(config, &key, &outbound, &tasks)?,
            read_only: config.admin.read_only,
            webhooks: webhooks(config, &outbound)?,
            traces: config.traces.declare(&outbound)?,
        })
        .map_err(|errors| ungoverned(&errors))?;
        let living = CancellationToken::new();
        nodes::take_part(Arc::clone(&app.nodes), living.clone());
        app.audit.check_log_keys().await?;
        let gateway = gateway(config, &key, Arc::clone(&app))?;
        Ok(Self { app, gateway, store, tasks, outbound, living })
    }
}

fn authorization(
    config: &Config,
    key: &[u8; 32],
    outbound: &Outbound,
    tasks: &TaskTracker,
) -> Result<AuthorizationParts, BootError> {
    let hosts = config.mcp.own_hosts(&config.server);
    let registrations = RegistrationKey::new(&derived(key, REGISTRATIONS));
    config.oauth.parts(hosts, registrations, outbound, tasks).map_err(BootError::Other)
}

fn calls(config: &Config, key: &[u8; 32]) -> CallParts {
    CallParts {
        answer_key: AnswerKey::new(&derived(key, ANSWERS)),
        state_key: StateKey::new(&derived(key, STATES)),
        capture: config.audit.capture.0,
        max_calls: config.server.max_calls.get(),
    }
}

/// The parts of the audit log.
fn audit(
    config: &Config,
    outbound: &Outbound,
    writer: AuditWriter,
    log_keys: Keyring,
) -> Result<AuditParts, BootError> {
    Ok(AuditParts {
        writer,
        log_host: config.server.public_host.clone(),
        log_keys,
        anchors: config.audit.anchors(outbound).map_err(BootError::Other)?,
        retention: config.audit.retention.rule(),
        exports: export_folder(config)?,
        export_limits: config.audit.exports.limits(),
        sinks: Sink::declare_all(&config.audit.sink, outbound)?,
    })
}

fn policy_source(config: &Config, fallback: Fallback) -> PolicySource {
    PolicySource {
        folder: PolicyFolder::new(config.policy_folder()),
        last_good: LastGood::new(config.last_good_file()),
        overrides: Overrides::new(config.overrides_file()),
        fallback,
    }
}

fn ungoverned(errors: &[PolicyError]) -> BootError {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    BootError::Policies(lines.join("\n"))
}

fn declared(
    config: &Config,
    outbound: &Outbound,
) -> Result<Vec<portcullis_app::Declared>, crate::config::ConfigError> {
    config.providers.iter().map(|it| it.declare(outbound, &config.connect)).collect()
}

/// Receivers of the notices of policies, by name.
fn webhooks(
    config: &Config,
    outbound: &Outbound,
) -> Result<BTreeMap<String, Webhook>, crate::config::ConfigError> {
    let declared = config.webhooks.iter();
    declared
        .map(|(name, webhook)| webhook.declare(name, outbound).map(|way| (name.clone(), way)))
        .collect()
}

/// State that handlers share.
fn gateway(config: &Config, key: &[u8; 32], app: Arc<App>) -> Result<Arc<Gateway>, BootError> {
    let cursors = Cursors::new(&derived(key, "cursor"))
        .map_err(|_| BootError::Other("the cursor key cannot be used".to_owned()))?;
    let proxies = Proxies::new(config.server.proxies().map_err(BootError::Other)?);
    let leaving = Arc::default();
    let draining = std::sync::atomic::AtomicBool::new(false);
    let body_time = Duration::from_secs(config.server.body_timeout_seconds);
    let strangers = Strangers::default();
    let known = KnownSenders::default();
    let mcp = config.mcp.settings(&config.server);
    let console = config.console.enabled;
    let feeds = Feeds::default();
    Ok(Arc::new(Gateway {
        app,
        cursors,
        proxies,
        leaving,
        draining,
        body_time,
        strangers,
        known,
        console,
        feeds,
        mcp,
    }))
}

/// The trust rules of this configuration without store or port, and the clock to ask them with.
pub(crate) async fn trust(config: &Config) -> Result<(Trust, Arc<dyn Clock>), BootError> {
    let (config, unknown) = names::identified(config).await;
    unknown.into_iter().next().map_or(Ok(()), Err)?;
    let trusted = config.trusted()?;
    let outbound = Outbound::new(Arc::new(SystemRandom));
    let trust = Trust::new(trusted.rules, trusted.keys, &outbound, &TaskTracker::new());
    Ok((trust, Arc::new(SystemClock)))
}

/// The writer runs outside the tracker: it ends when the last of its users is gone.
#[expect(clippy::disallowed_methods, reason = "the writer outlives every tracked task")]
fn run_writer(task: AuditTask) {
    tokio::spawn(task.run());
}
