//! The program itself, from records to a webhook: users who are not split as configured, with an in-process broker.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use abgauge::stream::kafka::embedded::Embedded;
use serde_json::Value;

use crate::support::daemon::Daemon;
use crate::support::{tools, wait};

/// A request to the receiver: its head, and the verdict.
struct Posted {
    head: String,
    verdict: Value,
}

/// Starts a receiver that refuses the first notification and accepts all others.
fn receiver() -> (String, Receiver<Posted>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it listens");
    let (tell, posted) = channel();
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let status = if n == 0 {
                "503 Service Unavailable"
            } else {
                "204 No Content"
            };
            let reported = answer(stream.expect("a connection"), status);
            // The receiver is gone if the test has ended.
            if tell.send(reported).is_err() {
                return;
            }
        }
    });
    (format!("http://{address}/hook"), posted)
}

fn answer(stream: TcpStream, status: &str) -> Posted {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).expect("a line"), 0, "{head}");
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.expect("a length").parse().expect("a number");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a whole body");
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    reader.get_mut().write_all(answer.as_bytes()).expect("it listens");
    Posted {
        head,
        verdict: serde_json::from_slice(&body).expect("JSON"),
    }
}

/// Sends three hours of traffic up to now in two seconds. The control has four fifths of the users.
fn simulate(brokers: &str) {
    let ran = crate::support::program::run(&[
        "simulate",
        "--key=user",
        "--duration=2s",
        "--speed=5400",
        "--rate=2000",
        "--users=2000",
        "--shares=control=0.8,neural=0.2",
        "--brokers",
        brokers,
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn the_program_notifies_the_webhook_of_its_results() {
    let broker = Embedded::start(&["served", "clicks"], 4).expect("a broker");
    let (url, posted) = receiver();
    let dir = tools::temporary_dir("webhook");
    let secret = dir.path().join("secret");
    std::fs::write(&secret, "Bearer 9f2b6d0c\n").expect("write the secret");
    let config = format!(
        "[kafka]\nbrokers = {:?}\nkey = \"user\"\nstart = \"earliest\"\n[join]\nattribution = \"1m\"\nlateness = \"1m\"\nidle_after \
         = \"1s\"\n[webhook]\nurl = {url:?}\nsecret_file = {secret:?}\n[experiments.ranker]\ncontrol = \"control\"\nshares = {{ control \
         = 0.5, neural = 0.5 }}\n",
        broker.bootstrap()
    );
    simulate(broker.bootstrap());
    let mut daemon = Daemon::run(&config);
    daemon.wait_until_ready();
    let reported = daemon.wait_until("a notice", |_| posted.try_recv().ok());
    for part in ["POST /hook HTTP/1.1\r\n", "authorization: Bearer 9f2b6d0c\r\n"] {
        assert!(reported.head.contains(part), "{}", reported.head);
    }
    let verdict = reported.verdict;
    for (field, value) in [
        ("experiment", "ranker"),
        ("arm", "neural"),
        ("state", "invalid(srm)"),
        ("result", "hold"),
    ] {
        assert_eq!(verdict[field], value, "{verdict}");
    }
    let again = daemon.wait_until("the same notice", |_| posted.try_recv().ok());
    assert_eq!(again.verdict, verdict, "it was refused at first");
    let counted = |result: &str| {
        let name = format!("abgauge_webhook_notices_total{{result=\"{result}\"}} 1\n");
        move |daemon: &Daemon| daemon.get("/metrics").body.contains(&name).then_some(())
    };
    daemon.wait_until("the failure to be counted", counted("failed"));
    daemon.wait_until("the success to be counted", counted("sent"));
    assert!(!daemon.log().contains("9f2b6d0c"), "{}", daemon.log());
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit(wait::LONG), Some(0));
}
