//! Failures of requests to the brokers, classified by what can be done about them.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

use crate::stream::kafka::client::TlsFault;
use crate::stream::kafka::producer::explain_refusal;

/// Failure of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub trouble: Trouble,
    /// Message of the client or the broker, without any property's value.
    pub detail: String,
    pub(super) code: Option<Code>,
}

/// Class of a failure, by what can be done about it. More specific classes come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// The client refuses a property.
    Property,
    Credentials,
    Tls,
    TopicForbidden,
    GroupForbidden,
    NoSuchTopic,
    /// The name of a broker cannot be resolved.
    Resolve,
    Unreachable,
    Other,
}

impl Failure {
    pub fn new(trouble: Trouble, detail: impl Into<String>) -> Failure {
        Failure {
            trouble,
            detail: detail.into(),
            code: None,
        }
    }

    pub(super) fn of(error: &KafkaError, reason: &str) -> Failure {
        let code = error.rdkafka_error_code();
        let detail = if reason.is_empty() {
            code.map_or(error.to_string(), |code| code.to_string())
        } else {
            reason.to_owned()
        };
        Failure {
            trouble: code.map_or(Trouble::Other, trouble),
            detail,
            code,
        }
    }

    /// Returns the failure that a broker reports by this code.
    pub(super) fn of_code(code: Code) -> Failure {
        Failure::of(&KafkaError::MetadataFetch(code), "")
    }

    pub(super) fn of_config(error: KafkaError) -> Failure {
        Failure::new(Trouble::Property, format!("{:#}", explain_refusal(error)))
    }

    /// Returns what is wrong and what to do, for [`Trouble::Tls`].
    pub fn of_tls(&self) -> (&'static str, &'static str) {
        let TlsFault { what, remedy } = TlsFault::of(&self.detail);
        (what, remedy)
    }

    /// Returns whether a retry is useless.
    pub(super) fn is_final(&self) -> bool {
        matches!(
            self.trouble,
            Trouble::TopicForbidden | Trouble::GroupForbidden | Trouble::NoSuchTopic
        )
    }
}

fn trouble(code: Code) -> Trouble {
    match code {
        Code::Authentication | Code::SaslAuthenticationFailed | Code::UnsupportedSASLMechanism => {
            Trouble::Credentials
        }
        Code::SSL => Trouble::Tls,
        Code::TopicAuthorizationFailed | Code::ClusterAuthorizationFailed => Trouble::TopicForbidden,
        Code::GroupAuthorizationFailed => Trouble::GroupForbidden,
        Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition => Trouble::NoSuchTopic,
        Code::Resolve => Trouble::Resolve,
        Code::AllBrokersDown
        | Code::BrokerTransportFailure
        | Code::BrokerNotAvailable
        | Code::OperationTimedOut
        | Code::RequestTimedOut
        | Code::NetworkException => Trouble::Unreachable,
        _ => Trouble::Other,
    }
}
