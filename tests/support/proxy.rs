//! A TCP proxy that a test can cut and mend: the network between a client and a broker.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// Forwards connections from its own port to another. While cut it refuses new ones, and those that stood are closed.
pub struct Proxy {
    address: SocketAddr,
    target: SocketAddr,
    open: Option<Open>,
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
        };
        proxy.restore();
        proxy
    }

    pub fn address(&self) -> SocketAddr {
        self.address
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
            let (links, target) = (links.clone(), self.target);
            thread::spawn(move || accept(&listener, target, &links))
        };
        self.open = Some(Open { acceptor, links });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
    }
}

fn accept(listener: &TcpListener, target: SocketAddr, links: &Mutex<Links>) {
    for client in listener.incoming() {
        let Ok(client) = client else { continue };
        let mut links = links.lock().expect("links");
        let Some(streams) = links.as_mut() else { return };
        // A target that is down: the client sees its connection closed.
        let Ok(server) = TcpStream::connect(target) else {
            continue;
        };
        if let Ok(both) = forward(&client, &server) {
            streams.extend(both);
        }
    }
}

/// Carries bytes both ways until either side closes; returns handles on both ends.
fn forward(client: &TcpStream, server: &TcpStream) -> io::Result<[TcpStream; 2]> {
    for (from, to) in [(client, server), (server, client)] {
        from.set_nodelay(true)?;
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        thread::spawn(move || {
            // An error is an end like any other: both sides are closed.
            let _ = io::copy(&mut from, &mut to);
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
    Ok([client.try_clone()?, server.try_clone()?])
}
