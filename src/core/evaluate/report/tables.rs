//! Evaluation as tables for people: arms or conventions side by side, one metric per row.

use super::grid::{self, Grid};
use super::{ControlDifference, ExperimentSums, Part, Report, experiments, time};
use crate::metrics::{CLICKS, Column, LISTS, METRICS};

/// Arms that are shown with their difference to a control.
struct Contrast {
    /// Index of the control.
    control: usize,
    /// Indexes of the arms with a difference.
    comparable: Vec<usize>,
}

/// Row with one cell for each arm or profile.
struct TableRow {
    name: String,
    cells: Vec<TableCell>,
}

#[derive(Clone, Copy)]
enum TableCell {
    Count(i128),
    Value(f64),
    /// Division by 0, or an arm that was not there.
    Undefined,
    /// Metric that the profile does not have.
    Absent,
}

impl TableCell {
    fn of(column: &Column, sums: &[i128]) -> TableCell {
        column.value(sums).map_or(TableCell::Undefined, TableCell::Value)
    }

    fn text(self) -> String {
        match self {
            TableCell::Count(n) => n.to_string(),
            TableCell::Value(value) => format!("{value:.4}"),
            TableCell::Undefined => "–".to_owned(),
            TableCell::Absent => String::new(),
        }
    }

    /// Returns the difference to the control's cell, absolute and in percent.
    fn less(self, control: TableCell) -> (String, String) {
        let undefined = || TableCell::Undefined.text();
        match (self, control) {
            (TableCell::Value(value), TableCell::Value(control)) => {
                let ControlDifference { absolute, percent } = ControlDifference::of(value, control);
                let percent = percent.map(|percent| format!("{percent:+.1}"));
                (format!("{absolute:+.4}"), percent.unwrap_or_else(undefined))
            }
            // Counts follow the split of traffic, so their difference shows nothing about an arm.
            (TableCell::Count(_), _) => (String::new(), String::new()),
            _ => (undefined(), undefined()),
        }
    }
}

pub(super) const COUNTS: [(&str, usize); 2] = [("lists", LISTS), ("clicks", CLICKS)];

impl<'a> Report<'a> {
    /// Renders tables for a terminal of 80 columns: one for each experiment, with its arms side by side. With several
    /// profiles there is a table for each arm, with the profiles side by side. If arms are compared with a control, or over
    /// time, there is a table for each profile.
    ///
    /// A series follows, with a table for each metric and one span per row. If arms are compared, these tables have Δ (the
    /// difference) and Δ % (in percent of the control's value) next to each arm. Comparisons come last, each with one table,
    /// which replaces the one of its profile and is never cut.
    pub fn table(self) -> String {
        let mut tables: Vec<String> = self.grids().iter().map(Grid::text).collect();
        tables.extend(self.compared(Grid::text));
        tables.join("\n\n")
    }

    /// Renders the same tables in Markdown, uncut.
    pub fn markdown(self) -> String {
        let mut tables: Vec<String> = self.grids().iter().map(Grid::markdown).collect();
        tables.extend(self.compared(Grid::markdown));
        tables.join("\n\n")
    }

    fn grids(self) -> Vec<Grid> {
        let parts = [self.whole()].into_iter().chain(self.groups());
        parts.flat_map(|part| self.grids_of(part)).collect()
    }

    fn grids_of(self, part: Part<'a>) -> Vec<Grid> {
        let has_one_profile = self.profiles().count() == 1;
        let mut grids = Vec::new();
        for experiment in experiments(part.total) {
            if has_one_profile || self.evaluation.comparisons.is_some() {
                let is_compared = |profile| profile == 0 && self.is_in_comparison(experiment.name);
                let profiles = self.profiles().filter(|(profile, _)| !is_compared(*profile));
                grids.extend(profiles.map(|(profile, _)| self.arms_abreast(part, &experiment, profile)));
            } else {
                let arms = experiment.arms.iter();
                grids.extend(arms.map(|arm| self.profiles_abreast(part, &experiment, *arm)));
            }
        }
        if self.evaluation.span_ms.is_some() {
            for experiment in experiments(part.total) {
                grids.extend(self.series(part, &experiment));
            }
        }
        grids
    }

    fn arms_abreast(self, part: Part<'a>, experiment: &ExperimentSums<'a>, profile: usize) -> Grid {
        let arms = &experiment.arms;
        let counts = COUNTS.map(|(name, column)| TableRow {
            name: name.to_owned(),
            cells: arms
                .iter()
                .map(|(_, sums)| TableCell::Count(sums[column]))
                .collect(),
        });
        let metrics = self.columns(profile).map(|column| TableRow {
            name: column.key(),
            cells: arms.iter().map(|(_, sums)| TableCell::of(column, sums)).collect(),
        });
        let names: Vec<&str> = arms.iter().map(|(name, _)| *name).collect();
        let rows: Vec<TableRow> = counts.into_iter().chain(metrics).collect();
        let corner = self.corner(part, &[experiment.name], Some(profile));
        let contrast = self.contrast(experiment.name, &names);
        side_by_side(corner, &names, contrast.as_ref(), &rows)
    }

    fn profiles_abreast(
        self,
        part: Part<'a>,
        experiment: &ExperimentSums<'a>,
        (arm, sums): (&str, &'a [i128]),
    ) -> Grid {
        let counts = COUNTS.map(|(name, column)| TableRow {
            name: name.to_owned(),
            cells: self.profiles().map(|_| TableCell::Count(sums[column])).collect(),
        });
        let of_profile = |profile: usize, like: &Column| {
            let mut columns = self.columns(profile);
            let column = columns.find(|column| column.metric.id == like.metric.id && column.k == like.k);
            column.map_or(TableCell::Absent, |column| TableCell::of(column, sums))
        };
        let metrics = self.any_columns().into_iter().map(|column| TableRow {
            name: column.key(),
            cells: self
                .profiles()
                .map(|(profile, _)| of_profile(profile, column))
                .collect(),
        });
        let names: Vec<&str> = self.profiles().map(|(_, name)| name).collect();
        let rows: Vec<TableRow> = counts.into_iter().chain(metrics).collect();
        side_by_side(
            self.corner(part, &[experiment.name, arm], None),
            &names,
            None,
            &rows,
        )
    }

    /// Returns one column for each metric and cut-off that some profile has, in the order of export.
    fn any_columns(self) -> Vec<&'a Column> {
        let mut columns: Vec<&Column> = self.evaluation.ranking.columns().iter().collect();
        let place = |column: &Column| {
            let metric = METRICS.iter().position(|metric| metric.id == column.metric.id);
            (metric, column.k.is_none(), column.k)
        };
        columns.sort_by_key(|column| place(column));
        // The same metric of different profiles is adjacent now.
        columns.dedup_by_key(|column| place(column));
        columns
    }

    /// Returns a table for each metric of an experiment, with one span per row.
    fn series(self, part: Part<'a>, experiment: &ExperimentSums<'a>) -> Vec<Grid> {
        let names: Vec<&str> = experiment.arms.iter().map(|(name, _)| *name).collect();
        let spans = part.spans.iter().map(|(start_ms, totals)| {
            let here = experiments(totals).find(|here| here.name == experiment.name);
            // An arm without a list in this span has empty cells.
            let sums = |arm: &&str| here.as_ref().and_then(|here| here.sums(arm));
            (self.span_name(*start_ms), names.iter().map(sums).collect())
        });
        let spans: Vec<(String, Vec<Option<&[i128]>>)> = spans.collect();
        let rows = |cell: &dyn Fn(&[i128]) -> TableCell| -> Vec<TableRow> {
            let cells = |sums: &[Option<&[i128]>]| {
                let cells = sums.iter().map(|sums| sums.map_or(TableCell::Undefined, cell));
                cells.collect()
            };
            let rows = spans.iter().map(|(name, sums)| TableRow {
                name: name.clone(),
                cells: cells(sums),
            });
            rows.collect()
        };
        let count = |(what, column): (&str, usize)| {
            let corner = self.corner(part, &[experiment.name, what], None);
            side_by_side(
                corner,
                &names,
                None,
                &rows(&|sums| TableCell::Count(sums[column])),
            )
        };
        let metric = |column: &Column| {
            let corner = self.corner(part, &[experiment.name, &column.key()], Some(column.profile));
            let contrast = self.contrast(experiment.name, &names);
            side_by_side(
                corner,
                &names,
                contrast.as_ref(),
                &rows(&|sums| TableCell::of(column, sums)),
            )
        };
        let metrics = self.evaluation.ranking.columns().iter().map(metric);
        COUNTS.into_iter().map(count).chain(metrics).collect()
    }

    /// Returns the name of a span: only the date if all spans begin at midnight.
    fn span_name(self, start_ms: i64) -> String {
        const DAY_MS: i64 = 86_400_000;
        let name = time(start_ms);
        let is_of_days = self
            .evaluation
            .span_ms
            .is_some_and(|span_ms| span_ms % DAY_MS == 0);
        match name.split_once('T') {
            Some((date, _)) if is_of_days => date.to_owned(),
            _ => name,
        }
    }

    /// Returns the header above the row names. It names the group, and the profile only if there are several.
    fn corner(self, part: Part<'a>, names: &[&str], profile: Option<usize>) -> String {
        let mut profiles = self.profiles();
        let profile = profile.filter(|_| self.profiles().count() > 1);
        let profile = profile.and_then(|profile| profiles.nth(profile));
        let group = part.group.zip(self.evaluation.by.as_ref());
        let group = group.map(|(group, by)| format!("{} = {group}", by.field));
        let names = group.as_deref().into_iter().chain(names.iter().copied());
        let names = names.chain(profile.map(|(_, name)| name));
        names.collect::<Vec<_>>().join(" / ")
    }

    /// Finds the control among these arms, and the arms that can be compared with it.
    fn contrast(self, experiment: &str, arms: &[&str]) -> Option<Contrast> {
        let control = self.control(experiment)?;
        let comparable = (0..arms.len()).filter(|index| self.is_comparable(experiment, arms[*index]));
        Some(Contrast {
            control: arms.iter().position(|name| *name == control)?,
            comparable: comparable.collect(),
        })
    }
}

/// Returns a grid with columns of these names. A control leads, and the differences to it follow each other column.
fn side_by_side(corner: String, names: &[&str], contrast: Option<&Contrast>, rows: &[TableRow]) -> Grid {
    let control = contrast.map(|contrast| contrast.control);
    let column = |header: &str, cells: Vec<String>| grid::GridColumn {
        header: header.to_owned(),
        cells,
        is_text: false,
    };
    let values = |index: usize| {
        let cells = rows.iter().map(|row| row.cells[index].text());
        column(names[index], cells.collect())
    };
    let group = |index: usize| {
        let mut columns = vec![values(index)];
        if let Some(Contrast { control, comparable }) = contrast {
            let differences = rows.iter().map(|row| match comparable.contains(&index) {
                true => row.cells[index].less(row.cells[*control]),
                // An incomparable arm keeps these columns, so that all rows and groups line up.
                false => TableCell::Undefined.less(TableCell::Undefined),
            });
            let (absolute, percent) = differences.unzip();
            columns.extend([column("Δ", absolute), column("Δ %", percent)]);
        }
        columns
    };
    // The control has no difference to itself, so it is in the lead and not in a group.
    let others = (0..names.len()).filter(|index| Some(*index) != control);
    Grid {
        corner,
        rows: rows.iter().map(|row| row.name.clone()).collect(),
        lead: control.map(values).into_iter().collect(),
        groups: others.map(group).collect(),
    }
}
