//! What went wrong at a question to the brokers, by what can be done about it.

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

use crate::kafka::client::TlsFault;
use crate::kafka::producer::explain_refusal;

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub trouble: Trouble,
    /// The client's or the broker's own words; never a property's value.
    pub detail: String,
    pub(super) code: Option<Code>,
}

/// By what can be done about it; the more telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// The client refuses a property.
    Property,
    Credentials,
    Tls,
    TopicForbidden,
    GroupForbidden,
    NoSuchTopic,
    /// A broker's name has no address.
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

    pub(super) fn of_config(error: KafkaError) -> Failure {
        Failure::new(Trouble::Property, format!("{:#}", explain_refusal(error)))
    }

    /// Of [`Trouble::Tls`], what is wrong and what to do.
    pub fn of_tls(&self) -> (&'static str, &'static str) {
        let TlsFault { what, remedy } = TlsFault::of(&self.detail);
        (what, remedy)
    }

    /// Whether asking again is of no use.
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
