//! What the interface lets the machine do, and what comes of it.

use helve_protocol::{BlobId, Delivery, Part, Prompt, Seq, SessionId, TextPart};

use crate::composer::Piece;
use crate::kept::MOST_OF_ONE;
use crate::link::{Changed, Glimpse, ModelChoice, Past, Ran, Stop, World};
use crate::pages::{self, Page};
use crate::words::plain;

#[derive(Debug, PartialEq)]
pub(crate) enum Errand {
    ListFiles,
    Branch,
    Sandbox,
    ListModels,
    ListSessions,
    Glimpse(SessionId),
    Changes,
    Shell(String, Stop),
    Remember(String),
    Attach(Vec<Piece>, Delivery),
    Doctor,
    Permissions,
    /// The items of the session before an event.
    Page(Seq),
    /// All of an output.
    Whole(BlobId),
    // The following need the terminal.
    Edit(String),
    Suspend,
    Redraw,
    Copy(String),
    Notify(String),
}

#[derive(Debug)]
pub(crate) enum Done {
    Files(Vec<String>),
    Branch(Option<String>),
    Sandbox(String),
    Models(Vec<ModelChoice>),
    Sessions(Result<Vec<Past>, String>),
    Glimpse(SessionId, Glimpse),
    Changes(Result<Vec<Changed>, String>),
    /// The last of what a command put out so far.
    Tail(String),
    Ran(String, Ran),
    Remembered(Result<String, String>),
    Edited(Result<String, String>),
    /// The message, or why there is none, and what was written.
    Attached(Result<Prompt, (String, String)>),
    /// Something to read.
    Text(String, String),
    Page(Seq, Result<Page, String>),
    Whole(BlobId, Result<String, String>),
}

/// Does an errand that needs nothing but the machine; gives the others back.
fn run(errand: Errand, world: &World, tell: &dyn Fn(Done)) -> Result<Done, Errand> {
    Ok(match errand {
        Errand::ListFiles => Done::Files((world.files)()),
        Errand::Branch => Done::Branch((world.branch)()),
        Errand::Sandbox => Done::Sandbox((world.sandbox)()),
        Errand::ListModels => Done::Models((world.models)()),
        Errand::ListSessions => Done::Sessions((world.sessions)()),
        Errand::Glimpse(session) => Done::Glimpse(session, (world.glimpse)(session)),
        Errand::Changes => Done::Changes((world.changes)()),
        Errand::Shell(command, stop) => {
            let ran = (world.shell)(&command, &stop, &|tail| tell(Done::Tail(tail)));
            Done::Ran(command, ran)
        }
        Errand::Remember(fact) => Done::Remembered((world.remember)(&fact)),
        Errand::Attach(pieces, delivery) => Done::Attached(attach(pieces, delivery, world)),
        Errand::Doctor => Done::Text("doctor".to_owned(), (world.doctor)()),
        Errand::Permissions => Done::Text("permissions".to_owned(), (world.permissions)()),
        Errand::Page(before) => Done::Page(before, pages::page(before, &world.look_back)),
        Errand::Whole(blob) => Done::Whole(blob, whole(blob, world)),
        other => return Err(other),
    })
}

/// On a thread of its own: nobody waits for a slow disk before the next key.
pub(crate) fn start(errand: Errand, world: &World, done: tokio::sync::mpsc::UnboundedSender<Done>) {
    let world = world.clone();
    std::thread::spawn(move || {
        // Nobody waits for it any more if the interface was left.
        let tell = |result: Done| drop(done.send(result));
        if let Ok(result) = run(errand, &world, &tell) {
            tell(result);
        }
    });
}

fn whole(blob: BlobId, world: &World) -> Result<String, String> {
    let mut bytes = (world.payload)(blob)?;
    // One more than is shown, so that it is seen to be cut.
    bytes.truncate(MOST_OF_ONE + 1);
    Ok(plain(&String::from_utf8_lossy(&bytes)))
}

fn attach(pieces: Vec<Piece>, delivery: Delivery, world: &World) -> Result<Prompt, (String, String)> {
    let mut parts = Vec::new();
    for piece in &pieces {
        parts.push(match piece {
            Piece::Text(text) => Part::Text(TextPart::said(text.clone())),
            Piece::Picture(path) => match (world.attach)(path) {
                Ok(file) => Part::File(file),
                Err(why) => return Err((why, written(&pieces))),
            },
        });
    }
    Ok(Prompt { parts, delivery })
}

fn written(pieces: &[Piece]) -> String {
    let text = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Picture(path) => path.display().to_string(),
    };
    pieces.iter().map(text).collect::<Vec<_>>().join(" ")
}
