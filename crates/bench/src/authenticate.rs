//! Cost of resolving a token: when the node has cached it, and when it has to ask
//! the store (SQLite).
//!
//! CPU time of the whole process, threads of the database included; nothing else runs in it.

use std::{
    collections::BTreeMap,
    fs,
    hint::black_box,
    net::{IpAddr, Ipv4Addr},
    path::Path,
    process,
    sync::Arc,
    time::Duration,
};

use portcullis_app::{
    Anchors, App, AuditParts, CallParts, Connecting, Dlp, ExportLimits, Fallback, Folder, LastGood,
    Origin, Overrides, Parts, PolicyFolder, PolicySource, ProviderParts, Purpose, Refused, Stages,
    Trust, Vaults, Workers,
};
use portcullis_core::{
    audit::keyring::Keyring,
    clock::Clock,
    dlp::{Engine, Settings},
    id::{Ids, RequestId},
    lifetime::GrantLife,
    principal::Plan,
    random::Random,
    trust::TrustRules,
    vault::{Vault, parse_keys},
};
use portcullis_store::{AuditSettings, AuditWriter, DatabaseSettings, DatabaseUrl, Store, Sync};
use portcullis_upstream::Outbound;
use serde_json::json;
use tokio_util::task::TaskTracker;

use crate::{
    Failure, Verdict,
    args::AuthenticateArgs,
    machine::{SystemClock, SystemRandom},
    people,
    process::cpu_time,
    say,
};

/// Goal for a cached token.
const GOAL: Duration = Duration::from_micros(3);
const TOKENS: u32 = 4_000;

/// Prints what one request costs, and whether the goal holds.
pub(crate) async fn run(args: &AuthenticateArgs) -> Result<Verdict, Failure> {
    let folder = tempfile::tempdir()?;
    let bench = Bench::open(folder.path()).await?;
    let tokens = bench.tokens().await?;
    let cold = bench.cold(&tokens).await?;
    let known = tokens.first().ok_or("there are no tokens")?;
    let broken = "svc_live_00000000000000000000000000000000000000";
    let warm = bench.repeated(known, args.repeats).await?;
    let refused = bench.repeated(broken, args.repeats / 10).await?;
    if args.json {
        let nanos = |cost: Duration| cost.as_nanos();
        let figures =
            json!({"warm_ns": nanos(warm), "cold_ns": nanos(cold), "refused_ns": nanos(refused)});
        say(&format!("{figures}\n"));
    } else {
        say(&format!(
            "CPU of finding out who asks:\n  known token        {warm:?} (goal {GOAL:?})\n  \
             looked up          {cold:?}\n  checksum broken    {refused:?}\n"
        ));
    }
    Ok(if warm <= GOAL { Verdict::Holds } else { Verdict::Broken })
}

/// A request from this machine.
fn origin(ids: Ids<'_>) -> Origin {
    Origin {
        request_id: RequestId::new(ids),
        arrived: ids.clock.now(),
        source_ip: IpAddr::from(Ipv4Addr::LOCALHOST),
        user_agent: None,
        traceparent: None,
        tracestate: None,
        stages: Stages::untraced(),
    }
}

/// The vault of this benchmark, under a key that is the same each time.
fn vaults() -> Result<Vaults, Failure> {
    Ok(Vaults::open(Box::new(|| {
        let keys = parse_keys(&format!("{}=", "A".repeat(43)));
        keys.and_then(|keys| Vault::new(&keys)).map_err(|error| error.to_string())
    }))?)
}

struct Bench {
    app: Arc<App>,
    store: Store,
    origin: Origin,
}

impl Bench {
    async fn open(folder: &Path) -> Result<Self, Failure> {
        let policies = folder.join("policies");
        fs::create_dir(&policies)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let random: Arc<dyn Random> = Arc::new(SystemRandom);
        let url = DatabaseUrl::sqlite(folder.join("portcullis.db"));
        // How tokens are written is not what is measured.
        let settings = DatabaseSettings { sync: Sync::ProcessCrash, ..DatabaseSettings::new(url) };
        let store = Store::open(&settings).await?;
        let audit = AuditSettings::new("bench".to_owned());
        let (writer, _) = AuditWriter::new(store.clone(), Arc::clone(&clock), audit);
        let outbound = Outbound::new(Arc::clone(&random));
        let tasks = TaskTracker::new();
        let app = App::new(Parts {
            cluster: None,
            counters: None,
            clock: Arc::clone(&clock),
            random: Arc::clone(&random),
            store: store.clone(),
            node: "bench".to_owned(),
            policies: PolicySource {
                folder: PolicyFolder::new(policies),
                last_good: LastGood::new(folder.join("last-good")),
                overrides: Overrides::new(folder.join("overrides")),
                fallback: Fallback::Refuse,
            },
            dlp: Dlp::new(Engine::new(&Settings::default())?, None),
            fingerprint_key: [0; 32],
            webhooks: BTreeMap::new(),
            trust: Trust::new(TrustRules::default(), BTreeMap::new(), &outbound, &tasks),
            grant_life: GrantLife::default(),
            traces: None,
            workers: Workers::none(),
            tasks: tasks.clone(),
            declared: Vec::new(),
            audit: AuditParts {
                writer,
                log_host: "localhost".to_owned(),
                log_keys: Keyring::generate(&SystemRandom, clock.now()),
                anchors: Anchors::default(),
                retention: portcullis_app::Retention::default(),
                exports: Folder::open(folder.join("exports"), false)?,
                export_limits: ExportLimits::default(),
                sinks: Vec::new(),
            },
            calls: CallParts {
                answer_key: portcullis_core::idempotency::AnswerKey::new(&[1; 32]),
                state_key: portcullis_core::call::StateKey::new(&[2; 32]),
                capture: portcullis_core::audit::Capture::default(),
                max_calls: 1,
            },
            providers: ProviderParts {
                vaults: vaults()?,
                outbound: outbound.clone(),
                connecting: Connecting::new(Vec::new(), 600, "Portcullis".to_owned()),
            },
        });
        let app = app.map_err(|errors| format!("{errors:?}"))?;
        let origin = origin(Ids { clock: &*clock, random: &*random });
        Ok(Self { app, store, origin })
    }

    /// Stores an org, a service account and its tokens.
    async fn tokens(&self) -> Result<Vec<String>, Failure> {
        let org = people::org(&self.store, "bench", Plan::Pro).await?;
        let service = people::service(&self.store, org).await?;
        let mut tokens = Vec::new();
        for _ in 0..TOKENS {
            tokens.push(people::token(&self.store, org, service).await?);
        }
        Ok(tokens)
    }

    async fn ask(&self, token: &str) -> bool {
        let asked = self.app.access.authenticate(Some(token), Purpose::Access, &self.origin).await;
        black_box(asked).map_err(|Refused { refusal, .. }| refusal).is_ok()
    }

    /// Each token once, none of them known before.
    async fn cold(&self, tokens: &[String]) -> Result<Duration, Failure> {
        let before = cpu_time(process::id())?;
        for token in tokens {
            if !self.ask(token).await {
                return Err("a token was refused".into());
            }
        }
        let spent = cpu_time(process::id())?.saturating_sub(before);
        Ok(spent / u32::try_from(tokens.len())?.max(1))
    }

    /// The same token again and again.
    async fn repeated(&self, token: &str, repeats: u32) -> Result<Duration, Failure> {
        self.ask(token).await;
        let before = cpu_time(process::id())?;
        for _ in 0..repeats {
            self.ask(black_box(token)).await;
        }
        Ok(cpu_time(process::id())?.saturating_sub(before) / repeats.max(1))
    }
}
