//! Rounds of the keeper: each takes requests, reads the log, carries out the owners' commands, and asks for ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use abgauge_core::journal::{
    EndQuestion, Log, LogEvent, LogProgress, OwnerCommand, OwnerInput, OwnerStatus, PartitionEvent,
    RecordKey, SharedBytes,
};
use abgauge_core::ledger::PairId;
use tracing::warn;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Memory;
use super::conflicting_instances::{ConflictingInstances, ReadRecord};
use super::followed::FollowedPartition;
use super::handle::{KeeperHandle, KeeperRequest, Offer};
use super::pace::WritePace;
use super::pair::KeptPair;
use super::status_board::KeeperBoard;
use super::{KeeperOrder, KeeperSettings};
use crate::clock::Clock;
use crate::store::faults::Operation;
use crate::store::publications::Publications;

/// Maximum number of partitions that are not assigned here and are read for the first time at once.
const MAX_NEW: usize = 8;
/// Time that a round waits for input while something is pending, ms.
const BUSY_WAIT_MS: u64 = 2;

/// Everything the thread owns. Tests drive it directly.
pub struct KeeperWork<L> {
    log: L,
    desk: KeeperState,
}

/// Everything but the log.
struct KeeperState {
    settings: KeeperSettings,
    clock: Clock,
    partitions: BTreeMap<PairId, FollowedPartition>,
    publications: Option<Publications>,
    pace: WritePace,
    conflicts: ConflictingInstances,
    requests: Receiver<(PairId, KeeperRequest)>,
    orders: Sender<(PairId, KeeperOrder)>,
    board: Arc<KeeperBoard>,
    numbers: Arc<AtomicU64>,
    /// Appends not handed over to the log yet.
    appends: Vec<(PairId, RecordKey, Option<SharedBytes>)>,
}

/// Creates the work, the worker's handle, and the receiver of its orders. With `publications`, all partitions are followed.
pub fn work<L: Log>(
    log: L,
    settings: KeeperSettings,
    publications: Option<Publications>,
    clock: Clock,
) -> (KeeperWork<L>, KeeperHandle, Receiver<(PairId, KeeperOrder)>) {
    let (send_request, requests) = channel();
    let (orders, ordered) = channel();
    let n_partitions = settings.owner.identity.n_partitions;
    let board = Arc::new(KeeperBoard::new(n_partitions));
    if let Some(publications) = &publications {
        publications.open(n_partitions);
    }
    let numbers = Arc::new(AtomicU64::new(1));
    let handle = KeeperHandle {
        requests: send_request,
        board: Arc::clone(&board),
        numbers: Arc::clone(&numbers),
        seed: settings.seed,
    };
    let desk = KeeperState {
        pace: WritePace::new(settings.max_bytes_per_second),
        settings,
        clock,
        partitions: BTreeMap::new(),
        publications,
        conflicts: ConflictingInstances::default(),
        requests,
        orders,
        board,
        numbers,
        appends: Vec::new(),
    };
    (KeeperWork { log, desk }, handle, ordered)
}

impl<L: Log> KeeperWork<L> {
    /// Does all work that is due; waits up to `wait_ms` if there is none. Returns whether to continue.
    pub fn round(&mut self, wait_ms: u64) -> bool {
        // Requests come first, so that a revoked pair seals nothing that is read below.
        loop {
            match self.desk.requests.try_recv() {
                Ok((_, KeeperRequest::End)) | Err(TryRecvError::Disconnected) => return false,
                Ok((pair, request)) => self.request(pair, request),
                Err(TryRecvError::Empty) => break,
            }
        }
        // Appends must not wait for the poll.
        self.write();
        self.follow_more();
        let is_busy = self.desk.partitions.values().any(FollowedPartition::is_busy);
        let wait_ms = if is_busy {
            wait_ms.min(BUSY_WAIT_MS)
        } else {
            wait_ms
        };
        let desk = &mut self.desk;
        self.log.poll(wait_ms, &mut |happening| desk.happens(happening));
        self.write();
        self.look_at_all();
        true
    }

    /// The log, for tests.
    pub fn log(&mut self) -> &mut L {
        &mut self.log
    }

    fn write(&mut self) {
        for (pair, key, value) in self.desk.appends.drain(..) {
            self.log.append(pair, key, value);
        }
    }

    fn request(&mut self, id: PairId, request: KeeperRequest) {
        if let KeeperRequest::Assigned = request
            && self.desk.board.has(id)
        {
            self.follow(id);
            self.log.prefer(id);
            self.desk.open(id, self.log.progress(id));
        }
        self.desk.request(id, request);
    }

    fn follow(&mut self, id: PairId) {
        let namespace = self.desk.settings.owner.namespace;
        self.desk.partitions.entry(id).or_insert_with(|| {
            self.log.follow(id);
            FollowedPartition::new(namespace)
        });
    }

    /// Follows further partitions if their states are to be published: a few at a time, and none while a pair of this instance waits
    /// for its stored state.
    fn follow_more(&mut self) {
        let KeeperState {
            partitions,
            settings,
            publications,
            ..
        } = &self.desk;
        let n_partitions = settings.owner.identity.n_partitions;
        if publications.is_none() || partitions.len() >= n_partitions as usize {
            return;
        }
        let is_restoring = |of: &FollowedPartition| {
            let standing = of.pair().map(|pair| pair.owner.standing());
            matches!(standing, Some(OwnerStatus::Reading | OwnerStatus::Claiming))
        };
        if partitions.values().any(is_restoring) {
            return;
        }
        let n_new = partitions.values().filter(|of| of.is_new()).count();
        let more = (0..n_partitions as PairId).filter(|id| !partitions.contains_key(id));
        let more: Vec<PairId> = more.take(MAX_NEW.saturating_sub(n_new)).collect();
        for id in more {
            self.follow(id);
        }
    }

    fn look_at_all(&mut self) {
        let now_ms = self.desk.clock.lasting_ms();
        let ids: Vec<PairId> = self.desk.partitions.keys().copied().collect();
        for id in ids {
            // Owners notice a stall by the time between inputs, so each gets at least a tick.
            self.desk.step(id, OwnerInput::Tick);
            self.desk.leave(id, now_ms);
            self.write();
            self.ask(id, now_ms);
            self.publish(id, now_ms);
        }
    }

    fn ask(&mut self, id: PairId, now_ms: i64) {
        let lease_ms = self.desk.settings.owner.lease_ms;
        let is_published = self.desk.publications.is_some();
        let of = self.desk.partitions.get_mut(&id);
        if let Some(question) = of.and_then(|of| of.question(is_published, lease_ms, now_ms)) {
            self.log.ask(id, question);
        }
    }

    fn publish(&mut self, id: PairId, now_ms: i64) {
        let KeeperState {
            partitions,
            pace,
            board,
            ..
        } = &mut self.desk;
        let Some(of) = partitions.get_mut(&id) else { return };
        let progress = self.log.progress(id);
        of.note(progress);
        let Some(pair) = of.pair_mut() else { return };
        pair.note(progress, now_ms);
        let showing = (pair.owner.showing(), pair.incarnation);
        board.put(id, pair.wants(pace, now_ms), showing, &pair.status);
    }
}

impl KeeperState {
    fn open(&mut self, id: PairId, progress: LogProgress) {
        // Owners draw random numbers from this, which must differ between pairs and processes.
        let seed = xxh3_64_with_seed(&id.to_le_bytes(), self.settings.seed);
        if let Some(of) = self.partitions.get_mut(&id) {
            of.own(&self.settings.owner, seed, progress);
        }
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn order(&self, id: PairId, order: KeeperOrder) {
        // If the worker has ended, the keeper will end soon.
        let _ = self.orders.send((id, order));
    }

    fn step(&mut self, id: PairId, input: OwnerInput) {
        self.act(id, |of, now_ms| of.step(now_ms, input));
    }

    fn act(&mut self, id: PairId, act: impl FnOnce(&mut FollowedPartition, i64) -> Vec<OwnerCommand>) {
        let now_ms = self.clock.lasting_ms();
        if let Some(of) = self.partitions.get_mut(&id) {
            for command in act(of, now_ms) {
                self.obey(id, command, now_ms);
            }
        }
    }

    fn obey(&mut self, id: PairId, command: OwnerCommand, now_ms: i64) {
        let number = self.number();
        let Some(pair) = kept_pair(&mut self.partitions, id) else {
            return;
        };
        let order = match command {
            OwnerCommand::Send { key, value } => return self.append(id, key, value, now_ms),
            OwnerCommand::Commit { number } => {
                pair.superseded(number);
                KeeperOrder::Commit { number }
            }
            OwnerCommand::Begin => {
                report_missing_state(id, pair, self.settings.has_read);
                let incarnation = Memory(number);
                pair.forget(Some(incarnation));
                KeeperOrder::Begin { incarnation }
            }
            OwnerCommand::Restore { seal, roles } => {
                let (incarnation, offer) = (Memory(number), Offer(number));
                pair.forget(Some(incarnation));
                let n_bytes = roles.values().map(|bytes| bytes.len() as u64).sum();
                pair.restored(seal.content, offer, n_bytes);
                KeeperOrder::Restore {
                    incarnation,
                    offer,
                    header: seal.header.clone(),
                    roles,
                }
            }
            OwnerCommand::Show { content } => match pair.show(content, now_ms) {
                Some(offer) => KeeperOrder::Show { offer },
                // This state is already shown: the log has lost a later one.
                None => return,
            },
            OwnerCommand::Drop => {
                pair.forget(None);
                KeeperOrder::Drop
            }
            OwnerCommand::Refuse(refusal) => {
                pair.status.refusal = Some(refusal.to_string());
                KeeperOrder::Refuse(refusal)
            }
        };
        self.order(id, order);
    }

    fn append(&mut self, id: PairId, key: RecordKey, value: Option<SharedBytes>, now_ms: i64) {
        let n_bytes =
            key.text(self.settings.owner.namespace).len() + value.as_ref().map_or(0, |value| value.len());
        self.pace.wrote(n_bytes as u64, now_ms);
        if let Some(pair) = kept_pair(&mut self.partitions, id) {
            pair.status.n_bytes_written += n_bytes as u64;
        }
        self.appends.push((id, key, value));
    }

    fn request(&mut self, id: PairId, request: KeeperRequest) {
        let now_ms = self.clock.lasting_ms();
        let Some(pair) = kept_pair(&mut self.partitions, id) else {
            // A pair that was never opened has nothing to seal.
            if let KeeperRequest::Leave(_) = request {
                self.order(id, KeeperOrder::Left);
            }
            return;
        };
        match request {
            KeeperRequest::Assigned => {
                pair.assigned(now_ms);
                self.step(id, OwnerInput::Assigned);
            }
            KeeperRequest::Revoked => self.revoke(id),
            // A late message about an earlier memory must not drop the present one.
            KeeperRequest::Forgotten(incarnation) if pair.incarnation == Some(incarnation) => {
                pair.forget(None);
                self.step(id, OwnerInput::Forgotten);
            }
            KeeperRequest::Offer(offered) => {
                if let Some(state) = pair.state(offered, &self.settings, now_ms) {
                    self.step(id, OwnerInput::State(state));
                }
            }
            KeeperRequest::Leave(last) => pair.leave(last, &self.settings, now_ms),
            KeeperRequest::Committed { number, is_known } => {
                self.step(id, OwnerInput::Committed { number, is_known });
            }
            KeeperRequest::Forgotten(_) | KeeperRequest::End => {}
        }
    }

    fn revoke(&mut self, id: PairId) {
        if let Some(pair) = kept_pair(&mut self.partitions, id) {
            pair.leaving = None;
        }
        // The next write shows whether writing works.
        self.board.faults.clear(Operation::Writing);
        self.step(id, OwnerInput::Revoked);
    }

    /// Seals the last state of a pair that is given back, and gives it back.
    fn leave(&mut self, id: PairId, now_ms: i64) {
        let Some(pair) = kept_pair(&mut self.partitions, id) else {
            return;
        };
        let is_wanted = pair.owner.wants() != abgauge_core::journal::Urgency::No;
        // While another seal is in progress, the owner would ignore the state.
        let leaving = pair.leaving.as_mut();
        if let Some(state) = leaving.and_then(|leaving| leaving.last.take_if(|_| is_wanted)) {
            self.step(id, OwnerInput::State(state));
        }
        if kept_pair(&mut self.partitions, id).is_some_and(|pair| pair.has_left(now_ms)) {
            self.revoke(id);
            self.order(id, KeeperOrder::Left);
        }
    }

    fn happens(&mut self, event: LogEvent<'_>) {
        if let Some(publications) = &self.publications {
            publications.note(&event);
        }
        // An end or fault of partitions without an owner is no evidence about the others.
        let concerns_owners = match &event {
            LogEvent::Partition(id, PartitionEvent::End(_)) => kept_pair(&mut self.partitions, *id).is_some(),
            LogEvent::Fault { of_owners, .. } => *of_owners,
            _ => true,
        };
        let message = concerns_owners.then(|| self.board.faults.note(&event, self.clock.lasting_ms()));
        if let Some(message) = message.flatten() {
            warn!("the state topic: {message}");
        }
        let LogEvent::Partition(id, event) = event else {
            return;
        };
        self.detect_conflicts(id, &event);
        let question = match event {
            PartitionEvent::End(question) => Some(question),
            _ => None,
        };
        self.act(id, |of, now_ms| of.take(now_ms, event));
        if let Some(question) = question {
            self.publish_state(id, question);
        }
    }

    /// Publishes the state that is newly current at an end, and the time of that end.
    fn publish_state(&mut self, id: PairId, question: EndQuestion) {
        let (Some(publications), Some(of)) = (&self.publications, self.partitions.get_mut(&id)) else {
            return;
        };
        match of.look(question) {
            Ok(state) => publications.put(id, &of.onlooker, state),
            Err(refusal) => {
                publications.put(id, &of.onlooker, None);
                publications.refuse(id, refusal.to_string());
            }
        }
    }

    fn detect_conflicts(&mut self, id: PairId, event: &PartitionEvent<'_>) {
        let PartitionEvent::Record {
            key,
            value,
            written_ms,
            ..
        } = event
        else {
            return;
        };
        let read = ReadRecord {
            pair: id,
            key,
            value: *value,
            written_ms: *written_ms,
            now_ms: self.clock.now_ms(),
        };
        let owner = &self.settings.owner;
        if let Some(reported) = self.conflicts.look(owner.namespace, &owner.claim, &read) {
            warn!("{reported}");
        }
    }
}

/// Returns a pair that was ever assigned here.
fn kept_pair(partitions: &mut BTreeMap<PairId, FollowedPartition>, id: PairId) -> Option<&mut KeptPair> {
    partitions.get_mut(&id)?.pair_mut()
}

/// Warns if a pair has no stored state although there are signs that it had one.
fn report_missing_state(id: PairId, pair: &KeptPair, has_read: bool) {
    let others = pair.owner.view().others();
    let sign = match (others.is_empty(), has_read) {
        (false, _) => {
            "other instances have stored state in its partition, by other settings or in another group"
        }
        (true, true) => "the group has read the topics before",
        (true, false) => return,
    };
    warn!(
        partition = id,
        "the pair has no stored state, although {sign}: it starts as set by kafka.start. If its state was stored before, it is lost, or settings that affect counting have changed"
    );
}
