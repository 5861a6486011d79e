//! A TCP proxy that a test can cut and mend: the network between a client and a broker. A [gate](super::gate) keeps single requests.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::gate::{Gate, Kept, Request};

/// Forwards connections from its own port to another. While cut it refuses new ones, and those that stood are closed.
pub struct Proxy {
    address: SocketAddr,
    target: SocketAddr,
    open: Option<Open>,
    gate: Arc<Mutex<Option<Arc<Gate>>>>,
}

struct Open {
    acceptor: JoinHandle<()>,
    links: Arc<Mutex<Links>>,
}

/// Both ends of every connection, or `None` once cut.
type Links = Option<Vec<TcpStream>>;

impl Proxy {
    /// Listens on `port` of 127.0.0.1, forwards to `target_port`.
    pub fn start(port: u16, target_port: u16) -> Proxy {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, target_port));
        let mut proxy = Proxy {
            address,
            target,
            open: None,
            gate: Arc::default(),
        };
        proxy.restore();
        proxy
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All requests pass this gate from now on, instead of the one before.
    pub fn set_gate(&self, gate: &Arc<Gate>) {
        let before = self.gate.lock().expect("the gate").replace(Arc::clone(gate));
        if let Some(before) = before {
            before.release();
        }
    }

    /// Closes all connections and the port.
    pub fn cut(&mut self) {
        let Some(Open { acceptor, links }) = self.open.take() else {
            return;
        };
        let streams = links.lock().expect("links").take().unwrap_or_default();
        for stream in streams {
            // One that its peer has closed already is as cut as it can be.
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the acceptor, which finds the links gone.
        let _ = TcpStream::connect(self.address);
        acceptor.join().expect("the acceptor ends without panic");
    }

    /// Listens again after a cut.
    pub fn restore(&mut self) {
        if self.open.is_some() {
            return;
        }
        let listener = TcpListener::bind(self.address).expect("listen on the proxy's port");
        let links = Arc::new(Mutex::new(Some(Vec::new())));
        let acceptor = {
            let (links, target, gate) = (links.clone(), self.target, Arc::clone(&self.gate));
            thread::spawn(move || accept(&listener, target, &links, &gate))
        };
        self.open = Some(Open { acceptor, links });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
    }
}

type AGate = Arc<Mutex<Option<Arc<Gate>>>>;

fn accept(listener: &TcpListener, target: SocketAddr, links: &Mutex<Links>, gate: &AGate) {
    for client in listener.incoming() {
        let Ok(client) = client else { continue };
        let mut links = links.lock().expect("links");
        let Some(streams) = links.as_mut() else { return };
        // A target that is down: the client sees its connection closed.
        let Ok(server) = TcpStream::connect(target) else {
            continue;
        };
        if let Ok(both) = forward(&client, &server, gate) {
            streams.extend(both);
        }
    }
}

/// The request whose answer is kept, by what its answer begins with.
type Awaited = Arc<Mutex<Option<(i32, Arc<Gate>)>>>;

/// Carries messages both ways until either side closes; returns handles on both ends.
fn forward(client: &TcpStream, server: &TcpStream, gate: &AGate) -> io::Result<[TcpStream; 2]> {
    let awaited = Awaited::default();
    let requests = {
        let (gate, awaited) = (Arc::clone(gate), Arc::clone(&awaited));
        move |message: &[u8]| {
            let gate = gate.lock().expect("the gate").clone();
            let (Some(gate), Some(request)) = (gate, Request::read(message)) else {
                return true;
            };
            if gate.catches(&request) {
                match gate.kept {
                    Kept::Request => gate.pass(),
                    Kept::Answer | Kept::Lost => {
                        *awaited.lock().expect("the gate") = Some((request.correlation, gate));
                    }
                }
            }
            true
        }
    };
    let answers = move |message: &[u8]| {
        let mut awaited = awaited.lock().expect("the gate");
        let is_kept = |(correlation, _): &(i32, Arc<Gate>)| message.starts_with(&correlation.to_be_bytes());
        let Some((_, gate)) = awaited.take_if(|awaited| is_kept(awaited)) else {
            return true;
        };
        drop(awaited);
        if gate.kept == Kept::Answer {
            gate.pass();
        }
        gate.kept == Kept::Answer
    };
    carry(client, server, requests)?;
    carry(server, client, answers)?;
    Ok([client.try_clone()?, server.try_clone()?])
}

/// Carries messages one way on a thread of its own, each once it may pass; the end of one way is that of both.
fn carry(
    from: &TcpStream,
    to: &TcpStream,
    mut may_pass: impl FnMut(&[u8]) -> bool + Send + 'static,
) -> io::Result<()> {
    from.set_nodelay(true)?;
    let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
    thread::spawn(move || {
        // An error is an end like any other: both sides are closed.
        while let Ok(message) = read(&mut from) {
            if !may_pass(&message[LENGTH..]) || to.write_all(&message).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// Bytes that say how long a message is.
const LENGTH: usize = 4;

/// The next message, with its length before it.
fn read(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; LENGTH];
    from.read_exact(&mut length)?;
    let mut message = length.to_vec();
    message.resize(LENGTH + u32::from_be_bytes(length) as usize, 0);
    from.read_exact(&mut message[LENGTH..])?;
    Ok(message)
}
