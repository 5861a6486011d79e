//! Tests of ledgers resumed from bytes of a ledger that kept other things.

use std::sync::Arc;

use proptest::sample::{select, subsequence};

use super::*;
use crate::bytes::{Reader, Writer};

/// Metrics measured and data kept.
#[derive(Debug, Clone)]
struct Configuration {
    measures: Measures,
    keep: Keep,
}

impl Configuration {
    fn ranking(&self) -> Ranking {
        Ranking::new(&self.measures)
    }

    fn ledger(&self) -> Ledger {
        Ledger::new(&self.ranking(), &self.keep)
    }

    fn ids(&self) -> Vec<String> {
        self.ranking().ids(self.keep.catalogue)
    }

    fn decode(&self, parts: &EncodedLedger) -> Ledger {
        Ledger::decode(parts, &self.ranking(), &self.keep).expect("it was encoded")
    }
}

fn epochs(start_ms: Option<i64>, later_ms: impl IntoIterator<Item = i64>) -> Epochs {
    Epochs {
        start_ms,
        later_ms: later_ms.into_iter().collect(),
        max_lists: None,
    }
}

fn configuration() -> impl Strategy<Value = Configuration> {
    let ks = subsequence(vec![1, 3, 4], 0..=3);
    let metrics = subsequence(
        vec!["hit_rate", "ndcg", "coverage", "popularity", "alpha_ndcg"],
        1..=5,
    );
    let of = |start: Option<i64>, later: &[i64]| {
        let ms = |slot: i64| slot * SLOT_MS;
        Users::Of(
            [(
                "e".to_owned(),
                epochs(start.map(ms), later.iter().copied().map(ms)),
            )]
            .into(),
        )
    };
    let users = select(vec![
        Users::Nobody,
        Users::Everybody(Epochs::default()),
        of(None, &[]),
        of(None, &[4]),
        of(None, &[4, 6]),
        of(Some(3), &[]),
        of(Some(3), &[5]),
        of(Some(5), &[]),
        Users::Of(BTreeMap::new()),
    ]);
    let spans = subsequence(keep().spans, 0..=2);
    let kept = || select(KeptAggregates::EACH.to_vec());
    let kept = (prop::option::of(kept()), users, spans, kept(), 1..3_u64);
    (ks, metrics, kept).prop_map(|(ks, metrics, (total, users, mut spans, kept, version))| {
        spans.iter_mut().for_each(|span| span.kept = kept);
        let ks: Vec<NonZeroU32> = ks.into_iter().filter_map(NonZeroU32::new).collect();
        Configuration {
            measures: Measures {
                metrics,
                catalogue: true,
                ..Measures::usual(&ks)
            },
            keep: Keep {
                total,
                starts: Starts::default(),
                users,
                spans,
                catalogue: Some(version),
            },
        }
    })
}

/// Numbers by name, and by whether they cover the time since the start.
type ByName = BTreeMap<(bool, String), i128>;

/// Returns all nonzero numbers of a ledger, each with whether `resumed` has it since the start.
fn numbers(ledger: &Ledger, resumed: &Ledger, by: &Configuration) -> ByName {
    let mut all = ByName::new();
    let mut add = |place: String, numbers: Numbers, since: Since| {
        add_numbers(ledger, numbers, by, |what, aggregate_ms, column, number| {
            let column_ms = column.and_then(|column| resumed.column_since_ms(column));
            let since_ms: Option<i64> = aggregate_ms(since).max(column_ms);
            if number != 0 {
                all.insert((since_ms.is_none(), format!("{place}: {what}")), number);
            }
        });
    };
    add("total".to_owned(), ledger.total(), resumed.total_since());
    for (index, span) in by.keep.spans.iter().enumerate() {
        for (number, cell) in ledger.cells(index) {
            let place = format!("{} ms, {number}", span.cell_ms);
            add(place, cell, resumed.cells_since(index));
        }
    }
    all
}

/// Passes each number to `settle_lists` with its name, aggregate and column.
fn add_numbers(
    ledger: &Ledger,
    numbers: Numbers,
    by: &Configuration,
    mut settle_lists: impl FnMut(String, fn(Since) -> Option<i64>, Option<usize>, i128),
) {
    let (ranking, ids) = (by.ranking(), by.ids());
    let name = |id: &ArmId| &ledger.arms()[*id as usize].arm;
    for (arm, sums) in numbers.sums {
        for (column, sum) in sums.iter().enumerate() {
            let what = format!("{} {}", name(arm), ids[column]);
            settle_lists(what, |since| since.sums, Some(column), *sum);
        }
    }
    for (arm, classes) in numbers.seen {
        let columns = ranking.coverage().expect("something was seen").seen.clone();
        for (column, n) in columns.clone().zip(classes.counts(columns.len(), &catalogue())) {
            let what = format!("{} {}", name(arm), ids[column]);
            settle_lists(what, |since| since.seen, Some(column), n.into());
        }
    }
    for (arm, buckets) in numbers.buckets {
        for (bucket, sums) in buckets.rows() {
            let sums: Vec<i128> = sums.iter().collect();
            let (clicked, sums) = sums.split_last().expect("a bucket has columns");
            for (column, sum) in sums.iter().enumerate() {
                let what = format!("{} {bucket} {}", name(arm), ids[column]);
                settle_lists(what, |since| since.buckets, Some(column), *sum);
            }
            let what = format!("{} {bucket} clicked", name(arm));
            settle_lists(what, |since| since.buckets, None, *clicked);
        }
    }
    for (arm, exposed) in numbers.exposures {
        for (of, n) in [("first", exposed.first), ("in two", exposed.in_two)] {
            let what = format!("{} {EXPOSED} {of}", name(arm));
            settle_lists(what, |since| since.exposures, None, n.into());
        }
    }
}

/// Part of the name of every number of exposures.
const EXPOSED: &str = "exposed";

/// Returns the expected new numbers. `rest` is a ledger that starts there, `whole` has all lists, and `before` has the earlier
/// ones. Exposures are the growth of `whole` since `before`, because users are remembered.
fn started(whole: &ByName, before: &ByName, rest: ByName) -> ByName {
    let is_exposed = |(_, name): &(bool, String)| name.contains(EXPOSED);
    let rest = rest.into_iter().filter(|(key, _)| !is_exposed(key));
    let exposed = whole.iter().filter(|(key, _)| is_exposed(key));
    let grown = exposed.map(|(key, n)| (key.clone(), n - before.get(key).unwrap_or(&0)));
    let all = rest.chain(grown);
    all.filter(|((continues, _), n)| !continues && *n != 0).collect()
}

proptest! {
    /// Whatever both configurations keep looks as if the second one had been used from the start. Anything new looks as if its
    /// ledger had started at the end of the first one. The ledger itself reports which of the two applies to a number.
    #[test]
    fn shared_aggregates_continue_and_new_ones_start(
        (first, second) in (configuration(), configuration()),
        lists in prop::collection::vec(list(), 0..40),
        n_before in 0..=N_SLOTS,
    ) {
        let catalogue = catalogue();
        let mut before = first.ledger();
        settle_lists(&mut before, &lists, 0..n_before, &catalogue);
        let mut resumed = second.decode(&before.encode());
        let until_ms = resumed.until_ms();
        prop_assert_eq!(until_ms, before.until_ms());
        settle_lists(&mut resumed, &lists, n_before..N_SLOTS, &catalogue);
        // Ends pending slots that are ended together.
        let end_ms = Some((N_SLOTS + 1) * SLOT_MS);
        resumed.cover_until(end_ms);

        // Expect the users that the resumed ledger tracks, not the configured ones.
        let mut expected = second.clone();
        expected.keep.users = resumed.users.clone();
        let [whole, early, rest] = [0..N_SLOTS, 0..n_before, n_before..N_SLOTS].map(|slots| {
            let mut ledger = expected.ledger();
            settle_lists(&mut ledger, &lists, slots, &catalogue);
            ledger.cover_until(end_ms);
            numbers(&ledger, &resumed, &second)
        });
        let started = started(&whole, &early, rest);
        let whole = whole.into_iter().filter(|((continues, _), _)| *continues);
        prop_assert_eq!(numbers(&resumed, &resumed, &second), whole.chain(started).collect());

        let (ids, stored) = (second.ids(), first.ids());
        let seen = second.ranking().coverage().map_or(0..0, |columns| columns.seen.clone());
        let were_seen = ids[seen.clone()].iter().all(|id| stored.contains(id));
        for (column, id) in ids.iter().enumerate() {
            let continues = stored.contains(id) && (were_seen || !seen.contains(&column));
            prop_assert_eq!(resumed.column_since_ms(column), until_ms.filter(|_| !continues), "{}", id);
        }
        let new = |kept: Option<KeptAggregates>, by_user| until_ms.filter(|_| !kept.is_some_and(|kept| kept.has(by_user)));
        if second.keep.total.is_some_and(|kept| kept.has(false)) {
            prop_assert_eq!(resumed.total_since().sums, new(first.keep.total, false));
        }
        if second.keep.total.is_some_and(|kept| kept.has(true)) {
            prop_assert_eq!(resumed.total_since().buckets, new(first.keep.total, true));
        }
        for (index, span) in second.keep.spans.iter().enumerate() {
            let is_same = |before: &&Span| (before.kept, before.cell_ms) == (span.kept, span.cell_ms);
            let before = first.keep.spans.iter().find(is_same).map(|span| span.kept);
            if span.kept.has(false) {
                prop_assert_eq!(resumed.cells_since(index).sums, new(before, false));
            }
            if span.kept.has(true) {
                prop_assert_eq!(resumed.cells_since(index).buckets, new(before, true));
            }
        }

        let bytes = resumed.encode();
        let mut again = second.decode(&bytes);
        prop_assert_eq!(again.encode(), bytes);
        prop_assert_eq!(numbers(&again, &again, &second), numbers(&resumed, &resumed, &second));
    }
}

proptest! {
    /// A total has all slots since the start of its experiment, or since it restarted if the earlier ones were not kept.
    #[test]
    fn a_total_has_all_slots_since_its_start(
        lists in prop::collection::vec(list(), 0..40),
        starts in prop::array::uniform2(prop::option::of(-1..N_SLOTS + 1)),
        n_before in 0..=N_SLOTS,
    ) {
        let (ranking, catalogue) = (ranking(), catalogue());
        let keep = |start: Option<i64>| Keep {
            starts: start.into_iter().map(|slot| ("e".to_owned(), slot * SLOT_MS)).collect(),
            ..keep()
        };
        let mut before = Ledger::new(&ranking, &keep(starts[0]));
        settle_lists(&mut before, &lists, 0..n_before, &catalogue);
        let parts = before.encode();
        let mut resumed = Ledger::decode(&parts, &ranking, &keep(starts[1])).expect("it was encoded");
        settle_lists(&mut resumed, &lists, n_before..N_SLOTS, &catalogue);
        let start_ms = resumed.total_start_ms("e");
        let counted: Vec<List> = lists.iter().filter(|list| Some(list.slot * SLOT_MS) >= start_ms).cloned().collect();
        let counted = reported(&counted, &ranking, &catalogue);
        let sums = |ledger: &Ledger| -> BTreeMap<Arm, Box<[i128]>> {
            let named = ledger.total().sums.iter();
            named.map(|(arm, sums)| (ledger.arms()[*arm as usize].clone(), sums.clone())).collect()
        };
        prop_assert_eq!(sums(&resumed), sums(&counted));
    }
}

fn of_arm(slot: i64, n: u8) -> List {
    List {
        slot,
        arms: vec![n],
        clicked: 0b11,
        first: 1,
    }
}

/// Encodes a ledger that ends at slot 4.
fn stored() -> EncodedLedger {
    let mut ledger = Ledger::new(&ranking(), &keep());
    settle_lists(&mut ledger, &[of_arm(0, 1), of_arm(3, 2)], 0..4, &catalogue());
    ledger.encode()
}

fn decoded(parts: &EncodedLedger) -> Result<Ledger, LedgerError> {
    Ledger::decode(parts, &ranking(), &keep())
}

/// Names of the aggregates in the order of their encoding.
const IDS: [&str; 8] = [
    "sums",
    "seen",
    "buckets",
    "exposures",
    "units",
    "refused",
    "frequent",
    "latest",
];

/// Encodes the names of the aggregates without the last `n_left_out`.
fn names(n_left_out: usize) -> Vec<u8> {
    let ids = &IDS[..IDS.len() - n_left_out];
    let named = ids
        .iter()
        .flat_map(|id| [&[id.len() as u8], id.as_bytes(), &[1]].concat());
    std::iter::once(ids.len() as u8).chain(named).collect()
}

/// Returns where the data of aggregates starts in a part.
fn begin(part: Part, bytes: &[u8]) -> usize {
    if part != Part::Head {
        return 0;
    }
    let names = names(0);
    let found = bytes.windows(names.len()).position(|window| window == names);
    found.expect("they are there") + names.len()
}

/// Replaces the names of the aggregates, and changes their data in each part.
fn with_aggregates(parts: &EncodedLedger, names_now: &[u8], change: impl Fn(&mut Vec<u8>)) -> EncodedLedger {
    let of_part = |(part, bytes): (&Part, &Arc<[u8]>)| {
        let part = *part;
        if matches!(part, Part::Arms(_)) {
            return (part, Arc::clone(bytes));
        }
        let (before, own) = bytes.split_at(begin(part, bytes));
        let mut own = own.to_vec();
        change(&mut own);
        let n_kept = before.len() - if part == Part::Head { names(0).len() } else { 0 };
        let names_now = if part == Part::Head { names_now } else { &[] };
        (part, [&before[..n_kept], names_now, &own].concat().into())
    };
    parts.iter().map(of_part).collect()
}

#[test]
fn a_newer_version_of_an_aggregate_is_refused_by_its_name() {
    for id in IDS {
        let mut newer = names(0);
        let at = newer.windows(id.len()).position(|window| window == id.as_bytes());
        newer[at.expect("it is there") + id.len()] += 1;
        let error = decoded(&with_aggregates(&stored(), &newer, |_| ())).expect_err("it is newer");
        assert!(error.to_string().contains(&format!("`{id}`")), "{error}");
    }
}

#[test]
fn a_removed_aggregate_is_dropped() {
    let mut expected = decoded(&stored()).expect("it was encoded");
    let gone = [&[9], &names(0)[1..], &[4, b'g', b'o', b'n', b'e', 7]].concat();
    let parts = with_aggregates(&stored(), &gone, |bytes| bytes.extend([2, 0xff, 0xff]));
    let mut ledger = decoded(&parts).expect("what is gone is no damage");
    assert_eq!(ledger.encode(), expected.encode());
    // A name that occurs twice is damage.
    let twice = [&[10], &gone[1..], &gone[gone.len() - 6..]].concat();
    let parts = with_aggregates(&stored(), &twice, |bytes| bytes.extend([0, 0]));
    assert_eq!(decoded(&parts).err(), Some(LedgerError::Number));
}

/// Removes the last of several values, each preceded by its length.
fn leave_out_the_last(bytes: &mut Vec<u8>) {
    let mut from = Reader::new(bytes);
    let mut to = Writer::default();
    for _ in 1..IDS.len() {
        let own = from.part().expect("there are as many");
        to.part(|to| to.bytes(own.rest()));
    }
    *bytes = to.into_bytes();
}

/// Imitates a ledger stored before the aggregate `latest` was introduced.
#[test]
fn a_new_aggregate_starts_at_the_end_of_the_stored_ledger() {
    let parts = with_aggregates(&stored(), &names(1), leave_out_the_last);
    let mut ledger = decoded(&parts).expect("it was not there yet");
    let end = Some(4 * SLOT_MS);
    for since in [ledger.total_since(), ledger.cells_since(0)] {
        let expected = Since {
            sums: None,
            seen: None,
            buckets: None,
            exposures: None,
            units: None,
            refused: None,
            frequent: None,
            latest: end,
        };
        assert_eq!(since, expected);
    }
    assert!(ledger.total().latest.is_empty());
    settle_lists(&mut ledger, &[of_arm(4, 1)], 4..5, &catalogue());
    assert_eq!(ledger.total().latest.len(), 1);
    assert_eq!(ledger.total().sums.len(), 2);
}

#[test]
fn a_longer_span_starts_with_the_oldest_stored_cell() {
    let bytes = stored();
    let mut longer = keep();
    longer.spans[0].n_cells = Some(5);
    let mut ledger = Ledger::decode(&bytes, &ranking(), &longer).expect("it was encoded");
    // Of slots 0 to 3, the newest three were kept.
    let oldest = Some(SLOT_MS);
    assert_eq!(ledger.cells_since(0).sums, oldest);
    assert_eq!(ledger.cells_since(1).sums, None);
    let numbers = |ledger: &Ledger| ledger.cells(0).map(|(number, _)| number).collect::<Vec<_>>();
    assert_eq!(numbers(&ledger), [1, 2, 3]);
    let mut shorter = keep();
    shorter.spans[0].n_cells = Some(2);
    let ledger = Ledger::decode(&ledger.encode(), &ranking(), &shorter).expect("it was encoded");
    assert_eq!(
        (numbers(&ledger), ledger.cells_since(0).sums),
        (vec![2, 3], oldest)
    );
}

#[test]
fn new_users_and_users_with_a_later_start_restart() {
    let of = |experiment: &str, start_ms| (experiment.to_owned(), epochs(start_ms, []));
    let wanted = |e_ms, f_ms| Users::Of([of("e", e_ms), of("f", f_ms)].into());
    let everybody = |start_ms| Users::Everybody(epochs(start_ms, []));
    let stored = wanted(Some(10), None);
    for (asked, resumed) in [
        (wanted(Some(10), None), wanted(Some(10), None)),
        // Earlier slots were not kept.
        (wanted(Some(5), None), wanted(Some(10), None)),
        (wanted(Some(11), Some(20)), wanted(Some(40), Some(40))),
        (wanted(Some(50), None), wanted(Some(50), None)),
        (
            Users::Of([of("g", Some(1))].into()),
            Users::Of([of("g", Some(40))].into()),
        ),
        (everybody(None), everybody(Some(40))),
        (Users::Nobody, Users::Nobody),
    ] {
        assert_eq!(asked.resumed(&stored, Some(40)), resumed, "{asked:?}");
        let stays = |experiment: &str| {
            let [stored, resumed] = [&stored, &resumed].map(|users| users.epochs(experiment));
            stored.map(|epochs| epochs.start_ms) == resumed.map(|epochs| epochs.start_ms)
        };
        for experiment in ["e", "f", "g"] {
            let continues = asked.can_resume(&stored, experiment, Some(40));
            assert_eq!(continues, stays(experiment), "{asked:?}, {experiment}");
        }
    }
}

#[test]
fn users_continue_if_the_started_epochs_are_unchanged() {
    for (stored, asked, continues) in [
        (vec![20, 60], vec![20, 60], true),
        (vec![20, 60], vec![20], true),
        (vec![20], vec![20, 40], true),
        (vec![20], vec![20, 39], false),
        (vec![20, 39], vec![20], false),
        (vec![], vec![20], false),
        (vec![20], vec![30], false),
    ] {
        let [stored_users, users] = [&stored, &asked].map(|later_ms| {
            let epochs = epochs(None, later_ms.iter().copied());
            Users::Of([("e".to_owned(), epochs)].into())
        });
        assert_eq!(
            users.can_resume(&stored_users, "e", Some(40)),
            continues,
            "{stored:?} {asked:?}"
        );
        let resumed = users.resumed(&stored_users, Some(40)).epochs("e");
        let start_ms = (!continues).then_some(40);
        assert_eq!(resumed, Some(epochs(start_ms, asked)), "{stored:?}");
    }
}

/// Settles a list of user 1 in an arm of each experiment.
fn settle_for_both(ledger: &mut Ledger, slot: i64) {
    let start_ms = slot * SLOT_MS;
    settle_empty(ledger, start_ms, &[0, 1]);
    ledger.take(Settled::Slot {
        start_ms,
        end_ms: start_ms + SLOT_MS,
    });
}

#[test]
fn users_restart_only_in_experiments_with_changed_epochs() {
    let of = |e, f| Keep {
        users: Users::Of([("e".to_owned(), e), ("f".to_owned(), f)].into()),
        ..keep()
    };
    let ranking = ranking();
    let mut ledger = Ledger::new(&ranking, &of(Epochs::default(), Epochs::default()));
    let other = Arm {
        experiment: "f".into(),
        ..arm(0)
    };
    ledger.admit(&[arm(0), other]);
    settle_for_both(&mut ledger, 0);
    // The epoch of `e` has started, the epoch of `f` has not.
    let changed = of(epochs(None, [0]), epochs(None, [5 * SLOT_MS]));
    let mut ledger = Ledger::decode(&ledger.encode(), &ranking, &changed).expect("it was encoded");
    let first = |ledger: &Ledger| -> Vec<(ArmId, u64)> {
        let exposures = ledger.total().exposures.iter();
        exposures.map(|(arm, exposed)| (*arm, exposed.first)).collect()
    };
    assert_eq!(first(&ledger), [(1, 1)]);
    settle_for_both(&mut ledger, 1);
    assert_eq!(first(&ledger), [(0, 1), (1, 1)]);
    let starts = ["e", "f"].map(|experiment| ledger.users_since_ms(experiment));
    assert_eq!(starts, [Some(SLOT_MS), Some(i64::MIN)]);
}

#[test]
fn forgotten_users_restart_once_configured_again() {
    let (mut ledger, ranking, catalogue) = (Ledger::new(&ranking(), &keep()), ranking(), catalogue());
    let of = |users| Keep { users, ..keep() };
    let named = of(Users::Of([("e".to_owned(), Epochs::default())].into()));
    ledger = Ledger::decode(&ledger.encode(), &ranking, &named).expect("it was encoded");
    settle_lists(&mut ledger, &[of_arm(0, 1)], 0..4, &catalogue);
    ledger.forget_users("e");
    let bytes = ledger.encode();
    let mut without =
        Ledger::decode(&bytes, &ranking, &of(Users::Of(BTreeMap::new()))).expect("it was encoded");
    assert_eq!(without.encode(), bytes, "what there was stays");
    assert_eq!(without.users_since_ms("e"), None);
    let again = Ledger::decode(&bytes, &ranking, &named).expect("it was encoded");
    assert_eq!(again.users_since_ms("e"), Some(4 * SLOT_MS));
    assert!(again.total().exposures.is_empty() && again.total().buckets.is_empty());
    assert_eq!(again.total().sums.len(), 1);
}

/// Between two slots no open data would still need them.
#[test]
fn forgotten_users_are_not_encoded() {
    let users = Users::Of([("e".to_owned(), Epochs::default())].into());
    let mut ledger = Ledger::new(&ranking(), &Keep { users, ..keep() });
    settle_lists(&mut ledger, &[of_arm(0, 1)], 0..1, &catalogue());
    let n_bytes = |parts: &EncodedLedger| parts.values().map(|bytes| bytes.len()).sum::<usize>();
    let known = n_bytes(&ledger.encode());
    ledger.forget_users("e");
    let bytes = ledger.encode();
    settle_lists(&mut ledger, &[], 0..1, &catalogue());
    assert_eq!(ledger.encode(), bytes, "there is nothing left to forget");
    assert!(n_bytes(&bytes) < known);
}

/// Two pairs need not have been resumed at the same time.
#[test]
fn merged_sums_start_at_the_later_start() {
    let less = Configuration {
        measures: Measures::usual(&[]),
        keep: keep(),
    };
    let of = |until| {
        let mut ledger = less.ledger();
        settle_lists(&mut ledger, &[of_arm(0, 1)], 0..until, &catalogue());
        decoded(&ledger.encode()).expect("it was encoded")
    };
    let mut merged = of(3);
    merged.merge(&mut of(2));
    let last = ranking().width() - 1;
    assert_eq!(merged.column_since_ms(last), Some(3 * SLOT_MS));
    assert_eq!(merged.column_since_ms(LISTS), None);
}

proptest! {
    /// The counted lists of a user do not depend on where the pair was cut.
    #[test]
    fn a_cap_keeps_its_count_after_a_restart(
        lists in prop::collection::vec(list(), 0..60), cut in 0..N_SLOTS, max_lists in 1_u32..4,
    ) {
        let epochs = Epochs {
            max_lists: NonZeroU32::new(max_lists),
            ..Epochs::default()
        };
        let keep = Keep {
            users: Users::Everybody(epochs),
            ..keep()
        };
        let ledger = |slots| {
            let mut ledger = Ledger::new(&ranking(), &keep);
            settle_lists(&mut ledger, &lists, slots, &catalogue());
            ledger
        };
        let whole = ledger(0..N_SLOTS);
        let parts = ledger(0..cut).encode();
        let mut resumed = Ledger::decode(&parts, &ranking(), &keep).expect("it was encoded");
        settle_lists(&mut resumed, &lists, cut..N_SLOTS, &catalogue());
        prop_assert_eq!(resumed.total().buckets, whole.total().buckets);
        prop_assert_eq!(resumed.total().units, whole.total().units);
        // These sums cannot be resumed under another cap.
        let other = Keep {
            users: Users::Everybody(Epochs {
                max_lists: NonZeroU32::new(max_lists + 1),
                ..Epochs::default()
            }),
            ..keep
        };
        let restarted = Ledger::decode(&parts, &ranking(), &other).expect("what is gone is no damage");
        prop_assert!(restarted.total().buckets.is_empty());
    }
}
