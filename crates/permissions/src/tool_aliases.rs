//! What tools are called elsewhere. Rules, hooks and settings that were written for other agents mean the same here.

/// A tool of ours, what others call it, and what its fields are called there: (theirs, ours).
pub struct ToolAliases {
    pub ours: &'static str,
    /// The first is the name that is written when others shall read it.
    pub others: &'static [&'static str],
    pub fields: &'static [(&'static str, &'static str)],
}

const FILE_PATH_FIELDS: &[(&str, &str)] =
    &[("file_path", "path"), ("absolute_path", "path"), ("filePath", "path")];

/// One row for each tool.
pub const TOOL_ALIASES: [ToolAliases; 19] = [
    ToolAliases {
        ours: "shell",
        others: &["Bash", "bash", "run_shell_command", "local_shell", "exec_command"],
        fields: &[("cmd", "command"), ("run_in_background", "background"), ("dir_path", "directory")],
    },
    ToolAliases {
        ours: "shell_output",
        others: &["BashOutput", "TaskOutput"],
        fields: &[("bash_id", "job"), ("task_id", "job")],
    },
    ToolAliases {
        ours: "shell_input",
        others: &["write_stdin"],
        fields: &[("session_id", "job"), ("chars", "text")],
    },
    ToolAliases {
        ours: "shell_kill",
        others: &["KillShell", "KillBash", "TaskStop"],
        fields: &[("shell_id", "job")],
    },
    ToolAliases { ours: "read", others: &["Read", "read_file", "view_image"], fields: FILE_PATH_FIELDS },
    ToolAliases { ours: "write", others: &["Write", "write_file"], fields: FILE_PATH_FIELDS },
    ToolAliases {
        ours: "edit",
        others: &["Edit", "MultiEdit", "replace", "str_replace"],
        fields: FILE_PATH_FIELDS,
    },
    ToolAliases { ours: "apply_patch", others: &["ApplyPatch", "patch"], fields: &[("input", "patch")] },
    ToolAliases {
        ours: "notebook_edit",
        others: &["NotebookEdit"],
        fields: &[
            ("notebook_path", "path"),
            ("cell_id", "cell"),
            ("new_source", "source"),
            ("edit_mode", "action"),
            ("cell_type", "kind"),
        ],
    },
    ToolAliases { ours: "list", others: &["LS", "list_directory"], fields: &[("dir_path", "path")] },
    ToolAliases { ours: "glob", others: &["Glob", "find_files"], fields: &[("dir_path", "path")] },
    ToolAliases {
        ours: "grep",
        others: &["Grep", "search_file_content", "grep_search"],
        fields: &[("output_mode", "mode"), ("include", "glob"), ("dir_path", "path")],
    },
    ToolAliases { ours: "web_fetch", others: &["WebFetch", "webfetch"], fields: &[] },
    ToolAliases { ours: "web_search", others: &["WebSearch", "websearch", "google_web_search"], fields: &[] },
    ToolAliases {
        ours: "todo",
        others: &["TodoWrite", "todowrite", "update_plan", "write_todos"],
        fields: &[("todos", "tasks"), ("plan", "tasks")],
    },
    ToolAliases {
        ours: "ask_user",
        others: &["AskUserQuestion", "question", "ask_user_question"],
        fields: &[],
    },
    ToolAliases { ours: "remember", others: &["save_memory"], fields: &[("fact", "text")] },
    ToolAliases { ours: "task", others: &["Agent", "Task"], fields: &[("subagent_type", "agent")] },
    ToolAliases { ours: "skill", others: &["Skill", "activate_skill"], fields: &[] },
];

fn row(name: &str) -> Option<&'static ToolAliases> {
    TOOL_ALIASES.iter().find(|names| names.ours == name || names.others.contains(&name))
}

/// Our name for a tool, whoever named it. What is not known (MCP tools) stays as it is.
pub fn our_tool_name(name: &str) -> &str {
    row(name).map_or(name, |names| names.ours)
}

/// The name of our tool that others know, if there is one.
pub fn their_tool_name(name: &str) -> Option<&'static str> {
    row(name).and_then(|names| names.others.first().copied())
}

/// Our name for a field of a tool's input.
pub fn our_field<'a>(tool: &str, field: &'a str) -> &'a str {
    let fields = row(tool).map_or(&[][..], |names| names.fields);
    fields.iter().find(|(theirs, _)| *theirs == field).map_or(field, |(_, ours)| ours)
}

/// What others call a field of our tool's input.
pub fn their_field<'a>(tool: &str, field: &'a str) -> &'a str {
    let fields = row(tool).map_or(&[][..], |names| names.fields);
    fields.iter().find(|(_, ours)| *ours == field).map_or(field, |(theirs, _)| theirs)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_name_means_one_tool() {
        let mut seen = HashSet::new();
        for names in &TOOL_ALIASES {
            for name in [names.ours].iter().chain(names.others) {
                assert!(seen.insert(*name), "{name} stands in two rows");
                assert_eq!(our_tool_name(name), names.ours);
            }
        }
        assert_eq!(our_tool_name("mcp__github__search"), "mcp__github__search");
    }

    #[test]
    fn names_and_fields_go_both_ways() {
        assert_eq!((our_tool_name("Bash"), their_tool_name("shell")), ("shell", Some("Bash")));
        assert_eq!((our_field("Read", "file_path"), their_field("read", "path")), ("path", "file_path"));
        assert_eq!(our_field("Read", "offset"), "offset");
    }
}
