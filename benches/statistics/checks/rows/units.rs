//! Lists without a user, and one user with very many lists.

use std::num::NonZeroU32;

use abgauge::tools::simulate::Activity;
use abgauge_core::statistics::{Settings, Unit, Validity};

use crate::checks::row::{Bound, Figure, Row, indicator};
use crate::checks::scenario::{ARM, DAY_MS, Ids, Scale, Scenario};
use crate::checks::watch::{Watch, asked, with_validity};

const METRIC: &[&str] = &["hit_rate"];
const MOST: Bound = Bound::AtMost(0.07);

/// A share of users without an id: the note about it, and the remedy by a second id.
pub fn without_id(scale: Scale, share: f64) -> Row {
    rows(
        "without_id",
        &format!("{:.0}% of users without id", 100.0 * share),
        "have no user",
        [
            (
                "single look",
                Scenario {
                    ids: Ids::Missing(share),
                    ..users(scale)
                },
                Bound::Shown,
            ),
            (
                "single look, with a second id",
                Scenario {
                    ids: Ids::Second(share),
                    ..users(scale)
                },
                MOST,
            ),
        ],
    )
}

/// One user with a share of all lists: the note about it, and the remedy by a cap.
pub fn crawler(scale: Scale, share: f64) -> Row {
    let all = Scenario {
        ids: Ids::Crawler(share),
        ..users(scale)
    };
    let capped = Scenario {
        max_lists_per_user: NonZeroU32::new(200),
        ..all.clone()
    };
    rows(
        "crawler",
        &format!("One user with {:.0}% of the lists", 100.0 * share),
        "comes from one user or very few",
        [
            ("single look", all, Bound::Shown),
            ("single look, at most 200 lists of a user", capped, MOST),
        ],
    )
}

/// Two arms of 2,000 heavy-tailed users each.
fn users(scale: Scale) -> Scenario {
    Scenario::new(scale, Activity::Heavy, 4_000.0, 15.0).of(METRIC)
}

/// Builds the row of two scenarios. The first must have a note with these words in every run.
fn rows(name: &'static str, what: &str, words: &'static str, of: [(&str, Scenario, Bound); 2]) -> Row {
    let share = |figure: &str, bound| Figure::share(format!("{what}: {figure}"), bound);
    let mut figures = vec![share("a note", Bound::AtLeast(1.0))];
    figures.extend(of.iter().map(|(figure, _, bound)| share(figure, *bound)));
    let scenarios = of.map(|(_, scenario, _)| scenario);
    Row::new(name, 400, figures, move |seed| {
        let [first, second] = &scenarios;
        let mut noted = Watch::new(first, asked(first), DAY_MS);
        // Invalid comparisons have no interval, so the single look does not check whether lists have users.
        let unchecked = Settings {
            unit: Unit::Request,
            ..with_validity(first, Validity::OneLook)
        };
        let mut single = Watch::new(first, unchecked, DAY_MS);
        first.replay(seed, DAY_MS, |reported| {
            noted.take(reported);
            single.take(reported);
        });
        let mut mended = Watch::new(second, with_validity(second, Validity::OneLook), DAY_MS);
        second.replay(seed, DAY_MS, |reported| mended.take(reported));
        let notes = &noted.report().arms[ARM].notes;
        let has_note = notes.iter().any(|note| note.contains(words));
        let [single, mended] = [single, mended].map(|watch| {
            let interval = watch.metric(METRIC[0]).interval.expect("burn-in is done");
            interval.lower > 0.0 || interval.upper < 0.0
        });
        [has_note, single, mended].map(indicator).to_vec()
    })
}
