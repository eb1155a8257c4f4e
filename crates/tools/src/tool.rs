//! What every tool is.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use helve_protocol::{BlobStore, CallId, CallPermissions, ToolAction, ToolClass, ToolOutput};
use helve_workspace::ResolvedPath;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::{ChangeScope, DeniedPaths, NoSessionHost, SessionHost, ToolFailure, WorkspaceGuard};

/// What a tool did, or what the model is told instead.
pub type ToolOutcome = Result<ToolOutput, ToolFailure>;

/// A tool at work.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = ToolOutcome> + Send + 'a>>;

/// Something that the model can do, as the loop sees it.
pub trait Tool: Send + Sync {
    fn name(&self) -> &'static str;
    /// For the model.
    fn description(&self) -> &'static str;
    /// The JSON schema of its input.
    fn schema(&self) -> Value;
    fn class(&self) -> ToolClass;
    fn touches(&self) -> ChangeScope {
        ChangeScope::of(self.class())
    }
    /// Whether it looks at something that changes by itself, so that the same call again and again makes sense.
    fn polls(&self) -> bool {
        false
    }
    /// What it would do, in a line that a person can judge.
    fn intent(&self, input: &Value) -> String;
    /// What it would do, for the gate. `root` is the project. What is not said is not judged.
    fn actions(&self, input: &Value, root: &Path) -> Vec<ToolAction> {
        let _ = root;
        match self.class() {
            ToolClass::Changes => vec![ToolAction::Other { what: self.intent(input), is_confined: false }],
            ToolClass::Reads | ToolClass::Subagent | ToolClass::Interactive => Vec::new(),
        }
    }
    /// Whether it can be tried before anybody is asked: with [`ToolContext::is_trial`] it changes nothing.
    fn can_be_tried(&self) -> bool {
        false
    }
    fn run<'a>(&'a self, input: Value, context: &'a ToolContext) -> ToolFuture<'a>;
}

/// A tool with a typed input. Every tool is written as one of these.
pub trait TypedTool: Send + Sync {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;
    const CLASS: ToolClass;
    const TOUCHES: ChangeScope = ChangeScope::of(Self::CLASS);
    /// See [`Tool::polls`].
    const POLLS: bool = false;
    /// See [`Tool::can_be_tried`].
    const CAN_BE_TRIED: bool = false;
    type Input: DeserializeOwned + JsonSchema + Send;

    fn intent(&self, input: &Self::Input) -> String;
    /// See [`Tool::actions`].
    fn actions(&self, input: &Self::Input, root: &Path) -> Vec<ToolAction>;
    fn run(&self, input: Self::Input, context: &ToolContext) -> impl Future<Output = ToolOutcome> + Send;
}

/// Where a tool works, how it is stopped, and how it shows what it does.
#[derive(Clone)]
pub struct ToolContext {
    /// The project, absolute.
    pub root: PathBuf,
    /// Folders besides the project in which files may be changed, absolute.
    pub added: Vec<PathBuf>,
    pub stop: CancellationToken,
    /// Told when a person does not want to wait for what runs.
    pub background: Arc<Notify>,
    /// The call that it works for.
    pub call: CallId,
    /// Where large payloads go.
    pub blobs: Arc<dyn BlobStore>,
    pub live: LiveOutput,
    pub ground: WorkspaceGuard,
    pub host: Arc<dyn SessionHost>,
    /// What the call was allowed beyond what any may do.
    pub granted: CallPermissions,
    /// Files that are not to be shown unless they are asked for by name.
    pub hides: HiddenPathTest,
    /// Which paths rules deny to commands.
    pub denied: DeniedPaths,
    /// What the call may do with a file that it has found, by its real path. Before the call, the path was judged as it was
    /// then; what was found may be something else.
    pub allows: AccessTest,
    /// Nothing is to be changed: only what would come of it is wanted.
    pub is_trial: bool,
}

/// What a call does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    Read,
    /// Also to delete it.
    Write,
}

/// What may be done with which real paths.
pub type AccessTest = Arc<dyn Fn(FileAccess, &Path) -> bool + Send + Sync>;

/// Which files are not to be shown.
pub type HiddenPathTest = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// Takes what a tool shows while it works. Whoever looks may be slow: what does not fit is left out, and the tool goes on.
#[derive(Clone, Debug, Default)]
pub struct LiveOutput(Option<(CallId, mpsc::Sender<(CallId, String)>)>);

impl LiveOutput {
    pub fn new(call: CallId, listener: mpsc::Sender<(CallId, String)>) -> LiveOutput {
        LiveOutput(Some((call, listener)))
    }

    pub fn show(&self, text: &str) {
        if let Some((call, listener)) = &self.0 {
            let _ = listener.try_send((*call, text.to_owned()));
        }
    }
}

impl ToolContext {
    /// For a tool that works for no session: nobody looks, nobody is asked, and no workspace is watched.
    pub fn alone(root: PathBuf, call: CallId, blobs: Arc<dyn BlobStore>) -> ToolContext {
        ToolContext {
            root,
            added: Vec::new(),
            stop: CancellationToken::new(),
            background: Arc::default(),
            call,
            blobs,
            live: LiveOutput::default(),
            ground: WorkspaceGuard::default(),
            host: Arc::new(NoSessionHost),
            granted: CallPermissions::default(),
            hides: Arc::new(|_| false),
            denied: DeniedPaths::default(),
            allows: Arc::new(|_, _| true),
            is_trial: false,
        }
    }

    /// Finds what a path of the model's means, in the project unless it is absolute. Everything that is done with it from now
    /// on is done with what was found.
    pub(crate) fn resolve(&self, path: &str, access: FileAccess) -> io::Result<ResolvedPath> {
        let resolved = ResolvedPath::new(&self.root.join(path))?;
        if (self.allows)(access, resolved.path()) { Ok(resolved) } else { Err(changed_while_opening()) }
    }
}

/// A path leads to something else than what was judged, or to a link where there was none.
pub(crate) fn changed_while_opening() -> io::Error {
    io::Error::other("it changed while it was being opened; try again")
}

impl<T: TypedTool> Tool for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn description(&self) -> &'static str {
        T::DESCRIPTION.trim_ascii_end()
    }

    fn schema(&self) -> Value {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        });
        let mut schema = settings.into_generator().into_root_schema_for::<T::Input>().to_value();
        if let Value::Object(fields) = &mut schema {
            fields.shift_remove("title");
        }
        schema
    }

    fn class(&self) -> ToolClass {
        T::CLASS
    }

    fn touches(&self) -> ChangeScope {
        T::TOUCHES
    }

    fn polls(&self) -> bool {
        T::POLLS
    }

    fn intent(&self, input: &Value) -> String {
        match T::Input::deserialize(input) {
            Ok(input) => TypedTool::intent(self, &input),
            Err(_) => format!("{} {input}", T::NAME),
        }
    }

    fn actions(&self, input: &Value, root: &Path) -> Vec<ToolAction> {
        match T::Input::deserialize(input) {
            Ok(input) => TypedTool::actions(self, &input, root),
            // It will not run.
            Err(_) => vec![ToolAction::Other { what: input.to_string(), is_confined: false }],
        }
    }

    fn can_be_tried(&self) -> bool {
        T::CAN_BE_TRIED
    }

    fn run<'a>(&'a self, input: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let input = T::Input::deserialize(&input)
                .map_err(|error| ToolFailure(format!("The input of {} is wrong: {error}.", T::NAME)))?;
            TypedTool::run(self, input, context).await
        })
    }
}
