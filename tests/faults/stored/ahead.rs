//! Times that are far apart, across a kill: clicks an hour ahead of their lists, a silent partition, events ten years
//! ahead.

use std::time::Duration;

use super::{Stage, wait_for_settled};
use crate::support::daemon::Daemon;
use crate::support::wait;
use crate::traffic::{now_ms, scrape, totals};

/// Number of lists of one partition, six seconds apart.
const N_LISTS: u32 = 1_800;
const STEP_MS: i64 = 6_000;
/// Number of lists by which clicks are ahead.
const AN_HOUR: u32 = 600;
/// Number of lists of the partition that becomes silent.
const N_SILENT: u32 = 10;
const TEN_YEARS_MS: i64 = 10 * 365 * 24 * 3_600_000;

#[test]
fn clicks_ahead_silence_and_events_ten_years_ahead_change_no_number() {
    let stage = Stage::new();
    // A loaded machine must not make the feed look silent.
    let config = stage.text.replace("idle_after = \"1s\"", "idle_after = \"10s\"");
    let mut daemon = Daemon::run(&config);
    daemon.wait_until_ready();
    let traffic = &stage.traffic;
    let begin_ms = now_ms() - i64::from(N_LISTS + 10) * STEP_MS;
    let ts_ms = |number: u32| begin_ms + i64::from(number) * STEP_MS;
    let click = |number: u32| traffic.click(0, &format!("r-{number}"), ts_ms(number) + 1);
    for partition in 0..2 {
        traffic.list(partition, "far", now_ms() + TEN_YEARS_MS);
        traffic.click(partition, "far", now_ms() + TEN_YEARS_MS);
    }
    (0..N_SILENT).for_each(|number| traffic.list(1, &format!("silent-{number}"), ts_ms(number)));
    (0..AN_HOUR).for_each(click);
    for number in 0..N_LISTS {
        traffic.list(0, &format!("r-{number}"), ts_ms(number));
        if number + AN_HOUR < N_LISTS {
            click(number + AN_HOUR);
        }
        if number == N_LISTS / 3 {
            traffic.flush();
            daemon.kill();
            daemon.start_again();
        }
        wait::try_until(Duration::from_millis(2), || None::<()>);
    }
    traffic.flush();
    wait_for_settled(&mut daemon, f64::from(N_LISTS + N_SILENT));
    daemon.wait_until_ready();
    let scrape = scrape(&daemon).expect("it answers");
    let settled = totals(&scrape, "settled");
    assert_eq!(settled, (f64::from(N_LISTS + N_SILENT), f64::from(N_LISTS)));
    assert_eq!(scrape.value("abgauge_exact", &[]), Some(1.0));
    let most = scrape.value("abgauge_state_max_bytes", &[]);
    assert!(scrape.value("abgauge_state_bytes", &[]) < most, "{most:?}");
}
