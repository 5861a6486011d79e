//! An evaluation as JSON, as a table, and what a reader should know of what was left out.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;

use super::{Evaluation, Totals};
use crate::engine::Arm;
use crate::engine::event::Side;
use crate::engine::outcome::{ClickResult, Outcome};
use crate::engine::ranking::{CLICKS, LISTS};
use crate::metrics_map::{MetricsMap, metrics_map};

/// Arms that stand side by side in a table: as many as a terminal of 80 columns holds.
const ARMS_ABREAST: usize = 6;

#[derive(Serialize)]
struct Profiles<'a> {
    profiles: BTreeMap<&'a str, Document<'a>>,
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
    /// `{"experiments":{E:{"arms":{A:{"lists":N,"clicks":N,"metrics":{"hit_rate@5":0.51,…}}}}}}`; with several profiles
    /// `{"profiles":{P:{"experiments":…}}}`.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write_json(&self, mut out: impl Write) -> anyhow::Result<()> {
        let profiles = self.ranking.profiles();
        if let [_] = profiles {
            serde_json::to_writer(&mut out, &self.document(&self.total, 0))?;
        } else {
            let documents = profiles.iter().enumerate();
            let profiles =
                documents.map(|(index, profile)| (profile.name.as_str(), self.document(&self.total, index)));
            let profiles: BTreeMap<&str, Document> = profiles.collect();
            serde_json::to_writer(&mut out, &Profiles { profiles })?;
        }
        writeln!(out)?;
        Ok(())
    }

    fn document<'a>(&'a self, totals: &'a Totals, profile: usize) -> Document<'a> {
        let mut experiments: BTreeMap<&str, ExperimentDocument> = BTreeMap::new();
        for (arm, sums) in totals {
            let document = ArmDocument {
                lists: sums[LISTS],
                clicks: sums[CLICKS],
                metrics: metrics_map(&self.ranking, profile, sums),
            };
            experiments
                .entry(&arm.experiment)
                .or_default()
                .arms
                .insert(&arm.arm, document);
        }
        Document { experiments }
    }

    /// For people: a table for each experiment, its arms side by side, a metric a row.
    pub fn table(&self) -> String {
        let arms: Vec<(&Arm, &[i128])> = self.total.iter().map(|(arm, sums)| (arm, &**sums)).collect();
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
