//! Comparison of a plain recount with the truth that the traffic claims.

use super::*;

/// Sums of one metric of one arm by user: numerators and denominators.
#[derive(Default, Clone)]
struct Sample(HashMap<String, [f64; 2]>);

impl Sample {
    fn add(&mut self, user: &str, x: f64, y: f64) {
        let sums = self.0.entry(user.to_owned()).or_default();
        sums[0] += x;
        sums[1] += y;
    }

    /// Σx ÷ Σy and its standard error by the delta method, with users as the sampling unit, because the lists of a user are
    /// correlated.
    fn ratio(&self) -> (f64, f64) {
        let [x, y] = self
            .0
            .values()
            .fold([0.0; 2], |[x, y], user| [x + user[0], y + user[1]]);
        let residual = |user: &[f64; 2]| user[0] - x / y * user[1];
        let residuals: f64 = self.0.values().map(|user| residual(user).powi(2)).sum();
        (x / y, residuals.sqrt() / y)
    }
}

/// Recounts the metrics with a join that shares no code with the engine. `refuse` drops late and future records.
fn recount(traffic: Traffic, ks: &[usize], refuse: bool) -> BTreeMap<(String, String, String), Sample> {
    let settings = traffic.settings().clone();
    let mut lists: HashMap<String, Value> = HashMap::new();
    let mut clicks = Vec::new();
    for record in traffic {
        let Ok(json) = serde_json::from_slice::<Value>(&record.payload) else {
            continue;
        };
        let Some(ts_ms) = json["ts"].as_i64().filter(|ts| *ts > 1_000_000_000_000) else {
            continue;
        };
        let age_ms = record.arrival_ms - ts_ms;
        let refused = age_ms > settings.lateness_ms || -age_ms > settings.max_future_ms;
        if refuse && refused || json["request_id"] == "" {
            continue;
        }
        if record.side == Side::Clicks && json["item"].is_string() {
            clicks.push((json, ts_ms));
        } else if json["items"].is_array() {
            lists.insert(json["request_id"].to_string(), json);
        }
    }
    let mut clicked: HashMap<String, BTreeSet<usize>> = HashMap::new();
    for (click, ts_ms) in clicks {
        let id = click["request_id"].to_string();
        let Some(list) = lists.get(&id) else { continue };
        let delay_ms = ts_ms - list["ts"].as_i64().unwrap();
        let rank = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .position(|item| *item == click["item"]);
        if let Some(rank) = rank.filter(|_| (0..=settings.attribution_ms).contains(&delay_ms)) {
            clicked.entry(id).or_default().insert(rank + 1);
        }
    }
    let mut samples: BTreeMap<_, Sample> = BTreeMap::new();
    for (id, list) in &lists {
        let length = list["items"].as_array().unwrap().len();
        let ranks = clicked.get(id).cloned().unwrap_or_default();
        let user = list["user_id"].as_str().unwrap();
        for (experiment, arm) in list["experiments"].as_object().unwrap() {
            for &k in ks {
                let hits = ranks.range(..=k).count() as f64;
                let first = ranks.range(..=k).next();
                let metrics = [
                    ("hit_rate", f64::from(hits > 0.0), 1.0),
                    ("ctr", hits, length.min(k) as f64),
                    ("mrr", first.map_or(0.0, |rank| 1.0 / *rank as f64), 1.0),
                ];
                for (id, x, y) in metrics {
                    let key = if k == usize::MAX {
                        id.to_owned()
                    } else {
                        format!("{id}@{k}")
                    };
                    let arm = arm.as_str().unwrap().to_owned();
                    samples
                        .entry((experiment.clone(), arm, key))
                        .or_default()
                        .add(user, x, y);
                }
            }
        }
    }
    samples
}

#[track_caller]
fn check_truth(refuse: bool, world: &World) {
    // With much noise, a bias would show.
    let noise = Noise {
        duplicate_list: 0.1,
        repeated_click: 0.2,
        off_list_click: 0.2,
        orphan_click: 0.05,
        expired_click: 0.2,
        late_list: 0.1,
        fast_clock: 0.1,
        broken: 0.05,
        other_type: 0.05,
    };
    let traffic = traffic(100_000, |settings| {
        settings.noise = noise;
        settings.world = world.clone();
    });
    let truths = traffic.truth(&[1, 5, 10].map(|k| NonZeroU32::new(k).unwrap()));
    let samples = recount(traffic, &[1, 5, 10, usize::MAX], refuse);
    assert_eq!(samples.len(), truths.len());
    for truth in truths {
        let key = (truth.experiment.clone(), truth.arm.clone(), truth.key.clone());
        let (measured, error) = samples[&key].ratio();
        assert!(
            (measured - truth.value).abs() < 4.0 * error,
            "{truth:?}: measured {measured} ± {error}"
        );
        assert!(
            error < 0.03 * truth.value,
            "too rough to tell: {truth:?} ± {error}"
        );
    }
}

#[test]
fn a_large_sample_agrees_with_the_truth_if_late_and_future_records_are_refused() {
    check_truth(true, &World::default());
}

#[test]
fn a_large_sample_agrees_with_the_truth_if_late_and_future_records_count() {
    check_truth(false, &World::default());
}

#[test]
fn a_large_sample_agrees_with_the_truth_with_other_shares_effects_and_visits() {
    let design = Design::default();
    let design = design
        .with_shares(&of_arms(&[("control", 0.3), ("neural", 0.7)]))
        .unwrap();
    let design = design
        .with_effects(&of_arms(&[("neural", -0.3), ("carousel", 0.5)]))
        .unwrap();
    let design = design
        .with_visits(&of_arms(&[("neural", -0.5), ("carousel", 0.5)]))
        .unwrap();
    check_truth(true, &world(design));
}

#[test]
fn a_large_sample_agrees_with_the_truth_of_equal_arms() {
    check_truth(true, &world(Design::default().without_differences()));
}

/// An interval by list would miss this correlation.
#[test]
fn lists_of_one_user_are_correlated() {
    let traffic = traffic(100_000, |settings| settings.noise = Noise::NONE);
    let samples = recount(traffic, &[5], true);
    let key = ("ranker".to_owned(), "control".to_owned(), "hit_rate@5".to_owned());
    let sample = &samples[&key];
    let (rate, error) = sample.ratio();
    let n_lists: f64 = sample.0.values().map(|user| user[1]).sum();
    let of_lists = (rate * (1.0 - rate) / n_lists).sqrt();
    assert!(error > 1.15 * of_lists, "{error}, by list {of_lists}");
}

#[test]
fn arms_differ_enough_to_be_distinguished() {
    let k = NonZeroU32::new(5).unwrap();
    let truths = traffic(1, |_| {}).truth(&[k]);
    let value = |arm: &str| {
        truths
            .iter()
            .find(|truth| truth.arm == arm && truth.key == "ctr@5")
            .unwrap()
            .value
    };
    assert!(value("neural") > 1.1 * value("blend") && value("blend") > 1.1 * value("control"));
    assert!(value("grid") > 1.05 * value("carousel"));
}
