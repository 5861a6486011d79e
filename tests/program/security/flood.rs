//! Floods of wrong passwords, next to a client with the right one.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::security::daemon;
use crate::support::program::run_with_input;
use crate::support::{https, wait};

/// Number of guessers, more than there are connections.
const N_GUESSERS: usize = 300;
/// Time within which the right password is accepted, including retries. It once took 40 s. It takes half a second if the
/// cores are otherwise idle.
const BOUND: Duration = Duration::from_secs(5);
/// Time after which the client counts as locked out.
const GIVE_UP: Duration = Duration::from_secs(60);

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{name}:{password}")))
}

/// Number of answers in a flood by status: wrong, too many, and all others.
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

/// Measures the delay of a client with the right password, which retries when asked to, during a flood of guesses. `guess`
/// gets a number each. Returns the delay of the first success, and the longest of twenty later ones.
fn with_the_right_one(guess: impl Fn(u64) -> String + Sync) -> (Option<Duration>, Duration) {
    let password = run_with_input(&["hash", "password", "--user", "scraper"], "hunter2").stdout;
    let daemon = daemon(&format!("basic_passwords = [{:?}]\n", password.trim()));
    let address = daemon.address();
    let (stop, n, reported) = (AtomicBool::new(false), AtomicU64::new(0), Told::default());
    let right = basic("scraper", "hunter2");
    thread::scope(|scope| {
        for _ in 0..N_GUESSERS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let guess = guess(n.fetch_add(1, Ordering::Relaxed));
                    reported.note(ask(address, &guess).map(|(status, _)| status));
                }
            });
        }
        // The flood has started once there are as many answers as guessers, or the answers stop.
        let answered = || reported.wrong.load(Ordering::Relaxed) + reported.too_many.load(Ordering::Relaxed);
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
            reported.wrong.load(Ordering::Relaxed),
            reported.too_many.load(Ordering::Relaxed),
            reported.other.load(Ordering::Relaxed),
        );
        (first, slowest)
    })
}

#[test]
fn the_right_password_is_accepted_during_a_flood_of_one_wrong_password() {
    let (first, then) = with_the_right_one(|_| basic("scraper", "hunter3"));
    let is_in = first.is_some_and(|first| first < BOUND);
    assert!(is_in && then < BOUND, "{first:?}, {then:?}");
}

#[test]
fn the_right_password_is_accepted_during_a_flood_of_guesses_for_its_name() {
    let (first, then) = with_the_right_one(|n| basic("scraper", &format!("guess-{n}")));
    let is_in = first.is_some_and(|first| first < 2 * BOUND);
    assert!(is_in && then < BOUND, "{first:?}, {then:?}");
}

#[test]
fn the_right_password_is_accepted_during_a_flood_of_guesses_for_all_names() {
    let (first, then) = with_the_right_one(|n| basic(&format!("name-{n}"), &format!("guess-{n}")));
    let is_in = first.is_some_and(|first| first < 2 * BOUND);
    assert!(is_in && then < BOUND, "{first:?}, {then:?}");
}
