//! Checks of the Dockerfile and .dockerignore.

use crate::deployment::compose::{mounts, services};
use crate::deployment::{check_arguments, check_variable, path, read, yaml};

/// Instructions in order, each with its arguments. Continued lines are joined.
pub struct Dockerfile(Vec<(String, String)>);

impl Dockerfile {
    pub fn read() -> Dockerfile {
        let text = read("Dockerfile").replace("\\\n", " ");
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let split = |line: &str| {
            let (instruction, arguments) = line.split_once(' ').expect("arguments");
            (instruction.to_owned(), arguments.trim().to_owned())
        };
        Dockerfile(lines.map(split).collect())
    }

    /// Returns the argument of the last such instruction, which takes effect.
    pub fn argument(&self, instruction: &str) -> Option<&str> {
        self.arguments(instruction).last()
    }

    fn arguments(&self, instruction: &str) -> impl Iterator<Item = &str> {
        let ours = self.0.iter().filter(move |(name, _)| name == instruction);
        ours.map(|(_, arguments)| arguments.as_str())
    }

    /// Returns sources and target of each `COPY` from the build context.
    fn copies(&self) -> Vec<(Vec<&str>, &str)> {
        let from_context = self
            .arguments("COPY")
            .filter(|arguments| !arguments.contains("--from="));
        from_context
            .map(|arguments| {
                let mut words: Vec<_> = arguments.split_whitespace().collect();
                let target = words.pop().expect("a target");
                (words, target)
            })
            .collect()
    }
}

/// Returns whether .dockerignore excludes a path of the repository from the build context. The last matching pattern decides.
fn is_ignored(source: &str) -> bool {
    let mut ignored = false;
    for pattern in read(".dockerignore")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let (verdict, pattern) = match pattern.strip_prefix('!') {
            Some(pattern) => (false, pattern),
            None => (true, pattern),
        };
        let below = source
            .strip_prefix(pattern)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if pattern == "*" || below {
            ignored = verdict;
        }
    }
    ignored
}

#[test]
fn copies_only_files_of_the_build_context() {
    for (sources, _) in Dockerfile::read().copies() {
        for source in sources.into_iter().filter(|source| *source != ".") {
            assert!(path(source).exists(), "{source} does not exist");
            assert!(!is_ignored(source), "{source} is in .dockerignore");
        }
    }
}

#[test]
fn the_build_context_contains_only_the_sources() {
    for needed in [
        "Cargo.toml",
        "Cargo.lock",
        "build.rs",
        "src/main.rs",
        "tests/program/deployment/mod.rs",
        "config/abgauge.toml",
    ] {
        assert!(!is_ignored(needed), "{needed}");
    }
    for useless in [".git/HEAD", "target/dist/abgauge", "docs/deployment.md", ".env"] {
        assert!(is_ignored(useless), "{useless}");
    }
}

#[test]
fn runs_as_a_numeric_user_without_privileges() {
    let dockerfile = Dockerfile::read();
    let user = dockerfile.argument("USER").expect("a USER").split(':').next();
    let id: u32 = user
        .and_then(|id| id.parse().ok())
        .expect("a numeric user, for Kubernetes' runAsNonRoot");
    assert_ne!(id, 0);
    let last = |instruction| dockerfile.0.iter().rposition(|(name, _)| name == instruction);
    assert!(last("USER") > last("FROM"), "the user belongs to the build stage");
}

#[test]
fn starts_the_daemon_with_the_copied_configuration() {
    let dockerfile = Dockerfile::read();
    let words = |instruction| -> Vec<String> {
        serde_json::from_str(dockerfile.argument(instruction).expect("present")).expect("exec form")
    };
    assert_eq!(words("ENTRYPOINT"), ["/usr/local/bin/abgauge"]);
    let command = words("CMD");
    assert_eq!(command[..2], ["run", "--config"]);
    check_arguments(command.iter().map(String::as_str));
    assert!(
        dockerfile
            .copies()
            .iter()
            .any(|(_, target)| *target == command[2])
    );
    assert!(
        mounts(&services()["abgauge"])
            .iter()
            .any(|mount| mount.target == command[2])
    );
    assert_eq!(dockerfile.argument("STOPSIGNAL"), Some("SIGTERM"));
}

#[test]
fn sets_only_settings_that_exist() {
    for variable in Dockerfile::read().arguments("ENV") {
        check_variable(variable.split('=').next().expect("a name"));
    }
}

#[test]
fn the_served_and_checked_ports_match() {
    let dockerfile = Dockerfile::read();
    let port = dockerfile.argument("EXPOSE").expect("a port");
    let check = dockerfile.argument("HEALTHCHECK").expect("a check");
    let (_, check) = check.split_once("CMD ").expect("a command");
    let check: Vec<String> = serde_json::from_str(check).expect("exec form");
    assert_eq!(check[..2], ["/usr/local/bin/abgauge", "health"]);
    check_arguments(check[1..].iter().map(String::as_str));
    let command: Vec<String> =
        serde_json::from_str(dockerfile.argument("CMD").expect("present")).expect("exec form");
    assert_eq!(check.last(), command.last(), "both read one configuration");
    let listen = dockerfile
        .arguments("ENV")
        .find_map(|env| env.strip_prefix("ABGAUGE_HTTP__LISTEN="));
    assert_eq!(listen, Some(format!("0.0.0.0:{port}").as_str()));

    let abgauge = &services()["abgauge"];
    assert_eq!(
        abgauge["environment"]["ABGAUGE_HTTP__LISTEN"],
        listen.expect("just compared")
    );
    assert_eq!(abgauge["ports"][0], format!("127.0.0.1:{port}:{port}"));

    let scrape = &yaml("config/prometheus/prometheus.yml")["scrape_configs"][0]["dns_sd_configs"][0];
    assert_eq!(scrape["names"][0], "abgauge");
    assert_eq!(scrape["port"].to_string(), port);
}
