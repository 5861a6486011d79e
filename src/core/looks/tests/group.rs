//! Pairs with their current states, and instances that follow them.

use super::window::window;
use super::*;

pub(super) const N_PAIRS: usize = 3;
pub(super) const N_SLOTS: i64 = 72;

/// Memory of a process about one pair.
pub(super) struct Memory {
    pair: Pair,
    /// Slots that it has settled.
    until: i64,
    incarnation_id: u64,
    pub looks: Option<PairLooks>,
}

impl Memory {
    fn begin(number: usize, asked: &Experiment, incarnation_id: u64) -> Memory {
        let mut pair = Pair::of(number as PairId, asked);
        pair.ledger.keep_taken();
        Memory {
            pair,
            until: 0,
            incarnation_id,
            looks: None,
        }
    }

    fn restore(number: usize, asked: &Experiment, state: &PairState) -> Memory {
        let mut ledger = Ledger::decode(&state.ledger, &ranking(), &keep(asked)).expect("it was encoded");
        ledger.keep_taken();
        ledger.take_complete(0);
        Memory {
            until: state.until_ms.unwrap_or(0) / SLOT_MS,
            incarnation_id: state.incarnation_id,
            looks: state.looks.clone(),
            pair: Pair {
                id: number as PairId,
                n_reported: ledger.arms().len(),
                ledger,
            },
        }
    }

    fn state(&mut self) -> PairState {
        PairState {
            incarnation_id: self.incarnation_id,
            holds: true,
            until_ms: self.pair.ledger.until_ms(),
            ledger: self.pair.ledger.encode(),
            looks: self.looks.clone(),
        }
    }

    fn store(&mut self, stored: &StoredLookPair, sequences: &[u8]) {
        let before = self.looks.as_ref();
        let before = before.map(|looks| UpTo::of(&looks.users).expect("it was encoded"));
        if stored.fits(
            self.incarnation_id,
            self.pair.ledger.until_ms(),
            LOOK_MS,
            before.as_ref(),
        ) {
            self.looks = Some(PairLooks {
                users: stored.users.clone(),
                sequences: sequences.into(),
            });
            self.pair.ledger.let_go(0, stored.up_to.cells_from);
        }
    }
}

pub(super) fn keep(asked: &Experiment) -> Keep {
    Keep::of_users(users(asked), LOOK_MS)
}

fn users(asked: &Experiment) -> Users {
    Users::Of([("e".to_owned(), asked.epochs(LOOK_MS))].into())
}

/// Memory of a process about looks.
pub(super) struct Instance {
    pub feed: LookFeed,
    pub looks: Looks,
    pub looked: Vec<Look>,
    /// Stored looks on their way from looks to pairs.
    stored: Option<StoredLooks>,
}

impl Instance {
    pub fn new(asked: &Experiment) -> Instance {
        let rules = LookRules {
            window: window(3),
            ..rules(asked.clone())
        };
        Instance::of(asked, rules)
    }

    pub fn of(asked: &Experiment, rules: LookRules) -> Instance {
        Instance {
            feed: LookFeed::new(rules.ranking.clone(), users(asked), LOOK_MS, N_PAIRS),
            looks: Looks::new(rules),
            looked: Vec::new(),
            stored: None,
        }
    }

    pub fn see(&mut self, pair: usize, state: &PairState) {
        let news = self
            .feed
            .take(pair as PairId, state.clone())
            .expect("it was encoded");
        for news in news {
            self.looks.take(news);
            self.looked.extend(all(&mut self.looks));
        }
    }
}

pub(super) struct World {
    pub asked: Experiment,
    lists: Vec<List>,
    pub instances: Vec<Instance>,
    pub memories: Vec<Memory>,
    /// Owner of each pair.
    owners: [usize; N_PAIRS],
    /// Current states by pair.
    pub current: Vec<PairState>,
}

impl World {
    pub fn new(asked: &Experiment, lists: &[List], n_instances: usize) -> World {
        let mut memories: Vec<Memory> = (0..N_PAIRS)
            .map(|number| Memory::begin(number, asked, 7))
            .collect();
        World {
            asked: asked.clone(),
            lists: lists.to_vec(),
            instances: (0..n_instances).map(|_| Instance::new(asked)).collect(),
            owners: std::array::from_fn(|pair| pair % n_instances),
            current: memories.iter_mut().map(Memory::state).collect(),
            memories,
        }
    }

    pub fn advance(&mut self, number: usize, n_slots: i64) {
        let memory = &mut self.memories[number];
        let until = (memory.until + n_slots).min(N_SLOTS);
        let is_new = |list: &&List| list.user as usize % N_PAIRS == number && list.slot >= memory.until;
        let lists: Vec<List> = self.lists.iter().filter(is_new).copied().collect();
        memory.pair.settle(&lists, until);
        memory.until = until;
    }

    pub fn seal(&mut self, number: usize) {
        self.current[number] = self.memories[number].state();
    }

    pub fn see(&mut self, instance: usize, pair: usize) {
        self.instances[instance].see(pair, &self.current[pair]);
    }

    pub fn see_all(&mut self) {
        for instance in 0..self.instances.len() {
            (0..N_PAIRS).for_each(|pair| self.see(instance, pair));
        }
    }

    /// Lets an instance's pairs store the looks that it reported last time.
    pub fn store(&mut self, instance: usize) {
        let of = &mut self.instances[instance];
        let now = of.looks.stored();
        let Some(stored) = std::mem::replace(&mut of.stored, now) else {
            return;
        };
        for (id, stored_pair) in &stored.pairs {
            let number = *id as usize;
            if self.owners[number] == instance {
                self.memories[number].store(stored_pair, &stored.sequences);
            }
        }
    }

    /// Moves a pair to another instance, which reads its current state.
    pub fn give(&mut self, pair: usize, instance: usize) {
        self.owners[pair] = instance;
        self.memories[pair] = Memory::restore(pair, &self.asked, &self.current[pair]);
    }

    /// Restarts an instance and moves its pairs to others. Returns the looks that it had taken.
    pub fn kill(&mut self, instance: usize) -> Vec<Look> {
        for pair in 0..N_PAIRS {
            if self.owners[pair] == instance {
                self.give(pair, (instance + pair) % self.instances.len());
            }
        }
        let before = std::mem::replace(&mut self.instances[instance], Instance::new(&self.asked));
        before.looked
    }

    /// Loses the state of a pair: it is counted again from the start of its log.
    pub fn lose(&mut self, pair: usize) {
        let incarnation_id = self.memories[pair].incarnation_id + 1;
        self.memories[pair] = Memory::begin(pair, &self.asked, incarnation_id);
        self.seal(pair);
    }

    /// Lets all pairs settle `n_slots` slots and seals them, and all instances see that.
    pub fn settle(&mut self, n_slots: i64) {
        for pair in 0..N_PAIRS {
            self.advance(pair, n_slots);
            self.seal(pair);
        }
        self.see_all();
    }

    /// Stores the latest looks in all current states.
    pub fn store_all(&mut self) {
        for instance in 0..self.instances.len() {
            [(); 2].iter().for_each(|()| self.store(instance));
        }
        (0..N_PAIRS).for_each(|pair| self.seal(pair));
    }
}

/// Settings that decide soon, by a planned look, with a second epoch.
pub(super) fn asked() -> Experiment {
    let settings = compared().settings.map(|settings| Settings {
        min_days: 0.01,
        planned_days: Some(0.04),
        ..settings
    });
    Experiment {
        settings,
        epochs: vec![EpochStart {
            start_ms: 5 * LOOK_MS,
            shares: [("a".to_owned(), 0.5), ("b".to_owned(), 0.5)].into(),
        }],
        ..Experiment::default()
    }
}

/// Looks of an instance that is never interrupted and sees everything, by their times.
pub(super) fn uninterrupted(asked: &Experiment, lists: &[List]) -> BTreeMap<i64, Look> {
    let mut looks = Looks::new(LookRules {
        window: window(3),
        ..rules(asked.clone())
    });
    looks.take(owned(&[0, 1, 2]));
    for number in 0..N_PAIRS {
        let lists = lists.iter().filter(|list| list.user as usize % N_PAIRS == number);
        let lists: Vec<List> = lists.copied().collect();
        looks.take(Pair::of(number as PairId, asked).settle(&lists, N_SLOTS));
    }
    let looked = all(&mut looks).into_iter();
    looked.map(|looked| (looked.as_of_ms, looked)).collect()
}

prop_compose! {
    pub(super) fn some_list()(
        slot in 0..N_SLOTS,
        user in 1..500_u32,
        arm in 0..2_usize,
        is_clicked in any::<bool>(),
    ) -> List {
        List { is_clicked, ..list(slot, user, ["a", "b"][arm]) }
    }
}
