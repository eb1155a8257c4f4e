//! What is worked on: the files of a project.
