//! A proxy that knows one server, by every name.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, copy_bidirectional,
};
use tokio::net::TcpStream;

use super::listener::TestListener;

/// As much as a client may say before it is let through.
const MAX_PROXY_HEAD_BYTES: u64 = 16 << 10;
const SOCKS5_VERSION: u8 = 5;

/// Speaks HTTP's CONNECT and SOCKS5 on one port, until it is dropped.
#[derive(Debug)]
pub struct TestProxy {
    listener: TestListener,
    asked: ProxyRequestLog,
}

type ProxyRequestLog = Arc<Mutex<Vec<String>>>;

impl TestProxy {
    /// Starts a proxy that leads to one place whatever host it is asked for, so that no name needs to be known anywhere.
    pub fn to(server: SocketAddr) -> io::Result<TestProxy> {
        let asked = ProxyRequestLog::default();
        let log = Arc::clone(&asked);
        let listener = TestListener::start(move |_, client| {
            let log = Arc::clone(&log);
            async move {
                // Who goes away in the middle of it is missed by nobody.
                let _ = forward_connection(BufReader::new(client), server, &log).await;
            }
        })?;
        Ok(TestProxy { listener, asked })
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.address
    }

    /// What it was asked, one for each connection: `CONNECT host:port`, `SOCKS host:port`, or what else was said.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn forward_connection(
    mut client: BufReader<TcpStream>,
    server: SocketAddr,
    asked: &ProxyRequestLog,
) -> io::Result<()> {
    let tell = |what: String| asked.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    let welcome: &[u8] = if client.fill_buf().await?.first() == Some(&SOCKS5_VERSION) {
        tell(format!("SOCKS {}", read_socks_request(&mut client).await?));
        // Done, and where from: the address that means none.
        &[SOCKS5_VERSION, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    } else {
        let request = read_connect_request(&mut client).await?;
        let place = request.strip_suffix(" HTTP/1.1").filter(|said| said.starts_with("CONNECT "));
        tell(place.unwrap_or(&request).to_owned());
        if place.is_none() {
            return client.write_all(b"HTTP/1.1 501 Not Implemented\r\ncontent-length: 0\r\n\r\n").await;
        }
        b"HTTP/1.1 200 OK\r\n\r\n"
    };
    let mut server = TcpStream::connect(server).await?;
    client.write_all(welcome).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// The first line of a request whose headers are read.
async fn read_connect_request(client: &mut (impl AsyncBufRead + Unpin)) -> io::Result<String> {
    let mut lines = client.take(MAX_PROXY_HEAD_BYTES).lines();
    let first = lines.next_line().await?.unwrap_or_default();
    while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
    Ok(first)
}

/// The host and the port that a client of SOCKS5 asks for.
async fn read_socks_request(client: &mut (impl AsyncBufRead + AsyncWrite + Unpin)) -> io::Result<String> {
    let _version = client.read_u8().await?;
    let mut ways = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut ways).await?;
    client.write_all(&[SOCKS5_VERSION, 0]).await?;
    let mut wish = [0; 4];
    client.read_exact(&mut wish).await?;
    // A connection, to a host that is named: only the proxy can know where it is.
    if wish != [SOCKS5_VERSION, 1, 0, 3] {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "no name to connect to"));
    }
    let mut host = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut host).await?;
    Ok(format!("{}:{}", String::from_utf8_lossy(&host), client.read_u16().await?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
    }

    fn read_http(mut bytes: &[u8]) -> io::Result<String> {
        run(read_connect_request(&mut bytes))
    }

    fn read_socks(bytes: &[u8]) -> io::Result<String> {
        run(read_socks_request(&mut tokio::io::join(bytes, tokio::io::sink())))
    }

    proptest! {
        #[test]
        fn whoever_is_asked_for_is_heard(host in "[a-z.]{1,60}", port in any::<u16>(), ways in 0u8..9) {
            let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nhost: {host}\r\n\r\n");
            prop_assert_eq!(read_http(request.as_bytes()).unwrap(), format!("CONNECT {host}:{port} HTTP/1.1"));

            let mut request = vec![SOCKS5_VERSION, ways];
            request.extend(vec![0; ways.into()]);
            request.extend([SOCKS5_VERSION, 1, 0, 3, u8::try_from(host.len()).unwrap()]);
            request.extend(host.as_bytes());
            request.extend(port.to_be_bytes());
            prop_assert_eq!(read_socks(&request).unwrap(), format!("{host}:{port}"));
            prop_assert!(read_socks(&request[..request.len() - 1]).is_err());
        }

        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = (read_http(&bytes), read_socks(&bytes));
        }
    }
}
