use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use helve_models::script::ModelScript;
use helve_testkit::{InjectedFault, ScriptedServer};
use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::output::on_terminal_at;

const BODY: &str = concat!(
    r#"data: {"choices":[{"index":0,"delta":{"content":"Hi ","tool_calls":[{"index":0,"id":"c1","#,
    r#""function":{"name":"read","arguments":"{\"path\":1}"}}]},"finish_reason":"tool_calls"}],"#,
    r#""usage":{"prompt_tokens":7,"completion_tokens":2}}"#,
    "\n\ndata: [DONE]\n\n",
);

#[test]
fn a_recorded_response_is_told_as_json() {
    let home = Home::new();
    home.write("project/body.sse", BODY);
    let expected = json!({
        "text": "Hi ",
        "thinking": "",
        "tool_calls": [{"id": "c1", "name": "read", "arguments": {"path": 1}}],
        "usage": {"input": 7, "output": 2, "cache_read": 0, "cache_write": 0},
        "stop": "tool_use",
        "error": null,
    });
    for words in [vec![], vec!["--chunk", "1"], vec!["--chunk", "7"]] {
        let ran = home.run(&[&["models", "decode", "--wire", "chat", "body.sse"], words.as_slice()].concat());
        let told: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((ran.code, told), (0, expected.clone()), "{words:?}");
    }
}

#[test]
fn a_response_that_is_no_answer_tells_its_error() {
    let home = Home::new();
    home.write("project/cut.sse", &BODY[..40]);
    home.write(
        "project/refused.json",
        r#"{"error":{"message":"invalid x-api-key","type":"authentication_error"}}"#,
    );
    for (file, expected) in
        [("cut.sse", "ended before the answer did"), ("refused.json", "invalid x-api-key")]
    {
        let ran = home.run(&["models", "decode", "--wire", "messages", file]);
        let told: Value = serde_json::from_str(&ran.out).unwrap();
        assert!(told["error"].as_str().unwrap().contains(expected), "{told}");
    }
    assert_eq!(home.run(&["models", "decode", "--wire", "chat", "nowhere"]).code, 1);
    assert_eq!(home.run(&["models", "decode", "--wire", "smoke", "cut.sse"]).code, 2);
}

#[test]
fn a_response_may_come_from_a_pipe() {
    let home = Home::new();
    let mut command = home.helve(&["models", "decode", "--wire", "chat", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(BODY.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"Hi \""));
}

const SUM: &str = r#"
    [[step]]
    thinking = "I add."
    calls = [{ tool = "add", input = { a = 17, b = 25 } }]
    usage = { input = 100, output = 20, cache_read = 1000, cache_write = 10 }
    [[step]]
    when = { tool = "add", result = "42" }
    text = "It is 42."
    usage = { input = 100, output = 20 }
"#;

const KEY: &str = "sk-test-0123456789";

fn with(mut command: Command, variables: &[(&str, &str)]) -> Command {
    command.envs(variables.iter().copied());
    command
}

#[test]
fn without_a_key_or_a_server_it_is_told_what_to_set() {
    let home = Home::new();
    let ran = home.run(&["models", "probe"]);
    assert_eq!(ran.code, 3);
    insta::assert_snapshot!(ran.err);
    let ran = home.run(&["--model", "groq/llama-3.3-70b-versatile", "models", "probe"]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("Set GROQ_API_KEY, or store it with `helve login groq`."), "{}", ran.err);
}

#[test]
fn names_that_mean_nothing_are_told() {
    let home = Home::new();
    for (name, said) in [
        ("nobody/x", "there is no provider \"nobody\""),
        ("no-such-model", "is no model that Helve knows"),
        ("anthropic/", "is no model that Helve knows"),
        ("script:nowhere.toml", "can't be read"),
    ] {
        let ran = home.run(&["--model", name, "models", "probe"]);
        assert_eq!(ran.code, 2, "{name}: {}", ran.err);
        assert!(ran.err.contains(said), "{name}: {}", ran.err);
    }
    home.write("project/bad.toml", "[[step]]\ntekst = 'x'\n");
    let ran = home.run(&["--model", "script:bad.toml", "models", "probe"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("tekst"), "{}", ran.err);
}

#[test]
fn providers_and_models_are_listed_with_the_reason() {
    let home = Home::new();
    let ran = home.run(&["models", "list"]);
    insta::assert_snapshot!("nothing can be used", ran.out);
    let keyed = |words: &[&str]| home.run_command(with(home.helve(words), &[("DEEPSEEK_API_KEY", KEY)]));
    insta::assert_snapshot!("one key", keyed(&["models", "list", "deepseek"]).out);
    let list: Value = serde_json::from_str(&keyed(&["models", "list", "--json"]).out).unwrap();
    assert_eq!(list["main"], "deepseek/deepseek-v4-pro");
    let of = |kind: &str, name: &str| {
        let items = list[kind].as_array().unwrap();
        items.iter().find(|item| item["name"] == name).cloned().unwrap()
    };
    assert_eq!(of("providers", "deepseek")["why"], "key from DEEPSEEK_API_KEY");
    assert_eq!(of("models", "deepseek/deepseek-chat")["usable"], true);
    let model = of("models", "openai/gpt-4o");
    assert_eq!(model["usable"], false);
    assert!(model["why_not"].as_str().unwrap().contains("OPENAI_API_KEY"));
    assert_eq!(model["prices_per_million"]["input"], "2.50");
}

/// The variables that people have already, for one provider of each wire.
const PROVIDERS: [(&str, &str, &str); 5] = [
    ("anthropic/claude-sonnet-5", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    ("openai/gpt-5.5", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    ("openai-chat/gpt-5.5", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    ("gemini/gemini-3.1-pro-preview", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
    ("deepseek/deepseek-chat", "DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL"),
];

#[test]
fn a_model_is_tried_out_over_every_wire() {
    for (model, key, url) in PROVIDERS {
        let home = Home::new();
        let server = ScriptedServer::play(ModelScript::parse(SUM).unwrap()).unwrap();
        let command = home.helve(&["--model", model, "models", "probe"]);
        let ran = home.run_command(with(command, &[(key, KEY), (url, &server.url("/v1"))]));
        assert_eq!(ran.code, 0, "{model}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains(r#"add {"a":17,"b":25}"#) && ran.out.contains("It is 42."), "{}", ran.out);
        assert!(ran.out.contains("tokens read, 40 written, for $0.00"), "{}", ran.out);
        assert_eq!(server.requests().len(), 2);
        assert_nothing_leaks(&home, &ran);
    }
}

/// No key in anything that was printed or written down.
fn assert_nothing_leaks(home: &Home, ran: &Ran) {
    assert!(!format!("{}{}", ran.out, ran.err).contains(KEY), "{}{}", ran.out, ran.err);
    let grep = Command::new("grep").args(["-r", "-l", KEY]).arg(home.path()).output().unwrap();
    let found = String::from_utf8_lossy(&grep.stdout).into_owned();
    assert!(found.lines().all(|path| path.ends_with("/keys.toml")), "{found}");
}

#[test]
fn a_wrong_key_is_told_and_not_shown() {
    let home = Home::new();
    let server = ScriptedServer::play(ModelScript::parse(SUM).unwrap()).unwrap();
    let body = json!({"error": {"type": "authentication_error", "message": format!("invalid key {KEY}")}});
    server.always(InjectedFault::Status { code: 401, headers: vec![], body: Some(body.to_string()) });
    let command = home.helve(&["--debug", "--model", "anthropic/claude-sonnet-5", "models", "probe"]);
    let url = server.url("");
    let ran = home.run_command(with(command, &[("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", &url)]));
    assert_eq!(ran.code, 3);
    insta::assert_snapshot!(ran.err);
    assert_nothing_leaks(&home, &ran);
    assert_eq!(server.requests().len(), 1, "a wrong key is not tried again");
}

#[test]
fn a_server_of_ones_own_is_found_and_used() {
    let home = Home::new();
    let server = ScriptedServer::play(ModelScript::parse(SUM).unwrap()).unwrap();
    server.list_models(&["tiny-coder"]);
    let url = server.url("/v1");
    let running = |words: &[&str]| home.run_command(with(home.helve(words), &[("VLLM_BASE_URL", &url)]));
    let ran = running(&["models", "list"]);
    assert!(ran.out.contains("vllm/tiny-coder") && ran.out.contains("[main"), "{}", ran.out);
    let ran = running(&["models", "probe"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("vllm/tiny-coder at "), "{}", ran.out);
}

#[test]
fn providers_of_the_settings_are_used() {
    let home = Home::new();
    let server = ScriptedServer::play(ModelScript::parse(SUM).unwrap()).unwrap();
    home.write(
        "home/config.toml",
        &format!(
            r#"
            model = "mine"
            models.aliases.mine = "corp/big"
            [providers.corp]
            wire = "responses"
            base_url = "{}"
            key_env = "CORP_KEY"
            auth = "api-key"
            headers = {{ "X-Team" = "{KEY}-team" }}
            [catalogue."corp/big"]
            context = 100000
            input_price = 2.5
            output_price = "10"
            "#,
            server.url("/api/v9")
        ),
    );
    let ran = home.run_command(with(home.helve(&["models", "probe"]), &[("CORP_KEY", KEY)]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    // 1,210 tokens read, all at the price of reading, and 40 written.
    assert!(ran.out.contains("1,210 tokens read, 40 written, for $0.003425"), "{}", ran.out);
    let request = &server.requests()[0];
    assert_eq!(request.path, "/api/v9/responses");
    let header =
        |name: &str| request.headers.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str());
    assert_eq!((header("api-key"), header("x-team")), (Some(KEY), Some(format!("{KEY}-team").as_str())));
    let shown = home.run(&["config", "show"]);
    assert!(!shown.out.contains(KEY), "{}", shown.out);
    // A wrong address harms the one provider only.
    let wrong = ["--set", "providers.corp.base_url=ftp://x", "models"];
    let list = home.run(&[&wrong[..], &["list"]].concat());
    assert!(list.out.contains("· corp         the base URL of the provider"), "{}", list.out);
    let ran = home.run(&[&wrong[..], &["probe"]].concat());
    assert_eq!(ran.code, 2, "{}", ran.err);
}

#[test]
fn a_password_in_an_address_is_not_shown() {
    let home = Home::new();
    let server = ScriptedServer::play(ModelScript::parse(SUM).unwrap()).unwrap();
    let secret = "hunter2-hunter2";
    let basic = "Ym9iOmh1bnRlcjItaHVudGVyMg==";
    let body = json!({"error": {"type": "x", "message": format!("no: {secret} {basic}")}});
    server.always(InjectedFault::Status { code: 400, headers: vec![], body: Some(body.to_string()) });
    let url = server.url("/v1?token=hunter2-hunter2").replace("://", &format!("://bob:{secret}@"));
    let run = |words: &[&str]| {
        home.run_command(with(home.helve(words), &[("GROQ_BASE_URL", &url), ("GROQ_API_KEY", KEY)]))
    };
    for words in [
        &["models", "list", "groq"][..],
        &["models", "list", "--json"],
        &["--debug", "--model", "groq/x", "models", "probe"],
    ] {
        let ran = run(words);
        let all = format!("{}{}", ran.out, ran.err);
        assert!(!all.contains(secret) && !all.contains(basic), "{words:?}: {all}");
    }
    let logs =
        Command::new("grep").args(["-r", "-e", secret, "-e", basic]).arg(home.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&logs.stdout), "");
}

#[test]
fn a_key_is_stored_for_the_user_alone_and_forgotten() {
    let home = Home::new();
    let login = |key: &str| {
        let mut command = home.helve(&["login", "anthropic"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(key.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| home.masked(&String::from_utf8(bytes).unwrap());
        Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    };
    let ran = login(&format!("  {KEY}\n"));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    insta::assert_snapshot!("stored", ran.out);
    assert_nothing_leaks(&home, &ran);
    let stored = fs::read_to_string(home.path().join("keys.toml")).unwrap();
    assert!(stored.contains(&format!("anthropic = \"{KEY}\"")), "{stored}");
    let list = home.run(&["models", "list", "anthropic"]);
    assert!(list.out.contains("✓ anthropic  key from `helve login`"), "{}", list.out);

    // A variable comes first, and that is said.
    let ran = home
        .run_command(with(home.helve(&["logout", "anthropic"]), &[("ANTHROPIC_API_KEY", "sk-other-123")]));
    assert!(ran.err.contains("ANTHROPIC_API_KEY is set, and comes before a stored key"), "{}", ran.err);
    assert!(!fs::read_to_string(home.path().join("keys.toml")).unwrap().contains(KEY));
    assert!(home.run(&["logout", "anthropic"]).out.contains("no stored key"));

    for (key, said) in [("", "nothing was given"), ("two words", "one word"), ("sk-é", "one word")] {
        let ran = login(key);
        assert_eq!(ran.code, 2, "{key:?}");
        assert!(ran.err.contains(said), "{key:?}: {}", ran.err);
    }
    assert_eq!(home.run(&["login", "nobody"]).code, 2);
}

#[test]
fn a_key_that_is_typed_is_not_seen() {
    let home = Home::new();
    let (seen, code) =
        on_terminal_at(home.helve(&["login", "openai"]), "(it is not shown): ", &format!("{KEY}\n"));
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("is stored in") && !seen.contains(KEY), "{seen}");
    assert!(fs::read_to_string(home.path().join("keys.toml")).unwrap().contains(KEY));
}

#[test]
fn keys_that_others_can_read_are_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.write("home/keys.toml", &format!("[keys]\nopenai = \"{KEY}\"\n"));
    let path = home.path().join("keys.toml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = home.run(&["models", "list"]);
    assert_eq!(ran.code, 1);
    insta::assert_snapshot!("exposed keys", ran.err);
}
