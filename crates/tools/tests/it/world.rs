//! A project with files, and the file tools on it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use helve_protocol::{BlobError, BlobId, BlobStore, ToolOutput};
use helve_testkit::sample_id;
use helve_tools::{
    ApplyPatchTool, EditTool, NotebookEditTool, ReadTool, SessionFiles, Tool, ToolContext, WriteTool,
};
use serde_json::{Value, json};

#[derive(Default)]
struct Kept(Mutex<HashMap<BlobId, Vec<u8>>>);

impl BlobStore for Kept {
    fn put(&self, content: &[u8]) -> Result<BlobId, BlobError> {
        let id = BlobId::from_hash(*blake3::hash(content).as_bytes());
        self.0.lock().unwrap().insert(id, content.to_vec());
        Ok(id)
    }

    fn get(&self, id: BlobId) -> Result<Vec<u8>, BlobError> {
        let kept = self.0.lock().unwrap();
        kept.get(&id).cloned().ok_or_else(|| BlobError("nothing is kept under this id".into()))
    }
}

pub(crate) struct World {
    folder: tempfile::TempDir,
    files: Arc<SessionFiles>,
    pub(crate) context: ToolContext,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(SessionFiles::default())
    }

    pub(crate) fn with(files: SessionFiles) -> World {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        fs::create_dir(&root).unwrap();
        World { context: context(&root), folder, files: Arc::new(files) }
    }

    /// In the project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.context.root.join(name)
    }

    /// Beside the project.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    /// All files of the project, with what is in them.
    pub(crate) fn all(&self) -> std::collections::BTreeMap<String, String> {
        let mut all = std::collections::BTreeMap::new();
        let mut folders = vec![self.context.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    let name = entry.path().strip_prefix(&self.context.root).unwrap().display().to_string();
                    all.insert(name, String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned());
                }
            }
        }
        all
    }

    fn run(&self, tool: &dyn Tool, input: Value) -> Result<ToolOutput, String> {
        run(tool, input, &self.context)
    }

    pub(crate) fn look(&self, input: Value) -> Result<ToolOutput, String> {
        self.run(&ReadTool { files: self.files.clone() }, input)
    }

    pub(crate) fn read(&self, name: &str) -> Result<String, String> {
        Ok(self.look(json!({ "path": name }))?.text)
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> Result<ToolOutput, String> {
        self.run(&WriteTool { files: self.files.clone() }, json!({ "path": name, "content": content }))
    }

    pub(crate) fn edits(&self, name: &str, edits: Value) -> Result<ToolOutput, String> {
        self.run(&EditTool { files: self.files.clone() }, json!({ "path": name, "edits": edits }))
    }

    pub(crate) fn edit(&self, name: &str, old: &str, new: &str) -> Result<ToolOutput, String> {
        self.edits(name, json!([{ "old": old, "new": new }]))
    }

    pub(crate) fn patch(&self, patch: &str) -> Result<ToolOutput, String> {
        self.run(&ApplyPatchTool { files: self.files.clone() }, json!({ "patch": patch }))
    }

    pub(crate) fn cell(&self, input: Value) -> Result<ToolOutput, String> {
        self.run(&NotebookEditTool { files: self.files.clone() }, input)
    }
}

pub(crate) fn context(root: &Path) -> ToolContext {
    ToolContext::alone(root.to_owned(), sample_id(1), Arc::new(Kept::default()))
}

pub(crate) fn run(tool: &dyn Tool, input: Value, context: &ToolContext) -> Result<ToolOutput, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(tool.run(input, context)).map_err(|failure| failure.0)
}
