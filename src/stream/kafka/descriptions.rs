//! Descriptions of topics: their ids, which are new with each creation, and our rights. rdkafka has no request for them.

use std::ffi::{CStr, CString, c_int};
use std::time::Duration;

use rdkafka::admin::AdminClient;
use rdkafka::bindings::{
    rd_kafka_AclOperation_t as AclOperation, rd_kafka_AdminOptions_destroy, rd_kafka_AdminOptions_new,
    rd_kafka_AdminOptions_set_include_authorized_operations, rd_kafka_AdminOptions_set_request_timeout,
    rd_kafka_DescribeTopics, rd_kafka_DescribeTopics_result_topics, rd_kafka_TopicCollection_destroy,
    rd_kafka_TopicCollection_of_topic_names, rd_kafka_TopicDescription_authorized_operations,
    rd_kafka_TopicDescription_error, rd_kafka_TopicDescription_name, rd_kafka_TopicDescription_t,
    rd_kafka_TopicDescription_topic_id, rd_kafka_Uuid_least_significant_bits,
    rd_kafka_Uuid_most_significant_bits, rd_kafka_admin_op_t, rd_kafka_error_code, rd_kafka_error_destroy,
    rd_kafka_event_DescribeTopics_result, rd_kafka_event_destroy, rd_kafka_event_error,
    rd_kafka_queue_destroy, rd_kafka_queue_new, rd_kafka_queue_poll, rd_kafka_resp_err_t,
};
use rdkafka::client::ClientContext;
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};

/// Extra time for the client beyond the timeout of the request.
const BEYOND: Duration = Duration::from_secs(1);

/// Returns the ids of topics in the given order. They are 0 if the brokers have no ids (before Kafka 2.8).
///
/// # Errors
/// If the brokers do not answer within that time, or do not show one of the topics.
pub(super) fn ids<C: ClientContext>(
    admin: &AdminClient<C>,
    topics: &[&str],
    within: Duration,
) -> KafkaResult<Vec<u128>> {
    let names = topics.iter().map(|topic| CString::new(*topic));
    let names: Vec<CString> = names.collect::<Result<_, _>>()?;
    let id = |topic| {
        // SAFETY: the description is valid during the call, and its id with it.
        let (high, low) = unsafe {
            let id = rd_kafka_TopicDescription_topic_id(topic);
            (
                rd_kafka_Uuid_most_significant_bits(id).cast_unsigned(),
                rd_kafka_Uuid_least_significant_bits(id).cast_unsigned(),
            )
        };
        u128::from(high) << 64 | u128::from(low)
    };
    match describe(admin, &names, within, false, id) {
        // The client's error if no broker supports the request.
        Err(KafkaError::MetadataFetch(RDKafkaErrorCode::UnsupportedFeature)) => Ok(vec![0; topics.len()]),
        found => found,
    }
}

/// Returns whether the user may write to a topic. `None` if the brokers do not report rights (before Kafka 2.3).
///
/// # Errors
/// If the brokers do not answer within that time, or do not show the topic.
pub(super) fn may_write<C: ClientContext>(
    admin: &AdminClient<C>,
    topic: &str,
    within: Duration,
) -> KafkaResult<Option<bool>> {
    let names = [CString::new(topic)?];
    let rights = |topic| {
        let mut n_rights = 0;
        // SAFETY: the description is valid during the call, and with it the array, whose length is written to `n_rights`.
        unsafe {
            let rights = rd_kafka_TopicDescription_authorized_operations(topic, &raw mut n_rights);
            (0..n_rights).map(|index| *rights.add(index)).collect::<Vec<_>>()
        }
    };
    match describe(admin, &names, within, true, rights) {
        Err(KafkaError::MetadataFetch(RDKafkaErrorCode::UnsupportedFeature)) => Ok(None),
        Err(error) => Err(error),
        // A topic is visible only to a user who may describe it, so a list without that right is not a list of rights.
        Ok(rights) => {
            let has = |right| rights.concat().contains(&right);
            let is_reported = has(AclOperation::RD_KAFKA_ACL_OPERATION_DESCRIBE);
            Ok(is_reported.then(|| has(AclOperation::RD_KAFKA_ACL_OPERATION_WRITE)))
        }
    }
}

/// Describes topics in the given order. `take` reads from each description.
fn describe<C: ClientContext, T>(
    admin: &AdminClient<C>,
    names: &[CString],
    within: Duration,
    with_rights: bool,
    take: impl Fn(*const rd_kafka_TopicDescription_t) -> T,
) -> KafkaResult<Vec<T>> {
    let client = admin.inner().native_ptr();
    let mut pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    let request_ms = i32::try_from(within.as_millis()).unwrap_or(i32::MAX);
    let wait_ms = i32::try_from((within + BEYOND).as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the client outlives everything created from it here. Each object is destroyed once, in this function, in reverse
    // order. The call copies the names. No error text is requested, so its length is 0. Pointers in a description are valid as
    // long as its event.
    unsafe {
        let queue = Own::new(rd_kafka_queue_new(client), rd_kafka_queue_destroy)?;
        let options =
            rd_kafka_AdminOptions_new(client, rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS);
        let options = Own::new(options, rd_kafka_AdminOptions_destroy)?;
        let set = rd_kafka_AdminOptions_set_request_timeout(options.0, request_ms, std::ptr::null_mut(), 0);
        succeeded(set)?;
        let refused =
            rd_kafka_AdminOptions_set_include_authorized_operations(options.0, c_int::from(with_rights));
        if !refused.is_null() {
            rd_kafka_error_destroy(refused);
            return Err(KafkaError::MetadataFetch(RDKafkaErrorCode::UnsupportedFeature));
        }
        let topics = rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
        let topics = Own::new(topics, rd_kafka_TopicCollection_destroy)?;
        rd_kafka_DescribeTopics(client, topics.0, options.0, queue.0);
        let event = Own::new(rd_kafka_queue_poll(queue.0, wait_ms), rd_kafka_event_destroy)?;
        succeeded(rd_kafka_event_error(event.0))?;
        let result = rd_kafka_event_DescribeTopics_result(event.0);
        if result.is_null() {
            return Err(KafkaError::MetadataFetch(RDKafkaErrorCode::Fail));
        }
        let mut n_found = 0;
        let found = rd_kafka_DescribeTopics_result_topics(result, &mut n_found);
        let mut taken = Vec::with_capacity(names.len());
        for name in names {
            let mut all = (0..n_found).map(|index| *found.add(index));
            let of_name =
                all.find(|found| CStr::from_ptr(rd_kafka_TopicDescription_name(*found)) == name.as_c_str());
            let found = of_name.ok_or(KafkaError::MetadataFetch(
                RDKafkaErrorCode::UnknownTopicOrPartition,
            ))?;
            let error = rd_kafka_TopicDescription_error(found);
            if !error.is_null() {
                succeeded(rd_kafka_error_code(error))?;
            }
            taken.push(take(found));
        }
        Ok(taken)
    }
}

fn succeeded(code: rd_kafka_resp_err_t) -> KafkaResult<()> {
    match code {
        rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
        code => Err(KafkaError::MetadataFetch(code.into())),
    }
}

/// Owned object of librdkafka.
struct Own<T>(*mut T, unsafe extern "C" fn(*mut T));

impl<T> Own<T> {
    /// Takes ownership of an object.
    ///
    /// # Errors
    /// If it is null, which means that waiting for it timed out.
    fn new(pointer: *mut T, destroy: unsafe extern "C" fn(*mut T)) -> KafkaResult<Own<T>> {
        match pointer.is_null() {
            true => Err(KafkaError::MetadataFetch(RDKafkaErrorCode::OperationTimedOut)),
            false => Ok(Own(pointer, destroy)),
        }
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        // SAFETY: the object is ours, and destroyed once by the matching function.
        unsafe { (self.1)(self.0) };
    }
}
