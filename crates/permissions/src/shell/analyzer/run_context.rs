//! How and where a command is run.

use crate::shell::taint::ValueFlow;
use crate::shell::tree::ShellSpan;
use crate::shell::{CommandWrapper, RunManner, ShellDialect, ShellWord};

/// How and where something is run.
#[derive(Clone, Debug)]
pub(super) struct ShellRunContext {
    pub(super) via: Vec<CommandWrapper>,
    /// The standard input, if it stands in the text.
    pub(super) input: Option<String>,
    /// Where it stands in the outermost text. `None` in that text itself: there everything has its own place.
    pub(super) place: Option<ShellSpan>,
    pub(super) dialect: ShellDialect,
    /// Where those of its words come from that can't be known.
    pub(super) sources: ValueFlow,
    /// What those words could be.
    pub(super) could_be: Vec<ShellWord>,
}

impl ShellRunContext {
    pub(super) fn outermost(dialect: ShellDialect) -> ShellRunContext {
        ShellRunContext {
            via: Vec::new(),
            input: None,
            place: None,
            dialect,
            sources: ValueFlow::nothing(),
            could_be: Vec::new(),
        }
    }

    pub(super) fn span(&self) -> ShellSpan {
        self.place.clone().unwrap_or_default()
    }

    /// For what this program runs.
    pub(super) fn via(&self, program: &str, manner: RunManner) -> ShellRunContext {
        let mut context = self.clone();
        context.via.push(CommandWrapper { program: program.to_owned(), manner });
        context
    }

    pub(super) fn at(&self, span: &ShellSpan) -> ShellRunContext {
        ShellRunContext { place: Some(self.place.clone().unwrap_or_else(|| span.clone())), ..self.clone() }
    }

    pub(super) fn without_input(&self) -> ShellRunContext {
        ShellRunContext { input: None, ..self.clone() }
    }

    pub(super) fn in_dialect(&self, dialect: ShellDialect) -> ShellRunContext {
        ShellRunContext { dialect, ..self.clone() }
    }
}
