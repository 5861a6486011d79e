//! A server that answers every request alike.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

/// Starts a server that sends this status line and body. Returns its address, and the heads of the requests it receives.
pub fn server(status: &str, body: &str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it listens");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let (tell, heads) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let head = exchange(stream.expect("a connection"), &answer);
            // The receiver is gone if the test has ended.
            if tell.send(head).is_err() {
                return;
            }
        }
    });
    (format!("http://{address}"), heads)
}

fn exchange(stream: TcpStream, answer: &str) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).expect("a line"), 0, "{head}");
    }
    reader.get_mut().write_all(answer.as_bytes()).expect("it listens");
    head
}
