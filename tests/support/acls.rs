//! Rights that a test grants, denies or revokes: calls that rdkafka does not wrap.

use std::ffi::CString;
use std::ptr;

use rdkafka::bindings::{
    rd_kafka_AclBinding_destroy, rd_kafka_AclBinding_new, rd_kafka_AclBinding_t,
    rd_kafka_AclBindingFilter_new, rd_kafka_AclPermissionType_t, rd_kafka_CreateAcls,
    rd_kafka_CreateAcls_result_acls, rd_kafka_DeleteAcls, rd_kafka_DeleteAcls_result_response_error,
    rd_kafka_DeleteAcls_result_response_matching_acls, rd_kafka_DeleteAcls_result_responses,
    rd_kafka_ResourcePatternType_t, rd_kafka_acl_result_error, rd_kafka_event_CreateAcls_result,
    rd_kafka_event_DeleteAcls_result, rd_kafka_event_destroy, rd_kafka_event_error, rd_kafka_event_t,
    rd_kafka_queue_destroy, rd_kafka_queue_new, rd_kafka_queue_poll, rd_kafka_queue_t, rd_kafka_resp_err_t,
    rd_kafka_t,
};
pub use rdkafka::bindings::{rd_kafka_AclOperation_t as Operation, rd_kafka_ResourceType_t as ResourceType};

use super::kafka::Kafka;
use super::wait::PATIENCE;

const ALLOW: rd_kafka_AclPermissionType_t = rd_kafka_AclPermissionType_t::RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW;
const DENY: rd_kafka_AclPermissionType_t = rd_kafka_AclPermissionType_t::RD_KAFKA_ACL_PERMISSION_TYPE_DENY;
const LITERAL: rd_kafka_ResourcePatternType_t =
    rd_kafka_ResourcePatternType_t::RD_KAFKA_RESOURCE_PATTERN_LITERAL;

/// One operation of a user on a topic or a group, from any host.
struct Right {
    kind: ResourceType,
    name: CString,
    user: CString,
    operation: Operation,
}

impl Right {
    fn new(user: &str, kind: ResourceType, name: &str, operation: Operation) -> Right {
        let text = |text: String| CString::new(text).expect("no NUL");
        Right {
            kind,
            name: text(name.to_owned()),
            user: text(format!("User:{user}")),
            operation,
        }
    }
}

impl Kafka {
    /// Allows a user one operation on a topic or a group, from any host.
    #[track_caller]
    pub fn grant(&self, user: &str, kind: ResourceType, name: &str, operation: Operation) {
        self.create(&Right::new(user, kind, name, operation), ALLOW);
    }

    /// Denies it, whatever else is allowed.
    #[track_caller]
    pub fn deny(&self, user: &str, kind: ResourceType, name: &str, operation: Operation) {
        self.create(&Right::new(user, kind, name, operation), DENY);
    }

    /// Revokes a right that [`Kafka::grant`] gave.
    #[track_caller]
    pub fn revoke(&self, user: &str, kind: ResourceType, name: &str, operation: Operation) {
        let right = Right::new(user, kind, name, operation);
        let any_host = c"*".as_ptr();
        // SAFETY: `right` outlives the call, which copies its strings. The error buffer is null with length 0.
        let filter = unsafe {
            rd_kafka_AclBindingFilter_new(
                right.kind,
                right.name.as_ptr(),
                LITERAL,
                right.user.as_ptr(),
                any_host,
                right.operation,
                ALLOW,
                ptr::null_mut(),
                0,
            )
        };
        let send = |client, binding: *mut *mut rd_kafka_AclBinding_t, queue| {
            // SAFETY: all three are valid, as `exchange` promises.
            unsafe { rd_kafka_DeleteAcls(client, binding, 1, ptr::null(), queue) };
        };
        self.exchange(filter, send, |event| {
            let (mut n_responses, mut n_deleted) = (0, 0);
            // SAFETY: the event is the answer to this request, and outlives the block.
            unsafe {
                let result = rd_kafka_event_DeleteAcls_result(event);
                let responses = rd_kafka_DeleteAcls_result_responses(result, &mut n_responses);
                assert_eq!(n_responses, 1);
                assert!(rd_kafka_DeleteAcls_result_response_error(*responses).is_null());
                rd_kafka_DeleteAcls_result_response_matching_acls(*responses, &mut n_deleted);
            }
            assert_eq!(n_deleted, 1, "the right was granted before");
        });
    }

    #[track_caller]
    fn create(&self, right: &Right, permission: rd_kafka_AclPermissionType_t) {
        let any_host = c"*".as_ptr();
        // SAFETY: `right` outlives the call, which copies its strings. The error buffer is null with length 0.
        let binding = unsafe {
            rd_kafka_AclBinding_new(
                right.kind,
                right.name.as_ptr(),
                LITERAL,
                right.user.as_ptr(),
                any_host,
                right.operation,
                permission,
                ptr::null_mut(),
                0,
            )
        };
        let send = |client, binding: *mut *mut rd_kafka_AclBinding_t, queue| {
            // SAFETY: all three are valid, as `exchange` promises.
            unsafe { rd_kafka_CreateAcls(client, binding, 1, ptr::null(), queue) };
        };
        self.exchange(binding, send, |event| {
            let mut n_results = 0;
            // SAFETY: the event is the answer to this request, and outlives the block.
            unsafe {
                let result = rd_kafka_event_CreateAcls_result(event);
                let results = rd_kafka_CreateAcls_result_acls(result, &mut n_results);
                assert_eq!(n_results, 1);
                assert!(
                    rd_kafka_acl_result_error(*results).is_null(),
                    "the right is given or denied"
                );
            }
        });
    }

    /// Sends a request about a binding with a client and a queue for the answer, and checks the answer. Destroys the binding.
    #[track_caller]
    fn exchange(
        &self,
        mut binding: *mut rd_kafka_AclBinding_t,
        send: impl FnOnce(*mut rd_kafka_t, *mut *mut rd_kafka_AclBinding_t, *mut rd_kafka_queue_t),
        check: impl FnOnce(*mut rd_kafka_event_t),
    ) {
        assert!(!binding.is_null(), "a right that there is");
        let admin = self.admin();
        let client = admin.inner().native_ptr();
        // SAFETY: the client outlives the block, and everything created here is destroyed once, before the block ends.
        unsafe {
            let queue = rd_kafka_queue_new(client);
            send(client, &mut binding, queue);
            let event = rd_kafka_queue_poll(queue, PATIENCE.as_millis() as i32);
            assert!(!event.is_null(), "the broker answers");
            let code = rd_kafka_event_error(event);
            assert_eq!(code, rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR);
            check(event);
            rd_kafka_event_destroy(event);
            rd_kafka_queue_destroy(queue);
            rd_kafka_AclBinding_destroy(binding);
        }
    }
}
