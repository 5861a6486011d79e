//! `abgauge health`: asks a daemon for its health and maps the answer to an exit code.

use std::process::ExitCode;

use anyhow::Context as _;

use super::fetch::reported;
use super::{error, print, refuse};
use crate::settings::{self, files};
use crate::tools::cli::HealthArgs;
use crate::tools::health::{self, HealthQuestion, Target};

/// Status of a server that requires credentials.
const UNAUTHORIZED: u16 = 401;

/// Asks the daemon of this configuration.
///
/// # Errors
/// If the token file cannot be read, or the runtime cannot be started.
pub fn health(args: &HealthArgs) -> anyhow::Result<ExitCode> {
    let http = match settings::load_http(args.config.config.as_deref(), settings::environment()) {
        Ok(http) => http,
        Err(errors) => return Ok(refuse(&errors)),
    };
    let token = args.token_file.as_ref().map(|path| {
        let token = files::read_for("--token-file", path).map_err(reported)?;
        let token = String::from_utf8(token).with_context(|| format!("{} is not UTF-8", path.display()))?;
        anyhow::Ok(token.trim().to_owned())
    });
    let target = Target {
        address: health::reachable(http.listen),
        tls: http.tls.is_some(),
        token: token.transpose()?,
    };
    let question = if args.ready {
        HealthQuestion::Ready
    } else {
        HealthQuestion::Alive
    };
    let address = target.address;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("start the asynchronous runtime")?;
    let answered = runtime.block_on(health::ask(&target, question, args.timeout));
    Ok(match answered {
        Ok(answer) if answer.status == 200 => {
            print(&format!("{}\n", answer.body))?;
            ExitCode::SUCCESS
        }
        // A server that denies access is alive.
        Ok(answer) if answer.status == UNAUTHORIZED && question == HealthQuestion::Alive => {
            print("it answers, and requires credentials\n")?;
            ExitCode::SUCCESS
        }
        Ok(answer) if answer.status == UNAUTHORIZED => {
            error("it requires credentials: give --token-file FILE");
            ExitCode::FAILURE
        }
        Ok(answer) => {
            error(&format!(
                "abgauge at {address} answers {}: {}",
                answer.status, answer.body
            ));
            ExitCode::FAILURE
        }
        Err(fault) => {
            error(&format!("abgauge at {address} does not answer: {fault:#}"));
            ExitCode::FAILURE
        }
    })
}
