//! `grep`

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use helve_protocol::{ToolAction, ToolClass};
use helve_workspace::{OpenedPath, open_without_links};
use ignore::overrides::Override;
use ignore::types::TypesBuilder;
use ignore::{DirEntry, WalkState};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::blocking::run_blocking;
use crate::display::short;
use crate::search::hits::{FileHits, FileHitsSink, GrepMode, GrepResults};
use crate::search::no_match;
use crate::search::walk::{
    SearchStart, SearchTroubles, SearchWalk, filter, is_searched, lock_ignoring_poison, output,
    split_outside_glob, start, visit, walk,
};
use crate::{HiddenPathTest, ToolContext, ToolFailure, ToolOutcome, TypedTool};

/// Searches in files.
#[derive(Clone, Debug, Default)]
pub struct GrepTool {
    /// What the user ignores in all repositories, in the form of `.gitignore`.
    pub user_ignores: Option<PathBuf>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepInput {
    /// The regular expression.
    pattern: String,
    /// The file or folder; the project if left out.
    #[serde(default)]
    path: Option<String>,
    /// Only files like `*.rs` or `src/**/*.ts`, seen from the project; `!*.md` for others only.
    #[serde(default)]
    glob: Option<String>,
    /// Only files of a type: `rust`, `py`, `js`, `ts`, `go`, `c`, …
    #[serde(default, rename = "type")]
    kind: Option<String>,
    /// Lines around each match.
    #[serde(default)]
    context: Option<u32>,
    /// Lines before each match.
    #[serde(default)]
    before: Option<u32>,
    /// Lines after each match.
    #[serde(default)]
    after: Option<u32>,
    #[serde(default)]
    ignore_case: bool,
    /// Matches may go over several lines; with `(?s)`, the dot too.
    #[serde(default)]
    multiline: bool,
    #[serde(default)]
    mode: GrepMode,
    /// How many lines or files you get; 200 if left out.
    #[serde(default)]
    limit: Option<u32>,
}

const DEFAULT_GREP_LIMIT: u32 = 200;
const MAX_GREP_LIMIT: u32 = 2_000;
const MAX_GREP_CONTEXT_LINES: u32 = 50;
/// What a single line, or a file whose matches may go over lines, may take of memory.
const MAX_SEARCH_HEAP_BYTES: usize = 64 << 20;

impl TypedTool for GrepTool {
    const NAME: &'static str = "grep";
    const DESCRIPTION: &'static str = include_str!("grep.md");
    const CLASS: ToolClass = ToolClass::Reads;
    type Input = GrepInput;

    fn intent(&self, input: &GrepInput) -> String {
        format!("search for {} in {}", input.pattern, input.path.as_deref().unwrap_or("the project"))
    }

    fn actions(&self, input: &GrepInput, root: &Path) -> Vec<ToolAction> {
        let start = root.join(scope(input, root).path.unwrap_or_default());
        vec![ToolAction::Read(start), ToolAction::Search(input.pattern.clone())]
    }

    async fn run(&self, input: GrepInput, context: &ToolContext) -> ToolOutcome {
        let GrepScope { path, glob } = scope(&input, &context.root);
        let start = start(context, path)?;
        let glob = glob.map(|(seen_from, glob)| {
            let folder = if seen_from == GlobBase::Path { &start.path } else { &start.root };
            (folder.clone(), glob.to_owned())
        });
        let search = GrepSearch { start, glob, hides: context.hides.clone() };
        let ignores = self.user_ignores.clone();
        run_blocking(context, move |context| search.run(&input, ignores.as_deref(), &context.stop)).await
    }
}

/// Where it is searched, and which glob counts there.
struct GrepScope<'a> {
    path: Option<&'a str>,
    glob: Option<(GlobBase, &'a str)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GlobBase {
    Project,
    Path,
}

/// A glob that begins in a folder outside the project (`/x/*.rs`, `../x/*.rs`) is one of that folder. Any other that begins with a
/// slash is meant from the project, as `rg` has it.
fn scope<'a>(input: &'a GrepInput, root: &Path) -> GrepScope<'a> {
    let (path, glob) = (input.path.as_deref(), input.glob.as_deref());
    let is_outside = |folder: &str| {
        let (place, inside) = (root.join(folder), root.join(folder.trim_start_matches('/')));
        let is_absolute = !place.starts_with(root) && !inside.is_dir();
        place.is_dir() && (is_absolute || folder.starts_with("../"))
    };
    match glob.and_then(split_outside_glob).filter(|(folder, _)| path.is_none() && is_outside(folder)) {
        Some((folder, rest)) => GrepScope { path: Some(folder), glob: Some((GlobBase::Path, rest)) },
        None => GrepScope { path, glob: glob.map(|glob| (GlobBase::Project, glob)) },
    }
}

/// A search, and what it needs to know of where it is.
struct GrepSearch {
    start: SearchStart,
    /// With the folder that it is seen from.
    glob: Option<(PathBuf, String)>,
    hides: HiddenPathTest,
}

impl GrepSearch {
    fn run(&self, input: &GrepInput, ignores: Option<&Path>, stop: &CancellationToken) -> ToolOutcome {
        let mut walk = walk(&self.start, ignores, |_| true)?;
        let filter = self.glob.as_ref().map(|(folder, glob)| filter(folder, glob)).transpose()?;
        if let Some(filter) = &filter {
            walk.builder.overrides(filter.clone());
        }
        if let Some(kind) = &input.kind {
            let mut types = TypesBuilder::new();
            types.add_defaults().select(kind);
            walk.builder.types(types.build().map_err(|_| no_such_type(kind, &types))?);
        }
        let (found, troubles) = search(input, &self.start.root, &walk, &self.hides, stop)?;
        let (text, mut note) = found.told();
        if found.is_of_nothing() {
            note = Some(self.why_nothing(input.kind.as_deref(), filter.as_ref(), stop));
        }
        Ok(output(text, note.into_iter().chain(troubles.note()), found.summary()))
    }

    /// Why there was no file to search.
    fn why_nothing(&self, kind: Option<&str>, filter: Option<&Override>, stop: &CancellationToken) -> String {
        let start = no_match::search_start_name(&self.start);
        match (&self.glob, filter, kind) {
            (_, _, Some(kind)) => {
                format!("[No file in {start} is of the type {kind}, or none that the glob names.]")
            }
            (Some((folder, glob)), Some(filter), None) => {
                no_match::explain_no_match(&self.start, (folder, glob), filter, stop)
            }
            _ => format!(
                "[No file was searched: there is none in {start} but hidden and ignored ones. Name one to search it.]"
            ),
        }
    }
}

/// A type that there is not is mostly the ending of files.
fn no_such_type(kind: &str, types: &TypesBuilder) -> ToolFailure {
    let glob = format!("*.{}", kind.trim_start_matches(['*', '.']));
    let definitions = types.definitions();
    let of_ending = definitions.iter().filter(|definition| definition.globs().contains(&glob));
    let names: Vec<&str> = of_ending.map(|definition| definition.name()).collect();
    let instead =
        if names.is_empty() { String::new() } else { format!("the type {}, or ", names.join(" or ")) };
    ToolFailure(format!("There is no file type {kind:?}. Give {instead}the glob {glob:?} instead."))
}

fn search(
    input: &GrepInput,
    root: &Path,
    walk: &SearchWalk,
    hides: &HiddenPathTest,
    stop: &CancellationToken,
) -> Result<(GrepResults, SearchTroubles), ToolFailure> {
    let matcher = matcher(input)?;
    let limit = input.limit.unwrap_or(DEFAULT_GREP_LIMIT).clamp(1, MAX_GREP_LIMIT) as usize;
    let found = Mutex::new(GrepResults::new(input.mode, limit));
    let unread = Mutex::new(SearchTroubles::default());
    let troubles = visit(walk, stop, || {
        let mut searcher = searcher(input);
        let (found, unread, matcher) = (&found, &unread, &matcher);
        move |entry: DirEntry| {
            if !is_searched(&entry) {
                return WalkState::Continue;
            }
            let path = short(root, entry.path());
            let sink = FileHitsSink::new(input.mode, matcher, limit);
            match search_file(&mut searcher, &entry, sink, stop) {
                // Whoever names a file has been asked about it.
                Ok(hits) if hits.is_any() && entry.depth() > 0 && hides(entry.path()) => {
                    lock_ignoring_poison(unread)
                        .add(format!("{}: it may hold secrets; name it to search it", path.display()));
                }
                Ok(hits) => lock_ignoring_poison(found).add(path.to_owned(), hits),
                // It went away, or a folder on the way to it became a link, which may have led here.
                Err(error) if entry.depth() > 0 && is_gone(&error) => {}
                Err(error) => lock_ignoring_poison(unread).add(format!("{}: {error}", path.display())),
            }
            WalkState::Continue
        }
    })?;
    let unread = unread.into_inner().unwrap_or_default();
    let found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok((found, troubles.and(unread)))
}

fn matcher(input: &GrepInput) -> Result<RegexMatcher, ToolFailure> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).case_insensitive(input.ignore_case).ban_byte(Some(0));
    if !input.multiline {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&input.pattern).map_err(|error| wrong_pattern(input, &error))
}

fn wrong_pattern(input: &GrepInput, error: &grep_regex::Error) -> ToolFailure {
    let advice = match error.kind() {
        grep_regex::ErrorKind::NotAllowed(_) => {
            "Set multiline to find what goes over several lines.".to_owned()
        }
        grep_regex::ErrorKind::Banned(_) => "Binary files are not searched: leave it out.".to_owned(),
        _ => format!("To find it letter by letter, write it as {}", escaped(&input.pattern)),
    };
    ToolFailure(format!("The pattern is no regular expression that can be searched for: {error}\n{advice}"))
}

/// The regular expression that finds a text as it stands.
fn escaped(text: &str) -> String {
    let special = |letter: char| r"\.+*?()|[]{}^$".contains(letter);
    text.chars().flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter])).collect()
}

fn searcher(input: &GrepInput) -> Searcher {
    let lines = |side: Option<u32>| match input.mode {
        GrepMode::Content => side.or(input.context).unwrap_or(0).min(MAX_GREP_CONTEXT_LINES) as usize,
        GrepMode::Files | GrepMode::Count => 0,
    };
    SearcherBuilder::new()
        .line_number(input.mode == GrepMode::Content)
        .multi_line(input.multiline)
        .before_context(lines(input.before))
        .after_context(lines(input.after))
        .heap_limit(Some(MAX_SEARCH_HEAP_BYTES))
        .build()
}

fn search_file(
    searcher: &mut Searcher,
    entry: &DirEntry,
    mut sink: FileHitsSink<'_>,
    stop: &CancellationToken,
) -> io::Result<FileHits> {
    // Whoever names a binary file wants to know whether something is in it; of others it is not asked.
    let is_named = entry.depth() == 0;
    searcher.set_binary_detection(if is_named {
        BinaryDetection::convert(0)
    } else {
        BinaryDetection::quit(0)
    });
    let OpenedPath::File(file) = open_without_links(entry.path())? else {
        return Err(io::Error::other("it is no ordinary file"));
    };
    let file = StoppableFile { file, stop };
    searcher.search_reader(sink.matcher, file, &mut sink)?;
    Ok(sink.hits)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// A file that has no more to say once the search is stopped.
struct StoppableFile<'a> {
    file: File,
    stop: &'a CancellationToken,
}

impl Read for StoppableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() { Ok(0) } else { self.file.read(buffer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(pattern: &str) -> GrepInput {
        serde_json::from_value(serde_json::json!({ "pattern": pattern })).unwrap()
    }

    #[test]
    fn an_escaped_text_is_a_pattern() {
        for text in ["foo(", "a[0", r"c:\new\q", "{x", "*", "a|b", "(?<!x)", "+1?"] {
            let pattern = escaped(text);
            let found = grep_matcher::Matcher::find(&matcher(&input(&pattern)).unwrap(), text.as_bytes());
            assert_eq!(found.unwrap(), Some(grep_matcher::Match::new(0, text.len())), "{pattern}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_pattern_is_told() {
        let told = |pattern: &str| matcher(&input(pattern)).unwrap_err().0;
        assert!(told("fn main(").contains("unclosed group"));
        assert!(told("fn main(").contains(r"write it as fn main\("));
        assert!(told("(?!x)y").contains("look-around"));
        assert!(told(r"a\nb").contains("Set multiline"));
        assert!(told(r"a\x00b").contains("leave it out"));
    }

    #[test]
    fn an_ending_leads_to_its_type() {
        let mut types = TypesBuilder::new();
        types.add_defaults();
        assert!(no_such_type("tsx", &types).0.contains(r#"the type ts"#));
        assert!(no_such_type("qqq", &types).0.contains(r#"Give the glob "*.qqq" instead"#));
    }
}
