//! `glob`

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use helve_protocol::{ToolAction, ToolClass};
use ignore::{DirEntry, WalkState};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::blocking::run_blocking;
use crate::display::{count_with_noun, display_path};
use crate::search::no_match;
use crate::search::walk::{
    MAX_SEARCH_OUTPUT_BYTES, SearchStart, filter, is_searched, lock_ignoring_poison, output,
    split_outside_glob, start, tree_metadata, visit, walk,
};
use crate::{ToolContext, ToolOutcome, TypedTool};

/// Finds files by their names.
#[derive(Clone, Debug, Default)]
pub struct GlobTool {
    /// What the user ignores in all repositories, in the form of `.gitignore`.
    pub user_ignores: Option<PathBuf>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobInput {
    /// Like `*.rs`, `src/**/test_*.py` or `*.{ts,tsx}`, seen from `path`.
    pattern: String,
    /// The folder; the project if left out.
    #[serde(default)]
    path: Option<String>,
}

const MAX_GLOB_FILES: usize = 500;

impl TypedTool for GlobTool {
    const NAME: &'static str = "glob";
    const DESCRIPTION: &'static str = include_str!("glob.md");
    const CLASS: ToolClass = ToolClass::Reads;
    type Input = GlobInput;

    fn intent(&self, input: &GlobInput) -> String {
        format!("find files {} in {}", input.pattern, input.path.as_deref().unwrap_or("the project"))
    }

    fn actions(&self, input: &GlobInput, root: &Path) -> Vec<ToolAction> {
        let (path, pattern) = from_here(input);
        let start = root.join(path.as_deref().unwrap_or_default());
        vec![ToolAction::Read(start), ToolAction::Search(pattern)]
    }

    async fn run(&self, input: GlobInput, context: &ToolContext) -> ToolOutcome {
        let (path, pattern) = from_here(&input);
        let start = start(context, path.as_deref())?;
        let ignores = self.user_ignores.clone();
        run_blocking(context, move |context| find(&start, &pattern, ignores.as_deref(), &context.stop)).await
    }
}

/// A pattern that begins elsewhere is one of the folder that it names.
fn from_here(input: &GlobInput) -> (Option<String>, String) {
    let GlobInput { pattern, path } = input;
    match split_outside_glob(pattern).filter(|_| path.is_none()) {
        Some((folder, rest)) => (Some(folder.to_owned()), rest.to_owned()),
        None => (path.clone(), pattern.clone()),
    }
}

fn find(start: &SearchStart, pattern: &str, ignores: Option<&Path>, stop: &CancellationToken) -> ToolOutcome {
    let mut walk = walk(start, ignores, |_| true)?;
    let filter = filter(&start.path, pattern)?;
    walk.builder.overrides(filter.clone());
    let found = Mutex::new(GlobMatches::default());
    let look = |entry: DirEntry| {
        if is_searched(&entry)
            && let Some(facts) = tree_metadata(&entry)
        {
            let changed = facts.modified().ok();
            lock_ignoring_poison(&found).add(changed.unwrap_or(SystemTime::UNIX_EPOCH), entry.into_path());
        }
        WalkState::Continue
    };
    let troubles = visit(&walk, stop, || look)?;
    let found = lock_ignoring_poison(&found);
    let (text, note) = match found.count {
        0 => (String::new(), Some(no_match::explain_no_match(start, (&start.path, pattern), &filter, stop))),
        _ => found.told(&start.root),
    };
    Ok(output(text, note.into_iter().chain(troubles.note()), count_with_noun(found.count, "file", "files")))
}

/// The files that were changed last, and how many there are in all.
#[derive(Default)]
struct GlobMatches {
    last: BTreeSet<(Reverse<SystemTime>, PathBuf)>,
    count: u64,
}

impl GlobMatches {
    fn add(&mut self, changed: SystemTime, path: PathBuf) {
        self.count += 1;
        self.last.insert((Reverse(changed), path));
        if self.last.len() > MAX_GLOB_FILES {
            self.last.pop_last();
        }
    }

    fn told(&self, root: &Path) -> (String, Option<String>) {
        let mut text = String::new();
        let mut told = 0;
        for (_, path) in &self.last {
            let path = display_path(root, path);
            if text.len() + path.len() >= MAX_SEARCH_OUTPUT_BYTES {
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
