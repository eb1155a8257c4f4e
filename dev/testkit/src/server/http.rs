//! As much HTTP/1.1 as a model's server needs, with every byte in our hands.

use std::io::{self, BufRead, Read};

const MAX_REQUEST_HEAD_BYTES: u64 = 256 << 10;
const MAX_REQUEST_BODY_BYTES: usize = 64 << 20;

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedRequest {
    pub method: String,
    pub path: String,
    /// What stood after the question mark.
    pub query: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The number of its connection: requests with the same one shared it.
    pub connection: usize,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(is, _)| is == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn wants_close(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// Reads the next request; nothing if the client has closed.
pub(super) fn read_request(
    reader: &mut impl BufRead,
    connection: usize,
) -> io::Result<Option<ReceivedRequest>> {
    if reader.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut head = reader.by_ref().take(MAX_REQUEST_HEAD_BYTES);
    let first = read_line(&mut head)?;
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1")) = (words.next(), words.next(), words.next()) else {
        return Err(invalid("no request line of HTTP/1.1"));
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = Vec::new();
    loop {
        let line = read_line(&mut head)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("a header without a colon"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
    let mut request = ReceivedRequest { method, path, query, headers, body: Vec::new(), connection };
    request.body = read_body(reader, &request)?;
    Ok(Some(request))
}

fn read_body(reader: &mut impl BufRead, request: &ReceivedRequest) -> io::Result<Vec<u8>> {
    if request.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return read_chunks(reader);
    }
    let length = request.header("content-length").unwrap_or("0");
    let mut body = Vec::new();
    read_exactly(reader, length.parse().map_err(|_| invalid("no length"))?, &mut body)?;
    Ok(body)
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(&mut reader.by_ref().take(MAX_REQUEST_HEAD_BYTES))?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| invalid("no size of a chunk"))?;
        read_exactly(reader, size, &mut body)?;
        read_line(&mut reader.by_ref().take(MAX_REQUEST_HEAD_BYTES))?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn read_exactly(reader: &mut impl BufRead, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
    if body.len().saturating_add(length) > MAX_REQUEST_BODY_BYTES {
        return Err(invalid("a body of more than 64 MiB"));
    }
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    match u64::try_from(reader.by_ref().take(length).read_to_end(body)?) {
        Ok(read) if read == length => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A line without its end.
fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let whole = line.strip_suffix("\r\n").or_else(|| line.strip_suffix('\n'));
    whole.map(str::to_owned).ok_or_else(|| invalid("a line without an end"))
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The first lines of a response.
pub(super) fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// A response that is known as a whole.
pub(super) fn response(status: u16, headers: &[(String, String)], body: &[u8]) -> Vec<u8> {
    let length = body.len().to_string();
    let mut all: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    all.push(("content-length", &length));
    let mut response = head(status, &all);
    response.extend_from_slice(body);
    response
}

pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

pub(super) fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(mut bytes: &[u8]) -> io::Result<Option<ReceivedRequest>> {
        read_request(&mut bytes, 3)
    }

    #[test]
    fn half_a_request_is_an_error_and_none_is_the_end() {
        let whole = b"POST /a?b=c HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(read(b"").unwrap(), None);
        for cut in 1..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn nothing_is_taken_without_limit() {
        let endless = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(300 << 10));
        assert!(read(endless.as_bytes()).is_err());
        assert!(read(b"POST / HTTP/1.1\r\ncontent-length: 18446744073709551615\r\n\r\n").is_err());
        assert!(read(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n").is_err());
    }

    proptest! {
        #[test]
        fn a_request_is_read_as_it_was_sent(body in prop::collection::vec(any::<u8>(), 0..60), size in 1usize..20) {
            let mut plain = format!("POST /a?b=c HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
            plain.extend(&body);
            let mut chunked = b"POST /a?b=c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            body.chunks(size).for_each(|piece| chunked.extend(chunk(piece)));
            chunked.extend(LAST_CHUNK);
            for bytes in [plain, chunked] {
                let request = read(&bytes).unwrap().unwrap();
                prop_assert_eq!((request.path.as_str(), request.query.as_str()), ("/a", "b=c"));
                prop_assert_eq!(&request.body, &body);
            }
        }

        #[test]
        fn nothing_panics(bytes in "(POST|GET| /|\\?| HTTP/1.1|\r\n|content-length: |transfer-encoding: chunked|[0-9a-f:]){0,30}") {
            let _ = read(bytes.as_bytes());
        }
    }
}
