//! The rule that decides, row by row.

use abgauge::statistics::Goal;
use abgauge::statistics::State;
use abgauge::statistics::decision::{Facts, GuardrailFact, HarmFact, ListRatioFact, MultiArm, PrimaryFact};
use serde_json::Value;

use super::vectors::{block, entries, number, rows};

#[test]
fn the_first_rule_that_applies_decides() {
    let case = block("decision");
    for row in rows(&case["rows"]) {
        let decision = facts(&case, &row["in"]).decide();
        assert_eq!(
            Some(decision.state.name()),
            row["state"].as_str(),
            "{}: {decision:?}",
            row["case"]
        );
        let verdict = decision.state.verdict();
        assert_eq!(Some(verdict.name()), row["result"].as_str(), "{}", row["case"]);
        assert_eq!(
            Some(i64::from(verdict.value())),
            row["value"].as_i64(),
            "{}",
            row["case"]
        );
        assert!(!decision.reason.is_empty());
    }
}

fn facts(case: &Value, given: &Value) -> Facts {
    let yes = |name: &str| given[name].as_bool().expect("yes or no");
    let harms = &given["harm"]["p"];
    let list_ratio = &given["list_ratio"];
    let facts = Facts {
        has_shares: yes("shares"),
        srm_p: given["srm_p"].as_f64(),
        multi_arm: Some(MultiArm {
            in_two: number(&given["multi_arm_users"]),
            users: number(&given["users"]),
        }),
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
        previous: State::ALL
            .into_iter()
            .find(|state| Some(state.name()) == given["previous"].as_str()),
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
