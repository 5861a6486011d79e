//! An experiment from look to look: kept state, reports and decisions.

use abgauge_core::statistics::per_user::{Count, HITS_PER_USER, LISTS_PER_USER, UserCounts, per_user};
use abgauge_core::statistics::{
    ArmPair, ArmReport, ArmState, ComparisonReport, DecidedLook, DecidedMetric, Effect, Epoch, EpochWeights,
    GuardrailState, Interval, MetricReport, MetricRole, RatioSums, STICKY_NOTE, Size, Totals, Validity,
    compare, one_look, sequence,
};
use abgauge_core::verdict::{ComparedLook, of_look};
use proptest::prelude::*;

use super::world::{Truth, World, better, non_inferior, shares, worse};

#[test]
fn only_the_two_ratios_are_shown_before_burn_in() {
    let mut world = World::new();
    let report = world.go(
        0.015,
        Truth {
            lists: 35.0,
            ..better()
        },
    );
    let arm = arm(&report);
    assert_eq!(state(&report), ArmState::Collecting);
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
    assert_eq!(metric.absolute, None);
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
fn a_better_arm_wins_at_the_first_decision_look_and_keeps_the_win_until_the_next() {
    let mut world = World::new();
    assert_eq!(state(&world.go(6.0, better())), ArmState::NoDecision);
    assert_eq!(reason(&world.look(0.1)), "6.1 of 7 days");
    let report = world.go(1.0, better());
    assert_eq!(state(&report), ArmState::Win);
    let metric = metric(&report);
    assert_eq!(metric.role, MetricRole::Primary);
    assert!(metric.p_adjusted.expect("it is tested") <= 0.05);
    assert!(metric.interval.expect("it is tested").lower > 0.0);
    assert!(metric.information.expect("it is tested") > 1.0);
    assert_eq!(state(&world.go(0.5, worse())), ArmState::Win);
}

#[test]
fn a_worse_arm_is_harm_at_once() {
    let mut world = World::new();
    let report = world.go(1.0, worse());
    assert_eq!(state(&report), ArmState::Harm);
    assert!(
        reason(&report)
            .starts_with("hit ratio is worse by the one-sided test of harm, p of harm < 0.001, since day 1"),
        "{}",
        reason(&report)
    );
    // Harm is never undone.
    assert_eq!(state(&world.go(20.0, better())), ArmState::Harm);
}

#[test]
fn an_arm_without_clicks_leaves_burn_in_and_is_harm() {
    let mut world = World::new();
    let report = world.go(
        1.0,
        Truth {
            rate: 0.0,
            ..better()
        },
    );
    assert_eq!(state(&report), ArmState::Harm);
}

#[test]
fn lower_is_better_swaps_win_and_harm_but_keeps_the_lift() {
    let misses = |settings: &mut abgauge_core::statistics::Settings| {
        settings.primary = vec!["miss_rate".to_owned()];
        settings.lower_is_better = ["miss_rate".to_owned()].into();
    };
    let report = World::new().with(misses).go(7.0, better());
    assert_eq!(state(&report), ArmState::Win);
    assert!(arm(&report).metrics["miss_rate"].lift.expect("it is shown") < 0.0);
    assert_eq!(state(&World::new().with(misses).go(1.0, worse())), ArmState::Harm);
}

#[test]
fn equal_arms_have_no_effect_or_are_not_inferior() {
    let same = Truth::default();
    let wide = |settings: &mut abgauge_core::statistics::Settings| settings.mde = 0.1;
    assert_eq!(state(&World::new().with(wide).go(7.0, same)), ArmState::NoEffect);
    assert_eq!(
        state(&World::new().with(wide).with(non_inferior).go(7.0, same)),
        ArmState::Win
    );
}

#[test]
fn an_open_guardrail_holds_back_a_win() {
    let guarded = |settings: &mut abgauge_core::statistics::Settings| {
        settings.guardrails = [(LISTS_PER_USER.to_owned(), 0.0001)].into();
    };
    let mut world = World::new().with(guarded);
    let report = world.go(7.0, better());
    assert_eq!(state(&report), ArmState::NoDecision);
    assert_eq!(
        reason(&report),
        "hit ratio is better, but the guardrail lists per assigned user is still open"
    );
    let guardrail = arm(&report).metrics[LISTS_PER_USER].guardrail.expect("it is one");
    assert_eq!(
        (guardrail.margin, guardrail.state),
        (0.0001, GuardrailState::NotYet)
    );
    assert!(guardrail.bound.expect("it has an interval") < -0.0001);
    let waiting = arm(&report).waiting.clone().expect("it waits");
    assert_eq!(
        (waiting.min_days, waiting.guardrails),
        (None, vec![LISTS_PER_USER.to_owned()])
    );
    // Between two decision looks, the reason of the last one stays.
    let report = world.look(0.9);
    assert_eq!(
        reason(&report),
        "hit ratio is better, but the guardrail lists per assigned user is still open on day 7"
    );
}

/// Sets an mde so small that no interval of a lift fits within it.
fn narrow(settings: &mut abgauge_core::statistics::Settings) {
    settings.mde = 0.001;
}

/// The current decision of an arm.
fn decided(world: &World) -> &DecidedLook {
    world.kept.arms["neural"]
        .decided
        .as_ref()
        .expect("there was a decision look")
}

fn decision(report: &ComparisonReport) -> DecidedMetric {
    metric(report).decision.expect("there was a decision look").metric
}

#[test]
fn the_planned_look_gets_most_of_alpha_and_its_decision_is_kept() {
    let mut world = World::new()
        .with(narrow)
        .with(|settings| settings.planned_days = Some(10.0));
    let small = Truth {
        rate: 0.2575,
        ..better()
    };
    assert_eq!(state(&world.go(7.0, small)), ArmState::NoDecision, "α/5 · w_1");
    world.go(2.0, small);
    let at_end = world.go(1.0, small);
    assert_eq!(state(&at_end), ArmState::Win);
    assert_eq!(decided(&world).at.map(|at| (at.day, at.k)), Some((10, None)));
    let interval = decision(&at_end).interval.expect("it is finite");
    let plain = metric(&at_end).interval_at_one_look.expect("it is finite");
    let stretched = (interval.upper - interval.lower) / (plain.upper - plain.lower);
    // t at 0.8 α over t at α: 2.064/1.969 with 255 degrees.
    assert!((stretched - 1.048).abs() < 1e-3, "{stretched}");
    // The band changes from look to look, and the decision does not.
    let after = world.go(4.0, Truth::default());
    assert_ne!(metric(&after).interval, metric(&at_end).interval);
    assert_eq!(decision(&after), decision(&at_end));
    assert_eq!(state(&after), ArmState::Win, "the look of day 14 decides nothing");
    assert_eq!(reason(&after), reason(&at_end));
}

#[test]
fn a_planned_look_before_burn_in_decides_nothing() {
    let mut world = World::new().with(|settings| settings.planned_days = Some(0.01));
    let few = Truth {
        lists: 35.0,
        ..better()
    };
    assert_eq!(state(&world.go(0.015, few)), ArmState::Collecting);
    assert_eq!(state(&world.go(2.0, Truth::default())), ArmState::NoDecision);
    assert!(decided(&world).metrics.is_empty());
}

/// The earlier rule paired the smallest p of any look with the sign of the last one: this was a loss with p < 0.0001.
#[test]
fn an_effect_that_changes_sign_is_decided_by_the_average_of_the_week() {
    for seed in 0..10 {
        let mut world = World::seeded(seed);
        let first = Truth {
            rate: 0.25 * 1.12,
            ..better()
        };
        assert_eq!(state(&world.go(2.0, first)), ArmState::NoDecision);
        let p = metric(&world.look(0.1)).p.expect("it is tested");
        assert!(p < 0.0001, "the running p: {p}");
        let second = Truth {
            rate: 0.25 * (1.0 - 0.048),
            ..better()
        };
        let report = world.go(4.9, second);
        let at_decision = decision(&report);
        if matches!(state(&report), ArmState::Win | ArmState::Loss) {
            let interval = at_decision.interval.expect("it is finite");
            assert!(
                interval.lower > 0.0 || interval.upper < 0.0,
                "{seed}: {interval:?}"
            );
        }
    }
}

#[test]
fn a_decision_is_kept_until_a_later_look_decides_and_a_note_marks_it_open_again() {
    let mut world = World::new().with(narrow);
    let report = world.go(7.0, better());
    assert_eq!(state(&report), ArmState::Win);
    assert!(
        reason(&report).ends_with(", decided on day 7"),
        "{}",
        reason(&report)
    );
    assert_eq!(
        decided(&world).at.map(|at| (at.look, at.day, at.k)),
        Some((1, 7, Some(1)))
    );
    // Two weeks without the effect bring the average near 0.
    let back = Truth {
        rate: 0.225,
        ..better()
    };
    world.go(6.9, back);
    let report = world.go(7.1, back);
    assert_eq!(state(&report), ArmState::Win, "{}", reason(&report));
    let notes = &arm(&report).notes;
    assert_eq!(
        notes[..],
        ["since the decision of day 7 the interval of hit ratio has come to include 0"]
    );
    assert!(
        reason(&report).starts_with("hit ratio was better, "),
        "{}",
        reason(&report)
    );
    // Later the arm is worse on average.
    for _ in 0..3 {
        world.go(7.0, worse());
    }
    let report = world.look(0.1);
    assert!(
        matches!(state(&report), ArmState::Loss | ArmState::Harm),
        "{report:?}"
    );
}

#[test]
fn a_lost_arm_was_worse_once_its_interval_includes_zero_again() {
    let mut world = World::new().with(narrow);
    world.go(7.0, better());
    let arm = world.kept.arms.get_mut("neural").expect("it is known");
    let decided = arm.decided.as_mut().expect("it was decided");
    decided.state = ArmState::Loss;
    decided.reason = "hit ratio is worse, p = 0.010".to_owned();
    let back = Truth {
        rate: 0.225,
        ..better()
    };
    world.go(6.9, back);
    let report = world.go(7.1, back);
    assert_eq!(state(&report), ArmState::Loss);
    assert_eq!(
        reason(&report),
        "hit ratio was worse, p = 0.010, decided on day 7; since then its interval has come to include 0"
    );
}

#[test]
fn a_decision_holds_since_the_first_look_with_its_state() {
    let mut world = World::new();
    let since = |world: &World| decided(world).at.map(|at| (at.since_day, at.day));
    assert_eq!(state(&world.go(7.0, better())), ArmState::Win);
    assert_eq!(since(&world), Some((7, 7)));
    let report = world.go(7.0, better());
    assert_eq!(state(&report), ArmState::Win);
    assert_eq!(since(&world), Some((7, 14)));
    assert!(
        reason(&report).ends_with(", since day 7, last confirmed on day 14"),
        "{}",
        reason(&report)
    );
    let later = world.look(0.1);
    assert_eq!(reason(&later), reason(&report), "between two decision looks");
    let decision = metric(&later).decision.expect("it was decided");
    assert_eq!(decision.at.as_of_ms - decision.at.since_ms, 7 * 86_400_000);
    // A failed check at a decision look ends the decision, so the next one starts a new period.
    world.totals.multi_arm_users = Some(10_000.0);
    assert_eq!(state(&world.look(6.9)), ArmState::InvalidMultiArm);
    world.totals.multi_arm_users = Some(0.0);
    assert_eq!(state(&world.go(7.0, better())), ArmState::Win);
    assert_eq!(since(&world), Some((28, 28)));
}

#[test]
fn a_check_that_fails_at_a_decision_look_withdraws_the_decision() {
    let mut world = World::new();
    assert_eq!(state(&world.go(7.0, better())), ArmState::Win);
    world.totals.multi_arm_users = Some(10_000.0);
    assert_eq!(state(&world.look(7.0)), ArmState::InvalidMultiArm);
    world.totals.multi_arm_users = Some(0.0);
    let report = world.look(0.1);
    assert_eq!(
        (state(&report), reason(&report)),
        (
            ArmState::NoDecision,
            "10000 of 5600 users were seen in two arms on day 14"
        )
    );
}

#[test]
fn a_decision_of_the_earlier_rule_is_kept_by_name_until_the_next_decision_look() {
    let mut world = World::new().with(narrow);
    world.go(6.0, Truth::default());
    world.go(2.0, Truth::default());
    let arm = world.kept.arms.get_mut("neural").expect("it is known");
    arm.decided = Some(DecidedLook {
        state: ArmState::Loss,
        reason: String::new(),
        at: None,
        metrics: Default::default(),
    });
    let report = world.look(0.1);
    assert_eq!(state(&report), ArmState::Loss);
    assert!(
        reason(&report).contains("rule of an earlier version"),
        "{}",
        reason(&report)
    );
    assert_eq!(state(&world.go(5.9, Truth::default())), ArmState::NoDecision);
}

#[test]
fn with_few_days_every_look_decides_by_the_current_sequence() {
    let short = |settings: &mut abgauge_core::statistics::Settings| {
        settings.min_days = 1.0;
        settings.mde = 0.02;
    };
    let mut world = World::new().with(short);
    let report = world.go(2.0, better());
    assert_eq!(state(&report), ArmState::Win);
    assert_eq!(decision(&report).interval, metric(&report).interval);
    // The running p stays small, but not the p of this look.
    let report = world.go(
        2.0,
        Truth {
            rate: 0.2,
            ..better()
        },
    );
    assert!(metric(&report).p.expect("it is tested") < 0.001);
    let now = world.look(0.1);
    assert_eq!(state(&now), ArmState::Win, "it stands");
    assert_eq!(arm(&now).open_again.as_deref(), Some("hit_rate"));
}

#[test]
fn an_arm_waits_for_days_and_information_until_it_is_decided() {
    let slightly = Truth {
        rate: 0.252,
        ..Truth::default()
    };
    let mut world = World::new().with(|settings| settings.mde = 0.01);
    let first = world.go(1.0, slightly);
    assert_eq!(metric(&first).days_needed, None, "growth is not known yet");
    let report = world.go(2.0, slightly);
    let waiting = arm(&report).waiting.clone().expect("it waits");
    assert_eq!((waiting.days, waiting.min_days), (3.0, Some(7.0)));
    let metric = metric(&report);
    assert_eq!(
        (waiting.information, waiting.days_needed),
        (metric.information, metric.days_needed)
    );
    // Weekly decisions fall on whole weeks.
    let days = waiting.days_needed.expect("it grows");
    assert!(days >= 7.0 && days % 7.0 == 0.0, "{days}");
    let mut world = World::new();
    world.go(6.0, better());
    assert_eq!(arm(&world.go(1.0, better())).waiting, None, "it is decided");
}

/// Without the bound, "worse" would be shown next to an interval that includes 0.
#[test]
fn the_bound_of_harm_excludes_zero_before_the_interval_does() {
    let slightly = Truth {
        rate: 0.24,
        ..Truth::default()
    };
    let mut world = World::new();
    // After some days a look adds little, so it does not jump from one boundary past the other.
    let mut report = world.go(10.0, Truth::default());
    let mut n_looks = 0;
    while metric(&report).harm_since_ms.is_none() {
        assert_eq!(metric(&report).harm, None, "no harm has been shown");
        report = world.go(0.25, slightly);
        n_looks += 1;
        assert!(n_looks < 1_000, "{report:?}");
    }
    let harm = metric(&report).harm.expect("it is harm");
    assert!(harm.bound < 0.0 && harm.bound > -0.01, "{harm:?}");
    assert_eq!(harm.level, 0.95);
    let interval = metric(&report).interval.expect("it has one");
    assert!(!interval.excludes_zero(), "{interval:?}");
    let reason = reason(&report);
    assert!(
        reason.starts_with("hit ratio is probably worse by the one-sided test of harm, p of harm = 0.0"),
        "{reason}"
    );
    assert!(reason.ends_with("% worse (one-sided 95%)"), "{reason}");
}

#[test]
fn the_reason_of_harm_names_the_metric_of_the_sentence() {
    let mut world = World::new().with(|settings| {
        settings.guardrails = [(HITS_PER_USER.to_owned(), 0.01)].into();
    });
    let report = world.go(6.0, worse());
    let harmed = arm(&report)
        .metrics
        .values()
        .filter(|metric| metric.harm_since_ms.is_some());
    assert!(harmed.count() > 1, "{report:?}");
    let size = Size {
        lists: 1.0,
        users: None,
    };
    let headline = of_look(&ComparedLook {
        settings: &world.settings,
        report: &report,
        sizes: [("base", size), ("neural", size)].into(),
        is_one_epoch: true,
    });
    let (reason, sentence) = (reason(&report), headline.sentence(str::to_owned));
    assert!(
        reason.starts_with("hits per assigned user is worse by"),
        "{reason}"
    );
    assert!(sentence.contains(": hits per assigned user −"), "{sentence}");
}

#[test]
fn harm_names_its_first_day_and_notes_if_the_interval_has_turned() {
    let mut world = World::new();
    world.go(1.0, Truth::default());
    let report = world.go(2.0, worse());
    assert_eq!(state(&report), ArmState::Harm);
    assert!(reason(&report).ends_with(", since day 3"), "{}", reason(&report));
    let since = metric(&report).harm_since_ms.expect("it is harm");
    let report = world.go(17.0, better());
    assert_eq!(state(&report), ArmState::Harm);
    assert_eq!(metric(&report).harm_since_ms, Some(since));
    assert!(reason(&report).starts_with("hit ratio was worse by the one-sided test of harm, "));
    let expected = ", since day 3; its interval is now on the better side of 0";
    assert!(reason(&report).ends_with(expected), "{}", reason(&report));
}

#[test]
fn lists_without_a_user_are_noted_and_then_invalid_unless_requests_are_assigned() {
    let with = |share: f64| {
        let mut world = World::new();
        world.go(7.0, better());
        let arms = &mut world.totals.epochs[0].arms;
        let base = arms.get_mut("base").expect("it is there");
        base.lists_without_user = share * base.lists.iter().sum::<f64>();
        world
    };
    let notes = |share| arm(&with(share).look(0.1)).notes.clone();
    assert_eq!(notes(0.009), Vec::<String>::new());
    let expected = "5.0% of the lists of base have no user, so intervals are too narrow: send a user id with every list, let events.user_id name a \
         second field, or set unit = \"request\" if requests are assigned, not users";
    assert_eq!(notes(0.05)[..], [expected]);
    assert_eq!(state(&with(0.2).look(0.1)), ArmState::Win);
    assert_eq!(state(&with(0.21).look(0.1)), ArmState::InvalidUsers);
    assert!(shows_a_comparison(&with(0.2).look(0.1)));
    assert!(!shows_a_comparison(&with(0.21).look(0.1)));
    let requests = |settings: &mut abgauge_core::statistics::Settings| {
        settings.unit = abgauge_core::statistics::Unit::Request
    };
    assert_eq!(state(&with(0.5).with(requests).look(0.1)), ArmState::Win);
}

/// Returns whether the primary has any number that compares it with the control. The values of both arms must be there.
fn shows_a_comparison(report: &ComparisonReport) -> bool {
    let metric = metric(report);
    assert!(metric.control.is_some() && metric.arm.is_some());
    let numbers = [metric.lift, metric.p, metric.p_adjusted, metric.p_harm];
    let intervals = [metric.interval, metric.interval_at_one_look];
    numbers.iter().any(Option::is_some)
        || intervals.iter().any(Option::is_some)
        || metric.absolute.is_some()
        || metric.per_user.is_some()
        || metric.decision.is_some()
}

/// Change of a world that makes a check fail.
type Break = fn(&mut World);

#[test]
fn a_decision_is_withheld_while_a_check_fails_or_the_arm_harms() {
    let breaks: [(ArmState, Break); 3] = [
        (ArmState::InvalidSrm, |world| {
            let arm = world.totals.epochs[0]
                .arms
                .get_mut("neural")
                .expect("it is there");
            arm.users = arm.users.map(|users| 2.0 * users);
        }),
        (ArmState::InvalidMultiArm, |world| {
            world.totals.multi_arm_users = Some(500.0)
        }),
        (ArmState::InvalidUsers, |world| {
            let arm = world.totals.epochs[0]
                .arms
                .get_mut("neural")
                .expect("it is there");
            arm.lists_without_user = 0.3 * arm.lists.iter().sum::<f64>();
        }),
    ];
    for (broken, do_break) in breaks {
        let mut world = World::new();
        let won = world.go(7.0, better());
        assert_eq!(state(&won), ArmState::Win);
        assert!(metric(&won).decision.is_some() && arm(&won).decided.is_some());
        do_break(&mut world);
        let report = world.look(0.1);
        assert_eq!(state(&report), broken);
        assert_eq!((metric(&report).decision, &arm(&report).decided), (None, &None));
        assert_eq!(arm(&report).open_again, None);
    }
    // A decision look with a failed check leaves no numbers for later.
    let mut world = World::new();
    world.totals.multi_arm_users = Some(500.0);
    assert_eq!(state(&world.go(7.0, better())), ArmState::InvalidMultiArm);
    world.totals.multi_arm_users = Some(0.0);
    let report = world.look(0.1);
    assert_eq!(
        (state(&report), metric(&report).decision),
        (ArmState::NoDecision, None)
    );
    // An arm that won its first week, and harms in the second.
    let mut world = World::new();
    let won = world.go(7.0, better());
    assert_eq!(state(&won), ArmState::Win);
    let report = world.go(
        6.0,
        Truth {
            rate: 0.15,
            ..better()
        },
    );
    assert_eq!(state(&report), ArmState::Harm);
    assert_eq!((metric(&report).decision, &arm(&report).decided), (None, &None));
}

#[test]
fn an_incomparable_arm_is_marked_without_shares_and_its_decision_returns_afterwards() {
    let mut world = World::new();
    let decided = metric(&world.go(7.0, better())).decision;
    assert!(decided.is_some());
    let lists_without_user = |world: &mut World, n: f64| {
        let arm = world.totals.epochs[0]
            .arms
            .get_mut("neural")
            .expect("it is there");
        arm.lists_without_user = n * arm.lists.iter().sum::<f64>();
    };
    lists_without_user(&mut world, 0.3);
    let report = world.look(0.1);
    assert_eq!(state(&report), ArmState::InvalidUsers);
    assert!(!shows_a_comparison(&report));
    assert_eq!(arm(&report).incomparable.as_deref(), Some(reason(&report)));
    lists_without_user(&mut world, 0.0);
    let report = world.look(0.1);
    assert_eq!(
        (state(&report), metric(&report).decision),
        (ArmState::Win, decided)
    );

    // A decision look in this state ends the decision, and keeps no number of it. The second week halves the share.
    lists_without_user(&mut world, 0.9);
    assert_eq!(state(&world.go(7.0, better())), ArmState::InvalidUsers);
    lists_without_user(&mut world, 0.0);
    let report = world.look(0.1);
    assert_eq!(
        (state(&report), metric(&report).decision),
        (ArmState::NoDecision, None)
    );

    lists_without_user(&mut world, 0.3);
    world.settings.shares.clear();
    world.totals.epochs[0].shares.clear();
    let report = world.look(0.1);
    assert_eq!(state(&report), ArmState::NoDecision);
    assert!(!shows_a_comparison(&report));
    let expected =
        "not comparable with base: 30% of the lists of an arm have no user, so intervals would be too narrow";
    assert!(
        arm(&report).notes.iter().any(|note| note == expected),
        "{:?}",
        arm(&report).notes
    );
}

#[test]
fn a_dominant_user_is_noted_and_invalidates_a_file() {
    let mut world = World::new();
    world.go(7.0, better());
    let arm = world.totals.epochs[0]
        .arms
        .get_mut("neural")
        .expect("it is there");
    let all: f64 = arm.lists.iter().sum();
    arm.top_user_lists = Some(all / 3.0);
    let one = one_look(&world.settings, &world.totals, world.time());
    assert_eq!(state(&one), ArmState::Win);
    let arm = world.totals.epochs[0]
        .arms
        .get_mut("neural")
        .expect("it is there");
    arm.top_user_lists = Some(0.34 * all);
    let one = one_look(&world.settings, &world.totals, world.time());
    assert_eq!(
        (state(&one), reason(&one)),
        (ArmState::InvalidUsers, "one user has 34% of the lists of an arm")
    );
    // A bucket as large as all others together.
    let arm = world.totals.epochs[0]
        .arms
        .get_mut("neural")
        .expect("it is there");
    let terms = arm.metrics.get_mut("hit_rate").expect("it is there");
    terms.numerators[0] += all;
    terms.denominators[0] += all;
    let one = one_look(&world.settings, &world.totals, world.time());
    let notes = &one.arms["neural"].notes;
    assert!(notes[0].ends_with("of the variance of hit ratio comes from one user or very few: filter crawlers, or set max_lists_per_user"), "{notes:?}");
}

#[test]
fn the_strict_interval_is_wider_and_its_p_larger() {
    let strict = |settings: &mut abgauge_core::statistics::Settings| settings.validity = Validity::Strict;
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
fn users_that_do_not_follow_the_shares_invalidate_the_experiment() {
    let report = World::new().go(
        7.0,
        Truth {
            users: 700.0,
            ..better()
        },
    );
    assert_eq!(state(&report), ArmState::InvalidSrm);
    let requests = |settings: &mut abgauge_core::statistics::Settings| {
        settings.unit = abgauge_core::statistics::Unit::Request
    };
    let report = World::new().with(requests).go(
        7.0,
        Truth {
            users: 700.0,
            ..better()
        },
    );
    assert_eq!((report.srm_p, report.multi_arm), (None, None));
    assert_eq!(state(&report), ArmState::Win);
}

#[test]
fn users_in_two_arms_invalidate_the_experiment() {
    let mut world = World::new();
    world.totals.multi_arm_users = Some(57.0);
    let report = world.go(7.0, better());
    assert_eq!(state(&report), ArmState::InvalidMultiArm);
    assert_eq!(reason(&report), "57 of 5600 users were seen in two arms");
}

#[test]
fn an_arm_that_changes_lists_per_user_is_invalid() {
    let mut world = World::new();
    let report = world.go(
        7.0,
        Truth {
            lists: 52.0,
            ..better()
        },
    );
    assert_eq!(state(&report), ArmState::InvalidListRatio);
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
fn without_shares_everything_is_tested_and_nothing_is_decided() {
    let mut world = World::new().with(|settings| settings.shares.clear());
    world.totals.epochs[0].shares.clear();
    let report = world.go(7.0, better());
    assert_eq!(
        (state(&report), reason(&report)),
        (ArmState::NoDecision, "no shares")
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
    assert_eq!(state(&report), ArmState::Win);
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
        Some(ArmState::Collecting)
    );
}

#[test]
fn guardrails_are_uncorrected_and_other_metrics_use_current_evidence() {
    let mut world = World::new().with(|settings| {
        settings.guardrails = [(HITS_PER_USER.to_owned(), 0.5)].into();
    });
    let report = world.go(2.0, better());
    let guardrail = &arm(&report).metrics[HITS_PER_USER];
    assert_eq!(
        (guardrail.role, guardrail.p_adjusted),
        (MetricRole::Guardrail, guardrail.p)
    );
    let secondary = |report: &ComparisonReport| arm(report).metrics["miss_rate"];
    let before = secondary(&report);
    assert_eq!(before.role, MetricRole::Secondary);
    assert!(
        before.p < before.p_adjusted && before.p_adjusted < Some(0.05),
        "{before:?}"
    );
    // The arm loses its gain again: the running p remembers it, e-BH does not.
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
    assert_eq!(state(&sticky), ArmState::NoDecision);
    let both = ramp(false);
    assert!(both.notes.is_empty());
    assert!(metric(&both).lift < metric(&sticky).lift);
}

#[test]
fn the_mixture_width_is_the_smallest_relevant_effect() {
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

    // For a difference, τ is mde times the rate of both arms together. For a lift or a logarithm it is mde.
    let metric = metric(&report);
    let [difference, lift] =
        [comparison.difference, comparison.lift].map(|effect| effect.expect("it is spread"));
    let tau = mde * comparison.pooled;
    assert_eq!(metric.p, Some(p(&difference, tau)));
    assert_eq!(metric.interval, interval(&lift, mde));
    let absolute = metric.absolute.expect("burn-in is done");
    assert_eq!(absolute.value, difference.value);
    assert_eq!(absolute.interval, interval(&difference, tau));
    let x = tau * tau / difference.spread.variance;
    let information = metric.information.expect("it is tested");
    assert!(
        (information / (x / 9.039_090_574) - 1.0).abs() < 1e-6,
        "{information} {x}"
    );
    let per_user = arm(&report).metrics[LISTS_PER_USER];
    assert_eq!(per_user.p, Some(p(&lists, mde)));
    assert_eq!(per_user.absolute, None, "it has no value of its own");
    assert_eq!(
        per_user.interval,
        interval(&lists, mde).and_then(Interval::exp_m1)
    );
    // The list ratio is tested with τ = 3%, whatever mde is.
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
fn one_look_equals_the_t_test_of_all_data() {
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
    let absolute = metric.absolute.expect("burn-in is done");
    assert_eq!(absolute.interval, difference.interval_at_one_look(0.05));
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
    // The one-sided p of harm would be p/2 if the arm were worse, so here it is 1 − p/2.
    let p = difference.p_at_one_look();
    let harm = metric.p_harm.expect("it is tested");
    assert!((harm - (1.0 - p / 2.0)).abs() < 1e-9, "{harm} {p}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn p_never_rises_and_every_result_is_finite(
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
            if let (Some(absolute), Some(p)) = (metric.absolute, metric.p) {
                prop_assert_eq!(Some(absolute.value), metric.arm.zip(metric.control).map(|(arm, control)| arm - control));
                // The interval and the p of the same look agree. The p shown may be from an earlier look.
                let excludes_zero = absolute.interval.is_some_and(Interval::excludes_zero);
                prop_assert!(!excludes_zero || p <= 0.05, "{p} {absolute:?}");
                prop_assert!(excludes_zero || p > 0.05 || p == last[0], "{p} {absolute:?}");
            }
            for (last, now) in last.iter_mut().zip([metric.p, metric.p_harm]) {
                let now = now.unwrap_or(*last);
                prop_assert!((0.0..=*last).contains(&now), "{now} after {last}");
                *last = now;
            }
        }
        check_numbers(&one_look(&world.settings, &world.totals, world.time()));
    }
}

/// Checks that the report contains no NaN and no infinity.
fn check_numbers(report: &ComparisonReport) {
    let text = format!("{report:?}");
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    assert!(!words.any(|word| word == "NaN" || word == "inf"), "{text}");
}

fn compared(totals: &Totals) -> abgauge_core::statistics::Comparison {
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

/// Counts of lists, at equal shares.
fn counts(totals: &Totals) -> UserCounts<'_> {
    let count = |arm: &str| {
        let lists = &totals.epochs[0].arms[arm].lists;
        Count {
            lists,
            counts: lists,
            share: 0.5,
        }
    };
    UserCounts {
        arm: count("neural"),
        control: count("base"),
    }
}

fn arm(report: &ComparisonReport) -> &ArmReport {
    &report.arms["neural"]
}

fn metric(report: &ComparisonReport) -> &MetricReport {
    &arm(report).metrics["hit_rate"]
}

fn state(report: &ComparisonReport) -> ArmState {
    arm(report).decision.as_ref().expect("it is tested").state
}

fn reason(report: &ComparisonReport) -> &str {
    &arm(report).decision.as_ref().expect("it is tested").reason
}

fn width(metric: &MetricReport) -> f64 {
    let interval = metric.interval.expect("it is tested");
    interval.upper - interval.lower
}
