//! Looks that go on with what was stored, beside looks that were never interrupted.

use super::window::{SLOTS_A_CELL, window};
use super::*;
use crate::ledger::Parts;

const N_PAIRS: usize = 3;
const N_SLOTS: i64 = 72;

/// What is stored of a pair.
#[derive(Clone)]
struct Sealed {
    ledger: Parts,
    looks: Option<[std::sync::Arc<[u8]>; 2]>,
    /// Slots that are in it.
    until: i64,
}

struct Live {
    pair: Pair,
    /// Slots that it has settled.
    until: i64,
    /// What no seal holds yet, and what nobody has told yet of what one holds.
    open: Vec<News>,
    held: Vec<News>,
    looks: Option<[std::sync::Arc<[u8]>; 2]>,
    awaits_looks: bool,
    sealed: Option<Sealed>,
}

impl Live {
    fn new(id: usize, asked: &Experiment) -> Live {
        let mut pair = Pair::of(id as PairId, asked);
        pair.ledger.keep_taken();
        Live {
            pair,
            until: 0,
            open: Vec::new(),
            held: Vec::new(),
            looks: None,
            awaits_looks: false,
            sealed: None,
        }
    }

    fn seal(&mut self) {
        if !self.awaits_looks {
            self.sealed = Some(Sealed {
                ledger: self.pair.ledger.encode(),
                looks: self.looks.clone(),
                until: self.until,
            });
            self.held.append(&mut self.open);
        }
    }
}

/// Pairs of a process that is killed now and then.
struct World {
    asked: Experiment,
    lists: Vec<List>,
    looks: Looks,
    pairs: Vec<Live>,
    /// On its way from looks to pairs.
    stored: Option<StoredLooks>,
    /// Of this process.
    looked: Vec<Looked>,
}

fn new_looks(asked: &Experiment) -> Looks {
    let mut looks = Looks::new(Rules {
        window: window(3),
        ..rules(asked.clone())
    });
    looks.take(owned(&[0, 1, 2]));
    looks
}

impl World {
    fn new(asked: &Experiment, lists: &[List]) -> World {
        World {
            asked: asked.clone(),
            lists: lists.to_vec(),
            looks: new_looks(asked),
            pairs: (0..N_PAIRS).map(|id| Live::new(id, asked)).collect(),
            stored: None,
            looked: Vec::new(),
        }
    }

    fn advance(&mut self, number: usize, n_slots: i64) {
        let live = &mut self.pairs[number];
        let until = (live.until + n_slots).min(N_SLOTS);
        let is_new = |list: &&List| list.user as usize % N_PAIRS == number && list.slot >= live.until;
        let lists: Vec<List> = self.lists.iter().filter(is_new).copied().collect();
        let news = live.pair.settle(&lists, until);
        live.until = until;
        live.open.push(news);
    }

    fn tell(&mut self, number: usize) {
        for news in std::mem::take(&mut self.pairs[number].held) {
            self.looks.take(news);
            self.looked.extend(all(&mut self.looks));
        }
    }

    /// What looks have told before is stored from now on.
    fn store(&mut self) {
        let now = self.looks.stored();
        let Some(stored) = std::mem::replace(&mut self.stored, now) else {
            return;
        };
        for (id, stored_pair) in stored.pairs {
            let live = &mut self.pairs[id as usize];
            live.looks = Some([stored_pair.users, stored.sequences.clone()]);
            live.awaits_looks = false;
            live.pair.ledger.let_go(0, stored_pair.cells_from);
        }
    }

    fn kill(&mut self) -> Vec<Looked> {
        self.stored = None;
        self.looks = new_looks(&self.asked);
        for number in 0..N_PAIRS {
            let sealed = self.pairs[number].sealed.take();
            self.pairs[number] = Live::new(number, &self.asked);
            if let Some(sealed) = sealed {
                let (pair, resumed) = resumed(number, &sealed, &self.asked);
                self.pairs[number] = Live {
                    pair,
                    until: sealed.until,
                    awaits_looks: resumed.as_of.is_some(),
                    sealed: Some(sealed),
                    ..Live::new(number, &self.asked)
                };
                self.looks.take(News::Resumed(Box::new(resumed)));
            }
        }
        let before = std::mem::take(&mut self.looked);
        self.looked.extend(all(&mut self.looks));
        before
    }
}

fn keep(asked: &Experiment) -> Keep {
    Keep::of_users(
        Users::Of([("e".to_owned(), asked.epochs(LOOK_MS))].into()),
        LOOK_MS,
    )
}

fn resumed(number: usize, sealed: &Sealed, asked: &Experiment) -> (Pair, Resumed) {
    resumed_by(number, sealed, &keep(asked), &ranking())
}

fn resumed_by(number: usize, sealed: &Sealed, keep: &Keep, ranking: &Ranking) -> (Pair, Resumed) {
    let mut ledger = Ledger::decode(&sealed.ledger, ranking, keep).expect("it was encoded");
    ledger.keep_taken();
    let cells = ledger.take_complete(0);
    let n_arms = ledger.arms().len();
    let as_of = sealed
        .looks
        .as_ref()
        .map(|[users, sequences]| AsOf::decode(users, sequences, ranking, n_arms).expect("it was encoded"));
    let resumed = Resumed {
        pair: number as PairId,
        arms: ledger.arms().to_vec(),
        cells,
        until_ms: ledger.until_ms(),
        whole_from_ms: ledger.columns_since_ms(),
        begin_anew: Vec::new(),
        as_of,
    };
    let pair = Pair {
        id: number as PairId,
        n_told: n_arms,
        ledger,
    };
    (pair, resumed)
}

#[derive(Debug, Clone)]
struct Step {
    n_slots: [i64; N_PAIRS],
    seals: [bool; N_PAIRS],
    tells: [bool; N_PAIRS],
    stores: bool,
    is_kill: bool,
}

prop_compose! {
    fn some_step()(
        n_slots in prop::array::uniform3(0..9_i64),
        seals in any::<[bool; N_PAIRS]>(),
        tells in any::<[bool; N_PAIRS]>(),
        stores in any::<bool>(),
        is_kill in prop::bool::weighted(0.15),
    ) -> Step {
        Step { n_slots, seals, tells, stores, is_kill }
    }
}

prop_compose! {
    fn some_list()(slot in 0..N_SLOTS, user in 1..500_u32, arm in 0..2_usize, is_clicked in any::<bool>()) -> List {
        List { is_clicked, ..list(slot, user, ["a", "b"][arm]) }
    }
}

/// Decided soon, by a planned look, with a second epoch.
fn asked() -> Experiment {
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

fn uninterrupted(asked: &Experiment, lists: &[List]) -> BTreeMap<i64, Looked> {
    let mut world = World::new(asked, lists);
    for number in 0..N_PAIRS {
        world.advance(number, N_SLOTS);
        world.pairs[number].seal();
        world.tell(number);
    }
    world
        .looked
        .into_iter()
        .map(|looked| (looked.as_of_ms, looked))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whenever a process is killed, however far each pair was sealed then, and whatever of it was told.
    #[test]
    fn looks_go_on_as_if_nothing_had_been_killed(
        lists in prop::collection::vec(some_list(), 1..2500),
        steps in prop::collection::vec(some_step(), 1..40),
    ) {
        let expected = uninterrupted(&asked(), &lists);
        let mut world = World::new(&asked(), &lists);
        let mut processes = Vec::new();
        for step in steps {
            for number in 0..N_PAIRS {
                world.advance(number, step.n_slots[number]);
                if step.seals[number] {
                    world.pairs[number].seal();
                }
                if step.tells[number] {
                    world.tell(number);
                }
            }
            if step.stores {
                world.store();
            }
            if step.is_kill {
                processes.push(world.kill());
            }
        }
        for number in 0..N_PAIRS {
            world.advance(number, N_SLOTS);
        }
        [(); 2].iter().for_each(|()| world.store());
        for number in 0..N_PAIRS {
            world.pairs[number].seal();
            world.tell(number);
        }
        processes.push(std::mem::take(&mut world.looked));
        let mut last = None;
        for looked in processes.iter().filter(|looked| !looked.is_empty()) {
            let times = times(looked);
            prop_assert!(times.windows(2).all(|two| two[1] == two[0] + 1), "{times:?}");
            let is_next = |last: i64| times[0] <= last + 1;
            prop_assert!(last.is_none_or(is_next), "{times:?} after {last:?}");
            last = last.max(times.last().copied());
            for looked in looked {
                prop_assert_eq!(&looked.experiments, &expected[&looked.as_of_ms].experiments);
            }
        }
        prop_assert_eq!(last, expected.keys().last().map(|ms| ms / LOOK_MS));
    }

    /// Also that the same looks have the same bytes.
    #[test]
    fn what_was_stored_and_goes_on_is_stored_alike(lists in prop::collection::vec(some_list(), 1..1500)) {
        let mut world = World::new(&asked(), &lists);
        all_settle(&mut world, 40);
        let before = world.looks.stored();
        for number in 0..N_PAIRS {
            let live = &mut world.pairs[number];
            let Some(stored) = &before else { return Ok(()) };
            live.looks = Some([stored.pairs[&(number as PairId)].users.clone(), stored.sequences.clone()]);
            live.seal();
        }
        world.kill();
        let after = world.looks.stored().map(|after| StoredLooks { n_news: 0, ..after });
        prop_assert_eq!(after, before.map(|before| StoredLooks { n_news: 0, ..before }));
    }
}

fn all_settle(world: &mut World, n_slots: i64) {
    for number in 0..N_PAIRS {
        world.advance(number, n_slots);
        world.pairs[number].seal();
        world.tell(number);
    }
}

/// Two thousand users, each with a list in every cell.
fn many_lists() -> Vec<List> {
    let lists = (0..2_000_u32 * 12).map(|number| {
        let (user, cell) = (number % 2_000 + 1, i64::from(number / 2_000));
        List {
            is_clicked: (user * 7 + number / 2_000) % 3 == 0,
            ..list(
                cell * SLOTS_A_CELL + i64::from(user % 6),
                user,
                ["a", "b"][user as usize % 2],
            )
        }
    });
    lists.collect()
}

/// A world that was sealed after eight looks.
fn sealed() -> World {
    let mut world = World::new(&asked(), &many_lists());
    all_settle(&mut world, 8 * SLOTS_A_CELL);
    [(); 2].iter().for_each(|()| world.store());
    world.pairs.iter_mut().for_each(Live::seal);
    world
}

fn stored(world: &World) -> [&[u8]; 2] {
    let [users, sequences] = world.pairs[0].looks.as_ref().expect("it was told");
    [&**users, &**sequences]
}

/// So that the claims above are about something.
#[test]
fn decisions_and_the_planned_look_are_among_what_goes_on() {
    let mut world = sealed();
    let before = world.kill();
    assert_eq!(times(&world.looked), [8], "the last look is shown again");
    let last = |looked: &[Looked]| looked.last().map(|looked| looked.experiments["e"].clone());
    assert_eq!(last(&world.looked), last(&before));
    let look = last(&before).expect("there are looks");
    let (_, report) = look.comparison.as_ref().expect("there is a control");
    assert_eq!(report.look, 8);
    let arm = &report.arms["b"];
    assert!(
        arm.decision.is_some() && arm.metrics["hit_rate@1"].p.is_some(),
        "{arm:#?}"
    );
}

#[test]
fn damaged_bytes_are_refused_in_words() {
    let world = sealed();
    let [users, sequences] = stored(&world);
    let decode = |users: &[u8], sequences: &[u8]| {
        let decoded = AsOf::decode(users, sequences, &ranking(), 2);
        decoded.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(decode(users, sequences), Ok(()));
    for cut in 0..sequences.len() {
        assert!(decode(users, &sequences[..cut]).is_err(), "{cut}");
    }
    for cut in (0..users.len()).step_by(7) {
        assert!(decode(&users[..cut], sequences).is_err(), "{cut}");
    }
    let longer = |bytes: &[u8]| [bytes, &[0]].concat();
    let too_long = Err("it is cut off, or longer than it says".to_owned());
    assert_eq!(decode(&longer(users), sequences), too_long);
    assert_eq!(decode(users, &longer(sequences)), too_long);
    let newer = |bytes: &[u8]| [&[2], &bytes[1..]].concat();
    let other_version = Err("it is of a version that this program does not read".to_owned());
    assert_eq!(decode(&newer(users), sequences), other_version);
    assert_eq!(decode(users, &newer(sequences)), other_version);
    let mut later = sequences.to_vec();
    later[1] += 2;
    let of_two_looks = Err("the sums of its users are of another look than its sequences".to_owned());
    assert_eq!(decode(users, &later), of_two_looks);
    let unknown_arm = AsOf::decode(users, sequences, &ranking(), 1).map(drop);
    assert_eq!(
        unknown_arm.map_err(|error| error.to_string()),
        Err("a number in it is none".to_owned())
    );
}

/// What goes on under other rules: what is found, and the first look.
#[track_caller]
fn under(rules: Rules) -> (Vec<Found>, Option<Looked>) {
    let world = sealed();
    let mut looks = Looks::new(rules);
    looks.take(owned(&[0, 1, 2]));
    for (number, live) in world.pairs.iter().enumerate() {
        let sealed = live.sealed.as_ref().expect("it is sealed");
        let (_, resumed) = resumed_by(number, sealed, &keep(&asked()), &looks.rules.ranking);
        looks.take(News::Resumed(Box::new(resumed)));
    }
    (looks.take_found(), looks.look())
}

#[test]
fn tests_begin_anew_over_the_sums_so_far_where_other_things_are_asked() {
    let mut other = asked();
    other.settings = other.settings.map(|settings| Settings {
        alpha: 0.01,
        ..settings
    });
    let (found, looked) = under(rules(other));
    assert_eq!(found, [Found::AsksAnew("e".to_owned())]);
    let look = &looked.expect("it is due").experiments["e"];
    assert_eq!((look.as_of_ms, look.start_ms), (8 * LOOK_MS, 0));
    let (_, report) = look.comparison.as_ref().expect("there is a control");
    assert_eq!(report.look, 1);
    assert_eq!(look.arms["a"].lists + look.arms["b"].lists, 16_000.0);
}

#[test]
fn an_experiment_begins_anew_where_a_metric_is_new_and_goes_on_without_one_that_is_gone() {
    let of = |ks: &[u32]| {
        let ks: Vec<NonZeroU32> = ks.iter().copied().filter_map(NonZeroU32::new).collect();
        Rules {
            ranking: Ranking::new(&Measures::usual(&ks)),
            ..rules(asked())
        }
    };
    let (found, looked) = under(of(&[1, 2]));
    assert_eq!(found, [Found::BeginsAnew("e".to_owned())]);
    assert_eq!(
        looked.expect("it is due").experiments.len(),
        0,
        "it has no list yet"
    );
    let mut fewer = asked();
    let settings = fewer.settings.as_mut().expect("there is a control");
    settings.primary = vec!["mrr".to_owned()];
    let (found, looked) = under(Rules {
        experiments: [("e".to_owned(), fewer)].into(),
        ..of(&[])
    });
    assert_eq!(found, [Found::AsksAnew("e".to_owned())]);
    assert_eq!(
        looked.expect("it is due").experiments["e"].arms["a"].lists,
        8_000.0
    );
}

#[test]
fn what_was_given_up_stays_so_unless_there_is_more_room() {
    let mut world = sealed();
    world.looks.give_up_experiment("e");
    world.looks.rules.max_bytes = 1_000;
    [(); 2].iter().for_each(|()| world.store());
    world.pairs.iter_mut().for_each(Live::seal);
    let under = |max_bytes| {
        let mut looks = Looks::new(Rules {
            max_bytes,
            ..rules(asked())
        });
        looks.take(owned(&[0, 1, 2]));
        for (number, live) in world.pairs.iter().enumerate() {
            let sealed = live.sealed.as_ref().expect("it is sealed");
            looks.take(News::Resumed(Box::new(resumed(number, sealed, &asked()).1)));
        }
        looks.take_found()
    };
    let given_up = Found::GivenUp(GivenUp::Experiment("e".to_owned()));
    assert_eq!(under(1_000), [given_up]);
    assert_eq!(under(1_001), []);
}
