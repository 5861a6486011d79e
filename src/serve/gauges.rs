//! Ranking gauges in Prometheus' text format, rendered straight from the sums of a snapshot.
//!
//! There are no gauge objects. Labels are escaped once per arm, the rest of a series' text once per render, and numbers go
//! through a reused buffer. A scrape of 300,000 series therefore allocates nothing per series.

mod bound;
mod looks;
mod of_arm;
mod series;

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use abgauge_core::engine::View;
use abgauge_core::looks::PublishedLooks;
use abgauge_core::metrics::{CLICKS, Column, ITEMS_SHOWN, LISTS, METRICS, Ranking, SumUnit};

use self::bound::{Room, choose};
use self::looks::{GaugedArm, LookGauges, LookedExperiment};
pub use self::of_arm::SeriesOfArm;
use super::{Scope, TOTAL, control_of, shown_arms};
use crate::board::snapshot::{ArmSnapshot, Snapshot};
use crate::settings::{Export, WindowSpan};
use crate::telemetry::Series;

/// Input of the gauges at one instant.
pub struct Scrape<'a> {
    pub snapshot: &'a Snapshot,
    /// Numbers of all partitions, if they are shown.
    pub global: Option<&'a Snapshot>,
    /// Latest look at the experiments.
    pub looks: &'a PublishedLooks,
    /// Scope of the partitions that looks cover.
    pub looks_of: Scope,
    pub ranking: &'a Ranking,
    pub config: &'a Export,
    /// Sliding windows, without `total`.
    pub windows: &'a [WindowSpan],
    /// Configured controls by experiment.
    pub controls: &'a BTreeMap<String, String>,
}

/// Returns the rows of all ranking gauges.
pub fn series() -> impl Iterator<Item = Series> {
    series::rows().chain(looks::rows())
}

/// Appends the gauges of one instant: each family with all its samples, arms in the order of the snapshot.
///
/// A window without lists has no series. `config.k` selects cut-offs; the value over the whole list is always included.
/// Beyond `config.max_series` whole arms are left out, those with the fewest lists first. Series of whole experiments take
/// precedence over arms.
pub fn render(scrape: &Scrape, out: &mut Vec<u8>) {
    let Scrape {
        snapshot,
        ranking,
        config,
        windows,
        ..
    } = scrape;
    let of_own = families(ranking, config, Scope::Own);
    let of_global = families(ranking, config, Scope::Global);
    let looks = LookGauges::new(scrape.looks, scrape.looks_of, ranking, config);
    let arms = shown_arms(snapshot, config.forget_after_ms);
    let arms_of_all = scrape
        .global
        .map(|snapshot| shown_arms(snapshot, config.forget_after_ms))
        .unwrap_or_default();
    // One bound covers all series: experiments take theirs first, then own arms, then arms of all partitions.
    let mut room = Room::new(config.max_series);
    let looked = match scrape.looks_of {
        Scope::Own => &arms,
        Scope::Global => &arms_of_all,
    };
    let mut experiments = looks.experiments(looked);
    experiments.truncate(room.admit(experiments.iter().map(LookedExperiment::n_series)));
    let looks_of = |scope: Scope| (scope == scrape.looks_of).then_some(&looks);
    let all = rows(&arms, scrape.controls, looks_of(Scope::Own));
    let own = places(config, windows, Scope::Own);
    let rows = choose(&all, &mut room, &own, &of_own);
    let of_all = global_rows(&arms_of_all, &arms, scrape.controls, looks_of(Scope::Global));
    let global = places(config, windows, Scope::Global);
    let global_rows = choose(&of_all, &mut room, &global, &of_global);

    let scopes = [ScopeRows::new(&own, &rows), ScopeRows::new(&global, &global_rows)];
    let mut text = ExpositionText::new(out);
    // The text format requires all samples of a family in one block, so both scopes are written family by family.
    for (of_own, of_global) in of_own.iter().zip(&of_global) {
        text.family(&of_own.row, |text| {
            scopes[0].render(of_own, text);
            scopes[1].render(of_global, text);
        });
    }
    let looked = scopes
        .iter()
        .flat_map(|scope| scope.rows.iter().zip(&scope.blocks));
    let looked: Vec<(&GaugedArm, &str)> = looked
        .filter_map(|(row, block)| Some((row.looked.as_ref()?, block.as_str())))
        .collect();
    looks.render(&looked, &experiments, &mut text);
    text.family(&series::LAST_LIST, |text| {
        let begin = format!("{}{{", series::LAST_LIST.name);
        for (row, block) in scopes.iter().flat_map(ScopeRows::reported) {
            let seconds = Number::Float(row.arm.last_list_ms as f64 / 1000.0);
            text.sample([&begin, block, "} "], seconds);
        }
    });
    text.family(&series::CONTROL, |text| {
        let begin = format!("{}{{", series::CONTROL.name);
        let reported = scopes.iter().flat_map(ScopeRows::reported);
        for (_, block) in reported.filter(|(row, _)| row.is_control) {
            text.sample([&begin, block, "} "], Number::Integer(1));
        }
    });
    text.single(&series::ARMS_FOLDED, i128::from(snapshot.folded_arms));
    if ranking.coverage().is_some() {
        let of_all_without_coverage = scrape.global.map_or(0, |global| global.arms_without_coverage);
        text.single(
            &series::WITHOUT_COVERAGE,
            i128::from(snapshot.arms_without_coverage.max(of_all_without_coverage)),
        );
    }
    text.single(&series::DROPPED, room.n_dropped() as i128);
}

/// Arms exported in a scope, with their labels.
struct ScopeRows<'a, 'b> {
    places: &'b [WindowLabels],
    rows: &'b [&'b ExportedArm<'a>],
    blocks: Vec<String>,
}

impl<'a, 'b> ScopeRows<'a, 'b> {
    fn new(places: &'b [WindowLabels], rows: &'b [&'b ExportedArm<'a>]) -> ScopeRows<'a, 'b> {
        ScopeRows {
            places,
            rows,
            blocks: rows.iter().map(|row| arm_block(row.arm)).collect(),
        }
    }

    fn render(&self, family: &Family, text: &mut ExpositionText) {
        if self.rows.is_empty() {
            return;
        }
        let begin = format!("{}{{", family.row.name);
        let ends = family.ends(self.places);
        for (row, block) in self.rows.iter().zip(&self.blocks) {
            for (place, ends) in self.places.iter().zip(&ends) {
                let Some(sums) = place.sums(row.arm) else {
                    continue;
                };
                for (series, end) in family.series.iter().zip(ends) {
                    if let Some(number) = series.what.number(sums) {
                        text.sample([&begin, block, end], number);
                    }
                }
            }
        }
    }

    /// Returns the arms with further series besides sums.
    fn reported(&self) -> impl Iterator<Item = (&ExportedArm<'a>, &String)> {
        let rows = self.rows.iter().copied().zip(&self.blocks);
        rows.filter(|(row, _)| row.is_reported)
    }
}

/// Labels of one window in one view.
struct WindowLabels {
    view: View,
    window: usize,
    /// Rendered labels such as `window="5m",view="live",scope="own"`.
    labels: String,
}

impl WindowLabels {
    /// Returns the sums of an arm, or none if the window is empty.
    fn sums<'a>(&self, arm: &'a ArmSnapshot) -> Option<&'a [i128]> {
        let sums = arm.sums(self.view, self.window);
        (sums[LISTS] != 0).then_some(sums)
    }
}

/// Returns the windows and views to export. Only settled numbers are known for all partitions.
fn places(config: &Export, windows: &[WindowSpan], scope: Scope) -> Vec<WindowLabels> {
    let names = windows.iter().map(|window| window.name.as_str()).chain([TOTAL]);
    let mut places = Vec::new();
    for (window, name) in names.enumerate() {
        for view in View::BOTH {
            let shown = match (view, scope) {
                (View::Live, Scope::Own) => &config.live[..],
                (View::Live, Scope::Global) => &[],
                (View::Settled, Scope::Own) => &config.settled,
                (View::Settled, Scope::Global) => &config.global,
            };
            if shown.iter().any(|shown| shown == name) {
                let mut labels = r#",window=""#.to_owned();
                escape(name, &mut labels);
                let _ = write!(labels, r#"",view="{}",scope="{}""#, view.name(), scope.name());
                places.push(WindowLabels { view, window, labels });
            }
        }
    }
    places
}

/// Series with the same name.
struct Family {
    row: Series,
    series: Vec<FamilySeries>,
}

impl Family {
    /// Returns the text after an arm's labels, by place, then series.
    fn ends(&self, places: &[WindowLabels]) -> Vec<Vec<String>> {
        let of = |place: &WindowLabels| {
            let series = self.series.iter();
            series
                .map(|series| format!("{}{}", place.labels, series.tail))
                .collect()
        };
        places.iter().map(of).collect()
    }
}

/// Series of a family that every place has.
struct FamilySeries {
    /// Labels that vary within the place, then the closing brace and a space: `,k="5"} `.
    tail: String,
    what: SeriesContent,
}

enum SeriesContent {
    Sum(usize),
    Value(Column),
    Numerator(Column),
    Denominator(Column),
}

enum Number {
    Integer(i128),
    Float(f64),
}

impl SeriesContent {
    /// Returns the number, or none if its ratio is 0 ÷ 0.
    fn number(&self, sums: &[i128]) -> Option<Number> {
        let column = match self {
            SeriesContent::Sum(column) => return Some(Number::Integer(sums[*column])),
            SeriesContent::Value(column) => return column.value(sums).map(Number::Float),
            SeriesContent::Numerator(column) | SeriesContent::Denominator(column) => column,
        };
        let denominator = column.denominator(sums);
        // Both parts are absent together with their ratio, so that a query that divides them never gets NaN.
        if denominator == 0 {
            return None;
        }
        Some(match self {
            SeriesContent::Denominator(_) => Number::Integer(denominator),
            _ if column.unit == SumUnit::Fixed => Number::Float(column.numerator(sums)),
            _ => Number::Integer(sums[column.numerator]),
        })
    }

    /// Returns the column and factor of its denominator. A sum has none and is always present.
    fn divides_by(&self) -> Option<(usize, u32)> {
        match self {
            SeriesContent::Sum(_) => None,
            SeriesContent::Value(column)
            | SeriesContent::Numerator(column)
            | SeriesContent::Denominator(column) => Some((column.denominator, column.factor)),
        }
    }
}

/// Returns the families of a scope. Their names are the same in each scope.
fn families(ranking: &Ranking, config: &Export, scope: Scope) -> Vec<Family> {
    let columns: Vec<&Column> = ranking
        .columns()
        .iter()
        .filter(|column| wanted_k(config, column))
        .collect();
    let base = |row, column| Family {
        row,
        series: vec![FamilySeries {
            tail: "} ".to_owned(),
            what: SeriesContent::Sum(column),
        }],
    };
    let mut families = vec![
        base(series::LISTS, LISTS),
        base(series::ITEMS_SHOWN, ITEMS_SHOWN),
        base(series::CLICKS, CLICKS),
    ];
    for metric in METRICS
        .iter()
        .filter(|metric| config.metrics.iter().any(|id| id == metric.id))
    {
        families.push(Family {
            row: series::of_metric(metric),
            series: columns
                .iter()
                .filter(|column| column.metric.id == metric.id)
                .map(|column| FamilySeries {
                    tail: format!("{}{}}} ", k_label(column), profile_label(ranking, column)),
                    what: SeriesContent::Value(**column),
                })
                .collect(),
        });
    }
    let is_named = |column: &Column| config.numerators.iter().any(|id| id == column.metric.id);
    // A mean over all lists has `abgauge_lists` as its denominator. Numbers of all partitions are complete, so nobody needs
    // to add them up.
    let needs_denominator = |column: &Column| {
        let is_shown = config.metrics.iter().any(|id| id == column.metric.id);
        let is_weight = column.metric.is_additive && column.denominator != LISTS;
        is_named(column) || is_shown && is_weight && scope == Scope::Own
    };
    let parts =
        |row: Series, what: fn(Column) -> SeriesContent, is_wanted: &dyn Fn(&Column) -> bool| Family {
            row,
            series: columns
                .iter()
                .filter(|column| is_wanted(column))
                .map(|column| FamilySeries {
                    tail: format!(
                        r#",metric="{}"{}{}}} "#,
                        column.metric.id,
                        k_label(column),
                        profile_label(ranking, column)
                    ),
                    what: what(**column),
                })
                .collect(),
        };
    families.push(parts(series::NUMERATOR, SeriesContent::Numerator, &is_named));
    families.push(parts(
        series::DENOMINATOR,
        SeriesContent::Denominator,
        &needs_denominator,
    ));
    families
}

fn wanted_k(config: &Export, column: &Column) -> bool {
    match (&config.k, column.k) {
        (Some(wanted), Some(k)) => wanted.contains(&k),
        _ => true,
    }
}

/// Returns `,k="5"`, or an empty label for the whole list.
fn k_label(column: &Column) -> String {
    column.k.map_or(String::new(), |k| format!(r#",k="{k}""#))
}

/// Returns `,profile="ranx"`, or an empty label for the first profile, so that adding a second one does not break
/// dashboards.
fn profile_label(ranking: &Ranking, column: &Column) -> String {
    match column.profile {
        0 => String::new(),
        further => {
            let mut label = r#",profile=""#.to_owned();
            escape(&ranking.profiles()[further].name, &mut label);
            label + "\""
        }
    }
}

struct ExportedArm<'a> {
    arm: &'a ArmSnapshot,
    /// Set if this row has the series without a scope: the last list and the mark of a control.
    is_reported: bool,
    is_control: bool,
    /// Absent if nothing is configured for the experiment.
    looked: Option<GaugedArm<'a>>,
}

/// Builds the rows of this instance's arms, in the order of the snapshot.
fn rows<'a>(
    arms: &[&'a ArmSnapshot],
    controls: &BTreeMap<String, String>,
    looks: Option<&'a LookGauges>,
) -> Vec<ExportedArm<'a>> {
    let experiments = arms.chunk_by(|a, b| a.experiment == b.experiment);
    let rows = experiments.flat_map(|arms| {
        let control = control_of(controls, arms);
        arms.iter().map(move |arm| ExportedArm {
            arm,
            is_reported: true,
            is_control: Some(&*arm.arm) == control,
            looked: looks.and_then(|looks| looks.arm(arm)),
        })
    });
    rows.collect()
}

/// Builds the rows of all partitions. An arm that also has `own` numbers gets its series without a scope there.
fn global_rows<'a>(
    arms: &[&'a ArmSnapshot],
    own: &[&ArmSnapshot],
    controls: &BTreeMap<String, String>,
    looks: Option<&'a LookGauges>,
) -> Vec<ExportedArm<'a>> {
    let name = |arm: &'_ ArmSnapshot| (Arc::clone(&arm.experiment), Arc::clone(&arm.arm));
    let own: HashSet<_> = own.iter().map(|arm| name(arm)).collect();
    let experiments = arms.chunk_by(|a, b| a.experiment == b.experiment);
    let rows = experiments.flat_map(|arms| {
        let control = control_of(controls, arms);
        let own = &own;
        arms.iter().map(move |arm| {
            let is_reported = !own.contains(&name(arm));
            ExportedArm {
                arm,
                is_reported,
                is_control: is_reported && Some(&*arm.arm) == control,
                looked: looks.and_then(|looks| looks.arm(arm)),
            }
        })
    });
    rows.collect()
}

/// Returns labels such as `experiment="ranker",arm="neural"`.
fn arm_block(arm: &ArmSnapshot) -> String {
    let mut block = r#"experiment=""#.to_owned();
    escape(&arm.experiment, &mut block);
    block.push_str(r#"",arm=""#);
    escape(&arm.arm, &mut block);
    block.push('"');
    block
}

/// Appends a label value, with the three characters escaped that the text format requires.
fn escape(value: &str, out: &mut String) {
    for character in value.chars() {
        match character {
            '\\' => out.push_str(r"\\"),
            '"' => out.push_str(r#"\""#),
            '\n' => out.push_str(r"\n"),
            other => out.push(other),
        }
    }
}

struct ExpositionText<'a> {
    out: &'a mut Vec<u8>,
    integer: itoa::Buffer,
    float: ryu::Buffer,
}

impl<'a> ExpositionText<'a> {
    fn new(out: &'a mut Vec<u8>) -> ExpositionText<'a> {
        ExpositionText {
            out,
            integer: itoa::Buffer::new(),
            float: ryu::Buffer::new(),
        }
    }

    /// Writes a heading and the `samples`, or nothing if there are no samples.
    fn family(&mut self, row: &Series, samples: impl FnOnce(&mut Self)) {
        let Series { name, help, .. } = row;
        let begin = self.out.len();
        let _ = write!(self.out, "# HELP {name} {help}\n# TYPE {name} gauge\n");
        let heading_end = self.out.len();
        samples(self);
        if self.out.len() == heading_end {
            self.out.truncate(begin);
        }
    }

    /// Writes a family of one series without labels.
    fn single(&mut self, row: &Series, value: i128) {
        self.family(row, |text| {
            text.sample([&row.name, " ", ""], Number::Integer(value))
        });
    }

    /// Writes a sample, or nothing if its number is unknown.
    fn known(&mut self, series: [&str; 3], number: Option<Number>) {
        if let Some(number) = number {
            self.sample(series, number);
        }
    }

    fn sample(&mut self, series: [&str; 3], number: Number) {
        for part in series {
            self.out.extend_from_slice(part.as_bytes());
        }
        self.number(number);
        self.out.push(b'\n');
    }

    /// Writes the shortest text that parses as the same number.
    fn number(&mut self, number: Number) {
        let text = match number {
            // Nearly all sums fit into 64 bits, which are faster to format.
            Number::Integer(integer) => match i64::try_from(integer) {
                Ok(integer) => self.integer.format(integer),
                Err(_) => self.integer.format(integer),
            },
            Number::Float(float) => self.float.format(float),
        };
        self.out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests;
