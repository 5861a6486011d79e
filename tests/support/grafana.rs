//! The dashboards of config/grafana, parsed from their JSON.

use std::fs;
use std::path::Path;

use serde_json::Value;

pub struct Dashboard {
    /// Path relative to the repository.
    pub file: String,
    pub model: Value,
}

/// A query of a panel, an annotation or a variable.
pub struct Query {
    /// Origin of the query, for messages.
    pub place: String,
    pub expression: String,
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Dashboard {
    /// Reads all dashboards, sorted by name.
    pub fn all() -> Vec<Dashboard> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = "config/grafana/dashboards";
        let entries = fs::read_dir(root.join(folder)).expect("the folder can be read");
        let names = entries.map(|entry| {
            entry
                .expect("it can be read")
                .file_name()
                .into_string()
                .expect("UTF-8")
        });
        let mut files: Vec<String> = names.map(|name| format!("{folder}/{name}")).collect();
        files.sort();
        let read = |file: String| {
            let json = fs::read_to_string(root.join(&file)).expect("it can be read");
            let model = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{file}: {error}"));
            Dashboard { file, model }
        };
        files.into_iter().map(read).collect()
    }

    /// Returns the panels of each grid: the top level, and each collapsed row.
    pub fn grids(&self) -> Vec<Vec<Value>> {
        let top = list(&self.model["panels"]);
        let folded: Vec<_> = top.iter().map(|panel| list(&panel["panels"])).collect();
        std::iter::once(top).chain(folded).collect()
    }

    /// Returns all panels except row headers.
    pub fn charts(&self) -> Vec<Value> {
        let all = self.grids().into_iter().flatten();
        all.filter(|panel| panel["type"] != "row").collect()
    }

    pub fn variables(&self) -> Vec<Value> {
        list(&self.model["templating"]["list"])
    }

    /// Returns all annotations except Grafana's own.
    pub fn annotations(&self) -> Vec<Value> {
        let all = list(&self.model["annotations"]["list"]).into_iter();
        all.filter(|annotation| annotation["builtIn"] != 1).collect()
    }

    /// Returns the queries of panels and annotations.
    pub fn queries(&self) -> Vec<Query> {
        let query = |title: &Value, expression: &Value| Query {
            place: format!("{}: {}", self.file, text(title)),
            expression: text(expression),
        };
        let mut queries = Vec::new();
        for panel in self.charts() {
            let targets = list(&panel["targets"]).into_iter();
            queries.extend(targets.map(|target| query(&panel["title"], &target["expr"])));
        }
        let annotations = self.annotations().into_iter();
        queries.extend(annotations.map(|annotation| query(&annotation["name"], &annotation["expr"])));
        queries
    }

    /// Returns the lookups of variables, `label_values(SERIES, LABEL)`.
    pub fn lookups(&self) -> Vec<Query> {
        let lookups = self
            .variables()
            .into_iter()
            .filter(|variable| variable["type"] == "query");
        lookups
            .map(|variable| Query {
                place: format!("{}: ${}", self.file, text(&variable["name"])),
                expression: text(&variable["query"]["query"]),
            })
            .collect()
    }
}
