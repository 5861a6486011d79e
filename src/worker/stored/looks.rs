//! What looks at experiments need to go on after a restart: they tell it, it is stored with each pair, and told back.

use super::super::Worker;
use super::super::pair::Pair;
use super::PairLooks;
use crate::ledger::PairId;
use crate::looks::{AsOf, Resumed, StoredLooks};

impl Worker {
    /// Tells looks what they go on with, once they know whose pairs to wait for.
    pub(super) fn tell_resumed(
        &mut self,
        partition: PairId,
        pair: &mut Pair,
        begin_anew: Vec<String>,
        as_of: Option<AsOf>,
    ) {
        if !self.telling.is_heard() {
            return;
        }
        let cells = pair.tracker.take_cells();
        let ledger = pair.tracker.ledger();
        let resumed = Resumed {
            pair: partition,
            arms: ledger.arms().to_vec(),
            cells,
            until_ms: ledger.until_ms(),
            whole_from_ms: ledger.columns_since_ms(),
            begin_anew,
            as_of,
        };
        let told = self.telling.own(self.shards.lives());
        let told = told.and_then(|()| self.telling.resumed(resumed));
        self.note_told(told);
    }

    /// Looks have told what they need to go on after a restart: it is stored with the next state of each pair, and cells that only
    /// looks before needed are let go.
    pub(in crate::worker) fn looks_stored(&mut self, looks: &StoredLooks) {
        let Some(stored) = &mut self.stored else { return };
        for (partition, life) in self.shards.lives_mut() {
            let of_pair = looks.pairs.get(&partition);
            let of_pair = of_pair.filter(|_| self.telling.is_known(partition, looks.n_news));
            let (Some(of_pair), Some(own), Some(pair)) =
                (of_pair, stored.pairs.get_mut(&partition), life.pair_mut())
            else {
                continue;
            };
            own.looks = Some(PairLooks {
                users: of_pair.users.clone(),
                sequences: looks.sequences.clone(),
            });
            own.awaits_looks = false;
            pair.tracker.let_go(of_pair.cells_from);
        }
    }
}
