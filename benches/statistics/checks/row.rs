//! A row of the table: its runs, and its figures over them.

use std::fmt;

/// A check under many seeds.
pub struct Row {
    /// Name on the command line.
    pub name: &'static str,
    pub n_runs: usize,
    pub figures: Vec<Figure>,
    run: Box<dyn Fn(u64) -> Vec<f64> + Send + Sync>,
}

/// One number over all runs.
#[derive(Debug, Clone)]
pub struct Figure {
    pub what: String,
    pub statistic: Statistic,
    pub bound: Bound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// Share of runs with 1. Others have 0, or [`LEFT_OUT`].
    Share,
    /// Median of the runs.
    Median,
}

/// Number of a run that a figure does not count.
pub const LEFT_OUT: f64 = f64::NAN;

/// Requirement for a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
    Within(f64, f64),
    /// No requirement, shown for comparison.
    Shown,
}

/// A figure over some runs.
#[derive(Debug, Clone)]
pub struct Seen {
    pub figure: Figure,
    /// NaN if no run counts.
    pub value: f64,
    /// Monte Carlo standard error.
    pub error: f64,
    /// Runs that count.
    pub n_runs: usize,
}

impl Row {
    /// Creates a row. `run` returns a number for each figure.
    pub fn new(
        name: &'static str,
        n_runs: usize,
        figures: Vec<Figure>,
        run: impl Fn(u64) -> Vec<f64> + Send + Sync + 'static,
    ) -> Row {
        Row {
            name,
            n_runs,
            figures,
            run: Box::new(run),
        }
    }

    /// Runs one seed and returns its numbers by figure.
    ///
    /// # Panics
    /// Panics if a run returns too few numbers.
    pub fn run(&self, seed: u64) -> Vec<f64> {
        let numbers = (self.run)(seed);
        assert_eq!(
            numbers.len(),
            self.figures.len(),
            "{}: a number for each figure",
            self.name
        );
        numbers
    }

    /// Computes the figures over some runs.
    pub fn seen(&self, runs: &[Vec<f64>]) -> Vec<Seen> {
        let seen = |(index, figure): (usize, &Figure)| {
            let numbers = runs.iter().map(|run| run[index]);
            let numbers: Vec<f64> = numbers.filter(|number| !number.is_nan()).collect();
            let n_runs = numbers.len();
            let (value, error) = figure.statistic.of(numbers);
            Seen {
                figure: figure.clone(),
                value,
                error,
                n_runs,
            }
        };
        self.figures.iter().enumerate().map(seen).collect()
    }
}

impl Figure {
    pub fn share(what: impl Into<String>, bound: Bound) -> Figure {
        Figure {
            what: what.into(),
            statistic: Statistic::Share,
            bound,
        }
    }

    pub fn median(what: impl Into<String>, bound: Bound) -> Figure {
        Figure {
            statistic: Statistic::Median,
            ..Figure::share(what, bound)
        }
    }
}

impl Statistic {
    /// Returns the value and its standard error. Both are NaN without a number.
    fn of(self, mut numbers: Vec<f64>) -> (f64, f64) {
        let n = numbers.len() as f64;
        if numbers.is_empty() {
            return (f64::NAN, f64::NAN);
        }
        match self {
            Statistic::Share => {
                let share = numbers.iter().sum::<f64>() / n;
                (share, (share * (1.0 - share) / n).sqrt())
            }
            Statistic::Median => {
                numbers.sort_unstable_by(f64::total_cmp);
                let at = |place: f64| numbers[(place.max(0.0) as usize).min(numbers.len() - 1)];
                // Ranks of an interval of two standard errors: n/2 ± √n/2.
                let half = 0.5 * n.sqrt();
                (at(0.5 * n), 0.5 * (at(0.5 * n + half) - at(0.5 * n - half)))
            }
        }
    }
}

impl Seen {
    /// Reports whether the figure meets its bound. None without a requirement, or if no run counts.
    pub fn holds(&self) -> Option<bool> {
        if self.value.is_nan() {
            return None;
        }
        match self.figure.bound {
            Bound::AtMost(most) => Some(self.value <= most),
            Bound::AtLeast(least) => Some(self.value >= least),
            Bound::Within(least, most) => Some((least..=most).contains(&self.value)),
            Bound::Shown => None,
        }
    }

    fn number(&self, value: f64) -> String {
        match self.figure.statistic {
            _ if value.is_nan() => "–".to_owned(),
            Statistic::Share => format!("{:.1}%", 100.0 * value),
            Statistic::Median if value < 100.0 => format!("{value:.1}"),
            Statistic::Median => format!("{value:.0}"),
        }
    }
}

/// Writes a line of Markdown: check | figure that must hold | seen ± standard error | runs | MET or MISSED.
impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = match self.figure.bound {
            Bound::AtMost(most) => format!("≤ {}", self.number(most)),
            Bound::AtLeast(least) => format!("≥ {}", self.number(least)),
            Bound::Within(least, most) => format!("{} to {}", self.number(least), self.number(most)),
            Bound::Shown => String::new(),
        };
        let verdict = match self.holds() {
            Some(true) => "MET",
            Some(false) => "MISSED",
            None => "",
        };
        let [value, error] = [self.value, self.error].map(|number| self.number(number));
        let Figure { what, .. } = &self.figure;
        write!(
            f,
            "| {what} | {bound} | {value} ± {error} | {} | {verdict} |",
            self.n_runs
        )
    }
}

/// Converts a condition to 1 or 0.
pub fn indicator(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}
