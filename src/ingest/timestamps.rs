//! Who sets the timestamps of a topic's records, and whether that guards against events from the future.

use std::fmt;

use crate::config::display_ms;

/// The settings of a topic that decide it; none where the broker does not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// `message.timestamp.type`
    pub kind: Option<String>,
    /// `message.timestamp.after.max.ms`, or the older `message.timestamp.difference.max.ms` where that is less: how far ahead
    /// of its own clock the broker takes a record.
    pub after_max_ms: Option<i64>,
}

/// A topic whose broker takes records from any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unguarded {
    pub text: String,
    /// A command, to be pasted.
    pub remedy: String,
    /// What else would do.
    pub alternative: String,
}

impl Timestamps {
    /// What is wrong where a producer whose clock is ahead passes the guard of `join.max_future`; none where the broker stamps
    /// records, or bounds how far ahead they may be, or does not tell.
    pub fn judge(&self, topic: &str, brokers: &str, max_future_ms: i64) -> Option<Unguarded> {
        let kind = self.kind.as_ref().filter(|kind| *kind != "LogAppendTime")?;
        let bound = match self.after_max_ms {
            Some(ms) if ms <= max_future_ms => return None,
            Some(ms) if ms < i64::MAX => format!("up to {} ahead", display_ms(ms)),
            _ => "from any time".to_owned(),
        };
        Some(Unguarded {
            text: format!(
                "topic `{topic}` uses the timestamps of its producers (message.timestamp.type={kind}) and accepts records \
                 {bound}, so a producer with a fast clock gets past join.max_future ({}) and makes honest events late",
                display_ms(max_future_ms)
            ),
            remedy: format!(
                "kafka-configs.sh --bootstrap-server {brokers} --alter --entity-type topics --entity-name {topic} --add-config \
                 message.timestamp.type=LogAppendTime"
            ),
            alternative: format!(
                "Where producers must keep their timestamps, set message.timestamp.after.max.ms={max_future_ms} instead"
            ),
        })
    }
}

impl fmt::Display for Unguarded {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Unguarded {
            text,
            remedy,
            alternative,
        } = self;
        write!(f, "{text}. {alternative}. To guard it: {remedy}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(kind: Option<&str>, after_max_ms: Option<i64>) -> Option<Unguarded> {
        let kind = kind.map(str::to_owned);
        Timestamps { kind, after_max_ms }.judge("served", "b:1", 30_000)
    }

    #[test]
    fn a_broker_guards_by_its_own_clock_or_by_a_bound() {
        assert_eq!(judge(Some("LogAppendTime"), Some(i64::MAX)), None);
        assert_eq!(judge(Some("CreateTime"), Some(30_000)), None);
        assert_eq!(judge(None, None), None, "it does not tell");
        let hour = judge(Some("CreateTime"), Some(3_600_000)).expect("no guard");
        assert!(
            hour.text.contains("accepts records up to 1h ahead"),
            "{}",
            hour.text
        );
        // It stands last, as it is typed.
        let command = "kafka-configs.sh --bootstrap-server b:1 --alter --entity-type topics --entity-name served --add-config \
                       message.timestamp.type=LogAppendTime";
        assert_eq!(hour.remedy, command);
        assert!(hour.to_string().ends_with(&format!(" To guard it: {command}")));
        assert!(
            hour.alternative
                .contains("message.timestamp.after.max.ms=30000 instead")
        );
        for any in [None, Some(i64::MAX)] {
            let any = judge(Some("CreateTime"), any).expect("no guard");
            assert!(any.text.contains("accepts records from any time"), "{}", any.text);
        }
    }
}
