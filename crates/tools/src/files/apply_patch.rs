//! `apply_patch`

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use helve_protocol::{ToolAction, ToolClass, ToolOutput};
use helve_workspace::OpenedPath;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::run_blocking;
use crate::editing::{
    MatchRung, Patch, PatchError, PatchOperation, PatchProblem, PatchTarget, PatchedFile, apply_patch,
    parse_patch,
};
use crate::files::atomic::{AttributedContent, PlannedChange};
use crate::files::report;
use crate::files::{
    ChangeDraft, EditableText, ExistingFile, ResultingText, SeenExtent, SessionFiles, WritablePlace,
    unicode_form_hint, with_endings_of, with_uniform_endings,
};
use crate::{ChangeScope, ToolContext, ToolFailure, ToolOutcome, TypedTool};

/// Applies patches.
#[derive(Clone, Debug, Default)]
pub struct ApplyPatchTool {
    pub files: Arc<SessionFiles>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyPatchInput {
    /// The whole patch.
    patch: String,
}

impl TypedTool for ApplyPatchTool {
    const NAME: &'static str = "apply_patch";
    const DESCRIPTION: &'static str = include_str!("apply_patch.md");
    const CLASS: ToolClass = ToolClass::Changes;
    const TOUCHES: ChangeScope = ChangeScope::Named;
    const CAN_BE_TRIED: bool = true;
    type Input = ApplyPatchInput;

    fn intent(&self, input: &ApplyPatchInput) -> String {
        match parse_patch(&input.patch) {
            Ok(patch) => format!("patch {}", paths(&patch).join(", ")),
            Err(_) => "apply a patch that can't be read".to_owned(),
        }
    }

    fn actions(&self, input: &ApplyPatchInput, root: &Path) -> Vec<ToolAction> {
        let Ok(patch) = parse_patch(&input.patch) else { return Vec::new() };
        let mut actions = Vec::new();
        for operation in &patch.operations {
            match operation {
                PatchOperation::Add { path, .. } => actions.push(ToolAction::Write(root.join(path))),
                PatchOperation::Delete { path, .. } => actions.push(ToolAction::Delete(root.join(path))),
                PatchOperation::Update { path, moved_to, .. } => {
                    actions.push(ToolAction::Write(root.join(path)));
                    actions.extend(moved_to.as_ref().map(|path| ToolAction::Write(root.join(path))));
                }
            }
        }
        actions
    }

    async fn run(&self, input: ApplyPatchInput, context: &ToolContext) -> ToolOutcome {
        let tool = self.clone();
        run_blocking(context, move |context| tool.apply(&input, context)).await
    }
}

impl ApplyPatchTool {
    fn apply(&self, input: &ApplyPatchInput, context: &ToolContext) -> ToolOutcome {
        let _alone = self.files.change();
        let patch = parse_patch(&input.patch).map_err(refused)?;
        let desk = PatchFiles::new(&patch, &self.files, context)?;
        let work = desk.work(&patch)?;
        let mut text = work.iter().filter_map(|work| work.told.as_deref()).collect::<Vec<_>>().join("\n");
        let display = report::bounded(work.iter().flat_map(|work| work.diff.lines()));
        text.push_str(&self.files.commit(work.into_iter().map(|work| work.draft).collect(), context)?);
        let asks_for_mode = |line: &str| EXECUTABLE_MODE_LINES.iter().any(|start| line.starts_with(start));
        if input.patch.lines().any(asks_for_mode) {
            text.push_str("\nModes were not set: use chmod with the shell for what shall be executable.");
        }
        Ok(ToolOutput { text, display: Some(display), ..ToolOutput::default() })
    }
}

/// What a diff of git says of files that become executable.
const EXECUTABLE_MODE_LINES: [&str; 2] = ["new file mode 100755", "new mode 100755"];

fn refused(error: PatchError) -> ToolFailure {
    ToolFailure(format!("Nothing was changed: {error}"))
}

/// All paths that a patch speaks of.
fn paths(patch: &Patch) -> Vec<&str> {
    let mut paths = Vec::new();
    for operation in &patch.operations {
        match operation {
            PatchOperation::Add { path, .. } | PatchOperation::Delete { path, .. } => {
                paths.push(path.as_str())
            }
            PatchOperation::Update { path, moved_to, .. } => {
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
struct PatchFiles {
    sheets: HashMap<String, PatchFile>,
    /// Those that the patch gives a whole new content.
    laid: Vec<String>,
}

struct PatchFile {
    place: WritablePlace,
    there: PatchFileState,
}

enum PatchFileState {
    Missing,
    Folder,
    File(Box<ExistingFile>, Result<EditableText, ToolFailure>),
}

/// Which text a patch is applied to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PatchBase {
    /// What the model knows.
    KnownToModel,
    /// What is really there.
    OnDisk,
}

/// What is to be done to one file, and how it is told.
struct PatchFileWork {
    draft: ChangeDraft,
    /// What the model is told; nothing where that is said of another file.
    told: Option<String>,
    diff: String,
}

impl PatchFiles {
    fn new(patch: &Patch, files: &SessionFiles, context: &ToolContext) -> Result<PatchFiles, ToolFailure> {
        let mut sheets = HashMap::new();
        for path in paths(patch).into_iter().map(plain) {
            let place = WritablePlace::find(path, context)?;
            let there = if matches!(place.at.open(), Ok(OpenedPath::Folder(_))) {
                PatchFileState::Folder
            } else if let Some(standing) = files.open(&place, context)? {
                let text = standing.text();
                PatchFileState::File(Box::new(standing), text)
            } else {
                PatchFileState::Missing
            };
            sheets.insert(path.to_owned(), PatchFile { place, there });
        }
        let laid = patch.operations.iter().filter_map(|operation| match operation {
            PatchOperation::Add { path, .. } => Some(path),
            PatchOperation::Update { moved_to, .. } => moved_to.as_ref(),
            PatchOperation::Delete { .. } => None,
        });
        Ok(PatchFiles { laid: laid.map(|path| plain(path).to_owned()).collect(), sheets })
    }

    fn find(&self, path: &str, base: PatchBase) -> PatchTarget {
        match self.sheets.get(path).map(|sheet| &sheet.there) {
            None | Some(PatchFileState::Missing) => PatchTarget::Missing,
            Some(PatchFileState::Folder) => PatchTarget::Folder,
            Some(PatchFileState::File(_, Err(ToolFailure(reason)))) => PatchTarget::NotText(reason.clone()),
            Some(PatchFileState::File(_, Ok(text))) => PatchTarget::Text(match base {
                PatchBase::KnownToModel => text.known().to_owned(),
                PatchBase::OnDisk => text.there.text.clone(),
            }),
        }
    }

    /// Applies the patch to what the model knows; if it does not fit that, to what is there.
    fn work(&self, patch: &Patch) -> Result<Vec<PatchFileWork>, ToolFailure> {
        let apply = |base| apply_patch(patch, |path| self.find(path, base));
        let (results, base) = match apply(PatchBase::KnownToModel) {
            Ok(results) => (results, PatchBase::KnownToModel),
            Err(_) => (apply(PatchBase::OnDisk).map_err(|error| self.refused(error))?, PatchBase::OnDisk),
        };
        self.must_be_different(&results)?;
        results.iter().map(|result| self.work_on(result, &results, base)).collect()
    }

    fn refused(&self, error: PatchError) -> ToolFailure {
        let form = match &error.problem {
            PatchProblem::Missing(path) => {
                self.sheets.get(path).map(|sheet| unicode_form_hint(&sheet.place.path))
            }
            _ => None,
        };
        let ToolFailure(why) = refused(error);
        ToolFailure(match form.filter(|form| !form.is_empty()) {
            Some(form) => format!("{why}.{form}"),
            None => why,
        })
    }

    /// Two names of one file would get two contents.
    fn must_be_different(&self, results: &[PatchedFile]) -> Result<(), ToolFailure> {
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

    fn sheet(&self, path: &str) -> Result<&PatchFile, ToolFailure> {
        let unknown = || ToolFailure(format!("Nothing was changed: {path} is not one of the patch's files."));
        self.sheets.get(path).ok_or_else(unknown)
    }

    fn work_on(
        &self,
        result: &PatchedFile,
        all: &[PatchedFile],
        base: PatchBase,
    ) -> Result<PatchFileWork, ToolFailure> {
        match &result.text {
            None => {
                let is_moved = all.iter().any(|other| other.moved_from.as_ref() == Some(&result.path));
                self.sheet(&result.path)?.removal(is_moved)
            }
            Some(text) => self.writing(result, text, base),
        }
    }

    fn writing(
        &self,
        result: &PatchedFile,
        text: &str,
        base: PatchBase,
    ) -> Result<PatchFileWork, ToolFailure> {
        let target = self.sheet(&result.path)?;
        let source = self.sheet(result.moved_from.as_ref().unwrap_or(&result.path))?;
        let is_laid = self.laid.contains(&result.path);
        if is_laid {
            target.may_be_replaced(result.moved_from.is_some())?;
        }
        let made = source.changed_to(text, base, is_laid && result.moved_from.is_none())?;
        let name = &target.place.name;
        let did = target.describe_change(result, text, &made);
        let how = match result.rung {
            MatchRung::Exact => String::new(),
            rung => format!(" It matched {rung}."),
        };
        let lines = match (source.text(), result.was_there || result.moved_from.is_some()) {
            (Some(before), true) if before != made.settled.text => {
                format!("\n{}", report::changed_lines(before, &made.settled.text))
            }
            _ => String::new(),
        };
        let (before, after) = (target.content(), Some(made.content));
        let change = PlannedChange { place: target.place.at.clone(), before, after };
        Ok(PatchFileWork {
            told: Some(did + &how + &report::describe_outside_changes(name, &made.settled.by_user) + &lines),
            diff: report::diff(name, source.text(), Some(&made.settled.text)),
            draft: ChangeDraft { change, extent: made.extent },
        })
    }
}

/// What a file becomes.
struct PatchedContent {
    settled: ResultingText,
    content: AttributedContent,
    extent: SeenExtent,
}

impl PatchedContent {
    /// Out of one that is there, in its encoding and with its mode.
    fn from(settled: ResultingText, standing: &ExistingFile, file: &EditableText) -> PatchedContent {
        let bytes = file.there.with(settled.text.clone()).to_bytes();
        let content = AttributedContent { bytes, like: Some(standing.like.clone()) };
        PatchedContent { content, extent: settled.extent(standing.extent()), settled }
    }

    fn anew(text: &str) -> PatchedContent {
        let content = AttributedContent { bytes: text.as_bytes().to_vec(), like: None };
        PatchedContent { settled: ResultingText::new(text), content, extent: SeenExtent::Whole }
    }
}

impl PatchFile {
    fn content(&self) -> Option<AttributedContent> {
        match &self.there {
            PatchFileState::File(standing, _) => Some(standing.content()),
            PatchFileState::Missing | PatchFileState::Folder => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match &self.there {
            PatchFileState::File(_, Ok(text)) => Some(&text.there.text),
            _ => None,
        }
    }

    /// What comes of it when it gets a text. `is_whole` says that the patch holds all of that text, and not only changes.
    fn changed_to(&self, text: &str, base: PatchBase, is_whole: bool) -> Result<PatchedContent, ToolFailure> {
        let PatchFileState::File(standing, file) = &self.there else { return Ok(PatchedContent::anew(text)) };
        let file = file.as_ref().map_err(Clone::clone)?;
        let settled = match (is_whole, base) {
            (true, _) => {
                let text = with_endings_of(file.known(), text.to_owned());
                file.settle(with_uniform_endings(file.known(), text))?
            }
            (false, PatchBase::KnownToModel) => {
                file.settle(with_uniform_endings(file.known(), text.to_owned()))?
            }
            (false, PatchBase::OnDisk) => {
                file.keep_current_changes(with_uniform_endings(&file.there.text, text.to_owned()))
            }
        };
        Ok(PatchedContent::from(settled, standing, file))
    }

    /// What the model is told of a change.
    fn describe_change(&self, result: &PatchedFile, text: &str, made: &PatchedContent) -> String {
        let name = &self.place.name;
        match (&result.moved_from, result.was_there) {
            (Some(from), true) => {
                format!("{from} was moved to {name}, and replaced the file that was there.")
            }
            (Some(from), false) => format!("{from} was moved to {name}."),
            (None, true) if self.text() == Some(&made.settled.text) => {
                format!("{name} says that already: nothing was changed.")
            }
            (None, true) => format!("{name} was changed."),
            (None, false) => format!("{name} was made: {}.", report::counted_lines(text.lines().count())),
        }
    }

    /// Whether what is here may give way to something else.
    fn may_be_replaced(&self, by_moving: bool) -> Result<(), ToolFailure> {
        let PatchFileState::File(standing, _) = &self.there else { return Ok(()) };
        standing.must_be_writable()?;
        standing.must_be_known()?;
        // A file that comes from elsewhere has nothing in common with this one that could be merged.
        if by_moving { standing.must_be_as_seen() } else { Ok(()) }
    }

    /// Takes a file away, or from where it was moved.
    fn removal(&self, is_moved: bool) -> Result<PatchFileWork, ToolFailure> {
        let name = &self.place.name;
        if self.place.is_link {
            return Err(ToolFailure(format!(
                "Nothing was changed: {name} is a link. Name the file that it leads to, or use the shell."
            )));
        }
        if let PatchFileState::File(standing, _) = &self.there {
            standing.must_be_writable()?;
            if !is_moved {
                standing.must_be_as_seen()?;
            }
        }
        let change = PlannedChange { place: self.place.at.clone(), before: self.content(), after: None };
        Ok(PatchFileWork {
            told: (!is_moved).then(|| format!("{name} was deleted.")),
            diff: if is_moved { String::new() } else { report::diff(name, self.text(), None) },
            draft: ChangeDraft { change, extent: SeenExtent::Whole },
        })
    }
}
