//! `glob`

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use helve_protocol::{Action, ToolClass};
use ignore::{DirEntry, WalkState};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::aside::aside;
use crate::search::missed;
use crate::search::walk::{
    BYTES, counted, elsewhere, filter, held, is_searched, output, shown, start, visit, walk,
};
use crate::{Context, Done, TypedTool};

/// Finds files by their names.
#[derive(Clone, Debug, Default)]
pub struct Glob {
    /// What the user ignores in all repositories, in the form of `.gitignore`.
    pub user_ignores: Option<PathBuf>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Like `*.rs`, `src/**/test_*.py` or `*.{ts,tsx}`, seen from `path`.
    pattern: String,
    /// The folder; the project if left out.
    #[serde(default)]
    path: Option<String>,
}

const MOST: usize = 500;

impl TypedTool for Glob {
    const NAME: &'static str = "glob";
    const DESCRIPTION: &'static str = include_str!("glob.md");
    const CLASS: ToolClass = ToolClass::Reads;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        format!("find files {} in {}", input.pattern, input.path.as_deref().unwrap_or("the project"))
    }

    fn actions(&self, input: &Input, root: &Path) -> Vec<Action> {
        let (path, pattern) = from_here(input);
        let start = root.join(path.as_deref().unwrap_or_default());
        vec![Action::Read(start), Action::Search(pattern)]
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let (path, pattern) = from_here(&input);
        let start = start(context, path.as_deref())?;
        let (root, ignores) = (context.root.clone(), self.user_ignores.clone());
        aside(context, move |context| find(&root, &start, &pattern, ignores.as_deref(), &context.stop)).await
    }
}

/// A pattern that begins elsewhere is one of the folder that it names.
fn from_here(input: &Input) -> (Option<String>, String) {
    let Input { pattern, path } = input;
    match elsewhere(pattern).filter(|_| path.is_none()) {
        Some((folder, rest)) => (Some(folder.to_owned()), rest.to_owned()),
        None => (path.clone(), pattern.clone()),
    }
}

fn find(root: &Path, start: &Path, pattern: &str, ignores: Option<&Path>, stop: &CancellationToken) -> Done {
    let mut walk = walk(root, start, ignores, |_| true);
    let filter = filter(start, pattern)?;
    walk.overrides(filter.clone());
    let found = Mutex::new(Found::default());
    let look = |entry: DirEntry| {
        if is_searched(&entry) {
            let changed = entry.metadata().ok().and_then(|facts| facts.modified().ok());
            held(&found).add(changed.unwrap_or(SystemTime::UNIX_EPOCH), entry.into_path());
        }
        WalkState::Continue
    };
    let troubles = visit(&walk, stop, || look)?;
    let found = held(&found);
    let (text, note) = match found.count {
        0 => (String::new(), Some(missed::why(root, (start, pattern), start, &filter, stop))),
        _ => found.told(root),
    };
    Ok(output(text, note.into_iter().chain(troubles.note()), counted(found.count, "file", "files")))
}

/// The files that were changed last, and how many there are in all.
#[derive(Default)]
struct Found {
    last: BTreeSet<(Reverse<SystemTime>, PathBuf)>,
    count: u64,
}

impl Found {
    fn add(&mut self, changed: SystemTime, path: PathBuf) {
        self.count += 1;
        self.last.insert((Reverse(changed), path));
        if self.last.len() > MOST {
            self.last.pop_last();
        }
    }

    fn told(&self, root: &Path) -> (String, Option<String>) {
        let mut text = String::new();
        let mut told = 0;
        for (_, path) in &self.last {
            let path = shown(root, path);
            if text.len() + path.len() >= BYTES {
                break;
            }
            text.push_str(&path);
            text.push('\n');
            told += 1;
        }
        let (count, left_out) = (self.count, self.count - told);
        let note = (left_out > 0).then(|| {
            format!("[{left_out} of {count} files, changed earlier, are left out: narrow the pattern]")
        });
        (text, note)
    }
}
