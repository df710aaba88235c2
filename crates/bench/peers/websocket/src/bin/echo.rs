//! A server on loopback that sends WebSocket messages back, with the library that the argument
//! names. It prints its port and the library's version, and ends when standard input is closed.

use std::error::Error;
use std::io::{self, Read};

use fastwebsockets::{Frame, OpCode, Role};
use futures_util::{StreamExt, TryStreamExt, future};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tungstenite::handshake::derive_accept_key;
use websocket_peers::version;

type Result<T = (), E = Box<dyn Error>> = std::result::Result<T, E>;

fn main() -> Result {
    let library = std::env::args().nth(1).unwrap_or_default();
    if library != "tokio-tungstenite" && library != "fastwebsockets" {
        return Err(format!("{library:?}: tokio-tungstenite or fastwebsockets").into());
    }
    std::thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{} {}", listener.local_addr()?.port(), version(&library));
        loop {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            let is_tungstenite = library == "tokio-tungstenite";
            tokio::task::spawn_local(async move {
                // A client that goes ends its task.
                let _ = match is_tungstenite {
                    true => tokio_tungstenite(socket).await,
                    false => fastwebsockets(socket).await,
                };
            });
        }
    })
}

/// Messages are forwarded, which writes them when no more can be read, as in the library's example.
async fn tokio_tungstenite(socket: TcpStream) -> Result {
    let (write, read) = tokio_tungstenite::accept_async(socket).await?.split();
    let messages =
        read.try_filter(|message| future::ready(message.is_text() || message.is_binary()));
    Ok(messages.forward(write).await?)
}

/// Each frame is written when it has been read, as in the library's example, but without its mask.
async fn fastwebsockets(mut socket: TcpStream) -> Result {
    accept(&mut socket).await?;
    let mut socket = fastwebsockets::WebSocket::after_handshake(socket, Role::Server);
    socket.set_writev(true);
    loop {
        let frame = socket.read_frame().await?;
        match frame.opcode {
            OpCode::Close => return Ok(()),
            // A frame that was read keeps its mask, which a server must not send.
            opcode @ (OpCode::Text | OpCode::Binary) => {
                socket.write_frame(Frame::new(true, opcode, None, frame.payload)).await?;
            }
            _ => {}
        }
    }
}

/// Answers the request for a WebSocket. The client waits for the answer.
async fn accept(socket: &mut TcpStream) -> Result {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if socket.read_buf(&mut request).await? == 0 {
            return Err("no request".into());
        }
    }
    let request = String::from_utf8(request)?;
    let key = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
    let accept = derive_accept_key(key.ok_or("no key")?.trim().as_bytes());
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    Ok(socket.write_all(answer.as_bytes()).await?)
}
