//! The tools of a session: the one list that calls are looked up in and that the model is told.

use std::sync::Arc;

use helve_models::{ToolSpec, schema};
use helve_tools::Tool;
use serde_json::Value;

/// The tools of a session with their schemas, which are derived once.
#[derive(Clone, Default)]
pub struct ToolSet(Vec<(Arc<dyn Tool>, Value)>);

impl ToolSet {
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> ToolSet {
        let with_schema = |tool: Arc<dyn Tool>| {
            let schema = tool.schema();
            (tool, schema)
        };
        ToolSet(tools.into_iter().map(with_schema).collect())
    }

    /// What the model is told of the tools.
    pub fn specs(&self) -> Vec<ToolSpec> {
        let spec = |(tool, schema): &(Arc<dyn Tool>, Value)| ToolSpec {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            schema: schema.clone(),
        };
        self.0.iter().map(spec).collect()
    }

    /// The same set with only the tools that are wanted.
    #[must_use]
    pub fn filtered(&self, is_wanted: impl Fn(&dyn Tool) -> bool) -> ToolSet {
        ToolSet(self.0.iter().filter(|(tool, _)| is_wanted(&**tool)).cloned().collect())
    }

    /// The tool of a name, or what the model is told instead.
    pub(crate) fn find(&self, name: &str) -> Result<&Arc<dyn Tool>, String> {
        self.entry(name).map(|(tool, _)| tool)
    }

    /// An input that fits the schema of a tool, with harmless slips corrected, or what the model is told instead.
    pub(crate) fn fit_input(&self, name: &str, input: Value) -> Result<Value, String> {
        let (_, schema) = self.entry(name)?;
        let input = schema::coerce(schema, input).value;
        schema::check(schema, &input).map_err(|misfits| {
            let lines: Vec<String> = misfits.iter().map(ToString::to_string).collect();
            format!("The input does not fit the tool {name}:\n{}", lines.join("\n"))
        })?;
        Ok(input)
    }

    fn entry(&self, name: &str) -> Result<&(Arc<dyn Tool>, Value), String> {
        self.0.iter().find(|(tool, _)| tool.name() == name).ok_or_else(|| {
            let names: Vec<&str> = self.0.iter().map(|(tool, _)| tool.name()).collect();
            match names.as_slice() {
                [] => format!("There is no tool {name:?}, nor any other."),
                names => format!("There is no tool {name:?}. There are: {}.", names.join(", ")),
            }
        })
    }
}
