//! Producer that takes its events on a separate thread. rdkafka's own one polls without a pause in the last millisecond of each
//! tenth of a second, which constantly costs 1% of a core.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rdkafka::config::{ClientConfig, FromClientConfigAndContext};
use rdkafka::error::KafkaResult;
use rdkafka::producer::{BaseProducer, ProducerContext};

/// Maximum time that an event waits.
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum number of events between two pauses. One event reports all records that failed together.
const N_EVENTS: usize = 16;

/// Producer with its thread. Dropping it waits for the thread.
pub(in crate::stream::kafka) struct Polled<C: ProducerContext + 'static> {
    producer: Arc<BaseProducer<C>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl<C: ProducerContext + 'static> Polled<C> {
    /// Starts the thread.
    ///
    /// # Errors
    /// If librdkafka refuses a property.
    pub fn start(config: &ClientConfig, context: C) -> KafkaResult<Polled<C>> {
        let producer = Arc::new(BaseProducer::from_config_and_context(config, context)?);
        let is_over = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (producer, is_over) = (Arc::clone(&producer), Arc::clone(&is_over));
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    // Bounded, so that a stream of events cannot keep the thread from ending.
                    (0..N_EVENTS).for_each(|_| producer.poll(Duration::ZERO));
                    thread::park_timeout(PAUSE);
                }
            }
        });
        Ok(Polled {
            producer,
            is_over,
            thread: Some(thread),
        })
    }
}

impl<C: ProducerContext + 'static> Deref for Polled<C> {
    type Target = BaseProducer<C>;

    fn deref(&self) -> &BaseProducer<C> {
        &self.producer
    }
}

impl<C: ProducerContext + 'static> Drop for Polled<C> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It panics only if a context does, which has been reported by then.
            let _ = thread.join();
        }
    }
}
