//! `helve models`

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use helve_models::{Answer, Decoder, StreamError, Wire, error_in};
use serde_json::{Value, json};

use super::{models_list, models_probe};
use crate::args::{Models, WireName};
use crate::failure::{Exit, Failure};
use crate::screen::Screen;
use crate::setup::Setup;
use crate::text;

pub(crate) fn run(command: Models, setup: &Setup, screen: &mut Screen) -> Result<Exit, Failure> {
    match command {
        Models::List { provider, all, json } => {
            models_list::run(&models_list::Options { provider, all, json }, setup, screen)
        }
        Models::Probe { name } => models_probe::run(name, setup, screen),
        Models::Decode { file, wire, chunk } => {
            let body = read(&file)?;
            let pieces = chunk.map_or(body.len(), |chunk| usize::try_from(chunk).unwrap_or(usize::MAX));
            let (answer, error) = decode(wire_of(wire), &body, pieces.max(1));
            writeln!(screen, "{:#}", told(&answer, error.as_ref()))?;
            Ok(Exit::Fine)
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let read = if file == Path::new("-") {
        let mut body = Vec::new();
        std::io::stdin().read_to_end(&mut body).map(|_| body)
    } else {
        fs::read(file)
    };
    read.map_err(|error| {
        Failure::new(format!("{} can't be read", text::path(file)), error, "Check the path.")
    })
}

fn wire_of(name: WireName) -> Wire {
    match name {
        WireName::Messages => Wire::Messages,
        WireName::Chat => Wire::Chat,
        WireName::Responses => Wire::Responses,
        WireName::Gemini => Wire::Gemini,
    }
}

/// What came before an error is told too.
fn decode(wire: Wire, body: &[u8], pieces: usize) -> (Answer, Option<StreamError>) {
    let mut answer = Answer::default();
    // A response that failed has a plain object for a body.
    if let Some(error) = std::str::from_utf8(body).ok().and_then(error_in) {
        return (answer, Some(error));
    }
    let mut decoder = Decoder::new(wire);
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

fn told(answer: &Answer, error: Option<&StreamError>) -> Value {
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
