//! Retention deletes records before daemons have read them. The reset is never silent.

use serde_json::Value;

use crate::support::daemon::Daemon;
use crate::traffic::{SHORT_SESSION, Traffic, arm, lists_by_arm, log, proxied, scrape, wait_for_live};

#[test]
fn a_position_no_longer_in_the_log_restarts_its_pair_visibly() {
    let mut kafka = proxied();
    let traffic = Traffic::new(&kafka, 2);
    let start = |brokers: &str, more: &str| {
        let more = format!("kafka.start = \"earliest\"\n{more}");
        Daemon::run(&traffic.config(brokers, &kafka.unique("group"), &more))
    };
    let unreachable = start(&kafka.proxied_brokers(), "");
    // The group revokes its partitions and assigns them again.
    let evicted = start(&kafka.proxied_brokers(), SHORT_SESSION);
    let stopped = start(&kafka.brokers(), "");
    let mut daemons = [unreachable, evicted, stopped];
    daemons.iter_mut().for_each(Daemon::wait_until_ready);
    traffic.send_clicked_lists(0..40);
    traffic.flush();
    daemons.iter_mut().for_each(|daemon| wait_for_live(daemon, 40));

    kafka.proxy().cut();
    daemons[2].signal(libc::SIGSTOP);
    daemons[1].wait_until("the partitions to be taken", |evicted| {
        (scrape(evicted)?.value("abgauge_partitions_owned", &[]) == Some(0.0)).then_some(())
    });
    // A fetch in flight is answered with the first record.
    traffic.send_clicked_list(0, 40);
    traffic.flush();
    for number in 41..1040 {
        traffic.send_clicked_list(0, number);
    }
    traffic.flush();
    for topic in [&traffic.served, &traffic.clicks] {
        kafka.delete_records_before(topic, 0, 520);
    }
    kafka.proxy().restore();
    daemons[2].signal(libc::SIGCONT);

    daemons.iter_mut().for_each(assert_restarted);
    // /readyz is logged when it stops being ready, and only this daemon was ready. If a request to the brokers was pending
    // when the daemon was stopped, it reports the brokers first.
    let named = |line: &Value| {
        let waiting_for = line["waiting_for"].to_string();
        waiting_for.contains("position was no longer in the log")
            || waiting_for.contains("brokers do not answer")
    };
    daemons[2].wait_until("the log to name it", |daemon| {
        log(daemon).iter().any(named).then_some(())
    });
}

/// Asserts that the first partition restarted exactly once, with the records left in its logs.
#[track_caller]
fn assert_restarted(daemon: &mut Daemon) {
    let expected = [(arm(0), 500.0), (arm(1), 20.0)].into();
    daemon.wait_until("what the log still has", |daemon| {
        (lists_by_arm(&scrape(daemon)?, "live") == expected).then_some(())
    });
    daemon.wait_until_ready();
    let after = daemon.metrics();
    assert_eq!(after.value("abgauge_pair_restarts_total", &[]), Some(1.0));
    // The earlier records were read, and at most one list and one click of the later ones before the rest was deleted.
    let read = after.sum("abgauge_records_total", &[]);
    assert!((1080.0..=1082.0).contains(&read), "{read}");
    let accepted = after.sum("abgauge_records_total", &[("outcome", "accepted")]);
    assert_eq!(accepted, read, "no other outcome");
    let reported = |line: &Value| {
        line["message"]
            .as_str()
            .is_some_and(|text| text.contains("position is no longer in the log"))
    };
    let reported: Vec<_> = log(daemon).into_iter().filter(reported).collect();
    assert_eq!(reported.len(), 1, "{reported:#?}");
    assert_eq!(reported[0]["partition"], 0);
}
