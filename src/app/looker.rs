//! The thread that takes looks: off the way of records, and one look after the other.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use anyhow::Context as _;
use tracing::warn;

use crate::clock::Clock;
use crate::config::{Config, TopicKey};
use crate::engine::ranking::Ranking;
use crate::looks::{self, Found, GivenUp, Looks, News, Published, Rules, StoredLooks};

/// News that wait for a look to end. While a log is read back, the worker waits for the looks beyond it.
const WAITING: usize = 256;
/// What is to be stored is told so often at most: while a log is read back, hundreds of looks are taken in a second.
const STORE_EVERY: Duration = Duration::from_secs(2);

/// How the worker and the looks talk.
pub struct Looker {
    pub news: SyncSender<News>,
    /// What of experiments was given up.
    pub given_up: Receiver<GivenUp>,
    /// What is to be stored, if state is.
    pub stored: Receiver<StoredLooks>,
}

/// Takes looks from now on, if something is asked of an experiment. The thread ends with its sender.
///
/// # Errors
/// Where no thread can be started.
pub fn start(
    config: &Config,
    ranking: &Ranking,
    shown: Arc<Published>,
    clock: &Clock,
) -> anyhow::Result<Option<Looker>> {
    if config.experiments.is_empty() {
        return Ok(None);
    }
    let (news, told) = sync_channel(WAITING);
    let (give_up, given_up) = channel();
    let (store, stored) = channel();
    let taker = Taker {
        looks: Looks::new(rules(config, ranking)),
        shown,
        give_up,
        storing: config.state.is_some().then(|| Storing {
            store,
            clock: clock.clone(),
            last: None,
            is_due: false,
        }),
    };
    std::thread::Builder::new()
        .name("looks".into())
        .spawn(move || taker.run(&told))
        .context("start the thread that takes looks")?;
    Ok(Some(Looker {
        news,
        given_up,
        stored,
    }))
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

/// What the thread has. Nobody listens to it any more only if the daemon ends.
struct Taker {
    looks: Looks,
    shown: Arc<Published>,
    give_up: Sender<GivenUp>,
    /// None where nothing is stored.
    storing: Option<Storing>,
}

struct Storing {
    store: Sender<StoredLooks>,
    clock: Clock,
    /// When it was last told what is to be stored.
    last: Option<Duration>,
    /// There is something new.
    is_due: bool,
}

impl Taker {
    fn run(mut self, told: &Receiver<News>) {
        loop {
            let wait = self.storing.as_ref().and_then(Storing::wait);
            let news = match wait {
                Some(wait) => told.recv_timeout(wait),
                None => told.recv().map_err(RecvTimeoutError::from),
            };
            match news {
                Ok(news) => self.take(news),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if let Some(storing) = &mut self.storing {
                storing.store(&self.looks);
            }
        }
    }

    fn take(&mut self, news: News) {
        let mut is_new = matches!(news, News::Resumed(_));
        self.looks.take(news);
        for found in self.looks.take_found() {
            self.find(found);
        }
        while let Some(looked) = self.looks.look() {
            is_new = true;
            if let Some(given_up) = &looked.given_up {
                tell(given_up);
                let _ = self.give_up.send(given_up.clone());
            }
            self.shown.show(looked, self.looks.waits_for());
        }
        self.shown.wait_for(self.looks.waits_for());
        if let Some(storing) = &mut self.storing {
            storing.is_due |= is_new;
        }
    }

    fn find(&self, found: Found) {
        match found {
            Found::GivenUp(given_up) => {
                tell(&given_up);
                self.shown.give_up(&given_up);
                let _ = self.give_up.send(given_up);
            }
            Found::BeginsAnew(experiment) => warn!(
                experiment,
                "its sums begin anew: what was stored of it is of other epochs, or lacks a metric that is measured now"
            ),
            Found::AsksAnew(experiment) => warn!(
                experiment,
                "its tests begin anew, over the sums so far: other things are asked of it than before the restart"
            ),
        }
    }
}

impl Storing {
    /// How long news are waited for before something is to be stored.
    fn wait(&self) -> Option<Duration> {
        self.is_due.then(|| self.left())
    }

    fn left(&self) -> Duration {
        let now = self.clock.uptime();
        self.last
            .map_or(Duration::ZERO, |last| (last + STORE_EVERY).saturating_sub(now))
    }

    fn store(&mut self, looks: &Looks) {
        if self.is_due && self.left().is_zero() {
            self.is_due = false;
            self.last = Some(self.clock.uptime());
            if let Some(stored) = looks.stored() {
                let _ = self.store.send(stored);
            }
        }
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
