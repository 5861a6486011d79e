//! Prints in a plain `cargo test` which suites are left out, why, and how to run them, according to Cargo.toml.

const FEATURE: &str = "real-services";

fn main() {
    let lists_only = std::env::args().any(|arg| arg == "--list");
    if cfg!(feature = "real-services") || lists_only {
        return;
    }
    let suites = suites_that_need_services();
    if suites.is_empty() {
        return;
    }
    println!("\nleft out, for they need real Apache Kafka, Prometheus and Chromium (feature `{FEATURE}`):");
    for name in suites {
        println!("  {name:<12} {}", purpose(&name));
    }
    println!("`tests/run` brings what they need and runs them all.\n");
}

/// Returns the test targets that require our features.
fn suites_that_need_services() -> Vec<String> {
    let manifest: toml::Table = include_str!("../Cargo.toml")
        .parse()
        .expect("Cargo has read it too");
    let tests = manifest
        .get("test")
        .and_then(toml::Value::as_array)
        .cloned()
        .unwrap_or_default();
    let needs = |test: &toml::Value| {
        let features = test.get("required-features").and_then(toml::Value::as_array);
        features.is_some_and(|features| features.iter().any(|feature| feature.as_str() == Some(FEATURE)))
    };
    tests
        .iter()
        .filter(|test| needs(test))
        .filter_map(|test| Some(test.get("name")?.as_str()?.to_owned()))
        .collect()
}

/// Returns the first line of the suite's file, which describes it.
fn purpose(name: &str) -> String {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    [format!("{tests}/{name}.rs"), format!("{tests}/{name}/main.rs")]
        .iter()
        .find_map(|file| std::fs::read_to_string(file).ok())
        .and_then(|text| Some(text.lines().next()?.trim_start_matches("//!").trim().to_owned()))
        .unwrap_or_default()
}
