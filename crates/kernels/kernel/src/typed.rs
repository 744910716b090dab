//! Sources and configurations as typed by a user: paths in an experiment
//! file are relative to the file, those on a command line to the working
//! directory.

/// Returns a source as typed.
#[must_use]
pub fn source(source: &str) -> String {
    if source.starts_with("debian:") {
        return source.into();
    }
    let git = source.strip_prefix("git:");
    match git.map(|rest| rest.rsplit_once('#')) {
        Some(Some((folder, revision))) => format!("git:{}#{revision}", absolute(folder)),
        Some(None) => source.into(),
        None => absolute(source),
    }
}

/// Returns a configuration as typed.
#[must_use]
pub fn config(config: &str) -> String {
    if matches!(config, "workloads" | "defconfig" | "test-machine" | "box") {
        return config.into();
    }
    absolute(config)
}

fn absolute(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.into(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_on_a_command_line_start_where_it_was_typed() {
        assert_eq!(source("debian:6.1"), "debian:6.1");
        assert_eq!(source("git:/a#v6"), "git:/a#v6");
        assert!(source("linux").starts_with('/'));
        assert!(source("git:linux#v6").starts_with("git:/"));
    }
}
