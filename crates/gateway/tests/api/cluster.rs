//! Several nodes on one PostgreSQL database and one set of counters.

mod approvals;
mod encrypted;
mod limits;
mod members;
mod proofs;
mod spreading;
mod storm;

use portcullis_testkit::Wire;

use crate::prelude::*;

/// Public address of the nodes, for browsers.
pub(crate) const PUBLIC: &str = "https://gateway.acme.example";

/// Files that the nodes of one installation share: keys, policies, the folder of exports.
pub(crate) struct Common(TempDir);

impl Common {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("policies")).unwrap();
        let common = Self(folder);
        let key = common.path("key");
        gateway().prepare().run(&["key", "new", key.to_str().unwrap()]);
        common.policies("@id(\"permit-all\") permit (principal, action, resource);");
        common
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Replaces the policies of all nodes, as a deployment would: at once.
    pub(crate) fn policies(&self, cedar: &str) {
        let fresh = self.path("policies/fresh");
        fs::write(&fresh, cedar).unwrap();
        fs::rename(fresh, self.path("policies/policies.cedar")).unwrap();
    }

    /// A node of this name, counting at `redis`, which may take its time on a busy machine.
    pub(crate) fn node(&self, name: &str, redis: &str) -> Builder {
        let [key, audit_key, exports, policies] =
            ["key", "audit-key", "exports", "policies"].map(|name| self.path(name));
        gateway().env("COUNTERS", redis).config(&format!(
            "[server]\nnode = \"{name}\"\npublic_url = \"{PUBLIC}\"\n[limits]\nredis = {{ env = \"COUNTERS\" }}\n\
             timeout_ms = 5000\n\
             [keys]\nfile = {key:?}\n[audit]\nsigning_key = {{ file = {audit_key:?} }}\n\
             [audit.exports]\npath = {exports:?}\nshared = true\n[policies]\npath = {policies:?}\n"
        ))
    }
}

/// Three nodes, each with wires of its own to the database and to the counters.
pub(crate) struct Trio {
    pub(crate) nodes: [Gateway; 3],
    pub(crate) wires: Vec<Wire>,
    pub(crate) counter_wires: Vec<Wire>,
    pub(crate) redis: RedisServer,
    pub(crate) common: Common,
    database: PostgresDatabase,
}

impl Trio {
    /// Runs a statement past all nodes.
    fn sql(&self, statement: &str) {
        self.database.execute(statement);
    }

    /// Waits until every node answers 200 to a GET.
    pub(crate) async fn until_found(&self, who: &Principal, path: &str) {
        for node in &self.nodes {
            until(|| node.get(who, path), |it| it.status == 200).await;
        }
    }
}

/// Three nodes that serve; `None` if there is no PostgreSQL.
pub(crate) async fn trio(what: &str, change: impl Fn(Builder) -> Builder) -> Option<Trio> {
    let database = PostgresDatabase::create(what)?;
    let common = Common::new();
    let redis = RedisServer::start();
    let mut wires = Vec::new();
    let mut counter_wires = Vec::new();
    let mut nodes = Vec::new();
    for name in ["node-a", "node-b", "node-c"] {
        let wire = Wire::to(database.address().to_owned()).await;
        let counter_wire = Wire::to(redis.address().to_string()).await;
        let there = database.config().replace(database.address(), &wire.address().to_string());
        let counters = redis.url_at(counter_wire.address());
        let mut node = change(common.node(name, &counters).config(&there)).prepare();
        // One after the other: the first makes the keys that sign the logs.
        node.start();
        wires.push(wire);
        counter_wires.push(counter_wire);
        nodes.push(node);
    }
    let nodes = nodes.try_into().unwrap();
    Some(Trio { nodes, wires, counter_wires, redis, common, database })
}
