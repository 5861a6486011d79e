//! Sentences worked by hand, one case each.

use super::*;
use crate::statistics::burn_in::BurnIn;
use crate::statistics::{
    Basis, DecidedAt, DecidedLook, DecidedMetric, GuardrailReport, GuardrailState, InformationGrowth,
    ListRatio, MetricRole, Waiting,
};

/// Treatments with their states, and the primary's lifts with the ends of their intervals.
struct World {
    settings: Settings,
    report: ComparisonReport,
    sizes: BTreeMap<&'static str, Size>,
}

const WEEK_MS: i64 = 604_800_000;

impl World {
    fn new(arms: &[(&'static str, ArmState, [f64; 3])]) -> World {
        let n = arms.len() as f64 + 1.0;
        let names = || arms.iter().map(|(name, ..)| *name).chain(["control"]);
        let settings = Settings {
            shares: names().map(|name| (name.to_owned(), 1.0 / n)).collect(),
            primary: vec!["ctr@10".to_owned()],
            ..Settings::new("control")
        };
        let sizes = names().enumerate().map(|(place, name)| {
            let lists = 18_211.0 + 100.0 * place as f64;
            let users = Some(4_000.0);
            (name, Size { lists, users })
        });
        let arms = arms
            .iter()
            .map(|(name, state, lift)| ((*name).to_owned(), arm(*state, *lift)));
        World {
            settings,
            sizes: sizes.collect(),
            report: ComparisonReport {
                as_of_ms: WEEK_MS,
                look: 1008,
                next_decision_ms: None,
                planned_end_ms: None,
                srm_p: Some(0.8),
                multi_arm: None,
                grown: InformationGrowth::default(),
                arms: arms.collect(),
                notes: Vec::new(),
            },
        }
    }

    fn headline(&self) -> Headline {
        of_look(&ComparedLook {
            settings: &self.settings,
            report: &self.report,
            sizes: self.sizes.clone(),
            is_one_epoch: true,
        })
    }

    #[track_caller]
    fn check(&self, badge: Badge, sentence: &str) {
        let headline = self.headline();
        // Percent signs follow a no-break space.
        let words = headline.sentence(str::to_owned).replace('\u{a0}', " ");
        assert_eq!((headline.badge, words.as_str()), (badge, sentence));
    }
}

fn arm(state: ArmState, [lower, lift, upper]: [f64; 3]) -> ArmReport {
    let is_known = state != ArmState::Collecting;
    let known = |number| is_known.then_some(number);
    let metric = MetricReport {
        lift: known(lift),
        interval: is_known.then_some(Interval { lower, upper }),
        standard_error: known(0.05),
        p: known(0.01),
        p_adjusted: known(0.02),
        p_harm: known(0.5),
        ..MetricReport::untested(MetricRole::Primary, Some(0.1), Some(0.1 * (1.0 + lift)))
    };
    let reason = match state {
        ArmState::Collecting => "users in 131 of 220 buckets",
        _ => "3.2 of 7 days",
    };
    ArmReport {
        decision: Some(Decision {
            state,
            reason: reason.to_owned(),
            basis: Basis::Earlier,
        }),
        burn_in: BurnIn {
            occupied: 256,
            expected_hits: 900.0,
        },
        list_ratio: Some(ListRatio {
            g: -0.1508,
            value: 0.86,
            interval: None,
            p: 1e-9,
        }),
        metrics: [("ctr@10".to_owned(), metric)].into(),
        ..ArmReport::default()
    }
}

#[test]
fn a_win_shows_arm_lift_interval_and_sample() {
    World::new(&[("neural", ArmState::Win, [0.24, 0.29, 0.34])]).check(
        Badge::Win,
        "neural beats control: CTR@10 +29.0% (+24.0% to +34.0%), 12.90% against 10.00%, 4,000 users each, traffic split OK (p = 0.800)",
    );
}

#[test]
fn names_the_winner_with_the_highest_lower_end_and_counts_all() {
    let mut world = World::new(&[
        ("blend", ArmState::Win, [0.10, 0.31, 0.52]),
        ("draft", ArmState::NoDecision, [-0.1, 0.0, 0.1]),
        ("neural", ArmState::Win, [0.24, 0.29, 0.34]),
    ]);
    world.check(
        Badge::Win,
        "neural beats control: CTR@10 +29.0% (+24.0% to +34.0%), 12.90% against 10.00%, 4,000 users each, traffic split OK (p = 0.800); 2 of 3 arms beat control, not compared with each other",
    );
    assert_eq!(world.headline().arm.as_deref(), Some("neural"));
    world
        .report
        .arms
        .insert("draft".to_owned(), arm(ArmState::Harm, [-0.3, -0.2, -0.1]));
    let words = world.headline().sentence(str::to_owned);
    assert!(
        words.ends_with("; 2 of 3 arms beat control, not compared with each other; draft is worse"),
        "{words}"
    );
}

#[test]
fn a_leading_arm_is_not_a_winner_before_the_decision() {
    let mut world = World::new(&[("neural", ArmState::NoDecision, [0.24, 0.29, 0.34])]);
    world.report.next_decision_ms = Some(WEEK_MS);
    world.check(
        Badge::Early,
        "too early: 3.2 of 7 days, next decision Thu 8 Jan; so far neural against control: CTR@10 +29.0% (+24.0% to +34.0%), 12.90% against 10.00%, 4,000 users each, traffic split OK (p = 0.800)",
    );
    world.report.next_decision_ms = None;
    world
        .report
        .arms
        .get_mut("neural")
        .unwrap()
        .decision
        .as_mut()
        .unwrap()
        .reason = "no primary metric differs significantly".to_owned();
    let headline = world.headline();
    assert_eq!(headline.badge, Badge::Open);
    assert!(
        headline
            .sentence(str::to_owned)
            .starts_with("not decided: no primary metric differs significantly; so far neural against ")
    );
}

#[test]
fn an_open_experiment_shows_the_next_and_planned_decision_days() {
    let world = |as_of_ms: i64, next_decision_ms: Option<i64>, planned_end_ms: Option<i64>| {
        let mut world = World::new(&[("neural", ArmState::NoDecision, [-0.1, 0.05, 0.2])]);
        (world.report.as_of_ms, world.report.next_decision_ms) = (as_of_ms, next_decision_ms);
        world.report.planned_end_ms = planned_end_ms;
        let (badge, words) = (world.headline().badge, world.headline().sentence(str::to_owned));
        let claim = words.split(';').next().expect("there is one").to_owned();
        (badge, claim)
    };
    let [next, planned] = [1_764_547_200_000, 1_764_806_400_000];
    let both = "too early: 3.2 of 7 days, next decision Mon 1 Dec, planned end Thu 4 Dec".to_owned();
    assert_eq!(world(next - 1, Some(next), Some(planned)), (Badge::Early, both));
    let same = "too early: 3.2 of 7 days, next decision and planned end Thu 4 Dec".to_owned();
    assert_eq!(world(next, Some(planned), Some(planned)), (Badge::Early, same));
    let past = "too early: 3.2 of 7 days, next decision Thu 4 Dec".to_owned();
    assert_eq!(world(next, Some(planned), Some(next)), (Badge::Early, past));
    let every_look = "not decided: 3.2 of 7 days, planned end Thu 4 Dec".to_owned();
    assert_eq!(world(next, None, Some(planned)), (Badge::Open, every_look));
    let none = "not decided: 3.2 of 7 days".to_owned();
    assert_eq!(world(planned, None, Some(planned)), (Badge::Open, none));
}

impl World {
    /// Marks an arm as decided on day 7, with this lift and interval of its primary.
    fn decided(mut self, arm: &str, [lower, lift, upper]: [f64; 3]) -> World {
        let arm = self.report.arms.get_mut(arm).expect("it is there");
        let metric = DecidedMetric {
            lift: Some(lift),
            interval: Some(Interval { lower, upper }),
            p: 0.01,
            p_adjusted: 0.01,
            band_excludes_zero: true,
        };
        let at = DecidedAt {
            look: 1008,
            as_of_ms: 1_764_028_799_999,
            since_ms: 1_764_028_799_999,
            day: 7,
            since_day: 7,
            k: Some(1),
        };
        arm.decided = Some(DecidedLook {
            state: arm.decision.as_ref().expect("it is tested").state,
            reason: "as it was".to_owned(),
            at: Some(at),
            metrics: BTreeMap::new(),
        });
        arm.metrics.get_mut("ctr@10").expect("it is there").decision = Some(MetricDecision { at, metric });
        self
    }

    /// Marks the decision of an arm as confirmed a week later.
    fn confirmed(mut self, arm: &str) -> World {
        let arm = self.report.arms.get_mut(arm).expect("it is there");
        let metric = arm.metrics.get_mut("ctr@10").expect("it is there");
        let decision = metric.decision.as_mut().expect("it was decided");
        decision.at.as_of_ms += 7 * 86_400_000;
        decision.at.day += 7;
        self
    }

    fn open_again(mut self, arm: &str) -> World {
        let arm = self.report.arms.get_mut(arm).expect("it is there");
        arm.open_again = Some("ctr@10".to_owned());
        self
    }
}

#[test]
fn a_win_shows_the_lift_and_the_day_of_its_decision() {
    let world = World::new(&[("neural", ArmState::Win, [0.01, 0.03, 0.07])]);
    world.decided("neural", [0.009, 0.041, 0.073]).check(
        Badge::Win,
        "neural beats control: CTR@10 +4.1% (+0.9% to +7.3%), decided Mon 24 Nov, day 7, 10.30% against 10.00%, 4,000 users each, traffic split OK (p = 0.800)",
    );
}

#[test]
fn a_confirmed_decision_shows_since_when_it_holds() {
    let state = |state, ends| {
        let world = World::new(&[("neural", state, ends)])
            .decided("neural", ends)
            .confirmed("neural");
        world.headline().sentence(str::to_owned)
    };
    let words = state(ArmState::Win, [0.01, 0.03, 0.07]);
    assert!(
        words.starts_with("neural beats control: CTR@10 +3.0% (+1.0% to +7.0%), better since Mon 24 Nov (day 7), last confirmed Mon 1 Dec (day 14), "),
        "{words}"
    );
    let words = state(ArmState::Loss, [-0.07, -0.03, -0.01]);
    assert!(
        words.contains(
            "(−7.0% to −1.0%), worse since Mon 24 Nov (day 7), last confirmed Mon 1 Dec (day 14), "
        ),
        "{words}"
    );
    let words = state(ArmState::NoEffect, [-0.01, 0.0, 0.01]);
    assert!(
        words.contains(
            "(−1.0% to +1.0%), no effect since Mon 24 Nov (day 7), last confirmed Mon 1 Dec (day 14), "
        ),
        "{words}"
    );
    let world = World::new(&[("neural", ArmState::Win, [-0.01, 0.03, 0.07])])
        .decided("neural", [0.009, 0.041, 0.073]);
    let words = world
        .confirmed("neural")
        .open_again("neural")
        .headline()
        .sentence(str::to_owned);
    assert!(
        words.contains(", decided Mon 24 Nov (day 7), last confirmed Mon 1 Dec (day 14); since then its interval has come to include 0, "),
        "{words}"
    );
}

#[test]
fn a_win_reports_that_its_interval_now_includes_zero() {
    let world = World::new(&[("neural", ArmState::Win, [-0.01, 0.03, 0.07])]);
    world.decided("neural", [0.009, 0.041, 0.073]).open_again("neural").check(
        Badge::Win,
        "neural beat control: CTR@10 +4.1% (+0.9% to +7.3%), decided Mon 24 Nov, day 7; since then its interval has come to include 0, 10.30% against 10.00%, \
         4,000 users each, traffic split OK (p = 0.800)",
    );
}

#[test]
fn a_decision_by_an_earlier_version_is_marked() {
    let mut world = World::new(&[("neural", ArmState::Win, [0.01, 0.03, 0.07])]).decided("neural", [0.1; 3]);
    let arm = world.report.arms.get_mut("neural").expect("it is there");
    // The earlier version stored the state alone.
    arm.decided.as_mut().expect("it was decided").at = None;
    arm.metrics.get_mut("ctr@10").expect("it is there").decision = None;
    world.check(
        Badge::Win,
        "neural beats control: CTR@10 +3.0% (+1.0% to +7.0%), decided by the rule of an earlier version, 10.30% against 10.00%, 4,000 users each, \
         traffic split OK (p = 0.800)",
    );
}

#[test]
fn invalid_users_are_reported_as_untrustworthy() {
    let mut world = World::new(&[("neural", ArmState::InvalidUsers, [0.01, 0.03, 0.07])]);
    let arm = world.report.arms.get_mut("neural").expect("it is there");
    arm.decision.as_mut().expect("it is tested").reason =
        "one user has 41% of the lists of an arm".to_owned();
    world.check(
        Badge::Invalid,
        "do not trust this: one user has 41% of the lists of an arm",
    );
}

#[test]
fn unequal_shares_of_refused_lists_are_reported_as_untrustworthy() {
    let mut world = World::new(&[("neural", ArmState::InvalidRefused, [0.01, 0.03, 0.07])]);
    let arm = world.report.arms.get_mut("neural").expect("it is there");
    arm.decision.as_mut().expect("it is tested").reason =
        "11.1% of the arm's lists were refused or lost a click, but 0.0% of its control's lists".to_owned();
    world.check(
        Badge::Invalid,
        "do not trust this: 11.1% of the arm's lists were refused or lost a click, but 0.0% of its control's lists",
    );
}

#[test]
fn harm_shows_its_start_and_whether_it_has_reversed() {
    let mut world = World::new(&[("neural", ArmState::Harm, [-0.2, -0.05, 0.1])]);
    let harm_since = |world: &mut World| {
        let arm = world.report.arms.get_mut("neural").expect("it is there");
        arm.metrics.get_mut("ctr@10").expect("it is there").harm_since_ms = Some(1_764_028_799_999);
    };
    harm_since(&mut world);
    world.check(
        Badge::Harm,
        "neural was worse than control by the one-sided test of harm since Mon 24 Nov: CTR@10 −5.0% (−20.0% to +10.0%); both its one-sided and its two-sided \
         interval include 0 now, 9.50% against 10.00%, 4,000 users each, traffic split OK (p = 0.800)",
    );
    let mut world = World::new(&[("neural", ArmState::Harm, [-0.2, -0.1, -0.05])]);
    harm_since(&mut world);
    world.check(
        Badge::Harm,
        "neural is worse than control (since Mon 24 Nov, by the test of harm): CTR@10 −10.0% (−20.0% to −5.0%), 9.00% against 10.00%, 4,000 users each, traffic split OK (p = 0.800)",
    );
    let mut world = World::new(&[("neural", ArmState::Harm, [0.01, 0.03, 0.07])]);
    harm_since(&mut world);
    world.check(
        Badge::Harm,
        "neural was worse than control by the one-sided test of harm since Mon 24 Nov: CTR@10 +3.0% (+1.0% to +7.0%); its interval is now on the better side \
         of 0, 10.30% against 10.00%, 4,000 users each, traffic split OK (p = 0.800)",
    );
}

#[test]
fn a_decrease_is_a_win_if_lower_is_better() {
    let mut world = World::new(&[
        ("blend", ArmState::Win, [-0.2, -0.1, -0.05]),
        ("neural", ArmState::Win, [-0.34, -0.29, -0.24]),
    ]);
    world.settings.lower_is_better = ["ctr@10".to_owned()].into();
    let words = world.headline().sentence(str::to_owned);
    assert!(
        words.starts_with("neural beats control: CTR@10 −29.0%"),
        "{words}"
    );
}

#[test]
fn harm_names_the_worst_arm() {
    World::new(&[("neural", ArmState::Harm, [-0.3, -0.2, -0.1])]).check(
        Badge::Harm,
        "neural is worse than control: CTR@10 −20.0% (−30.0% to −10.0%), 8.00% against 10.00%, 4,000 users each, traffic split OK (p = 0.800)",
    );
    World::new(&[("neural", ArmState::Harm, [-0.226, -0.108, 0.01])]).check(
        Badge::Harm,
        "neural was worse than control by the one-sided test of harm: CTR@10 −10.8% (−22.6% to +1.0%); both its one-sided and its two-sided interval include 0 now, 8.92% against 10.00%, 4,000 users each, traffic split OK (p = 0.800)",
    );
    let world = World::new(&[
        ("blend", ArmState::Loss, [-0.2, -0.1, -0.05]),
        ("draft", ArmState::NoDecision, [-0.1, 0.0, 0.1]),
        ("neural", ArmState::Harm, [-0.3, -0.2, -0.1]),
    ]);
    let words = world.headline().sentence(str::to_owned);
    assert!(words.starts_with("neural is worse than control: "), "{words}");
    assert!(
        words.ends_with("; 2 of 3 arms are worse, none is better"),
        "{words}"
    );
}

#[test]
fn harm_names_a_harmed_metric_before_one_that_is_only_worse_now() {
    let mut world = World::new(&[("neural", ArmState::Harm, [0.01, 0.03, 0.07])]);
    world.settings.guardrails = [("mrr".to_owned(), 0.01)].into();
    let metrics = &mut world.report.arms.get_mut("neural").expect("it is there").metrics;
    let harmed = metrics.get_mut("ctr@10").expect("it is there");
    let guardrail = MetricReport {
        lift: Some(-0.003),
        interval: Some(Interval {
            lower: -0.02,
            upper: 0.014,
        }),
        p_harm: Some(0.4),
        ..*harmed
    };
    harmed.p_harm = Some(0.001);
    harmed.harm_since_ms = Some(1_763_683_200_000);
    metrics.insert("mrr".to_owned(), guardrail);
    world.check(
        Badge::Harm,
        "neural was worse than control by the one-sided test of harm since Fri 21 Nov: CTR@10 +3.0% (+1.0% to +7.0%); its interval is now on the better side \
         of 0, 10.30% against 10.00%, 4,000 users each, traffic split OK (p = 0.800)",
    );
    // If both are harmed, the one that is worse now is named.
    let metrics = &mut world.report.arms.get_mut("neural").expect("it is there").metrics;
    metrics.get_mut("mrr").expect("it is there").harm_since_ms = Some(1_764_028_799_999);
    let words = world.headline().sentence(str::to_owned);
    assert!(
        words.starts_with(
            "neural was worse than control by the one-sided test of harm since Mon 24 Nov: MRR −0.3%"
        ),
        "{words}"
    );
}

/// Before, the arm with the lowest lower end was named, which a small arm has by its width alone.
#[test]
fn a_small_and_uncertain_arm_is_not_called_the_worst() {
    let named = |world: &World| world.headline().arm;
    let mut world = World::new(&[
        ("large", ArmState::Harm, [-0.12, -0.1, -0.08]),
        ("open", ArmState::NoDecision, [-0.6, -0.3, 0.0]),
        ("small", ArmState::Harm, [-0.4, -0.15, 0.1]),
    ]);
    assert_eq!(named(&world).as_deref(), Some("large"));
    // The interval of a loss is the one that was decided on, and not the band of this look.
    world = world.decided("open", [-0.3, -0.2, -0.1]);
    let open = world.report.arms.get_mut("open").expect("it is there");
    open.decision.as_mut().expect("it is tested").state = ArmState::Loss;
    assert_eq!(named(&world).as_deref(), Some("open"));
    let words = world.headline().sentence(str::to_owned);
    assert!(
        words.starts_with("open is worse than control: CTR@10 −20.0% (−30.0% to −10.0%), decided"),
        "{words}"
    );
    // Less is better: the interval of `large` is furthest above 0.
    let mut world = World::new(&[
        ("large", ArmState::Harm, [0.08, 0.1, 0.12]),
        ("small", ArmState::Harm, [-0.1, 0.15, 0.4]),
    ]);
    world.settings.lower_is_better = ["ctr@10".to_owned()].into();
    assert_eq!(named(&world).as_deref(), Some("large"));
}

#[test]
fn a_mismatch_comes_first_with_seen_and_planned_splits() {
    let mut world = World::new(&[("neural", ArmState::InvalidSrm, [0.24, 0.29, 0.34])]);
    world.sizes.get_mut("control").unwrap().users = Some(5_300.0);
    world.sizes.get_mut("neural").unwrap().users = Some(4_700.0);
    world.check(
        Badge::Invalid,
        "do not trust this: users are split 53:47, but 50:50 was planned (control : neural)",
    );
    // Several epochs have no single planned split.
    let look = ComparedLook {
        settings: &world.settings,
        report: &world.report,
        sizes: world.sizes.clone(),
        is_one_epoch: false,
    };
    assert_eq!(
        of_look(&look).sentence(str::to_owned),
        "do not trust this: users are not split between the arms as planned"
    );
}

#[test]
fn a_mismatch_of_many_arms_names_the_furthest_from_its_share() {
    let names = ["a", "b", "c", "d", "e"];
    let mut world = World::new(&names.map(|name| (name, ArmState::InvalidSrm, [0.0; 3])));
    world.sizes.get_mut("d").unwrap().users = Some(2_000.0);
    world.check(
        Badge::Invalid,
        "do not trust this: users are not split as planned: d has 9.1%, but 16.7% was planned",
    );
}

#[test]
fn users_in_two_arms_and_unequal_list_ratios_are_reported_as_untrustworthy() {
    let mut world = World::new(&[("neural", ArmState::InvalidMultiArm, [0.24, 0.29, 0.34])]);
    world.report.multi_arm = Some(MultiArm {
        in_two: 320.0,
        users: 10_000.0,
    });
    world.check(
        Badge::Invalid,
        "do not trust this: 3.2% of the users were seen in two arms",
    );
    World::new(&[("neural", ArmState::InvalidListRatio, [0.24, 0.29, 0.34])]).check(
        Badge::Invalid,
        "do not trust this: lists per user differ by −14.0% between neural and control",
    );
    // Only one of several arms is invalid, so the others are reported.
    let mut some = World::new(&[
        ("blend", ArmState::NoDecision, [-0.1, 0.05, 0.2]),
        ("neural", ArmState::InvalidListRatio, [0.24, 0.29, 0.34]),
    ]);
    some.report.next_decision_ms = Some(WEEK_MS);
    some.check(
        Badge::Early,
        "too early: 3.2 of 7 days, next decision Thu 8 Jan; so far blend, the best of 2 arms, against control: CTR@10 +5.0% (−10.0% to +20.0%), 10.50% against 10.00%, 4,000 users each, traffic split OK (p = 0.800); do not read neural",
    );
}

#[test]
fn names_missing_data_and_settings() {
    World::new(&[("neural", ArmState::Collecting, [0.0; 3])]).check(
        Badge::Early,
        "too early: too few users or clicks (users in 131 of 220 buckets)",
    );
    let mut world = World::new(&[("neural", ArmState::NoDecision, [-0.1, 0.05, 0.2])]);
    world.settings.shares.clear();
    world.report.srm_p = None;
    world.check(
        Badge::Uncompared,
        "not tested: the planned shares of users (shares) are not set; neural against control: CTR@10 +5.0% (−10.0% to +20.0%), 10.50% against 10.00%, 4,000 users each",
    );
    world.sizes.remove("neural");
    world.check(
        Badge::Uncompared,
        "nothing to compare: no arm other than control has a share of the users and a final list",
    );
    world.sizes.remove("control");
    world.check(
        Badge::Uncompared,
        "nothing to compare: there is no final list of control, with which the others are compared",
    );
}

#[test]
fn reports_arms_without_a_difference_that_matters() {
    World::new(&[("neural", ArmState::NoEffect, [-0.02, 0.003, 0.026])]).check(
        Badge::NoEffect,
        "no difference that matters (±5.0%): neural against control: CTR@10 +0.3% (−2.0% to +2.6%), 10.03% against 10.00%, 4,000 users each, traffic split OK (p = 0.800)",
    );
}

#[test]
fn shows_when_lists_become_final_before_the_first_look() {
    let words = |headline: Headline| headline.sentence(str::to_owned);
    assert_eq!(
        words(waiting(false, Some(720_000), 1_920_000)),
        "too early: no list is final yet; the first becomes final in about 12 min of event time"
    );
    assert_eq!(
        words(waiting(false, Some(-5), 1_920_000)),
        "too early: no list is final yet; each becomes final 32 min after it was served"
    );
    assert!(
        words(waiting(true, None, 1_920_000))
            .starts_with("too early: the first lists are final, and the first analysis comes")
    );
    assert!(words(uncompared(2)).starts_with("nothing is tested: the configuration names no control"));
}

#[test]
fn shows_the_lift_that_chance_gives_the_best_of_many_arms() {
    let names: Vec<&'static str> = (0..300).map(|n| &*format!("arm-{n}").leak()).collect();
    let arms: Vec<_> = names
        .iter()
        .map(|name| (*name, ArmState::NoDecision, [-0.15, 0.0, 0.15]))
        .collect();
    let mut world = World::new(&arms);
    world.report.next_decision_ms = Some(WEEK_MS);
    // 3.7617 standard errors of 0.05.
    let chance = world.headline().chance.expect("there are many");
    assert_eq!(chance.sentence(), "best of 300 by chance alone: up to +18.8%");
    assert_eq!(World::new(&arms[..4]).headline().chance, None);
}

#[test]
fn a_small_arm_ranks_below_a_large_one_with_the_same_lower_end() {
    // Both intervals start at 0.1. Stretched for two arms, the interval of the small arm starts lower.
    let world = World::new(&[
        ("large", ArmState::NoDecision, [0.1, 0.12, 0.14]),
        ("small", ArmState::NoDecision, [0.1, 0.5, 0.9]),
    ]);
    let ends = lower_ends(&world.settings, &world.report);
    assert!(ends["large"] > ends["small"], "{ends:?}");
    assert!(ends["large"] < 0.1);
}

#[test]
fn counts_lists_only_while_users_are_unknown() {
    let mut world = World::new(&[("neural", ArmState::Win, [0.24, 0.29, 0.34])]);
    let ends_with = |world: &World, end: &str| {
        let sentence = world.headline().sentence(str::to_owned);
        assert!(sentence.ends_with(end), "{sentence}");
    };
    world.sizes.get_mut("neural").unwrap().users = Some(4_001.0);
    ends_with(
        &world,
        ", 4,001 against 4,000 users, traffic split OK (p = 0.800)",
    );
    world.sizes.get_mut("control").unwrap().users = None;
    ends_with(
        &world,
        ", 18,211 against 18,311 lists, traffic split OK (p = 0.800)",
    );
}

#[test]
fn names_are_separate_parts() {
    let headline = World::new(&[("<b>", ArmState::Win, [0.24, 0.29, 0.34])]).headline();
    let json = serde_json::to_value(&headline).expect("JSON");
    assert_eq!(json["badge"], "win");
    assert_eq!(json["arm"], "<b>");
    assert_eq!(json["parts"][0], serde_json::json!({"name": "<b>"}));
    assert_eq!(json["parts"][1], " beats ");
    assert_eq!(json["parts"][2], serde_json::json!({"name": "control"}));
    assert_eq!(
        (&json["chance"], &json["n_claiming"]),
        (&serde_json::Value::Null, &serde_json::json!(4))
    );
    assert_eq!(
        json["parts"][4],
        ", 12.90% against 10.00%, 4,000 users each, traffic split OK (p = 0.800)"
    );
    assert!(
        json["sentence"]
            .as_str()
            .expect("words")
            .starts_with("<b> beats control: CTR@10")
    );
}

#[test]
fn a_loss_reports_that_its_interval_now_includes_zero() {
    let world = World::new(&[("neural", ArmState::Loss, [-0.2, -0.05, 0.1])]);
    world.decided("neural", [-0.09, -0.06, -0.03]).open_again("neural").check(
        Badge::Harm,
        "neural was worse than control: CTR@10 −6.0% (−9.0% to −3.0%), decided Mon 24 Nov, day 7; since then its interval has come to include 0, 9.50% against \
         10.00%, 4,000 users each, traffic split OK (p = 0.800)",
    );
}

#[test]
fn a_win_by_another_metric_counts_without_an_interval_for_the_first() {
    let world = World::new(&[("neural", ArmState::Win, [0.24, 0.29, 0.34])]);
    let mut world = world.decided("neural", [0.24, 0.29, 0.34]);
    world.settings.primary = vec!["mrr@10".to_owned(), "ctr@10".to_owned()];
    world.check(
        Badge::Win,
        "neural beats control: CTR@10 +29.0% (+24.0% to +34.0%), decided Mon 24 Nov, day 7, 12.90% against 10.00%, 4,000 users each, traffic split OK (p = 0.800)",
    );
}

#[test]
fn an_invalid_arm_is_named_next_to_a_winner() {
    World::new(&[
        ("draft", ArmState::InvalidListRatio, [0.3, 0.4, 0.5]),
        ("neural", ArmState::Win, [0.24, 0.29, 0.34]),
    ])
    .check(
        Badge::Win,
        "neural beats control: CTR@10 +29.0% (+24.0% to +34.0%), 12.90% against 10.00%, 4,000 users each, traffic split OK (p = 0.800); 1 of 2 arms beats control; do \
         not read draft",
    );
}

#[test]
fn an_arm_that_is_not_worse_is_not_called_a_winner() {
    let mut world = World::new(&[("neural", ArmState::Win, [-0.03, -0.006, 0.018])]);
    world.settings.goal = Goal::NonInferior;
    world.check(
        Badge::Win,
        "neural is not worse than control by more than 5.0%: CTR@10 −0.6% (−3.0% to +1.8%), 9.94% against 10.00%, 4,000 users each, traffic split OK (p = 0.800)",
    );
    assert_eq!(world.headline().label, Label::NotWorse);
    // The primary that is closest to its margin is shown.
    world.settings.primary.push("mrr".to_owned());
    let metrics = &mut world.report.arms.get_mut("neural").expect("it is there").metrics;
    let interval = Some(Interval {
        lower: -0.04,
        upper: 0.0,
    });
    let mrr = MetricReport {
        lift: Some(-0.02),
        interval,
        ..metrics["ctr@10"]
    };
    metrics.insert("mrr".to_owned(), mrr);
    let words = world.headline().sentence(str::to_owned).replace('\u{a0}', " ");
    assert!(
        words.contains("by more than 5.0%: MRR −2.0% (−4.0% to ±0.0%)"),
        "{words}"
    );
    world.settings.goal = Goal::Superior;
    assert_eq!(world.headline().label, Label::Better);
}

#[test]
fn harm_is_only_probable_while_its_interval_includes_zero() {
    let label = |lift| World::new(&[("neural", ArmState::Harm, lift)]).headline().label;
    assert_eq!(label([-0.226, -0.108, 0.01]), Label::ProbablyHarmful);
    assert_eq!(label([-0.3, -0.2, -0.1]), Label::Worse);
}

#[test]
fn harm_within_its_interval_shows_the_one_sided_bound() {
    let mut world = World::new(&[("neural", ArmState::Harm, [-0.013, -0.006, 0.001])]);
    let metrics = &mut world.report.arms.get_mut("neural").expect("it is there").metrics;
    let metric = metrics.get_mut("ctr@10").expect("it is there");
    metric.harm_since_ms = Some(1_764_028_799_999);
    metric.harm = Some(HarmBound {
        bound: -0.004,
        level: 0.975,
    });
    world.check(
        Badge::Harm,
        "neural is probably worse than control by the one-sided test of harm since Mon 24 Nov: CTR@10 −0.6% (−1.3% to +0.1%), at least 0.4% worse (one-sided \
         97.5%), 9.94% against 10.00%, 4,000 users each, traffic split OK (p = 0.800)",
    );
    assert_eq!(world.headline().label, Label::ProbablyHarmful);
    // The count of arms is no surer than the badge.
    let mut two = World::new(&[
        ("blend", ArmState::NoDecision, [-0.1, 0.0, 0.1]),
        ("neural", ArmState::Harm, [-0.013, -0.006, 0.001]),
    ]);
    let end = |world: &World| {
        let words = world.headline().sentence(str::to_owned);
        words.rsplit_once("; ").expect("there is one").1.to_owned()
    };
    assert_eq!(end(&two), "1 of 2 arms is probably worse, none is better");
    two.report
        .arms
        .insert("blend".to_owned(), arm(ArmState::Loss, [-0.3, -0.2, -0.1]));
    assert_eq!(
        end(&two),
        "2 of 2 arms are worse or probably worse, none is better"
    );
}

#[test]
fn a_loss_is_only_probable_once_its_interval_includes_zero_again() {
    let world = || {
        World::new(&[("neural", ArmState::Loss, [-0.2, -0.05, 0.1])]).decided("neural", [-0.09, -0.06, -0.03])
    };
    assert_eq!(world().headline().label, Label::Worse);
    assert_eq!(
        world().open_again("neural").headline().label,
        Label::ProbablyHarmful
    );
}

impl World {
    /// Makes an arm wait, with its guardrail MRR that may be down 13.9%.
    fn waiting(mut self, arm: &str, information: f64, days_needed: Option<f64>) -> World {
        self.report.next_decision_ms = Some(WEEK_MS);
        self.settings.guardrails = [("mrr".to_owned(), 0.05)].into();
        let arm = self.report.arms.get_mut(arm).expect("it is there");
        let guardrail = MetricReport {
            role: MetricRole::Guardrail,
            guardrail: Some(GuardrailReport {
                margin: 0.05,
                bound: Some(-0.139),
                state: GuardrailState::NotYet,
            }),
            ..arm.metrics["ctr@10"]
        };
        arm.metrics.insert("mrr".to_owned(), guardrail);
        arm.waiting = Some(Waiting {
            days: 7.9,
            min_days: None,
            guardrails: vec!["mrr".to_owned()],
            information: Some(information),
            days_needed,
        });
        self
    }
}

#[test]
fn an_open_experiment_shows_what_is_missing() {
    let claim = |world: World| {
        let words = world.headline().sentence(str::to_owned).replace('\u{a0}', " ");
        words.split("; so far").next().expect("there is one").to_owned()
    };
    let world = |lift| World::new(&[("neural", ArmState::NoDecision, lift)]);
    // No primary is better yet, so guardrails do not delay the decision.
    assert_eq!(
        claim(world([-0.1, 0.05, 0.2]).waiting("neural", 0.2, None)),
        "too early: 3.2 of 7 days; data collected for a 5.0% effect: 20%, next decision Thu 8 Jan"
    );
    assert_eq!(
        claim(world([0.24, 0.29, 0.34]).waiting("neural", 0.2, Some(56.0))),
        "too early: 3.2 of 7 days; waiting for the guardrail MRR: may be down 13.9%, 5.0% allowed; data collected for a 5.0% effect: 20%, about 56 days in all, \
         next decision Thu 8 Jan"
    );
    // After a decision look, more than days is missing.
    let mut looked = world([-0.1, 0.05, 0.2])
        .waiting("neural", 1.3, Some(7.0))
        .decided("neural", [-0.1, 0.05, 0.2]);
    let arm = looked.report.arms.get_mut("neural").expect("it is there");
    arm.decision.as_mut().expect("it is tested").reason =
        "CTR@10 is better, but the guardrail MRR is still open on day 7".to_owned();
    assert_eq!(
        claim(looked),
        "not decided yet: CTR@10 is better, but the guardrail MRR is still open on day 7; waiting for the guardrail MRR: may be down 13.9%, 5.0% allowed; data collected for a 5.0% \
         effect: 130%, about 7 days in all, next decision Thu 8 Jan"
    );
}
