//! Plans as a table and as JSON.

use std::collections::BTreeMap;

use abgauge_core::nouns::number_of;
use abgauge_core::statistics::days::{ArmDays, MetricDays, TestDesign};
use abgauge_core::table::{align_numbers, visible};
use serde::Serialize;

use super::Planned;
use crate::settings::Schedule;

/// Formats the experiments for a terminal, one after the other.
pub(super) fn table(plans: &BTreeMap<String, Planned>) -> String {
    let texts = plans
        .iter()
        .map(|(experiment, planned)| text(experiment, planned));
    format!("{}{LEGEND}\n", texts.collect::<Vec<_>>().join("\n"))
}

fn text(experiment: &str, planned: &Planned) -> String {
    let mut table = abgauge_core::table::new();
    let designs = TestDesign::ALL.map(|design| title(design, planned));
    let names = [visible(experiment), visible(&planned.control)];
    table.set_header(names.into_iter().chain(designs));
    for (name, arm) in &planned.days.arms {
        for (id, metric) in &arm.metrics {
            table.add_row(row(name, arm, id, metric.as_ref()));
        }
    }
    align_numbers(&mut table, 1);
    let weeks = TestDesign::ALL.map(|design| {
        let name = words(design);
        let Some(weeks) = planned.days.weeks(design) else {
            return format!("{name} –");
        };
        let end = planned.end_ms(design).and_then(date);
        let end = end.map_or_else(String::new, |end| format!(" ({end})"));
        format!("{name} {}{end}", number_of(weeks, "week"))
    });
    let planned_end = planned.planned_end_ms().and_then(date);
    format!(
        "{}days to find {}% with power 80%, from {:.1} days of lists{}\n\n{}\n\nin whole weeks: {}{}\n{}",
        recommended(experiment, planned).unwrap_or_default(),
        100.0 * planned.mde,
        planned.days.so_far,
        planned
            .running
            .as_ref()
            // The start is shown only for a daemon, whose sums begin there.
            .and(planned.schedule)
            .map_or_else(String::new, since),
        abgauge_core::table::text(&table),
        weeks.join(", "),
        if planned.running.is_some() {
            " (* as it is tested)"
        } else {
            ""
        },
        planned_end.map_or_else(String::new, |end| format!("planned end: {end}\n")),
    )
}

/// Writes the setting that finds the effect soonest. None if no look can be planned, or if more days are not enough.
fn recommended(experiment: &str, planned: &Planned) -> Option<String> {
    let design = TestDesign::Planned;
    let days = 7 * planned.days.weeks(design)?;
    let experiment = visible(experiment);
    if planned.running.is_some() {
        // A day that is chosen or moved after the first looks is not valid.
        return Some(format!(
            "recommended for the next experiment like {experiment}: planned_days = {days}\n"
        ));
    }
    let end = planned.end_ms(design).and_then(date);
    let end = end.map_or_else(String::new, |end| format!(" ({end})"));
    Some(format!(
        "recommended for {experiment}: planned_days = {days}{end}\n"
    ))
}

/// Writes a date in UTC: "Thu 4 Dec 2025".
fn date(ms: i64) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(ms).ok()?;
    Some(time.strftime("%a %-d %b %Y").to_string())
}

/// Meaning of the columns.
const LEGEND: &str = "stop any time: can decide every week; fixed end: mostly on one planned day; strict: every week, each arm by its own interval";

/// Returns a design in words.
fn words(design: TestDesign) -> &'static str {
    match design {
        TestDesign::Sequence => "stop any time",
        TestDesign::Planned => "fixed end",
        TestDesign::Strict => "strict",
    }
}

/// Returns a design in words, marked if the daemon uses it.
fn title(design: TestDesign, planned: &Planned) -> String {
    let running = planned.running.as_ref();
    let is_set = running.is_some_and(|running| running.design == Some(design));
    let mark = if is_set { " *" } else { "" };
    format!("{}{mark}", words(design))
}

/// Returns the time from which the days count.
fn since(schedule: Schedule) -> String {
    let time = jiff::Timestamp::from_millisecond(schedule.start_ms);
    time.map_or_else(|_| String::new(), |time| format!(" since {time}"))
}

fn row(name: &str, arm: &ArmDays, id: &str, metric: Option<&MetricDays>) -> Vec<String> {
    let is_new = if arm.is_new { " (new)" } else { "" };
    let unknown = || "–".to_owned();
    let control = metric.and_then(|metric| metric.control);
    let control = control.map_or_else(unknown, |value| format!("{value:.4}"));
    let needs = TestDesign::ALL.map(|design| {
        let need = metric.and_then(|metric| metric.needs.get(&design));
        need.map_or_else(unknown, |need| format!("{:.1}", need.days))
    });
    let names = [format!("{}{is_new}: {id}", visible(name)), control];
    names.into_iter().chain(needs).collect()
}

#[derive(Serialize)]
struct PlanDocument<'a> {
    plans: BTreeMap<&'a str, Plan<'a>>,
}

#[derive(Serialize)]
struct Plan<'a> {
    control: &'a str,
    mde: f64,
    alpha: f64,
    days: f64,
    /// Start of a daemon's sums in Unix ms. `design` is the design of its test.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    design: Option<&'static str>,
    /// Weeks by design.
    weeks: BTreeMap<&'static str, u32>,
    /// End of these weeks, Unix ms, if the start is known.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    ends: BTreeMap<&'static str, i64>,
    /// Time of the planned look, Unix ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    planned_end: Option<i64>,
    arms: &'a BTreeMap<String, ArmDays>,
}

/// Formats plans as JSON; undefined values are omitted:
///
/// `{"plans":{E:{"control":…,"mde":…,"alpha":…,"days":…,"weeks":{"sequence":3,…},"ends":{"sequence":…,…},
/// "planned_end":…,"arms":{A:{"new":false,"metrics":{M:{"control":…,"sequence":{"days":…,"weeks":…,"information":…,"information_per_day":…},…}}}}}}}`.
///
/// # Errors
/// None are expected.
pub(super) fn json(plans: &BTreeMap<String, Planned>) -> serde_json::Result<String> {
    let plans = plans
        .iter()
        .map(|(experiment, planned)| (experiment.as_str(), Plan::new(planned)));
    let document = PlanDocument {
        plans: plans.collect(),
    };
    Ok(serde_json::to_string(&document)? + "\n")
}

impl<'a> Plan<'a> {
    fn new(planned: &'a Planned) -> Plan<'a> {
        let (days, running) = (&planned.days, planned.running.as_ref());
        let weeks = TestDesign::ALL
            .into_iter()
            .filter_map(|design| Some((design.name(), days.weeks(design)?)));
        let ends = TestDesign::ALL
            .into_iter()
            .filter_map(|design| Some((design.name(), planned.end_ms(design)?)));
        Plan {
            control: &planned.control,
            mde: planned.mde,
            alpha: planned.alpha,
            days: days.so_far,
            since: running.and(planned.schedule).map(|schedule| schedule.start_ms),
            design: running.and_then(|running| Some(running.design?.name())),
            weeks: weeks.collect(),
            ends: ends.collect(),
            planned_end: planned.planned_end_ms(),
            arms: &days.arms,
        }
    }
}
