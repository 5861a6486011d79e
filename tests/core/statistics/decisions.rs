//! The decision rules, row by row.

use std::collections::BTreeMap;

use abgauge_core::statistics::decision::{
    DecisionFacts, GuardrailFact, HarmFact, HarmNow, ListRatioFact, MultiArm, PrimaryFact,
};
use abgauge_core::statistics::power::PlannedTest;
use abgauge_core::statistics::spending::DecisionLook;
use abgauge_core::statistics::{
    ArmState, DecidedAt, DecidedLook, Effect, Goal, Spread, Validity, harm, multiple,
};
use serde_json::Value;

use super::vectors::{PLAIN, TRANSFORMED, block, decision_block, ends, entries, near, number, numbers, rows};

#[test]
fn the_first_rule_that_applies_decides() {
    let case = decision_block("decision");
    rows(&case["rows"]).iter().for_each(|row| check(&case, row));
}

/// The block is from before decisions were weekly. The change lies in the p and the interval that the rules get, not in the
/// states that follow from them: all states of the block still hold. `planned_end` has the p of both.
#[test]
fn states_follow_from_p_and_intervals_as_before() {
    let case = block("decision");
    rows(&case["rows"]).iter().for_each(|row| check(&case, row));
}

fn check(case: &Value, row: &Value) {
    let previous = previous(&row["in"]);
    let decision = facts(case, &row["in"], previous.as_ref()).decide();
    let verdict = decision.state.verdict();
    let found = serde_json::json!([decision.state.name(), verdict.name(), verdict.value()]);
    let expected = ["state", "result", "value"].map(|field| &row[field]);
    assert_eq!(
        found,
        serde_json::json!(expected),
        "{}: {decision:?}",
        row["case"]
    );
    assert!(!decision.reason.is_empty());
}

/// Makes a decision of day 7.
fn previous(given: &Value) -> Option<DecidedLook> {
    let state = ArmState::ALL
        .into_iter()
        .find(|state| Some(state.name()) == given["previous"].as_str())?;
    Some(DecidedLook {
        state,
        reason: "hit ratio@10 is better, p = 0.03".to_owned(),
        at: Some(DecidedAt {
            look: 1008,
            as_of_ms: 1_763_596_800_000,
            since_ms: 1_763_596_800_000,
            day: 7,
            since_day: 7,
            k: Some(1),
        }),
        metrics: BTreeMap::new(),
    })
}

fn facts<'a>(case: &Value, given: &Value, previous: Option<&'a DecidedLook>) -> DecisionFacts<'a> {
    let yes = |name: &str| given[name].as_bool().expect("yes or no");
    let harms = &given["harm"]["p"];
    let list_ratio = &given["list_ratio"];
    let facts = DecisionFacts {
        refused: given
            .get("refused")
            .map(|refused| ["share_arm", "share_control"].map(|side| number(&refused[side]))),
        has_shares: yes("shares"),
        srm_p: given["srm_p"].as_f64(),
        multi_arm: Some(MultiArm {
            in_two: number(&given["multi_arm_users"]),
            users: number(&given["users"]),
        }),
        without_user: given
            .get("without_user")
            .map(|without| ["share_arm", "share_control"].map(|side| number(&without[side]))),
        top_user: given.get("top_user").map(|top| number(&top["share"])),
        list_ratio: Some(ListRatioFact {
            g: number(&list_ratio["g"]),
            p: number(&list_ratio["p"]),
        }),
        list_ratio_margin: number(&case["list_ratio_margin"]),
        n_treatments: number(&list_ratio["arms"]) as usize - 1,
        alpha: number(&case["alpha"]),
        lacks: (!yes("burn_in")).then(|| "users in 131 of 220 buckets".to_owned()),
        harms: entries(harms)
            .map(|(metric, p)| HarmFact {
                metric: metric.clone(),
                p: number(p),
                since_day: Some(3),
                is_worse_now: true,
                now: HarmNow::Worse,
            })
            .collect(),
        is_decision_look: yes("decision_look"),
        wait: Some("3.2 of 7 days".to_owned()),
        goal: match given["goal"].as_str() {
            Some("superior") => Goal::Superior,
            Some("non_inferior") => Goal::NonInferior,
            other => panic!("{other:?} is no goal"),
        },
        primaries: entries(&given["primaries"]).map(primary).collect(),
        guardrails: entries(&given["guardrails"]).map(guardrail).collect(),
        previous,
    };
    assert_eq!(facts.harms.len() as f64, number(&given["harm"]["metrics"]));
    facts
}

fn primary((metric, given): (&String, &Value)) -> PrimaryFact {
    PrimaryFact {
        metric: metric.clone(),
        p: number(&given["p_holm"]),
        effect: number(&given["lift"]),
        lower: given["lower"].as_f64(),
        upper: given["upper"].as_f64(),
        mde: number(&given["mde"]),
        margin: number(&given["margin"]),
    }
}

fn guardrail((metric, given): (&String, &Value)) -> GuardrailFact {
    GuardrailFact {
        metric: metric.clone(),
        lower: given["lower"].as_f64(),
        margin: number(&given["margin"]),
    }
}

#[test]
fn a_decision_look_tests_at_its_share_of_alpha() {
    let case = decision_block("decision_p");
    let alpha = number(&case["alpha"]);
    let mut n_rows = 0;
    for family in rows(&case["families"]) {
        let yes = |name: &str| family[name].as_bool().expect("yes or no");
        let look = match yes("is_planned_look") {
            true => DecisionLook::PLANNED,
            false => DecisionLook::weekly(number(&family["k"]) as u32, yes("planned")),
        };
        near(look.weight, &family["weight"], PLAIN);
        let mut p = Vec::new();
        for row in rows(&family["rows"]) {
            let spread = Spread {
                variance: number(&row["variance"]),
                degrees: number(&row["degrees"]),
            };
            let effect = Effect {
                value: number(&row["value"]),
                spread,
                arms: [spread; 2],
            };
            near(effect.p_at_one_look(), &row["p_t"], TRANSFORMED);
            p.push(look.p(effect.p_at_one_look()));
            near(p[p.len() - 1], &row["p"], TRANSFORMED);
            ends(
                effect.interval_at_one_look(look.weight * alpha),
                &row["interval"],
                TRANSFORMED,
            );
            n_rows += 1;
        }
        for (adjusted, expected) in multiple::holm(&p).iter().zip(rows(&family["holm"])) {
            near(*adjusted, expected, TRANSFORMED);
        }
    }
    assert!(n_rows > 40, "{n_rows}");
}

#[test]
fn later_decision_looks_need_more() {
    let case = decision_block("needed_information");
    for row in rows(&case) {
        let plan = PlannedTest {
            validity: Validity::Sequence,
            look: DecisionLook::weekly(number(&row["k"]) as u32, false),
            alpha: number(&row["alpha"]),
            n_hypotheses: number(&row["hypotheses"]) as usize,
            n_guardrails: number(&row["guardrails"]) as usize,
        };
        near(plan.x(), &row["x"], TRANSFORMED);
    }
    assert_eq!(rows(&case).len(), 20);
}

#[test]
fn nondeciding_metrics_are_corrected_at_one_look_like_statsmodels() {
    let case = decision_block("benjamini_yekutieli");
    for family in rows(&case) {
        let found = multiple::benjamini_yekutieli(&numbers(&family["p"]));
        assert_eq!(found.len(), rows(&family["adjusted"]).len());
        for (adjusted, expected) in found.iter().zip(rows(&family["adjusted"])) {
            near(*adjusted, expected, PLAIN);
        }
    }
}

/// The boundary is where E reaches 1/α.
#[test]
fn harm_equals_the_one_sided_mixture_of_ville() {
    let case = decision_block("harm");
    for row in rows(&case) {
        let ln_e = harm::ln_e(number(&row["x"]), number(&row["z"]));
        near(ln_e, &row["ln_e"], 1e-12);
    }
    assert_eq!(rows(&case).len(), 21);
}
