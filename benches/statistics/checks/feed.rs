//! Feed of simulated records as events, equal to the decoder's output for their text.

use std::ops::Range;

use abgauge::tools::simulate::Design;
use abgauge::tools::simulate::design::Combination;
use abgauge::tools::simulate::draft::{Content, RecordDraft};
use abgauge_core::engine::event::{ArmName, Batch, Body, Click, Event, Position, Served};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed, xxh3_128};

use super::scenario::{ARM, Ids};

/// A batch that is filled and cleared in turns.
pub struct Feed {
    batch: Batch,
    /// Offset of the next record, on either side.
    offset: i64,
    ids: Ids,
    /// First treatment.
    treatment: u32,
}

/// Hash of the crawler's id.
const CRAWLER: u64 = u64::MAX;
/// Seed of the hash for second ids of users.
const SECOND: u64 = 1;

impl Feed {
    /// Creates a feed for designs with the same experiments and arms as this one.
    pub fn new(design: &Design) -> Feed {
        let mut batch = Batch::default();
        let mut treatment = 0;
        for combination in 0..design.n_combinations() as Combination {
            let (experiment, arm) = design.arms(combination).next().expect("there is an experiment");
            let name = format!("{}={}", experiment.name, arm.name);
            let hash = xxh3_128(name.as_bytes());
            if &*arm.name == ARM {
                treatment = batch.arms.len() as u32;
            }
            let experiment = add_text(&mut batch.text, &experiment.name);
            let arm = add_text(&mut batch.text, &arm.name);
            batch.arms.push(ArmName {
                hash,
                experiment,
                arm,
            });
        }
        Feed {
            batch,
            offset: 0,
            ids: Ids::All,
            treatment,
        }
    }

    #[must_use]
    pub fn with_ids(self, ids: Ids) -> Feed {
        Feed { ids, ..self }
    }

    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    pub fn len(&self) -> usize {
        self.batch.events.len()
    }

    pub fn clear(&mut self) {
        self.batch.clear();
    }

    /// Adds a record, and after a list the crawler's lists of that time. Requests of different legs have different ids.
    pub fn push(&mut self, leg: usize, draft: &RecordDraft) {
        let name = format!("{leg}-{}", draft.origin.request);
        let user = self.user(draft.origin.user);
        let id = xxh3_128(name.as_bytes());
        match &draft.content {
            Content::List { stamp_ms, items } => {
                let arms = u32::from(draft.origin.combination);
                self.push_list(draft, id, user, *stamp_ms, items, arms);
                for n in 0..self.n_crawled(name.as_bytes()) {
                    let id = xxh3_128(format!("crawler-{n}-{name}").as_bytes());
                    self.push_list(draft, id, Some(CRAWLER), *stamp_ms, items, self.treatment);
                }
            }
            Content::Click { stamp_ms, item } => {
                let body = Body::Click(Click {
                    id,
                    user,
                    ts_ms: *stamp_ms,
                    item: hash(*item),
                });
                self.push_body(draft, body);
            }
            Content::Text(_) => {}
        }
    }

    /// Returns the hash of the user's id, if the user has one.
    fn user(&self, user: u32) -> Option<u64> {
        let bytes = user.to_le_bytes();
        let lacks_first = |share| fraction(xxh3_64_with_seed(&bytes, 2)) < share;
        match self.ids {
            Ids::Missing(share) if lacks_first(share) => None,
            Ids::Second(share) if lacks_first(share) => Some(xxh3_64_with_seed(&bytes, SECOND)),
            _ => Some(xxh3_64(&bytes)),
        }
    }

    /// Returns the crawler's lists per list of another user: s / (1 − s) on average.
    fn n_crawled(&self, request: &[u8]) -> usize {
        let Ids::Crawler(share) = self.ids else {
            return 0;
        };
        (share / (1.0 - share) + fraction(xxh3_64(request))) as usize
    }

    fn push_list(
        &mut self,
        draft: &RecordDraft,
        id: u128,
        user: Option<u64>,
        ts_ms: i64,
        items: &[u16],
        arm: u32,
    ) {
        let start = self.batch.items.len() as u32;
        self.batch.items.extend(items.iter().map(|item| hash(*item)));
        let body = Body::Served(Served {
            id,
            user,
            ts_ms,
            items: start..self.batch.items.len() as u32,
            arms: arm..arm + 1,
        });
        self.push_body(draft, body);
    }

    fn push_body(&mut self, draft: &RecordDraft, body: Body) {
        let at = Position {
            side: draft.side,
            offset: self.offset,
            record_ts_ms: draft.arrival_ms,
        };
        self.offset += 1;
        self.batch.events.push(Event::new(at, body));
    }
}

/// Converts a hash to a number from 0 to 1.
fn fraction(hash: u64) -> f64 {
    hash as f64 / u64::MAX as f64
}

fn hash(item: u16) -> u64 {
    xxh3_64(&item.to_le_bytes())
}

fn add_text(text: &mut String, more: &str) -> Range<u32> {
    let start = text.len() as u32;
    text.push_str(more);
    start..text.len() as u32
}
