//! Rights that a test grants or denies to users of the broker: a call that rdkafka does not wrap.

use std::ffi::CString;
use std::ptr;

use rdkafka::bindings::{
    rd_kafka_AclBinding_destroy, rd_kafka_AclBinding_new, rd_kafka_AclPermissionType_t, rd_kafka_CreateAcls,
    rd_kafka_CreateAcls_result_acls, rd_kafka_ResourcePatternType_t, rd_kafka_acl_result_error,
    rd_kafka_event_CreateAcls_result, rd_kafka_event_destroy, rd_kafka_event_error, rd_kafka_queue_destroy,
    rd_kafka_queue_new, rd_kafka_queue_poll, rd_kafka_resp_err_t,
};
pub use rdkafka::bindings::{rd_kafka_AclOperation_t as Operation, rd_kafka_ResourceType_t as ResourceType};

use super::kafka::Kafka;
use super::wait::PATIENCE;

impl Kafka {
    /// Allows a user one operation on a topic or a group, from any host.
    #[track_caller]
    pub fn grant(&self, user: &str, kind: ResourceType, name: &str, operation: Operation) {
        let allow = rd_kafka_AclPermissionType_t::RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW;
        self.rule(user, kind, name, operation, allow);
    }

    /// Denies it, whatever else is allowed.
    #[track_caller]
    pub fn deny(&self, user: &str, kind: ResourceType, name: &str, operation: Operation) {
        let deny = rd_kafka_AclPermissionType_t::RD_KAFKA_ACL_PERMISSION_TYPE_DENY;
        self.rule(user, kind, name, operation, deny);
    }

    #[track_caller]
    fn rule(
        &self,
        user: &str,
        kind: ResourceType,
        name: &str,
        operation: Operation,
        permission: rd_kafka_AclPermissionType_t,
    ) {
        let [name, user, host] =
            [name, &format!("User:{user}"), "*"].map(|text| CString::new(text).expect("no NUL"));
        let admin = self.admin();
        let client = admin.inner().native_ptr();
        // SAFETY: the client outlives the block, and everything created here is destroyed once, before the block ends. The
        // call copies the strings. The error buffer is null with length 0.
        unsafe {
            let mut binding = rd_kafka_AclBinding_new(
                kind,
                name.as_ptr(),
                rd_kafka_ResourcePatternType_t::RD_KAFKA_RESOURCE_PATTERN_LITERAL,
                user.as_ptr(),
                host.as_ptr(),
                operation,
                permission,
                ptr::null_mut(),
                0,
            );
            assert!(!binding.is_null(), "a right that there is");
            let queue = rd_kafka_queue_new(client);
            rd_kafka_CreateAcls(client, &mut binding, 1, ptr::null(), queue);
            let event = rd_kafka_queue_poll(queue, PATIENCE.as_millis() as i32);
            assert!(!event.is_null(), "the broker answers");
            let code = rd_kafka_event_error(event);
            assert_eq!(code, rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR);
            let mut n_results = 0;
            let results =
                rd_kafka_CreateAcls_result_acls(rd_kafka_event_CreateAcls_result(event), &mut n_results);
            assert_eq!(n_results, 1);
            assert!(
                rd_kafka_acl_result_error(*results).is_null(),
                "the right is given or denied"
            );
            rd_kafka_event_destroy(event);
            rd_kafka_queue_destroy(queue);
            rd_kafka_AclBinding_destroy(binding);
        }
    }
}
