//! What the interface lets the machine do, and what comes of it.

use helve_protocol::{BlobId, MessagePart, PromptDelivery, Seq, SessionId, TextPart, UserPrompt};

use crate::composer::ComposerPiece;
use crate::link::{
    CommandStopFlag, MachineAccess, ModelChoice, SessionFileChange, SessionPreview, SessionRow,
    UserCommandResult,
};
use crate::pager_entries::MAX_PAGER_ENTRY_BYTES;
use crate::pager_pages::{self, PagerPage};
use crate::text_format::strip_terminal_codes;

#[derive(Debug, PartialEq)]
pub(crate) enum MachineJob {
    ListFiles,
    Branch,
    Sandbox,
    ListModels,
    ListSessions,
    PreviewSession(SessionId),
    Changes,
    Shell(String, CommandStopFlag),
    Remember(String),
    Attach(Vec<ComposerPiece>, PromptDelivery),
    Doctor,
    Permissions,
    /// The items of the session before an event.
    LoadPage(Seq),
    /// All of an output.
    LoadOutput(BlobId),
    // The following need the terminal.
    Edit(String),
    Suspend,
    Redraw,
    Copy(String),
    Notify(String),
}

#[derive(Debug)]
pub(crate) enum MachineJobResult {
    Files(Vec<String>),
    Branch(Option<String>),
    Sandbox(String),
    Models(Vec<ModelChoice>),
    Sessions(Result<Vec<SessionRow>, String>),
    SessionPreview(SessionId, SessionPreview),
    Changes(Result<Vec<SessionFileChange>, String>),
    /// The last of what a command put out so far.
    Tail(String),
    Ran(String, UserCommandResult),
    Remembered(Result<String, String>),
    Edited(Result<String, String>),
    /// The message, or why there is none, and what was written.
    Attached(Result<UserPrompt, (String, String)>),
    /// Something to read.
    Text(String, String),
    Page(Seq, Result<PagerPage, String>),
    FullOutput(BlobId, Result<String, String>),
}

/// Does an errand that needs nothing but the machine; gives the others back.
fn run_job(
    errand: MachineJob,
    world: &MachineAccess,
    tell: &dyn Fn(MachineJobResult),
) -> Result<MachineJobResult, MachineJob> {
    Ok(match errand {
        MachineJob::ListFiles => MachineJobResult::Files((world.files)()),
        MachineJob::Branch => MachineJobResult::Branch((world.branch)()),
        MachineJob::Sandbox => MachineJobResult::Sandbox((world.sandbox)()),
        MachineJob::ListModels => MachineJobResult::Models((world.models)()),
        MachineJob::ListSessions => MachineJobResult::Sessions((world.sessions)()),
        MachineJob::PreviewSession(session) => {
            MachineJobResult::SessionPreview(session, (world.glimpse)(session))
        }
        MachineJob::Changes => MachineJobResult::Changes((world.changes)()),
        MachineJob::Shell(command, stop) => {
            let ran = (world.shell)(&command, &stop, &|tail| tell(MachineJobResult::Tail(tail)));
            MachineJobResult::Ran(command, ran)
        }
        MachineJob::Remember(fact) => MachineJobResult::Remembered((world.remember)(&fact)),
        MachineJob::Attach(pieces, delivery) => MachineJobResult::Attached(attach(pieces, delivery, world)),
        MachineJob::Doctor => MachineJobResult::Text("doctor".to_owned(), (world.doctor)()),
        MachineJob::Permissions => MachineJobResult::Text("permissions".to_owned(), (world.permissions)()),
        MachineJob::LoadPage(before) => {
            MachineJobResult::Page(before, pager_pages::load_page(before, &world.look_back))
        }
        MachineJob::LoadOutput(blob) => MachineJobResult::FullOutput(blob, whole(blob, world)),
        other => return Err(other),
    })
}

/// On a thread of its own: nobody waits for a slow disk before the next key.
pub(crate) fn start_job(
    errand: MachineJob,
    world: &MachineAccess,
    done: tokio::sync::mpsc::UnboundedSender<MachineJobResult>,
) {
    let world = world.clone();
    std::thread::spawn(move || {
        // Nobody waits for it any more if the interface was left.
        let tell = |result: MachineJobResult| drop(done.send(result));
        if let Ok(result) = run_job(errand, &world, &tell) {
            tell(result);
        }
    });
}

fn whole(blob: BlobId, world: &MachineAccess) -> Result<String, String> {
    let mut bytes = (world.payload)(blob)?;
    // One more than is shown, so that it is seen to be cut.
    bytes.truncate(MAX_PAGER_ENTRY_BYTES + 1);
    Ok(strip_terminal_codes(&String::from_utf8_lossy(&bytes)))
}

fn attach(
    pieces: Vec<ComposerPiece>,
    delivery: PromptDelivery,
    world: &MachineAccess,
) -> Result<UserPrompt, (String, String)> {
    let mut parts = Vec::new();
    for piece in &pieces {
        parts.push(match piece {
            ComposerPiece::Text(text) => MessagePart::Text(TextPart::said(text.clone())),
            ComposerPiece::Picture(path) => match (world.attach)(path) {
                Ok(file) => MessagePart::File(file),
                Err(why) => return Err((why, written(&pieces))),
            },
        });
    }
    Ok(UserPrompt { parts, delivery })
}

fn written(pieces: &[ComposerPiece]) -> String {
    let text = |piece: &ComposerPiece| match piece {
        ComposerPiece::Text(text) => text.clone(),
        ComposerPiece::Picture(path) => path.display().to_string(),
    };
    pieces.iter().map(text).collect::<Vec<_>>().join(" ")
}
