//! Fates of an append: it lands at once, late, twice or never. Any of them may be acknowledged or not, even one that never
//! lands.

use abgauge_core::journal::{RecordKey, SharedBytes};

use super::{Flight, World};
use crate::state::instance::{Instance, Life, namespace};
use crate::state::judge::Verdict;
use crate::state::log::Record;

impl World {
    pub(super) fn send(&mut self, who: usize, key: RecordKey, value: Option<SharedBytes>) -> Verdict {
        if let Some(value) = &value {
            self.judge.sent(key, value)?;
        }
        let instance = &mut self.instances[who];
        if let (RecordKey::Claim(session), Some(_)) = (key, &value) {
            self.n_claims += 1;
            instance.claims(session)?;
        }
        let is_answered = value.is_some() && !self.dice.percent(self.faults.unanswered);
        let sender = is_answered.then_some(self.instances[who].incarnation);
        let record = Record::new(namespace(), key, value);
        if matches!(key, RecordKey::Claim(_)) && self.dice.percent(20) {
            self.land_seals()?;
        }
        if self.dice.percent(self.faults.lost) {
            // A blob lost this way is damage that cannot be repaired.
            if !matches!(key, RecordKey::Blob(_)) && self.dice.percent(self.faults.forgotten) {
                self.tell(|_| format!("the log forgets {key:?}"));
                self.hear_of(key, sender);
            }
            return Ok(());
        }
        if self.dice.percent(self.faults.doubled) {
            let record = record.clone();
            self.flights.push(Flight { record, sender: None });
        }
        let late = match key {
            RecordKey::Seal(_) | RecordKey::Claim(_) => self.faults.late * 3 / 2,
            RecordKey::Blob(_) => self.faults.late / 2,
        };
        if self.dice.percent(late) {
            self.flights.push(Flight { record, sender });
            return Ok(());
        }
        self.land(record, sender)
    }

    pub(super) fn land(&mut self, record: Record, sender: Option<u64>) -> Verdict {
        self.tell(|world| {
            let what = record.value.as_ref().map_or("tombstone of ", |_| "");
            format!("at {} lands {what}{:?}", world.log.end(), record.key)
        });
        self.hear_of(record.key, sender);
        self.log.append(record.clone());
        self.judge.landed(&record, &self.inputs, self.now_ms)?;
        match record.key {
            RecordKey::Claim(_) if record.value.is_some() && self.dice.percent(40) => self.land_seals(),
            RecordKey::Seal(_) if self.dice.percent(30) => self.acknowledge_all_of(sender),
            _ => Ok(()),
        }
    }

    /// Delivers an acknowledgement.
    fn hear_of(&mut self, key: RecordKey, sender: Option<u64>) {
        let mut instances = self.instances.iter_mut();
        if let Some(instance) = instances.find(|instance| Some(instance.incarnation) == sender) {
            instance.acknowledged.push(key);
        }
    }

    pub(super) fn land_some(&mut self) -> Verdict {
        if self.flights.is_empty() {
            return Ok(());
        }
        let which = self.dice.below(self.flights.len());
        let Flight { record, sender } = self.flights.swap_remove(which);
        self.land(record, sender)
    }

    /// Lands the seals in flight, which were sent before a claim and now land after it.
    pub(super) fn land_seals(&mut self) -> Verdict {
        self.land_those(|key| matches!(key, RecordKey::Seal(_)))
    }

    pub(super) fn land_claims(&mut self) -> Verdict {
        self.land_those(|key| matches!(key, RecordKey::Claim(_)))
    }

    fn land_those(&mut self, which: impl Fn(RecordKey) -> bool) -> Verdict {
        let is_one = |flight: &mut Flight| which(flight.record.key);
        let landing: Vec<Flight> = self.flights.extract_if(.., is_one).collect();
        for Flight { record, sender } in landing {
            self.land(record, sender)?;
        }
        Ok(())
    }

    /// Appends a claim or seal from this offset on again, as after a lost answer or a new partition leader.
    pub(super) fn land_again(&mut self, from: usize) -> Verdict {
        let n_behind = self.log.end().saturating_sub(from);
        let (record, _) = self.log.next(from + self.dice.below(n_behind.max(1)));
        let decides = |record: &&Record| record.value.is_some() && !matches!(record.key, RecordKey::Blob(_));
        match record.filter(decides).cloned() {
            Some(record) if self.faults.doubled > 0 => self.land(record, None),
            _ => Ok(()),
        }
    }

    /// Delivers all acknowledgements to an instance before it reads further records.
    pub(super) fn acknowledge_all_of(&mut self, sender: Option<u64>) -> Verdict {
        let runs = |instance: &Instance| Some(instance.incarnation) == sender && instance.life == Life::Runs;
        if let Some(who) = self.instances.iter().position(runs) {
            if self.instances[who].must_hear() {
                return self.notice(who);
            }
            while !self.instances[who].acknowledged.is_empty() {
                self.acknowledge(who)?;
            }
        }
        Ok(())
    }
}
