//! What the server does when all is well, and when a test interferes.

use std::io::{ErrorKind, Read};
use std::time::Duration;

use helve_models::{WireProtocol, parse_error_body};
use helve_testkit::InjectedFault;
use serde_json::Value;

use crate::client::{Client, Ending, LONG, WIRES, ask, body, play};

const TWO: &str = "[[step]]\ntext = 'one'\n[[step]]\ntext = 'two'\n";

#[test]
fn a_script_is_played_on_every_wire_over_one_connection() {
    for wire in WIRES {
        let server = play(TWO);
        let mut client = Client::connect(&server);
        for expected in ["one", "two"] {
            client.ask(wire);
            let response = client.response().unwrap();
            assert_eq!((response.status, &response.ending), (200, &Ending::Whole), "{wire:?}");
            assert_eq!(response.header("content-type"), Some("text/event-stream"), "{wire:?}");
            assert_eq!(response.answer(wire).unwrap().text(), expected, "{wire:?}");
        }
        ask(&server, wire).unwrap();
        let connections: Vec<usize> = server.requests().iter().map(|request| request.connection).collect();
        assert_eq!(connections, [0, 0, 1], "{wire:?}");
    }
}

#[test]
fn requests_are_recorded_as_they_came() {
    let server = play(TWO);
    ask(&server, WireProtocol::Gemini).unwrap();
    let requests = server.wait_requests(1, LONG).unwrap();
    assert_eq!(requests[0].method, "POST");
    assert_eq!(requests[0].path, "/v1beta/models/gem-1:streamGenerateContent");
    assert_eq!(requests[0].query, "alt=sse");
    assert_eq!(requests[0].header("x-key"), Some("Secret"));
    assert_eq!(requests[0].body, body(WireProtocol::Gemini).as_bytes());
    assert_eq!(server.wait_requests(2, Duration::from_millis(1)), None);
}

#[test]
fn a_request_may_come_in_chunks() {
    let server = play(TWO);
    let mut client = Client::connect(&server);
    client.send(b"POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    let body = body(WireProtocol::Messages);
    let (first, second) = body.split_at(7);
    for chunk in [first, second, ""] {
        client.send(format!("{:x}\r\n{chunk}\r\n", chunk.len()).as_bytes());
    }
    assert_eq!(client.response().unwrap().answer(WireProtocol::Messages).unwrap().text(), "one");
    assert_eq!(server.requests()[0].body, body.as_bytes());
}

#[test]
fn a_connection_that_shall_close_is_closed() {
    let server = play(TWO);
    let mut client = Client::connect(&server);
    client.send(b"GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n");
    client.response().unwrap();
    assert_eq!(client.reader.read(&mut [0]).unwrap(), 0);
}

#[test]
fn models_are_listed() {
    let server = play(TWO);
    server.list_models(&["m-1", "m-2"]);
    let response = Client::connect(&server).get("/any/v1/models");
    let list: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!((&list["data"][1]["id"], &list["models"][0]["name"]), (&"m-2".into(), &"models/m-1".into()));
}

#[test]
fn what_a_real_server_would_refuse_is_refused() {
    let server = play(TWO);
    assert_eq!(Client::connect(&server).get("/v1/unknown").status, 404);
    let post = |path: &str, body: &str| {
        let mut client = Client::connect(&server);
        let head = format!("POST {path} HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
        client.send((head + body).as_bytes());
        let response = client.response().unwrap();
        assert_eq!(response.status, 400, "{path} {body}");
        parse_error_body(&response.text()).unwrap().to_string()
    };
    assert!(post("/v1/messages", "{").contains("not JSON"));
    assert!(post("/v1/messages", "{}").contains("no \"messages\""));
    assert!(post("/v1/messages", r#"{"messages": []}"#).contains("\"stream\": true"));
    assert!(post("/v1beta/models/m:streamGenerateContent", r#"{"contents": []}"#).contains("alt=sse"));
    let mut client = Client::connect(&server);
    client.send(b"nonsense\r\n\r\n");
    assert_eq!(client.response().unwrap().status, 400);
    assert_eq!(
        ask(&server, WireProtocol::Chat).unwrap().answer(WireProtocol::Chat).unwrap().text(),
        "one",
        "nothing was used up"
    );
}

#[test]
fn a_body_without_end_is_not_taken() {
    let server = play(TWO);
    let mut client = Client::connect(&server);
    client.send(b"POST /v1/messages HTTP/1.1\r\ncontent-length: 68000000\r\n\r\n");
    assert!(client.response().unwrap().text().contains("64 MiB"));
}

#[test]
fn a_script_that_has_no_step_says_so() {
    for wire in WIRES {
        let server = play("[[step]]\ntext = 'a'\nwhen = { asked = 'other' }\n");
        let response = ask(&server, wire).unwrap();
        assert_eq!(response.status, 400, "{wire:?}");
        let told = parse_error_body(&response.text()).unwrap().to_string();
        assert!(told.contains("the user asked \"Hi\""), "{wire:?}: {told}");
    }
}

#[test]
fn a_step_may_fail() {
    let server = play(
        "[[step]]\nfail = { status = 429, headers = { retry-after = '7' } }\ndelay = '1ms'\n[[step]]\ntext = 'a'\n",
    );
    let mut client = Client::connect(&server);
    client.ask(WireProtocol::Messages);
    let failed = client.response().unwrap();
    assert_eq!((failed.status, failed.header("retry-after")), (429, Some("7")));
    client.ask(WireProtocol::Messages);
    assert_eq!(client.response().unwrap().status, 200);
}

#[test]
fn a_gate_lets_through_what_the_test_says() {
    let server = play("[[step]]\ntext = 'abc'\npiece = 1\n[[step]]\ntext = 'free'\n");
    let gate = server.gate();
    let mut client = Client::connect(&server);
    client.ask(WireProtocol::Messages);
    assert_eq!(client.head().unwrap().status, 200);
    for events in ["event: message_start", "event: ping", "event: content_block_start"] {
        gate.open(1);
        assert!(String::from_utf8(client.chunk().unwrap()).unwrap().starts_with(events));
    }
    client.reader.get_ref().set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert_eq!(client.reader.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    client.reader.get_ref().set_read_timeout(Some(LONG)).unwrap();
    gate.open_all();
    let mut rest = Vec::new();
    loop {
        match client.chunk().unwrap() {
            chunk if chunk.is_empty() => break,
            chunk => rest.extend(chunk),
        }
    }
    assert!(String::from_utf8(rest).unwrap().ends_with("data: {\"type\":\"message_stop\"}\n\n"));
    client.ask(WireProtocol::Messages);
    assert_eq!(
        client.response().unwrap().answer(WireProtocol::Messages).unwrap().text(),
        "free",
        "it was for one answer"
    );
}

#[test]
fn a_gate_that_is_dropped_is_open() {
    let server = play(TWO);
    drop(server.gate());
    assert_eq!(ask(&server, WireProtocol::Chat).unwrap().answer(WireProtocol::Chat).unwrap().text(), "one");
}

#[test]
fn a_client_that_leaves_in_the_middle_is_noticed() {
    let server = play(TWO);
    let gate = server.gate();
    let mut client = Client::connect(&server);
    client.ask(WireProtocol::Chat);
    client.head().unwrap();
    gate.open(1);
    client.chunk().unwrap();
    assert!(!server.wait_closed(0, Duration::from_millis(1)), "it is still there");
    drop(client);
    assert!(server.wait_closed(0, LONG));
}

#[test]
fn a_client_that_leaves_after_its_answer_has_abandoned_nothing() {
    let server = play(TWO);
    drop(ask(&server, WireProtocol::Chat).unwrap());
    ask(&server, WireProtocol::Chat).unwrap();
    assert!(!server.wait_closed(0, Duration::from_millis(50)));
}

#[test]
fn only_so_many_connections_are_taken() {
    let server = play(TWO);
    let mut clients: Vec<Client> = (0..64).map(|_| Client::connect(&server)).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.get("/v1/models").status, 200));
    let mut refused = Client::connect(&server);
    assert_eq!(refused.reader.read(&mut [0]).unwrap(), 0);
}

#[test]
fn it_stops_whatever_its_clients_do() {
    let server = play("[[step]]\ntext = 'late'\ndelay = '59m'\n[[step]]\ntext = 'gated'\n");
    let idle = Client::connect(&server);
    let mut half = Client::connect(&server);
    half.send(b"POST /v1/messages HTTP/1.1\r\ncontent-le");
    let mut waits = Client::connect(&server);
    waits.ask(WireProtocol::Chat);
    server.wait_requests(1, LONG).unwrap();
    // Each is read before the next is sent, so that each takes the step, the gate or the fault that is meant for it.
    let mut gated = Client::connect(&server);
    let _gate = server.gate();
    gated.ask(WireProtocol::Chat);
    gated.head().unwrap();
    server.fault(InjectedFault::Hang);
    let mut hangs = Client::connect(&server);
    hangs.ask(WireProtocol::Chat);
    server.wait_requests(3, LONG).unwrap();
    server.fault(InjectedFault::HugeEvent(40 << 20));
    let mut does_not_read = Client::connect(&server);
    does_not_read.ask(WireProtocol::Chat);
    does_not_read.head().unwrap();
    drop(server);
    for mut client in [idle, half, waits, gated, hangs] {
        let mut rest = Vec::new();
        let ended = client.reader.read_to_end(&mut rest);
        assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
    }
}
