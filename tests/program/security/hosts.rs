//! The check of the Host header: a web page whose own name resolves to 127.0.0.1 reads nothing.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::security::{config, daemon};
use crate::support::daemon::Daemon;
use crate::support::tools;

/// Returns the whole answer to a request with these lines below the first one.
fn answer(address: SocketAddr, first: &str, lines: &[&str]) -> String {
    let mut client = TcpStream::connect(address).expect("it listens");
    let patience = Some(Duration::from_secs(30));
    client.set_read_timeout(patience).expect("a span");
    let lines = lines.iter().map(|line| format!("{line}\r\n"));
    let request = format!(
        "{first}\r\n{}Connection: close\r\n\r\n",
        lines.collect::<String>()
    );
    client.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    answer
}

fn status(address: SocketAddr, first: &str, lines: &[&str]) -> u16 {
    let answer = answer(address, first, lines);
    answer[9..12].parse().expect("a status")
}

fn status_for(daemon: &Daemon, host: &str) -> u16 {
    status(
        daemon.address(),
        "GET /metrics HTTP/1.1",
        &[&format!("Host: {host}")],
    )
}

const OURS: [&str; 9] = [
    "localhost",
    "LocalHost:9464",
    "localhost.",
    "abgauge.localhost:80",
    "127.0.0.1",
    "127.0.0.1:9464",
    "127.255.3.4:1",
    "[::1]",
    "[::1]:9464",
];
const FOREIGN: [&str; 12] = [
    "evil.example",
    "evil.example:9464",
    "localhost.evil.example",
    "evillocalhost",
    "127.0.0.1.evil.example",
    "127.0.0.1.nip.io:9464",
    "abgauge.example",
    "0.0.0.0:9464",
    "10.1.2.3:9464",
    "[::]:9464",
    "[2001:db8::1]",
    "",
];

#[test]
fn a_loopback_listener_answers_only_for_loopback_names() {
    let daemon = daemon("");
    for host in OURS {
        assert_eq!(status_for(&daemon, host), 200, "{host:?}");
    }
    for host in FOREIGN {
        assert_eq!(status_for(&daemon, host), 421, "{host:?}");
    }
    let paths = [
        "/",
        "/page/page.js",
        "/api/v1/experiments",
        "/api/v1/verdict",
        "/api/v1/view",
        "/api/v1/view/stream",
        "/api/v1/view/charts",
        "/healthz",
        "/readyz",
        "/nowhere",
    ];
    for path in paths {
        let first = format!("GET {path} HTTP/1.1");
        let reported = answer(daemon.address(), &first, &["Host: Evil.example:9464"]);
        assert!(reported.starts_with("HTTP/1.1 421 "), "{path}: {reported}");
        assert!(!reported.contains("abgauge_"), "{path}: {reported}");
        assert!(
            reported.contains("[http] hosts = [\"evil.example\"]"),
            "{path}: {reported}"
        );
    }
    let metrics = answer(daemon.address(), "GET /metrics HTTP/1.1", &["Host: localhost"]);
    let n = FOREIGN.len() + paths.len();
    let counted = format!("abgauge_http_refused_total{{reason=\"foreign_host\"}} {n}\n");
    assert!(metrics.contains(&counted), "{metrics}");
    let log = daemon.log();
    assert_eq!(
        log.matches("refused a request for a foreign host").count(),
        1,
        "{log}"
    );
    assert!(log.contains("http.hosts"), "{log}");
}

#[test]
fn http_1_1_requests_need_exactly_one_valid_host() {
    let plain = daemon("");
    let open = daemon(&format!("listen = \"0.0.0.0:{}\"\n", tools::free_port()));
    for daemon in [&plain, &open] {
        let address = SocketAddr::from(([127, 0, 0, 1], daemon.address().port()));
        let bad: [&[&str]; 7] = [
            &[],
            &["Host: localhost", "Host: localhost"],
            &["Host: localhost", "Host: evil.example"],
            &["Host: local host"],
            &["Host: localhost/metrics"],
            &["Host: localhost@evil.example"],
            &["Host: localhost:port"],
        ];
        for lines in bad {
            assert_eq!(status(address, "GET /metrics HTTP/1.1", lines), 400, "{lines:?}");
        }
        assert_eq!(
            status(address, "GET /metrics HTTP/1.1", &["Host: localhost"]),
            200
        );
        // HTTP/1.0 does not require a host, and no browser uses it.
        let old = "GET /metrics HTTP/1.0";
        assert_eq!(status(address, old, &[]), 200);
        assert_eq!(status(address, old, &["Host: localhost", "Host: localhost"]), 400);
    }
    assert_eq!(
        status(plain.address(), "GET /metrics HTTP/1.0", &["Host: evil.example"]),
        421
    );
    // An absolute URL in the first line takes precedence over the header.
    let whole = |host: &str| format!("GET http://{host}/metrics HTTP/1.1");
    let ours = &["Host: localhost"];
    assert_eq!(status(plain.address(), &whole("localhost:9464"), ours), 200);
    assert_eq!(status(plain.address(), &whole("evil.example"), ours), 421);
}

#[test]
fn configured_hosts_are_answered_in_addition_to_local_ones() {
    let daemon = daemon("hosts = [\"abgauge.example\", \"10.1.2.3\"]\n");
    for host in ["abgauge.example", "ABGAUGE.example.:443", "10.1.2.3:9464"] {
        assert_eq!(status_for(&daemon, host), 200, "{host:?}");
    }
    for host in OURS {
        assert_eq!(status_for(&daemon, host), 200, "{host:?}");
    }
    for host in ["evil.example", "www.abgauge.example", "10.1.2.4"] {
        assert_eq!(status_for(&daemon, host), 421, "{host:?}");
    }
}

#[test]
fn a_public_listener_answers_for_every_host_unless_some_are_configured() {
    let listen = || format!("listen = \"0.0.0.0:{}\"\n", tools::free_port());
    let ask = |daemon: &Daemon, host: &str| {
        let address = SocketAddr::from(([127, 0, 0, 1], daemon.address().port()));
        status(address, "GET /healthz HTTP/1.1", &[&format!("Host: {host}")])
    };
    let open = daemon(&listen());
    for host in OURS.into_iter().chain(FOREIGN) {
        assert_eq!(ask(&open, host), 200, "{host:?}");
    }
    let named = daemon(&(listen() + "hosts = [\"abgauge.example\"]\n"));
    // Probes and scrapes use the machine's address. A page would use a name that resolves to it.
    for host in [
        "abgauge.example:9464",
        "localhost",
        "10.1.2.3:9464",
        "[2001:db8::1]",
    ] {
        assert_eq!(ask(&named, host), 200, "{host:?}");
    }
    for host in ["evil.example", "abgauge.example.evil.example", ""] {
        assert_eq!(ask(&named, host), 421, "{host:?}");
    }
}

#[test]
fn a_demo_answers_only_for_loopback_names() {
    let mut demo = Daemon::demo(&["--duration", "5m", "--rate", "20"]);
    demo.wait_until("the port", |demo| demo.try_get("/healthz").ok());
    assert_eq!(status_for(&demo, "localhost"), 200);
    assert_eq!(status_for(&demo, "evil.example"), 421);
}

/// Hosts are not among the settings that a reload applies.
#[test]
fn changed_hosts_wait_for_a_restart() {
    let mut daemon = daemon("");
    daemon.rewrite(&config("hosts = [\"abgauge.example\"]\n"));
    daemon.signal(libc::SIGHUP);
    daemon.wait_until("it to be told", |daemon| {
        daemon.log().contains("http.hosts").then_some(())
    });
    assert_eq!(status_for(&daemon, "abgauge.example"), 421);
}
