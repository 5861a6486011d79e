//! `abgauge evaluate`: the daemon's engine over files, one window over everything.
//!
//! Every list is kept to the end of the input: lateness and the bound on the future are off, attribution holds, and all
//! lists count as settled. The order of lines does not matter, except between lists that contradict each other: the
//! first one counts.
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
mod evaluation;
mod groups;
mod report;
pub mod source;

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::num::NonZeroU32;
use std::path;
use std::sync::Arc;

use self::source::{EventFields, LongLines};
use crate::decode::catalogue::{self, CatalogueError};
use crate::decode::schema::RawRecord;
use crate::decode::shape::{Path, Shape};
use crate::decode::{Decoder, Explained, FurtherFields, NoUser, UserKey};
use crate::engine::event::{Batch, Body, Kind, Position, Reason, Side, Unreadable};
use crate::engine::float_times::FloatTimes;
use crate::engine::outcome::ClickResult;
use crate::engine::settling::Settled;
use crate::engine::{Arm, Engine, RefusedArm, Rules};
use crate::ledger::{Epochs, Keep, KeptAggregates, Ledger, Numbers, Span, Starts, Users};
use crate::metrics::catalogue::Catalogue;
use crate::metrics::{Measures, Ranking};
use comparison::{Beside, ComparisonInputs};
pub use comparison::{Compare, ExperimentComparison, HalfTotals};
pub use evaluation::{Evaluation, GroupNumbers, GroupedNumbers, TotalsByArm};
use groups::Groups;
pub use groups::{ABSENT, OTHER_GROUPS};
pub use report::Report;

/// Records counted at a time.
const BATCH: usize = 4096;
/// Maximum number of places reported for each reason of unreadable lines.
const MAX_PLACES: usize = 3;
/// Span that settles at once, unless the series needs a shorter one: with few lists, a shorter slot takes more memory than its
/// lists.
const SETTLE_MS: i64 = 60 * 60 * 1000;
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

/// Reads files one after the other into one engine.
pub struct Evaluator {
    /// Shape of events; `None`: our own.
    shape: Option<Shape>,
    /// Decoder of events in that shape.
    decoder: Decoder,
    engine: Engine,
    /// Selection and groups of lists; `None` if all of them count together.
    further: Option<Further>,
    ranking: Ranking,
    catalogue: Option<Arc<Catalogue>>,
    span_ms: Option<i64>,
    compare: Option<Compare>,
    max_state_bytes: u64,
    max_duplicate_share: f64,
    max_user_share: f64,
    batch: Batch,
    n_lines: i64,
    n_lists: u64,
    /// Times of the first list and of the last one, epoch ms.
    served_ms: Option<(i64, i64)>,
    n_lists_without_arm: u64,
    n_refused_clicks: u64,
    /// Statistics on the times of lists.
    float_times: FloatTimes,
    unreadable: BTreeMap<Reason, UnreadableLines>,
    /// Warnings of lines that were too long to be read, by file.
    long_lines: Vec<String>,
}

/// Fields that select and group lists.
struct Further {
    /// Paths of the filters, then the path of the groups.
    paths: Vec<Path>,
    fields: FurtherFields,
    /// Texts of the filters, in the order of their paths.
    wanted: Vec<String>,
    groups: Option<Groups>,
    n_unselected: u64,
    /// Clicks in lists that were not selected.
    n_unselected_clicks: u64,
}

impl Further {
    fn new(options: &Options, ranking: &Ranking) -> Option<Further> {
        let by = options.by.as_ref();
        let paths = options.filters.iter().map(|(path, _)| path);
        let paths: Vec<Path> = paths.chain(by.map(|by| &by.field)).cloned().collect();
        (!paths.is_empty()).then(|| Further {
            fields: FurtherFields::new(&paths),
            paths,
            wanted: options.filters.iter().map(|(_, wanted)| wanted.clone()).collect(),
            groups: by.map(|by| Groups::new(by, options, ranking)),
            n_unselected: 0,
            n_unselected_clicks: 0,
        })
    }

    /// Decodes a record. Lists that are not selected become ignored events, and so do the clicks in them.
    fn decode(
        &mut self,
        decoder: &Decoder,
        record: RawRecord,
        kind: Option<Kind>,
        at: Position,
        batch: &mut Batch,
    ) {
        let events = decoder.decode_with(&self.fields, record, kind, at, batch);
        for (range, texts) in events {
            let of_filters = self.wanted.iter().zip(&texts);
            let is_selected = of_filters
                .into_iter()
                .all(|(wanted, text)| text.as_ref() == Some(wanted));
            if is_list(batch, range.start) && !is_selected {
                self.n_unselected += 1;
                self.n_unselected_clicks += range.len() as u64 - 1;
                batch.events[range]
                    .iter_mut()
                    .for_each(|event| event.body = Body::Ignored);
                continue;
            }
            let Some(groups) = &mut self.groups else {
                continue;
            };
            for event in &batch.events[range] {
                match &event.body {
                    Body::Served(list) => {
                        let value = texts.last().and_then(Option::as_deref);
                        groups.take_list(value, at, list, batch);
                    }
                    Body::Click(_) | Body::PartialClick(_) => groups.take_click(event),
                    Body::Invalid(..) | Body::Ignored | Body::Skipped => {}
                }
            }
        }
    }
}

/// Returns whether an event is a list, readable or not.
fn is_list(batch: &Batch, event: usize) -> bool {
    match batch.events.get(event).map(|event| &event.body) {
        Some(Body::Served(_)) => true,
        Some(Body::Invalid(_, Some(place))) => {
            matches!(batch.unreadable.get(*place as usize), Some(Unreadable::List(_)))
        }
        _ => false,
    }
}

impl Evaluator {
    pub fn new(options: &Options) -> Evaluator {
        let measures = Measures {
            catalogue: options.catalogue.is_some(),
            ..options.measures.clone()
        };
        let ranking = Ranking::new(&measures);
        Evaluator {
            shape: options.shape.clone(),
            decoder: options.decoder().reading(options.shape.as_ref()),
            engine: new_engine(options, &ranking),
            further: Further::new(options, &ranking),
            ranking,
            catalogue: options.catalogue.clone(),
            span_ms: options.span_ms,
            compare: options.compare.clone(),
            max_state_bytes: options.max_state_bytes,
            max_duplicate_share: options.max_duplicate_share,
            max_user_share: options.max_user_share,
            batch: Batch::default(),
            n_lines: 0,
            n_lists: 0,
            served_ms: None,
            n_lists_without_arm: 0,
            n_refused_clicks: 0,
            float_times: FloatTimes::default(),
            unreadable: BTreeMap::new(),
            long_lines: Vec::new(),
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
        let name = source::name(path);
        let shape = self.shape.clone();
        let further = self.further_paths();
        let fields = EventFields {
            shape: shape.as_ref(),
            kind,
            further: &further,
            ..EventFields::default()
        };
        let decoder = self.decoder.clone();
        let long = source::read(path, &fields, watch, |number, record| {
            self.line(record, kind, &decoder, &name, number)
        })?;
        self.note_long_lines(&name, &long);
        self.count();
        Ok(())
    }

    /// Reads a stream, packed or not; `name` stands for it in messages.
    ///
    /// # Errors
    /// Where it cannot be read to its end.
    pub fn read(&mut self, name: &str, input: impl Read) -> anyhow::Result<()> {
        let shape = self.shape.clone();
        let further = self.further_paths();
        let fields = EventFields {
            shape: shape.as_ref(),
            further: &further,
            ..EventFields::default()
        };
        let decoder = self.decoder.clone();
        let long = source::read_stream(input, &fields, |number, record| {
            self.line(record, None, &decoder, name, number)
        })?;
        self.note_long_lines(name, &long);
        self.count();
        Ok(())
    }

    /// Reads one JSON line; messages name its place as `name` and `line`.
    pub fn read_record<'a>(&mut self, name: &str, line: u64, record: impl Into<RawRecord<'a>>) {
        let decoder = self.decoder.clone();
        self.line(record.into(), None, &decoder, name, line);
    }

    /// Returns the paths that are read in addition to the shape's.
    fn further_paths(&self) -> Vec<Path> {
        self.further
            .as_ref()
            .map_or(Vec::new(), |further| further.paths.clone())
    }

    fn note_long_lines(&mut self, name: &str, long: &LongLines) {
        if !long.is_empty() {
            self.long_lines.push(format!("{name}: {long}"));
        }
    }

    fn line(&mut self, record: RawRecord, kind: Option<Kind>, decoder: &Decoder, name: &str, number: u64) {
        let at = Position {
            side: Side::Served,
            offset: self.n_lines,
            record_ts_ms: i64::MAX,
        };
        self.n_lines += 1;
        let start = self.batch.events.len();
        match &mut self.further {
            None => decoder.decode_raw(record, kind, at, &mut self.batch),
            Some(further) => further.decode(decoder, record, kind, at, &mut self.batch),
        }
        for event in &self.batch.events[start..] {
            match &event.body {
                Body::Invalid(reason, _) => {
                    self.n_refused_clicks += u64::from(is_click(record, kind, decoder));
                    let unreadable = self.unreadable.entry(*reason).or_default();
                    unreadable.n += 1;
                    if unreadable.places.len() < MAX_PLACES {
                        unreadable.places.push(format!("{name}:{number}"));
                    }
                }
                Body::Served(list) => {
                    self.n_lists += 1;
                    let (first_ms, last_ms) = self.served_ms.unwrap_or((list.ts_ms, list.ts_ms));
                    self.served_ms = Some((first_ms.min(list.ts_ms), last_ms.max(list.ts_ms)));
                    self.n_lists_without_arm += u64::from(list.arms.is_empty());
                    self.float_times.see(list.ts_ms);
                }
                Body::Click(_) | Body::PartialClick(_) | Body::Ignored | Body::Skipped => {}
            }
        }
        if self.batch.events.len() >= BATCH {
            self.count();
        }
    }

    fn count(&mut self) {
        self.engine.apply(&self.batch, self.max_state_bytes);
        self.batch.clear();
    }

    /// Settles everything.
    pub fn finish(mut self) -> Evaluation {
        self.count();
        let keep = Keep {
            total: Some(KeptAggregates::All),
            starts: Starts::default(),
            users: match &self.compare {
                Some(compare) => Users::Everybody(Epochs {
                    max_lists: compare.max_lists_per_user,
                    ..Epochs::default()
                }),
                None => Users::Nobody,
            },
            spans: spans(self.span_ms),
            catalogue: None,
        };
        self.engine.close_gathered();
        let mut ledger = Ledger::new(&self.ranking, &keep);
        ledger.admit(self.engine.arms());
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
        if let Some((n_lists, n_without_arm)) = self.engine.n_gathered() {
            (self.n_lists, self.n_lists_without_arm) = (n_lists, n_without_arm);
        }
        let compared = self.compare.as_ref().map(|compare| ComparisonInputs {
            arms: &arms,
            ranking: &self.ranking,
            compare,
            max_user_share: self.max_user_share,
        });
        let half_ms = self
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
        let spans = settle(&mut self.engine, &mut ledger, self.span_ms, &totals, see);
        let changes = self.engine.take_changes();
        let (mut counts, overflowed) = (changes.counts, changes.overflowed);
        counts.count_results(ClickResult::Undecided, self.engine.n_waiting());
        let total = totals(ledger.total());
        let comparisons = compared.map(|compared| compared.comparisons(ledger.total(), &beside, half));
        let exact = !overflowed && !ledger.overflowed();
        let (n_unselected, n_unselected_clicks, groups) = match self.further {
            Some(further) => (further.n_unselected, further.n_unselected_clicks, further.groups),
            None => (0, 0, None),
        };
        Evaluation {
            total,
            span_ms: self.span_ms,
            spans,
            by: groups.map(|groups| groups.finish(self.catalogue.as_ref())),
            comparisons,
            counts,
            n_lists: self.n_lists,
            n_unselected,
            n_unselected_clicks,
            n_lists_without_arm: self.n_lists_without_arm,
            n_refused_clicks: self.n_refused_clicks,
            unlisted,
            float_times: self.float_times,
            exact,
            max_duplicate_share: self.max_duplicate_share,
            max_user_share: self.max_user_share,
            unreadable: self.unreadable,
            long_lines: self.long_lines,
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
        let is_slot = ledger.take(settled).is_some();
        // Count now: the shown items of a catalogue take more memory than their counts.
        for span_ms in span_ms.iter().filter(|_| is_slot) {
            let complete = ledger.take_complete(0).into_iter();
            spans.extend(complete.map(|(number, cell)| (number * span_ms, totals(cell.numbers()))));
        }
    });
    if let Some(span_ms) = span_ms {
        let rest = ledger.cells(0);
        spans.extend(rest.map(|(number, numbers)| (number * span_ms, totals(numbers))));
    }
    spans
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

/// Creates an engine that keeps every list.
fn new_engine(options: &Options, ranking: &Ranking) -> Engine {
    let rules = Rules {
        attribution_ms: options.attribution_ms,
        click_skew_ms: options.click_skew_ms,
        same_list_ms: options.same_list_ms,
        lateness_ms: UNBOUNDED_MS,
        max_future_ms: UNBOUNDED_MS,
        slot_ms: options.slot_ms,
        max_lists_per_click: options.max_lists_per_click,
        max_off_list: options.max_off_list,
        max_arms: u32::MAX,
        one_topic: true,
        gather: (options.shape.as_ref()).and_then(|shape| shape.gather_rules(options.max_items)),
    };
    let mut engine = Engine::new(rules, ranking.clone(), None)
        .settling_by(settle_ms(options))
        .without_live();
    if let Some(catalogue) = &options.catalogue {
        engine.set_catalogue(Arc::clone(catalogue));
    }
    engine
}

/// Returns true if a record that cannot be read is a click. It is slow.
#[cold]
fn is_click(record: RawRecord, kind: Option<Kind>, decoder: &Decoder) -> bool {
    let of_click = |event: &Explained| match event {
        Explained::Refused {
            place: Some(place), ..
        } => place.setting.starts_with("click."),
        _ => false,
    };
    decoder.explain(record, kind).iter().any(of_click)
}

/// Whole slots, and a whole part of a span.
fn settle_ms(options: &Options) -> i64 {
    let compare = options.compare.as_ref();
    // Which lists of a user come first goes by slot, and by line within one.
    if compare.is_some_and(|compare| compare.max_lists_per_user.is_some()) {
        return options.slot_ms;
    }
    let whole = options
        .span_ms
        .unwrap_or(SETTLE_MS / options.slot_ms * options.slot_ms);
    let is_whole = |n: &i64| whole % (n * options.slot_ms) == 0;
    let n_slots = (1..=SETTLE_MS / options.slot_ms).rev().find(is_whole);
    n_slots.unwrap_or(1) * options.slot_ms
}
