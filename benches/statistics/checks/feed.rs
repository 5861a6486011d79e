//! Drafts of simulated records as the events that the decoder would make of their text.

use std::ops::Range;

use abgauge::engine::event::{ArmName, Batch, Body, Click, Event, Position, Served};
use abgauge::simulate::Design;
use abgauge::simulate::design::Combination;
use abgauge::simulate::draft::{Content, Draft};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// A batch that is filled and cleared by turns.
pub struct Feed {
    batch: Batch,
    /// Of the next record, on either side.
    offset: i64,
}

impl Feed {
    /// For designs of the same experiments and arms as this one.
    pub fn new(design: &Design) -> Feed {
        let mut batch = Batch::default();
        for combination in 0..design.n_combinations() as Combination {
            let (experiment, arm) = design.arms(combination).next().expect("there is an experiment");
            let name = format!("{}={}", experiment.name, arm.name);
            let hash = xxh3_128(name.as_bytes());
            let experiment = add_text(&mut batch.text, &experiment.name);
            let arm = add_text(&mut batch.text, &arm.name);
            batch.arms.push(ArmName {
                hash,
                experiment,
                arm,
            });
        }
        Feed { batch, offset: 0 }
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

    /// Adds a record. Requests of two legs have different ids.
    pub fn push(&mut self, leg: usize, draft: &Draft) {
        let id = xxh3_128(format!("{leg}-{}", draft.origin.request).as_bytes());
        let user = Some(xxh3_64(&draft.origin.user.to_le_bytes()));
        let body = match draft.content {
            Content::List { stamp_ms, items } => {
                let start = self.batch.items.len() as u32;
                self.batch.items.extend(items.iter().map(|item| hash(*item)));
                let arms = u32::from(draft.origin.combination);
                Body::Served(Served {
                    id,
                    user,
                    ts_ms: stamp_ms,
                    items: start..self.batch.items.len() as u32,
                    arms: arms..arms + 1,
                })
            }
            Content::Click { stamp_ms, item } => Body::Click(Click {
                id,
                user,
                ts_ms: stamp_ms,
                item: hash(item),
            }),
            Content::Text(_) => return,
        };
        let at = Position {
            side: draft.side,
            offset: self.offset,
            record_ts_ms: draft.arrival_ms,
        };
        self.offset += 1;
        self.batch.events.push(Event { at, body });
    }
}

fn hash(item: u16) -> u64 {
    xxh3_64(&item.to_le_bytes())
}

fn add_text(text: &mut String, more: &str) -> Range<u32> {
    let start = text.len() as u32;
    text.push_str(more);
    start..text.len() as u32
}
