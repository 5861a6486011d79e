//! Text of the demo: measured values next to true ones, progress, and whether everything was counted.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use abgauge_core::engine::View;
use abgauge_core::engine::outcome::Outcome;
use abgauge_core::looks::PublishedLooks;
use abgauge_core::metrics::{CLICKS, Column, LISTS, Measures, Ranking};
use abgauge_core::nouns::number_of;
use abgauge_core::table::visible;
use abgauge_core::verdict::{Badge, Headline};
use console::style;
use indicatif::HumanCount;

use super::lifts::{self, PRIMARY};
use super::{DemoOptions, n_read};
use crate::board::snapshot::{ArmSnapshot, Snapshot};
use crate::telemetry::StreamStatus;
use crate::tools::simulate::Truth;

/// Cut-off that is shown.
const K: NonZeroU32 = NonZeroU32::new(10).expect("10 is not zero");
/// Columns of a terminal.
const WIDTH: usize = 80;
/// Columns of the progress bar.
const BAR: usize = 24;

/// Reference for the measured values.
pub struct Scene {
    truths: Vec<Truth>,
    columns: Vec<Column>,
    duration: Duration,
}

impl Scene {
    pub fn new(truths: Vec<Truth>, measures: &Measures, duration: Duration) -> Scene {
        let ranking = Ranking::new(measures);
        let has_truth = |column: &Column| truths.iter().any(|truth| truth.key == column.key());
        let columns = ranking.columns().iter();
        let shown = columns.filter(|column| column.profile == 0 && column.k == Some(K) && has_truth(column));
        let mut columns: Vec<Column> = shown.copied().collect();
        // The order is the page's: the primary metric is first.
        columns.sort_by_key(|column| column.key() != PRIMARY);
        Scene {
            truths,
            columns,
            duration,
        }
    }

    /// Returns a block for each experiment with its headline, the lifts of the latest look, and the progress of the run.
    /// Fits a terminal of 80 columns.
    pub fn table(
        &self,
        snapshot: &Snapshot,
        headlines: &[(String, Headline)],
        looks: &PublishedLooks,
        status: &StreamStatus,
        elapsed: Duration,
    ) -> Vec<String> {
        let names = snapshot.arms.iter().flat_map(|arm| [&arm.experiment, &arm.arm]);
        let width = names.map(|name| name.chars().count()).max().unwrap_or(0).max(10);
        let mut lines = Vec::new();
        for arms in snapshot.arms.chunk_by(|a, b| a.experiment == b.experiment) {
            let of_experiment = headlines.iter().filter(|(name, _)| **name == *arms[0].experiment);
            lines.extend(of_experiment.flat_map(|(name, headline)| sentence(name, headline)));
            lines.push(self.header(&arms[0].experiment, width));
            lines.extend(arms.iter().map(|arm| self.row(arm, width)));
            lines.push(String::new());
        }
        let lifts = lifts::lines(looks, &self.truths, width);
        if !lifts.is_empty() {
            lines.extend(lifts);
            lines.push(String::new());
        }
        let waiting = status.waiting_for.iter();
        lines.extend(waiting.map(|it| format!("waiting for {it}")));
        lines.push(self.progress(snapshot, elapsed));
        lines.push(outcomes(status));
        lines.extend(warnings(status));
        lines
    }

    fn header(&self, experiment: &str, width: usize) -> String {
        let mut header = format!("{experiment:<width$}{:>9}{:>8}", View::Settled.word(), "clicks");
        for column in &self.columns {
            let key = column.key();
            header += &format!("{key:>0$}{1:>7}", value_width(column), "true");
        }
        style(header).bold().to_string()
    }

    fn row(&self, arm: &ArmSnapshot, width: usize) -> String {
        let sums = total(arm, View::Settled);
        let mut row = format!("{:<width$}{:>9}{:>8}", arm.arm, sums[LISTS], sums[CLICKS]);
        for column in &self.columns {
            let measured = number(column.value(sums));
            row += &format!("{measured:>0$}", value_width(column));
            let truth = number(self.truth(arm, column));
            row += &style(format!("{truth:>7}")).dim().to_string();
        }
        row
    }

    fn truth(&self, arm: &ArmSnapshot, column: &Column) -> Option<f64> {
        let key = column.key();
        let is_it =
            |truth: &&Truth| truth.experiment == *arm.experiment && truth.arm == *arm.arm && truth.key == key;
        self.truths.iter().find(is_it).map(|truth| truth.value)
    }

    fn progress(&self, snapshot: &Snapshot, elapsed: Duration) -> String {
        let part = (elapsed.as_secs_f64() / self.duration.as_secs_f64()).min(1.0);
        let n_done = (part * BAR as f64) as usize;
        let (done, left) = ("━".repeat(n_done), style("╌".repeat(BAR - n_done)).dim());
        format!(
            "{done}{left} {}   {}",
            self.clock_face(elapsed),
            event_time(snapshot)
        )
    }

    /// Returns text such as `1:24 of 5:00`.
    fn clock_face(&self, elapsed: Duration) -> String {
        let [elapsed, duration] = [elapsed.min(self.duration), self.duration].map(|span| span.as_secs());
        let face = |s: u64| format!("{}:{:02}", s / 60, s % 60);
        format!("{} of {}", face(elapsed), face(duration))
    }

    /// Returns the progress and each experiment's result in one line, for output without a terminal.
    pub fn line(
        &self,
        snapshot: &Snapshot,
        headlines: &[(String, Headline)],
        status: &StreamStatus,
        elapsed: Duration,
    ) -> String {
        let lists = |view| -> i128 {
            // A list is in an arm of each experiment, so lists of experiments do not add up.
            let arms = snapshot.arms.chunk_by(|a, b| a.experiment == b.experiment);
            let lists = arms.map(|arms| arms.iter().map(|arm| total(arm, view)[LISTS]).sum());
            lists.max().unwrap_or(0)
        };
        let mut line = format!(
            "{}  {}  {} lists, {} of them final  {}",
            self.clock_face(elapsed),
            event_time(snapshot),
            lists(View::Live),
            lists(View::Settled),
            outcomes(status)
        );
        let headlines = headlines
            .iter()
            .flat_map(|(name, headline)| sentence(name, headline));
        for further in headlines.chain(warnings(status)) {
            line += &format!("\n{further}");
        }
        line
    }
}

/// Returns the headline of an experiment, wrapped into lines.
fn sentence(experiment: &str, headline: &Headline) -> Vec<String> {
    let words = format!("{}: {}", visible(experiment), headline.sentence(visible));
    let mut lines = vec![String::new()];
    // Only breakable spaces split the text: a no-break space joins a number and its sign.
    for word in words.split(' ') {
        let last = lines.last_mut().expect("there is a line");
        if !last.is_empty()
            && console::measure_text_width(last) + 1 + console::measure_text_width(word) > WIDTH
        {
            lines.push(word.to_owned());
        } else {
            *last += if last.is_empty() { "" } else { " " };
            *last += word;
        }
    }
    let style = |line: String| match headline.badge {
        Badge::Win => style(line).green().to_string(),
        Badge::Harm | Badge::Invalid => style(line).red().to_string(),
        _ => line,
    };
    lines.into_iter().map(style).collect()
}

/// Returns the addresses to open, and an explanation of the table.
pub fn introduction(options: &DemoOptions, address: SocketAddr) -> String {
    format!(
        "\n  live page  {}\n  metrics    {}\n\n\
         Simulated traffic of {}, {} times as fast as the clock.\n\
         Below: the result of each experiment, as on the page; final lists (no click can\n\
         change them any more), measured next to true; then the lift of each arm over the\n\
         control, its 95% interval, and the true lift.\n",
        style(format!("http://{address}/")).underlined(),
        style(format!("http://{address}/metrics")).underlined(),
        number_of(options.world.design.experiments().len(), "experiment"),
        options.speed,
    )
}

/// Reports whether every produced record was counted.
pub fn closing(n_produced: u64, status: &StreamStatus) -> String {
    let n_read = n_read(status);
    if n_read >= n_produced && status.pair_restarts == 0 {
        return format!(
            "All {} records that were produced have been counted.",
            HumanCount(n_produced)
        );
    }
    format!(
        "warning: {} records were produced, {} read: the numbers are not complete; give a lower --rate",
        HumanCount(n_produced),
        HumanCount(n_read)
    )
}

fn warnings(status: &StreamStatus) -> Vec<String> {
    let mut warnings: Vec<String> = status
        .warnings
        .iter()
        .map(|it| format!("warning: {}", it.message))
        .collect();
    if status.pair_restarts > 0 {
        warnings.push(format!(
            "warning: records were lost {} times: the embedded broker keeps 5 MiB of a partition; give a lower --rate",
            status.pair_restarts
        ));
    }
    warnings
}

/// Returns text such as `7,712 records: 7,640 accepted, 60 duplicate, 12 late`.
fn outcomes(status: &StreamStatus) -> String {
    let of = |outcome: Outcome| -> u64 {
        let topics = status.records.values();
        topics.filter_map(|outcomes| outcomes.get(outcome.name())).sum()
    };
    let parts = Outcome::OF_EVENTS.map(|outcome| (of(outcome), outcome.name()));
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, name)| format!("{} {name}", HumanCount(n)))
        .collect();
    let colon = if parts.is_empty() { "" } else { ": " };
    format!(
        "{}{colon}{}",
        number_of(HumanCount(n_read(status)), "record"),
        parts.join(", ")
    )
}

fn event_time(snapshot: &Snapshot) -> String {
    let time = snapshot.live_end_ms.map(jiff::Timestamp::from_millisecond);
    match time {
        Some(Ok(time)) => format!("event time {}", time.strftime("%Y-%m-%d %H:%M:%S UTC")),
        _ => "nothing read yet".to_owned(),
    }
}

/// Returns the sums since the start.
fn total(arm: &ArmSnapshot, view: View) -> &[i128] {
    arm.sums[view as usize].last().map_or(&[], |sums| sums)
}

fn value_width(column: &Column) -> usize {
    (column.key().len() + 2).max(8)
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.4}"))
}

#[cfg(test)]
mod tests {
    use abgauge_core::metrics::ListOutcome;

    use super::*;
    use crate::telemetry::Telemetry;
    use crate::tools::simulate::{Traffic, TrafficSettings};

    /// Scene and snapshot of all simulated arms, each with ten million lists.
    fn scene_and_snapshot() -> (Scene, Snapshot) {
        let ks = [K];
        let truths = Traffic::new(TrafficSettings::new(1, 1.0, 1_763_596_800_000)).truth(&ks);
        let ranking = Ranking::new(&Measures::usual(&ks));
        let list = ListOutcome {
            n_items: 10,
            clicked: &[0b10],
            n_off_list: 0,
        };
        let mut tally = vec![0; ranking.width()];
        ranking.contribute(&list, &mut tally);
        let sums: Box<[i128]> = tally.iter().map(|sum| i128::from(*sum) * 10_000_000).collect();
        let mut arms: Vec<_> = truths
            .iter()
            .map(|truth| (truth.experiment.clone(), truth.arm.clone()))
            .collect();
        arms.sort_unstable();
        arms.dedup();
        let arm = |(experiment, arm): (String, String)| ArmSnapshot {
            experiment: experiment.into(),
            arm: arm.into(),
            last_list_ms: 0,
            sums: [vec![sums.clone()], vec![sums.clone()]],
            timelines: None,
        };
        let snapshot = Snapshot {
            live_end_ms: Some(1_763_596_800_000),
            arms: arms.into_iter().map(arm).collect(),
            ..Snapshot::default()
        };
        (
            Scene::new(truths, &Measures::usual(&ks), Duration::from_secs(300)),
            snapshot,
        )
    }

    fn status() -> StreamStatus {
        let telemetry = Telemetry::new("served", "clicks", "0.1.0");
        telemetry.set_waiting_for(Vec::new());
        telemetry.status()
    }

    #[test]
    fn the_table_fits_80_columns_and_24_rows() {
        let (scene, snapshot) = scene_and_snapshot();
        let headline =
            ["layout", "ranker"].map(|name| (name.to_owned(), abgauge_core::verdict::waiting(true, None, 0)));
        let lines = scene.table(
            &snapshot,
            &headline,
            &PublishedLooks::default(),
            &status(),
            Duration::from_secs(84),
        );
        let widest = lines.iter().map(|line| console::measure_text_width(line)).max();
        assert!(widest <= Some(80), "{}", lines.join("\n"));
        assert!(lines.len() < 24 - 8, "{}", lines.join("\n"));
        let control = lines.iter().find(|line| line.starts_with("control")).unwrap();
        assert!(
            control.contains("10000000") && control.contains("1.0000"),
            "{control}"
        );
        assert!(!control.contains('–'), "every value has its truth: {control}");
        assert!(
            lines.iter().any(|line| line.starts_with("ranker: too early: ")),
            "{}",
            lines.join("\n")
        );
        let joined = lines.join("\n");
        assert!(
            joined.contains("1:24 of 5:00") && joined.contains("2025-11-20 00:00:00 UTC"),
            "{joined}"
        );
    }

    #[test]
    fn reports_lost_records() {
        let mut status = status();
        status.records.get_mut("served").unwrap().insert("accepted", 90);
        assert!(closing(90, &status).starts_with("All 90 records"));
        assert!(closing(100, &status).contains("100 records were produced, 90 read"));
        status.pair_restarts = 2;
        assert!(closing(90, &status).starts_with("warning: "));
        let (scene, snapshot) = scene_and_snapshot();
        let line = scene.line(&snapshot, &[], &status, Duration::ZERO);
        assert!(line.contains("records were lost 2 times"), "{line}");
    }
}
