//! Every configuration is accepted or refused with a message, and no message contains a secret.
//!
//! The input is a file. After a NUL byte come variables, one per line. A section with a secret is appended to the file.

#![no_main]

use abgauge::settings;
use miette::{GraphicalReportHandler, GraphicalTheme};

const SECRET: &str = "hunter2-is-the-secret";

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(input) = std::str::from_utf8(input) else {
        return;
    };
    if input.contains("hunter2") {
        return;
    }
    let (file, variables) = input.split_once('\0').unwrap_or((input, ""));
    let file = format!("{file}\n[kafka.properties]\nsasl.password = \"{SECRET}\"\n");
    let variables = variables.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        Some((format!("ABGAUGE_{name}"), value.to_owned()))
    });
    let password = [(
        "ABGAUGE_KAFKA__PROPERTIES__SSL_KEY_PASSWORD".to_owned(),
        SECRET.to_owned(),
    )];
    let reported = match settings::load_text("abgauge.toml", &file, variables.chain(password)) {
        Ok(config) => format!("{config:?}\n{}", config.warnings().join("\n")),
        Err(errors) => {
            let mut reported = format!("{errors}\n{errors:?}\n");
            let handler = GraphicalReportHandler::new_themed(GraphicalTheme::none());
            for error in errors.each() {
                handler
                    .render_report(&mut reported, &error)
                    .expect("every error can be told");
            }
            reported
        }
    };
    assert!(!reported.contains(SECRET), "{reported}");
});
