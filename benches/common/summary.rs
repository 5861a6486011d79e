//! Medians and ranges of a few rounds, and quantiles of many samples.

use std::fmt;

/// Median of several rounds, with the smallest and the largest.
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

impl Summary {
    /// Summarizes the values.
    ///
    /// # Panics
    /// If there are no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Summary {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        Summary {
            min: values[0],
            median: quantile(&values, 0.5),
            max: values[values.len() - 1],
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Summary { min, median, max } = self;
        let digits = f.precision().unwrap_or(2);
        write!(f, "{median:.digits$} ({min:.digits$} to {max:.digits$})")
    }
}

/// Returns the value at `share` of sorted values, interpolated between neighbors.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    below + (above - below) * place.fract()
}
