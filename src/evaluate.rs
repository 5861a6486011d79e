//! `abgauge evaluate`: the daemon's engine over files, one window over everything.
//!
//! Every list is kept to the end of the input: lateness and the bound on the future are off, attribution holds, and all
//! lists count as settled. The order of lines does not matter, except between lists that contradict each other: the
//! first one stands.

pub mod source;

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroU32;
use std::path::Path;

use serde::Serialize;

use crate::config::Config;
use crate::engine::event::{Batch, Body, Position, Reason, Side};
use crate::engine::outcome::{ClickResult, Counts, Outcome};
use crate::engine::ranking::{CLICKS, LISTS, Ranking};
use crate::engine::{Arm, Engine, Rules};
use crate::export::api::{MetricsMap, metrics_map};
use crate::ingest::wire::Decoder;

/// Records counted at a time.
const BATCH: usize = 4096;
/// Places of unreadable lines that are told for each reason.
const MAX_PLACES: usize = 3;
/// Arms that stand side by side in a table: as many as a terminal of 80 columns holds.
const ARMS_ABREAST: usize = 6;
/// More than any time that an event may have: switches a bound off.
const UNBOUNDED_MS: i64 = 10_000_000_000_000;

/// What joins and what is counted.
#[derive(Debug, Clone)]
pub struct Options {
    pub k: Vec<NonZeroU32>,
    pub attribution_ms: i64,
    pub click_skew_ms: i64,
}

/// The numbers of a set of files.
pub struct Evaluation {
    ranking: Ranking,
    arms: BTreeMap<Arm, Box<[i128]>>,
    counts: Counts,
    unreadable: BTreeMap<Reason, Unreadable>,
}

/// Lines that could not be read for one reason.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Unreadable {
    pub n: u64,
    /// The first of them, as `FILE:LINE`.
    pub places: Vec<String>,
}

/// Reads files one after the other into one engine.
pub struct Evaluator {
    decoder: Decoder,
    engine: Engine,
    ranking: Ranking,
    batch: Batch,
    n_lines: i64,
    unreadable: BTreeMap<Reason, Unreadable>,
}

impl Evaluator {
    /// Bounds and hash seed are the daemon's defaults, so that it gives the daemon's bits.
    pub fn new(options: &Options, defaults: &Config) -> Evaluator {
        let rules = Rules {
            attribution_ms: options.attribution_ms,
            click_skew_ms: options.click_skew_ms,
            lateness_ms: UNBOUNDED_MS,
            max_future_ms: UNBOUNDED_MS,
            slot_ms: defaults.join.slot_ms,
            max_off_list: defaults.join.max_off_list,
            max_arms: u32::MAX,
            one_topic: true,
        };
        let ranking = Ranking::new(&options.k);
        Evaluator {
            decoder: Decoder::new(defaults.join.hash_seed, defaults.join.max_items),
            engine: Engine::new(rules, ranking.clone(), None),
            ranking,
            batch: Batch::default(),
            n_lines: 0,
            unreadable: BTreeMap::new(),
        }
    }

    /// Reads a file, or standard input for `-`; `watch` is told the bytes of it as they are read.
    ///
    /// # Errors
    /// Where it cannot be read to its end: see [`source::read`].
    pub fn read(&mut self, path: &Path, watch: &dyn Fn(u64)) -> anyhow::Result<()> {
        let name = path.display().to_string();
        source::read(path, watch, |number, record| self.line(record, &name, number))?;
        self.count();
        Ok(())
    }

    fn line(&mut self, record: &[u8], name: &str, number: u64) {
        let at = Position {
            side: Side::Served,
            offset: self.n_lines,
            record_ts_ms: i64::MAX,
        };
        self.n_lines += 1;
        self.decoder.decode(Some(record), None, at, &mut self.batch);
        if let Some(Body::Invalid(reason)) = self.batch.events.last().map(|event| &event.body) {
            let unreadable = self.unreadable.entry(*reason).or_default();
            unreadable.n += 1;
            if unreadable.places.len() < MAX_PLACES {
                unreadable.places.push(format!("{name}:{number}"));
            }
        }
        if self.batch.events.len() == BATCH {
            self.count();
        }
    }

    fn count(&mut self) {
        self.engine.apply(&self.batch, u64::MAX);
        self.batch.clear();
    }

    /// Settles everything.
    pub fn finish(mut self) -> Evaluation {
        self.engine.settle_all();
        let mut arms: BTreeMap<Arm, Box<[i128]>> = BTreeMap::new();
        let changes = self.engine.changes();
        for (arm, sums) in changes.settled.iter().flat_map(|slot| &slot.tallies) {
            let arm = self.engine.arm(*arm).clone();
            let total = arms
                .entry(arm)
                .or_insert_with(|| vec![0; self.ranking.width()].into());
            total
                .iter_mut()
                .zip(sums)
                .for_each(|(total, term)| *total += i128::from(*term));
        }
        let counts = changes.counts.clone();
        Evaluation {
            ranking: self.ranking,
            arms,
            counts,
            unreadable: self.unreadable,
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    experiments: BTreeMap<&'a str, ExperimentDocument<'a>>,
}

#[derive(Serialize, Default)]
struct ExperimentDocument<'a> {
    arms: BTreeMap<&'a str, ArmDocument<'a>>,
}

#[derive(Serialize)]
struct ArmDocument<'a> {
    lists: i128,
    clicks: i128,
    metrics: MetricsMap<'a>,
}

impl Evaluation {
    /// `{"experiments":{E:{"arms":{A:{"lists":N,"clicks":N,"metrics":{"hit_rate@5":0.51,…}}}}}}`
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write_json(&self, mut out: impl Write) -> anyhow::Result<()> {
        let mut experiments: BTreeMap<&str, ExperimentDocument> = BTreeMap::new();
        for (arm, sums) in &self.arms {
            let document = ArmDocument {
                lists: sums[LISTS],
                clicks: sums[CLICKS],
                metrics: metrics_map(&self.ranking, sums),
            };
            experiments
                .entry(&arm.experiment)
                .or_default()
                .arms
                .insert(&arm.arm, document);
        }
        serde_json::to_writer(&mut out, &Document { experiments })?;
        writeln!(out)?;
        Ok(())
    }

    /// For people: a table for each experiment, its arms side by side, a metric a row.
    pub fn table(&self) -> String {
        let arms: Vec<(&Arm, &[i128])> = self.arms.iter().map(|(arm, sums)| (arm, &**sums)).collect();
        let experiments = arms.chunk_by(|(a, _), (b, _)| a.experiment == b.experiment);
        let blocks = experiments.flat_map(|arms| arms.chunks(ARMS_ABREAST));
        let tables: Vec<String> = blocks.map(|arms| self.block(arms)).collect();
        tables.join("\n\n")
    }

    fn block(&self, arms: &[(&Arm, &[i128])]) -> String {
        let mut table = crate::table::new();
        let names = arms.iter().map(|(arm, _)| &arm.arm);
        let header = arms.iter().map(|(arm, _)| &arm.experiment).take(1).chain(names);
        table.set_header(header.map(|name| crate::table::visible(name)));
        let row = |name: String, cell: &dyn Fn(&[i128]) -> String| {
            let cells = arms.iter().map(|(_, sums)| cell(sums));
            std::iter::once(name).chain(cells).collect::<Vec<_>>()
        };
        for (name, column) in [("lists", LISTS), ("clicks", CLICKS)] {
            table.add_row(row(name.to_owned(), &|sums| sums[column].to_string()));
        }
        for column in self.ranking.columns() {
            table.add_row(row(column.key(), &|sums| match column.value(sums) {
                Some(value) => format!("{value:.4}"),
                None => "–".to_owned(),
            }));
        }
        crate::table::align_numbers(&mut table, 1);
        table.trim_fmt()
    }

    pub fn is_empty(&self) -> bool {
        self.arms.is_empty()
    }

    /// What a reader should know of what was left out, a line each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (reason, unreadable) in &self.unreadable {
            let places = unreadable.places.join(", ");
            let is_all = unreadable.n == unreadable.places.len() as u64;
            let more = if is_all { "" } else { ", …" };
            notes.push(format!(
                "lines skipped as {}: {} ({places}{more})",
                reason.name(),
                unreadable.n
            ));
        }
        let outcome = |outcome| self.counts.outcome(Side::Served, outcome);
        let result = |result| self.counts.result(result);
        for (what, n) in [
            ("lines of another type, ignored", outcome(Outcome::Ignored)),
            ("lists that came again, counted once", outcome(Outcome::Duplicate)),
            (
                "of them with other content, the first stands",
                self.counts.conflicting_lists,
            ),
            (
                "clicks without a list in the attribution window",
                result(ClickResult::Unmatched),
            ),
            (
                "clicks on items that their list does not show",
                result(ClickResult::OffList),
            ),
        ] {
            if n > 0 {
                notes.push(format!("{what}: {n}"));
            }
        }
        notes
    }
}
