//! Tests of the gate through real requests.

use std::io::Write as _;
use std::time::Instant;

use axum::body::Body;
use axum::routing::get;
use tempfile::NamedTempFile;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

use super::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// User with a cheaper hash than the configuration allows.
fn user(name: &str, password: &str) -> User {
    User {
        name: name.to_owned(),
        hash: bcrypt::hash(password, 4).expect("hashed"),
    }
}

fn token(token: &str) -> TokenHash {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    TokenHash(hash)
}

fn access() -> Access {
    Access {
        tokens: vec![token("another"), token(TOKEN)],
        tokens_file: None,
        users: vec![user("anne", "hunter2"), user("bob", "pass:wörd")],
        users_file: None,
        open_probes: true,
    }
}

fn gate(access: &Access) -> Arc<Gate> {
    let credentials = Credentials::read(access).expect("sound");
    let telemetry = Arc::new(Telemetry::new("served", "clicks", "0"));
    Arc::new(Gate::new(credentials, access.open_probes, telemetry))
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

async fn asked(gate: &Arc<Gate>, path: &str, authorization: Option<&[u8]>) -> Response {
    let routes = ["/metrics", "/readyz", "/healthz"];
    let router = routes.iter().fold(Router::new(), |router, path| {
        router.route(path, get(|| async { "in" }))
    });
    let mut request = axum::http::Request::builder().uri(path);
    if let Some(value) = authorization {
        request = request.header("authorization", HeaderValue::from_bytes(value).expect("legal"));
    }
    let request = request.body(Body::empty()).expect("a request");
    let Ok(response) = gate.before(router).oneshot(request).await;
    response
}

fn status(gate: &Arc<Gate>, path: &str, authorization: Option<&[u8]>) -> u16 {
    runtime()
        .block_on(asked(gate, path, authorization))
        .status()
        .as_u16()
}

fn basic(name: &str, password: &str) -> Vec<u8> {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{name}:{password}"))).into_bytes()
}

fn bearer(token: &str) -> Vec<u8> {
    format!("Bearer {token}").into_bytes()
}

#[test]
fn a_request_without_credentials_gets_the_accepted_schemes() {
    let response = runtime().block_on(asked(&gate(&access()), "/metrics", None));
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let schemes: Vec<_> = response
        .headers()
        .get_all(header::WWW_AUTHENTICATE)
        .iter()
        .collect();
    assert_eq!(
        schemes,
        [
            "Basic realm=\"abgauge\", charset=\"UTF-8\"",
            "Bearer realm=\"abgauge\""
        ]
    );
    let only_tokens = Access {
        users: vec![],
        ..access()
    };
    let response = runtime().block_on(asked(&gate(&only_tokens), "/metrics", None));
    assert_eq!(
        response.headers()[header::WWW_AUTHENTICATE],
        "Bearer realm=\"abgauge\""
    );
    assert_eq!(status(&gate(&access()), "/no/such/page", None), 401);
}

#[test]
fn known_tokens_and_passwords_are_accepted() {
    let gate = gate(&access());
    let good = [
        bearer(TOKEN),
        bearer("another"),
        format!("bEaReR   {TOKEN} ").into_bytes(),
        basic("anne", "hunter2"),
        basic("bob", "pass:wörd"),
    ];
    for value in good {
        let shown = String::from_utf8_lossy(&value);
        assert_eq!(status(&gate, "/metrics", Some(&value)), 200, "{shown}");
        assert_eq!(status(&gate, "/metrics", Some(&value)), 200, "{shown}, again");
    }
}

#[test]
fn all_other_credentials_are_refused() {
    let gate = gate(&access());
    let anne = &access().users[0].hash;
    let bad = [
        b"".to_vec(),
        b"Bearer".to_vec(),
        b"Basic".to_vec(),
        b"Bearer ".to_vec(),
        b"Basic !!!".to_vec(),
        b"Basic \xff".to_vec(),
        format!("Basic {}", BASE64_STANDARD.encode("hunter2")).into_bytes(),
        format!("Basic {}", BASE64_STANDARD.encode(b"an\xffne:hunter2")).into_bytes(),
        format!("Digest {TOKEN}").into_bytes(),
        TOKEN.as_bytes().to_vec(),
        bearer(&TOKEN[1..]),
        bearer(&format!("{TOKEN}x")),
        // The hash itself is not a credential.
        bearer(&token(TOKEN).to_string()),
        basic("anne", anne),
        basic("anne", "pass:wörd"),
        basic("anne", ""),
        basic("Anne", "hunter2"),
        basic("", "hunter2"),
        basic("carl", "hunter2"),
        basic("carl", "pass:wörd"),
        basic("anne", &"x".repeat(10_000)),
        basic("anne", "hunter2\0"),
    ];
    // The second round runs after the right credentials are remembered.
    for _ in 0..2 {
        for value in &bad {
            let shown = String::from_utf8_lossy(value);
            assert_eq!(status(&gate, "/metrics", Some(value)), 401, "{shown}");
        }
        assert_eq!(status(&gate, "/metrics", Some(&basic("anne", "hunter2"))), 200);
        assert_eq!(status(&gate, "/metrics", Some(&basic("bob", "pass:wörd"))), 200);
    }
}

#[test]
fn probes_are_open_unless_configured_otherwise() {
    let open = gate(&access());
    let closed = gate(&Access {
        open_probes: false,
        ..access()
    });
    for path in ["/healthz", "/readyz"] {
        assert_eq!(status(&open, path, None), 200);
        assert_eq!(status(&closed, path, None), 401);
        assert_eq!(status(&closed, path, Some(&bearer(TOKEN))), 200);
    }
    for path in [
        "/readyz/",
        "//readyz",
        "/Readyz",
        "/readyz/../metrics",
        "/metrics?/readyz",
    ] {
        assert_eq!(status(&open, path, None), 401, "{path}");
    }
}

/// Returns whether the request is answered while no password can be checked.
fn is_answered_without_a_check(gate: &Arc<Gate>, authorization: &[u8]) -> bool {
    runtime().block_on(async {
        let somebody = gate.queue.claimant(None, "somebody", false);
        let _turn = gate.queue.turn(somebody).await.expect("free");
        let request = asked(gate, "/metrics", Some(authorization));
        tokio::select! {
            biased;
            response = request => response.status() == 200,
            () = tokio::task::yield_now() => false,
        }
    })
}

#[test]
fn a_correct_password_is_hashed_once_and_then_remembered() {
    let gate = gate(&access());
    let anne = basic("anne", "hunter2");
    assert!(!is_answered_without_a_check(&gate, &anne));
    assert_eq!(status(&gate, "/metrics", Some(&anne)), 200);
    assert!(is_answered_without_a_check(&gate, &anne));
    // A remembered password helps neither a wrong password nor another user.
    assert_eq!(status(&gate, "/metrics", Some(&basic("anne", "hunter3"))), 401);
    assert!(is_answered_without_a_check(&gate, &anne), "still");
    assert!(!is_answered_without_a_check(&gate, &basic("bob", "hunter2")));
}

/// A client that repeats a wrong password costs no check until the credentials change.
#[test]
fn a_wrong_password_is_hashed_once() {
    let gate = gate(&access());
    let (wrong, right) = (basic("anne", "hunter3"), basic("anne", "hunter2"));
    assert_eq!(status(&gate, "/metrics", Some(&wrong)), 401);
    let asked_while_checking = |value: &[u8]| {
        runtime().block_on(async {
            let somebody = gate.queue.claimant(None, "somebody", false);
            let _turn = gate.queue.turn(somebody).await.expect("free");
            asked(&gate, "/metrics", Some(value)).await.status().as_u16()
        })
    };
    assert_eq!(asked_while_checking(&wrong), 401, "at once");
    let begin = Instant::now();
    assert_eq!(asked_while_checking(&right), 429, "it waits for its turn");
    assert!(begin.elapsed() >= PATIENCE);
    let after = Access {
        users: vec![user("anne", "hunter3")],
        ..access()
    };
    gate.replace(Credentials::read(&after).expect("sound"));
    assert_eq!(status(&gate, "/metrics", Some(&wrong)), 200);
}

#[test]
fn a_rejected_client_gets_retry_after_and_priority_on_return() {
    let gate = gate(&access());
    runtime().block_on(async {
        let guess = |n: usize| basic("anne", &format!("guess-{n}"));
        let somebody = gate.queue.claimant(None, "somebody", false);
        let turn = gate.queue.turn(somebody).await.expect("free");
        let anne = basic("anne", "hunter2");
        let sent_away = asked(&gate, "/metrics", Some(&anne)).await;
        assert_eq!(sent_away.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(sent_away.headers()[header::RETRY_AFTER], "1");
        // More claimants than may wait come before this one, and some after.
        let order = std::sync::Mutex::new(Vec::new());
        let ask = |value: Vec<u8>| {
            let (gate, order) = (&gate, &order);
            async move {
                let status = asked(gate, "/metrics", Some(&value)).await.status().as_u16();
                order.lock().expect("not poisoned").push(status);
            }
        };
        let before = futures_util::future::join_all((0..100).map(|n| ask(guess(n))));
        let after = futures_util::future::join_all((100..140).map(|n| ask(guess(n))));
        let go_on = async {
            tokio::task::yield_now().await;
            drop(turn);
        };
        tokio::join!(before, ask(anne.clone()), after, go_on);
        let order = order.into_inner().expect("not poisoned");
        let checked = order.iter().filter(|status| **status != 429);
        // The next turn begins before this response is sent, so the next response may overtake it.
        let first_checked: Vec<_> = checked.take(2).collect();
        assert!(first_checked.contains(&&200), "{order:?}");
        assert!(
            order.iter().filter(|status| **status == 429).count() >= 100,
            "{order:?}"
        );
    });
    let n = gate.telemetry.n_http_refused(HttpRefusal::TooManyPasswords);
    assert!(n > 100, "{n}");
}

#[test]
fn an_unknown_name_costs_as_much_as_a_known_one() {
    let access = access();
    let gate = gate(&access);
    assert!(!is_answered_without_a_check(&gate, &basic("carl", "hunter2")));
    let credentials = gate.credentials();
    let names = (0..100).map(|n| format!("stranger-{n}"));
    let stand_ins: Vec<_> = names.map(|name| (credentials.placeholder(&name), name)).collect();
    assert!(stand_ins.iter().any(|(index, _)| *index == 0) && stand_ins.iter().any(|(index, _)| *index == 1));
    for (index, name) in stand_ins {
        assert_eq!(credentials.placeholder(&name), index);
    }
}

#[test]
fn replaced_credentials_are_refused() {
    let gate = gate(&access());
    let anne = basic("anne", "hunter2");
    assert_eq!(status(&gate, "/metrics", Some(&anne)), 200);
    let after = Access {
        users: vec![user("anne", "new")],
        ..access()
    };
    gate.replace(Credentials::read(&after).expect("sound"));
    assert_eq!(status(&gate, "/metrics", Some(&anne)), 401);
    assert_eq!(status(&gate, "/metrics", Some(&basic("anne", "new"))), 200);
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    file
}

#[test]
fn files_add_entries_one_per_line() {
    let hash = bcrypt::hash("secret", 10).expect("hashed");
    let users = file(&format!("# people\n\ndora:{hash}\n"));
    let tokens = file(&format!("{}\r\n", token(TOKEN)));
    let access = Access {
        tokens: vec![],
        tokens_file: Some(tokens.path().into()),
        users_file: Some(users.path().into()),
        ..access()
    };
    let gate = gate(&access);
    for value in [basic("dora", "secret"), basic("anne", "hunter2"), bearer(TOKEN)] {
        assert_eq!(status(&gate, "/metrics", Some(&value)), 200);
    }
}

#[test]
fn an_invalid_file_is_reported_by_line_without_its_content() {
    let table = [
        ("# none\n", "holds no hash"),
        ("hunter2\n", "line 1: it is not the SHA-256"),
        ("\u{0}\n\nhunter2", "line 1"),
    ];
    for (text, fragment) in table {
        let tokens = file(text);
        let access = Access {
            tokens_file: Some(tokens.path().into()),
            ..access()
        };
        let error = Credentials::read(&access).err().expect("to be refused");
        assert_eq!(error.setting, "http.bearer_tokens_file");
        let shown = format!("{error} {error:?}");
        assert!(shown.contains(fragment) && !shown.contains("hunter2"), "{shown}");
    }
    let users = Access {
        users_file: Some("/nowhere/htpasswd".into()),
        ..access()
    };
    let error = Credentials::read(&users)
        .err()
        .expect("to be refused")
        .to_string();
    assert!(
        error.starts_with("http.basic_passwords_file: cannot read the file /nowhere/htpasswd"),
        "{error}"
    );
}
