//! A client that sees every byte.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use flate2::read::GzDecoder;
use helve_models::script::ModelScript;
use helve_models::{ModelAnswer, ResponseDecoder, StreamError, WireProtocol};
use helve_testkit::ScriptedServer;
use serde_json::json;

pub(crate) const WIRES: [WireProtocol; 4] =
    [WireProtocol::Messages, WireProtocol::Chat, WireProtocol::Responses, WireProtocol::Gemini];

/// Longer than anything takes that happens at all.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) fn play(script: &str) -> ScriptedServer {
    ScriptedServer::play(ModelScript::parse(script).unwrap()).unwrap()
}

pub(crate) fn path(wire: WireProtocol) -> &'static str {
    match wire {
        WireProtocol::Messages => "/v1/messages",
        WireProtocol::Chat => "/v1/chat/completions",
        WireProtocol::Responses => "/some/prefix/v1/responses",
        WireProtocol::Gemini => "/v1beta/models/gem-1:streamGenerateContent?alt=sse",
    }
}

pub(crate) fn body(wire: WireProtocol) -> String {
    let said = [json!({"role": "user", "content": "Hi"})];
    match wire {
        WireProtocol::Messages | WireProtocol::Chat => {
            json!({"model": "m-1", "stream": true, "messages": said})
        }
        WireProtocol::Responses => json!({"model": "m-1", "stream": true, "input": said}),
        WireProtocol::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}),
    }
    .to_string()
}

pub(crate) struct Client {
    pub(crate) reader: BufReader<TcpStream>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// HTTP says that this was all.
    Whole,
    /// The connection was closed before.
    Closed,
    Failed(io::ErrorKind),
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) ending: Ending,
}

impl Client {
    pub(crate) fn connect(server: &ScriptedServer) -> Client {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Client { reader: BufReader::new(stream) }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    pub(crate) fn ask(&mut self, wire: WireProtocol) {
        let (path, body) = (path(wire), body(wire));
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nX-Key: Secret\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.send(head.as_bytes());
        self.send(body.as_bytes());
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes());
        self.response().unwrap()
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        line.strip_suffix("\r\n").map(str::to_owned).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// The status and the headers.
    pub(crate) fn head(&mut self) -> io::Result<Response> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        Ok(Response { status, headers, body: Vec::new(), ending: Ending::Closed })
    }

    /// The next piece of a body in chunks; empty if it was the last.
    pub(crate) fn chunk(&mut self) -> io::Result<Vec<u8>> {
        let size = usize::from_str_radix(&self.line()?, 16).unwrap();
        let mut bytes = vec![0; size + 2];
        self.reader.read_exact(&mut bytes)?;
        bytes.truncate(size);
        Ok(bytes)
    }

    pub(crate) fn response(&mut self) -> io::Result<Response> {
        let mut response = self.head()?;
        response.ending = match self.read_body(&mut response) {
            Ok(()) => Ending::Whole,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ending::Closed,
            Err(error) => Ending::Failed(error.kind()),
        };
        Ok(response)
    }

    fn read_body(&mut self, response: &mut Response) -> io::Result<()> {
        if let Some(length) = response.header("content-length") {
            response.body = vec![0; length.parse().unwrap()];
            return self.reader.read_exact(&mut response.body);
        }
        loop {
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                return Ok(());
            }
            response.body.extend(chunk);
        }
    }
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(is, _)| is == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn answer(&self, wire: WireProtocol) -> Result<ModelAnswer, StreamError> {
        let mut body = self.body.clone();
        if self.header("content-encoding") == Some("gzip") {
            body.clear();
            GzDecoder::new(self.body.as_slice()).read_to_end(&mut body).unwrap();
        }
        let mut decoder = ResponseDecoder::new(wire);
        let mut answer = ModelAnswer::default();
        decoder.push(&body)?.into_iter().for_each(|event| answer.apply(event));
        decoder.finish()?.into_iter().for_each(|event| answer.apply(event));
        Ok(answer)
    }
}

/// Asks on a connection of its own.
pub(crate) fn ask(server: &ScriptedServer, wire: WireProtocol) -> io::Result<Response> {
    let mut client = Client::connect(server);
    client.ask(wire);
    client.response()
}
