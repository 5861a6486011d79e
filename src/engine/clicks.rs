//! Clicks that a list may still come for, matched or not: by request id in offset order, and by time.

use std::collections::BTreeMap;
use std::hint::black_box;

use hashbrown::HashMap;

use super::event::Click;
use super::hashed::Hashed;

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
pub struct KeptClick {
    pub id: u128,
    pub item: u64,
    pub ts_ms: i64,
    previous: u32,
    next: u32,
    /// Whether a list has taken it, so that its result is known.
    pub decided: bool,
}

/// Clicks of one request id: a chain through the slab.
#[derive(Debug, Clone, Copy)]
struct Chain {
    first: u32,
    last: u32,
}

#[derive(Debug)]
pub struct KeptClicks {
    bucket_ms: i64,
    slab: Vec<KeptClick>,
    free: Vec<u32>,
    chains: HashMap<u128, Chain, Hashed>,
    /// Places in the slab by time ÷ `bucket_ms`.
    buckets: BTreeMap<i64, Vec<u32>>,
    n_waiting: u64,
}

impl KeptClicks {
    pub fn new(bucket_ms: i64) -> KeptClicks {
        KeptClicks {
            bucket_ms,
            slab: Vec::new(),
            free: Vec::new(),
            chains: HashMap::default(),
            buckets: BTreeMap::new(),
            n_waiting: 0,
        }
    }

    /// Bytes that a kept click takes: its place, its chain and its place by time.
    pub const COST: u64 = (size_of::<KeptClick>() + 48 + 8) as u64;

    pub fn bytes(&self) -> u64 {
        (self.slab.len() - self.free.len()) as u64 * Self::COST
    }

    /// Those whose result is not known.
    pub fn n_waiting(&self) -> u64 {
        self.n_waiting
    }

    /// Keeps a click, undecided, and tells its place; those of one id in the order in which they are kept.
    pub fn keep(&mut self, click: &Click) -> u32 {
        let chain = self.chains.get(&click.id).copied();
        let kept = KeptClick {
            id: click.id,
            item: click.item,
            ts_ms: click.ts_ms,
            previous: chain.map_or(NONE, |chain| chain.last),
            next: NONE,
            decided: false,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.slab[place as usize] = kept;
                place
            }
            None => {
                self.slab.push(kept);
                (self.slab.len() - 1) as u32
            }
        };
        if let Some(chain) = chain {
            self.slab[chain.last as usize].next = place;
        }
        let first = chain.map_or(place, |chain| chain.first);
        self.chains.insert(click.id, Chain { first, last: place });
        self.buckets
            .entry(click.ts_ms.div_euclid(self.bucket_ms))
            .or_default()
            .push(place);
        self.n_waiting += 1;
        place
    }

    /// Loads what a look-up of this id will read.
    pub fn touch(&self, id: u128) {
        black_box(self.chains.get(&id));
    }

    /// The first click of an id, then each next one.
    pub fn first_of(&self, id: u128) -> Option<u32> {
        self.chains.get(&id).map(|chain| chain.first)
    }

    pub fn next(&self, place: u32) -> Option<u32> {
        let next = self.slab[place as usize].next;
        (next != NONE).then_some(next)
    }

    pub fn get(&self, place: u32) -> &KeptClick {
        &self.slab[place as usize]
    }

    /// Notes that a list has taken it; false where one had before.
    pub fn decide(&mut self, place: u32) -> bool {
        let click = &mut self.slab[place as usize];
        let first = !click.decided;
        click.decided = true;
        self.n_waiting -= u64::from(first);
        first
    }

    /// Lets go of every click before `limit_ms`; hands those that no list took to `undecided`.
    pub fn expire(&mut self, limit_ms: i64, mut untaken: impl FnMut(&KeptClick)) {
        while let Some(mut bucket) = self.buckets.first_entry() {
            let number = *bucket.key();
            if number.saturating_mul(self.bucket_ms) >= limit_ms {
                break;
            }
            let places = bucket.get_mut();
            let slab = &self.slab;
            let mut gone = Vec::new();
            places.retain(|place| {
                let stays = slab[*place as usize].ts_ms >= limit_ms;
                if !stays {
                    gone.push(*place);
                }
                stays
            });
            let emptied = places.is_empty();
            if emptied {
                bucket.remove();
            }
            for place in gone {
                self.remove(place, &mut untaken);
            }
            if !emptied {
                break; // It holds the limit: all later ones are after it.
            }
        }
    }

    fn remove(&mut self, place: u32, untaken: &mut impl FnMut(&KeptClick)) {
        let KeptClick {
            id,
            previous,
            next,
            decided,
            ..
        } = self.slab[place as usize];
        if !decided {
            self.n_waiting -= 1;
            untaken(&self.slab[place as usize]);
        }
        if previous != NONE {
            self.slab[previous as usize].next = next;
        }
        if next != NONE {
            self.slab[next as usize].previous = previous;
        }
        if previous == NONE && next == NONE {
            self.chains.remove(&id);
        } else if let Some(chain) = self.chains.get_mut(&id) {
            if previous == NONE {
                chain.first = next;
            }
            if next == NONE {
                chain.last = previous;
            }
        }
        self.free.push(place);
        if self.free.len() == self.slab.len() {
            // Nothing is kept: give back what a catch-up may have needed.
            self.slab = Vec::new();
            self.free = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn click(id: u128, ts_ms: i64) -> Click {
        Click {
            id,
            ts_ms,
            item: ts_ms as u64,
        }
    }

    fn times_of(clicks: &KeptClicks, id: u128) -> Vec<i64> {
        let places = std::iter::successors(clicks.first_of(id), |place| clicks.next(*place));
        places.map(|place| clicks.get(place).ts_ms).collect()
    }

    #[test]
    fn keeps_the_order_of_an_id_while_clicks_leave_from_anywhere() {
        let mut clicks = KeptClicks::new(10);
        for ts_ms in [25, 3, 14, 40] {
            clicks.keep(&click(1, ts_ms));
        }
        let taken = clicks.keep(&click(2, 4));
        assert!(clicks.decide(taken), "the first list to take it");
        assert!(!clicks.decide(taken));
        assert_eq!(times_of(&clicks, 1), [25, 3, 14, 40]);
        let mut untaken = Vec::new();
        clicks.expire(15, |click| untaken.push((click.id, click.ts_ms)));
        untaken.sort();
        assert_eq!(
            untaken,
            [(1, 3), (1, 14)],
            "a decided click leaves without a word"
        );
        assert_eq!(times_of(&clicks, 1), [25, 40]);
        assert_eq!(clicks.n_waiting(), 2);
        clicks.keep(&click(1, 31));
        assert_eq!(times_of(&clicks, 1), [25, 40, 31]);
        clicks.expire(i64::MAX, |_| ());
        assert_eq!(
            (clicks.bytes(), clicks.n_waiting(), clicks.first_of(1)),
            (0, 0, None)
        );
    }

    #[test]
    fn a_click_at_the_limit_stays() {
        let mut clicks = KeptClicks::new(10);
        clicks.keep(&click(1, 15));
        clicks.expire(15, |_| panic!("it is not before the limit"));
        assert_eq!(times_of(&clicks, 1), [15]);
        let mut n = 0;
        clicks.expire(16, |_| n += 1);
        assert_eq!(n, 1);
    }
}
