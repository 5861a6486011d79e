//! Bound on connections that slow clients cannot exhaust: the connection that has waited longest for its client is closed,
//! those without a request first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Slots of a server.
pub(super) struct ConnectionSlots {
    now: Mutex<Slots>,
    /// Notified when a slot becomes free or a connection joins the queue.
    changed: Notify,
}

/// Free slots and the queue under one lock. A connection that ends leaves the queue and frees its slot in one step;
/// otherwise a new connection in between would cost somebody else its slot.
struct Slots {
    n_free: usize,
    next: u64,
    /// Connections that wait for their clients, sorted by what they wait for and since when.
    waiting: BTreeMap<QueuePosition, CancellationToken>,
}

type QueuePosition = (WaitReason, u64);

/// Reason for waiting. Connections without a request are closed before the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WaitReason {
    /// Whole request.
    Request,
    /// Progress in reading the answer.
    Reader,
}

/// Slot of a connection, free again once dropped.
pub(super) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    /// Position in the queue.
    place: Mutex<Option<QueuePosition>>,
    lost: CancellationToken,
}

impl ConnectionSlots {
    pub fn new(n: usize) -> Arc<ConnectionSlots> {
        Arc::new(ConnectionSlots {
            now: Mutex::new(Slots {
                n_free: n,
                next: 0,
                waiting: BTreeMap::new(),
            }),
            changed: Notify::new(),
        })
    }

    /// Returns a slot for a connection that waits for its first request. If none is free, the connection that has waited
    /// longest loses its own. If none waits, this call waits. Must be called from one task at a time.
    pub async fn take(self: &Arc<ConnectionSlots>) -> ConnectionSlot {
        let mut has_loser = false;
        loop {
            {
                let mut now = self.now();
                if now.n_free > 0 {
                    now.n_free -= 1;
                    break;
                }
                // One connection is closed per newcomer, even if its slot takes a moment to become free.
                if !has_loser && let Some((_, lost)) = now.waiting.pop_first() {
                    lost.cancel();
                    has_loser = true;
                }
            }
            self.changed.notified().await;
        }
        ConnectionSlot::new(self)
    }

    fn now(&self) -> MutexGuard<'_, Slots> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    fn new(slots: &Arc<ConnectionSlots>) -> ConnectionSlot {
        let slot = ConnectionSlot {
            slots: Arc::clone(slots),
            place: Mutex::new(None),
            lost: CancellationToken::new(),
        };
        slot.wait(WaitReason::Request);
        slot
    }

    /// Enters the queue: from now on the connection waits for its client and may lose the slot.
    pub fn wait(&self, what: WaitReason) {
        // Locks are always taken in this order: the place, then the slots.
        let mut place = self.place();
        let mut now = self.slots.now();
        if let Some(place) = place.take() {
            now.waiting.remove(&place);
        }
        let last = (what, now.next);
        now.next += 1;
        now.waiting.insert(last, self.lost.clone());
        *place = Some(last);
        drop(now);
        // A newcomer may be waiting for a connection that can lose its slot.
        self.slots.changed.notify_one();
    }

    /// Leaves the queue: the slot is safe until the connection waits again.
    pub fn keep(&self) {
        if let Some(place) = self.place().take() {
            self.slots.now().waiting.remove(&place);
        }
    }

    /// Waits until another connection needs the slot more.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    fn place(&self) -> MutexGuard<'_, Option<QueuePosition>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let place = self.place().take();
        let mut now = self.slots.now();
        if let Some(place) = place {
            now.waiting.remove(&place);
        }
        now.n_free += 1;
        drop(now);
        self.slots.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    fn is_lost(slot: &ConnectionSlot) -> bool {
        slot.lost.is_cancelled()
    }

    /// Returns which of `held` lost its slot to a new connection although all are taken, if any, and drops it.
    async fn takes_from(slots: &Arc<ConnectionSlots>, held: &mut [Option<ConnectionSlot>]) -> Option<usize> {
        let mut taking = Box::pin(slots.take());
        let at_once = futures_poll(&mut taking).await;
        assert!(at_once.is_none(), "there was a free slot");
        let loser = held.iter().position(|slot| slot.as_ref().is_some_and(is_lost))?;
        held[loser] = None;
        held[loser] = Some(taking.await);
        Some(loser)
    }

    async fn futures_poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = std::future::ready(()) => None,
        }
    }

    #[test]
    fn the_longest_waiting_connection_makes_room() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let slots = ConnectionSlots::new(3);
            let mut held = Vec::new();
            for _ in 0..3 {
                held.push(Some(slots.take().await));
            }
            let slot = |held: &[Option<ConnectionSlot>], n: usize| held[n].as_ref().expect("held").keep();
            slot(&held, 0);
            assert_eq!(takes_from(&slots, &mut held).await, Some(1), "0 has a request");
            assert_eq!(takes_from(&slots, &mut held).await, Some(2), "1 is new");
            held[0].as_ref().expect("held").wait(WaitReason::Request);
            assert_eq!(
                takes_from(&slots, &mut held).await,
                Some(1),
                "0 waits since just now"
            );
            held[0].as_ref().expect("held").wait(WaitReason::Reader);
            assert_eq!(takes_from(&slots, &mut held).await, Some(2), "0 has asked");
            for n in 0..3 {
                slot(&held, n);
            }
            held[1].as_ref().expect("held").wait(WaitReason::Reader);
            assert_eq!(takes_from(&slots, &mut held).await, Some(1), "the others read on");
            slot(&held, 1);
            assert_eq!(takes_from(&slots, &mut held).await, None, "all have requests");
        });
    }

    #[test]
    fn a_newcomer_gets_the_slot_of_a_connection_that_starts_to_wait() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let slots = ConnectionSlots::new(1);
            let held = slots.take().await;
            held.keep();
            let mut taking = Box::pin(slots.take());
            assert!(futures_poll(&mut taking).await.is_none());
            held.wait(WaitReason::Reader);
            assert!(futures_poll(&mut taking).await.is_none());
            assert!(is_lost(&held));
            drop(held);
            taking.await;
        });
    }

    #[test]
    fn a_connection_ending_during_an_arrival_costs_no_other_slot() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let (ends, ending) = std::sync::mpsc::channel::<ConnectionSlot>();
        let ender = std::thread::spawn(move || ending.into_iter().for_each(drop));
        runtime.block_on(async {
            let slots = ConnectionSlots::new(2);
            let reader = slots.take().await;
            reader.wait(WaitReason::Reader);
            let mut other = slots.take().await;
            for n in 0..20_000 {
                ends.send(other).expect("somebody ends it");
                other = slots.take().await;
                assert!(!is_lost(&reader), "by newcomer {n}");
            }
        });
        drop(ends);
        ender.join().expect("it ends");
    }
}
