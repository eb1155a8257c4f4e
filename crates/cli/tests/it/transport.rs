//! What the program promises about connections: encrypted, proven, through proxies, and not more of them than needed.

use std::fs;
use std::process::Command;

use helve_models::script::ModelScript;
use helve_testkit::{HttpProtocol, ScriptedServer, SecureServer, TestProxy, skip};

use crate::home::{Home, Ran};

/// What a model says when it is probed, however often.
const PROBED: &str = r#"
    [[step]]
    when = { result = "42" }
    text = "It is 42."
    repeat = true

    [[step]]
    calls = [{ tool = "add", input = { a = 17, b = 25 } }]
    repeat = true
"#;

const BOTH: [HttpProtocol; 2] = [HttpProtocol::Http2, HttpProtocol::Http1];

fn secure(offers: &[HttpProtocol]) -> SecureServer {
    SecureServer::play(ModelScript::parse(PROBED).unwrap(), offers).unwrap()
}

fn plain() -> ScriptedServer {
    ScriptedServer::play(ModelScript::parse(PROBED).unwrap()).unwrap()
}

fn url(server: &SecureServer) -> String {
    format!("https://{}/v1", server.address())
}

fn through(proxy: &TestProxy) -> String {
    format!("http://{}", proxy.address())
}

/// A machine whose model is at this address, and which gives up soon.
fn home(base_url: &str) -> Home {
    let home = Home::new();
    let settings = format!(
        "model = 'test/model'\n\
         [providers.test]\nwire = 'chat'\nbase_url = '{base_url}'\nauth = 'none'\n\
         [limits]\nmax_retry_time = '2s'\n\
         [timeouts]\nconnect = '10s'\nfirst_byte = '20s'\nidle = '20s'\n"
    );
    home.write("home/config.toml", &settings);
    home
}

/// A probe by somebody who trusts who signed for this server, with some more variables.
fn probe(home: &Home, trusted: &SecureServer, variables: &[(&str, &str)]) -> Ran {
    home.run_command(probing(home, trusted, variables))
}

fn probing(home: &Home, trusted: &SecureServer, variables: &[(&str, &str)]) -> Command {
    home.write("ca.pem", trusted.authority());
    let mut command = home.helve(&["models", "probe"]);
    command.env("SSL_CERT_FILE", authority_file(home)).envs(variables.iter().copied());
    command
}

fn authority_file(home: &Home) -> String {
    home.path().with_file_name("ca.pem").to_str().unwrap().to_owned()
}

fn assert_probed(ran: &Ran) {
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("✓ uses results"), "{ran:?}");
}

/// It failed, it said why and what to do, and it did not try again.
fn assert_refused(ran: &Ran, why: &str) {
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains(why) && ran.err.contains("SSL_CERT_FILE"), "{ran:?}");
    assert!(!ran.err.contains("waiting"), "{ran:?}");
}

#[test]
fn http_2_is_spoken_where_it_is_offered_over_one_connection() {
    let server = secure(&BOTH);
    assert_probed(&probe(&home(&url(&server)), &server, &[]));
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| request.protocol == HttpProtocol::Http2), "{requests:?}");
    assert_eq!(server.connections(), 1);
}

#[test]
fn http_1_is_spoken_where_nothing_else_is_over_one_connection() {
    for offers in [&[HttpProtocol::Http1][..], &[]] {
        let server = secure(offers);
        assert_probed(&probe(&home(&url(&server)), &server, &[]));
        let requests = server.requests();
        assert_eq!(requests.len(), 2);
        assert!(requests.iter().all(|request| request.protocol == HttpProtocol::Http1), "{requests:?}");
        assert_eq!(server.connections(), 1, "{offers:?}");
    }
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused_at_once() {
    let (server, other) = (secure(&BOTH), secure(&BOTH));
    assert_refused(&probe(&home(&url(&server)), &other, &[]), "certificate");
    assert_eq!((server.connections(), server.requests()), (1, vec![]));

    // Nor does this machine know it.
    let home = home(&url(&server));
    assert_refused(&home.run(&["models", "probe"]), "ertificate");
    assert_eq!(server.requests(), []);
}

#[test]
fn a_certificate_for_another_host_is_refused_at_once() {
    let server = secure(&BOTH);
    let proxy = TestProxy::to(server.address()).unwrap();
    let ran = probe(&home("https://elsewhere.test/v1"), &server, &[("HTTPS_PROXY", &through(&proxy))]);
    assert_refused(&ran, "elsewhere.test");
    assert_eq!(server.requests(), []);
}

#[test]
fn a_file_without_certificates_trusts_nobody() {
    let server = secure(&BOTH);
    let home = home(&url(&server));
    for file in [authority_file(&home), "config.toml".to_owned()] {
        let mut command = home.helve(&["models", "probe"]);
        command.env("SSL_CERT_FILE", file);
        assert_refused(&home.run_command(command), "certificates");
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_host_elsewhere_is_reached_through_the_proxy() {
    for (variable, scheme, asked) in [
        ("HTTPS_PROXY", "http", "CONNECT models.test:443"),
        ("https_proxy", "http", "CONNECT models.test:443"),
        ("ALL_PROXY", "http", "CONNECT models.test:443"),
        ("ALL_PROXY", "socks5h", "SOCKS models.test:443"),
    ] {
        let server = secure(&BOTH);
        let proxy = TestProxy::to(server.address()).unwrap();
        let through = format!("{scheme}://{}", proxy.address());
        assert_probed(&probe(&home("https://models.test/v1"), &server, &[(variable, &through)]));
        assert_eq!(proxy.asked(), [asked], "{variable}={through}");
        assert_eq!(server.requests()[1].protocol, HttpProtocol::Http2);
    }
}

#[test]
fn no_proxy_names_hosts_that_are_reached_without_it() {
    let server = secure(&BOTH);
    let proxy = TestProxy::to(server.address()).unwrap();
    // This machine by an address that is no loopback, so that it is reached without a name and yet not always directly.
    let place = format!("0.0.0.0:{}", server.address().port());
    let home = home(&format!("https://{place}/v1"));
    for (exempt, asked) in [
        ("models.test,0.0.0.0", vec![]),
        ("0.0.0.0/8", vec![]),
        ("models.test", vec![format!("CONNECT {place}")]),
    ] {
        assert_probed(&probe(&home, &server, &[("HTTPS_PROXY", &through(&proxy)), ("NO_PROXY", exempt)]));
        assert_eq!(proxy.asked(), asked, "NO_PROXY={exempt}");
    }
}

#[test]
fn what_runs_on_this_machine_is_never_reached_through_a_proxy() {
    let nowhere = secure(&BOTH);
    let proxy = TestProxy::to(nowhere.address()).unwrap();
    let through = through(&proxy);
    let names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let set = names.map(|name| (name, through.as_str()));

    let (plain, server) = (plain(), secure(&BOTH));
    assert_probed(&probe(&home(&plain.url("/v1")), &nowhere, &set));
    assert_probed(&probe(&home(&url(&server)), &server, &set));
    assert_eq!((plain.requests().len(), server.requests().len()), (2, 2));
    assert_eq!(proxy.asked(), Vec::<String>::new());
}

#[test]
fn certificates_are_read_only_when_they_are_needed() {
    let (plain, server) = (plain(), secure(&BOTH));
    let (without, with) = (home(&plain.url("/v1")), home(&url(&server)));
    let version = without.helve(&["--version"]);
    for command in [version, probing(&without, &server, &[]), without.helve(&["models", "probe"])] {
        let Some(opened) = opened(&without, command) else { return };
        assert!(opened.contains("helve"), "{opened}");
        assert!(!is_about_certificates(&opened), "{opened}");
    }
    let opened = opened(&with, probing(&with, &server, &[])).unwrap();
    assert!(is_about_certificates(&opened), "{opened}");
}

fn is_about_certificates(calls: &str) -> bool {
    ["ca.pem", "/certs", "/ssl/", "/pki/"].iter().any(|place| calls.contains(place))
}

/// The files that a run of the program names, as strace tells them.
fn opened(home: &Home, command: Command) -> Option<String> {
    if Command::new("strace").arg("-V").output().is_err() {
        skip("certificates_are_read_only_when_they_are_needed", "strace is not installed");
        return None;
    }
    let trace = home.path().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-e", "trace=%file", "-o"]).arg(&trace).arg(command.get_program());
    strace.args(command.get_args()).current_dir(home.project()).env_clear();
    strace.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = strace.output().unwrap();
    let Some(told) = fs::read_to_string(&trace).ok().filter(|told| !told.is_empty()) else {
        skip("certificates_are_read_only_when_they_are_needed", "strace may not trace here");
        return None;
    };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Some(told)
}

#[test]
fn absurdly_large_headers_are_a_failure_and_not_an_answer() {
    let server = secure(&BOTH);
    let home = home(&url(&server));
    server.swell_headers(32);
    assert_probed(&probe(&home, &server, &[]));
    // More than is taken in, and more than is even read.
    for kibibytes in [128, 1 << 10] {
        server.swell_headers(kibibytes);
        let ran = probe(&home, &server, &[]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains("failed: http2 error: "), "{ran:?}");
        assert!(ran.err.contains("Check the connection"), "{ran:?}");
    }
}

#[test]
fn a_server_without_tls_is_told_of_at_once() {
    let plain = plain();
    let home = home(&format!("https://{}/v1", plain.address()));
    let ran = probe(&home, &secure(&BOTH), &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("does not speak TLS") && ran.err.contains("Check the base URL"), "{ran:?}");
    assert!(!ran.err.contains("waiting"), "{ran:?}");
}
