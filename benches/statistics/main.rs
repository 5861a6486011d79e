//! Verification of comparisons over many simulated weeks, through the production code: false alarms under peeking, coverage,
//! power, and checks of shares.
//!
//! `cargo bench --bench statistics` prints the table. `-- ROW… --runs N` selects rows or another number of runs. It uses two
//! threads, and the same seeds give the same table on every machine.

mod checks;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use checks::{Row, Scale, rows};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const N_THREADS: usize = 2;

fn main() {
    let (names, n_runs) = arguments();
    println!("| check | must hold | seen ± standard error | runs | |\n|---|---|---|---|---|");
    for row in rows::all(Scale::FULL) {
        if !names.is_empty() && !names.iter().any(|name| name == row.name) {
            continue;
        }
        let start = Instant::now();
        let runs = runs(&row, n_runs.unwrap_or(row.n_runs));
        for seen in row.seen(&runs) {
            println!("{seen}");
        }
        eprintln!("{}: {:.0} s", row.name, start.elapsed().as_secs_f64());
    }
}

/// Returns the names of rows and the number of runs. Cargo adds options of its own.
fn arguments() -> (Vec<String>, Option<usize>) {
    let mut names = Vec::new();
    let mut n_runs = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--runs" => n_runs = arguments.next().and_then(|number| number.parse().ok()),
            option if option.starts_with('-') => {}
            _ => names.push(argument),
        }
    }
    (names, n_runs)
}

/// Runs the seeds from 1 to `n_runs`.
fn runs(row: &Row, n_runs: usize) -> Vec<Vec<f64>> {
    let next = AtomicU64::new(1);
    let done = Mutex::new(Vec::with_capacity(n_runs));
    std::thread::scope(|scope| {
        for _ in 0..N_THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > n_runs as u64 {
                        return;
                    }
                    let numbers = row.run(seed);
                    done.lock().expect("no run has panicked").push(numbers);
                }
            });
        }
    });
    done.into_inner().expect("no run has panicked")
}
