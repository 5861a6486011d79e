//! Tests of a webhook and its server over the loopback interface.

mod server;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use abgauge_core::statistics::ArmState;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use self::server::{Reply, Server};
use super::outbox::fixture::looked;
use super::pace::Backoff;
use super::*;
use crate::settings::HttpUrl;

/// Runs an asynchronous test to completion.
fn run(claim: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(claim);
}

fn settings(address: impl std::fmt::Display) -> settings::Webhook {
    let url = format!("http://{address}/hook/hunter2?key=hunter2");
    settings::Webhook {
        url: HttpUrl::of_setting(&url).expect("an address"),
        secret_file: None,
        header: hyper::header::AUTHORIZATION,
        timeout: Duration::from_millis(300),
        ca_file: None,
    }
}

/// Running webhook with short waits.
struct Stage {
    looks: Arc<Published>,
    telemetry: Arc<Telemetry>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Stage {
    fn start(settings: &settings::Webhook) -> Stage {
        let stage = Stage::start_before_ready(settings);
        stage.telemetry.set_waiting_for(Vec::new());
        stage
    }

    fn start_before_ready(settings: &settings::Webhook) -> Stage {
        Stage::start_with(settings, None)
    }

    fn start_with(settings: &settings::Webhook, speaks: Option<IsSender>) -> Stage {
        let telemetry = Arc::new(Telemetry::new("served", "clicks", "0.1.0"));
        let looks = Arc::new(Published::default());
        let webhook = WebhookSender::open(settings, Arc::clone(&looks), Arc::clone(&telemetry));
        let webhook = WebhookSender {
            outbox: NoticeOutbox::paced(Backoff::new(Duration::from_millis(1), Duration::from_millis(20))),
            look_every: Duration::from_millis(1),
            patience: Duration::from_millis(40),
            speaks,
            ..webhook.expect("its files are there")
        };
        let stop = CancellationToken::new();
        Stage {
            task: tokio::spawn(webhook.run(stop.clone())),
            looks,
            telemetry,
            stop,
        }
    }

    /// Shows look `number`, in which these arms have these states.
    fn look(&self, number: i64, states: &[(&str, ArmState)]) {
        self.looks.show(looked(number, states), None);
    }

    /// Waits until `is_so` holds.
    async fn until(&self, what: &str, is_so: impl Fn(&Telemetry) -> bool) {
        let waited = tokio::time::timeout(Duration::from_secs(30), async {
            while !is_so(&self.telemetry) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("waited 30 s for {what}"));
    }

    async fn until_reported(&self, n_sent: u64) {
        let is_reported = |telemetry: &Telemetry| {
            telemetry.n_webhook_notices(WebhookResult::Sent) == n_sent && waiting(telemetry) == 0
        };
        self.until("all to be told", is_reported).await;
    }

    fn n_failed(&self) -> u64 {
        self.telemetry.n_webhook_notices(WebhookResult::Failed)
    }
}

fn waiting(telemetry: &Telemetry) -> u64 {
    let mut text = Vec::new();
    telemetry.render(&mut text).expect("telemetry");
    let text = String::from_utf8(text).expect("UTF-8");
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("abgauge_webhook_waiting "));
    value.expect("a value").parse().expect("a number")
}

fn file(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).expect("write a file");
    path
}

/// One instance sends at a time, and its successor cannot know which changes it delivered.
#[test]
fn a_standby_sends_the_last_change_of_each_arm_when_it_takes_over() {
    run(async {
        let mut server = Server::replying(&[]).await;
        let (is_owner, n_asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (owner, asked) = (Arc::clone(&is_owner), Arc::clone(&n_asked));
        let speaks: IsSender = Box::new(move || {
            asked.fetch_add(1, Ordering::Relaxed);
            owner.load(Ordering::Relaxed)
        });
        let stage = Stage::start_with(&settings(server.address), Some(speaks));
        stage.telemetry.set_waiting_for(Vec::new());
        for (number, state) in [
            (1, ArmState::Collecting),
            (2, ArmState::NoDecision),
            (3, ArmState::Win),
        ] {
            stage.look(number, &[("a", state)]);
            // `speaks` is called after the last look is taken.
            let before = n_asked.load(Ordering::Relaxed);
            let is_taken = |_: &Telemetry| n_asked.load(Ordering::Relaxed) > before + 1;
            stage.until("the look to be taken", is_taken).await;
            assert_eq!(waiting(&stage.telemetry), 0, "it is for another to tell");
        }
        is_owner.store(true, Ordering::Relaxed);
        stage.until_reported(1).await;
        assert_eq!(server.next().await.state(), "win");
        assert!(server.is_silent());
    });
}

#[test]
fn a_change_is_posted_as_the_verdict_with_the_secret_in_its_header() {
    run(async {
        let dir = tempfile::tempdir().expect("a directory");
        let mut server = Server::replying(&[]).await;
        let stage = Stage::start(&settings::Webhook {
            secret_file: Some(file(dir.path(), "secret", "Bearer hunter2\n")),
            ..settings(server.address)
        });
        stage.look(1, &[("a", ArmState::Win)]);
        let sent = server.next().await;
        assert_eq!(
            (&*sent.method, &*sent.path),
            ("POST", "/hook/hunter2?key=hunter2")
        );
        assert_eq!(sent.headers["authorization"], "Bearer hunter2");
        assert_eq!(sent.headers["content-type"], "application/json");
        assert_eq!(sent.headers["host"], *server.address.to_string());
        assert_eq!((sent.arm(), sent.state()), ("a", "win"));
        assert_eq!(sent.verdict["experiment"], "ranker");
        assert_eq!(sent.verdict["result"], "pass");
        stage.until_reported(1).await;
        stage.look(2, &[("a", ArmState::Win)]);
        stage.look(3, &[("a", ArmState::Harm)]);
        assert_eq!(
            server.next().await.state(),
            "harm",
            "a state that stays is told once"
        );
        stage.until_reported(2).await;
        assert!(server.is_silent() && stage.n_failed() == 0);
    });
}

#[test]
fn a_notice_is_retried_until_accepted_and_redirects_are_not_followed() {
    run(async {
        let replies = [
            Reply::Status(500),
            Reply::Status(404),
            Reply::Redirect,
            Reply::Silence,
            Reply::Close,
            Reply::Status(429),
        ];
        let mut server = Server::replying(&replies).await;
        let stage = Stage::start(&settings(server.address));
        stage.look(1, &[("a", ArmState::Loss)]);
        for _ in 0..=replies.len() {
            let sent = server.next().await;
            assert_eq!((sent.arm(), sent.state()), ("a", "loss"));
            assert!(sent.path.starts_with("/hook/"), "{}", sent.path);
        }
        stage.until_reported(1).await;
        assert_eq!(stage.n_failed(), replies.len() as u64);
    });
}

#[test]
fn a_late_server_receives_earlier_changes() {
    run(async {
        // The socket holds the port but does not listen.
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let address = socket.local_addr().expect("it is bound");
        let stage = Stage::start(&settings(address));
        stage.look(1, &[("a", ArmState::InvalidSrm), ("b", ArmState::Collecting)]);
        stage
            .until("a refusal", |telemetry| {
                telemetry.n_webhook_notices(WebhookResult::Failed) > 1
            })
            .await;
        assert_eq!(waiting(&stage.telemetry), 1);
        let mut server = Server::at(socket.listen(1).expect("it listens"), None);
        assert_eq!(server.next().await.state(), "invalid(srm)");
        stage.until_reported(1).await;
    });
}

#[test]
fn a_missing_answer_delays_no_other_arm() {
    run(async {
        let hangs = |_: usize, verdict: &serde_json::Value| match verdict["arm"] == "a" {
            true => Reply::Silence,
            false => Reply::Status(204),
        };
        let server = Server::choosing(hangs).await;
        let stage = Stage::start(&settings::Webhook {
            timeout: Duration::from_secs(3600),
            ..settings(server.address)
        });
        stage.look(1, &[("a", ArmState::Win), ("b", ArmState::Win)]);
        let is_reported =
            |n| move |telemetry: &Telemetry| telemetry.n_webhook_notices(WebhookResult::Sent) == n;
        stage.until("b to be told", is_reported(1)).await;
        stage.look(
            2,
            &[("a", ArmState::Win), ("b", ArmState::Harm), ("c", ArmState::Win)],
        );
        stage.until("later looks to be told", is_reported(3)).await;
        assert_eq!((waiting(&stage.telemetry), stage.n_failed()), (1, 0));
    });
}

#[test]
fn a_refused_notice_delays_no_other_arm() {
    run(async {
        let refused = |_: usize, verdict: &serde_json::Value| match verdict["arm"] == "a" {
            true => Reply::Status(400),
            false => Reply::Status(204),
        };
        let mut server = Server::choosing(refused).await;
        let stage = Stage::start(&settings(server.address));
        stage.look(
            1,
            &[("a", ArmState::Win), ("b", ArmState::Win), ("c", ArmState::Win)],
        );
        let mut reported = BTreeSet::new();
        while reported.len() < 2 {
            let sent = server.next().await;
            if sent.arm() != "a" {
                reported.insert(sent.arm().to_owned());
            }
        }
        assert_eq!(Vec::from_iter(reported), ["b", "c"]);
        stage
            .until("a alone to wait", |telemetry| waiting(telemetry) == 1)
            .await;
        while server.next().await.arm() != "a" {}
    });
}

#[test]
fn a_newer_state_replaces_a_waiting_one() {
    run(async {
        let harm_is_refused = |_: usize, verdict: &serde_json::Value| match verdict["state"] == "harm" {
            true => Reply::Status(503),
            false => Reply::Status(200),
        };
        let mut server = Server::choosing(harm_is_refused).await;
        let stage = Stage::start(&settings(server.address));
        stage.look(1, &[("a", ArmState::Harm)]);
        assert_eq!(server.next().await.state(), "harm");
        stage.look(2, &[("a", ArmState::NoDecision)]);
        stage.until_reported(1).await;
        let mut last = server.next().await;
        while last.state() == "harm" {
            last = server.next().await;
        }
        assert_eq!((last.state(), server.is_silent()), ("no_decision", true));
    });
}

#[test]
fn a_renewed_secret_is_sent_with_the_next_attempt() {
    run(async {
        let dir = tempfile::tempdir().expect("a directory");
        let secret = file(dir.path(), "secret", "Bearer old");
        let mut server = Server::replying(&[Reply::Status(401)]).await;
        let stage = Stage::start(&settings::Webhook {
            secret_file: Some(secret.clone()),
            header: "x-token".parse().expect("a header"),
            ..settings(server.address)
        });
        // Nothing is sent before the first look.
        file(dir.path(), "secret", "Bearer new");
        stage.look(1, &[("a", ArmState::Win)]);
        assert_eq!(server.next().await.headers["x-token"], "Bearer new");
        std::fs::remove_file(&secret).expect("it is there");
        let is_missed = |telemetry: &Telemetry| telemetry.n_webhook_notices(WebhookResult::Failed) > 2;
        stage.until("the file to be missed", is_missed).await;
        let warned = |telemetry: &Telemetry| {
            let warnings = telemetry.warnings();
            warnings
                .first()
                .is_some_and(|warning| warning.message.contains("webhook.secret_file: cannot read"))
        };
        stage.until("the file to be named", warned).await;
        file(dir.path(), "secret", "Bearer newer");
        let mut sent = server.next().await;
        while sent.headers["x-token"] == "Bearer new" {
            sent = server.next().await;
        }
        assert_eq!(sent.headers["x-token"], "Bearer newer");
        stage.until_reported(1).await;
    });
}

#[test]
fn looks_repeated_before_ready_send_nothing() {
    run(async {
        let mut server = Server::replying(&[]).await;
        let stage = Stage::start_before_ready(&settings(server.address));
        stage.look(1, &[("a", ArmState::Loss)]);
        tokio::task::yield_now().await;
        stage.look(2, &[("a", ArmState::Win)]);
        stage.telemetry.set_waiting_for(Vec::new());
        assert_eq!(server.next().await.state(), "win");
        stage.until_reported(1).await;
    });
}

#[test]
fn an_endless_answer_is_judged_by_its_status() {
    run(async {
        let mut server = Server::replying(&[Reply::Endless]).await;
        let stage = Stage::start(&settings(server.address));
        stage.look(1, &[("a", ArmState::Win)]);
        server.next().await;
        stage.until_reported(1).await;
        assert_eq!(stage.n_failed(), 0);
    });
}

#[test]
fn a_stop_does_not_wait_for_an_answer() {
    run(async {
        let mut server = Server::replying(&[Reply::Silence]).await;
        let stage = Stage::start(&settings::Webhook {
            timeout: Duration::from_secs(600),
            ..settings(server.address)
        });
        stage.look(1, &[("a", ArmState::Win)]);
        server.next().await;
        let asked = Instant::now();
        stage.stop.cancel();
        stage.task.await.expect("it ends by itself");
        assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    });
}

#[test]
fn a_failing_webhook_causes_a_warning_until_it_accepts() {
    run(async {
        let mut server = Server::choosing(|n, _| Reply::Status(if n < 40 { 500 } else { 200 })).await;
        let stage = Stage::start(&settings(server.address));
        stage.look(1, &[("a", ArmState::Win), ("b", ArmState::Harm)]);
        stage
            .until("a warning", |telemetry| !telemetry.warnings().is_empty())
            .await;
        let warning = &stage.telemetry.warnings()[0];
        for part in [
            &*format!("webhook.url (http://{}) does not accept calls", server.address),
            "it answered 500",
            "undelivered change of state: 2",
        ] {
            assert!(warning.message.contains(part), "{}", warning.message);
        }
        assert!(!warning.message.contains("hunter2"), "{}", warning.message);
        assert_eq!(warning.runbook, Some("AbgaugeWebhookFails"));
        assert_eq!(stage.telemetry.status().warnings.len(), 1);
        stage.until_reported(2).await;
        assert!(stage.telemetry.warnings().is_empty());
        server.next().await;
    });
}

/// Creates an authority and a certificate signed by it for 127.0.0.1. Returns the authority's file and the server's
/// acceptor.
fn signed(dir: &Path, name: &str) -> (PathBuf, TlsAcceptor) {
    let authority = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new([]).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own = params.self_signed(&authority).expect("a certificate");
    let path = file(dir, name, &own.pem());
    let issuer = Issuer::new(params, authority);
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("an address");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate");
    let chain = vec![CertificateDer::from(certificate)];
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("both versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("they fit");
    (path, TlsAcceptor::from(Arc::new(config)))
}

#[test]
fn notices_are_sent_over_tls_only_to_servers_the_authority_signed() {
    run(async {
        let dir = tempfile::tempdir().expect("a directory");
        let (ours, acceptor) = signed(dir.path(), "ours.pem");
        let (theirs, _) = signed(dir.path(), "theirs.pem");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let mut server = Server::at(listener, Some(acceptor));
        let address = server.address;
        let url = format!("https://{address}/hook/hunter2");
        let settings = |ca_file: Option<PathBuf>| settings::Webhook {
            url: HttpUrl::of_setting(&url).expect("an address"),
            secret_file: Some(file(dir.path(), "secret", "Bearer hunter2")),
            ca_file,
            // Enough time for two handshakes in an unoptimized build.
            timeout: Duration::from_secs(20),
            ..settings(address)
        };
        for stranger in [Some(theirs), None] {
            let stage = Stage::start(&settings(stranger));
            stage.look(1, &[("a", ArmState::Win)]);
            stage
                .until("a warning", |telemetry| !telemetry.warnings().is_empty())
                .await;
            let warning = &stage.telemetry.warnings()[0].message;
            assert!(warning.contains("invalid peer certificate"), "{warning}");
            assert!(!warning.contains("hunter2"), "{warning}");
            stage.stop.cancel();
        }
        assert!(server.is_silent());
        let stage = Stage::start(&settings(Some(ours)));
        stage.look(1, &[("a", ArmState::Win)]);
        assert_eq!(server.next().await.headers["authorization"], "Bearer hunter2");
        stage.until_reported(1).await;
    });
}

#[test]
fn unusable_files_are_refused_at_startup_without_their_content() {
    let dir = tempfile::tempdir().expect("a directory");
    let with = |secret: Option<&str>, authority: Option<&str>| settings::Webhook {
        url: HttpUrl::of_setting("https://hooks.example/hunter2").expect("an address"),
        secret_file: secret.map(|text| file(dir.path(), "secret", text)),
        ca_file: Some(match authority {
            Some(text) => file(dir.path(), "ca", text),
            None => signed(dir.path(), "good").0,
        }),
        ..settings("a")
    };
    for (secret, authority, setting, fault) in [
        (Some("\n"), None, "webhook.secret_file", "is empty"),
        (
            Some("hunter2\nhunter2"),
            None,
            "webhook.secret_file",
            "more than one line",
        ),
        (
            Some("hunter2\u{e9}"),
            None,
            "webhook.secret_file",
            "no header should carry",
        ),
        (
            Some("hunter2\0"),
            None,
            "webhook.secret_file",
            "no header should carry",
        ),
        (None, Some("hunter2"), "webhook.ca_file", "none in PEM"),
        (
            None,
            Some("-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n"),
            "webhook.ca_file",
            "no authority can be read",
        ),
    ] {
        let refused = check(&with(secret, authority)).expect_err(fault);
        assert_eq!(refused.setting, setting);
        assert!(refused.message.contains(fault), "{}", refused.message);
        assert!(!format!("{refused:?}").contains("hunter2"), "{refused:?}");
    }
    let absent = settings::Webhook {
        secret_file: Some(dir.path().join("absent")),
        ..settings("a")
    };
    assert!(
        check(&absent)
            .expect_err("it is absent")
            .message
            .contains("cannot read the file")
    );
    check(&with(Some("Bearer hunter2"), None)).expect("both can be used");
}
