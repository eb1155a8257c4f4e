//! The tools of a session, and which of them a call means.

use std::sync::Arc;

use helve_models::{ToolSpec, schema};
use helve_protocol::{CallId, ToolPart};
use helve_tools::Tool;
use serde_json::Value;

/// Tools with their schemas, which are derived once.
pub(crate) struct Toolbox(Vec<(Arc<dyn Tool>, Value)>);

/// A call that may run.
pub(crate) struct ReadyCall {
    pub(crate) call: CallId,
    pub(crate) name: String,
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) input: Value,
}

impl Toolbox {
    pub(crate) fn new(tools: &[Arc<dyn Tool>]) -> Toolbox {
        Toolbox(tools.iter().map(|tool| (tool.clone(), tool.schema())).collect())
    }

    /// A call that names a tool and fits its schema, or what the model is told.
    pub(crate) fn resolve_call(&self, call: &ToolPart) -> Result<ReadyCall, String> {
        let (tool, schema) = self.0.iter().find(|(tool, _)| tool.name() == call.name).ok_or_else(|| {
            let names: Vec<&str> = self.0.iter().map(|(tool, _)| tool.name()).collect();
            match names.as_slice() {
                [] => format!("There is no tool {:?}, nor any other.", call.name),
                names => format!("There is no tool {:?}. There are: {}.", call.name, names.join(", ")),
            }
        })?;
        let input = schema::coerce(schema, call.input.clone()).value;
        schema::check(schema, &input).map_err(|misfits| {
            let lines: Vec<String> = misfits.iter().map(ToString::to_string).collect();
            format!("The input does not fit the tool {}:\n{}", call.name, lines.join("\n"))
        })?;
        Ok(ReadyCall { call: call.call, name: call.name.clone(), tool: tool.clone(), input })
    }
}

/// What the model is told of tools.
pub fn specs(tools: &[Arc<dyn Tool>]) -> Vec<ToolSpec> {
    let spec = |tool: &Arc<dyn Tool>| ToolSpec {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        schema: tool.schema(),
    };
    tools.iter().map(spec).collect()
}
