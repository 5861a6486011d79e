//! A simulated experiment, and its path through the join and the ledger.

use std::num::NonZeroU32;

use abgauge::settings::TopicKey;
use abgauge::tools::simulate::draft::Content;
use abgauge::tools::simulate::{
    Activity, Design, Lengths, Noise, Population, Traffic, TrafficSettings, World,
};
use abgauge_core::engine::{Arm, Rules};
use abgauge_core::ledger::{Cell, Epochs, Keep, PairTracker, Users};
use abgauge_core::metrics::{Measures, Ranking};

use super::feed::Feed;

/// 2025-11-20 00:00 UTC, a whole number of weeks since the Unix epoch, so that week-long cells begin there.
pub const START_MS: i64 = 1_763_596_800_000;
pub const DAY_MS: i64 = 86_400_000;
pub const WEEK_MS: i64 = 7 * DAY_MS;
pub const MINUTE_MS: i64 = 60_000;
const SLOT_MS: i64 = 10 * MINUTE_MS;

pub const EXPERIMENT: &str = "ranker";
/// Arm names, the control first. A scenario uses the first few.
const ARMS: [&str; 5] = ["base", "a", "b", "c", "d"];
pub const CONTROL: &str = ARMS[0];
/// First treatment.
pub const ARM: &str = ARMS[1];

pub const METRICS: [&str; 3] = ["hit_rate", "ctr", "mrr"];

/// Scale of scenarios.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Factor for the number of users.
    pub users: f64,
    /// Factor for the number of lists per user.
    pub lists: f64,
    /// Event time between two looks, ms. A day is a multiple of it.
    pub look_ms: i64,
}

impl Scale {
    /// Scale of the table: 1,008 looks in a week.
    pub const FULL: Scale = Scale {
        users: 1.0,
        lists: 1.0,
        look_ms: SLOT_MS,
    };
}

/// Users, arms and their behavior.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub n_arms: usize,
    /// Compared metrics, all of them primary. More metrics make looks slower.
    pub metrics: &'static [&'static str],
    pub n_users: f64,
    pub activity: Activity,
    /// Lists per user in a week, averaged over all users, including those who do not come.
    pub lists_per_user: f64,
    /// Consecutive legs.
    pub legs: Vec<Leg>,
    pub ids: Ids,
    pub max_lists_per_user: Option<NonZeroU32>,
}

/// Ids of users in lists.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Ids {
    /// An id for each user.
    #[default]
    All,
    /// No id for this share of users.
    Missing(f64),
    /// A second id instead of the first for this share of users.
    Second(f64),
    /// An additional user of the first treatment who gets this share of all lists and clicks on none.
    Crawler(f64),
}

/// A time span without changes.
#[derive(Debug, Clone)]
pub struct Leg {
    pub days: i64,
    /// Click probability of an eager user's first item.
    pub appeal: f64,
    /// Shares of users by arm. Equal if empty.
    pub shares: Vec<f64>,
    /// Relative increase of clicks on the first treatment's lists.
    pub effect: f64,
    /// Relative increase of lists for the first treatment's users.
    pub visits: f64,
}

impl Default for Leg {
    fn default() -> Leg {
        Leg {
            days: 7,
            appeal: 0.2,
            shares: Vec::new(),
            effect: 0.0,
            visits: 0.0,
        }
    }
}

/// News of the ledger since the last time.
pub struct Told {
    pub arms: Vec<Arm>,
    pub cells: Vec<(i64, Cell)>,
    pub until_ms: Option<i64>,
}

/// Number of events that are joined together.
pub const BATCH: usize = 2000;

impl Scenario {
    /// Creates a week of two arms that do not differ.
    pub fn new(scale: Scale, activity: Activity, n_users: f64, lists_per_user: f64) -> Scenario {
        Scenario {
            n_arms: 2,
            metrics: &METRICS,
            n_users: n_users * scale.users,
            activity,
            lists_per_user: lists_per_user * scale.lists,
            legs: vec![Leg::default()],
            ids: Ids::All,
            max_lists_per_user: None,
        }
    }

    /// Restricts the comparison to these metrics.
    #[must_use]
    pub fn of(self, metrics: &'static [&'static str]) -> Scenario {
        Scenario { metrics, ..self }
    }

    /// Changes the legs.
    #[must_use]
    pub fn with(mut self, change: impl Fn(&mut Leg)) -> Scenario {
        self.legs.iter_mut().for_each(change);
        self
    }

    pub fn arms(&self) -> &'static [&'static str] {
        &ARMS[..self.n_arms]
    }

    /// Returns the ranking of its metrics over the whole list.
    pub fn ranking(&self) -> Ranking {
        Ranking::new(&Measures {
            metrics: self.metrics.to_vec(),
            ..Measures::usual(&[])
        })
    }

    pub fn end_ms(&self) -> i64 {
        START_MS + self.legs.iter().map(|leg| leg.days * DAY_MS).sum::<i64>()
    }

    /// Returns the true R_C, and the true R_T of the first treatment.
    pub fn truth(&self, metric: &str) -> [f64; 2] {
        let traffic = self.traffic(&self.legs[0], 1, START_MS);
        let truths = traffic.truth(&[]);
        [CONTROL, ARM].map(|arm| {
            let truth = truths
                .iter()
                .find(|truth| truth.arm == arm && truth.key == metric);
            truth.expect("the metric has a truth").value
        })
    }

    /// Draws the scenario under a seed and joins it. Cells of this length are passed to `tell` as soon as they are complete.
    pub fn replay(&self, seed: u64, cell_ms: i64, tell: impl FnMut(&Told)) {
        let feed = Feed::new(&self.design(&self.legs[0])).with_ids(self.ids);
        let epochs = Epochs {
            max_lists: self.max_lists_per_user,
            ..Epochs::default()
        };
        let users = Users::Of([(EXPERIMENT.to_owned(), epochs)].into());
        let keep = Keep::of_users(users, cell_ms);
        let draw = |feed: &mut Feed, join: &mut dyn FnMut(&mut Feed)| self.draw(seed, feed, join);
        replay(feed, self.ranking(), &keep, self.end_ms(), draw, tell);
    }

    /// Fills the feed, and passes it on whenever it has a batch.
    fn draw(&self, seed: u64, feed: &mut Feed, join: &mut dyn FnMut(&mut Feed)) {
        let mut legs = self.open_legs(seed);
        // Clicks come up to half an hour after their lists.
        let mut now_ms = START_MS;
        while now_ms < self.end_ms() + 60 * MINUTE_MS {
            now_ms += MINUTE_MS;
            for (number, (start_ms, traffic)) in legs.iter_mut().enumerate() {
                while let Some(draft) = traffic.next_draft_until(now_ms) {
                    let (Content::List { stamp_ms, .. } | Content::Click { stamp_ms, .. }) = draft.content
                    else {
                        continue;
                    };
                    if stamp_ms >= *start_ms {
                        feed.push(number, &draft);
                    }
                    if feed.len() >= BATCH {
                        join(feed);
                    }
                }
            }
        }
    }

    /// Opens the legs, each with its start. The traffic of each leg runs from the first day, and records from before its start
    /// are dropped. Otherwise every leg would repeat the same draws.
    fn open_legs(&self, seed: u64) -> Vec<(i64, Traffic)> {
        let mut start_ms = START_MS;
        let open = |leg: &Leg| {
            let own_ms = start_ms;
            start_ms += leg.days * DAY_MS;
            (own_ms, self.traffic(leg, seed, start_ms))
        };
        self.legs.iter().map(open).collect()
    }

    /// Returns the traffic from the first day until `end_ms`.
    fn traffic(&self, leg: &Leg, seed: u64, end_ms: i64) -> Traffic {
        let lists_per_second = self.n_users * self.lists_per_user * 1000.0 / WEEK_MS as f64;
        Traffic::new(TrafficSettings {
            duration_ms: Some(end_ms - START_MS),
            key: TopicKey::User,
            noise: Noise::NONE,
            diurnal: true,
            world: World {
                population: Population {
                    n_users: NonZeroU32::new(self.n_users as u32).expect("somebody comes"),
                    activity: self.activity,
                    ..Population::default()
                },
                design: self.design(leg),
                lengths: Lengths::new(0.0, 1, 3).expect("lengths that lists may have"),
            },
            ..TrafficSettings::new(seed, lists_per_second, START_MS)
        })
    }

    fn design(&self, leg: &Leg) -> Design {
        let shares = leg.shares.iter();
        let shares: Vec<(String, f64)> = self
            .arms()
            .iter()
            .zip(shares)
            .map(|(arm, share)| ((*arm).to_owned(), *share))
            .collect();
        let of_arm = |lift: f64| [(ARM.to_owned(), lift)];
        Design::new(leg.appeal, &[(EXPERIMENT, self.arms())])
            .and_then(|design| design.with_shares(&shares))
            .and_then(|design| design.with_effects(&of_arm(leg.effect)))
            .and_then(|design| design.with_visits(&of_arm(leg.visits)))
            .expect("the design makes sense")
    }
}

/// Joins the records that `draw` puts into the feed, and passes it on whenever it has a batch. Cells are passed to `tell` as
/// soon as they are complete, until `end_ms`.
pub fn replay(
    mut feed: Feed,
    ranking: Ranking,
    keep: &Keep,
    end_ms: i64,
    draw: impl FnOnce(&mut Feed, &mut dyn FnMut(&mut Feed)),
    mut tell: impl FnMut(&Told),
) {
    let mut tracker = PairTracker::new(rules(), ranking, None, keep);
    let mut arms = Vec::new();
    let mut join = |feed: &mut Feed, is_end: bool| {
        tracker.apply(feed.batch(), u64::MAX);
        feed.clear();
        if is_end {
            tracker.close_all();
        }
        let delta = tracker.take_delta();
        arms.extend(delta.arms);
        // A closed engine has settled all future time, so its frontier is capped.
        let until_ms = delta.reach.settled_end_ms.map(|settled_ms| settled_ms + 1);
        let until_ms = until_ms.map(|until_ms| until_ms.min(end_ms));
        if is_end || !delta.cells.is_empty() {
            tell(&Told {
                arms: std::mem::take(&mut arms),
                cells: delta.cells,
                until_ms,
            });
        }
    };
    draw(&mut feed, &mut |feed| join(feed, false));
    join(&mut feed, true);
}

/// Returns the daemon's defaults with slots of ten minutes.
fn rules() -> Rules {
    Rules {
        attribution_ms: 30 * MINUTE_MS,
        click_skew_ms: 5_000,
        same_list_ms: 30 * MINUTE_MS,
        lateness_ms: 2 * MINUTE_MS,
        max_future_ms: 30_000,
        slot_ms: SLOT_MS,
        max_off_list: 32,
        max_lists_per_click: 8,
        max_arms: 100,
        one_topic: false,
        gather: None,
    }
}
