//! A node on a store of its own, made anew as often as its configuration changes.

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, Ipv4Addr},
    path::Path,
    sync::Arc,
};

use aws_lc_rs::rand;
use portcullis_app::{
    Anchors, App, AuditParts, CallParts, Connecting, Dlp, ExportLimits, Fallback, Folder, LastGood,
    Origin, Overrides, Parts, PolicyFolder, PolicySource, ProviderParts, Stages, Trust, Vaults,
};
use portcullis_core::{
    audit::keyring::Keyring,
    clock::{Clock, Timestamp},
    dlp::{Engine, Settings},
    id::{Ids, RequestId},
    lifetime::GrantLife,
    random::Random,
    trust::TrustRules,
    vault::Vault,
};
use portcullis_store::{AuditSettings, AuditWriter, DatabaseSettings, DatabaseUrl, Store};
use portcullis_upstream::Outbound;
use tokio_util::task::TaskTracker;

pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_123_000);

/// A clock that stands still.
#[derive(Debug)]
pub(crate) struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        NOW
    }
}

#[derive(Debug)]
pub(crate) struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        rand::fill(bytes).unwrap();
    }
}

/// An empty store in this folder.
pub(crate) async fn store(folder: &Path) -> Store {
    fs::create_dir(folder.join("policies")).unwrap();
    let url = DatabaseUrl::sqlite(folder.join("portcullis.db"));
    Store::open(&DatabaseSettings::new(url)).await.unwrap()
}

/// A node that trusts by these rules.
pub(crate) fn app(folder: &Path, store: &Store, rules: TrustRules) -> Arc<App> {
    let (clock, random): (Arc<dyn Clock>, Arc<dyn Random>) =
        (Arc::new(Fixed), Arc::new(SystemRandom));
    let audit = AuditSettings::new("test".to_owned());
    let (writer, writing) = AuditWriter::new(store.clone(), Arc::clone(&clock), audit);
    let (outbound, tasks) = (Outbound::new(Arc::clone(&random)), TaskTracker::new());
    tasks.spawn(writing.run());
    let app = App::new(Parts {
        clock: Arc::clone(&clock),
        random: Arc::clone(&random),
        store: store.clone(),
        node: "test".to_owned(),
        cluster: None,
        counters: None,
        policies: PolicySource {
            folder: PolicyFolder::new(folder.join("policies")),
            last_good: LastGood::new(folder.join("last-good")),
            overrides: Overrides::new(folder.join("overrides")),
            fallback: Fallback::Refuse,
        },
        dlp: Dlp::new(Engine::new(&Settings::default()).unwrap(), None),
        fingerprint_key: [0; 32],
        webhooks: BTreeMap::new(),
        trust: Trust::new(rules, BTreeMap::new(), &outbound, &tasks),
        grant_life: GrantLife::default(),
        workers: portcullis_lanes::Workers::none(),
        traces: None,
        tasks: tasks.clone(),
        declared: Vec::new(),
        audit: AuditParts {
            writer,
            log_host: "localhost".to_owned(),
            log_keys: Keyring::generate(&SystemRandom, NOW),
            anchors: Anchors::default(),
            retention: portcullis_app::Retention::default(),
            exports: Folder::open(folder.join("exports"), false).unwrap(),
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
            vaults: Vaults::open(Box::new(|| {
                Vault::new(&[zeroize::Zeroizing::new([2; 32])]).map_err(|error| error.to_string())
            }))
            .unwrap(),
            outbound: outbound.clone(),
            connecting: Connecting::new(Vec::new(), 600, "Portcullis".to_owned()),
        },
    });
    app.unwrap()
}

/// A request from the address of this number.
pub(crate) fn origin(number: u32) -> Origin {
    Origin {
        request_id: RequestId::new(Ids { clock: &Fixed, random: &SystemRandom }),
        arrived: NOW,
        source_ip: IpAddr::from(Ipv4Addr::from(0x0a00_0000 + number)),
        user_agent: None,
        traceparent: None,
        tracestate: None,
        stages: Stages::untraced(),
    }
}
