//! `grep`

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use helve_protocol::{Action, ToolClass};
use ignore::overrides::Override;
use ignore::types::TypesBuilder;
use ignore::{DirEntry, WalkBuilder, WalkState};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::aside::aside;
use crate::search::hits::{Found, Hits, HitsSink};
use crate::search::missed;
use crate::search::walk::{
    Troubles, elsewhere, filter, held, is_searched, output, short, start, visit, walk,
};
use crate::{Context, Done, Hides, ToolFailure, TypedTool};

/// Searches in files.
#[derive(Clone, Debug, Default)]
pub struct Grep {
    /// What the user ignores in all repositories, in the form of `.gitignore`.
    pub user_ignores: Option<PathBuf>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
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
    mode: Mode,
    /// How many lines or files you get; 200 if left out.
    #[serde(default)]
    limit: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    #[default]
    Content,
    Files,
    Count,
}

const LIMIT: u32 = 200;
const MOST: u32 = 2_000;
const MOST_CONTEXT: u32 = 50;
/// What a single line, or a file whose matches may go over lines, may take of memory.
const HEAP: usize = 64 << 20;

impl TypedTool for Grep {
    const NAME: &'static str = "grep";
    const DESCRIPTION: &'static str = include_str!("grep.md");
    const CLASS: ToolClass = ToolClass::Reads;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        format!("search for {} in {}", input.pattern, input.path.as_deref().unwrap_or("the project"))
    }

    fn actions(&self, input: &Input, root: &Path) -> Vec<Action> {
        let start = root.join(scope(input, root).path.unwrap_or_default());
        vec![Action::Read(start), Action::Search(input.pattern.clone())]
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let Scope { path, glob } = scope(&input, &context.root);
        let start = start(context, path)?;
        let glob = glob.map(|(seen_from, glob)| {
            let folder = if seen_from == SeenFrom::Path { &start } else { &context.root };
            (folder.clone(), glob.to_owned())
        });
        let search = Search { start, glob, root: context.root.clone(), hides: context.hides.clone() };
        let ignores = self.user_ignores.clone();
        aside(context, move |context| search.run(&input, ignores.as_deref(), &context.stop)).await
    }
}

/// Where it is searched, and which glob counts there.
struct Scope<'a> {
    path: Option<&'a str>,
    glob: Option<(SeenFrom, &'a str)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SeenFrom {
    Project,
    Path,
}

/// A glob that begins in a folder outside the project (`/x/*.rs`, `../x/*.rs`) is one of that folder. Any other that begins with a
/// slash is meant from the project, as `rg` has it.
fn scope<'a>(input: &'a Input, root: &Path) -> Scope<'a> {
    let (path, glob) = (input.path.as_deref(), input.glob.as_deref());
    let is_outside = |folder: &str| {
        let (place, inside) = (root.join(folder), root.join(folder.trim_start_matches('/')));
        let is_absolute = !place.starts_with(root) && !inside.is_dir();
        place.is_dir() && (is_absolute || folder.starts_with("../"))
    };
    match glob.and_then(elsewhere).filter(|(folder, _)| path.is_none() && is_outside(folder)) {
        Some((folder, rest)) => Scope { path: Some(folder), glob: Some((SeenFrom::Path, rest)) },
        None => Scope { path, glob: glob.map(|glob| (SeenFrom::Project, glob)) },
    }
}

/// A search, and what it needs to know of where it is.
struct Search {
    root: PathBuf,
    start: PathBuf,
    /// With the folder that it is seen from.
    glob: Option<(PathBuf, String)>,
    hides: Hides,
}

impl Search {
    fn run(&self, input: &Input, ignores: Option<&Path>, stop: &CancellationToken) -> Done {
        let mut walk = walk(&self.root, &self.start, ignores, |_| true);
        let filter = self.glob.as_ref().map(|(folder, glob)| filter(folder, glob)).transpose()?;
        if let Some(filter) = &filter {
            walk.overrides(filter.clone());
        }
        if let Some(kind) = &input.kind {
            let mut types = TypesBuilder::new();
            types.add_defaults().select(kind);
            walk.types(types.build().map_err(|_| no_such_type(kind, &types))?);
        }
        let (found, troubles) = search(input, &self.root, &walk, &self.hides, stop)?;
        let (text, mut note) = found.told();
        if found.is_of_nothing() {
            note = Some(self.why_nothing(input.kind.as_deref(), filter.as_ref(), stop));
        }
        Ok(output(text, note.into_iter().chain(troubles.note()), found.summary()))
    }

    /// Why there was no file to search.
    fn why_nothing(&self, kind: Option<&str>, filter: Option<&Override>, stop: &CancellationToken) -> String {
        let start = missed::called(&self.root, &self.start);
        match (&self.glob, filter, kind) {
            (_, _, Some(kind)) => {
                format!("[No file in {start} is of the type {kind}, or none that the glob names.]")
            }
            (Some((folder, glob)), Some(filter), None) => {
                missed::why(&self.root, (folder, glob), &self.start, filter, stop)
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
    input: &Input,
    root: &Path,
    walk: &WalkBuilder,
    hides: &Hides,
    stop: &CancellationToken,
) -> Result<(Found, Troubles), ToolFailure> {
    let matcher = matcher(input)?;
    let limit = input.limit.unwrap_or(LIMIT).clamp(1, MOST) as usize;
    let found = Mutex::new(Found::new(input.mode, limit));
    let unread = Mutex::new(Troubles::default());
    let troubles = visit(walk, stop, || {
        let mut searcher = searcher(input);
        let (found, unread, matcher) = (&found, &unread, &matcher);
        move |entry: DirEntry| {
            if !is_searched(&entry) {
                return WalkState::Continue;
            }
            let path = short(root, entry.path());
            let sink = HitsSink::new(input.mode, matcher, limit);
            match search_file(&mut searcher, &entry, sink, stop) {
                // Whoever names a file has been asked about it.
                Ok(hits) if hits.is_any() && entry.depth() > 0 && hides(entry.path()) => {
                    held(unread)
                        .add(format!("{}: it may hold secrets; name it to search it", path.display()));
                }
                Ok(hits) => held(found).add(path.to_owned(), hits),
                Err(error) => held(unread).add(format!("{}: {error}", path.display())),
            }
            WalkState::Continue
        }
    })?;
    let unread = unread.into_inner().unwrap_or_default();
    let found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok((found, troubles.and(unread)))
}

fn matcher(input: &Input) -> Result<RegexMatcher, ToolFailure> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).case_insensitive(input.ignore_case).ban_byte(Some(0));
    if !input.multiline {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&input.pattern).map_err(|error| wrong_pattern(input, &error))
}

fn wrong_pattern(input: &Input, error: &grep_regex::Error) -> ToolFailure {
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

fn searcher(input: &Input) -> Searcher {
    let lines = |side: Option<u32>| match input.mode {
        Mode::Content => side.or(input.context).unwrap_or(0).min(MOST_CONTEXT) as usize,
        Mode::Files | Mode::Count => 0,
    };
    SearcherBuilder::new()
        .line_number(input.mode == Mode::Content)
        .multi_line(input.multiline)
        .before_context(lines(input.before))
        .after_context(lines(input.after))
        .heap_limit(Some(HEAP))
        .build()
}

fn search_file(
    searcher: &mut Searcher,
    entry: &DirEntry,
    mut sink: HitsSink<'_>,
    stop: &CancellationToken,
) -> io::Result<Hits> {
    // Whoever names a binary file wants to know whether something is in it; of others it is not asked.
    let is_named = entry.depth() == 0;
    searcher.set_binary_detection(if is_named {
        BinaryDetection::convert(0)
    } else {
        BinaryDetection::quit(0)
    });
    let file = Stoppable { file: File::open(entry.path())?, stop };
    searcher.search_reader(sink.matcher, file, &mut sink)?;
    Ok(sink.hits)
}

/// A file that has no more to say once the search is stopped.
struct Stoppable<'a> {
    file: File,
    stop: &'a CancellationToken,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() { Ok(0) } else { self.file.read(buffer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(pattern: &str) -> Input {
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
