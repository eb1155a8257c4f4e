//! Each fault does what it says.

use std::io::ErrorKind;
use std::time::Duration;

use helve_models::{StreamError, WireProtocol, parse_error_body};
use helve_testkit::{InjectedFault, ScriptedServer};

use crate::client::{Client, Ending, LONG, Response, WIRES, ask, play};

/// Without a character of more than a byte, so that a fault that needs one must bring its own.
const PLAIN: &str = "[[step]]\ntext = 'one, in several pieces'\npiece = 4\n[[step]]\ntext = 'two'\n";
const SNOW: &str = "[[step]]\ntext = 'snow: ☃☃☃'\npiece = 4\n";

fn meet(script: &str, wire: WireProtocol, fault: InjectedFault) -> Response {
    let server = play(script);
    server.fault(fault);
    ask(&server, wire).unwrap()
}

#[test]
fn a_spoiled_answer_is_none_and_the_script_plays_on() {
    let hangs = [InjectedFault::Hang, InjectedFault::HangAfterHeaders, InjectedFault::HangMidStream];
    for wire in WIRES {
        for (name, fault) in InjectedFault::all().into_iter().filter(|(_, fault)| !hangs.contains(fault)) {
            let server = play(PLAIN);
            server.fault(fault.clone());
            let answer = ask(&server, wire).ok().and_then(|response| match response {
                Response { status: 200, ending: Ending::Whole, .. } => response.answer(wire).ok(),
                _ => None,
            });
            assert_eq!(answer.is_some(), fault.leaves_answer_whole(), "{wire:?}, {name}");
            let next = ask(&server, wire).unwrap().answer(wire).unwrap().text();
            match answer {
                Some(answer) => {
                    assert_eq!(answer.text(), "one, in several pieces", "{wire:?}, {name}");
                    assert_eq!(next, "two", "{wire:?}, {name}");
                }
                None => assert_eq!(next, "one, in several pieces", "{wire:?}, {name}"),
            }
        }
    }
}

/// How much comes before nothing comes any more.
fn heard_before_silence(server: &ScriptedServer, wire: WireProtocol) -> (bool, usize) {
    let mut client = Client::connect(server);
    client.ask(wire);
    server.wait_requests(1, LONG).unwrap();
    client.reader.get_ref().set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let head = client.head();
    let silence = |kind: ErrorKind| assert_eq!(kind, ErrorKind::WouldBlock, "the connection stays open");
    let mut events = 0;
    match &head {
        Err(error) => silence(error.kind()),
        Ok(_) => loop {
            match client.chunk() {
                Ok(_) => events += 1,
                Err(error) => break silence(error.kind()),
            }
        },
    }
    (head.is_ok(), events)
}

#[test]
fn a_hanging_server_says_nothing_more_until_the_client_leaves() {
    for wire in WIRES {
        for (fault, hears_head, hears_events) in [
            (InjectedFault::Hang, false, false),
            (InjectedFault::HangAfterHeaders, true, false),
            (InjectedFault::HangMidStream, true, true),
        ] {
            let server = play(PLAIN);
            server.fault(fault.clone());
            let (head, events) = heard_before_silence(&server, wire);
            assert_eq!((head, events > 0), (hears_head, hears_events), "{wire:?}, {fault:?}");
            assert!(server.wait_closed(0, LONG), "{wire:?}, {fault:?}");
            assert_eq!(ask(&server, wire).unwrap().answer(wire).unwrap().text(), "one, in several pieces");
        }
    }
}

#[test]
fn a_reset_is_a_reset() {
    for wire in WIRES {
        let server = play(PLAIN);
        server.fault(InjectedFault::ResetBefore);
        assert_eq!(ask(&server, wire).unwrap_err().kind(), ErrorKind::ConnectionReset, "{wire:?}");
        server.fault(InjectedFault::ResetMid);
        let response = ask(&server, wire).unwrap();
        assert_eq!(response.ending, Ending::Failed(ErrorKind::ConnectionReset), "{wire:?}");
        assert!(!server.wait_closed(0, Duration::ZERO) && !server.wait_closed(1, Duration::ZERO));
    }
}

#[test]
fn a_closed_connection_is_closed_before_the_end_of_the_body() {
    for wire in WIRES {
        let response = meet(PLAIN, wire, InjectedFault::CloseMid);
        assert_eq!((&response.ending, response.body.is_empty()), (&Ending::Closed, false), "{wire:?}");
    }
}

#[test]
fn a_cut_is_where_it_says() {
    for wire in WIRES {
        for script in [PLAIN, SNOW] {
            let middle = meet(script, wire, InjectedFault::CutMidEvent);
            assert!(!middle.body.ends_with(b"\n") && middle.text().contains("data: "), "{wire:?}");
            let between = meet(script, wire, InjectedFault::CutBetweenEvents);
            assert!(between.body.ends_with(b"\n\n") || between.body.ends_with(b"\r\n\r\n"), "{wire:?}");
            let character = meet(script, wire, InjectedFault::CutMidUtf8);
            let error = std::str::from_utf8(&character.body).unwrap_err();
            assert_eq!(error.error_len(), None, "{wire:?}: the character is not whole");
            for response in [middle, between, character] {
                assert_eq!(response.ending, Ending::Whole, "{wire:?}");
                assert_eq!(response.answer(wire), Err(StreamError::CutOff), "{wire:?}");
            }
        }
        assert!(
            String::from_utf8_lossy(&meet(SNOW, wire, InjectedFault::CutMidUtf8).body).contains("snow"),
            "{wire:?}"
        );
    }
}

#[test]
fn what_is_no_stream_of_events_is_none() {
    for wire in WIRES {
        let garbage = meet(PLAIN, wire, InjectedFault::Garbage);
        assert_eq!(garbage.header("content-type"), Some("text/event-stream"));
        assert!(std::str::from_utf8(&garbage.body).is_err() && garbage.body.contains(&b'\n'));
        let json = meet(PLAIN, wire, InjectedFault::GarbageJson);
        assert!(matches!(json.answer(wire), Err(StreamError::NotJson(_))), "{wire:?}");
        let page = meet(PLAIN, wire, InjectedFault::WrongContentType);
        assert_eq!((page.status, page.header("content-type")), (200, Some("text/html")));
        let empty = meet(PLAIN, wire, InjectedFault::EmptyBody);
        assert_eq!((empty.status, empty.header("content-length")), (200, Some("0")));
    }
}

#[test]
fn a_status_is_told_in_the_words_of_the_wire_or_of_the_test() {
    for (wire, kind) in
        WIRES.into_iter().zip(["overloaded_error", "server_error", "server_error", "INTERNAL"])
    {
        let fault =
            InjectedFault::Status { code: 529, headers: vec![("x-a".into(), "b".into())], body: None };
        let response = meet(PLAIN, wire, fault);
        assert_eq!((response.status, response.header("x-a")), (529, Some("b")));
        let Some(StreamError::Server { kind: told, .. }) = parse_error_body(&response.text()) else {
            panic!("an error")
        };
        assert!(told.as_deref().is_some_and(|told| told.starts_with(kind)), "{wire:?}: {told:?}");
        let own = InjectedFault::Status { code: 418, headers: vec![], body: Some("a teapot".into()) };
        assert_eq!(meet(PLAIN, wire, own).text(), "a teapot");
    }
}

#[test]
fn what_is_huge_is_huge() {
    let event = meet(PLAIN, WireProtocol::Messages, InjectedFault::HugeEvent(1 << 20));
    assert!(event.body.len() > 1 << 20 && event.text().matches('\n').count() == 2);
    let headers = meet(PLAIN, WireProtocol::Messages, InjectedFault::HugeHeaders);
    assert!(headers.headers.iter().map(|(_, value)| value.len()).sum::<usize>() >= 1 << 20);
}

#[test]
fn a_redirect_leads_to_where_it_is_noticed() {
    let server = play(PLAIN);
    server.fault(InjectedFault::Redirect);
    let response = ask(&server, WireProtocol::Messages).unwrap();
    let location = response.header("location").unwrap().strip_prefix("http://").unwrap();
    let (address, path) = location.split_once('/').unwrap();
    assert_eq!((response.status, path), (307, "v1/messages"));
    assert_ne!(address, server.address().to_string());
    assert_eq!(server.redirects_followed(), 0);
    let mut followed = std::net::TcpStream::connect(address).unwrap();
    assert_eq!(std::io::Read::read(&mut followed, &mut [0]).unwrap(), 0);
    assert_eq!(server.redirects_followed(), 1);
}

#[test]
fn faults_come_one_by_one_and_then_always() {
    let server = play(PLAIN);
    let status = |code: u16| InjectedFault::Status { code, headers: vec![], body: None };
    server.always(status(503));
    server.fault(status(429));
    let told = || ask(&server, WireProtocol::Messages).unwrap().status;
    assert_eq!([told(), told(), told()], [429, 503, 503]);
    server.clear_faults();
    assert_eq!(told(), 200);
}

#[test]
fn a_fault_has_an_answer_to_spoil_even_without_a_step() {
    for script in
        ["[[step]]\nfail = { status = 500 }\n", "[[step]]\ntext = 'a'\nwhen = { asked = 'other' }\n"]
    {
        for wire in WIRES {
            assert!(!meet(script, wire, InjectedFault::CutBetweenEvents).body.is_empty(), "{wire:?}");
        }
    }
}
