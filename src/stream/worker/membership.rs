//! Detection of wrong assignments: partitions of other topics, none at all, or those of a member that the group has expelled.
//!
//! ```text
//! nothing ──▶ Unknown ──▶ others own all ──▶ Right
//!                │  └──▶ a partition is unowned ─▶ Wrong ──▶ leave, rejoin
//! others' topics ────────────────────────────────┤
//! expelled, and the client does not notice ──────┘
//! ```

use std::time::Duration;

use tracing::warn;

use crate::stream::{GroupState, TopicCounts};

/// Shortest time before the member leaves the group again. It doubles each time.
const REJOIN: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(120);
/// Time in which the client must notice that the group has expelled it, by its own heartbeats.
const NOTICED_AFTER: Duration = Duration::from_secs(30);
/// Interval at which a lasting problem is logged.
const LOG_AGAIN: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub struct Membership {
    state: OwnershipState,
    /// Time at which the group first answered that it does not know this member, since the last assignment.
    expelled: Option<Duration>,
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
        self.expelled = None;
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

    /// Notes that the group took all partitions back.
    pub fn revoked(&mut self) {
        if self.expelled.take().is_some() {
            self.state = OwnershipState::Right;
        }
    }

    /// Takes the group's answer to a commit: whether it knows this member and generation.
    pub fn is_known_to_group(&mut self, is_known: bool, uptime: Duration) {
        self.expelled = match is_known {
            true => None,
            false => self.expelled.or(Some(uptime)),
        };
    }

    /// Returns whether to leave and rejoin the group now.
    pub fn is_to_rejoin(&mut self, uptime: Duration) -> bool {
        let is_unnoticed = self
            .expelled
            .is_some_and(|expelled| uptime.saturating_sub(expelled) >= NOTICED_AFTER);
        if is_unnoticed {
            self.wrong(
                "the group does not know this member, and the client has not noticed: it leaves the group and joins again"
                    .to_owned(),
                uptime,
            );
        }
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
    fn an_expelled_member_whose_client_does_not_notice_leaves_the_group_and_joins_it_again() {
        let mut membership = Membership::default();
        membership.assigned(2);
        let second = Duration::from_secs;
        membership.is_known_to_group(false, second(5));
        membership.is_known_to_group(false, second(20));
        assert!(!membership.is_to_rejoin(second(34)));
        // A later answer: the group knows this member after all.
        membership.is_known_to_group(true, second(34));
        assert!(!membership.is_to_rejoin(second(60)));
        membership.is_known_to_group(false, second(60));
        assert_eq!(membership.waiting_for(), None);
        assert!(membership.is_to_rejoin(second(90)));
        assert!(
            membership
                .waiting_for()
                .is_some_and(|why| why.contains("does not know this member"))
        );
        // The client has left, and waits for the group.
        membership.revoked();
        assert_eq!(membership.waiting_for(), None);
        assert!(!membership.is_to_rejoin(second(300)));
    }

    #[test]
    fn a_member_that_notices_its_expulsion_does_not_leave_again() {
        let mut membership = Membership::default();
        membership.assigned(2);
        membership.is_known_to_group(false, Duration::from_secs(5));
        membership.revoked();
        membership.assigned(1);
        assert!(!membership.is_to_rejoin(Duration::from_secs(500)));
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
