//! What people write for the agent: instruction files, found and parsed.
//!
//! - [`InstructionPlaces`] says where to look; nothing here reads the environment.
//! - [`InstructionFiles`] opens files. Whoever implements it decides how, and says which paths nobody may read.
//! - [`load_instructions`] gives the files that count, each once, and those that were skipped, with the reason.
//! - [`find_imports`] and [`parse_rule_file`] are the two small syntaxes.

mod discovery;
mod frontmatter;
mod imports;
mod instruction_files;

pub use discovery::{
    InstructionLimits, InstructionOrigin, InstructionPart, InstructionPlaces, KnownInstructions,
    LoadedInstructions, SkipReason, SkippedInstruction, load_instructions,
};
pub use frontmatter::{RuleFile, parse_rule_file};
pub use imports::find_imports;
pub use instruction_files::{FileText, InstructionFiles, ReadFailure, ResolvedInstruction};
