//! Floods of wrong passwords, beside somebody who has the right one.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::daemon;
use crate::program::run_with_input;
use crate::support::{https, wait};

/// More than there are connections.
const N_GUESSERS: usize = 300;
/// In which the right password gets in, once asked anew. It took 40 s; half a second where nothing else takes the cores.
const BOUND: Duration = Duration::from_secs(5);
/// It is locked out.
const GIVE_UP: Duration = Duration::from_secs(60);

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{name}:{password}")))
}

/// Statuses of a flood: wrong, too many, and all others.
#[derive(Default)]
struct Told {
    wrong: AtomicU64,
    too_many: AtomicU64,
    other: AtomicU64,
}

impl Told {
    fn note(&self, status: Option<u16>) {
        let counter = match status {
            Some(401) => &self.wrong,
            Some(429) => &self.too_many,
            _ => &self.other,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn ask(address: SocketAddr, authorization: &str) -> Option<(u16, Option<String>)> {
    let answer = https::get(address, None, "/metrics", &[("Authorization", authorization)]).ok()?;
    Some((answer.status, answer.headers.get("retry-after").cloned()))
}

/// While many guess by `guess`, a number each: how long somebody takes who has the right password and asks again when told
/// so, the first time, and the slowest of twenty afterwards.
fn with_the_right_one(guess: impl Fn(u64) -> String + Sync) -> (Option<Duration>, Duration) {
    let password = run_with_input(&["hash", "password", "--user", "scraper"], "hunter2").stdout;
    let daemon = daemon(&format!("basic_passwords = [{:?}]\n", password.trim()));
    let address = daemon.address();
    let (stop, n, told) = (AtomicBool::new(false), AtomicU64::new(0), Told::default());
    let right = basic("scraper", "hunter2");
    thread::scope(|scope| {
        for _ in 0..N_GUESSERS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let guess = guess(n.fetch_add(1, Ordering::Relaxed));
                    told.note(ask(address, &guess).map(|(status, _)| status));
                }
            });
        }
        // The flood stands once as many were answered as there are guessers, or nobody is any more.
        let answered = || told.wrong.load(Ordering::Relaxed) + told.too_many.load(Ordering::Relaxed);
        wait::try_until(Duration::from_secs(5), || {
            (answered() >= N_GUESSERS as u64).then_some(())
        });
        let begin = Instant::now();
        let first = loop {
            match ask(address, &right) {
                Some((200, _)) => break Some(begin.elapsed()),
                Some((429, Some(retry))) if retry == "1" => {}
                other => println!("{other:?} after {:?}", begin.elapsed()),
            }
            if begin.elapsed() > GIVE_UP {
                break None;
            }
        };
        let again = (0..20).map(|_| {
            let begin = Instant::now();
            let is_in = ask(address, &right).is_some_and(|(status, _)| status == 200);
            if is_in { begin.elapsed() } else { GIVE_UP }
        });
        let slowest = again.max().expect("twenty");
        stop.store(true, Ordering::Relaxed);
        println!(
            "{} wrong and {} unchecked guesses, {} cut: the right one came in after {first:?}, then within {slowest:?}",
            told.wrong.load(Ordering::Relaxed),
            told.too_many.load(Ordering::Relaxed),
            told.other.load(Ordering::Relaxed),
        );
        (first, slowest)
    })
}

#[test]
fn the_right_password_gets_in_beside_a_flood_of_one_wrong_password() {
    let (first, then) = with_the_right_one(|_| basic("scraper", "hunter3"));
    let is_in = first.is_some_and(|first| first < BOUND);
    assert!(is_in && then < BOUND, "{first:?}, {then:?}");
}

#[test]
fn the_right_password_gets_in_beside_a_flood_of_guesses_for_the_same_name() {
    let (first, then) = with_the_right_one(|n| basic("scraper", &format!("guess-{n}")));
    let is_in = first.is_some_and(|first| first < 2 * BOUND);
    assert!(is_in && then < BOUND, "{first:?}, {then:?}");
}

#[test]
fn the_right_password_gets_in_beside_a_flood_of_guesses_for_all_names() {
    let (first, then) = with_the_right_one(|n| basic(&format!("name-{n}"), &format!("guess-{n}")));
    let is_in = first.is_some_and(|first| first < 2 * BOUND);
    assert!(is_in && then < BOUND, "{first:?}, {then:?}");
}
