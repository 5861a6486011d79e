//! Events whose sums by user bucket are given.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use abgauge_core::evaluate::{Compare, Evaluator, ExperimentComparison, Options};
use abgauge_core::statistics::Settings;

use crate::MIDNIGHT_MS;

/// Number of items in every list.
pub const N_ITEMS: usize = 10;
/// Experiment of all events.
pub const EXPERIMENT: &str = "e";

/// Sums of an arm in one bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    pub lists: usize,
    /// Lists with a click.
    pub hits: usize,
    pub clicks: usize,
    /// Sum of 1/rank over first clicks.
    pub reciprocal_ranks: f64,
}

/// Users by bucket in [`EXPERIMENT`]. They are found by evaluation, so the hash of users is not repeated here.
#[derive(Clone)]
pub struct Users(BTreeMap<usize, Vec<String>>);

/// Users by bucket, found once because that takes a second.
static USERS: LazyLock<Users> = LazyLock::new(Users::ask);

impl Users {
    pub fn find() -> Users {
        USERS.clone()
    }

    fn ask() -> Users {
        // Each user has an arm of its own, and the only list in it reveals the user's bucket.
        let line = |user: usize| {
            format!(
                r#"{{"type":"served","request_id":"{user}","user_id":"u{user}","ts":{MIDNIGHT_MS},"experiments":{{"{EXPERIMENT}":"u{user}"}},"items":[]}}"#
            )
        };
        let lines: Vec<String> = (0..5000).map(line).collect();
        let found = compared(&lines.join("\n"), "u0", &["hit_rate"]);
        let mut users: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for (user, totals) in &found.totals.epochs[0].arms {
            let bucket = totals.lists.iter().position(|lists| *lists > 0.0);
            users
                .entry(bucket.expect("it has a list"))
                .or_default()
                .push(user.clone());
        }
        Users(users)
    }

    /// Takes another user of this bucket.
    pub fn take(&mut self, bucket: usize) -> String {
        let left = self.0.get_mut(&bucket).and_then(Vec::pop);
        left.unwrap_or_else(|| panic!("no user is left in bucket {bucket}"))
    }
}

/// Evaluates events like `abgauge evaluate --compare`, and also returns the sums by bucket.
pub fn compared(events: &str, control: &str, metrics: &[&'static str]) -> ExperimentComparison {
    let mut options = Options {
        compare: Some(Compare {
            all: Some(Settings::new(control)),
            ..Compare::default()
        }),
        ..Options::default()
    };
    options.measures.metrics = metrics.to_vec();
    let mut evaluator = Evaluator::new(&options);
    evaluator
        .read("events", events.as_bytes())
        .expect("it can be read");
    let evaluation = evaluator.finish();
    assert_eq!(evaluation.n_unreadable(), 0, "{:?}", evaluation.unreadable);
    let comparisons = evaluation.comparisons.into_iter().flatten();
    let (_, comparison) = comparisons.last().expect("an experiment is compared");
    comparison
}

/// Events as lines.
#[derive(Default)]
pub struct Feed {
    pub lines: String,
    n_lists: usize,
}

impl Feed {
    /// Adds one user's lists with these sums.
    pub fn user(&mut self, user: &str, arm: &str, sums: Sums) {
        let firsts = first_ranks(sums.hits, sums.reciprocal_ranks);
        let mut n_more = sums.clicks - sums.hits;
        for n in 0..sums.lists {
            let request = self.list(user, arm);
            let Some(first) = firsts.get(n).copied() else {
                continue;
            };
            let n_here = n_more.min(N_ITEMS - first);
            n_more -= n_here;
            for rank in first..=first + n_here {
                self.click(request, rank);
            }
        }
        assert_eq!(n_more, 0, "{sums:?}");
    }

    fn list(&mut self, user: &str, arm: &str) -> usize {
        const ITEMS: &str = r#"["1","2","3","4","5","6","7","8","9","10"]"#;
        let n = self.n_lists;
        self.n_lists += 1;
        writeln!(
            self.lines,
            r#"{{"type":"served","request_id":"{n}","user_id":"{user}","ts":{MIDNIGHT_MS},"experiments":{{"{EXPERIMENT}":"{arm}"}},"items":{ITEMS}}}"#
        )
        .expect("text takes all");
        n
    }

    fn click(&mut self, request: usize, rank: usize) {
        writeln!(
            self.lines,
            r#"{{"type":"click","request_id":"{request}","ts":{},"item":"{rank}"}}"#,
            MIDNIGHT_MS + 1000
        )
        .expect("text takes all");
    }
}

/// Returns `n` ranks from 1 to 10 in any order whose reciprocals have this sum.
fn first_ranks(n: usize, sum: f64) -> Vec<usize> {
    let whole = (sum * WHOLE as f64).round();
    assert!(
        (sum * WHOLE as f64 - whole).abs() < 1e-6,
        "{sum} is no sum of 1/rank"
    );
    let mut ranks = Vec::new();
    assert!(
        fill(&mut ranks, 1, n, whole as usize),
        "{sum} is no sum of {n} 1/rank"
    );
    ranks
}

/// Common multiple of all ranks.
const WHOLE: usize = 2520;

/// Adds `n` ranks, none smaller than `rank`, whose shares of [`WHOLE`] sum to `left`. Returns false and adds nothing if there
/// are none.
fn fill(ranks: &mut Vec<usize>, rank: usize, n: usize, left: usize) -> bool {
    let [most, least] = [rank.min(N_ITEMS), N_ITEMS].map(|rank| WHOLE / rank);
    if n == 0 || rank > N_ITEMS {
        return n == 0 && left == 0;
    }
    if left < n * least || left > n * most {
        return false;
    }
    for here in (0..=n.min(left / most)).rev() {
        let before = ranks.len();
        ranks.extend(std::iter::repeat_n(rank, here));
        if fill(ranks, rank + 1, n - here, left - here * most) {
            return true;
        }
        ranks.truncate(before);
    }
    false
}

#[test]
fn first_ranks_have_the_requested_reciprocal_sum() {
    assert_eq!(first_ranks(3, 1.0 + 0.5 + 0.1), [1, 2, 10]);
    let many = first_ranks(40, 20.0 + 1.0 / 7.0);
    let sum: f64 = many.iter().map(|rank| 1.0 / *rank as f64).sum();
    assert_eq!(many.len(), 40);
    assert!((sum - 20.0 - 1.0 / 7.0).abs() < 1e-12);
}
