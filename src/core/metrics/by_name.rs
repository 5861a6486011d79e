//! Metrics of one tally as a map, `{"hit_rate@5":0.36,"mrr":0.21}`, serialized without allocating a string per key.

use serde::Serialize;
use serde::ser::Serializer;

use crate::metrics::{Column, Ranking};

/// Returns the defined metrics of `sums` under a profile by key, `{"hit_rate@5":0.36,"mrr":0.21}`. A metric that would divide
/// by 0 is omitted.
pub fn metrics_map<'a>(ranking: &'a Ranking, profile: usize, sums: &'a [i128]) -> MetricsMap<'a> {
    MetricsMap {
        ranking,
        profile,
        sums,
    }
}

/// Map of metrics, serialized in export order.
#[derive(Debug, Clone, Copy)]
pub struct MetricsMap<'a> {
    ranking: &'a Ranking,
    /// Index of the profile in the ranking.
    profile: usize,
    sums: &'a [i128],
}

impl<'a> MetricsMap<'a> {
    pub fn iter(self) -> impl Iterator<Item = (&'a Column, f64)> {
        let columns = self.ranking.columns().iter();
        let columns = columns.filter(move |column| column.profile == self.profile);
        columns.filter_map(move |column| Some((column, column.value(self.sums)?)))
    }
}

impl Serialize for MetricsMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(column, value)| (MetricKey(column), value)))
    }
}

/// Key of a column like [`Column::key`], but without allocating a string.
#[derive(Clone, Copy)]
pub struct MetricKey<'a>(pub &'a Column);

impl Serialize for MetricKey<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let id = self.0.metric.id;
        match self.0.k {
            Some(k) => serializer.collect_str(&format_args!("{id}@{k}")),
            None => serializer.serialize_str(id),
        }
    }
}
