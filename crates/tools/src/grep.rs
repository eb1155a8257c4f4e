//! `grep`

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use helve_protocol::{Action, ToolClass};
use ignore::types::TypesBuilder;
use ignore::{DirEntry, WalkBuilder, WalkState};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::hits::{Found, Hits, HitsSink};
use crate::walk::{Troubles, aside, filter, held, is_searched, output, short, start, visit, walk};
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
        let start = root.join(input.path.as_deref().unwrap_or_default());
        vec![Action::Read(start), Action::Search(input.pattern.clone())]
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let start = start(context, input.path.as_deref())?;
        let (root, ignores) = (context.root.clone(), self.user_ignores.clone());
        let hides = context.hides.clone();
        aside(context, move |stop| {
            let walk = walk_for(&input, &root, &start, ignores.as_deref())?;
            search(&input, &root, &walk, &hides, stop)
        })
        .await
    }
}

fn walk_for(
    input: &Input,
    root: &Path,
    start: &Path,
    ignores: Option<&Path>,
) -> Result<WalkBuilder, ToolFailure> {
    let mut walk = walk(root, start, ignores);
    if let Some(glob) = &input.glob {
        walk.overrides(filter(root, glob)?);
    }
    if let Some(kind) = &input.kind {
        let mut types = TypesBuilder::new();
        types.add_defaults().select(kind);
        walk.types(types.build().map_err(|_| no_such_type(kind, &types))?);
    }
    Ok(walk)
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

fn search(input: &Input, root: &Path, walk: &WalkBuilder, hides: &Hides, stop: &CancellationToken) -> Done {
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
    let found = held(&found);
    let (text, note) = found.told();
    Ok(output(text, note.into_iter().chain(troubles.and(unread).note()), found.summary()))
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
