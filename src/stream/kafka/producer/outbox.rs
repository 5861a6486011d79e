//! Send queue of librdkafka, used with topic handles: with names, each record would cost a look-up.

use std::cell::RefCell;
use std::ffi::{CString, c_void};
use std::ptr::{self, NonNull};
use std::time::Duration;

use rdkafka::bindings::{
    RD_KAFKA_MSG_F_COPY, rd_kafka_error_code, rd_kafka_error_destroy, rd_kafka_flush, rd_kafka_last_error,
    rd_kafka_produceva, rd_kafka_resp_err_t, rd_kafka_topic_destroy, rd_kafka_topic_new, rd_kafka_topic_s,
    rd_kafka_vtype_t as Kind, rd_kafka_vu_s, rd_kafka_vu_s__bindgen_ty_1 as Value,
    rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 as Memory,
};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::producer::Producer as _;

use super::polled::Polled;
use super::{Deliveries, Outgoing};

/// Partition that makes the partitioner choose (`RD_KAFKA_PARTITION_UA`).
const BY_KEY: i32 = -1;

/// Client, with handles of the topics it has sent to.
pub(super) struct ProducerOutbox {
    // Dropped first, because handles belong to the client.
    topics: RefCell<Vec<TopicHandle>>,
    client: Polled<Deliveries>,
}

struct TopicHandle {
    name: String,
    handle: NonNull<rd_kafka_topic_s>,
}

// SAFETY: a handle counts its own references and may be used from any thread.
unsafe impl Send for TopicHandle {}

impl ProducerOutbox {
    pub fn new(client: Polled<Deliveries>) -> ProducerOutbox {
        ProducerOutbox {
            topics: RefCell::default(),
            client,
        }
    }

    pub fn client(&self) -> &Polled<Deliveries> {
        &self.client
    }

    /// Copies a record into the queue.
    ///
    /// # Errors
    /// [`QueueFull`](rdkafka::error::RDKafkaErrorCode::QueueFull), or an error if the record can never be sent.
    pub fn send(&self, record: &Outgoing) -> KafkaResult<()> {
        let mut topics = self.topics.borrow_mut();
        let topic = match topics.iter().position(|topic| topic.name == record.topic) {
            Some(known) => &topics[known],
            None => {
                topics.push(self.open(record.topic)?);
                &topics[topics.len() - 1]
            }
        };
        let field = |vtype, u| rd_kafka_vu_s { vtype, u };
        let bytes = |of: &[u8]| Value {
            mem: Memory {
                ptr: of.as_ptr().cast::<c_void>().cast_mut(),
                size: of.len(),
            },
        };
        let fields = [
            field(
                Kind::RD_KAFKA_VTYPE_RKT,
                Value {
                    rkt: topic.handle.as_ptr(),
                },
            ),
            field(
                Kind::RD_KAFKA_VTYPE_PARTITION,
                Value {
                    i32_: record.partition.unwrap_or(BY_KEY),
                },
            ),
            field(
                Kind::RD_KAFKA_VTYPE_MSGFLAGS,
                Value {
                    i: RD_KAFKA_MSG_F_COPY,
                },
            ),
            field(
                Kind::RD_KAFKA_VTYPE_TIMESTAMP,
                Value {
                    i64_: record.timestamp_ms,
                },
            ),
            field(Kind::RD_KAFKA_VTYPE_KEY, bytes(record.key)),
            field(Kind::RD_KAFKA_VTYPE_VALUE, bytes(record.payload)),
        ];
        // SAFETY: client and topic are alive. Each field has the type that its kind requires. Key and payload are copied before
        // the call returns, and never written to. The error is ours, and destroyed once.
        let code = unsafe {
            let client = self.client.client().native_ptr();
            let error = rd_kafka_produceva(client, fields.as_ptr(), fields.len());
            if error.is_null() {
                return Ok(());
            }
            let code = rd_kafka_error_code(error);
            rd_kafka_error_destroy(error);
            code
        };
        Err(KafkaError::MessageProduction(code.into()))
    }

    /// Waits until nothing is queued or in flight, without lingering. Unlike rdkafka's own `flush`, it does not wake the
    /// client's threads repeatedly or spin in between.
    ///
    /// # Errors
    /// [`OperationTimedOut`](rdkafka::error::RDKafkaErrorCode::OperationTimedOut) if it takes longer than `within`.
    pub fn flush(&self, within: Duration) -> KafkaResult<()> {
        // SAFETY: the client is alive.
        match unsafe { rd_kafka_flush(self.client.client().native_ptr(), within.as_millis() as i32) } {
            rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
            code => Err(KafkaError::Flush(code.into())),
        }
    }

    fn open(&self, name: &str) -> KafkaResult<TopicHandle> {
        let text = CString::new(name)?;
        // SAFETY: client and name are alive. Without a configuration the topic has the client's. The error belongs to this
        // thread.
        let (handle, error) = unsafe {
            let handle =
                rd_kafka_topic_new(self.client.client().native_ptr(), text.as_ptr(), ptr::null_mut());
            (handle, rd_kafka_last_error())
        };
        let handle = NonNull::new(handle).ok_or(KafkaError::MessageProduction(error.into()))?;
        Ok(TopicHandle {
            name: name.to_owned(),
            handle,
        })
    }
}

impl Drop for TopicHandle {
    fn drop(&mut self) {
        // SAFETY: the handle is ours, and destroyed once, before its client.
        unsafe { rd_kafka_topic_destroy(self.handle.as_ptr()) };
    }
}
