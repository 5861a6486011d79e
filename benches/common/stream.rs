//! Synthetic traffic of fixed shape: served lists of ten items (215 bytes of JSON) and clicks (84 bytes), ordered by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;

use abgauge_core::engine::event::Side;
use rand::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64;

/// Name of the experiment. The names of its four arms are equally long, so all lists have the same size.
pub const EXPERIMENT: &str = "ranker";
pub const ARMS: [&str; 4] = ["neural", "linear", "hybrid", "random"];

/// Number of items in the catalogue. Lists show no others.
const N_ITEMS: u32 = 10_000;
/// Ratio of the longest to the mean time from a list to its click.
const MAX_DELAY: f64 = 20.0;

/// Lists at equal intervals over a span of event time. A share of them has one click, more often at early ranks.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    pub n_lists: u64,
    /// Event time of the first list in Unix ms.
    pub start_ms: i64,
    pub span_ms: i64,
    pub click_share: f64,
}

/// Parameters of the traffic, apart from its size, that differ between benchmarks.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Arms, of which each list has one: drawn uniformly, or by user if there are other experiments.
    pub arms: Vec<String>,
    /// Mean time from a list to its click. The longest is 20 times as long.
    pub mean_delay_ms: f64,
    /// Number of users, drawn uniformly.
    pub n_users: u32,
    /// Number of additional experiments, in which each list has one of two arms by user.
    pub n_more: usize,
}

impl Default for Shape {
    /// Four arms, and clicks within the default attribution.
    fn default() -> Shape {
        Shape {
            arms: ARMS.map(str::to_owned).to_vec(),
            mean_delay_ms: 60_000.0,
            n_users: 100_000_000,
            n_more: 0,
        }
    }
}

impl Shape {
    /// Returns a shape with `n_arms` arms whose names are equally long.
    pub fn with_arms(n_arms: usize) -> Shape {
        Shape {
            arms: (0..n_arms).map(|arm| format!("a{arm:05}")).collect(),
            ..Shape::default()
        }
    }
}

/// A record to produce. Its `key` is the request id.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    pub side: Side,
    pub ts_ms: i64,
    pub key: &'a str,
    pub payload: &'a str,
}

/// A future click, ordered by time.
type Pending = Reverse<(i64, String, u32)>;

impl Stream {
    /// Calls `emit` with every record in order of time. Each call produces the same records.
    pub fn for_each(&self, emit: impl FnMut(Record)) {
        self.for_each_of(&Shape::default(), emit);
    }

    /// Like `for_each`, with another shape.
    pub fn for_each_of(&self, shape: &Shape, mut emit: impl FnMut(Record)) {
        let mut random = Pcg64::seed_from_u64(1);
        let mut pending: BinaryHeap<Pending> = BinaryHeap::new();
        let mut payload = String::new();
        for n in 0..self.n_lists {
            let ts_ms =
                self.start_ms + (n as i128 * i128::from(self.span_ms) / i128::from(self.n_lists)) as i64;
            emit_clicks(&mut pending, ts_ms, &mut payload, &mut emit);
            let id = format!("r{:032x}", random.random::<u128>());
            let drawn = random.random_range(0..shape.arms.len());
            let items = Items::random(&mut random);
            let user = random.random_range(0..shape.n_users);
            let arm = match shape.n_more {
                0 => drawn,
                _ => user as usize % shape.arms.len(),
            };
            let arm = &shape.arms[arm];
            list(&mut payload, &id, user, ts_ms, arm, items);
            add_experiments(&mut payload, user, shape.n_more);
            emit(Record {
                side: Side::Served,
                ts_ms,
                key: &id,
                payload: &payload,
            });
            if random.random_bool(self.click_share) {
                // 1 − uniform is never 0.
                let delay_ms = -shape.mean_delay_ms * (1.0 - random.random::<f64>()).ln();
                let rank = (10.0 * random.random::<f64>().powi(2)) as u32;
                let click_ms = ts_ms + delay_ms.min(MAX_DELAY * shape.mean_delay_ms) as i64;
                pending.push(Reverse((click_ms, id, items.at(rank))));
            }
        }
        emit_clicks(&mut pending, i64::MAX, &mut payload, &mut emit);
    }
}

fn emit_clicks(
    pending: &mut BinaryHeap<Pending>,
    until_ms: i64,
    payload: &mut String,
    emit: &mut impl FnMut(Record),
) {
    while pending
        .peek()
        .is_some_and(|Reverse((ts_ms, ..))| *ts_ms <= until_ms)
    {
        if let Some(Reverse((ts_ms, id, item))) = pending.pop() {
            click(payload, &id, ts_ms, item);
            emit(Record {
                side: Side::Clicks,
                ts_ms,
                key: &id,
                payload,
            });
        }
    }
}

/// Ten different items of the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct Items {
    first: u32,
    stride: u32,
}

impl Items {
    pub fn random(random: &mut Pcg64) -> Items {
        Items {
            first: random.random_range(0..N_ITEMS),
            stride: random.random_range(1..N_ITEMS / 10),
        }
    }

    /// Returns the item at a rank from 0.
    pub fn at(self, rank: u32) -> u32 {
        (self.first + rank * self.stride) % N_ITEMS
    }
}

/// A list determined by its number, for streams that need not be stored.
#[derive(Debug)]
pub struct Numbered {
    pub id: String,
    pub user: u32,
    /// Index of the arm, drawn uniformly.
    pub arm: usize,
    pub items: Items,
}

impl Numbered {
    pub fn new(n: u64, n_arms: usize) -> Numbered {
        let mut random = Pcg64::seed_from_u64(n);
        Numbered {
            id: format!("r{:032x}", random.random::<u128>()),
            user: random.random_range(0..100_000_000),
            arm: random.random_range(0..n_arms),
            items: Items::random(&mut random),
        }
    }
}

/// Returns the catalogue of all items. Each has three of a hundred aspects, and a share that decreases with its rank.
pub fn catalog() -> String {
    let mut lines = String::new();
    for item in 0..N_ITEMS {
        let aspects = [1, 7, 31]
            .map(|step| format!("\"a{}\"", item * step % 100))
            .join(",");
        let users = 100_000 / (item + 1);
        writeln!(
            lines,
            r#"{{"item":"{item:05}","aspects":[{aspects}],"users":{users},"of_users":100000}}"#
        )
        .expect("write to a string");
    }
    lines
}

/// Replaces the content of `out` with the JSON of a list.
pub fn list(out: &mut String, id: &str, user: u32, ts_ms: i64, arm: &str, items: Items) {
    out.clear();
    write!(
        out,
        r#"{{"request_id":"{id}","user_id":"u{user:08}","ts":{ts_ms},"experiments":{{"{EXPERIMENT}":"{arm}"}},"items":["#
    )
    .expect("write to a string");
    for rank in 0..10 {
        let comma = if rank == 0 { "" } else { "," };
        write!(out, r#"{comma}"{:05}""#, items.at(rank)).expect("write to a string");
    }
    out.push_str("]}");
}

/// Returns the name of an additional experiment, counted from 0.
pub fn further_experiment(number: usize) -> String {
    format!("layout{number}")
}

/// Adds a list to the additional experiments, in the arms of its user.
fn add_experiments(list: &mut String, user: u32, n: usize) {
    for number in 0..n {
        let (experiment, arm) = (
            further_experiment(number),
            ["grid", "rows"][(user >> (number + 2)) as usize % 2],
        );
        *list = list.replacen(
            "\"experiments\":{",
            &format!("\"experiments\":{{\"{experiment}\":\"{arm}\","),
            1,
        );
    }
}

/// Replaces the content of `out` with the JSON of a click.
pub fn click(out: &mut String, id: &str, ts_ms: i64, item: u32) {
    out.clear();
    write!(out, r#"{{"request_id":"{id}","ts":{ts_ms},"item":"{item:05}"}}"#).expect("write to a string");
}
