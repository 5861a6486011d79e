//! Check of the timestamps of a topic's records: their origin, and whether they guard against events from the future.

use std::fmt;

use crate::settings::display_ms;

/// Settings of a topic that decide this; `None` if the broker does not return them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// `message.timestamp.type`
    pub kind: Option<String>,
    /// `message.timestamp.after.max.ms`, or the older `message.timestamp.difference.max.ms` if that is less: how far ahead
    /// of its own clock the broker accepts a record.
    pub after_max_ms: Option<i64>,
}

/// Harm that a producer with a fast clock can do to a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimestampFault {
    /// Set if events from the future get through. Otherwise the broker refuses them, and whole batches with them.
    pub unguarded: bool,
    pub text: String,
    /// Command to be pasted.
    pub remedy: String,
}

impl Timestamps {
    /// Finds the harm: events pass the guard of `join.max_future`, or the broker refuses other users' events together with
    /// them. `None` if the broker stamps records, or does not return its settings.
    pub fn judge(&self, topic: &str, brokers: &str, max_future_ms: i64) -> Option<TimestampFault> {
        let kind = self.kind.as_ref().filter(|kind| *kind != "LogAppendTime")?;
        let uses =
            format!("topic `{topic}` uses the timestamps of its producers (message.timestamp.type={kind})");
        let refused = "the broker refuses the whole batch, events of other users included";
        let unguarded = |bound: &str| {
            format!(
                "{uses} and accepts records {bound}, so a producer with a fast clock gets past join.max_future ({}) and makes correct events late. A lower message.timestamp.after.max.ms loses more: if one record is further ahead, {refused}",
                display_ms(max_future_ms)
            )
        };
        let (is_unguarded, text) = match self.after_max_ms {
            // The broker is stricter than `join.max_future`, and its refusal takes the whole batch along.
            Some(ms) if ms <= max_future_ms => {
                let ahead = display_ms(ms);
                let text = format!(
                    "{uses}, and if one record is more than {ahead} ahead (message.timestamp.after.max.ms={ms}), {refused}: a producer \
                     with a fast clock loses them before abgauge can read them"
                );
                (false, text)
            }
            Some(ms) if ms < i64::MAX => (true, unguarded(&format!("up to {} ahead", display_ms(ms)))),
            _ => (true, unguarded("from any time")),
        };
        Some(TimestampFault {
            unguarded: is_unguarded,
            text,
            remedy: format!(
                "kafka-configs.sh --bootstrap-server {brokers} --alter --entity-type topics --entity-name {topic} --add-config \
                 message.timestamp.type=LogAppendTime"
            ),
        })
    }
}

impl fmt::Display for TimestampFault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{}. To let the broker stamp records: {}",
            self.text, self.remedy
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(kind: Option<&str>, after_max_ms: Option<i64>) -> Option<TimestampFault> {
        let kind = kind.map(str::to_owned);
        Timestamps { kind, after_max_ms }.judge("served", "b:1", 30_000)
    }

    #[test]
    fn a_broker_guards_by_its_own_clock_and_a_bound_refuses_batches() {
        assert_eq!(judge(Some("LogAppendTime"), Some(i64::MAX)), None);
        let bounded = judge(Some("CreateTime"), Some(30_000)).expect("a fault");
        assert!(
            !bounded.unguarded && bounded.text.contains("refuses the whole batch"),
            "{}",
            bounded.text
        );
        assert_eq!(judge(None, None), None, "it does not tell");
        let hour = judge(Some("CreateTime"), Some(3_600_000)).expect("no guard");
        assert!(
            hour.text.contains("accepts records up to 1h ahead"),
            "{}",
            hour.text
        );
        // The command comes last, ready to be pasted.
        let command = "kafka-configs.sh --bootstrap-server b:1 --alter --entity-type topics --entity-name served --add-config \
                       message.timestamp.type=LogAppendTime";
        assert_eq!(hour.remedy, command);
        assert!(hour.to_string().ends_with(&format!(": {command}")));
        assert!(
            hour.unguarded && hour.text.contains("refuses the whole batch"),
            "{}",
            hour.text
        );
        for any in [None, Some(i64::MAX)] {
            let any = judge(Some("CreateTime"), any).expect("no guard");
            assert!(any.text.contains("accepts records from any time"), "{}", any.text);
        }
    }
}
