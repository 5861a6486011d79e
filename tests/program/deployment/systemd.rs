//! Checks of deploy/systemd and the Debian package that installs it. `tests/services/packages.rs` also runs systemd itself.

use crate::deployment::{check_arguments, check_variable, path, read};

const UNIT: &str = "deploy/systemd/abgauge.service";
const SECRETS: &str = "deploy/systemd/secrets.conf";
const STORED: &str = "deploy/systemd/stored.conf";

/// Returns the values of a directive, in order.
fn values(file: &str, directive: &str) -> Vec<String> {
    let text = read(file);
    let values = text.lines().filter_map(|line| line.split_once('='));
    values
        .filter(|(name, _)| *name == directive)
        .map(|(_, value)| value.to_owned())
        .collect()
}

#[test]
fn starts_reloads_and_stops_as_the_daemon_expects() {
    assert_eq!(
        values(UNIT, "ExecStart"),
        ["/usr/bin/abgauge run --config /etc/abgauge/abgauge.toml"]
    );
    check_arguments(values(UNIT, "ExecStart")[0].split(' ').skip(1));
    assert_eq!(values(UNIT, "ExecReload"), ["/bin/kill -HUP $MAINPID"]);
    // Restarts do not help after these exit codes: clap's, and the one for a bad configuration.
    let never = format!("2 {}", abgauge::tools::commands::BAD_CONFIGURATION);
    assert_eq!(values(UNIT, "RestartPreventExitStatus"), [never]);
}

#[test]
fn passwords_are_credentials_passed_by_an_existing_setting() {
    let credential = values(SECRETS, "LoadCredential").concat();
    let (name, _) = credential.split_once(':').expect("NAME:PATH");
    let variable = values(SECRETS, "Environment").concat();
    let (variable, file) = variable.split_once('=').expect("NAME=VALUE");
    assert_eq!(file, format!("%d/{name}"));
    let property = variable.strip_prefix("ABGAUGE_KAFKA__PROPERTY_FILES__");
    assert_eq!(property, Some("SASL_PASSWORD"), "{variable}");
    check_variable("ABGAUGE_KAFKA__PROPERTIES__SASL_PASSWORD");
    assert!(read("config/abgauge.toml").contains("[kafka.property_files]"));
}

/// A static member does not leave its group at a clean stop. It must return before the others get its partitions.
#[test]
fn a_host_with_stored_state_is_a_static_member_that_restarts_in_time() {
    let variables = values(STORED, "Environment");
    let variables = variables.iter().map(|variable| variable.split_once('='));
    let variables = variables.map(|variable| variable.expect("NAME=VALUE"));
    let variables: Vec<(String, String)> = variables
        .inspect(|(name, _)| check_variable(name))
        .map(|(name, value)| (name.to_owned(), value.replace("%H", "host-1")))
        .collect();
    let config = abgauge::settings::load(Some(&path("config/abgauge.toml")), variables.into_iter());
    let config = config.expect("it is valid");
    let property = |name: &str| config.kafka.properties.0.get(name).map(String::as_str);
    assert_eq!(property("group.instance.id"), Some("host-1"));
    let seconds = |directive: &str| values(UNIT, directive).concat().parse::<u32>().expect("seconds");
    let timeout_ms: u32 = property("session.timeout.ms")
        .expect("it is set")
        .parse()
        .expect("ms");
    assert!(timeout_ms > 2_000 * (seconds("TimeoutStopSec") + seconds("RestartSec")));
    let state = config.state.expect("it is stored");
    let compose = &crate::deployment::compose::services()["abgauge"]["environment"];
    assert_eq!(compose["ABGAUGE_STATE__TOPIC"], *state.topic);
}

#[test]
fn the_package_installs_the_files_of_the_unit() {
    let manifest: toml::Table = read("Cargo.toml").parse().expect("TOML");
    let deb = &manifest["package"]["metadata"]["deb"];
    let assets = deb["assets"].as_array().expect("assets");
    let field = |asset: &toml::Value, i: usize| asset[i].as_str().expect("a string").to_owned();
    let build = read("deploy/debian/build");
    for asset in assets {
        let source = field(asset, 0);
        let is_there = match source.strip_prefix("target/package/") {
            Some("man/*.1") => build.contains(r#"man --dir "$made/man""#),
            Some(made) => build.contains(&format!(r#">"$made/{made}""#)),
            None if source == "target/release/abgauge" => true,
            None => path(source.split('*').next().expect("a part")).exists(),
        };
        assert!(is_there, "{source} does not exist and is not made");
    }
    for line in build
        .lines()
        .filter_map(|line| line.strip_prefix("\"$program\" "))
    {
        let arguments = line.split(" >").next().expect("a part");
        check_arguments(arguments.split(' ').map(|word| word.trim_matches('"')));
    }
    let installs = |source: &str, target: &str| {
        let found = assets
            .iter()
            .any(|asset| field(asset, 0) == source && field(asset, 1) == target);
        assert!(found, "{source} is not installed as {target}");
    };
    installs("target/release/abgauge", "usr/bin/");
    installs("config/abgauge.toml", "etc/abgauge/");
    installs("README.md", "usr/share/doc/abgauge/");
    for example in [SECRETS, STORED] {
        installs(example, "usr/share/doc/abgauge/examples/");
    }
    // The pages and their images are installed.
    for file in std::fs::read_dir(path("docs")).expect("docs") {
        let file = file.expect("an entry").path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if let Some(extension @ ("md" | "png" | "svg")) = extension {
            installs(&format!("docs/*.{extension}"), "usr/share/doc/abgauge/docs/");
        }
    }
    assert_eq!(deb["changelog"].as_str(), Some("target/package/changelog"));
    assert!(build.contains(r#">"$made/changelog""#), "{build}");
    let license = deb["license-file"][0].as_str().expect("a file");
    assert!(read(license).contains("/usr/share/common-licenses/Apache-2.0"));
    let conf_files = deb["conf-files"].as_array().expect("conf-files");
    assert_eq!(conf_files[0].as_str(), Some("/etc/abgauge/abgauge.toml"));
    let units = &deb["systemd-units"];
    assert_eq!(units["unit-scripts"].as_str(), Some("deploy/systemd"));
    assert_eq!(units["unit-name"].as_str(), Some("abgauge"));
}
