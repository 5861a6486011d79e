//! Rounds of the keeper: each takes requests, reads the log, carries out the owners' commands, and asks for ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use abgauge_core::journal::{
    BlockedOperation, Hindrance, Log, LogEvent, Owner, OwnerCommand, OwnerInput, RecordKey, SharedBytes,
};
use abgauge_core::ledger::PairId;
use tracing::warn;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Memory;
use super::conflicting_instances::{ConflictingInstances, ReadRecord};
use super::faults::Operation;
use super::handle::{KeeperHandle, KeeperRequest, Offer};
use super::pace::WritePace;
use super::pair::KeptPair;
use super::status_board::KeeperBoard;
use super::{KeeperOrder, KeeperSettings};
use crate::clock::Clock;

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
    pairs: BTreeMap<PairId, KeptPair>,
    pace: WritePace,
    conflicts: ConflictingInstances,
    requests: Receiver<(PairId, KeeperRequest)>,
    orders: Sender<(PairId, KeeperOrder)>,
    board: Arc<KeeperBoard>,
    numbers: Arc<AtomicU64>,
    /// Appends not handed over to the log yet.
    appends: Vec<(PairId, RecordKey, Option<SharedBytes>)>,
}

/// Creates the work, the worker's handle, and the receiver of its orders.
pub fn work<L: Log>(
    log: L,
    settings: KeeperSettings,
    clock: Clock,
) -> (KeeperWork<L>, KeeperHandle, Receiver<(PairId, KeeperOrder)>) {
    let (send_request, requests) = channel();
    let (orders, ordered) = channel();
    let board = Arc::new(KeeperBoard::new(settings.owner.identity.n_partitions));
    let numbers = Arc::new(AtomicU64::new(1));
    let handle = KeeperHandle::new(
        send_request,
        Arc::clone(&board),
        Arc::clone(&numbers),
        settings.seed,
    );
    let desk = KeeperState {
        pace: WritePace::new(settings.max_bytes_per_second),
        settings,
        clock,
        pairs: BTreeMap::new(),
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
        let is_busy = self.desk.pairs.values().any(KeptPair::is_busy);
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
        // A pair is followed from its first assignment on. Its owner outlives revocations.
        if let KeeperRequest::Assigned = request
            && !self.desk.pairs.contains_key(&id)
            && self.desk.board.has(id)
        {
            self.desk.open(id);
            self.log.follow(id);
        }
        self.desk.request(id, request);
    }

    fn look_at_all(&mut self) {
        let now_ms = self.desk.clock.lasting_ms();
        let ids: Vec<PairId> = self.desk.pairs.keys().copied().collect();
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
        let KeeperState { pairs, settings, .. } = &mut self.desk;
        if let Some(question) = pairs
            .get_mut(&id)
            .and_then(|pair| pair.question(settings, now_ms))
        {
            self.log.ask(id, question);
        }
    }

    fn publish(&mut self, id: PairId, now_ms: i64) {
        let KeeperState {
            pairs, pace, board, ..
        } = &mut self.desk;
        let Some(pair) = pairs.get_mut(&id) else { return };
        pair.note(self.log.progress(id), now_ms);
        let showing = (pair.owner.showing(), pair.incarnation);
        board.put(id, pair.wants(pace, now_ms), showing, &pair.status);
    }
}

impl KeeperState {
    fn open(&mut self, id: PairId) {
        // Owners draw random numbers from this, which must differ between pairs and processes.
        let seed = xxh3_64_with_seed(&id.to_le_bytes(), self.settings.seed);
        let owner = Owner::new(self.settings.owner.clone(), seed);
        self.pairs.insert(id, KeptPair::new(owner));
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn order(&self, id: PairId, order: KeeperOrder) {
        // If the worker has ended, the keeper will end soon.
        let _ = self.orders.send((id, order));
    }

    fn step(&mut self, id: PairId, input: OwnerInput) {
        let now_ms = self.clock.lasting_ms();
        if let Some(pair) = self.pairs.get_mut(&id) {
            let commands = pair.owner.step(now_ms, input);
            for command in commands {
                self.obey(id, command, now_ms);
            }
        }
    }

    fn obey(&mut self, id: PairId, command: OwnerCommand, now_ms: i64) {
        let number = self.number();
        let Some(pair) = self.pairs.get_mut(&id) else {
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
        if let Some(pair) = self.pairs.get_mut(&id) {
            pair.status.n_bytes_written += n_bytes as u64;
        }
        self.appends.push((id, key, value));
    }

    fn request(&mut self, id: PairId, request: KeeperRequest) {
        let now_ms = self.clock.lasting_ms();
        let Some(pair) = self.pairs.get_mut(&id) else {
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
        if let Some(pair) = self.pairs.get_mut(&id) {
            pair.leaving = None;
        }
        // The next write shows whether writing works.
        self.board.faults.clear(Operation::Writing);
        self.step(id, OwnerInput::Revoked);
    }

    /// Seals the last state of a pair that is given back, and gives it back.
    fn leave(&mut self, id: PairId, now_ms: i64) {
        let Some(pair) = self.pairs.get_mut(&id) else {
            return;
        };
        let is_wanted = pair.owner.wants() != abgauge_core::journal::Urgency::No;
        // While another seal is in progress, the owner would ignore the state.
        let leaving = pair.leaving.as_mut();
        if let Some(state) = leaving.and_then(|leaving| leaving.last.take_if(|_| is_wanted)) {
            self.step(id, OwnerInput::State(state));
        }
        if self.pairs.get(&id).is_some_and(|pair| pair.has_left(now_ms)) {
            self.revoke(id);
            self.order(id, KeeperOrder::Left);
        }
    }

    fn happens(&mut self, happening: LogEvent) {
        match happening {
            LogEvent::Record {
                partition,
                offset,
                key,
                value,
                written_ms,
            } => {
                self.board.faults.clear(Operation::Reading);
                self.detect_conflicts(&ReadRecord {
                    pair: partition,
                    key,
                    value,
                    written_ms,
                    now_ms: self.clock.now_ms(),
                });
                self.pairs.entry(partition).and_modify(KeptPair::read);
                self.step(partition, OwnerInput::Record { offset, key, value });
            }
            LogEvent::Begins { partition, offset } => self.step(partition, OwnerInput::Begins(offset)),
            LogEvent::End { partition, question } => {
                self.board.faults.clear(Operation::Asking);
                self.pairs.entry(partition).and_modify(KeptPair::answered);
                self.step(partition, OwnerInput::End(question));
            }
            LogEvent::Quiet { partition, question } => {
                self.pairs.entry(partition).and_modify(KeptPair::answered);
                self.step(partition, OwnerInput::Quiet(question));
            }
            LogEvent::StartOver { partition } => {
                self.pairs.entry(partition).and_modify(|pair| {
                    pair.answered();
                    pair.read();
                });
                self.step(partition, OwnerInput::StartOver);
            }
            LogEvent::Acknowledged { partition, key } => {
                self.board.faults.clear(Operation::Writing);
                self.step(partition, OwnerInput::Acknowledged(key));
            }
            LogEvent::Fault(message) => self.fault(
                Operation::Asking,
                Hindrance {
                    message,
                    is_forbidden: false,
                },
            ),
            LogEvent::Hindered(hindered, hindrance) => {
                let what = match hindered {
                    BlockedOperation::Reading => Operation::Reading,
                    BlockedOperation::Writing => Operation::Writing,
                };
                match hindrance {
                    Some(hindrance) => self.fault(what, hindrance),
                    None => self.board.faults.clear(what),
                }
            }
        }
    }

    fn fault(&self, what: Operation, hindrance: Hindrance) {
        let message = hindrance.message.clone();
        if self.board.faults.put(what, hindrance, self.clock.lasting_ms()) {
            warn!("the state topic: {message}");
        }
    }

    fn detect_conflicts(&mut self, read: &ReadRecord<'_>) {
        let owner = &self.settings.owner;
        if let Some(reported) = self.conflicts.look(owner.namespace, &owner.claim, read) {
            warn!("{reported}");
        }
    }
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
