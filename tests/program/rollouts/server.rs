//! The HTTP routes of a daemon over TLS, with looks provided by the test.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use abgauge::board::snapshot::{ArmSnapshot, Snapshot, SnapshotSource, Timeline};
use abgauge::clock::Clock;
use abgauge::serve::secured::Secured;
use abgauge::serve::{About, Exporter, http, server};
use abgauge::settings::{self, Config};
use abgauge::telemetry::Telemetry;
use abgauge_core::looks::{Look, Published};
use ring::digest;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::rollouts::{argo, world};
use crate::support::certificates::{Authority, Validity};
use crate::support::http::Response;
use crate::support::https::{self, NamedRequest, Trust};
use crate::support::tools;

/// Token in the manifests' secret.
pub const TOKEN: &str = "9f2b6d0c";

pub struct Server {
    address: SocketAddr,
    trust: Trust,
    looks: Arc<Published>,
    telemetry: Arc<Telemetry>,
    _dir: TempDir,
    /// Runtime of the server. Its threads end with it.
    _runtime: Runtime,
}

impl Server {
    /// Starts a server that requires the token.
    pub fn start() -> Server {
        let hash = digest::digest(&digest::SHA256, TOKEN.as_bytes());
        let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Server::with(&format!("bearer_tokens = [\"{hash}\"]\n"))
    }

    /// Starts a server that requires no credentials.
    pub fn open() -> Server {
        Server::with("")
    }

    fn with(settings: &str) -> Server {
        let dir = tools::temporary_dir("rollouts");
        let authority = Authority::new(dir.path(), "authority");
        let signed = authority.sign("server", &[&argo::host()], Validity::Now);
        let text = format!(
            "[kafka]\nbrokers = \"b:1\"\n[http]\nlisten = \"127.0.0.1:0\"\nhosts = [\"{}\"]\ntls_certificate = {:?}\ntls_key = \
             {:?}\n{settings}",
            argo::host(),
            signed.certificate,
            signed.key
        );
        let config = settings::load_text("abgauge.toml", &text, std::iter::empty());
        let config = config.expect("the test's configuration is valid");
        let (looks, telemetry) = (Arc::default(), Telemetry::new("served", "clicks", "0.1.0"));
        let telemetry = Arc::new(telemetry);
        telemetry.set_waiting_for(Vec::new());
        let runtime = Runtime::new().expect("a runtime");
        let address = serve(&config, Arc::clone(&looks), Arc::clone(&telemetry), &runtime);
        Server {
            address,
            trust: Trust::of(&authority.file),
            looks,
            telemetry,
            _dir: dir,
            _runtime: runtime,
        }
    }

    pub fn show(&self, looked: Look) {
        self.looks.show(looked, None);
    }

    /// Makes the server not ready because it waits for `what`, or ready if that is empty.
    pub fn wait_for(&self, what: &str) {
        let what = Some(what.to_owned()).filter(|what| !what.is_empty());
        self.telemetry.set_waiting_for(what.into_iter().collect());
    }

    /// Returns the state of the new arm at the last look.
    pub fn state(&self) -> &'static str {
        let shown = self.looks.shown();
        let comparison = shown.experiments[world::EXPERIMENT].comparison.as_ref();
        let arm = &comparison.expect("there is a control").1.arms["neural"];
        arm.decision.as_ref().expect("it is tested").state.name()
    }

    /// Sends a request to the server under the host name in the URL.
    pub fn answer(&self, asked: &NamedRequest) -> io::Result<Response> {
        https::ask(self.address, &self.trust, asked)
    }
}

fn serve(config: &Config, looks: Arc<Published>, telemetry: Arc<Telemetry>, runtime: &Runtime) -> SocketAddr {
    let exporter = Exporter {
        telemetry: Arc::clone(&telemetry),
        source: Arc::new(NoLists),
        looks,
        ranking: world::ranking(),
        windows: config.windows.clone(),
        k: config.measures.ks.clone(),
        controls: BTreeMap::new(),
        experiments: [(world::EXPERIMENT.to_owned(), world::experiment())].into(),
        about: About::default(),
        export: config.export.clone(),
        global: None,
        settle_after_ms: 0,
        started_ms: 0,
    };
    let http = config.http.clone();
    let secured =
        Secured::open(&http, &Clock::system(), Arc::clone(&telemetry)).expect("its files can be used");
    let listener = server::bind(http.listen).expect("a free port");
    let address = listener.local_addr().expect("it listens");
    let stop = CancellationToken::new();
    let router = secured.guard(http::router(Arc::new(exporter), &http, stop.clone()));
    let tls = secured.acceptor();
    runtime.spawn(async move {
        server::serve(listener, router, tls, &http, telemetry, stop, server::GRACE).await
    });
    address
}

/// An empty board, which is never used.
struct NoLists;

impl SnapshotSource for NoLists {
    fn snapshot_into(&self, _: Option<usize>, snapshot: &mut Snapshot) {
        *snapshot = Snapshot::default();
    }

    fn timelines(&self, _: usize, arms: &[&ArmSnapshot]) -> Vec<Option<[Timeline; 2]>> {
        arms.iter().map(|_| None).collect()
    }
}
