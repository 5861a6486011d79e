//! The loop that carries records to engines and their changes to the board.
//!
//! [`Worker`] is a plain struct: it takes [`Input`]s, reads records from its [`Source`]s, and gives [`Order`]s that the
//! caller carries out. Its pairs live in *shards*, one for each source. Shards are read in parallel if enough records wait.
//! One thread does everything else, between two reads. `phase` has the states that a pair can be in.

mod assignment;
mod awaited_schema;
mod broker_requests;
mod clocks;
mod commits;
mod events_ahead;
mod held_pairs;
mod inspections;
mod log_ends;
mod loss_rates;
mod membership;
mod pace;
mod pair;
mod pair_feed;
mod phase;
mod readiness;
mod report;
mod setup;
mod shard;
mod shards;
mod start;
mod stored;
mod stored_pair;
#[cfg(test)]
mod tests;
mod unlisted;

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use abgauge_core::engine::View;
use abgauge_core::engine::event::Side;
use abgauge_core::engine::outcome::{Counts, Outcome};
use abgauge_core::engine::{Engine, Rules};
use abgauge_core::looks::{self, GivenUp, PairNews};
use abgauge_core::metrics::Ranking;
use abgauge_core::metrics::catalogue::Catalogue;
use tracing::warn;

use self::broker_requests::Questions;
use self::clocks::Clocks;
use self::commits::Commits;
use self::inspections::Inspections;
use self::membership::Membership;
use self::pace::ShardPace;
use self::pair::Flow;
use self::pair_feed::{FeedClosed, PairFeed};
use self::phase::Phase;
use self::report::WorkerReport;
use self::setup::Setup;
pub use self::shard::DeadLetterSink;
use self::shards::Shards;
use self::stored::StoredPairs;
use self::stored_pair::StoredPair;
use crate::board::Board;
use crate::clock::Clock;
use crate::logging::Losses;
use crate::settings::Config;
use crate::stream::schemas::Schemas;
use crate::stream::{Answer, Fault, FaultKind, Input, Order, Source, TopicCounts};
use crate::telemetry::Telemetry;

/// Settled lists that a round adds to ledgers, over all pairs and in addition to the ones of each batch: about 1 ms.
const SETTLE_A_ROUND: usize = 8192;

/// Phase of the start.
#[derive(Debug, PartialEq)]
enum StartPhase {
    /// The topics are not known.
    Topics,
    /// Waiting for the group.
    Joining,
    /// Owns the partitions that the group assigned.
    Owning,
}

pub struct Worker {
    // Input from the caller.
    setup: Setup,
    catalogue: Option<Arc<Catalogue>>,

    // Counterparts: the board, the group, and the brokers.
    board: Arc<Board>,
    telling: PairFeed,
    report: WorkerReport,
    phase: StartPhase,
    membership: Membership,
    /// Partitions of the topics, once known.
    counts: Option<TopicCounts>,
    questions: Questions,
    inspections: Inspections,
    commits: Commits,
    orders: Vec<Order>,
    fatal: Option<Fault>,

    // Pairs, each in a phase of its `Phase`, and their stored state, with `[state]`.
    shards: Shards,
    stored: Option<StoredPairs>,
    schemas: Arc<Schemas>,
    /// Uptime at the last assignment that left out or resumed pairs because of schemas.
    assigned_for_schemas: Option<Duration>,

    // Its clocks.
    clock: Clock,
    clocks: Clocks,
    pace: ShardPace,
}

impl Worker {
    /// A worker that reads these sources, at least one. The records of each partition wait in the source that
    /// [`queue_of`](crate::stream::queue_of) names.
    pub fn new(
        config: &Config,
        ranking: Ranking,
        board: Arc<Board>,
        telemetry: Arc<Telemetry>,
        clock: Clock,
        schemas: Arc<Schemas>,
        sources: Vec<Box<dyn Source>>,
    ) -> Worker {
        let decoder = config.join.decoder().reading(config.events.as_ref());
        let max_state_bytes = config.limits.max_state_bytes;
        telemetry.set_state_bound(max_state_bytes);
        let setup = Setup::new(config, ranking);
        Worker {
            catalogue: None,
            board,
            telling: PairFeed::new(looks::every_ms(config.join.slot_ms)),
            report: WorkerReport::new(telemetry, setup.topics.clone(), config),
            phase: StartPhase::Topics,
            membership: Membership::default(),
            counts: None,
            questions: Questions::default(),
            inspections: Inspections::default(),
            commits: Commits::default(),
            orders: Vec::new(),
            fatal: None,
            shards: Shards::new(
                sources,
                &decoder,
                &schemas,
                setup.rules.one_topic,
                max_state_bytes,
            ),
            stored: None,
            schemas,
            assigned_for_schemas: None,
            clock,
            clocks: Clocks::default(),
            pace: ShardPace::default(),
            setup,
        }
    }

    /// Sets the sink for unreadable records.
    pub fn with_dead_letters(mut self, dead_letters: Option<DeadLetterSink>) -> Worker {
        self.shards.set_dead_letters(dead_letters.as_ref());
        self
    }

    /// Sends the sums of users to looks, if experiments are configured.
    pub fn with_looks(mut self, sink: Option<SyncSender<PairNews>>) -> Worker {
        sink.into_iter().for_each(|sink| self.telling.connect(sink));
        self
    }

    /// Reports log lines that could not be written.
    pub fn with_log_losses(mut self, losses: Losses) -> Worker {
        self.report.watch_log(losses);
        self
    }

    /// The orders to carry out now, in sequence.
    pub fn orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    /// Returns the fault with which the program cannot continue.
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
            Input::Inspected(inspection, batch) => self.inspected(inspection, batch),
            Input::Fault(fault) => self.fault(fault),
            Input::Catalogue(catalogue) => self.take_catalogue(catalogue),
            Input::GivenUp(given_up) => self.give_up(given_up),
            Input::LooksStored(stored) => self.looks_stored(&stored),
            Input::Keeper(keeper, identity) => self.keep(keeper, identity),
            Input::Kept(pair, order) => self.obey(pair, order),
            Input::StateTopic(fault) => self.judge_state_topic(fault),
            Input::Answer(answer) => self.answer(answer),
        }
    }

    fn answer(&mut self, answer: Answer) {
        // Commits are asked in addition to the one open question.
        if !matches!(answer, Answer::Commit { .. }) {
            self.questions.answered();
        }
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
            Answer::Commit {
                epoch,
                pair,
                number,
                is_known,
            } => {
                if let Some(is_known) = is_known {
                    self.is_known_to_group(pair, number, is_known);
                }
                if let Some(is_known) = is_known.filter(|_| epoch == current) {
                    self.membership.is_known_to_group(is_known, self.clocks.uptime());
                }
            }
            Answer::Group { .. } | Answer::Starts { .. } | Answer::Ends { .. } => {}
        }
    }

    /// Processes waiting records, at most a batch of each source. Returns their number.
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
        for news in self.shards.take_news() {
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

    /// Runs once a round, after inputs and records; `busy` is set while records arrive.
    ///
    /// `uptime` is real time since the start, even if the clock is simulated: it paces questions, commits and log lines.
    pub fn round(&mut self, busy: bool, uptime: Duration) {
        if self.clocks.round(uptime) {
            warn!(
                "the loop was stopped for a while: records produced in the meantime are read before anything becomes final"
            );
            self.restart_clocks();
        }
        if self.membership.is_to_rejoin(uptime) {
            self.orders.push(Order::Rejoin);
        }
        self.await_schemas();
        self.replay();
        self.balance();
        self.settle();
        unlisted::learn_arms(&mut self.shards);
        let is_copied = self.board.is_being_copied();
        let is_due = self.pace.hands_over(busy, is_copied, uptime);
        // Show pairs that have caught up without delay, however long the last round took.
        let is_awaited = !is_copied && self.shards.phases().any(|(_, phase)| phase.has_caught_up());
        if is_due || is_awaited {
            self.hand_over();
            self.offer_states();
        }
        self.ask(uptime);
        self.inspect_stalled_logs();
        if self.commits.is_due(uptime) {
            self.commit();
        }
        let waiting_for = self.waiting_for();
        let engines = self.shards.pairs().map(|(_, pair)| pair.engine());
        let round = report::Round {
            shards: &self.shards,
            stored: self.stored.as_ref(),
            lasting_ms: self.clock.lasting_ms(),
            live_end_ms: self.shown_live_end_ms(),
            now_ms: self.clock.now_ms(),
            steady_ms: self.clock.steady_ms(),
            report_open_after_ms: self.setup.idle_after_ms,
            settle_after_ms: self.setup.settle_after_ms,
            exact: self.board.is_exact(),
            arms_folded: engines.map(Engine::n_folded_arms).sum(),
            arms_without_coverage: self.board.n_arms_without_coverage(),
            held: self.held(),
            waiting_for,
        };
        self.report.round(round, uptime);
    }

    /// Notes the duration of the last round.
    pub fn took(&mut self, time: Duration) {
        self.pace.took(time);
    }

    /// Adds settled lists to their ledgers, an equal share for each pair that is being read. Lists of a paused pair wait until
    /// it is read again.
    fn settle(&mut self) {
        let waiting = |pair: &pair::Pair| pair.engine().has_settled();
        let n_waiting = self.shards.pairs().filter(|(_, pair)| waiting(pair)).count();
        for (_, pair) in self.shards.pairs_mut().filter(|(_, pair)| waiting(pair)) {
            pair.tracker.settle(SETTLE_A_ROUND / n_waiting + 1);
            pair.changed = true;
        }
    }

    /// Keeps the two topics of each pair abreast when memory requires it, and pauses both while too much of it waits to be
    /// stored.
    fn balance(&mut self) {
        // Shares are equal, so whether a pair pauses does not depend on the backlog of others.
        let n_pairs = self.shards.pairs().count().max(1) as u64;
        let room_bytes = self.setup.max_ahead_bytes / n_pairs;
        let unsealed_bytes = self.setup.max_unsealed_bytes / n_pairs;
        for (partition, pair) in self.shards.pairs_mut().filter(|(_, pair)| !pair.is_held()) {
            let stored = self.stored.as_mut();
            let waits = stored.is_some_and(|stored| stored.must_wait(partition, pair, unsealed_bytes));
            if let Some(flow) = pair.balance(room_bytes, waits) {
                self.orders.push(match flow {
                    Flow::Pause(side) => Order::Pause((side, partition)),
                    Flow::Resume(side) => Order::Resume((side, partition)),
                });
            }
        }
    }

    /// Hands all changes to the board, and shows the pairs that have caught up.
    fn hand_over(&mut self) {
        // The ends go first, so that the windows reach the lists that are merged below.
        for (_, pair) in self.shards.pairs() {
            self.clocks
                .observe(pair.engine().accepted_ms().map(|(_, last)| last));
        }
        for pair in self.shards.serving() {
            let settled_until_ms = pair.tracker.settled_until_ms();
            self.clocks.observe(settled_until_ms.map(|until_ms| until_ms - 1));
        }
        if let Some(live_end_ms) = self.clocks.live_end_ms() {
            self.board.set_live_end(live_end_ms);
        }
        self.board.show_until(self.until_ms());
        self.look_ahead();
        let mut reported = self.telling.own(self.shards.phases());
        for (partition, pair) in self.shards.pairs_mut() {
            if pair.changed {
                let mut delta = pair.tracker.take_delta();
                // Settled numbers wait until a seal contains them.
                if let Some(stored) = &mut self.stored {
                    delta = stored.door.commit(partition, delta);
                }
                self.board.merge(partition, &delta);
                self.report.counts(&delta.counts);
                reported = reported.and(self.telling.reached(partition, &mut delta));
                pair.changed = false;
            }
        }
        self.note_reported(reported);
        // Shown after the merge, so that a pair appears with all its numbers.
        self.show_caught_up();
        self.report_engines();
    }

    fn note_reported(&mut self, reported: Result<(), FeedClosed>) {
        if reported.is_err() {
            self.fault(Fault {
                message:
                    "the thread that makes analyses has stopped, which is a bug in abgauge: its log has the reason"
                        .to_owned(),
                kind: FaultKind::Fatal,
            });
        }
    }

    /// Stops keeping the users of an experiment apart once its statistics are given up.
    fn give_up(&mut self, given_up: GivenUp) {
        if let GivenUp::Experiment(experiment) = &given_up {
            // Parked pairs are included, because they may return.
            let all = self.shards.phases_mut().filter_map(|(_, phase)| phase.pair_mut());
            for pair in all {
                pair.tracker.forget_users(experiment);
            }
            self.setup.forget_users(experiment);
        }
        self.report.given_up(given_up);
    }

    fn show_caught_up(&mut self) {
        let phases = self.shards.phases().filter(|(_, phase)| phase.has_caught_up());
        let partitions: Vec<i32> = phases.map(|(partition, _)| partition).collect();
        for partition in partitions {
            self.shards.change(partition, Phase::caught_up);
            // With stored state, the settled view is complete only once a state of this memory is in force.
            let pair = self.shards.get_mut(partition);
            let stored = pair.and_then(|pair| pair.stored.as_mut());
            let complete = stored.map_or(&View::BOTH[..], StoredPair::caught_up);
            complete
                .iter()
                .for_each(|view| self.board.show_in(*view, partition));
        }
    }

    /// Sets the gauges of all engines, including parked pairs: their clicks still wait.
    fn report_engines(&self) {
        let pairs = self.shards.phases().filter_map(|(_, phase)| phase.pair());
        self.report.engines(pairs.map(|pair| pair.engine()));
    }

    fn fault(&mut self, fault: Fault) {
        if fault.kind == FaultKind::Fatal {
            self.fatal = Some(fault);
        } else {
            self.report.fault(fault, self.clocks.uptime());
        }
    }

    /// The board goes first: it must know every place that an engine may name.
    fn take_catalogue(&mut self, catalogue: Arc<Catalogue>) {
        self.board.set_catalogue(Arc::clone(&catalogue));
        let all = self.shards.phases_mut().filter_map(|(_, phase)| phase.pair_mut());
        for pair in all {
            pair.tracker.set_catalogue(Arc::clone(&catalogue));
        }
        self.report.catalogue(&catalogue, self.clock.now_ms());
        self.catalogue = Some(catalogue);
    }

    fn commit(&mut self) {
        let positions = self.shards.pairs().flat_map(|(partition, pair)| {
            pair.positions()
                .map(move |(side, position)| ((side, partition), position))
        });
        let moved = self.commits.moved(positions);
        if !moved.is_empty() {
            self.orders.push(Order::Commit(moved));
        }
    }

    /// Hands the last changes to the board and commits the positions: the end of a clean stop.
    pub fn finish(&mut self) {
        self.hand_over();
        self.leave_stored();
        self.commit();
    }
}

/// The engine's rules under a configuration.
pub fn rules(config: &Config) -> Rules {
    let join = &config.join;
    Rules {
        attribution_ms: join.attribution_ms,
        click_skew_ms: join.click_skew_ms,
        same_list_ms: join.same_list_ms,
        lateness_ms: join.lateness_ms,
        max_future_ms: join.max_future_ms,
        slot_ms: join.slot_ms,
        max_lists_per_click: join.max_lists_per_click,
        max_off_list: join.max_off_list,
        max_arms: config.limits.max_arms,
        one_topic: config.kafka.served_topic == config.kafka.clicks_topic,
        gather: (config.events.as_ref()).and_then(|shape| shape.gather_rules(join.max_items)),
    }
}

/// Returns whether a record of either topic had this outcome.
fn has_any(counts: &Counts, outcome: Outcome) -> bool {
    Side::BOTH
        .into_iter()
        .any(|side| counts.outcome(side, outcome) > 0)
}
