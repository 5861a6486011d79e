//! The loop that carries records to engines and their changes to the board.
//!
//! [`Worker`] is a plain struct: it takes [`Input`]s, reads records from its [`Source`]s, and gives [`Order`]s that
//! somebody else carries out. Its pairs live in *shards*, one for each source; these are read side by side where enough
//! waits. All else is done by one thread, between two readings.

mod ahead;
mod clocks;
mod hold;
mod membership;
mod pace;
mod pair;
mod report;
mod shard;
mod shards;
mod shares;
mod start;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tracing::{error, info, warn};

use self::clocks::Clocks;
use self::membership::Membership;
use self::pace::Pace;
use self::pair::{Flow, Log, Pair};
use self::report::Report;
pub use self::shard::DeadLetters;
use self::shards::Shards;
use self::start::StartRule;
use crate::board::Board;
use crate::clock::Clock;
use crate::config::Config;
use crate::engine::catalogue::Catalogue;
use crate::engine::event::Side;
use crate::engine::outcome::{ClickResult, Counts, Outcome};
use crate::engine::ranking::Ranking;
use crate::engine::{Engine, Rules};
use crate::ingest::keys::KeyAudit;
use crate::ingest::skips::Skips;
use crate::ingest::wire::Decoder;
use crate::ingest::{
    Answer, Fault, FaultKind, GroupState, Input, LogEnd, LogStart, Order, Question, Source, TopicCounts,
    TopicPartition,
};
use crate::logging::Losses;
use crate::telemetry::Telemetry;

/// How often the brokers are asked where the logs end.
const ASK: Duration = Duration::from_millis(500);
/// How often they are asked who stamps the records.
const ASK_TIMESTAMPS: Duration = Duration::from_secs(3 * 60);
/// A start that takes longer is not waited for with that.
const LONG_START: Duration = Duration::from_secs(60);
const COMMIT: Duration = Duration::from_secs(5);
/// Part of the state's bound that topics may fill by being read far ahead of their twins, one over this: 16 MiB of 4 GiB.
const AHEAD_PART: u64 = 256;

/// How far a start has come.
#[derive(Debug, PartialEq)]
enum Phase {
    /// The topics are not known.
    Topics,
    /// Waiting for the group.
    Joining,
    /// Owning what the group gave.
    Owning,
}

pub struct Worker {
    rules: Rules,
    ranking: Ranking,
    start: StartRule,
    skips: Skips,
    idle_after_ms: i64,
    /// What topics may fill of all states by being read far ahead of their twins.
    max_ahead_bytes: u64,
    topics: [String; 2],
    one_topic: bool,
    brokers: String,
    board: Arc<Board>,
    clock: Clock,
    report: Report,
    catalogue: Option<Arc<Catalogue>>,
    phase: Phase,
    membership: Membership,
    /// Counts assignments: an answer to a question of an earlier one is void.
    epoch: u64,
    /// The pairs that are owned.
    shards: Shards,
    /// Revoked, hidden, and kept until the next assignment.
    kept: BTreeMap<i32, Pair>,
    /// Owned, but not started yet: waiting to learn where.
    starting: BTreeSet<i32>,
    /// Since when a log stands where it does, of those that more is to come of.
    standing: BTreeMap<TopicPartition, (i64, Duration)>,
    /// A batch is being looked at.
    looking: bool,
    /// Partitions whose position had left the log, the client says.
    lost: BTreeSet<i32>,
    audits: Vec<KeyAudit>,
    clocks: Clocks,
    /// Asked, and not yet answered.
    asking: bool,
    /// The last question but those about topics was where to start.
    asked_starts: bool,
    /// When it was asked last who stamps the records.
    asked_timestamps: Option<Duration>,
    /// Partitions of the topics, once known.
    counts: Option<TopicCounts>,
    /// What to say where the topics have come to differ in their partitions.
    unequal: Option<String>,
    orders: Vec<Order>,
    /// As of the last round.
    uptime: Duration,
    fatal: Option<Fault>,
    pace: Pace,
    /// Changes were handed over in the last round.
    handed_over: bool,
    asked: Option<Duration>,
    committed: Duration,
    /// What was committed last.
    commits: BTreeMap<TopicPartition, i64>,
}

impl Worker {
    /// A worker that reads these sources, where each partition's records wait in the one of
    /// [`queue_of`](crate::ingest::queue_of); there is one at least.
    pub fn new(
        config: &Config,
        ranking: Ranking,
        board: Arc<Board>,
        telemetry: Arc<Telemetry>,
        clock: Clock,
        sources: Vec<Box<dyn Source>>,
    ) -> Worker {
        let decoder = Decoder::new(
            config.join.hash_seed,
            config.join.max_items,
            config.join.max_experiments,
        )
        .reading(config.events.as_ref());
        let one_topic = config.kafka.served_topic == config.kafka.clicks_topic;
        let topics = [
            config.kafka.served_topic.clone(),
            config.kafka.clicks_topic.clone(),
        ];
        telemetry.set_state_bound(config.limits.max_state_bytes);
        Worker {
            rules: rules(config),
            ranking,
            start: StartRule::new(config),
            skips: config.ingest.skips.clone(),
            idle_after_ms: config.join.idle_after_ms,
            max_ahead_bytes: config.limits.max_state_bytes / AHEAD_PART,
            one_topic,
            brokers: config.kafka.brokers.clone(),
            shards: Shards::new(sources, &decoder, one_topic, config.limits.max_state_bytes),
            board,
            report: Report::new(telemetry, topics.clone(), config),
            catalogue: None,
            topics,
            clock,
            phase: Phase::Topics,
            membership: Membership::default(),
            epoch: 0,
            kept: BTreeMap::new(),
            starting: BTreeSet::new(),
            standing: BTreeMap::new(),
            looking: false,
            lost: BTreeSet::new(),
            audits: Vec::new(),
            clocks: Clocks::default(),
            asking: false,
            asked_starts: false,
            asked_timestamps: None,
            counts: None,
            unequal: None,
            orders: Vec::new(),
            uptime: Duration::ZERO,
            fatal: None,
            pace: Pace::default(),
            handed_over: false,
            asked: None,
            committed: Duration::ZERO,
            commits: BTreeMap::new(),
        }
    }

    /// Where records go that cannot be read.
    pub fn with_dead_letters(mut self, dead_letters: Option<DeadLetters>) -> Worker {
        self.shards.set_dead_letters(dead_letters.as_ref());
        self
    }

    /// What could not be written of the log is told.
    pub fn with_log_losses(mut self, losses: Losses) -> Worker {
        self.report.watch_log(losses);
        self
    }

    /// What is to be carried out now, in this order.
    pub fn orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    /// Why the program cannot go on.
    pub fn fatal(&self) -> Option<&Fault> {
        self.fatal.as_ref()
    }

    fn sides(&self) -> &'static [Side] {
        if self.one_topic {
            &[Side::Served]
        } else {
            &Side::BOTH
        }
    }

    pub fn handle(&mut self, input: Input) {
        match input {
            Input::Assigned(partitions) => self.assigned(&partitions),
            Input::Misassigned(others) => self.misassigned(&others),
            Input::Revoked => self.revoked(),
            Input::OffsetLost(partition) => self.offset_lost(partition),
            Input::Damaged(partition, first, damage) => self.damaged(partition, first, damage),
            Input::Seen(look, batch) => self.seen(look, batch),
            Input::Fault(fault) => self.fault(fault),
            Input::Catalogue(catalogue) => self.take_catalogue(catalogue),
            Input::Answer(answer) => {
                self.asking = false;
                match answer {
                    Answer::Topics(counts) => self.topics_known(counts),
                    Answer::Timestamps(timestamps) => {
                        self.report
                            .timestamps(&timestamps, &self.brokers, self.rules.max_future_ms);
                    }
                    Answer::Group { epoch, state } if epoch == self.epoch => self.group_known(state),
                    Answer::Starts { epoch, starts } if epoch == self.epoch => self.starts_known(starts),
                    Answer::Ends {
                        epoch,
                        clock_run,
                        asked_ms,
                        ends,
                    } if epoch == self.epoch => {
                        self.ends_known(clock_run, asked_ms, ends);
                    }
                    Answer::Group { .. } | Answer::Starts { .. } | Answer::Ends { .. } => {}
                }
            }
        }
    }

    /// Counts records that wait, at most a batch of each source. Says how many they were.
    pub fn read(&mut self) -> usize {
        self.note_ahead();
        if let Err(broken) = self.shards.read() {
            self.fault(Fault {
                message: broken.0,
                kind: FaultKind::Fatal,
            });
            return 0;
        }
        let mut n_records = 0;
        for news in self.shards.news() {
            n_records += news.n_records;
            for (audit, counts) in self.audits.iter_mut().zip(&news.keys) {
                audit.add(counts);
            }
            for record in &news.unreadable {
                self.report.unreadable(record, self.uptime);
            }
            for input in news.inputs {
                self.handle(input);
            }
        }
        n_records
    }

    /// Comes once a round, after inputs and records; `busy` says that records come.
    ///
    /// `uptime` is real time since the start, also where the clock is simulated: it paces questions, commits and lines
    /// of the log.
    pub fn round(&mut self, busy: bool, uptime: Duration) {
        self.uptime = uptime;
        if self.clocks.round(uptime) {
            warn!(
                "the loop was stopped for a while: what was produced meanwhile is read before anything settles"
            );
            self.restart_clocks();
        }
        if self.membership.is_to_rejoin(uptime) {
            self.orders.push(Order::Rejoin);
        }
        self.balance();
        let copied = self.board.is_being_copied();
        self.handed_over = self.pace.is_due(busy, copied, uptime);
        if self.handed_over {
            self.pace.begins(uptime);
            self.hand_over();
        }
        self.ask(uptime);
        self.look_around();
        if uptime.saturating_sub(self.committed) >= COMMIT {
            self.committed = uptime;
            self.commit();
        }
        let waiting_for = self.waiting_for();
        let pairs: Vec<_> = self.shards.pairs().collect();
        let progress = report::Progress {
            pairs: &pairs,
            live_end_ms: self.shown_live_end_ms(),
            now_ms: self.clock.now_ms(),
            steady_ms: self.clock.steady_ms(),
            tell_open_after_ms: self.idle_after_ms,
            settle_after_ms: self.rules.attribution_ms + self.rules.lateness_ms,
            audits: &self.audits,
            exact: self.board.is_exact(),
            arms_folded: pairs.iter().map(|(_, pair)| pair.engine.n_folded_arms()).sum(),
            arms_without_coverage: self.board.n_arms_without_coverage(),
            held: self.held(),
            waiting_for,
        };
        self.report.round(progress, uptime);
    }

    /// How long the last round took.
    pub fn took(&mut self, time: Duration) {
        if self.handed_over {
            self.pace.took(time);
        }
    }

    /// Keeps the topics of each pair abreast, as far as memory asks for it.
    fn balance(&mut self) {
        let n_pairs = self.shards.pairs().count().max(1) as u64;
        let room_bytes = self.max_ahead_bytes / n_pairs;
        for (partition, pair) in self.shards.pairs_mut().filter(|(_, pair)| pair.held.is_none()) {
            if let Some(flow) = pair.balance(room_bytes) {
                self.orders.push(match flow {
                    Flow::Pause(side) => Order::Pause((side, partition)),
                    Flow::Resume(side) => Order::Resume((side, partition)),
                });
            }
        }
    }

    /// Brings every change to the board, and pairs that have caught up into the views.
    fn hand_over(&mut self) {
        for (_, pair) in self.shards.pairs() {
            self.clocks.saw(pair.engine.accepted_ms().map(|(_, last)| last));
            self.clocks.saw(
                pair.engine
                    .frontier_ms()
                    .filter(|_| pair.caught_up)
                    .map(|frontier| frontier - 1),
            );
        }
        if let Some(live_end_ms) = self.clocks.live_end_ms() {
            self.board.set_live_end(live_end_ms);
        }
        self.board.show_until(self.until_ms());
        self.look_ahead();
        for (partition, pair) in self.shards.pairs_mut() {
            if pair.changed {
                pair.engine.gather_changes();
                self.board.merge(partition, &pair.engine);
                self.report.counts(&pair.engine.changes().counts);
                pair.engine.clear_changes();
                pair.changed = false;
            }
            if !pair.caught_up && pair.has_reached_noted_ends() {
                pair.caught_up = true;
                self.lost.remove(&partition);
                self.board.show(partition);
            }
        }
        self.report_engines();
    }

    /// Gauges of all engines, kept ones included: their clicks still wait.
    fn report_engines(&self) {
        let pairs = self
            .shards
            .pairs()
            .map(|(_, pair)| pair)
            .chain(self.kept.values());
        self.report.engines(pairs.map(|pair| &pair.engine));
    }

    fn ask(&mut self, uptime: Duration) {
        if self.asking || self.asked.is_some_and(|asked| uptime.saturating_sub(asked) < ASK) {
            return;
        }
        let question = match self.phase {
            Phase::Topics => Question::Topics,
            Phase::Joining => return,
            // In turns with the question for ends: a partition that cannot start must not hold up the others.
            Phase::Owning if !self.starting.is_empty() && (self.shards.is_empty() || !self.asked_starts) => {
                self.asked_starts = true;
                self.ask_starts()
            }
            Phase::Owning if self.membership.asks() => Question::Group { epoch: self.epoch },
            // Whoever owns nothing learns so of brokers and topics that go and come.
            Phase::Owning if self.shards.is_empty() => Question::Topics,
            Phase::Owning if self.is_to_ask_timestamps(uptime) => {
                self.asked_timestamps = Some(uptime);
                Question::Timestamps
            }
            Phase::Owning => {
                self.asked_starts = false;
                self.clocks.ask();
                Question::Ends {
                    epoch: self.epoch,
                    clock_run: self.clocks.run(),
                    asked_ms: self.clock.steady_ms(),
                    partitions: self.partitions_of(self.shards.pairs().map(|(partition, _)| partition)),
                }
            }
        };
        self.asked = Some(uptime);
        self.asking = true;
        self.orders.push(Order::Ask(question));
    }

    /// First when a start has its numbers, or takes long to; then again and again, since somebody may have fixed it.
    fn is_to_ask_timestamps(&self, uptime: Duration) -> bool {
        match self.asked_timestamps {
            None => self.clocks.has_started() || uptime >= LONG_START,
            Some(asked) => uptime.saturating_sub(asked) >= ASK_TIMESTAMPS,
        }
    }

    fn ask_starts(&self) -> Question {
        Question::Starts {
            epoch: self.epoch,
            partitions: self.partitions_of(self.starting.iter().copied()),
            seek_ms: self.start.seek_ms(self.clock.now_ms()),
        }
    }

    fn partitions_of(&self, partitions: impl Iterator<Item = i32>) -> Vec<TopicPartition> {
        let both = |partition| self.sides().iter().map(move |side| (*side, partition));
        partitions.flat_map(both).collect()
    }

    fn topics_known(&mut self, counts: Result<TopicCounts, Fault>) {
        let counts = match counts {
            Ok(counts) => counts,
            Err(fault) => return self.fault(fault),
        };
        self.report.brokers_answer();
        self.unequal = (counts.served != counts.clicks).then(|| {
            let [served, clicks] = &self.topics;
            format!(
                "topic `{served}` has {} partitions and topic `{clicks}` has {}: a click must land in the partition of \
                 its list, so give both the same number, keyed alike",
                counts.served, counts.clicks
            )
        });
        if let (Phase::Topics, Some(message)) = (&self.phase, &self.unequal) {
            let message = message.clone();
            self.fatal = Some(Fault {
                message,
                kind: FaultKind::Fatal,
            });
            return;
        }
        if self.counts.replace(counts) == Some(counts) {
            return;
        }
        if let Some(n) = u32::try_from(counts.served).ok().and_then(NonZeroU32::new) {
            let topics = &self.topics[..self.sides().len()];
            self.audits = topics.iter().map(|topic| KeyAudit::new(topic, n)).collect();
            self.shards.set_audits(&self.audits);
        }
        if self.phase == Phase::Topics {
            self.phase = Phase::Joining;
            self.orders.push(Order::Subscribe);
        }
    }

    fn assigned(&mut self, partitions: &[TopicPartition]) {
        self.report.rebalanced();
        self.epoch += 1;
        self.phase = Phase::Owning;
        self.restart_clocks();
        let given: BTreeSet<&TopicPartition> = partitions.iter().collect();
        let is_whole = |partition: &i32| {
            self.sides()
                .iter()
                .all(|side| given.contains(&(*side, *partition)))
        };
        let numbers: BTreeSet<i32> = partitions.iter().map(|(_, partition)| *partition).collect();
        let (whole, broken): (BTreeSet<i32>, BTreeSet<i32>) = numbers.into_iter().partition(is_whole);
        if !broken.is_empty() {
            error!(
                partitions = ?broken,
                "the group gave us a partition of one topic only, which is not read: give both topics the same number of \
                 partitions, and every member partition.assignment.strategy=range"
            );
        }
        info!(partitions = ?whole, "assigned");
        self.membership.assigned(whole.len());
        self.starting = whole;
        // A change of their partitions is a reason to be assigned anew.
        self.orders.push(Order::Ask(Question::Topics));
        // What went to others takes its state with it.
        let gone: Vec<i32> = self
            .kept
            .keys()
            .copied()
            .filter(|kept| !self.starting.contains(kept))
            .collect();
        for partition in gone {
            self.forget(partition);
        }
        if self.starting.is_empty() {
            self.orders.push(Order::Assign(Vec::new()));
        } else {
            let question = self.ask_starts();
            self.asking = true;
            self.orders.push(Order::Ask(question));
        }
    }

    /// We own nothing, until the group gives us what is ours.
    fn misassigned(&mut self, others: &[String]) {
        self.report.rebalanced();
        self.epoch += 1;
        self.phase = Phase::Joining;
        self.membership.misassigned(others, &self.topics, self.uptime);
        self.orders.push(Order::Assign(Vec::new()));
    }

    fn group_known(&mut self, state: Result<GroupState, Fault>) {
        match (state, self.counts) {
            (Ok(state), Some(counts)) => {
                self.report.brokers_answer();
                self.membership.known(state, counts, &self.topics, self.uptime);
            }
            (Err(fault), _) => self.fault(fault),
            (Ok(_), None) => {}
        }
    }

    fn revoked(&mut self) {
        self.report.rebalanced();
        self.hand_over();
        self.commit();
        self.epoch += 1;
        self.phase = Phase::Joining;
        self.starting.clear();
        for (partition, mut pair) in self.shards.take() {
            self.board.hide(partition);
            self.report.forget_partition(partition);
            pair.caught_up = false;
            self.kept.insert(partition, pair);
        }
        self.orders.push(Order::Unassign);
        info!("gave all partitions back; waiting for the group");
    }

    /// Drops what is known of a pair that is not owned: clicks that waited for a list stay undecided.
    fn forget(&mut self, partition: i32) {
        if let Some(pair) = self.kept.remove(&partition) {
            let mut counts = Counts::default();
            counts.count_results(ClickResult::Undecided, pair.engine.n_waiting());
            self.report.counts(&counts);
        }
        self.lost.remove(&partition);
        self.board.remove(partition);
    }

    fn starts_known(&mut self, starts: Result<BTreeMap<TopicPartition, LogStart>, Fault>) {
        let starts = match starts {
            Ok(starts) => starts,
            Err(fault) => return self.fault(fault),
        };
        self.report.brokers_answer();
        if self.starting.is_empty() {
            return; // Asked twice, and answered before.
        }
        let now_ms = self.clock.now_ms();
        for partition in std::mem::take(&mut self.starting) {
            let logs: Option<Vec<(Side, LogStart)>> = self
                .sides()
                .iter()
                .map(|side| Some((*side, *starts.get(&(*side, partition))?)))
                .collect();
            let Some(logs) = logs else {
                self.starting.insert(partition);
                continue;
            };
            let pair = match self.kept.remove(&partition) {
                Some(kept) if goes_on(&kept, &logs) => {
                    self.lost.remove(&partition);
                    resumed(kept, &logs)
                }
                Some(kept) => {
                    self.kept.insert(partition, kept);
                    self.position_left_the_log(partition);
                    self.begin(partition, &logs, now_ms)
                }
                None => self.begin(partition, &logs, now_ms),
            };
            self.shards.insert(partition, pair);
        }
        self.assign_pairs();
    }

    fn begin(&self, partition: i32, logs: &[(Side, LogStart)], now_ms: i64) -> Pair {
        let seek_ms = self.start.seek_ms(now_ms);
        let begin_ms = self
            .start
            .begin_ms(logs.iter().map(|(_, log)| log), seek_ms, now_ms);
        let mut engine = Engine::new(self.rules.clone(), self.ranking.clone(), begin_ms);
        if let Some(catalogue) = &self.catalogue {
            engine.set_catalogue(Arc::clone(catalogue));
        }
        let log = |(side, log): &(Side, LogStart)| {
            let skips = self.skips.of((*side, partition));
            Log::new(*side, self.start.offset(log, seek_ms), log.high).skipping(skips)
        };
        Pair::new(engine, logs.iter().map(log).collect())
    }

    /// A position that has left the log: the pair begins anew by the start rule, visibly.
    fn position_left_the_log(&mut self, partition: i32) {
        self.report.pair_restarted(partition);
        self.forget(partition);
        self.lost.insert(partition);
    }

    fn offset_lost(&mut self, (_, partition): TopicPartition) {
        // What was read of the pair has been read, though nothing comes of it.
        self.hand_over();
        let Some(mut pair) = self.shards.remove(partition) else {
            return;
        };
        if pair.held.is_some() {
            // The client went astray in the batch that cannot be read.
            self.shards.insert(partition, pair);
            return;
        }
        pair.caught_up = false;
        self.kept.insert(partition, pair);
        self.lost.insert(partition);
        self.board.hide(partition);
        self.report.forget_partition(partition);
        self.starting.insert(partition);
        self.epoch += 1;
        self.restart_clocks();
    }

    fn ends_known(
        &mut self,
        clock_run: u64,
        asked_ms: i64,
        ends: Result<BTreeMap<TopicPartition, LogEnd>, Fault>,
    ) {
        let ends = match ends {
            Ok(ends) => ends,
            Err(fault) => {
                self.restart_clocks();
                return self.fault(fault);
            }
        };
        self.report.brokers_answer();
        let is_current = clock_run == self.clocks.run();
        let mut all_at_end = true;
        let mut idle: Vec<(i32, Vec<Side>)> = Vec::new();
        for (partition, pair) in self.shards.pairs_mut() {
            if pair.held.is_some() {
                for log in &mut pair.logs {
                    log.end = ends
                        .get(&(log.side, partition))
                        .map_or(log.end, |end| Some(end.end));
                }
                continue; // Time passes for the others.
            }
            let n_logs = pair.logs.len();
            let mut at_end = 0;
            let mut stands = Vec::new();
            for log in &mut pair.logs {
                let answer = ends.get(&(log.side, partition));
                let is_at_end = answer.is_some_and(|end| log.ends(*end));
                if let Some(answer) = answer {
                    log.look_for_open_transaction(answer, asked_ms);
                }
                at_end += usize::from(is_at_end);
                if is_current && log.stands(is_at_end, asked_ms, self.idle_after_ms) {
                    stands.push(log.side);
                }
            }
            all_at_end &= at_end == n_logs;
            if at_end == n_logs && !stands.is_empty() {
                idle.push((partition, stands));
            }
        }
        if !is_current {
            return;
        }
        let is_start = all_at_end && !self.clocks.has_started();
        let live_end_ms = self.clocks.all_at_end(all_at_end, asked_ms);
        if is_start {
            self.catch_up_with_time(asked_ms);
        }
        for (partition, sides) in idle {
            self.make_idle_move(partition, &sides, live_end_ms);
        }
    }

    /// A start has read all that there is: the live end is as far on as time since the newest event was written. A stream
    /// that goes on brings its own time: its record timestamps may tell when its events were made, not when they came.
    fn catch_up_with_time(&mut self, asked_ms: i64) {
        if self.shards.pairs().any(|(_, pair)| pair.goes_on()) {
            return;
        }
        let newest = self
            .shards
            .pairs()
            .filter_map(|(_, pair)| pair.engine.last_accepted());
        let Some((ts_ms, record_ms)) = newest.max() else {
            return;
        };
        let asked_at_ms = self.clock.now_ms() - (self.clock.steady_ms() - asked_ms);
        let passed_ms = asked_at_ms.saturating_sub(record_ms).max(0);
        self.clocks.saw(Some(ts_ms + passed_ms));
    }

    /// Up to where the windows are shown, by view: as far as an honest clock may be ahead of ours.
    fn until_ms(&self) -> [i64; 2] {
        let live_ms = self.clock.now_ms() + self.rules.max_future_ms;
        [
            live_ms,
            live_ms - self.rules.lateness_ms - self.rules.attribution_ms,
        ]
    }

    fn shown_live_end_ms(&self) -> Option<i64> {
        let [until_ms, _] = self.until_ms();
        self.clocks
            .live_end_ms()
            .map(|live_end_ms| live_end_ms.min(until_ms))
    }

    /// Rule D7: time passes for a topic partition that has stood at its end for long enough.
    fn make_idle_move(&mut self, partition: i32, sides: &[Side], live_end_ms: Option<i64>) {
        let [until_ms, _] = self.until_ms();
        if let Some(pair) = self.shards.get_mut(partition) {
            let both = sides.len() == pair.logs.len();
            for side in sides {
                pair.engine.idle(*side, live_end_ms.filter(|_| both), until_ms);
            }
            pair.changed = true;
        }
    }

    fn restart_clocks(&mut self) {
        self.clocks.restart();
        self.shards
            .pairs_mut()
            .flat_map(|(_, pair)| &mut pair.logs)
            .for_each(|log| log.idle_since_ms = None);
    }

    fn fault(&mut self, fault: Fault) {
        if fault.kind == FaultKind::Fatal {
            self.fatal = Some(fault);
        } else {
            self.report.fault(fault, self.uptime);
        }
    }

    /// The board goes first: it must know every place that an engine may speak of.
    fn take_catalogue(&mut self, catalogue: Arc<Catalogue>) {
        self.board.set_catalogue(Arc::clone(&catalogue));
        let owned = self.shards.pairs_mut().map(|(_, pair)| pair);
        for pair in owned.chain(self.kept.values_mut()) {
            pair.engine.set_catalogue(Arc::clone(&catalogue));
        }
        self.report.catalogue(&catalogue, self.clock.now_ms());
        self.catalogue = Some(catalogue);
    }

    fn commit(&mut self) {
        let mut moved = Vec::new();
        for (partition, pair) in self.shards.pairs() {
            for log in &pair.logs {
                let key = (log.side, partition);
                if self.commits.insert(key, log.position) != Some(log.position) {
                    moved.push((key, log.position));
                }
            }
        }
        if !moved.is_empty() {
            self.orders.push(Order::Commit(moved));
        }
    }

    fn waiting_for(&self) -> Vec<String> {
        let mut waiting: Vec<String> = self.report.fault_messages().collect();
        waiting.extend(self.unequal.clone());
        waiting.extend(self.membership.waiting_for());
        match self.phase {
            Phase::Topics => waiting.push("the brokers' answer about the topics".into()),
            Phase::Joining => waiting.push("the group to assign partitions".into()),
            Phase::Owning => {
                if !self.starting.is_empty() {
                    waiting.push(format!("where to start partitions {:?}", self.starting));
                }
                for partition in self.starting.intersection(&self.lost) {
                    waiting.push(format!(
                        "partition {partition} to begin anew: its position had left the log"
                    ));
                }
                let is_held = |pair: &Pair| pair.held.is_some();
                if self
                    .shards
                    .pairs()
                    .all(|(_, pair)| is_held(pair) && !pair.caught_up)
                {
                    waiting.extend(self.held()); // Nothing would be shown.
                }
                let others = self.shards.pairs().filter(|(_, pair)| !is_held(pair));
                for (partition, pair) in others.filter(|(_, pair)| !pair.caught_up) {
                    let left: i64 = pair
                        .logs
                        .iter()
                        .map(|log| (log.noted_end - log.position).max(0))
                        .sum();
                    let why = if self.lost.contains(&partition) {
                        ", anew: its position had left the log"
                    } else {
                        ""
                    };
                    waiting.push(format!(
                        "partition {partition} to catch up: {left} records to read{why}"
                    ));
                }
                waiting.extend(self.open_transactions());
            }
        }
        waiting
    }

    /// Topic partitions that wait for a transaction to end, a line each.
    fn open_transactions(&self) -> impl Iterator<Item = String> {
        let steady_ms = self.clock.steady_ms();
        let now_ms = self.clock.now_ms();
        let logs = self
            .shards
            .pairs()
            .flat_map(|(partition, pair)| pair.logs.iter().map(move |log| (partition, log)));
        logs.filter_map(move |(partition, log)| {
            let since_ms = log.held_up_since_ms(steady_ms, self.idle_after_ms)?;
            Some(format!(
                "partition {partition} of topic `{}` to go on: a transaction that is open since {} or longer holds up {} \
                 records; its producer must commit or abort it (kafka-transactions.sh find-hanging)",
                self.topics[log.side as usize],
                time(now_ms - (steady_ms - since_ms)),
                log.lag().unwrap_or(0),
            ))
        })
    }

    /// Brings the last changes to the board and commits the positions: the end of a clean stop.
    pub fn finish(&mut self) {
        self.hand_over();
        self.commit();
    }
}

/// Whether a kept pair can go on from where it stood.
fn goes_on(pair: &Pair, logs: &[(Side, LogStart)]) -> bool {
    let inside = |log: &Log| {
        let found = logs.iter().find(|(side, _)| *side == log.side);
        found.is_some_and(|(_, start)| start.low <= log.position && log.position <= start.high)
    };
    pair.logs.iter().all(inside)
}

/// A kept pair, with the ends that it now has to reach.
fn resumed(mut pair: Pair, logs: &[(Side, LogStart)]) -> Pair {
    for (side, start) in logs {
        if let Some(log) = pair.log(*side) {
            log.resume(start.high);
        }
    }
    pair.held = None;
    pair.changed = true;
    pair
}

/// As RFC 3339, in UTC and whole seconds.
fn time(ms: i64) -> String {
    let time = jiff::Timestamp::from_second(ms.div_euclid(1000));
    time.map_or_else(|_| ms.to_string(), |time| time.to_string())
}

/// The engine's rules under a configuration.
pub fn rules(config: &Config) -> Rules {
    let join = &config.join;
    Rules {
        attribution_ms: join.attribution_ms,
        click_skew_ms: join.click_skew_ms,
        lateness_ms: join.lateness_ms,
        max_future_ms: join.max_future_ms,
        slot_ms: join.slot_ms,
        max_lists_per_click: join.max_lists_per_click,
        max_off_list: join.max_off_list,
        max_arms: config.limits.max_arms,
        one_topic: config.kafka.served_topic == config.kafka.clicks_topic,
    }
}

/// Whether counts say that something was shed.
fn has_shed(counts: &Counts) -> bool {
    Side::BOTH
        .into_iter()
        .any(|side| counts.outcome(side, Outcome::Shed) > 0)
}
