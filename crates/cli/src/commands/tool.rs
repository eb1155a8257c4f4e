//! `helve tool`: one tool by hand, for scripts, bug reports and tests.

use std::io::{IsTerminal, Read, Write};
use std::sync::Arc;

use helve_agent::{
    ModelSource, PermissionGate, Services, SessionSpec, SingleCallResult, WatchConfig, run_tool_once,
};
use helve_exec::SandboxProbe;
use helve_journal::MemoryJournal;
use helve_models::ModelTarget;
use helve_protocol::{ApprovalAnswer, ApprovalRequested, ModelName, ToolState};
use helve_tools::Tool;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::ToolCommandArgs;
use crate::console::{self, ConsoleOutput};
use crate::failure::{CliFailure, ProgramExit};
use crate::sandbox_policy::probe_sandbox;
use crate::setup::{CliSetup, SystemClock};
use crate::text::{one_line, question};
use crate::user_models::block_on;
use crate::wiring::{BuiltInTools, SessionWiring, TimeOrderedIds, added_folders, gate_rules, watch_config};

const MAX_TOOL_INPUT_BYTES: u64 = 64 << 20;

pub(crate) fn run(
    options: &ToolCommandArgs,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let found = if options.name.is_some() { probe_sandbox(setup) } else { SandboxProbe::NONE };
    let tools = BuiltInTools::new(setup, &found)?.for_person();
    let Some(name) = &options.name else { return list(&tools.make(), options.json_list, screen) };
    let input = input(options)?;
    let has_person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let rules = gate_rules(setup, found.level)?;
    let gate = match (options.yes, has_person) {
        (true, _) => PermissionGate::answering_yes(rules),
        (false, true) => PermissionGate::asking_callback(Arc::new(ask), rules),
        (false, false) => PermissionGate::answering_no(rules),
    };
    let SessionWiring { services, spec } = tool_services(setup, tools, gate)?;
    let stop = CancellationToken::new();
    let called = block_on(async {
        let work = run_tool_once(&services, &spec, name, input, &stop);
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
    let SingleCallResult { end, changed } = called.map_err(|error| crate::wiring::session_failure(&error))?;
    let (ok, output) = (matches!(end, ToolState::Completed { .. }), end.for_model().text.into_owned());
    writeln!(screen, "{}", json!({ "ok": ok, "output": output, "changed": changed }))?;
    Ok(match end {
        ToolState::Completed { .. } => ProgramExit::Success,
        ToolState::Interrupted { .. } => ProgramExit::Interrupted,
        _ => ProgramExit::Error,
    })
}

/// Names the tools, with their schemas for programs.
fn list(
    tools: &[Arc<dyn Tool>],
    as_json: bool,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    for tool in tools {
        if as_json {
            let (name, description, schema) = (tool.name(), tool.description(), tool.schema());
            writeln!(screen, "{}", json!({ "name": name, "description": description, "input": schema }))?;
        } else {
            let first = tool.description().split_inclusive(['.', ':']).next().unwrap_or_default();
            writeln!(screen, "{:<14} {}", tool.name(), one_line(first.trim_end_matches(':')))?;
        }
    }
    Ok(ProgramExit::Success)
}

fn input(options: &ToolCommandArgs) -> Result<Value, CliFailure> {
    let text = match options.input.as_deref() {
        None if std::io::stdin().is_terminal() => "{}".to_owned(),
        None | Some("-") => {
            let mut text = String::new();
            let read = std::io::stdin().take(MAX_TOOL_INPUT_BYTES).read_to_string(&mut text);
            read.map_err(|error| {
                CliFailure::usage("the input can't be read", error, "Give it as JSON, as words or piped.")
            })?;
            if text.trim().is_empty() { "{}".to_owned() } else { text }
        }
        Some(text) => text.to_owned(),
    };
    serde_json::from_str(&text).map_err(|error| {
        let hint = "Quote it for the shell: helve tool read '{\"path\": \"README.md\"}'";
        CliFailure::usage("the input is not JSON", error, hint)
    })
}

fn tool_services(
    setup: &CliSetup,
    tools: BuiltInTools,
    gate: PermissionGate,
) -> Result<SessionWiring, CliFailure> {
    // Nothing is taken back that a person did by hand, so nothing is kept but what is needed to see what changed.
    let limits =
        helve_workspace::WorkspaceLimits { max_kept_bytes: 0, ..helve_workspace::WorkspaceLimits::default() };
    let watch = WatchConfig { limits, notes: None, ..watch_config(setup.workspace()?, setup) };
    let services = Services {
        journal: Arc::new(MemoryJournal::default()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(TimeOrderedIds),
        models: Arc::new(UnaskedModels),
        tools: Arc::new(tools),
        gate,
        workspaces: Arc::default(),
        hooks: Services::no_hooks(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let spec = SessionSpec {
        root: setup.root.clone(),
        added: added_folders(setup),
        mode: setup.config()?.settings.permissions.mode,
        watch: Some(watch),
        ..SessionSpec::default()
    };
    Ok(SessionWiring { services, spec })
}

/// A single call asks no model.
struct UnaskedModels;

impl ModelSource for UnaskedModels {
    fn by_name(&self, _: &ModelName) -> Result<ModelTarget, String> {
        Err("no model is asked".to_owned())
    }
}

/// Asks whoever is at the terminal.
fn ask(request: &ApprovalRequested) -> ApprovalAnswer {
    console::print_to_stderr(&question(request));
    match console::ask_once("y = yes, n = no: ").trim() {
        "y" | "yes" => ApprovalAnswer::Once,
        _ => ApprovalAnswer::Reject { message: None },
    }
}
