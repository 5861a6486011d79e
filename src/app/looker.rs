//! The thread that takes looks: off the way of records, and one look after the other.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use anyhow::Context as _;
use tracing::warn;

use crate::config::{Config, TopicKey};
use crate::engine::ranking::Ranking;
use crate::looks::{self, GivenUp, Looks, News, Published, Rules};

/// News that wait for a look to end. While a log is read back, the worker waits for the looks beyond it.
const WAITING: usize = 256;

/// How the worker and the looks talk.
pub struct Looker {
    pub news: SyncSender<News>,
    /// What of experiments was given up.
    pub given_up: Receiver<GivenUp>,
}

/// Takes looks from now on, if something is asked of an experiment. The thread ends with its sender.
///
/// # Errors
/// Where no thread can be started.
pub fn start(config: &Config, ranking: &Ranking, shown: Arc<Published>) -> anyhow::Result<Option<Looker>> {
    if config.experiments.is_empty() {
        return Ok(None);
    }
    let looks = Looks::new(rules(config, ranking));
    let (news, told) = sync_channel(WAITING);
    let (give_up, given_up) = channel();
    std::thread::Builder::new()
        .name("looks".into())
        .spawn(move || take_looks(looks, &told, &give_up, &shown))
        .context("start the thread that takes looks")?;
    Ok(Some(Looker { news, given_up }))
}

fn rules(config: &Config, ranking: &Ranking) -> Rules {
    Rules {
        every_ms: looks::every_ms(config.join.slot_ms),
        ranking: ranking.clone(),
        experiments: config.experiments.clone(),
        counts_users: config.kafka.key == TopicKey::User,
        window: config.look_window(),
        max_bytes: config.limits.max_statistics_bytes,
    }
}

fn take_looks(mut looks: Looks, told: &Receiver<News>, give_up: &Sender<GivenUp>, shown: &Published) {
    for news in told {
        looks.take(news);
        while let Some(looked) = looks.look() {
            if let Some(given_up) = &looked.given_up {
                tell(given_up);
                // The worker is gone only if the daemon ends.
                let _ = give_up.send(given_up.clone());
            }
            shown.show(looked, looks.waits_for());
        }
        shown.wait_for(looks.waits_for());
    }
}

fn tell(given_up: &GivenUp) {
    match given_up {
        GivenUp::Window(experiment) => warn!(
            experiment,
            "limits.max_statistics is reached: this experiment has no more intervals in its window"
        ),
        GivenUp::Experiment(experiment) => warn!(
            experiment,
            "limits.max_statistics is reached: no more is said of this experiment"
        ),
    }
}
