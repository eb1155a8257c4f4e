//! `helve tool`: one tool by hand, for scripts, bug reports and tests.

use std::io::{IsTerminal, Read, Write};
use std::sync::Arc;

use helve_agent::{ByHand, Gate, House, Limits, Watched, by_hand};
use helve_exec::{Level, Probe};
use helve_journal::MemoryJournal;
use helve_protocol::{Answer, ApprovalRequested, ToolState};
use helve_tools::{Files, Tool};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::ToolCall;
use crate::confine::found;
use crate::failure::{Exit, Failure};
use crate::models::block_on;
use crate::screen::{self, Screen};
use crate::setup::{Setup, SystemClock};
use crate::text::{one_line, question};
use crate::wiring::{RealIds, added_folders, offered, ruled, watched};

const MAX_INPUT_BYTES: u64 = 64 << 20;

pub(crate) fn run(options: &ToolCall, setup: &Setup, screen: &mut Screen) -> Result<Exit, Failure> {
    let found = if options.name.is_some() { found(setup) } else { Probe::NONE };
    let tools = offered(setup, Files::by_hand(), &found)?;
    let Some(name) = &options.name else { return list(&tools, options.json_list, screen) };
    let input = input(options)?;
    let has_person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let gate = match (options.yes, has_person) {
        (true, _) => Gate::open(),
        (false, true) => Gate::asking_by(Arc::new(ask)),
        (false, false) => Gate::shut(),
    };
    let house = house(setup, tools, gate, found.level)?;
    let stop = CancellationToken::new();
    let called = block_on(async {
        let work = by_hand(&house, name, input, &stop);
        tokio::pin!(work);
        let mut terminate = signal(SignalKind::terminate()).ok();
        let terminated = async {
            match &mut terminate {
                Some(terminate) => drop(terminate.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            done = &mut work => return done,
            _ = tokio::signal::ctrl_c() => {}
            () = terminated => {}
        }
        stop.cancel();
        work.await
    })?;
    let ByHand { end, changed } = called.map_err(|error| crate::wiring::session_failure(&error))?;
    let (ok, output) = (matches!(end, ToolState::Completed { .. }), end.for_model().text.into_owned());
    writeln!(screen, "{}", json!({ "ok": ok, "output": output, "changed": changed }))?;
    Ok(match end {
        ToolState::Completed { .. } => Exit::Fine,
        ToolState::Interrupted { .. } => Exit::Interrupted,
        _ => Exit::Error,
    })
}

/// Names the tools, with their schemas for programs.
fn list(tools: &[Arc<dyn Tool>], as_json: bool, screen: &mut Screen) -> Result<Exit, Failure> {
    for tool in tools {
        if as_json {
            let (name, description, schema) = (tool.name(), tool.description(), tool.schema());
            writeln!(screen, "{}", json!({ "name": name, "description": description, "input": schema }))?;
        } else {
            let first = tool.description().split_inclusive(['.', ':']).next().unwrap_or_default();
            writeln!(screen, "{:<14} {}", tool.name(), one_line(first.trim_end_matches(':')))?;
        }
    }
    Ok(Exit::Fine)
}

fn input(options: &ToolCall) -> Result<Value, Failure> {
    let text = match options.input.as_deref() {
        None if std::io::stdin().is_terminal() => "{}".to_owned(),
        None | Some("-") => {
            let mut text = String::new();
            let read = std::io::stdin().take(MAX_INPUT_BYTES).read_to_string(&mut text);
            read.map_err(|error| {
                Failure::usage("the input can't be read", error, "Give it as JSON, as words or piped.")
            })?;
            if text.trim().is_empty() { "{}".to_owned() } else { text }
        }
        Some(text) => text.to_owned(),
    };
    serde_json::from_str(&text).map_err(|error| {
        let hint = "Quote it for the shell: helve tool read '{\"path\": \"README.md\"}'";
        Failure::usage("the input is not JSON", error, hint)
    })
}

fn house(setup: &Setup, tools: Vec<Arc<dyn Tool>>, gate: Gate, level: Level) -> Result<House, Failure> {
    let mode = setup.config()?.settings.permissions.mode;
    let gate = ruled(gate, setup, level)?;
    // Nothing is taken back that a person did by hand, so nothing is kept but what is needed to see what changed.
    let limits = helve_workspace::Limits { max_kept_bytes: 0, ..helve_workspace::Limits::default() };
    let watched = Watched { limits, notes: None, ..watched(setup.workspace()?, setup) };
    Ok(House {
        journal: Arc::new(MemoryJournal::default()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RealIds),
        tools,
        gate,
        mode,
        limits: Limits::default(),
        models: Arc::new(|_| Err("no model is asked".to_owned())),
        root: setup.root.clone(),
        added: added_folders(setup),
        watched: Some(watched),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// Asks whoever is at the terminal.
fn ask(request: &ApprovalRequested) -> Answer {
    screen::complain(&question(request));
    match screen::ask_once("y = yes, n = no: ").trim() {
        "y" | "yes" => Answer::Once,
        _ => Answer::Reject { message: None },
    }
}
