//! `abgauge evaluate`: the daemon's engine over files, one window over everything.
//!
//! Lateness and the bound on the future are off, attribution holds, and all lists count as settled. The order of lines does not
//! matter, except between lists that contradict each other: the first one counts. So an [`Evaluator`] keeps every list to the end
//! of the input. [`evaluate_files`] settles lists as it goes if the files are ordered by time, with the same numbers.
//!
//! By other conventions, cut-offs and with a catalogue:
//!
//! ```
//! use std::num::NonZeroU32;
//! use std::sync::Arc;
//!
//! use abgauge_core::metrics::{Measures, Profile};
//! use abgauge_core::evaluate::{Evaluator, Options, read_catalogue};
//!
//! let events = r#"
//! {"type":"served","request_id":"r-1","ts":1763596800000,"experiments":{"ranker":"neural"},"items":["a","b","c"]}
//! {"type":"served","request_id":"r-2","ts":1763596801000,"experiments":{"ranker":"neural"},"items":["d","e"]}
//! {"type":"click","request_id":"r-1","ts":1763596805000,"item":"b"}
//! "#;
//! let ks: Vec<NonZeroU32> = [2].into_iter().filter_map(NonZeroU32::new).collect();
//! let mut options = Options {
//!     measures: Measures {
//!         profiles: ["default", "ranx"].into_iter().filter_map(Profile::named).collect(),
//!         metrics: vec!["map", "coverage"],
//!         ..Measures::usual(&ks)
//!     },
//!     ..Options::default()
//! };
//! let items = "{\"item\":\"a\"}\n{\"item\":\"b\"}\n{\"item\":\"d\"}\n{\"item\":\"f\"}";
//! options.catalogue = Some(Arc::new(read_catalogue(items.as_bytes(), &options)?));
//! let mut evaluator = Evaluator::new(&options);
//! evaluator.read("events", events.as_bytes())?;
//! let evaluation = evaluator.finish();
//! let value = |profile, key| evaluation.value_of(profile, "ranker", "neural", key);
//! assert_eq!(value("default", "map@2"), Some(0.25)); // (1/2 + 0) ÷ 2: every list counts
//! assert_eq!(value("ranx", "map@2"), Some(0.5)); // lists with a click alone
//! assert_eq!(value("default", "coverage@2"), Some(0.75)); // a, b and d of four
//! # Ok::<(), anyhow::Error>(())
//! ```

mod comparison;
mod directories;
mod evaluation;
mod groups;
mod ordered;
mod reading;
mod report;
pub mod source;

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::num::NonZeroU32;
use std::path;
use std::sync::Arc;

use self::reading::RecordReader;
use crate::decode::catalogue::{self, CatalogueError};
use crate::decode::schema::RawRecord;
use crate::decode::shape::{Path, Shape};
use crate::decode::{Decoder, NoUser, UserKey};
use crate::engine::event::{Batch, Kind, Side};
use crate::engine::outcome::ClickResult;
use crate::engine::settling::Settled;
use crate::engine::{Arm, Engine, RefusedArm, Rules};
use crate::ledger::{Epochs, Keep, KeptAggregates, Ledger, Numbers, Span, Starts, Users};
use crate::metrics::catalogue::Catalogue;
use crate::metrics::{Measures, Ranking};
use comparison::{Beside, ComparisonInputs};
pub use comparison::{Compare, ExperimentComparison, HalfTotals};
pub use evaluation::{Evaluation, GroupNumbers, GroupedNumbers, TotalsByArm};
pub use groups::{ABSENT, OTHER_GROUPS};
pub use ordered::{Progress, evaluate_files};
pub use report::Report;

/// Records counted at a time.
const BATCH: usize = 4096;
/// Span that settles at once, unless the series needs a shorter one: with few lists, a shorter slot takes more memory than its
/// lists.
const SETTLE_MS: i64 = 60 * 60 * 1000;
/// The same if lists settle as the input is read: a shorter span leaves memory sooner.
const SETTLE_ORDERED_MS: i64 = 5 * 60 * 1000;
/// An event that is older than the newest one by more than this is out of order.
const ORDER_TOLERANCE_MS: i64 = 10 * 60 * 1000;
/// More than any time that an event may have: switches a bound off.
const UNBOUNDED_MS: i64 = 10_000_000_000_000;

/// Rules for joining and counting. The defaults are the daemon's, so the same events give the same bits.
#[derive(Debug, Clone)]
pub struct Options {
    /// The shape of events; `None`: our own.
    pub shape: Option<Shape>,
    pub measures: Measures,
    /// Catalogue for the metrics that need one; see [`read_catalogue`]. It replaces `measures.catalogue`.
    pub catalogue: Option<Arc<Catalogue>>,
    /// A click counts up to this long after its list.
    pub attribution_ms: i64,
    /// A click counts from this long before its list.
    pub click_skew_ms: i64,
    /// A list of the same request id and a time no farther away is a copy.
    pub same_list_ms: i64,
    pub slot_ms: i64,
    /// A longer list is unreadable.
    pub max_items: u32,
    /// A list in more experiments is unreadable.
    pub max_experiments: u32,
    /// Maximum number of lists of its request id that a click counts for, lowest offsets first; at least 1.
    pub max_lists_per_click: u32,
    /// Distinct off-list items remembered for each list.
    pub max_off_list: u32,
    pub hash_seed: u64,
    /// Key for hashing users.
    pub user_key: UserKey,
    /// Ids that mean that a user is not known.
    pub no_user: NoUser,
    /// Bytes of lists and clicks that are kept; beyond it records are shed.
    pub max_state_bytes: u64,
    /// Share of lists that may be copies with other items or arms before a warning appears.
    pub max_duplicate_share: f64,
    /// Share of an arm's lists that one user may have before a warning appears, if arms are compared.
    pub max_user_share: f64,
    /// Length of spans with numbers of their own, by the time of lists; a multiple of the slot.
    pub span_ms: Option<i64>,
    /// Comparison of arms with their control; `None`: no comparison.
    pub compare: Option<Compare>,
    /// Lists count only if each of these fields has this text.
    pub filters: Vec<(Path, String)>,
    /// Field by whose values lists are grouped.
    pub by: Option<GroupBy>,
}

/// Grouping of lists by a field.
#[derive(Debug, Clone)]
pub struct GroupBy {
    pub field: Path,
    /// Maximum number of values with a group of their own: the first ones.
    pub max_groups: usize,
}

impl Default for Options {
    fn default() -> Options {
        let ks: Vec<NonZeroU32> = [1, 5, 10].into_iter().filter_map(NonZeroU32::new).collect();
        Options {
            shape: None,
            measures: Measures::usual(&ks),
            catalogue: None,
            attribution_ms: 30 * 60_000,
            click_skew_ms: 0,
            same_list_ms: 30 * 60_000,
            slot_ms: 5_000,
            max_items: 1_000,
            max_experiments: 100,
            max_lists_per_click: 32,
            max_off_list: 1_000,
            hash_seed: 0,
            user_key: UserKey::of("", 0),
            no_user: NoUser::default(),
            max_state_bytes: u64::MAX,
            max_duplicate_share: 0.1,
            max_user_share: 0.05,
            span_ms: None,
            compare: None,
            filters: Vec::new(),
            by: None,
        }
    }
}

impl Options {
    /// Decoder with these bounds and our own shape.
    pub fn decoder(&self) -> Decoder {
        Decoder::new(self.hash_seed, self.max_items, self.max_experiments)
            .knowing_users_by(self.user_key)
            .without_users(self.no_user.clone())
    }
}

/// Reads a catalogue for these options: JSON lines such as `{"item":"i1","aspects":["a3"],"users":12,"of_users":200}`.
///
/// # Errors
/// At the first line that cannot be read; it is named.
pub fn read_catalogue(input: impl BufRead, options: &Options) -> Result<Catalogue, CatalogueError> {
    catalogue::read(input, &options.decoder(), None)
}

/// Lines that could not be read for one reason.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct UnreadableLines {
    pub n: u64,
    /// The first of them, as `FILE:LINE`.
    pub places: Vec<String>,
}

/// Order of events by time, which decides when lists settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeOrder {
    /// Events of any time may follow, so every list is kept to the end of the input.
    None,
    /// Events follow each other within [`ORDER_TOLERANCE_MS`].
    Together,
    /// The same among lists, and among clicks.
    BySide,
}

/// Reads files one after the other into one engine.
pub struct Evaluator {
    records: RecordReader,
    engine: Engine,
    /// Numbers of settled lists.
    ledger: Ledger,
    /// Totals of complete spans by their start.
    spans: BTreeMap<i64, TotalsByArm>,
    ranking: Ranking,
    catalogue: Option<Arc<Catalogue>>,
    span_ms: Option<i64>,
    compare: Option<Compare>,
    max_state_bytes: u64,
    max_duplicate_share: f64,
    max_user_share: f64,
}

impl Evaluator {
    pub fn new(options: &Options) -> Evaluator {
        Evaluator::for_order(options, TimeOrder::None)
    }

    fn for_order(options: &Options, order: TimeOrder) -> Evaluator {
        let ranking = ranking(options);
        let keep = Keep {
            total: Some(KeptAggregates::All),
            starts: Starts::default(),
            users: match &options.compare {
                Some(compare) => Users::Everybody(Epochs {
                    max_lists: compare.max_lists_per_user,
                    ..Epochs::default()
                }),
                None => Users::Nobody,
            },
            spans: spans(options.span_ms),
            catalogue: None,
        };
        Evaluator {
            records: RecordReader::new(options, &ranking, Side::Served),
            engine: new_engine(options, &ranking, order),
            ledger: Ledger::new(&ranking, &keep),
            spans: BTreeMap::new(),
            ranking,
            catalogue: options.catalogue.clone(),
            span_ms: options.span_ms,
            compare: options.compare.clone(),
            max_state_bytes: options.max_state_bytes,
            max_duplicate_share: options.max_duplicate_share,
            max_user_share: options.max_user_share,
        }
    }

    /// Reads a file, or standard input for `-`; `watch` is called with the bytes as they are read.
    ///
    /// # Errors
    /// Where it cannot be read to its end: see [`source::read`].
    pub fn read_file(&mut self, path: &path::Path, watch: &dyn Fn(u64)) -> anyhow::Result<()> {
        self.read_file_of(None, path, watch)
    }

    /// Reads a file like [`Evaluator::read_file`]. All of its records are of `kind`, if there is one.
    ///
    /// # Errors
    /// Where it cannot be read to its end: see [`source::read`].
    pub fn read_file_of(
        &mut self,
        kind: Option<Kind>,
        path: &path::Path,
        watch: &dyn Fn(u64),
    ) -> anyhow::Result<()> {
        let watch = |n_bytes| {
            watch(n_bytes);
            Ok(())
        };
        let Evaluator {
            records,
            engine,
            max_state_bytes,
            ..
        } = self;
        records.read_file(kind, path, &watch, |records| {
            count_if_full(engine, &mut records.batch, *max_state_bytes);
        })?;
        self.count();
        Ok(())
    }

    /// Reads a stream, packed or not; `name` stands for it in messages.
    ///
    /// # Errors
    /// Where it cannot be read to its end.
    pub fn read(&mut self, name: &str, input: impl Read) -> anyhow::Result<()> {
        let Evaluator {
            records,
            engine,
            max_state_bytes,
            ..
        } = self;
        records.read_stream(name, input, |records| {
            count_if_full(engine, &mut records.batch, *max_state_bytes);
        })?;
        self.count();
        Ok(())
    }

    /// Reads one record. `kind` is the kind of events in its topic, `None` for both. Messages contain `name` and `line`.
    pub fn read_record<'a>(
        &mut self,
        kind: Option<Kind>,
        name: &str,
        line: u64,
        record: impl Into<RawRecord<'a>>,
    ) {
        self.records.read(record.into(), kind, name, line);
        count_if_full(&mut self.engine, &mut self.records.batch, self.max_state_bytes);
    }

    fn count(&mut self) {
        count(&mut self.engine, &mut self.records.batch, self.max_state_bytes);
    }

    /// Adds up the lists that the engine has settled, if lists settle as they are read.
    fn settle_passed(&mut self) {
        if !self.engine.has_settled() {
            return;
        }
        let Evaluator { engine, ledger, .. } = self;
        ledger.admit(&engine.arms()[ledger.arms().len()..]);
        let arms = engine.arms().to_vec();
        let totals = |numbers: Numbers<'_>| {
            evaluation::totals(numbers, &arms, &self.ranking, self.catalogue.as_deref())
        };
        engine.visit_settled(usize::MAX, |settled| {
            take(ledger, settled, self.span_ms, &totals, &mut self.spans);
        });
    }

    /// Settles everything.
    pub fn finish(mut self) -> Evaluation {
        self.count();
        self.engine.close_gathered();
        let mut ledger = self.ledger;
        ledger.admit(&self.engine.arms()[ledger.arms().len()..]);
        let refused = self.engine.take_refused();
        refused.iter().for_each(|list| ledger.refuse(list));
        let arms = self.engine.arms().to_vec();
        let mut unlisted: BTreeMap<Arm, u64> = BTreeMap::new();
        for list in refused {
            if let RefusedArm::Unlisted(arm) = list.arm {
                *unlisted.entry(arm).or_default() += 1;
            }
        }
        // Most of them were accepted later in the file.
        arms.iter().for_each(|arm| _ = unlisted.remove(arm));
        let totals = |numbers: Numbers<'_>| {
            evaluation::totals(numbers, &arms, &self.ranking, self.catalogue.as_deref())
        };
        let mut beside = Beside::default();
        let mut account = self.records.account;
        if let Some((n_lists, n_without_arm)) = self.engine.n_gathered() {
            (account.n_lists, account.n_lists_without_arm) = (n_lists, n_without_arm);
        }
        let compared = self.compare.as_ref().map(|compare| ComparisonInputs {
            arms: &arms,
            ranking: &self.ranking,
            compare,
            max_user_share: self.max_user_share,
        });
        let half_ms = account
            .served_ms
            .map(|(first_ms, last_ms)| first_ms + (last_ms - first_ms) / 2);
        let halfway = compared.filter(|compared| compared.compare.halfway).zip(half_ms);
        let (mut half, mut done_ms) = (None, i64::MIN);
        let see = |settled: &Settled, ledger: &Ledger| match settled {
            Settled::List(list) => {
                if compared.is_some() {
                    beside.see(list);
                }
                if let Some((compared, half_ms)) = halfway.filter(|(_, half_ms)| list.start_ms >= *half_ms) {
                    half.get_or_insert_with(|| compared.half(ledger.total(), half_ms.max(done_ms)));
                }
            }
            Settled::Slot { end_ms, .. } => done_ms = *end_ms,
            Settled::Refused { .. } => {}
        };
        let mut spans = self.spans;
        spans.extend(settle(&mut self.engine, &mut ledger, self.span_ms, &totals, see));
        let changes = self.engine.take_changes();
        let (mut counts, overflowed) = (changes.counts, changes.overflowed);
        counts.count_results(ClickResult::Undecided, self.engine.n_waiting());
        let total = totals(ledger.total());
        let comparisons = compared.map(|compared| compared.comparisons(ledger.total(), &beside, half));
        let exact = !overflowed && !ledger.overflowed();
        let (n_unselected, n_unselected_clicks, filters, groups) = match self.records.further {
            Some(further) => (
                further.n_unselected,
                further.n_unselected_clicks,
                further.filters,
                further.groups,
            ),
            None => (0, 0, Vec::new(), None),
        };
        Evaluation {
            total,
            span_ms: self.span_ms,
            spans,
            by: groups.map(|groups| groups.finish(self.catalogue.as_ref())),
            comparisons,
            counts,
            n_lists: account.n_lists,
            n_unselected,
            n_unselected_clicks,
            filters,
            n_lists_without_arm: account.n_lists_without_arm,
            n_refused_clicks: account.n_refused_clicks,
            refused_lists: account.refused_lists,
            unlisted,
            float_times: account.float_times,
            exact,
            max_duplicate_share: self.max_duplicate_share,
            max_user_share: self.max_user_share,
            unreadable: account.unreadable,
            long_lines: account.long_lines,
            ranking: self.ranking,
        }
    }
}

/// Settles everything. Returns the totals of each span by its start. `see` is called before the ledger takes what has settled.
fn settle(
    engine: &mut Engine,
    ledger: &mut Ledger,
    span_ms: Option<i64>,
    totals: &dyn Fn(Numbers<'_>) -> TotalsByArm,
    mut see: impl FnMut(&Settled, &Ledger),
) -> BTreeMap<i64, TotalsByArm> {
    let mut spans = BTreeMap::new();
    engine.close_each(|settled| {
        see(&settled, ledger);
        take(ledger, settled, span_ms, totals, &mut spans);
    });
    if let Some(span_ms) = span_ms {
        let rest = ledger.cells(0);
        spans.extend(rest.map(|(number, numbers)| (number * span_ms, totals(numbers))));
    }
    spans
}

/// Adds a list, or a slot, that has settled to the ledger, and the spans that are complete by now.
fn take(
    ledger: &mut Ledger,
    settled: Settled,
    span_ms: Option<i64>,
    totals: &dyn Fn(Numbers<'_>) -> TotalsByArm,
    spans: &mut BTreeMap<i64, TotalsByArm>,
) {
    let is_slot = ledger.take(settled).is_some();
    // Count now: the shown items of a catalogue take more memory than their counts.
    for span_ms in span_ms.iter().filter(|_| is_slot) {
        let complete = ledger.take_complete(0).into_iter();
        spans.extend(complete.map(|(number, cell)| (number * span_ms, totals(cell.numbers()))));
    }
}

fn count_if_full(engine: &mut Engine, batch: &mut Batch, max_state_bytes: u64) {
    if batch.events.len() >= BATCH {
        count(engine, batch, max_state_bytes);
    }
}

fn count(engine: &mut Engine, batch: &mut Batch, max_state_bytes: u64) {
    engine.apply(batch, max_state_bytes);
    batch.clear();
}

/// Returns the columns that are summed.
fn ranking(options: &Options) -> Ranking {
    Ranking::new(&Measures {
        catalogue: options.catalogue.is_some(),
        ..options.measures.clone()
    })
}

/// Returns the spans that a ledger keeps for a series.
fn spans(span_ms: Option<i64>) -> Vec<Span> {
    let span = |cell_ms| Span {
        cell_ms,
        n_cells: None,
        kept: KeptAggregates::All,
    };
    span_ms.map(span).into_iter().collect()
}

/// Creates an engine for events in this order.
fn new_engine(options: &Options, ranking: &Ranking, order: TimeOrder) -> Engine {
    let (lateness_ms, longest_ms) = match order {
        TimeOrder::None => (UNBOUNDED_MS, SETTLE_MS),
        TimeOrder::Together | TimeOrder::BySide => (ORDER_TOLERANCE_MS, SETTLE_ORDERED_MS),
    };
    let rules = Rules {
        attribution_ms: options.attribution_ms,
        click_skew_ms: options.click_skew_ms,
        same_list_ms: options.same_list_ms,
        lateness_ms,
        max_future_ms: UNBOUNDED_MS,
        slot_ms: options.slot_ms,
        max_lists_per_click: options.max_lists_per_click,
        max_off_list: options.max_off_list,
        max_arms: u32::MAX,
        one_topic: order != TimeOrder::BySide,
        gather: (options.shape.as_ref()).and_then(|shape| shape.gather_rules(options.max_items)),
    };
    let mut engine = Engine::new(rules, ranking.clone(), None)
        .settling_by(settle_ms(options, longest_ms))
        .without_live();
    if let Some(catalogue) = &options.catalogue {
        engine.set_catalogue(Arc::clone(catalogue));
    }
    engine
}

/// Returns the span that settles at once: whole slots, and a whole part of a span of the series, not above a bound unless a slot is.
fn settle_ms(options: &Options, longest_ms: i64) -> i64 {
    let compare = options.compare.as_ref();
    // Which lists of a user come first goes by slot, and by line within one.
    if compare.is_some_and(|compare| compare.max_lists_per_user.is_some()) {
        return options.slot_ms;
    }
    let whole = options
        .span_ms
        .unwrap_or(longest_ms / options.slot_ms * options.slot_ms);
    let is_whole = |n: &i64| whole % (n * options.slot_ms) == 0;
    let n_slots = (1..=longest_ms / options.slot_ms).rev().find(is_whole);
    n_slots.unwrap_or(1) * options.slot_ms
}
