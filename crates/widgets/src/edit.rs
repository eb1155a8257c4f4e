//! What can be done to a text by one key. Which key does it is decided elsewhere.

macro_rules! edits {
    ($($(#[$about:meta])* $name:ident = $key:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum EditorCommand {
            $($(#[$about])* $name,)*
        }

        impl EditorCommand {
            /// Every edit with the name that key maps give it.
            pub const ALL: &[(&str, EditorCommand)] = &[$(($key, EditorCommand::$name),)*];
        }
    };
}

edits! {
    Left = "left",
    Right = "right",
    /// By rows as they are drawn.
    Up = "up",
    Down = "down",
    WordLeft = "word-left",
    WordRight = "word-right",
    LineStart = "line-start",
    LineEnd = "line-end",
    TextStart = "text-start",
    TextEnd = "text-end",
    NewLine = "new-line",
    DeleteLeft = "delete-left",
    DeleteRight = "delete-right",
    /// What is killed can be yanked.
    KillWordLeft = "kill-word-left",
    KillWordRight = "kill-word-right",
    KillToStart = "kill-to-start",
    /// At the end of a line, its newline.
    KillToEnd = "kill-to-end",
    KillAll = "kill-all",
    Yank = "yank",
    /// After a yank: what was killed before that.
    YankOlder = "yank-older",
    /// Exchanges the two characters around the cursor.
    Transpose = "transpose",
    Undo = "undo",
    Redo = "redo",
}

/// What came of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditorOutcome {
    Changed,
    Moved,
    /// There was nothing to do: the cursor stands in the first row already, there is nothing to undo.
    Nothing,
}
