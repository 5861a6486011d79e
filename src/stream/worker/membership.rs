//! Detection of wrong assignments: partitions of other topics, or none at all.
//!
//! ```text
//! nothing ──▶ Unknown ──▶ others own all ──▶ Right
//!                │  └──▶ a partition is unowned ─▶ Wrong ──▶ leave, rejoin
//! others' topics ────────────────────────────────┘
//! ```

use std::time::Duration;

use tracing::warn;

use crate::stream::{GroupState, TopicCounts};

/// Shortest time before the member leaves the group again. It doubles each time.
const REJOIN: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(120);
/// Interval at which a lasting problem is logged.
const LOG_AGAIN: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub struct Membership {
    state: OwnershipState,
    left: Option<Duration>,
    pause: Duration,
    reported: Option<Duration>,
}

#[derive(Debug, Default)]
enum OwnershipState {
    #[default]
    Right,
    /// Empty assignment; others may own everything.
    Unknown,
    /// Message with the problem and our reaction.
    Wrong(String),
}

impl Membership {
    /// Notes that the group assigned `n` partitions of our topics.
    pub fn assigned(&mut self, n: usize) {
        if n == 0 {
            self.state = OwnershipState::Unknown;
        } else {
            self.right();
        }
    }

    /// Notes that the group assigned partitions of these other topics.
    pub fn misassigned(&mut self, others: &[String], topics: &[String; 2], uptime: Duration) {
        let [served, clicks] = topics;
        self.wrong(
            format!(
                "the group assigned this member partitions of other topics (`{}`), as a static member \
                 (kafka.properties.\"group.instance.id\") gets its previous partitions: it leaves the group and joins again, for `{served}` and `{clicks}`",
                others.join("`, `")
            ),
            uptime,
        );
    }

    /// Returns whether to ask the group what others own.
    pub fn asks(&self) -> bool {
        matches!(self.state, OwnershipState::Unknown)
    }

    /// Takes what all members own, given the partition counts of the topics.
    pub fn known(&mut self, group: GroupState, counts: TopicCounts, topics: &[String; 2], uptime: Duration) {
        if !self.asks() || !group.is_stable {
            return; // Assigned meanwhile, or soon.
        }
        let [served, clicks] = topics;
        let missing = [
            (served, counts.served - group.n_owned[0]),
            (clicks, counts.clicks - group.n_owned[1]),
        ];
        match missing.into_iter().find(|(_, n)| *n > 0) {
            None => self.right(),
            // Nothing was assigned here although partitions have no owner: the group uses an outdated assignment.
            Some((topic, n)) => self.wrong(
                format!(
                    "the group assigned this member no partition, although {n} of `{topic}` have no owner: it leaves the group and joins again"
                ),
                uptime,
            ),
        }
    }

    /// Returns whether to leave and rejoin the group now.
    pub fn is_to_rejoin(&mut self, uptime: Duration) -> bool {
        let is_due = self
            .left
            .is_none_or(|left| uptime.saturating_sub(left) >= self.pause);
        let rejoins = matches!(self.state, OwnershipState::Wrong(_)) && is_due;
        if rejoins {
            self.left = Some(uptime);
            // Each attempt costs the group a rebalance, so the pauses grow.
            self.pause = (self.pause * 2).clamp(REJOIN, LONGEST);
        }
        rejoins
    }

    /// Returns why we are not ready, if so.
    pub fn waiting_for(&self) -> Option<String> {
        match &self.state {
            OwnershipState::Right => None,
            OwnershipState::Unknown => {
                Some("waiting for the group to report whether other instances own all partitions: this one has none".into())
            }
            OwnershipState::Wrong(message) => Some(message.clone()),
        }
    }

    fn right(&mut self) {
        *self = Membership::default();
    }

    fn wrong(&mut self, message: String, uptime: Duration) {
        let is_reported = self
            .reported
            .is_some_and(|reported| uptime.saturating_sub(reported) < LOG_AGAIN);
        if !is_reported {
            warn!("{message}");
            self.reported = Some(uptime);
        }
        self.state = OwnershipState::Wrong(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: TopicCounts = TopicCounts { served: 4, clicks: 4 };

    fn topics() -> [String; 2] {
        ["served", "clicks"].map(str::to_owned)
    }

    /// Checks a member without partitions in a group like this: whether it is ready, and whether it leaves the group.
    #[track_caller]
    fn check(is_stable: bool, n_owned: [i32; 2], is_ready: bool, leaves: bool) {
        let mut membership = Membership::default();
        membership.assigned(0);
        assert!(membership.waiting_for().is_some(), "not known yet");
        let group = GroupState { is_stable, n_owned };
        membership.known(group, COUNTS, &topics(), Duration::ZERO);
        assert_eq!(membership.waiting_for().is_none(), is_ready);
        assert_eq!(membership.is_to_rejoin(Duration::ZERO), leaves);
    }

    #[test]
    fn a_member_without_partitions_is_ready_if_others_own_all() {
        check(true, [4, 4], true, false);
        check(true, [4, 3], false, true);
        check(true, [0, 0], false, true);
        check(false, [0, 0], false, false);
        check(false, [4, 4], false, false);
    }

    #[test]
    fn leaves_the_group_with_growing_pauses_until_the_assignment_fits() {
        let mut membership = Membership::default();
        let mut left = Vec::new();
        for second in 0..300 {
            let uptime = Duration::from_secs(second);
            membership.misassigned(&["other".into()], &topics(), uptime);
            if membership.is_to_rejoin(uptime) {
                left.push(second);
            }
        }
        assert_eq!(left, [0, 10, 30, 70, 150, 270]);
        membership.assigned(2);
        assert_eq!(membership.waiting_for(), None);
        assert!(!membership.is_to_rejoin(Duration::from_secs(1000)));
    }
}
