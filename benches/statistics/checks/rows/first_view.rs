//! First view of the demo: whether the page's sentence names the wrong arm, or shows a lift with the wrong sign.

use std::num::NonZeroU32;

use abgauge::settings::TopicKey;
use abgauge::tools::simulate::draft::Content;
use abgauge::tools::simulate::{Design, Traffic, TrafficSettings};
use abgauge_core::ledger::{Epochs, Keep, Users};
use abgauge_core::looks::{Experiment, ExperimentLook};
use abgauge_core::metrics::{Measures, Ranking};
use abgauge_core::statistics::Settings;
use abgauge_core::verdict::{Badge, ComparedLook, Headline, of_look};

use crate::checks::feed::Feed;
use crate::checks::row::{Bound, Figure, Row, indicator};
use crate::checks::scenario::{BATCH, EXPERIMENT, MINUTE_MS, START_MS, replay};
use crate::checks::watch::Watch;

const LOOK_MS: i64 = 10 * MINUTE_MS;
/// Looks of a demo with its default length: 5 minutes, 300 times as fast as the clock.
const N_LOOKS: i64 = 150;
/// 300 lists a second, 300 times as fast as the clock.
const LISTS_PER_SECOND: f64 = 1.0;
/// Setting of the demo.
const MIN_DAYS: f64 = 0.25;
const PRIMARY: &str = "ctr@10";
const CONTROL: &str = "control";
const ARMS: [&str; 3] = [CONTROL, "neural", "blend"];

/// One look at a separate demo for each seed, at a time that the seed chooses.
pub fn first_view() -> Row {
    let share = |what: &str, bound| Figure::share(format!("First view of the demo: {what}"), bound);
    let figures = vec![
        share("wrong arm named", Bound::AtMost(0.01)),
        share("wrong sign, and not called too early", Bound::AtMost(0.01)),
        share("called too early", Bound::Shown),
        share("a winner named", Bound::Shown),
    ];
    let truths = truths();
    Row::new("first", 1000, figures, move |seed| {
        let n_looks = 1 + (mixed(seed) % N_LOOKS as u64) as i64;
        let watch = watched(seed, n_looks * LOOK_MS);
        let said = watch.last().map(said);
        let is = |badges: &[Badge]| said.as_ref().is_some_and(|said| badges.contains(&said.badge));
        let is_early = said.is_none() || is(&[Badge::Early, Badge::Waiting, Badge::Uncompared]);
        let arm = said.as_ref().and_then(|said| said.arm.as_deref());
        let truth = arm.map_or(0.0, |arm| lift(&truths, arm));
        let names_wrong = (is(&[Badge::Win]) && truth <= 0.0) || (is(&[Badge::Harm]) && truth >= 0.0);
        let seen = watch.last().zip(arm).and_then(|(look, arm)| shown(look, arm));
        let has_wrong_sign = !is_early && seen.is_some_and(|seen| seen * truth < 0.0);
        [names_wrong, has_wrong_sign, is_early, is(&[Badge::Win])]
            .map(indicator)
            .into()
    })
}

fn ranking() -> Ranking {
    Ranking::new(&Measures {
        metrics: vec!["ctr"],
        ..Measures::usual(&[NonZeroU32::new(10).expect("10 is not zero")])
    })
}

fn traffic(seed: u64, duration_ms: i64) -> Traffic {
    Traffic::new(TrafficSettings {
        duration_ms: Some(duration_ms),
        key: TopicKey::User,
        ..TrafficSettings::new(seed, LISTS_PER_SECOND, START_MS)
    })
}

/// Returns the true values of the primary, in the order of [`ARMS`].
fn truths() -> [f64; 3] {
    let truths = traffic(1, LOOK_MS).truth(&[NonZeroU32::new(10).expect("10 is not zero")]);
    ARMS.map(|arm| {
        let mut of_arm = truths
            .iter()
            .filter(|truth| truth.experiment == EXPERIMENT && truth.arm == arm);
        let truth = of_arm.find(|truth| truth.key == PRIMARY);
        truth.expect("the simulation knows it").value
    })
}

fn lift(truths: &[f64; 3], arm: &str) -> f64 {
    let place = ARMS.iter().position(|known| *known == arm);
    truths[place.expect("there are three arms")] / truths[0] - 1.0
}

/// Settles everything in a demo of this event time.
fn watched(seed: u64, duration_ms: i64) -> Watch {
    let settings = Settings {
        shares: ARMS.map(|arm| (arm.to_owned(), 1.0 / 3.0)).into(),
        primary: vec![PRIMARY.to_owned()],
        min_days: MIN_DAYS,
        ..Settings::new(CONTROL)
    };
    let experiment = Experiment {
        settings: Some(settings),
        ..Experiment::default()
    };
    let mut watch = Watch::of(experiment, ranking(), LOOK_MS);
    let mut traffic = traffic(seed, duration_ms);
    let draw = |feed: &mut Feed, join: &mut dyn FnMut(&mut Feed)| {
        let mut now_ms = START_MS;
        // Clicks come up to half an hour after their lists.
        while now_ms < START_MS + duration_ms + 60 * MINUTE_MS {
            now_ms += MINUTE_MS;
            while let Some(draft) = traffic.next_draft_until(now_ms) {
                if matches!(draft.content, Content::List { .. } | Content::Click { .. }) {
                    feed.push(0, &draft);
                }
                if feed.len() >= BATCH {
                    join(feed);
                }
            }
        }
    };
    let end_ms = START_MS + duration_ms;
    let users = Users::Of([(EXPERIMENT.to_owned(), Epochs::default())].into());
    let keep = Keep::of_users(users, LOOK_MS);
    let feed = Feed::new(&Design::default());
    replay(feed, ranking(), &keep, end_ms, draw, |reported| {
        watch.take(reported)
    });
    watch
}

/// Returns the first sentence of the page.
fn said(look: &ExperimentLook) -> Headline {
    let (settings, report) = look.comparison.as_ref().expect("there is a control");
    of_look(&ComparedLook {
        settings,
        report,
        sizes: look.sizes(),
        is_one_epoch: true,
    })
}

fn shown(look: &ExperimentLook, arm: &str) -> Option<f64> {
    let (_, report) = look.comparison.as_ref()?;
    report.arms.get(arm)?.metrics.get(PRIMARY)?.lift
}

/// Mixes a seed with the finalizer of SplitMix64, so that neighboring seeds choose unrelated times.
fn mixed(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
