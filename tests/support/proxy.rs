//! A TCP proxy between client and broker that a test can cut and restore. A [gate](super::gate) holds back single requests.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::gate::{Gate, Kept, Request};

/// A proxy from its own port to another. While it is cut, connections are refused; a cut closes the open ones.
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

/// Ends of every connection, two each, or `None` once cut.
type Links = Option<Vec<TcpStream>>;

impl Proxy {
    /// Listens on `port` of 127.0.0.1 and forwards to `target_port`.
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

    /// Sends all requests through this gate from now on, and releases the previous one.
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
            // Shutdown may fail if the peer has already closed the connection.
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the acceptor, which then finds no links and returns.
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
        // If the target is down, the client's connection is closed.
        let Ok(server) = TcpStream::connect(target) else {
            continue;
        };
        if let Ok(both) = forward(&client, &server, gate) {
            streams.extend(both);
        }
    }
}

/// The request whose answer is held back, by its correlation ID.
type Awaited = Arc<Mutex<Option<(i32, Arc<Gate>)>>>;

/// Forwards messages both ways until either side closes. Returns handles on both ends.
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

/// Forwards messages one way on a new thread, each once `may_pass` returns true. The end of one direction closes both.
fn carry(
    from: &TcpStream,
    to: &TcpStream,
    mut may_pass: impl FnMut(&[u8]) -> bool + Send + 'static,
) -> io::Result<()> {
    from.set_nodelay(true)?;
    let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
    thread::spawn(move || {
        // An error ends the loop like a close: both sides are shut down.
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

/// Size of the length prefix in bytes.
const LENGTH: usize = 4;

/// Reads the next message including its length prefix.
fn read(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; LENGTH];
    from.read_exact(&mut length)?;
    let mut message = length.to_vec();
    message.resize(LENGTH + u32::from_be_bytes(length) as usize, 0);
    from.read_exact(&mut message[LENGTH..])?;
    Ok(message)
}
