//! `helve models`

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use helve_models::{ModelAnswer, ResponseDecoder, StreamError, WireProtocol, parse_error_body};
use serde_json::{Value, json};

use super::{models_list, models_probe};
use crate::args::ModelsCommand;
use crate::console::ConsoleOutput;
use crate::failure::{CliFailure, ProgramExit};
use crate::setup::CliSetup;
use crate::text;

pub(crate) fn run(
    command: ModelsCommand,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    match command {
        ModelsCommand::List { provider, all, json } => {
            models_list::run(&models_list::ModelListOptions { provider, all, json }, setup, screen)
        }
        ModelsCommand::Probe { name } => models_probe::run(name, setup, screen),
        ModelsCommand::Decode { file, wire, chunk } => {
            let body = read(&file)?;
            let pieces = chunk.map_or(body.len(), |chunk| usize::try_from(chunk).unwrap_or(usize::MAX));
            let (answer, error) = decode(wire, &body, pieces.max(1));
            writeln!(screen, "{:#}", told(&answer, error.as_ref()))?;
            Ok(ProgramExit::Success)
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, CliFailure> {
    let read = if file == Path::new("-") {
        let mut body = Vec::new();
        std::io::stdin().read_to_end(&mut body).map(|_| body)
    } else {
        fs::read(file)
    };
    read.map_err(|error| {
        CliFailure::new(format!("{} can't be read", text::path(file)), error, "Check the path.")
    })
}

/// What came before an error is told too.
fn decode(wire: WireProtocol, body: &[u8], pieces: usize) -> (ModelAnswer, Option<StreamError>) {
    let mut answer = ModelAnswer::default();
    // A response that failed has a plain object for a body.
    if let Some(error) = std::str::from_utf8(body).ok().and_then(parse_error_body) {
        return (answer, Some(error));
    }
    let mut decoder = ResponseDecoder::new(wire);
    for piece in body.chunks(pieces) {
        match decoder.push(piece) {
            Ok(said) => said.into_iter().for_each(|event| answer.apply(event)),
            Err(error) => return (answer, Some(error)),
        }
    }
    match decoder.finish() {
        Ok(said) => said.into_iter().for_each(|event| answer.apply(event)),
        Err(error) => return (answer, Some(error)),
    }
    (answer, None)
}

fn told(answer: &ModelAnswer, error: Option<&StreamError>) -> Value {
    let calls: Vec<Value> = answer
        .calls()
        .map(|call| {
            let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
            json!({"id": call.id, "name": call.name, "arguments": arguments})
        })
        .collect();
    let usage = answer.usage;
    json!({
        "text": answer.text(),
        "thinking": answer.thinking(),
        "tool_calls": calls,
        "usage": {
            "input": usage.input,
            "output": usage.output,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
        },
        "stop": answer.stop,
        "error": error.map(ToString::to_string),
    })
}
