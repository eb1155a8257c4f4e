//! A port on this machine where somebody answers.

use std::future::{Future, pending};
use std::io;
use std::net::{self, SocketAddr};
use std::thread::{self, JoinHandle};

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio_util::sync::CancellationToken;

/// No test needs more.
const MAX_LISTENER_CONNECTIONS: usize = 64;

/// Serves connections until it is dropped. Then all of them are closed.
#[derive(Debug)]
pub(super) struct TestListener {
    pub(super) address: SocketAddr,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl TestListener {
    /// Serves each connection with what `serve` makes of it and its number.
    pub(super) fn start<Work>(
        serve: impl Fn(usize, TcpStream) -> Work + Send + 'static,
    ) -> io::Result<TestListener>
    where
        Work: Future<Output = ()> + Send + 'static,
    {
        let listener = net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        // A thread of its own, so that tests may be asynchronous or not.
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! { () = stopped => {}, () = accept(listener, serve) => {} }
            });
        });
        Ok(TestListener { address, stop, thread: Some(thread) })
    }
}

async fn accept<Work>(listener: net::TcpListener, serve: impl Fn(usize, TcpStream) -> Work)
where
    Work: Future<Output = ()> + Send + 'static,
{
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    for number in 0..MAX_LISTENER_CONNECTIONS {
        let Ok((stream, _)) = listener.accept().await else { break };
        tokio::spawn(serve(number, stream));
    }
    // From now on nobody is let in, but those who are stay.
    drop(listener);
    pending::<()>().await;
}

impl Drop for TestListener {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::time::Duration;

    #[test]
    fn nothing_is_left_when_it_is_dropped() {
        let listener = TestListener::start(|_, stream| async move {
            pending::<()>().await;
            drop(stream);
        })
        .unwrap();
        let mut client = net::TcpStream::connect(listener.address).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let address = listener.address;
        drop(listener);
        let read = client.read(&mut [0]).map_err(|error| error.kind());
        assert!(matches!(read, Ok(0) | Err(io::ErrorKind::ConnectionReset)), "{read:?}");
        assert!(net::TcpStream::connect(address).is_err());
    }
}
