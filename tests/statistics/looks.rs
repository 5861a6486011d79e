//! An experiment from look to look: what is kept, what is shown, what is decided.

use abgauge::statistics::per_user::{Count, Counts, HITS_PER_USER, LISTS_PER_USER, per_user};
use abgauge::statistics::{
    ArmPair, ArmReport, Effect, Epoch, EpochWeights, Interval, MetricReport, RatioSums, Report, Role,
    STICKY_NOTE, State, Totals, Validity, compare, one_look, sequence,
};
use proptest::prelude::*;

use super::world::{Truth, World, better, non_inferior, shares, worse};

#[test]
fn before_burn_in_two_ratios_are_all_that_is_shown() {
    let mut world = World::new();
    let report = world.go(
        0.015,
        Truth {
            lists: 35.0,
            ..better()
        },
    );
    let arm = arm(&report);
    assert_eq!(state(&report), State::Collecting);
    assert!(reason(&report).starts_with("users in "), "{}", reason(&report));
    let metric = &arm.metrics["hit_rate"];
    assert!(metric.control.is_some() && metric.arm.is_some());
    assert_eq!(
        [
            metric.lift,
            metric.p,
            metric.p_adjusted,
            metric.p_harm,
            metric.information
        ],
        [None; 5]
    );
    assert_eq!((metric.interval, metric.per_user), (None, None));
    assert_eq!(world.kept.arms["neural"].metrics.len(), 0);
}

#[test]
fn tau_is_frozen_at_the_first_look_after_burn_in() {
    let mut world = World::new();
    world.go(1.0, Truth::default());
    let tau = |world: &World| {
        world.kept.arms["neural"].metrics["hit_rate"]
            .tau
            .expect("burn-in is done")
    };
    let first = tau(&world);
    assert!((first / (0.05 * 0.25) - 1.0).abs() < 0.02, "{first}");
    world.go(
        3.0,
        Truth {
            rate: 0.6,
            ..better()
        },
    );
    assert_eq!(tau(&world), first);
}

#[test]
fn a_better_arm_wins_at_the_first_decision_look_and_stays_so_until_the_next() {
    let mut world = World::new();
    assert_eq!(state(&world.go(6.0, better())), State::NoDecision);
    assert_eq!(reason(&world.look(0.1)), "6.1 of 7 days");
    let report = world.go(1.0, better());
    assert_eq!(state(&report), State::Win);
    let metric = metric(&report);
    assert_eq!(metric.role, Role::Primary);
    assert!(metric.p_adjusted.expect("it is tested") <= 0.05);
    assert!(metric.interval.expect("it is tested").lower > 0.0);
    assert!(metric.information.expect("it is tested") > 1.0);
    assert_eq!(state(&world.go(0.5, worse())), State::Win);
}

#[test]
fn a_worse_arm_is_harm_at_once() {
    let mut world = World::new();
    let report = world.go(1.0, worse());
    assert_eq!(state(&report), State::Harm);
    assert!(
        reason(&report).starts_with("hit ratio is worse"),
        "{}",
        reason(&report)
    );
    // It is never undone.
    assert_eq!(state(&world.go(20.0, better())), State::Harm);
}

#[test]
fn an_arm_that_gets_no_click_leaves_burn_in_and_is_harm() {
    let mut world = World::new();
    let report = world.go(
        1.0,
        Truth {
            rate: 0.0,
            ..better()
        },
    );
    assert_eq!(state(&report), State::Harm);
}

#[test]
fn lower_is_better_turns_win_and_harm_around_and_leaves_the_lift() {
    let misses = |settings: &mut abgauge::statistics::Settings| {
        settings.primary = vec!["miss_rate".to_owned()];
        settings.lower_is_better = ["miss_rate".to_owned()].into();
    };
    let report = World::new().with(misses).go(7.0, better());
    assert_eq!(state(&report), State::Win);
    assert!(arm(&report).metrics["miss_rate"].lift.expect("it is shown") < 0.0);
    assert_eq!(state(&World::new().with(misses).go(1.0, worse())), State::Harm);
}

#[test]
fn arms_that_are_alike_have_no_effect_or_are_not_inferior() {
    let same = Truth::default();
    let wide = |settings: &mut abgauge::statistics::Settings| settings.mde = 0.1;
    assert_eq!(state(&World::new().with(wide).go(7.0, same)), State::NoEffect);
    assert_eq!(
        state(&World::new().with(wide).with(non_inferior).go(7.0, same)),
        State::Win
    );
}

#[test]
fn a_guardrail_that_is_still_open_holds_a_win_back() {
    let guarded = |settings: &mut abgauge::statistics::Settings| {
        settings.guardrails = [(LISTS_PER_USER.to_owned(), 0.0001)].into();
    };
    let report = World::new().with(guarded).go(7.0, better());
    assert_eq!(state(&report), State::NoDecision);
    assert_eq!(reason(&report), "the guardrail lists per user is still open");
}

#[test]
fn the_planned_end_is_tested_once_and_its_lift_and_interval_stay() {
    let mut world = World::new().with(|settings| settings.planned_days = Some(10.0));
    let before = world.go(
        9.0,
        Truth {
            rate: 0.2525,
            ..better()
        },
    );
    assert_eq!(world.kept.arms["neural"].metrics["hit_rate"].planned_end, None);
    let at_end = world.go(
        1.0,
        Truth {
            rate: 0.2525,
            ..better()
        },
    );
    let end = world.kept.arms["neural"].metrics["hit_rate"]
        .planned_end
        .expect("it was the planned look");
    assert_eq!(metric(&at_end).interval, end.lift);
    assert!(width(metric(&at_end)) < width(metric(&before)));
    let after = world.go(
        1.0,
        Truth {
            rate: 0.4,
            ..better()
        },
    );
    assert_eq!(metric(&after).interval, end.lift);
    // The lift that it lies around stays with it, though the arm's value goes on.
    assert!(metric(&after).arm > metric(&at_end).arm);
    assert_eq!(metric(&after).lift, metric(&at_end).lift);
    let [per_user, at_end_per_user] = [&after, &at_end].map(|report| metric(report).per_user);
    assert_eq!(per_user, at_end_per_user);
    assert!(per_user.is_some());
    assert_eq!(before.notes, Vec::<&str>::new());
    assert_eq!([&at_end.notes, &after.notes].map(Vec::len), [1, 1]);
    assert_eq!(
        world.kept.arms["neural"].metrics["hit_rate"].planned_end,
        Some(end)
    );
    assert!(metric(&after).p <= metric(&at_end).p);
}

#[test]
fn a_planned_end_before_burn_in_tests_nothing_then_or_later() {
    let mut world = World::new().with(|settings| settings.planned_days = Some(0.01));
    let few = Truth {
        lists: 35.0,
        ..better()
    };
    assert_eq!(state(&world.go(0.015, few)), State::Collecting);
    let report = world.go(2.0, Truth::default());
    let kept = &world.kept.arms["neural"].metrics["hit_rate"];
    assert_eq!(kept.planned_end, None);
    let of_sequence = (-kept.max_surprise).exp();
    assert_eq!(metric(&report).p, Some((of_sequence / 0.2).min(1.0)));
}

#[test]
fn the_strict_interval_is_wider_and_its_p_larger() {
    let strict = |settings: &mut abgauge::statistics::Settings| settings.validity = Validity::Strict;
    let truth = Truth {
        rate: 0.27,
        ..better()
    };
    let [plain, strict] = [World::new(), World::new().with(strict)].map(|mut world| world.go(2.0, truth));
    assert!(width(metric(&strict)) > 1.3 * width(metric(&plain)));
    assert!(metric(&strict).p > metric(&plain).p);
    assert_eq!(metric(&strict).p_harm, metric(&plain).p_harm);
}

#[test]
fn users_that_do_not_follow_the_shares_make_it_invalid() {
    let report = World::new().go(
        7.0,
        Truth {
            users: 700.0,
            ..better()
        },
    );
    assert_eq!(state(&report), State::InvalidSrm);
    let requests =
        |settings: &mut abgauge::statistics::Settings| settings.unit = abgauge::statistics::Unit::Request;
    let report = World::new().with(requests).go(
        7.0,
        Truth {
            users: 700.0,
            ..better()
        },
    );
    assert_eq!((report.srm_p, report.multi_arm), (None, None));
    assert_eq!(state(&report), State::Win);
}

#[test]
fn users_in_two_arms_make_it_invalid() {
    let mut world = World::new();
    world.totals.multi_arm_users = Some(57.0);
    let report = world.go(7.0, better());
    assert_eq!(state(&report), State::InvalidMultiArm);
    assert_eq!(reason(&report), "57 of 5600 users were seen in two arms");
}

#[test]
fn an_arm_that_changes_how_many_lists_users_get_is_invalid() {
    let mut world = World::new();
    let report = world.go(
        7.0,
        Truth {
            lists: 52.0,
            ..better()
        },
    );
    assert_eq!(state(&report), State::InvalidListRatio);
    let ratio = arm(&report).list_ratio.expect("shares are there");
    let interval = ratio.interval.expect("it is finite");
    assert!(interval.lower < ratio.value && ratio.value < interval.upper && interval.lower > 1.0);
    assert!((ratio.value - 1.3).abs() < 0.05);
    // Per user, the arm has 1.3 · 1.2 times the hits.
    let per_user = metric(&report).per_user.expect("shares are there");
    assert!((per_user.lift - 0.56).abs() < 0.1, "{per_user:?}");
    assert_eq!(arm(&report).metrics[HITS_PER_USER].lift, Some(per_user.lift));
}

#[test]
fn without_shares_all_is_tested_and_nothing_decided() {
    let mut world = World::new().with(|settings| settings.shares.clear());
    world.totals.epochs[0].shares.clear();
    let report = world.go(7.0, better());
    assert_eq!(
        (state(&report), reason(&report)),
        (State::NoDecision, "no shares")
    );
    assert!(metric(&report).p.is_some() && metric(&report).per_user.is_none());
    assert_eq!((report.srm_p, arm(&report).list_ratio), (None, None));
    assert!(!arm(&report).metrics.contains_key(LISTS_PER_USER));
}

#[test]
fn an_arm_without_a_share_is_shown_and_not_tested() {
    let mut world = World::new();
    let arms = [
        ("base", Truth::default()),
        ("neural", better()),
        ("extra", better()),
    ];
    let report = world.go_with(7.0, &arms);
    let extra = &report.arms["extra"];
    assert_eq!(extra.decision, None);
    let metric = &extra.metrics["hit_rate"];
    assert!(metric.lift.is_some() && metric.interval.is_some());
    assert_eq!([metric.p, metric.p_adjusted, metric.p_harm], [None; 3]);
    assert_eq!(state(&report), State::Win);
}

#[test]
fn holm_counts_arms_that_still_collect() {
    let mut world = World::new().with(|settings| {
        settings.shares = shares(&[("base", 0.4), ("neural", 0.4), ("late", 0.2)]);
    });
    let report = world.go(
        3.0,
        Truth {
            rate: 0.26,
            ..better()
        },
    );
    let metric = metric(&report);
    let p = metric.p.expect("it is tested");
    assert!(p < 0.5 && p > 0.0, "{p}");
    assert_eq!(metric.p_adjusted, Some(2.0 * p));
    assert_eq!(
        report.arms["late"]
            .decision
            .as_ref()
            .map(|decision| decision.state),
        Some(State::Collecting)
    );
}

#[test]
fn guardrails_are_not_corrected_and_other_metrics_by_the_evidence_of_now() {
    let mut world = World::new().with(|settings| {
        settings.guardrails = [(HITS_PER_USER.to_owned(), 0.5)].into();
    });
    let report = world.go(2.0, better());
    let guardrail = &arm(&report).metrics[HITS_PER_USER];
    assert_eq!(
        (guardrail.role, guardrail.p_adjusted),
        (Role::Guardrail, guardrail.p)
    );
    let secondary = |report: &Report| arm(report).metrics["miss_rate"];
    let before = secondary(&report);
    assert_eq!(before.role, Role::Secondary);
    assert!(
        before.p < before.p_adjusted && before.p_adjusted < Some(0.05),
        "{before:?}"
    );
    // What the arm had won is lost again: the running p remembers, e-BH does not.
    let after = secondary(&world.go(2.0, worse()));
    assert_eq!((after.p, after.p_adjusted), (before.p, Some(1.0)));
}

#[test]
fn under_sticky_assignment_epochs_after_a_change_of_shares_are_left_out() {
    let ramp = |sticky: bool| {
        let mut world = World::new().with(|settings| settings.sticky = sticky);
        world.go(3.0, Truth::default());
        let shares = shares(&[("base", 0.2), ("neural", 0.8)]);
        world.totals.epochs.push(Epoch {
            shares,
            ..Epoch::default()
        });
        world.go(
            3.0,
            Truth {
                users: 1600.0,
                ..worse()
            },
        )
    };
    let sticky = ramp(true);
    assert_eq!(sticky.notes, [STICKY_NOTE]);
    assert_eq!(state(&sticky), State::NoDecision);
    let both = ramp(false);
    assert!(both.notes.is_empty());
    assert!(metric(&both).lift < metric(&sticky).lift);
}

#[test]
fn the_mixture_is_as_wide_as_the_smallest_effect_that_matters() {
    let (mde, list_ratio_tau) = (0.08, 0.03);
    let mut world = World::new().with(|settings| settings.mde = mde);
    let report = world.go(
        1.0,
        Truth {
            rate: 0.26,
            lists: 42.0,
            ..better()
        },
    );
    let comparison = compared(&world.totals);
    let lists = per_user(&[counts(&world.totals)], EpochWeights::Overlap).expect("it is defined");
    let p = |effect: &Effect, tau| {
        (-sequence::ln_e_now(effect, tau).expect("it is finite"))
            .exp()
            .min(1.0)
    };
    let interval =
        |effect: &Effect, tau| Interval::around(effect.value, sequence::half_width(effect, tau, 0.05));

    // Of a difference τ is mde times the rate of both arms together; of a lift, and of a logarithm, it is mde.
    let metric = metric(&report);
    let [difference, lift] =
        [comparison.difference, comparison.lift].map(|effect| effect.expect("it is spread"));
    let tau = mde * comparison.pooled;
    assert_eq!(metric.p, Some(p(&difference, tau)));
    assert_eq!(metric.interval, interval(&lift, mde));
    let x = tau * tau / difference.spread.variance;
    let information = metric.information.expect("it is tested");
    assert!(
        (information / (x / 13.107_63) - 1.0).abs() < 1e-6,
        "{information} {x}"
    );
    let per_user = arm(&report).metrics[LISTS_PER_USER];
    assert_eq!(per_user.p, Some(p(&lists, mde)));
    assert_eq!(
        per_user.interval,
        interval(&lists, mde).and_then(Interval::exp_m1)
    );
    // The check of shares is made for 3%, whatever matters in the metrics.
    let ratio = arm(&report).list_ratio.expect("shares are there");
    assert_eq!(ratio.p, p(&lists, list_ratio_tau));
    let bounds = interval(&lists, list_ratio_tau).and_then(Interval::exp_m1);
    assert_eq!(ratio.interval, bounds.map(|bounds| bounds.shifted(1.0)));
    let shown = [metric.p, per_user.p, Some(ratio.p)];
    assert!(
        shown.iter().all(|p| p.is_some_and(|p| p > 0.0 && p < 1.0)),
        "{shown:?}"
    );
}

#[test]
fn one_look_is_the_t_test_of_the_whole() {
    let mut world = World::new();
    world.go(
        0.2,
        Truth {
            rate: 0.26,
            ..better()
        },
    );
    let report = one_look(&world.settings, &world.totals, world.time());
    let comparison = compared(&world.totals);
    let [difference, lift] =
        [comparison.difference, comparison.lift].map(|effect| effect.expect("it is spread"));
    let metric = metric(&report);
    assert_eq!(metric.p, Some(difference.p_at_one_look()));
    assert_eq!(metric.interval, lift.interval_at_one_look(0.05));
    assert_eq!(metric.lift, Some(lift.value));
    let ratio = arm(&report)
        .list_ratio
        .expect("shares are there")
        .interval
        .expect("it is finite");
    let planned = World::new()
        .with(|settings| settings.planned_days = Some(1.0))
        .settings;
    assert_eq!(one_look(&planned, &world.totals, world.time()).arms, report.arms);
    assert!(ratio.lower < 1.0 && ratio.upper > 1.0);
    // Of both sides of harm one is p/2.
    let p = difference.p_at_one_look();
    let harm = metric.p_harm.expect("it is tested");
    assert!((harm - (1.0 - p / 2.0)).abs() < 1e-9, "{harm} {p}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn p_never_rises_and_all_that_is_shown_is_a_number(
        seed in any::<u64>(),
        rates in prop::collection::vec((0.0_f64..0.6, 0.0_f64..60.0), 2..8),
        strict in any::<bool>(),
        planned in prop::option::of(1.0_f64..8.0),
    ) {
        let mut world = World::seeded(seed).with(|settings| {
            settings.planned_days = planned;
            settings.validity = if strict { Validity::Strict } else { Validity::Sequence };
        });
        let mut last = [1.0; 2];
        for (rate, lists) in rates {
            let report = world.go(1.0, Truth { rate, lists, ..better() });
            check_numbers(&report);
            let Some(metric) = arm(&report).metrics.get("hit_rate") else { continue };
            for (last, now) in last.iter_mut().zip([metric.p, metric.p_harm]) {
                let now = now.unwrap_or(*last);
                prop_assert!((0.0..=*last).contains(&now), "{now} after {last}");
                *last = now;
            }
        }
        check_numbers(&one_look(&world.settings, &world.totals, world.time()));
    }
}

/// No text that a number has when it is none.
fn check_numbers(report: &Report) {
    let text = format!("{report:?}");
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    assert!(!words.any(|word| word == "NaN" || word == "inf"), "{text}");
}

fn compared(totals: &Totals) -> abgauge::statistics::Comparison {
    let sums = |arm: &str| {
        let arm = &totals.epochs[0].arms[arm];
        let terms = &arm.metrics["hit_rate"];
        RatioSums {
            lists: &arm.lists,
            numerators: &terms.numerators,
            denominators: &terms.denominators,
        }
    };
    let pair = ArmPair {
        arm: sums("neural"),
        control: sums("base"),
    };
    compare(&[pair], EpochWeights::Overlap).expect("it is defined")
}

/// Lists, at equal shares.
fn counts(totals: &Totals) -> Counts<'_> {
    let count = |arm: &str| {
        let lists = &totals.epochs[0].arms[arm].lists;
        Count {
            lists,
            counts: lists,
            share: 0.5,
        }
    };
    Counts {
        arm: count("neural"),
        control: count("base"),
    }
}

fn arm(report: &Report) -> &ArmReport {
    &report.arms["neural"]
}

fn metric(report: &Report) -> &MetricReport {
    &arm(report).metrics["hit_rate"]
}

fn state(report: &Report) -> State {
    arm(report).decision.as_ref().expect("it is tested").state
}

fn reason(report: &Report) -> &str {
    &arm(report).decision.as_ref().expect("it is tested").reason
}

fn width(metric: &MetricReport) -> f64 {
    let interval = metric.interval.expect("it is tested");
    interval.upper - interval.lower
}
