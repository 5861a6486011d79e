//! Thread that takes looks, one after the other, off the path of records. With `[state]`, its input is the current state of
//! every pair, as on every other instance. Otherwise its input is the slots settled by the worker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use abgauge_core::ledger::{PairId, Users};
use abgauge_core::looks::{
    self, GivenUp, Inbox, Look, LookFeed, LookRules, Looks, PairNews, PairState, Published, ResumeFinding,
    StoredLooks,
};
use abgauge_core::metrics::Ranking;
use abgauge_core::statistics::top_user::top_user_warning;
use anyhow::Context as _;
use tracing::warn;

use crate::clock::Clock;
use crate::settings::{Config, TopicKey};
use crate::store::stored::keep;
use crate::telemetry::{Telemetry, Warning};

/// Maximum number of news items that wait for a look to end. While a log is read back, the worker waits if this queue is
/// full.
const WAITING: usize = 256;
/// Minimum interval between two updates of the stored looks. While a log is read back, hundreds of looks are taken per
/// second.
const STORE_EVERY: Duration = Duration::from_secs(2);

/// Channels between the looks and the rest of the daemon. All are absent if no experiment is configured.
#[derive(Default)]
pub struct LookChannels {
    /// Input without `[state]`: slots settled by the worker.
    pub news: Option<SyncSender<PairNews>>,
    /// Input with `[state]`: current states of all pairs.
    pub inbox: Option<Arc<Inbox>>,
    /// Experiments, or their windows, given up at `limits.max_statistics`.
    pub given_up: Option<Receiver<GivenUp>>,
    /// Looks to be stored, with `[state]` only.
    pub stored: Option<Receiver<StoredLooks>>,
}

/// Starts the thread, if any experiment is configured. It ends when its sender is dropped or its inbox closed.
///
/// # Errors
/// The thread cannot be started.
pub fn start(
    config: &Config,
    ranking: &Ranking,
    shown: Arc<Published>,
    telemetry: Arc<Telemetry>,
    clock: &Clock,
) -> anyhow::Result<LookChannels> {
    if config.experiments.is_empty() {
        return Ok(LookChannels::default());
    }
    let (give_up, given_up) = channel();
    let (store, stored) = channel();
    let taker = LookThread {
        looks: Looks::new(rules(config, ranking)),
        shown,
        heavy_users: HeavyUsers {
            telemetry,
            max_share: config.limits.max_user_share,
            reported: BTreeSet::new(),
        },
        give_up,
    };
    let thread = std::thread::Builder::new().name("looks".into());
    let mut channels = LookChannels {
        given_up: Some(given_up),
        stored: Some(stored),
        ..LookChannels::default()
    };
    let thread = if config.state.is_some() {
        let inbox = Arc::new(Inbox::default());
        let following = Following {
            taker,
            feed: None,
            ranking: ranking.clone(),
            users: keep(config).users,
            every_ms: looks::every_ms(config.join.slot_ms),
            inbox: LeaveGuard(Arc::clone(&inbox)),
            storing: Storing {
                store,
                clock: clock.clone(),
                last: None,
                is_due: false,
            },
            unread: BTreeMap::new(),
        };
        channels.inbox = Some(inbox);
        thread.spawn(move || following.run())
    } else {
        let (news, reported) = sync_channel(WAITING);
        channels.news = Some(news);
        thread.spawn(move || taker.run(&reported))
    };
    thread.context("start the thread that makes analyses")?;
    Ok(channels)
}

fn rules(config: &Config, ranking: &Ranking) -> LookRules {
    LookRules {
        every_ms: looks::every_ms(config.join.slot_ms),
        ranking: ranking.clone(),
        experiments: config.experiments.clone(),
        counts_users: config.kafka.key == TopicKey::User,
        window: config.look_window(),
        max_bytes: config.limits.max_statistics_bytes,
        bounds_waiting: config.state.is_none(),
    }
}

/// State of the thread. Its receivers go away only when the daemon ends, so failed sends are ignored.
struct LookThread {
    looks: Looks,
    shown: Arc<Published>,
    heavy_users: HeavyUsers,
    give_up: Sender<GivenUp>,
}

/// Warnings about users with very many lists of an arm.
struct HeavyUsers {
    telemetry: Arc<Telemetry>,
    max_share: f64,
    /// Arms with a warning at the last look, by experiment and name.
    reported: BTreeSet<[String; 2]>,
}

impl HeavyUsers {
    /// Publishes the warnings of a look. Logs those for arms that had none before.
    fn look(&mut self, looked: &Look) {
        let (mut reported, mut warnings) = (BTreeSet::new(), Vec::new());
        for (experiment, look) in &looked.experiments {
            for (name, arm) in &look.arms {
                let top_user_lists = arm.top_user_lists.unwrap_or(0.0);
                let warning =
                    top_user_warning([experiment, name], arm.size.lists, top_user_lists, self.max_share);
                let Some(warning) = warning else { continue };
                let of_arm = [experiment.clone(), name.clone()];
                if !self.reported.contains(&of_arm) {
                    warn!("{warning}");
                }
                reported.insert(of_arm);
                warnings.push(Warning::new(warning).see("AbgaugeTopUser"));
            }
        }
        // Replaced as a whole, so an arm that improves and worsens again is logged again.
        self.reported = reported;
        self.telemetry.set_look_warnings(warnings);
    }
}

impl LookThread {
    fn run(mut self, reported: &Receiver<PairNews>) {
        for news in reported {
            self.take(news);
        }
    }

    /// Takes the looks that are due. Returns what was given up meanwhile, and whether there is anything new to store.
    fn take(&mut self, news: PairNews) -> (Vec<GivenUp>, bool) {
        let (mut given_up, mut is_new) = (Vec::new(), matches!(news, PairNews::Resumed(_)));
        self.looks.take(news);
        for found in self.looks.take_found() {
            given_up.extend(self.find(found));
        }
        // News may complete several looks, which are taken in order.
        while let Some(looked) = self.looks.look() {
            is_new = true;
            if let Some(what) = &looked.given_up {
                report(what);
                given_up.push(what.clone());
            }
            self.heavy_users.look(&looked);
            self.shown.show(looked, self.looks.waits_for());
        }
        // Also without a look: the page shows what the next one waits for.
        self.shown.wait_for(self.looks.waits_for());
        for what in &given_up {
            let _ = self.give_up.send(what.clone());
        }
        (given_up, is_new)
    }

    fn find(&self, found: ResumeFinding) -> Option<GivenUp> {
        match found {
            ResumeFinding::GivenUp(given_up) => {
                report(&given_up);
                self.shown.give_up(&given_up);
                return Some(given_up);
            }
            ResumeFinding::BeginsAnew(experiment) => warn!(
                experiment,
                "its sums restart: its stored state has other epochs, or lacks a metric that is measured now"
            ),
            ResumeFinding::AsksAnew(experiment) => warn!(
                experiment,
                "its tests restart, over the sums so far: its settings have changed since the restart"
            ),
        }
        None
    }
}

/// Thread state with `[state]`.
struct Following {
    taker: LookThread,
    /// Absent until the number of pairs is known.
    feed: Option<LookFeed>,
    ranking: Ranking,
    users: Users,
    every_ms: i64,
    inbox: LeaveGuard,
    storing: Storing,
    /// Reason why the last state of a pair was rejected.
    unread: BTreeMap<PairId, String>,
}

/// Guard that marks the inbox as abandoned, even after a panic.
struct LeaveGuard(Arc<Inbox>);

impl Drop for LeaveGuard {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Following {
    fn run(mut self) {
        while let Some(taken) = self.inbox.0.take(self.storing.wait()) {
            for (pair, state) in taken.states {
                self.take(taken.n_pairs, pair, state);
            }
            self.storing.store(&self.taker.looks);
        }
    }

    fn take(&mut self, n_pairs: usize, pair: PairId, state: PairState) {
        let feed = self.feed.get_or_insert_with(|| {
            LookFeed::new(self.ranking.clone(), self.users.clone(), self.every_ms, n_pairs)
        });
        match feed.take(pair, state) {
            Ok(news) => {
                self.unread.remove(&pair);
                for news in news {
                    let (given_up, is_new) = self.taker.take(news);
                    self.storing.is_due |= is_new;
                    for what in given_up {
                        if let GivenUp::Experiment(name) = what {
                            feed.forget(&name);
                        }
                    }
                }
            }
            Err(error) => {
                let error = error.to_string();
                // The same error is logged once per pair, not for each state.
                if self.unread.get(&pair) != Some(&error) {
                    warn!(
                        pair,
                        "analyses of experiments cannot resume from its state: {error}"
                    );
                    self.unread.insert(pair, error);
                }
            }
        }
    }
}

struct Storing {
    store: Sender<StoredLooks>,
    clock: Clock,
    /// Time of the last update.
    last: Option<Duration>,
    /// Set if there are looks to store.
    is_due: bool,
}

impl Storing {
    /// Returns how long to wait for states before the next update is due.
    fn wait(&self) -> Duration {
        // Without looks to store, only new states wake the thread.
        if self.is_due { self.left() } else { Duration::MAX }
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

fn report(given_up: &GivenUp) {
    match given_up {
        GivenUp::Window(experiment) => warn!(
            experiment,
            "limits.max_statistics is reached: this experiment has no intervals in its window any more"
        ),
        GivenUp::Experiment(experiment) => warn!(
            experiment,
            "limits.max_statistics is reached: statistics of this experiment have stopped"
        ),
    }
}

#[cfg(test)]
mod tests {
    use abgauge_core::looks::{ArmLook, ExperimentLook};
    use abgauge_core::statistics::Size;

    use super::*;

    fn looked(top_user_lists: Option<f64>) -> Look {
        let arm = ArmLook {
            size: Size {
                lists: 400.0,
                users: Some(300.0),
            },
            lists_without_user: 0.0,
            top_user_lists,
            metrics: BTreeMap::new(),
            windows: BTreeMap::new(),
        };
        let look = ExperimentLook {
            start_ms: 0,
            shares_since_ms: 0,
            as_of_ms: 600_000,
            arms: [("neural".to_owned(), arm)].into(),
            comparison: None,
            no_users: None,
            history: Arc::default(),
        };
        Look {
            as_of_ms: 600_000,
            experiments: [("ranker".to_owned(), Arc::new(look))].into(),
            given_up: None,
        }
    }

    #[test]
    fn a_user_with_too_many_lists_is_a_warning_until_a_look_has_none() {
        let telemetry = Arc::new(Telemetry::new("served", "clicks", "test"));
        let mut heavy_users = HeavyUsers {
            telemetry: Arc::clone(&telemetry),
            max_share: 0.05,
            reported: BTreeSet::new(),
        };
        let mut warnings = |top_user_lists| {
            heavy_users.look(&looked(top_user_lists));
            telemetry.warnings()
        };
        assert_eq!(warnings(Some(20.0)), []);
        let [warning] = &warnings(Some(21.0))[..] else {
            panic!("one warning is expected")
        };
        let reported = "experiment `ranker`: one user has about 5.3% of the lists of the arm neural, more than limits.max_user_share (5%)";
        assert!(warning.message.starts_with(reported), "{}", warning.message);
        assert_eq!(warnings(None), [], "users are not counted");
    }
}
