//! The loop that carries records to engines and their changes to the board.
//!
//! [`Worker`] is a plain struct: it takes [`Input`]s, reads records from its [`Source`]s, and gives [`Order`]s that
//! somebody else carries out. Its pairs live in *shards*, one for each source; these are read side by side where enough
//! waits. All else is done by one thread, between two readings.

mod clocks;
mod commits;
mod hold;
mod life;
mod looks;
mod membership;
mod pace;
mod pair;
mod questions;
mod report;
mod setup;
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
use self::commits::Commits;
use self::life::Life;
use self::looks::Looks;
use self::membership::Membership;
use self::pace::Pace;
use self::pair::{Flow, Log, Pair};
use self::questions::Questions;
use self::report::Report;
use self::setup::Setup;
pub use self::shard::DeadLetters;
use self::shards::Shards;
use crate::board::Board;
use crate::clock::Clock;
use crate::config::Config;
use crate::engine::catalogue::Catalogue;
use crate::engine::event::Side;
use crate::engine::outcome::{ClickResult, Counts, Outcome};
use crate::engine::ranking::Ranking;
use crate::engine::{Engine, Rules};
use crate::ingest::keys::KeyAudit;
use crate::ingest::wire::Decoder;
use crate::ingest::{
    Answer, Fault, FaultKind, GroupState, Input, LogEnd, LogStart, Order, Question, Source, TopicCounts,
    TopicPartition,
};
use crate::logging::Losses;
use crate::telemetry::Telemetry;

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
    // What it is given.
    setup: Setup,
    catalogue: Option<Arc<Catalogue>>,

    // Whom it talks to: those who look, the group, and the brokers.
    board: Arc<Board>,
    report: Report,
    phase: Phase,
    membership: Membership,
    /// Partitions of the topics, once known.
    counts: Option<TopicCounts>,
    questions: Questions,
    looks: Looks,
    commits: Commits,
    orders: Vec<Order>,
    fatal: Option<Fault>,

    // Its pairs, each in a state of its `Life`.
    shards: Shards,

    // Its clocks.
    clock: Clock,
    clocks: Clocks,
    pace: Pace,
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
        let max_state_bytes = config.limits.max_state_bytes;
        telemetry.set_state_bound(max_state_bytes);
        let setup = Setup::new(config, ranking);
        Worker {
            catalogue: None,
            board,
            report: Report::new(telemetry, setup.topics.clone(), config),
            phase: Phase::Topics,
            membership: Membership::default(),
            counts: None,
            questions: Questions::default(),
            looks: Looks::default(),
            commits: Commits::default(),
            orders: Vec::new(),
            fatal: None,
            shards: Shards::new(sources, &decoder, setup.rules.one_topic, max_state_bytes),
            clock,
            clocks: Clocks::default(),
            pace: Pace::default(),
            setup,
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
            Input::Answer(answer) => self.answer(answer),
        }
    }

    fn answer(&mut self, answer: Answer) {
        self.questions.answered();
        let current = self.questions.epoch();
        match answer {
            Answer::Topics(counts) => self.topics_known(counts),
            Answer::Timestamps(timestamps) => {
                self.report
                    .timestamps(&timestamps, &self.setup.brokers, self.setup.rules.max_future_ms);
            }
            Answer::Group { epoch, state } if epoch == current => self.group_known(state),
            Answer::Starts { epoch, starts } if epoch == current => self.starts_known(starts),
            Answer::Ends {
                epoch,
                clock_run,
                asked_ms,
                ends,
            } if epoch == current => {
                self.ends_known(clock_run, asked_ms, ends);
            }
            Answer::Group { .. } | Answer::Starts { .. } | Answer::Ends { .. } => {}
        }
    }

    /// Counts records that wait, at most a batch of each source. Says how many they were.
    pub fn read(&mut self) -> usize {
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
            self.report.keys(&news.keys);
            for record in &news.unreadable {
                self.report.unreadable(record, self.clocks.uptime());
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
        if self.pace.hands_over(busy, self.board.is_being_copied(), uptime) {
            self.hand_over();
        }
        self.ask(uptime);
        self.look_around();
        if self.commits.is_due(uptime) {
            self.commit();
        }
        let waiting_for = self.waiting_for();
        let engines = self.shards.pairs().map(|(_, pair)| &pair.engine);
        let progress = report::Progress {
            shards: &self.shards,
            live_end_ms: self.shown_live_end_ms(),
            now_ms: self.clock.now_ms(),
            steady_ms: self.clock.steady_ms(),
            tell_open_after_ms: self.setup.idle_after_ms,
            settle_after_ms: self.setup.rules.attribution_ms + self.setup.rules.lateness_ms,
            exact: self.board.is_exact(),
            arms_folded: engines.map(Engine::n_folded_arms).sum(),
            arms_without_coverage: self.board.n_arms_without_coverage(),
            held: self.held(),
            waiting_for,
        };
        self.report.round(progress, uptime);
    }

    /// How long the last round took.
    pub fn took(&mut self, time: Duration) {
        self.pace.took(time);
    }

    /// Keeps the topics of each pair abreast, as far as memory asks for it.
    fn balance(&mut self) {
        let n_pairs = self.shards.pairs().count().max(1) as u64;
        let room_bytes = self.setup.max_ahead_bytes / n_pairs;
        for (partition, pair) in self.shards.pairs_mut().filter(|(_, pair)| !pair.is_held()) {
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
        }
        for pair in self.shards.serving() {
            self.clocks
                .saw(pair.engine.frontier_ms().map(|frontier| frontier - 1));
        }
        if let Some(live_end_ms) = self.clocks.live_end_ms() {
            self.board.set_live_end(live_end_ms);
        }
        self.board.show_until(self.until_ms());
        let (sides, now_ms) = (self.setup.sides(), self.clock.now_ms());
        for (partition, pair) in self.shards.pairs_mut() {
            for side in sides {
                if let Some(event) = pair.look_ahead(*side, now_ms, self.setup.rules.lateness_ms) {
                    self.report.event_ahead((*side, partition), &event);
                }
            }
            if pair.changed {
                pair.engine.gather_changes();
                self.board.merge(partition, &pair.engine);
                self.report.counts(&pair.engine.changes().counts);
                pair.engine.clear_changes();
                pair.changed = false;
            }
        }
        self.show_caught_up();
        self.report_engines();
    }

    fn show_caught_up(&mut self) {
        let lives = self.shards.lives().filter(|(_, life)| life.has_caught_up());
        let partitions: Vec<i32> = lives.map(|(partition, _)| partition).collect();
        for partition in partitions {
            self.shards.change(partition, Life::caught_up);
            self.board.show(partition);
        }
    }

    /// Gauges of all engines, of parked pairs too: their clicks still wait.
    fn report_engines(&self) {
        let pairs = self.shards.lives().filter_map(|(_, life)| life.pair());
        self.report.engines(pairs.map(|pair| &pair.engine));
    }

    fn ask(&mut self, uptime: Duration) {
        if !self.questions.is_due(uptime) {
            return;
        }
        if let Some(question) = self.next_question() {
            self.questions.asked(&question, uptime);
            self.orders.push(Order::Ask(question));
        }
    }

    fn next_question(&mut self) -> Option<Question> {
        let is_start = !self.shards.locating().is_empty();
        let reads_nothing = self.shards.reads_nothing();
        let question = match self.phase {
            Phase::Topics => Question::Topics,
            Phase::Joining => return None,
            // In turns with the question for ends: a partition that cannot start must not hold up the others.
            Phase::Owning if is_start && (reads_nothing || self.questions.is_turn_of_starts()) => {
                self.ask_starts()
            }
            Phase::Owning if self.membership.asks() => Question::Group {
                epoch: self.questions.epoch(),
            },
            // Whoever owns nothing learns so of brokers and topics that go and come.
            Phase::Owning if reads_nothing => Question::Topics,
            // Once, and after a start has its numbers.
            Phase::Owning if !self.questions.has_asked_timestamps() && self.clocks.has_started() => {
                Question::Timestamps
            }
            Phase::Owning => self.ask_ends(),
        };
        Some(question)
    }

    fn ask_ends(&mut self) -> Question {
        self.clocks.ask();
        Question::Ends {
            epoch: self.questions.epoch(),
            clock_run: self.clocks.run(),
            asked_ms: self.clock.steady_ms(),
            partitions: self.partitions_of(self.shards.pairs().map(|(partition, _)| partition)),
        }
    }

    fn ask_starts(&self) -> Question {
        Question::Starts {
            epoch: self.questions.epoch(),
            partitions: self.partitions_of(self.shards.locating().into_iter()),
            seek_ms: self.setup.start.seek_ms(self.clock.now_ms()),
        }
    }

    fn partitions_of(&self, partitions: impl Iterator<Item = i32>) -> Vec<TopicPartition> {
        let both = |partition| self.setup.sides().iter().map(move |side| (*side, partition));
        partitions.flat_map(both).collect()
    }

    fn topics_known(&mut self, counts: Result<TopicCounts, Fault>) {
        let counts = match counts {
            Ok(counts) => counts,
            Err(fault) => return self.fault(fault),
        };
        self.report.brokers_answer();
        let before = self.counts.replace(counts);
        if self.phase == Phase::Topics
            && let Some(message) = self.unequal()
        {
            let kind = FaultKind::Fatal;
            return self.fault(Fault { message, kind });
        }
        if before == Some(counts) {
            return;
        }
        if let Some(n) = u32::try_from(counts.served).ok().and_then(NonZeroU32::new) {
            let topics = &self.setup.topics[..self.setup.sides().len()];
            let audits: Vec<_> = topics.iter().map(|topic| KeyAudit::new(topic, n)).collect();
            self.shards.set_audits(&audits);
            self.report.set_audits(audits);
        }
        if self.phase == Phase::Topics {
            self.phase = Phase::Joining;
            self.orders.push(Order::Subscribe);
        }
    }

    fn assigned(&mut self, partitions: &[TopicPartition]) {
        self.report.rebalanced();
        self.questions.begin_epoch();
        self.phase = Phase::Owning;
        self.restart_clocks();
        let given: BTreeSet<&TopicPartition> = partitions.iter().collect();
        let is_whole = |partition: &i32| {
            self.setup
                .sides()
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
        // A change of their partitions is a reason to be assigned anew.
        self.orders.push(Order::Ask(Question::Topics));
        let mut known = self.shards.take();
        for partition in &whole {
            let life = Life::assigned(known.remove(partition));
            self.shards.insert(*partition, life);
        }
        // What went to others takes its state with it.
        for (partition, life) in known {
            if let Some(pair) = life.into_pair() {
                self.forget(partition, &pair);
            }
        }
        if whole.is_empty() {
            self.orders.push(Order::Assign(Vec::new()));
        } else {
            let question = self.ask_starts();
            self.questions.asked_at_once();
            self.orders.push(Order::Ask(question));
        }
    }

    /// We own nothing, until the group gives us what is ours.
    fn misassigned(&mut self, others: &[String]) {
        self.report.rebalanced();
        self.questions.begin_epoch();
        self.phase = Phase::Joining;
        self.membership
            .misassigned(others, &self.setup.topics, self.clocks.uptime());
        self.orders.push(Order::Assign(Vec::new()));
    }

    fn group_known(&mut self, state: Result<GroupState, Fault>) {
        match (state, self.counts) {
            (Ok(state), Some(counts)) => {
                self.report.brokers_answer();
                self.membership
                    .known(state, counts, &self.setup.topics, self.clocks.uptime());
            }
            (Err(fault), _) => self.fault(fault),
            (Ok(_), None) => {}
        }
    }

    fn revoked(&mut self) {
        self.report.rebalanced();
        self.hand_over();
        self.commit();
        self.questions.begin_epoch();
        self.phase = Phase::Joining;
        for (partition, life) in self.shards.take() {
            if life.reading().is_some() {
                self.hide(partition);
            }
            if let Some(parked) = life.revoked() {
                self.shards.insert(partition, parked);
            }
        }
        self.orders.push(Order::Unassign);
        info!("gave all partitions back; waiting for the group");
    }

    fn hide(&self, partition: i32) {
        self.board.hide(partition);
        self.report.forget_partition(partition);
    }

    /// Drops what we had of a pair: clicks that waited for a list stay undecided.
    fn forget(&mut self, partition: i32, pair: &Pair) {
        let mut counts = Counts::default();
        counts.count_results(ClickResult::Undecided, pair.engine.n_waiting());
        self.report.counts(&counts);
        self.board.remove(partition);
    }

    fn starts_known(&mut self, starts: Result<BTreeMap<TopicPartition, LogStart>, Fault>) {
        let starts = match starts {
            Ok(starts) => starts,
            Err(fault) => return self.fault(fault),
        };
        self.report.brokers_answer();
        let locating = self.shards.locating();
        if locating.is_empty() {
            return; // Asked twice, and answered before.
        }
        let now_ms = self.clock.now_ms();
        for partition in locating {
            let of_side = |side: &Side| Some((*side, *starts.get(&(*side, partition))?));
            let logs: Option<Vec<_>> = self.setup.sides().iter().map(of_side).collect();
            if let Some(logs) = logs {
                self.located(partition, &logs, now_ms);
            }
        }
        self.assign_pairs();
    }

    /// A pair whose position has left the log begins anew by the start rule, visibly.
    fn located(&mut self, partition: i32, logs: &[(Side, LogStart)], now_ms: i64) {
        let Some(life) = self.shards.remove(partition) else {
            return;
        };
        let (life, given_up) = life.located(logs, || self.begin(partition, logs, now_ms));
        if let Some(pair) = given_up {
            self.report.pair_restarted(partition);
            self.forget(partition, &pair);
        }
        self.shards.insert(partition, life);
    }

    fn begin(&self, partition: i32, logs: &[(Side, LogStart)], now_ms: i64) -> Pair {
        let mut pair = self.setup.begin(partition, logs, now_ms);
        if let Some(catalogue) = &self.catalogue {
            pair.engine.set_catalogue(Arc::clone(catalogue));
        }
        pair
    }

    fn offset_lost(&mut self, (_, partition): TopicPartition) {
        // What was read of the pair has been read, though nothing comes of it.
        self.hand_over();
        // Of one that is held, the client went astray in the batch that cannot be read.
        if self.shards.get_mut(partition).is_none_or(|pair| pair.is_held()) {
            return;
        }
        self.shards.change(partition, Life::position_lost);
        self.hide(partition);
        self.questions.begin_epoch();
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
            if pair.is_held() {
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
                if is_current && log.stands(is_at_end, asked_ms, self.setup.idle_after_ms) {
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
        let live_ms = self.clock.now_ms() + self.setup.rules.max_future_ms;
        [
            live_ms,
            live_ms - self.setup.rules.lateness_ms - self.setup.rules.attribution_ms,
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
            self.report.fault(fault, self.clocks.uptime());
        }
    }

    /// The board goes first: it must know every place that an engine may speak of.
    fn take_catalogue(&mut self, catalogue: Arc<Catalogue>) {
        self.board.set_catalogue(Arc::clone(&catalogue));
        let all = self.shards.lives_mut().filter_map(|(_, life)| life.pair_mut());
        for pair in all {
            pair.engine.set_catalogue(Arc::clone(&catalogue));
        }
        self.report.catalogue(&catalogue, self.clock.now_ms());
        self.catalogue = Some(catalogue);
    }

    fn commit(&mut self) {
        let positions = self.shards.pairs().flat_map(|(partition, pair)| {
            let of_log = move |log: &Log| ((log.side, partition), log.position);
            pair.logs.iter().map(of_log)
        });
        let moved = self.commits.moved(positions);
        if !moved.is_empty() {
            self.orders.push(Order::Commit(moved));
        }
    }

    fn waiting_for(&self) -> Vec<String> {
        let mut waiting: Vec<String> = self.report.fault_messages().collect();
        waiting.extend(self.unequal());
        waiting.extend(self.membership.waiting_for());
        match self.phase {
            Phase::Topics => waiting.push("the brokers' answer about the topics".into()),
            Phase::Joining => waiting.push("the group to assign partitions".into()),
            Phase::Owning => {
                waiting.extend(self.locating());
                if self.shards.serving().next().is_none()
                    && self.shards.pairs().all(|(_, pair)| pair.is_held())
                {
                    waiting.extend(self.held()); // Nothing would be shown.
                }
                waiting.extend(self.replaying());
                waiting.extend(self.open_transactions());
            }
        }
        waiting
    }

    /// What is wrong with topics that differ in their partitions.
    fn unequal(&self) -> Option<String> {
        let TopicCounts { served, clicks } = self.counts.filter(|counts| counts.served != counts.clicks)?;
        let [served_topic, clicks_topic] = &self.setup.topics;
        Some(format!(
            "topic `{served_topic}` has {served} partitions and topic `{clicks_topic}` has {clicks}: a click must land in \
             the partition of its list, so give both the same number, keyed alike"
        ))
    }

    /// Pairs that wait to learn where to start.
    fn locating(&self) -> Vec<String> {
        let mut waiting = Vec::new();
        let locating = self.shards.locating();
        if !locating.is_empty() {
            waiting.push(format!("where to start partitions {locating:?}"));
        }
        let lives = self.shards.lives().filter(|(_, life)| life.is_locating());
        let is_lost = |life: &Life| life.pair().is_some_and(|pair| pair.position_lost);
        for (partition, _) in lives.filter(|(_, life)| is_lost(life)) {
            waiting.push(format!(
                "partition {partition} to begin anew: its position had left the log"
            ));
        }
        waiting
    }

    /// Pairs that have to catch up, and can.
    fn replaying(&self) -> Vec<String> {
        let message = |(partition, life): (i32, &Life)| {
            let pair = life.replaying().filter(|pair| !pair.is_held())?;
            let why = if pair.position_lost {
                ", anew: its position had left the log"
            } else {
                ""
            };
            let left = pair.n_left();
            Some(format!(
                "partition {partition} to catch up: {left} records to read{why}"
            ))
        };
        self.shards.lives().filter_map(message).collect()
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
            let since_ms = log.held_up_since_ms(steady_ms, self.setup.idle_after_ms)?;
            Some(format!(
                "partition {partition} of topic `{}` to go on: a transaction that is open since {} or longer holds up {} \
                 records; its producer must commit or abort it (kafka-transactions.sh find-hanging)",
                self.setup.topic(log.side),
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
