//! The clients: many connections on one thread, each with one request under way.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::server::{Hosted, PAGE};
use super::{Options, Target, bare};

/// All clients.
pub(super) struct Load {
    node: SocketAddr,
    bare: SocketAddr,
    room: String,
    connections: usize,
    /// How many requests the room was asked.
    asked: u64,
    corrupt_one: bool,
}

struct Client {
    stream: TcpStream,
    input: Vec<u8>,
    /// The last sum that the room replied.
    sum: u64,
}

/// The result of one measurement.
pub(super) struct Run {
    pub(super) requests: u64,
    pub(super) seconds: f64,
}

impl Load {
    pub(super) fn connect(hosted: &Hosted, options: &Options) -> io::Result<Self> {
        Ok(Self {
            node: hosted.node,
            bare: hosted.bare,
            room: hosted.room.clone(),
            connections: options.connections,
            asked: 0,
            corrupt_one: options.corrupt_one,
        })
    }

    /// Sends requests for so long, and checks each response.
    pub(super) fn run(&mut self, target: Target, time: Duration) -> io::Result<Run> {
        let address = if target == Target::Bare { self.bare } else { self.node };
        let request = self.request(target, 1);
        let mut poll = Poll::new()?;
        let mut clients = Vec::with_capacity(self.connections);
        for number in 0..self.connections {
            let stream = std::net::TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(number), Interest::READABLE)?;
            clients.push(Client { stream, input: Vec::new(), sum: 0 });
        }
        let began = Instant::now();
        let ends = began + time;
        for client in &mut clients {
            client.stream.write_all(&request)?;
        }
        let (mut requests, mut open) = (0, clients.len());
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; 64 << 10];
        while open > 0 {
            match poll.poll(&mut events, None) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            let is_over = Instant::now() >= ends;
            for event in &events {
                let client = &mut clients[event.token().0];
                let count = match client.stream.read(&mut buffer) {
                    Ok(0) => return Err(wrong("the server closed a connection")),
                    Ok(count) => count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                    Err(error) => return Err(error),
                };
                client.input.extend_from_slice(&buffer[..count]);
                let Some(body) = body(&client.input)? else { continue };
                let mut body = body.to_vec();
                if std::mem::take(&mut self.corrupt_one) {
                    body.push(b'x');
                }
                client.check(target, &body)?;
                client.input.clear();
                requests += 1;
                self.asked += u64::from(target == Target::Room);
                if is_over {
                    // It stays silent until all are dropped.
                    open -= 1;
                } else {
                    client.stream.write_all(&request)?;
                }
            }
        }
        Ok(Run { requests, seconds: began.elapsed().as_secs_f64() })
    }

    /// Checks that the room has handled each request once.
    pub(super) fn check_sum(&self) -> io::Result<()> {
        let mut stream = std::net::TcpStream::connect(self.node)?;
        stream.write_all(&self.request(Target::Room, 0))?;
        let mut input = Vec::new();
        let sum = loop {
            let mut bytes = [0; 1024];
            let count = stream.read(&mut bytes)?;
            input.extend_from_slice(&bytes[..count]);
            if let Some(body) = body(&input)? {
                break number(body)?;
            }
            if count == 0 {
                return Err(wrong("the server closed a connection"));
            }
        };
        if sum == self.asked {
            return Ok(());
        }
        Err(wrong(&format!("the room has counted {sum} of {} requests", self.asked)))
    }

    fn request(&self, target: Target, count: u64) -> Vec<u8> {
        let room = &self.room;
        match target {
            Target::Room => format!(
                "POST /rooms/{room}/add HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n{count}"
            ),
            Target::Page => "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n".to_owned(),
            Target::Bare => format!(
                "POST /rooms/{room}/add HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n{}",
                char::from(bare::END)
            ),
        }
        .into_bytes()
    }
}

impl Client {
    fn check(&mut self, target: Target, body: &[u8]) -> io::Result<()> {
        match target {
            Target::Room => {
                let sum = number(body)?;
                if sum <= self.sum {
                    return Err(wrong(&format!("a room counted {sum} after {}", self.sum)));
                }
                self.sum = sum;
            }
            Target::Page if body != PAGE.as_bytes() => return Err(wrong("a page differs")),
            Target::Bare if !bare::RESPONSE.ends_with(body) => return Err(wrong("bytes differ")),
            Target::Page | Target::Bare => {}
        }
        Ok(())
    }
}

/// The body of the response in the input, once it is complete.
fn body(input: &[u8]) -> io::Result<Option<&[u8]>> {
    let Some(end) = input.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return Ok(None);
    };
    let (head, body) = (&input[..end], &input[end + 4..]);
    if !head.starts_with(b"HTTP/1.1 200 OK\r\n") {
        return Err(wrong(&format!("a response is {:?}", String::from_utf8_lossy(input))));
    }
    let name = b"Content-Length: ";
    let start = head.windows(name.len()).position(|bytes| bytes == name);
    let value = start.map_or(&b""[..], |start| &head[start + name.len()..]);
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let length = number(&value[..digits])? as usize;
    match body.len() {
        came if came < length => Ok(None),
        came if came == length => Ok(Some(body)),
        _ => Err(wrong("a response is longer than it says")),
    }
}

fn number(bytes: &[u8]) -> io::Result<u64> {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    text.parse().map_err(|_| wrong(&format!("{text:?} is no number")))
}

fn wrong(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}
