//! Definitions of metrics for people: name, unit and meaning, by id.

use serde::Serialize;

use super::per_user::{USER_METRICS, UserMetric};
use crate::metrics::{METRICS, Metric, MetricUnit};

/// Name, unit and meaning of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MetricDefinition {
    pub id: &'static str,
    pub name: &'static str,
    pub unit: MetricUnit,
    /// Number of digits after the decimal point.
    pub digits: usize,
    pub meaning: &'static str,
    /// Set for a metric per assigned user, which has neither cut-offs nor time lines.
    pub per_user: bool,
}

impl MetricDefinition {
    /// Returns all definitions in the order of export, metrics per assigned user last.
    pub fn all() -> impl Iterator<Item = MetricDefinition> {
        let of_lists = METRICS.iter().map(MetricDefinition::from);
        of_lists.chain(USER_METRICS.iter().map(MetricDefinition::from))
    }

    /// Returns the definition of a key such as `ctr@10`, or `None` if its id is unknown.
    fn of(key: &str) -> Option<MetricDefinition> {
        let (id, _) = split(key);
        MetricDefinition::all().find(|definition| definition.id == id)
    }
}

impl From<&Metric> for MetricDefinition {
    fn from(metric: &Metric) -> MetricDefinition {
        MetricDefinition {
            id: metric.id,
            name: metric.name,
            unit: metric.unit,
            digits: metric.unit.digits(),
            meaning: metric.meaning,
            per_user: false,
        }
    }
}

impl From<&UserMetric> for MetricDefinition {
    fn from(metric: &UserMetric) -> MetricDefinition {
        MetricDefinition {
            id: metric.id,
            name: metric.name,
            unit: MetricUnit::Score,
            digits: MetricUnit::Score.digits(),
            meaning: metric.meaning,
            per_user: true,
        }
    }
}

/// Returns the name of a metric, such as `CTR@10` for `ctr@10`. An unknown id is unchanged.
pub fn name_of(key: &str) -> String {
    let (id, cut) = split(key);
    let name = MetricDefinition::of(key).map_or(id, |definition| definition.name);
    format!("{name}{cut}")
}

/// Returns the unit of a metric by its key. An unknown metric is a score.
pub fn unit_of(key: &str) -> MetricUnit {
    MetricDefinition::of(key).map_or(MetricUnit::Score, |definition| definition.unit)
}

/// Splits a key into the id and the cut-off: `ctr` and `@10`, or an empty text for the whole list.
fn split(key: &str) -> (&str, &str) {
    key.split_at(key.find('@').unwrap_or(key.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_name_and_its_cut() {
        assert_eq!(name_of("ctr@10"), "CTR@10");
        assert_eq!(name_of("hit_rate"), "hit ratio");
        assert_eq!(name_of("hits_per_user"), "hits per assigned user");
        assert_eq!(name_of("revenue@3"), "revenue@3");
    }

    #[test]
    fn a_key_has_the_unit_of_its_metric() {
        assert_eq!(unit_of("surprisal@5"), MetricUnit::Bits);
        assert_eq!(unit_of("revenue"), MetricUnit::Score);
    }
}
