//! `apply_patch`

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use helve_protocol::{Action, ToolClass, ToolOutput};
use helve_workspace::OpenedPath;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::aside::aside;
use crate::editing::{
    FileResult, Found, Operation, Patch, PatchError, PatchProblem, Rung, apply_patch, parse_patch,
};
use crate::files::atomic::{Change, Content};
use crate::files::telling;
use crate::files::{
    Draft, Extent, Files, Place, Settled, Standing, Text, hint_of_form, unmixed, with_endings_of,
};
use crate::{Context, Done, ToolFailure, Touches, TypedTool};

/// Applies patches.
#[derive(Clone, Debug, Default)]
pub struct ApplyPatch {
    pub files: Arc<Files>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The whole patch.
    patch: String,
}

impl TypedTool for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    const DESCRIPTION: &'static str = include_str!("apply_patch.md");
    const CLASS: ToolClass = ToolClass::Changes;
    const TOUCHES: Touches = Touches::Named;
    const CAN_BE_TRIED: bool = true;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        match parse_patch(&input.patch) {
            Ok(patch) => format!("patch {}", paths(&patch).join(", ")),
            Err(_) => "apply a patch that can't be read".to_owned(),
        }
    }

    fn actions(&self, input: &Input, root: &Path) -> Vec<Action> {
        let Ok(patch) = parse_patch(&input.patch) else { return Vec::new() };
        let mut actions = Vec::new();
        for operation in &patch.operations {
            match operation {
                Operation::Add { path, .. } => actions.push(Action::Write(root.join(path))),
                Operation::Delete { path, .. } => actions.push(Action::Delete(root.join(path))),
                Operation::Update { path, moved_to, .. } => {
                    actions.push(Action::Write(root.join(path)));
                    actions.extend(moved_to.as_ref().map(|path| Action::Write(root.join(path))));
                }
            }
        }
        actions
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let tool = self.clone();
        aside(context, move |context| tool.apply(&input, context)).await
    }
}

impl ApplyPatch {
    fn apply(&self, input: &Input, context: &Context) -> Done {
        let _alone = self.files.change();
        let patch = parse_patch(&input.patch).map_err(refused)?;
        let desk = Desk::new(&patch, &self.files, context)?;
        let work = desk.work(&patch)?;
        let mut text = work.iter().filter_map(|work| work.told.as_deref()).collect::<Vec<_>>().join("\n");
        let display = telling::bounded(work.iter().flat_map(|work| work.diff.lines()));
        text.push_str(&self.files.commit(work.into_iter().map(|work| work.draft).collect(), context)?);
        let asks_for_mode = |line: &str| EXECUTABLE.iter().any(|start| line.starts_with(start));
        if input.patch.lines().any(asks_for_mode) {
            text.push_str("\nModes were not set: use chmod with the shell for what shall be executable.");
        }
        Ok(ToolOutput { text, display: Some(display), ..ToolOutput::default() })
    }
}

/// What a diff of git says of files that become executable.
const EXECUTABLE: [&str; 2] = ["new file mode 100755", "new mode 100755"];

fn refused(error: PatchError) -> ToolFailure {
    ToolFailure(format!("Nothing was changed: {error}"))
}

/// All paths that a patch speaks of.
fn paths(patch: &Patch) -> Vec<&str> {
    let mut paths = Vec::new();
    for operation in &patch.operations {
        match operation {
            Operation::Add { path, .. } | Operation::Delete { path, .. } => paths.push(path.as_str()),
            Operation::Update { path, moved_to, .. } => {
                paths.push(path);
                paths.extend(moved_to.as_deref());
            }
        }
    }
    paths.dedup();
    paths
}

/// `./x` is `x`.
fn plain(path: &str) -> &str {
    path.trim_start_matches("./")
}

/// The files that a patch is about.
struct Desk {
    sheets: HashMap<String, Sheet>,
    /// Those that the patch gives a whole new content.
    laid: Vec<String>,
}

struct Sheet {
    place: Place,
    there: There,
}

enum There {
    Nothing,
    Folder,
    File(Box<Standing>, Result<Text, ToolFailure>),
}

/// Which text a patch is applied to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    /// What the model knows.
    Known,
    /// What is really there.
    There,
}

/// What is to be done to one file, and how it is told.
struct Work {
    draft: Draft,
    /// What the model is told; nothing where that is said of another file.
    told: Option<String>,
    diff: String,
}

impl Desk {
    fn new(patch: &Patch, files: &Files, context: &Context) -> Result<Desk, ToolFailure> {
        let mut sheets = HashMap::new();
        for path in paths(patch).into_iter().map(plain) {
            let place = Place::find(path, context)?;
            let there = if matches!(place.at.open(), Ok(OpenedPath::Folder(_))) {
                There::Folder
            } else if let Some(standing) = files.open(&place, context)? {
                let text = standing.text();
                There::File(Box::new(standing), text)
            } else {
                There::Nothing
            };
            sheets.insert(path.to_owned(), Sheet { place, there });
        }
        let laid = patch.operations.iter().filter_map(|operation| match operation {
            Operation::Add { path, .. } => Some(path),
            Operation::Update { moved_to, .. } => moved_to.as_ref(),
            Operation::Delete { .. } => None,
        });
        Ok(Desk { laid: laid.map(|path| plain(path).to_owned()).collect(), sheets })
    }

    fn find(&self, path: &str, base: Base) -> Found {
        match self.sheets.get(path).map(|sheet| &sheet.there) {
            None | Some(There::Nothing) => Found::Missing,
            Some(There::Folder) => Found::Folder,
            Some(There::File(_, Err(ToolFailure(reason)))) => Found::NotText(reason.clone()),
            Some(There::File(_, Ok(text))) => Found::Text(match base {
                Base::Known => text.known().to_owned(),
                Base::There => text.there.text.clone(),
            }),
        }
    }

    /// Applies the patch to what the model knows; if it does not fit that, to what is there.
    fn work(&self, patch: &Patch) -> Result<Vec<Work>, ToolFailure> {
        let apply = |base| apply_patch(patch, |path| self.find(path, base));
        let (results, base) = match apply(Base::Known) {
            Ok(results) => (results, Base::Known),
            Err(_) => (apply(Base::There).map_err(|error| self.refused(error))?, Base::There),
        };
        self.must_be_different(&results)?;
        results.iter().map(|result| self.work_on(result, &results, base)).collect()
    }

    fn refused(&self, error: PatchError) -> ToolFailure {
        let form = match &error.problem {
            PatchProblem::Missing(path) => self.sheets.get(path).map(|sheet| hint_of_form(&sheet.place.path)),
            _ => None,
        };
        let ToolFailure(why) = refused(error);
        ToolFailure(match form.filter(|form| !form.is_empty()) {
            Some(form) => format!("{why}.{form}"),
            None => why,
        })
    }

    /// Two names of one file would get two contents.
    fn must_be_different(&self, results: &[FileResult]) -> Result<(), ToolFailure> {
        let mut names = HashMap::new();
        for result in results {
            let place = &self.sheet(&result.path)?.place;
            if let Some(other) = names.insert(&place.path, &place.name) {
                let (one, other) = (&place.name, other);
                return Err(ToolFailure(format!(
                    "Nothing was changed: {other} and {one} are the same file. Use one name for it."
                )));
            }
        }
        Ok(())
    }

    fn sheet(&self, path: &str) -> Result<&Sheet, ToolFailure> {
        let unknown = || ToolFailure(format!("Nothing was changed: {path} is not one of the patch's files."));
        self.sheets.get(path).ok_or_else(unknown)
    }

    fn work_on(&self, result: &FileResult, all: &[FileResult], base: Base) -> Result<Work, ToolFailure> {
        match &result.text {
            None => {
                let is_moved = all.iter().any(|other| other.moved_from.as_ref() == Some(&result.path));
                self.sheet(&result.path)?.removal(is_moved)
            }
            Some(text) => self.writing(result, text, base),
        }
    }

    fn writing(&self, result: &FileResult, text: &str, base: Base) -> Result<Work, ToolFailure> {
        let target = self.sheet(&result.path)?;
        let source = self.sheet(result.moved_from.as_ref().unwrap_or(&result.path))?;
        let is_laid = self.laid.contains(&result.path);
        if is_laid {
            target.may_be_replaced(result.moved_from.is_some())?;
        }
        let made = match (&source.there, is_laid && result.moved_from.is_none()) {
            (There::File(standing, file), is_whole) => {
                let file = file.as_ref().map_err(Clone::clone)?;
                let settled = match (is_whole, base) {
                    (true, _) => {
                        let text = with_endings_of(file.known(), text.to_owned());
                        file.settle(unmixed(file.known(), text))?
                    }
                    (false, Base::Known) => file.settle(unmixed(file.known(), text.to_owned()))?,
                    (false, Base::There) => file.settle_there(unmixed(&file.there.text, text.to_owned())),
                };
                Made::from(settled, standing, file)
            }
            (There::Nothing | There::Folder, _) => Made::anew(text),
        };
        let name = &target.place.name;
        let did = match (&result.moved_from, result.was_there) {
            (Some(from), true) => {
                format!("{from} was moved to {name}, and replaced the file that was there.")
            }
            (Some(from), false) => format!("{from} was moved to {name}."),
            (None, true) if target.text() == Some(&made.settled.text) => {
                format!("{name} says that already: nothing was changed.")
            }
            (None, true) => format!("{name} was changed."),
            (None, false) => format!("{name} was made: {}.", telling::counted_lines(text.lines().count())),
        };
        let how = match result.rung {
            Rung::Exact => String::new(),
            rung => format!(" It matched {rung}."),
        };
        let lines = match (source.text(), result.was_there || result.moved_from.is_some()) {
            (Some(before), true) if before != made.settled.text => {
                format!("\n{}", telling::changed_lines(before, &made.settled.text))
            }
            _ => String::new(),
        };
        let (before, after) = (target.content(), Some(made.content));
        let change = Change { place: target.place.at.clone(), before, after };
        Ok(Work {
            told: Some(did + &how + &telling::by_others(name, &made.settled.by_user) + &lines),
            diff: telling::diff(name, source.text(), Some(&made.settled.text)),
            draft: Draft { change, extent: made.extent },
        })
    }
}

/// What a file becomes.
struct Made {
    settled: Settled,
    content: Content,
    extent: Extent,
}

impl Made {
    /// Out of one that is there, in its encoding and with its mode.
    fn from(settled: Settled, standing: &Standing, file: &Text) -> Made {
        let bytes = file.there.with(settled.text.clone()).to_bytes();
        let content = Content { bytes, like: Some(standing.like.clone()) };
        Made { content, extent: settled.extent(standing.extent()), settled }
    }

    fn anew(text: &str) -> Made {
        let content = Content { bytes: text.as_bytes().to_vec(), like: None };
        Made { settled: Settled::new(text), content, extent: Extent::Whole }
    }
}

impl Sheet {
    fn content(&self) -> Option<Content> {
        match &self.there {
            There::File(standing, _) => Some(standing.content()),
            There::Nothing | There::Folder => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match &self.there {
            There::File(_, Ok(text)) => Some(&text.there.text),
            _ => None,
        }
    }

    /// Whether what is here may give way to something else.
    fn may_be_replaced(&self, by_moving: bool) -> Result<(), ToolFailure> {
        let There::File(standing, _) = &self.there else { return Ok(()) };
        standing.must_be_writable()?;
        standing.must_be_known()?;
        // A file that comes from elsewhere has nothing in common with this one that could be merged.
        if by_moving { standing.must_be_as_seen() } else { Ok(()) }
    }

    /// Takes a file away, or from where it was moved.
    fn removal(&self, is_moved: bool) -> Result<Work, ToolFailure> {
        let name = &self.place.name;
        if self.place.is_link {
            return Err(ToolFailure(format!(
                "Nothing was changed: {name} is a link. Name the file that it leads to, or use the shell."
            )));
        }
        if let There::File(standing, _) = &self.there {
            standing.must_be_writable()?;
            if !is_moved {
                standing.must_be_as_seen()?;
            }
        }
        let change = Change { place: self.place.at.clone(), before: self.content(), after: None };
        Ok(Work {
            told: (!is_moved).then(|| format!("{name} was deleted.")),
            diff: if is_moved { String::new() } else { telling::diff(name, self.text(), None) },
            draft: Draft { change, extent: Extent::Whole },
        })
    }
}
