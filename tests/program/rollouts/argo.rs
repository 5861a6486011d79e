//! A model of Argo Rollouts with a web metric: the result of a measurement, and the result of an analysis run. It follows the
//! code of version 1.8 (metricproviders/webmetric, utils/evaluate, analysis/analysis.go).

use serde_json::Value;

use crate::rollouts::server::{Server, TOKEN};
use crate::support::https::NamedRequest;

/// Result of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measurement {
    Successful,
    Failed,
    Inconclusive,
    Error,
}

/// Result of a run. On success the rollout continues, if inconclusive it is paused, otherwise it is aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Result {
    Successful,
    Failed,
    Inconclusive,
    Error,
}

/// A run of the analysis in deploy/argo-rollouts.
#[derive(Debug)]
pub struct Run {
    metric: Value,
    /// Values for `{{args.NAME}}`.
    args: Vec<(String, String)>,
    pub measurements: Vec<Measurement>,
}

fn manifest(name: &str) -> Value {
    let path = format!("{}/deploy/argo-rollouts/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn texts<'a>(list: &'a Value, key: &str) -> Vec<(&'a str, Option<&'a str>)> {
    let entries = list.as_array().into_iter().flatten();
    let text = |entry: &'a Value, key: &str| entry[key].as_str();
    entries
        .map(|entry| (text(entry, key).expect("a name"), text(entry, "value")))
        .collect()
}

/// Returns the template's default host.
pub fn host() -> String {
    let template = manifest("analysistemplate");
    let args = texts(&template["spec"]["args"], "name");
    let address = args.iter().find(|(name, _)| *name == "address");
    let address = address.and_then(|(_, value)| *value).expect("a default address");
    let host = address.strip_prefix("https://").expect("over TLS");
    host.split(':').next().expect("a host").to_owned()
}

impl Run {
    /// Creates the run that the rollout's step starts, with the arguments of both manifests.
    pub fn of_the_manifests() -> Run {
        let (template, rollout) = (manifest("analysistemplate"), manifest("rollout"));
        let steps = rollout["spec"]["strategy"]["canary"]["steps"]
            .as_array()
            .expect("steps");
        let step = steps
            .iter()
            .find_map(|step| step.get("analysis"))
            .expect("an analysis");
        assert_eq!(step["templates"][0]["templateName"], template["metadata"]["name"]);
        let given = texts(&step["args"], "name");
        let of_step = |name: &str| {
            given
                .iter()
                .find(|(given, _)| *given == name)
                .and_then(|(_, value)| *value)
        };
        let declared = template["spec"]["args"].as_array().expect("arguments");
        let value = |arg: &Value| {
            let name = arg["name"].as_str().expect("a name");
            let is_secret = arg["valueFrom"]["secretKeyRef"].is_object();
            let secret = is_secret.then_some(TOKEN);
            let value = of_step(name).or(arg["value"].as_str()).or(secret);
            (
                name.to_owned(),
                value.unwrap_or_else(|| panic!("{name} has no value")).to_owned(),
            )
        };
        let [metric] = template["spec"]["metrics"]
            .as_array()
            .expect("metrics")
            .as_slice()
        else {
            panic!("one metric");
        };
        Run {
            metric: metric.clone(),
            args: declared.iter().map(value).collect(),
            measurements: Vec::new(),
        }
    }

    fn web(&self) -> &Value {
        &self.metric["provider"]["web"]
    }

    pub fn url(&self) -> String {
        self.filled(self.web()["url"].as_str().expect("an address"))
    }

    pub fn interval_minutes(&self) -> f64 {
        let interval = self.metric["interval"].as_str().expect("an interval");
        interval
            .strip_suffix('m')
            .expect("minutes")
            .parse()
            .expect("a number")
    }

    /// Replaces the arguments in a text.
    fn filled(&self, text: &str) -> String {
        let fill = |text: String, (name, value): &(String, String)| {
            text.replace(&format!("{{{{args.{name}}}}}"), value)
        };
        let filled = self.args.iter().fold(text.to_owned(), fill);
        assert!(!filled.contains("{{"), "{filled}");
        filled
    }

    /// Takes one measurement.
    pub fn measure(&mut self, server: &Server) -> Measurement {
        let headers = texts(&self.web()["headers"], "key");
        let headers: Vec<(&str, String)> = headers
            .into_iter()
            .map(|(key, value)| (key, self.filled(value.expect("a value"))))
            .collect();
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
            .collect();
        let asked = NamedRequest {
            method: self.web()["method"].as_str().unwrap_or("GET"),
            url: &self.url(),
            headers: &headers,
            body: "",
        };
        let measurement = match server.answer(&asked) {
            Ok(answer) if (200..300).contains(&answer.status) => self.judge(&answer.body),
            _ => Measurement::Error,
        };
        self.measurements.push(measurement);
        measurement
    }

    /// Evaluates a successful answer.
    fn judge(&self, body: &str) -> Measurement {
        let Ok(json) = serde_json::from_str::<Value>(body) else {
            // Plain text counts as success.
            return Measurement::Successful;
        };
        let path = self.web()["jsonPath"].as_str().expect("a path");
        let field = path.strip_prefix("{$.").and_then(|rest| rest.strip_suffix('}'));
        let Some(result) = json.get(field.expect("a field of the answer")) else {
            return Measurement::Error;
        };
        match (
            self.holds("failureCondition", result),
            self.holds("successCondition", result),
        ) {
            (true, _) => Measurement::Failed,
            (false, true) => Measurement::Successful,
            (false, false) => Measurement::Inconclusive,
        }
    }

    /// Evaluates an expression such as `result == "pass"`.
    fn holds(&self, condition: &str, result: &Value) -> bool {
        let expression = self.metric[condition].as_str().expect(condition);
        let (left, right) = expression.split_once(" == ").expect("a comparison");
        assert_eq!(left, "result");
        let wanted: String = serde_json::from_str(right).expect("a text in quotes");
        *result == wanted
    }

    fn limit(&self, name: &str) -> Option<usize> {
        let limit = self.metric.get(name)?;
        Some(limit.as_u64().expect("a number") as usize)
    }

    /// Returns the result, or `None` while the run continues.
    pub fn result(&self) -> Option<Result> {
        let n = |of: Measurement| self.measurements.iter().filter(|it| **it == of).count();
        let n_last = |of: Measurement| self.measurements.iter().rev().take_while(|it| **it == of).count();
        if n(Measurement::Failed) > self.limit("failureLimit").unwrap_or(0) {
            return Some(Result::Failed);
        }
        if n(Measurement::Inconclusive) > self.limit("inconclusiveLimit").unwrap_or(0) {
            return Some(Result::Inconclusive);
        }
        if n_last(Measurement::Error) > self.limit("consecutiveErrorLimit").unwrap_or(4) {
            return Some(Result::Error);
        }
        let enough = self.limit("consecutiveSuccessLimit").filter(|limit| *limit > 0);
        if enough.is_some_and(|enough| n_last(Measurement::Successful) >= enough) {
            return Some(Result::Successful);
        }
        let n_counted = self.measurements.len() - n(Measurement::Error);
        let is_over = self.limit("count").is_some_and(|count| n_counted >= count);
        is_over.then_some(match enough {
            Some(_) => Result::Inconclusive,
            None => Result::Successful,
        })
    }
}
