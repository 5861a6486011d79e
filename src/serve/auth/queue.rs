//! Queue of passwords to be checked, and its order.
//!
//! Passwords are checked one at a time. A claimant that repeats an unchecked password goes first: a legitimate client does
//! that, a flood of guesses rarely. Next is the claimant with the fewest failures, by address, connection and name. Ties go
//! to the newest, because an older one has probably given up. Beyond a bound, the last claimant in this order is rejected.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::super::server::Peer;

/// Maximum number of waiting claimants.
const MAX_WAITING: usize = 32;
/// Half-life of failures.
const FORGET: Duration = Duration::from_secs(10);
/// Number of failure counters. Claimants that share one counter differ in their other two.
const N_COUNTERS: usize = 4096;

#[derive(Default)]
pub(super) struct ClaimQueue {
    now: Arc<Mutex<QueueState>>,
    hasher: RandomState,
}

#[derive(Default)]
struct QueueState {
    is_checking: bool,
    /// Claims in order of arrival.
    waiting: Vec<WaitingClaim>,
    failures: Failures,
}

struct WaitingClaim {
    who: Claimant,
    call: oneshot::Sender<Turn>,
}

/// Client that wants a password checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claimant {
    came_before: bool,
    /// Hashes of address, connection and name.
    marks: [u64; 3],
}

/// Right to check a password. Dropping it passes the turn to the next claimant.
pub(super) struct Turn {
    now: Arc<Mutex<QueueState>>,
    who: Claimant,
    is_passed_on: bool,
}

impl ClaimQueue {
    /// Returns a claimant of `name`. `came_before` is set if the same password was left unchecked before.
    pub fn claimant(&self, peer: Option<&Peer>, name: &str, came_before: bool) -> Claimant {
        // A client with an IPv6 address usually controls a whole /64 network.
        let network = peer.map(|peer| match peer.0.ip() {
            IpAddr::V4(ip) => u128::from(u32::from(ip)),
            IpAddr::V6(ip) => u128::from(ip) >> 64,
        });
        Claimant {
            came_before,
            marks: [
                self.hasher.hash_one(("address", network)),
                self.hasher.hash_one(("connection", peer.map(|peer| peer.0))),
                self.hasher.hash_one(("name", name)),
            ],
        }
    }

    /// Waits for a turn. Returns none if the claim is rejected because too many others go first.
    pub async fn turn(&self, who: Claimant) -> Option<Turn> {
        let called = {
            let mut now = lock(&self.now);
            if !std::mem::replace(&mut now.is_checking, true) {
                return Some(Turn {
                    now: Arc::clone(&self.now),
                    who,
                    is_passed_on: false,
                });
            }
            let (call, called) = oneshot::channel();
            // Clients that have disconnected must not count against the bound.
            now.waiting.retain(|waiting| !waiting.call.is_closed());
            now.waiting.push(WaitingClaim { who, call });
            if now.waiting.len() > MAX_WAITING {
                now.remove_last();
            }
            called
        };
        // A claim that is removed from the queue drops its sender, which ends the wait without a turn.
        called.await.ok()
    }
}

impl QueueState {
    /// Returns the sort key. The smallest goes first.
    fn rank(&self, place: usize) -> (bool, u32, std::cmp::Reverse<usize>) {
        let who = self.waiting[place].who;
        (!who.came_before, self.failures.of(&who), std::cmp::Reverse(place))
    }

    fn take_first(&mut self) -> Option<WaitingClaim> {
        self.failures.fade(Instant::now());
        let first = (0..self.waiting.len()).min_by_key(|place| self.rank(*place))?;
        Some(self.waiting.remove(first))
    }

    fn remove_last(&mut self) {
        let last = (0..self.waiting.len()).max_by_key(|place| self.rank(*place));
        self.waiting.remove(last.expect("somebody waits"));
    }
}

impl Turn {
    /// Records a wrong password.
    pub fn failed(&self) {
        lock(&self.now).failures.note(&self.who);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        while !std::mem::replace(&mut self.is_passed_on, true) {
            let mut now = lock(&self.now);
            let Some(WaitingClaim { who, call }) = now.take_first() else {
                now.is_checking = false;
                return;
            };
            // The lock must be free: a turn that its receiver drops unused takes the lock as well.
            drop(now);
            let turn = Turn {
                now: Arc::clone(&self.now),
                who,
                is_passed_on: false,
            };
            if let Err(mut turn) = call.send(turn) {
                // That claimant has disconnected, so the turn is still ours to pass on. The returned turn must not be
                // passed on a second time when dropped.
                turn.is_passed_on = true;
                self.is_passed_on = false;
            }
        }
    }
}

/// Recent failures by mark.
struct Failures {
    counts: Box<[u32]>,
    /// Time of the last halving.
    faded: Option<Instant>,
}

impl Default for Failures {
    fn default() -> Self {
        Failures {
            counts: vec![0; N_COUNTERS].into(),
            faded: None,
        }
    }
}

impl Failures {
    fn note(&mut self, who: &Claimant) {
        for mark in who.marks {
            let count = &mut self.counts[counter(mark)];
            *count = count.saturating_add(1);
        }
    }

    fn of(&self, who: &Claimant) -> u32 {
        let counts = who.marks.map(|mark| self.counts[counter(mark)]);
        counts.into_iter().fold(0, u32::saturating_add)
    }

    fn fade(&mut self, now: Instant) {
        let faded = *self.faded.get_or_insert(now);
        if now.saturating_duration_since(faded) >= FORGET {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.faded = Some(now);
        }
    }
}

fn counter(mark: u64) -> usize {
    (mark % N_COUNTERS as u64) as usize
}

fn lock(now: &Mutex<QueueState>) -> MutexGuard<'_, QueueState> {
    now.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::serve::fixture::run;

    fn peer(address: &str) -> Peer {
        Peer(address.parse::<SocketAddr>().expect("an address"))
    }

    /// Queues claimants in this order after some have failed, and returns the order in which they get a turn.
    async fn order(line: &ClaimQueue, failed: &[Claimant], coming: &[Claimant]) -> Vec<usize> {
        let turn = line.turn(coming[0]).await.expect("nobody waits");
        for who in failed {
            lock(&line.now).failures.note(who);
        }
        let called = Mutex::new(Vec::new());
        let waiting = coming.iter().enumerate().map(|(n, who)| {
            let called = &called;
            async move {
                if let Some(_turn) = line.turn(*who).await {
                    called.lock().expect("not poisoned").push(n);
                }
            }
        });
        let all = futures_util::future::join_all(waiting);
        let begin = async {
            tokio::task::yield_now().await;
            drop(turn);
        };
        tokio::join!(all, begin);
        called.into_inner().expect("not poisoned")
    }

    #[test]
    fn the_queue_prefers_returning_then_least_failed_then_newest_claimants() {
        run(async {
            let line = ClaimQueue::default();
            let of = |address, name, came_before| line.claimant(Some(&peer(address)), name, came_before);
            let guesser = of("192.0.2.1:1000", "anne", false);
            let coming = [
                guesser,
                of("192.0.2.1:1001", "anne", false),
                of("192.0.2.1:1001", "bob", false),
                of("192.0.2.2:1001", "anne", false),
                of("192.0.2.2:1002", "anne", false),
                of("192.0.2.2:1001", "bob", false),
                of("192.0.2.1:1000", "anne", true),
            ];
            assert_eq!(order(&line, &[guesser; 2], &coming).await, [6, 5, 4, 3, 2, 1, 0]);
            assert!(!lock(&line.now).is_checking);
        });
    }

    #[test]
    fn a_full_queue_drops_its_last_claimant_and_skips_those_that_left() {
        run(async {
            let line = ClaimQueue::default();
            let peers: Vec<_> = (0..=MAX_WAITING)
                .map(|n| format!("192.0.2.1:{}", n + 1))
                .collect();
            let coming: Vec<_> = peers
                .iter()
                .map(|address| line.claimant(Some(&peer(address)), "anne", false))
                .collect();
            let called = order(&line, &[], &coming).await;
            assert_eq!(called.len(), MAX_WAITING);
            assert!(!called.contains(&0), "the oldest: {called:?}");

            let turn = line.turn(coming[0]).await.expect("nobody waits");
            let gone = tokio::time::timeout(Duration::from_millis(1), line.turn(coming[1])).await;
            assert!(gone.is_err());
            drop(turn);
            assert!(line.turn(coming[2]).await.is_some(), "nobody holds it");
        });
    }

    #[test]
    fn failures_fade() {
        let line = ClaimQueue::default();
        let who = line.claimant(None, "anne", false);
        let (mut failures, begin) = (Failures::default(), Instant::now());
        failures.fade(begin);
        (0..4).for_each(|_| failures.note(&who));
        failures.fade(begin + FORGET / 2);
        assert_eq!(failures.of(&who), 12);
        failures.fade(begin + FORGET);
        assert_eq!(failures.of(&who), 6);
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_as_one() {
        let line = ClaimQueue::default();
        let mark = |address| line.claimant(Some(&peer(address)), "", false).marks[0];
        assert_eq!(mark("[2001:db8::1]:1"), mark("[2001:db8::2:3]:2"));
        assert_ne!(mark("[2001:db8::1]:1"), mark("[2001:db8:0:1::1]:1"));
    }
}
