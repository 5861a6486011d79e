//! Queue of state changes to be sent: the newest one per arm, in the order in which the arms changed.
//!
//! Each arm has its own pace and one attempt at a time. So an answer that does not come holds up no other arm, and an earlier
//! state never arrives after a later one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use abgauge_core::engine::Arm;
use abgauge_core::looks::{ExperimentLook, PublishedLooks};
use abgauge_core::statistics::ArmState;
use abgauge_core::verdict;

use super::pace::Backoff;

/// State that an arm has changed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    pub arm: Arm,
    pub state: ArmState,
    /// Verdict at the look that changed the state, as JSON.
    pub verdict: Vec<u8>,
}

/// States seen so far and the changes that wait to be sent. Holds at most one notice per arm. Only arms with configured
/// shares ever change, so the queue is bounded.
#[derive(Debug, Default)]
pub(super) struct NoticeOutbox {
    /// Latest look taken, Unix ms.
    as_of_ms: Option<i64>,
    seen: BTreeMap<Arm, ArmState>,
    waiting: VecDeque<WaitingNotice>,
    /// Arms whose attempt has no outcome yet.
    busy: BTreeSet<Arm>,
    /// Pace of a first attempt.
    pace: Backoff,
}

#[derive(Debug)]
struct WaitingNotice {
    notice: Notice,
    pace: Backoff,
}

impl NoticeOutbox {
    /// Returns an outbox that repeats attempts at this pace.
    #[cfg(test)]
    pub fn paced(pace: Backoff) -> NoticeOutbox {
        NoticeOutbox {
            pace,
            ..NoticeOutbox::default()
        }
    }

    /// Queues a notice for each arm whose state differs from the previous look, replacing a notice that still waits. A
    /// first state counts as a change if it calls for action.
    pub fn take(&mut self, shown: &PublishedLooks) {
        // Looks are polled much more often than they are taken.
        if self.as_of_ms == shown.as_of_ms {
            return;
        }
        self.as_of_ms = shown.as_of_ms;
        for (name, look) in &shown.experiments {
            self.take_experiment(name, look);
        }
    }

    fn take_experiment(&mut self, name: &str, look: &ExperimentLook) {
        let Some((settings, report)) = &look.comparison else {
            return;
        };
        for (arm_name, of_arm) in &report.arms {
            let Some(state) = of_arm.decision.as_ref().map(|decision| decision.state) else {
                continue;
            };
            let arm = Arm {
                experiment: name.into(),
                arm: arm_name.as_str().into(),
            };
            let before = self.seen.insert(arm.clone(), state);
            if !is_news(before, state) {
                continue;
            }
            let verdict = verdict::of_arm(name, arm_name, settings, report, look.no_users);
            let verdict = serde_json::to_vec(&verdict).expect("names and numbers are JSON");
            // An older state that was not delivered yet is obsolete.
            self.waiting.retain(|waiting| waiting.notice.arm != arm);
            self.waiting.push_back(WaitingNotice {
                notice: Notice { arm, state, verdict },
                // A new state is sent at once, without the backoff of the notice that it replaces.
                pace: self.pace.clone(),
            });
        }
    }

    /// Returns the next notice to send. Its arm is busy until the outcome is known.
    pub fn begin(&mut self, now: Instant) -> Option<Notice> {
        let is_free =
            |waiting: &&WaitingNotice| waiting.pace.is_due(now) && !self.busy.contains(&waiting.notice.arm);
        let notice = self.waiting.iter().find(is_free)?.notice.clone();
        self.busy.insert(notice.arm.clone());
        Some(notice)
    }

    /// Removes a delivered notice.
    pub fn reported(&mut self, reported: &Notice) {
        self.busy.remove(&reported.arm);
        // A later state of the arm still waits.
        self.waiting.retain(|waiting| waiting.notice != *reported);
    }

    /// Moves a notice to the end after a failure, and returns its wait.
    pub fn put_off(&mut self, notice: &Notice, now: Instant) -> Duration {
        self.busy.remove(&notice.arm);
        let place = self.waiting.iter().position(|waiting| waiting.notice == *notice);
        // A newer state may have replaced the notice during the attempt.
        let Some(mut waiting) = place.and_then(|place| self.waiting.remove(place)) else {
            return Duration::ZERO;
        };
        let wait = waiting.pace.failed(now);
        self.waiting.push_back(waiting);
        wait
    }

    /// Returns the longest time for which the attempts of an arm have failed.
    pub fn failing_for(&self, now: Instant) -> Duration {
        let waiting = self.waiting.iter();
        waiting
            .map(|waiting| waiting.pace.failing_for(now))
            .max()
            .unwrap_or_default()
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}

fn is_news(before: Option<ArmState>, state: ArmState) -> bool {
    match before {
        Some(before) => before != state,
        None => !matches!(state, ArmState::Collecting | ArmState::NoDecision),
    }
}

/// Looks whose arms have given states.
#[cfg(test)]
pub(super) mod fixture {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use abgauge_core::looks::{ExperimentLook, Look};
    use abgauge_core::statistics::burn_in::BurnIn;
    use abgauge_core::statistics::{ArmReport, ArmState, Basis, ComparisonReport, Decision, Settings};

    /// Returns look `number` at the experiment `ranker`, with these arms besides the control.
    pub fn looked(number: i64, states: &[(&str, ArmState)]) -> Look {
        let arms = states
            .iter()
            .map(|(arm, state)| ((*arm).to_owned(), report_of(*state)));
        let report = ComparisonReport {
            as_of_ms: number * 600_000,
            look: number.unsigned_abs(),
            next_decision_ms: None,
            planned_end_ms: None,
            srm_p: None,
            multi_arm: None,
            grown: Default::default(),
            arms: arms.collect(),
            notes: Vec::new(),
        };
        let look = ExperimentLook {
            start_ms: 0,
            shares_since_ms: 0,
            as_of_ms: number * 600_000,
            arms: BTreeMap::new(),
            comparison: Some((Settings::new("base"), report)),
            no_users: None,
            history: Arc::default(),
        };
        Look {
            as_of_ms: number * 600_000,
            experiments: [("ranker".to_owned(), Arc::new(look))].into(),
            given_up: None,
        }
    }

    fn report_of(state: ArmState) -> ArmReport {
        ArmReport {
            decision: Some(Decision {
                state,
                reason: "because".to_owned(),
                basis: Basis::Earlier,
            }),
            burn_in: BurnIn {
                occupied: 256,
                expected_hits: 900.0,
            },
            metrics: BTreeMap::new(),
            ..ArmReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use abgauge_core::looks::Published;

    use super::fixture::looked;
    use super::*;

    fn shown(number: i64, states: &[(&str, ArmState)]) -> std::sync::Arc<PublishedLooks> {
        let published = Published::default();
        published.show(looked(number, states), None);
        published.shown()
    }

    /// Arms and states in the queue, in order.
    fn waiting(outbox: &NoticeOutbox) -> Vec<(&str, ArmState)> {
        let waiting = outbox.waiting.iter().map(|waiting| &waiting.notice);
        waiting.map(|notice| (&*notice.arm.arm, notice.state)).collect()
    }

    fn next(outbox: &mut NoticeOutbox) -> Notice {
        outbox.begin(Instant::now()).expect("it waits")
    }

    fn report_next(outbox: &mut NoticeOutbox) {
        let notice = next(outbox);
        outbox.reported(&notice);
    }

    #[test]
    fn a_first_state_is_sent_only_if_it_is_actionable() {
        for state in ArmState::ALL {
            let mut outbox = NoticeOutbox::default();
            outbox.take(&shown(1, &[("a", state)]));
            let is_silent = [ArmState::Collecting, ArmState::NoDecision].contains(&state);
            assert_eq!(outbox.len() == 0, is_silent, "{state}");
        }
    }

    #[test]
    fn every_change_after_the_first_state_is_sent() {
        let mut outbox = NoticeOutbox::default();
        outbox.take(&shown(1, &[("a", ArmState::Collecting)]));
        outbox.take(&shown(2, &[("a", ArmState::NoDecision)]));
        assert_eq!(waiting(&outbox), [("a", ArmState::NoDecision)]);
        let verdict: serde_json::Value = serde_json::from_slice(&next(&mut outbox).verdict).expect("JSON");
        assert_eq!(
            (&verdict["look"], &verdict["state"]),
            (&2.into(), &"no_decision".into())
        );
        outbox.busy.clear();
        report_next(&mut outbox);
        outbox.take(&shown(3, &[("a", ArmState::NoDecision)]));
        assert_eq!(outbox.len(), 0);
        outbox.take(&shown(4, &[("a", ArmState::InvalidSrm)]));
        assert_eq!(waiting(&outbox), [("a", ArmState::InvalidSrm)]);
    }

    #[test]
    fn a_look_is_processed_only_once() {
        let mut outbox = NoticeOutbox::default();
        for _ in 0..2 {
            outbox.take(&shown(1, &[("a", ArmState::Win)]));
        }
        report_next(&mut outbox);
        outbox.take(&shown(1, &[("a", ArmState::Win)]));
        assert_eq!(outbox.len(), 0);
    }

    #[test]
    fn an_arm_is_queued_once_however_often_it_changes() {
        let mut outbox = NoticeOutbox::default();
        let mut states = ArmState::ALL.into_iter().cycle();
        for look in 1..1000 {
            let states = [("a", states.next().expect("a state")), ("b", ArmState::Win)];
            outbox.take(&shown(look, &states));
            assert!(outbox.len() <= 2);
        }
        assert_eq!(
            waiting(&outbox)[0],
            ("b", ArmState::Win),
            "who has waited longer comes first"
        );
    }

    #[test]
    fn a_postponed_arm_is_sent_after_the_others() {
        let mut outbox = NoticeOutbox::default();
        outbox.take(&shown(1, &[("a", ArmState::Win), ("b", ArmState::Harm)]));
        let (now, first) = (Instant::now(), next(&mut outbox));
        outbox.put_off(&first, now);
        assert_eq!(waiting(&outbox), [("b", ArmState::Harm), ("a", ArmState::Win)]);
        report_next(&mut outbox);
        assert_eq!(waiting(&outbox), [("a", ArmState::Win)]);
        assert_eq!(outbox.begin(now), None, "its pace is its own");
    }

    #[test]
    fn an_arm_has_one_attempt_at_a_time_and_later_states_wait() {
        let mut outbox = NoticeOutbox::default();
        outbox.take(&shown(1, &[("a", ArmState::Win), ("b", ArmState::Win)]));
        let (first, second) = (next(&mut outbox), next(&mut outbox));
        assert_eq!((&*first.arm.arm, &*second.arm.arm), ("a", "b"));
        outbox.take(&shown(2, &[("a", ArmState::Harm), ("b", ArmState::Win)]));
        assert_eq!(outbox.begin(Instant::now()), None);
        outbox.reported(&first);
        assert_eq!(next(&mut outbox).state, ArmState::Harm);
    }

    #[test]
    fn an_arm_that_reappears_has_not_changed() {
        let mut outbox = NoticeOutbox::default();
        outbox.take(&shown(1, &[("a", ArmState::Win)]));
        report_next(&mut outbox);
        outbox.take(&shown(2, &[]));
        outbox.take(&shown(3, &[("a", ArmState::Win)]));
        assert_eq!(outbox.len(), 0);
    }
}
