//! Lists and clicks with known answers through real Kafka and the daemon, compared with the values in Prometheus.

mod accounts;
mod answers;
mod catalogue;
mod events;
mod feed;
mod run;
mod two_daemons;

use std::time::Duration;

use events::{doubled, events, shuffled};
use feed::{Feed, Key, Topics};
use run::Run;

#[test]
fn gauges_equal_the_reference_values() {
    let mut feed = Feed::new(Topics::Two, Key::Request);
    feed.send(&shuffled(events()));
    Run::start(&feed).check(feed);
}

#[test]
fn keys_may_be_users() {
    let mut feed = Feed::new(Topics::Two, Key::User);
    let run = Run::start(&feed);
    feed.send(&shuffled(events()));
    run.check(feed);
}

#[test]
fn one_topic_may_carry_both_kinds() {
    let mut feed = Feed::new(Topics::One, Key::Request);
    let run = Run::start(&feed);
    feed.send(&shuffled(events()));
    run.check(feed);
}

#[test]
fn clicks_wait_for_their_lists() {
    let mut feed = Feed::new(Topics::Two, Key::Request);
    let run = Run::start(&feed);
    let (clicks, lists): (Vec<_>, Vec<_>) = shuffled(events())
        .into_iter()
        .partition(|arrival| arrival.event.is_click());
    feed.send(&clicks);
    let all_wait = feed.accounts();
    assert_eq!(all_wait.waiting, clicks.len() as u64);
    run.wait_for(&all_wait);
    feed.send(&lists);
    run.check(feed);
}

#[test]
fn repeated_records_count_once() {
    let mut feed = Feed::new(Topics::Two, Key::Request);
    let run = Run::start(&feed);
    feed.send(&shuffled(doubled(events())));
    run.check(feed);
}

#[test]
fn a_restart_loses_nothing() {
    let mut feed = Feed::new(Topics::Two, Key::Request);
    let mut run = Run::start(&feed);
    let arrivals = shuffled(events());
    let (before, after) = arrivals.split_at(arrivals.len() / 2);
    let (while_away, after) = after.split_at(after.len() / 2);

    feed.send(before);
    run.wait_for(&feed.accounts());
    run.daemon.signal(libc::SIGTERM);
    assert_eq!(run.daemon.wait_exit(Duration::from_secs(10)), Some(0));
    feed.send(while_away);
    run.daemon.start_again();
    run.daemon.wait_until_ready();
    feed.send(after);
    run.check(feed);
}
