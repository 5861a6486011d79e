//! CPU time per record with up to ten million open lists, in memory: decoding, joining and handing over, without a client.
//!
//! First an engine is filled for each number of lists. Then they take turns with the same number of records, so that as many
//! lists open as settle.

use abgauge::board::Board;
use abgauge::settings::{self, Config};
use abgauge::stream::worker;
use abgauge_core::decode::Decoder;
use abgauge_core::engine::event::{Batch, Kind, Position, Side};
use abgauge_core::ledger::{Keep, PairTracker};
use abgauge_core::metrics::Ranking;

use crate::common::clock::thread_cpu_ns;
use crate::common::stream::{self, ARMS, Numbered};
use crate::common::summary::Summary;
use crate::figure::Figure;
use crate::flatness;

/// Number of records between two hand-overs, as in the consumer.
const BATCH: u64 = 2000;
/// Number of lists in one turn.
const TURN: u64 = 200_000;
/// One list in this many has a click.
const CLICKED: u64 = 5;
const START_MS: i64 = 1_763_596_800_000;
/// Event time between two lists. About 2,800 lists fall into a slot.
const LIST_EVERY_US: u64 = 1_800;
const LATENESS_MS: u64 = 2_000;

pub fn run(sizes: &[u64], n_rounds: usize) -> Vec<Figure> {
    let name = |size: &u64| format!("{size} open lists, in memory");
    let names: Vec<String> = sizes.iter().map(name).collect();
    let mut lines: Vec<Line> = sizes
        .iter()
        .chain([&sizes[0]])
        .map(|size| Line::filled(*size))
        .collect();
    println!(
        "\nCPU ns per record in memory\n| round | {} | again |",
        names.join(" | ")
    );
    println!("|{}", "---|".repeat(sizes.len() + 2));
    let rounds: Vec<Vec<f64>> = (0..n_rounds)
        .map(|round| {
            let mut costs = vec![0.0; lines.len()];
            for turn in 0..lines.len() {
                let line = (turn + round) % lines.len();
                costs[line] = lines[line].turn();
            }
            let cells: Vec<String> = costs.iter().map(|cost| format!("{cost:.0}")).collect();
            println!("| {} | {} |", round + 1, cells.join(" | "));
            costs
        })
        .collect();
    for (line, size) in lines.iter().zip(sizes) {
        let open = line.tracker.engine().n_open_lists();
        assert!(
            open.abs_diff(*size) < size / 5 + 2 * BATCH,
            "{open} lists are open, not {size}"
        );
    }
    let to_round = |line: usize| {
        let ratio = |costs: &Vec<f64>| costs[line] * costs.len() as f64 / costs.iter().sum::<f64>();
        Summary::of(rounds.iter().map(ratio))
    };
    let costs: Vec<Summary> = (0..sizes.len()).map(to_round).collect();
    let again = Summary::of(rounds.iter().map(|costs| costs[sizes.len()] / costs[0]));
    flatness::figures("open lists, in memory", names, &costs, again)
}

/// An engine with a steady stream, in which each list stays open for `n_open` further ones.
struct Line {
    tracker: PairTracker,
    board: Board,
    decoder: Decoder,
    batch: Batch,
    n_open: u64,
    /// Number of the next list.
    n: u64,
    offsets: [i64; 2],
    payload: String,
    /// Payloads of a batch, with the time and end of each.
    sides: [(String, Vec<(i64, usize)>); 2],
}

impl Line {
    fn filled(n_open: u64) -> Line {
        let config = config(n_open);
        let ranking = Ranking::new(&config.measures);
        let board = Board::new(&config, &ranking);
        board.show(0);
        let mut line = Line {
            tracker: PairTracker::new(worker::rules(&config), ranking, None, &Keep::default()),
            board,
            decoder: config.join.decoder(),
            batch: Batch::default(),
            n_open,
            n: 0,
            offsets: [0; 2],
            payload: String::new(),
            sides: Default::default(),
        };
        // After more than one full turnover the state has its full size, and lists settle.
        while line.n < n_open + n_open / 10 + TURN {
            line.round();
        }
        line
    }

    /// Takes a turn. Returns the CPU ns per record.
    fn turn(&mut self) -> f64 {
        let n_records = self.offsets.iter().sum::<i64>();
        let cpu_ns: u64 = (0..TURN / BATCH).map(|_| self.round()).sum();
        cpu_ns as f64 / (self.offsets.iter().sum::<i64>() - n_records) as f64
    }

    /// Generates and counts records. Returns the CPU ns of the counting.
    fn round(&mut self) -> u64 {
        self.generate();
        let start = thread_cpu_ns();
        for (side, kind) in [(Side::Served, Kind::Served), (Side::Clicks, Kind::Click)] {
            let (text, records) = &self.sides[side as usize];
            let mut begin = 0;
            for (ts_ms, end) in records {
                let at = Position {
                    side,
                    offset: self.offsets[side as usize],
                    record_ts_ms: *ts_ms,
                };
                let payload = &text.as_bytes()[begin..*end];
                self.decoder
                    .decode(Some(payload), Some(kind), at, &mut self.batch);
                self.offsets[side as usize] += 1;
                begin = *end;
            }
            self.tracker.apply(&self.batch, u64::MAX);
            self.batch.clear();
        }
        self.board.merge(0, &self.tracker.take_delta());
        thread_cpu_ns() - start
    }

    fn generate(&mut self) {
        for (text, records) in &mut self.sides {
            text.clear();
            records.clear();
        }
        for n in self.n..self.n + BATCH {
            let list = Numbered::new(n, ARMS.len());
            stream::list(
                &mut self.payload,
                &list.id,
                list.user,
                ts_ms(n),
                ARMS[list.arm],
                list.items,
            );
            self.push(Side::Served, n);
            let clicked = n.saturating_sub(self.n_open / 30);
            if n.is_multiple_of(CLICKED) && clicked < n {
                let list = Numbered::new(clicked, ARMS.len());
                stream::click(
                    &mut self.payload,
                    &list.id,
                    ts_ms(n),
                    list.items.at(list.user % 10),
                );
                self.push(Side::Clicks, n);
            }
        }
        self.n += BATCH;
    }

    fn push(&mut self, side: Side, n: u64) {
        let ts_ms = ts_ms(n);
        let (text, records) = &mut self.sides[side as usize];
        text.push_str(&self.payload);
        records.push((ts_ms, text.len()));
    }
}

/// Returns the time of a list. The rate does not depend on the number of open lists.
fn ts_ms(n: u64) -> i64 {
    START_MS + (n * LIST_EVERY_US / 1000) as i64
}

/// Returns a configuration in which attribution and lateness together last for `n_open` lists.
fn config(n_open: u64) -> Config {
    let attribution_ms = n_open * LIST_EVERY_US / 1000 - LATENESS_MS;
    let set = [
        ("KAFKA__BROKERS", "localhost:9092".to_owned()),
        ("JOIN__ATTRIBUTION", format!("{attribution_ms}ms")),
        ("JOIN__LATENESS", format!("{LATENESS_MS}ms")),
        ("JOIN__MAX_FUTURE", "1s".to_owned()),
    ];
    let env = set.map(|(name, value)| (format!("ABGAUGE_{name}"), value));
    settings::load(None, env.into_iter()).expect("the settings are valid")
}
