//! Random stories of approvals: requests, decisions, expiries, uses and kills in any order, by several
//! writers. Whatever happens, a call begins at most as often as its policy says, never without enough
//! approvers, and the store tells of each use.

use portcullis_core::clock::Clock as _;

use crate::prelude::*;

const STORIES: u64 = 8;
const STEPS: u32 = 60;

/// Numbers that look random and are the same in every run (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % most
    }
}

/// One node: its writer, which a kill takes away in the middle of its work.
struct Node {
    writer: AuditWriter,
    _task: JoinSet<()>,
}

impl Node {
    fn start(store: &Store, clock: &Arc<SetClock>) -> Self {
        let (writer, task) = writer_of(store, "node-1", clock.clone());
        Self { writer, _task: task }
    }
}

/// A story under way.
struct Story {
    store: Store,
    org: OrgId,
    clock: Arc<SetClock>,
    nodes: Vec<Node>,
    dice: Dice,
    /// Number of the next row of any kind.
    next: u32,
    /// Number of each approval, with how often a call was told that it begins with it.
    begun: BTreeMap<u32, u32>,
}

impl Story {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn writer(&mut self) -> AuditWriter {
        let at = usize::try_from(self.dice.below(3)).unwrap();
        self.nodes[at].writer.clone()
    }

    async fn some_approval(&mut self) -> Option<(u32, StoredApproval)> {
        let known: Vec<u32> = self.begun.keys().copied().collect();
        let at = usize::try_from(self.dice.below(known.len().max(1) as u64)).unwrap();
        let n = *known.get(at)?;
        let found = self.store.find_approval(self.org, id("apr", n)).await.unwrap();
        Some((n, found.unwrap()))
    }

    async fn change(&mut self, approval: Approval, from: Option<i64>) -> bool {
        let n = self.number();
        let writer = self.writer();
        let change = ApprovalChange { approval, from };
        writer.change_approval(change, event(self.org, n), soon()).await.unwrap()
    }

    async fn ask(&mut self) {
        let n = self.number();
        let digest = format!("call {}", self.dice.below(3));
        let uses = 1 + self.dice.below(3);
        let approvals = 1 + self.dice.below(2);
        let new = approval(self.org, n, &digest);
        let uses = u32::try_from(uses).unwrap();
        let approvals = u32::try_from(approvals).unwrap();
        let terms = ApprovalTerms { uses, approvals, ..new.terms };
        let expires_at = self.now().plus_seconds(900);
        let new = Approval { terms, uses_left: uses, created_at: self.now(), expires_at, ..new };
        if self.change(new, None).await {
            self.begun.insert(n, 0);
        }
    }

    async fn decide(&mut self) {
        let Some((_, found)) = self.some_approval().await else { return };
        let who = u32::try_from(1 + self.dice.below(4)).unwrap();
        let person = Approver {
            id: id("usr", who),
            name: format!("person {who}"),
            delegated: false,
            admin: false,
            groups: ["finance".to_owned()].into(),
            mfa: false,
        };
        let vote = if self.dice.below(6) == 0 { Vote::Deny } else { Vote::Approve };
        let decided = found.approval.decided(&Decider::Principal(person), vote, None, self.now());
        let Ok(next) = decided else { return };
        // Sometimes by an older look at it: then it is not taken.
        let stale = self.dice.below(8) == 0;
        let from = if stale { found.revision - 1 } else { found.revision };
        assert_eq!(self.change(next, Some(from)).await, !stale);
    }

    async fn expire(&mut self) {
        let Some((_, found)) = self.some_approval().await else { return };
        if let Some(ended) = found.approval.expired(self.now()) {
            assert!(self.change(ended, Some(found.revision)).await);
        }
    }

    /// Some calls at once, on any nodes.
    async fn calls(&mut self) {
        let Some((n, found)) = self.some_approval().await else { return };
        let began = at_once(0..=self.dice.below(4), |_| {
            let writer = self.writer();
            let intent = self.intent(n, &found.approval);
            async move { writer.intent(intent, soon()).await.unwrap() }
        })
        .await;
        let count = began.iter().filter(|began| **began == Began::Begun).count();
        *self.begun.get_mut(&n).unwrap() += u32::try_from(count).unwrap();
    }

    /// A call whose node is killed at any moment of it: its caller is not told if it began.
    async fn killed(&mut self) {
        let Some((n, found)) = self.some_approval().await else { return };
        let at = usize::try_from(self.dice.below(3)).unwrap();
        let intent = self.intent(n, &found.approval);
        let patience = Duration::from_micros(self.dice.below(3_000));
        let call = self.nodes[at].writer.intent(intent, Instant::now() + patience * 4);
        let _ = timeout(patience, call).await;
        // The task ends with its set; what it had begun in the database stands or does not.
        self.nodes[at] = Node::start(&self.store, &self.clock);
    }

    fn intent(&mut self, n: u32, approval: &Approval) -> NewIntent {
        let number = self.number();
        let record = texts(&format!(r#"{{"approval":{n}}}"#));
        NewIntent { record, ..approved_intent(self.org, number, &[(n, &approval.digest)]) }
    }

    async fn step(&mut self) {
        match self.dice.below(12) {
            0..2 => self.ask().await,
            2..6 => self.decide().await,
            6..9 => self.calls().await,
            9 => self.killed().await,
            10 => self.expire().await,
            _ => {
                // Clocks jump back, too.
                let seconds = i64::try_from(self.dice.below(900)).unwrap() - 200;
                let later = self.now().plus_seconds(seconds);
                self.clock.set(later.as_micros());
            }
        }
    }

    /// Checks the end of a story: the durable intents are the uses, to the number.
    async fn ends_well(&self) {
        let open = self.store.abandoned_intents(10_000).await.unwrap();
        for (n, begun) in &self.begun {
            let named = format!(r#"{{"approval":{n}}}"#);
            let ran = open.iter().filter(|intent| intent.record.core == named).count();
            let ran = u32::try_from(ran).unwrap();
            let found = self.store.find_approval(self.org, id("apr", *n)).await.unwrap();
            let it = found.unwrap().approval;
            assert!(*begun <= ran && ran <= it.terms.uses, "{begun} told, {ran} ran: {it:?}");
            assert_eq!(it.uses_left, it.terms.uses - ran, "{it:?}");
            if ran > 0 {
                let yes = it.decisions.iter().filter(|it| it.decision == Vote::Approve).count();
                assert!(yes >= it.terms.approvals as usize, "{it:?}");
                let requester = it.requester.principal_id;
                assert!(it.decisions.iter().all(|it| it.by != Some(requester)), "{it:?}");
            }
            assert_eq!(it.status == Status::Consumed, ran == it.terms.uses, "{it:?}");
        }
    }
}

on_both! {
    async fn whatever_happens_a_call_begins_as_often_as_it_was_approved(db: Database) {
        let mut begun = 0;
        for seed in 0..STORIES {
            let org = org(&db, u32::try_from(seed + 1).unwrap()).await;
            let clock = clock_at(NOW);
            let nodes = (0..3).map(|_| Node::start(&db, &clock)).collect();
            let next = u32::try_from(seed + 1).unwrap() * 100_000;
            let mut story = Story {
                store: db.store.clone(),
                org,
                clock,
                nodes,
                dice: Dice(seed),
                next,
                begun: BTreeMap::new(),
            };
            for _ in 0..STEPS {
                story.step().await;
            }
            drop(std::mem::take(&mut story.nodes));
            story.ends_well().await;
            begun += story.begun.values().sum::<u32>();
        }
        assert!(begun > 10, "the stories begin {begun} calls only");
    }
}
