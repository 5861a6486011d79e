//! The metrics of one tally as a map, `{"hit_rate@5":0.36,"mrr":0.21}`, written without a string for each key.

use serde::Serialize;
use serde::ser::Serializer;

use crate::engine::ranking::{Column, Ranking};

/// The defined metrics of `sums` under a profile by their keys, `{"hit_rate@5":0.36,"mrr":0.21}`; what divides by 0 is
/// absent.
pub fn metrics_map<'a>(ranking: &'a Ranking, profile: usize, sums: &'a [i128]) -> MetricsMap<'a> {
    MetricsMap {
        ranking,
        profile,
        sums,
    }
}

/// Serialises as a map in the order of export.
#[derive(Debug, Clone, Copy)]
pub struct MetricsMap<'a> {
    ranking: &'a Ranking,
    /// Index among the ranking's profiles.
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

/// [`Column::key`], without a string for each.
#[derive(Clone, Copy)]
pub(crate) struct MetricKey<'a>(pub &'a Column);

impl Serialize for MetricKey<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let id = self.0.metric.id;
        match self.0.k {
            Some(k) => serializer.collect_str(&format_args!("{id}@{k}")),
            None => serializer.serialize_str(id),
        }
    }
}
