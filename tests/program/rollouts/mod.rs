//! Rollout controllers simulated from the manifests in deploy/. Argo Rollouts and Flagger ask a server for the verdict on an
//! arm over TLS. They promote the arm on a true gain, roll it back on harm, and hold it if users are not split as configured.
//!
//! ```text
//! lists of users ─▶ looks ─▶ Published ─▶ routes, TLS, tokens ◀── controller ◀── manifest
//! ```
//! It also tests the program itself with a webhook.

mod argo;
mod flagger;
mod program;
mod server;
mod world;

use argo::{Measurement, Run};
use flagger::Canary;
use server::Server;
use world::{Story, World};

use crate::support::https::NamedRequest;

/// A new arm with a fifth more clicks.
const GAIN: Story = Story {
    users_a_day: [1500, 1500],
    clicked: [0.30, 0.36],
};

/// A new arm with a fifth fewer clicks.
const HARM: Story = Story {
    clicked: [0.30, 0.24],
    ..GAIN
};

/// A better new arm that gets two fifths of the users instead of half.
const MISMATCH: Story = Story {
    users_a_day: [1800, 1200],
    ..GAIN
};

/// Measures once after each look, until there is a result or the story ends.
fn follow_by_argo(story: Story) -> (Run, Server) {
    let server = Server::start();
    let mut run = Run::of_the_manifests();
    assert_eq!(
        run.measure(&server),
        Measurement::Error,
        "no look has been taken yet"
    );
    for looked in World::new(story).looks() {
        server.show(looked);
        run.measure(&server);
        if run.result().is_some() {
            break;
        }
    }
    (run, server)
}

#[test]
fn argo_promotes_on_a_true_gain() {
    let (run, _server) = follow_by_argo(GAIN);
    assert_eq!(run.result(), Some(argo::Result::Successful), "{run:?}");
    let before = &run.measurements[1..run.measurements.len() - 1];
    assert!(
        before.contains(&Measurement::Inconclusive),
        "it was held before: {run:?}"
    );
    assert!(!before.contains(&Measurement::Failed), "{run:?}");
}

#[test]
fn argo_rolls_back_on_harm() {
    let (run, _server) = follow_by_argo(HARM);
    assert_eq!(run.result(), Some(argo::Result::Failed), "{run:?}");
    assert!(!run.measurements.contains(&Measurement::Successful), "{run:?}");
}

#[test]
fn argo_holds_on_a_mismatch_and_pauses_at_its_time_limit() {
    let (mut run, server) = follow_by_argo(MISMATCH);
    assert_eq!(run.result(), None, "{run:?}");
    assert_eq!(server.state(), "invalid(srm)");
    let is_held = |measurement: &Measurement| *measurement == Measurement::Inconclusive;
    assert!(run.measurements[1..].iter().all(is_held), "{run:?}");
    let last = *run.measurements.last().expect("it was asked");
    while run.result().is_none() {
        run.measurements.push(last);
        assert!(run.measurements.len() < 10_000, "it would be held for ever");
    }
    assert_eq!(run.result(), Some(argo::Result::Inconclusive));
    let days = run.measurements.len() as f64 * run.interval_minutes() / 1440.0;
    assert!((27.0..29.0).contains(&days), "{days} days");
}

/// After a restart the server answers 503 until it has read its log again. This must not count as a verdict.
#[test]
fn argo_waits_for_an_unready_server_but_not_forever() {
    let (mut run, server) = follow_by_argo(MISMATCH);
    server.wait_for("partition 3 of topic served");
    assert_eq!(run.measure(&server), Measurement::Error);
    assert_eq!(run.result(), None, "a restart takes its time");
    server.wait_for("");
    assert_eq!(run.measure(&server), Measurement::Inconclusive);
    let mut n_errors = 0;
    while run.result().is_none() {
        run.measurements.push(Measurement::Error);
        n_errors += 1;
    }
    assert_eq!(run.result(), Some(argo::Result::Error));
    assert!(n_errors as f64 * run.interval_minutes() > 60.0, "{n_errors}");
}

/// Argo accepts any text that is not JSON as success if the status is a success.
#[test]
fn only_a_verdict_is_answered_with_success() {
    let (run, server) = follow_by_argo(HARM);
    let url = run.url();
    let token = format!("Bearer {}", server::TOKEN);
    let without = url.replace("&arm=neural", "");
    for (url, headers, status) in [
        (url.clone(), vec![("Authorization", token.as_str())], 200),
        (without, vec![("Authorization", token.as_str())], 200),
        (url.clone(), vec![], 401),
        (url.clone(), vec![("Authorization", "Bearer wrong")], 401),
        (
            url.replace("neural", "neutral"),
            vec![("Authorization", token.as_str())],
            404,
        ),
        (
            url.replace("ranker", "ranger"),
            vec![("Authorization", token.as_str())],
            404,
        ),
        (
            url.replace("arm=", "arms="),
            vec![("Authorization", token.as_str())],
            400,
        ),
        (
            url.replace("/verdict", "/verdicts"),
            vec![("Authorization", token.as_str())],
            404,
        ),
    ] {
        let asked = NamedRequest {
            method: "GET",
            url: &url,
            headers: &headers,
            body: "",
        };
        let answer = server.answer(&asked).expect("an answer");
        assert_eq!(answer.status, status, "{url}: {}", answer.body);
        let is_json = serde_json::from_str::<serde_json::Value>(&answer.body).is_ok();
        assert_eq!(is_json, status == 200, "{url}: {}", answer.body);
    }
}

fn follow_by_flagger(story: Story) -> (Canary, Vec<flagger::Phase>) {
    let server = Server::open();
    let mut canary = Canary::of_the_manifest();
    let mut phases = vec![canary.advance(&server)];
    for looked in World::new(story).looks() {
        server.show(looked);
        phases.push(canary.advance(&server));
    }
    (canary, phases)
}

#[test]
fn flagger_waits_and_promotes_on_a_true_gain() {
    use flagger::Phase::{Progressing, Promoted, WaitingPromotion};
    let (_, phases) = follow_by_flagger(GAIN);
    assert_eq!(phases[..3], [Progressing, WaitingPromotion, WaitingPromotion]);
    assert_eq!(phases.last(), Some(&Promoted), "{phases:?}");
}

#[test]
fn flagger_rolls_back_on_harm() {
    let (_, phases) = follow_by_flagger(HARM);
    assert_eq!(phases.last(), Some(&flagger::Phase::RolledBack), "{phases:?}");
    assert!(!phases.contains(&flagger::Phase::Promoted));
}

#[test]
fn flagger_waits_on_a_mismatch() {
    let (canary, phases) = follow_by_flagger(MISMATCH);
    assert_eq!(
        phases.last(),
        Some(&flagger::Phase::WaitingPromotion),
        "{phases:?}"
    );
    assert_eq!(canary.last_statuses, [409, 409], "both gates are closed");
}
