//! Counts per arm, from the traffic that was sent and from the daemons that have read it.

use std::collections::BTreeMap;

use crate::support::exposition::Exposition;

pub type Arms = BTreeMap<String, OfArm>;

/// Counts of one arm in the settled view, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OfArm {
    pub lists: f64,
    pub clicks: f64,
    /// Lists whose first item was clicked.
    pub hits_at_1: f64,
    /// Sum of 60 / rank of the first click: whole for the first five ranks.
    pub sixtieths: f64,
}

impl OfArm {
    /// The first click on a list of this arm, at a rank from 1 to 5.
    pub fn click(&mut self, rank: u32) {
        self.clicks += 1.0;
        self.hits_at_1 += f64::from(u8::from(rank == 1));
        self.sixtieths += f64::from(60 / rank);
    }
}

/// Adds the settled counts of a daemon.
pub fn add_settled(scrape: &Exposition, arms: &mut Arms) {
    type Field = fn(&mut OfArm, f64);
    type Labels<'a> = &'a [(&'a str, &'a str)];
    let fields: [(&str, Labels, Field); 4] = [
        ("abgauge_lists", &[], |arm, n| arm.lists += n),
        ("abgauge_clicks", &[], |arm, n| arm.clicks += n),
        (
            "abgauge_metric_numerator",
            &[("metric", "hit_rate"), ("k", "1")],
            |arm, n| arm.hits_at_1 += n,
        ),
        (
            "abgauge_metric_numerator",
            &[("metric", "mrr"), ("k", "5")],
            |arm, n| arm.sixtieths += (60.0 * n).round(),
        ),
    ];
    let of_all = [("view", "settled"), ("window", "total"), ("scope", "own")];
    for (name, more, add) in fields {
        for sample in scrape.select(name, &[&of_all[..], more].concat()) {
            add(
                arms.entry(sample.labels["arm"].clone()).or_default(),
                sample.value,
            );
        }
    }
}
