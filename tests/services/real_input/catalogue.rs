//! A daemon that reloads its catalogue while it counts.

use crate::real_input::answers::{Values, additive, assert_same_bits, evaluated};
use crate::real_input::events::{events, shuffled};
use crate::real_input::feed::{Feed, Key, Topics};
use crate::real_input::run::{Run, catalogue, total};
use crate::support::wait;

/// Returns a catalogue with `i1`, which all users have touched, every second item of the old catalogue, and one item that is
/// never shown.
fn other_catalogue() -> String {
    let old = catalogue();
    let kept = old.lines().skip(2).step_by(2).map(str::to_owned);
    let first = r#"{"item":"i1","users":200,"of_users":200}"#.to_owned();
    let new = r#"{"item":"never-shown","of_users":200}"#.to_owned();
    [first, new]
        .into_iter()
        .chain(kept)
        .map(|line| line + "\n")
        .collect()
}

#[test]
fn a_hangup_loads_a_valid_catalogue_and_rejects_a_faulty_one() {
    let mut feed = Feed::new(Topics::Two, Key::Request);
    let mut run = Run::start(&feed);
    feed.send(&shuffled(events()));
    run.wait_for(&feed.accounts());
    let before = total(&run.prometheus);

    let other = other_catalogue();
    let n_items = other.lines().count();
    feed.replace_catalogue(&(other.clone() + "{\"item\":\"i1\"}\n"));
    run.daemon.signal(libc::SIGHUP);
    run.prometheus
        .wait_for("abgauge_catalog_reload_failed == 1", wait::LONG);
    assert_same_bits(&total(&run.prometheus), &before);
    let fault = format!("items.jsonl, line {}: item", n_items + 1);
    run.daemon.wait_for_log("the fault", |log| log.contains(&fault));

    // For lists in open slots only distinct counts change: coverage counts the items of the new catalogue.
    feed.replace_catalogue(&other);
    run.daemon.signal(libc::SIGHUP);
    let taken = format!("abgauge_catalog_items == {n_items} and abgauge_catalog_reload_failed == 0");
    run.prometheus.wait_for(&taken, wait::LONG);
    let after = total(&run.prometheus);
    assert_same_bits(&additive(after.clone()), &additive(before));
    assert_same_bits(&coverage(after), &coverage(evaluated(&other)));

    // Later lists use the new catalogue.
    feed.send_end();
    run.wait_for(&feed.accounts());
    let popularity = run
        .prometheus
        .query("abgauge_popularity{experiment='end',view='live',k='1',profile=''}");
    let values: Vec<f64> = popularity.iter().map(|sample| sample.value).collect();
    assert_eq!(values, [1.0]);
}

fn coverage(mut values: Values) -> Values {
    values.retain(|(_, _, metric), _| metric.starts_with("coverage"));
    assert!(!values.is_empty());
    values
}
