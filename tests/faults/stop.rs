//! A signal ends the daemon within ten seconds with exit code 0, in any state.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};

use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::support::wait;
use crate::traffic::{Traffic, scrape, waits_for};

const IN_TIME: Duration = Duration::from_secs(10);

#[track_caller]
fn assert_stops(daemon: &mut Daemon, signal: libc::c_int) {
    daemon.signal(signal);
    assert_eq!(daemon.wait_exit(IN_TIME), Some(0));
}

#[test]
fn both_signals_end_an_idle_daemon() {
    let kafka = Kafka::shared();
    let traffic = Traffic::new(&kafka, 2);
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let mut daemon = traffic.daemon(&kafka);
        daemon.wait_until_ready();
        assert_stops(&mut daemon, signal);
        assert!(daemon.log().contains("left the group"), "{}", daemon.log());
    }
}

#[test]
fn a_signal_ends_a_daemon_whose_broker_is_gone() {
    let mut kafka = Kafka::start();
    let traffic = Traffic::new(&kafka, 2);
    let mut daemons: Vec<_> = (0..2).map(|_| traffic.daemon(&kafka)).collect();
    daemons.iter_mut().for_each(Daemon::wait_until_ready);
    kafka.stop();
    // The daemons are stopped before they notice, while they retry, and without ever having seen a broker.
    assert_stops(&mut daemons[0], libc::SIGTERM);
    daemons.push(traffic.daemon(&kafka));
    for mut daemon in daemons.drain(1..) {
        daemon.wait_until("the silence to be told", |daemon| {
            waits_for(daemon).filter(|why| why.contains("brokers do not answer"))
        });
        assert_stops(&mut daemon, libc::SIGINT);
    }
}

#[test]
fn a_signal_does_not_wait_for_open_connections() {
    let kafka = Kafka::shared();
    let traffic = Traffic::new(&kafka, 2);
    let mut daemon = traffic.daemon(&kafka);
    daemon.wait_until_ready();
    let connect = |request: &str| {
        let mut stream = TcpStream::connect(daemon.address()).expect("it listens");
        stream.set_read_timeout(Some(IN_TIME)).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("it reads");
        stream
    };
    let mut kept_alive = connect("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let mut head = [0; 15];
    kept_alive.read_exact(&mut head).expect("an answer");
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    let fresh = connect("");
    let half_asked = connect("GET /metrics HTTP/1.1\r\n");
    assert_stops(&mut daemon, libc::SIGTERM);
    for mut stream in [kept_alive, fresh, half_asked] {
        let mut rest = Vec::new();
        // Closed or reset, the connection has ended either way.
        let _ = stream.read_to_end(&mut rest);
        assert!(
            !String::from_utf8_lossy(&rest).contains("500"),
            "no failure is answered"
        );
    }
}

#[test]
fn a_signal_ends_a_daemon_that_is_catching_up() {
    const N: u32 = 150_000;
    let kafka = Kafka::shared();
    let traffic = Traffic::new(&kafka, 2);
    traffic.send_clicked_lists(0..N);
    traffic.flush();
    let mut daemon = traffic.daemon(&kafka);
    let left = daemon.wait_until("the reading to begin", |daemon| {
        let scrape = scrape(daemon)?;
        let read = scrape.sum("abgauge_records_total", &[]);
        (read > 0.0).then(|| 2.0 * f64::from(N) - read)
    });
    assert!(
        left > 0.0,
        "it has caught up already: the test needs more records"
    );
    assert!(waits_for(&daemon).is_some_and(|why| why.contains("catching up")));
    assert_stops(&mut daemon, libc::SIGTERM);
}

#[test]
fn a_static_member_stays_in_its_group_and_a_dynamic_one_leaves() {
    let kafka = Kafka::shared();
    let traffic = Traffic::new(&kafka, 2);
    let asker: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", kafka.brokers())
        .create()
        .expect("a client");
    let members = |group: &str| {
        let list = asker
            .fetch_group_list(Some(group), wait::PATIENCE)
            .expect("an answer");
        list.groups().first().map_or(0, |group| group.members().len())
    };
    for (property, expected) in [("", 0), ("kafka.properties.\"group.instance.id\" = \"one\"", 1)] {
        let group = kafka.unique("group");
        let mut daemon = Daemon::run(&traffic.config(&kafka.brokers(), &group, property));
        daemon.wait_until_ready();
        assert_eq!(members(&group), 1);
        assert_stops(&mut daemon, libc::SIGTERM);
        assert_eq!(members(&group), expected, "{property}");
    }
}
