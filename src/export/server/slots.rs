//! A bound on connections that a slow client cannot fill: whoever has waited longest for a request makes room.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The slots of a server.
pub(super) struct Slots {
    free: Arc<Semaphore>,
    queue: Mutex<Queue>,
    /// A connection has joined the queue.
    joined: Notify,
}

/// Connections without a whole request, by the moment since which that is so.
#[derive(Default)]
struct Queue {
    next: u64,
    waiting: BTreeMap<u64, CancellationToken>,
}

/// A connection's slot; free again once dropped.
pub(super) struct Slot {
    slots: Arc<Slots>,
    /// Its place in the queue.
    place: Mutex<Option<u64>>,
    lost: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl Slots {
    pub fn new(n: usize) -> Arc<Slots> {
        Arc::new(Slots {
            free: Arc::new(Semaphore::new(n)),
            queue: Mutex::default(),
            joined: Notify::new(),
        })
    }

    /// A slot for a connection that waits for its request. Where none is free, the connection that has waited longest
    /// loses its own; where none waits, we do. To be called by one at a time.
    pub async fn take(self: &Arc<Slots>) -> Slot {
        let freed = Arc::clone(&self.free).acquire_owned();
        let mut freed = std::pin::pin!(freed);
        let permit = tokio::select! {
            biased;
            permit = freed.as_mut() => permit,
            () = self.someone_lost() => freed.await,
        };
        Slot::new(self, permit.expect("the semaphore is never closed"))
    }

    /// Waits until there is a connection that can lose its slot, and has it lose it.
    async fn someone_lost(&self) {
        loop {
            let oldest = self.queue().waiting.pop_first();
            if let Some((_, lost)) = oldest {
                return lost.cancel();
            }
            self.joined.notified().await;
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn new(slots: &Arc<Slots>, permit: OwnedSemaphorePermit) -> Slot {
        let slot = Slot {
            slots: Arc::clone(slots),
            place: Mutex::new(None),
            lost: CancellationToken::new(),
            _permit: permit,
        };
        slot.wait();
        slot
    }

    /// From now on it waits for a request, and may be lost.
    pub fn wait(&self) {
        let mut place = self.place();
        let mut queue = self.slots.queue();
        if let Some(place) = place.take() {
            queue.waiting.remove(&place);
        }
        let last = queue.next;
        queue.next += 1;
        queue.waiting.insert(last, self.lost.clone());
        *place = Some(last);
        drop(queue);
        self.slots.joined.notify_one();
    }

    /// A whole request has come: it is kept until it waits again.
    pub fn keep(&self) {
        if let Some(place) = self.place().take() {
            self.slots.queue().waiting.remove(&place);
        }
    }

    /// Waits until another connection needs the slot more.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    fn place(&self) -> MutexGuard<'_, Option<u64>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.keep();
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    fn is_lost(slot: &Slot) -> bool {
        slot.lost.is_cancelled()
    }

    /// Whether a slot is to be had although all are taken, by the loss of one of `held`; that one is dropped then.
    async fn takes_from(slots: &Arc<Slots>, held: &mut [Option<Slot>]) -> Option<usize> {
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
    fn who_has_waited_longest_makes_room() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let slots = Slots::new(3);
            let mut held = Vec::new();
            for _ in 0..3 {
                held.push(Some(slots.take().await));
            }
            let slot = |held: &[Option<Slot>], n: usize| held[n].as_ref().expect("held").keep();
            slot(&held, 0);
            assert_eq!(takes_from(&slots, &mut held).await, Some(1), "0 has a request");
            assert_eq!(takes_from(&slots, &mut held).await, Some(2), "1 is new");
            held[0].as_ref().expect("held").wait();
            assert_eq!(
                takes_from(&slots, &mut held).await,
                Some(1),
                "0 waits since just now"
            );
            for n in 0..3 {
                slot(&held, n);
            }
            assert_eq!(takes_from(&slots, &mut held).await, None, "all have requests");
        });
    }

    #[test]
    fn a_newcomer_gets_the_slot_of_whoever_begins_to_wait() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let slots = Slots::new(1);
            let held = slots.take().await;
            held.keep();
            let mut taking = Box::pin(slots.take());
            assert!(futures_poll(&mut taking).await.is_none());
            held.wait();
            assert!(futures_poll(&mut taking).await.is_none());
            assert!(is_lost(&held));
            drop(held);
            taking.await;
        });
    }
}
