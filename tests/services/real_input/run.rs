//! A daemon under Prometheus, and the checks once it has read everything sent.

use std::collections::BTreeMap;
use std::fs;

use abgauge_core::engine::View;
use abgauge_core::metrics::{METRICS, Metric};

use crate::real_input::accounts::Accounts;
use crate::real_input::answers::{
    CATALOGUE, Values, assert_near, assert_same_bits, evaluated, expected, of_api,
};
use crate::real_input::feed::Feed;
use crate::support::daemon::Daemon;
use crate::support::exposition::Sample;
use crate::support::prometheus::Prometheus;
use crate::support::{tools, wait};

pub struct Run {
    pub daemon: Daemon,
    pub prometheus: Prometheus,
}

impl Run {
    /// Starts a daemon and waits until it has read everything that the feed has sent so far.
    pub fn start(feed: &Feed) -> Run {
        let mut daemon = Daemon::run(feed.config());
        let prometheus = Prometheus::start(&[daemon.address()]);
        daemon.wait_until_ready();
        Run { daemon, prometheus }
    }

    /// Waits until Prometheus has scraped these counts.
    #[track_caller]
    pub fn wait_for(&self, accounts: &Accounts) {
        let mut seen = Accounts::default();
        wait::try_until(wait::LONG, || {
            seen = Accounts::scraped(&self.prometheus);
            (seen == *accounts).then_some(())
        });
        assert_eq!(seen, *accounts);
    }

    /// Checks that the live gauges equal the reference once all events have been sent, and that the settled ones do after the
    /// end.
    #[track_caller]
    pub fn check(self, mut feed: Feed) {
        self.wait_for(&feed.accounts());
        let live = total(&self.prometheus);
        assert_near(&live, &expected());
        let evaluated = evaluated(&catalogue());
        assert_same_bits(&live, &evaluated);
        assert_same_bits(&of_api(&self.daemon), &evaluated);
        let settled = ranking_series(&self.prometheus, View::Settled);
        assert!(
            settled.is_empty(),
            "no attribution window has closed: {settled:?}"
        );
        let log = self.daemon.log();
        assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");

        feed.send_end();
        self.wait_for(&feed.accounts());
        assert_same_bits(&total(&self.prometheus), &live);
        let live = ranking_series(&self.prometheus, View::Live);
        assert!(!live.is_empty());
        assert_eq!(ranking_series(&self.prometheus, View::Settled), live);
    }
}

/// Returns the values of window `total` and view `live` for each arm of `ranker`.
pub fn total(prometheus: &Prometheus) -> Values {
    let gauges: Vec<&str> = METRICS.iter().map(|metric| metric.gauge).collect();
    let names = format!("abgauge_(lists|clicks|{})", gauges.join("|"));
    values(&prometheus.query(&format!(
        "{{__name__=~'{names}',experiment='ranker',window='total',view='live'}}"
    )))
}

/// Returns the text of the catalogue for the reference values.
pub fn catalogue() -> String {
    fs::read_to_string(tools::repository(CATALOGUE)).expect("read the catalogue")
}

/// Returns values by profile, arm and metric. The metric is the label `metric` or else the gauge's name, with `k`.
pub fn values(samples: &[Sample]) -> Values {
    let value = |sample: &Sample| {
        let gauge = sample.name.trim_start_matches("abgauge_");
        let metric = sample.labels.get("metric").map_or(gauge, String::as_str);
        let metric = Metric::named(metric).map_or(metric, |metric| metric.id);
        let key = match sample.labels.get("k") {
            Some(k) => format!("{metric}@{k}"),
            None => metric.to_owned(),
        };
        let profile = sample.labels.get("profile").map_or("default", String::as_str);
        let arm = sample.labels["arm"].clone();
        ((profile.to_owned(), arm, key), sample.value)
    };
    samples.iter().map(value).collect()
}

/// Returns all values of `total` in a view for the arms of `ranker`, by name and labels without the view.
pub fn ranking_series(
    prometheus: &Prometheus,
    view: View,
) -> BTreeMap<(String, BTreeMap<String, String>), f64> {
    let view = view.name();
    let samples = prometheus.query(&format!(
        "{{__name__=~'abgauge_.+',experiment='ranker',window='total',view='{view}'}}"
    ));
    samples
        .into_iter()
        .map(|mut sample| {
            sample.labels.remove("view");
            ((sample.name, sample.labels), sample.value)
        })
        .collect()
}
