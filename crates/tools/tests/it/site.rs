//! A small server of the web, which answers as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// So long a connection may hang, so that a test that goes wrong ends.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Site {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Site {
    /// Answers each request by what `answer` writes, and hangs up.
    pub(crate) fn new(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let listening = thread::spawn({
            let (asked, is_over) = (asked.clone(), is_over.clone());
            move || {
                thread::scope(|scope| {
                    while let Ok((mut stream, _)) = listener.accept() {
                        if is_over.load(Ordering::SeqCst) {
                            break;
                        }
                        let (asked, answer) = (&asked, &answer);
                        scope.spawn(move || serve(&mut stream, asked, answer));
                    }
                });
            }
        });
        Site { address, asked, is_over, listening: Some(listening) }
    }

    /// Answers every path with the same.
    pub(crate) fn of(response: impl Into<Vec<u8>>) -> Site {
        let response = response.into();
        Site::new(move |_, stream| {
            let _ = stream.write_all(&response);
        })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The paths that were asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

fn serve(stream: &mut TcpStream, asked: &Mutex<Vec<String>>, answer: &impl Fn(&str, &mut TcpStream)) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    asked.lock().unwrap().push(path.clone());
    answer(&path, stream);
}

/// Waits until the client hangs up.
pub(crate) fn wait_for_end(stream: &mut TcpStream) {
    let _ = stream.read(&mut [0; 1]);
}

/// A whole response.
pub(crate) fn response(kind: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let kind = if kind.is_empty() { String::new() } else { format!("content-type: {kind}\r\n") };
    let head = format!("HTTP/1.1 200 OK\r\n{kind}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

pub(crate) fn redirect(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}
