//! Real Apache Kafka: one or three processes (broker and controller) in temporary directories, on their own ports.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tempfile::TempDir;

use super::certificates::{Authority, Signed, Validity};
use super::gate::Gate;
use super::process::Process;
use super::proxy::Proxy;
use super::{brought, tools, topics, wait};

/// Build file with Kafka's version. `tests/run` downloads its jars.
const POM: &str = include_str!("../kafka/pom.xml");
/// Any 16 bytes in URL-safe base64. Clusters are separate, so all may use the same ID.
const CLUSTER_ID: &str = "YWJnYXVnZS1vZi10ZXN0cw";

/// User with all rights on the SASL listener (mechanism PLAIN), and the password.
pub const READER: (&str, &str) = ("reader", "readers-password");
/// User without any rights on the SASL listener, and the password.
pub const STRANGER: (&str, &str) = ("stranger", "strangers-password");

/// Differences from a plain broker.
#[derive(Default)]
pub struct Options {
    /// Adds a SASL_PLAINTEXT listener with [`READER`] and [`STRANGER`], and an authorizer. The open listener keeps all
    /// rights, for the test itself.
    pub secured: bool,
    /// Adds listeners with TLS: see [`Encrypted`]. Their users are [`READER`] and [`STRANGER`].
    pub encrypted: bool,
    /// Adds a listener that clients reach only through [`Kafka::proxy`].
    pub proxied: bool,
    /// Tunes the broker for throughput once warm, not for a quick start: for benchmarks.
    pub fast: bool,
    /// Starts three brokers with replication factor 3 and `min.insync.replicas=2`.
    pub replicated: bool,
    /// Lines of `server.properties` that override or extend the default ones.
    pub properties: Vec<(&'static str, &'static str)>,
}

/// A cluster with `auto.create.topics.enable=false`, killed when dropped. *The broker* in its methods is the first one.
pub struct Kafka {
    nodes: Vec<Node>,
    fast: bool,
    encrypted: Option<Encrypted>,
}

struct Node {
    // Dropped first: the process writes into the directory.
    process: Process,
    ports: Ports,
    proxy: Option<Proxy>,
    dir: TempDir,
}

/// Listeners with TLS, each of which differs in one respect.
pub struct Encrypted {
    /// Requires PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
    pub sasl: String,
    /// Requires a client certificate such as [`Encrypted::client`].
    pub mutual: String,
    /// Presents the certificate of another host.
    pub misnamed: String,
    /// Presents an expired certificate.
    pub expired: String,
    /// Authority that clients should trust, in PEM.
    pub authority: PathBuf,
    /// Authority that signed none of these certificates.
    pub other_authority: PathBuf,
    pub client: Signed,
}

impl Encrypted {
    fn new(dir: &Path, ports: &Ports) -> Encrypted {
        let authority = Authority::new(dir, "authority");
        let host = ["127.0.0.1"];
        authority.sign("broker", &host, Validity::Now);
        authority.sign("misnamed", &["elsewhere.test"], Validity::Now);
        authority.sign("expired", &host, Validity::Expired);
        let address = |port| format!("127.0.0.1:{port}");
        Encrypted {
            sasl: address(ports.sasl_tls),
            mutual: address(ports.mutual),
            misnamed: address(ports.misnamed),
            expired: address(ports.expired),
            authority: authority.file.clone(),
            other_authority: Authority::new(dir, "stranger").file,
            client: authority.sign(READER.0, &[], Validity::Now),
        }
    }
}

struct Ports {
    open: u16,
    controller: u16,
    sasl: u16,
    sasl_tls: u16,
    mutual: u16,
    misnamed: u16,
    expired: u16,
    /// Port behind the proxy; `proxy` is the proxy's own.
    hidden: u16,
    proxy: u16,
}

impl Kafka {
    /// Starts a broker for one test, which may stop it.
    pub fn start() -> Kafka {
        Kafka::start_with(Options::default())
    }

    pub fn start_with(options: Options) -> Kafka {
        let n_nodes = if options.replicated { 3 } else { 1 };
        let all: Vec<Ports> = (0..n_nodes).map(|_| Ports::free()).collect();
        let dirs: Vec<TempDir> = all.iter().map(|_| tools::temporary_dir("kafka")).collect();
        let encrypted = options.encrypted.then(|| Encrypted::new(dirs[0].path(), &all[0]));
        for (number, dir) in dirs.iter().enumerate() {
            let properties = server_properties(&options, number, &all, dir.path());
            fs::write(dir.path().join("server.properties"), properties).expect("write server.properties");
            fs::write(dir.path().join("log4j2.properties"), LOG4J).expect("write log4j2.properties");
            format_storage(dir.path(), options.encrypted);
        }
        let node = |(ports, dir): (Ports, TempDir)| Node {
            process: launch(dir.path(), options.fast),
            proxy: options.proxied.then(|| Proxy::start(ports.proxy, ports.hidden)),
            ports,
            dir,
        };
        let mut kafka = Kafka {
            nodes: all.into_iter().zip(dirs).map(node).collect(),
            fast: options.fast,
            encrypted,
        };
        kafka.nodes.iter_mut().for_each(Node::wait_until_up);
        kafka
    }

    /// Returns the broker that all tests of a binary share, each with its own topics. It stops when the last reference is
    /// dropped.
    pub fn shared() -> Arc<Kafka> {
        static SHARED: Mutex<Weak<Kafka>> = Mutex::new(Weak::new());
        // A failed start leaves the old `Weak`, which no longer upgrades.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let kafka = Arc::new(Kafka::start());
            *shared = Arc::downgrade(&kafka);
            kafka
        })
    }

    /// Returns the open listener, for `bootstrap.servers`.
    pub fn brokers(&self) -> String {
        self.addresses(|ports| ports.open)
    }

    fn addresses(&self, port: fn(&Ports) -> u16) -> String {
        let addresses = self
            .nodes
            .iter()
            .map(|node| format!("127.0.0.1:{}", port(&node.ports)));
        addresses.collect::<Vec<_>>().join(",")
    }

    /// Returns the SASL_PLAINTEXT listener. Requires [`Options::secured`].
    pub fn sasl_brokers(&self) -> String {
        self.addresses(|ports| ports.sasl)
    }

    /// Returns the TLS listeners. Requires [`Options::encrypted`].
    pub fn encrypted(&self) -> &Encrypted {
        self.encrypted.as_ref().expect("started with Options::encrypted")
    }

    /// Returns the proxy's address. All connections of a client that bootstraps here pass the proxy. Requires
    /// [`Options::proxied`].
    pub fn proxied_brokers(&self) -> String {
        self.addresses(|ports| ports.proxy)
    }

    /// Returns the proxy before the proxied listener, to cut and restore the network.
    pub fn proxy(&mut self) -> &mut Proxy {
        self.nodes[0]
            .proxy
            .as_mut()
            .expect("started with Options::proxied")
    }

    /// Sends requests to any broker through this gate from now on. Requires [`Options::proxied`].
    pub fn set_gate(&self, gate: &Arc<Gate>) {
        let proxies = self.nodes.iter().filter_map(|node| node.proxy.as_ref());
        proxies.for_each(|proxy| proxy.set_gate(gate));
    }

    /// Kills the broker as a crash would. Acknowledged records stay in its directory.
    pub fn stop(&mut self) {
        self.nodes[0].process.kill();
    }

    /// Makes every file write of the broker fail, as on a full disk, until it is restarted.
    pub fn fill_disk(&self) {
        let zero = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        let pid = self.nodes[0].process.pid().cast_signed();
        // SAFETY: the call reads `zero`, and writes no old limit to the null pointer. Java ignores the signal SIGXFSZ.
        let done = unsafe { libc::prlimit(pid, libc::RLIMIT_FSIZE, &zero, std::ptr::null_mut()) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }

    /// Kills the broker if it still runs, starts it on the same ports and directory, and waits until it answers.
    pub fn restart(&mut self) {
        self.restart_node(0);
    }

    /// Stops the broker with SIGTERM, starts it on the same ports and directory, and waits until it answers.
    pub fn restart_in_order(&mut self) {
        self.restart_node_in_order(0);
    }

    /// Like [`Kafka::restart`], for any broker. Others lead its partitions meanwhile, and it leads them again soon.
    pub fn restart_node(&mut self, number: usize) {
        let fast = self.fast;
        let node = &mut self.nodes[number];
        node.process.kill();
        node.process = launch(node.dir.path(), fast);
        node.wait_until_up();
    }

    /// Like [`Kafka::restart_in_order`], for any broker. It hands its partitions over before it stops.
    pub fn restart_node_in_order(&mut self, number: usize) {
        let process = &mut self.nodes[number].process;
        process.signal(libc::SIGTERM);
        process.wait_exit(wait::LONG);
        self.restart_node(number);
    }

    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the directory of the broker's logs.
    pub fn data_dir(&self) -> PathBuf {
        self.nodes[0].dir.path().join("data")
    }

    /// Returns the broker's log output so far.
    pub fn log(&self) -> String {
        self.nodes[0].process.log()
    }
}

impl Node {
    fn wait_until_up(&mut self) {
        let address = format!("127.0.0.1:{}", self.ports.open);
        self.process
            .wait_until("the broker to answer", wait::LONG, || topics::answers(&address));
    }
}

impl Ports {
    fn free() -> Ports {
        Ports {
            open: tools::free_port(),
            controller: tools::free_port(),
            sasl: tools::free_port(),
            sasl_tls: tools::free_port(),
            mutual: tools::free_port(),
            misnamed: tools::free_port(),
            expired: tools::free_port(),
            hidden: tools::free_port(),
            proxy: tools::free_port(),
        }
    }
}

fn server_properties(options: &Options, number: usize, all: &[Ports], dir: &Path) -> String {
    let ports = &all[number];
    let mut listeners = vec![("OPEN", "PLAINTEXT", ports.open, ports.open)];
    if options.secured {
        listeners.push(("SECURED", "SASL_PLAINTEXT", ports.sasl, ports.sasl));
    }
    if options.proxied {
        listeners.push(("PROXIED", "PLAINTEXT", ports.hidden, ports.proxy));
    }
    if options.encrypted {
        listeners.extend([
            ("SASL_TLS", "SASL_SSL", ports.sasl_tls, ports.sasl_tls),
            ("MUTUAL", "SSL", ports.mutual, ports.mutual),
            ("MISNAMED", "SSL", ports.misnamed, ports.misnamed),
            ("EXPIRED", "SSL", ports.expired, ports.expired),
        ]);
    }
    let list = |entry: fn(&(&str, &str, u16, u16)) -> String| {
        listeners.iter().map(entry).collect::<Vec<_>>().join(",")
    };
    let bound = list(|(name, _, port, _)| format!("{name}://127.0.0.1:{port}"));
    let advertised = list(|(name, _, _, port)| format!("{name}://127.0.0.1:{port}"));
    let protocols = list(|(name, protocol, _, _)| format!("{name}:{protocol}"));
    let Ports { controller, .. } = ports;
    let voters = all.iter().enumerate();
    let voters = voters.map(|(number, ports)| format!("{}@127.0.0.1:{}", number + 1, ports.controller));

    let mut text = format!(
        "process.roles=broker,controller
node.id={id}
controller.quorum.voters={voters}
controller.listener.names=CONTROLLER
listeners={bound},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={advertised}
listener.security.protocol.map={protocols},CONTROLLER:PLAINTEXT
inter.broker.listener.name=OPEN
log.dirs={data}
{SMALL}",
        id = number + 1,
        voters = voters.collect::<Vec<_>>().join(","),
        data = dir.join("data").display()
    );
    if options.replicated {
        text.push_str(REPLICATED);
    }
    if options.secured {
        text.push_str(&security());
    }
    if options.encrypted {
        text.push_str(&encryption(dir));
    }
    for (name, value) in &options.properties {
        // Java uses the last value if a property occurs twice.
        writeln!(text, "{name}={value}").expect("write to a string");
    }
    text
}

/// Properties of a single broker: it holds all replicas, and a group's first member does not wait for others.
const SMALL: &str = "auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
offsets.topic.replication.factor=1
offsets.topic.num.partitions=5
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=5
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
default.replication.factor=1
min.insync.replicas=1
";

/// Properties of three brokers. They come last, so they override the ones above. A broker's failure is noticed quickly, and
/// after its return it soon leads again.
const REPLICATED: &str = "offsets.topic.replication.factor=3
default.replication.factor=3
min.insync.replicas=2
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
leader.imbalance.check.interval.seconds=2
leader.imbalance.per.broker.percentage=0
";

fn plain_users() -> String {
    [READER, STRANGER]
        .iter()
        .map(|(user, password)| format!(" user_{user}=\"{password}\""))
        .collect()
}

fn security() -> String {
    let users = plain_users();
    format!(
        "listener.name.secured.sasl.enabled.mechanisms=PLAIN
listener.name.secured.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required{users};
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:{reader};User:CN={reader}
",
        reader = READER.0
    )
}

/// Mechanisms whose passwords are stored in Kafka.
const SCRAM: [&str; 2] = ["SCRAM-SHA-256", "SCRAM-SHA-512"];

fn encryption(dir: &Path) -> String {
    const LOGIN: &str = "org.apache.kafka.common.security";
    let users = plain_users();
    let mut text = format!(
        "listener.name.sasl_tls.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_tls.plain.sasl.jaas.config={LOGIN}.plain.PlainLoginModule required{users};
listener.name.mutual.ssl.client.auth=required
listener.name.mutual.ssl.truststore.type=PEM
listener.name.mutual.ssl.truststore.location={authority}
",
        authority = dir.join("authority.pem").display()
    );
    for mechanism in SCRAM.map(str::to_lowercase) {
        writeln!(
            text,
            "listener.name.sasl_tls.{mechanism}.sasl.jaas.config={LOGIN}.scram.ScramLoginModule required;"
        )
        .expect("write to a string");
    }
    let certificates = [
        ("sasl_tls", "broker"),
        ("mutual", "broker"),
        ("misnamed", "misnamed"),
        ("expired", "expired"),
    ];
    for (listener, certificate) in certificates {
        writeln!(
            text,
            "listener.name.{listener}.ssl.keystore.type=PEM\nlistener.name.{listener}.ssl.keystore.location={}",
            dir.join(format!("{certificate}.both")).display()
        )
        .expect("write to a string");
    }
    text
}

const LOG4J: &str = "rootLogger.level=INFO
rootLogger.appenderRef.stdout.ref=STDOUT
appender.stdout.type=Console
appender.stdout.name=STDOUT
appender.stdout.layout.type=PatternLayout
appender.stdout.layout.pattern=%d{HH:mm:ss.SSS} %p %c{1}: %m%n
";

fn format_storage(dir: &Path, with_users: bool) {
    let mut command = java(dir, false);
    command
        .args(["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"])
        .arg(dir.join("server.properties"));
    for mechanism in SCRAM.iter().filter(|_| with_users) {
        for (user, password) in [READER, STRANGER] {
            let credentials = format!("{mechanism}=[name={user},password={password}]");
            command.args(["--add-scram", &credentials]);
        }
    }
    let mut tool = Process::start("StorageTool", command, &dir.join("format.log"));
    let code = tool.wait_exit(wait::LONG);
    assert_eq!(code, Some(0), "StorageTool refuses the directory");
}

fn launch(dir: &Path, fast: bool) -> Process {
    let mut command = java(dir, fast);
    command.arg("kafka.Kafka").arg(dir.join("server.properties"));
    Process::start("kafka", command, &dir.join("log"))
}

/// Returns the Java command with Kafka's jars, sized for a quick start unless `fast`.
fn java(dir: &Path, fast: bool) -> Command {
    let mut command = brought::command("java");
    let sizes: &[&str] = if fast {
        &["-Xms512m", "-Xmx512m"]
    } else {
        &["-Xms128m", "-Xmx384m", "-XX:TieredStopAtLevel=1"]
    };
    command
        .args(sizes)
        .arg("-XX:+UseSerialGC")
        .arg(format!(
            "-Dlog4j2.configurationFile={}",
            dir.join("log4j2.properties").display()
        ))
        .arg("-cp")
        .arg(brought::cached(&format!("kafka-{}/libs", version())).join("*"));
    command
}

fn version() -> &'static str {
    let (_, after) = POM
        .split_once("<kafka.version>")
        .expect("the pom names Kafka's version");
    after.split_once('<').expect("the pom is XML").0
}
