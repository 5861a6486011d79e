//! The rule that decides, row by row.

use std::collections::BTreeMap;

use abgauge::statistics::decision::{Facts, GuardrailFact, HarmFact, ListRatioFact, MultiArm, PrimaryFact};
use abgauge::statistics::{Decided, DecidedAt, Goal, State};
use serde_json::Value;

use super::vectors::{block, decision_block, entries, number, rows};

#[test]
fn the_first_rule_that_applies_decides() {
    let case = decision_block("decision");
    for row in rows(&case["rows"]) {
        check(&case, row, row["state"].as_str());
    }
}

/// The block of before the rule changed: what is shown with `p` there is the running p, and the interval is that of the sequence. Most
/// rows say the same; these do not.
#[test]
fn most_of_the_earlier_rule_still_holds() {
    let changed = BTreeMap::from(CHANGED);
    let case = block("decision");
    let mut found = 0;
    for row in rows(&case["rows"]) {
        let name = row["case"].as_str().expect("a name");
        let expected = changed.get(name).copied().or(row["state"].as_str());
        found += usize::from(changed.contains_key(name));
        check(&case, row, expected);
    }
    assert_eq!(found, CHANGED.len());
}

/// Rows of the earlier block, and their states now.
const CHANGED: [(&str, &str); 0] = [];

fn check(case: &Value, row: &Value, expected: Option<&str>) {
    let previous = previous(&row["in"]);
    let decision = facts(case, &row["in"], previous.as_ref()).decide();
    assert_eq!(
        Some(decision.state.name()),
        expected,
        "{}: {decision:?}",
        row["case"]
    );
    if expected == row["state"].as_str() {
        let verdict = decision.state.verdict();
        assert_eq!(Some(verdict.name()), row["result"].as_str(), "{}", row["case"]);
        let value = Some(i64::from(verdict.value()));
        assert_eq!(value, row["value"].as_i64(), "{}", row["case"]);
    }
    assert!(!decision.reason.is_empty());
}

/// A decision of day 7.
fn previous(given: &Value) -> Option<Decided> {
    let state = State::ALL
        .into_iter()
        .find(|state| Some(state.name()) == given["previous"].as_str())?;
    Some(Decided {
        state,
        reason: "hit ratio@10 is better, p = 0.03".to_owned(),
        at: Some(DecidedAt {
            look: 1008,
            as_of_ms: 1_763_596_800_000,
            day: 7,
            k: Some(1),
        }),
        metrics: BTreeMap::new(),
    })
}

fn facts<'a>(case: &Value, given: &Value, previous: Option<&'a Decided>) -> Facts<'a> {
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
                is_better_now: false,
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
