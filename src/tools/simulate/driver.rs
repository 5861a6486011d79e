//! Producer loop: sends traffic to Kafka at its pace, and moves the demo's clock only as far as the brokers have the
//! records.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use abgauge_core::engine::event::Side;
use anyhow::Result;

use super::heartbeat::Heartbeat;
use super::traffic::Traffic;
use super::{Summary, event_ms};
use crate::clock::{Clock, ClockControl};
use crate::stream::kafka::producer::{Outgoing, Producer};

/// Wall time between two steps.
const STEP: Duration = Duration::from_millis(20);
/// Maximum wall time made up for in one step after a stall.
const LONGEST_STEP: Duration = Duration::from_millis(200);
/// Time limit for event time to catch up at the end.
const GRACE: Duration = Duration::from_secs(1);
const FLUSH_WITHIN: Duration = Duration::from_secs(30);

/// Topics for lists and clicks, which may be the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficTopics {
    pub served: String,
    pub clicks: String,
}

/// Run of traffic. Event time begins at the traffic's start and passes `speed` times as fast as wall time.
pub struct Driver {
    traffic: Traffic,
    start_ms: i64,
    end_ms: Option<i64>,
    producer: Producer,
    topics: TrafficTopics,
    speed: f64,
    hand: Option<ClockControl>,
    heartbeat: Option<Heartbeat>,
    summary: Summary,
}

impl Driver {
    pub fn new(traffic: Traffic, producer: Producer, topics: TrafficTopics, speed: f64) -> Driver {
        Driver {
            start_ms: traffic.settings().start_ms,
            end_ms: traffic.end_ms(),
            traffic,
            producer,
            topics,
            speed,
            hand: None,
            heartbeat: None,
            summary: Summary::default(),
        }
    }

    /// Moves this clock along. It reaches a time only once every record that arrives until then is on the brokers.
    pub fn with_hand(mut self, hand: ClockControl) -> Driver {
        self.hand = Some(hand);
        self
    }

    /// Writes a file as long as Kafka accepts the records.
    pub fn with_heartbeat(mut self, heartbeat: Option<Heartbeat>) -> Driver {
        self.heartbeat = heartbeat;
        self
    }

    /// Runs until the traffic's duration is over or `cancel` is set. On return, everything sent is on the brokers. If the
    /// machine cannot keep pace, event time falls behind and ends with the wall time. `watch` is called after each step
    /// with the event time since the start (ms).
    ///
    /// # Errors
    /// A record is refused or not delivered, or the heartbeat file cannot be written.
    pub fn run(mut self, cancel: &AtomicBool, mut watch: impl FnMut(i64, &Summary)) -> Result<Summary> {
        let wall = Clock::system();
        let end_ms = self.end_ms.unwrap_or(i64::MAX);
        // At least 1 ms, so that slow traffic makes progress.
        let longest_step_ms = event_ms(LONGEST_STEP, self.speed).max(1);
        let mut now_ms = self.start_ms;
        while !cancel.load(Ordering::Relaxed) {
            let due_ms = self.due_ms(wall.uptime()).min(end_ms);
            now_ms = due_ms.min(now_ms + longest_step_ms);
            self.produce_until(now_ms, cancel)?;
            watch(now_ms - self.start_ms, &self.summary);
            if let Some(heartbeat) = &mut self.heartbeat {
                let n_on_the_way = self.producer.n_on_the_way();
                let n_delivered = self.summary.records().saturating_sub(n_on_the_way);
                heartbeat.beat(n_delivered, wall.uptime())?;
            }
            let out_of_time = self.due_ms(wall.uptime().saturating_sub(GRACE)) >= end_ms;
            if now_ms >= end_ms || out_of_time {
                break;
            }
            // A step that was cut short is followed by the next one at once, to catch up.
            if now_ms == due_ms {
                std::thread::sleep(STEP);
            }
        }
        self.producer.flush(FLUSH_WITHIN)?;
        Ok(self.summary)
    }

    fn due_ms(&self, wall: Duration) -> i64 {
        self.start_ms + event_ms(wall, self.speed)
    }

    fn produce_until(&mut self, now_ms: i64, cancel: &AtomicBool) -> Result<()> {
        while let Some(record) = self.traffic.next_until(now_ms) {
            if cancel.load(Ordering::Relaxed) {
                return Ok(());
            }
            let topic = match record.side {
                Side::Served => &self.topics.served,
                Side::Clicks => &self.topics.clicks,
            };
            let outgoing = Outgoing {
                topic,
                // The client chooses the partition by the key, as a real producer would.
                partition: None,
                key: &record.key,
                payload: &record.payload,
                timestamp_ms: record.arrival_ms,
            };
            if self.producer.send(&outgoing, cancel)? {
                self.summary.count(record.kind);
            }
        }
        if let Some(hand) = &self.hand {
            // The clock advances only once the brokers have every record up to this time.
            self.producer.flush(FLUSH_WITHIN)?;
            hand.advance_to(now_ms);
        }
        Ok(())
    }
}
