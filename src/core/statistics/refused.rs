//! Test that an arm and its control lose equal shares of their lists and clicks. If they do not, the rest cannot be compared.
//!
//! The share is R ÷ (N + R), with R refused lists and clicks and N accepted lists. Its variance is the cluster-robust variance
//! of a ratio. Clusters are user buckets for refused events with a user, and hours for the others. With few clusters, Student's t
//! applies, with Welch and Satterthwaite's degrees of freedom.

use super::settings::Settings;
use super::student;
use super::totals::Totals;

/// Number of lists from which on shares are compared, in the arm and in its control, including refused lists and clicks.
const MIN_LISTS: f64 = 1000.0;
/// Smallest difference of shares that makes a comparison invalid.
const MIN_DIFFERENCE: f64 = 0.01;
/// Smallest such difference in standard errors.
const MIN_ERRORS: f64 = 4.0;

/// Refused lists of an arm, and refused clicks on its lists.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RefusedLists {
    /// Refused lists and clicks with a known user, by user bucket. May be empty.
    pub by_bucket: Vec<f64>,
    /// Other refused lists and clicks, and accepted lists, by hour of the week.
    pub by_hour: Vec<[f64; 2]>,
}

/// Shares of refused lists and clicks over all epochs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct RefusalShares {
    /// Shares of the arm and of its control.
    pub shares: [f64; 2],
    /// True if they differ by more than chance explains.
    pub differ: bool,
}

impl RefusalShares {
    pub fn new(totals: &Totals, settings: &Settings, arm: &str) -> RefusalShares {
        let sides = [arm, &settings.control].map(|name| ArmRefusals::new(totals, name));
        let shares = sides.each_ref().map(ArmRefusals::share);
        RefusalShares {
            shares,
            // A difference must be large as well as certain, so that huge experiments do not fail for a trifle.
            differ: sides.iter().all(|side| side.all() >= MIN_LISTS)
                && (shares[0] - shares[1]).abs() >= MIN_DIFFERENCE
                && errors(&sides) >= MIN_ERRORS,
        }
    }
}

/// Computes the difference of shares in standard errors, as a normal deviate.
fn errors(sides: &[ArmRefusals; 2]) -> f64 {
    let parts: Vec<VariancePart> = sides.iter().flat_map(ArmRefusals::parts).collect();
    let by_cluster: f64 = parts.iter().map(|part| part.variance).sum();
    // Clusters may agree better by chance than independent lists would, so the binomial variance is a lower bound.
    let variance = by_cluster.max(sides.iter().map(ArmRefusals::binomial_variance).sum());
    // Welch and Satterthwaite: degrees of freedom of a sum of variances.
    let of_degrees = parts
        .iter()
        .map(|part| part.variance.powi(2) / part.degrees)
        .sum::<f64>();
    let t = (sides[0].share() - sides[1].share()).abs() / variance.sqrt();
    match by_cluster > 0.0 {
        true => student::to_normal(t, by_cluster.powi(2) / of_degrees),
        false => t,
    }
}

/// An arm over all epochs.
#[derive(Debug, Default)]
struct ArmRefusals {
    /// Refused and accepted lists of each cluster.
    by_bucket: Vec<[f64; 2]>,
    by_hour: Vec<[f64; 2]>,
}

/// A part of the variance of a share.
struct VariancePart {
    variance: f64,
    degrees: f64,
}

impl ArmRefusals {
    fn new(totals: &Totals, name: &str) -> ArmRefusals {
        let mut side = ArmRefusals::default();
        for arm in totals.epochs.iter().filter_map(|epoch| epoch.arms.get(name)) {
            let buckets = side.by_bucket.len().max(arm.lists.len());
            side.by_bucket.resize(buckets, [0.0; 2]);
            let refused = arm
                .refused
                .by_bucket
                .iter()
                .copied()
                .chain(std::iter::repeat(0.0));
            for (own, (lists, refused)) in side.by_bucket.iter_mut().zip(arm.lists.iter().zip(refused)) {
                *own = [own[0] + refused, own[1] + lists];
            }
            // The same hour in another epoch is another cluster.
            side.by_hour.extend(&arm.refused.by_hour);
        }
        side
    }

    fn refused(&self) -> f64 {
        let clusters = self.by_bucket.iter().chain(&self.by_hour);
        clusters.map(|[refused, _]| refused).sum()
    }

    /// Returns accepted and refused lists together.
    fn all(&self) -> f64 {
        let accepted: f64 = self.by_bucket.iter().map(|[_, accepted]| accepted).sum();
        accepted + self.refused()
    }

    fn share(&self) -> f64 {
        match self.all() {
            0.0 => 0.0,
            all => self.refused() / all,
        }
    }

    fn binomial_variance(&self) -> f64 {
        let share = self.share();
        share * (1.0 - share) / self.all()
    }

    /// Returns the parts of lists with a known user and of the others.
    fn parts(&self) -> impl Iterator<Item = VariancePart> + '_ {
        let parts = [&self.by_bucket, &self.by_hour].into_iter();
        parts.filter_map(|clusters| self.part(clusters))
    }

    /// Computes the linearized variance: the variance of Σ (r − s n) over clusters, divided by the square of all lists.
    fn part(&self, clusters: &[[f64; 2]]) -> Option<VariancePart> {
        let used = || {
            clusters
                .iter()
                .filter(|[refused, accepted]| refused + accepted > 0.0)
        };
        let n = used().count() as f64;
        let refused: f64 = used().map(|[refused, _]| refused).sum();
        let all: f64 = used().map(|[refused, accepted]| refused + accepted).sum();
        if refused == 0.0 || n < 2.0 {
            return None;
        }
        let share = refused / all;
        let squares = used().map(|[refused, accepted]| (refused - share * (refused + accepted)).powi(2));
        Some(VariancePart {
            variance: n / (n - 1.0) * squares.sum::<f64>() / self.all().powi(2),
            degrees: n - 1.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::totals::{ArmTotals, Epoch};
    use super::*;

    fn refused(arms: [ArmTotals; 2]) -> RefusalShares {
        let [arm, control] = arms;
        let totals = Totals {
            epochs: vec![Epoch {
                arms: [("a".to_owned(), arm), ("b".to_owned(), control)].into(),
                ..Epoch::default()
            }],
            multi_arm_users: None,
        };
        RefusalShares::new(&totals, &Settings::new("b"), "a")
    }

    /// Ten lists in each of these buckets, with this many refused.
    fn by_bucket(refused: &[f64]) -> ArmTotals {
        ArmTotals {
            lists: vec![10.0; refused.len()],
            refused: RefusedLists {
                by_bucket: refused.to_vec(),
                by_hour: Vec::new(),
            },
            ..ArmTotals::default()
        }
    }

    fn by_hour(hours: &[[f64; 2]]) -> ArmTotals {
        let n_lists: f64 = hours.iter().map(|[_, accepted]| accepted).sum();
        ArmTotals {
            lists: vec![n_lists / 200.0; 200],
            refused: RefusedLists {
                by_bucket: Vec::new(),
                by_hour: hours.to_vec(),
            },
            ..ArmTotals::default()
        }
    }

    #[test]
    fn shares_and_errors_by_hand() {
        let found = refused([by_bucket(&[0.0, 2.0]), by_bucket(&[0.0, 0.0])]);
        assert_eq!(
            (found.shares, found.differ),
            ([2.0 / 22.0, 0.0], false),
            "too few lists"
        );
        // s = 1/11, residuals −10/11 and 10/11, so the variance is 2 · 2 (10/11)² ÷ 22².
        let side = ArmRefusals {
            by_bucket: vec![[0.0, 10.0], [2.0, 10.0]],
            by_hour: Vec::new(),
        };
        let part = side.part(&side.by_bucket).expect("two clusters");
        assert!((part.variance - 4.0 / 22f64.powi(2) * (10.0 / 11f64).powi(2)).abs() < 1e-15);
        assert_eq!(part.degrees, 1.0);
    }

    #[test]
    fn variances_equal_statsmodels() {
        let blocks: serde_json::Value =
            serde_json::from_str(include_str!("../../../tests/data/decisions.json")).expect("JSON");
        let rows = blocks["refused"].as_array().expect("rows");
        for row in rows {
            let clusters: Vec<[f64; 2]> = serde_json::from_value(row["clusters"].clone()).expect("pairs");
            let side = ArmRefusals {
                by_bucket: clusters,
                by_hour: Vec::new(),
            };
            let part = side.part(&side.by_bucket).expect("there are refused lists");
            for (found, expected) in [(side.share(), &row["share"]), (part.variance, &row["variance"])] {
                let expected = expected.as_f64().expect("a number");
                assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
            }
        }
        assert!(rows.len() >= 3);
    }

    #[test]
    fn a_broken_arm_is_a_difference_but_one_broken_client_is_not() {
        let none = || by_bucket(&[0.0; 200]);
        let mut one_client = vec![0.0; 200];
        one_client[7] = 700.0;
        let found = refused([by_bucket(&one_client), none()]);
        assert!(found.shares[0] > 0.2 && !found.differ, "{found:?}");
        let of_all: Vec<f64> = (0..200).map(|bucket| f64::from(bucket % 3)).collect();
        assert!(refused([by_bucket(&of_all), none()]).differ);
        assert!(!refused([by_bucket(&of_all), by_bucket(&of_all)]).differ);
    }

    #[test]
    fn only_more_than_one_point_is_a_difference() {
        let lists = |n_refused: f64| ArmTotals {
            lists: vec![10_000.0; 200],
            refused: RefusedLists {
                by_bucket: vec![n_refused; 200],
                by_hour: Vec::new(),
            },
            ..ArmTotals::default()
        };
        assert!(!refused([lists(90.0), lists(0.0)]).differ);
        assert!(refused([lists(102.0), lists(0.0)]).differ);
    }

    #[test]
    fn without_users_a_bad_arm_is_a_difference_but_a_bad_hour_is_not() {
        let none = || by_hour(&[[0.0, 100.0]; 24]);
        let mut one_hour = [[0.0, 100.0]; 24];
        one_hour[3] = [100.0, 0.0];
        let found = refused([by_hour(&one_hour), none()]);
        assert!(found.shares[0] > 0.04 && !found.differ, "{found:?}");
        assert!(refused([by_hour(&[[5.0, 95.0]; 24]), none()]).differ);
    }

    #[test]
    fn few_hours_need_a_larger_difference() {
        let hours = |n: usize| -> Vec<[f64; 2]> {
            (0..n)
                .map(|hour| [40.0 + 20.0 * (hour % 2) as f64, 950.0])
                .collect()
        };
        let none = |n| by_hour(&vec![[0.0, 1000.0]; n]);
        assert!(!refused([by_hour(&hours(2)), none(2)]).differ);
        assert!(refused([by_hour(&hours(12)), none(12)]).differ);
    }
}
