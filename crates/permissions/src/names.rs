//! What tools are called elsewhere. Rules, hooks and settings that were written for other agents mean the same here.

/// A tool of ours, what others call it, and what its fields are called there: (theirs, ours).
pub struct Names {
    pub ours: &'static str,
    /// The first is the name that is written when others shall read it.
    pub others: &'static [&'static str],
    pub fields: &'static [(&'static str, &'static str)],
}

const FILE: &[(&str, &str)] = &[("file_path", "path"), ("absolute_path", "path"), ("filePath", "path")];

/// One row for each tool.
pub const TABLE: [Names; 19] = [
    Names {
        ours: "shell",
        others: &["Bash", "bash", "run_shell_command", "local_shell", "exec_command"],
        fields: &[("cmd", "command"), ("run_in_background", "background"), ("dir_path", "directory")],
    },
    Names {
        ours: "shell_output",
        others: &["BashOutput", "TaskOutput"],
        fields: &[("bash_id", "job"), ("task_id", "job")],
    },
    Names {
        ours: "shell_input",
        others: &["write_stdin"],
        fields: &[("session_id", "job"), ("chars", "text")],
    },
    Names {
        ours: "shell_kill",
        others: &["KillShell", "KillBash", "TaskStop"],
        fields: &[("shell_id", "job")],
    },
    Names { ours: "read", others: &["Read", "read_file", "view_image"], fields: FILE },
    Names { ours: "write", others: &["Write", "write_file"], fields: FILE },
    Names { ours: "edit", others: &["Edit", "MultiEdit", "replace", "str_replace"], fields: FILE },
    Names { ours: "apply_patch", others: &["ApplyPatch", "patch"], fields: &[("input", "patch")] },
    Names {
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
    Names { ours: "list", others: &["LS", "list_directory"], fields: &[("dir_path", "path")] },
    Names { ours: "glob", others: &["Glob", "find_files"], fields: &[("dir_path", "path")] },
    Names {
        ours: "grep",
        others: &["Grep", "search_file_content", "grep_search"],
        fields: &[("output_mode", "mode"), ("include", "glob"), ("dir_path", "path")],
    },
    Names { ours: "web_fetch", others: &["WebFetch", "webfetch"], fields: &[] },
    Names { ours: "web_search", others: &["WebSearch", "websearch", "google_web_search"], fields: &[] },
    Names {
        ours: "todo",
        others: &["TodoWrite", "todowrite", "update_plan", "write_todos"],
        fields: &[("todos", "tasks"), ("plan", "tasks")],
    },
    Names { ours: "ask_user", others: &["AskUserQuestion", "question", "ask_user_question"], fields: &[] },
    Names { ours: "remember", others: &["save_memory"], fields: &[("fact", "text")] },
    Names { ours: "task", others: &["Agent", "Task"], fields: &[("subagent_type", "agent")] },
    Names { ours: "skill", others: &["Skill", "activate_skill"], fields: &[] },
];

fn row(name: &str) -> Option<&'static Names> {
    TABLE.iter().find(|names| names.ours == name || names.others.contains(&name))
}

/// Our name for a tool, whoever named it. What is not known (MCP tools) stays as it is.
pub fn ours(name: &str) -> &str {
    row(name).map_or(name, |names| names.ours)
}

/// The name of our tool that others know, if there is one.
pub fn theirs(name: &str) -> Option<&'static str> {
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
        for names in &TABLE {
            for name in [names.ours].iter().chain(names.others) {
                assert!(seen.insert(*name), "{name} stands in two rows");
                assert_eq!(ours(name), names.ours);
            }
        }
        assert_eq!(ours("mcp__github__search"), "mcp__github__search");
    }

    #[test]
    fn names_and_fields_go_both_ways() {
        assert_eq!((ours("Bash"), theirs("shell")), ("shell", Some("Bash")));
        assert_eq!((our_field("Read", "file_path"), their_field("read", "path")), ("path", "file_path"));
        assert_eq!(our_field("Read", "offset"), "offset");
    }
}
