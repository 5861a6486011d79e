//! Rounds of the global view: each reads the log, shows new states and asks for the ends of partitions.

use std::collections::VecDeque;
use std::sync::Arc;

use abgauge_core::engine::View;
use abgauge_core::journal::{
    BlockedOperation, EndQuestion, JournalRules, Log, LogEvent, Namespace, Onlooker, PartitionView, Sealed,
};
use abgauge_core::ledger::PairId;
use tracing::warn;

use super::handle::{GlobalHandle, ViewStatus};
use super::{Audience, GlobalSettings, NewState, Sources};
use crate::board::Board;
use crate::clock::Clock;
use crate::store::stored::PairDecoder;

/// Pauses between questions for an end, ms: if nothing was read since the last one, if something was, and if the state is
/// missing.
const ASK_EVERY_MS: i64 = 1_000;
const ASK_AGAIN_MS: i64 = 500;
const ASK_SOON_MS: i64 = 100;
/// Time to wait for an answer before the question is repeated, ms.
const ANSWER_MS: i64 = 5_000;
/// Rest after decoding a state, as a multiple of the time it took, so that decoding takes a tenth of a core at most.
const REST: i64 = 9;

/// Everything the thread owns. Tests drive it directly.
pub struct GlobalWork<L> {
    log: L,
    desk: GlobalState,
}

/// Everything but the log.
struct GlobalState {
    settings: GlobalSettings,
    terms: PairDecoder,
    board: Arc<Board>,
    handle: GlobalHandle,
    audience: Option<Box<dyn Audience>>,
    clock: Clock,
    partitions: Vec<GlobalPartition>,
    /// Partitions with a state that is not shown yet, oldest first.
    waiting: VecDeque<usize>,
    /// Time before which only first states are decoded.
    free_from_ms: i64,
    /// Problem that keeps the log from being asked, until it answers.
    fault: Option<String>,
    /// Problem that keeps the log from being read, until it is over.
    hindered: Option<String>,
}

struct GlobalPartition {
    view: PartitionView,
    onlooker: Onlooker,
    /// The state that was last found current.
    sealed: Option<Sealed>,
    /// Time of the last question; `is_asked` while it waits for its answer.
    asked_ms: Option<i64>,
    is_asked: bool,
    /// Something was read since the last question.
    is_read_on: bool,
    /// Content hash of the state that is shown.
    content: Option<u128>,
    frontier_ms: Option<i64>,
    /// Reason why the last state is not shown.
    refused: Option<String>,
}

impl GlobalPartition {
    fn new(namespace: Namespace) -> GlobalPartition {
        GlobalPartition {
            view: PartitionView::new(namespace, JournalRules::default()),
            onlooker: Onlooker::default(),
            sealed: None,
            asked_ms: None,
            is_asked: false,
            is_read_on: false,
            content: None,
            frontier_ms: None,
            refused: None,
        }
    }
}

impl<L: Log> GlobalWork<L> {
    pub fn new(sources: Sources<L>) -> GlobalWork<L> {
        let Sources {
            mut log,
            settings,
            terms,
            board,
            handle,
            audience,
            clock,
        } = sources;
        let n_partitions = settings.n_partitions;
        (0..n_partitions).for_each(|partition| log.follow(partition as i32));
        let desk = GlobalState {
            partitions: (0..n_partitions)
                .map(|_| GlobalPartition::new(settings.namespace))
                .collect(),
            settings,
            terms,
            board,
            handle,
            audience,
            clock,
            waiting: VecDeque::new(),
            free_from_ms: i64::MIN,
            fault: None,
            hindered: None,
        };
        GlobalWork { log, desk }
    }

    /// The log, for tests.
    #[cfg(test)]
    pub(super) fn log(&mut self) -> &mut L {
        &mut self.log
    }

    /// Does all work that is due; waits up to `wait_ms` if there is none.
    pub fn round(&mut self, wait_ms: u64) {
        let desk = &mut self.desk;
        // A state that can be shown must not wait for the log.
        let wait_ms = if desk.is_due() { 0 } else { wait_ms };
        self.log.poll(wait_ms, &mut |happening| desk.happens(happening));
        // One state per round, so that decoding does not hold up records and ends.
        desk.show_next();
        desk.publish();
        let now_ms = desk.clock.lasting_ms();
        for partition in 0..desk.partitions.len() {
            if let Some(question) = desk.question(partition, now_ms) {
                self.log.ask(partition as i32, question);
            }
        }
    }
}

impl GlobalState {
    fn happens(&mut self, happening: LogEvent<'_>) {
        match happening {
            LogEvent::Record {
                partition,
                key,
                value,
                ..
            } => {
                if let Some(place) = self.place(partition) {
                    self.partitions[place].view.take(key, value);
                    self.partitions[place].is_read_on = true;
                }
            }
            LogEvent::End { partition, question } => {
                // An end shows that the brokers answer again.
                self.fault = None;
                self.answered(partition, |desk, place| desk.end(place, question));
            }
            // The missing record may be a claim. An owner can proceed because it appends a claim of its own, but this view does
            // not.
            LogEvent::Quiet { partition, .. } => self.answered(partition, |_, _| {}),
            LogEvent::StartOver { partition } => {
                if let Some(place) = self.place(partition) {
                    let of = &mut self.partitions[place];
                    of.view.start_over();
                    of.onlooker.start_over();
                    // The open question is void. Something was read, so the next one comes soon.
                    (of.is_asked, of.is_read_on) = (false, true);
                }
            }
            LogEvent::Fault(message) => self.fault = Some(message),
            LogEvent::Hindered(BlockedOperation::Reading, hindrance) => {
                self.hindered = hindrance.map(|hindrance| hindrance.message);
            }
            // The owner of the pair rewrites what was lost.
            LogEvent::Begins { .. } => {}
            // This view writes nothing.
            LogEvent::Hindered(BlockedOperation::Writing, _) | LogEvent::Acknowledged { .. } => {}
        }
    }

    fn answered(&mut self, partition: i32, then: impl FnOnce(&mut GlobalState, usize)) {
        if let Some(place) = self.place(partition) {
            self.partitions[place].is_asked = false;
            then(self, place);
        }
    }

    fn place(&self, partition: i32) -> Option<usize> {
        let place = usize::try_from(partition).ok()?;
        (place < self.partitions.len()).then_some(place)
    }

    /// Handles an end: everything below it has been read.
    fn end(&mut self, place: usize, question: EndQuestion) {
        let of = &mut self.partitions[place];
        match of.onlooker.end(&of.view, question) {
            Ok(None) => {}
            Ok(sealed) => {
                of.sealed = sealed;
                // A state that waits already is not queued again: `show` takes the latest one.
                if !self.waiting.contains(&place) {
                    self.waiting.push_back(place);
                }
            }
            Err(refusal) => self.refuse(place, refusal.to_string()),
        }
    }

    /// Keeps showing the last state, and logs the reason once.
    fn refuse(&mut self, place: usize, why: String) {
        let of = &mut self.partitions[place];
        if of.refused.as_ref() != Some(&why) {
            warn!(
                partition = place,
                "the global view cannot show the stored state: {why}"
            );
            of.refused = Some(why);
        }
    }

    /// Returns whether a state can be shown now.
    fn is_due(&self) -> bool {
        let is_free = self.clock.steady_ms() >= self.free_from_ms;
        self.waiting
            .iter()
            .any(|place| is_free || self.partitions[*place].content.is_none())
    }

    /// Shows the next state that waits: the first ones of pairs, then one from time to time.
    fn show_next(&mut self) {
        if !self.is_due() {
            return;
        }
        // A pair without a state keeps the whole view hidden, so first states have priority.
        let is_first = |place: &usize| self.partitions[*place].content.is_none();
        let next = self.waiting.iter().position(is_first).unwrap_or(0);
        let Some(place) = self.waiting.remove(next) else {
            return;
        };
        let started_ms = self.clock.steady_ms();
        self.show(place);
        let now_ms = self.clock.steady_ms();
        // The rest is proportional to the work, so that many states cannot occupy the core.
        self.free_from_ms = now_ms + REST * (now_ms - started_ms);
    }

    fn show(&mut self, place: usize) {
        let Some(sealed) = self.partitions[place].sealed.clone() else {
            return;
        };
        let (header, content) = (&sealed.seal.header, sealed.seal.content);
        // A new owner seals the same content again, which needs no decoding.
        if self.partitions[place].content == Some(content) {
            return;
        }
        let contents = match self.terms.read(header, &sealed.roles) {
            Ok(contents) => contents,
            Err(unusable) => return self.refuse(place, unusable.to_string()),
        };
        let pair = place as PairId;
        // Replaced as a whole, so that a scrape sees the old state or the new one.
        self.board.replace(pair, &contents.ledger, contents.reach());
        // A pair that never caught up lacks records, so it is in no view.
        match header.was_caught_up {
            true => self.board.show_in(View::Settled, pair),
            false => self.board.hide(pair),
        }
        let of = &mut self.partitions[place];
        of.content = Some(content);
        of.frontier_ms = header.frontier_ms.filter(|_| header.was_caught_up);
        of.refused = None;
        if let Some(audience) = &mut self.audience {
            audience.seen(NewState {
                pair,
                header,
                roles: &sealed.roles,
            });
        }
    }

    fn publish(&mut self) {
        let until_ms = self.clock.now_ms() + self.settings.settled_ahead_ms;
        self.board.show_until([until_ms; 2]);
        // A state that was read but is not shown yet counts as unread, so that the view appears complete.
        let is_unread = |place: &usize| {
            let of = &self.partitions[*place];
            !of.onlooker.is_known() || (of.sealed.is_some() && of.content.is_none())
        };
        let n_unread = (0..self.partitions.len()).filter(is_unread).count();
        // `None` is less than any time, so one partition without an end makes the age unknown.
        let asked = self.partitions.iter().map(|of| of.onlooker.asked_ms());
        self.handle.put(ViewStatus {
            n_unread: Some(n_unread),
            asked_ms: asked.min().flatten(),
            frontiers_ms: self.partitions.iter().map(|of| of.frontier_ms).collect(),
            fault: self.fault_in_words(),
        });
    }

    fn fault_in_words(&self) -> Option<String> {
        if let Some(fault) = self.fault.as_ref().or(self.hindered.as_ref()) {
            return Some(format!("the state topic: {fault}"));
        }
        let refused = self.partitions.iter().zip(0..);
        let mut refused = refused.filter_map(|(of, number): (_, i32)| Some((number, of.refused.as_ref()?)));
        let (number, why) = refused.next()?;
        Some(format!(
            "the stored state of partition {number} cannot be shown: {why}"
        ))
    }

    /// The question for the end of a partition, if it is time for one.
    fn question(&mut self, place: usize, now_ms: i64) -> Option<EndQuestion> {
        let of = &mut self.partitions[place];
        let is_known = of.onlooker.is_known();
        let since_ms = of.asked_ms.map_or(i64::MAX, |asked_ms| now_ms - asked_ms);
        let pause_ms = match (of.is_asked, is_known, of.is_read_on) {
            (true, ..) => ANSWER_MS,
            (false, false, true) => 0,
            (false, false, false) => ASK_SOON_MS,
            (false, true, true) => ASK_AGAIN_MS,
            (false, true, false) => ASK_EVERY_MS,
        };
        // With a short lease, questions come often enough to renew it.
        if since_ms < pause_ms.min(self.settings.lease_ms / 3) {
            return None;
        }
        (of.asked_ms, of.is_asked, of.is_read_on) = (Some(now_ms), true, false);
        Some(of.view.question(now_ms))
    }
}
