//! The faults, and how each is injected and ended.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use super::stream::Stream;
use super::{Chaos, N_PARTITIONS};
use crate::support::kafka::Kafka;
use crate::support::{https, wait};
use crate::traffic::{now_ms, scrape};

/// Duration longer than the group waits for a member.
const A_WHILE: Duration = Duration::from_secs(3);
const TWO_DAYS_MS: i64 = 2 * 24 * 60 * 60 * 1000;
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// `kill -9` of the daemon.
    Kill,
    /// SIGTERM and a new start.
    Stop,
    /// SIGSTOP for longer than the group waits for a member.
    Freeze,
    /// Loss of the connection to the broker.
    Cut,
    /// `kill -9` of the broker.
    BrokerKilled,
    BrokerRestarted,
    /// Clients of `/metrics` that do not read, and connections without a request.
    Stall,
    /// Unreadable records, among them a list in ten thousand experiments.
    Rubbish,
    /// A transaction that is left open, then committed or aborted.
    Transaction,
    /// A list two days in the future, which is later skipped with `ingest.skip_records` and a restart.
    Ahead,
    /// A batch that is damaged on disk and later repaired.
    Damage,
}

impl Fault {
    pub const ALL: [Fault; 11] = [
        Fault::Kill,
        Fault::Stop,
        Fault::Freeze,
        Fault::Cut,
        Fault::BrokerKilled,
        Fault::BrokerRestarted,
        Fault::Stall,
        Fault::Rubbish,
        Fault::Transaction,
        Fault::Ahead,
        Fault::Damage,
    ];

    /// Injects the fault under traffic, and ends it.
    pub fn inject(self, chaos: &mut Chaos, number: u32) {
        let partition = number.cast_signed() % N_PARTITIONS;
        match self {
            Fault::Kill => restart(chaos, true),
            Fault::Stop => restart(chaos, false),
            Fault::Freeze => freeze(chaos),
            Fault::Cut => {
                chaos.kafka.proxy().cut();
                pass(A_WHILE);
                chaos.kafka.proxy().restore();
            }
            Fault::BrokerKilled => restart_broker(chaos, Kafka::restart),
            Fault::BrokerRestarted => restart_broker(chaos, Kafka::restart_in_order),
            Fault::Stall => stall(chaos),
            Fault::Rubbish => rubbish(chaos, partition),
            Fault::Transaction => transaction(chaos, partition, number),
            Fault::Ahead => ahead(chaos, partition),
            Fault::Damage => damage(chaos, partition),
        }
    }
}

fn pass(time: Duration) {
    wait::try_until(time, || None::<()>);
}

fn restart(chaos: &mut Chaos, at_once: bool) {
    chaos.scraper.is_gone();
    if at_once {
        chaos.daemon.kill();
    } else {
        chaos.daemon.signal(libc::SIGTERM);
        assert_eq!(chaos.daemon.wait_exit(PATIENCE), Some(0), "a clean stop");
    }
    pass(Duration::from_millis(500));
    chaos.daemon.start_again();
    chaos
        .daemon
        .wait_until("it to listen", |daemon| daemon.try_get("/healthz").ok());
    chaos.scraper.is_back();
    chaos.n_restarts += 1;
}

fn freeze(chaos: &mut Chaos) {
    chaos.scraper.is_gone();
    chaos.daemon.signal(libc::SIGSTOP);
    pass(A_WHILE);
    chaos.daemon.signal(libc::SIGCONT);
    chaos.scraper.is_back();
}

/// Restarts the broker. The traffic pauses, because a record sent twice would be counted as two records.
fn restart_broker(chaos: &mut Chaos, restart: fn(&mut Kafka)) {
    chaos.stream.pause();
    restart(&mut chaos.kafka);
    chaos.stream.reach_all();
    chaos.stream.go_on();
}

fn stall(chaos: &mut Chaos) {
    const N_READERS: usize = 60;
    let address = chaos.daemon.address();
    let readers: Vec<_> = (0..N_READERS)
        .map(|n| {
            let mut stream = TcpStream::connect(address).expect("it listens");
            if n % 2 == 0 {
                let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n");
                stream.write_all(request.as_bytes()).expect("sent");
            }
            stream
        })
        .collect();
    for _ in 0..10 {
        let answer = https::get(address, None, "/metrics", &[]).expect("an answer beside them");
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    drop(readers);
}

fn rubbish(chaos: &mut Chaos, partition: i32) {
    let arms: serde_json::Map<_, _> = (0..10_000).map(|n| (format!("e{n}"), "a".into())).collect();
    let mut crowded = Stream::list("crowded", "a", now_ms());
    crowded["experiments"] = arms.into();
    let crowded = crowded.to_string();
    let payloads: [Option<&[u8]>; 5] = [
        None,
        Some(b"{"),
        Some(b"\xff\xfe"),
        Some(br#"{"type":"served","request_id":"r","ts":1763596800}"#),
        Some(crowded.as_bytes()),
    ];
    for payload in payloads {
        chaos.stream.send_raw(partition, payload, None);
    }
    let click = br#"{"type":"click","request_id":"r-1","ts":1763596800123,"item":"i1"}"#;
    chaos.stream.send_raw(partition, Some(click), None);
    let stream = &chaos.stream;
    stream.expect(|expected| (0..=payloads.len()).for_each(|_| expected.count(stream.served(), "invalid")));
}

fn transaction(chaos: &mut Chaos, partition: i32, number: u32) {
    let id = format!("transaction-{number}");
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", chaos.kafka.brokers())
        .set("transactional.id", &id)
        .create()
        .expect("a producer");
    producer.init_transactions(PATIENCE).expect("transactions");
    producer.begin_transaction().expect("one begins");
    let payload = Stream::list(&id, "of-transactions", now_ms()).to_string();
    let record = BaseRecord::<[u8], [u8]>::to(chaos.stream.served())
        .partition(partition)
        .key(id.as_bytes())
        .payload(payload.as_bytes());
    producer
        .send(record)
        .map_err(|(error, _)| error)
        .expect("room in the queue");
    producer.flush(PATIENCE).expect("it is written");
    pass(A_WHILE);
    if number.is_multiple_of(2) {
        producer.commit_transaction(PATIENCE).expect("it ends");
        chaos.stream.expect_list("of-transactions");
    } else {
        producer.abort_transaction(PATIENCE).expect("it ends");
    }
}

/// Sends a list from the future. Later records in its partition count as late until a restart skips that list.
fn ahead(chaos: &mut Chaos, partition: i32) {
    chaos.stream.pause();
    let ahead_ms = now_ms() + TWO_DAYS_MS;
    let list = Stream::list("ahead", "of-the-future", ahead_ms).to_string();
    chaos
        .stream
        .send_raw(partition, Some(list.as_bytes()), Some(ahead_ms));
    chaos.stream.flush();
    let served = chaos.stream.served().to_owned();
    let offset = chaos.kafka.offsets(&served, partition).1 - 1;
    chaos.stream.go_on();
    let labels = [("topic", &*served), ("partition", &*partition.to_string())];
    chaos.daemon.wait_until("the event ahead to be told", |daemon| {
        scrape(daemon)?.value("abgauge_event_ahead_seconds", &labels)
    });
    chaos.stream.expect(|expected| expected.count(&served, "skipped"));
    chaos.skips.push(format!("{served}/{partition}/{offset}"));
    chaos.daemon.rewrite(&chaos.config());
    restart(chaos, true);
}

/// Damages a batch. The daemon is stopped while the batch is written, so it cannot read the batch before it is damaged.
fn damage(chaos: &mut Chaos, partition: i32) {
    chaos.scraper.is_gone();
    chaos.daemon.signal(libc::SIGSTOP);
    chaos.stream.pause();
    chaos.stream.go_on();
    pass(Duration::from_secs(1));
    chaos.stream.pause();
    let served = chaos.stream.served().to_owned();
    let last = chaos.kafka.offsets(&served, partition).1 - 1;
    chaos.kafka.damage(&served, partition, last);
    chaos.stream.go_on();
    chaos.daemon.signal(libc::SIGCONT);
    chaos.scraper.is_back();
    let labels = [("topic", &*served), ("partition", &*partition.to_string())];
    chaos.daemon.wait_until("the partition to be held", |daemon| {
        (scrape(daemon)?.value("abgauge_partition_held", &labels)? == 1.0).then_some(())
    });
    // The second call inverts the same byte again, which repairs the batch.
    chaos.kafka.damage(&served, partition, last);
}
