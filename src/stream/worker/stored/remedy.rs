//! Remedies for stored pairs that cannot be resumed.

use abgauge_core::journal::{LogDifference, RecordError, Refusal};
use abgauge_core::ledger::PairId;

/// Returns the remedy for records that are lost for good.
pub fn restart(partition: PairId) -> String {
    format!(
        "To count the pair again from the records that the log still has, stop all instances and run `abgauge state forget --partition {partition}`: its totals are lost, the totals of other pairs are kept."
    )
}

pub fn remedy(refusal: &Refusal, partition: PairId) -> String {
    match refusal {
        Refusal::Key(_)
        | Refusal::Seal {
            error: RecordError::Version(_),
            ..
        } => "Run the newer version of abgauge that wrote it.".to_owned(),
        Refusal::Identity { difference, .. } => of_difference(difference, partition),
        Refusal::Seal { id, .. } => format!(
            "If another program wrote it, delete that key (it ends in `seal|{id}`) with a record without a value: the previous state is \
             still there. {}",
            restart(partition)
        ),
        Refusal::Damage(_) => restart(partition),
        Refusal::TooLarge { .. } => "Store less: fewer windows (metrics.windows) or arms.".to_owned(),
    }
}

fn of_difference(difference: &LogDifference, partition: PairId) -> String {
    match difference {
        LogDifference::MadeAnew { .. } | LogDifference::Partitions { .. } => {
            "To count the topics as they are now, stop all instances and run `abgauge state forget`: all totals are lost; `abgauge \
             state export` writes them to a file before that."
                .to_owned()
        }
        LogDifference::Topics { .. } => {
            "Set kafka.served_topic and kafka.clicks_topic to those, or start in another group (kafka.group_id).".to_owned()
        }
        LogDifference::Fingerprint { .. } => restart(partition),
    }
}
