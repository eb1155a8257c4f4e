//! A server that plays a model: real HTTP on a real socket, scripts on all four wires, and every fault that networks have.
//!
//! ```no_run
//! use helve_models::script::ModelScript;
//! use helve_testkit::{InjectedFault, ScriptedServer};
//!
//! let script = ModelScript::parse("[[step]]\ntext = \"Hello.\"\n").unwrap();
//! let server = ScriptedServer::play(script).unwrap();
//! server.fault(InjectedFault::ResetMid); // the next request fails like this, the one after it gets the answer
//! let base = server.url("/v1"); // what a client is given
//! ```

mod answer;
mod connection;
mod fault;
mod gate;
mod http;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use helve_models::script::{ModelScript, ScriptPlayer};

pub use fault::InjectedFault;
pub use gate::EventGate;
pub use http::ReceivedRequest;

/// Answers until it is dropped. Then nothing of it is left, whatever its clients do.
#[derive(Debug)]
pub struct ScriptedServer {
    shared: Arc<ScriptedServerShared>,
    address: SocketAddr,
    listeners: Vec<JoinHandle<()>>,
}

impl ScriptedServer {
    /// Starts a server that answers with the steps of a script.
    pub fn play(script: ModelScript) -> io::Result<ScriptedServer> {
        let (server, elsewhere) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
        let address = server.local_addr()?;
        let shared = Arc::new(ScriptedServerShared::new(script, elsewhere.local_addr()?));
        let (main, stray) = (Arc::clone(&shared), Arc::clone(&shared));
        let listeners = vec![
            thread::spawn(move || connection::listen(&main, &server)),
            thread::spawn(move || connection::count(&stray, &elsewhere)),
        ];
        Ok(ScriptedServer { shared, address, listeners })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of a path, such as `/v1`. Whatever stands before the paths of the wires is tolerated.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What `GET …/models` lists.
    pub fn list_models(&self, names: &[&str]) {
        self.shared.lock().models = names.iter().map(|name| (*name).to_owned()).collect();
    }

    /// The next request without a fault of its own meets this one. It uses up no step, unless it leaves the answer whole.
    pub fn fault(&self, fault: InjectedFault) {
        self.shared.lock().faults.push_back(fault);
    }

    /// Every request meets this fault, after those that wait for one request each.
    pub fn always(&self, fault: InjectedFault) {
        self.shared.lock().always = Some(fault);
    }

    /// From now on, refuses what the real servers refuse: see `strict::check`.
    pub fn be_strict(&self) {
        self.shared.lock().strict = true;
    }

    /// What was wrong with the requests that a strict server has refused.
    pub fn refused(&self) -> Vec<String> {
        self.shared.lock().refused.clone()
    }

    /// No more faults.
    pub fn clear_faults(&self) {
        let mut state = self.shared.lock();
        state.faults.clear();
        state.always = None;
    }

    /// Holds back the events of the next answer that has no gate yet.
    #[must_use = "a gate that is dropped is open"]
    pub fn gate(&self) -> EventGate {
        let gate = EventGate::new(Arc::clone(&self.shared));
        self.shared.lock().gates.push_back(gate.opened());
        gate
    }

    /// The requests so far, in the order in which they were read.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.lock().requests.iter().map(|request| (*request.recorded).clone()).collect()
    }

    /// The requests, as soon as there are so many of them; nothing if that takes too long.
    pub fn wait_requests(&self, count: usize, timeout: Duration) -> Option<Vec<ReceivedRequest>> {
        let arrived = self.shared.wait(timeout, |state| state.requests.len() >= count);
        arrived.then(|| self.requests())
    }

    /// Whether the client of a request (counted from 0) closes its connection before its answer is whole.
    #[must_use]
    pub fn wait_closed(&self, request: usize, timeout: Duration) -> bool {
        self.shared.wait(timeout, |state| {
            state.requests.get(request).is_some_and(|request| request.fate == TrackedRequestStatus::Abandoned)
        })
    }

    /// How many connections came to where `InjectedFault::Redirect` leads.
    pub fn redirects_followed(&self) -> usize {
        self.shared.lock().followed
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.stopping = true;
        for stream in state.connections.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        // Whoever accepts looks up only when somebody comes.
        let _ = TcpStream::connect(self.address);
        let _ = TcpStream::connect(self.shared.elsewhere);
        for listener in self.listeners.drain(..) {
            let _ = listener.join();
        }
    }
}

/// What all threads of a server know.
#[derive(Debug)]
struct ScriptedServerShared {
    state: Mutex<ScriptedServerState>,
    changed: Condvar,
    /// Where redirects lead.
    elsewhere: SocketAddr,
}

#[derive(Debug)]
struct ScriptedServerState {
    player: ScriptPlayer,
    models: Vec<String>,
    faults: VecDeque<InjectedFault>,
    always: Option<InjectedFault>,
    gates: VecDeque<gate::OpenEventCount>,
    requests: Vec<TrackedRequest>,
    /// Those that are open, by their numbers.
    connections: BTreeMap<usize, Arc<TcpStream>>,
    accepted: usize,
    /// Connections that the client has closed, or that have broken.
    gone: BTreeSet<usize>,
    followed: usize,
    strict: bool,
    refused: Vec<String>,
    stopping: bool,
}

#[derive(Debug)]
struct TrackedRequest {
    recorded: Arc<ReceivedRequest>,
    fate: TrackedRequestStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrackedRequestStatus {
    Open,
    /// All was sent that was to be sent.
    Answered,
    /// The client went before.
    Abandoned,
}

impl ScriptedServerShared {
    fn new(script: ModelScript, elsewhere: SocketAddr) -> ScriptedServerShared {
        let state = ScriptedServerState {
            player: ScriptPlayer::new(script),
            models: vec!["scripted".to_owned()],
            faults: VecDeque::new(),
            always: None,
            gates: VecDeque::new(),
            requests: Vec::new(),
            connections: BTreeMap::new(),
            accepted: 0,
            gone: BTreeSet::new(),
            followed: 0,
            strict: false,
            refused: Vec::new(),
            stopping: false,
        };
        ScriptedServerShared { state: Mutex::new(state), changed: Condvar::new(), elsewhere }
    }

    fn lock(&self) -> MutexGuard<'_, ScriptedServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something that others may wait for.
    fn change<T>(&self, change: impl FnOnce(&mut ScriptedServerState) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    /// Waits until something holds; says whether it does.
    fn wait(&self, timeout: Duration, holds: impl Fn(&ScriptedServerState) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, |state| !holds(state));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        holds(&state)
    }
}

impl ScriptedServerState {
    fn next_fault(&mut self) -> Option<InjectedFault> {
        self.faults.pop_front().or_else(|| self.always.clone())
    }

    fn settle(&mut self, request: usize, fate: TrackedRequestStatus) {
        if let Some(request) =
            self.requests.get_mut(request).filter(|request| request.fate == TrackedRequestStatus::Open)
        {
            request.fate = fate;
        }
    }
}
