//! A miniature pair: a log of times, a watermark, a frontier with idle moves, totals and cells. It can be restored from a
//! sealed state.

use std::collections::BTreeMap;

use abgauge_core::journal::{
    CountedTopic, Header, LogIdentity, ReplayDigest, Role, SharedBytes, State, TopicProgress,
};

use crate::state::dice::hash;

pub const LATENESS: i64 = 2;
/// Slots per cell. A slot is 1 long.
pub const CELL: i64 = 3;
/// Size in bytes of the parts into which a role is cut: two numbers. Only the idle moves grow; every other role fits in one
/// part.
const PART_BYTES: usize = 16;
/// Number of completed cells that are kept.
pub const N_CELLS: i64 = 2;

/// Contribution of lists: their number, and the sum of the hashes of their offsets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub n: i64,
    pub sum: i64,
}

impl Sum {
    pub fn add(&mut self, offset: usize) {
        self.n += 1;
        self.sum = self.sum.wrapping_add(weight(offset));
    }
}

fn weight(offset: usize) -> i64 {
    hash(offset as u64) as i64
}

/// An idle move: its read position and its new frontier.
pub type Move = (usize, i64);

/// Sealed content of a pair, as the judge sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub begin: i64,
    pub frontier: i64,
    pub position: usize,
    pub resume: usize,
    pub resume_max: Option<i64>,
    pub open: Sum,
    pub total: Sum,
    pub cells: BTreeMap<i64, Sum>,
    pub moves: Vec<Move>,
}

/// A list that was accepted and has not settled.
#[derive(Debug, Clone)]
struct Open {
    offset: usize,
    ts: i64,
    max_before: Option<i64>,
}

/// State of a pair in a process.
#[derive(Debug, Clone)]
pub struct Pair {
    begin: i64,
    frontier: i64,
    position: usize,
    max: Option<i64>,
    open: Vec<Open>,
    total: Sum,
    cells: BTreeMap<i64, Sum>,
    moves: Vec<Move>,
    /// Position at which the digest must match.
    check: Option<(usize, Sum)>,
}

impl Pair {
    /// Starts a pair at a time shortly before the newest input, so the begin depends on when the pair starts.
    pub fn begin(inputs: &[i64]) -> Pair {
        let begin = inputs.iter().max().map_or(0, |newest| newest - 1);
        Pair {
            begin,
            frontier: begin,
            position: 0,
            max: None,
            open: Vec::new(),
            total: Sum::default(),
            cells: BTreeMap::new(),
            moves: Vec::new(),
            check: None,
        }
    }

    pub fn restore(header: &Header, roles: &BTreeMap<Role, SharedBytes>) -> Pair {
        let account = Account::decode(header, roles);
        Pair {
            begin: account.begin,
            frontier: account.frontier,
            position: account.resume,
            max: account.resume_max,
            open: Vec::new(),
            total: account.total,
            cells: account.cells,
            moves: account.moves,
            check: Some((account.position, account.open)),
        }
    }

    pub fn is_at_end(&self, inputs: &[i64]) -> bool {
        self.position == inputs.len() && self.check.is_none()
    }

    /// Reads up to `n_records` records.
    ///
    /// # Errors
    /// If the log differs from the one that was counted.
    pub fn read(&mut self, inputs: &[i64], n_records: usize) -> Result<(), String> {
        let end = inputs.len().min(self.position.saturating_add(n_records));
        for (offset, ts) in inputs.iter().enumerate().take(end).skip(self.position) {
            self.check_digest()?;
            self.take(offset, *ts);
            self.position = offset + 1;
        }
        self.check_digest()
    }

    fn check_digest(&mut self) -> Result<(), String> {
        if let Some((position, open)) = self.check
            && position == self.position
        {
            self.check = None;
            if self.sum_of_open() != open {
                return Err(format!("the digest at {position} is not met"));
            }
        }
        Ok(())
    }

    fn take(&mut self, offset: usize, ts: i64) {
        let max_before = self.max;
        if max_before.is_some_and(|max| ts < max - LATENESS) {
            return;
        }
        self.max = max_before.max(Some(ts));
        if ts >= self.frontier {
            self.open.push(Open {
                offset,
                ts,
                max_before,
            });
        }
        self.settle(self.max.map_or(self.frontier, |max| max - LATENESS));
    }

    /// Makes an idle move after a long time without input: all records read so far become final.
    pub fn idle(&mut self) {
        let Some(max) = self.max.filter(|max| *max >= self.frontier) else {
            return;
        };
        self.moves.push((self.position, max + 1));
        self.settle(max + 1);
    }

    fn settle(&mut self, frontier: i64) {
        if frontier <= self.frontier {
            return;
        }
        self.frontier = frontier;
        let (open, settled) = self.open.drain(..).partition(|open| open.ts >= frontier);
        self.open = open;
        let settled: Vec<Open> = settled;
        for Open { offset, ts, .. } in settled {
            self.total.add(offset);
            self.cells.entry(ts.div_euclid(CELL)).or_default().add(offset);
        }
        self.cells.retain(|cell, _| is_kept(*cell, frontier));
    }

    fn sum_of_open(&self) -> Sum {
        let mut sum = Sum::default();
        self.open.iter().for_each(|open| sum.add(open.offset));
        sum
    }

    pub fn account(&self) -> Account {
        let first = self.open.first();
        Account {
            begin: self.begin,
            frontier: self.frontier,
            position: self.position,
            resume: first.map_or(self.position, |open| open.offset),
            resume_max: first.map_or(self.max, |open| open.max_before),
            open: self.sum_of_open(),
            total: self.total,
            cells: self.cells.clone(),
            moves: self.moves.clone(),
        }
    }
}

/// Returns whether a cell is still kept at this frontier.
pub fn is_kept(cell: i64, frontier: i64) -> bool {
    cell + N_CELLS >= frontier.div_euclid(CELL)
}

pub fn identity() -> LogIdentity {
    LogIdentity {
        fingerprint: "slot 1".to_owned(),
        topics: vec![CountedTopic {
            name: "events".to_owned(),
            id: 1,
        }],
        n_partitions: 1,
    }
}

impl Account {
    /// Cuts the account into roles: one changes with each move of the frontier, one returns to earlier values, and there is
    /// one per cell.
    pub fn state(&self) -> State {
        State::cut(self.header(), self.roles(), PART_BYTES)
    }

    pub fn roles(&self) -> BTreeMap<Role, SharedBytes> {
        let mut roles = BTreeMap::<Role, SharedBytes>::new();
        let moves = self.moves.iter();
        let moves = moves.flat_map(|(position, frontier)| [*position as i64, *frontier]);
        let totals = [self.total.n, self.total.sum].into_iter().chain(moves);
        roles.insert("totals".into(), bytes(totals));
        roles.insert("parity".into(), bytes([self.total.n % 2]));
        for (cell, Sum { n, sum }) in &self.cells {
            roles.insert(format!("cell {cell}").into(), bytes([*n, *sum]));
        }
        roles
    }

    pub fn header(&self) -> Header {
        let digest = ReplayDigest {
            n_events: self.open.n as u64,
            sum: self.open.sum as u64,
        };
        Header {
            identity: identity(),
            begin_ms: Some(self.begin),
            frontier_ms: Some(self.frontier),
            reaches: vec![TopicProgress {
                read_position: self.position as i64,
                resume_offset: self.resume as i64,
                resume_max_ms: self.resume_max,
                digest,
            }],
            was_caught_up: true,
            is_exact: true,
            columns: Vec::new(),
        }
    }

    pub fn decode(header: &Header, roles: &BTreeMap<Role, SharedBytes>) -> Account {
        let reach = &header.reaches[0];
        let totals = numbers(&roles["totals"]);
        let sum = |numbers: &[i64]| Sum {
            n: numbers[0],
            sum: numbers[1],
        };
        let cells = roles.iter().filter_map(|(role, bytes)| {
            let cell = role.strip_prefix("cell ")?.parse().ok()?;
            Some((cell, sum(&numbers(bytes))))
        });
        let moves = totals[2..].chunks(2);
        Account {
            begin: header.begin_ms.expect("it has begun"),
            frontier: header.frontier_ms.expect("it has begun"),
            position: reach.read_position as usize,
            resume: reach.resume_offset as usize,
            resume_max: reach.resume_max_ms,
            open: Sum {
                n: reach.digest.n_events as i64,
                sum: reach.digest.sum as i64,
            },
            total: sum(&totals),
            cells: cells.collect(),
            moves: moves.map(|numbers| (numbers[0] as usize, numbers[1])).collect(),
        }
    }
}

fn bytes(numbers: impl IntoIterator<Item = i64>) -> SharedBytes {
    let numbers = numbers.into_iter();
    numbers.flat_map(i64::to_le_bytes).collect()
}

fn numbers(bytes: &[u8]) -> Vec<i64> {
    let (numbers, _) = bytes.as_chunks();
    numbers.iter().map(|number| i64::from_le_bytes(*number)).collect()
}

/// Counts the log from the definition, record by record, with the recorded idle moves.
pub fn recount(inputs: &[i64], begin: i64, position: usize, moves: &[Move]) -> Account {
    let (mut max, mut frontier) = (None::<i64>, begin);
    let mut accepted = Vec::new();
    let mut moves_left = moves.iter().peekable();
    let mut maxima = Vec::new();
    let records = inputs[..position].iter().map(Some).chain([None]);
    for (offset, ts) in records.enumerate() {
        while let Some((_, to)) = moves_left.next_if(|(at, _)| *at == offset) {
            frontier = frontier.max(*to);
        }
        // Moves may also come after the last record.
        let Some(&ts) = ts else { break };
        maxima.push(max);
        if max.is_none_or(|max| ts >= max - LATENESS) {
            max = max.max(Some(ts));
            if ts >= frontier {
                accepted.push((offset, ts));
            }
            frontier = frontier.max(max.unwrap_or(begin) - LATENESS);
        }
    }
    let mut account = Account {
        begin,
        frontier,
        position,
        resume: position,
        resume_max: max,
        open: Sum::default(),
        total: Sum::default(),
        cells: BTreeMap::new(),
        moves: moves.to_vec(),
    };
    for (offset, ts) in accepted.into_iter().rev() {
        if ts >= frontier {
            account.open.add(offset);
            (account.resume, account.resume_max) = (offset, maxima[offset]);
            continue;
        }
        account.total.add(offset);
        let cell = ts.div_euclid(CELL);
        if is_kept(cell, frontier) {
            account.cells.entry(cell).or_default().add(offset);
        }
    }
    account
}
