//! Storage of the data that looks need to resume after a restart.

use abgauge_core::looks::{PairLooks, StoredLooks};

use super::super::Worker;

impl Worker {
    /// Stores the looks' data with the next state of each pair, and lets go of cells that only earlier looks needed.
    pub(in crate::stream::worker) fn looks_stored(&mut self, looks: &StoredLooks) {
        let every_ms = self.telling.every_ms();
        for (partition, phase) in self.shards.phases_mut() {
            let (Some(of_pair), Some(pair)) = (looks.pairs.get(&partition), phase.pair_mut()) else {
                continue;
            };
            let until_ms = pair.tracker.ledger().until_ms();
            let Some(own) = &mut pair.stored else { continue };
            let before = own.looks.as_ref().map(|(_, up_to)| up_to);
            if of_pair.fits(own.incarnation_id, until_ms, every_ms, before) {
                let new = PairLooks {
                    users: of_pair.users.clone(),
                    sequences: looks.sequences.clone(),
                };
                own.looks = Some((new, of_pair.up_to));
                pair.tracker.let_go(of_pair.up_to.cells_from);
            }
        }
    }
}
